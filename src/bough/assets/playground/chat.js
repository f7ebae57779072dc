// The conversation: asks /v1/chat/completions and shows what streams back.

import { call, events } from "./api.js";
import { element, render } from "./markdown.js";

const STORE = "bough.conversation";
const MAX_STORED = 1_000_000;
const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "seed"];
const EXAMPLE_SCHEMA = {
  type: "object",
  properties: { name: { type: "string", maxLength: 40 }, height_m: { type: "integer", maximum: 150 }, evergreen: { type: "boolean" } },
  required: ["name", "height_m", "evergreen"],
  additionalProperties: false,
};
const EXAMPLE_TOOL = [{
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a place",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  },
}];

const byId = (id) => document.getElementById(id);

/** Messages as the server takes them, each with what the page knows of it under `shown`. */
let messages = [];
let model = "";
let running = null;

/** What the settings ask for. Throws an Error that names the setting if one cannot be read. */
function options() {
  const asked = {};
  for (const name of NUMBERS) {
    const input = byId(name);
    if (!input.checkValidity()) throw new Error(`${name}: ${input.validationMessage}`);
    if (input.value !== "") asked[name] = Number(input.value);
  }
  if (byId("stop_text").value) asked.stop = [byId("stop_text").value];
  if (byId("logprobs").checked) Object.assign(asked, { logprobs: true, top_logprobs: 5 });
  const form = byId("form").value;
  if (form === "json_object") asked.response_format = { type: form };
  if (form === "json_schema") {
    asked.response_format = { type: form, json_schema: { name: "answer", schema: parsed("schema", "Schema"), strict: true } };
  }
  if (byId("tools").value.trim()) {
    asked.tools = parsed("tools", "Tools");
    asked.tool_choice = byId("tool_choice").value;
  }
  return asked;
}

function parsed(id, label) {
  try {
    return JSON.parse(byId(id).value);
  } catch (error) {
    throw new Error(`${label}: this is no JSON (${error.message})`);
  }
}

/** What goes to the server of a message. */
function wire({ role, content, tool_calls, tool_call_id, reasoning_content }) {
  if (role !== "assistant") return { role, content, tool_call_id };
  return {
    role,
    content: content || null,
    tool_calls: tool_calls.length ? tool_calls : undefined,
    reasoning_content: reasoning_content || undefined,
  };
}

/** Whether there is anything in a message; an answer that failed at once has nothing. */
function says({ role, content, reasoning_content, tool_calls }) {
  return role !== "assistant" || content || reasoning_content || tool_calls.length;
}

function say(text) {
  byId("announcer").textContent = text;
}

/** Whether every tool call of the last assistant's message has its result. */
function awaitsResults() {
  const last = messages.findLastIndex((message) => message.role === "assistant");
  if (last < 0) return false;
  const given = new Set(messages.slice(last + 1).map((message) => message.tool_call_id));
  return (messages[last].tool_calls ?? []).some(({ id }) => !given.has(id));
}

/** Let the model go on from the messages as they are. */
async function answer() {
  if (running) return;
  let asked;
  try {
    asked = options();
  } catch (error) {
    complain(error.message);
    byId("settings").open = true;
    return;
  }
  const system = byId("system").value.trim();
  const body = {
    model,
    messages: [...(system ? [{ role: "system", content: system }] : []), ...messages.filter(says).map(wire)],
    stream: true,
    stream_options: { include_usage: true },
    ...asked,
  };
  const message = { role: "assistant", content: "", reasoning_content: "", tool_calls: [], shown: { logprobs: [] } };
  messages.push(message);
  const view = show(message);
  running = new AbortController();
  setBusy(true);
  const begun = performance.now();
  let first = null;
  let usage = null;
  let pending = false;
  const paint = () => {
    pending = false;
    if (running) view.update();
  };
  try {
    const response = await call("/v1/chat/completions", { body, signal: running.signal });
    for await (const event of events(response)) {
      if (event.usage) usage = event.usage;
      const choice = event.choices?.[0];
      if (!choice) continue;
      take(message, choice);
      first ??= choice.delta?.content || choice.delta?.reasoning_content || choice.delta?.tool_calls ? performance.now() : null;
      if (!pending) {
        pending = true;
        // Painting costs as much as the text is long: long answers are painted less often.
        setTimeout(() => requestAnimationFrame(paint), message.content.length / 200);
      }
    }
    if (!message.shown.finish) message.shown.error = "the answer broke off";
  } catch (error) {
    if (error.name === "AbortError") message.shown.finish = "stopped";
    else message.shown.error = error.message;
  }
  message.shown.stats = stats(usage, begun, first, performance.now(), message.shown.finish);
  running = null;
  setBusy(false);
  store();
  say(message.shown.error ? `Failed: ${message.shown.error}` : `Answer complete. ${message.shown.stats}`);
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

function stats(usage, begun, first, ended, finish) {
  const parts = [];
  if (usage) {
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    parts.push(`${usage.prompt_tokens} prompt tokens${cached ? ` (${cached} cached)` : ""}`, `${usage.completion_tokens} generated`);
    if (first !== null && usage.completion_tokens > 1 && ended > first) {
      parts.push(`${((usage.completion_tokens - 1) / ((ended - first) / 1000)).toFixed(0)} tokens/s`);
    }
  }
  if (first !== null) parts.push(`first after ${(first - begun).toFixed(0)} ms`);
  if (finish && finish !== "stop") parts.push(finish === "length" ? "cut off at the most tokens" : finish.replace("_", " "));
  return parts.join(" · ");
}

// --- what is seen ---------------------------------------------------------------------------------------------------

/** Show a message at the end of the conversation; returns how to show it anew. */
function show(message) {
  const box = element("article", { className: `message ${message.role}`, "aria-label": NAMES[message.role] });
  byId("messages").append(box);
  const update = () => {
    const log = byId("messages");
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    fill(box, message, update);
    if (atEnd) log.scrollTop = log.scrollHeight;
  };
  update();
  return { update };
}

const NAMES = { user: "You", assistant: "Model", tool: "Result of a tool" };

function fill(box, message, update) {
  const busy = running !== null && message === messages.at(-1) && message.role === "assistant";
  const wasOpen = box.querySelector("details.thoughts")?.open;
  const nodes = [element("h2", { className: "who" }, NAMES[message.role])];
  if (message.reasoning_content) {
    nodes.push(element("details", { className: "thoughts", open: wasOpen ?? false },
      element("summary", {}, busy && !message.content ? "Thinking …" : "Thoughts"),
      element("div", {}, render(message.reasoning_content))));
  }
  if (message.shown?.logprobs?.length) nodes.push(likelihoods(message.shown.logprobs));
  else if (message.role === "user" || message.role === "tool") nodes.push(element("p", { className: "plain" }, message.content));
  else if (message.content) nodes.push(element("div", { className: "text" }, render(message.content)));
  message.tool_calls?.forEach((each) => nodes.push(toolCall(message, each, busy)));
  if (message.shown?.error) nodes.push(element("p", { className: "error", role: "alert" }, `This failed: ${message.shown.error}`));
  if (busy) nodes.push(element("span", { className: "cursor", "aria-hidden": "true" }));
  if (message.shown?.stats) nodes.push(element("p", { className: "stats" }, message.shown.stats));
  if (!busy && !running) nodes.push(buttons(message, box, update));
  box.replaceChildren(...nodes);
}

function buttons(message, box, update) {
  const bar = element("div", { className: "actions small" });
  if (message.role === "assistant") {
    bar.append(element("button", { type: "button", onclick: () => goBackTo(message, false) }, "Regenerate"));
    if (message.content) {
      bar.append(element("button", { type: "button", onclick: () => navigator.clipboard?.writeText(message.content) }, "Copy text"));
    }
  }
  if (message.role === "user") bar.append(element("button", { type: "button", onclick: () => edit(message, box, update) }, "Edit"));
  return bar;
}

function edit(message, box, update) {
  if (running) return;
  const area = element("textarea", { value: message.content, rows: 3, "aria-label": "Your message, to be changed" });
  const done = (event) => {
    event.preventDefault();
    if (running || !area.value.trim()) return;
    message.content = area.value;
    goBackTo(message, true);
  };
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) done(event);
    if (event.key === "Escape") update();
  });
  box.replaceChildren(element("form", { onsubmit: done }, area,
    element("div", { className: "actions small" }, element("button", {}, "Send"), element("button", { type: "button", onclick: update }, "Leave it"))));
  area.focus();
}

/** Forget everything from a message on, the message itself unless it is kept; then answer again. */
function goBackTo(message, keeps) {
  if (running) return;
  messages.length = messages.indexOf(message) + (keeps ? 1 : 0);
  redraw();
  answer();
}

function toolCall(message, { id, function: { name, arguments: text } }, busy) {
  let pretty = text;
  try {
    pretty = JSON.stringify(JSON.parse(text), null, 2);
  } catch { /* it is not complete yet, or never will be */ }
  const nodes = [element("p", {}, "Calls ", element("code", {}, name)), element("pre", { tabIndex: 0, "aria-label": "Arguments" }, pretty)];
  const result = messages.slice(messages.indexOf(message) + 1).find((each) => each.tool_call_id === id);
  if (!busy && !result && messages.includes(message)) {
    const area = element("textarea", { rows: 2, "aria-label": `Result of ${name}`, placeholder: "What does it answer?" });
    nodes.push(element("form", { onsubmit: (event) => {
      event.preventDefault();
      if (running) return;
      messages.push({ role: "tool", tool_call_id: id, content: area.value });
      event.currentTarget.remove();
      show(messages.at(-1));
      store();
      if (!awaitsResults()) answer();
    } }, area, element("div", { className: "actions small" }, element("button", {}, "Give the result"))));
  }
  return element("section", { className: "call", "aria-label": `Tool call: ${name}` }, ...nodes);
}

/** Tokens tinted by how likely they were; arrows go from one to the next, the line below tells about the one pointed at. */
function likelihoods(tokens) {
  const told = element("p", { className: "told", role: "status" }, "Point at a token, or go along them with the arrow keys.");
  const spans = tokens.map((token, index) => {
    const probability = Math.exp(token.logprob);
    const span = element("span", { className: `token p${Math.min(4, Math.floor(probability * 5))}`, tabIndex: index ? -1 : 0 }, token.token);
    const tell = () => {
      const others = (token.top_logprobs ?? []).map((top) => `${JSON.stringify(top.token)} ${(100 * Math.exp(top.logprob)).toFixed(1)} %`);
      told.textContent = `${JSON.stringify(token.token)}: ${(100 * probability).toFixed(1)} %${others.length ? `. Likeliest: ${others.join(", ")}` : ""}`;
      span.title = told.textContent;
    };
    span.addEventListener("pointerenter", tell);
    span.addEventListener("focus", tell);
    return span;
  });
  const line = element("div", { className: "tokens", role: "group", "aria-label": "The answer, token by token" }, ...spans);
  line.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = spans[spans.indexOf(document.activeElement) + step];
    if (!step || !next) return;
    event.preventDefault();
    next.focus();
  });
  return element("div", {}, line, told);
}

function complain(text) {
  byId("messages").append(element("p", { className: "error", role: "alert" }, text));
  byId("messages").scrollTop = byId("messages").scrollHeight;
}

function redraw() {
  const log = byId("messages");
  const { scrollTop } = log;
  const atEnd = log.scrollHeight - scrollTop - log.clientHeight < 60;
  log.replaceChildren();
  messages.forEach(show);
  log.scrollTop = atEnd ? log.scrollHeight : scrollTop;
}

function setBusy(busy) {
  byId("send").hidden = busy;
  byId("stop").hidden = !busy;
  byId("messages").setAttribute("aria-busy", String(busy));
  if (busy) say("The model answers.");
  else redraw();
}

// --- remembered in this tab -----------------------------------------------------------------------------------------

const SETTINGS = ["system", ...NUMBERS, "stop_text", "form", "schema", "tools", "tool_choice"];

function store() {
  const settings = Object.fromEntries(SETTINGS.map((id) => [id, byId(id).value]));
  const pack = (kept) => JSON.stringify({ messages: kept, settings, logprobs: byId("logprobs").checked });
  let text = pack(messages);
  if (text.length > MAX_STORED) text = pack(messages.map((each) => (each.shown ? { ...each, shown: { ...each.shown, logprobs: [] } } : each)));
  if (text.length > MAX_STORED) text = pack([]);
  sessionStorage.setItem(STORE, text);
}

function restore() {
  byId("schema").value = JSON.stringify(EXAMPLE_SCHEMA, null, 2);
  const text = sessionStorage.getItem(STORE);
  if (!text) return;
  const stored = JSON.parse(text);
  messages = stored.messages;
  for (const [id, value] of Object.entries(stored.settings)) byId(id).value = value;
  byId("logprobs").checked = stored.logprobs;
}

function settingsChanged() {
  byId("schema-label").hidden = byId("form").value !== "json_schema";
  store();
}

/** Make the chat usable. */
export function startChat(servedModel) {
  model = servedModel;
  restore();
  settingsChanged();
  redraw();
  if (window.matchMedia("(max-width: 50rem)").matches) byId("settings").open = false;
  byId("settings").addEventListener("input", settingsChanged);
  byId("example-tool").addEventListener("click", () => {
    byId("tools").value = JSON.stringify(EXAMPLE_TOOL, null, 2);
    settingsChanged();
  });
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("prompt").value.trim();
    if (running || !text) return;
    if (awaitsResults()) {
      complain("A tool call waits for its result.");
      return;
    }
    byId("prompt").value = "";
    messages.push({ role: "user", content: text });
    store();
    redraw();
    byId("messages").scrollTop = byId("messages").scrollHeight;
    answer();
  });
  byId("prompt").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("composer").requestSubmit();
  });
  byId("stop").addEventListener("click", () => running?.abort());
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") running?.abort(); });
  byId("clear").addEventListener("click", () => {
    running?.abort();
    messages = [];
    redraw();
    store();
    byId("prompt").focus();
  });
}
