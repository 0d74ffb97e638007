//! Cold start: what a command costs before it does anything, as ratios to `true` on the same
//! machine in the same minute.
//!
//! Absolute times say more about the machine than about the program. The commands take turns, so
//! that whatever else the machine does meets all of them; the median drops what hits only some. On
//! a machine with more work than cores even the median measures the queue, which is longer for what
//! runs longer: the ratio of the fastest tenths is printed beside it, and the load.

use std::io::{PipeReader, PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::figures::{at, overload, silent, time};
use crate::workspace::{self, Profile};

/// The number of timed starts of each command.
const TIMED: usize = 300;
/// The percentile that is compared with the targets.
const MEDIAN: usize = 50;
/// The percentile that other processes disturb least.
const FASTEST: usize = 10;
/// Found asleep so often in a row, a millisecond apart, a command waits for its reader.
const STILL: usize = 30;
/// A command that is not found so by then does not write at all.
const MAX_WAIT: Duration = Duration::from_secs(10);

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
        let commands =
            std::iter::once(&yardstick).chain(subjects.iter().map(|subject| &subject.argv));
        for (argv, times) in commands.zip(&mut times) {
            times.push(time(argv)?);
        }
    }
    times
        .iter_mut()
        .for_each(|times| times.sort_unstable_by(f64::total_cmp));

    println!(
        "{:<30} {:>8}  {:>7} {:>7} {:<7} {:>8} {:>9} {:>7}",
        "command", "median", "ratio", "target", "", "fastest", "peak", "target"
    );
    println!("{:<30} {:>5.2} ms", "true", at(&times[0], MEDIAN));
    let mut all_within = true;
    for (subject, taken) in subjects.iter().zip(&times[1..]) {
        let ratio_at = |percent| at(taken, percent) / at(&times[0], percent);
        let (ratio, fastest) = (ratio_at(MEDIAN), ratio_at(FASTEST));
        let mib = peak_mib(&subject.argv)?;
        println!(
            "{:<30} {:>5.2} ms  {ratio:>6.2}x {:>6.0}x {:<7} {fastest:>7.2}x {mib:>5.1} MiB {:>3.0} MiB {}",
            subject.name,
            at(taken, MEDIAN),
            subject.most_ratio,
            word(ratio <= subject.most_ratio),
            subject.most_mib,
            word(mib <= subject.most_mib),
        );
        all_within &= ratio <= subject.most_ratio && mib <= subject.most_mib;
    }
    if let Some(load) = overload() {
        println!(
            "The machine has more to do than it has cores (load {load}): the medians measure the queue as well."
        );
    }
    Ok(all_within)
}

fn word(within: bool) -> &'static str {
    if within { "within" } else { "over" }
}

/// The file behind a command name, so that no measurement pays for the search.
fn on_path(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").context("PATH is not set")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .with_context(|| format!("there is no `{name}` on PATH"))
}

/// The most memory that was resident at any time, as the kernel counts it for the command alone.
///
/// The figure of `getrusage` includes what the starting process had before `exec`, which here is
/// more than the command itself. So the command writes into a pipe that is full: it has done its
/// work, waits to report it, and its high-water mark can be read.
pub fn peak_mib(argv: &[PathBuf]) -> Result<f64> {
    let (reader, writer) = full_pipe().context("cannot fill a pipe")?;
    let mut child = silent(argv)
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot run {}", argv[0].display()))?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let began = Instant::now();
    let mut still = 0;
    let mut kib = None;
    while still < STILL && began.elapsed() < MAX_WAIT {
        let (state, mark) = read_status(&status);
        if state == Some('Z') {
            break;
        }
        // While it has children, it waits for them.
        let waits_to_write = state == Some('S') && !has_children(child.id());
        still = if waits_to_write { still + 1 } else { 0 };
        kib = mark;
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().context("cannot end it")?;
    child.wait().context("cannot wait for it")?;
    drop(reader);
    ensure!(
        still == STILL,
        "{} writes nothing, so it cannot be held",
        argv[0].display()
    );
    let kib =
        kib.with_context(|| format!("cannot read the memory of {} from /proc", argv[0].display()))?;
    Ok(f64::from(kib) / KIB_PER_MIB)
}

/// A pipe into which nothing more goes. The reader keeps it open.
fn full_pipe() -> Result<(PipeReader, PipeWriter)> {
    let (reader, mut writer) = std::io::pipe()?;
    rustix::io::ioctl_fionbio(&writer, true)?;
    // Large pieces for speed, then single bytes for the rest.
    for piece in [4096, 1] {
        while writer.write(&vec![0; piece]).is_ok() {}
    }
    // Whoever writes next shall wait, not fail.
    rustix::io::ioctl_fionbio(&writer, false)?;
    Ok((reader, writer))
}

/// Returns true if any process has this one as its parent.
fn has_children(pid: u32) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    processes.flatten().any(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // After the name in parentheses: the state, and the parent.
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1));
        parent.and_then(|parent| parent.parse().ok()) == Some(pid)
    })
}

/// The state of a process, and `VmHWM`, which one that has ended does not have.
fn read_status(status: &Path) -> (Option<char>, Option<u32>) {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()
    };
    let state = field("State:").and_then(|state| state.chars().next());
    (state, field("VmHWM:").and_then(|kib| kib.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_command_is_its_own() {
        let mib = peak_mib(&[on_path("echo").unwrap(), "hello".into()]).unwrap();
        assert!(mib > 0.1, "{mib}");
        assert!(
            peak_mib(&[on_path("true").unwrap()]).is_err(),
            "it does not write"
        );
        assert!(!has_children(u32::MAX));
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(has_children(std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
