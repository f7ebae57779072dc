// Calls to the server this page came from: the key, errors, server-sent events.

import { ofTab } from "./storage.js";

const KEY = "bough.key";
/** Where the key of an administrator is kept, which some servers want for more than the chat. */
export const ADMIN_KEY = "bough.admin-key";

/** A refusal of the server, or that there was none to be heard. */
export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let asking = null;

/**
 * Ask the person for a key, saying why the last one would not do; whoever asks meanwhile gets the same answer.
 * Resolves to what was typed, or to null.
 */
function askForKey(refusal) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("key-dialog");
    const input = document.getElementById("key");
    input.value = "";
    document.getElementById("key-refusal").textContent = refusal;
    dialog.returnValue = "cancel";
    dialog.addEventListener("close", () => {
      asking = null;
      resolve(dialog.returnValue === "ok" && input.value ? input.value : null);
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

function messageOf(body, status) {
  try {
    const { error } = JSON.parse(body);
    if (error?.message) return error.message;
  } catch { /* no JSON: the text itself is all there is */ }
  return body.slice(0, 300) || `the server answered with status ${status}`;
}

/**
 * fetch with the key; asks for one where the server does, and keeps it once the server has taken it.
 *
 * @param slot where the key is kept; while there is none, that of the chat is tried.
 * @returns the response, of status 200 to 299.
 * @throws ServerError, or the AbortError of a signal.
 */
export async function call(path, { body, signal, asks = true, slot = KEY } = {}) {
  const kept = () => ofTab.get(slot) ?? ofTab.get(KEY);
  let typed = null;
  for (;;) {
    const headers = {};
    const key = typed ?? kept();
    if (key) headers.authorization = `Bearer ${key}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    let response;
    try {
      response = await fetch(path, {
        method: body === undefined ? "GET" : "POST",
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ServerError("the server cannot be reached", 0);
    }
    if (typed && response.status !== 401 && response.status !== 403) ofTab.set(slot, typed);
    if (response.ok) return response;
    const text = await response.text();
    if (response.status !== 401 || !asks) throw new ServerError(messageOf(text, response.status), response.status);
    // Another key may have been kept meanwhile.
    if (!typed && key !== kept()) continue;
    const message = messageOf(text, response.status);
    typed = await askForKey(key ? message : "");
    if (!typed) throw new ServerError(message, response.status);
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
