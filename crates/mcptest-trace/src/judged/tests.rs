use proptest::prelude::*;
use serde_json::{Number, json};

use super::*;
use crate::expect::WrittenExpectation;
use crate::problem::Problem;
use crate::verdict::ErrorKind;

fn compile(written: Value) -> Result<Expectation, Vec<Problem>> {
    Expectation::compile(&WrittenExpectation(written), "/expect/0")
}

fn judge() -> Expectation {
    compile(json!({"final_response": {"llm-judge": {"rubric": "polite", "threshold": 0.7, "model": "m"}}})).unwrap()
}

fn jury(quorum: u64) -> Expectation {
    let jury =
        json!({"rubric": "polite", "threshold": 0.5, "models": ["a", "b", "b"], "quorum": quorum});
    compile(json!({"target": "final_response", "matcher": {"llm-jury": jury}})).unwrap()
}

fn judgement(
    expectation: &Expectation,
    text: &str,
    model: &str,
    score: Result<f64, ErrorKind>,
) -> Judgement {
    Judgement {
        target: "final_response".to_owned(),
        digest: expectation.judge().unwrap().digest("final_response", text),
        model: model.to_owned(),
        score: score.ok().and_then(Number::from_f64),
        reason: Some("because".to_owned()),
        error: score.err().map(|kind| RunError {
            kind,
            message: "no answer".to_owned(),
        }),
    }
}

fn outcome(expectation: &Expectation, judgements: &[Judgement]) -> (Assertion, Option<Unjudged>) {
    let judge = expectation.judge().unwrap();
    apply(
        expectation,
        judge,
        &json!({"final_response": "hello"}),
        judgements,
        false,
    )
}

#[test]
fn the_threshold_decides_exactly() {
    let expectation = judge();
    for (score, passed) in [(0.7, true), (0.699_999, false), (1.0, true), (0.0, false)] {
        let (assertion, unjudged) = outcome(
            &expectation,
            &[judgement(&expectation, "hello", "m", Ok(score))],
        );
        assert_eq!(
            (assertion.passed, assertion.judged, unjudged),
            (passed, true, None),
            "{score}"
        );
        assert_eq!(assertion.failed(), !passed);
    }
    let (assertion, _) = outcome(
        &expectation,
        &[judgement(&expectation, "hello", "m", Ok(0.25))],
    );
    assert_eq!(
        assertion.reason.as_deref(),
        Some("`m` gives 0.25: because (threshold 0.7)")
    );
}

#[test]
fn an_opinion_on_something_else_is_no_opinion() {
    let expectation = judge();
    for foreign in [
        judgement(&expectation, "another text", "m", Ok(1.0)),
        judgement(&expectation, "hello", "another model", Ok(1.0)),
        Judgement {
            target: "conversation".to_owned(),
            ..judgement(&expectation, "hello", "m", Ok(1.0))
        },
    ] {
        let (assertion, unjudged) = outcome(&expectation, &[foreign]);
        assert_eq!(unjudged, Some(Unjudged::Missing));
        assert!(!assertion.passed && !assertion.failed());
    }
}

#[test]
fn a_failed_judge_is_not_a_failure_and_a_disabled_one_not_a_pass() {
    let expectation = judge();
    let broken = judgement(&expectation, "hello", "m", Err(ErrorKind::RateLimit));
    let (assertion, unjudged) = outcome(&expectation, &[broken]);
    assert!(
        matches!(unjudged, Some(Unjudged::Broken(error)) if error.kind == ErrorKind::RateLimit)
    );
    assert!(!assertion.passed && !assertion.failed());
    let good = judgement(&expectation, "hello", "m", Ok(1.0));
    let (assertion, unjudged) = apply(
        &expectation,
        expectation.judge().unwrap(),
        &json!({"final_response": "hello"}),
        &[good],
        true,
    );
    assert_eq!(unjudged, Some(Unjudged::Off));
    assert!(!assertion.passed && assertion.skipped.is_some());
    // Without a value there is nothing to ask about: like every matcher, it fails.
    let (assertion, unjudged) = apply(
        &expectation,
        expectation.judge().unwrap(),
        &json!({}),
        &[],
        false,
    );
    assert!(assertion.failed() && unjudged.is_none());
}

#[test]
fn a_jury_is_decided_as_soon_as_the_rest_cannot_change_it() {
    let (yes, no, broken) = (Ok(0.5), Ok(0.4), Err(ErrorKind::Timeout));
    for (quorum, [a, b, c], passed, open) in [
        (2, [yes, yes, no], true, false),
        (2, [yes, no, no], false, false),
        (2, [yes, yes, broken], true, false),
        (2, [no, no, broken], false, false),
        (2, [yes, no, broken], false, true),
        (3, [yes, yes, broken], false, true),
        (1, [no, no, yes], true, false),
        (1, [no, broken, no], false, true),
    ] {
        let expectation = jury(quorum);
        let given: Vec<Judgement> = [("a", a), ("b", b), ("b", c)]
            .map(|(model, score)| judgement(&expectation, "hello", model, score))
            .to_vec();
        let (assertion, unjudged) = outcome(&expectation, &given);
        assert_eq!(
            (assertion.passed, unjudged.is_some()),
            (passed, open),
            "{quorum} of {given:?}"
        );
    }
    // One opinion of a model that sits twice is not two.
    let expectation = jury(3);
    let given = [
        judgement(&expectation, "hello", "a", Ok(1.0)),
        judgement(&expectation, "hello", "b", Ok(1.0)),
    ];
    assert_eq!(outcome(&expectation, &given).1, Some(Unjudged::Missing));
}

#[test]
fn answers_are_read_strictly() {
    let (score, reason) = read_answer(" {\"score\": 0.5, \"reason\": \"so so\"} ").unwrap();
    assert_eq!((score.as_f64(), reason.as_str()), (Some(0.5), "so so"));
    assert!(read_answer("```json\n{\"score\": 1, \"reason\": \"\"}\n```").is_ok());
    for wrong in [
        "",
        "0.9",
        "[]",
        "The score is 0.9.",
        "{\"score\": 0.9}",
        "{\"reason\": \"x\"}",
        "{\"score\": 1.1, \"reason\": \"x\"}",
        "{\"score\": -0.1, \"reason\": \"x\"}",
        "{\"score\": \"0.9\", \"reason\": \"x\"}",
        "{\"score\": null, \"reason\": \"x\"}",
        "{\"score\": 0.9, \"reason\": 1}",
        "{\"score\": 0.9, \"reason\": \"x\", \"more\": 1}",
        "{\"score\": 0.9, \"reason\": \"x\"} {\"score\": 0.1, \"reason\": \"x\"}",
    ] {
        assert!(read_answer(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_its_place() {
    let judge = |more: Value| {
        let mut judge = json!({"rubric": "r", "threshold": 0.5, "model": "m"});
        judge
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"final_response": {"llm-judge": judge}})
    };
    let jury = |models: Value, quorum: u64| json!({"final_response": {"llm-jury": {"rubric": "r", "threshold": 0.5, "models": models, "quorum": quorum}}});
    for (written, place) in [
        (
            judge(json!({"rubric": " "})),
            "/expect/0/final_response/llm-judge/rubric",
        ),
        (
            judge(json!({"threshold": 1.5})),
            "/expect/0/final_response/llm-judge/threshold",
        ),
        (
            judge(json!({"extra": 1})),
            "/expect/0/final_response/llm-judge",
        ),
        (
            jury(json!([]), 1),
            "/expect/0/final_response/llm-jury/models",
        ),
        (
            jury(json!(["a", "b"]), 3),
            "/expect/0/final_response/llm-jury/quorum",
        ),
        (
            jury(json!(["a", "b"]), 0),
            "/expect/0/final_response/llm-jury/quorum",
        ),
        (
            json!({"final_response": {"not": {"llm-judge": {}}}}),
            "/expect/0/final_response/not/llm-judge",
        ),
        (
            json!({"final_response": {"contains": "x", "llm-judge": {}}}),
            "/expect/0/final_response/llm-judge",
        ),
    ] {
        let problems = compile(written.clone()).unwrap_err();
        assert_eq!(problems[0].pointer, place, "{written}: {problems:?}");
    }
    let majority = compile(
        json!({"x": {"llm-jury": {"rubric": "r", "threshold": 1, "models": ["a", "b", "c", "d"]}}}),
    );
    assert_eq!(majority.unwrap().judge().unwrap().quorum, 3);
}

proptest! {
    #[test]
    fn no_text_can_end_its_own_quotation(text in "(TEXT-[0-9a-f]{16}|[a-z\n ]){0,20}") {
        let expectation = judge();
        let (system, message) = expectation.judge().unwrap().question(&text);
        let marker = message.lines().find(|line| line.starts_with("TEXT-") && system.contains(line)).unwrap();
        prop_assert!(!text.contains(marker));
        prop_assert_eq!(message.matches(marker).count(), 2);
        prop_assert_eq!(expectation.judge().unwrap().question(&text), (system.clone(), message.clone()));
    }

    #[test]
    fn any_answer_is_read_or_refused(answer in "\\PC{0,60}") {
        let _ = read_answer(&answer);
    }
}
