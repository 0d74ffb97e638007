//! Reporters: what each costs on a JSON report of ten thousand tests, as ratios to parsing the same
//! file and to its size.
//!
//! Allure has a file for each test: its time is a ratio to parsing and to copying these files.
//!
//! The report is one line, so that the yardstick (serde_json into a tree of values, kept) reads the
//! file that the program reads. Every reporter is a whole process: it reads the report, and writes
//! its own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::bare;
use super::figures::{Bound, Options, Target, conclude, cpu_ms, measure, median_ratio, silent};
use crate::workspace::{self, Profile};

const TESTS: usize = 10_000;
/// One test in this number fails.
const FAILING: usize = 20;
const MAX_TIME: f64 = 4.0;
const MAX_MEMORY: f64 = 3.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Measures and prints. True if everything is as it must be.
pub fn run(options: Options) -> Result<bool> {
    let target = workspace::target_directory()?;
    let folder = target.join("bench/reporters");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let program = workspace::build(Profile::Release)?;
    let yardstick = workspace::build_apart("xtask/yardstick", &target.join("bench/yardstick"))?
        .join("mcptest-bench-yardstick");
    let floor = bare::compile(&folder, "floor_server")?;
    let scratch = tempfile::tempdir()?;
    let tests = if options.quick { TESTS / 10 } else { TESTS };
    let (file, bytes) = report(&program, &floor, scratch.path(), tests)?;

    let parsing = [yardstick, "serde".into(), file.clone()];
    let rounds = if options.quick { 1 } else { 3 };
    let mut figures = serde_json::Map::new();
    let mut bounds = Vec::new();
    for (name, ..) in mcptest_report::REPORTERS {
        let output = scratch.path().join(format!("output-{name}"));
        let command = [
            program.clone(),
            "report".into(),
            file.clone(),
            "--reporter".into(),
            format!("{name}={}", output.display()).into(),
        ];
        // The two take turns: whatever else the machine does meets both.
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(cpu_ms(&command, 3)?);
            let mut yardstick = cpu_ms(&parsing, 3)?;
            if output.is_dir() {
                let copy = scratch.path().join("copy");
                let words = ["cp", "-r", "-T"].map(PathBuf::from);
                let copying = [words.as_slice(), &[output.clone(), copy]].concat();
                yardstick += cpu_ms(&copying, 3)?;
            }
            theirs.push(yardstick);
        }
        let time = median_ratio(&ours, &theirs);
        let memory = measure(&command)?.peak_mib * MIB / bytes;
        figures.insert(name.to_owned(), json!({"time": time, "memory": memory}));
        bounds.push(Bound {
            what: match output.is_dir() {
                true => format!("{name}: time of parsing, and of copying its files"),
                false => format!("{name}: time of parsing"),
            },
            value: time,
            target: Target::AtMost(MAX_TIME),
            unit: "x",
        });
        bounds.push(Bound {
            what: format!("{name}: memory, of the size of the report"),
            value: memory,
            target: Target::AtMost(MAX_MEMORY),
            unit: "x",
        });
    }
    if !options.json {
        println!("{tests} tests, a report of {:.1} MiB", bytes / MIB);
    }
    Ok(conclude(options, figures.into(), &bounds))
}

/// The JSON report of that many tests in one line, and its size in bytes.
fn report(program: &Path, floor: &Path, folder: &Path, tests: usize) -> Result<(PathBuf, f64)> {
    let suite = folder.join("mcptest.yml");
    std::fs::write(&suite, suite_of(floor, tests))?;
    let written = folder.join("written.json");
    let reporter = format!("json={}", written.display());
    let words = ["run", "--no-history", "--reporter", &reporter];
    let status = silent(&[program]).args(words).arg(&suite).status()?;
    ensure!(status.code() == Some(1), "the run ended with {status}");
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(&written)?)?;
    let file = folder.join("report.json");
    let text = format!("{value}\n");
    std::fs::write(&file, &text)?;
    Ok((file, text.len() as f64))
}

/// A suite of agent tests with a gate, of which some fail.
fn suite_of(server: &Path, tests: usize) -> String {
    let mut text = format!(
        "name: many\nservers:\n  s:\n    command: [{}]\nagents:\n",
        json!(server.to_string_lossy())
    );
    for number in 1..=tests {
        let said = if number % FAILING == 0 {
            "bye"
        } else {
            "hello"
        };
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "  - name: agent {number}
    model: builtin/scripted
    servers: [s]
    prompt: Say hello {number}.
    script:
      - - {{ calls: [{{ tool: echo, args: {{ message: {said} {number} }} }}] }}
        - {{ say: \"Said hello {number}.\" }}
    expect:
      - tool_calls[0].args.message: hello {number}
    equal_function_sets:
      classes:
        - {{ name: echo, members: [s.echo] }}
"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_test_in_twenty_fails() {
        let suite = suite_of(Path::new("server"), 40);
        assert_eq!(suite.matches("- name: agent").count(), 40);
        assert_eq!(suite.matches("message: bye").count(), 2);
    }
}
