import type { SuiteOptions } from "./program.js";

export * from "./program.js";

/** Adds a test of Vitest for each test of a suite file or folder; the suite runs once. */
export function mcptest(suite: string, options?: SuiteOptions): void;
