// How likely the tokens of an answer were.

import { element } from "./dom.js";

/** How a token is shown: what is only a part of a character, by its bytes. */
function asText({ token, bytes }) {
  return token.includes("\ufffd") && bytes ? bytes.map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("") : token;
}

/**
 * All that was generated, thoughts and marks as well, in tokens tinted by how likely they were; arrows go from one to the
 * next, the line below tells about the one pointed at. To be filled by addTokens.
 */
export function likelihoods() {
  const line = element("div", { className: "tokens", role: "group", "aria-label": "The answer, token by token" });
  line.addEventListener("keydown", (event) => {
    const { activeElement } = document;
    const next = { ArrowRight: activeElement.nextSibling, ArrowLeft: activeElement.previousSibling }[event.key];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  return element("div", { className: "likelihoods" }, line,
    element("p", { className: "told", role: "status" }, "Point at a token, or go along them with the arrow keys."));
}

/** Show those of an answer's tokens that are not shown yet. */
export function addTokens(box, tokens) {
  const [line, told] = box.children;
  for (const token of tokens.slice(line.children.length)) {
    const probability = Math.exp(token.logprob);
    const span = element("span", { className: `token p${Math.min(4, Math.floor(probability * 5))}`, tabIndex: line.children.length ? -1 : 0 }, asText(token));
    const tell = () => {
      const others = (token.top_logprobs ?? []).map((top) => `${JSON.stringify(asText(top))} ${(100 * Math.exp(top.logprob)).toFixed(1)} %`);
      told.textContent = `${JSON.stringify(asText(token))}: ${(100 * probability).toFixed(1)} %${others.length ? `. Likeliest: ${others.join(", ")}` : ""}`;
      span.title = told.textContent;
    };
    span.addEventListener("pointerenter", tell);
    span.addEventListener("focus", tell);
    line.append(span);
  }
}
