//! Reasons why a command could not do what was asked.

use mcptest_report::ExitCode;
use mcptest_yaml::Diagnostics;

use crate::output::Output;

/// The reason why a command could not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// An error message.
    Message(String),
    /// Problems in files, with their positions.
    Problems(Diagnostics),
    /// A signal asked the process to end.
    Interrupted,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<Diagnostics> for Failure {
    fn from(problems: Diagnostics) -> Self {
        Self::Problems(problems)
    }
}

impl Failure {
    /// Prints the failure and returns the exit code of the process.
    pub fn report(&self, output: &Output) -> ExitCode {
        match self {
            Self::Message(message) => output.error(message),
            Self::Problems(problems) => output.problems(problems),
            Self::Interrupted => {
                output.error("interrupted");
                return ExitCode::Interrupted;
            }
        }
        ExitCode::CouldNotRun
    }
}
