// Markdown within a block as DOM nodes. Text only ever becomes text nodes, so that nothing a model writes is markup or
// script. Every text takes time in proportion to its length: it is gone through once, and what is looked for further on is
// not looked for again where it was not found.

import { element } from "./dom.js";

const PLAIN = /[^\\`*_~![\]<&$h\n]+/y;
const AUTOLINK = /<(https?:\/\/[^\s<>]+)>/y;
const SCHEME = /https?:\/\//y;
// What no address that stands in a text goes beyond: blanks, quotation marks, a bracket, punctuation beside Chinese characters.
const IN_ADDRESS = /[^\s<>"'()\]\u2018-\u201f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+/y;
const BEHIND_ADDRESS = ".,;:!?*_~`("; // and belongs to the sentence
// Of the parts in brackets of an address there are a few at most: a scan then passes few brackets that begin others.
const TARGET = /\(([^()\s]+(?:\([^()\s]*\)[^()\s]*){0,4})(?:\s+"[^"\n]*")?\)/y;
const BREAK = /<br\s{0,9}\/?>/iy;
const ENTITY = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,8}));/y;
const ENTITIES = {
  amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", deg: "°", plusmn: "±",
  times: "×", divide: "÷", middot: "·", bull: "•", hellip: "…", ndash: "–", mdash: "—", lsquo: "‘", rsquo: "’", ldquo: "“",
  rdquo: "”", laquo: "«", raquo: "»", larr: "←", uarr: "↑", rarr: "→", darr: "↓", euro: "€", pound: "£", yen: "¥", sect: "§",
  para: "¶", frac12: "½", ne: "≠", le: "≤", ge: "≥", infin: "∞",
};
const EMPHASIS = { "*1": "em", "*2": "strong", _1: "em", _2: "strong", "~2": "del" };
const FORMULAS = { "\\(": "\\)", "\\[": "\\]", $$: "$$" };
const ESCAPED = /[\\`*_{}[\]()#+.!|~<>$&-]/;
const MAX_OPEN = 64; // emphases in each other: what a page can lay out is bounded, too
const MAX_RUN = 6; // stars side by side that can be marks

const isBlank = (character) => !character || /\s/.test(character);
const isWord = (character) => Boolean(character) && /[\p{L}\p{N}_]/u.test(character);

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Whether a target is this server itself, on which a click would act as whoever reads this may. */
function isHere(target) {
  return URL.canParse(target, document.baseURI) && new URL(target, document.baseURI).host === location.host;
}

/** The address that begins at a place of a text, with the brackets that it opens itself; null if there is none. */
function addressAt(text, at) {
  const scheme = matchAt(SCHEME, text, at);
  if (!scheme) return null;
  const start = at + scheme[0].length;
  let end = start;
  for (let open = 0; ;) {
    const part = matchAt(IN_ADDRESS, text, end);
    if (part) end += part[0].length;
    else if (text[end] === "(") { open += 1; end += 1; }
    else if (text[end] === ")" && open) { open -= 1; end += 1; }
    else break;
  }
  while (end > start && BEHIND_ADDRESS.includes(text[end - 1])) end -= 1;
  return end > start ? text.slice(at, end) : null;
}

/** A link if it leads to the web or to mail; pictures are links as well, because nothing is loaded from elsewhere. */
function link(target, label) {
  if (!/^(https?:|mailto:)/i.test(target) || isHere(target)) return label.length ? label : [target];
  const made = element("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, label.length ? label : target);
  for (const within of made.querySelectorAll("a")) within.replaceWith(...within.childNodes);
  return [made];
}

/** The character of an entity as HTML writes it, or the text itself if there is none. */
function character([text, decimal, hexadecimal, name]) {
  if (name) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : text;
  const code = decimal ? parseInt(decimal, 10) : parseInt(hexadecimal, 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : text;
}

/** Where texts come next in a text. Asked for ever later places, it goes through the text once for each of them. */
function finder(text) {
  const places = new Map();
  return (wanted, from) => {
    let place = places.get(wanted) ?? 0;
    if (place >= 0 && (place < from || !places.has(wanted))) place = text.indexOf(wanted, from);
    places.set(wanted, place);
    return place;
  };
}

/** Where runs of so many backticks begin, by their length; looks for them when first asked. */
function backticks(text) {
  let runs = null;
  return (length, from) => {
    if (!runs) {
      runs = new Map();
      for (const { 0: { length: found }, index } of text.matchAll(/`+/g)) {
        if (!runs.has(found)) runs.set(found, { places: [], next: 0 });
        runs.get(found).places.push(index);
      }
    }
    const run = runs.get(length);
    while (run && run.next < run.places.length && run.places[run.next] < from) run.next += 1;
    return run?.places[run.next] ?? -1;
  };
}

/** The same nodes, with texts side by side as one: marks that turned out to be none would each be a node of the page. */
function joined(nodes) {
  const made = [];
  for (const node of nodes) {
    if (typeof node === "string" && typeof made.at(-1) === "string") made[made.length - 1] += node;
    else if (node !== "") made.push(node);
  }
  return made;
}

/** Nodes and texts in a row, the last of which emphases and links take into themselves when they end. */
class Row {
  nodes = [];
  #plain = "";
  #openers = []; // of emphases: {mark, left, length, isBoth, at}, with the place of their mark among the nodes
  #counts = new Map(); // of these openers, by what ends them
  #brackets = []; // that may begin a link: {at, isPicture}, with their place among the nodes

  text(text) {
    this.#plain += text;
  }

  node(node) {
    this.#flush();
    this.nodes.push(node);
  }

  #flush() {
    if (this.#plain) this.nodes.push(this.#plain);
    this.#plain = "";
  }

  finish() {
    this.#flush();
    return joined(this.nodes);
  }

  /** A line ends here: what is blank around that is not shown. */
  breakLine() {
    this.#plain = this.#plain.trimEnd();
    this.node(element("br"));
  }

  // Emphasis is that of CommonMark 0.31 ("Phase 2: inline structure"), done as marks come: one ends the last that it fits.
  // Punctuation beside a mark does not count: between words without blanks, as in Japanese, it would end no emphasis.
  mark(mark, length, opens, closes) {
    const isBoth = opens && closes;
    let left = length;
    while (closes && left) {
      const opener = this.#openerFor(mark, length, isBoth);
      if (!opener) break;
      const used = Math.min(left, opener.left, 2);
      const tag = EMPHASIS[`${mark}${used}`];
      if (!tag) break;
      this.#flush();
      this.#wrap(opener.at + 1, (inner) => [element(tag, {}, joined(inner))]);
      opener.left -= used;
      left -= used;
      this.nodes[opener.at] = mark.repeat(opener.left);
      if (!opener.left) this.#drop(this.#openers.length - 1);
    }
    if (!left) return;
    if (!opens) {
      this.text(mark.repeat(left));
      return;
    }
    this.node(mark.repeat(left));
    this.#openers.push({ mark, left, length, isBoth, at: this.nodes.length - 1 });
    this.#count(this.#openers.at(-1), 1);
    if (this.#openers.length > MAX_OPEN) this.#drop(0);
  }

  #count({ mark, length, isBoth }, by) {
    const key = `${mark}${length % 3}${isBoth}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + by);
  }

  #drop(index) {
    this.#count(...this.#openers.splice(index, 1), -1);
  }

  /** The opener that a mark ends, now the last; those behind it end nowhere. */
  #openerFor(mark, length, isBoth) {
    const fits = (openerLength, isOpenerBoth) => !((isBoth || isOpenerBoth) && (openerLength + length) % 3 === 0 && length % 3 !== 0);
    const some = [0, 1, 2].some((rest) => [true, false].some((both) => this.#counts.get(`${mark}${rest}${both}`) && fits(rest, both)));
    if (!some) return null;
    for (;;) {
      const last = this.#openers.at(-1);
      if (last.mark === mark && fits(last.length, last.isBoth)) return last;
      this.#drop(this.#openers.length - 1);
    }
  }

  /** Put what stands from a place on into something else; brackets in it can no longer begin a link. */
  #wrap(at, make) {
    while (this.#brackets.length && this.#brackets.at(-1).at >= at) this.#brackets.pop();
    while (this.#openers.length && this.#openers.at(-1).at >= at) this.#drop(this.#openers.length - 1);
    const inner = this.nodes.splice(at);
    for (const node of make(inner)) this.nodes.push(node);
  }

  openBracket(isPicture) {
    this.node(isPicture ? "![" : "[");
    this.#brackets.push({ at: this.nodes.length - 1, isPicture });
  }

  get hasBracket() {
    return this.#brackets.length > 0;
  }

  /** A bracket ends that leads nowhere. */
  closeBracket() {
    this.#brackets.pop();
    this.text("]");
  }

  /** A bracket ends with an address. */
  closeLink(target) {
    this.#flush();
    const { at, isPicture } = this.#brackets.at(-1);
    this.#wrap(at, ([, ...label]) => link(target, joined(label)));
    // No link lies in another. A picture may lie in one, and in nothing further out: each that takes others into itself
    // goes through them once more.
    const around = this.#brackets.at(-1);
    this.#brackets = isPicture && around && !around.isPicture ? [around] : [];
  }
}

/** The nodes of a text without blocks. */
export function inline(text) {
  const row = new Row();
  const find = finder(text);
  const backticksFrom = backticks(text);
  /** Read what begins at a place; returns where to go on. */
  const read = (at) => {
    const here = text[at];
    const formula = FORMULAS[text.slice(at, at + 2)];
    if (formula) {
      const end = find(formula, at + 2);
      if (end > at + 2) {
        row.node(element("code", { className: "math" }, text.slice(at, end + 2)));
        return end + 2;
      }
    }
    if (here === "\\" && ESCAPED.test(text[at + 1] ?? "")) {
      row.text(text[at + 1]);
      return at + 2;
    }
    if (here === "\n") {
      row.breakLine();
      return at + 1;
    }
    if (here === "`") return readCode(at);
    if ("*_~".includes(here)) return readMark(at);
    if (here === "[" || (here === "!" && text[at + 1] === "[")) {
      row.openBracket(here === "!");
      return here === "!" ? at + 2 : at + 1;
    }
    if (here === "]" && row.hasBracket) {
      const target = text[at + 1] === "(" ? matchAt(TARGET, text, at + 1) : null;
      if (target) row.closeLink(target[1]);
      else row.closeBracket();
      return at + 1 + (target?.[0].length ?? 0);
    }
    return readWord(at);
  };
  const readCode = (at) => {
    let end = at;
    while (text[end] === "`") end += 1;
    const closer = backticksFrom(end - at, end);
    if (closer < 0) {
      row.text(text.slice(at, end));
      return end;
    }
    const code = text.slice(end, closer).replaceAll("\n", " ");
    row.node(element("code", {}, code.trim() || code));
    return closer + end - at;
  };
  const readMark = (at) => {
    const here = text[at];
    let end = at;
    while (text[end] === here) end += 1;
    const [before, after] = [text[at - 1], text[end]];
    const isMark = here === "~" ? end - at === 2 : end - at <= MAX_RUN;
    // An underscore within a word is part of the word.
    const opens = isMark && !isBlank(after) && (here !== "_" || !isWord(before));
    const closes = isMark && !isBlank(before) && (here !== "_" || !isWord(after));
    row.mark(here, end - at, opens, closes);
    return end;
  };
  const readWord = (at) => {
    const here = text[at];
    const address = here === "<" ? matchAt(AUTOLINK, text, at) : null;
    if (address) {
      for (const node of link(address[1], [])) row.node(node);
      return at + address[0].length;
    }
    const bare = here === "h" && !isWord(text[at - 1]) ? addressAt(text, at) : null;
    if (bare) {
      for (const node of link(bare, [])) row.node(node);
      return at + bare.length;
    }
    const lineBreak = here === "<" ? matchAt(BREAK, text, at) : null;
    if (lineBreak) {
      row.breakLine();
      return at + lineBreak[0].length;
    }
    const entity = here === "&" ? matchAt(ENTITY, text, at) : null;
    row.text(entity ? character(entity) : here);
    return at + (entity?.[0].length ?? 1);
  };
  for (let at = 0; at < text.length;) {
    const plain = matchAt(PLAIN, text, at);
    if (plain) row.text(plain[0]);
    at = plain ? at + plain[0].length : read(at);
  }
  return row.finish();
}
