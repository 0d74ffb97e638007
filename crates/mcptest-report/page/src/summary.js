// The summary: the verdict, what failed and how badly, and the figures of the whole.

import { compact, count, counted, dollars, duration, el, foreign } from "./dom.js";
import { VERDICTS } from "./data.js";
import { runStrip, verdictMark } from "./marks.js";

/** The number of tests that did not pass in the summary; the list below has all. */
const MAX_WORST = 6;
const ORDER = ["fail", "error", "no_evidence", "undecided", "running", "pass"];
const PHRASES = {
  pass: "passed",
  fail: "failed",
  error: "could not be judged",
  no_evidence: "had no evidence",
  undecided: "interrupted",
  running: "still running",
};

/** Shows the summary of a report. `open` opens a test. */
export function showSummary(place, head, open) {
  const counts = Object.fromEntries(ORDER.map((name) => [name, 0]));
  for (const test of head.tests) counts[test.shown] += 1;
  const verdict = head.shown;
  const parts = [
    el(
      "div",
      { class: `hero ${verdict}` },
      el("span", { class: "glyph", "aria-hidden": "true" }, VERDICTS[verdict].symbol),
      el(
        "div",
        {},
        el("h1", { id: "verdict" }, VERDICTS[verdict].word),
        el("p", { class: "lead" }, sentence(head, counts)),
      ),
    ),
    figures(head, counts),
    proportions(counts, head.tests.length),
    worst(head, open),
    notices(head),
  ];
  place.replaceChildren(...parts.flat().filter(Boolean));
}

/** One sentence with the counts, the gravest first. */
function sentence(head, counts) {
  const total = head.tests.length;
  if (total === 0) return "No test has run.";
  if (counts.pass === total) {
    return total === 1 ? "The only test passed." : `All ${count(total)} tests passed.`;
  }
  const parts = ORDER.filter((name) => counts[name] > 0 && name !== "pass").map((name, at) =>
    at === 0 ? `${count(counts[name])} of ${counted(total, "test")} ${PHRASES[name]}` : `${count(counts[name])} ${PHRASES[name]}`,
  );
  return `${parts.join(", ")}.`;
}

function figures(head, counts) {
  const tests = head.tests;
  const total = (pick) => tests.reduce((all, test) => all + (pick(test) ?? 0), 0);
  const runs = total((test) => test.runCount);
  const flaky = tests.filter((test) => test.flaky).length;
  const entries = [
    ["Tests", `${count(counts.pass)} / ${count(tests.length)}`, "passed"],
    runs > 0 && ["Runs", `${count(total((test) => test.passed))} / ${count(runs)}`, "passed"],
    flaky > 0 && ["Flaky", count(flaky), "passed some runs"],
    head.duration_ms !== null && ["Duration", duration(head.duration_ms), "in all"],
    spend(head, total((test) => test.tokens)),
  ];
  return el(
    "dl",
    { class: "figures" },
    entries
      .filter(Boolean)
      .map(([name, value, note]) =>
        el("div", {}, el("dt", {}, name), el("dd", {}, el("strong", {}, value), " ", el("span", {}, note))),
      ),
  );
}

function spend(head, tokens) {
  const spent = head.spend;
  const known = [spent?.input_tokens, spent?.output_tokens].filter((it) => it !== null && it !== undefined);
  const all = known.length ? known.reduce((sum, one) => sum + one, 0) : tokens;
  if (spent?.usd !== null && spent?.usd !== undefined) {
    // A replay spends nothing: the figure is what the recording cost.
    return [head.replayed ? "Recording" : "Spend", dollars(spent.usd), all ? `${compact(all)} tokens` : "for models"];
  }
  return all ? ["Tokens", compact(all), "in all runs"] : null;
}

/** One bar: the shares of the verdicts. */
function proportions(counts, total) {
  if (total === 0) return null;
  const names = ["pass", "fail", "error", "no_evidence", "undecided", "running"].filter((name) => counts[name] > 0);
  const bar = el("div", { class: "proportions", "aria-hidden": "true" });
  for (const name of names) {
    const part = el("span", { class: name });
    part.style.flexGrow = counts[name];
    bar.append(part);
  }
  const key = names.map((name) =>
    el("li", {}, verdictMark(name, false), ` ${count(counts[name])} ${VERDICTS[name].word.toLowerCase()}`),
  );
  return el("div", {}, bar, el("ul", { class: "key" }, key));
}

/** The share of runs that did not pass; a test without runs failed as a whole. */
function badness(test) {
  const share = test.runCount ? test.failedRuns / test.runCount : 1;
  return share + (test.verdict === "error" ? 2 : test.verdict === "fail" ? 1 : 0);
}

function worst(head, open) {
  const bad = head.tests.filter((test) => test.verdict !== "pass" && test.shown !== "running");
  if (bad.length === 0) return null;
  const first = bad.sort((one, other) => badness(other) - badness(one) || one.at - other.at).slice(0, MAX_WORST);
  const rows = first.map((test) =>
    el(
      "li",
      {},
      el(
        "button",
        { type: "button", class: "worst", onclick: () => open(test) },
        verdictMark(test.shown),
        el(
          "span",
          { class: "worst-text" },
          foreign("span", { class: "worst-name" }, test.title),
          test.reasons.length > 0 && foreign("span", { class: "reason" }, test.reasons[0]),
        ),
        el(
          "span",
          { class: "worst-runs" },
          test.runCount > 0 && runStrip(test),
          el("span", { class: "small" }, howBad(test)),
        ),
      ),
    ),
  );
  return el(
    "div",
    { class: "worst-box" },
    el("h2", {}, "What did not pass"),
    el("ol", { class: "worst-list" }, rows),
    bad.length > first.length &&
      el("p", { class: "small" }, `and ${counted(bad.length - first.length, "more test")}, in the list below`),
  );
}

function howBad(test) {
  if (test.shown === "undecided") return "interrupted";
  if (test.runCount > 1 && test.failedRuns > 0) return `${count(test.failedRuns)} of ${counted(test.runCount, "run")} did not pass`;
  const gates = test.gates.filter(([, verdict]) => verdict !== "pass").map(([block]) => block);
  return gates.length ? `${gates.length > 1 ? "gates" : "gate"} ${gates.join(", ")}` : VERDICTS[test.shown].word.toLowerCase();
}

function notices(head) {
  const list = [];
  if (head.interrupted && !head.running) list.push("The run was interrupted: only finished runs are here.");
  if (head.not_run.length && !head.running) {
    list.push(`${counted(head.not_run.length, "test")} did not run: ${head.not_run.slice(0, 5).map((id) => id.name).join(", ")}${head.not_run.length > 5 ? ", …" : ""}`);
  }
  if (head.broken_lines) list.push(`${counted(head.broken_lines.count, "line")} of the trace files could not be read.`);
  if (head.shard) list.push(`Shard ${head.shard.number} of ${head.shard.of}: other shards have the other tests.`);
  return list.map((text) => foreign("p", { class: "notice" }, text));
}
