// The plots of a report or of one test.

import { compact, dollars, el, figure } from "./dom.js";
import { lineChart, rowChart } from "./charts.js";

/** The plots of some tests; those without points are left out. */
export function plotsOf(tests) {
  return [distractors(tests), decay(tests), selection(tests), tokens(tests), cost(tests), stability(tests), catalog(tests)].filter(Boolean);
}

/** Shows the plots of all tests, made when they come into view. */
export function showPlots(place, head) {
  const plots = plotsOf(head.tests);
  place.hidden = plots.length === 0;
  if (place.hidden) return;
  place.replaceChildren(el("h2", { id: "plots-title" }, "Plots"), el("div", { class: "plots" }, plots));
}

function distractors(tests) {
  const series = tests
    .filter((test) => test.plots.distractors?.some((point) => point.count !== null))
    .map((test) => ({
      label: test.title,
      points: test.plots.distractors.filter((point) => point.count !== null).map((point) => ({ x: point.count, y: point.accuracy, whisker: point.certified_lower ?? undefined, runs: point.runs })),
    }));
  if (series.length === 0) return null;
  return lineChart({
    id: "distractors",
    title: "Accuracy against distractors",
    meaning: "The share of right choices among more and more tools that do not help. The whisker goes down to the certified bound of successful runs.",
    xLabel: "injected distractors",
    yLabel: "accuracy, %",
    yMax: 100,
    integerX: true,
    series,
    table: {
      heads: ["Test", "Distractors", "Accuracy, %", "Certified, %", "Runs"],
      rows: series.flatMap((one) => one.points.map((point) => [one.label, point.x, point.y, point.whisker, point.runs])),
    },
  });
}

function decay(tests) {
  const series = tests
    .filter((test) => test.plots.decay)
    .map((test) => {
      const { values, pass_rates: rates } = test.plots.decay;
      const points = values.map((value, at) => {
        const [k, rate] = [at + 1, rates?.[at]];
        return rate ? { x: k, y: value, low: 100 * rate.lower ** k, high: 100 * rate.upper ** k } : { x: k, y: value };
      });
      return { label: test.title, points };
    });
  if (series.length === 0) return null;
  return lineChart({
    id: "decay",
    title: "pass^k decay",
    meaning: "The chance that k runs in a row all pass, from the first k runs. The band is the 95 % interval of their pass rate (Wilson), to the power of k.",
    xLabel: "k",
    yLabel: "pass^k, %",
    yMax: 100,
    integerX: true,
    series,
    table: {
      heads: ["Test", "k", "pass^k, %", "Lower, %", "Upper, %"],
      rows: series.flatMap((one) => one.points.map((point) => [one.label, point.x, point.y, point.low, point.high])),
    },
  });
}

function selection(tests) {
  const rows = tests
    .filter((test) => test.plots.selection)
    .map((test) => {
      const { selected, runs, lower, upper } = test.plots.selection;
      return { label: test.title, value: (100 * selected) / runs, low: 100 * lower, high: 100 * upper, words: `${selected} of ${runs}` };
    });
  if (rows.length === 0) return null;
  return rowChart({
    id: "selection",
    title: "Selection rate",
    meaning: "How often the expected tool was selected, with its 95 % interval (Wilson). A wide interval asks for more runs.",
    xLabel: "runs that selected the tool, %",
    xMax: 100,
    rows,
    table: { heads: ["Test", "Selected", "Rate, %", "Lower, %", "Upper, %"], rows: rows.map((row) => [row.label, row.words, row.value, row.low, row.high]) },
  });
}

function median(numbers) {
  const sorted = [...numbers].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function tokens(tests) {
  const rows = tests
    .map((test) => ({ label: test.title, points: (test.runs.tokens ?? []).filter((number) => number !== null) }))
    .filter((row) => row.points.length > 0)
    .map((row) => ({ ...row, value: median(row.points), words: `${compact(median(row.points))} median` }));
  if (rows.length === 0) return null;
  // The most expensive tests first: with many tests, those are the ones to look at.
  rows.sort((one, other) => other.value - one.value);
  return rowChart({
    id: "tokens",
    title: "Tokens per run",
    meaning: "Each dot is a run; the line is the median. The tests with the most tokens come first.",
    xLabel: "tokens",
    rows,
    format: compact,
    table: { heads: ["Test", "Runs", "Median", "Least", "Most"], rows: rows.map((row) => [row.label, row.points.length, row.value, Math.min(...row.points), Math.max(...row.points)]) },
  });
}

function cost(tests) {
  const rows = tests
    .filter((test) => test.spend?.usd && test.runCount > 0)
    .map((test) => ({ label: test.title, value: test.spend.usd / test.runCount, total: test.spend.usd, runs: test.runCount }));
  if (rows.length === 0) return null;
  rows.sort((one, other) => other.value - one.value);
  return rowChart({
    id: "cost",
    title: "Cost per run",
    meaning: "The mean price of a run, judges included. The most expensive tests come first.",
    xLabel: "US dollars per run",
    rows,
    format: dollars,
    table: { heads: ["Test", "Mean, $", "In all, $", "Runs"], rows: rows.map((row) => [row.label, dollars(row.value), dollars(row.total), row.runs]) },
  });
}

function stability(tests) {
  const found = tests.filter((test) => test.plots.stability);
  if (found.length === 0) return null;
  const rows = found.flatMap((test) =>
    test.plots.stability.map(([name, value]) => ({ label: found.length > 1 ? `${name}: ${test.title}` : name, value })),
  );
  return rowChart({
    id: "stability",
    title: "Stability",
    meaning: "How alike the runs are, part by part: 1 means the same in every run.",
    xLabel: "score, 0 to 1",
    xMax: 1,
    rows,
    table: { heads: ["Part", "Score"], rows: rows.map((row) => [row.label, row.value]) },
  });
}

function catalog(tests) {
  const found = tests.filter((test) => test.plots.catalog);
  if (found.length === 0) return null;
  // Tests of a suite often offer the same tools: each tool is one row.
  const tools = new Map();
  for (const test of found) for (const [tool, number] of test.plots.catalog) tools.set(tool, Math.max(number, tools.get(tool) ?? 0));
  const rows = [...tools].map(([label, value]) => ({ label, value })).sort((one, other) => other.value - one.value);
  return rowChart({
    id: "catalog",
    title: "Catalog tokens by tool",
    meaning: "What each offered tool costs in every request: its name, description and input schema (cl100k_base).",
    xLabel: "tokens",
    rows,
    format: (value) => figure(Math.round(value)),
    table: { heads: ["Tool", "Tokens"], rows: rows.map((row) => [row.label, row.value]) },
  });
}
