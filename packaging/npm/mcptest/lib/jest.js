// Jest, and every runner with `describe`, `test` and `beforeAll` as globals.
"use strict";

const { assertPassed, listTests, mapSuite, reasons, run } = require("./program.js");

/** Adds a test for each test of a suite file or folder. */
function mcptest(suite, options) {
  const { beforeAll, describe, test } = globalThis;
  if (typeof describe !== "function") {
    throw new Error("mcptest/jest is for test files of Jest: there is no global `describe`");
  }
  mapSuite({ beforeAll, describe, test }, suite, options);
}

module.exports = { assertPassed, listTests, mcptest, reasons, run };
