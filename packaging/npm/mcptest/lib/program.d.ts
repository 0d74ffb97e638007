/** An entry of `mcptest validate --format json`. */
export interface ListedTest {
  file: string;
  suite: string;
  name: string;
  label: string;
  kind: "agent" | "tool" | "tool_quality" | "resource" | "prompt";
  runs: number;
  tags: string[];
  model?: string;
}

export type Verdict = "pass" | "no_evidence" | "fail" | "error";

/** The part of a JSON report that the helpers use; `mcptest schema report` describes all of it. */
export interface TestReport {
  name: string;
  label: string;
  suite: string;
  verdict: Verdict;
  model?: string;
  runs: Array<Record<string, unknown>>;
  gates: Array<Record<string, unknown>>;
  [key: string]: unknown;
}

export interface Report {
  schema_version: number;
  verdict: Verdict;
  exit_code: number;
  tests: TestReport[];
  [key: string]: unknown;
}

export interface RunOptions {
  /** The folder to run in. Default: the current one. */
  cwd?: string;
  /** Variables besides those of this process. */
  env?: Record<string, string>;
  /** Further arguments of `mcptest run`, such as `["--replay-only"]`. */
  args?: string[];
  signal?: AbortSignal;
}

export interface SuiteOptions extends RunOptions {
  /** The name of the group. Default: that of the suite. */
  name?: string;
  /** Milliseconds for the whole suite. Default: ten minutes. */
  timeout?: number;
}

export function programPath(): string;
export function listTests(suite: string, options?: RunOptions): ListedTest[];
export function run(suite: string, options?: RunOptions): Promise<Report>;
export function reasons(test: TestReport): string[];
export function assertPassed(test: TestReport): void;
