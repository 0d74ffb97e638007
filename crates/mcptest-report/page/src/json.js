// JSON values as readable text, and the difference between two of them.

import { el, foreign, visible } from "./dom.js";

/** Longer text is not coloured: colours cost an element each. */
const MAX_COLOURED = 6000;

/** A JSON value, indented. */
export function jsonBlock(value, attributes) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  if (text.length > MAX_COLOURED || typeof value === "string") {
    return foreign("pre", { tabindex: "0", ...attributes }, text);
  }
  const block = el("pre", { tabindex: "0", ...attributes });
  const pieces = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*|true|false|null)/g;
  let done = 0;
  for (const found of text.matchAll(pieces)) {
    block.append(text.slice(done, found.index));
    const kind = found[3] ? "num" : found[2] ? "key" : "str";
    block.append(el("span", { class: kind }, visible(found[1] ?? found[3])), found[2] ?? "");
    done = found.index + found[0].length;
  }
  block.append(text.slice(done));
  return block;
}

/** A JSON value in one line. */
export function jsonLine(value) {
  return value === undefined ? "nothing" : JSON.stringify(value);
}

/** A matcher in words: `>= 80`, `exact "search"`. */
export function matcherText(matcher) {
  if (matcher === null || typeof matcher !== "object" || Array.isArray(matcher)) return jsonLine(matcher);
  return Object.entries(matcher)
    .map(([rule, value]) => `${rule} ${jsonLine(value)}`)
    .join(" and ");
}

/** The most lines of two texts that are compared line by line. */
const MAX_LINES = 400;

/** Two texts line by line: `[" ", text]`, `["-", text]` or `["+", text]` each. */
export function lineDiff(expected, actual) {
  const [one, other] = [expected.split("\n"), actual.split("\n")];
  if (one.length + other.length > MAX_LINES) {
    return [...one.slice(0, 20).map((line) => ["-", line]), ...other.slice(0, 20).map((line) => ["+", line])];
  }
  // The length of the longest common part from each pair of lines on.
  const common = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      common[i][j] = one[i] === other[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) {
      lines.push([" ", one[i]]);
      [i, j] = [i + 1, j + 1];
    } else if (j === other.length || (i < one.length && common[i + 1][j] >= common[i][j + 1])) {
      lines.push(["-", one[i]]);
      i += 1;
    } else {
      lines.push(["+", other[j]]);
      j += 1;
    }
  }
  return lines;
}
