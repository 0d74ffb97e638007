//! The roles of models.

use std::fmt;

/// The role of a model in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelRole {
    /// The agent under test.
    Agent,
    /// A judge of the agent's answer; several are numbered from 1.
    Judge(u32),
    /// The model with this id, which reads the claims in the closing message.
    Reader(String),
    /// The client's model, which answers servers, of an answer in the suite, from 1.
    Sampling(u32),
}

impl ModelRole {
    /// The model that read the closing message, from the name of a role.
    pub(crate) fn reader_of(name: &str) -> Option<&str> {
        name.strip_prefix("reader:")
    }
}

impl fmt::Display for ModelRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent => f.write_str("agent"),
            Self::Judge(number) => write!(f, "judge:{number}"),
            Self::Reader(model) => write!(f, "reader:{model}"),
            Self::Sampling(number) => write!(f, "sampling:{number}"),
        }
    }
}
