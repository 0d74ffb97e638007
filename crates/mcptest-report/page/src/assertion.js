// Assertions: what was expected, what was found, and where they differ.

import { el, foreign } from "./dom.js";
import { jsonLine, lineDiff, matcherText } from "./json.js";

/** An assertion that does not hold, with its difference. */
export function failedAssertion(assertion) {
  return el(
    "div",
    { class: "assertion" },
    el(
      "p",
      { class: "assertion-head" },
      el("span", { class: "chip fail" }, "Expectation failed"),
      " ",
      foreign("code", {}, assertion.target),
      assertion.judged && el("span", { class: "chip" }, "judged by a model"),
      assertion.default && el("span", { class: "chip" }, "the default"),
    ),
    difference(assertion),
    assertion.reason && assertion.reason !== "the values differ" && foreign("p", { class: "because" }, assertion.reason),
  );
}

function difference(assertion) {
  const places = assertion.diff ?? [];
  if (places.length === 0) {
    return diffBlock([
      ["-", matcherText(assertion.matcher)],
      ["+", jsonLine(assertion.actual)],
    ]);
  }
  return places.map((place) => {
    const texts = typeof place.expected === "string" && typeof place.actual === "string";
    const lines =
      texts && /\n/.test(place.expected + place.actual)
        ? lineDiff(place.expected, place.actual)
        : [
            ["-", jsonLine(place.expected)],
            ["+", jsonLine(place.actual)],
          ];
    return [place.pointer !== "" && el("p", { class: "at" }, "at ", foreign("code", {}, place.pointer)), diffBlock(lines)];
  });
}

const SIDES = { "-": ["expected", "del"], "+": ["actual", "ins"], " ": ["", "span"] };

function diffBlock(lines) {
  return el(
    "div",
    { class: "diff", role: "group", "aria-label": "Expected and actual" },
    lines.map(([side, text]) => {
      const [word, element] = SIDES[side];
      return el(
        "div",
        { class: `line ${word}` },
        el("span", { class: "side" }, word === "" ? "" : word),
        foreign(element, {}, text),
      );
    }),
  );
}

/** Assertions that hold or were skipped, in one line each. */
export function otherAssertions(assertions) {
  if (assertions.length === 0) return null;
  return el(
    "ul",
    { class: "held" },
    assertions.map((assertion) =>
      el(
        "li",
        {},
        el("span", { class: `verdict ${assertion.skipped ? "no_evidence" : "pass"}` }, assertion.skipped ? "–" : "✓"),
        " ",
        foreign("code", {}, assertion.target),
        " ",
        foreign("span", { class: "small" }, assertion.skipped ? `skipped: ${assertion.skipped}` : matcherText(assertion.matcher)),
      ),
    ),
  );
}
