//! YAML with source positions.
//!
//! People write suites and mock manifests, so a message about them names file, line and column,
//! marks the place, and states what was expected; all problems of a file are reported together.
//! `Deserialize` alone cannot do that: serde stops at the first error and loses positions. So
//! there are three steps:
//!
//! 1. [`Document::parse`] turns text into a tree with positions, with bounds on size, depth and
//!    aliases;
//! 2. [`CompiledSchema::problems`] compares the tree with the JSON Schema of the wanted type and
//!    reports *every* difference. Editors use the same schema, so an editor and this program agree;
//! 3. serde builds the typed value.
//!
//! Semantic checks (a name that refers to nothing, a regex that does not compile) come later, in
//! the crates that know the meaning; [`Document::diagnostic_at`] gives them their place.

mod check;
pub mod compiled_schema;
mod decode;
mod diagnostic;
mod document;
pub mod duration;
mod entries;
mod explain;
mod limits;
mod parse;
mod plain_subset;
mod scalar;
mod source;
mod syntax_help;
pub mod values;
pub mod write;

pub use compiled_schema::{ALIAS_OF, CompiledSchema, EXPECTED};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use document::{Document, Entry, Node, NodeValue};
pub use explain::{KeySpelling, MAX_CANDIDATES, suggest};
pub use limits::DocumentLimits;
pub use source::{Source, Span};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// Parses, checks and decodes a file. The document is returned too, for checks that need positions.
///
/// # Errors
/// All problems of the file, each with its place.
pub fn from_bytes<T: DeserializeOwned + JsonSchema>(
    name: &str,
    bytes: &[u8],
) -> Result<(T, Document), Diagnostics> {
    let document = Document::parse(name, bytes, &DocumentLimits::default())?;
    let value = decode(&document)?;
    Ok((value, document))
}

/// Checks a parsed document against the schema of `T` and decodes it.
///
/// # Errors
/// All problems of the document, each with its place.
pub fn decode<T: DeserializeOwned + JsonSchema>(document: &Document) -> Result<T, Diagnostics> {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
    let problems = CompiledSchema::compile(schema.as_value()).problems(document);
    if !problems.is_empty() {
        return Err(Diagnostics(problems));
    }
    // The schema fits, so serde can only reject what a schema cannot express. Its errors have no
    // position: the document's start is marked.
    T::deserialize(document.root())
        .map_err(|error| Diagnostics(vec![document.diagnostic_at("", error.to_string())]))
}
