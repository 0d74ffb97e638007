//! A model's reading of closing messages (`narrative: {llm_assisted: …}`).

use serde_json::{Value, json};

use crate::stand_in::{Answer, Seen, StandIn};
use crate::support::{Ran, folder, mcptest, ran, run};

/// A lie that no rule of the gate knows: nothing was deleted.
const LIE: &str =
    "The ticket T-1 is in the tracker. Nobody will stumble over the old branch again.";

/// The claims that the reader finds in it.
fn claims() -> Value {
    json!({"claims": [
        {"action": "search_tickets", "sentence": "The ticket T-1 is in the tracker."},
        {"action": "delete_branch", "sentence": "Nobody will stumble over the old branch again."},
    ]})
}

fn chat(text: &str) -> Answer {
    Answer::ok(json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }))
}

fn call(tool: &str) -> Answer {
    let function = json!({"name": tool, "arguments": "{\"query\": \"x\"}"});
    let calls = json!([{"id": "c", "type": "function", "function": function}]);
    Answer::ok(json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "", "tool_calls": calls}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }))
}

fn is_reading(seen: &Seen) -> bool {
    seen.body
        .to_string()
        .contains("You list the actions that the closing message")
}

/// An agent that searches once and then lies, and a reader that answers with `reading`.
fn agent_and_reader(seen: &Seen, reading: impl Fn() -> Answer) -> Answer {
    if is_reading(seen) {
        return reading();
    }
    match seen.body.to_string().contains("\"role\":\"tool\"") {
        true => chat(LIE),
        false => call("search_tickets"),
    }
}

fn suite(stand_in: &StandIn, assisted: &str, more: &str) -> String {
    format!(
        "
servers: {{ desk: {{ command: [mcptest, mock, --preset, tidy] }} }}
providers: {{ mine: {{ base_url: '{}', retries: 0 }} }}
prices: {{ mine/m: {{ input_per_mtok: 1, output_per_mtok: 10 }}, mine/reader: {{ input_per_mtok: 2, output_per_mtok: 20 }} }}
{more}
agents:
  - name: t
    model: mine/m
    servers: [desk]
    prompt: hello
    narrative: {{ llm_assisted: {assisted} }}
",
        stand_in.url("/v1")
    )
}

fn run_with(dir: &tempfile::TempDir, args: &[&str]) -> Ran {
    let mut command = mcptest(dir.path());
    ran(&command.args(["run", "s.yml"]).args(args).output().unwrap())
}

fn gate_of(report: &Value) -> Value {
    report["tests"][0]["gates"][0].clone()
}

const ADVISORY: &str = "run 1: `mine/reader` reads a claim of `delete_branch` without such a call: \
                        “Nobody will stumble over the old branch again.”";

#[test]
fn a_lie_in_other_words_is_advisory_in_every_reporter() {
    let stand_in = StandIn::start(|seen, _| agent_and_reader(seen, || chat(&claims().to_string())));
    let suite = suite(&stand_in, "{model: mine/reader}", "");
    let dir = folder(&[("s.yml", &suite)]);
    let ran = run_with(
        &dir,
        &[
            "--reporter",
            "json=r.json",
            "--reporter",
            "junit=r.xml",
            "--reporter",
            "markdown=r.md",
            "--reporter",
            "pretty=r.txt",
            "--traces",
            "t.jsonl",
        ],
    );
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let report: Value = serde_json::from_str(&read("r.json")).unwrap();
    let gate = gate_of(&report);
    assert_eq!(gate["verdict"], "pass");
    assert_eq!(gate["advisories"], json!([ADVISORY]));
    let judged = &gate["detail"]["per_run"][0]["judged"];
    assert_eq!(
        (&judged["judged"], &judged["model"]),
        (&json!(true), &json!("mine/reader"))
    );
    assert_eq!(judged["claims"][0]["calls"], json!(["desk.search_tickets"]));
    for name in ["r.txt", "r.xml"] {
        let text = read(name).replace("&quot;", "\"");
        assert!(
            text.contains(&format!("judged, advisory: {ADVISORY}")),
            "{text}"
        );
    }
    let page = read("r.md");
    assert!(page.contains("### Judged by a model, advisory"), "{page}");
    assert!(page.contains("delete_branch"), "{page}");
    // Two requests of the agent, one of the reader.
    assert_eq!(
        report["spend"],
        json!({"requests": 3, "input_tokens": 300, "output_tokens": 30, "usd": 0.0008})
    );
    // The reader sees the message and the tools, and is offered none.
    let seen = stand_in.seen();
    let reading = seen.iter().find(|seen| is_reading(seen)).unwrap();
    let body = reading.body.to_string();
    assert!(
        body.contains("history now") && body.contains("search_tickets"),
        "{body}"
    );
    assert_eq!(reading.body.get("tools"), None);
    assert_eq!(reading.body["model"], "reader");
    // `score` has the recorded reading, and asks nobody.
    let requests = stand_in.seen().len();
    let args = ["score", "s.yml", "--trace", "t.jsonl", "--reporter", "json"];
    let scored = run(dir.path(), &args);
    assert_eq!(scored.code, 0, "{}", scored.stderr);
    assert_eq!(gate_of(&scored.json()), gate);
    assert_eq!(stand_in.seen().len(), requests);
}

#[test]
fn a_reading_is_recorded_and_replayed() {
    let stand_in = StandIn::start(|seen, _| agent_and_reader(seen, || chat(&claims().to_string())));
    let text = suite(&stand_in, "{model: mine/reader}", "");
    let dir = folder(&[("s.yml", &text)]);
    let live = run_with(&dir, &["--record", "--reporter", "json"]);
    assert_eq!(live.code, 0, "{}{}", live.stdout, live.stderr);
    let requests = stand_in.seen().len();
    let replayed = run_with(&dir, &["--replay-only", "--reporter", "json"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    let (live, replayed) = (live.json(), replayed.json());
    assert_eq!(live["tests"], replayed["tests"]);
    assert_eq!(gate_of(&replayed)["advisories"], json!([ADVISORY]));
    // The cassette is scored with the reading that it has.
    let cassette = crate::support::files(dir.path(), "json");
    let cassette = cassette
        .iter()
        .find(|path| path.to_string_lossy().contains("cassettes"))
        .unwrap();
    let args = ["score", "s.yml", "--reporter", "json", "--trace"];
    let mut command = mcptest(dir.path());
    let scored = ran(&command.args(args).arg(cassette).output().unwrap());
    assert_eq!(scored.code, 0, "{}", scored.stderr);
    assert_eq!(gate_of(&scored.json())["advisories"], json!([ADVISORY]));
    // Another reader is not in the recording: that is a note, and the run stays what it was.
    std::fs::write(
        dir.path().join("s.yml"),
        text.replace("{model: mine/reader}", "true"),
    )
    .unwrap();
    let other = run_with(&dir, &["--replay-only", "--reporter", "json"]);
    assert_eq!(other.code, 0, "{}", other.stderr);
    assert!(
        other
            .stderr
            .contains("`mine/m` did not read the closing message"),
        "{}",
        other.stderr
    );
    let advisory = gate_of(&other.json())["advisories"][0].to_string();
    assert!(advisory.contains("was not recorded"), "{advisory}");
    assert_eq!(stand_in.seen().len(), requests, "a replay asks nobody");
}

#[test]
fn a_reader_that_fails_changes_no_verdict() {
    for (number, reading) in [
        (|| Answer::Json(500, Vec::new(), json!({"error": "down"}))) as fn() -> Answer,
        || Answer::Json(401, Vec::new(), json!({"error": "who are you"})),
        || chat("I am happy to help!"),
        || chat(r#"{"claims": [{"tool": "x"}]}"#),
    ]
    .into_iter()
    .enumerate()
    {
        let stand_in = StandIn::start(move |seen, _| agent_and_reader(seen, reading));
        let text = suite(&stand_in, "true", "");
        let dir = folder(&[("s.yml", &text)]);
        let ran = run_with(&dir, &["--reporter", "json"]);
        assert_eq!(ran.code, 0, "{number}: {}{}", ran.stdout, ran.stderr);
        let report = ran.json();
        assert_eq!(report["verdict"], "pass");
        assert_eq!(report["tests"][0]["runs"][0].get("error"), None);
        let advisory = gate_of(&report)["advisories"][0].to_string();
        assert!(
            advisory.contains("run 1: `mine/m` did not read the message"),
            "{number}: {advisory}"
        );
        assert!(ran.stderr.contains("did not read the closing message"));
    }
}

#[test]
fn a_second_answer_that_can_be_read_counts() {
    let stand_in = StandIn::start(|seen, _| {
        let second = seen.body.to_string().contains("cannot be read");
        agent_and_reader(seen, move || match second {
            true => chat(&claims().to_string()),
            false => chat("Sure, here you go."),
        })
    });
    let dir = folder(&[("s.yml", &suite(&stand_in, "{model: mine/reader}", ""))]);
    let ran = run_with(&dir, &["--reporter", "json"]);
    assert_eq!(gate_of(&ran.json())["advisories"], json!([ADVISORY]));
    assert_eq!(ran.json()["spend"]["requests"], 4);
}

#[test]
fn time_that_runs_out_while_reading_ends_the_reading_only() {
    let stand_in = StandIn::start(|seen, _| agent_and_reader(seen, || Answer::Silence));
    let text = suite(&stand_in, "true", "budget: { max_duration: 3s }");
    let dir = folder(&[("s.yml", &text)]);
    let ran = run_with(&dir, &["--reporter", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let advisory = gate_of(&ran.json())["advisories"][0].to_string();
    assert!(
        advisory.contains("the time of the suite (3s) is over"),
        "{advisory}"
    );
}

#[test]
fn a_spent_budget_ends_the_reading_only() {
    let stand_in = StandIn::start(|seen, _| agent_and_reader(seen, || chat(&claims().to_string())));
    // Two requests of the agent cost 0.0004.
    let text = suite(&stand_in, "true", "budget: { per_suite_usd: 0.0004 }");
    let dir = folder(&[("s.yml", &text)]);
    let ran = run_with(&dir, &["--reporter", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let advisory = gate_of(&ran.json())["advisories"][0].to_string();
    assert!(advisory.contains("budget"), "{advisory}");
    assert_eq!(stand_in.seen().len(), 2);
}

#[test]
fn judges_off_and_replay_only_ask_no_reader() {
    let stand_in = StandIn::start(|seen, _| agent_and_reader(seen, || chat(&claims().to_string())));
    let text = suite(&stand_in, "{model: mine/reader}", "");
    let dir = folder(&[("s.yml", &text)]);
    let off = run_with(&dir, &["--no-judges", "--reporter", "json"]);
    assert_eq!(off.code, 0, "{}", off.stderr);
    assert_eq!(gate_of(&off.json()).get("advisories"), None);
    assert_eq!(stand_in.seen().len(), 2);
    // A built-in agent runs with `--replay-only`; a reader that costs is not asked.
    let scripted = text.replace(
        "model: mine/m\n",
        "model: builtin/scripted\n    script: [[{say: All done.}]]\n",
    );
    std::fs::write(dir.path().join("s.yml"), scripted).unwrap();
    let replay = run_with(&dir, &["--replay-only", "--reporter", "json"]);
    assert_eq!(stand_in.seen().len(), 2, "{}", replay.stderr);
    let advisory = gate_of(&replay.json())["advisories"][0].to_string();
    assert!(
        advisory.contains("with `--replay-only` no model is asked"),
        "{advisory}"
    );
}

#[test]
fn built_in_models_do_not_read() {
    let of = |assisted: &str| {
        let text = format!(
            "
servers: {{ desk: {{ command: [mcptest, mock, --preset, tidy] }} }}
agents:
  - name: t
    model: builtin/scripted
    servers: [desk]
    prompt: hello
    script: [[{{calls: [{{tool: search_tickets, args: {{query: x}}}}]}}, {{say: 'I searched tickets. The branch is history.'}}]]
    narrative: {{ llm_assisted: {assisted} }}
"
        );
        let dir = folder(&[("s.yml", &text)]);
        (run_with(&dir, &["--reporter", "json"]), dir)
    };
    let (own, dir) = of("true");
    assert_eq!(own.code, 0, "{}", own.stderr);
    assert!(
        own.stderr
            .contains("s.yml:9:34: `builtin/scripted` cannot read a message")
            || own
                .stderr
                .contains("`builtin/scripted` cannot read a message"),
        "{}",
        own.stderr
    );
    assert!(
        own.stderr.contains("llm_assisted: {model: ID}"),
        "{}",
        own.stderr
    );
    assert_eq!(run_with(&dir, &["--deny-warnings"]).code, 2);
    for (assisted, words) in [
        (
            "{model: builtin/lexical}",
            "selects tools; it cannot read a message",
        ),
        (
            "{model: builtin/scripted}",
            "the reader `builtin/scripted` has no `script:`",
        ),
        (
            "{model: claude-x, script: [[{say: x}]]}",
            "only `builtin/scripted` uses a script",
        ),
        ("{model: nobody/x}", "no provider is called `nobody`"),
        ("{}", "model"),
    ] {
        let (ran, _) = of(assisted);
        assert_eq!(ran.code, 2, "{assisted}: {}", ran.stdout);
        assert!(ran.stderr.contains(words), "{assisted}: {}", ran.stderr);
    }
    let say = r#"{say: '{"claims": [{"action": "delete_branch", "sentence": "The branch is history."}]}'}"#;
    let (scripted, _) = of(&format!("{{model: builtin/scripted, script: [[{say}]]}}"));
    assert_eq!(scripted.code, 0, "{}", scripted.stderr);
    let advisory = gate_of(&scripted.json())["advisories"][0].to_string();
    assert!(
        advisory.contains("a claim of `delete_branch`"),
        "{advisory}"
    );
}
