//! The work of the executor for the block: which tools come into the offer, in which order, and
//! what they answer.

use std::collections::BTreeSet;

use serde_json::Value;

use super::near_duplicate::{near_duplicates, singular};
use super::{Distractors, SourceKind, bundled};
use crate::lexical::words;
use mcptest_numbers::random::SplitMix64;
use mcptest_trace::catalog::Tool;
use mcptest_trace::tool_id::{self, KnownServers};

/// The distractors of one execution of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRun {
    /// The number of distractors.
    pub count: u32,
    /// The seed of the choice and of the order of the offer.
    pub seed: u64,
}

/// The reason why no distractors could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`distractors.source.of` names {}, but no server offers such a tool (offered: {})", list(.missing), list(.offered))]
#[non_exhaustive]
pub struct InjectionError {
    /// The names that mean no offered tool.
    pub missing: Vec<String>,
    /// The tools that are offered instead.
    pub offered: Vec<String>,
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names
        .iter()
        .map(|name| format!("`{}`", mcptest_json::text::one_line(name)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The distractors for one execution: exactly `count`, each with the server it pretends to belong
/// to.
///
/// No name is that of a real tool on any server, of a tool declared correct, or of another
/// distractor; a look-alike may differ from a real name in case alone. The same arguments give the
/// same tools, and a smaller count gives the beginning of what a larger one gives.
///
/// # Errors
/// `of` names a tool that is not offered.
pub fn plan_injection(
    block: &Distractors,
    real_tools: &[Tool],
    count: u32,
    seed: u64,
) -> Result<Vec<Tool>, InjectionError> {
    let mut random = SplitMix64::new(seed);
    let mut taken: BTreeSet<String> = real_tools
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    let correct = block.correct.iter();
    taken.extend(
        correct
            .flat_map(|id| [Some(id.as_str()), id.split_once('.').map(|(_, name)| name)])
            .flatten()
            .map(str::to_owned),
    );
    let wanted = count as usize;
    let mut chosen: Vec<Tool> = Vec::new();
    let originals = match block.source.from {
        SourceKind::NearDuplicate => {
            originals(block.source.of.as_deref().unwrap_or_default(), real_tools)?
        }
        SourceKind::Catalog => {
            // Only look-alikes may come as close as another casing.
            let lower: BTreeSet<String> = taken.iter().map(|name| name.to_lowercase()).collect();
            let mut tools = from_catalog(real_tools, &mut random);
            tools.retain(|tool| !lower.contains(tool.name()));
            chosen.extend(tools.iter().take(wanted).cloned());
            tools
        }
    };
    if chosen.len() == wanted {
        return Ok(chosen);
    }
    taken.extend(chosen.iter().map(|tool| tool.name().to_owned()));
    // In turn, so that every original has look-alikes. For the catalog this only fills up what the
    // set cannot.
    let mut sources: Vec<_> = originals
        .iter()
        .map(|tool| near_duplicates(tool, &mut random))
        .collect();
    while chosen.len() < wanted && !sources.is_empty() {
        for source in &mut sources {
            if chosen.len() == wanted {
                break;
            }
            // Look-alikes never end, so there is always one whose name is free.
            if let Some(tool) = source.find(|tool| !taken.contains(tool.name())) {
                taken.insert(tool.name().to_owned());
                chosen.push(tool);
            }
        }
    }
    Ok(chosen)
}

/// The offered tools that `of` means.
fn originals(of: &[String], real_tools: &[Tool]) -> Result<Vec<Tool>, InjectionError> {
    let servers: KnownServers = real_tools.iter().filter_map(Tool::server).collect();
    let mut found: Vec<Tool> = Vec::new();
    let mut missing = Vec::new();
    for written in of {
        let mut meant = real_tools
            .iter()
            .filter(|tool| {
                !tool.name().is_empty()
                    && tool_id::matches(written, tool.server(), tool.name(), &servers)
            })
            .peekable();
        if meant.peek().is_none() {
            missing.push(written.clone());
        }
        for tool in meant {
            if !found.contains(tool) {
                found.push(tool.clone());
            }
        }
    }
    if missing.is_empty() {
        Ok(found)
    } else {
        let offered = real_tools
            .iter()
            .map(|tool| tool_id::full_id(tool.server(), tool.name()));
        Err(InjectionError {
            missing,
            offered: offered.collect(),
        })
    }
}

/// The bundled tools in a random order, spread over the servers; those about the same thing as a
/// real tool come last.
fn from_catalog(real_tools: &[Tool], random: &mut SplitMix64) -> Vec<Tool> {
    let mut servers: Vec<Option<&str>> = Vec::new();
    for tool in real_tools {
        if !servers.contains(&tool.server()) {
            servers.push(tool.server());
        }
    }
    let real_subjects: BTreeSet<String> = real_tools
        .iter()
        .flat_map(|tool| subjects(tool.name()))
        .collect();
    let mut order: Vec<&Tool> = bundled().iter().map(|bundled| &bundled.tool).collect();
    random.shuffle(&mut order);
    // The sort keeps the order within each part.
    order.sort_by_key(|tool| !subjects(tool.name()).is_disjoint(&real_subjects));
    order
        .into_iter()
        .filter_map(|tool| {
            let server = usize::try_from(random.below(servers.len() as u64))
                .ok()
                .and_then(|at| servers.get(at).copied().flatten());
            Tool::from_listing(server, &Value::Object(tool.raw().clone()))
        })
        .collect()
}

/// Words that say what is done rather than to what.
const ACTIONS: [&str; 30] = [
    "add",
    "calculate",
    "check",
    "convert",
    "create",
    "delete",
    "estimate",
    "extract",
    "fetch",
    "find",
    "generate",
    "get",
    "list",
    "log",
    "look",
    "lookup",
    "make",
    "open",
    "query",
    "read",
    "remove",
    "run",
    "search",
    "send",
    "set",
    "show",
    "update",
    "up",
    "view",
    "write",
];

/// The domain of a tool, by its name.
fn subjects(name: &str) -> BTreeSet<String> {
    words(name)
        .into_iter()
        .filter(|word| !ACTIONS.contains(&word.as_str()))
        .map(|word| singular(&word).unwrap_or(word))
        .collect()
}

/// The order in which to offer this number of tools: position by position, the index of the tool
/// that is there.
///
/// Real tools and distractors are shuffled together: a model must not learn that the last ones are
/// fake.
#[must_use]
pub fn offer_order(tools: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tools).collect();
    // Another stream than the one that chose the distractors.
    SplitMix64::new(!seed).shuffle(&mut order);
    order
}

/// The answer of a distractor that is called: the text of an error result.
#[must_use]
pub fn refusal(tool: &str) -> String {
    format!("{tool} cannot be used for this request. Nothing was done. Choose a different tool.")
}
