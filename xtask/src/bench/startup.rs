//! Cold start: what a command costs before it does anything, as ratios to `true` on the same machine in the same minute.
//!
//! Absolute times say more about the machine than about the program. The commands take turns, so that whatever else the
//! machine does meets all of them; the median drops what hits only some.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::workspace::{self, Profile};

/// How often each command is started and timed.
const TIMED: usize = 300;
/// How often each command is started and watched.
const WATCHED: usize = 30;

const KIB_PER_MIB: f64 = 1024.0;

/// Something to measure, with the most it may cost.
struct Subject {
    name: &'static str,
    argv: Vec<PathBuf>,
    most_ratio: f64,
    most_mib: f64,
}

/// Measures and prints. True if everything is within its target.
pub fn run() -> Result<bool> {
    let program = workspace::build(Profile::Release)?;
    let suite = workspace::root().join("xtask/src/bench/ten-tests.yml");
    let yardstick = vec![on_path("true")?];
    let subjects = [
        Subject {
            name: "mcptest --version",
            argv: vec![program.clone(), "--version".into()],
            most_ratio: 4.0,
            most_mib: 8.0,
        },
        Subject {
            name: "mcptest validate (ten tests)",
            argv: vec![program, "validate".into(), suite],
            most_ratio: 8.0,
            most_mib: 20.0,
        },
    ];

    let mut times = vec![Vec::with_capacity(TIMED); subjects.len() + 1];
    for _ in 0..TIMED {
        let commands = std::iter::once(&yardstick).chain(subjects.iter().map(|subject| &subject.argv));
        for (argv, times) in commands.zip(&mut times) {
            times.push(time(argv)?);
        }
    }
    let medians: Vec<Duration> = times.into_iter().map(median).collect();

    println!(
        "{:<30} {:>8}  {:>7} {:>7} {:<7} {:>9} {:>7} {:<7}",
        "command", "median", "ratio", "target", "", "peak", "target", ""
    );
    println!("{:<30} {:>5.2} ms", "true", millis(medians[0]));
    let mut all_within = true;
    for (subject, taken) in subjects.iter().zip(&medians[1..]) {
        let ratio = taken.as_secs_f64() / medians[0].as_secs_f64();
        let mib = peak_mib(&subject.argv)?;
        println!(
            "{:<30} {:>5.2} ms  {ratio:>6.2}x {:>6.0}x {:<7} {mib:>5.1} MiB {:>3.0} MiB {:<7}",
            subject.name,
            millis(*taken),
            subject.most_ratio,
            word(ratio <= subject.most_ratio),
            subject.most_mib,
            word(mib <= subject.most_mib),
        );
        all_within &= ratio <= subject.most_ratio && mib <= subject.most_mib;
    }
    Ok(all_within)
}

fn word(within: bool) -> &'static str {
    if within { "within" } else { "over" }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The file behind a command name, so that no measurement pays for the search.
fn on_path(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").context("PATH is not set")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .with_context(|| format!("there is no `{name}` on PATH"))
}

fn command(argv: &[PathBuf]) -> Command {
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// From starting it to having seen its end.
fn time(argv: &[PathBuf]) -> Result<Duration> {
    let mut command = command(argv);
    let began = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", argv[0].display()))?;
    let taken = began.elapsed();
    ensure!(status.success(), "{} failed ({status})", argv[0].display());
    Ok(taken)
}

/// The most memory that was resident at once.
///
/// The kernel's figure in `getrusage` includes what the starting process had before `exec`, which here is more than the
/// command itself. So the high-water mark is read while the command runs, again and again until it is gone; the largest of many
/// attempts misses at most the last instant of the process.
fn peak_mib(argv: &[PathBuf]) -> Result<f64> {
    let mut most = 0;
    for _ in 0..WATCHED {
        let mut child = command(argv)
            .spawn()
            .with_context(|| format!("cannot run {}", argv[0].display()))?;
        let status = PathBuf::from(format!("/proc/{}/status", child.id()));
        while let Some(kib) = high_water_kib(&status) {
            most = most.max(kib);
        }
        child.wait().context("cannot wait")?;
    }
    ensure!(most > 0, "cannot read the memory of {} from /proc", argv[0].display());
    Ok(f64::from(most) / KIB_PER_MIB)
}

/// `VmHWM`; a process that has ended has none.
fn high_water_kib(status: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let times = [5, 1, 900].map(Duration::from_millis).to_vec();
        assert_eq!(median(times), Duration::from_millis(5));
    }

    #[test]
    fn the_high_water_mark_of_a_living_process_is_found() {
        let ours = high_water_kib(Path::new("/proc/self/status"));
        assert!(ours.is_some_and(|kib| kib > 100), "{ours:?}");
        assert_eq!(high_water_kib(Path::new("/proc/0/status")), None);
    }
}
