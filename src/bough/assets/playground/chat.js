// The chat: what the person does to the conversation, and how the model answers.

import { emptyAnswer, figuresOf, lengthOf, receive } from "./answer.js";
import { Conversation } from "./conversation.js";
import { arrange, element, write } from "./dom.js";
import { examplesFor } from "./examples.js";
import { composes, sends, touch } from "./keys.js";
import { complain, followEnd, keepEnd, prepareLog, rearrange, say } from "./log.js";
import { asSent, awaitsResults, says } from "./messages.js";
import { openSettingsAt, prepareSettings, readSettings, redoExample, setForExample, showDefaults, systemPrompt, undoExample } from "./settings.js";
import { offerBack, propose, start } from "./start.js";
import { MessageViews } from "./views.js";

const STORE_MS = 1000; // between two states of a running answer that are kept
const byId = (id) => document.getElementById(id);

export class Chat {
  #model;
  #conversation = new Conversation();
  #views;
  #backToFormer = element("button", { type: "button", onclick: () => this.#bringBack(this.#conversation.former) }, "Bring back what this replaced");
  /** What "New conversation" put away last: messages, and the settings of an example. */
  #putAway = { messages: [], undone: [] };

  /** Make the chat usable: with a model as /v1/models and as /model_info tell of it. */
  constructor(served, info) {
    this.#model = served;
    this.#views = new MessageViews(this.#conversation, served.max_model_len, {
      anew: (message, text) => this.#anew(message, text),
      giveResult: (id, content) => this.#goOn(() => this.#conversation.messages.push({ role: "tool", tool_call_id: id, content })),
      leaveCall: ({ shown }, id) => this.#goOn(() => { shown.left = [...(shown.left ?? []), id]; }),
    });
    const examples = examplesFor(info);
    if (examples.length) propose(examples, (example) => this.#askExample(example));
    if (touch.matches) byId("prompt").placeholder = "Say something …";
    prepareSettings();
    showDefaults(info.default_sampling_params?.openai);
    this.#restore();
    prepareLog();
    this.#listen();
  }

  /** It is in view again: go on following its end. */
  showAgain() {
    if (this.#conversation.messages.length) keepEnd();
  }

  #listen() {
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#ask();
    });
    byId("prompt").addEventListener("keydown", (event) => {
      if (!sends(event)) return;
      event.preventDefault();
      byId("composer").requestSubmit();
    });
    const stop = () => this.#conversation.running?.abort();
    byId("stop").addEventListener("click", stop);
    document.addEventListener("keydown", (event) => {
      const isForOther = byId("chat").hidden || document.querySelector("dialog[open]");
      if (event.key === "Escape" && !composes(event) && !isForOther) stop();
    });
    window.addEventListener("pagehide", () => { if (this.#conversation.running) this.#store(); });
    byId("clear").addEventListener("click", () => this.#begin());
  }

  /** Ask what was typed. */
  #ask() {
    const text = byId("prompt").value.trim();
    if (this.#conversation.running || !text) return;
    if (awaitsResults(this.#conversation.messages)) {
      complain("A tool call waits for its result. Send it, or leave the call unanswered.");
      return;
    }
    const asked = this.#settings();
    if (!asked) return;
    byId("prompt").value = "";
    this.#conversation.former = null;
    this.#conversation.messages.push({ role: "user", content: text });
    this.#store();
    this.#redraw();
    followEnd();
    this.#answer(asked);
  }

  /** Ask an example at once. */
  #askExample({ prompt, settings }) {
    setForExample(settings);
    if (document.activeElement.matches(":focus-visible")) byId("prompt").focus();
    byId("prompt").value = prompt;
    byId("composer").requestSubmit();
  }

  /** What the settings ask for, or null, after which they are open at the one that is wrong, and it is told why. */
  #settings() {
    try {
      return readSettings();
    } catch (error) {
      complain(error.message);
      openSettingsAt(error.input);
      return null;
    }
  }

  /** Let the model go on from the messages as they are; resolves to its message. */
  async #answer(asked) {
    const { messages } = this.#conversation;
    const system = systemPrompt();
    const body = {
      model: this.#model.id,
      messages: [...(system ? [{ role: "system", content: system }] : []), ...asSent(messages)],
      stream: true,
      stream_options: { include_usage: true, continuous_usage_stats: true },
      ...asked,
    };
    const message = emptyAnswer(asked.response_format?.type);
    messages.push(message);
    const running = (this.#conversation.running = new AbortController());
    this.#setBusy(true);
    await receive(message, body, running.signal, this.#painter(message));
    this.#conversation.running = null;
    this.#setBusy(false);
    this.#store();
    // An error is told by its own words, which are an alert.
    say(message.shown.error ? "" : `Answer complete. ${figuresOf(message.shown, this.#model.max_model_len)}`);
    return message;
  }

  /** What keeps and paints a running answer, called whenever there is more of it. */
  #painter(message) {
    let isPending = false;
    const paint = () => {
      isPending = false;
      if (this.#conversation.running && this.#conversation.messages.includes(message)) this.#views.update(message);
    };
    return () => {
      if (performance.now() - this.#conversation.storedAt >= STORE_MS) this.#store(); // a page that nobody sees paints nothing
      if (isPending) return;
      isPending = true;
      // Painting costs as much as the text is long: long answers are painted less often.
      setTimeout(() => requestAnimationFrame(paint), lengthOf(message) / 200);
    };
  }

  /**
   * Have an answer made anew, or a question answered that says something else now. What was there from the message on comes
   * back if nothing is answered at all, and can be brought back if somebody wrote more of it than what is changed.
   */
  async #anew(message, text) {
    if (this.#conversation.running) return;
    const asked = this.#settings();
    if (!asked) return;
    const cut = this.#conversation.cutFrom(message);
    for (const each of cut.gone) this.#views.makeOld(each);
    if (text !== undefined) this.#conversation.messages.push({ role: "user", content: text });
    const made = await this.#answer(asked);
    if (says(made)) this.#views.endEdit(message); // it comes back as it was
    if (!this.#conversation.settle(cut, made)) return;
    this.#redraw();
    this.#store();
    if (made.shown.error) complain(`This failed: ${made.shown.error}`);
  }

  /** Give a call its result, or leave it without one, and go on: to the next call, the answer or, with no result, a new question. */
  #goOn(finishCall) {
    if (this.#conversation.running) return;
    const asked = this.#settings();
    if (!asked) return;
    finishCall();
    this.#store();
    this.#redraw();
    const { messages } = this.#conversation;
    if (awaitsResults(messages)) byId("messages").querySelector(".call textarea").focus();
    else if (messages.at(-1).role === "tool") this.#answer(asked);
    else byId("prompt").focus();
  }

  /** Put the conversation away and begin another one. */
  #begin() {
    this.#conversation.running?.abort();
    const undone = undoExample();
    const { messages } = this.#conversation;
    for (const each of messages) this.#views.makeOld(each);
    if (messages.length) this.#putAway = { messages: this.#conversation.lasting(), undone };
    this.#conversation.become([]);
    this.#store();
    this.#redraw();
    byId("prompt").focus();
    if (this.#putAway.messages.length) offerBack(() => this.#bringLastBack());
  }

  #bringLastBack() {
    const { messages, undone } = this.#putAway;
    this.#putAway = { messages: [], undone: [] };
    undoExample();
    redoExample(undone);
    this.#bringBack(messages);
  }

  /** Go on with messages that were put away. */
  #bringBack(messages) {
    this.#conversation.become(messages);
    this.#store();
    this.#redraw();
    followEnd();
    byId("prompt").focus();
  }

  /** Keep the conversation for a reload, or say that this cannot be. */
  #store() {
    write(byId("unkept"), this.#conversation.store());
  }

  /** Show what is remembered, or nothing if not all of it can be shown. */
  #restore() {
    try {
      this.#conversation.restore();
      for (const each of this.#conversation.messages) this.#views.makeOld(each);
      this.#redraw();
    } catch {
      this.#conversation.become([]);
      this.#redraw();
    }
  }

  /** Show all messages as they are now, and no complaint of before. */
  #redraw() {
    const { messages, former, running } = this.#conversation;
    const behind = former && !running ? [this.#backToFormer] : [];
    rearrange((log) => {
      arrange(log, messages.length ? [...messages.map((message) => this.#views.boxOf(message)), ...behind] : [start]);
      for (const message of messages) this.#views.update(message);
    }, messages.length > 0);
  }

  #setBusy(busy) {
    const held = document.activeElement;
    const byKeys = held.matches(":focus-visible");
    byId("send").hidden = busy;
    byId("stop").hidden = !busy;
    byId("messages").setAttribute("aria-busy", String(busy));
    if (busy) say("The model answers.");
    this.#redraw();
    // Who works with keys goes on where the work is; for others a focus would only open a phone's keyboard.
    if (byKeys && (!held.isConnected || held.closest("[hidden]"))) byId(busy ? "stop" : "prompt").focus();
  }
}
