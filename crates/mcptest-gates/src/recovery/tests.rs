use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{GateOutcome, testing};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;

const LIMITS: RecoveryLimits = RecoveryLimits {
    max_detection_ms: 3000,
    max_recovery_ms: Some(5000),
    require_clean_timeout: true,
};

fn marks(detected_ms: Option<u64>, recovered_ms: Option<u64>) -> RecoveryMarks {
    RecoveryMarks {
        started_ms: 0,
        detected_ms,
        recovered_ms,
    }
}

#[test]
fn the_documents_clean_and_unclean_timeouts() {
    let clean = score_recovery(&LIMITS, &marks(Some(3000), Some(4200)));
    assert_eq!(
        clean,
        RecoveryReport {
            recovered: true,
            clean_timeout: true,
            passed: true,
            time_to_detection_ms: Some(3000),
            time_to_recovery_ms: Some(4200),
            user_visible_hang_ms: 3000,
        }
    );
    // Hung for nine seconds before noticing: detected, but not cleanly, and the hang is not capped.
    let late = score_recovery(&LIMITS, &marks(Some(9000), None));
    assert!(!late.clean_timeout && !late.recovered && !late.passed);
    assert_eq!(late.user_visible_hang_ms, 9000);
    // Neither: capped at the budget.
    let never = score_recovery(&LIMITS, &marks(None, None));
    assert_eq!(never.user_visible_hang_ms, 3000);
    assert_eq!(
        (never.time_to_detection_ms, never.time_to_recovery_ms),
        (None, None)
    );
    assert!(!never.clean_timeout);
}

#[test]
fn equal_to_a_budget_is_within_it() {
    assert!(score_recovery(&LIMITS, &marks(Some(3000), Some(5000))).passed);
    assert!(!score_recovery(&LIMITS, &marks(Some(3001), Some(5000))).passed);
    assert!(!score_recovery(&LIMITS, &marks(Some(3000), Some(5001))).passed);
    let unbounded = RecoveryLimits {
        max_recovery_ms: None,
        ..LIMITS
    };
    assert!(score_recovery(&unbounded, &marks(Some(3000), Some(u64::MAX))).passed);
}

#[test]
fn recovery_before_detection_ends_the_hang() {
    let report = score_recovery(&LIMITS, &marks(Some(9000), Some(2000)));
    assert_eq!(report.user_visible_hang_ms, 2000);
    assert!(!report.passed);
    // A recovery without any detection is a recovery, but no clean timeout.
    let silent = score_recovery(&LIMITS, &marks(None, Some(100)));
    assert!(silent.recovered && !silent.clean_timeout && !silent.passed);
    let relaxed = RecoveryLimits {
        require_clean_timeout: false,
        ..LIMITS
    };
    assert!(score_recovery(&relaxed, &marks(None, Some(100))).passed);
}

#[test]
fn times_count_from_the_start_of_the_call() {
    let report = score_recovery(
        &LIMITS,
        &RecoveryMarks {
            started_ms: 10_000,
            detected_ms: Some(13_000),
            recovered_ms: Some(9_000),
        },
    );
    assert_eq!(report.time_to_detection_ms, Some(3000));
    assert_eq!(report.time_to_recovery_ms, Some(0));
}

/// `!x` is a timeout of x, `~500 x` a late answer, `x` healthy, `?x` a real timeout, `-x` no
/// result.
fn run(calls: &[&str], answer: Option<&str>) -> Trace {
    let mut trace = json!({"tool_calls": [], "tool_results": []});
    for (index, written) in calls.iter().enumerate() {
        let id = format!("c{index}");
        let (name, result) = match written.split_at(1) {
            ("!", name) => (
                name,
                json!({"is_error": true, "error_kind": "timeout", "fault": "hung"}),
            ),
            ("?", name) => (name, json!({"is_error": true, "error_kind": "timeout"})),
            ("-", name) => (name, Value::Null),
            ("~", rest) => {
                let (delay, name) = rest.split_once(' ').unwrap();
                let delay: u64 = delay.parse().unwrap();
                (
                    name,
                    json!({"is_error": false, "fault": "slow", "delay_ms": delay}),
                )
            }
            _ => (*written, json!({"is_error": false})),
        };
        trace["tool_calls"]
            .as_array_mut()
            .unwrap()
            .push(json!({"id": id, "name": name, "server": "s", "turn": index + 1}));
        if let Value::Object(mut result) = result {
            result.insert("call_id".into(), id.into());
            trace["tool_results"]
                .as_array_mut()
                .unwrap()
                .push(Value::Object(result));
        }
    }
    if let Some(answer) = answer {
        trace["final_response"] = answer.into();
    }
    serde_json::from_value(trace).unwrap()
}

#[test]
fn issue_10_a_call_that_hangs_in_the_server_counts_with_its_time() {
    // (real timeout, clean, detection)
    for (timeout_ms, clean, detection) in [(200, 1, 200), (3000, 1, 3000), (9000, 0, 9000)] {
        let trace: Trace = serde_json::from_value(json!({
            "tool_calls": [{"id": "a", "name": "x", "turn": 1}, {"id": "b", "name": "x", "turn": 2}],
            "tool_results": [
                {"call_id": "a", "is_error": true, "error_kind": "timeout", "timeout_ms": timeout_ms},
                {"call_id": "b", "is_error": false},
            ],
        }))
        .unwrap();
        let outcome = judge(&block(), &[trace]);
        assert_eq!(outcome.values["recovery.recovered"], 1);
        assert_eq!(outcome.values["recovery.clean_timeout"], clean);
        assert_eq!(outcome.values["recovery.time_to_detection_ms"], detection);
        let strikes = &outcome.detail.to_value()["per_run"][0]["strikes"];
        assert_eq!(strikes[0]["fault"], "timeout of the server");
        assert_eq!(strikes[0]["took_ms"], timeout_ms);
    }
}

/// Sets the turn of every call; 0 removes it.
fn in_turns(mut trace: Trace, turns: &[u64]) -> Trace {
    for (call, turn) in trace.tool_calls.iter_mut().zip(turns) {
        call.turn = (*turn > 0).then_some(*turn);
    }
    trace
}

#[test]
fn issue_10_a_sibling_in_the_turn_of_the_timeout_is_not_a_recovery() {
    // (calls, their turns, recovered after)
    for (calls, turns, recovered) in [
        (vec!["!a", "b"], vec![1, 1], None),
        (vec!["b", "!a"], vec![1, 1], None),
        (vec!["!a", "~500 b"], vec![1, 1], None),
        (vec!["!a", "b"], vec![1, 2], Some(3000)),
        (vec!["!a", "b", "c"], vec![1, 1, 2], Some(3000)),
        (vec!["!a", "~500 b", "c"], vec![2, 2, 3], Some(3500)),
        (vec!["!a", "b", "!a", "c"], vec![1, 1, 2, 3], Some(6000)),
        // The first timeout is the one to recover from: `b` was called after it was seen.
        (vec!["!a", "!a", "b"], vec![1, 2, 2], Some(6000)),
        // Without turns the order decides.
        (vec!["!a", "b"], vec![0, 0], Some(3000)),
        (vec!["!a", "b"], vec![1, 0], Some(3000)),
        (vec!["b", "!a"], vec![0, 0], None),
    ] {
        let trace = in_turns(run(&calls, None), &turns);
        let outcome = judge(&block(), &[trace]);
        let time = &outcome.values["recovery.time_to_recovery_ms"];
        assert_eq!(time.as_u64(), recovered, "{calls:?} {turns:?}");
        let flag = u64::from(recovered.is_some());
        assert_eq!(outcome.values["recovery.recovered"], flag);
    }
}

fn block() -> Value {
    json!({"max_detection_ms": 3000, "max_recovery_ms": 5000, "require_clean_timeout": true})
}

fn with(more: Value) -> Value {
    let mut block = block();
    block
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    block
}

fn judge(block: &Value, traces: &[Trace]) -> GateOutcome {
    testing::judge("recovery", block, traces)
}

/// recovered, clean, passed, detection, recovery, hang
fn values(outcome: &GateOutcome) -> Value {
    outcome.values.values().cloned().collect()
}

#[test]
fn one_timeout_then_another_tool() {
    let outcome = judge(&block(), &[run(&["!search", "fetch"], Some("Found it."))]);
    assert_eq!(outcome.verdict, Verdict::Pass);
    assert_eq!(values(&outcome), json!([1, 1, 1, 3000, 3000, 3000]));
    let strikes = &outcome.detail.to_value()["per_run"][0]["strikes"];
    assert_eq!(
        strikes,
        &json!([{"call": 1, "tool": "s.search", "fault": "hung", "timeout": true, "at_ms": 0, "took_ms": 3000}])
    );
}

#[test]
fn every_timeout_before_the_recovery_takes_its_time() {
    let outcome = judge(
        &block(),
        &[run(&["!search", "!search", "fetch", "!search"], None)],
    );
    assert_eq!(values(&outcome), json!([1, 1, 0, 3000, 6000, 3000]));
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(
        outcome
            .summary
            .contains("run 1: recovered after 6000 ms, later than 5000 ms"),
        "{}",
        outcome.summary
    );
    // Unbounded, it is fine.
    let unbounded = json!({"max_detection_ms": 3000});
    assert_eq!(
        judge(
            &unbounded,
            &[run(&["a", "!search", "!search", "fetch"], None)]
        )
        .verdict,
        Verdict::Pass
    );
}

#[test]
fn giving_up_is_a_recovery_only_if_the_suite_allows_it() {
    let gave_up = run(&["!search"], Some("Search is down, sorry."));
    let outcome = judge(&block(), std::slice::from_ref(&gave_up));
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert_eq!(values(&outcome), json!([0, 1, 0, 3000, null, 3000]));
    assert!(outcome.summary.contains("did not recover"));

    let answer = with(json!({"accept": "answer"}));
    let outcome = judge(&answer, &[gave_up]);
    assert_eq!(outcome.verdict, Verdict::Pass);
    assert_eq!(values(&outcome), json!([1, 1, 1, 3000, 3000, 3000]));
    // The answer comes after all timeouts; a healthy call, where there is one, comes first.
    assert_eq!(
        values(&judge(
            &answer,
            &[run(&["!search", "!search"], Some("Sorry."))]
        )),
        json!([1, 1, 0, 3000, 6000, 3000])
    );
    assert_eq!(
        values(&judge(
            &answer,
            &[run(&["!search", "fetch", "!search"], Some("x"))]
        )),
        json!([1, 1, 1, 3000, 3000, 3000])
    );
    for silent in [None, Some(""), Some("  \n")] {
        assert_eq!(
            judge(&answer, &[run(&["!search"], silent)]).verdict,
            Verdict::Fail
        );
    }
}

#[test]
fn without_a_final_response_the_answer_must_be_a_later_turn() {
    let answer = with(json!({"accept": "answer"}));
    let verdict_of = |turns: Value| {
        let mut trace = run(&["!search"], None);
        trace.conversation.turns = serde_json::from_value(turns).unwrap();
        judge(&answer, &[trace]).verdict
    };
    let call = json!({"role": "assistant", "content": "Let me search."});
    let close = json!({"role": "assistant", "content": "It is down."});
    assert_eq!(verdict_of(json!([call])), Verdict::Fail);
    assert_eq!(verdict_of(json!([call, close])), Verdict::Pass);
    assert_eq!(
        verdict_of(json!([call, {"role": "assistant", "content": ""}])),
        Verdict::Fail
    );
    assert_eq!(
        verdict_of(json!([call, close, {"role": "user", "content": "Really?"}])),
        Verdict::Fail
    );
}

#[test]
fn a_fault_that_never_fired_is_no_evidence() {
    for calls in [&["search", "fetch"][..], &[], &["?search", "fetch"]] {
        let outcome = judge(&block(), &[run(calls, Some("Done."))]);
        assert_eq!(outcome.verdict, Verdict::NoEvidence, "{calls:?}");
        assert_eq!(
            values(&outcome),
            json!([null, null, null, null, null, null])
        );
        assert!(outcome.no_evidence.unwrap().contains("never met"));
    }
    // Assertions on figures that are not there cannot be judged either.
    let strict = with(json!({"expect": [{"recovery.user_visible_hang_ms": {"<=": 1}}]}));
    assert_eq!(
        judge(&strict, &[run(&["search"], None)]).verdict,
        Verdict::NoEvidence
    );
}

#[test]
fn runs_that_never_met_the_fault_leave_a_good_verdict_open_and_a_bad_one_bad() {
    let good = run(&["!search", "fetch"], None);
    let unmet = run(&["fetch"], None);
    let outcome = judge(&block(), &[good.clone(), unmet.clone(), good.clone()]);
    assert_eq!(outcome.verdict, Verdict::NoEvidence);
    assert_eq!(
        outcome.no_evidence.as_deref(),
        Some("no injected fault fired in run 2")
    );
    assert_eq!(values(&outcome), json!([1, 1, 1, 3000, 3000, 3000]));
    assert_eq!(outcome.detail.to_value()["runs_without_fault"], json!([2]));
    assert_eq!(
        judge(&block(), &[good, unmet, run(&["!search"], None)]).verdict,
        Verdict::Fail
    );
}

#[test]
fn every_run_must_pass_and_times_are_the_worst() {
    let quick = run(&["!search", "fetch"], None);
    let slow = run(&["!search", "!search", "fetch"], None);
    let block = json!({"max_detection_ms": 1000});
    let outcome = judge(&block, &[quick.clone(), slow.clone()]);
    assert_eq!(outcome.verdict, Verdict::Pass);
    assert_eq!(values(&outcome), json!([1, 1, 1, 1000, 2000, 1000]));
    // One run that does not recover, anywhere in the row, fails all and leaves no time to recovery.
    let stuck = run(&["!search"], None);
    for traces in [[stuck.clone(), quick.clone()], [quick, stuck]] {
        let outcome = judge(&block, &traces);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(values(&outcome), json!([0, 1, 0, 1000, null, 1000]));
        let asserted = json!({"max_detection_ms": 1000, "expect": [{"recovery.time_to_recovery_ms": {"<=": 99_999}}]});
        let outcome = judge(&asserted, &traces);
        assert!(
            outcome.assertions[1]
                .reason
                .as_ref()
                .unwrap()
                .contains("did not recover in some run")
        );
    }
}

#[test]
fn a_late_answer_within_the_budget_is_healthy() {
    let relaxed = json!({"max_detection_ms": 3000, "max_recovery_ms": 2000});
    let outcome = judge(&relaxed, &[run(&["~2000 search"], None)]);
    assert_eq!(outcome.verdict, Verdict::Pass);
    assert_eq!(values(&outcome), json!([1, 0, 1, null, 2000, 2000]));
    assert_eq!(
        judge(&relaxed, &[run(&["~2001 search"], None)]).verdict,
        Verdict::Fail
    );
    // There is no clean timeout where nothing timed out.
    assert_eq!(
        judge(&block(), &[run(&["~2000 search"], None)]).verdict,
        Verdict::Fail
    );
    // After a timeout it is the recovery, at its end; before one, it does not count against the
    // hung call.
    assert_eq!(
        values(&judge(&block(), &[run(&["!search", "~1500 fetch"], None)])),
        json!([1, 1, 1, 3000, 4500, 3000])
    );
    assert_eq!(
        values(&judge(
            &block(),
            &[run(&["~1500 fetch", "!search", "fetch"], None)]
        )),
        json!([1, 1, 1, 3000, 3000, 3000])
    );
    // Scored again under a tighter budget, the recorded delay is a timeout.
    assert_eq!(
        values(&judge(
            &json!({"max_detection_ms": 1000}),
            &[run(&["~1500 search", "fetch"], None)]
        )),
        json!([1, 1, 1, 1000, 1000, 1000])
    );
}

#[test]
fn what_is_healthy_and_what_is_not() {
    // A real timeout is not a recovery; a call whose result is not recorded is not faulted.
    assert_eq!(
        judge(&block(), &[run(&["!search", "?fetch"], None)]).verdict,
        Verdict::Fail
    );
    assert_eq!(
        judge(&block(), &[run(&["!search", "-fetch"], None)]).verdict,
        Verdict::Pass
    );
    // An ordinary error is an answer.
    let mut refused = run(&["!search", "fetch"], None);
    refused.tool_results[1].is_error = Some(true);
    assert_eq!(judge(&block(), &[refused]).verdict, Verdict::Pass);
    // A fault that failed in another way than by a timeout is neither.
    let mut odd = run(&["!search", "fetch"], None);
    odd.tool_results[1].is_error = Some(true);
    odd.tool_results[1].extra.insert("fault", "other");
    assert_eq!(judge(&block(), &[odd]).verdict, Verdict::Fail);
}

#[test]
fn the_threshold_of_the_block_holds_with_written_expectations() {
    let block = with(json!({"expect": [{"recovery.clean_timeout": 1}]}));
    let outcome = judge(&block, &[run(&["!search"], None)]);
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(outcome.assertions[0].default && !outcome.assertions[0].passed);
    assert!(outcome.assertions[1].passed);
}

#[test]
fn an_impossible_bound_fails_for_every_target() {
    let runs = [
        run(&["!search", "fetch"], None),
        run(&["!search", "!search", "fetch"], None),
    ];
    for target in Recovery::TARGETS {
        let block = json!({"max_detection_ms": 3000, "expect": [{(target.name): {">": 1e18}}]});
        assert_eq!(
            judge(&block, &runs).verdict,
            Verdict::Fail,
            "{}",
            target.name
        );
    }
}

#[test]
fn broken_blocks_are_refused() {
    for broken in [
        json!({}),
        json!({"max_detection_ms": -1}),
        json!({"max_detection_ms": 1, "accept": "anything"}),
        json!({"max_detection_ms": 1, "max_recovery": 1}),
        json!({"max_detection_ms": 1, "expect": [{"recovery.time": 1}]}),
    ] {
        assert!(testing::load("recovery", &broken).is_err(), "{broken}");
    }
}

#[test]
fn huge_budgets_do_not_overflow() {
    let block = json!({"max_detection_ms": u64::MAX});
    let outcome = judge(&block, &[run(&["!search", "!search", "fetch"], None)]);
    assert_eq!(
        outcome.values["recovery.time_to_recovery_ms"],
        json!(u64::MAX)
    );
}

proptest! {
    #[test]
    fn reports_keep_their_promises(
        start in 0_u64..100, detected in prop::option::of(0_u64..20_000), recovered in prop::option::of(0_u64..20_000),
        budget in 0_u64..10_000, most in prop::option::of(0_u64..20_000), clean in any::<bool>(),
    ) {
        let limits = RecoveryLimits { max_detection_ms: budget, max_recovery_ms: most, require_clean_timeout: clean };
        let report = score_recovery(&limits, &RecoveryMarks { started_ms: start, detected_ms: detected, recovered_ms: recovered });
        prop_assert!(!report.passed || report.recovered);
        prop_assert!(!(report.passed && clean) || report.clean_timeout);
        for time in [report.time_to_detection_ms, report.time_to_recovery_ms].into_iter().flatten() {
            prop_assert!(report.user_visible_hang_ms <= time);
        }
    }

    #[test]
    fn the_order_of_runs_and_the_words_do_not_matter(
        runs in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["!search", "fetch", "~700 slow", "?real"]), 0..5), 1..4),
    ) {
        let block = json!({"max_detection_ms": 1000, "accept": "answer"});
        let traces: Vec<_> = runs.iter().map(|calls| run(calls, Some("a"))).collect();
        let rewritten: Vec<_> = runs.iter().rev().map(|calls| run(calls, Some("I deleted everything."))).collect();
        let (before, after) = (judge(&block, &traces), judge(&block, &rewritten));
        prop_assert_eq!(before.values, after.values);
        prop_assert_eq!(before.verdict, after.verdict);
    }
}
