// The conversation: asks /v1/chat/completions and shows what streams back.

import { call, events } from "./api.js";
import { arrange, copyButton, element, grow, write } from "./dom.js";
import { EXAMPLE_SCHEMA, EXAMPLE_TOOLS, examplesFor, pretty } from "./examples.js";
import { show } from "./markdown.js";
import { asSent, awaitsResults, indented, openCalls, says, wholeCalls } from "./messages.js";
import { ofTab } from "./storage.js";

const CONVERSATION = "bough.conversation";
const SETTINGS = "bough.settings";
const MAX_STORED = 1_000_000; // characters
const STORE_MS = 1000; // between two states of a running answer that are kept
const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty", "max_tokens", "seed"];
const byId = (id) => document.getElementById(id);

/** Whether a key is for what an input method proposes, to take or to dismiss; Safari tells by 229. */
const composes = (event) => event.isComposing || event.keyCode === 229;

/** A screen for fingers, whose keyboard has no Shift+Enter: there a button sends, and Enter makes a new line. */
const touch = window.matchMedia("(pointer: coarse)");

/** Whether a key sends what was typed. */
const sends = (event) => event.key === "Enter" && !event.shiftKey && !composes(event) && !touch.matches;

/** Messages as the server takes them, each with what the page knows of it under `shown`. */
let messages = [];
let model = { id: "" }; // as /v1/models tells of it
let running = null;

/** What is seen while there are no messages, and the messages that "New conversation" put away last. */
const start = element("section", { className: "start" });
let putAway = { messages: [], undone: [] };
/** Settings that the last example changed: what they were, and what it made of them. */
let ofExample = [];

/** All messages of before, while an answer that takes the place of some of them has said nothing yet. */
let replaced = null;
const lasting = () => (replaced && !says(messages.at(-1)) ? replaced : messages);

/** All messages of before a turn that others followed was made anew: they can come back until the next question. */
let former = null;
const backToFormer = element("button", { type: "button", onclick: () => bringBack(former) }, "Bring back what this replaced");

/** A setting that cannot be, by the name that it has on the page. */
class WrongSetting extends Error {
  constructor(input, why) {
    super(`${input.labels[0].firstChild.data.trim()}: ${why}`);
    this.input = input;
  }
}

/** What the settings ask for. Throws a WrongSetting if one cannot be read. */
function options() {
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

function say(text) {
  byId("announcer").textContent = text;
}

/** What the settings ask for, or null, after which they are open at the one that is wrong, and it is told why. */
function settings() {
  try {
    return options();
  } catch (error) {
    complain(error.message);
    byId("settings").open = true;
    error.input.focus();
    return null;
  }
}

/** Let the model go on from the messages as they are; resolves to its message. */
async function answer(asked) {
  const system = byId("system").value.trim();
  const body = {
    model: model.id,
    messages: [...(system ? [{ role: "system", content: system }] : []), ...asSent(messages)],
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
    ...asked,
  };
  const message = { role: "assistant", content: "", reasoning_content: "", tool_calls: [], shown: { logprobs: [], form: asked.response_format?.type } };
  messages.push(message);
  running = new AbortController();
  setBusy(true);
  const begun = performance.now();
  let pending = false;
  const paint = () => {
    pending = false;
    if (!running || !messages.includes(message)) return;
    update(message);
  };
  try {
    const response = await call("/v1/chat/completions", { body, signal: running.signal });
    for await (const event of events(response)) {
      const choice = event.choices?.[0];
      if (choice) take(message, choice);
      measure(message, event, performance.now() - begun);
      if (choice && performance.now() - storedAt >= STORE_MS) store(); // a page that nobody sees paints nothing
      if (choice && !pending) {
        pending = true;
        // Painting costs as much as the text is long: long answers are painted less often.
        setTimeout(() => requestAnimationFrame(paint), lengthOf(message) / 200);
      }
    }
    if (!message.shown.finish) message.shown.error = "the answer broke off";
  } catch (error) {
    if (error.name === "AbortError") message.shown.finish = "stopped";
    else message.shown.error = error.message;
  }
  running = null;
  setBusy(false);
  store();
  // An error is told by its own words, which are an alert.
  say(message.shown.error ? "" : `Answer complete. ${stats(message.shown)}`);
  return message;
}

/** Characters of all that is painted of a message. */
function lengthOf({ content, reasoning_content, tool_calls }) {
  return tool_calls.reduce((sum, call) => sum + call.function.arguments.length, content.length + reasoning_content.length);
}

/** Add a streamed choice to a message. */
function take(message, { delta = {}, logprobs, finish_reason }) {
  message.content += delta.content ?? "";
  message.reasoning_content += delta.reasoning_content ?? "";
  for (const part of delta.tool_calls ?? []) {
    const call = (message.tool_calls[part.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
    if (part.id) call.id = part.id;
    call.function.name += part.function?.name ?? "";
    call.function.arguments += part.function?.arguments ?? "";
  }
  if (logprobs?.content) message.shown.logprobs.push(...logprobs.content);
  if (finish_reason) message.shown.finish = finish_reason;
}

/** Note the figures of an answer as of a streamed event, `now` ms after it was asked for: a stopped one keeps the last. */
function measure({ shown }, { choices, usage }, now) {
  const { content, reasoning_content, tool_calls } = choices?.[0]?.delta ?? {};
  if (content || reasoning_content || tool_calls) shown.first ??= now;
  if (!usage) return;
  const { prompt_tokens: prompt, completion_tokens: generated } = usage;
  shown.usage = { prompt, generated, cached: usage.prompt_tokens_details?.cached_tokens ?? 0 };
  // Tokens of a short answer may come together: the time between them says nothing then, that of the whole answer does.
  const [tokens, time] = now - shown.first > 50 ? [generated - 1, now - shown.first] : [generated, now];
  if (shown.first !== undefined && generated > 1 && time > 0) shown.speed = (tokens * 1000) / time;
}

function stats({ usage, speed, first, finish }) {
  const parts = [];
  if (usage) parts.push(`${usage.prompt} prompt tokens${usage.cached ? ` (${usage.cached} cached)` : ""}`, `${usage.generated} generated`);
  if (speed !== undefined) parts.push(`${speed.toFixed(0)} tokens/s`);
  if (first !== undefined) parts.push(`first token after ${first.toFixed(0)} ms`);
  if (usage && model.max_model_len) {
    parts.push(`${(usage.prompt + usage.generated).toLocaleString("en")} of ${model.max_model_len.toLocaleString("en")} tokens of context`);
  }
  if (finish && finish !== "stop") parts.push(finish === "length" ? "cut off at max tokens" : finish.replace("_", " "));
  return parts.join(" · ");
}

// --- what is seen ---------------------------------------------------------------------------------------------------

const NAMES = { user: "You", assistant: "Model", tool: "Tool result" };

/**
 * What is on the page of each message: its box, the parts of it that outlive an update, and a form if it is edited; and
 * whether an error of it is no news.
 */
const views = new WeakMap();

function viewOf(message) {
  let view = views.get(message);
  if (!view) {
    view = { box: element("article", { className: `message ${message.role}`, "aria-label": NAMES[message.role] }), parts: new Map(), editor: null, isOld: false };
    views.set(message, view);
  }
  return view;
}

/** A part of a view, made when it is first needed. */
function part(view, name, make) {
  if (!view.parts.has(name)) view.parts.set(name, make());
  return view.parts.get(name);
}

/** An error of a message stays, but to show it again is no alert. */
function makeOld(message) {
  const view = viewOf(message);
  view.isOld = true;
  view.parts.get("error")?.removeAttribute("role");
}

/** Whether the end of the conversation is followed, as it is since it was last in sight. */
let follows = true;

/** Note whether the end is in sight; of a log that is hidden all measures are 0. */
function noteEnd() {
  const log = byId("messages");
  if (log.clientHeight) follows = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
}

function showEnd() {
  byId("messages").scrollTop = byId("messages").scrollHeight;
}

function followEnd() {
  follows = true;
  showEnd();
}

/** Show what a message has become. */
function update(message) {
  const view = viewOf(message);
  arrange(view.box, [part(view, "who", () => element("h2", { className: "who" }, NAMES[message.role])), ...(view.editor ? [view.editor] : shownOf(message, view))]);
  if (follows) showEnd();
}

function shownOf(message, view) {
  const busy = running !== null && message === messages.at(-1) && message.role === "assistant";
  const nodes = [];
  if (message.reasoning_content) {
    const thoughts = part(view, "thoughts", () => element("details", { className: "thoughts" }, element("summary"), element("div")));
    thoughts.firstChild.textContent = busy && !message.content ? "Thinking …" : "Thoughts";
    written(view, "thought", thoughts.lastChild, message.reasoning_content);
    nodes.push(thoughts);
  }
  if (message.role !== "assistant") nodes.push(part(view, "plain", () => element("p", { className: "plain" }, message.content)));
  else if (message.content) nodes.push(message.shown?.form ? verbatim(view, message.content) : written(view, "content", part(view, "text", () => element("div", { className: "text" })), message.content));
  message.tool_calls?.forEach((each, index) => nodes.push(toolCall(message, each, index, busy)));
  if (message.shown?.logprobs?.length) nodes.push(likelihoods(view, message.shown.logprobs));
  if (message.shown?.error) nodes.push(part(view, "error", () => element("p", { className: "error", role: view.isOld ? undefined : "alert" }, `This failed: ${message.shown.error}`)));
  if (busy) nodes.push(part(view, "cursor", () => element("span", { className: "cursor", "aria-hidden": "true" })));
  const told = message.shown ? stats(message.shown) : "";
  if (told) nodes.push(figures(view, told, busy));
  if (!running) nodes.push(part(view, "buttons", () => buttons(message)));
  return nodes;
}

function figures(view, told, busy) {
  const line = part(view, "figures", () => element("p"));
  line.className = busy ? "live" : "stats";
  write(line, told);
  return line;
}

/** Markdown in a node, which is rendered anew only if it is another text than before. */
function written(view, name, node, text) {
  if (view[name] !== text) show(node, text);
  view[name] = text;
  return node;
}

/** An answer as it came, which asked for JSON: as Markdown it would lose what JSON may hold. What was there stays selected. */
function verbatim(view, text) {
  const node = part(view, "verbatim", () => element("pre", { className: "text", tabIndex: 0, "aria-label": "JSON" }, ""));
  grow(node, text);
  return node;
}

function buttons(message) {
  const bar = element("div", { className: "actions small" });
  if (message.role === "assistant") {
    bar.append(element("button", { type: "button", onclick: () => anew(message) }, "Regenerate"));
    if (message.content) bar.append(copyButton("Copy text", () => message.content));
  }
  if (message.role === "user") bar.append(element("button", { type: "button", onclick: () => edit(message) }, "Edit"));
  return bar;
}

function edit(message) {
  if (running) return;
  const view = viewOf(message);
  const area = element("textarea", { value: message.content, rows: 3, "aria-label": "Your message, to be changed" });
  const leave = () => {
    view.editor = null;
    update(message);
    (view.box.querySelector(".actions button") ?? byId("stop")).focus(); // no message has buttons while an answer runs
  };
  const done = (event) => {
    event.preventDefault();
    if (!running && area.value.trim()) anew(message, area.value);
  };
  area.addEventListener("keydown", (event) => {
    if (sends(event)) done(event);
    if (event.key !== "Escape" || composes(event)) return;
    event.stopPropagation(); // which would end a running answer, too
    leave();
  });
  view.editor = element("form", { onsubmit: done }, area,
    element("div", { className: "actions small" }, element("button", {}, "Send"), element("button", { type: "button", onclick: leave }, "Cancel")));
  update(message);
  area.focus();
}

/**
 * Have an answer made anew, or a question answered that says something else now. What was there from the message on comes
 * back if nothing is answered at all, and can be brought back if somebody wrote more of it than what is changed.
 */
async function anew(message, text) {
  if (running) return;
  const asked = settings();
  if (!asked) return;
  const before = (replaced = messages.slice());
  const formerBefore = former;
  const gone = messages.splice(messages.indexOf(message));
  gone.forEach(makeOld);
  if (gone.slice(1).some(({ role }) => role !== "assistant")) former = before;
  if (text !== undefined) messages.push({ role: "user", content: text });
  const made = await answer(asked);
  if (replaced === before) replaced = null;
  if (says(made)) viewOf(message).editor = null; // it comes back as it was
  if (says(made) || messages.at(-1) !== made) return;
  messages = before;
  former = formerBefore;
  redraw();
  store();
  if (made.shown.error) complain(`This failed: ${made.shown.error}`);
}

function toolCall(message, { id, function: { name, arguments: text } }, index, busy) {
  const view = viewOf(message);
  const box = part(view, `call ${index}`, () => element("section", { className: "call" },
    element("p", {}, "Calls ", element("code")), element("pre", { tabIndex: 0, "aria-label": "Arguments" })));
  const [told, shown] = box.children;
  box.setAttribute("aria-label", `Tool call: ${name}`);
  write(told.lastChild, name);
  write(shown, indented(text));
  const isOpen = !busy && openCalls(messages, message).some((call) => call.id === id);
  const nodes = [told, shown];
  const why = busy || isOpen ? "" : whyUnanswered(message, id);
  if (why) nodes.push(part(view, `why ${index}`, () => element("p", { className: "legend" }, why)));
  if (isOpen) nodes.push(part(view, `result ${index}`, () => resultForm(message, id, name)));
  arrange(box, nodes);
  return box;
}

function whyUnanswered(message, id) {
  if (message.shown.left?.includes(id)) return "Left unanswered: the model is not told of it.";
  return wholeCalls(message).some((call) => call.id === id) ? "" : "Not complete: the model is not told of it.";
}

function resultForm(message, id, name) {
  const area = element("textarea", { rows: 2, "aria-label": `Result of ${name}`, placeholder: "What does it answer?" });
  const give = (event) => {
    event.preventDefault();
    if (running) return;
    const asked = settings();
    if (!asked) return;
    messages.push({ role: "tool", tool_call_id: id, content: area.value });
    goOn(asked);
  };
  const leave = () => {
    if (running) return;
    const asked = settings();
    if (!asked) return;
    message.shown.left = [...(message.shown.left ?? []), id];
    goOn(asked);
  };
  return element("form", { onsubmit: give }, area, element("div", { className: "actions small" },
    element("button", {}, "Send result"), element("button", { type: "button", onclick: leave }, "Leave unanswered")));
}

/** After a result, or after a call was left without one: to the next call, the answer or, with no result, a new question. */
function goOn(asked) {
  store();
  redraw();
  if (awaitsResults(messages)) byId("messages").querySelector(".call textarea").focus();
  else if (messages.at(-1).role === "tool") answer(asked);
  else byId("prompt").focus();
}

/** How a token is shown: what is only a part of a character, by its bytes. */
function asText({ token, bytes }) {
  return token.includes("\ufffd") && bytes ? bytes.map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("") : token;
}

/**
 * All that was generated, thoughts and marks as well, in tokens tinted by how likely they were; arrows go from one to the
 * next, the line below tells about the one pointed at.
 */
function likelihoods(view, tokens) {
  const box = part(view, "tokens", () => {
    const line = element("div", { className: "tokens", role: "group", "aria-label": "The answer, token by token" });
    line.addEventListener("keydown", (event) => {
      const { activeElement } = document;
      const next = { ArrowRight: activeElement.nextSibling, ArrowLeft: activeElement.previousSibling }[event.key];
      if (!next) return;
      event.preventDefault();
      next.focus();
    });
    return element("div", { className: "likelihoods" }, line,
      element("p", { className: "told", role: "status" }, "Point at a token, or go along them with the arrow keys."));
  });
  const [line, told] = box.children;
  for (const token of tokens.slice(line.children.length)) {
    const probability = Math.exp(token.logprob);
    const span = element("span", { className: `token p${Math.min(4, Math.floor(probability * 5))}`, tabIndex: line.children.length ? -1 : 0 }, asText(token));
    const tell = () => {
      const others = (token.top_logprobs ?? []).map((top) => `${JSON.stringify(asText(top))} ${(100 * Math.exp(top.logprob)).toFixed(1)} %`);
      told.textContent = `${JSON.stringify(asText(token))}: ${(100 * probability).toFixed(1)} %${others.length ? `. Likeliest: ${others.join(", ")}` : ""}`;
      span.title = told.textContent;
    };
    span.addEventListener("pointerenter", tell);
    span.addEventListener("focus", tell);
    line.append(span);
  }
  return box;
}

let complaint = null; // the last

function complain(text) {
  complaint?.remove();
  complaint = element("p", { className: "error", role: "alert" }, text);
  byId("messages").append(complaint);
  followEnd();
}

/** Show all messages as they are now, and no complaint of before. */
function redraw() {
  const log = byId("messages");
  const { scrollTop } = log;
  const behind = former && !running ? [backToFormer] : [];
  arrange(log, messages.length ? [...messages.map((message) => viewOf(message).box), ...behind] : [start]);
  messages.forEach(update);
  log.scrollTop = follows && messages.length ? log.scrollHeight : scrollTop;
  noteEnd(); // fewer messages may leave nothing to scroll
}

/** The chat is shown again: go on following its end. */
export function chatIsShown() {
  if (follows && messages.length) showEnd();
}

function setBusy(busy) {
  const held = document.activeElement;
  const byKeys = held.matches(":focus-visible");
  byId("send").hidden = busy;
  byId("stop").hidden = !busy;
  byId("messages").setAttribute("aria-busy", String(busy));
  if (busy) say("The model answers.");
  redraw();
  // Who works with keys goes on where the work is; for others a focus would only open a phone's keyboard.
  if (byKeys && (!held.isConnected || held.closest("[hidden]"))) byId(busy ? "stop" : "prompt").focus();
}

// --- remembered in this tab -----------------------------------------------------------------------------------------

const TEXTS = ["system", ...NUMBERS, "stop_text", "thinking", "form", "schema", "tools", "tool_choice"];

let storedAt = 0;

/** Keep the conversation for a reload, or say that this cannot be. */
function store() {
  const kept = lasting();
  let text = JSON.stringify(kept);
  if (text.length > MAX_STORED) text = JSON.stringify(kept.map((each) => (each.shown ? { ...each, shown: { ...each.shown, logprobs: [] } } : each)));
  const isTooLong = text.length > MAX_STORED;
  const isKept = ofTab.set(CONVERSATION, isTooLong ? "[]" : text);
  storedAt = performance.now();
  const why = isTooLong ? "This conversation is too long to be kept" : "The browser keeps nothing of this page";
  const told = kept.length && (isTooLong || !isKept) ? `${why}: a reload would lose it.` : "";
  write(byId("unkept"), told);
}

function remembered(name) {
  try {
    return JSON.parse(ofTab.get(name));
  } catch {
    return null;
  }
}

/** A remembered message as this page makes them. Throws if it is none. */
function asKnown({ role, content, tool_call_id, tool_calls, reasoning_content, shown }) {
  if (!Object.hasOwn(NAMES, role) || typeof content !== "string") throw new Error("this is no message");
  if (role !== "assistant") return { role, content, tool_call_id };
  const calls = (tool_calls ?? []).filter((call) => call && typeof call.function.arguments === "string");
  const known = { logprobs: [], ...shown };
  if (!known.finish && !known.error) known.finish = "stopped"; // the page was left while it ran
  return { role, content, reasoning_content: String(reasoning_content ?? ""), tool_calls: calls, shown: known };
}

/** Show what is remembered, but nothing of it that is not as this page remembers it: another version may have left it. */
function restore() {
  const settings = { schema: pretty(EXAMPLE_SCHEMA), ...remembered(SETTINGS) };
  for (const id of TEXTS) if (typeof settings[id] === "string") byId(id).value = settings[id];
  byId("logprobs").checked = settings.logprobs === true;
  const isChange = (each) => TEXTS.includes(each?.id) && typeof each.before === "string" && typeof each.made === "string";
  ofExample = Array.isArray(settings.ofExample) ? settings.ofExample.filter(isChange) : [];
  try {
    messages = (remembered(CONVERSATION) ?? []).map(asKnown);
    messages.forEach(makeOld);
    redraw();
  } catch {
    messages = [];
    redraw();
  }
}

function settingsChanged() {
  byId("schema-label").hidden = byId("form").value !== "json_schema";
  byId("example-tool").disabled = byId("tools").value.trim() !== ""; // it would take the place of what somebody wrote
  const settings = Object.fromEntries(TEXTS.map((id) => [id, byId(id).value]));
  ofTab.set(SETTINGS, JSON.stringify({ ...settings, logprobs: byId("logprobs").checked, ofExample }));
}

/** Settings that the last example changed go back to what they were, but for those changed since; returns which. */
function undoExample() {
  const undone = ofExample.filter(({ id, made }) => byId(id).value === made);
  for (const { id, before } of undone) byId(id).value = before;
  ofExample = [];
  settingsChanged();
  return undone;
}

/** Settings become again what an example made of them, but for those changed since. */
function redoExample(undone) {
  ofExample = undone.filter(({ id, before }) => byId(id).value === before);
  for (const { id, made } of ofExample) byId(id).value = made;
  settingsChanged();
}

/** Examples as buttons, of which each asks at once, with the settings that it needs and none that would hinder it. */
function propose(examples) {
  const ask = ({ prompt, settings: needed = {} }) => {
    undoExample();
    // Tools that somebody wrote stay; those of an example do not.
    const tools = byId("tools").value === pretty(EXAMPLE_TOOLS) ? "" : byId("tools").value;
    const wanted = { form: "text", thinking: "", tools, ...needed };
    ofExample = Object.entries(wanted).map(([id, value]) => ({ id, before: byId(id).value, made: value }));
    for (const { id, made } of ofExample) byId(id).value = made;
    settingsChanged();
    if (document.activeElement.matches(":focus-visible")) byId("prompt").focus();
    byId("prompt").value = prompt;
    byId("composer").requestSubmit();
  };
  const button = (example) => element("button", { type: "button", onclick: () => ask(example) },
    element("strong", {}, example.name), " ", element("span", {}, example.prompt));
  start.setAttribute("aria-label", "Examples");
  start.append(element("h2", {}, "Ask something, or begin with one of these"), element("div", { className: "examples" }, examples.map(button)));
}

/** Go on with messages that were put away. */
function bringBack(given) {
  messages = given;
  former = null;
  store();
  redraw();
  followEnd();
  byId("prompt").focus();
}

function newConversation() {
  running?.abort();
  const undone = undoExample();
  messages.forEach(makeOld);
  if (messages.length) putAway = { messages: lasting(), undone };
  messages = [];
  replaced = former = null;
  store();
  redraw();
  byId("prompt").focus();
  if (!putAway.messages.length) return;
  const back = element("button", { type: "button", className: "back", onclick: () => {
    const { messages: given, undone: made } = putAway;
    undoExample();
    redoExample(made);
    putAway = { messages: [], undone: [] };
    back.remove();
    bringBack(given);
  } }, "Bring the last conversation back");
  start.querySelector(".back")?.remove();
  start.append(back);
}

/** Make the chat usable: with a model as /v1/models and as /model_info tell of it. */
export function startChat(served, info) {
  model = served;
  const examples = examplesFor(info);
  if (examples.length) propose(examples);
  if (touch.matches) byId("prompt").placeholder = "Say something …";
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
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("prompt").value.trim();
    if (running || !text) return;
    if (awaitsResults(messages)) {
      complain("A tool call waits for its result. Send it, or leave the call unanswered.");
      return;
    }
    const asked = settings();
    if (!asked) return;
    byId("prompt").value = "";
    former = null;
    messages.push({ role: "user", content: text });
    store();
    redraw();
    followEnd();
    answer(asked);
  });
  byId("prompt").addEventListener("keydown", (event) => {
    if (!sends(event)) return;
    event.preventDefault();
    byId("composer").requestSubmit();
  });
  byId("stop").addEventListener("click", () => running?.abort());
  document.addEventListener("keydown", (event) => {
    const isForOther = byId("chat").hidden || document.querySelector("dialog[open]");
    if (event.key === "Escape" && !composes(event) && !isForOther) running?.abort();
  });
  byId("messages").addEventListener("scroll", noteEnd);
  byId("messages").addEventListener("toggle", noteEnd, true); // thoughts that are unfolded may move the end away
  window.addEventListener("pagehide", () => { if (running) store(); });
  byId("clear").addEventListener("click", newConversation);
}
