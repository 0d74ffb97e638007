//! Fuzzing that is guided by coverage: the instrumented program, started by libFuzzer's rules.
//!
//! The flags are those of cargo-fuzz without a sanitizer, and work on stable Rust.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context as _, Result, bail, ensure};
use mcptest_fuzz::{Target, inputs};

use crate::options::Options;

/// The time for a target unless `--seconds` is given.
const DEFAULT_SECONDS: u64 = 60;

/// The longest input. Longer seeds are cut.
const MAX_LENGTH: usize = 16 * 1024;

/// The most files of a target in the corpus of the repository, and their sizes.
const MAX_FILES: usize = 24;
const MAX_FILE_BYTES: u64 = 2048;

const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg",
    "fuzzing",
];

/// The figures of one target.
struct Figures {
    executions: u64,
    edges: u64,
    features: u64,
    corpus: usize,
}

/// Runs all targets. Returns false if one failed.
pub fn run(options: &Options) -> Result<bool> {
    let program = build()?;
    let default = if options.merge { 0 } else { DEFAULT_SECONDS };
    let seconds = options.seconds.unwrap_or(default);
    let waiting = Mutex::new(options.targets.iter().rev().collect::<Vec<_>>());
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.pop());
    let failed = Mutex::new(Vec::new());
    println!("| target | inputs | edges | features | corpus |\n|---|---|---|---|---|");
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(target) = next() {
                    let outcome = one(&program, target, seconds, options.merge);
                    if let Err(error) = outcome
                        && let Ok(mut failed) = failed.lock()
                    {
                        failed.push(format!("{}: {error:#}", target.name));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_default();
    for failure in &failed {
        println!("FAIL  {failure}");
    }
    Ok(failed.is_empty())
}

/// Builds the instrumented program.
fn build() -> Result<PathBuf> {
    let host = host()?;
    let root = inputs::root();
    let folder = root.join("target/fuzz");
    let status = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["build", "--package", "mcptest-fuzz", "--bin", "libfuzzer"])
        .args(["--features", "libfuzzer", "--profile", "fuzz", "--quiet"])
        // With a target, build scripts and macros are not instrumented.
        .args(["--target", &host, "--target-dir"])
        .arg(&folder)
        .env("RUSTFLAGS", FLAGS.join(" "))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .current_dir(&root)
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the instrumented program cannot be built");
    Ok(folder.join(host).join("fuzz/libfuzzer"))
}

/// The triple of this machine.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV shows no host")
}

/// Fuzzes one target, and prints its row.
fn one(program: &Path, target: &Target, seconds: u64, merge: bool) -> Result<()> {
    let root = inputs::root();
    let corpus = root.join("target/fuzz-corpus").join(target.name);
    let findings = root.join("target/fuzz-findings").join(target.name);
    let seeds = copied_seeds(target)?;
    for folder in [&corpus, &findings] {
        fs::create_dir_all(folder)?;
    }
    let kept = root.join("fuzz/corpus").join(target.name);
    let dictionary = root
        .join("target/fuzz-seeds")
        .join(format!("{}.dict", target.name));
    fs::write(&dictionary, dictionary_of(target)?)?;
    if seconds > 0 {
        let mut command = command(program, target);
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .arg(format!("-dict={}", dictionary.display()))
            .args(["-timeout=25", "-rss_limit_mb=3072", "-print_final_stats=1"])
            .args([&corpus, &seeds]);
        if kept.is_dir() {
            command.arg(&kept);
        }
        let (is_ok, log) = output(&mut command)?;
        let log_file = root
            .join("target/fuzz-findings")
            .join(format!("{}.log", target.name));
        fs::write(&log_file, &log)?;
        if !is_ok {
            bail!(
                "a property does not hold:\n{}\nthe input is in target/fuzz-findings/{}; after \
                 the fix, move it to fuzz/regressions/{0}",
                last_lines(&log),
                target.name
            );
        }
        let figures = figures(&log, &corpus)?;
        println!(
            "| `{}` | {} | {} | {} | {} |",
            target.name, figures.executions, figures.edges, figures.features, figures.corpus
        );
    }
    if merge {
        merge_corpus(program, target, &corpus, &kept)?;
    }
    Ok(())
}

fn command(program: &Path, target: &Target) -> Command {
    let mut command = Command::new(program);
    command
        .env("MCPTEST_FUZZ_TARGET", target.name)
        .arg(format!("-max_len={MAX_LENGTH}"))
        .stdin(Stdio::null());
    command
}

/// Runs a command. Returns its success and its messages.
fn output(command: &mut Command) -> Result<(bool, String)> {
    let output = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .context("cannot start the instrumented program")?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.success(), log))
}

/// Copies the seeds of a target into one folder, which libFuzzer needs.
fn copied_seeds(target: &Target) -> Result<PathBuf> {
    let folder = inputs::root().join("target/fuzz-seeds").join(target.name);
    if folder.is_dir() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let files = [inputs::seeds(target)?, inputs::regressions(target)?];
    for (number, file) in files.iter().flatten().enumerate() {
        fs::copy(file, folder.join(format!("{number:04}")))?;
    }
    Ok(folder)
}

/// The dictionary of a target: the words of its inputs.
fn dictionary_of(target: &Target) -> Result<String> {
    let mut text = String::new();
    for word in inputs::words(&inputs::contents(target)?) {
        // Words have no characters that need an escape.
        writeln!(text, "\"{word}\"")?;
    }
    Ok(text)
}

/// Writes the smallest inputs with the coverage of all into the repository.
fn merge_corpus(program: &Path, target: &Target, corpus: &Path, kept: &Path) -> Result<()> {
    let merged = inputs::root().join("target/fuzz-merged").join(target.name);
    if merged.is_dir() {
        fs::remove_dir_all(&merged)?;
    }
    fs::create_dir_all(&merged)?;
    fs::create_dir_all(kept)?;
    let mut command = command(program, target);
    command
        .arg("-merge=1")
        .args([&merged, &kept.to_owned(), &corpus.to_owned()]);
    let (is_ok, log) = output(&mut command)?;
    ensure!(is_ok, "the corpus cannot be merged:\n{}", last_lines(&log));
    let mut files = Vec::new();
    for entry in fs::read_dir(&merged)? {
        let entry = entry?;
        files.push((entry.metadata()?.len(), entry.path()));
    }
    // The smallest say most per byte. A spread over the sizes keeps deep ones too.
    files.retain(|(bytes, _)| *bytes <= MAX_FILE_BYTES);
    files.sort();
    let step = files.len().div_ceil(MAX_FILES).max(1);
    fs::remove_dir_all(kept)?;
    fs::create_dir_all(kept)?;
    for (_, file) in files.iter().step_by(step) {
        let name = file.file_name().context("a file without a name")?;
        fs::copy(file, kept.join(name))?;
    }
    Ok(())
}

/// The figures that libFuzzer prints at its end.
fn figures(log: &str, corpus: &Path) -> Result<Figures> {
    let stat = |name: &str| {
        let found = log.lines().find_map(|line| line.strip_prefix(name));
        found.and_then(|number| number.trim().parse().ok())
    };
    let status = log.lines().rev().find(|line| line.contains(" cov: "));
    let field = |name: &str| {
        let mut words = status?.split_whitespace();
        words.find(|word| *word == name)?;
        words.next()?.parse().ok()
    };
    Ok(Figures {
        executions: stat("stat::number_of_executed_units:").unwrap_or(0),
        edges: field("cov:").unwrap_or(0),
        features: field("ft:").unwrap_or(0),
        corpus: fs::read_dir(corpus)?.count(),
    })
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let panicked = lines.iter().position(|line| line.contains("panicked at"));
    let from = panicked.unwrap_or(lines.len().saturating_sub(12));
    lines[from..lines.len().min(from + 12)].join("\n")
}
