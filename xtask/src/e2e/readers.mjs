// Reads a report with a parser or a schema that we did not write, and prints its content as JSON.
// Arguments: the folder of the packages, the reporter, the file.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [folder, reporter, path] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const text = readFileSync(path, "utf8");

const readers = {
  tap() {
    const { Parser } = require("tap-parser");
    const points = [];
    const problems = [];
    const parser = new Parser({ strict: true });
    parser.on("assert", ({ ok, name, skip, diag }) => points.push({ ok, name, skip: Boolean(skip), verdict: diag?.verdict ?? null }));
    parser.on("extra", (line) => problems.push(line));
    parser.end(text);
    const { ok, count, pass, fail, skip, failures } = parser.results;
    const broken = failures.filter((failure) => failure.tapError).map((failure) => failure.tapError);
    return { ok, count, pass, fail, skip, points, problems: problems.concat(broken) };
  },
  ctrf() {
    const Ajv = require("ajv/dist/2020").default;
    const schema = JSON.parse(readFileSync(require.resolve("ctrf").replace(/dist\/.*/, "dist/ctrf-schema-0.0.json"), "utf8"));
    const ajv = new Ajv({ strict: false, validateFormats: false });
    const report = JSON.parse(text);
    const valid = ajv.validate(schema.$id ? { ...schema, $id: undefined, $schema: undefined } : { ...schema, $schema: undefined }, report);
    const { extra, ...summary } = report.results.summary;
    return { valid, errors: ajv.errors ?? [], summary };
  },
};

console.log(JSON.stringify(readers[reporter]()));
