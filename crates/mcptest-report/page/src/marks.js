// Small marks that several parts of the page use.

import { el } from "./dom.js";
import { VERDICTS, runVerdict } from "./data.js";

/** A verdict as a symbol in a coloured box, with its word for those who do not see it. */
export function verdictMark(verdict, spoken = true) {
  const { symbol, word } = VERDICTS[verdict];
  return el(
    "span",
    { class: `verdict ${verdict}` },
    el("span", { "aria-hidden": "true" }, symbol),
    spoken && el("span", { class: "offscreen" }, word),
  );
}

/** More runs than this are shown as shares. */
const MAX_CELLS = 40;

/** The verdicts of a test's runs as a strip of small cells, or as shares if there are many. */
export function runStrip(test) {
  const strip = el("span", {
    class: "strip",
    role: "img",
    "aria-label": `${test.passed} of ${test.runCount} runs passed`,
  });
  const cells = test.runs.verdicts.length;
  const stops = [];
  if (cells > 0 && cells <= MAX_CELLS) {
    strip.style.width = `${cells * 8 - 2}px`;
    for (let at = 0; at < cells; at += 1) {
      const [from, to] = [at * 8, at * 8 + 6];
      stops.push(`var(--${runVerdict(test, at)}) ${from}px ${to}px`, `transparent ${to}px ${to + 2}px`);
    }
  } else {
    strip.style.width = "96px";
    const share = (100 * test.passed) / Math.max(1, test.runCount);
    stops.push(`var(--pass) 0 ${share}%`, `var(--fail) ${share}% 100%`);
  }
  strip.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
  return strip;
}
