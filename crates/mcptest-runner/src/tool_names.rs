//! The tools that a suite names and no server offers: mistakes in the suite.
//!
//! Where the tools of the servers are known without starting anything, such a name is a warning
//! when the suite is loaded. Otherwise it is an error of the test, before the model is asked.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use mcptest_cassette::{RecordedCatalog, recorded_catalogs};
use mcptest_suite::suite::{AgentTest, KnownEntries, Replay, Section, Test};
use mcptest_suite::tool_names::UnknownTool;
use mcptest_suite::{Diagnostic, Suite};
use mcptest_trace::catalog::Tool;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::cassettes::{CassetteMode, CassetteSettings, cassette_folder, cassette_place};

/// The largest number of names in one error.
const MAX_NAMES: usize = 3;

/// Warns of tools that a suite names and no server offers, as far as the tools are known without
/// starting a server: from mock manifests, saved catalogs and cassettes.
pub fn warn_of_unknown_tools(suite: &mut Suite, settings: &CassetteSettings) -> Vec<Diagnostic> {
    let servers = suite.known_servers();
    let mut listings: BTreeMap<String, Option<Vec<Tool>>> = BTreeMap::new();
    let mut warnings = Vec::new();
    for index in 0..suite.tests.len() {
        let Some(test) = agent_test(suite, index).filter(|test| !test.tool_names.is_empty()) else {
            continue;
        };
        for name in &test.servers {
            if !listings.contains_key(name) {
                let server = suite.servers.get(name);
                let listed = server.and_then(|server| (settings.names)(server));
                let catalog = listed.map(|tools| {
                    let server = name.clone();
                    RecordedCatalog { server, tools }.tools()
                });
                listings.insert(name.clone(), catalog);
            }
        }
        let mut tools: Vec<Tool> = Vec::new();
        let mut unlisted: Vec<&str> = Vec::new();
        for name in &test.servers {
            match listings.get(name) {
                Some(Some(catalog)) => tools.extend(catalog.iter().cloned()),
                _ => unlisted.push(name),
            }
        }
        let mut reported = Vec::new();
        for unknown in test.unknown_tools(&tools, &unlisted, &servers) {
            warnings.push(unknown.warning());
            reported.push(unknown.index);
        }
        warnings.extend(warnings_of_recording(
            suite, test, settings, tools, unlisted, &reported, &servers,
        ));
        if let Some(Test::Agent(test)) = suite.tests.get_mut(index) {
            for name in reported {
                test.mark_reported(name);
            }
        }
    }
    warnings
}

/// Warns of resources and prompts that direct tests name and their servers do not have, as far as
/// these are known without starting a server.
#[must_use]
pub fn warn_of_unknown_entries(suite: &Suite, settings: &CassetteSettings) -> Vec<Diagnostic> {
    let mut known: BTreeMap<&str, Option<KnownEntries>> = BTreeMap::new();
    let mut warnings = Vec::new();
    for test in &suite.tests {
        let Test::Direct(test) = test else { continue };
        if test.request.section() == Section::Tools || !test.setup.is_empty() {
            continue;
        }
        let entries = known.entry(&test.server).or_insert_with(|| {
            let server = suite.servers.get(&test.server)?;
            (settings.entries)(server)
        });
        warnings.extend(entries.as_ref().and_then(|known| test.unknown_name(known)));
    }
    warnings
}

fn agent_test(suite: &Suite, index: usize) -> Option<&AgentTest> {
    match suite.tests.get(index) {
        Some(Test::Agent(test)) => Some(test),
        _ => None,
    }
}

/// The warnings that follow from the catalogs in the cassette of a test.
fn warnings_of_recording(
    suite: &Suite,
    test: &AgentTest,
    settings: &CassetteSettings,
    mut tools: Vec<Tool>,
    mut unlisted: Vec<&str>,
    reported: &[usize],
    servers: &KnownServers,
) -> Vec<Diagnostic> {
    let side = settings.replay.or(test.replay);
    let replays = matches!(settings.mode, CassetteMode::Auto | CassetteMode::ReplayOnly)
        && side.unwrap_or(suite.options.replay) != Replay::Model;
    if !replays || unlisted.is_empty() {
        return Vec::new();
    }
    let folder = cassette_folder(suite, settings.folder.as_deref());
    let recorded = test
        .models
        .iter()
        .find_map(|model| recorded_catalogs(&cassette_place(&folder, test, model)));
    for catalog in recorded.into_iter().flatten() {
        if let Some(place) = unlisted.iter().position(|name| *name == catalog.server) {
            unlisted.remove(place);
            tools.extend(catalog.tools());
        }
    }
    test.unknown_tools(&tools, &unlisted, servers)
        .iter()
        .filter(|unknown| !reported.contains(&unknown.index))
        .map(UnknownTool::warning)
        .collect()
}

/// The results of comparing the names of tests with the tools of live servers, by test.
#[derive(Default)]
pub(crate) struct NameChecks(Mutex<BTreeMap<usize, Option<RunError>>>);

impl NameChecks {
    /// Compares the names of a test with the tools that its servers list. The first run decides for
    /// all of them.
    pub fn check(
        &self,
        (index, test): (usize, &AgentTest),
        servers: &KnownServers,
        warn: &dyn Fn(String),
        listed: &[(String, Vec<Tool>)],
    ) -> Result<(), RunError> {
        if test.tool_names.is_empty() {
            return Ok(());
        }
        let mut checked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let error = checked
            .entry(index)
            .or_insert_with(|| compare(test, servers, warn, listed));
        error.clone().map_or(Ok(()), Err)
    }
}

fn compare(
    test: &AgentTest,
    servers: &KnownServers,
    warn: &dyn Fn(String),
    listed: &[(String, Vec<Tool>)],
) -> Option<RunError> {
    let tools: Vec<Tool> = listed
        .iter()
        .flat_map(|(_, tools)| tools.iter().cloned())
        .collect();
    let unknown = test.unknown_tools(&tools, &[], servers);
    let (optional, needed): (Vec<_>, Vec<_>) = unknown
        .into_iter()
        .filter(|unknown| !unknown.named.is_reported())
        .partition(|unknown| unknown.named.is_optional());
    for unknown in optional {
        warn(unknown.message());
    }
    let mut messages: Vec<String> = needed
        .iter()
        .take(MAX_NAMES)
        .map(UnknownTool::message)
        .collect();
    if needed.len() > MAX_NAMES {
        messages.push(format!("and {} more names", needed.len() - MAX_NAMES));
    }
    (!messages.is_empty()).then(|| RunError {
        kind: ErrorKind::Suite,
        message: messages.join("\n"),
    })
}
