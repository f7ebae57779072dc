// How messages are shown: each in a box whose parts outlive an update, so that what is read or used in them stays.

import { figuresOf } from "./answer.js";
import { arrange, copyButton, element, grow, write } from "./dom.js";
import { composes, sends } from "./keys.js";
import { addTokens, likelihoods } from "./likelihoods.js";
import { keepEnd } from "./log.js";
import { show } from "./markdown.js";
import { NAMES, openCalls } from "./messages.js";
import { toolCall } from "./toolcalls.js";

/** What is on the page of a message. */
class View {
  /** A form, while the message is edited. */
  editor = null;
  /** Whether an error of it is no news. */
  isOld = false;
  #parts = new Map();
  #texts = new Map();

  constructor(role) {
    this.box = element("article", { className: `message ${role}`, "aria-label": NAMES[role] });
  }

  /** A part of it, made when it is first needed. */
  part(name, make) {
    if (!this.#parts.has(name)) this.#parts.set(name, make());
    return this.#parts.get(name);
  }

  /** Markdown in a node, which is rendered anew only if it is another text than before. */
  written(name, node, text) {
    if (this.#texts.get(name) !== text) show(node, text);
    this.#texts.set(name, text);
    return node;
  }

  /** An error of it stays, but to show it again is no alert. */
  makeOld() {
    this.isOld = true;
    this.#parts.get("error")?.removeAttribute("role");
  }
}

export class MessageViews {
  #views = new WeakMap();
  #conversation;
  #contextLength;
  #actions;

  /**
   * @param contextLength tokens that the model has room for, if that is known.
   * @param actions what the person asks for: anew(message, text), for another answer in the place of this one or to this
   *   question, changed; giveResult(id, text) and leaveCall(message, id) of a tool call.
   */
  constructor(conversation, contextLength, actions) {
    this.#conversation = conversation;
    this.#contextLength = contextLength;
    this.#actions = actions;
  }

  #of(message) {
    if (!this.#views.has(message)) this.#views.set(message, new View(message.role));
    return this.#views.get(message);
  }

  /** The element that shows a message. */
  boxOf(message) {
    return this.#of(message).box;
  }

  /** Errors of a message are no news from now on. */
  makeOld(message) {
    this.#of(message).makeOld();
  }

  /** A message is not edited any longer, as will be seen when it is shown again. */
  endEdit(message) {
    this.#of(message).editor = null;
  }

  /** Show what a message has become. */
  update(message) {
    const view = this.#of(message);
    const who = view.part("who", () => element("h2", { className: "who" }, NAMES[message.role]));
    arrange(view.box, [who, ...(view.editor ? [view.editor] : this.#shown(message, view))]);
    keepEnd();
  }

  #shown(message, view) {
    const isBusy = this.#conversation.isRunning(message);
    const nodes = [];
    if (message.reasoning_content) nodes.push(thoughts(view, message, isBusy));
    if (message.role !== "assistant") nodes.push(view.part("plain", () => element("p", { className: "plain" }, message.content)));
    else if (message.content) nodes.push(message.shown?.form ? verbatim(view, message.content) : text(view, message.content));
    message.tool_calls?.forEach((call, index) => nodes.push(this.#call(view, message, index, isBusy)));
    if (message.shown?.logprobs?.length) nodes.push(tokens(view, message.shown.logprobs));
    if (message.shown?.error) nodes.push(view.part("error", () => element("p", { className: "error", role: view.isOld ? undefined : "alert" }, `This failed: ${message.shown.error}`)));
    if (isBusy) nodes.push(view.part("cursor", () => element("span", { className: "cursor", "aria-hidden": "true" })));
    const told = message.shown ? figuresOf(message.shown, this.#contextLength) : "";
    if (told) nodes.push(figures(view, told, isBusy));
    if (!this.#conversation.running) nodes.push(view.part("buttons", () => this.#buttons(message)));
    return nodes;
  }

  #call(view, message, index, isBusy) {
    const { id } = message.tool_calls[index];
    return toolCall(view, message, index, {
      isBusy,
      isOpen: !isBusy && openCalls(this.#conversation.messages, message).some((call) => call.id === id),
      give: (result) => this.#actions.giveResult(id, result),
      leave: () => this.#actions.leaveCall(message, id),
    });
  }

  #buttons(message) {
    const bar = element("div", { className: "actions small" });
    if (message.role === "assistant") {
      bar.append(element("button", { type: "button", onclick: () => this.#actions.anew(message) }, "Regenerate"));
      if (message.content) bar.append(copyButton("Copy text", () => message.content));
    }
    if (message.role === "user") bar.append(element("button", { type: "button", onclick: () => this.#edit(message) }, "Edit"));
    return bar;
  }

  #edit(message) {
    if (this.#conversation.running) return;
    const view = this.#of(message);
    const area = element("textarea", { value: message.content, rows: 3, "aria-label": "Your message, to be changed" });
    const leave = () => {
      view.editor = null;
      this.update(message);
      // No message has buttons while an answer runs.
      (view.box.querySelector(".actions button") ?? document.getElementById("stop")).focus();
    };
    const done = (event) => {
      event.preventDefault();
      if (area.value.trim()) this.#actions.anew(message, area.value);
    };
    area.addEventListener("keydown", (event) => {
      if (sends(event)) done(event);
      if (event.key !== "Escape" || composes(event)) return;
      event.stopPropagation(); // which would end a running answer, too
      leave();
    });
    view.editor = element("form", { onsubmit: done }, area,
      element("div", { className: "actions small" }, element("button", {}, "Send"), element("button", { type: "button", onclick: leave }, "Cancel")));
    this.update(message);
    area.focus();
  }
}

function thoughts(view, { content, reasoning_content }, isBusy) {
  const box = view.part("thoughts", () => element("details", { className: "thoughts" }, element("summary"), element("div")));
  box.firstChild.textContent = isBusy && !content ? "Thinking …" : "Thoughts";
  view.written("thought", box.lastChild, reasoning_content);
  return box;
}

function text(view, content) {
  return view.written("content", view.part("text", () => element("div", { className: "text" })), content);
}

/** An answer as it came, which asked for JSON: as Markdown it would lose what JSON may hold. What was there stays selected. */
function verbatim(view, content) {
  const node = view.part("verbatim", () => element("pre", { className: "text", tabIndex: 0, "aria-label": "JSON" }, ""));
  grow(node, content);
  return node;
}

function tokens(view, logprobs) {
  const box = view.part("tokens", likelihoods);
  addTokens(box, logprobs);
  return box;
}

function figures(view, told, isBusy) {
  const line = view.part("figures", () => element("p"));
  line.className = isBusy ? "live" : "stats";
  write(line, told);
  return line;
}
