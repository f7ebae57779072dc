// The tool calls of an answer: what is called with what, and a form for the result.

import { arrange, element, write } from "./dom.js";
import { indented, wholeCalls } from "./messages.js";

/**
 * A tool call of a message, in a view of it.
 *
 * @param index of the call in the message.
 * @param isBusy whether more of it may come.
 * @param isOpen whether it waits for its result.
 * @param give is called with the text of the result.
 * @param leave is called if there is to be none.
 */
export function toolCall(view, message, index, { isBusy, isOpen, give, leave }) {
  const { id, function: { name, arguments: text } } = message.tool_calls[index];
  const box = view.part(`call ${index}`, () => element("section", { className: "call" },
    element("p", {}, "Calls ", element("code")), element("pre", { tabIndex: 0, "aria-label": "Arguments" })));
  const [told, shown] = box.children;
  box.setAttribute("aria-label", `Tool call: ${name}`);
  write(told.lastChild, name);
  write(shown, indented(text));
  const nodes = [told, shown];
  const why = isBusy || isOpen ? "" : whyUnanswered(message, id);
  if (why) nodes.push(view.part(`why ${index}`, () => element("p", { className: "legend" }, why)));
  if (isOpen) nodes.push(view.part(`result ${index}`, () => resultForm(name, give, leave)));
  arrange(box, nodes);
  return box;
}

function whyUnanswered(message, id) {
  if (message.shown.left?.includes(id)) return "Left unanswered: the model is not told of it.";
  return wholeCalls(message).some((call) => call.id === id) ? "" : "Not complete: the model is not told of it.";
}

function resultForm(name, give, leave) {
  const area = element("textarea", { rows: 2, "aria-label": `Result of ${name}`, placeholder: "What does it answer?" });
  const done = (event) => {
    event.preventDefault();
    give(area.value);
  };
  return element("form", { onsubmit: done }, area, element("div", { className: "actions small" },
    element("button", {}, "Send result"), element("button", { type: "button", onclick: leave }, "Leave unanswered")));
}
