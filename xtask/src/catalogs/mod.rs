//! Real catalogs, which are not part of this repository, against a second opinion: `cargo xtask catalogs FOLDER`.
//!
//! The folder holds answers to `tools/list`, and `index.json` with the tokens that each was counted to have. `oracle.py` counts and lints them apart from our code. Then the same with catalogs
//! that were damaged on purpose: whatever a server sends, the program must not fall over, and must find what the rules say.

mod hostile;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::e2e::parts;
use crate::workspace::{self, Profile};

/// The rules that the documents do not define to the letter: lists of verbs, phrases, and what a list of values looks like.
const NOT_EXACT: [&str; 4] = ["DESC-004", "DESC-005", "DESC-007", "DESC-013"];
/// How many damaged copies are made of every catalog.
const COPIES: u64 = 8;
/// How many differences are told.
const SHOWN: usize = 20;
/// How many catalogs one process is given: one names the culprit, many save time.
const AT_ONCE: usize = 10;

const RANKS: [&str; 1] = ["js-tiktoken@1.0.21"];
const TIKTOKEN: [&str; 1] = ["tiktoken==0.14.0"];

/// OpenAI's tokenizer in Python, and the ranks for it, which it would otherwise fetch from the network.
pub struct Tokenizer {
    python: PathBuf,
    ranks: PathBuf,
}

impl Tokenizer {
    pub fn install() -> Result<Self> {
        let target = workspace::target_directory()?.join("bench");
        let packages = target.join("ranks");
        parts::npm(&packages, &RANKS)?;
        let tokenizer = Self {
            python: parts::venv(&target.join("tiktoken"), &TIKTOKEN)?.join("python"),
            ranks: packages.join("cl100k_base.tiktoken"),
        };
        if !tokenizer.ranks.exists() {
            let packed = packages.join("node_modules/js-tiktoken/dist/ranks/cl100k_base.cjs");
            let status = tokenizer.script("cl100k.py", &packed).arg(&tokenizer.ranks).status()?;
            ensure!(status.success(), "the ranks cannot be unpacked ({status})");
        }
        Ok(tokenizer)
    }

    /// One of the scripts here that take the ranks.
    pub fn with_ranks(&self, name: &str) -> Command {
        self.script(name, &self.ranks)
    }

    fn script(&self, name: &str, argument: &Path) -> Command {
        let mut command = Command::new(&self.python);
        command
            .arg(workspace::root().join("xtask/src/catalogs").join(name))
            .arg(argument)
            // It would leave a folder among our sources.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null());
        command
    }
}

/// A tool's place in the list, a rule, and a place in the tool.
type Finding = (u64, String, Option<String>);

/// What was found in one catalog.
#[derive(Debug, Deserialize)]
struct Opinion {
    /// The price of each tool; the order means nothing.
    tokens: Vec<u64>,
    findings: Vec<Finding>,
}

/// Runs all checks and says how they went.
pub fn run(folder: &Path) -> Result<bool> {
    let judge = Judge {
        program: workspace::build(Profile::Dev)?,
        tokenizer: Tokenizer::install()?,
    };
    let files = catalogs(folder)?;
    ensure!(!files.is_empty(), "there is no catalog in {}", folder.display());
    let scratch = tempfile::tempdir()?;
    let damaged = hostile::damaged(&files, COPIES, scratch.path())?;
    let made = hostile::made(scratch.path())?;
    let checks = [
        ("tokens as the index says", as_indexed(&judge, folder, &files)),
        ("real catalogs, as the second opinion has them", judge.agree(&files)),
        (
            "damaged catalogs, as the second opinion has them",
            judge.agree(&damaged),
        ),
        (
            "catalogs made to hurt, as the second opinion has them",
            judge.agree(&made),
        ),
        (
            "files that are no catalogs are refused",
            judge.refuses(&hostile::refused(scratch.path())?),
        ),
    ];
    let mut failed = 0;
    for (name, outcome) in &checks {
        match outcome {
            Ok(told) => println!("ok    {name}: {told}"),
            Err(error) => {
                failed += 1;
                println!("FAIL  {name}: {error:#}");
            }
        }
    }
    println!("{} passed, {failed} failed", checks.len() - failed);
    Ok(failed == 0)
}

/// The catalogs in a folder, by name.
fn catalogs(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "json") && path.file_stem().is_some_and(|stem| stem != "index") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The counts that came with the catalogs.
fn as_indexed(judge: &Judge, folder: &Path, files: &[PathBuf]) -> Result<String> {
    let text = std::fs::read_to_string(folder.join("index.json")).context("cannot read index.json")?;
    let index: Vec<Value> = serde_json::from_str(&text)?;
    let mut counted = 0;
    let mut ours = Vec::new();
    for some in files.chunks(AT_ONCE) {
        ours.extend(judge.ours(some)?);
    }
    for (file, opinion) in files.iter().zip(ours) {
        let name = stem(file);
        let entry = index.iter().find(|entry| entry["name"] == name.as_str());
        let wanted = entry.and_then(|entry| entry["tokens_cl100k"].as_u64());
        let wanted = wanted.with_context(|| format!("index.json has no count for {name}"))?;
        let sum: u64 = opinion.tokens.iter().sum();
        ensure!(sum == wanted, "{name} has {sum} tokens, and {wanted} in index.json");
        counted += sum;
    }
    Ok(format!("{} catalogs, {counted} tokens", files.len()))
}

/// In words, what two opinions on a catalog do not have in common.
fn differ(name: &str, ours: &Opinion, theirs: &Opinion) -> Vec<String> {
    let sorted = |tokens: &[u64]| {
        let mut tokens = tokens.to_vec();
        tokens.sort_unstable();
        tokens
    };
    let mut differences = Vec::new();
    let (our_tokens, their_tokens) = (sorted(&ours.tokens), sorted(&theirs.tokens));
    if our_tokens != their_tokens {
        differences.push(format!(
            "{name}: its tools have {our_tokens:?} tokens, and {their_tokens:?} in the second opinion"
        ));
    }
    let mut counts = BTreeMap::<&Finding, i64>::new();
    for finding in &ours.findings {
        *counts.entry(finding).or_default() += 1;
    }
    for finding in &theirs.findings {
        *counts.entry(finding).or_default() -= 1;
    }
    for ((index, rule, place), count) in counts {
        let who = match count {
            0 => continue,
            1.. => "only we find",
            _ => "only the second opinion has",
        };
        let place = place.as_deref().unwrap_or("the tool");
        differences.push(format!("{name}: {who} {rule} at {place} of tool {index}"));
    }
    differences
}

struct Judge {
    program: PathBuf,
    tokenizer: Tokenizer,
}

impl Judge {
    /// Fails if the opinions differ, with the first differences.
    fn agree(&self, files: &[PathBuf]) -> Result<String> {
        let (mut tools, mut findings) = (0, BTreeMap::<String, usize>::new());
        let mut differences = Vec::new();
        for some in files.chunks(AT_ONCE) {
            for ((file, ours), theirs) in some.iter().zip(self.ours(some)?).zip(self.theirs(some)?) {
                differences.extend(differ(&stem(file), &ours, &theirs));
                tools += ours.tokens.len();
                for (_, rule, _) in ours.findings {
                    *findings.entry(rule).or_default() += 1;
                }
            }
        }
        ensure!(
            differences.is_empty(),
            "{} differences\n{}",
            differences.len(),
            differences[..differences.len().min(SHOWN)].join("\n")
        );
        let sum: usize = findings.values().sum();
        let rules: Vec<_> = findings.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
        Ok(format!(
            "{} catalogs, {tools} tools, {sum} findings ({})",
            files.len(),
            rules.join(", ")
        ))
    }

    /// Fails unless each is refused in plain words.
    fn refuses(&self, files: &[PathBuf]) -> Result<String> {
        for file in files {
            let output = self.doctor(std::slice::from_ref(file))?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(
                output.status.code() == Some(2) && said.contains("error") && !said.contains("panicked"),
                "{}: {}, {said}",
                stem(file),
                output.status
            );
        }
        Ok(format!("{} files", files.len()))
    }

    fn doctor(&self, files: &[PathBuf]) -> Result<std::process::Output> {
        let mut command = Command::new(&self.program);
        command.args(["doctor", "--lint-descriptions", "--format", "json"]);
        for file in files {
            command.arg("--tools-from").arg(file);
        }
        let output = command.stdin(Stdio::null()).output();
        output.with_context(|| format!("cannot run {}", self.program.display()))
    }

    fn ours(&self, files: &[PathBuf]) -> Result<Vec<Opinion>> {
        let output = self.doctor(files)?;
        let names: Vec<_> = files.iter().map(|file| stem(file)).collect();
        ensure!(
            matches!(output.status.code(), Some(0 | 1)),
            "{names:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let report: Value = serde_json::from_slice(&output.stdout).context("the report is no JSON")?;
        let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut opinions = Vec::new();
        for server in &listed(&report["servers"]) {
            let tools = listed(&server["tools"]);
            let tokens = tools
                .iter()
                .map(|tool| tool["sum"].as_u64().context("a tool without a price"));
            let tokens = tokens.collect::<Result<_>>()?;
            let findings = listed(&report["lint"]["findings"]);
            let findings = findings.iter().filter(|finding| {
                let rule = finding["rule"].as_str().unwrap_or_default();
                let ours = files.len() == 1 || finding["server"] == server["name"];
                ours && finding["severity"] != "pass" && !NOT_EXACT.contains(&rule)
            });
            let findings = findings.map(|finding| {
                let text = |key: &str| finding[key].as_str().map(str::to_owned);
                let place = finding["index"].as_u64().context("a finding without a place")?;
                Ok((place, text("rule").context("a finding without a rule")?, text("path")))
            });
            opinions.push(Opinion {
                tokens,
                findings: findings.collect::<Result<_>>()?,
            });
        }
        ensure!(opinions.len() == files.len(), "{names:?}: not all are in the report");
        Ok(opinions)
    }

    fn theirs(&self, files: &[PathBuf]) -> Result<Vec<Opinion>> {
        let output = self
            .tokenizer
            .with_ranks("oracle.py")
            .args(files)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run the second opinion")?;
        ensure!(output.status.success(), "the second opinion failed ({})", output.status);
        let text = String::from_utf8(output.stdout)?;
        let opinions: Vec<Opinion> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        ensure!(opinions.len() == files.len(), "the second opinion is incomplete");
        Ok(opinions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_and_order_is_none() {
        let opinion = |tokens: &[u64], rules: &[&str]| Opinion {
            tokens: tokens.to_vec(),
            findings: rules.iter().map(|rule| (3, (*rule).to_owned(), None)).collect(),
        };
        let one = opinion(&[1, 2], &["DESC-001", "DESC-002"]);
        assert!(differ("x", &one, &opinion(&[2, 1], &["DESC-002", "DESC-001"])).is_empty());
        let differences = differ("x", &one, &opinion(&[2, 2], &["DESC-002", "DESC-002"]));
        assert_eq!(
            differences,
            [
                "x: its tools have [1, 2] tokens, and [2, 2] in the second opinion",
                "x: only we find DESC-001 at the tool of tool 3",
                "x: only the second opinion has DESC-002 at the tool of tool 3",
            ]
        );
    }
}
