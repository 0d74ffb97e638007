// Drives the page of the `html` reporter in Chromium: `node html_page.mjs MODE FOLDER [ARGUMENT…]`.
// Prints what is wrong, and exits with 1 if something is.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { deflateRawSync } from "node:zlib";
import { chromium } from "playwright-core";

const [mode, folder, ...rest] = process.argv.slice(2);
const problems = [];

function expect(held, message) {
  if (!held) problems.push(message);
}

function same(found, wanted, what) {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];
  expect(one === other, `${what}: ${one} instead of ${other}`);
}

const browser = await chromium.launch({ executablePath: process.env.E2E_CHROMIUM, args: ["--no-sandbox"] });

/** Opens an address, and records everything that must not happen. */
async function open(address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const own = address.startsWith("file:") ? address.split("#")[0] : new URL(address).origin;
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error of the page: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(own) && !url.startsWith("data:")) problems.push(`request: ${url.slice(0, 200)}`);
  });
  await page.goto(address);
  await page.waitForSelector("body[data-ready]", { timeout: 15000 });
  return page;
}

async function axe(page, what) {
  const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(source);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  for (const { id, impact, nodes } of found.violations) {
    if (["serious", "critical"].includes(impact)) {
      problems.push(`axe, ${what}: ${id} (${impact}): ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
    }
  }
}

const shown = (page) => page.$$eval(".tests > .test .row-name", (names) => names.map((name) => name.textContent));

/** Everything by keyboard: open a test and a run, filter, switch the theme. */
async function keyboard() {
  const report = JSON.parse(readFileSync(`${folder}/report.json`, "utf8"));
  const page = await open(`file://${folder}/report.html`);
  const words = { fail: "Failed", pass: "Passed", error: "Error", no_evidence: "No evidence" };
  same(await page.textContent("h1"), words[report.verdict], "the verdict");
  same((await shown(page)).length, report.tests.length, "the number of tests");
  // Tab to the first test that failed, open it, and close and open its run again.
  const failed = report.tests.findIndex((test) => test.verdict === "fail" && test.runs.some((run) => run.verdict === "fail"));
  const focused = () => page.evaluate(() => document.activeElement?.id ?? "");
  let steps = 0;
  while ((await focused()) !== `test-${failed}` && steps < 400) {
    await page.keyboard.press("Tab");
    steps += 1;
  }
  same(await focused(), `test-${failed}`, "the focus after Tab");
  const outlined = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  expect(outlined !== "none", "the focus is not visible");
  await page.keyboard.press("Enter");
  await page.waitForSelector(`#panel-${failed} .timeline`);
  expect(page.url().includes(`test=${failed}`), `the open test is not in the address: ${page.url()}`);
  expect((await page.$$(`#panel-${failed} .assertion .diff`)).length > 0, "no difference at a failed expectation");
  expect((await page.$$(`#panel-${failed} .step.call`)).length > 0, "no calls in the timeline");
  const command = await page.textContent(`#panel-${failed} .command code`);
  expect(command.startsWith("mcptest run ") && command.includes("--filter"), `the command is ${command}`);
  while (!(await page.evaluate(() => document.activeElement?.classList.contains("run-row"))) && steps < 800) {
    await page.keyboard.press("Tab");
    steps += 1;
  }
  const before = await page.evaluate(() => document.activeElement.getAttribute("aria-expanded"));
  await page.keyboard.press("Space");
  const after = await page.evaluate(() => document.activeElement.getAttribute("aria-expanded"));
  expect(before !== after, "Space does not open a run");
  await axe(page, "an open test, light");
  // The theme.
  await page.focus("#theme");
  const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.keyboard.press("Enter");
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(light !== dark, "the theme does not switch");
  await axe(page, "an open test, dark");
  // Filters, and the same ones from the address.
  await page.focus("#show-failed");
  await page.keyboard.press("Enter");
  const bad = report.tests.filter((test) => ["fail", "error"].includes(test.verdict));
  same(await shown(page), bad.map((test) => test.name), "the failed tests");
  await page.focus("#q");
  await page.keyboard.type("look-alike");
  const found = await shown(page);
  expect(found.length > 0 && found.length < bad.length, `the search finds ${found.length} of ${bad.length}`);
  expect(page.url().includes("show=failed") && page.url().includes("q=look-alike"), `the address is ${page.url()}`);
  const again = await open(page.url());
  same(await shown(again), found, "the tests of the same address");
  const flaky = await open(`file://${folder}/report.html#show=flaky`);
  const mixed = report.tests.filter((test) => new Set(test.runs.map((run) => run.verdict === "pass")).size > 1);
  same(await shown(flaky), mixed.map((test) => test.name), "the flaky tests");
  const tagged = report.tests.filter((test) => test.tags?.includes("selection"));
  const withTag = await open(`file://${folder}/report.html#tag=selection`);
  same(await shown(withTag), tagged.map((test) => test.name), "the tests with a tag");
  // Marks of faults and distractors.
  for (const mark of ["fault", "distractor"]) {
    const holds = (trace) => (mark === "fault" ? trace.tool_results?.some((result) => result.fault) : trace.tool_calls?.some((call) => trace.distractors?.includes(`${call.server}.${call.name}`)));
    const at = report.tests.findIndex((test) => test.runs.some((run) => holds(run.trace)));
    expect(at >= 0, `the report has no ${mark}`);
    const marked = await open(`file://${folder}/report.html#test=${at}`);
    const runs = await marked.$$(`#panel-${at} .run-row[aria-expanded=false]`);
    for (const run of runs) await run.click();
    await marked.waitForSelector(`#panel-${at} .chip.${mark}`, { timeout: 5000 }).catch(() => problems.push(`no mark of a ${mark}`));
  }
  // Narrow pages do not scroll sideways.
  for (const width of [390, 900, 1440]) {
    const narrow = await open(`file://${folder}/report.html#test=${failed}`, { viewport: { width, height: 900 } });
    await narrow.waitForSelector(`#panel-${failed} .timeline`);
    const over = await narrow.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(over <= 0, `at ${width} px the page is ${over} px too wide`);
  }
  // Print shows all tests.
  await page.emulateMedia({ media: "print" });
  expect(!(await page.isVisible("#q")), "print shows the filters");
}

/** The points of every plot are those of the JSON report. */
async function plots() {
  const { tests } = JSON.parse(readFileSync(`${folder}/report.json`, "utf8"));
  const page = await open(`file://${folder}/report.html`, { viewport: { width: 1280, height: 4000 } });
  const read = (id, mark, names) =>
    page.$$eval(`#plots [data-plot="${id}"] ${mark}`, (marks, names) => marks.map((one) => names.map((name) => Number(one.dataset[name]))), names);
  const gates = (block) => tests.flatMap((test) => test.gates.filter((gate) => gate.block === block));
  await page.waitForSelector("#plots circle");
  const curves = gates("distractors").map((gate) => gate.detail.curve);
  same(await read("distractors", ".point[data-x]", ["series", "x", "y"]), curves.flatMap((curve, at) => curve.map((point) => [at, point.count, point.accuracy])), "accuracy against distractors");
  const decays = gates("reliability").map((gate) => gate.values["reliability.decay"]);
  same(await read("decay", ".point[data-x]", ["series", "x", "y"]), decays.flatMap((values, at) => values.map((value, k) => [at, k + 1, value])), "the decay of pass^k");
  expect((await page.$$('#plots [data-plot="decay"] .band')).length === decays.length, "the decay has no band");
  const floors = gates("tool_selection").map((gate) => gate.detail);
  const wilson = ({ selected, runs }) => {
    const [p, z] = [selected / runs, 1.96];
    const middle = (p + (z * z) / (2 * runs)) / (1 + (z * z) / runs);
    const spread = (z / (1 + (z * z) / runs)) * Math.sqrt((p * (1 - p)) / runs + (z * z) / (4 * runs * runs));
    return [(100 * selected) / runs, 100 * Math.max(0, middle - spread), 100 * Math.min(1, middle + spread)];
  };
  const rounded = (rows) => rows.map((row) => row.map((number) => Number(number.toFixed(6))));
  same(rounded(await read("selection", ".point[data-value]", ["value", "low", "high"])), rounded(floors.map(wilson)), "the selection rate");
  const tokens = tests.flatMap((test) => test.runs.map((run) => run.trace.conversation?.tokens?.total)).filter((number) => number !== undefined);
  const sorted = (numbers) => [...numbers].sort((one, other) => one - other);
  same(sorted((await read("tokens", "[data-value]", ["value"])).flat()), sorted(tokens), "tokens per run");
  const parts = ["tool_sequence_similarity", "argument_consistency", "tool_usage_stability", "response_consistency", "redundancy", "cost_per_progress"];
  same((await read("stability", "[data-value]", ["value"])).flat(), gates("stability").flatMap((gate) => parts.map((part) => gate.values[`stability.${part}`])), "stability");
  const catalog = (await read("catalog", "[data-value]", ["value"])).flat();
  same(catalog.reduce((sum, one) => sum + one, 0), gates("token_efficiency")[0].values["token_efficiency.tool_surface_tokens"], "catalog tokens");
  for (const plot of await page.$$("#plots .plot")) {
    const name = await plot.getAttribute("data-plot");
    expect((await plot.$$("svg .axis-label")).length > 0, `${name}: no label of an axis`);
    await (await plot.$("summary")).click();
    await plot.waitForSelector("details table tbody tr", { timeout: 3000 }).catch(() => problems.push(`${name}: no table`));
    expect(await plot.$eval("svg[role=img]", (svg) => svg.getAttribute("aria-label").length > 10), `${name}: no text`);
  }
  await axe(page, "the plots");
}

const HOSTILE = [
  "</script><script>window.pwned=1</script>",
  "<img src=x onerror=window.pwned=1>",
  "<!-- ]]> --> <svg/onload=window.pwned=1>",
  "\u001b[31mred\u001b[0m \u0007 \u202egnp.exe\u202c \u2028\u2029",
  "`rm -rf /` ${7*7} {{7*7}} @someone javascript:window.pwned=1",
];

/** Writes a report with hostile strings in every field that a server or a model controls. */
function mangle() {
  const report = JSON.parse(readFileSync(`${folder}/report.json`, "utf8"));
  let at = 0;
  const next = (text) => `${text.slice(0, 40)} ${HOSTILE[at++ % HOSTILE.length]}`;
  const fixed = new Set(["kind", "verdict", "block", "error_kind"]);
  const walk = (value) => {
    if (typeof value === "string") return next(value);
    if (Array.isArray(value)) return value.map(walk);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fixed.has(key) ? one : walk(one)]));
  };
  for (const test of report.tests) {
    for (const key of ["name", "label", "suite", "model"]) if (test[key]) test[key] = next(test[key]);
    test.tags = [next("tag")];
    test.file = next("suite.yml");
    for (const run of test.runs) {
      run.name = next(run.name);
      run.trace = walk(run.trace);
      run.assertions = run.assertions.map((one) => ({ ...one, actual: walk(one.actual), target: next(one.target), reason: one.passed ? undefined : next("reason") }));
      if (run.trace.tool_results?.[0]) run.trace.tool_results[0].content = [{ type: "text", text: "x".repeat(1 << 20) }, { type: "text", text: HOSTILE.join("\n") }];
    }
    for (const gate of test.gates) {
      gate.summary = next(gate.summary);
      gate.findings = HOSTILE.map(next);
      gate.advisories = HOSTILE.map(next);
      gate.detail = { ...gate.detail, [next("key")]: next("value") };
      for (const one of gate.assertions) one.actual = walk(one.actual);
    }
  }
  delete report.timing;
  report.tool_selection = [];
  delete report.distractors;
  writeFileSync(`${folder}/hostile.json`, JSON.stringify(report));
}

/** Hostile strings stay text, and the verdict is what it was. */
async function hostile() {
  const report = JSON.parse(readFileSync(`${folder}/hostile.json`, "utf8"));
  const plain = await open(`file://${folder}/report.html`);
  const page = await open(`file://${folder}/hostile.html`);
  same(await page.textContent("h1"), await plain.textContent("h1"), "the verdict");
  same(await page.textContent(".lead"), await plain.textContent(".lead"), "the counts");
  for (let at = 0; at < report.tests.length; at += 1) {
    await page.evaluate((at) => document.getElementById(`test-${at}`).click(), at);
    await page.waitForFunction((at) => document.querySelector(`#panel-${at} .gate, #panel-${at} .run`), at);
  }
  await page.evaluate(() => document.querySelectorAll(".run-row[aria-expanded=false], details:not([open]) > summary").forEach((one) => one.click()));
  await page.waitForTimeout(800);
  const facts = await page.evaluate(() => ({
    pwned: globalThis.pwned ?? null,
    scripts: [...document.scripts].filter((script) => !script.type).length,
    images: document.images.length,
    handlers: [...document.querySelectorAll("*")].filter((one) => one.getAttributeNames().some((name) => name.startsWith("on"))).length,
    invisible: /[\u0007\u001b\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText),
    longest: Math.max(...[...document.querySelectorAll("pre")].map((pre) => pre.textContent.length)),
    shown: document.body.innerText.includes("<img src=x onerror=window.pwned=1>"),
  }));
  same([facts.pwned, facts.scripts, facts.images, facts.handlers], [null, 1, 0, 0], "what ran");
  expect(facts.shown, "the hostile text is not shown as text");
  expect(!facts.invisible, "characters that change the direction of text came through");
  expect(facts.longest < 20000, `a text of ${facts.longest} characters is shown at once`);
  await axe(page, "hostile text");
  // A report cannot hold halves of surrogate pairs; should one come in another way, it is shown.
  const text = readFileSync(`${folder}/report.html`, "utf8");
  const run = { trace: { tool_calls: [{ name: "\ud800", args: { a: "\udfff x" } }], tool_results: [], final_response: "\ud800" } };
  const block = deflateRawSync(JSON.stringify({ gates: [], runs: [run, run, run, run, run, run] })).toString("base64");
  writeFileSync(`${folder}/surrogates.html`, text.replace(/(id="block-0">)[^<]*/, `$1${block}`));
  const halves = await open(`file://${folder}/surrogates.html#test=0`);
  await halves.waitForSelector("#panel-0 .step.call");
  expect((await halves.textContent("#panel-0 .step.call .tool")) === "\\u{d800}", "half of a surrogate pair is not shown as its number");
}

/** A large report opens quickly and scrolls. */
async function large() {
  const limit = Number(rest[0] ?? 2000);
  const times = [];
  for (let run = 0; run < 3; run += 1) {
    const began = performance.now();
    const page = await open(`file://${folder}/large.html`);
    times.push(performance.now() - began);
    if (run < 2) {
      await page.close();
      continue;
    }
    same((await page.textContent("dl.figures")).includes("1,000"), true, "1,000 tests in the summary");
    // To the end of the list, a screen at a time. The work of the page counts, as time of its
    // thread: how long a frame takes also depends on what else the machine does.
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const work = async () => (await session.send("Performance.getMetrics")).metrics.find((metric) => metric.name === "TaskDuration").value;
    const before = await work();
    const screens = await page.evaluate(async () => {
      let screens = 0;
      while (document.querySelectorAll(".tests > .test").length < 1000) {
        scrollBy(0, innerHeight);
        screens += 1;
        await new Promise(requestAnimationFrame);
        if (scrollY + innerHeight >= document.documentElement.scrollHeight - 1) await new Promise((done) => setTimeout(done, 30));
      }
      return screens;
    });
    const each = (1000 * ((await work()) - before)) / screens;
    expect(each < 50, `a screen of tests takes ${Math.round(each)} ms of work`);
    await page.evaluate(() => document.getElementById("test-999").click());
    await page.waitForSelector("#panel-999 .run");
    console.log(`opened in ${times.map((time) => Math.round(time)).join(", ")} ms, ${each.toFixed(1)} ms of work for each screen`);
  }
  // No figure of the summary leaves its place, however many digits it has.
  for (const width of [390, 600, 768, 1280]) {
    const page = await open(`file://${folder}/large.html`, { viewport: { width, height: 900 } });
    const wide = await page.$$eval("dl.figures > div", (places) =>
      places.filter((place) => place.querySelector("strong").getBoundingClientRect().right > place.getBoundingClientRect().right).map((place) => place.textContent),
    );
    same(wide, [], `figures that overflow at ${width} px`);
    await page.close();
  }
  const best = Math.min(...times);
  expect(best <= limit, `the page opens in ${Math.round(best)} ms, more than ${limit}`);
}

/** A page that follows a run shows its progress and, after its end, everything. */
async function live() {
  const [address] = rest;
  const page = await open(address);
  await page.waitForSelector(".live:not(.ended)", { timeout: 10000 });
  await page.waitForFunction(() => /Running: [1-9]/.test(document.getElementById("live").textContent), null, { timeout: 20000 });
  // What is open stays open while the page changes.
  await page.click("#test-0");
  await page.waitForSelector("#panel-0 .run-row");
  // The only run so far is open already.
  if (!(await page.isVisible("#panel-0 .timeline"))) await page.click("#panel-0 .run-row");
  await page.waitForSelector("#panel-0 .timeline");
  const before = await page.textContent("#live");
  await page.waitForFunction((before) => document.getElementById("live").textContent !== before, before, { timeout: 20000 });
  expect((await page.$$("#panel-0 .timeline")).length === 1, "an open run closes while the page follows");
  await page.click("#test-0");
  await page.waitForSelector(".live.ended", { timeout: 60000 });
  // The program has ended or will: everything is in the page now.
  same(await page.textContent("h1"), "Passed", "the verdict at the end");
  await page.waitForTimeout(3000);
  await page.click("#test-0");
  await page.waitForSelector("#panel-0 .run");
  await page.click("#panel-0 .run-row");
  await page.waitForSelector("#panel-0 .timeline");
}

/** Screenshots for the documentation. */
async function screenshots() {
  const [name, hash] = rest;
  for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [390, "light"]]) {
    const page = await open(`file://${folder}/report.html${hash ?? ""}`, { viewport: { width, height: width > 400 ? 860 : 780 }, colorScheme });
    await page.waitForTimeout(400);
    await page.screenshot({ path: `${folder}/${name}-${width}-${colorScheme}.png` });
  }
}

try {
  await { keyboard, plots, mangle, hostile, large, live, screenshots }[mode]();
} catch (error) {
  problems.push(String(error.stack ?? error));
}
await browser.close();
for (const problem of [...new Set(problems)].slice(0, 30)) console.log(problem);
process.exit(problems.length ? 1 : 0);
