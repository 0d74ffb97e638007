//! YAML with source positions.
//!
//! Suites and mock manifests are written by people, so every complaint about them must name file,
//! line and column, mark the place, say what was expected, and come together with all the others.
//! Deriving `Deserialize` alone cannot do that: serde stops at the first error and loses positions
//! on the way. So the work is split:
//!
//! 1. [`Document::parse`] turns text into a tree whose nodes know where they stand, with bounds on
//!    size, depth and aliases;
//! 2. [`check`] compares that tree with the JSON Schema of the wanted type and reports *every*
//!    difference. It is the same schema that editors use, so an editor and this program never
//!    disagree;
//! 3. only then serde builds the typed value.
//!
//! Semantic checks (a name that refers to nothing, a regex that does not compile) come later, in
//! the crates that know the meaning, and get their place with [`Document::diagnostic_at`].

mod check;
pub mod compiled_schema;
mod decode;
mod diagnostic;
mod document;
mod explain;
mod limits;
mod parse;
mod plain_subset;
mod scalar;
mod source;

pub use compiled_schema::{ALIAS_OF, CompiledSchema, EXPECTED};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use document::{Document, Entry, Node, NodeValue};
pub use explain::suggest;
pub use limits::DocumentLimits;
pub use source::{Source, Span};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// Parses, checks and decodes in one go; the document comes back too, for checks that need places.
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
    // The shape is right, so serde can only object to what the schema cannot express. It then has
    // no position: the root's.
    T::deserialize(document.root())
        .map_err(|error| Diagnostics(vec![document.diagnostic_at("", error.to_string())]))
}
