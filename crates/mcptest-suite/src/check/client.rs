//! `client:` of a suite and of tests.

use std::path::Path;
use std::sync::Arc;

use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_yaml::Diagnostic;
use serde_json::{Map, Value, json};

use super::Checker;
use super::diagnostics::{escape, key_error, place};
use crate::client::{
    AnswerRule, ClientScript, ElicitationAction, ElicitationAnswer, Root, SamplingAnswer,
    SamplingModel,
};
use crate::client_file::{
    ClientErrorFile, ClientFile, ElicitationAnswerFile, ElicitationFile, RootFile, RootsFile,
    SamplingAnswerFile, SamplingFile,
};
use crate::direct::MESSAGE_ROOTS;
use crate::file::AgentFields;
use crate::import::Part;
use crate::options::Purpose;

impl Checker<'_> {
    /// The suite's own `client:`. That of an importing file overrides those of the files that it
    /// imports, key by key.
    pub(super) fn suite_client(&mut self, part: &Part) {
        if let Some(file) = &part.file.client {
            let base = std::mem::take(&mut self.client);
            self.client = self.merged_client(part, "/client", file, base);
        }
    }

    /// The client of a test; `None` if it offers and asks for nothing.
    pub(super) fn client_of(
        &mut self,
        part: &Part,
        at: &str,
        own: Option<&ClientFile>,
    ) -> Option<Arc<ClientScript>> {
        let merged = match own {
            Some(file) => {
                let base = self.client.clone();
                self.merged_client(part, &format!("{at}/client"), file, base)
            }
            None => self.client.clone(),
        };
        (!merged.is_empty()).then(|| Arc::new(merged))
    }

    /// Applies the keys of a block to those that it overrides.
    fn merged_client(
        &mut self,
        part: &Part,
        at: &str,
        file: &ClientFile,
        base: ClientScript,
    ) -> ClientScript {
        let mut client = base;
        if let Some(sampling) = &file.sampling {
            client.sampling = match sampling {
                SamplingFile::Off => None,
                SamplingFile::Answers(answers) => Some(self.sampling(part, at, answers)),
            };
        }
        if let Some(elicitation) = &file.elicitation {
            client.elicitation = match elicitation {
                ElicitationFile::Off => None,
                ElicitationFile::Answers(answers) => Some(self.elicitation(part, at, answers)),
            };
        }
        if let Some(roots) = &file.roots {
            client.roots = match roots {
                RootsFile::Off => None,
                RootsFile::List(roots) => {
                    Some(roots.iter().map(|root| resolve(root, &part.dir)).collect())
                }
            };
        }
        client.log_level = file.log_level.or(client.log_level);
        client.tasks = file.tasks.unwrap_or(client.tasks);
        if let Some(capabilities) = &file.capabilities {
            client.capabilities = capabilities.clone();
        }
        let written = part.document.get(at).map(|node| node.to_json());
        if let Some(Value::Object(written)) = written {
            client.written.extend(written);
        }
        client
    }

    fn sampling(
        &mut self,
        part: &Part,
        at: &str,
        answers: &[SamplingAnswerFile],
    ) -> Vec<AnswerRule<SamplingAnswer>> {
        let mut rules = Vec::new();
        for (index, file) in answers.iter().enumerate() {
            let at = answer_place(part, &format!("{at}/sampling"), index);
            let when = self.conditions(part, &at, file.when.as_ref());
            let given = [
                ("answer", file.answer.is_some()),
                ("error", file.error.is_some()),
                ("model", file.model.is_some()),
            ];
            let answer = match (&file.answer, &file.error, &file.model) {
                (Some(answer), None, None) => SamplingAnswer::Result(sampled(&answer.0)),
                (None, Some(error), None) => SamplingAnswer::Error(error.clone()),
                (None, None, Some(model)) => {
                    self.sampling_model(part, &at, model);
                    SamplingAnswer::Model(SamplingModel {
                        id: model.clone(),
                        script: file.script.clone().unwrap_or_default(),
                    })
                }
                _ => {
                    self.problems.push(one_of(part, &at, &given));
                    continue;
                }
            };
            if file.script.is_some() && file.model.is_none() {
                let message = "`script` belongs to `model: builtin/scripted`".to_owned();
                self.problems
                    .push(key_error(part, &format!("{at}/script"), message));
            }
            rules.push(AnswerRule {
                when,
                times: file.times,
                answer,
            });
        }
        self.unreachable(part, &format!("{at}/sampling"), &rules);
        rules
    }

    /// Checks the model of an answer, like that of a judge.
    fn sampling_model(&mut self, part: &Part, at: &str, model: &str) {
        let model_at = format!("{at}/model");
        let script = part.document.get(&format!("{at}/script"));
        let script = script.map(|node| node.to_json());
        self.sampling_script(part, &model_at, (model, script.as_ref()));
        if self.options.purpose != Purpose::Run {
            return;
        }
        if let Err(error) = self.check_model(model) {
            self.problems
                .push(part.document.diagnostic_at(&model_at, error.to_string()));
        } else if self.suite.budget.usd.is_some() {
            self.priced(part, &model_at, model);
        }
    }

    fn elicitation(
        &mut self,
        part: &Part,
        at: &str,
        answers: &[ElicitationAnswerFile],
    ) -> Vec<AnswerRule<ElicitationAnswer>> {
        let mut rules = Vec::new();
        for (index, file) in answers.iter().enumerate() {
            let at = answer_place(part, &format!("{at}/elicitation"), index);
            let when = self.conditions(part, &at, file.when.as_ref());
            let replies = file.action.is_some() || file.content.is_some();
            let answer = match &file.error {
                Some(error) if !replies => ElicitationAnswer::Error(error.clone()),
                Some(_) => {
                    let message = "an answer is either `error`, or `action` with `content`";
                    self.problems
                        .push(part.document.diagnostic_at(&at, message.to_owned()));
                    continue;
                }
                None => {
                    let action = file.action.unwrap_or(ElicitationAction::Accept);
                    if file.content.is_some() && action != ElicitationAction::Accept {
                        let message = "only a form that is accepted has `content`".to_owned();
                        self.problems
                            .push(key_error(part, &format!("{at}/content"), message));
                    }
                    ElicitationAnswer::Reply(action, file.content.clone())
                }
            };
            rules.push(AnswerRule {
                when,
                times: file.times,
                answer,
            });
        }
        self.unreachable(part, &format!("{at}/elicitation"), &rules);
        rules
    }

    /// Warns of an answer that is never given, because one before it answers every request.
    fn unreachable<A>(&mut self, part: &Part, at: &str, rules: &[AnswerRule<A>]) {
        let answers_all = |rule: &AnswerRule<A>| rule.when.is_empty() && rule.times.is_none();
        let last = rules.iter().position(answers_all);
        if let Some(index) = last.filter(|index| index + 1 < rules.len()) {
            let place = answer_place(part, at, index + 1);
            let message = "this answer is never given: the one before it answers every request";
            self.problems.push(
                part.document
                    .diagnostic_at(&place, message.to_owned())
                    .warning()
                    .help("add `when` or `times` to the one before it, or change the order"),
            );
        }
    }

    /// The conditions of an answer.
    fn conditions(
        &mut self,
        part: &Part,
        at: &str,
        when: Option<&Map<String, Value>>,
    ) -> Vec<Expectation> {
        let mut conditions = Vec::new();
        for (target, matcher) in when.into_iter().flatten() {
            let at = format!("{at}/when");
            let written = WrittenExpectation(json!({ target: matcher }));
            match Expectation::compile(&written, &at) {
                Ok(condition) => {
                    let judged = condition.refuse_judge(&written, &at, "an answer of the client");
                    let judged = judged.map(|problem| place(&part.document, "", &problem));
                    self.problems.extend(judged);
                    conditions.push(condition);
                }
                Err(found) => self.problems.extend(
                    found
                        .iter()
                        .map(|problem| place(&part.document, "", problem)),
                ),
            }
        }
        conditions
    }

    /// The client of an agent test: its own keys override those of its agent, and these the
    /// suite's.
    pub(super) fn agent_client(
        &mut self,
        part: &Part,
        at: &str,
        own: &AgentFields,
        is_external: bool,
        expect: &[Expectation],
    ) -> Option<Arc<ClientScript>> {
        if is_external {
            if own.client.is_some() {
                let message =
                    "`client` has no effect: the agent under test is itself the client".to_owned();
                self.problems
                    .push(key_error(part, &format!("{at}/client"), message).warning());
            }
            return None;
        }
        let mut client = self.client.clone();
        if let Some((part, at, agent)) = self.agent_of(own)
            && let Some(file) = &agent.client
        {
            let at = format!("{at}/client");
            client = self.once(|checker| checker.merged_client(part, &at, file, client));
        }
        if let Some(file) = &own.client {
            client = self.merged_client(part, &format!("{at}/client"), file, client);
        }
        let mut roots = expect.iter().map(|one| one.target.root());
        let listens = roots.any(|root| MESSAGE_ROOTS.contains(&root));
        (listens || !client.is_empty()).then(|| Arc::new(client))
    }
}

/// The pointer of an answer that is written alone or in a list.
fn answer_place(part: &Part, at: &str, index: usize) -> String {
    let listed = format!("{at}/{index}");
    match part.document.get(&listed) {
        Some(_) => listed,
        None => at.to_owned(),
    }
}

fn one_of(part: &Part, at: &str, given: &[(&str, bool)]) -> Diagnostic {
    let written: Vec<&str> = given
        .iter()
        .filter(|(_, is_given)| *is_given)
        .map(|(key, _)| *key)
        .collect();
    let message = match written.as_slice() {
        [] => "an answer needs `answer`, `error` or `model`".to_owned(),
        several => format!("`{}` cannot be combined", several.join("` and `")),
    };
    let span = match written.last() {
        Some(key) => part.document.key_span_at(&format!("{at}/{}", escape(key))),
        None => part.document.span_at(at),
    };
    part.document.error(span, message)
}

/// A result of `sampling/createMessage` from its written form.
fn sampled(written: &Value) -> Value {
    let mut result = json!({"role": "assistant", "model": "mcptest", "stopReason": "endTurn"});
    let content = match written {
        Value::Object(members) => {
            for (key, value) in members {
                result[key] = value.clone();
            }
            result["content"].clone()
        }
        text => text.clone(),
    };
    result["content"] = match content {
        Value::String(text) => json!({"type": "text", "text": text}),
        other => other,
    };
    result
}

/// A root with its URI: a path is relative to the file.
fn resolve(root: &RootFile, dir: &Path) -> Root {
    let uri = if has_scheme(&root.uri) {
        root.uri.clone()
    } else {
        file_uri(&dir.join(&root.uri))
    };
    Root {
        uri,
        name: root.name.clone(),
    }
}

fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// The URI of a path, which is made absolute.
fn file_uri(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    // `a/./b` and `a/../b` stay readable for servers that compare strings.
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(name) => parts.push(encode(&name.to_string_lossy())),
            std::path::Component::ParentDir => drop(parts.pop()),
            _ => {}
        }
    }
    format!("file:///{}", parts.join("/"))
}

/// Percent-encodes a part of a path.
fn encode(part: &str) -> String {
    let mut out = String::new();
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

impl std::fmt::Display for ClientErrorFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "error {}: {}", self.code, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_text_becomes_a_result() {
        let text = json!({"type": "text", "text": "Hi"});
        let whole = json!({
            "role": "assistant", "model": "mcptest", "stopReason": "endTurn", "content": text,
        });
        assert_eq!(sampled(&json!("Hi")), whole);
        assert_eq!(sampled(&json!({"content": "Hi"})), whole);
        let own = json!({"content": text, "model": "m", "stopReason": "maxTokens", "x": 1});
        let result = sampled(&own);
        assert_eq!(result["role"], "assistant");
        assert_eq!(result["model"], "m");
        assert_eq!(result["content"], text);
        assert_eq!(result["x"], 1);
    }

    #[test]
    fn roots_are_uris_or_paths_relative_to_the_file() {
        let root = |uri: &str| {
            let root = RootFile {
                uri: uri.to_owned(),
                name: None,
            };
            resolve(&root, Path::new("/suite dir/a")).uri
        };
        assert_eq!(root("file:///x y"), "file:///x y");
        assert_eq!(root("https://example.com"), "https://example.com");
        assert_eq!(root("./b"), "file:///suite%20dir/a/b");
        assert_eq!(root("../b"), "file:///suite%20dir/b");
        assert_eq!(root("/abs"), "file:///abs");
        assert_eq!(root("C:/x"), "file:///suite%20dir/a/C:/x");
    }
}
