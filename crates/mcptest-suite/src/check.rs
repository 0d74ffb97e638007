//! What the schema cannot say: that names refer to something, that expressions compile, that a test can be run.

mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcptest_core::eval::discovery::Discovery;
use mcptest_core::eval::{self, LoadContext, LoadedGate};
use mcptest_core::expect::{Expectation, WrittenExpectation};
use mcptest_core::fault::Fault;
use mcptest_core::matcher::Problem;
use mcptest_core::quality;
use mcptest_core::trace::OBSERVABLE_ROOTS;
use mcptest_yaml::{Diagnostic, Document, NodeValue, Source, Span, suggest};
use serde_json::Value;

use crate::file::{AgentFields, Entry, NoEvidenceFile, ServerFile, ToolQualityFile, WrittenDuration};
use crate::import::{Broken, Part};
use crate::load::{LoadOptions, Purpose};
use crate::suite::{AgentTest, HttpAddress, NoEvidence, Server, Suite, Test, ToolQualityTest};

/// Roots of a direct tool test.
const TOOL_ROOTS: [&str; 2] = ["result", "error"];
const SCRIPTED: &str = "builtin/scripted";
const DEFAULT_MAX_TURNS: u32 = 10;
const DEFAULT_STARTUP: Duration = Duration::from_secs(30);

pub(crate) struct Checked {
    pub suite: Suite,
    pub problems: Vec<Diagnostic>,
}

/// Checks all parts together: names may refer across files.
pub(crate) fn check(parts: &[Part], options: &LoadOptions<'_>) -> Checked {
    let mut checker = Checker {
        parts,
        options,
        suite: Suite::default(),
        problems: Vec::new(),
        names: BTreeMap::new(),
        snapshots: BTreeMap::new(),
        faults: Vec::new(),
    };
    for part in parts {
        checker.servers(part);
        checker.run_options(part);
        checker.prices(part);
        checker.faults(part);
        checker.suite.snapshot_folders.push(tools::snapshot_folder(part));
    }
    for part in parts {
        checker.tests(part);
    }
    Checked {
        suite: checker.suite,
        problems: checker.problems,
    }
}

/// In a file whose shape is wrong, everything outside the wrong places can still be compiled.
pub(crate) fn expressions_of_broken(broken: &Broken) -> Vec<Diagnostic> {
    let document = &broken.document;
    let mut problems = Vec::new();
    let touched = |pointer: &str| {
        let extent = document.extent_at(pointer);
        broken
            .wrong
            .iter()
            .any(|span| extent.start <= span.start && span.start <= extent.end)
    };
    let root = document.root().to_json();
    let try_expectations = |base: &str, list: Option<&Value>, roots: &[&str], problems: &mut Vec<Diagnostic>| {
        for (index, item) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let at = format!("{base}/{index}");
            if !touched(&at) {
                compile(document, &WrittenExpectation(item.clone()), &at, roots, problems);
            }
        }
    };
    for section in ["agents", "tests"] {
        for (index, entry) in list_of(&root, section).iter().enumerate() {
            let at = format!("/{section}/{index}");
            try_expectations(
                &format!("{at}/expect"),
                entry.get("expect"),
                &OBSERVABLE_ROOTS,
                &mut problems,
            );
            let gates: Vec<(String, Value)> = entry
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(key, _)| eval::find(key).is_some())
                .map(|(key, block)| (key.clone(), block.clone()))
                .collect();
            // Only what can be said without the rest of the entry. Broken blocks are left out, but a block that needs one of them as
            // its sibling must still see that it is there.
            let context = LoadContext {
                to_run: false,
                runs: None,
                siblings: &gates,
            };
            for (key, block) in gates.iter().filter(|(key, _)| !touched(&format!("{at}/{key}"))) {
                let Some(info) = eval::find(key) else { continue };
                let (_, found) = LoadedGate::load(info, block, &context);
                let block_at = format!("{at}/{key}");
                problems.extend(found.iter().map(|problem| place(document, &block_at, problem)));
            }
        }
    }
    for (index, entry) in list_of(&root, "tools").iter().enumerate() {
        let at = format!("/tools/{index}/expect");
        let expect = entry.get("expect");
        try_expectations(&at, expect, &TOOL_ROOTS, &mut problems);
        let assertions = expect.and_then(|expect| expect.get("assertions"));
        try_expectations(&format!("{at}/assertions"), assertions, &TOOL_ROOTS, &mut problems);
    }
    for (index, entry) in list_of(&root, "tool_quality").iter().enumerate() {
        let at = format!("/tool_quality/{index}/expect");
        let list = entry.get("expect").and_then(Value::as_array).filter(|_| !touched(&at));
        let written: Vec<_> = list.into_iter().flatten().cloned().map(WrittenExpectation).collect();
        if let Err(found) = quality::expectations(&written, &at) {
            problems.extend(found.iter().map(|problem| place(document, "", problem)));
        }
    }
    problems
}

fn list_of<'a>(root: &'a Value, section: &str) -> &'a [Value] {
    root.get(section).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

struct Checker<'a> {
    parts: &'a [Part],
    options: &'a LoadOptions<'a>,
    suite: Suite,
    problems: Vec<Diagnostic>,
    /// Test names with the place of their first use.
    names: BTreeMap<String, (Arc<Source>, Span)>,
    /// Snapshot files with the test that each belongs to.
    snapshots: BTreeMap<PathBuf, String>,
    /// The faults of all files.
    faults: Vec<Fault>,
}

impl Checker<'_> {
    fn servers(&mut self, part: &Part) {
        for (name, file) in &part.file.servers {
            let at = format!("/servers/{}", escape(name));
            if self.suite.servers.contains_key(name) {
                self.problems
                    .push(key_error(part, &at, format!("a second server called `{name}`")));
                continue;
            }
            if let Some(server) = self.server(part, &at, name, file) {
                self.suite.servers.insert(name.clone(), server);
            }
        }
    }

    fn server(&mut self, part: &Part, at: &str, name: &str, file: &ServerFile) -> Option<Server> {
        let mut server = Server {
            http: None,
            argv: Vec::new(),
            env: file
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.0.clone()))
                .collect(),
            cwd: part.dir.join(file.cwd.as_deref().unwrap_or("")),
            timeout: self.duration(part, &format!("{at}/timeout"), file.timeout.as_ref()),
            startup_timeout: self
                .duration(part, &format!("{at}/startup_timeout"), file.startup_timeout.as_ref())
                .unwrap_or(DEFAULT_STARTUP),
            lifecycle: file.lifecycle,
            isolation: file.isolation,
        };
        if let Some(url) = &file.url {
            server.http = self.http(part, at, name, file, url);
            return server.http.is_some().then_some(server);
        }
        let for_http = [
            (
                "headers",
                !file.headers.is_empty(),
                "headers are for a server with a `url`",
            ),
            (
                "bearer",
                file.bearer.is_some(),
                "a bearer token is for a server with a `url`",
            ),
        ];
        for (key, _, words) in for_http.iter().filter(|(_, written, _)| *written) {
            self.problems.push(
                part.document
                    .diagnostic_at(&format!("{at}/{key}"), *words)
                    .help("a program takes its secrets from `env:`"),
            );
        }
        let Some(command) = &file.command else {
            self.problems.push(
                key_error(part, at, format!("server `{name}` has no `command` and no `url`"))
                    .help("write `command: [\"program\", \"argument\"]`, or `url: http://127.0.0.1:3000/mcp`"),
            );
            return None;
        };
        if let ([only], true) = (command.0.as_slice(), file.args.is_empty())
            && only.contains(char::is_whitespace)
        {
            let words: Vec<String> = only.split_whitespace().map(|word| format!("\"{word}\"")).collect();
            self.problems.push(
                part.document
                    .diagnostic_at(
                        &format!("{at}/command"),
                        "a command is run without a shell, so one text is one program name",
                    )
                    .help(format!("write it as a list: [{}]", words.join(", "))),
            );
            return None;
        }
        server.argv = command.0.iter().chain(&file.args).cloned().collect();
        Some(server)
    }

    /// The address of a server over HTTP, which nothing about a program can stand beside.
    fn http(&mut self, part: &Part, at: &str, name: &str, file: &ServerFile, url: &str) -> Option<HttpAddress> {
        let for_programs = [
            ("command", file.command.is_some()),
            ("args", !file.args.is_empty()),
            ("env", !file.env.is_empty()),
            ("cwd", file.cwd.is_some()),
        ];
        let mut fine = true;
        for (key, _) in for_programs.iter().filter(|(_, written)| *written) {
            fine = false;
            let words = format!("server `{name}` has a `url`, so nothing is started and `{key}` has no meaning");
            self.problems
                .push(part.document.diagnostic_at(&format!("{at}/{key}"), words));
        }
        let url = url.trim();
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
            fine = false;
            self.problems.push(
                part.document
                    .diagnostic_at(
                        &format!("{at}/url"),
                        "an address begins with http:// or https:// and names a host",
                    )
                    .help("write it as `http://127.0.0.1:3000/mcp`"),
            );
        }
        let mut headers: Vec<(String, String)> = file
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.0.clone()))
            .collect();
        if let Some(token) = &file.bearer {
            let token_at = format!("{at}/bearer");
            if headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            {
                fine = false;
                let words = "`bearer` and a header `Authorization` are two answers to one question";
                self.problems
                    .push(part.document.diagnostic_at(&token_at, words).help("keep one of them"));
            }
            if !token.chars().all(|c| c.is_ascii_graphic()) {
                fine = false;
                let words = "a bearer token is one word of printable ASCII characters";
                self.problems.push(
                    part.document
                        .diagnostic_at(&token_at, words)
                        .help("write the token alone, without `Bearer`"),
                );
            }
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        fine.then(|| HttpAddress {
            url: url.to_owned(),
            headers,
        })
    }

    fn run_options(&mut self, part: &Part) {
        let file = &part.file.run_options;
        if let Some(timeout) = self.duration(part, "/run_options/timeout", file.timeout.as_ref()) {
            self.suite.options.timeout = timeout;
        }
        if let Some(jobs) = file.jobs {
            self.suite.options.jobs = jobs;
        }
        match file.no_evidence {
            Some(NoEvidenceFile::Pass) => self.suite.options.no_evidence = NoEvidence::Pass,
            Some(NoEvidenceFile::Fail) => self.suite.options.no_evidence = NoEvidence::Fail,
            None => {}
        }
    }

    fn prices(&mut self, part: &Part) {
        match self.suite.prices.with(&part.file.prices) {
            Ok(prices) => self.suite.prices = prices,
            Err(found) => self.add(part, "/prices", &found),
        }
    }

    fn faults(&mut self, part: &Part) {
        for (index, written) in part.file.faults.iter().enumerate() {
            let at = format!("/faults/{index}");
            if self.faults.iter().any(|fault| fault.name == written.name) {
                let words = format!("a second fault called `{}`", written.name);
                self.problems
                    .push(part.document.diagnostic_at(&format!("{at}/name"), words));
            }
            if let Some(server) = &written.target.server
                && self.options.purpose == Purpose::Run
                && !self.is_declared(server)
            {
                let known = self.declared();
                let place = format!("{at}/target/server");
                self.problems
                    .push(unknown_name(part, &place, "server", server, &known, "servers"));
            }
            match written.compile() {
                Ok(fault) => self.faults.push(fault),
                Err(found) => self.add(part, &at, &found),
            }
        }
    }

    fn add(&mut self, part: &Part, at: &str, found: &[Problem]) {
        self.problems
            .extend(found.iter().map(|problem| place(&part.document, at, problem)));
    }

    /// The faults that a test injects. One that is not there is an error whatever the suite is loaded for.
    fn injected(
        &mut self,
        part: &Part,
        at: &str,
        own: &AgentFields,
        base: Option<&AgentFields>,
        judged: bool,
    ) -> Vec<Fault> {
        let own_names = own.inject.iter().flat_map(|names| &names.0);
        for (index, name) in own_names.enumerate() {
            if !self.faults.iter().any(|fault| fault.name == *name) {
                let known: Vec<&str> = self.faults.iter().map(|fault| fault.name.as_str()).collect();
                let place = item_place(part, at, &["inject"], index);
                self.problems
                    .push(unknown_name(part, &place, "fault", name, &known, "faults"));
            }
        }
        let names = own.inject.as_ref().or_else(|| base?.inject.as_ref());
        if names.is_none() && judged && self.options.purpose == Purpose::Run {
            let words = "`recovery` without `inject`: no fault will strike, so there will be no evidence".to_owned();
            self.problems
                .push(key_error(part, &format!("{at}/recovery"), words).warning());
        }
        names
            .into_iter()
            .flat_map(|names| &names.0)
            .filter_map(|name| self.faults.iter().find(|fault| fault.name == *name).cloned())
            .collect()
    }

    /// The tools that the blocks of a test name: what is known of the offer before any server is asked.
    fn promise(
        &mut self,
        part: &Part,
        at: &str,
        discovery: Discovery,
        prompt: &str,
        servers: &[String],
        gates: &[(String, Value)],
    ) {
        let mut tools: Vec<String> = Vec::new();
        for (_, block) in gates {
            let classes = block.get("classes").and_then(Value::as_array).into_iter().flatten();
            let members = classes.filter_map(|class| class.get("members")?.as_array()).flatten();
            let correct = block.get("correct").and_then(Value::as_array).into_iter().flatten();
            let named = members
                .chain(correct)
                .chain(block.get("expected_tool"))
                .filter_map(Value::as_str);
            tools.extend(named.map(|id| id.rsplit_once('.').map_or(id, |(_, name)| name).to_owned()));
        }
        let found = discovery.check(
            prompt,
            servers.iter().map(String::as_str),
            tools.iter().map(String::as_str),
        );
        self.add(part, &format!("{at}/discovery"), found.as_slice());
    }

    /// Tests come in the order of the file, whatever section they stand in.
    fn tests(&mut self, part: &Part) {
        let NodeValue::Mapping(entries) = &part.document.root().value else {
            return;
        };
        for entry in entries {
            match entry.key.as_str() {
                "agents" => {
                    for (index, agent) in part.file.agents.iter().enumerate() {
                        let at = format!("/agents/{index}");
                        if self.is_test_itself(&agent.0) {
                            self.agent_test(part, &at, &agent.0, None);
                        } else if self.options.purpose == Purpose::Run {
                            // The tests that refer to it may bring the script.
                            self.references(part, &at, &agent.0.fields, true);
                        }
                    }
                }
                "tests" => {
                    for (index, test) in part.file.tests.iter().enumerate() {
                        self.referring_test(part, &format!("/tests/{index}"), &test.0);
                    }
                }
                "tools" => {
                    for (index, test) in part.file.tools.iter().enumerate() {
                        self.tool_test(part, &format!("/tools/{index}"), test);
                    }
                }
                "tool_quality" => {
                    for (index, test) in part.file.tool_quality.iter().enumerate() {
                        self.quality_test(part, &format!("/tool_quality/{index}"), test);
                    }
                }
                _ => {}
            }
        }
    }

    fn is_test_itself(&self, entry: &Entry) -> bool {
        let judged = !entry.gates.is_empty() || !entry.fields.expect.is_empty();
        let referred_to = self
            .parts
            .iter()
            .flat_map(|part| &part.file.tests)
            .any(|test| test.0.fields.agent.is_some() && test.0.fields.agent == entry.fields.name);
        judged || !referred_to
    }

    fn referring_test(&mut self, part: &Part, at: &str, entry: &Entry) {
        let mut base = None;
        if let Some(wanted) = &entry.fields.agent {
            base = self
                .parts
                .iter()
                .flat_map(|part| &part.file.agents)
                .map(|agent| &agent.0.fields)
                .find(|agent| agent.name.as_ref() == Some(wanted));
            if base.is_none() && self.options.purpose == Purpose::Run {
                let known: Vec<&str> = self
                    .parts
                    .iter()
                    .flat_map(|part| &part.file.agents)
                    .filter_map(|agent| agent.0.fields.name.as_deref())
                    .collect();
                self.problems.push(unknown_name(
                    part,
                    &format!("{at}/agent"),
                    "agent",
                    wanted,
                    &known,
                    "agents",
                ));
                return;
            }
        }
        self.agent_test(part, at, entry, base);
    }

    fn agent_test(&mut self, part: &Part, at: &str, entry: &Entry, base: Option<&AgentFields>) {
        let own = &entry.fields;
        let name = own.name.clone().unwrap_or_default();
        self.name(part, at, &name);
        let run = self.options.purpose == Purpose::Run;
        // What the test says comes first, then what its agent says.
        let models = own
            .models
            .as_ref()
            .or_else(|| base?.models.as_ref())
            .map_or_else(Vec::new, |models| models.0.clone());
        let servers = own
            .servers
            .as_ref()
            .or_else(|| base?.servers.as_ref())
            .map_or_else(Vec::new, |servers| servers.0.clone());
        let prompt = own.prompt.as_ref().or_else(|| base?.prompt.as_ref());
        let script = own.script.as_ref().or_else(|| base?.script.as_ref());
        if run {
            let missing: Vec<&str> = [
                ("model", models.is_empty()),
                ("servers", servers.is_empty()),
                ("prompt", prompt.is_none()),
            ]
            .iter()
            .filter(|(_, missing)| *missing)
            .map(|(key, _)| *key)
            .collect();
            if !missing.is_empty() {
                let list = missing
                    .iter()
                    .map(|key| format!("`{key}`"))
                    .collect::<Vec<_>>()
                    .join(", ");
                self.problems.push(
                    key_error(part, &format!("{at}/name"), format!("test `{name}` has no {list}"))
                        .help("a suite to run needs them; one that only scores traces (`mcptest score`) does not"),
                );
            }
            self.references(part, at, own, script.is_some());
            let inherits = own.models.is_none() && models.iter().any(|model| model == SCRIPTED);
            if inherits && script.is_none() {
                self.problems.push(no_script(part, &format!("{at}/agent")));
            }
        }
        let expect = self.expectations(part, &format!("{at}/expect"), &own.expect, &OBSERVABLE_ROOTS);
        let context = LoadContext {
            to_run: run,
            runs: own.runs.or_else(|| base?.runs),
            siblings: &entry.gates,
        };
        let mut gates = Vec::new();
        for (block, _) in &entry.gates {
            gates.extend(self.gate(part, &format!("{at}/{block}"), block, &context));
        }
        let written = |block: &str| {
            entry
                .gates
                .iter()
                .find(|(name, _)| name == block)
                .map(|(_, written)| written)
        };
        let faults = self.injected(part, at, own, base, written("recovery").is_some());
        let discovery = own.discovery.or_else(|| base?.discovery).unwrap_or_default();
        if let Some(prompt) = prompt {
            self.promise(part, at, discovery, prompt, &servers, &entry.gates);
        }
        let detection_budget_ms = written("recovery").and_then(|block| block.get("max_detection_ms")?.as_u64());
        let distractors = written("distractors").and_then(|block| serde_json::from_value(block.clone()).ok());
        let tolerates_failed_runs = written("reliability").and_then(|block| block.get("tolerate_failed_runs"));
        self.suite.tests.push(Test::Agent(AgentTest {
            tolerates_failed_runs: tolerates_failed_runs == Some(&Value::Bool(true)),
            faults,
            detection_budget_ms,
            distractors,
            discovery,
            name,
            models,
            servers,
            prompt: prompt.cloned().unwrap_or_default(),
            system: own.system.as_ref().or_else(|| base?.system.as_ref()).cloned(),
            runs: own.runs.or_else(|| base?.runs).unwrap_or(1).max(1),
            max_turns: own.max_turns.or_else(|| base?.max_turns).unwrap_or(DEFAULT_MAX_TURNS),
            max_tokens: own.max_tokens.or_else(|| base?.max_tokens),
            expect,
            gates,
            script: script.cloned().unwrap_or_default(),
            tags: own.tags.clone(),
        }));
    }

    /// Servers and models that this entry itself names (those of its agent are checked where they stand).
    fn references(&mut self, part: &Part, at: &str, own: &AgentFields, has_script: bool) {
        for (index, server) in own.servers.iter().flat_map(|servers| &servers.0).enumerate() {
            if !self.is_declared(server) {
                let place = item_place(part, at, &["servers", "server"], index);
                let known = self.declared();
                self.problems
                    .push(unknown_name(part, &place, "server", server, &known, "servers"));
            }
        }
        for (index, model) in own.models.iter().flat_map(|models| &models.0).enumerate() {
            let place = item_place(part, at, &["models", "model"], index);
            if let Err(words) = (self.options.check_model)(model) {
                self.problems.push(part.document.diagnostic_at(&place, words));
            } else if model == SCRIPTED && !has_script {
                self.problems.push(no_script(part, &place));
            }
        }
        let plays = |models: &[String]| models.iter().any(|model| model == SCRIPTED);
        if own.script.is_some() && own.models.as_ref().is_some_and(|models| !plays(&models.0)) {
            self.problems.push(
                key_error(
                    part,
                    &format!("{at}/script"),
                    format!("only `{SCRIPTED}` plays a script"),
                )
                .help(format!("set `model: {SCRIPTED}`, or remove the script")),
            );
        }
    }

    fn quality_test(&mut self, part: &Part, at: &str, file: &ToolQualityFile) {
        self.name(part, at, &file.name);
        self.named_server(part, at, &file.server);
        match quality::expectations(&file.expect, &format!("{at}/expect")) {
            Ok(expect) => self.suite.tests.push(Test::ToolQuality(ToolQualityTest {
                name: file.name.clone(),
                server: file.server.clone(),
                expect,
                tags: file.tags.clone(),
            })),
            Err(found) => self.add(part, "", &found),
        }
    }

    /// A test that is not an agent's names one server.
    fn named_server(&mut self, part: &Part, at: &str, server: &str) {
        if self.options.purpose == Purpose::Run && !self.is_declared(server) {
            let known = self.declared();
            let place = format!("{at}/server");
            self.problems
                .push(unknown_name(part, &place, "server", server, &known, "servers"));
        }
    }

    fn is_declared(&self, server: &str) -> bool {
        self.parts.iter().any(|part| part.file.servers.contains_key(server))
    }

    fn declared(&self) -> Vec<&str> {
        self.parts
            .iter()
            .flat_map(|part| part.file.servers.keys().map(String::as_str))
            .collect()
    }

    /// Rows of the report and traces find their test by name.
    fn name(&mut self, part: &Part, at: &str, name: &str) {
        let span = part.document.span_at(&format!("{at}/name"));
        if let Some((source, first)) = self.names.get(name) {
            let (line, _) = source.line_column(first.start);
            let first = format!("{}:{line}", source.name());
            self.problems.push(
                part.document
                    .error(span, format!("a second test called `{name}`"))
                    .label(format!("the first is at {first}")),
            );
        } else {
            let place = (Arc::clone(part.document.source()), span);
            self.names.insert(name.to_owned(), place);
        }
    }

    fn expectations(&mut self, part: &Part, at: &str, list: &[WrittenExpectation], roots: &[&str]) -> Vec<Expectation> {
        list.iter()
            .enumerate()
            .filter_map(|(index, written)| {
                compile(
                    &part.document,
                    written,
                    &format!("{at}/{index}"),
                    roots,
                    &mut self.problems,
                )
            })
            .collect()
    }

    fn gate(&mut self, part: &Part, at: &str, block: &str, context: &LoadContext<'_>) -> Option<LoadedGate> {
        let (gate, found) = LoadedGate::load(eval::find(block)?, context.sibling(block)?, context);
        self.problems
            .extend(found.iter().map(|problem| place(&part.document, at, problem)));
        gate
    }

    fn duration(&mut self, part: &Part, at: &str, written: Option<&WrittenDuration>) -> Option<Duration> {
        match written?.parse() {
            Ok(duration) => Some(duration),
            Err(words) => {
                self.problems.push(part.document.diagnostic_at(at, words));
                None
            }
        }
    }
}

/// Compiles one expectation and checks that its target has a root that exists.
fn compile(
    document: &Document,
    written: &WrittenExpectation,
    at: &str,
    roots: &[&str],
    problems: &mut Vec<Diagnostic>,
) -> Option<Expectation> {
    match Expectation::compile(written, at) {
        Ok(expectation) if roots.contains(&expectation.target.root()) => Some(expectation),
        Ok(expectation) => {
            let span = if written.0.get("target").is_some() {
                document.span_at(&format!("{at}/target"))
            } else {
                document.key_span_at(&format!("{at}/{}", escape(expectation.target.as_str())))
            };
            problems.push(unknown_root(document, span, &expectation, roots));
            None
        }
        Err(found) => {
            problems.extend(found.iter().map(|problem| place(document, "", problem)));
            None
        }
    }
}

fn unknown_root(document: &Document, span: Span, expectation: &Expectation, roots: &[&str]) -> Diagnostic {
    let root = expectation.target.root();
    let target = expectation.target.as_str();
    let owner = eval::GATES
        .iter()
        .find(|gate| gate.targets.iter().any(|known| target.starts_with(known.name)));
    let diagnostic = document.error(span, format!("unknown target `{target}`"));
    if let Some(owner) = owner {
        return diagnostic.help(format!(
            "this target belongs into the `expect:` list of `{}:`",
            owner.block
        ));
    }
    let diagnostic = match suggest(root, roots.iter().copied()) {
        Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
        None => diagnostic,
    };
    diagnostic.help(format!("a target here starts with {}", roots.join(", ")))
}

/// A core problem at its place in the file.
fn place(document: &Document, base: &str, problem: &Problem) -> Diagnostic {
    let pointer = format!("{base}{}", problem.pointer);
    let span = if problem.on_key {
        document.key_span_at(&pointer)
    } else {
        document.span_at(&pointer)
    };
    let diagnostic = document.error(span, problem.message.clone());
    let diagnostic = match &problem.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    };
    if problem.warning {
        diagnostic.warning()
    } else {
        diagnostic
    }
}

fn unknown_name(part: &Part, at: &str, what: &str, name: &str, known: &[&str], section: &str) -> Diagnostic {
    let diagnostic = part.document.diagnostic_at(at, format!("unknown {what} `{name}`"));
    match suggest(name, known.iter().copied()) {
        Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
        None if known.is_empty() => diagnostic.help(format!("declare it under `{section}:`")),
        None => diagnostic.help(format!("declared under `{section}:` are {}", known.join(", "))),
    }
}

fn no_script(part: &Part, at: &str) -> Diagnostic {
    part.document
        .diagnostic_at(at, format!("`{SCRIPTED}` has no `script:` to play"))
        .help("write `script: [[{calls: [{tool: search, args: {q: x}}]}, {say: \"Done.\"}]]`")
}

fn key_error(part: &Part, pointer: &str, message: String) -> Diagnostic {
    part.document.error(part.document.key_span_at(pointer), message)
}

/// The pointer of an item that may be written as one text or as a list, under either spelling of its key.
fn item_place(part: &Part, at: &str, keys: &[&str], index: usize) -> String {
    for key in keys {
        let base = format!("{at}/{key}");
        match part.document.get(&base).map(|node| &node.value) {
            Some(NodeValue::Sequence(_)) => return format!("{base}/{index}"),
            Some(_) => return base,
            None => {}
        }
    }
    at.to_owned()
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
