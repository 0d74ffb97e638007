//! Tools and their answers.

use serde_json::{Map, Value, json};

use super::compiled::{Answer, Before, Case, CompiledTool, Response};
use super::{Compiler, insert_some};
use crate::manifest::{BeforeSpec, ResponseSpec, ToolSpec};
use crate::server_changes::Change;
use crate::template::{Builder, Mode, Template};

/// The default answer of a tool: its name and the arguments.
pub(super) fn echo(name: &str) -> Case {
    let mut builder = Builder::default();
    builder.raw(br#""content":[{"type":"text","text":"#);
    let mut text = Vec::new();
    crate::jsonrpc::write_json(&mut text, &format!("{name} "));
    // Without the closing quote, because the arguments follow.
    text.pop();
    builder.raw(&text);
    builder.all_arguments_as_text();
    builder.raw(br#""}]"#);
    Case {
        when: None,
        when_answered: None,
        responses: vec![Response {
            before: Vec::new(),
            answer: Answer::Result(builder.finish().0),
        }],
    }
}

/// Returns true if an answer of a case depends on the answers of the client.
fn uses_answers(case: &Case) -> bool {
    let uses = |response: &Response| match &response.answer {
        Answer::Result(template) | Answer::Error(_, template) => template.uses_answers(),
    };
    case.when_answered.is_some() || case.responses.iter().any(uses)
}

impl Compiler {
    pub(super) fn tool(&mut self, spec: &ToolSpec, at: &str) -> CompiledTool {
        let input_schema = match &spec.input_schema {
            Some(schema) => Value::Object(schema.clone()),
            None => json!({"type": "object"}),
        };
        self.schema(&input_schema, &format!("{at}/input_schema"));
        let mut wire = Map::new();
        wire.insert("name".to_owned(), spec.name.clone().into());
        insert_some(&mut wire, "title", spec.title.as_ref());
        insert_some(&mut wire, "description", spec.description.as_ref());
        wire.insert("inputSchema".to_owned(), input_schema.clone());
        if let Some(schema) = &spec.output_schema {
            let schema = Value::Object(schema.clone());
            self.schema(&schema, &format!("{at}/output_schema"));
            wire.insert("outputSchema".to_owned(), schema);
        }
        insert_some(&mut wire, "annotations", spec.annotations.as_ref());
        if let Some(task) = &spec.task {
            let execution = json!({"taskSupport": task.support.as_str()});
            wire.insert("execution".to_owned(), execution);
        }
        let sql = self.sql(spec, at);
        let cases = self.cases(spec, at);
        if spec.ask.is_empty() && cases.iter().any(uses_answers) {
            self.problem(
                at,
                "a response uses the answers of the client, but the tool has no `ask`",
            );
        }
        CompiledTool {
            wire: wire.into(),
            name: Some(spec.name.clone()),
            input_schema: Some(input_schema),
            cases,
            sql,
            ask: self.ask(&spec.ask, at),
            task: spec.task,
            hidden: spec.hidden,
            fault: self.fault(spec.fault.as_deref(), at),
        }
    }

    /// Groups the answers by `when`; those without one come last.
    fn cases(&mut self, spec: &ToolSpec, at: &str) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        let mut otherwise = Vec::new();
        for (index, response) in spec.responses.iter().enumerate() {
            let compiled = self.response(response, &format!("{at}/responses/{index}"));
            let (when, when_answered) = (&response.when, &response.when_answered);
            if when.is_none() && when_answered.is_none() {
                otherwise.push(compiled);
                continue;
            }
            let same =
                |case: &&mut Case| case.when == *when && case.when_answered == *when_answered;
            match cases.iter_mut().find(same) {
                Some(case) => case.responses.push(compiled),
                None => cases.push(Case {
                    when: when.clone(),
                    when_answered: when_answered.clone(),
                    responses: vec![compiled],
                }),
            }
        }
        if let Some(response) = &spec.response {
            let pointer = format!("{at}/response");
            for (key, given) in [
                ("when", response.when.is_some()),
                ("when_answered", response.when_answered.is_some()),
            ] {
                if given {
                    self.problem(
                        format!("{pointer}/{key}"),
                        format!("`{key}` belongs in the list `responses`"),
                    );
                }
            }
            if !otherwise.is_empty() {
                self.problem(
                    &pointer,
                    "`responses` already has a default answer: \
                     give every entry there a `when`, or omit `response`",
                );
            }
            otherwise.push(self.response(response, &pointer));
        }
        cases.push(if otherwise.is_empty() {
            echo(&spec.name)
        } else {
            Case {
                when: None,
                when_answered: None,
                responses: otherwise,
            }
        });
        cases
    }

    fn response(&mut self, spec: &ResponseSpec, at: &str) -> Response {
        let before = spec.before.iter().enumerate();
        let before = before
            .filter_map(|(index, before)| self.before(before, &format!("{at}/before/{index}")))
            .collect();
        let answer = match &spec.rpc_error {
            Some(error) => {
                if spec.content.is_some() || spec.structured_content.is_some() || spec.is_error {
                    self.problem(at, "either an `rpc_error` or a result, not both");
                }
                let mut builder = Builder::default();
                let pointer = format!("{at}/rpc_error");
                builder.raw(br#"{"message":"#);
                let message = Value::String(error.message.clone());
                builder.value(&message, Mode::Text, &format!("{pointer}/message"));
                if let Some(data) = &error.data {
                    builder.raw(br#","data":"#);
                    builder.value(data, Mode::Typed, &format!("{pointer}/data"));
                }
                builder.raw(b"}");
                Answer::Error(error.code, self.finish(builder))
            }
            None => Answer::Result(self.result(spec, at)),
        };
        Response { before, answer }
    }

    fn before(&mut self, spec: &BeforeSpec, at: &str) -> Option<Before> {
        let stray = [
            (
                spec.progress.is_none() && spec.total.is_some(),
                "total",
                "progress",
            ),
            (
                spec.progress.is_none() && spec.message.is_some(),
                "message",
                "progress",
            ),
            (spec.log.is_none() && spec.level.is_some(), "level", "log"),
            (spec.log.is_none() && spec.logger.is_some(), "logger", "log"),
        ];
        for (_, key, owner) in stray.into_iter().filter(|(stray, ..)| *stray) {
            self.problem(format!("{at}/{key}"), format!("`{key}` needs `{owner}`"));
        }
        let given = [
            spec.progress.is_some(),
            spec.log.is_some(),
            spec.updated.is_some(),
            spec.list_changed.is_some(),
            spec.reveal.is_some(),
            spec.wait_ms.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            self.problem(
                at,
                "needs exactly one of `progress`, `log`, `updated`, `list_changed`, `reveal` and \
                 `wait_ms`",
            );
            return None;
        }
        if let Some(change) = self.change(spec, at) {
            return Some(Before::Change(change));
        }
        let mut builder = Builder::default();
        match (&spec.progress, &spec.log, spec.wait_ms) {
            (None, None, Some(ms)) => Some(Before::Wait(ms)),
            (Some(progress), None, None) => {
                builder.raw(br#","progress":"#);
                builder.plain(&Value::Number(progress.clone()));
                if let Some(total) = &spec.total {
                    builder.raw(br#","total":"#);
                    builder.plain(&Value::Number(total.clone()));
                }
                if let Some(message) = &spec.message {
                    builder.raw(br#","message":"#);
                    builder.value(
                        &message.clone().into(),
                        Mode::Text,
                        &format!("{at}/message"),
                    );
                }
                Some(Before::Progress(self.finish(builder)))
            }
            (None, Some(data), None) => {
                let level = spec.level.unwrap_or_default();
                builder.raw(br#""level":"#);
                builder.plain(&level.as_str().into());
                if let Some(logger) = &spec.logger {
                    builder.raw(br#","logger":"#);
                    builder.plain(&logger.clone().into());
                }
                builder.raw(br#","data":"#);
                builder.value(data, Mode::Typed, &format!("{at}/log"));
                Some(Before::Log(level, self.finish(builder)))
            }
            // A change that has been reported.
            _ => None,
        }
    }

    /// The change that an entry causes, if it is one.
    fn change(&mut self, spec: &BeforeSpec, at: &str) -> Option<Change> {
        if let Some(uri) = &spec.updated {
            if !self.updatable.contains(uri) {
                let message = format!("there is no resource `{uri}` under `resources`");
                self.problem(format!("{at}/updated"), message);
                return None;
            }
            return Some(Change::Updated(uri.clone()));
        }
        if let Some(name) = &spec.reveal {
            let Some(list) = self.hidden.get(name) else {
                let message = format!("no tool, resource or prompt `{name}` is `hidden: true`");
                self.problem(format!("{at}/reveal"), message);
                return None;
            };
            return Some(Change::Reveal(*list, name.clone()));
        }
        spec.list_changed.map(Change::List)
    }

    fn result(&mut self, spec: &ResponseSpec, at: &str) -> Template {
        let mut builder = Builder::default();
        builder.raw(br#""content":["#);
        match (&spec.content, &spec.structured_content) {
            (Some(blocks), _) => {
                for (index, block) in blocks.iter().enumerate() {
                    if index > 0 {
                        builder.raw(b",");
                    }
                    self.block(&mut builder, block, &format!("{at}/content/{index}"));
                }
            }
            (None, Some(structured)) => {
                // Errors in it are reported below.
                if let Ok(structured) = Template::compile(structured) {
                    builder.raw(br#"{"type":"text","text":"#);
                    builder.quoted(structured);
                    builder.raw(b"}");
                }
            }
            (None, None) => self.problem(
                at,
                "an empty response: it needs `content`, `structured_content` or `rpc_error`",
            ),
        }
        builder.raw(b"]");
        if let Some(structured) = &spec.structured_content {
            builder.raw(br#","structuredContent":"#);
            builder.value(structured, Mode::Typed, &format!("{at}/structured_content"));
        }
        if spec.is_error {
            builder.raw(br#","isError":true"#);
        }
        self.finish(builder)
    }
}
