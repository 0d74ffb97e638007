//! Judged matchers: one model or several grade a string against a rubric (`llm-judge`,
//! `llm-jury`).
//!
//! A model is asked for its opinion once, after the run. The opinion is written into the trace
//! ([`Judgement`]); here it is only read, so the same trace gives the same verdict without a model.
//! A judged matcher must be the only one of an entry in a test's own `expect:`. Every gate rejects
//! judged matchers, and the outcome of a run that gates see leaves them out. A missing opinion is
//! never a failure of the agent.
//!
//! The judged string is untrusted: it may contain instructions to the judge. It is between two
//! marker lines whose word is derived from the string and does not occur in it, and the system
//! prompt states that nothing between them is addressed to the judge.

use serde_json::Value;

use crate::expect::{Assertion, Expectation};
pub use crate::judge::{Judge, Juror, KEYS, MAX_CHARACTERS, read_answer};
pub use crate::judgement::Judgement;
use crate::trace::Node;
use crate::verdict::RunError;
use mcptest_json::compare_numbers;
use mcptest_json::text::one_line;

#[derive(Default)]
struct Tally {
    good: usize,
    open: usize,
    broken: Option<RunError>,
}

/// Counts the opinions.
fn tally(judge: &Judge, opinions: &[Option<&Judgement>]) -> Tally {
    let mut tally = Tally::default();
    for opinion in opinions {
        match opinion.map(|opinion| (&opinion.score, &opinion.error)) {
            Some((Some(score), _)) if compare_numbers(score, &judge.threshold).is_ge() => {
                tally.good += 1
            }
            Some((Some(_), _)) => {}
            Some((None, Some(error))) => {
                tally.open += 1;
                tally.broken.get_or_insert_with(|| error.clone());
            }
            Some((None, None)) | None => tally.open += 1,
        }
    }
    tally
}

/// The string that a judge is shown for a value.
#[must_use]
pub fn judged_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The reason why a judged assertion has no outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unjudged {
    /// Judges are switched off.
    Off,
    /// The trace does not have the judgement.
    Missing,
    /// A judge could not be asked, or gave an invalid answer.
    Broken(RunError),
}

/// Applies a judged expectation to the recorded judgements. With `off`, judges are switched off
/// and their opinions are ignored.
#[must_use]
pub fn apply<'n>(
    expectation: &Expectation,
    judge: &Judge,
    root: impl Into<Node<'n>>,
    judgements: &[Judgement],
    off: bool,
) -> (Assertion, Option<Unjudged>) {
    let target = expectation.target.as_str();
    let selected = expectation.target.select(root);
    let actual = selected.clone().unwrap_or_default();
    let mut assertion = Assertion {
        passed: false,
        judged: true,
        ..Assertion::new(target, expectation.matcher.written().clone(), actual, None)
    };
    if off {
        assertion.skipped = Some("judges are switched off".to_owned());
        return (assertion, Some(Unjudged::Off));
    }
    let Some(value) = selected else {
        // Like any other matcher: there is no string to have an opinion on.
        assertion.reason = Some("the value is absent".to_owned());
        return (assertion, None);
    };
    let digest = judge.digest(target, &judged_text(&value));
    let opinions = opinions(judge, target, &digest, judgements);
    let tally = tally(judge, &opinions);
    if tally.good >= judge.quorum {
        assertion.passed = true;
        return (assertion, None);
    }
    if tally.good + tally.open < judge.quorum {
        assertion.reason = Some(words(judge, &tally, &opinions));
        return (assertion, None);
    }
    let unjudged = match tally.broken {
        Some(error) => {
            assertion.skipped = Some(format!("a judge gave no judgement: {}", error.message));
            Unjudged::Broken(error)
        }
        None => {
            assertion.skipped =
                Some("the trace has no judgement of this text by this rubric".to_owned());
            Unjudged::Missing
        }
    };
    (assertion, Some(unjudged))
}

/// Each juror's opinion. A model that is listed twice has two.
fn opinions<'a>(
    judge: &Judge,
    target: &str,
    digest: &str,
    judgements: &'a [Judgement],
) -> Vec<Option<&'a Judgement>> {
    let mut taken: Vec<usize> = Vec::new();
    judge
        .jurors
        .iter()
        .map(|juror| {
            let found = judgements
                .iter()
                .enumerate()
                .position(|(index, judgement)| {
                    !taken.contains(&index)
                        && judgement.target == target
                        && judgement.digest == digest
                        && judgement.model == juror.model
                })?;
            taken.push(found);
            judgements.get(found)
        })
        .collect()
}

fn words(judge: &Judge, tally: &Tally, opinions: &[Option<&Judgement>]) -> String {
    let said: Vec<String> = opinions
        .iter()
        .flatten()
        .filter_map(|opinion| {
            let score = opinion.score.as_ref()?;
            let reason = opinion.reason.as_deref().unwrap_or_default();
            Some(format!(
                "`{}` gives {score}: {}",
                opinion.model,
                one_line(reason)
            ))
        })
        .collect();
    let said = said.join("; ");
    if judge.jurors.len() == 1 {
        return format!("{said} (threshold {})", judge.threshold);
    }
    format!(
        "{} of {} judges, and {} are needed; {said} (threshold {})",
        tally.good,
        judge.jurors.len(),
        judge.quorum,
        judge.threshold
    )
}

#[cfg(test)]
mod tests;
