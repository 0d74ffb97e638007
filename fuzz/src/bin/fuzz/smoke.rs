//! Random changes of the inputs in the repository, without instrumentation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use mcptest_fuzz::{Target, inputs, mutate};

use crate::options::Options;

/// An input of a few kilobytes must not take longer, even on a busy machine without optimization.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Runs all targets. Returns false if one failed.
pub fn run(options: &Options) -> Result<bool> {
    let mut passed = true;
    for target in &options.targets {
        passed &= one(target, options)?;
    }
    Ok(passed)
}

fn one(target: &Target, options: &Options) -> Result<bool> {
    let known: Vec<mutate::Known> = inputs::contents(target)?
        .into_iter()
        .map(Into::into)
        .collect();
    let start = Instant::now();
    let limit = options.seconds.map(Duration::from_secs);
    let (mut count, mut bytes, mut slowest) = (0_u64, 0, Duration::ZERO);
    while count < options.inputs && limit.is_none_or(|limit| start.elapsed() < limit) {
        let input = mutate::mutated(&known, options.seed, count);
        let began = Instant::now();
        let failure = failure(target, &input);
        slowest = slowest.max(began.elapsed());
        if let Some(failure) = failure {
            let name = format!("smoke-{}-{count}", options.seed);
            let path = keep(target, &name, &input)?;
            println!("FAIL  {}: {failure}", target.name);
            println!("      the input is in {}; after the fix, move it to", path);
            println!("      fuzz/regressions/{}", target.name);
            return Ok(false);
        }
        count += 1;
        bytes += input.len();
    }
    println!(
        "ok    {:<24} {count:>6} inputs, {:>6.1} kB, {:>5.1} s, {:>6.1} ms the slowest",
        target.name,
        bytes as f64 / 1e3,
        start.elapsed().as_secs_f64(),
        slowest.as_secs_f64() * 1e3
    );
    Ok(true)
}

fn failure(target: &Target, input: &[u8]) -> Option<String> {
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let took = start.elapsed();
    match outcome {
        // The message of the panic was printed.
        Err(_) => Some("a property does not hold".to_owned()),
        Ok(()) if took > MAX_TIME => Some(format!("took {took:?}")),
        Ok(()) => None,
    }
}

/// Writes a failing input. Returns its path below the root.
fn keep(target: &Target, name: &str, input: &[u8]) -> Result<String> {
    let relative = Path::new("target/fuzz-findings").join(target.name);
    let folder = inputs::root().join(&relative);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    std::fs::write(folder.join(name), input)?;
    Ok(relative.join(name).display().to_string())
}
