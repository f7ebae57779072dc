// Charts of the engine's view: lines over time with their axes, and histograms.

import { element, write } from "./dom.js";

const NAMES_APART = 6; // px at least between two names below bars
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 120; // units of a plot's drawing, which is stretched to the room it has
const byId = (id) => document.getElementById(id);
export const number = (value) => Math.round(value).toLocaleString("en");
const brief = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const time = (seconds) => (seconds < 1 ? `${+(1000 * seconds).toPrecision(3)} ms` : `${seconds} s`);

/** A number of seconds as people say it. */
export function duration(seconds) {
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h`;
}

/** Fill a legend; each entry is a class of a colour, or "", and a text that stays beside it. */
export function legend(node, entries) {
  entries.forEach(([key, text], at) => {
    if (!node.children[at]) {
      const colour = key ? [element("span", { className: `key ${key}` }), " "] : [];
      node.append(at ? " · " : "", element("span", { className: "entry" }, ...colour, element("span")));
    }
    write(node.children[at].lastChild, text);
  });
}

/** The least round number that nothing exceeds, and whose half is whole. */
export function niceTop(highest) {
  const power = 10 ** Math.floor(Math.log10(Math.max(2, highest)));
  return power * [2, 4, 6, 8, 10].find((each) => each * power >= highest);
}

/** A plot with its axes: text is no part of the drawing, which is stretched. */
function makePlot(figure, svg, unit, seconds) {
  const marks = element("div", { className: "marks", ariaHidden: "true" }, [1, 2, 3].map(() => element("span")));
  const minutes = seconds / 60;
  const times = element("div", { className: "times", ariaHidden: "true" });
  for (let at = minutes; at >= 0; at -= 1) {
    const mark = element("span", {}, at ? `−${at}${at === minutes ? " min" : ""}` : "now");
    mark.style.left = `${100 * (1 - at / minutes)}%`;
    times.append(mark);
  }
  for (const y of [0, HEIGHT / 2]) {
    const grid = svg.appendChild(document.createElementNS(SVG, "path"));
    grid.setAttribute("class", "grid");
    grid.setAttribute("d", `M0 ${y}H${WIDTH}`);
  }
  const plot = element("div", { className: "plot" }, element("span", { className: "unit", ariaHidden: "true" }, unit), marks);
  svg.before(plot);
  plot.append(svg, times);
  figure.append(element("p", { className: "legend scale" }));
}

/**
 * Draw lines over the last seconds.
 *
 * @param samples with a `time` each, oldest first; at least one.
 * @param series names, and functions from a sample to a value.
 */
export function lines(id, samples, series, unit, seconds) {
  const svg = byId(id);
  const figure = svg.closest("figure");
  if (!figure.querySelector(".plot")) makePlot(figure, svg, unit, seconds);
  const highest = Math.max(...samples.flatMap((each) => series.map(([, value]) => value(each))));
  const top = niceTop(highest);
  [top, top / 2, 0].forEach((value, at) => write(figure.querySelector(".marks").children[at], brief.format(value)));
  const now = samples.at(-1);
  series.forEach(([, value], index) => {
    const found = svg.querySelectorAll("polyline")[index];
    const path = found ?? svg.appendChild(document.createElementNS(SVG, "polyline"));
    path.setAttribute("class", `series s${index}`);
    path.setAttribute("points", samples.map((each) => `${WIDTH - (WIDTH * (now.time - each.time)) / seconds},${HEIGHT - HEIGHT * value(each) / top}`).join(" "));
  });
  const shown = series.map(([name, value]) => [name, number(value(now))]);
  legend(figure.querySelector(".scale"), [...shown.map(([name, value], index) => [`s${index}`, `${name} ${value}`]), ["", `highest ${number(highest)}`]]);
  svg.setAttribute("aria-label", shown.map(([name, value]) => `${name}: ${value} ${unit} now`).join("; "));
}

/** Draw a histogram of all values, with quantiles of the last seconds beside those since the start. */
export function bars(box, { bounds, counts, recent = [] }, seconds) {
  const total = sum(counts);
  const first = Math.max(0, counts.findIndex((count) => count));
  const last = Math.max(first + 6, counts.findLastIndex((count) => count));
  const top = Math.max(1, ...counts);
  const names = counts.map((_, at) => (at < bounds.length ? `≤ ${time(bounds[at])}` : `> ${time(bounds.at(-1))}`));
  const shown = counts.slice(first, last + 1);
  while (box.children.length > shown.length) box.lastChild.remove();
  while (box.children.length < shown.length) box.append(element("div", { className: "bar" }, element("i"), element("span")));
  shown.forEach((count, at) => {
    const bar = box.children[at];
    bar.firstChild.style.height = `${100 * count / top}%`;
    write(bar.lastChild, names[first + at]);
    bar.title = `${names[first + at]}: ${count}`;
  });
  box.dataset.highest = String(counts.indexOf(top) - first);
  thinOut(box);
  const caption = box.parentElement.querySelector("figcaption");
  const told = caption.querySelector(".quantiles") ?? caption.appendChild(element("span", { className: "quantiles" }, element("span"), element("span")));
  const quantiles = (many) => (sum(many) ? `p50 ${names[quantile(many, 0.5)]}, p99 ${names[quantile(many, 0.99)]}` : "none");
  write(told.firstChild, total ? `last ${duration(seconds)}: ${quantiles(recent)}` : "");
  write(told.lastChild, total ? `since start: ${quantiles(counts)}` : "");
  box.setAttribute("aria-label", total ? `${total} in all; ${shown.map((count, at) => (count ? `${names[first + at]}: ${count}` : "")).filter(Boolean).join(", ")}` : "nothing yet");
}

/** Show as many names of a histogram's bars as have room beside each other, evenly spread from that of the highest. */
export function thinOut(box) {
  const names = [...box.children].map((bar) => bar.lastChild);
  const pitch = box.clientWidth / names.length;
  const step = Math.ceil((Math.max(...names.map((name) => name.offsetWidth)) + NAMES_APART) / pitch);
  const highest = Number(box.dataset.highest);
  names.forEach((name, at) => {
    const fits = (Math.min(at, names.length - 1 - at) + 0.5) * pitch >= name.offsetWidth / 2;
    name.classList.toggle("left-out", (at - highest) % step !== 0 || !fits);
  });
}

const sum = (counts) => counts.reduce((total, count) => total + count, 0);

/** The bar in or before which this share of all values is. */
function quantile(counts, share) {
  const many = share * sum(counts);
  let before = 0;
  return counts.findIndex((count) => (before += count) >= many);
}
