use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{GateOutcome, LoadedGate, find, testing};
use mcptest_trace::trace::{ToolCall, Trace};
use mcptest_trace::verdict::{ErrorKind, RunError, Verdict};

/// `+` passed, `-` did not.
fn outcomes(row: &str) -> Vec<bool> {
    row.chars().map(|mark| mark == '+').collect()
}

#[test]
fn the_documents_worked_examples() {
    let late = summarize(&outcomes("+++-"));
    assert_eq!(late.decay, [100, 100, 100, 31]);
    assert_eq!(late.passhat_k, 31);
    assert_eq!(late.graceful_degradation, 60);
    assert_eq!(summarize(&outcomes("-+++")).graceful_degradation, 90);
    assert_eq!(summarize(&outcomes("++++")).variance_amplification, 0);
    assert_eq!(summarize(&outcomes("----")).variance_amplification, 0);
    assert_eq!(summarize(&outcomes("+-+-")).variance_amplification, 100);
}

#[test]
fn figures_of_other_rows() {
    let early = summarize(&outcomes("-+++"));
    assert_eq!(early.decay, [0, 25, 29, 31]);
    assert_eq!(early.pass_at_k, 100);
    let none = summarize(&outcomes("---"));
    assert_eq!(
        (none.pass_at_k, none.passhat_k, none.graceful_degradation),
        (0, 0, 0)
    );
    // 3 of 30: 200 √(0.1 · 0.9) is 60 exactly; doubles say 59.999…
    let mut row = vec![true; 3];
    row.extend([false; 27]);
    assert_eq!(summarize(&row).variance_amplification, 60);
    assert_eq!(
        summarize(&[]),
        ReliabilitySummary {
            runs: 0,
            passes: 0,
            pass_at_k: 0,
            passhat_k: 0,
            decay: vec![],
            variance_amplification: 0,
            graceful_degradation: 0
        }
    );
}

#[test]
fn the_decay_is_exact_at_every_length() {
    for runs in 1..=200_u32 {
        for failures in 0..=runs.min(12) {
            let passes = u64::from(runs - failures);
            assert_eq!(
                decay_entry(passes, runs.into()),
                exact_decay_entry(passes, runs),
                "{passes} of {runs}"
            );
        }
    }
    // From 64 on the whole percent is that of the limit, which is never reached.
    for (failures, limit) in (1_u32..).zip([36, 13, 4, 1]) {
        assert_eq!((100.0 * (-f64::from(failures)).exp()) as u64, limit);
        assert_eq!(exact_decay_entry(u64::from(64 - failures), 64), limit);
        assert_eq!(exact_decay_entry(u64::from(3000 - failures), 3000), limit);
        assert_eq!(decay_entry(u64::MAX - u64::from(failures), u64::MAX), limit);
    }
    assert_eq!(decay_entry(0, u64::MAX), 0);
}

#[test]
fn ten_thousand_runs_are_no_trouble() {
    let mut row = vec![true; 10_000];
    row[9_999] = false;
    let summary = summarize(&row);
    assert_eq!(summary.passhat_k, 36);
    assert_eq!(summary.graceful_degradation, 99);
    assert_eq!(summary.variance_amplification, 1);
    assert_eq!(pass_hat_k_unbiased(10_000, 9_999, 5_000), Some(0.5));
    assert_eq!(pass_at_k_unbiased(10_000, 1, 10), Some(0.001));
}

#[test]
fn unbiased_rates_by_hand() {
    assert_eq!(pass_hat_k_unbiased(4, 3, 1), Some(0.75));
    assert_eq!(pass_hat_k_unbiased(4, 3, 2), Some(0.5));
    assert_eq!(pass_hat_k_unbiased(4, 3, 3), Some(0.25));
    assert_eq!(pass_hat_k_unbiased(4, 3, 4), Some(0.0));
    assert_eq!(pass_at_k_unbiased(4, 1, 2), Some(0.5));
    assert_eq!(pass_at_k_unbiased(4, 1, 4), Some(1.0));
    assert_eq!(pass_at_k_unbiased(3, 1, 2), Some(2.0 / 3.0));
    for (runs, passes, k) in [(4, 3, 0), (4, 3, 5), (0, 0, 0), (0, 0, 1), (2, 3, 1)] {
        assert_eq!(pass_hat_k_unbiased(runs, passes, k), None);
        assert_eq!(pass_at_k_unbiased(runs, passes, k), None);
    }
    // Too small for a double is zero, not an error.
    assert_eq!(pass_hat_k_unbiased(4_000, 2_000, 2_000), Some(0.0));
}

fn called() -> Trace {
    Trace {
        tool_calls: vec![ToolCall::new(None, "f")],
        ..Trace::default()
    }
}

fn judge_row(block: &Value, row: &str) -> GateOutcome {
    let traces: Vec<Trace> = row.chars().map(|_| called()).collect();
    let mut runs = Run::number(&traces);
    for (run, mark) in runs.iter_mut().zip(row.chars()) {
        run.expectations_held = Some(mark == '+');
    }
    testing::judge_runs("reliability", block, &runs)
}

#[test]
fn an_outcome_without_expectations_is_a_call_and_no_error() {
    let broken = Trace {
        error: Some(RunError {
            kind: ErrorKind::Timeout,
            message: "slow".into(),
        }),
        ..called()
    };
    let outcome = testing::judge(
        "reliability",
        &json!({}),
        &[called(), Trace::default(), broken],
    );
    let passed: Vec<_> = outcome.detail.to_value()["per_run"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["passed"].as_bool().unwrap())
        .collect();
    assert_eq!(passed, [true, false, false]);
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(
        outcome
            .summary
            .contains("failed: runs 2 (made no call), 3 (ended in an error)")
    );
}

#[test]
fn expectations_decide_where_there_are_any() {
    let empty = [Trace::default()];
    let mut runs = Run::number(&empty);
    runs[0].expectations_held = Some(true);
    assert_eq!(
        testing::judge_runs("reliability", &json!({}), &runs).verdict,
        Verdict::Pass
    );
}

#[test]
fn the_default_gate_is_pass_hat_k_at_50() {
    assert_eq!(judge_row(&json!({}), "++++").verdict, Verdict::Pass);
    let failed = judge_row(&json!({"expect": []}), "+++-");
    assert_eq!(failed.verdict, Verdict::Fail);
    assert!(failed.assertions[0].default);
    assert_eq!(failed.assertions[0].actual, 31);
}

#[test]
fn every_figure_is_reported_under_its_name() {
    let outcome = judge_row(&json!({"k": 2}), "+++-");
    assert_eq!(
        Value::Object(outcome.values),
        json!({
            "reliability.runs": 4,
            "reliability.pass_at_k": 100,
            "reliability.passhat_k": 31,
            "reliability.variance_amplification": 86,
            "reliability.graceful_degradation": 60,
            "reliability.pass_at_k_unbiased": 1.0,
            "reliability.passhat_k_unbiased": 0.5,
            "reliability.decay": [100, 100, 100, 31],
        })
    );
    assert_eq!(outcome.detail.to_value()["k"], 2);
    assert!(
        outcome.detail.to_value()["pass_rate_95"]["exact"]["lower"]
            .as_f64()
            .unwrap()
            < 0.2
    );
}

#[test]
fn entries_of_the_decay_can_be_asserted() {
    let block =
        json!({"expect": [{"reliability.decay[2]": 100}, {"reliability.decay[-1]": {"<": 50}}]});
    assert_eq!(judge_row(&block, "+++-").verdict, Verdict::Pass);
    assert_eq!(judge_row(&block, "++-+").verdict, Verdict::Fail);
}

#[test]
fn fewer_runs_than_k_leave_the_unbiased_rates_undefined() {
    let outcome = judge_row(
        &json!({"k": 5, "expect": [{"reliability.passhat_k_unbiased": {">=": 0}}]}),
        "++",
    );
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert_eq!(
        outcome.values["reliability.passhat_k_unbiased"],
        Value::Null
    );
    assert!(
        outcome.assertions[0]
            .reason
            .as_ref()
            .unwrap()
            .contains("k is 5, but there are only 2 runs")
    );
}

#[test]
fn k_must_fit_the_runs() {
    let load = |block: Value, to_run: bool, runs: Option<u32>| {
        let context = LoadContext {
            to_run,
            runs,
            siblings: &[],
            attacks: Default::default(),
        };
        LoadedGate::load(find("reliability").unwrap(), &block, &context).1
    };
    assert_eq!(load(json!({"k": 0}), false, None)[0].pointer, "/k");
    assert_eq!(load(json!({"k": 5}), true, Some(4))[0].pointer, "/k");
    assert_eq!(load(json!({"k": 2}), true, None)[0].pointer, "/k");
    assert!(load(json!({"k": 4}), true, Some(4)).is_empty());
    assert!(load(json!({"k": 5}), false, Some(4)).is_empty());
    assert!(!load(json!({"kk": 5}), false, None).is_empty());
}

#[test]
fn no_target_can_be_asserted_in_vain() {
    for target in Reliability::TARGETS {
        for matcher in [json!({">": 1e18}), json!({"exact": "never"})] {
            let outcome = judge_row(&json!({"expect": [{target.name: matcher}]}), "++-+");
            assert_eq!(outcome.verdict, Verdict::Fail, "{}", target.name);
        }
    }
}

proptest! {
    #[test]
    fn figures_are_bounded_and_agree_with_each_other(row in prop::collection::vec(any::<bool>(), 1..80), k in 1_u64..80) {
        let summary = summarize(&row);
        let (n, c) = (summary.runs, summary.passes);
        prop_assert_eq!(summary.decay.len() as u64, n);
        prop_assert!(summary.decay.iter().all(|percent| *percent <= 100));
        prop_assert_eq!(summary.passhat_k == 100, c == n);
        prop_assert_eq!(summary.graceful_degradation == 100, c == n);
        prop_assert!(summary.variance_amplification <= 100);
        if let (Some(at), Some(hat)) = (pass_at_k_unbiased(n, c, k), pass_hat_k_unbiased(n, c, k)) {
            prop_assert!((0.0..=1.0).contains(&hat) && hat <= at && at <= 1.0);
            prop_assert_eq!(hat == 1.0, c == n);
        } else {
            prop_assert!(k > n);
        }
    }

    #[test]
    fn order_matters_to_decay_and_degradation_only(mut row in prop::collection::vec(any::<bool>(), 1..20), at in 0_usize..20) {
        let before = summarize(&row);
        let at = at % row.len();
        row.rotate_left(at);
        let after = summarize(&row);
        prop_assert_eq!(before.passhat_k, after.passhat_k);
        prop_assert_eq!(before.pass_at_k, after.pass_at_k);
        prop_assert_eq!(before.variance_amplification, after.variance_amplification);
    }

    // The product of the draws, one after the other, in exact integers while they fit.
    #[test]
    fn unbiased_rates_are_the_chances_of_drawing(n in 1_u64..30, share in 0_u64..30, k in 1_u64..12) {
        let c = share % (n + 1);
        prop_assume!(k <= n);
        let product = |from: u64| (0..k).fold(1_u128, |product, i| product * u128::from(from.saturating_sub(i)));
        let hat = product(c) as f64 / product(n) as f64;
        prop_assert!((pass_hat_k_unbiased(n, c, k).unwrap() - hat).abs() < 1e-14);
        let at = 1.0 - product(n - c) as f64 / product(n) as f64;
        prop_assert!((pass_at_k_unbiased(n, c, k).unwrap() - at).abs() < 1e-14);
    }

    #[test]
    fn narration_and_key_order_change_nothing(text in "\\PC{0,20}", calls in 0_usize..3) {
        let trace = |text: &str, args: Value| Trace {
            tool_calls: (0..calls).map(|_| ToolCall { args: Some(args.clone().into()), ..ToolCall::new(None, "f") }).collect(),
            final_response: Some(text.to_owned().into()),
            ..Trace::default()
        };
        let before = testing::judge("reliability", &json!({}), &[trace("", json!({"a": 1, "b": 2}))]);
        let after = testing::judge("reliability", &json!({}), &[trace(&text, json!({"b": 2, "a": 1}))]);
        prop_assert_eq!(before.values, after.values);
    }
}
