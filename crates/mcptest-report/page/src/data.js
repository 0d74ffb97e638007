// The data of a report: embedded in the file, or fetched from the program that serves the page.

/** The words and the symbols of verdicts. A symbol never stands without its word or a label. */
export const VERDICTS = {
  pass: { word: "Passed", symbol: "✓", letter: "P" },
  fail: { word: "Failed", symbol: "✕", letter: "F" },
  error: { word: "Error", symbol: "!", letter: "E" },
  no_evidence: { word: "No evidence", symbol: "–", letter: "N" },
  undecided: { word: "Interrupted", symbol: "…", letter: "U" },
  running: { word: "Running", symbol: "…", letter: "R" },
};

const OF_LETTER = { P: "pass", F: "fail", E: "error", N: "no_evidence" };

/** Reads the head of a report, and adds what lists and filters need of every test. */
export function readHead(head, running) {
  head.running = Boolean(running);
  head.shown = head.interrupted && head.verdict === "no_evidence" ? (running ? "running" : "undecided") : head.verdict;
  const suites = new Map();
  for (const { label, suite } of head.tests) suites.set(label, (suites.get(label) ?? new Set()).add(suite));
  head.tests.forEach((test, at) => {
    test.at = at;
    // Tests of several suites can have the same name.
    test.title = suites.get(test.label).size > 1 ? `${test.label} (${test.suite})` : test.label;
    test.tags ??= [];
    test.reasons ??= [];
    test.gates ??= [];
    test.plots ??= {};
    test.shown = test.undecided ? (running ? "running" : "undecided") : test.verdict;
    const verdicts = test.runs.verdicts;
    const totals = test.run_totals;
    test.runCount = totals?.runs ?? verdicts.length;
    test.passed = totals?.passed ?? verdicts.split("P").length - 1;
    test.failedRuns = test.runCount - test.passed;
    test.flaky = test.passed > 0 && test.failedRuns > 0;
    test.tokens = totals ? totals.tokens : sum(test.runs.tokens);
    test.words = [test.label, test.name, test.suite, test.model, ...test.tags, ...test.reasons]
      .filter(Boolean)
      .join("\n")
      .toLowerCase();
  });
  return head;
}

/** The sum of the numbers of a list that are known; `null` without any. */
function sum(numbers) {
  const known = (numbers ?? []).filter((number) => number !== null);
  return known.length ? known.reduce((all, one) => all + one, 0) : null;
}

/** The verdict of a run of a test. */
export function runVerdict(test, at) {
  return OF_LETTER[test.runs.verdicts[at]];
}

/** The number of a run, from 1. */
export function runNumber(test, at) {
  return test.runs.numbers?.[at] ?? at + 1;
}

/** The records that are embedded in a document. */
export function embedded(documentWithData) {
  const open = new Map();
  const block = (number) => {
    if (!open.has(number)) {
      const element = documentWithData.getElementById(`block-${number}`);
      open.set(number, element ? inflate(element.textContent) : Promise.resolve({ runs: [] }));
    }
    return open.get(number);
  };
  return {
    gates: async (test) => (await block(test.block)).gates ?? [],
    run: async (test, at) => {
      const starts = test.starts ?? [0];
      let part = starts.length - 1;
      while (starts[part] > at) part -= 1;
      return (await block(test.block + part)).runs[at - starts[part]] ?? null;
    },
  };
}

async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).json();
}

/** The records of the program that serves the page. */
export function served(address) {
  const part = async (test, run) => {
    const query = new URLSearchParams({ suite: test.suite, name: test.name });
    if (test.model) query.set("model", test.model);
    if (run) query.set("run", run);
    const answer = await fetch(`${address}&part=1&${query}`, { cache: "no-store" });
    if (!answer.ok) throw new Error("the program that served this page has ended");
    return answer.json();
  };
  return {
    gates: (test) => part(test),
    run: (test, at) => part(test, runNumber(test, at)),
  };
}

/** The command that runs a test again. */
export function command(test) {
  const words = ["mcptest", "run"];
  if (test.file) words.push(quoted(test.file));
  words.push("--filter", quoted(test.name));
  // A label has the model if the test was run with several.
  if (test.model && test.label !== test.name) words.push("--model", quoted(test.model));
  return words.join(" ");
}

function quoted(text) {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
