//! Judges of LLM-judged assertions, and readers of closing messages.

use mcptest_gate_api::ReadingRequest;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::judged::{self, Juror};
use serde_json::Value;

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
            let asked = (juror.model.as_str(), juror.script.as_ref());
            self.model_script(part, &model_at, asked, &JUDGE);
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

    /// Checks the model that reads closing messages, like a judge. A built-in model of the test
    /// cannot read them: that is a warning, because the verdict does not depend on it.
    pub(super) fn reading(
        &mut self,
        part: &Part,
        at: &str,
        reading: &ReadingRequest,
        own_models: &[String],
        in_dollars: bool,
    ) {
        let to_run = self.options.purpose == Purpose::Run;
        let Some(model) = &reading.model else {
            let built_in = own_models.iter().find(|model| is_built_in(model));
            if let Some(model) = built_in.filter(|_| to_run) {
                let message =
                    format!("`{model}` cannot read a message: its runs have no reading by a model");
                self.problems.push(
                    part.document
                        .diagnostic_at(at, message)
                        .warning()
                        .help("name a model that can: `llm_assisted: {model: ID}`"),
                );
            }
            return;
        };
        let model_at = format!("{at}/model");
        self.model_script(part, &model_at, (model, reading.script.as_ref()), &READER);
        if !to_run {
            return;
        }
        if let Err(error) = self.check_model(model) {
            self.problems
                .push(part.document.diagnostic_at(&model_at, error.to_string()));
        } else if in_dollars {
            self.priced(part, &model_at, model);
        }
    }

    /// Checks the script of a model that answers `sampling/createMessage`.
    pub(super) fn sampling_script(
        &mut self,
        part: &Part,
        model_at: &str,
        asked: (&str, Option<&Value>),
    ) {
        self.model_script(part, model_at, asked, &SAMPLER);
    }

    /// Checks that `builtin/scripted` has a script, and no other model has one.
    fn model_script(
        &mut self,
        part: &Part,
        model_at: &str,
        (model, script): (&str, Option<&Value>),
        role: &Role,
    ) {
        let script_at = format!(
            "{}/script",
            model_at.strip_suffix("/model").unwrap_or(model_at)
        );
        let document = &part.document;
        let problem = match script {
            Some(_) if model != SCRIPTED => {
                let message = format!("only `{SCRIPTED}` uses a script");
                document
                    .diagnostic_at(&script_at, message)
                    .help(format!("set `model: {SCRIPTED}`, or remove the script"))
            }
            Some(script) => match serde_json::from_value::<Vec<Vec<ScriptTurn>>>(script.clone()) {
                Ok(_) => return,
                Err(error) => {
                    document.diagnostic_at(&script_at, format!("not a valid script: {error}"))
                }
            },
            None if model == SCRIPTED => document
                .diagnostic_at(model_at, format!("{} has no `script:`", role.scripted))
                .help(format!(
                    "write `script: {}` next to the model",
                    role.example
                )),
            None if is_built_in(model) => {
                let message = format!("`{model}` selects tools; it cannot {}", role.work);
                document.diagnostic_at(model_at, message)
            }
            None => return,
        };
        self.problems.push(problem);
    }
}

/// The words for a model that is asked about text.
struct Role {
    scripted: &'static str,
    work: &'static str,
    example: &'static str,
}

const JUDGE: Role = Role {
    scripted: "the judge `builtin/scripted`",
    work: "judge text",
    example: "[[{say: '{\"score\": 1, \"reason\": \"clear\"}'}]]",
};

const SAMPLER: Role = Role {
    scripted: "the model `builtin/scripted`",
    work: "answer a server",
    example: "[[{say: \"It is sunny.\"}]]",
};

const READER: Role = Role {
    scripted: "the reader `builtin/scripted`",
    work: "read a message",
    example: "[[{say: '{\"claims\": [{\"action\": \"delete_branch\", \"sentence\": \"It is \
              history.\"}]}'}]]",
};

fn is_built_in(model: &str) -> bool {
    model.starts_with("builtin/")
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
            .filter_map(Value::as_object)
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
