//! The models that need no key, no network and no luck.

pub mod arguments;
mod lexical;
mod scripted;

pub use lexical::Lexical;
pub use scripted::{Scripted, ScriptedCall, ScriptedTurn};

/// Plays the turns written in the suite.
pub const SCRIPTED: &str = "builtin/scripted";
/// Picks a tool by shared words.
pub const LEXICAL: &str = "builtin/lexical";

/// All built-in models with what they are, for messages and docs.
pub const MODELS: [(&str, &str); 2] = [
    (SCRIPTED, "plays the turns written under `script:`"),
    (
        LEXICAL,
        "picks the tool that shares most words with the prompt; a reproducible baseline, not a language model",
    ),
];

/// Whether a model id is known.
///
/// # Errors
/// The words for the user, with what is known.
pub fn check_model(id: &str) -> Result<(), String> {
    if MODELS.iter().any(|(known, _)| *known == id) {
        return Ok(());
    }
    let known: Vec<&str> = MODELS.iter().map(|(known, _)| *known).collect();
    Err(format!(
        "unknown model `{id}`; this build knows {}",
        known.join(", ")
    ))
}
