// The start of the page.

import { el, moveTo } from "./dom.js";
import { embedded, readHead } from "./data.js";
import { follow } from "./live.js";
import { showMatrix } from "./matrix.js";
import { showPlots } from "./plots.js";
import { showSummary } from "./summary.js";
import { TestList } from "./tests.js";
import { startTheme } from "./theme.js";

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
  showMatrix(place("matrix"), head, open);
  showPlots(place("plots"), head);
  showParts();
  place("foot").replaceChildren(
    el("p", {}, `mcptest ${head.mcptest}. This page needs no network. Times and intervals are those of the report; intervals are at 95 %.`),
  );
  document.body.dataset.ready = "true";
}

/** Buttons that move to the parts of the page. Links would replace the filters in the address. */
function showParts() {
  const parts = [["matrix", "Models"], ["plots", "Plots"], ["tests", "Tests"]].filter(([id]) => !place(id).hidden);
  place("parts").replaceChildren(
    ...parts.map(([id, word]) =>
      el("button", { type: "button", onclick: () => moveTo(place(id)) }, word),
    ),
  );
}

startTheme(place("theme"));
const data = JSON.parse(place("head").textContent);
if (data.live) follow(data.live, place("live"), show);
else show(readHead(data), embedded(document));
