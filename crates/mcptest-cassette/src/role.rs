//! What a model is there for.

use std::fmt;

/// The part that a model plays in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It acts.
    Agent,
    /// It judges an answer; several are numbered from 1.
    Judge(u32),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent => f.write_str("agent"),
            Self::Judge(number) => write!(f, "judge:{number}"),
        }
    }
}
