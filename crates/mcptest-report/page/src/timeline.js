// A run as a timeline: turns and calls, with arguments, results, errors, tokens and time.

import { compact, count, duration, el, foreign, lazy } from "./dom.js";
import { failedAssertion, otherAssertions } from "./assertion.js";
import { jsonBlock } from "./json.js";

/** The timeline of a run's record. */
export function timeline(record) {
  const trace = record.trace ?? {};
  const calls = exchanges(trace);
  const failed = (record.assertions ?? []).filter((one) => !one.passed && !one.skipped);
  const held = (record.assertions ?? []).filter((one) => one.passed || one.skipped);
  const rest = [];
  for (const assertion of failed) {
    const call = callOf(assertion.target, calls);
    if (call) call.failed.push(assertion);
    else rest.push(assertion);
  }
  const steps = events(trace, calls);
  return el(
    "div",
    { class: "timeline-box" },
    record.error &&
      el("p", { class: "run-error" }, el("span", { class: "chip error" }, record.error.kind), " ", foreign("span", {}, record.error.message)),
    rest.map(failedAssertion),
    held.length > 0 &&
      el("details", { class: "held-box" }, el("summary", {}, `${count(held.length)} of ${count(failed.length + held.length)} expectations held or were skipped`), otherAssertions(held)),
    attackList(trace),
    steps.length > 0 ? el("ol", { class: "timeline" }, steps) : el("p", { class: "small" }, "The run recorded no turns and no calls."),
    extras(trace),
  );
}

/** Calls with their results: by id, else by position. */
function exchanges(trace) {
  const results = trace.tool_results ?? [];
  const byId = new Map();
  for (const result of results) {
    if (result.call_id !== undefined) byId.set(JSON.stringify(result.call_id), result);
  }
  const distractors = new Set(trace.distractors ?? []);
  const attacks = attackRecords(trace);
  return (trace.tool_calls ?? []).map((call, at) => {
    const own = call.id === undefined ? undefined : byId.get(JSON.stringify(call.id));
    const result = own ?? (results[at]?.call_id === undefined ? results[at] : undefined);
    const id = call.server ? `${call.server}.${call.name}` : String(call.name);
    const carried = namesOf(result?.attack).map((name) => attacks.find((attack) => attack.name === name) ?? { name });
    const text = JSON.stringify(call.args ?? null);
    const touched = attacks.some((attack) => isLong(attack.canary) && text.includes(JSON.stringify(attack.canary).slice(1, -1)));
    return { call, result, at, id, isDistractor: distractors.has(id) || distractors.has(call.name), carried, touched, failed: [] };
  });
}

/** The attacks of the run. */
function attackRecords(trace) {
  return Array.isArray(trace.attacks) ? trace.attacks.filter((attack) => attack && typeof attack === "object") : [];
}

function namesOf(mark) {
  return (Array.isArray(mark) ? mark : [mark]).filter((name) => typeof name === "string");
}

function isLong(canary) {
  return typeof canary === "string" && canary.length >= 4;
}

/** The call that a target is about: `tool_calls[2].args` is about the third. */
function callOf(target, calls) {
  const found = /^tool_(?:calls|results)\[(-?\d+)\]/.exec(target);
  if (found) {
    const at = Number(found[1]);
    return calls[at < 0 ? calls.length + at : at];
  }
  return /^result\b/.test(target) && calls.length === 1 ? calls[0] : undefined;
}

function events(trace, calls) {
  const steps = [];
  const waiting = [...calls];
  const offers = attackRecords(trace).filter((attack) => typeof attack.offered_after_calls === "number");
  let made = 0;
  const offer = () => {
    for (const attack of offers.splice(0)) {
      if (attack.offered_after_calls <= made) steps.push(attackStep(attack, "was offered to the agent here"));
      else offers.push(attack);
    }
  };
  // Calls of one turn are made together, so texts in their results reach the agent after all of them.
  const take = (wanted) => {
    const delivered = [];
    for (let at = 0; at < waiting.length; ) {
      if (!wanted(waiting[at])) {
        at += 1;
        continue;
      }
      const exchange = waiting.splice(at, 1)[0];
      steps.push(callStep(exchange));
      made += 1;
      delivered.push(...exchange.carried);
      if (exchange.call.turn === undefined) {
        for (const attack of delivered.splice(0)) steps.push(attackStep(attack, "reached the agent here"));
        offer();
      }
    }
    for (const attack of delivered) steps.push(attackStep(attack, "reached the agent here"));
    offer();
  };
  let assistant = 0;
  let last = "";
  for (const turn of trace.conversation?.turns ?? []) {
    const text = textOf(turn.content);
    if (turn.role === "assistant") {
      assistant += 1;
      if (assistant === 1) offer();
      take((exchange) => exchange.call.turn !== undefined && exchange.call.turn < assistant);
      const acts = waiting.some((exchange) => exchange.call.turn === assistant);
      if (text.trim() || acts) steps.push(turnStep(`Turn ${assistant}`, text, turn));
      take((exchange) => exchange.call.turn === assistant);
      if (text.trim()) last = text;
    } else if (turn.role !== "tool" || calls.length === 0) {
      steps.push(turnStep(role(turn.role), text, turn));
    }
  }
  take(() => true);
  for (const request of trace.requests ?? []) steps.push(requestStep(request));
  const answer = trace.final_response;
  if (answer && answer.trim() !== last.trim()) steps.push(turnStep("Answer", answer, {}));
  return steps;
}

function role(name) {
  const text = String(name ?? "message");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block) => (typeof block === "string" ? block : (block?.text ?? "")))
    .filter(Boolean)
    .join("\n");
}

function turnStep(title, text, turn) {
  const facts = [tokensOf(turn), timeOf(turn)].filter(Boolean).join(" · ");
  return el(
    "li",
    { class: `step ${turn.role === "user" ? "user" : "turn"}` },
    el("p", { class: "step-head" }, foreign("strong", {}, title), facts && el("span", { class: "small" }, facts)),
    text.trim() !== "" && foreign("p", { class: "said" }, text),
  );
}

/** The moment when the agent received the text of an attack. */
function attackStep(attack, words) {
  const facts = [attack.place && `in the ${attack.place}`, attack.payload && `wording ${attack.payload}`].filter(Boolean).join(" · ");
  return el(
    "li",
    { class: "step attack" },
    el("p", { class: "step-head" }, el("span", { class: "chip attack" }, "attack"), foreign("strong", {}, String(attack.name)), ` ${words}`, facts && foreign("span", { class: "small" }, facts)),
    typeof attack.text === "string" && foreign("p", { class: "said" }, attack.text),
  );
}

/** The attacks of a run, and those that it never met. */
function attackList(trace) {
  const attacks = attackRecords(trace);
  if (attacks.length === 0) return null;
  const met = new Set((trace.tool_results ?? []).flatMap((result) => namesOf(result?.attack)));
  return el(
    "ul",
    { class: "attacks" },
    attacks.map((attack) =>
      el(
        "li",
        {},
        el("span", { class: "chip attack" }, "attack"),
        " ",
        foreign("strong", {}, String(attack.name)),
        " ",
        foreign("span", { class: "small" }, [attack.payload && `wording ${attack.payload}`, attack.canary && `canary ${attack.canary}`].filter(Boolean).join(" · ")),
        !met.has(attack.name) && typeof attack.offered_after_calls !== "number" && el("span", { class: "chip" }, "never met"),
      ),
    ),
  );
}

function callStep({ call, result, at, id, isDistractor, carried, touched, failed }) {
  const fault = result?.fault;
  const isError = result?.is_error === true;
  const facts = [timeOf(result) ?? timeOf(call), tokensOf(call)].filter(Boolean).join(" · ");
  return el(
    "li",
    { class: `step call${isError ? " is-error" : ""}${failed.length ? " is-failed" : ""}` },
    el(
      "p",
      { class: "step-head" },
      el("span", { class: "number" }, `call ${at + 1}`),
      foreign("code", { class: "tool" }, id),
      isError && el("span", { class: "chip fail" }, "error"),
      fault !== undefined && el("span", { class: "chip fault" }, "injected fault: ", foreign("span", {}, String(fault))),
      isDistractor && el("span", { class: "chip distractor" }, "distractor"),
      result?.contained === true && el("span", { class: "chip attack" }, "contained: met the attacker's goal, not sent"),
      touched && result?.contained !== true && el("span", { class: "chip attack" }, "has the canary"),
      carried.map((attack) => el("span", { class: "chip attack" }, "carries the attack ", foreign("span", {}, String(attack.name)))),
      facts && el("span", { class: "small" }, facts),
    ),
    call.args !== undefined && part("Arguments", jsonBlock(call.args)),
    result ? part(isError ? "Error" : "Result", resultBlocks(result), isError) : el("p", { class: "small" }, "No result was recorded."),
    failed.map(failedAssertion),
  );
}

/** A request of a direct test that is not a tool call: of resources, prompts or lists. */
function requestStep(request) {
  const isError = request.error !== undefined;
  const answer = isError ? request.error : request.result;
  return el(
    "li",
    { class: `step call${isError ? " is-error" : ""}` },
    el(
      "p",
      { class: "step-head" },
      foreign("code", { class: "tool" }, `${request.server} ${request.method}`),
      isError && el("span", { class: "chip fail" }, "error"),
    ),
    part("Parameters", jsonBlock(request.params)),
    answer === undefined ? el("p", { class: "small" }, "No answer was recorded.") : part(isError ? "Error" : "Result", jsonBlock(answer), isError),
  );
}

/** Messages that servers sent by themselves: requests with the client's answers, notifications. */
function messages(trace) {
  return el(
    "ol",
    { class: "timeline" },
    trace.server_messages.map((message) =>
      el(
        "li",
        { class: "step call" },
        el("p", { class: "step-head" }, foreign("code", { class: "tool" }, `${message.server} ${message.method}`)),
        message.params !== undefined && part("Parameters", jsonBlock(message.params)),
        message.answer !== undefined && part("Answer of the client", jsonBlock(message.answer)),
        message.error !== undefined && part("Error of the client", jsonBlock(message.error), true),
      ),
    ),
  );
}

function part(title, content, isError) {
  return el("div", { class: `part${isError ? " bad" : ""}` }, el("span", { class: "part-title" }, title), el("div", { class: "part-body" }, content));
}

function resultBlocks(result) {
  const blocks = [];
  const content = result.content;
  if (Array.isArray(content)) {
    for (const block of content) {
      if (block?.type === "text" && typeof block.text === "string") blocks.push(foreign("pre", { tabindex: "0" }, block.text));
      else blocks.push(jsonBlock(block));
    }
  } else if (content !== undefined && content !== null) {
    blocks.push(jsonBlock(content));
  }
  if (result.structured_content !== undefined) blocks.push(jsonBlock(result.structured_content, { class: "structured", "aria-label": "Structured content" }));
  if (result.error !== undefined) blocks.push(jsonBlock(result.error));
  if (result.error_kind !== undefined) blocks.push(foreign("p", { class: "small" }, `kind of error: ${result.error_kind}`));
  return blocks.length ? blocks : el("p", { class: "small" }, "empty");
}

function timeOf(entry) {
  const ms = entry?.duration_ms ?? entry?.took_ms ?? entry?.latency_ms;
  return typeof ms === "number" ? duration(ms) : null;
}

function tokensOf(entry) {
  const tokens = entry?.tokens ?? entry?.usage;
  const total = typeof tokens === "number" ? tokens : (tokens?.total ?? sum(tokens?.input, tokens?.output));
  return typeof total === "number" ? `${compact(total)} tokens` : null;
}

function sum(input, output) {
  return typeof input === "number" && typeof output === "number" ? input + output : undefined;
}

/** Facts about the whole run: tokens, the end, stderr, the offered tools. */
function extras(trace) {
  const tokens = trace.conversation?.tokens;
  const facts = [];
  if (tokens) {
    const parts = Object.entries(tokens).filter(([, value]) => typeof value === "number");
    facts.push(`Tokens: ${parts.map(([name, value]) => `${name} ${count(value)}`).join(", ")}`);
  }
  if (trace.stop_reason !== undefined) facts.push(`Stopped: ${String(trace.stop_reason)}`);
  return el(
    "div",
    { class: "extras" },
    facts.map((text) => foreign("p", { class: "small" }, text)),
    trace.task !== undefined && part("Task", jsonBlock(trace.task)),
    trace.cancellation !== undefined && part("Cancellation", jsonBlock(trace.cancellation)),
    trace.server_messages?.length > 0 && lazy(`${count(trace.server_messages.length)} messages of servers`, () => messages(trace)),
    trace.judgements?.length && lazy("Opinions of judges", () => jsonBlock(trace.judgements)),
    trace.stderr !== undefined && lazy("Standard error of servers", () => jsonBlock(trace.stderr)),
    trace.catalog?.length && lazy(`${count(trace.catalog.length)} offered tools`, () => tools(trace)),
  );
}

function tools(trace) {
  const distractors = new Set(trace.distractors ?? []);
  return el(
    "ul",
    { class: "tools" },
    trace.catalog.map((tool) => {
      const id = tool.server ? `${tool.server}.${tool.name}` : String(tool.name);
      return el(
        "li",
        {},
        foreign("code", {}, id),
        distractors.has(id) && el("span", { class: "chip distractor" }, "distractor"),
        " ",
        foreign("span", { class: "small" }, String(tool.description ?? "")),
      );
    }),
  );
}
