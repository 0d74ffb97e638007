//! Fuzzing of mcptest: `cargo xtask fuzz`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers, whose output is its result"
)]

mod guided;
mod options;
mod smoke;

use std::process::ExitCode;

use options::{Mode, Options};

const USAGE: &str = "\
Usage: cargo xtask fuzz [TARGET…] [--seconds N] [--jobs N] [--merge]
       cargo xtask fuzz [TARGET…] --smoke [--inputs N] [--seconds N] [--seed S]
       cargo xtask fuzz --list

Fuzzes all targets, or these, with libFuzzer, which needs a C++ compiler: 60 seconds each, or N. Found inputs are
kept in target/fuzz-corpus, failing ones in target/fuzz-findings. --merge writes the smallest inputs that have the
same coverage to fuzz/corpus, and fuzzes for 0 seconds unless --seconds is given. --smoke changes the inputs of the
repository at random instead, without instrumentation: 1000 inputs, or N, within N seconds for each target.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let options = match Options::parse(&arguments) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("error: {problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let done = match options.mode {
        Mode::Help => {
            print!("{USAGE}");
            Ok(true)
        }
        Mode::List => {
            for target in mcptest_fuzz::TARGETS {
                println!("{}", target.name);
            }
            Ok(true)
        }
        Mode::Smoke => smoke::run(&options),
        Mode::Guided => guided::run(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
