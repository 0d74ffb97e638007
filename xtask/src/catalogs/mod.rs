//! Real catalogs, which are not part of this repository, against a second opinion: `cargo xtask
//! catalogs FOLDER`.
//!
//! The folder holds answers to `tools/list`, and may hold `index.json` with the tokens that each
//! was counted to have. `oracle.py` counts and lints them apart from our code. Then the same with
//! catalogs that were damaged on purpose: whatever a server sends, the program must not panic,
//! and must find what the rules say.

mod hostile;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::e2e::parts;
use crate::workspace::{self, Profile};

/// The rules that the documents define by example: lists of verbs, phrases, and what a list of
/// values looks like. The second opinion has bounds for them.
const BY_EXAMPLE: [&str; 4] = ["DESC-004", "DESC-005", "DESC-007", "DESC-013"];
/// The number of damaged copies of every catalog.
const COPIES: u64 = 8;
/// The number of differences that are printed.
const SHOWN: usize = 20;
/// The number of catalogs per process: one identifies the culprit, many save time.
const AT_ONCE: usize = 10;

const RANKS: [&str; 1] = ["js-tiktoken@1.0.21"];
const TIKTOKEN: [&str; 1] = ["tiktoken==0.14.0"];

/// OpenAI's tokenizer in Python, and the ranks for it, which it would otherwise fetch from the
/// network.
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
            let status = tokenizer
                .script("cl100k.py", &packed)
                .arg(&tokenizer.ranks)
                .status()?;
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

/// A tool's place in the list, a rule, a place in the tool, and the severity.
type Finding = (u64, String, Option<String>, String);

/// The cost of name, description and schema of a tool.
type Price = [u64; 3];

/// The findings in one catalog.
#[derive(Debug)]
struct OurFindings {
    /// The order means nothing.
    tokens: Vec<Price>,
    findings: Vec<Finding>,
}

/// The findings of the second implementation.
#[derive(Debug, Deserialize)]
struct OracleFindings {
    tokens: Vec<Price>,
    /// Of the rules that are defined exactly.
    findings: Vec<Finding>,
    /// Of the others, what has to be found.
    must: Vec<Finding>,
    /// Of the others, everything that can be found.
    may: Vec<Finding>,
}

/// Runs all checks. Returns false if one failed.
pub fn run(folder: &Path) -> Result<bool> {
    let judge = Judge {
        program: workspace::build(Profile::Dev)?,
        tokenizer: Tokenizer::install()?,
    };
    let files = catalogs(folder)?;
    ensure!(
        !files.is_empty(),
        "there is no catalog in {}",
        folder.display()
    );
    let scratch = tempfile::tempdir()?;
    let damaged = hostile::damaged(&files, COPIES, scratch.path())?;
    let made = hostile::made(scratch.path())?;
    let checks = [
        (
            "tokens as the index says",
            as_indexed(&judge, folder, &files),
        ),
        (
            "real catalogs, as the second opinion has them",
            judge.agree(&files),
        ),
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
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "json")
            && path.file_stem().is_some_and(|stem| stem != "index")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn stem(file: &Path) -> String {
    file.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The counts that came with the catalogs.
fn as_indexed(judge: &Judge, folder: &Path, files: &[PathBuf]) -> Result<String> {
    let index = folder.join("index.json");
    if !index.exists() {
        return Ok("there is no index.json".to_owned());
    }
    let text = std::fs::read_to_string(index).context("cannot read index.json")?;
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
        let sum: u64 = opinion.tokens.iter().flatten().sum();
        ensure!(
            sum == wanted,
            "{name} has {sum} tokens, and {wanted} in index.json"
        );
        counted += sum;
    }
    Ok(format!("{} catalogs, {counted} tokens", files.len()))
}

/// In words, what two opinions on a catalog do not have in common.
fn differ(name: &str, ours: &OurFindings, theirs: &OracleFindings) -> Vec<String> {
    let sorted = |tokens: &[Price]| {
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
    let told = |who: &str, (index, rule, place, severity): &Finding| {
        let place = place.as_deref().unwrap_or("the tool");
        format!("{name}: {who} {rule} ({severity}) at {place} of tool {index}")
    };
    let by_example = |finding: &&Finding| BY_EXAMPLE.contains(&finding.1.as_str());
    let mut counts = BTreeMap::<&Finding, i64>::new();
    for finding in ours.findings.iter().filter(|finding| !by_example(finding)) {
        *counts.entry(finding).or_default() += 1;
    }
    for finding in &theirs.findings {
        *counts.entry(finding).or_default() -= 1;
    }
    for (finding, count) in counts {
        match count {
            0 => {}
            1.. => differences.push(told("only we find", finding)),
            _ => differences.push(told("only the second opinion has", finding)),
        }
    }
    let may: BTreeSet<_> = theirs.may.iter().collect();
    let found: BTreeSet<_> = ours.findings.iter().filter(by_example).collect();
    let must: BTreeSet<_> = theirs.must.iter().collect();
    differences.extend(
        found
            .difference(&may)
            .map(|finding| told("the documents rule out", finding)),
    );
    differences.extend(
        must.difference(&found)
            .map(|finding| told("the documents demand", finding)),
    );
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
            for ((file, ours), theirs) in some.iter().zip(self.ours(some)?).zip(self.theirs(some)?)
            {
                differences.extend(differ(&stem(file), &ours, &theirs));
                tools += ours.tokens.len();
                for (_, rule, _, _) in ours.findings {
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
        let rules: Vec<_> = findings
            .iter()
            .map(|(rule, count)| format!("{rule} {count}"))
            .collect();
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
                output.status.code() == Some(2)
                    && said.contains("error")
                    && !said.contains("panicked"),
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

    fn ours(&self, files: &[PathBuf]) -> Result<Vec<OurFindings>> {
        let output = self.doctor(files)?;
        let names: Vec<_> = files.iter().map(|file| stem(file)).collect();
        ensure!(
            matches!(output.status.code(), Some(0 | 1)),
            "{names:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let report: Value =
            serde_json::from_slice(&output.stdout).context("the report is not valid JSON")?;
        let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut opinions = Vec::new();
        for server in &listed(&report["servers"]) {
            let tokens: Vec<_> = listed(&server["tools"])
                .iter()
                .map(price)
                .collect::<Result<_>>()?;
            let findings = listed(&report["lint"]["findings"]);
            let findings = findings
                .iter()
                .filter(|finding| files.len() == 1 || finding["server"] == server["name"])
                .map(finding)
                .collect::<Result<Vec<_>>>()?;
            let (passes, findings): (Vec<_>, Vec<_>) = findings
                .into_iter()
                .partition(|(.., severity)| severity == "pass");
            clean_ones_pass(tokens.len(), &passes, &findings)
                .with_context(|| format!("{}", server["name"]))?;
            // The second implementation knows nothing of attacks; `cargo xtask poisoned` measures
            // those rules.
            let findings = findings
                .into_iter()
                .filter(|(_, rule, ..)| !rule.starts_with("SEC-"))
                .collect();
            opinions.push(OurFindings { tokens, findings });
        }
        ensure!(
            opinions.len() == files.len(),
            "{names:?}: not all are in the report"
        );
        Ok(opinions)
    }

    fn theirs(&self, files: &[PathBuf]) -> Result<Vec<OracleFindings>> {
        let output = self
            .tokenizer
            .with_ranks("oracle.py")
            .args(files)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run the second opinion")?;
        ensure!(
            output.status.success(),
            "the second opinion failed ({})",
            output.status
        );
        let text = String::from_utf8(output.stdout)?;
        let opinions: Vec<OracleFindings> = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        ensure!(
            opinions.len() == files.len(),
            "the second opinion is incomplete"
        );
        Ok(opinions)
    }
}

/// The cost of a tool in the report.
fn price(tool: &Value) -> Result<Price> {
    let part = |key: &str| {
        tool["tokens"][key]
            .as_u64()
            .context("a tool without a price")
    };
    let price = [part("name")?, part("description")?, part("schema")?];
    let sum: u64 = price.iter().sum();
    ensure!(tool["sum"] == sum, "{} is no sum of {price:?}", tool["sum"]);
    Ok(price)
}

/// A finding of the report.
fn finding(value: &Value) -> Result<Finding> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Ok((
        value["index"]
            .as_u64()
            .context("a finding without a place")?,
        text("rule").unwrap_or_default(),
        text("path"),
        text("severity").context("a finding without a severity")?,
    ))
}

/// Fails unless every tool has either findings or one pass.
fn clean_ones_pass(tools: usize, passes: &[Finding], findings: &[Finding]) -> Result<()> {
    let mut passed: Vec<_> = passes.iter().map(|(index, ..)| *index).collect();
    passed.sort_unstable();
    let smelly: BTreeSet<_> = findings.iter().map(|(index, ..)| *index).collect();
    let clean: Vec<_> = (0..tools as u64)
        .filter(|index| !smelly.contains(index))
        .collect();
    ensure!(
        passed == clean,
        "the tools {passed:?} pass, and {clean:?} have no finding"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rules: &[&str]) -> Vec<Finding> {
        let finding = |rule: &&str| (3, (*rule).to_owned(), None, "warning".to_owned());
        rules.iter().map(finding).collect()
    }

    fn ours(tokens: &[Price], rules: &[&str]) -> OurFindings {
        OurFindings {
            tokens: tokens.to_vec(),
            findings: found(rules),
        }
    }

    fn theirs(tokens: &[Price], rules: &[&str], must: &[&str], may: &[&str]) -> OracleFindings {
        OracleFindings {
            tokens: tokens.to_vec(),
            findings: found(rules),
            must: found(must),
            may: found(may),
        }
    }

    #[test]
    fn differences_are_reported_and_order_is_not_one() {
        let one = ours(&[[1, 0, 0], [2, 0, 0]], &["DESC-001", "DESC-002"]);
        let same = theirs(&[[2, 0, 0], [1, 0, 0]], &["DESC-002", "DESC-001"], &[], &[]);
        assert!(differ("x", &one, &same).is_empty());
        let other = theirs(&[[2, 0, 0], [0, 1, 0]], &["DESC-002", "DESC-002"], &[], &[]);
        assert_eq!(
            differ("x", &one, &other),
            [
                "x: its tools have [[1, 0, 0], [2, 0, 0]] tokens, and [[0, 1, 0], [2, 0, 0]] in the second opinion",
                "x: only we find DESC-001 (warning) at the tool of tool 3",
                "x: only the second opinion has DESC-002 (warning) at the tool of tool 3",
            ]
        );
    }

    #[test]
    fn rules_by_example_are_held_between_bounds() {
        let bounds = theirs(&[], &[], &["DESC-005"], &["DESC-005", "DESC-013"]);
        assert!(differ("x", &ours(&[], &["DESC-005"]), &bounds).is_empty());
        assert!(differ("x", &ours(&[], &["DESC-005", "DESC-013"]), &bounds).is_empty());
        assert_eq!(
            differ("x", &ours(&[], &["DESC-004"]), &bounds),
            [
                "x: the documents rule out DESC-004 (warning) at the tool of tool 3",
                "x: the documents demand DESC-005 (warning) at the tool of tool 3",
            ]
        );
    }

    #[test]
    fn a_tool_passes_or_has_findings() {
        let at = |index| (index, String::new(), None, String::new());
        assert!(clean_ones_pass(2, &[at(1)], &[at(0), at(0)]).is_ok());
        assert!(clean_ones_pass(2, &[at(0), at(1)], &[at(0)]).is_err());
        assert!(clean_ones_pass(2, &[], &[at(0)]).is_err());
        assert!(clean_ones_pass(1, &[at(0), at(0)], &[]).is_err());
    }
}
