// Markdown as DOM nodes: blocks here, what stands within a line in inline.js.

import { arrange, copyButton, element, grow } from "./dom.js";
import { inline } from "./inline.js";

// Blocks are looked for in whole lines, however long: no pattern has two parts that could share the same blanks.
// What follows a fence of backticks names a language, which has none: with more of them it is code within the line.
const FENCE = /^(\s{0,3})(`{3,}(?![^`]*`)|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(\S.*)$/s;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^\s{0,3}>/;
const UNDERLINE = /^\s{0,3}(={3,}|-{3,})\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/s;
const TASK = /^\[([ xX])\]\s/;
const CODE = /^(?: {4}| {0,3}\t)/;
const MAX_DEPTH = 8; // of lists and quotations in each other

/** What a parent shows, by parent. */
const shown = new WeakMap();

/**
 * Make a Markdown text what an element shows. Blocks whose text is the same as before stay untouched, and a block that
 * others lie in is kept and changed within, so that selections, focus and scrolling outlive an answer that grows. An
 * unfinished block counts as finished.
 */
export function show(parent, text) {
  patch(parent, blocks(text, 0));
}

/**
 * Let a parent show blocks, each made by `make`, or brought by `fill` to what it is now if one of its kind is in its place.
 * A block is {kind, key, make, fill}; two of one kind and key look the same.
 */
function patch(parent, wanted) {
  const before = shown.get(parent) ?? [];
  const now = wanted.map((block, index) => {
    const there = before[index];
    if (there?.kind !== block.kind) return { ...block, node: made(block) };
    if (there.key === block.key) return there;
    if (!block.fill) return { ...block, node: made(block) };
    block.fill(there.node);
    return { ...block, node: there.node };
  });
  shown.set(parent, now);
  arrange(parent, now.map(({ node }) => node));
}

function made({ make, fill }) {
  const node = make();
  fill?.(node);
  return node;
}

/** A block without blocks in it. */
const leaf = (kind, key, make) => ({ kind, key, make });

function codeBlock(code, language) {
  return {
    kind: `code ${language}`,
    key: code,
    make: () => {
      const text = element("code", {}, "");
      const copy = copyButton("Copy", () => text.textContent, { className: "copy" });
      return element("div", { className: "code" }, copy, element("pre", { tabIndex: 0, "aria-label": language ? `Code, ${language}` : "Code" }, text));
    },
    fill: (node) => grow(node.lastChild.firstChild, code),
  };
}

// --- tables ---------------------------------------------------------------------------------------------------------

const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

/** Whether a table begins at a line: one with bars, above a line that parts the head of a table from its body. */
function beginsTable(source, at) {
  const rule = source[at + 1] ?? "";
  return source[at].includes("|") && rule.includes("|") && cells(rule).every((cell) => /^:?-+:?$/.test(cell));
}

function tableRow(line, tag, properties) {
  return leaf("row", line, () => element("tr", {}, cells(line).map((cell) => element(tag, properties, inline(cell)))));
}

function table(rows) {
  const [head, , ...body] = rows;
  return {
    kind: "table",
    key: rows.join("\n"),
    make: () => element("div", { className: "scroll" }, element("table", {}, element("thead"), element("tbody"))),
    fill: (node) => {
      const [top, rest] = node.firstChild.children;
      patch(top, [tableRow(head, "th", { scope: "col" })]);
      patch(rest, body.map((line) => tableRow(line, "td", {})));
    },
  };
}

// --- lists and quotations -------------------------------------------------------------------------------------------

/** Whether a marker of an item numbers it. */
const isNumber = (marker) => /\d/.test(marker);

/** A list from lines of which the first is an item. */
function list(source, depth) {
  const [, { length: indent }, marker] = ITEM.exec(source[0]);
  const items = [];
  for (const line of source) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent + 1) items.push([item[3]]);
    else items.at(-1).push(line.slice(Math.min(indent + 2, line.length - line.trimStart().length)));
  }
  return {
    kind: isNumber(marker) ? `ol ${parseInt(marker, 10)}` : "ul",
    key: source.join("\n"),
    make: () => (isNumber(marker) ? element("ol", { start: parseInt(marker, 10) }) : element("ul")),
    fill: (node) => patch(node, items.map((lines) => listItem(lines.join("\n"), depth))),
  };
}

function listItem(text, depth) {
  const task = TASK.exec(text);
  const isDone = task !== null && task[1] !== " ";
  const mark = () => element("span", { role: "img", "aria-label": isDone ? "done" : "to do", className: "task" }, isDone ? "☑" : "☐");
  const inner = () => [
    ...(task ? [leaf("task", task[1], mark)] : []),
    ...(depth < MAX_DEPTH ? blocks(task ? text.slice(task[0].length) : text, depth + 1) : [leaf("text", text, () => element("p", {}, text))]),
  ];
  return { kind: "item", key: text, make: () => element("li"), fill: (node) => patch(node, inner()) };
}

/**
 * Where a list ends that begins at a line: behind the last line that belongs to it, blank ones included if it goes on. Items
 * with numbers and items with bullets side by side are two lists.
 */
function endOfList(source, at) {
  const [, { length: indent }, marker] = ITEM.exec(source[at]);
  for (let end = at + 1; ;) {
    const blanks = end;
    while (end < source.length && !source[end].trim()) end += 1;
    if (end === source.length) return blanks;
    const item = ITEM.exec(source[end]);
    const isOther = item !== null && item[1].length <= indent + 1 && isNumber(item[2]) !== isNumber(marker);
    if (isOther || !(item || /^\s{2,}/.test(source[end]))) return blanks;
    end += 1;
  }
}

function quote(lines, depth) {
  const text = lines.map((line) => line.replace(/^\s{0,3}> ?/, "")).join("\n");
  return { kind: "quote", key: text, make: () => element("blockquote"), fill: (node) => patch(node, blocks(text, depth + 1)) };
}

// --- blocks of lines ------------------------------------------------------------------------------------------------

/** Whether a line ends a block of code that began with this fence: nothing but the fence, or a longer one. */
const closes = (line, fence) => line.startsWith(fence) && !line.replaceAll(fence[0], "");

/** Whether a line cannot go on with the paragraph above: of numbers only a 1 begins a list there, others may be years. */
function interrupts(source, at) {
  const line = source[at];
  if (FENCE.test(line) || /^\s{0,3}(#{1,6}\s|>)/.test(line) || RULE.test(line) || beginsTable(source, at)) return true;
  const item = ITEM.exec(line);
  return item !== null && (!isNumber(item[2]) || parseInt(item[2], 10) === 1);
}

/** Finds blocks of mathematics: where each ends, or -1. Looks at no line twice, however many could begin one. */
function formulas(source) {
  const without = { "\\[": -1, $$: -1 };
  return (at) => {
    const [, opener] = /^\s{0,3}(\\\[|\$\$)/.exec(source[at]) ?? [];
    if (!opener || without[opener] >= at) return -1;
    const closer = opener === "$$" ? "$$" : "\\]";
    if (source[at].trim().slice(2).includes(closer)) return -1; // within a line it is a part of that line
    let end = at + 1;
    while (end < source.length && source[end].trim() && !source[end].includes(closer)) end += 1;
    if (source[end]?.trim().endsWith(closer)) return end + 1;
    without[opener] = end;
    return -1;
  };
}

/** The page has its own headings of the first and second level. */
function heading(level, text) {
  return leaf(`h${Math.min(level + 2, 6)}`, text, () => element(`h${Math.min(level + 2, 6)}`, {}, inline(text)));
}

function blocks(text, depth) {
  const found = [];
  const source = text.replace(/\r\n?/g, "\n").split("\n");
  const endOfFormula = formulas(source);
  for (let at = 0; at < source.length;) {
    const line = source[at];
    if (!line.trim()) { at += 1; continue; }
    const fence = FENCE.exec(line);
    const title = HEADING.exec(line.trimEnd());
    let end = at + 1;
    if (fence) {
      while (end < source.length && !closes(source[end].trim(), fence[2])) end += 1;
      const indent = new RegExp(`^\\s{0,${fence[1].length}}`);
      found.push(codeBlock(source.slice(at + 1, end).map((each) => each.replace(indent, "")).join("\n"), fence[3]));
      end += 1;
    } else if (title) {
      found.push(heading(title[1].length, title[2].replace(/(?<=\S)\s+#+$/, "")));
    } else if (RULE.test(line)) {
      found.push(leaf("rule", "", () => element("hr")));
    } else if (QUOTE.test(line) && depth < MAX_DEPTH) {
      while (end < source.length && QUOTE.test(source[end])) end += 1;
      found.push(quote(source.slice(at, end), depth));
    } else if (beginsTable(source, at)) {
      while (end < source.length && source[end].includes("|")) end += 1;
      found.push(table(source.slice(at, end)));
    } else if (ITEM.test(line)) {
      end = endOfList(source, at);
      found.push(list(source.slice(at, end), depth));
    } else if (CODE.test(line)) {
      end = endOfCode(source, at);
      found.push(codeBlock(source.slice(at, end).map((each) => each.replace(CODE, "")).join("\n"), ""));
    } else if (endOfFormula(at) > 0) {
      end = endOfFormula(at);
      const formula = source.slice(at, end).join("\n");
      found.push(leaf("formula", formula, () => element("p", {}, element("code", { className: "math" }, formula))));
    } else {
      while (end < source.length && source[end].trim() && !UNDERLINE.test(source[end]) && !interrupts(source, end) && endOfFormula(end) < 0) end += 1;
      const lines = source.slice(at, end).map((each) => each.trim()).join("\n");
      if (UNDERLINE.test(source[end] ?? "")) {
        found.push(heading(source[end].includes("=") ? 1 : 2, lines));
        end += 1;
      } else found.push(leaf("paragraph", lines, () => element("p", {}, inline(lines))));
    }
    at = end;
  }
  return found;
}

/** Where code ends that is told by its indentation alone: blank lines belong to it if it goes on behind them. */
function endOfCode(source, at) {
  for (let end = at + 1; ;) {
    const blanks = end;
    while (end < source.length && !source[end].trim()) end += 1;
    if (end === source.length || !CODE.test(source[end])) return blanks;
    end += 1;
  }
}
