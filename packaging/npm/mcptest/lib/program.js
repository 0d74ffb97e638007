// The program: where it is, running it, and reading a suite's tests and results from it.
"use strict";

const { spawn, spawnSync } = require("node:child_process");
const path = require("node:path");

const EXE = process.platform === "win32" ? "mcptest.exe" : "mcptest";
// Large suites have large reports.
const MAX_BUFFER = 1024 * 1024 * 1024;

/** The path of the program for this platform. `MCPTEST_PROGRAM` overrides it. */
function programPath() {
  const override = process.env.MCPTEST_PROGRAM;
  if (override) return override;
  const name = `@mcptest/${process.platform}-${process.arch}`;
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", EXE);
  } catch {
    const { optionalDependencies = {} } = require("../package.json");
    const known = Object.keys(optionalDependencies);
    throw new Error(
      known.includes(name)
        ? `the package ${name} is not installed; install mcptest again without --omit=optional`
        : `mcptest has no program for ${process.platform}-${process.arch}; ` +
            `it has one for ${known.map((it) => it.replace("@mcptest/", "")).join(", ") || "none"}`,
    );
  }
}

/** The tests of a suite file or folder, as `mcptest validate --format json` lists them. */
function listTests(suite, options = {}) {
  const done = spawnSync(programPath(), ["validate", suite, "--format", "json"], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    encoding: "utf8",
    maxBuffer: MAX_BUFFER,
  });
  if (done.error) throw done.error;
  const listed = parse(done.stdout, done.stderr);
  if (!listed.valid) {
    const problems = listed.diagnostics.filter((it) => it.severity === "error");
    throw new Error(problems.map(problemText).join("\n"));
  }
  return listed.tests;
}

/** Runs a suite. Resolves to its JSON report, whatever the verdict. */
function run(suite, options = {}) {
  const args = ["run", suite, "--reporter", "json", ...(options.args ?? [])];
  return new Promise((resolve, reject) => {
    const child = spawn(programPath(), args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
      signal: options.signal,
    });
    const out = [];
    const err = [];
    child.stdout.on("data", (part) => out.push(part));
    child.stderr.on("data", (part) => err.push(part));
    child.on("error", reject);
    child.on("close", () => {
      try {
        resolve(parse(Buffer.concat(out).toString(), Buffer.concat(err).toString()));
      } catch (error) {
        reject(error);
      }
    });
  });
}

/** The reasons why a test of a report did not pass, a line each. */
function reasons(test) {
  const lines = [];
  const failed = (assertions, place) => {
    for (const it of assertions ?? []) {
      if (it.passed || it.skipped) continue;
      lines.push(
        `${place}${it.target}: expected ${JSON.stringify(it.matcher)}, ` +
          `actual ${JSON.stringify(it.actual)}${it.reason ? ` (${it.reason})` : ""}`,
      );
    }
  };
  for (const one of test.runs ?? []) {
    if (one.error) lines.push(`${one.name}: ${one.error.kind}: ${one.error.message}`);
    failed(one.assertions, test.runs.length > 1 ? `${one.name}: ` : "");
  }
  for (const gate of test.gates ?? []) {
    failed(gate.assertions, `${gate.block}: `);
    for (const finding of gate.verdict === "pass" ? [] : gate.findings ?? []) {
      lines.push(`${gate.block}: ${finding}`);
    }
    if (gate.no_evidence) lines.push(`${gate.block}: no evidence: ${gate.no_evidence}`);
  }
  if (test.no_evidence) lines.push(`no evidence: ${test.no_evidence}`);
  return lines;
}

/** Throws with all reasons unless the test passed. */
function assertPassed(test) {
  if (test.verdict === "pass") return;
  const error = new Error([`verdict ${test.verdict}`, ...reasons(test)].join("\n  "));
  error.name = "McptestFailure";
  throw error;
}

/**
 * Maps the tests of a suite to tests of a runner: one each, named by its label. The suite runs
 * once, when the first of them is due.
 */
function mapSuite(runner, suite, options = {}) {
  const tests = listTests(suite, options);
  runner.describe(options.name ?? tests[0]?.suite ?? suite, () => {
    let report;
    runner.beforeAll(() => {
      // A promise that is kept, and awaited by every test: a suite that cannot run fails each.
      report = run(suite, options);
      return report.then(
        () => undefined,
        () => undefined,
      );
    }, options.timeout ?? 600_000);
    for (const listed of tests) {
      runner.test(listed.label, async () => {
        const found = (await report).tests.find((it) => it.label === listed.label && it.suite === listed.suite);
        if (!found) throw new Error("the test was not run");
        assertPassed(found);
      });
    }
  });
}

function problemText(it) {
  const place = it.file ? `${it.file}:${it.line}:${it.column}: ` : "";
  return `${place}${it.message}${it.label ? ` (${it.label})` : ""}`;
}

function parse(stdout, stderr) {
  try {
    return JSON.parse(stdout);
  } catch {
    throw new Error(`mcptest wrote no report\n${stderr.trim() || stdout.trim()}`);
  }
}

module.exports = { assertPassed, listTests, mapSuite, programPath, reasons, run };
