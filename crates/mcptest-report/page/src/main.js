// The start of the page.

import { el, moveTo } from "./dom.js";
import { showComparison } from "./comparison.js";
import { embedded, readHead } from "./data.js";
import { follow } from "./live.js";
import { showMatrix } from "./matrix.js";
import { showPlots } from "./plots.js";
import { showSummary } from "./summary.js";
import { TestList } from "./tests.js";
import { startTheme } from "./theme.js";
import { showTrend } from "./trend.js";

const place = (id) => document.getElementById(id);

let list;

/** Shows a report. */
function show(head, source) {
  const suites = [...new Set(head.tests.map((test) => test.suite))];
  place("suite").textContent = suites.length > 2 ? `${suites.length} suites` : suites.join(", ");
  document.title = `${head.running ? "… " : ""}${place("suite").textContent || "mcptest"} – report`;
  if (list) list.update(head, source);
  else list = new TestList(place("tests"), head, source);
  const open = (test) => list.open(test);
  showSummary(place("summary"), head, open);
  showComparison(place("comparison"), head, open);
  showMatrix(place("matrix"), head, open);
  showPlots(place("plots"), head);
  showParts();
  showFoot(`mcptest ${head.mcptest}. This page needs no network. Times and intervals are those of the report; intervals are at 95 %.`);
}

/** Shows the figures of several reports over time. */
function showTrendPage(data) {
  place("suite").textContent = "trend";
  document.title = "mcptest – trend";
  place("tests").hidden = true;
  place("skip").setAttribute("href", "#trend");
  place("skip").textContent = "Skip to the charts";
  showTrend(place("summary"), place("trend"), data.trend);
  showFoot(`mcptest ${data.mcptest}. This page needs no network.`);
}

function showFoot(text) {
  place("foot").replaceChildren(el("p", {}, text));
  document.body.dataset.ready = "true";
}

/** Buttons that move to the parts of the page. Links would replace the filters in the address. */
function showParts() {
  const parts = [["comparison", "Comparison"], ["matrix", "Models"], ["plots", "Plots"], ["tests", "Tests"]].filter(([id]) => !place(id).hidden);
  place("parts").replaceChildren(
    ...parts.map(([id, word]) =>
      el("button", { type: "button", onclick: () => moveTo(place(id)) }, word),
    ),
  );
}

startTheme(place("theme"));
const data = JSON.parse(place("head").textContent);
if (data.live) follow(data.live, place("live"), show);
else if (data.trend && !data.tests) showTrendPage(data);
else show(readHead(data), embedded(document));
