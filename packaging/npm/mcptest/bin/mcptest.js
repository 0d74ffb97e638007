#!/usr/bin/env node
// Starts the program of this platform, with the same arguments, streams, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");
const { programPath } = require("../lib/program.js");

// Signals that people and CI systems send. The program ends its servers and reports what has
// finished, so this process waits for it. A terminal sends Ctrl-C to both.
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

let path;
try {
  path = programPath();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(2);
}

const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
for (const signal of SIGNALS) {
  process.on(signal, () => {
    // Ctrl-C on a terminal has reached the whole process group already.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`error: cannot start ${path}: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const name of SIGNALS) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});
