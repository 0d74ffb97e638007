//! The command line.

use mcptest_fuzz::{TARGETS, Target, find};

/// The thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Print the usage.
    Help,
    /// Print the names of the targets.
    List,
    /// Change inputs at random.
    Smoke,
    /// Search with libFuzzer.
    Guided,
}

/// The options.
#[derive(Debug)]
pub struct Options {
    /// The thing to do.
    pub mode: Mode,
    /// The targets.
    pub targets: Vec<&'static Target>,
    /// The time for each target.
    pub seconds: Option<u64>,
    /// The number of random inputs for each target.
    pub inputs: u64,
    /// The seed of random inputs.
    pub seed: u64,
    /// The number of targets that are fuzzed at the same time.
    pub jobs: usize,
    /// Set if the corpus in the repository is written.
    pub merge: bool,
}

impl Options {
    /// Reads the command line.
    pub fn parse(mut arguments: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            mode: Mode::Guided,
            targets: Vec::new(),
            seconds: None,
            inputs: 1000,
            seed: 1,
            jobs: 1,
            merge: false,
        };
        while let [argument, rest @ ..] = arguments {
            arguments = rest;
            let mut number = || -> Result<u64, String> {
                let (value, rest) = arguments
                    .split_first()
                    .ok_or_else(|| format!("{argument} needs a number"))?;
                arguments = rest;
                value
                    .parse()
                    .map_err(|_| format!("{argument}: {value:?} is not a number"))
            };
            match *argument {
                "--help" | "-h" => options.mode = Mode::Help,
                "--list" => options.mode = Mode::List,
                "--smoke" => options.mode = Mode::Smoke,
                "--merge" => options.merge = true,
                "--seconds" => options.seconds = Some(number()?),
                "--inputs" => options.inputs = number()?,
                "--seed" => options.seed = number()?,
                "--jobs" => options.jobs = usize::try_from(number()?).unwrap_or(1).max(1),
                flag if flag.starts_with('-') => return Err(format!("unknown flag {flag}")),
                name => options.targets.push(find(name).ok_or_else(|| {
                    let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
                    format!("no target {name:?}; there are {}", known.join(", "))
                })?),
            }
        }
        if options.targets.is_empty() {
            options.targets = TARGETS.iter().collect();
        }
        Ok(options)
    }
}
