//! Parts that measurements share: order statistics, targets, and how busy the machine is.

use std::ffi::OsStr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The options of a benchmark.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Fewer and shorter rounds: shows that everything works, not what it costs.
    pub quick: bool,
    /// JSON on standard output in place of the table.
    pub json: bool,
    /// A missed target is a failure.
    pub strict: bool,
    /// Only this part of the benchmark.
    pub only: Option<&'static str>,
}

impl Options {
    /// Reads the flags, and the name of a part; `None` if one is unknown.
    pub fn parse(flags: &[&str], parts: &[&'static str]) -> Option<Self> {
        let mut options = Self::default();
        for flag in flags {
            match *flag {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--strict" => options.strict = true,
                name => options.only = Some(parts.iter().find(|part| **part == name)?),
            }
        }
        Some(options)
    }

    /// Returns true if a part is wanted.
    pub fn wants(&self, part: &str) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// The value that this many percent of the sorted ones do not reach.
pub fn at<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or_default()
}

/// The middle one of these; of none, zero.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    at(&values, 50)
}

/// The median over the rounds of one side's figure divided by the other's in the same round:
/// whatever the machine did in that round met both.
pub fn median_ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(
        ours.iter()
            .zip(theirs)
            .map(|(ours, theirs)| ours / theirs)
            .collect(),
    )
}

/// A program and its arguments, which is heard and answered by nobody.
pub fn silent(argv: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// From starting a program to having seen its end, in milliseconds. That it fails is an error.
pub fn time(argv: &[impl AsRef<OsStr>]) -> Result<f64> {
    let mut command = silent(argv);
    let began = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    let taken = began.elapsed();
    ensure!(status.success(), "{command:?}: {status}");
    Ok(taken.as_secs_f64() * 1000.0)
}

/// The unit of times in `/proc`, which is the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The resources that a process used.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// The time on all cores, in seconds.
    pub cpu_s: f64,
    /// The most memory that it had at any time, in MiB.
    pub peak_mib: f64,
}

/// Runs a program and measures it. A failure of the program is an error.
pub fn measure(argv: &[impl AsRef<OsStr>]) -> Result<Usage> {
    let mut command = silent(argv);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
    let (usage, status) = usage(&mut child)?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(usage)
}

/// Waits for the end of a program and measures it.
pub fn usage(child: &mut Child) -> Result<(Usage, ExitStatus)> {
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", child.id()));
    let mut peak_kib = 0.0_f64;
    // A process that has ended keeps its times, but not its memory, until it is waited for.
    let ticks = loop {
        let stat = file("stat")?;
        // The name of the program is in brackets and may have any characters.
        let fields: Vec<&str> = stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .split(' ')
            .collect();
        if fields.first() == Some(&"Z") {
            let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok());
            break ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0);
        }
        let status = file("status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
        peak_kib = peak_kib.max(peak.unwrap_or(0.0));
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    let usage = Usage {
        cpu_s: ticks / TICKS_PER_SECOND,
        peak_mib: peak_kib / 1024.0,
    };
    Ok((usage, child.wait()?))
}

/// The time on all cores, in milliseconds, of a program and the programs that it starts: the mean
/// of this number of runs. Times are counted in hundredths of a second, so short runs need many. A
/// failure of the program is an error.
pub fn cpu_ms(argv: &[impl AsRef<OsStr>], runs: u32) -> Result<f64> {
    let before = children_ticks()?;
    for _ in 0..runs {
        let mut command = silent(argv);
        let status = command
            .status()
            .with_context(|| format!("cannot run {command:?}"))?;
        ensure!(status.success(), "{command:?}: {status}");
    }
    let ticks = children_ticks()? - before;
    Ok(ticks / TICKS_PER_SECOND * 1000.0 / f64::from(runs))
}

/// The time on all cores, in milliseconds, of one run of a program, and how it ended.
pub fn cpu_ms_of(command: &mut Command) -> Result<(f64, ExitStatus)> {
    let before = children_ticks()?;
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    let ticks = children_ticks()? - before;
    Ok((ticks / TICKS_PER_SECOND * 1000.0, status))
}

/// The time of all ended processes that this one has started and waited for.
fn children_ticks() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks = fields.skip(13).take(2).map(str::parse::<f64>);
    ticks.sum::<Result<f64, _>>().context("no times in /proc")
}

/// The number of calls that are timed together for a rate.
const SLICE: u32 = 64;

/// The rate of something that happens again and again: that of the median of many short slices of
/// time. On a machine with more work than cores, a mean measures how often others were let in
/// between.
pub struct Rate {
    began: Instant,
    calls: u32,
    rates: Vec<f64>,
}

impl Rate {
    /// From now on.
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            calls: 0,
            rates: Vec::new(),
        }
    }

    /// Counts this number of further calls.
    pub fn add(&mut self, calls: usize) {
        self.calls += u32::try_from(calls).unwrap_or(u32::MAX);
        if self.calls >= SLICE {
            let now = Instant::now();
            self.rates
                .push(f64::from(self.calls) / (now - self.began).as_secs_f64());
            self.began = now;
            self.calls = 0;
        }
    }

    /// For a second.
    pub fn median(self) -> f64 {
        median(self.rates)
    }
}

/// The load of the last minute, if it is more than the machine has cores.
pub fn overload() -> Option<f64> {
    let load: f64 = std::fs::read_to_string("/proc/loadavg")
        .ok()?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    let cores = u32::try_from(std::thread::available_parallelism().ok()?.get()).ok()?;
    (load > f64::from(cores)).then_some(load)
}

/// One comparison with what it must reach.
pub struct Bound {
    pub what: String,
    pub value: f64,
    pub target: Target,
    /// The unit of the numbers, shown behind them: `x`, ` ms`.
    pub unit: &'static str,
}

#[derive(Clone, Copy)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    pub fn is_met(&self) -> bool {
        match self.target {
            Target::AtMost(most) => self.value <= most,
            Target::AtLeast(least) => self.value >= least,
        }
    }

    fn json(&self) -> Value {
        let (relation, bound) = match self.target {
            Target::AtMost(bound) => ("at_most", bound),
            Target::AtLeast(bound) => ("at_least", bound),
        };
        json!({"what": self.what, "value": self.value, relation: bound, "unit": self.unit.trim(), "met": self.is_met()})
    }
}

/// Prints the comparisons below a table, or everything as JSON. True if all targets are met, or
/// need not be.
pub fn conclude(options: Options, figures: Value, bounds: &[Bound]) -> bool {
    if options.json {
        let bounds: Vec<Value> = bounds.iter().map(Bound::json).collect();
        println!(
            "{:#}",
            json!({"figures": figures, "bounds": bounds, "quick": options.quick, "overload": overload()})
        );
    } else {
        println!();
        for bound in bounds {
            let (sign, target) = match bound.target {
                Target::AtMost(most) => ("at most", most),
                Target::AtLeast(least) => ("at least", least),
            };
            let unit = bound.unit;
            let word = if bound.is_met() { "met" } else { "MISSED" };
            println!(
                "{:<58} {:>8.2}{unit}  {sign} {target}{unit}: {word}",
                bound.what, bound.value
            );
        }
        if let Some(load) = overload() {
            println!(
                "The machine has more to do than it has cores (load {load}): read the ratios, not the times."
            );
        }
    }
    !options.strict || bounds.iter().all(Bound::is_met)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_statistics_take_what_is_there() {
        assert_eq!(at(&[1, 5, 900], 50), 5);
        assert_eq!(at(&[1, 5, 900], 10), 1);
        assert_eq!(at(&[1, 5, 900], 100), 900);
        assert_eq!(at::<u64>(&[], 50), 0);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        // The second round was ten times slower for both sides.
        assert_eq!(median_ratio(&[1.0, 10.0, 1.0], &[2.0, 20.0, 2.0]), 0.5);
    }

    #[test]
    fn a_target_counts_as_reached() {
        let bound = |value, target| Bound {
            what: String::new(),
            value,
            target,
            unit: "x",
        };
        assert!(bound(0.4, Target::AtMost(0.4)).is_met());
        assert!(!bound(0.41, Target::AtMost(0.4)).is_met());
        assert!(bound(4.0, Target::AtLeast(4.0)).is_met());
        assert!(
            !bound(f64::NAN, Target::AtLeast(4.0)).is_met(),
            "nothing measured is nothing reached"
        );
    }

    #[test]
    fn flags_are_known_or_refused() {
        let options = Options::parse(&["--quick", "--strict"], &["http"]).unwrap();
        assert!(options.quick && options.strict && !options.json && options.wants("http"));
        let options = Options::parse(&["http"], &["http", "stdio"]).unwrap();
        assert!(options.wants("http") && !options.wants("stdio"));
        assert!(Options::parse(&["--fast"], &["http"]).is_none());
    }
}
