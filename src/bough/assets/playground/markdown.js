// Markdown as DOM nodes. Text only ever becomes text nodes, so that nothing a model writes is markup or script.

import { copyButton, element } from "./dom.js";

const INLINE = [
  [/^(`+)(?!`)(.+?)(?<!`)\1(?!`)/s, (m) => [element("code", {}, m[2].trim() || m[2])]],
  [/^\*\*(?=\S)(.+?\S)\*\*|^\*\*(\S)\*\*/s, (m) => [element("strong", {}, inline(m[1] ?? m[2]))]],
  [/^__(?=\S)(.*?\S)__(?!\w)/s, (m) => [element("strong", {}, inline(m[1]))]],
  [/^~~(?=\S)(.*?\S)~~/s, (m) => [element("del", {}, inline(m[1]))]],
  [/^\*(?=[^\s*])(.*?[^\s*])\*(?!\*)|^\*([^\s*])\*(?!\*)/s, (m) => [element("em", {}, inline(m[1] ?? m[2]))]],
  [/^_(?=[^\s_])(.*?[^\s_])_(?!\w)/s, (m) => [element("em", {}, inline(m[1]))]],
  [/^!?\[([^\]\n]*)\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)(?:\s+"[^"\n]*")?\)/, (m) => link(m[1], m[2])],
  [/^<(https?:\/\/[^\s<>]+)>/, (m) => link(m[1], m[1])],
  [/^\bhttps?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?]/, (m) => link(m[0], m[0])],
];

/** A link if it leads to the web or to mail; pictures are links as well, because nothing is loaded from elsewhere. */
function link(label, target) {
  if (!/^(https?:|mailto:)/i.test(target)) return [label || target];
  return [element("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, label === target ? label : inline(label || target))];
}

/** The nodes of a text without blocks. */
function inline(text) {
  const nodes = [];
  let plain = "";
  let before = "";
  for (let at = 0; at < text.length;) {
    const here = text[at];
    if (here === "\\" && /[\\`*_{}[\]()#+.!|~<>-]/.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      before = "";
      at += 2;
      continue;
    }
    let found = null;
    // An underscore or a URL within a word is part of the word, a backtick within a run part of the run.
    if ("*~![<".includes(here) || (here === "`" && before !== "`") || (/[_h]/.test(here) && !/\w/.test(before))) {
      const rest = text.slice(at, at + 4000);
      for (const [pattern, make] of INLINE) {
        const match = pattern.exec(rest);
        if (match) { found = [match, make]; break; }
      }
    }
    if (found) {
      if (plain) nodes.push(plain);
      plain = "";
      nodes.push(...found[1](found[0]));
      before = found[0][0].at(-1);
      at += found[0][0].length;
    } else {
      plain += here;
      before = here;
      at += 1;
    }
  }
  if (plain) nodes.push(plain);
  return nodes;
}

function lines(text) {
  const nodes = [];
  text.split("\n").forEach((line, index) => {
    if (index) nodes.push(element("br"));
    for (const node of inline(line.trim())) nodes.push(node);
  });
  return nodes;
}

function codeBlock(code, language) {
  const copy = copyButton("Copy", () => code, { className: "copy" });
  return element("div", { className: "code" }, copy, element("pre", { tabIndex: 0, "aria-label": language ? `Code, ${language}` : "Code" }, element("code", {}, code)));
}

// Blocks are looked for in whole lines, however long: no pattern has two parts that could share the same blanks.
const HEADING = /^(#{1,6})\s+(\S.*)$/s;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/s;
const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());

/** Whether a line is the one between the head of a table and its body. */
const isRule = (line) => cells(line).every((cell) => /^:?-+:?$/.test(cell));

function table(rows) {
  const [head, , ...body] = rows;
  return element("div", { className: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, cells(head).map((cell) => element("th", { scope: "col" }, inline(cell))))),
    element("tbody", {}, body.map((row) => element("tr", {}, cells(row).map((cell) => element("td", {}, inline(cell))))))));
}

/** A list from lines of which the first is an item; `depth` bounds how deep lists may lie in lists. */
function list(source, depth) {
  const first = ITEM.exec(source[0]);
  const made = element(/\d/.test(first[2]) ? "ol" : "ul");
  if (made.tagName === "OL") made.start = parseInt(first[2], 10);
  const items = [];
  for (const line of source) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= first[1].length + 1) items.push([item[3]]);
    else items.at(-1).push(line.slice(Math.min(first[1].length + 2, line.length - line.trimStart().length)));
  }
  for (const item of items) {
    const blocks = depth < 8 ? [...render(item.join("\n"), depth + 1).childNodes] : [item.join("\n")];
    const only = blocks[0]?.tagName === "P" ? [...blocks[0].childNodes, ...blocks.slice(1)] : blocks;
    made.append(element("li", {}, only));
  }
  return made;
}

/** Whether a line ends a block of code that began with this fence: nothing but the fence, or a longer one. */
const closes = (line, fence) => line.startsWith(fence) && !line.replaceAll(fence[0], "");

/** Where a list ends that begins at a line: behind the last line that belongs to it, blank ones included if it goes on. */
function endOfList(source, at) {
  for (let end = at + 1; ;) {
    const blanks = end;
    while (end < source.length && !source[end].trim()) end += 1;
    if (end === source.length || !(ITEM.test(source[end]) || /^\s{2,}/.test(source[end]))) return blanks;
    end += 1;
  }
}

/** A fragment of what a Markdown text shows; an unfinished block, as while streaming, counts as finished. */
export function render(text, depth = 0) {
  const fragment = document.createDocumentFragment();
  const source = text.replace(/\r\n?/g, "\n").split("\n");
  for (let at = 0; at < source.length;) {
    const line = source[at];
    const fence = /^(\s{0,3})(`{3,}|~{3,})\s*([\w+#.-]*)/.exec(line);
    const heading = HEADING.exec(line.trimEnd());
    let end = at + 1;
    if (!line.trim()) { at += 1; continue; }
    if (fence) {
      while (end < source.length && !closes(source[end].trim(), fence[2])) end += 1;
      const indent = new RegExp(`^\\s{0,${fence[1].length}}`);
      fragment.append(codeBlock(source.slice(at + 1, end).map((each) => each.replace(indent, "")).join("\n"), fence[3]));
      at = end + 1;
      continue;
    }
    if (heading) {
      // The page has its own first and second level.
      fragment.append(element(`h${Math.min(heading[1].length + 2, 6)}`, {}, inline(heading[2].replace(/(?<=\S)\s+#+$/, ""))));
    } else if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      fragment.append(element("hr"));
    } else if (/^\s{0,3}>/.test(line) && depth < 8) {
      while (end < source.length && /^\s{0,3}>/.test(source[end])) end += 1;
      fragment.append(element("blockquote", {}, render(source.slice(at, end).map((each) => each.replace(/^\s{0,3}> ?/, "")).join("\n"), depth + 1)));
    } else if (line.includes("|") && isRule(source[end] ?? "")) {
      while (end < source.length && source[end].includes("|")) end += 1;
      fragment.append(table(source.slice(at, end)));
    } else if (ITEM.test(line)) {
      end = endOfList(source, at);
      fragment.append(list(source.slice(at, end), depth));
    } else {
      while (end < source.length && source[end].trim() && !/^\s{0,3}(`{3,}|~{3,}|#{1,6}\s|>)/.test(source[end]) && !ITEM.test(source[end])) end += 1;
      fragment.append(element("p", {}, lines(source.slice(at, end).join("\n"))));
    }
    at = end;
  }
  return fragment;
}
