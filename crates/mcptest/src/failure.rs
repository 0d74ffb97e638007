//! Why a command could not do what was asked, and how that is told.

use mcptest_report::{ExitCode, Redactor};
use mcptest_yaml::Diagnostics;

use crate::output::Output;

/// Why a command could not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// In words.
    Words(String),
    /// What is wrong in files, with the places.
    Problems(Diagnostics),
    /// Somebody stopped it.
    Interrupted,
}

impl From<String> for Failure {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<Diagnostics> for Failure {
    fn from(problems: Diagnostics) -> Self {
        Self::Problems(problems)
    }
}

impl Failure {
    /// Without secrets. Problems of files are told as they are written there.
    pub fn redacted(self, redactor: &Redactor) -> Self {
        match self {
            Self::Words(words) => Self::Words(redactor.text(&words)),
            other => other,
        }
    }

    /// Tells it, and says how the process ends.
    pub fn tell(&self, output: &Output) -> ExitCode {
        match self {
            Self::Words(words) => output.error(words),
            Self::Problems(problems) => output.problems(problems),
            Self::Interrupted => {
                output.error("interrupted");
                return ExitCode::Interrupted;
            }
        }
        ExitCode::CouldNotRun
    }
}
