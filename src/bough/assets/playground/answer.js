// An answer as it streams in, and its figures.

import { call, events } from "./api.js";

/** A message of which nothing was generated yet; `form`: the type of its response format, if one is asked for. */
export function emptyAnswer(form) {
  return { role: "assistant", content: "", reasoning_content: "", tool_calls: [], shown: { logprobs: [], form } };
}

/** Let the server answer into a message, which tells at its end how it ended. `heard` is called whenever there is more of it. */
export async function receive(message, body, signal, heard) {
  const begun = performance.now();
  try {
    const response = await call("v1/chat/completions", { body, signal });
    for await (const event of events(response)) {
      const choice = event.choices?.[0];
      if (choice) take(message, choice);
      measure(message, event, performance.now() - begun);
      if (choice) heard();
    }
    if (!message.shown.finish) message.shown.error = "the answer broke off";
  } catch (error) {
    if (error.name === "AbortError") message.shown.finish = "stopped";
    else message.shown.error = error.message;
  }
}

/** Add a streamed choice to a message. */
function take(message, { delta = {}, logprobs, finish_reason }) {
  message.content += delta.content ?? "";
  message.reasoning_content += delta.reasoning_content ?? "";
  for (const part of delta.tool_calls ?? []) {
    const called = (message.tool_calls[part.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
    if (part.id) called.id = part.id;
    called.function.name += part.function?.name ?? "";
    called.function.arguments += part.function?.arguments ?? "";
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

/** Characters of all that is painted of a message. */
export function lengthOf({ content, reasoning_content, tool_calls }) {
  return tool_calls.reduce((sum, each) => sum + each.function.arguments.length, content.length + reasoning_content.length);
}

/** The figures of an answer in words; `contextLength`: tokens that its model has room for, if that is known. */
export function figuresOf({ usage, speed, first, finish }, contextLength) {
  const parts = [];
  if (usage) parts.push(`${usage.prompt} prompt tokens${usage.cached ? ` (${usage.cached} cached)` : ""}`, `${usage.generated} generated`);
  if (speed !== undefined) parts.push(`${speed.toFixed(0)} tokens/s`);
  if (first !== undefined) parts.push(`TTFT ${first.toFixed(0)} ms`);
  if (usage && contextLength) {
    parts.push(`${(usage.prompt + usage.generated).toLocaleString("en")} of ${contextLength.toLocaleString("en")} tokens of context`);
  }
  if (finish && finish !== "stop") parts.push(finish === "length" ? "cut off at max tokens" : finish.replace("_", " "));
  return parts.join(" · ");
}
