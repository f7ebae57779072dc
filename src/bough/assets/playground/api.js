// Calls to the server this page came from: the key, errors, server-sent events.

import { ofTab } from "./storage.js";

const KEY = "bough.key";
/** Where the key of an administrator is kept, which some servers want for more than the chat. */
export const ADMIN_KEY = "bough.admin-key";

/** A refusal of the server, or that there was none to be heard. */
export class ServerError extends Error {
  constructor(message, status, code = null) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Whether a refusal of this status, 0 where nobody answered, is one that another try may not meet. */
export const isPassing = (status) => status === 0 || status === 408 || status === 429 || status >= 500;

/** A controller that aborts when this signal does, as well. Not every browser that shows the page has AbortSignal.any. */
export function following(signal) {
  const controller = new AbortController();
  if (signal?.aborted) controller.abort(signal.reason);
  signal?.addEventListener("abort", () => controller.abort(signal.reason), { signal: controller.signal });
  return controller;
}

const byId = (id) => document.getElementById(id);
let asking = null;

/**
 * Ask the person for a key, saying why the last one would not do; whoever asks meanwhile gets the same answer.
 * Resolves to what was typed, or to null.
 *
 * @param isKept whether there is one that does, which can be forgotten instead.
 */
function askForKey(refusal, isKept = false) {
  asking ??= new Promise((resolve) => {
    const dialog = byId("key-dialog");
    const input = byId("key");
    input.value = "";
    byId("key-title").textContent = isKept ? "Another API key" : "An API key is needed";
    byId("key-refusal").textContent = refusal;
    byId("forget-key").hidden = !isKept;
    dialog.returnValue = "cancel";
    dialog.addEventListener("close", () => {
      asking = null;
      resolve(dialog.returnValue === "ok" && input.value ? input.value : null);
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

/** Show the button that changes the key if there is one to change. */
export function showWhetherKeyIsKept() {
  byId("change-key").hidden = (ofTab.get(KEY) ?? ofTab.get(ADMIN_KEY)) === null;
}

/** Whether the chat needs no key. */
async function isChatOpen() {
  try {
    return (await fetch("v1/models")).ok;
  } catch {
    return false;
  }
}

/** Let the server try a key, which is kept if it is right: where any would do for the chat, as that of an administrator. */
async function keepIfRight(typed) {
  if (await isChatOpen()) {
    const { body } = await call("playground/events", { typed, slot: ADMIN_KEY });
    body.cancel();
    return;
  }
  await call("v1/models", { typed });
  ofTab.remove(ADMIN_KEY);
}

/**
 * Let the person change the keys for one that does for both, or forget them. Resolves to whether they did.
 *
 * @throws ServerError if the server takes none of what is typed, or does not say whether it does.
 */
export async function changeKey() {
  const typed = await askForKey("", true);
  const isForgotten = byId("key-dialog").returnValue === "forget";
  if (typed) await keepIfRight(typed);
  if (isForgotten) for (const slot of [KEY, ADMIN_KEY]) ofTab.remove(slot);
  showWhetherKeyIsKept();
  return typed !== null || isForgotten;
}

function errorOf(body, status) {
  try {
    const { error } = JSON.parse(body);
    if (error?.message) return new ServerError(error.message, status, error.code);
  } catch { /* no JSON: the text itself is all there is */ }
  return new ServerError(body.slice(0, 300) || `the server answered with status ${status}`, status);
}

/**
 * fetch with the key; asks for one where the server does, and keeps it unless the server refuses it.
 *
 * @param slot where the key is kept; while there is none, that of the chat is tried.
 * @param typed a key to be tried instead of one that may still do, which it replaces only once the server has taken it.
 * @param patience ms that the server may take before it begins to answer.
 * @returns the response, of status 200 to 299.
 * @throws ServerError, or the AbortError of a signal.
 */
export async function call(path, { body, signal, slot = KEY, typed = null, patience } = {}) {
  const isTrial = typed !== null;
  const kept = () => ofTab.get(slot) ?? ofTab.get(KEY);
  for (;;) {
    const headers = {};
    const key = typed ?? kept();
    if (key) headers.authorization = `Bearer ${key}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const limit = following(signal);
    const request = {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: limit.signal,
    };
    const timer = patience && setTimeout(() => limit.abort(), patience);
    let response;
    let text = "";
    try {
      response = await fetch(path, request);
      if (!response.ok) text = await response.text();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ServerError(limit.signal.aborted ? "the server does not answer" : "the server cannot be reached", 0);
    } finally {
      clearTimeout(timer);
    }
    const isRefused = response.status === 401 || response.status === 403;
    if (typed && !isRefused && !(isTrial && isPassing(response.status))) {
      ofTab.set(slot, typed);
      showWhetherKeyIsKept();
    }
    if (response.ok) return response;
    const refusal = errorOf(text, response.status);
    if (response.status !== 401) throw refusal;
    // Another key may have been kept meanwhile.
    if (!typed && key !== kept()) continue;
    typed = await askForKey(key ? refusal.message : "");
    if (!typed) throw refusal;
  }
}

/**
 * The data of server-sent events, parsed, until the stream ends or says [DONE].
 *
 * @throws ServerError if the stream carries an error, or breaks off.
 */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      let read;
      try {
        read = await reader.read();
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new ServerError("the connection was lost", 0);
      }
      if (read.done) return;
      const parts = (rest + read.value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const data = part.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
        if (data === "[DONE]") return;
        if (!data) continue;
        const event = JSON.parse(data);
        if (event.error) throw new ServerError(event.error.message ?? String(event.error), event.error.code ?? 500);
        yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => { /* it was closed already */ });
  }
}
