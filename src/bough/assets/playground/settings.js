// The settings beside the conversation: what they ask for, what is remembered of them, and what an example sets.

import { EXAMPLE_SCHEMA, EXAMPLE_TOOLS, pretty } from "./examples.js";
import { ofTab, remembered } from "./storage.js";

const SETTINGS = "bough.settings";
const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty", "max_tokens", "seed"];
const TEXTS = ["system", ...NUMBERS, "stop_text", "thinking", "form", "schema", "tools", "tool_choice"];
const byId = (id) => document.getElementById(id);

/** Settings that the last example changed: what they were, and what it made of them. */
let ofExample = [];

/** A setting that cannot be, by the name that it has on the page. */
class WrongSetting extends Error {
  constructor(input, why) {
    super(`${input.labels[0].firstChild.data.trim()}: ${why}`);
    this.input = input;
  }
}

/** The system prompt, "" if there is none. */
export const systemPrompt = () => byId("system").value.trim();

/**
 * What the other settings ask for, as fields of a request.
 *
 * @throws WrongSetting if one cannot be read.
 */
export function readSettings() {
  const asked = {};
  for (const name of NUMBERS) {
    const input = byId(name);
    if (!input.checkValidity()) throw new WrongSetting(input, input.validationMessage);
    if (input.value !== "") asked[name] = Number(input.value);
  }
  const stops = byId("stop_text").value.split("\n").filter(Boolean);
  if (stops.length) asked.stop = stops;
  if (byId("logprobs").checked) Object.assign(asked, { logprobs: true, top_logprobs: 5 });
  if (byId("thinking").value) asked.thinking = byId("thinking").value === "on";
  const form = byId("form").value;
  if (form === "json_object") asked.response_format = { type: form };
  if (form === "json_schema") {
    asked.response_format = { type: form, json_schema: { name: "answer", schema: parsed("schema"), strict: true } };
  }
  if (byId("tools").value.trim()) {
    asked.tools = parsed("tools");
    asked.tool_choice = byId("tool_choice").value;
  }
  return asked;
}

function parsed(id) {
  try {
    return JSON.parse(byId(id).value);
  } catch (error) {
    throw new WrongSetting(byId(id), `this is no JSON (${error.message})`);
  }
}

/** Unfold the settings at one of them. */
export function openSettingsAt(input) {
  byId("settings").open = true;
  input.focus();
}

function settingsChanged() {
  byId("schema-label").hidden = byId("form").value !== "json_schema";
  byId("example-tool").disabled = byId("tools").value.trim() !== ""; // it would take the place of what somebody wrote
  const settings = Object.fromEntries(TEXTS.map((id) => [id, byId(id).value]));
  ofTab.set(SETTINGS, JSON.stringify({ ...settings, logprobs: byId("logprobs").checked, ofExample }));
}

/** What is remembered, but nothing of it that is not as this page remembers it: another version may have left it. */
function restore() {
  const settings = { schema: pretty(EXAMPLE_SCHEMA), ...remembered(SETTINGS) };
  for (const id of TEXTS) if (typeof settings[id] === "string") byId(id).value = settings[id];
  byId("logprobs").checked = settings.logprobs === true;
  const isChange = (each) => TEXTS.includes(each?.id) && typeof each.before === "string" && typeof each.made === "string";
  ofExample = Array.isArray(settings.ofExample) ? settings.ofExample.filter(isChange) : [];
}

/** Let the settings be what an example needs, with none that would hinder it. */
export function setForExample(needed) {
  undoExample();
  // Tools that somebody wrote stay; those of an example do not.
  const tools = byId("tools").value === pretty(EXAMPLE_TOOLS) ? "" : byId("tools").value;
  const wanted = { form: "text", thinking: "", tools, ...needed };
  ofExample = Object.entries(wanted).map(([id, value]) => ({ id, before: byId(id).value, made: value }));
  for (const { id, made } of ofExample) byId(id).value = made;
  settingsChanged();
}

/** Settings that the last example changed go back to what they were, but for those changed since; returns which. */
export function undoExample() {
  const undone = ofExample.filter(({ id, made }) => byId(id).value === made);
  for (const { id, before } of undone) byId(id).value = before;
  ofExample = [];
  settingsChanged();
  return undone;
}

/** Settings become again what an example made of them, but for those changed since. */
export function redoExample(undone) {
  ofExample = undone.filter(({ id, before }) => byId(id).value === before);
  for (const { id, made } of ofExample) byId(id).value = made;
  settingsChanged();
}

/** Show the values that take effect where a field is left empty, as far as the server says them. */
export function showDefaults(defaults = {}) {
  for (const name of NUMBERS) {
    const value = defaults[name === "max_tokens" ? "max_new_tokens" : name]?.value;
    if (typeof value === "number") byId(name).placeholder = name === "top_k" && value < 0 ? "all" : String(value);
  }
}

/** Make the settings usable: as they are remembered, and folded where they would take the room of the conversation. */
export function prepareSettings() {
  restore();
  settingsChanged();
  if (window.matchMedia("(max-width: 50rem)").matches) byId("settings").open = false;
  byId("settings").addEventListener("input", settingsChanged);
  byId("example-tool").addEventListener("click", () => {
    const byKeys = document.activeElement.matches(":focus-visible");
    byId("tools").value = pretty(EXAMPLE_TOOLS);
    settingsChanged();
    if (byKeys) byId("tools").focus(); // the button is disabled now
  });
}
