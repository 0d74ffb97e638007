// The trend of several reports: figures over time, and the tests that change their verdict.

import { compact, count, counted, dollars, el, figure, foreign } from "./dom.js";
import { VERDICTS } from "./data.js";
import { lineChart, roundMax } from "./charts.js";

/** The number of flaky tests in the table; `--reporter json` has all. */
const MAX_FLAKY = 50;

const percent = (share) => `${figure(Math.round(share * 1000) / 10)} %`;

/** Shows a page that has a trend and no report. */
export function showTrend(summary, place, trend) {
  const last = trend.points.at(-1);
  place.hidden = !last;
  summary.replaceChildren(
    el(
      "div",
      { class: "hero running" },
      el("span", { class: "glyph", "aria-hidden": "true" }, "↗"),
      el(
        "div",
        {},
        el("h1", { id: "verdict" }, "Trend"),
        last ? foreign("p", { class: "lead" }, span(trend)) : el("p", { class: "lead" }, "No reports."),
      ),
    ),
    ...(last ? [figures(trend)] : []),
    ...(trend.same_tests ? [] : [el("p", { class: "notice" }, "Not all reports have the same tests: figures may differ because of that.")]),
  );
  if (!last) return;
  place.replaceChildren(el("h2", { id: "trend-title" }, "Over time"), el("div", { class: "plots" }, charts(trend.points)), ...flaky(trend));
}

function span(trend) {
  const [first, last] = [trend.points[0], trend.points.at(-1)];
  const names = first === last ? first.name : `${first.name} to ${last.name}`;
  return `${counted(trend.points.length, "report")}: ${names}`;
}

/** The figures of the last report, with the change since the one before. */
function figures(trend) {
  const [before, last] = [trend.points.at(-2), trend.points.at(-1)];
  const entry = (name, key, write) => {
    if (last[key] === null) return null;
    const old = before?.[key] ?? null;
    const change = old === null ? "in the last report" : old === last[key] ? "as before" : `before: ${write(old)}`;
    return el("div", {}, el("dt", {}, name), el("dd", {}, el("strong", {}, write(last[key])), " ", el("span", {}, change)));
  };
  return el("dl", { class: "figures" }, [
    entry("Tests passed", "pass_rate", percent),
    entry("Runs passed", "run_pass_rate", percent),
    entry("Selection F1", "f1", figure),
    entry("Flaky tests", "flakiness", percent),
    entry("Tokens per run", "tokens_per_run", (it) => compact(Math.round(it))),
    entry("Cost", "usd", dollars),
  ]);
}

function charts(points) {
  const series = (label, key, scale = 1) => ({
    label,
    points: points.map((point, at) => ({ x: at + 1, y: point[key] === null ? null : point[key] * scale, name: point.name })).filter((point) => point.y !== null),
  });
  const chart = (id, title, meaning, yLabel, yMax, all) => {
    const known = all.filter((one) => one.points.length > 0);
    if (known.length === 0) return null;
    const most = Math.max(...known.flatMap((one) => one.points.map((point) => point.y)));
    return lineChart({
      id,
      title,
      meaning,
      xLabel: "report",
      yLabel,
      yMax: yMax ?? roundMax(most),
      integerX: true,
      series: known,
      table: {
        heads: ["Report", "Figure", yLabel],
        rows: known.flatMap((one) => one.points.map((point) => [point.name, one.label, point.y])),
      },
    });
  };
  return [
    chart("trend-passed", "Passed", "The share of tests and of runs that passed.", "passed, %", 100, [series("tests", "pass_rate", 100), series("runs", "run_pass_rate", 100)]),
    chart("trend-f1", "Selection F1", "The mean F1 of the tests that have one.", "F1", 100, [series("F1", "f1")]),
    chart("trend-flakiness", "Flaky tests", "The share of tests with several runs of which only some passed.", "flaky, %", 100, [series("flaky", "flakiness", 100)]),
    chart("trend-tokens", "Tokens", "The mean number of tokens per run.", "tokens per run", null, [series("tokens", "tokens_per_run")]),
    chart("trend-cost", "Cost", "The cost of the models of each report.", "US dollars", null, [series("cost", "usd")]),
  ].filter(Boolean);
}

function flaky(trend) {
  if (trend.flaky.length === 0) return [el("h2", {}, "Flaky tests"), el("p", {}, "No test changed its verdict.")];
  const shown = trend.flaky.slice(0, MAX_FLAKY);
  const more = trend.flaky.length - shown.length;
  const rows = shown.map((test) =>
    el(
      "tr",
      {},
      foreign("th", { scope: "row" }, test.model ? `${test.name} [${test.model}]` : test.name),
      el("td", { class: "number" }, count(test.flips)),
      el("td", { class: "number" }, test.flip_rate === null ? "–" : percent(test.flip_rate)),
      el("td", { class: "number" }, count(test.mixed)),
      el("td", {}, course(test)),
    ),
  );
  return [
    el("h2", {}, "Flaky tests"),
    el("p", { class: "meaning" }, "A flip is a change between passed and failed from one report to the next that judged the test."),
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Flaky tests" },
      el(
        "table",
        { class: "flaky" },
        el("thead", {}, el("tr", {}, ["Test", "Flips", "Of all pairs", "Mixed reports", "Oldest to newest"].map((head, at) => el("th", { scope: "col", class: at > 0 && at < 4 && "number" }, head)))),
        el("tbody", {}, rows),
      ),
    ),
    ...(more > 0 ? [el("p", { class: "small" }, `and ${counted(more, "more test")}; the JSON form has all`)] : []),
  ];
}

/** The verdicts of a test, one mark per report. */
function course(test) {
  const words = test.verdicts.map((verdict) => (verdict ? VERDICTS[verdict].word.toLowerCase() : "missing"));
  return el(
    "span",
    { class: "course", role: "img", "aria-label": words.join(", ") },
    test.verdicts.map((verdict) => el("span", { class: verdict ?? "missing" }, verdict ? VERDICTS[verdict].symbol : "·")),
  );
}
