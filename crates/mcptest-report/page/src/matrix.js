// Tests by models: a verdict and a figure in each cell.

import { counted, el, foreign } from "./dom.js";
import { verdictMark } from "./marks.js";

/** The number of rows that are shown at once. */
const MAX_ROWS = 30;

/** Shows the matrix, if tests were run with several models. */
export function showMatrix(place, head, open) {
  const models = [];
  const rows = new Map();
  for (const test of head.tests) {
    if (test.kind !== "agent" || !test.model) continue;
    if (!models.includes(test.model)) models.push(test.model);
    const key = `${test.suite}\n${test.name}`;
    if (!rows.has(key)) rows.set(key, new Map());
    rows.get(key).set(test.model, test);
  }
  const compared = [...rows.values()].filter((cells) => cells.size > 1);
  place.hidden = compared.length === 0;
  if (place.hidden) return;
  const body = el("tbody");
  const add = (list) => list.forEach((cells) => body.append(row(cells, models, open)));
  add(compared.slice(0, MAX_ROWS));
  const rest = compared.slice(MAX_ROWS);
  const more = el("button", { type: "button", class: "more" }, `Show ${counted(rest.length, "more test")}`);
  more.addEventListener("click", () => {
    add(rest);
    more.remove();
  });
  const totals = models.map((model) => {
    const tests = compared.map((cells) => cells.get(model)).filter(Boolean);
    return el("td", {}, `${tests.filter((test) => test.verdict === "pass").length} / ${tests.length}`);
  });
  place.replaceChildren(
    el("h2", { id: "matrix-title" }, "Tests by model"),
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of tests by model" },
      el(
        "table",
        { class: "matrix" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, "Test"),
            models.map((model) => foreign("th", { scope: "col" }, model)),
          ),
        ),
        body,
        el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, "Passed"), totals)),
      ),
    ),
    rest.length > 0 ? more : "",
  );
}

function row(cells, models, open) {
  const [first] = cells.values();
  return el(
    "tr",
    {},
    foreign("th", { scope: "row" }, first.name),
    models.map((model) => {
      const test = cells.get(model);
      if (!test) return el("td", { class: "absent" }, el("span", { class: "offscreen" }, "not run"));
      return el(
        "td",
        {},
        el(
          "button",
          { type: "button", class: `cell ${test.shown}`, onclick: () => open(test) },
          verdictMark(test.shown),
          ` ${figureOf(test)}`,
          el("span", { class: "offscreen" }, ` with ${model}`),
        ),
      );
    }),
  );
}

function figureOf(test) {
  const rate = test.plots.selection;
  if (rate) return `${Math.floor((100 * rate.selected) / rate.runs)} %`;
  return `${test.passed}/${test.runCount}`;
}
