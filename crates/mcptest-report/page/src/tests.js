// The list of tests, its filters, and the details of a test.

import { compact, copy, count, counted, dollars, duration, el, foreign, moveTo } from "./dom.js";
import { VERDICTS, command, runNumber, runVerdict } from "./data.js";
import { gateCards } from "./gates.js";
import { runStrip, verdictMark } from "./marks.js";
import { plotsOf } from "./plots.js";
import { timeline } from "./timeline.js";

/** The number of rows that are added to a list at once. */
const CHUNK = 60;

const SHOW = {
  all: ["All", () => true],
  failed: ["Failed", (test) => test.verdict === "fail" || test.verdict === "error"],
  flaky: ["Flaky", (test) => test.flaky],
  no_evidence: ["No evidence", (test) => test.shown === "no_evidence" || test.shown === "undecided"],
  running: ["Running", (test) => test.shown === "running"],
  passed: ["Passed", (test) => test.verdict === "pass"],
};

/** The identity of a test, whatever its position is. */
function key(test) {
  return JSON.stringify([test.suite, test.name, test.model]);
}

/** The list of tests. `state` are the filters, as in the address of the page. */
export class TestList {
  constructor(place, head, source) {
    this.place = place;
    this.source = source;
    this.opened = new Set();
    this.read();
    this.build(head);
    addEventListener("hashchange", () => {
      this.read();
      this.controls();
      this.list();
    });
    addEventListener("beforeprint", () => this.grow(Infinity));
  }

  /** Shows another state of the report; what is open stays open. */
  update(head, source) {
    this.source = source;
    const focused = document.activeElement;
    // Positions change when tests start. While tests run, an open panel stays as it is: a reader
    // would lose the place otherwise. The end of the run makes it again.
    const open = new Map();
    for (const at of this.opened) {
      const test = this.head.tests[at];
      if (test) open.set(key(test), document.getElementById(`panel-${at}`));
    }
    this.panels = head.running ? open : new Map();
    this.opened = new Set(head.tests.filter((test) => open.has(key(test))).map((test) => test.at));
    this.build(head);
    if (focused?.isConnected) focused.focus({ preventScroll: true });
    else if (focused?.id) document.getElementById(focused.id)?.focus({ preventScroll: true });
  }

  read() {
    const written = new URLSearchParams(location.hash.slice(1));
    this.state = {
      q: written.get("q") ?? "",
      show: Object.hasOwn(SHOW, written.get("show") ?? "") ? written.get("show") : "all",
      model: written.get("model") ?? "",
      tag: written.get("tag") ?? "",
    };
    const open = written.get("test");
    if (open !== null && open !== "") this.opened.add(Number(open));
  }

  /** Writes the filters to the address, so that it can be shared. */
  write() {
    const written = new URLSearchParams();
    for (const [name, value] of Object.entries(this.state)) if (value && value !== "all") written.set(name, value);
    const open = [...this.opened];
    if (open.length) written.set("test", open[open.length - 1]);
    const text = String(written);
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }

  set(name, value) {
    this.state[name] = value;
    this.write();
    this.controls();
    this.list();
  }

  build(head) {
    this.head = head;
    const { tests } = head;
    const values = (pick) => [...new Set(tests.flatMap(pick))].filter(Boolean).sort();
    this.models = values((test) => [test.model]);
    this.tags = values((test) => test.tags);
    this.filters = el("div", { class: "filters", role: "search", "aria-label": "Filter tests" });
    this.found = el("p", { class: "small found", role: "status" });
    this.items = el("ol", { class: "tests" });
    this.rest = el("div", { class: "rest" });
    this.place.replaceChildren(el("h2", { id: "tests-title" }, "Tests"), this.filters, this.found, this.items, this.rest);
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.grow(CHUNK), { rootMargin: "800px" }).observe(this.rest);
    this.controls();
    this.list();
  }

  controls() {
    const { tests } = this.head;
    const search = el("input", { type: "search", id: "q", placeholder: "Search names, tags, reasons", "aria-label": "Search tests", autocomplete: "off", spellcheck: "false" });
    search.value = this.state.q;
    search.addEventListener("input", () => {
      this.state.q = search.value;
      this.write();
      this.list();
    });
    const chips = Object.entries(SHOW).map(([name, [word, wanted]]) => {
      const number = tests.filter(wanted).length;
      if (number === 0 && name !== "all" && this.state.show !== name) return null;
      return el(
        "button",
        { type: "button", id: `show-${name}`, class: "filter", "aria-pressed": String(this.state.show === name), onclick: () => this.set("show", name) },
        word,
        " ",
        el("span", { class: "small" }, count(number)),
      );
    });
    const focused = document.activeElement?.id;
    this.filters.replaceChildren(
      search,
      el("div", { class: "chips", role: "group", "aria-label": "Verdict" }, chips),
      this.select("model", "Model", this.models),
      this.select("tag", "Tag", this.tags),
    );
    if (focused) document.getElementById(focused)?.focus();
  }

  select(name, label, values) {
    if (values.length < (name === "model" ? 2 : 1)) return "";
    const list = el(
      "select",
      { id: name, "aria-label": label },
      el("option", { value: "" }, `Any ${label.toLowerCase()}`),
      values.map((value) => foreign("option", { value, selected: this.state[name] === value }, value)),
    );
    list.addEventListener("change", () => this.set(name, list.value));
    return list;
  }

  matching() {
    const { q, show, model, tag } = this.state;
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    return this.head.tests.filter(
      (test) =>
        SHOW[show][1](test) &&
        (!model || test.model === model) &&
        (!tag || test.tags.includes(tag)) &&
        words.every((word) => test.words.includes(word)),
    );
  }

  list() {
    this.waiting = this.matching();
    const total = this.head.tests.length;
    this.found.textContent = this.waiting.length === total ? "" : `${count(this.waiting.length)} of ${counted(total, "test")}`;
    this.items.replaceChildren();
    // Rows that are out of sight are not laid out, where there are many of them.
    this.items.classList.toggle("long", this.waiting.length > 150);
    if (this.waiting.length === 0) this.items.append(el("li", { class: "nothing" }, "No test matches these filters."));
    this.grow(CHUNK);
  }

  grow(number) {
    if (!this.waiting?.length) return;
    const next = this.waiting.splice(0, number);
    this.items.append(...next.map((test) => this.row(test)));
  }

  /** Opens a test, whatever the filters are, and moves to it. */
  open(test) {
    if (!this.matching().includes(test)) this.state = { q: "", show: "all", model: "", tag: "" };
    this.opened.add(test.at);
    this.write();
    this.controls();
    this.list();
    while (!document.getElementById(`test-${test.at}`) && this.waiting.length) this.grow(CHUNK);
    const button = document.getElementById(`test-${test.at}`);
    if (button) moveTo(button);
  }

  row(test) {
    const panel = this.panels?.get(key(test)) ?? el("div", { class: "panel", hidden: true });
    panel.id = `panel-${test.at}`;
    const facts = [
      test.tokens ? `${compact(test.tokens)} tokens` : null,
      test.spend?.usd ? dollars(test.spend.usd) : null,
      test.duration_ms !== undefined ? duration(test.duration_ms) : null,
    ].filter(Boolean);
    const button = el(
      "button",
      { type: "button", class: "row", id: `test-${test.at}`, "aria-expanded": "false", "aria-controls": `panel-${test.at}` },
      verdictMark(test.shown),
      el(
        "span",
        { class: "row-main" },
        foreign("span", { class: "row-name" }, test.name),
        el(
          "span",
          { class: "row-meta" },
          test.model && foreign("span", {}, test.model),
          foreign("span", {}, test.suite),
          test.tags.map((tag) => foreign("span", { class: "tag" }, tag)),
          test.flaky && el("span", { class: "chip flaky" }, "flaky"),
          test.gates.filter(([, verdict]) => verdict === "fail" || verdict === "error").map(([block, verdict]) => el("span", { class: `chip ${verdict}` }, block)),
        ),
      ),
      el("span", { class: "row-runs" }, test.runCount > 0 && runStrip(test), test.runCount > 1 && el("span", { class: "small" }, `${count(test.passed)}/${count(test.runCount)}`)),
      el("span", { class: "row-facts" }, facts.join(" · ")),
      el("span", { class: "chevron", "aria-hidden": "true" }),
    );
    const item = el("li", { class: `test ${test.shown}` }, el("h3", {}, button), panel);
    const show = (open) => {
      button.setAttribute("aria-expanded", String(open));
      panel.hidden = !open;
      item.classList.toggle("open", open);
      if (open && !panel.hasChildNodes()) this.fill(panel, test);
    };
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      if (open) this.opened.add(test.at);
      else this.opened.delete(test.at);
      this.write();
      show(open);
    });
    if (this.opened.has(test.at)) show(true);
    return item;
  }

  async fill(panel, test) {
    const line = command(test);
    panel.append(
      el(
        "div",
        { class: "command" },
        foreign("code", { tabindex: "0" }, line),
        el("button", { type: "button", onclick: () => copy(line, "Command copied"), "aria-label": "Copy the command that runs this test again" }, "Copy"),
      ),
    );
    if (test.reasons.length) panel.append(el("ul", { class: "reasons" }, test.reasons.map((reason) => foreign("li", {}, reason))));
    if (test.saved_runs) panel.append(el("p", { class: "small" }, `Decided early: ${counted(test.saved_runs, "run")} were not needed.`));
    const gates = el("div", { class: "gates" });
    // With few tests, the plots of the whole report are the same ones.
    const plots = this.head.tests.length > 2 ? plotsOf([{ ...test, title: test.label }]) : [];
    panel.append(gates);
    if (plots.length) panel.append(el("h4", {}, "Plots"), el("div", { class: "plots" }, plots));
    if (test.runs.verdicts.length) panel.append(this.runs(test));
    try {
      const list = await this.source.gates(test);
      if (list.length) gates.append(el("h4", {}, list.length === 1 ? "Gate" : "Gates"), ...gateCards(list, this.head.gates));
    } catch (error) {
      gates.append(el("p", { class: "notice" }, `The gates cannot be shown: ${error.message}`));
    }
  }

  runs(test) {
    const verdicts = test.runs.verdicts;
    const items = el("ol", { class: "runs" });
    const more = el("button", { type: "button", class: "more" });
    let next = 0;
    const add = () => {
      const end = Math.min(verdicts.length, next + CHUNK);
      for (; next < end; next += 1) items.append(this.run(test, next));
      more.hidden = next === verdicts.length;
      more.textContent = `Show ${counted(Math.min(CHUNK, verdicts.length - next), "more run")} of ${count(verdicts.length)}`;
    };
    more.addEventListener("click", add);
    add();
    // The first run that did not pass is what a reader looks for; a single run needs no click.
    const first = [...verdicts].findIndex((letter) => letter !== "P");
    const opened = first >= 0 && first < CHUNK ? first : verdicts.length === 1 ? 0 : -1;
    if (opened >= 0) items.children[opened].querySelector("button").click();
    return el("div", {}, el("h4", {}, test.runCount === 1 ? "Run" : "Runs"), items, more);
  }

  run(test, at) {
    const verdict = runVerdict(test, at);
    const { calls, errors, tokens, ms } = test.runs;
    const facts = [
      calls && counted(calls[at], "call"),
      errors?.[at] ? counted(errors[at], "error") : null,
      tokens?.[at] !== undefined && tokens?.[at] !== null ? `${count(tokens[at])} tokens` : null,
      ms && duration(ms[at]),
    ].filter(Boolean);
    const id = `run-${test.at}-${at}`;
    const body = el("div", { class: "run-body", id, hidden: true });
    const button = el(
      "button",
      { type: "button", class: "run-row", "aria-expanded": "false", "aria-controls": id },
      verdictMark(verdict),
      el("span", { class: "run-name" }, `Run ${runNumber(test, at)}`),
      el("span", { class: "run-word" }, VERDICTS[verdict].word),
      el("span", { class: "row-facts" }, facts.join(" · ")),
      el("span", { class: "chevron", "aria-hidden": "true" }),
    );
    button.addEventListener("click", async () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      body.hidden = !open;
      if (!open || body.hasChildNodes()) return;
      try {
        const record = await this.source.run(test, at);
        body.replaceChildren(record ? timeline(record) : el("p", { class: "notice" }, "The record of this run is not part of the page."));
      } catch (error) {
        body.replaceChildren(el("p", { class: "notice" }, `The run cannot be shown: ${error.message}`));
      }
    });
    return el("li", { class: `run ${verdict}` }, button, body);
  }
}
