//! The judges of judged assertions.

use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::judged::{self, Juror};

use super::words::escape;
use super::{Checker, SCRIPTED};
use crate::file::ScriptTurn;
use crate::import::Part;
use crate::options::Purpose;

impl Checker<'_> {
    /// Judged assertions of a test: their models must be known, and must have a price under a cap
    /// in dollars.
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
                let words = format!("only `{SCRIPTED}` plays a script");
                self.problems.push(
                    part.document
                        .diagnostic_at(&script_at, words)
                        .help(format!("set `model: {SCRIPTED}`, or remove the script")),
                );
            }
            Some(script) => {
                if let Err(error) = serde_json::from_value::<Vec<Vec<ScriptTurn>>>(script.clone()) {
                    let words = format!("this cannot be played: {error}");
                    self.problems
                        .push(part.document.diagnostic_at(&script_at, words));
                }
            }
            None if juror.model == SCRIPTED => {
                let words = format!("the judge `{SCRIPTED}` has no `script:` to play");
                self.problems.push(
                    part.document
                        .diagnostic_at(model_at, words)
                        .help("write `script: [[{say: '{\"score\": 1, \"reason\": \"clear\"}'}]]` beside the model"),
                );
            }
            None if juror.model.starts_with("builtin/") => {
                let words = format!("`{}` picks tools; it cannot judge a text", juror.model);
                self.problems
                    .push(part.document.diagnostic_at(model_at, words));
            }
            None => {}
        }
    }
}

/// Every juror of a list of expectations, with the place of its matcher.
fn jurors(at: &str, list: &[WrittenExpectation]) -> Vec<(String, Juror)> {
    let mut found = Vec::new();
    let asks = |written: &&WrittenExpectation| {
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
    for (index, written) in list.iter().enumerate().filter(|(_, written)| asks(written)) {
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
