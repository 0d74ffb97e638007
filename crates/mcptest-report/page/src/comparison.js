// A comparison with baselines: what changed sides, and rates and means before and after.

import { compact, counted, dollars, duration, el, figure, foreign } from "./dom.js";
import { pairChart } from "./charts.js";
import { verdictMark } from "./marks.js";

/** The number of changed tests in the list; the table of the JSON form has all. */
const MAX_CASES = 40;
const ORDER = ["regressed", "lost", "fixed", "regained", "changed", "added", "removed"];
const MEANS = {
  tokens: { title: "Tokens per run", write: (it) => compact(Math.round(it)) },
  duration_ms: { title: "Time per run", write: duration },
  usd: { title: "Cost per run", write: dollars },
};

const label = (one) => (one.name === undefined ? "all tests" : one.model ? `${one.name} [${one.model}]` : one.name);
const percent = (share) => `${figure(Math.round(share * 1000) / 10)} %`;

/** Shows a comparison; `open` opens a test of the report by its identity. */
export function showComparison(place, head, open) {
  const comparison = head.comparison;
  place.hidden = !comparison;
  if (!comparison) return;
  place.replaceChildren(
    el("h2", { id: "comparison-title" }, comparison.baselines > 1 ? `Compared with ${comparison.baselines} baselines` : "Compared with the baseline"),
    el("p", { class: "lead" }, totals(comparison.counts)),
    ...notes(comparison),
    cases(comparison, head, open),
    el("div", { class: "plots" }, [rates(comparison), ...means(comparison)].filter(Boolean)),
  );
}

function totals(counts) {
  const parts = [...ORDER, "unchanged"].filter((name) => counts[name] > 0).map((name) => `${counts[name]} ${name}`);
  const noise = counts.deterministic > 0 ? `; ${counted(counts.deterministic, "regression")} cannot be noise` : "";
  return parts.length ? `${parts.join(", ")}${noise}.` : "No tests.";
}

function notes(comparison) {
  if (comparison.population.same) return [];
  return [foreign("p", { class: "notice" }, `Not the same population: ${comparison.population.differences.join(", ")}`)];
}

function cases(comparison, head, open) {
  if (comparison.cases.length === 0) return el("p", {}, "No test differs.");
  const sorted = [...comparison.cases].sort((one, other) => ORDER.indexOf(one.change) - ORDER.indexOf(other.change));
  const rows = sorted.slice(0, MAX_CASES).map((change) => {
    const test = head.tests.find((one) => one.suite === change.suite && one.name === change.name && (one.model ?? null) === (change.model ?? null));
    const name = foreign("span", { class: "worst-name" }, label(change));
    const text = el("span", { class: "worst-text" }, name, facts(change).map((fact) => foreign("span", { class: "reason" }, fact)));
    const mark = el("span", { class: `change ${change.change}` }, change.change);
    const sides = el("span", { class: "sides" }, side(change.verdict.old), " → ", side(change.verdict.new));
    return el("li", {}, test ? el("button", { type: "button", class: "worst", onclick: () => open(test) }, mark, text, sides) : el("div", { class: "worst" }, mark, text, sides));
  });
  const more = sorted.length - rows.length;
  return el("div", {}, el("ol", { class: "worst-list" }, rows), more > 0 && el("p", { class: "small" }, `and ${counted(more, "more test")}`));
}

function side(verdict) {
  return verdict ? verdictMark(verdict) : el("span", {}, "none");
}

/** What changed, in a few lines: bounds that changed sides, then the rate with its interval. */
function facts(change) {
  const bounds = (change.gates ?? []).flatMap((gate) => (gate.bounds ?? []).map((bound) => `${bound.target} ${JSON.stringify(bound.matcher)}: ${bound.flip}`));
  const rates = (change.figures ?? []).filter((delta) => delta.statistics).map((delta) => `${delta.name}: ${words(delta.statistics)}`);
  const noise = change.nature === "deterministic" ? ["cannot be noise"] : change.nature === "noisy" ? ["may be noise"] : [];
  return [...noise, ...rates, ...bounds].slice(0, 4);
}

/** The uncertainty of a difference of rates. */
function words(statistics) {
  const points = (share) => figure(Math.round(share * 1000) / 10);
  const range = `${points(statistics.difference)} points (95 %: ${points(statistics.lower)} to ${points(statistics.upper)})`;
  if (statistics.significant) return `${range}, significant`;
  return statistics.runs_needed === null ? `${range}, not significant` : `${range}, not enough runs to tell: ${statistics.runs_needed} runs per side in all would do`;
}

function rates(comparison) {
  const share = ({ passed, runs }) => passed / runs;
  const rows = comparison.rates
    .filter((rate) => share(rate.old) !== share(rate.new))
    .map((rate) => ({
      label: `${label(rate)}${rate.rate === "floor.selection_rate" ? ": selection" : ""}`,
      old: share(rate.old),
      new: share(rate.new),
      words: words(rate.statistics),
      significant: rate.statistics.significant,
    }))
    .sort((one, other) => one.new - one.old - (other.new - other.old));
  if (rows.length === 0) return null;
  return pairChart({
    id: "comparison-rates",
    title: "Rates before and after",
    meaning: "The share of runs that passed, or that selected the tool. The tests that lost most come first; those without a change are left out.",
    xLabel: "share of runs",
    xMax: 1,
    rows,
    format: percent,
    table: {
      heads: ["Test", "Before", "After", "Difference"],
      rows: rows.map((row) => [row.label, percent(row.old), percent(row.new), row.words]),
    },
  });
}

function means(comparison) {
  return Object.entries(MEANS).map(([name, { title, write }]) => {
    const rows = comparison.means
      .filter((mean) => mean.mean === name && mean.old !== null && mean.new !== null)
      .map((mean) => ({ label: label(mean), old: mean.old, new: mean.new, words: mean.statistics.significant ? "significant" : "not significant", significant: mean.statistics.significant }))
      .sort((one, other) => Number(other.significant) - Number(one.significant) || other.new / other.old - one.new / one.old);
    if (rows.length === 0) return null;
    return pairChart({
      id: `comparison-${name}`,
      title: `${title} before and after`,
      meaning: "The means of both sides, by a bootstrap. Significant differences come first.",
      xLabel: title.toLowerCase(),
      rows,
      format: write,
      table: {
        heads: ["Test", "Before", "After", "Difference"],
        rows: rows.map((row) => [row.label, write(row.old), write(row.new), row.words]),
      },
    });
  });
}
