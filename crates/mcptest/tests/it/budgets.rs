//! Caps: what is finished is reported, what is not is named, exit code 4.

use serde_json::{Value, json};

use crate::stand_in::{Answer, StandIn};
use crate::support::{Ran, folder, run};

const HEAD: &str = "
servers:
  desk: { command: [mcptest, mock, --preset, tidy] }
prices:
  builtin/scripted: { input_per_mtok: 1, output_per_mtok: 1 }
";

/// A test with this number of runs, each of two requests at 1000 tokens, which is a tenth of a
/// cent.
fn test(name: &str, runs: u32, more: &str) -> String {
    format!(
        "
  - name: {name}
    model: builtin/scripted
    servers: [desk]
    prompt: hello
    runs: {runs}
    max_tokens: 100
    script: [[{{calls: [{{tool: none_such}}], usage: {{input: 900, output: 100}}}}, {{say: Done., usage: {{input: 950, output: 50}}}}]]
    expect: [{{final_response: Done.}}]
{more}"
    )
}

fn run_suite(text: &str, args: &[&str]) -> Ran {
    let dir = folder(&[("suite.yml", text)]);
    let mut all = vec!["run", "suite.yml", "--reporter", "json"];
    all.extend(args);
    run(dir.path(), &all)
}

fn verdicts(report: &Value, test: usize) -> Vec<&str> {
    report["tests"][test]["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["verdict"].as_str().unwrap())
        .collect()
}

#[test]
fn a_suite_that_is_out_of_money_keeps_what_is_finished() {
    let text = format!(
        "{HEAD}budget: {{ per_suite_usd: 0.005 }}\nagents:{}{}{}",
        test("a", 1, ""),
        test("b", 3, ""),
        test("c", 2, "")
    );
    let ran = run_suite(&text, &["--jobs", "1"]);
    let report = ran.json();
    assert_eq!(
        (ran.code, &report["exit_code"]),
        (4, &json!(4)),
        "{}",
        ran.stderr
    );
    assert_eq!(report["tests"][0]["verdict"], "pass");
    // Two requests cost 0.002: the third run gets its first request, and not its second.
    assert_eq!(verdicts(&report, 1), ["pass", "error", "error"]);
    assert_eq!(verdicts(&report, 2), ["error", "error"]);
    let error = |test: usize, run: usize| report["tests"][test]["runs"][run]["error"].clone();
    assert_eq!(
        error(1, 1),
        json!({"kind": "budget", "message": "the suite's budget is spent ($0.005 of $0.005); a request to `builtin/scripted` was not sent"})
    );
    let never = json!({"kind": "budget", "message": "never started: the suite's budget is spent ($0.005 of $0.005)"});
    assert_eq!(
        (error(1, 2), error(2, 0), error(2, 1)),
        (never.clone(), never.clone(), never)
    );
    // What a stopped run did is still there to see.
    assert_eq!(
        report["tests"][1]["runs"][1]["trace"]["tool_calls"][0]["name"],
        "none_such"
    );
    assert_eq!(
        report["spend"],
        json!({"requests": 5, "input_tokens": 4600, "output_tokens": 400, "usd": 0.005})
    );
    assert_eq!(report["tests"][0]["spend"]["usd"], json!(0.002));
    assert_eq!(report["tests"][2].get("spend"), None);
}

#[test]
fn a_test_that_is_out_of_money_leaves_the_others_alone() {
    let caps = "    budget: { usd: 0.001 }\n";
    let text = format!(
        "{HEAD}budget: {{ per_test_usd: 1 }}\nagents:{}{}",
        test("poor", 2, caps),
        test("rich", 2, "")
    );
    let ran = run_suite(&text, &["--jobs", "1"]);
    let report = ran.json();
    assert_eq!(ran.code, 4);
    assert_eq!(verdicts(&report, 0), ["error", "error"]);
    assert_eq!(verdicts(&report, 1), ["pass", "pass"]);
}

#[test]
fn the_command_line_overrides_the_suite() {
    let text = format!(
        "{HEAD}budget: {{ per_suite_usd: 0.001, max_tokens: 1000 }}\nagents:{}",
        test("a", 2, "")
    );
    assert_eq!(run_suite(&text, &[]).code, 4);
    assert_eq!(run_suite(&text, &["--max-usd", "1"]).code, 4);
    assert_eq!(
        run_suite(&text, &["--max-usd", "1", "--max-tokens", "100000"]).code,
        0
    );
    assert_eq!(
        run_suite(
            &text,
            &["--max-usd", "1", "--max-tokens", "2000", "--jobs", "1"]
        )
        .code,
        4
    );
    let wrong = run_suite(&text, &["--max-usd", "much"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("expected an amount of dollars"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn many_parallel_runs_overshoot_by_at_most_one_request() {
    let text = format!(
        "{HEAD}budget: {{ per_suite_usd: 0.0105 }}\nagents:{}",
        test("a", 50, "")
    );
    let ran = run_suite(&text, &["--jobs", "64"]);
    let report = ran.json();
    assert_eq!(ran.code, 4);
    assert_eq!(report["spend"]["usd"], json!(0.011));
    assert_eq!(verdicts(&report, 0).len(), 50);
}

#[test]
fn suites_share_what_is_given_on_the_command_line() {
    let text = format!("{HEAD}agents:{}", test("a", 2, ""));
    let dir = folder(&[("a.yml", &text), ("b.yml", &text)]);
    let args = [
        "run",
        ".",
        "--reporter",
        "json",
        "--jobs",
        "1",
        "--max-usd",
        "0.005",
    ];
    let ran = run(dir.path(), &args);
    let report = ran.json();
    assert_eq!((ran.code, &report["spend"]["usd"]), (4, &json!(0.005)));
    assert_eq!(verdicts(&report, 0), ["pass", "pass"]);
    assert_eq!(verdicts(&report, 1), ["error", "error"]);
}

#[test]
fn time_that_is_over_stops_agents_and_direct_calls() {
    let text = "
servers:
  stuck: { command: [mcptest, mock, --preset, tidy, --fault, hang] }
budget: { max_duration: 300ms }
agents:
  - name: waits
    model: builtin/scripted
    servers: [stuck]
    prompt: hello
    runs: 2
    script: [[{calls: [{tool: search_tickets, args: {query: x}}]}]]
    expect: [{final_response: Done.}]
tools:
  - { name: hangs, server: stuck, tool: search_tickets, args: { query: x } }
";
    let ran = run_suite(text, &["--jobs", "2"]);
    let report = ran.json();
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let mut messages: Vec<&str> = Vec::new();
    for test in report["tests"].as_array().unwrap() {
        for run in test["runs"].as_array().unwrap() {
            assert_eq!(run["error"]["kind"], "budget");
            messages.push(run["error"]["message"].as_str().unwrap());
        }
    }
    assert_eq!(messages.len(), 3);
    for message in messages {
        assert!(
            message.ends_with("the time of the suite (300ms) is over"),
            "{message}"
        );
    }
    assert_eq!(run_suite(text, &["--max-duration", "200ms"]).code, 4);
}

#[test]
fn the_spend_is_reported_without_a_cap() {
    let text = format!("{HEAD}agents:{}", test("a", 2, ""));
    let report = run_suite(&text, &[]).json();
    assert_eq!(report["tests"][0]["spend"], report["spend"]);
    assert_eq!(
        report["spend"],
        json!({"requests": 4, "input_tokens": 3700, "output_tokens": 300, "usd": 0.004})
    );
    // Usage that is not told is not zero.
    let silent = text.replace(", usage: {input: 950, output: 50}", "");
    let report = run_suite(&silent, &[]).json();
    assert_eq!(
        report["spend"],
        json!({"requests": 4, "input_tokens": null, "output_tokens": null, "usd": null})
    );
    // Built-in models cost nothing, unless they have a price.
    let free = text.replace("builtin/scripted: {", "another: {");
    assert_eq!(run_suite(&free, &[]).json().get("spend"), None);
}

/// A live provider is asked no more often than the money allows, however many runs wait for it.
#[test]
fn a_provider_is_not_asked_once_the_money_is_spent() {
    let stand_in = StandIn::start(|_, _| {
        Answer::ok(json!({
            "id": "x", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 100, "total_tokens": 200},
        }))
    });
    let text = format!(
        "
servers: {{ desk: {{ command: [mcptest, mock, --preset, tidy] }} }}
providers: {{ mine: {{ base_url: '{}' }} }}
prices: {{ mine/m: {{ input_per_mtok: 0, output_per_mtok: 10 }} }}
budget: {{ per_suite_usd: 0.0095 }}
agents:
  - {{ name: a, model: mine/m, servers: [desk], prompt: hello, runs: 40, max_tokens: 100, expect: [{{ final_response: Done. }}] }}
",
        stand_in.url("/v1")
    );
    let ran = run_suite(&text, &["--jobs", "40"]);
    let report = ran.json();
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    // A tenth of a cent each: the tenth request is the one that overshoots.
    assert_eq!(report["spend"]["usd"], json!(0.01));
    assert_eq!(stand_in.seen().len(), 10);
    assert_eq!(
        verdicts(&report, 0)
            .iter()
            .filter(|verdict| **verdict == "pass")
            .count(),
        10
    );
}

#[test]
fn a_model_without_a_price_is_refused_under_a_cap() {
    let text = "
servers: { desk: { command: [mcptest, mock, --preset, tidy] } }
providers: { mine: { base_url: 'http://127.0.0.1:1/v1' } }
agents:
  - { name: a, model: mine/m, servers: [desk], prompt: hello, expect: [{ final_response: Done. }] }
";
    let loaded = run_suite(&format!("budget: {{ per_suite_usd: 1 }}\n{text}"), &[]);
    assert_eq!(loaded.code, 2);
    assert!(
        loaded
            .stderr
            .contains("no price is known for model `mine/m`"),
        "{}",
        loaded.stderr
    );
    assert!(
        loaded.stderr.contains("--> suite.yml:6:"),
        "{}",
        loaded.stderr
    );
    // A cap of the command line is found out about when the run begins.
    let ran = run_suite(text, &["--max-usd", "1"]);
    let error = ran.json()["tests"][0]["runs"][0]["error"].clone();
    assert_eq!((ran.code, &error["kind"]), (2, &json!("provider")));
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("no price is known"),
        "{error}"
    );
}
