//! `tools:`, `resources:`, `prompts:` and `tool_quality:`: tests without an agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcptest_catalog::quality;
use mcptest_trace::expect::Expectation;
use mcptest_trace::matcher::Matcher;
use mcptest_yaml::suggest;
use serde_json::{Map, Value, json};

use super::diagnostics::{escape, key_error, unknown_name};
use super::fixtures::Names;
use super::{Checker, DIRECT_ROOTS};
use crate::client::ClientScript;
use crate::direct::NamedPart;
use crate::direct_file::{DirectFields, ResourceListFile};
use crate::file::{PromptTestFile, ResourceTestFile, ToolQualityFile, ToolTestFile};
use crate::import::Part;
use crate::options::Purpose;
use crate::suite::{
    CancelMoment, Completed, DirectRequest, DirectTest, Isolation, ListKind, MESSAGE_ROOTS,
    TaskSettings, Test, ToolQualityTest,
};
use crate::template::Args;
use crate::uri_template::UriTemplate;

/// The time that a server has for messages that it sends by itself.
const DEFAULT_WAIT: Duration = Duration::from_secs(2);

/// The same after a call was cancelled: what is expected then is that nothing arrives.
const DEFAULT_CANCEL_WAIT: Duration = Duration::from_millis(250);

/// The parts of a direct test that its section decides.
struct Requested<'r> {
    /// Makes the request from the filled arguments.
    make: Box<dyn FnOnce(Args) -> DirectRequest + 'r>,
    cancel: Option<CancelMoment>,
    /// The key that has the name of the tool, resource or prompt.
    named: Option<&'static str>,
    is_task: bool,
}

impl Requested<'_> {
    /// The pointer of the arguments below that of the test. A URI is filled like arguments.
    fn args_at(&self) -> &'static str {
        match self.named {
            Some("uri") => "",
            _ => "/args",
        }
    }
}

impl<'a> Checker<'a> {
    pub(super) fn quality_test(&mut self, part: &'a Part, at: &str, file: &ToolQualityFile) {
        self.name(part, at, &file.name);
        self.named_server(part, at, &file.server);
        let warnings = quality::bound_warnings(&file.expect, &format!("{at}/expect"));
        self.add(part, "", &warnings);
        match quality::expectations(&file.expect, &format!("{at}/expect")) {
            Ok(expect) => self.suite.tests.push(Test::ToolQuality(ToolQualityTest {
                line: self.line(part, at),
                name: file.name.clone(),
                server: file.server.clone(),
                expect,
                tags: file.tags.clone(),
            })),
            Err(found) => self.add(part, "", &found),
        }
    }

    /// Checks that a server is declared.
    pub(super) fn named_server(&mut self, part: &Part, at: &str, server: &str) {
        if self.options.purpose == Purpose::Run && !self.is_declared(server) {
            let known = self.declared();
            let place = format!("{at}/server");
            self.problems.push(unknown_name(
                part, &place, "server", server, &known, "servers",
            ));
        }
    }

    pub(super) fn tool_test(&mut self, part: &'a Part, at: &str, mut file: ToolTestFile) {
        let common = file.take_common();
        let cancel = match (file.cancel_after_ms, file.cancel_on) {
            (Some(_), Some(_)) => {
                let message = "`cancel_after_ms` and `cancel_on` cannot be combined".to_owned();
                self.problems
                    .push(key_error(part, &format!("{at}/cancel_on"), message));
                None
            }
            (Some(ms), None) => Some(CancelMoment::After(Duration::from_millis(ms))),
            (None, on) => on.map(CancelMoment::On),
        };
        let task = file.task.0.as_ref().map(|fields| TaskSettings {
            ttl: fields.ttl_ms.map(Duration::from_millis),
        });
        let (make, named): (Box<dyn FnOnce(Args) -> DirectRequest>, _) =
            match (file.tool.take(), file.list) {
                (Some(tool), false) => (
                    Box::new(move |args| DirectRequest::Tool { tool, args, task }),
                    Some("tool"),
                ),
                (None, true) => {
                    let idle = [
                        ("args", common.args.is_some()),
                        ("task", task.is_some()),
                        ("cancel_after_ms", file.cancel_after_ms.is_some()),
                        ("cancel_on", file.cancel_on.is_some()),
                    ];
                    self.idle_keys(part, at, "list", &idle);
                    (Box::new(|_| DirectRequest::List(ListKind::Tools)), None)
                }
                (Some(_), true) => return self.one_request(part, at, "`tool` and `list`"),
                (None, false) => {
                    let message = "a tool test needs `tool`, or `list: true`";
                    return self.no_request(part, at, message);
                }
            };
        let requested = Requested {
            make,
            cancel,
            named,
            is_task: task.is_some(),
        };
        self.direct_test(part, at, common, requested);
    }

    pub(super) fn resource_test(&mut self, part: &'a Part, at: &str, mut file: ResourceTestFile) {
        let mut common = file.take_common();
        let subscribe = file.subscribe;
        let given: Vec<&str> = [
            ("`uri`", file.uri.is_some()),
            ("`template`", file.template.is_some()),
            ("`list`", file.list != ResourceListFile::No),
        ]
        .into_iter()
        .filter(|(_, given)| *given)
        .map(|(key, _)| key)
        .collect();
        if let [_, _, ..] = given.as_slice() {
            return self.one_request(part, at, &given.join(" and "));
        }
        let template = file.template.as_deref();
        let template = match template.map(|text| self.template(part, at, text, &common, &file)) {
            Some(None) => return,
            Some(Some(template)) => Some(template),
            None => None,
        };
        if file.complete.is_some() && template.is_none() {
            let message = "`complete` needs the `template` whose variable is completed".to_owned();
            self.problems
                .push(key_error(part, &format!("{at}/complete"), message));
            return;
        }
        let (make, named): (Box<dyn FnOnce(Args) -> DirectRequest>, _) =
            match (file.uri.take(), template, file.list) {
                (Some(uri), ..) => {
                    let idle = [("args", common.args.is_some())];
                    self.idle_keys(part, at, "uri", &idle);
                    // Filled like arguments.
                    common.args = Some(Map::from_iter([("uri".to_owned(), uri.into())]));
                    (
                        Box::new(move |uri| DirectRequest::Read { uri, subscribe }),
                        Some("uri"),
                    )
                }
                (_, Some(template), _) => match file.complete.take() {
                    Some(complete) => {
                        let idle = [("subscribe", subscribe)];
                        self.idle_keys(part, at, "complete", &idle);
                        let variables: Vec<String> = template
                            .variables()
                            .iter()
                            .map(|&one| one.to_owned())
                            .collect();
                        let completed = Completed::Template(template.as_str().to_owned());
                        let Some(make) =
                            self.completion(part, at, complete, completed, Some(&variables))
                        else {
                            return;
                        };
                        (make, Some("template"))
                    }
                    None => (
                        Box::new(move |args| DirectRequest::Expand {
                            template,
                            args,
                            subscribe,
                        }),
                        Some("template"),
                    ),
                },
                (.., ResourceListFile::No) => {
                    let message = "a resource test needs `uri`, `template` or `list`";
                    return self.no_request(part, at, message);
                }
                (.., list) => {
                    let idle = [("args", common.args.is_some()), ("subscribe", subscribe)];
                    self.idle_keys(part, at, "list", &idle);
                    let kind = match list {
                        ResourceListFile::Templates => ListKind::Templates,
                        _ => ListKind::Resources,
                    };
                    (Box::new(move |_| DirectRequest::List(kind)), None)
                }
            };
        let requested = Requested {
            make,
            cancel: None,
            named,
            is_task: false,
        };
        self.direct_test(part, at, common, requested);
    }

    pub(super) fn prompt_test(&mut self, part: &'a Part, at: &str, mut file: PromptTestFile) {
        let common = file.take_common();
        let (make, named): (Box<dyn FnOnce(Args) -> DirectRequest>, _) =
            match (file.prompt.take(), file.complete.take(), file.list) {
                (Some(_), _, true) => return self.one_request(part, at, "`prompt` and `list`"),
                (Some(prompt), None, _) => (
                    Box::new(move |args| DirectRequest::Prompt { prompt, args }),
                    Some("prompt"),
                ),
                (Some(prompt), Some(complete), _) => {
                    let completed = Completed::Prompt(prompt);
                    let Some(make) = self.completion(part, at, complete, completed, None) else {
                        return;
                    };
                    (make, Some("prompt"))
                }
                (None, complete, true) => {
                    let idle = [
                        ("args", common.args.is_some()),
                        ("complete", complete.is_some()),
                    ];
                    self.idle_keys(part, at, "list", &idle);
                    (Box::new(|_| DirectRequest::List(ListKind::Prompts)), None)
                }
                (None, _, false) => {
                    let message = "a prompt test needs `prompt`, or `list: true`";
                    return self.no_request(part, at, message);
                }
            };
        let requested = Requested {
            make,
            cancel: None,
            named,
            is_task: false,
        };
        self.direct_test(part, at, common, requested);
    }

    /// A template, with arguments that it has variables for.
    fn template(
        &mut self,
        part: &Part,
        at: &str,
        text: &str,
        common: &DirectFields,
        file: &ResourceTestFile,
    ) -> Option<UriTemplate> {
        let template = match UriTemplate::parse(text) {
            Ok(template) => template,
            Err(error) => {
                let place = format!("{at}/template");
                let message = format!("`{text}` is not a URI template: {error}");
                self.problems.push(
                    part.document
                        .diagnostic_at(&place, message)
                        .help("variables are written in braces: `note://{id}`"),
                );
                return None;
            }
        };
        let variables = template.variables();
        for name in common.args.iter().flat_map(Map::keys) {
            if !variables.contains(&name.as_str()) {
                let place = format!("{at}/args/{}", escape(name));
                self.problems
                    .push(unknown_variable(part, &place, name, &variables));
            }
        }
        let is_set = |name: &str| {
            let typed = file.complete.as_ref();
            common
                .args
                .as_ref()
                .is_some_and(|args| args.contains_key(name))
                || typed.is_some_and(|typed| typed.contains_key(name))
        };
        let missing: Vec<String> = variables
            .iter()
            .filter(|name| file.complete.is_none() && !is_set(name) && !template.is_optional(name))
            .map(|name| format!("`{name}`"))
            .collect();
        if !missing.is_empty() {
            let message = format!("`args` has no value for {}", missing.join(", "));
            self.problems.push(
                part.document
                    .diagnostic_at(&format!("{at}/template"), message)
                    .warning()
                    .help("a variable without a value is left out of the URI"),
            );
        }
        Some(template)
    }

    /// A request for completions of one argument.
    fn completion(
        &mut self,
        part: &Part,
        at: &str,
        complete: BTreeMap<String, Value>,
        of: Completed,
        variables: Option<&[String]>,
    ) -> Option<Box<dyn FnOnce(Args) -> DirectRequest>> {
        let place = format!("{at}/complete");
        let mut entries = complete.into_iter();
        let (Some((argument, typed)), None) = (entries.next(), entries.next()) else {
            let message = "`complete` names one argument, and what has been typed".to_owned();
            self.problems.push(
                part.document
                    .diagnostic_at(&place, message)
                    .help("for example `complete: { language: py }`; others belong to `args`"),
            );
            return None;
        };
        if let Some(variables) = variables {
            let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
            if !variables.contains(&argument.as_str()) {
                let place = format!("{place}/{}", escape(&argument));
                self.problems
                    .push(unknown_variable(part, &place, &argument, &variables));
            }
        }
        let typed = match typed {
            Value::Null => Value::String(String::new()),
            other => other,
        };
        let typed = Args::new(Some(Map::from_iter([(argument.clone(), typed)])));
        Some(Box::new(move |args| DirectRequest::Complete {
            of,
            argument,
            typed,
            args,
        }))
    }

    fn one_request(&mut self, part: &Part, at: &str, keys: &str) {
        let message = format!("{keys} cannot be combined: a test makes one request");
        self.problems
            .push(key_error(part, &format!("{at}/name"), message));
    }

    fn no_request(&mut self, part: &Part, at: &str, message: &str) {
        self.problems
            .push(key_error(part, &format!("{at}/name"), message.to_owned()));
    }

    /// Reports keys that have no effect beside another.
    fn idle_keys(&mut self, part: &Part, at: &str, beside: &str, keys: &[(&str, bool)]) {
        for (key, _) in keys.iter().filter(|(_, given)| *given) {
            let message = format!("`{key}` has no effect with `{beside}`");
            self.problems
                .push(key_error(part, &format!("{at}/{key}"), message));
        }
    }

    fn direct_test(
        &mut self,
        part: &'a Part,
        at: &str,
        file: DirectFields,
        requested: Requested<'_>,
    ) {
        self.name(part, at, &file.name);
        self.named_server(part, at, &file.server);
        let place = format!("{at}/expect{}", file.expect.assertions_at);
        let mut expect = self.expectations(part, &place, &file.expect.assertions, &DIRECT_ROOTS);
        let in_dollars = self.suite.budget.usd.is_some();
        self.judges(part, &place, &file.expect.assertions, in_dollars);
        let mut saved = Names::new();
        let server = file.server.as_str();
        let setup = self.fixtures(
            part,
            &|| format!("{at}/setup"),
            &file.setup,
            server,
            &mut saved,
        );
        let args_at = requested.args_at();
        let (cancels, is_task) = (requested.cancel.is_some(), requested.is_task);
        let args = self.args(part, &|| format!("{at}{args_at}"), file.args, &saved);
        let request = (requested.make)(args);
        if let DirectRequest::Complete { typed, .. } = &request {
            self.saved_uses(part, &|| format!("{at}/complete"), typed, &saved);
        }
        let trigger = self.fixtures(
            part,
            &|| format!("{at}/trigger"),
            &file.trigger,
            server,
            &mut saved,
        );
        let place = || format!("{at}/save");
        let save = self.save(part, &place, &file.save, &mut saved, &DIRECT_ROOTS);
        let teardown = self.fixtures(
            part,
            &|| format!("{at}/teardown"),
            &file.teardown,
            server,
            &mut saved,
        );
        if !file.save.is_empty() && file.teardown.is_empty() {
            let message =
                "values saved here can only be used in `teardown`, but there is none".to_owned();
            self.problems.push(
                key_error(part, &format!("{at}/save"), message)
                    .help("save values for the request itself in `setup`"),
            );
        }
        let snapshot = file.snapshot.0.as_ref();
        let snapshot = snapshot.and_then(|fields| self.snapshot(part, at, &file.name, fields));
        let timeout = file.timeout.as_ref();
        let timeout = timeout
            .and_then(|written| self.duration(part, &format!("{at}/timeout"), Some(written)));
        let wait = file.wait.as_ref();
        let wait =
            wait.and_then(|written| self.duration(part, &format!("{at}/wait"), Some(written)));
        let default_wait = match requested.cancel {
            Some(_) => DEFAULT_CANCEL_WAIT,
            None => DEFAULT_WAIT,
        };
        if file.expect.assertions.is_empty() {
            let over_http = self.has_url(server);
            expect =
                default_expectations(&request, (cancels, is_task), !trigger.is_empty(), over_http);
        }
        let mut client = self.client_of(part, at, file.client.as_ref());
        let roots = expect.iter().map(|one| one.target.root());
        let listens = request.subscribes()
            || !trigger.is_empty()
            || cancels
            || is_task
            || roots.clone().any(|root| MESSAGE_ROOTS.contains(&root));
        if listens && client.is_none() {
            client = Some(Arc::new(ClientScript::default()));
        }
        if client.is_some() && file.isolation == Some(Isolation::Shared) {
            let message = "a test with its own client, or that listens to messages of the \
                           server, cannot share its session"
                .to_owned();
            self.problems.push(
                key_error(part, &format!("{at}/isolation"), message)
                    .help("remove `isolation`: the test has its own session"),
            );
        }
        let has_state = !setup.is_empty() || !teardown.is_empty();
        let isolation = match &client {
            Some(_) => Some(Isolation::Run),
            None => file.isolation,
        };
        let named = requested.named.map(|key| NamedPart {
            source: Arc::clone(part.document.source()),
            span: part.document.span_at(&format!("{at}/{key}")),
        });
        self.suite.tests.push(Test::Direct(Box::new(DirectTest {
            line: self.line(part, at),
            name: file.name,
            server: file.server,
            request,
            expect,
            max_duration: file.expect.max_duration_ms.map(Duration::from_millis),
            max_response_tokens: file.expect.max_response_tokens,
            snapshot,
            setup,
            trigger,
            teardown,
            save,
            client,
            wait: wait.unwrap_or(default_wait),
            cancel: requested.cancel,
            timeout,
            isolation,
            // Concurrent tests would affect the state and the duration.
            serial: file
                .serial
                .unwrap_or(has_state || file.expect.max_duration_ms.is_some()),
            tags: file.tags,
            named,
        })));
    }

    fn has_url(&self, server: &str) -> bool {
        let server = self.suite.servers.get(server);
        server.is_some_and(|server| server.http.is_some())
    }
}

/// The expectations of a test that has none of its own.
fn default_expectations(
    request: &DirectRequest,
    (cancels, is_task): (bool, bool),
    has_trigger: bool,
    over_http: bool,
) -> Vec<Expectation> {
    let is = |target: &str, value: Value| Expectation::default_of(target, Matcher::exact(value));
    let at_least_one = |target: &str| {
        let matcher = Matcher::compile(&json!({"length": {">=": 1}}), "");
        matcher.ok().map(|one| Expectation::default_of(target, one))
    };
    if cancels {
        if is_task {
            return vec![is("task.status", "cancelled".into())];
        }
        let mut expect = vec![
            is("cancellation.sent", true.into()),
            is("cancellation.responsive", true.into()),
        ];
        // Over HTTP the stream of the call is closed, and nobody sees an answer.
        if !over_http {
            expect.push(is("cancellation.answered", false.into()));
        }
        return expect;
    }
    let mut expect = vec![is("error", Value::Null)];
    match request {
        DirectRequest::Tool { .. } => {
            expect.push(is("result.is_error", false.into()));
            if is_task {
                expect.push(is("task.status", "completed".into()));
            }
        }
        DirectRequest::List(_) if has_trigger => expect.extend(at_least_one("list_changed")),
        _ if request.subscribes() => expect.extend(at_least_one("updates")),
        _ => {}
    }
    expect
}

fn unknown_variable(
    part: &Part,
    place: &str,
    name: &str,
    variables: &[&str],
) -> mcptest_yaml::Diagnostic {
    let span = part.document.key_span_at(place);
    let message = format!("the template has no variable `{name}`");
    let problem = part.document.error(span, message);
    match suggest(name, variables.iter().copied()) {
        Some(near) => problem.label(format!("did you mean `{near}`?")),
        None if variables.is_empty() => problem.help("it has none"),
        None => problem.help(format!("it has {}", variables.join(", "))),
    }
}
