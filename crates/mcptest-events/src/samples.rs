//! Events for tests.

use mcptest_numbers::usd::Usd;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError, Verdict};
use serde_json::json;

use crate::*;

pub fn begun(version: u32) -> Event {
    Event::Begun(Begun {
        version,
        id: "20261117T183012Z-3fa9".to_owned(),
        mcptest: "0.1.0".to_owned(),
        started_ms: 1_795_000_000_000,
        command_line: vec!["run".to_owned(), "suite.yml".to_owned()],
        inputs: vec![InputFile {
            path: "suite.yml".to_owned(),
            sha256: digest::sha256(b"name: x"),
        }],
    })
}

/// A record whose trace and assertions contain a string.
pub fn record(text: &str) -> RunRecord {
    let trace = json!({
        "test": "weather",
        "run": 1,
        "tool_calls": [{"name": "get_weather", "server": "weather", "args": {"city": text}}],
        "tool_results": [{"is_error": true, "content": [{"type": "text", "text": text}]}],
        "conversation": {"tokens": {"total": 12}},
        "later": {text: [text, 1.5, null]},
    });
    RunRecord {
        index: 1,
        name: "weather #1".to_owned(),
        verdict: Verdict::Error,
        trace: serde_json::from_value::<Trace>(trace).expect("a trace"),
        assertions: Vec::new(),
        error: Some(RunError {
            kind: ErrorKind::Transport,
            message: text.to_owned(),
        }),
    }
}

pub fn run_finished(case: usize, run: u32, text: &str) -> Event {
    Event::RunFinished(RunFinished {
        case,
        run,
        calls: 1,
        errors: 1,
        tokens: Some(12),
        duration_ms: 7,
        facts: RunFacts {
            verdict: Verdict::Error,
            counted: Verdict::Error,
            fails_case: false,
            expectations_held: Some(true),
            error: Some(ErrorKind::Transport),
        },
        spend: Some(RunSpend {
            requests: 1,
            input_tokens: 10,
            output_tokens: 2,
            usd: Usd::from_units(45),
            charged_usd: Usd::from_units(45),
            charged_tokens: 12,
            ..RunSpend::default()
        }),
        record: Some(record(text)),
    })
}

/// One event of each kind; each string that a user can choose is `text`.
pub fn all(text: &str) -> Vec<Event> {
    let gate: GateOutcome = serde_json::from_value(json!({
        "block": "tool_selection",
        "verdict": "pass",
        "values": {"floor.passed": 1},
        "detail": {"label": text},
        "assertions": [],
        "summary": text,
    }))
    .expect("an outcome");
    vec![
        begun(VERSION),
        Event::Planned {
            cases: vec![PlannedCase {
                tags: Vec::new(),
                file: None,
                line: Some(7),
                id: CaseId {
                    suite: text.to_owned(),
                    name: text.to_owned(),
                    model: Some(text.to_owned()),
                },
                kind: Kind::Agent,
                label: text.to_owned(),
                runs: 3,
                position: 0,
            }],
            shard: Some(ShardPlan {
                number: 1,
                of: 2,
                total: 5,
            }),
        },
        Event::Resumed { started_ms: 5 },
        Event::RunStarted { case: 0, run: 1 },
        Event::ModelAnswered {
            case: 0,
            run: 1,
            model: text.to_owned(),
            judge: None,
            reader: false,
            usage: Some(AnswerTokens {
                input: 10,
                output: 2,
            }),
        },
        Event::ToolCalled {
            case: 0,
            run: 1,
            tool: text.to_owned(),
            is_error: true,
        },
        run_finished(0, 1, text),
        Event::RunsSaved { case: 0, runs: 2 },
        Event::CaseJudged(CaseJudged {
            duration_ms: None,
            replayed: None,
            case: 0,
            verdict: Verdict::Error,
            complete: true,
            gates: vec![gate],
            no_evidence: Some(text.to_owned()),
            saved_runs: Some(2),
            spend: Some(Spend::default()),
            status_lines: vec![text.to_owned()],
        }),
        Event::Spend {
            total: Spend::default(),
        },
        Event::Warning {
            text: text.to_owned(),
        },
        Event::Note {
            text: text.to_owned(),
        },
        Event::Ended(Ended {
            interrupted: true,
            panicked: false,
            duration_ms: 12,
        }),
    ]
}
