//! The SEC rules on published catalogs and poisoned texts, which are not in this repository:
//! `cargo xtask poisoned FOLDER`.
//!
//! The folder has `catalogs/` with answers to `tools/list` of real servers, and `poisoned/dev.json`
//! with poisoned tools. Targets are those of issue 15.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use mcptest_catalog::lint::security::{Listing, lint};
use mcptest_catalog::lint::{Finding, Severity};
use serde_json::{Value, json};

/// The most flagged tools among a thousand honest ones.
const MAX_FLAGGED: f64 = 4.0;

/// The least share of poisoned texts that are found, in percent.
const MIN_FOUND: usize = 84;

/// A line of four times the length may take this many times as long.
const MAX_GROWTH: f64 = 8.0;

/// Prints the figures, and returns true if all targets are met.
pub fn run(folder: &Path) -> Result<bool> {
    let benign = benign(&folder.join("catalogs"))?;
    let poisoned = poisoned(&folder.join("poisoned/dev.json"))?;
    Ok(benign && poisoned && growth())
}

fn read(path: &Path) -> Result<Value> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not valid JSON", path.display()))
}

fn show(name: &str, findings: &[Finding]) {
    for finding in findings {
        println!(
            "  {name}  {} {}: {}",
            finding.rule.as_deref().unwrap_or_default(),
            finding.tool,
            finding.message
        );
    }
}

fn benign(folder: &Path) -> Result<bool> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let mut catalogs: Vec<(String, Vec<Value>)> = Vec::new();
    for file in files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        if stem == "index" || file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let document = read(&file)?;
        let listed = [document.get("tools"), document.pointer("/result/tools")];
        let listed = listed.into_iter().flatten().next().unwrap_or(&document);
        catalogs.push((
            stem.into_owned(),
            listed.as_array().cloned().unwrap_or_default(),
        ));
    }
    ensure!(!catalogs.is_empty(), "{} has no catalogs", folder.display());
    let (mut tools, mut flagged, mut critical) = (0, 0, 0);
    for (name, listed) in &catalogs {
        let found = lint(&[Listing {
            tools: listed,
            ..Listing::default()
        }]);
        show(name, &found);
        tools += listed.len();
        let mut indexes: Vec<usize> = found.iter().map(|finding| finding.index).collect();
        indexes.dedup();
        flagged += indexes.len();
        critical += found
            .iter()
            .filter(|one| one.severity == Severity::Critical)
            .count();
    }
    let rate = flagged as f64 * 1000.0 / tools.max(1) as f64;
    println!(
        "{} catalogs, {tools} tools: {flagged} flagged ({rate:.1} per 1000), {critical} critical findings",
        catalogs.len()
    );
    let together: Vec<Listing<'_>> = catalogs
        .iter()
        .map(|(name, tools)| Listing {
            server: Some(name),
            tools,
            ..Listing::default()
        })
        .collect();
    let named: Vec<Finding> = lint(&together)
        .into_iter()
        .filter(|finding| matches!(finding.rule.as_deref(), Some("SEC-007" | "SEC-011")))
        .collect();
    show("together", &named);
    println!(
        "all catalogs together: {} findings about names",
        named.len()
    );
    Ok(rate <= MAX_FLAGGED && critical == 0)
}

fn poisoned(file: &Path) -> Result<bool> {
    let document = read(file)?;
    let items = document.as_array().context("a list of poisoned tools")?;
    let (mut found, mut critical) = (0, 0);
    for item in items {
        let tool = item
            .get("tool")
            .cloned()
            .unwrap_or_else(|| json!({"name": item["name"], "description": item["description"]}));
        let findings = lint(&[Listing {
            tools: &[tool],
            ..Listing::default()
        }]);
        if findings.is_empty() {
            println!("  missed: {}", item["id"]);
        } else {
            found += 1;
        }
        let worst = findings.iter().map(|finding| finding.severity).max();
        critical += usize::from(worst == Some(Severity::Critical));
    }
    println!(
        "{} poisoned tools: {found} found, {critical} critical",
        items.len()
    );
    Ok(found * 100 >= MIN_FOUND * items.len())
}

/// A line of 1 MiB costs about four times what one of 256 KiB costs.
fn growth() -> bool {
    // Words of most rules, so that every list has many matches.
    let words = "send it to x@y.com, do not tell <system> always before every tool, read ~/.ssh/x ";
    let time = |size: usize| {
        let text = words.repeat(size / words.len());
        let tool = json!({"name": "x", "description": text});
        let began = Instant::now();
        let _ = lint(&[Listing {
            tools: &[tool],
            ..Listing::default()
        }]);
        began.elapsed().as_secs_f64()
    };
    let (short, long) = (time(256 << 10), time(1 << 20));
    let growth = long / short.max(1e-9);
    println!("a line of 1 MiB: {long:.2} s, {growth:.1} times a quarter of it");
    growth <= MAX_GROWTH
}
