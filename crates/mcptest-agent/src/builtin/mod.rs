//! The built-in models: deterministic, without key or network.

pub mod arguments;
mod lexical;
mod scripted;

pub use lexical::Lexical;
pub use scripted::{Scripted, ScriptedCall, ScriptedTurn};

/// Plays the turns written in the suite.
pub const SCRIPTED: &str = "builtin/scripted";
/// Picks a tool by shared words.
pub const LEXICAL: &str = "builtin/lexical";

/// All built-in models with their descriptions, for messages and docs.
pub const MODELS: [(&str, &str); 2] = [
    (SCRIPTED, "plays the turns written under `script:`"),
    (
        LEXICAL,
        "picks the tool that shares most words with the prompt; a reproducible baseline, not a \
         language model",
    ),
];

/// A model id that is not built in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown model `{id}`; the built-in models are {}", MODELS.map(|(id, _)| id).join(", "))]
pub struct UnknownModel {
    /// The id.
    pub id: String,
}

/// Checks that a model id is one of [`MODELS`].
///
/// # Errors
/// The id is unknown.
pub fn check_model(id: &str) -> Result<(), UnknownModel> {
    if MODELS.iter().any(|(known, _)| *known == id) {
        return Ok(());
    }
    Err(UnknownModel { id: id.to_owned() })
}
