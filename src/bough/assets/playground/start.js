// What is seen while there are no messages: examples to begin with, and the way back to the conversation before.

import { element } from "./dom.js";

export const start = element("section", { className: "start" });

/** Examples as buttons; `ask` is called with the one that is chosen. */
export function propose(examples, ask) {
  const button = (example) => element("button", { type: "button", onclick: () => ask(example) },
    element("strong", {}, example.name), " ", element("span", {}, example.prompt));
  start.setAttribute("aria-label", "Examples");
  start.append(element("h2", {}, "Ask something, or begin with one of these"), element("div", { className: "examples" }, examples.map(button)));
}

/** A button that brings the last conversation back, once. */
export function offerBack(bringBack) {
  const back = element("button", { type: "button", className: "back", onclick: () => {
    back.remove();
    bringBack();
  } }, "Bring the last conversation back");
  start.querySelector(".back")?.remove();
  start.append(back);
}
