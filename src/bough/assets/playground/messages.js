// What the messages of a conversation say, and what of it the server is told.

/** Who says something, by role. */
export const NAMES = { user: "You", assistant: "Model", tool: "Tool result" };

/** Whether there is anything in a message; an answer that failed at once has nothing. */
export function says({ role, content, reasoning_content, tool_calls }) {
  return role !== "assistant" || Boolean(content || reasoning_content || tool_calls.length);
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const PART_OF_JSON = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const DEEPEST = 16; // indentation: deeper ones would take more room than the text

/** JSON in lines, each number and name in it as it was written; what is none, or not yet, as it is. */
export function indented(text) {
  if (!isJson(text)) return text;
  let shown = "";
  let depth = 0;
  let before = "";
  for (const [part] of text.matchAll(PART_OF_JSON)) {
    const opened = before === "{" || before === "[";
    const closes = part === "}" || part === "]";
    if (closes) depth -= 1;
    if (closes ? !opened : opened || before === ",") shown += `\n${"  ".repeat(Math.min(depth, DEEPEST))}`;
    shown += part === ":" ? ": " : part;
    if (part === "{" || part === "[") depth += 1;
    before = part;
  }
  return shown;
}

/** The tool calls of an answer that can have a result: none if it was ended from without, which may be within a call. */
export function wholeCalls({ tool_calls, shown = {} }) {
  if (shown.error || shown.finish === "stopped" || shown.finish === "length") return [];
  return (tool_calls ?? []).filter((call) => isJson(call.function.arguments));
}

/** The calls of an answer that neither have their result nor were left without one. */
export function openCalls(messages, message) {
  const at = messages.indexOf(message);
  if (at < 0) return [];
  const done = new Set(messages.slice(at + 1).map((each) => each.tool_call_id).concat(message.shown?.left ?? []));
  return wholeCalls(message).filter(({ id }) => !done.has(id));
}

/** Whether a tool call of the last answer waits for its result. */
export function awaitsResults(messages) {
  const last = messages.findLast((message) => message.role === "assistant");
  return last !== undefined && openCalls(messages, last).length > 0;
}

function ofAnswer({ content, reasoning_content }, calls) {
  return {
    role: "assistant",
    content: content || null,
    tool_calls: calls.length ? calls : undefined,
    reasoning_content: reasoning_content || undefined,
  };
}

/**
 * What the server is told of a conversation: calls only with their results, and no two questions in a row, which many
 * templates refuse: what is asked after an answer that said nothing is part of the question before, or the same anew, which
 * is asked once and last.
 */
export function asSent(messages) {
  const results = new Set(messages.filter(({ role }) => role === "tool").map((message) => message.tool_call_id));
  const told = new Set();
  const sent = [];
  let asked = []; // the questions that the last one sent is made of
  for (const message of messages) {
    const { role, content, tool_call_id } = message;
    if (role === "assistant") {
      const calls = wholeCalls(message).filter(({ id }) => results.has(id));
      for (const { id } of calls) told.add(id);
      if (content || message.reasoning_content || calls.length) sent.push(ofAnswer(message, calls));
    } else if (role === "tool") {
      if (told.has(tool_call_id)) sent.push({ role, content, tool_call_id });
    } else {
      if (sent.at(-1)?.role === "user") sent.pop();
      else asked = [];
      asked = [...asked.filter((each) => each !== content), content];
      sent.push({ role, content: asked.join("\n\n") });
    }
  }
  return sent;
}
