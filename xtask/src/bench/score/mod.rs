//! Scoring recorded traces: a long JSON Lines file through `mcptest score`, beside a program that
//! parses the same lines with sonic-rs and does nothing else, a plain Python loop that computes the
//! same scores, and other programs that compare calls with expected ones.
//!
//! All but these last are whole processes, from their start to their end; they alternate. Rates are
//! traces per second of processor time, which other work on the machine hardly changes. The gain of
//! a second core and the time of a small file are times of the clock and need a quiet machine.

mod corpus;
mod peers;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use self::corpus::{SUITE, Traces};
use self::peers::PEERS;
use super::figures::{
    self, Bound, Options, Target, Usage, conclude, measure, median, median_ratio, usage,
};
use crate::workspace::{self, Profile};

const TRACES: u64 = 100_000;
/// The number of traces whose memory is measured.
const MANY_TRACES: u64 = 1_000_000;
/// The number of traces of a small file.
const FEW_TRACES: u64 = 1000;
/// The most memory that scoring may take, whatever the number of traces.
const MAX_MIB: f64 = 64.0;
/// The least rate of scoring, as a multiple of that of parsing with sonic-rs.
const MIN_OF_SONIC: f64 = 0.6;
/// The least rate of scoring, as a multiple of that of the Python loop.
const MIN_OF_PYTHON: f64 = 4.0;
/// The least gain of a second core.
const MIN_GAIN: f64 = 1.7;
/// The longest time for a small file, in milliseconds.
const MAX_SMALL_MS: f64 = 50.0;
/// The Python loop.
const PYTHON_LOOP: &str = include_str!("plain_loop.py");

/// The commands that are measured.
struct Commands {
    program: PathBuf,
    suite: PathBuf,
    file: PathBuf,
}

impl Commands {
    fn score(&self, more: &[&str]) -> Vec<PathBuf> {
        self.score_file(&self.file, more)
    }

    fn score_file(&self, file: &Path, more: &[&str]) -> Vec<PathBuf> {
        let mut argv = vec![
            self.program.clone(),
            "score".into(),
            self.suite.clone(),
            "--trace".into(),
            file.to_owned(),
        ];
        argv.extend(more.iter().map(PathBuf::from));
        argv
    }
}

/// Measures and prints. Returns true if all bounds are kept. With `--quick`, the slow peers are
/// left out and rates are shown, but decide nothing.
pub fn run(options: Options) -> Result<bool> {
    let (traces, rounds) = match options.quick {
        true => (TRACES / 50, 2),
        false => (TRACES, 5),
    };
    let target = workspace::target_directory()?.join("bench");
    let yardstick = workspace::build_apart("xtask/yardstick", &target.join("yardstick"))?
        .join("mcptest-bench-yardstick");
    let scratch = tempfile::tempdir()?;
    let path = |name: &str| scratch.path().join(name);
    let commands = Commands {
        program: workspace::build(Profile::Release)?,
        suite: path("suite.yml"),
        file: path("traces.jsonl"),
    };
    std::fs::write(&commands.suite, SUITE)?;
    std::fs::write(path("plain_loop.py"), PYTHON_LOOP)?;
    let text = Traces::new().lines(traces);
    let mib = text.len() >> 20;
    std::fs::write(&commands.file, text)?;
    let small = path("small.jsonl");
    std::fs::write(&small, Traces::new().lines(FEW_TRACES))?;

    let to_json = format!("json={}", path("report.json").display());
    let programs = [
        (
            "sonic-rs, parsing only",
            "sonic",
            vec![yardstick, "sonic".into(), commands.file.clone()],
        ),
        (
            "Python, the same scores",
            "python",
            vec![
                "python3".into(),
                path("plain_loop.py"),
                commands.file.clone(),
            ],
        ),
        ("mcptest score", "score", commands.score(&[])),
        (
            "mcptest score, one thread",
            "score_one_thread",
            commands.score(&["--threads", "1"]),
        ),
        (
            "mcptest score, json",
            "score_json",
            commands.score(&["--reporter", &to_json]),
        ),
        (
            "mcptest score, rows",
            "score_rows",
            commands.score(&["--out", &path("rows.jsonl").display().to_string()]),
        ),
    ];
    let mut usages: [Vec<Usage>; 6] = Default::default();
    // The first round warms the caches of the disk.
    for round in 0..=rounds {
        for ((.., argv), usages) in programs.iter().zip(&mut usages) {
            let usage = measure(argv)?;
            if round > 0 {
                usages.push(usage);
            }
        }
    }
    let mut table = Table::new(traces, mib, options.json);
    let rates = usages.each_ref().map(|usages| rates(usages, traces));
    for (((name, key, _), usages), rates) in programs.iter().zip(&usages).zip(&rates) {
        table.row(name, key, rates, Some(usages));
    }
    let [sonic, python, score, ..] = &rates;
    let mut bounds = vec![
        at_least(
            "rate of scoring over that of sonic-rs",
            median_ratio(score, sonic),
            MIN_OF_SONIC,
        ),
        at_least(
            "rate of scoring over that of Python",
            median_ratio(score, python),
            MIN_OF_PYTHON,
        ),
    ];
    if !options.quick {
        for peer in PEERS {
            let installed = peer.install(&target.join("score-peers"), scratch.path())?;
            let rates: Result<Vec<f64>> = (0..3).map(|_| installed.rate(&commands.file)).collect();
            let rates = rates?;
            table.row(peer.name, peer.key, &rates, None);
            let ratio = median(score.clone()) / median(rates);
            let what = format!("rate of scoring over that of {}", peer.name);
            bounds.push(at_least(&what, ratio, peer.target));
        }
        bounds.push(at_least(
            "gain of a second core",
            gain(&commands, rounds)?,
            MIN_GAIN,
        ));
        let small = commands.score_file(&small, &[]);
        let times: Result<Vec<f64>> = (0..20).map(|_| figures::time(&small)).collect();
        let fastest = times?.into_iter().fold(f64::INFINITY, f64::min);
        let what = format!("{FEW_TRACES} traces, from the start of the process");
        bounds.push(at_most(&what, fastest, MAX_SMALL_MS, " ms"));
    }
    let ratios = bounds.len();
    for (name, usages) in [("", &usages[2]), (" with the json reporter", &usages[4])] {
        let peak = median(usages.iter().map(|usage| usage.peak_mib).collect());
        let what = format!("peak memory of {traces} traces{name}");
        bounds.push(at_most(&what, peak, MAX_MIB, " MiB"));
    }
    let many = MANY_TRACES / if options.quick { 20 } else { 1 };
    let what = format!("peak memory of {many} traces from a pipe");
    bounds.push(at_most(
        &what,
        peak_of_stream(&commands, many)?,
        MAX_MIB,
        " MiB",
    ));
    let shown = Options {
        strict: false,
        ..options
    };
    let mut figures = table.figures;
    figures.insert("rounds".to_owned(), rounds.into());
    conclude(shown, figures.into(), &bounds);
    let decisive = &bounds[if options.quick { ratios } else { 0 }..];
    Ok(!options.strict || decisive.iter().all(Bound::is_met))
}

/// Traces per second of processor time, round by round.
fn rates(usages: &[Usage], traces: u64) -> Vec<f64> {
    let rate = |usage: &Usage| traces as f64 / usage.cpu_s.max(0.01);
    usages.iter().map(rate).collect()
}

/// The time of the clock on one core divided by that on two.
fn gain(commands: &Commands, rounds: usize) -> Result<f64> {
    let [one, two] = ["1", "2"].map(|threads| commands.score(&["--threads", threads]));
    let (mut alone, mut both) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        alone.push(figures::time(&one)?);
        both.push(figures::time(&two)?);
    }
    Ok(median_ratio(&alone, &both))
}

/// The peak of memory while traces are scored that come from a pipe.
fn peak_of_stream(commands: &Commands, traces: u64) -> Result<f64> {
    let argv = commands.score_file(Path::new("-"), &[]);
    let mut child = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run mcptest score")?;
    let mut input = child.stdin.take().context("the program has no input")?;
    let writer = std::thread::spawn(move || -> std::io::Result<()> {
        let mut lines = Traces::new();
        for _ in 0..traces.div_ceil(1000) {
            input.write_all(lines.lines(1000).as_bytes())?;
        }
        Ok(())
    });
    let (usage, status) = usage(&mut child)?;
    ensure!(status.success(), "mcptest score: {status}");
    writer.join().ok().context("the writer panicked")??;
    Ok(usage.peak_mib)
}

fn at_least(what: &str, value: f64, least: f64) -> Bound {
    Bound {
        what: what.to_owned(),
        value,
        target: Target::AtLeast(least),
        unit: "x",
    }
}

fn at_most(what: &str, value: f64, most: f64, unit: &'static str) -> Bound {
    Bound {
        what: what.to_owned(),
        value,
        target: Target::AtMost(most),
        unit,
    }
}

/// The medians of all programs, for people and as JSON.
struct Table {
    figures: Map<String, Value>,
    is_shown: bool,
}

impl Table {
    fn new(traces: u64, mib: usize, json: bool) -> Self {
        if !json {
            println!("{traces} traces, {mib} MiB");
            println!("{:<30} {:>14} {:>9}", "", "traces/CPU s", "peak MiB");
        }
        let mut figures = Map::new();
        figures.insert("traces".to_owned(), traces.into());
        figures.insert("mib".to_owned(), mib.into());
        Self {
            figures,
            is_shown: !json,
        }
    }

    fn row(&mut self, name: &str, key: &str, rates: &[f64], usages: Option<&[Usage]>) {
        let rate = median(rates.to_vec());
        let peak = usages.map(|all| median(all.iter().map(|usage| usage.peak_mib).collect()));
        if self.is_shown {
            let peak = peak.map_or_else(String::new, |peak| format!("{peak:.1}"));
            println!("{name:<30} {rate:>14.0} {peak:>9}");
        }
        let row = json!({"traces_per_cpu_s": rate, "peak_mib": peak});
        self.figures.insert(key.to_owned(), row);
    }
}
