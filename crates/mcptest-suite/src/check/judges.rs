//! Judges of LLM-judged assertions.

use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::judged::{self, Juror};

use super::diagnostics::escape;
use super::{Checker, SCRIPTED};
use crate::file::ScriptTurn;
use crate::import::Part;
use crate::options::Purpose;

impl Checker<'_> {
    /// Checks the judges of a test: their models must be known, and need a price under a limit in
    /// dollars.
    pub(super) fn judges(
        &mut self,
        part: &Part,
        at: &str,
        list: &[WrittenExpectation],
        in_dollars: bool,
    ) {
        for (place, juror) in jurors(at, list) {
            let model_at = format!("{place}{}", juror.at);
            self.juror_script(part, &model_at, &juror);
            if self.options.purpose != Purpose::Run {
                continue;
            }
            if let Err(error) = self.check_model(&juror.model) {
                self.problems
                    .push(part.document.diagnostic_at(&model_at, error.to_string()));
            } else if in_dollars {
                self.priced(part, &model_at, &juror.model);
            }
        }
    }

    fn juror_script(&mut self, part: &Part, model_at: &str, juror: &Juror) {
        let script_at = format!(
            "{}/script",
            model_at.strip_suffix("/model").unwrap_or(model_at)
        );
        match &juror.script {
            Some(_) if juror.model != SCRIPTED => {
                let message = format!("only `{SCRIPTED}` uses a script");
                self.problems.push(
                    part.document
                        .diagnostic_at(&script_at, message)
                        .help(format!("set `model: {SCRIPTED}`, or remove the script")),
                );
            }
            Some(script) => {
                if let Err(error) = serde_json::from_value::<Vec<Vec<ScriptTurn>>>(script.clone()) {
                    let message = format!("not a valid script: {error}");
                    self.problems
                        .push(part.document.diagnostic_at(&script_at, message));
                }
            }
            None if juror.model == SCRIPTED => {
                let message = format!("the judge `{SCRIPTED}` has no `script:`");
                self.problems.push(
                    part.document
                        .diagnostic_at(model_at, message)
                        .help("write `script: [[{say: '{\"score\": 1, \"reason\": \"clear\"}'}]]` next to the model"),
                );
            }
            None if juror.model.starts_with("builtin/") => {
                let message = format!("`{}` selects tools; it cannot judge text", juror.model);
                self.problems
                    .push(part.document.diagnostic_at(model_at, message));
            }
            None => {}
        }
    }
}

/// Every juror of a list of expectations, with the place of its matcher.
fn jurors(at: &str, list: &[WrittenExpectation]) -> Vec<(String, Juror)> {
    let mut found = Vec::new();
    let is_judged = |written: &&WrittenExpectation| {
        let matchers = written
            .0
            .as_object()
            .into_iter()
            .flat_map(|map| map.values());
        let mut keys = matchers
            .filter_map(serde_json::Value::as_object)
            .flat_map(|map| map.keys());
        keys.any(|key| judged::KEYS.contains(&key.as_str()))
    };
    for (index, written) in list
        .iter()
        .enumerate()
        .filter(|(_, written)| is_judged(written))
    {
        let Ok(expectation) = Expectation::compile(written, "") else {
            continue;
        };
        let Some(judge) = expectation.judge() else {
            continue;
        };
        let matcher = match written.0.get("matcher") {
            Some(_) => "matcher".to_owned(),
            None => escape(expectation.target.as_str()),
        };
        let key = expectation
            .matcher
            .written()
            .as_object()
            .and_then(|map| map.keys().next());
        let key = key.map_or("", String::as_str);
        let place = format!("{at}/{index}/{matcher}/{key}");
        found.extend(
            judge
                .jurors
                .iter()
                .map(|juror| (place.clone(), juror.clone())),
        );
    }
    found
}
