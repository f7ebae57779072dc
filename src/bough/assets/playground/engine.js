// What the engine does, drawn from one stream of pictures, two a second.

import { ADMIN_KEY, call, events, following, isPassing } from "./api.js";
import { bars, duration, legend, lines, number, thinOut } from "./charts.js";
import { arrange, element, write } from "./dom.js";

const LEAST_SECONDS = 0.4; // between two samples: a rate over less says little
const SILENT_MS = 15000; // pictures come twice a second; a busy engine may be asked in vain for ten
const byId = (id) => document.getElementById(id);

let stream = null;
let isPaused = false;
let history = [];

/** Begin to watch; does nothing if it does already, or if somebody paused it. */
export async function startEngine() {
  if (stream || isPaused) return;
  const own = (stream = new AbortController());
  let isDraining = false; // as far as the server was heard
  for (let wait = 500; stream === own; wait = Math.min(2 * wait, 8000)) {
    let problem = "";
    const attempt = following(own.signal);
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => attempt.abort(), SILENT_MS);
    };
    try {
      const response = await call("playground/events", { signal: attempt.signal, slot: ADMIN_KEY, patience: SILENT_MS });
      byId("engine-closed").hidden = true;
      heard();
      for await (const picture of events(response)) {
        heard();
        isDraining = picture.server_state === "draining";
        tellConnection(isDraining ? "The server is shutting down: what runs is finished, and nothing new is taken" : "");
        if (!isDraining) wait = 500;
        draw(picture);
      }
    } catch (error) {
      if (own.signal.aborted) return;
      if (error.status >= 400 && !isPassing(error.status)) {
        showClosed(error);
        tellConnection("");
        stream = null;
        return;
      }
      if (error.status) problem = error.message;
    } finally {
      clearTimeout(silence);
      attempt.abort(); // it has ended, and need not follow any longer
    }
    problem ||= isDraining ? "The server has shut down" : "Connection lost";
    tellConnection(`${problem}; trying again …`);
    await new Promise((resolve) => { setTimeout(resolve, wait * (0.75 + Math.random() / 2)); });
  }
}

const tellConnection = (text) => write(byId("connection"), text);

const REMEDIES = [
  ["serve with ", "--admin-api-key-file FILE", " or ", "--admin-api-key KEY", ": this page then asks for the key;"],
  ["or bind the server to this machine alone: ", "--host 127.0.0.1", "."],
];

/** Say what the view needs, in place of charts that would stay empty or show the past. */
function showClosed({ status, code, message }) {
  const isClosed = status === 401 || status === 403;
  const hasRemedy = code === "control_closed";
  let why = isClosed ? `It shows how prompts begin, and is closed here: ${message}.` : `${message}.`;
  if (hasRemedy) why = "It shows how prompts begin. Where other machines reach the server, only an administrator may see that. To open it:";
  const asItem = (parts) => element("li", {}, parts.map((part, at) => (at % 2 ? element("code", {}, part) : part)));
  byId("engine-closed").replaceChildren(
    element("h2", {}, isClosed ? "The live view is closed" : "There is no live view"),
    element("p", {}, why),
    ...(hasRemedy ? [element("ul", {}, REMEDIES.map(asItem))] : []),
  );
  byId("engine-closed").hidden = false;
  byId("engine-live").hidden = true;
}

/** Stop watching. */
export function stopEngine() {
  stream?.abort();
  stream = null;
  tellConnection("");
}

function pauseOrGoOn() {
  isPaused = !isPaused;
  byId("pause").textContent = isPaused ? "Resume" : "Pause";
  if (isPaused) stopEngine();
  else startEngine();
}

function draw(picture) {
  byId("engine-live").hidden = false;
  const seconds = picture.window_seconds;
  if (picture.history) history = earlier(picture.history, picture.uptime - LEAST_SECONDS);
  history.push(sample({ ...picture, time: picture.uptime }, history.at(-1))); // the server's clock may be set
  history = history.filter((each) => picture.uptime - each.time <= seconds);
  tiles(picture);
  lines("rate", history, [["generated", (each) => each.rate], ["prompts", (each) => each.prefillRate]], "tokens per second", seconds);
  lines("requests", history, [["running", (each) => each.running], ["waiting", (each) => each.waiting]], "requests", seconds);
  cache(picture);
  for (const [name, histogram] of Object.entries(picture.latencies)) bars(byId(name), histogram, seconds);
  tree(picture);
}

/** One point of the lines, with rates since the one before. */
function sample({ time, running, waiting, generated_total, prefilled_total, cached_total }, before) {
  const rateOf = (total, name) => (before && time > before.time ? Math.max(0, total - before[name]) / (time - before.time) : 0);
  const rate = rateOf(generated_total, "generated_total");
  const prefillRate = rateOf(prefilled_total, "prefilled_total");
  return { time, rate, prefillRate, running, waiting, generated_total, prefilled_total, cached_total };
}

/** Points that the server has kept, until this moment. */
function earlier(columns, until) {
  const points = [];
  columns.time.forEach((time, at) => {
    const row = Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[at]]));
    if (time <= until) points.push(sample(row, points.at(-1)));
  });
  return points;
}

function tiles(picture) {
  const first = history[0];
  const cached = picture.cached_total - first.cached_total;
  const lately = cached + picture.prefilled_total - first.prefilled_total;
  const prompts = picture.cached_total + picture.prefilled_total;
  const share = (part, all) => (all ? `${(100 * part / all).toFixed(0)} %` : "–");
  const shown = [
    ["Tokens/s", number(history.at(-1).rate)],
    ["Prompt tokens/s", number(history.at(-1).prefillRate)],
    ["Running", `${picture.running} of ${picture.max_running}`],
    ["Waiting", number(picture.waiting)],
    ["Cache hit rate", share(picture.cached_total, prompts)],
    ["Recent hit rate", share(cached, lately)],
    ["Requests", number(picture.requests_total)],
    ["Retracted", number(picture.retracted_total)],
    ["Uptime", duration(picture.uptime)],
  ];
  const box = byId("tiles");
  shown.forEach(([name, value], at) => {
    const tile = box.children[at] ?? box.appendChild(element("div", { className: "tile" }, element("span", { className: "name" }, name), element("strong")));
    write(tile.lastChild, value);
  });
}

function cache({ capacity, used_tokens, protected_tokens, evictable_tokens }) {
  const own = Math.max(0, used_tokens - protected_tokens);
  const parts = [["locked", protected_tokens, "held in the tree"], ["own", own, "of running requests alone"], ["free", evictable_tokens, "kept, evictable"]];
  const bar = byId("kv");
  while (bar.children.length < parts.length) bar.append(element("div"));
  parts.forEach(([name, tokens], index) => {
    bar.children[index].className = name;
    bar.children[index].style.width = `${100 * tokens / Math.max(1, capacity)}%`;
  });
  const entries = [...parts.map(([name, tokens, what]) => [name, `${number(tokens)} ${what}`]), ["", `of ${number(capacity)} tokens`]];
  legend(byId("kv-legend"), entries);
  bar.setAttribute("aria-label", entries.map(([, text]) => text).join(" · "));
}

// --- the tree -------------------------------------------------------------------------------------------------------

const ROW = 26;
const LINE = 22; // px of a text's line within rows
const COLUMN = { least: 250, most: 480 }; // a node's first tokens seldom need more
const APART = { rows: 3, columns: 6 };
const boxes = new Map();
let described = null; // the node that the line below tells about

function tree({ nodes }) {
  const below = new Map([["", []]]);
  for (const node of nodes) {
    below.set(node.node_id, []);
    (below.get(node.parent_id) ?? below.get("")).push(node);
  }
  // By what stays: in the order of their use, rows would change places whenever one is used.
  const sorted = (id) => below.get(id).sort((one, other) => one.node_id.localeCompare(other.node_id));
  const places = [];
  let row = 0;
  const place = (node, depth) => {
    const start = row;
    for (const child of sorted(node.node_id)) place(child, depth + 1);
    if (row === start) row += 1;
    places.push({ node, depth, start, rows: row - start });
  };
  for (const node of sorted("")) place(node, 0);
  places.sort((one, other) => one.start - other.start || one.depth - other.depth);

  const area = byId("tree");
  area.style.height = `${row * ROW}px`;
  const room = area.clientWidth;
  const levels = Math.max(0, ...places.map(({ depth }) => depth)) + 1;
  const column = Math.min(COLUMN.most, Math.max(COLUMN.least, Math.floor(room / levels)));
  for (const id of boxes.keys()) if (!below.has(id)) boxes.delete(id);
  for (const { node, depth, start, rows } of places) {
    let box = boxes.get(node.node_id);
    if (!box) {
      box = element("div", { className: "node", role: "treeitem", tabIndex: -1 }, element("span", { className: "text" }), element("span", { className: "count" }));
      boxes.set(node.node_id, box);
    }
    const left = depth * column;
    box.style.transform = `translate(${left}px, ${start * ROW}px)`;
    box.style.height = `${rows * ROW - APART.rows}px`;
    box.classList.toggle("high", rows > 1);
    box.style.setProperty("--lines", String(Math.floor((rows * ROW - APART.rows) / LINE)));
    // Nothing stands to the right of a node without children.
    const most = below.get(node.node_id).length ? column : Math.max(column, room - left);
    box.style.minWidth = `${column - APART.columns}px`;
    box.style.maxWidth = `${most - APART.columns}px`;
    box.classList.toggle("locked", node.locks > 0);
    box.style.setProperty("--age", String(Math.min(1, node.age / 200)));
    box.setAttribute("aria-level", String(depth + 1));
    const shared = node.locks ? `held by ${node.locks} running` : "evictable";
    const text = node.text.replace(/\s+/g, " ").trim() || "(white space)";
    write(box.firstChild, text);
    write(box.lastChild, `${number(node.num_tokens)}${node.locks ? ` · ${node.locks} ▶` : ""}${node.hits ? ` · ${node.hits}×` : ""}`);
    const about = `${number(node.num_tokens)} tokens, ${shared}, reused ${node.hits} times${node.namespace === null ? "" : `, namespace ${node.namespace}`}`;
    box.title = `${text}: ${about}`;
    box.setAttribute("aria-label", box.title);
  }
  const before = [...area.children];
  const held = before.indexOf(document.activeElement);
  arrange(area, places.map(({ node }) => boxes.get(node.node_id))); // in the order in which it is read aloud
  if (held >= 0 && document.activeElement !== before[held]) {
    (nearest(before, held) ?? area.firstElementChild ?? byId("tab-engine")).focus({ preventScroll: true });
  }
  tell(described);
  const reached = [...area.children].find((box) => box.tabIndex === 0) ?? area.firstElementChild;
  if (reached) reached.tabIndex = 0;
  const hidden = nodes.reduce((sum, node) => sum + node.num_children - below.get(node.node_id).length, 0);
  byId("tree-rest").textContent = nodes.length
    ? `${nodes.length} runs, those used last${hidden > 0 ? `; at least ${number(hidden)} more` : ""}. Numbers: tokens, ▶ running requests, × reuses.`
    : "The tree is empty: nothing was asked yet, or the prefix cache is off.";
}

/** Of rows that were there, the one that still is and was nearest to a place; undefined if none is. */
function nearest(rows, place) {
  const left = [...rows.keys()].filter((at) => rows[at].isConnected);
  return rows[left.sort((one, other) => Math.abs(one - place) - Math.abs(other - place))[0]];
}

/** Tell about a node below the tree, unless it is gone. */
function tell(box) {
  described = box?.isConnected ? box : null;
  write(byId("tree-told"), described?.getAttribute("aria-label") ?? "");
}

/** Make the view ready for who pauses or resizes it, points at what it shows or goes along that by keys. */
export function prepareEngine() {
  byId("pause").addEventListener("click", pauseOrGoOn);
  const sizes = new ResizeObserver((entries) => { for (const { target } of entries) if (target.children.length) thinOut(target); });
  for (const box of document.querySelectorAll(".histogram")) sizes.observe(box);
  watchTree();
}

/** Tell about the node pointed at or reached by keys, of which Tab comes back to the last. */
function watchTree() {
  const area = byId("tree");
  area.addEventListener("pointerover", ({ target }) => tell(target.closest(".node")));
  area.addEventListener("focusin", ({ target }) => {
    const box = target.closest(".node");
    tell(box);
    for (const each of area.children) each.tabIndex = each === box ? 0 : -1;
  });
  area.addEventListener("keydown", (event) => {
    const order = [...area.children];
    const at = order.indexOf(event.target);
    const level = (box) => Number(box?.getAttribute("aria-level"));
    const next = {
      ArrowDown: order[at + 1],
      ArrowUp: order[at - 1],
      ArrowRight: level(order[at + 1]) > level(order[at]) ? order[at + 1] : undefined,
      ArrowLeft: order.slice(0, at).findLast((box) => level(box) < level(order[at])),
      Home: order[0],
      End: order.at(-1),
    }[event.key];
    if (at < 0 || !next) return;
    event.preventDefault();
    next.focus();
  });
}
