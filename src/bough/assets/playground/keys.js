// What keys mean where somebody types.

/** Whether a key is for what an input method proposes, to take or to dismiss; Safari tells by 229. */
export const composes = (event) => event.isComposing || event.keyCode === 229;

/** A screen for fingers, whose keyboard has no Shift+Enter: there a button sends, and Enter makes a new line. */
export const touch = window.matchMedia("(pointer: coarse)");

/** Whether a key sends what was typed. */
export const sends = (event) => event.key === "Enter" && !event.shiftKey && !composes(event) && !touch.matches;
