//! The roles of models.

use std::fmt;

/// The role of a model in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelRole {
    /// The agent under test.
    Agent,
    /// A judge of the agent's answer; several are numbered from 1.
    Judge(u32),
}

impl fmt::Display for ModelRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent => f.write_str("agent"),
            Self::Judge(number) => write!(f, "judge:{number}"),
        }
    }
}
