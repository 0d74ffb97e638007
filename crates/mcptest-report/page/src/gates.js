// Gates: every figure with its bound and range, and what it means.

import { dollars, duration, el, figure, foreign, lazy, svg } from "./dom.js";
import { failedAssertion } from "./assertion.js";
import { jsonBlock, jsonLine, matcherText } from "./json.js";
import { verdictMark } from "./marks.js";

/** The cards of a test's gates. `meanings` are the words of the program. */
export function gateCards(gates, meanings) {
  return gates.map((gate) => card(gate, meanings.find((meaning) => meaning.block === gate.block)));
}

function card(gate, meaning) {
  const failed = gate.assertions.filter((one) => !one.passed && !one.skipped);
  // A bound shows why a figure failed; other matchers need their own words.
  const rest = failed.filter((one) => !bound(one.matcher) && gate.values[one.target] === undefined);
  return el(
    "article",
    { class: `gate ${gate.verdict}` },
    el("h5", {}, verdictMark(gate.verdict), foreign("code", {}, gate.block)),
    meaning && el("p", { class: "meaning" }, meaning.meaning),
    foreign("p", { class: "gate-summary" }, gate.no_evidence ?? gate.summary),
    figureTable(gate, meaning),
    rest.map(failedAssertion),
    lines("Findings", gate.findings, gate.more_findings),
    lines("Other cases", gate.notes),
    lines("Judged by a model, advisory", gate.advisories),
    gate.detail && Object.keys(gate.detail).length > 0 && lazy("The facts behind the figures", () => jsonBlock(gate.detail)),
  );
}

function lines(title, texts, more) {
  if (!texts?.length) return null;
  return el(
    "div",
    { class: "findings" },
    el("p", { class: "part-title" }, title),
    el("ul", {}, texts.map((text) => foreign("li", {}, text)), more > 0 && el("li", {}, `and ${more} more`)),
  );
}

/** The figures that are asserted come first, the others follow in their order. */
function figureTable(gate, meaning) {
  const asserted = (name) => gate.assertions.filter((one) => one.target === name || one.target.startsWith(`${name}[`));
  const names = Object.keys(gate.values);
  if (names.length === 0) return null;
  const sorted = [...names.filter((name) => asserted(name).length), ...names.filter((name) => !asserted(name).length)];
  return el(
    "div",
    { class: "scroll" },
    el(
      "table",
      { class: "values" },
      el(
        "thead",
        {},
        el("tr", {}, ["Figure", "Value", "Bound", "Range", "Meaning"].map((name) => el("th", { scope: "col" }, name))),
      ),
      el(
        "tbody",
        {},
        sorted.map((name) => {
          const target = meaning?.targets.find((one) => one.name === name);
          return row(name, gate.values[name], asserted(name), target);
        }),
      ),
    ),
  );
}

function row(name, value, assertions, target) {
  const failed = assertions.some((one) => !one.passed && !one.skipped);
  return el(
    "tr",
    { class: failed ? "failed" : assertions.length ? "asserted" : "" },
    el("th", { scope: "row" }, foreign("code", {}, name)),
    el(
      "td",
      { class: "number" },
      failed && el("span", { class: "offscreen" }, "failed: "),
      foreign("span", {}, shown(value, target?.unit)),
    ),
    el(
      "td",
      {},
      assertions.map((one) =>
        foreign("span", { class: "bound" }, (one.target === name ? "" : `${one.target.slice(name.length)} `) + matcherText(one.matcher)),
      ),
    ),
    el("td", { class: "range" }, range(value, assertions, target)),
    el("td", { class: "doc" }, target?.doc ?? ""),
  );
}

function shown(value, unit) {
  if (value === null || value === undefined) return "none";
  if (typeof value !== "number") return jsonLine(value);
  if (unit === "percent") return `${figure(value)} %`;
  if (unit === "dollars") return dollars(value);
  if (unit === "milliseconds") return duration(value);
  if (unit === "flag") return value === 1 ? "yes" : "no";
  return figure(value);
}

/** The number of a matcher that is a single bound. */
function bound(matcher) {
  const entries = Object.entries(matcher ?? {});
  const [rule, limit] = entries[0] ?? [];
  return entries.length === 1 && [">=", ">", "<=", "<", "==", "exact"].includes(rule) && typeof limit === "number"
    ? { rule, limit }
    : null;
}

const WIDTH = 96;

/** The range as a line, with the figure as a dot and the bound as a tick; open ends in words. */
function range(value, assertions, target) {
  const [least, greatest] = target?.range ?? [null, null];
  if (least === null || least === undefined) return "";
  if (greatest === null) return `${least} or more`;
  if (target.unit === "flag") return "no or yes";
  const place = (number) => 5 + ((WIDTH - 10) * (Math.min(greatest, Math.max(least, number)) - least)) / (greatest - least);
  const bounds = assertions.filter((one) => one.target === target.name).map((one) => bound(one.matcher)).filter(Boolean);
  const words = `${least} to ${greatest}`;
  const parts = [svg("line", { class: "rail", x1: 5, x2: WIDTH - 5, y1: 9, y2: 9 })];
  for (const { rule, limit } of bounds) {
    const good = rule.startsWith(">") ? [place(limit), WIDTH - 5] : rule.startsWith("<") ? [5, place(limit)] : null;
    if (good) parts.push(svg("line", { class: "good", x1: good[0], x2: good[1], y1: 9, y2: 9 }));
    parts.push(svg("line", { class: "limit", x1: place(limit), x2: place(limit), y1: 3, y2: 15 }));
  }
  if (typeof value === "number") parts.push(svg("circle", { class: "dot", cx: place(value), cy: 9, r: 4 }));
  return [
    svg("svg", { class: "gauge", width: WIDTH, height: 18, viewBox: `0 0 ${WIDTH} 18`, "aria-hidden": "true" }, parts),
    el("span", { class: "offscreen" }, words),
    el("span", { class: "ends", "aria-hidden": "true" }, `${least}–${greatest}`),
  ];
}
