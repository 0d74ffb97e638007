//! Live models: every dialect, whole and streamed, against stand-ins that other people made.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Checks;
use super::processes::Finished;
use super::stand_ins::{KEY, StandIn, StandIns};
use super::testbed::{Testbed, expect, report};

const SUITE: &str = "tests/e2e/providers/providers.yml";

/// Four dialects, each whole and streamed.
const MODELS: usize = 8;

pub fn run(testbed: &Testbed, stand_ins: &StandIns<'_>, checks: &mut Checks<'_>) {
    for test in [
        "parallel calls",
        "tokens are counted",
        "a picture",
        "an error of the tool",
        "an invented tool",
        "no end",
    ] {
        checks.check(
            &format!("providers: aimock, {test}, in every dialect"),
            || {
                let at = Addresses::plain(stand_ins.oracle()?);
                all_pass(testbed, &at, test, MODELS).map(drop)
            },
        );
    }
    checks.check(
        "providers: what is sent fits the official SDKs' own types",
        || sent(testbed, stand_ins),
    );
    checks.check(
        "providers: recorded in every dialect, replayed without them to the same bytes",
        || replayed(testbed, stand_ins),
    );
    checks.check(
        "providers: refusals are one row each, and every other result is there",
        || refused(testbed, stand_ins),
    );
    checks.check(
        "providers: 504 runs with a fifth of the requests refused or cut off, none lost",
        || many(testbed, stand_ins),
    );
    checks.check(
        "providers: llmock, a tool of its choice, in every dialect",
        || {
            let llmock = stand_ins.llmock()?;
            all_pass(
                testbed,
                &Addresses::of_llmock(llmock),
                "the stand-in chooses",
                MODELS,
            )
            .map(drop)
        },
    );
    for (name, fault, at_least) in [
        (
            "a rate limit",
            json!({"type": "fail", "status": 429, "retry_after": 1, "times": 8}),
            8,
        ),
        (
            "overload",
            json!({"type": "fail", "status": 529, "times": 8}),
            8,
        ),
        (
            "a server error",
            json!({"type": "fail", "status": 500, "times": 8}),
            8,
        ),
        (
            "streams that end early",
            json!({"type": "stream_fault", "kind": "truncate", "after_chunks": 1, "times": 4}),
            3,
        ),
        (
            "streams cut off",
            json!({"type": "stream_fault", "kind": "disconnect", "after_chunks": 1, "times": 4}),
            3,
        ),
        (
            "broken chunks",
            json!({"type": "stream_fault", "kind": "malformed", "after_chunks": 1, "times": 4}),
            3,
        ),
    ] {
        checks.check(
            &format!("providers: llmock, {name}, no finding in its verdict"),
            || resilient(testbed, stand_ins.llmock()?, &fault, at_least),
        );
    }
    checks.check(
        "providers: llmock, broken arguments and invented tools are evidence",
        || evidence(testbed, stand_ins.llmock()?),
    );
    checks.check("providers: litellm as translator, in every dialect", || {
        let litellm = stand_ins.litellm()?;
        all_pass(
            testbed,
            &Addresses::plain(litellm),
            "parallel calls",
            MODELS,
        )
        .map(drop)
    });
    checks.check(
        "providers: litellm, a block that nobody asked for is kept",
        || unknown_block(testbed, stand_ins.litellm()?),
    );
}

/// Where each dialect is spoken.
pub struct Addresses {
    anthropic: String,
    openai: String,
    gemini: String,
}

impl Addresses {
    /// Nothing listens there.
    fn nowhere() -> Self {
        let nowhere = "http://127.0.0.1:1".to_owned();
        Self {
            anthropic: nowhere.clone(),
            openai: nowhere.clone(),
            gemini: nowhere,
        }
    }

    pub fn plain(of: &StandIn) -> Self {
        Self {
            anthropic: of.url.clone(),
            openai: format!("{}/v1", of.url),
            gemini: of.url.clone(),
        }
    }

    fn of_llmock(of: &StandIn) -> Self {
        Self {
            anthropic: format!("{}/anthropic", of.url),
            openai: format!("{}/v1", of.url),
            gemini: format!("{}/gemini", of.url),
        }
    }
}

fn run_suite(testbed: &Testbed, at: &Addresses, filter: &str) -> Result<Finished> {
    run_suite_with(testbed, at, filter, &[])
}

fn run_suite_with(
    testbed: &Testbed,
    at: &Addresses,
    filter: &str,
    more: &[&str],
) -> Result<Finished> {
    let mut command = suite_command(testbed, at, filter)?;
    command.args(more);
    let finished = testbed.finish(&mut command)?;
    ensure!(
        !finished.stdout.contains(KEY) && !finished.stderr.contains(KEY),
        "the key is in the output"
    );
    Ok(finished)
}

/// The tests of the suite that have this in their name.
pub fn suite_command(testbed: &Testbed, at: &Addresses, filter: &str) -> Result<Command> {
    let mut command = testbed.mcptest(&["run", SUITE, "--reporter=json", "--filter", filter])?;
    command
        .env("E2E_ANTHROPIC_URL", &at.anthropic)
        .env("E2E_OPENAI_URL", &at.openai)
        .env("E2E_GEMINI_URL", &at.gemini)
        .env("E2E_PROVIDER_KEY", KEY);
    Ok(command)
}

fn tests(report: &Value) -> &[Value] {
    report["tests"].as_array().map_or(&[], Vec::as_slice)
}

fn all_pass(testbed: &Testbed, at: &Addresses, filter: &str, count: usize) -> Result<Value> {
    let finished = run_suite(testbed, at, filter)?;
    let report = report(&finished)?;
    expect(&report, "/verdict", "pass")?;
    finished.expect_code(0)?;
    let found = tests(&report).len();
    ensure!(found == count, "{found} tests instead of {count}");
    Ok(report)
}

/// Errors and pictures in the way of each dialect, and nothing in any request that the SDKs do not
/// know.
fn sent(testbed: &Testbed, stand_ins: &StandIns<'_>) -> Result<()> {
    let oracle = stand_ins.oracle()?;
    for test in ["an error of the tool", "a picture"] {
        all_pass(testbed, &Addresses::plain(oracle), test, MODELS)?;
    }
    let seen = oracle.get("/verdict")?;
    ensure!(
        seen["problems"] == json!([]),
        "the SDKs refuse:\n{:#}",
        seen["problems"]
    );
    let requests = seen["requests"].as_array().context("no requests")?;
    let bodies = |dialect: &str| -> String {
        let of_dialect = requests
            .iter()
            .filter(|request| request["dialect"] == dialect);
        of_dialect
            .map(|request| request["body"].to_string())
            .collect()
    };
    for (dialect, wanted) in [
        (
            "anthropic",
            &[
                "\"is_error\":true",
                "\"media_type\":\"image/png\"",
                "tool_result",
            ][..],
        ),
        (
            "openai_chat",
            &[
                "\"role\":\"tool\"",
                "\"content\":\"Error",
                "[image image/png: left out]",
                "\"include_usage\":true",
            ],
        ),
        (
            "openai_responses",
            &[
                "function_call_output",
                "\"output\":\"Error",
                "\"store\":false",
                "reasoning.encrypted_content",
            ],
        ),
        (
            "gemini",
            &[
                "functionResponse",
                "\"response\":{\"error\":\"",
                "parametersJsonSchema",
                "\"response\":{\"output\":\"",
            ],
        ),
    ] {
        let bodies = bodies(dialect);
        for words in wanted {
            ensure!(
                bodies.contains(words),
                "no request of {dialect} has {words}"
            );
        }
    }
    // The oracle itself must be able to find something.
    let misspelt = json!({"model": "claude", "max_tokens": 5, "messages": [{"role": "user", "content": "I need two sums."}], "temprature": 1});
    oracle.post("/v1/messages", &misspelt)?;
    let problems = oracle.get("/verdict")?["problems"].to_string();
    ensure!(
        problems.contains("temprature"),
        "the oracle does not see a misspelt field"
    );
    Ok(())
}

/// Tool results with errors among them; the replay has neither model nor server.
fn replayed(testbed: &Testbed, stand_ins: &StandIns<'_>) -> Result<()> {
    for test in ["parallel calls", "an error of the tool", "no end"] {
        let cassettes = testbed.scratch("provider-cassettes")?;
        let cassettes = cassettes.to_string_lossy();
        let run = |at: &Addresses, how: &str| {
            run_suite_with(
                testbed,
                at,
                test,
                &["--no-timing", "--cassettes", &cassettes, how],
            )
        };
        let live = run(&Addresses::plain(stand_ins.aimock()?), "--record")?;
        live.expect_code(0)?;
        ensure!(
            !holds(Path::new(&*cassettes), KEY)?,
            "{test}: the key is in a cassette"
        );
        ensure!(
            holds(Path::new(&*cassettes), "claude-sonnet-4-5")?,
            "{test}: no cassette was written"
        );
        let again = run(&Addresses::nowhere(), "--replay-only")?;
        ensure!(
            (again.code, &again.stdout) == (live.code, &live.stdout),
            "{test}: the reports differ\nlive: {}\nreplayed: {}\n{}",
            live.stdout,
            again.stdout,
            again.stderr
        );
    }
    Ok(())
}

/// Returns true if a file in the folder, or below it, contains this string.
fn holds(folder: &Path, text: &str) -> Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            holds(&path, text)?
        } else {
            std::fs::read_to_string(&path)?.contains(text)
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A refused key and a refused model among tests that pass.
fn refused(testbed: &Testbed, stand_ins: &StandIns<'_>) -> Result<()> {
    let finished = run_suite(testbed, &Addresses::plain(stand_ins.aimock()?), "a ")?;
    finished.expect_code(2)?;
    let report = report(&finished)?;
    for (name, verdict, kind, words) in [
        ("a picture", "pass", Value::Null, ""),
        (
            "a key that is refused",
            "error",
            json!("auth"),
            "That key is not known here",
        ),
        (
            "a model that is refused",
            "error",
            json!("provider"),
            "There is no such model",
        ),
    ] {
        let rows: Vec<&Value> = tests(&report)
            .iter()
            .filter(|test| test["name"] == name)
            .collect();
        ensure!(rows.len() == MODELS, "{} rows of `{name}`", rows.len());
        for row in rows {
            expect(row, "/verdict", verdict)?;
            expect(row, "/runs/0/error/kind", kind.clone())?;
            let message = row
                .pointer("/runs/0/error/message")
                .and_then(Value::as_str)
                .unwrap_or_default();
            ensure!(
                message.contains(words),
                "`{words}` is missing in: {message}"
            );
        }
    }
    Ok(())
}

fn many(testbed: &Testbed, stand_ins: &StandIns<'_>) -> Result<()> {
    let aimock = stand_ins.aimock()?;
    let asked_before = aimock.total("/__aimock/journal?limit=1&path=/v1/messages")?;
    aimock.post(
        "/__aimock/chaos",
        &json!({"rateLimitRate": 0.1, "disconnectRate": 0.1}),
    )?;
    let outcome = all_pass(testbed, &Addresses::plain(aimock), "many runs", MODELS);
    aimock.post("/__aimock/chaos", &json!({}))?;
    let report = outcome?;
    let runs = tests(&report)
        .iter()
        .filter_map(|test| test["runs"].as_array())
        .flatten();
    let (mut count, mut passed) = (0, 0);
    for run in runs {
        count += 1;
        passed += usize::from(run["verdict"] == "pass");
    }
    ensure!(
        (count, passed) == (504, 504),
        "{passed} of {count} runs passed"
    );
    // 63 runs of two turns, whole and streamed: whatever is more than that was sent again.
    let asked = aimock.total("/__aimock/journal?limit=1&path=/v1/messages")? - asked_before;
    ensure!(
        asked > 2 * 126,
        "only {asked} requests for 126 runs of two turns: nothing was refused"
    );
    Ok(())
}

/// One fault for each of the first requests; everything passes nevertheless, and llmock has nothing
/// to say against its client.
fn resilient(testbed: &Testbed, llmock: &StandIn, fault: &Value, at_least: u64) -> Result<()> {
    llmock.post("/_llmock/reset", &json!({}))?;
    llmock.post("/_llmock/scenario", &json!({"behaviors": [fault]}))?;
    all_pass(
        testbed,
        &Addresses::of_llmock(llmock),
        "the stand-in chooses",
        MODELS,
    )?;
    let verdict = llmock.get("/_llmock/verdict")?;
    ensure!(verdict["findings"] == json!([]), "{verdict:#}");
    let injected = verdict["faults_injected"].as_u64().unwrap_or(0);
    ensure!(
        injected >= at_least,
        "only {injected} faults were injected: {verdict}"
    );
    Ok(())
}

/// A mistake of a model is a failure of the agent, with all details in the trace; never an
/// error.
fn evidence(testbed: &Testbed, llmock: &StandIn) -> Result<()> {
    for (kind, words) in [
        ("malformed_arguments", "arguments"),
        ("unknown_tool", "Unknown tool"),
    ] {
        llmock.post("/_llmock/reset", &json!({}))?;
        let fault = json!({"type": "tool_fault", "kind": kind, "times": MODELS});
        llmock.post("/_llmock/scenario", &json!({"behaviors": [fault]}))?;
        let finished = run_suite(
            testbed,
            &Addresses::of_llmock(llmock),
            "the stand-in chooses",
        )?;
        finished.expect_code(1)?;
        let report = report(&finished)?;
        ensure!(
            tests(&report).len() == MODELS,
            "{} tests",
            tests(&report).len()
        );
        for test in tests(&report) {
            expect(test, "/verdict", "fail")?;
            let trace = &test["runs"][0]["trace"];
            expect(trace, "/tool_results/0/is_error", true)?;
            let told = trace["tool_results"][0]["content"].to_string();
            ensure!(told.contains(words), "{kind}: the model received {told}");
            ensure!(
                trace["final_response"].is_string(),
                "{kind}: no answer after the error"
            );
        }
    }
    Ok(())
}

/// litellm puts a `redacted_thinking` block before the text of its Anthropic answer.
fn unknown_block(testbed: &Testbed, litellm: &StandIn) -> Result<()> {
    let report = all_pass(
        testbed,
        &Addresses::plain(litellm),
        "parallel calls",
        MODELS,
    )?;
    for test in tests(&report).iter().filter(|test| {
        test["model"]
            .as_str()
            .is_some_and(|model| model.starts_with("anthropic"))
    }) {
        let turns = &test["runs"][0]["trace"]["conversation"]["turns"];
        let native = turns.to_string();
        ensure!(
            native.contains("redacted_thinking"),
            "the block is gone: {native}"
        );
        expect(test, "/runs/0/trace/final_response", "Both sums are there.")?;
    }
    Ok(())
}
