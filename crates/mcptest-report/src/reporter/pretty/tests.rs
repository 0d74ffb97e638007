use mcptest_trace::trace::Trace;

use super::*;
use crate::model;
use crate::samples::{concluded, run, test};

fn shown(test: model::TestReport, verbose: bool) -> String {
    let style = Style {
        verbose,
        ..Style::default()
    };
    let mut out = Vec::new();
    render(&concluded(vec![test]), style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn several(verdicts: &[Verdict]) -> model::TestReport {
    let mut test = test("a", Some("m"), Verdict::worst(verdicts.iter().copied()));
    let named = |(index, verdict): (u64, &Verdict)| {
        let mut run = run(index, &format!("a [m] #{index}"), *verdict, Some(50));
        let trace = r#"{"tool_calls": [{"name": "t"}], "tool_results": [{"is_error": true}],
            "conversation": {"tokens": {"total": 50}}}"#;
        run.trace = serde_json::from_str(trace).unwrap();
        run
    };
    test.runs = (1..).zip(verdicts).map(named).collect();
    test
}

#[test]
fn passing_runs_share_a_row_and_errors_are_counted() {
    use Verdict::{Fail, Pass};
    let folded = shown(several(&[Pass, Pass]), false);
    let expected = "  PASS   a [m] ×2  (2 calls, 2 errors, 100 tokens)\n";
    assert!(folded.contains(expected), "{folded}");
    assert!(!folded.contains("a [m] #1"), "{folded}");
    let verbose = shown(several(&[Pass, Pass]), true);
    let expected = "  PASS   a [m] #2  (1 call, 1 error, 50 tokens)\n";
    assert!(verbose.contains(expected), "{verbose}");
    let failed = shown(several(&[Pass, Fail]), false);
    assert!(failed.contains("  PASS   a [m] #1  (1 call, "), "{failed}");
}

#[test]
fn a_bound_needs_one_line() {
    let text = shown(several(&[Verdict::Fail]), false);
    let line = "tool_calls[0].name  expected exact \"search\", actual \"fetch\"\n";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("because"), "{text}");
}

#[test]
fn only_a_live_run_has_spent_something() {
    let spend = Spend {
        requests: 2,
        usd: Some(0.3),
        ..Spend::default()
    };
    let replayed = |requests, usd| {
        Some(Replayed {
            requests,
            usd: Some(usd),
        })
    };
    assert_eq!(spent_usd(&spend, None, true), "spent $0.3");
    assert_eq!(spent_usd(&spend, None, false), "cost $0.3");
    let replay = spent_usd(&spend, replayed(2, 0.3), true);
    assert_eq!(replay, "the recording cost $0.3");
    assert_eq!(
        spent_usd(&spend, replayed(1, 0.1), true),
        "spent $0.2, and the replayed part cost $0.1 when it was recorded"
    );
}

#[test]
fn a_bounded_number_of_errors_is_remembered() {
    let mut shown = ShownErrors::default();
    let mut test = several(&[Verdict::Error]);
    let mut earlier = |number: usize| {
        let run = &mut test.runs[0];
        run.assertions.clear();
        run.trace = Trace::default();
        run.error = Some(RunError {
            kind: ErrorKind::ServerCrash,
            message: format!("it ended\nstderr: {number}"),
        });
        shown.earlier(run, "a #1").is_some()
    };
    assert!((0..=MAX_SHOWN_ERRORS).all(|number| !earlier(number)));
    assert!(earlier(0));
    assert!(!earlier(MAX_SHOWN_ERRORS));
}

/// Three runs with these errors, of which none made a call.
fn with_errors(messages: [&str; 3]) -> model::TestReport {
    let mut test = several(&[Verdict::Error; 3]);
    for (run, message) in test.runs.iter_mut().zip(messages) {
        run.error = Some(RunError {
            kind: ErrorKind::ServerCrash,
            message: message.to_owned(),
        });
        run.assertions.clear();
        run.trace = Trace::default();
    }
    test
}

#[test]
fn runs_in_a_row_with_the_same_error_share_one() {
    let text = shown(with_errors(["no key"; 3]), false);
    assert!(
        text.contains("  ERROR  a [m] #1 to #3  (0 calls)\n"),
        "{text}"
    );
    assert_eq!(text.matches("server_crash: no key\n").count(), 1, "{text}");
    let text = shown(with_errors(["no key"; 3]), true);
    assert!(text.contains("  ERROR  a [m] #3  (0 calls)\n"), "{text}");
    // A call is shown in the row of its run.
    let mut test = with_errors(["no key"; 3]);
    test.runs[1].trace = serde_json::from_str(r#"{"tool_calls": [{"name": "t"}]}"#).unwrap();
    let text = shown(test, false);
    assert!(text.contains("  ERROR  a [m] #2  (1 call)\n"), "{text}");
}

#[test]
fn an_error_of_several_lines_is_shown_once() {
    let [stderr, other] = ["it ended\nstderr: no key", "no answer"];
    let text = shown(with_errors([stderr, other, stderr]), false);
    assert_eq!(text.matches("stderr: no key").count(), 1, "{text}");
    let expected = "server_crash: the same error as `a [m] #1` above\n";
    assert_eq!(text.matches(expected).count(), 1, "{text}");
    // One line needs no reference to another.
    let text = shown(with_errors([other, stderr, other]), false);
    let lines = text.matches("server_crash: no answer\n").count();
    assert_eq!(lines, 2, "{text}");
}

#[test]
fn the_same_stderr_is_shown_once() {
    let mut test = several(&[Verdict::Fail; 3]);
    for (run, lines) in test.runs.iter_mut().zip([2, 2, 1]) {
        let lines = vec!["loading"; lines];
        let trace = serde_json::json!({"tool_calls": [], "stderr": {"s": lines}});
        run.trace = serde_json::from_value(trace).unwrap();
    }
    let text = shown(test, false);
    let expected = "stderr of s: the same as in `a [m] #1` above\n";
    assert_eq!(text.matches(expected).count(), 1, "{text}");
    assert_eq!(text.matches("loading").count(), 3, "{text}");
}

#[test]
fn a_finding_is_shown_once() {
    let mut gate = crate::samples::floor(Verdict::Fail, 50);
    gate.findings = vec!["run 1: no call: “I did it.”".to_owned()];
    for last in ["run 1: no call: “I did it.”", "no call for it: “I did it.”"] {
        gate.summary = format!("1 absent · {last}");
        assert_eq!(summary(&gate), "1 absent");
    }
    gate.summary = "1 absent · 2 mismatches".to_owned();
    assert_eq!(summary(&gate), gate.summary);
    // Without a failure there is no list.
    gate.verdict = Verdict::Pass;
    gate.summary = "1 absent · run 1: no call: “I did it.”".to_owned();
    assert_eq!(summary(&gate), gate.summary);
}

#[test]
fn durations_have_a_readable_unit() {
    let texts = [7, 1234, 185_000].map(duration);
    assert_eq!(texts, ["7 ms", "1.2 s", "3 min 5 s"]);
}
