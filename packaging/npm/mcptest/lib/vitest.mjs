// Vitest: the tests of a suite as tests of Vitest.
import { beforeAll, describe, test } from "vitest";

import { mapSuite } from "./program.js";

export { assertPassed, listTests, reasons, run } from "./program.js";

/** Adds a test for each test of a suite file or folder. */
export function mcptest(suite, options) {
  mapSuite({ beforeAll, describe, test }, suite, options);
}
