// The conversation: its messages, the answer that runs, what of before can come back, and what outlives a reload.

import { NAMES, says } from "./messages.js";
import { ofTab, remembered } from "./storage.js";

const CONVERSATION = "bough.conversation";
const MAX_STORED = 1_000_000; // characters

export class Conversation {
  /** As the server takes them, each with what the page knows of it under `shown`. */
  messages = [];
  /** What aborts the answer that runs; null while none does. */
  running = null;
  /** All messages of before a turn that others followed was made anew: they can come back until the next question. */
  former = null;
  /** When it was stored last, in ms of performance.now(). */
  storedAt = 0;
  /** All messages of before, while an answer that takes the place of some of them has said nothing yet. */
  #replaced = null;

  /** Whether this is the answer that runs. */
  isRunning(message) {
    return this.running !== null && message === this.messages.at(-1) && message.role === "assistant";
  }

  /** The messages that a reload or another conversation would keep. */
  lasting() {
    return this.#replaced && !says(this.messages.at(-1)) ? this.#replaced : this.messages;
  }

  /** Go on with these messages alone. */
  become(messages) {
    this.messages = messages;
    this.#replaced = this.former = null;
  }

  /** Take away a message and all that follow it, for an answer in their place. Returns what `settle` needs then. */
  cutFrom(message) {
    const { former } = this;
    const before = this.messages.slice();
    const gone = this.messages.splice(this.messages.indexOf(message));
    this.#replaced = before;
    if (gone.slice(1).some(({ role }) => role !== "assistant")) this.former = before;
    return { before, former, gone };
  }

  /** The answer after a cut has ended: what was cut comes back if it said nothing. Returns whether it did. */
  settle({ before, former }, made) {
    if (this.#replaced === before) this.#replaced = null;
    if (says(made) || this.messages.at(-1) !== made) return false;
    this.messages = before;
    this.former = former;
    return true;
  }

  /** Keep it for a reload. Returns why that cannot be, or "". */
  store() {
    const kept = this.lasting();
    let text = JSON.stringify(kept);
    if (text.length > MAX_STORED) text = JSON.stringify(kept.map((each) => (each.shown ? { ...each, shown: { ...each.shown, logprobs: [] } } : each)));
    const isTooLong = text.length > MAX_STORED;
    const isKept = ofTab.set(CONVERSATION, isTooLong ? "[]" : text);
    this.storedAt = performance.now();
    if (!kept.length || (isKept && !isTooLong)) return "";
    const why = isTooLong ? "This conversation is too long to be kept" : "The browser keeps nothing of this page";
    return `${why}: a reload would lose it.`;
  }

  /** Go on with what was stored. Throws if that is not as this page stores it: another version may have left it. */
  restore() {
    this.become((remembered(CONVERSATION) ?? []).map(asKnown));
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
