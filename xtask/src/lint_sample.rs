//! A random sample of the findings that `doctor` shows by default, to be judged by a person:
//! `cargo xtask lint-sample FOLDER`.
//!
//! The folder holds answers to `tools/list`. A fixed hash of each file's name puts it into one of
//! two halves. Rules are designed on the `dev` half; the sample is from the `test` half,
//! or from a whole folder of catalogs that are new.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use mcptest_catalog::lint;
use mcptest_catalog::lint::lines::{Line, Selection, lines};
use mcptest_numbers::random::SplitMix64;
use serde_json::Value;

/// The size of the sample.
const SIZE: usize = 50;

/// The seed of the sample.
const SEED: u64 = 10;

/// Prints the sample.
pub fn run(folder: &Path, half: &str, seed: Option<u64>) -> Result<bool> {
    let mut shown: Vec<(String, Line)> = Vec::new();
    let (mut catalogs, mut findings) = (0, 0);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    for file in files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let is_json = file
            .extension()
            .is_some_and(|extension| extension == "json");
        if !is_json || stem == "index" || (half != "all" && half_of(&stem) != half) {
            continue;
        }
        let text = std::fs::read_to_string(&file)?;
        let document: Value = serde_json::from_str(&text)
            .with_context(|| format!("{} is not valid JSON", file.display()))?;
        let found = lint::lint(None, &tools(&document));
        catalogs += 1;
        findings += found.iter().filter(|finding| finding.counts()).count();
        let lines = lines(&found, &Selection::default());
        shown.extend(lines.into_iter().map(|line| (stem.to_string(), line)));
    }
    ensure!(
        catalogs > 0,
        "there is no catalog of this half in the folder"
    );
    let total = shown.len();
    SplitMix64::new(seed.unwrap_or(SEED)).shuffle(&mut shown);
    shown.truncate(SIZE);
    println!(
        "{catalogs} catalogs, {findings} findings, {total} lines by default; {} of them:\n",
        shown.len()
    );
    for (number, (catalog, line)) in shown.iter().enumerate() {
        let tools = match line.tools.as_slice() {
            [one] => one.clone(),
            several => format!("{} of {} tools", several.len(), line.of_tools),
        };
        println!("{:>2}  {catalog}  {}  {tools}", number + 1, line.rule);
        println!("      {} ({} ×)", line.message, line.count);
        println!("      {}", line.fix.as_deref().unwrap_or("no fix"));
    }
    Ok(true)
}

/// The tools of an answer: the result, the whole reply, or the bare list.
fn tools(document: &Value) -> Vec<Value> {
    let listed = [document.get("tools"), document.pointer("/result/tools")];
    let listed = listed.into_iter().flatten().next().unwrap_or(document);
    listed.as_array().cloned().unwrap_or_default()
}

/// The half of a catalog, by the FNV-1a hash of its name.
fn half_of(name: &str) -> &'static str {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    if hash % 2 == 0 { "dev" } else { "test" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_never_change() {
        for (name, half) in [
            ("github", "dev"),
            ("notion", "dev"),
            ("slack", "test"),
            ("mongodb", "test"),
        ] {
            assert_eq!(half_of(name), half, "{name}");
        }
    }
}
