// Charts as inline SVG: lines over a number, and rows of values. Each has axes, labels, and a table
// with the same figures.

import { clip, el, figure, foreign, lazy, svg, visible } from "./dom.js";

/** The number of series that a chart can show apart; its table has all. */
const MAX_SERIES = 8;
const LABEL_HEIGHT = 22;

/** A chart with its title, a sentence, a legend, and its table. */
function frame({ id, title, meaning, table, legend, note }, draw) {
  const canvas = el("div", { class: "canvas" });
  const place = el(
    "figure",
    { class: "plot", "data-plot": id },
    el("figcaption", {}, el("h3", {}, title), el("p", { class: "meaning" }, meaning)),
    canvas,
    legend,
    note && el("p", { class: "small" }, note),
    lazy("The figures as a table", () => el("div", { class: "scroll", tabindex: "0" }, tableOf(table))),
  );
  let width = 0;
  const update = () => {
    const now = Math.round(canvas.clientWidth);
    if (now === 0 || Math.abs(now - width) < 8) return;
    width = now;
    canvas.replaceChildren(draw(width));
  };
  new ResizeObserver(update).observe(canvas);
  return place;
}

function tableOf({ heads, rows }) {
  return el(
    "table",
    {},
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el(
      "tbody",
      {},
      rows.map((row) => el("tr", {}, row.map((cell, at) => (at === 0 ? foreign("th", { scope: "row" }, String(cell)) : foreign("td", {}, typeof cell === "number" ? figure(cell) : String(cell ?? "–")))))),
    ),
  );
}

/** Round numbers from 0 to at least `most`, about `wanted` of them. */
function ticks(most, wanted) {
  if (!(most > 0)) return [0, 1];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((it) => it * power).find((it) => it >= rough * 0.999);
  const list = [];
  for (let at = 0; at < 1000; at += 1) {
    list.push(Number((at * step).toPrecision(12)));
    if (at * step >= most * 0.999999) break;
  }
  return list;
}

/** A round number of at least `most`, for the end of an axis. */
export function roundMax(most) {
  return ticks(most, 4).at(-1);
}

/** Lines over a number: each series has points `{x, y, low, high}`; `low` and `high` make a band. */
export function lineChart({ id, title, meaning, xLabel, yLabel, yMax, series, table, integerX }) {
  const shown = series.slice(0, MAX_SERIES);
  const note = series.length > shown.length ? `The first ${MAX_SERIES} of ${series.length} are drawn; the table has all.` : "";
  const legend = el(
    "ul",
    { class: "legend" },
    shown.map((one, at) => el("li", {}, svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("line", { class: `line s${at}`, x1: 1, x2: 25, y1: 5, y2: 5 }), svg("circle", { class: `point s${at}`, cx: 13, cy: 5, r: 3.5 })), foreign("span", {}, one.label))),
  );
  return frame({ id, title, meaning, table, legend, note }, (width) => {
    const longest = Math.max(...ticks(yMax, 4).map((tick) => figure(tick).length));
    const box = { left: Math.max(46, 26 + 7 * longest), right: width - 12, top: 10, bottom: 210 };
    const xs = shown.flatMap((one) => one.points.map((point) => point.x));
    const [first, last] = [Math.min(...xs), Math.max(...xs)];
    const x = (value) => (last === first ? (box.left + box.right) / 2 : box.left + 8 + ((box.right - box.left - 16) * (value - first)) / (last - first));
    const y = (value) => box.bottom - ((box.bottom - box.top) * Math.min(value, yMax)) / yMax;
    const every = [...new Set(xs)].sort((one, other) => one - other);
    const room = Math.max(2, Math.floor((box.right - box.left) / 34));
    const xTicks = every.length <= room ? every : ticks(last, Math.min(8, room)).filter((it) => it >= first && it <= last && (!integerX || Number.isInteger(it)));
    return canvas(width, 252, title, [
      axes(box, xTicks, x, ticks(yMax, 4), y, xLabel, yLabel),
      shown.map((one, at) => band(one, at, x, y)),
      shown.map((one, at) => [
        svg("polyline", { class: `line s${at}`, points: one.points.map((point) => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join(" ") }),
        one.points.length <= 60 && one.points.map((point) => [
          point.whisker !== undefined && svg("line", { class: `whisker s${at}`, x1: x(point.x), x2: x(point.x), y1: y(point.whisker), y2: y(point.y) }),
          svg("circle", { class: `point s${at}`, cx: x(point.x), cy: y(point.y), r: 3.5, "data-series": at, "data-x": point.x, "data-y": point.y }, svg("title", {}, visible(`${one.label}: ${figure(point.y)} at ${figure(point.x)}`))),
        ]),
      ]),
    ]);
  });
}

function band(series, at, x, y) {
  const points = series.points.filter((point) => point.low !== undefined);
  if (points.length === 0) return null;
  const upper = points.map((point) => `${x(point.x).toFixed(1)},${y(point.high).toFixed(1)}`);
  const lower = points.map((point) => `${x(point.x).toFixed(1)},${y(point.low).toFixed(1)}`).reverse();
  return svg("polygon", { class: `band s${at}`, points: [...upper, ...lower].join(" ") });
}

function canvas(width, height, title, children) {
  return svg("svg", { role: "img", "aria-label": `${title}. The figures are in the table below.`, width, height, viewBox: `0 0 ${width} ${height}` }, children);
}

function axes(box, xTicks, x, yTicks, y, xLabel, yLabel) {
  return svg(
    "g",
    { class: "axes" },
    yTicks.map((tick) => [
      svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }),
      svg("text", { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end" }, figure(tick)),
    ]),
    xTicks.map((tick) => svg("text", { x: x(tick), y: box.bottom + 17, "text-anchor": "middle" }, figure(tick))),
    svg("text", { class: "axis-label", x: (box.left + box.right) / 2, y: box.bottom + 36, "text-anchor": "middle" }, xLabel),
    svg("text", { class: "axis-label", x: 12, y: (box.top + box.bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(box.top + box.bottom) / 2})` }, yLabel),
  );
}

/** The number of rows that are drawn; the table has all. */
const MAX_ROWS = 24;

/** Rows of values on one axis: bars (`value`), dots with intervals (`low`, `high`), or points. */
export function rowChart({ id, title, meaning, xLabel, xMax, rows, table, format }) {
  const shown = rows.slice(0, MAX_ROWS);
  const note = rows.length > shown.length ? `The first ${MAX_ROWS} of ${rows.length} rows are drawn; the table has all.` : "";
  const write = format ?? figure;
  return frame({ id, title, meaning, table, note }, (width) => {
    const box = { left: 10, right: width - 14, top: 4 };
    const step = LABEL_HEIGHT + 20;
    const bottom = box.top + shown.length * step;
    const most = xMax ?? Math.max(...shown.flatMap((row) => row.points ?? [row.high ?? row.value]));
    const list = ticks(most, Math.max(2, Math.min(6, Math.floor(width / 90))));
    const end = list[list.length - 1];
    const x = (value) => box.left + ((box.right - box.left) * Math.min(value, end)) / end;
    return canvas(width, bottom + 44, title, [
      svg(
        "g",
        { class: "axes" },
        list.map((tick) => [
          svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: box.top, y2: bottom }),
          svg("text", { x: x(tick), y: bottom + 16, "text-anchor": tick === 0 ? "start" : tick === end ? "end" : "middle" }, write(tick)),
        ]),
        svg("text", { class: "axis-label", x: (box.left + box.right) / 2, y: bottom + 36, "text-anchor": "middle" }, xLabel),
      ),
      shown.map((row, at) => rowMarks(row, at, box.top + at * step, x, width, write)),
    ]);
  });
}

function rowMarks(row, at, top, x, width, write) {
  const middle = top + LABEL_HEIGHT + 5;
  const room = Math.max(8, Math.floor((width - 90) / 6.6));
  const name = clip(row.label, room);
  const marks = [
    svg("text", { class: "row-label", x: 10, y: top + 16 }, visible(name), svg("title", {}, visible(row.label))),
    svg("text", { class: "row-value", x: width - 14, y: top + 16, "text-anchor": "end" }, row.words ?? write(row.value)),
  ];
  const points = row.points ?? [];
  if (points.length > 0) {
    for (const point of points.slice(0, 400)) {
      marks.push(svg("circle", { class: "strip-point s0", cx: x(point), cy: middle, r: 4, "data-row": at, "data-value": point }));
    }
    marks.push(svg("line", { class: "median", x1: x(row.value), x2: x(row.value), y1: middle - 8, y2: middle + 8 }));
  } else if (row.low !== undefined) {
    marks.push(
      svg("line", { class: "interval s0", x1: x(row.low), x2: x(row.high), y1: middle, y2: middle }),
      svg("circle", { class: "point s0", cx: x(row.value), cy: middle, r: 5, "data-row": at, "data-value": row.value, "data-low": row.low, "data-high": row.high }),
    );
  } else {
    marks.push(
      svg("rect", { class: "bar-track", x: x(0), y: middle - 4, width: width - 24, height: 8, rx: 4 }),
      svg("rect", { class: "bar-fill", x: x(0), y: middle - 4, width: Math.max(2, x(row.value) - x(0)), height: 8, rx: 4, "data-row": at, "data-value": row.value }),
    );
  }
  return svg("g", {}, marks);
}

/** Rows with two bars on one axis: the value before and the value after. */
export function pairChart({ id, title, meaning, xLabel, xMax, rows, table, format }) {
  const shown = rows.slice(0, MAX_ROWS);
  const note = rows.length > shown.length ? `The first ${MAX_ROWS} of ${rows.length} rows are drawn; the table has all.` : "";
  const sample = (name) => svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("rect", { class: name, x: 1, y: 1, width: 24, height: 8, rx: 2 }));
  const legend = el("ul", { class: "legend" }, el("li", {}, sample("bar-before"), "before"), el("li", {}, sample("bar-after"), "after"));
  return frame({ id, title, meaning, table, legend, note }, (width) => {
    const box = { left: 10, right: width - 14, top: 4 };
    const step = LABEL_HEIGHT + 32;
    const bottom = box.top + shown.length * step;
    const most = xMax ?? Math.max(...shown.flatMap((row) => [row.old, row.new]));
    const list = ticks(most, Math.max(2, Math.min(6, Math.floor(width / 90))));
    const end = list[list.length - 1];
    const x = (value) => box.left + ((box.right - box.left) * Math.min(value, end)) / end;
    const bar = (name, value, top, at) =>
      svg("rect", { class: name, x: x(0), y: top, width: Math.max(2, x(value) - x(0)), height: 9, rx: 2, "data-row": at, "data-value": value });
    return canvas(width, bottom + 44, title, [
      svg(
        "g",
        { class: "axes" },
        list.map((tick) => [
          svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: box.top, y2: bottom }),
          svg("text", { x: x(tick), y: bottom + 16, "text-anchor": tick === 0 ? "start" : tick === end ? "end" : "middle" }, format(tick)),
        ]),
        svg("text", { class: "axis-label", x: (box.left + box.right) / 2, y: bottom + 36, "text-anchor": "middle" }, xLabel),
      ),
      shown.map((row, at) => {
        const top = box.top + at * step;
        const value = `${format(row.old)} → ${format(row.new)}`;
        const room = Math.max(8, Math.floor((width - 40 - value.length * 7) / 6.6));
        const name = clip(row.label, room);
        return svg(
          "g",
          {},
          svg("text", { class: "row-label", x: 10, y: top + 16 }, visible(name), svg("title", {}, visible(`${row.label}: ${row.words}`))),
          svg("text", { class: row.significant ? "row-value strong" : "row-value", x: width - 14, y: top + 16, "text-anchor": "end" }, value),
          bar("bar-before", row.old, top + LABEL_HEIGHT, at),
          bar("bar-after", row.new, top + LABEL_HEIGHT + 11, at),
        );
      }),
    ]);
  });
}
