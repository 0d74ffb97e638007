//! Semantic checks, which a schema cannot express: names refer to something, expressions compile, a
//! test can be run.
//!
//! This file walks the sections and holds what they share; the checks of each section are in a
//! separate file.

mod agent_tests;
mod agents_under_test;
mod attacks;
mod client;
mod diagnostics;
mod direct_tests;
mod expressions;
mod fixtures;
mod invalid_file;
mod judges;
mod limits;
mod providers;
mod recording;
mod server_auth;
mod servers;
mod state;
mod tool_names;
mod turns;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use mcptest_attack::Attack;
use mcptest_gate_api::{LoadContext, LoadedGate, find_in};
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::fault::Fault;
use mcptest_trace::matcher::Problem;
use mcptest_yaml::{Diagnostic, Document, NodeValue};

use self::diagnostics::{key_error, place, unknown_name};
use self::expressions::compile;
pub(crate) use self::invalid_file::expressions_of_invalid;
use crate::client::ClientScript;
use crate::file::{
    NoEvidenceFile, PromptTestFile, ResourceTestFile, ToolTestFile, WrittenDuration,
};
use crate::import::Part;
use crate::options::{LoadOptions, Purpose};
use crate::suite::{NoEvidence, Suite};

/// Roots of the answer to a call around a test.
pub(crate) const TOOL_ROOTS: [&str; 2] = ["result", "error"];

/// Roots of a direct test.
pub(crate) const DIRECT_ROOTS: [&str; 10] = [
    "result",
    "error",
    "client",
    "logs",
    "progress",
    "notifications",
    "updates",
    "list_changed",
    "task",
    "cancellation",
];
const SCRIPTED: &str = "builtin/scripted";

pub(crate) struct Checked {
    pub suite: Suite,
    pub problems: Vec<Diagnostic>,
}

/// Checks all files together: names may refer to other files.
///
/// Takes the written direct tests out of the files: a suite may have many thousands of them, and
/// each is dropped as soon as it is checked.
pub(crate) fn check(parts: &mut [Part], options: &LoadOptions<'_>) -> Checked {
    let direct = parts
        .iter_mut()
        .map(|part| DirectFiles {
            tools: std::mem::take(&mut part.file.tools),
            resources: std::mem::take(&mut part.file.resources),
            prompts: std::mem::take(&mut part.file.prompts),
        })
        .collect();
    let parts: &[Part] = parts;
    let mut checker = Checker {
        parts,
        direct,
        client: ClientScript::default(),
        options,
        suite: Suite::default(),
        problems: Vec::new(),
        names: HashMap::new(),
        snapshots: BTreeMap::new(),
        faults: Vec::new(),
        invalid_faults: Vec::new(),
        attacks: Vec::new(),
        invalid_attacks: Vec::new(),
    };
    for part in parts {
        checker.servers(part);
        checker.providers(part);
        checker.run_options(part);
        checker.prices(part);
        checker.budget(part);
        checker.faults(part);
        checker.attacks(part);
        checker
            .suite
            .snapshot_folders
            .push(fixtures::snapshot_folder(part));
    }
    for part in parts {
        checker.suite_client(part);
    }
    checker.override_models();
    for (number, part) in parts.iter().enumerate() {
        checker.tests(number, part);
    }
    Checked {
        suite: checker.suite,
        problems: checker.problems,
    }
}

/// The written direct tests of a file.
struct DirectFiles {
    tools: Vec<ToolTestFile>,
    resources: Vec<ResourceTestFile>,
    prompts: Vec<PromptTestFile>,
}

struct Checker<'a> {
    parts: &'a [Part],
    /// The written direct tests of each file.
    direct: Vec<DirectFiles>,
    /// The suite's own `client:`.
    client: ClientScript,
    options: &'a LoadOptions<'a>,
    suite: Suite,
    problems: Vec<Diagnostic>,
    /// Test names with the documents and the pointers of their first use.
    names: HashMap<String, (&'a Document, String)>,
    /// Snapshot files with the test that each belongs to.
    snapshots: BTreeMap<PathBuf, String>,
    /// The faults of all files.
    faults: Vec<Fault>,
    /// The names of invalid faults. Injecting one is not a second problem.
    invalid_faults: Vec<String>,
    /// The attacks of all files.
    attacks: Vec<Attack>,
    /// The names of invalid attacks.
    invalid_attacks: Vec<String>,
}

impl<'a> Checker<'a> {
    /// The line of a value, for one of the suite's own file. That is the last part: a file comes
    /// after those that it imports.
    fn line(&self, part: &Part, at: &str) -> Option<u32> {
        let own = self.parts.last()?;
        let document = &part.document;
        let line = || document.source().line_column(document.span_at(at).start).0;
        std::ptr::eq(own, part)
            .then(line)
            .and_then(|line| u32::try_from(line).ok())
    }

    fn run_options(&mut self, part: &Part) {
        let file = &part.file.run_options;
        if let Some(timeout) = self.duration(part, "/run_options/timeout", file.timeout.as_ref()) {
            self.suite.options.timeout = timeout;
        }
        self.suite.options.jobs = file.jobs.or(self.suite.options.jobs);
        match file.no_evidence {
            Some(NoEvidenceFile::Pass) => self.suite.options.no_evidence = NoEvidence::Pass,
            Some(NoEvidenceFile::Fail) => self.suite.options.no_evidence = NoEvidence::Fail,
            None => {}
        }
        self.recording(part);
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
                let message = format!("duplicate fault `{}`", written.name);
                self.problems
                    .push(part.document.diagnostic_at(&format!("{at}/name"), message));
            }
            if let Some(server) = &written.target.server
                && self.options.purpose == Purpose::Run
                && !self.is_declared(server)
            {
                let known = self.declared();
                let place = format!("{at}/target/server");
                self.problems.push(unknown_name(
                    part, &place, "server", server, &known, "servers",
                ));
            }
            match written.compile() {
                Ok(fault) => self.faults.push(fault),
                Err(found) => {
                    self.invalid_faults.push(written.name.clone());
                    self.add(part, &at, &found);
                }
            }
        }
    }

    fn add(&mut self, part: &Part, at: &str, found: &[Problem]) {
        self.problems.extend(
            found
                .iter()
                .map(|problem| place(&part.document, at, problem)),
        );
    }

    /// Adds the tests of a file, in its order, whatever their section.
    fn tests(&mut self, number: usize, part: &'a Part) {
        let NodeValue::Mapping(entries) = &part.document.root().value else {
            return;
        };
        for entry in entries {
            match entry.key.as_str() {
                "agents" => {
                    for (index, agent) in part.file.agents.iter().enumerate() {
                        let at = format!("/agents/{index}");
                        self.refers_to_no_entry(part, &at, &agent.0.fields);
                        if self.is_test_itself(&agent.0) {
                            self.agent_test(part, &at, &agent.0, None);
                        } else if self.options.purpose == Purpose::Run {
                            // The tests that refer to it may have the script.
                            let fields = &agent.0.fields;
                            let under_test = self.agents_under_test(part, &at, fields, None, &[]);
                            self.references(part, &at, fields, true, !under_test.is_empty());
                        }
                    }
                }
                "tests" => {
                    for (index, test) in part.file.tests.iter().enumerate() {
                        self.referring_test(part, &format!("/tests/{index}"), &test.0);
                    }
                }
                "tools" => {
                    let tests = std::mem::take(&mut self.direct[number].tools);
                    for (index, test) in tests.into_iter().enumerate() {
                        self.tool_test(part, &format!("/tools/{index}"), test);
                    }
                }
                "resources" => {
                    let tests = std::mem::take(&mut self.direct[number].resources);
                    for (index, test) in tests.into_iter().enumerate() {
                        self.resource_test(part, &format!("/resources/{index}"), test);
                    }
                }
                "prompts" => {
                    let tests = std::mem::take(&mut self.direct[number].prompts);
                    for (index, test) in tests.into_iter().enumerate() {
                        self.prompt_test(part, &format!("/prompts/{index}"), test);
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

    fn is_declared(&self, server: &str) -> bool {
        self.parts
            .iter()
            .any(|part| part.file.servers.contains_key(server))
    }

    fn declared(&self) -> Vec<&str> {
        self.parts
            .iter()
            .flat_map(|part| part.file.servers.keys().map(String::as_str))
            .collect()
    }

    /// Checks that a name is unique: reports and traces identify tests by name.
    fn name(&mut self, part: &'a Part, at: &str, name: &str) {
        let Some((document, first)) = self.names.get(name) else {
            let place = (&part.document, at.to_owned());
            self.names.insert(name.to_owned(), place);
            return;
        };
        let start = document.span_at(&format!("{first}/name")).start;
        let (line, _) = document.source().line_column(start);
        let first = format!("{}:{line}", document.source().name());
        let span = part.document.span_at(&format!("{at}/name"));
        self.problems.push(
            part.document
                .error(span, format!("duplicate test name `{name}`"))
                .label(format!("first used at {first}")),
        );
    }

    fn expectations(
        &mut self,
        part: &Part,
        at: &str,
        list: &[WrittenExpectation],
        roots: &[&str],
    ) -> Vec<Expectation> {
        let mut compiled = Vec::with_capacity(list.len());
        for (index, written) in list.iter().enumerate() {
            let at = format!("{at}/{index}");
            compiled.extend(compile(
                &part.document,
                written,
                &at,
                roots,
                self.options.gates,
                &mut self.problems,
            ));
        }
        compiled
    }

    fn gate(
        &mut self,
        part: &Part,
        at: &str,
        block: &str,
        context: &LoadContext<'_>,
    ) -> Option<LoadedGate> {
        let Some(info) = find_in(self.options.gates, block) else {
            // The schema and the program's list of gates differ: never ignore a block silently.
            let message = format!("this program has no gate `{block}`");
            self.problems.push(key_error(part, at, message));
            return None;
        };
        let (gate, found) = LoadedGate::load(info, context.sibling(block)?, context);
        self.problems.extend(
            found
                .iter()
                .map(|problem| place(&part.document, at, problem)),
        );
        gate
    }

    fn duration(
        &mut self,
        part: &Part,
        at: &str,
        written: Option<&WrittenDuration>,
    ) -> Option<Duration> {
        match written?.parse() {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.problems
                    .push(part.document.diagnostic_at(at, error.to_string()));
                None
            }
        }
    }
}
