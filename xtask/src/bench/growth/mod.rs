//! Growth: the time of each command over each dimension of its input, at n, 2n, 4n and 8n.
//!
//! The exponent of the growth does not depend on the machine, and hardly on its load: it follows
//! from the time on all cores, the least of several runs, and the larger sizes, where the start of
//! the process does not matter. The build is the one that tests use, because an exponent is the
//! same in every build. Commands whose input has no size (`explain`, `plan-runs`, `schema`, …) have
//! no subject. Where the result itself is a product (each mutant of a trace is judged over all of
//! its calls, each step of a trajectory is compared with each call), one of the two is fixed.

mod inputs;
mod results;
mod scoring;
mod servers;
mod testing;

use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::figures::{cpu_ms_of, silent};
use crate::workspace::{self, Profile};

/// An exponent above this fails.
const MAX_EXPONENT: f64 = 1.3;
/// The number of runs for each size; the fastest one counts.
const RUNS: usize = 3;
/// The multiples of a subject's size that are measured.
const MULTIPLES: [usize; 4] = [1, 2, 4, 8];
/// The exit codes of verdicts: passed, failed, without evidence.
const VERDICTS: [i32; 3] = [0, 1, 3];
/// A command whose largest input takes less than this, in milliseconds, is too fast to compare.
const MIN_MS: f64 = 100.0;

/// A command and a dimension of its input.
struct Subject {
    name: &'static str,
    /// The arguments; a word with `*` is replaced by the files that it matches.
    args: &'static [&'static str],
    /// The file on standard input.
    stdin: Option<&'static str>,
    /// True if the input is invalid on purpose. Otherwise every verdict will do.
    rejected: bool,
    /// The smallest size.
    size: usize,
    /// Writes the input of a size into a folder.
    input: fn(&Folder, usize) -> Result<()>,
}

/// A folder for input, in which the program can be used to make more.
struct Folder {
    path: TempDir,
    program: PathBuf,
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.path.path()
    }
}

impl Folder {
    /// Runs the program; its tests may fail.
    fn mcptest(&self, args: &[&str]) -> Result<()> {
        let (_, status) = cpu_ms_of(&mut self.command(args)?)?;
        let code = status.code().context("it was killed")?;
        ensure!(VERDICTS.contains(&code), "exit code {code} of {args:?}");
        Ok(())
    }

    /// The program in this folder, without any output.
    fn command(&self, args: &[&str]) -> Result<Command> {
        let mut command = silent(&[&self.program]);
        command.current_dir(&self.path).env_remove("CI");
        for arg in args {
            match arg.split_once('*') {
                Some((before, after)) => command.args(self.files(before, after)?),
                None => command.arg(arg),
            };
        }
        Ok(command)
    }

    /// The beginning of the output of a subject's command.
    fn first_output(&self, subject: &Subject) -> Result<String> {
        let mut command = self.command(subject.args)?;
        if let Some(file) = subject.stdin {
            command.stdin(File::open(self.join(file))?);
        }
        let output = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()?;
        let text = [output.stderr, output.stdout].concat();
        Ok(String::from_utf8_lossy(&text).chars().take(600).collect())
    }

    /// The sorted names of the files with this beginning and end.
    fn files(&self, before: &str, after: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(before) && name.ends_with(after) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl Subject {
    const EMPTY: Self = Self {
        name: "",
        args: &[],
        stdin: None,
        rejected: false,
        size: 0,
        input: |_, _| Ok(()),
    };
}

/// Measures and prints the subjects whose names contain a string. True if no time grows faster than
/// the bound.
pub fn run(filter: &str) -> Result<bool> {
    let program = workspace::build(Profile::Dev)?;
    let mut within = true;
    println!(
        "{:50} {:>8} {:>32} {:>9}",
        "", "n", "ms at n, 2n, 4n, 8n", "exponent"
    );
    let subjects = [
        testing::SUBJECTS,
        scoring::SUBJECTS,
        servers::SUBJECTS,
        results::SUBJECTS,
    ];
    let wanted = |subject: &&Subject| subject.name.contains(filter);
    for subject in subjects.into_iter().flatten().filter(wanted) {
        let measured: Result<Vec<f64>> = MULTIPLES
            .into_iter()
            .map(|multiple| time(&program, subject, subject.size * multiple))
            .collect();
        let times = match measured {
            Ok(times) => times,
            Err(error) => {
                println!("{:50} {error:#}", subject.name);
                within = false;
                continue;
            }
        };
        // From 2n to 8n, which is a factor of 4.
        let exponent = (times[3] / times[1]).log(4.0);
        let (fast, grows) = (times[3] < MIN_MS, exponent > MAX_EXPONENT);
        within &= !fast && !grows;
        let shown: Vec<String> = times.iter().map(|time| format!("{time:.0}")).collect();
        let mark = match (fast, grows) {
            (true, _) => "  TOO SMALL",
            (false, true) => "  OVER",
            (false, false) => "",
        };
        println!(
            "{:50} {:>8} {:>32} {exponent:>9.2}{mark}",
            subject.name,
            subject.size,
            shown.join(", ")
        );
    }
    Ok(within)
}

/// The least time of several runs, in milliseconds.
fn time(program: &Path, subject: &Subject, size: usize) -> Result<f64> {
    let folder = Folder {
        path: tempfile::tempdir()?,
        program: program.to_owned(),
    };
    (subject.input)(&folder, size)?;
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let mut command = folder.command(subject.args)?;
        if let Some(file) = subject.stdin {
            command.stdin(File::open(folder.join(file))?);
        }
        let (taken, status) = cpu_ms_of(&mut command)?;
        let code = status.code().context("it was killed")?;
        ensure!(
            code == 2 && subject.rejected || VERDICTS.contains(&code) && !subject.rejected,
            "exit code {code}: {}",
            folder.first_output(subject)?
        );
        least = least.min(taken);
    }
    // Times are counted in hundredths of a second.
    Ok(least.max(10.0))
}
