//! The result of comparing two catalogs.

use serde::Serialize;

/// The changes between two catalogs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CatalogDiff {
    /// True if any change breaks callers.
    pub breaking: bool,
    /// The number of breaking changes: removed and renamed tools, and changes inside tools.
    pub breaking_count: u64,
    /// The number of compatible changes.
    pub compatible_count: u64,
    /// The number of parts that were not compared, because they are too large or too deep.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_compared_count: u64,
    /// Added tools.
    pub added: Vec<Listed>,
    /// Removed tools: breaking.
    pub removed: Vec<Listed>,
    /// Renamed tools: breaking.
    pub renamed: Vec<Renamed>,
    /// Tools that are in both catalogs, or renamed, and differ.
    pub changed: Vec<ToolChange>,
    /// The cost of the catalogs in tokens.
    pub tokens: Delta,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A tool that is in one catalog only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its cost in tokens.
    pub tokens: u64,
}

/// A renamed tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Renamed {
    /// The old name.
    pub from: String,
    /// The new name.
    pub to: String,
}

/// A count before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Delta {
    /// Before.
    pub old: u64,
    /// After.
    pub new: u64,
    /// After − before.
    pub delta: i64,
}

impl Delta {
    pub(super) fn new(old: u64, new: u64) -> Self {
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            old,
            new,
            delta: signed(new) - signed(old),
        }
    }
}

/// The changes of one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolChange {
    /// The tool's name (the new one).
    pub tool: String,
    /// The cost of the tool in tokens.
    pub tokens: Delta,
    /// The description, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<DescriptionChange>,
    /// All other changes.
    pub changes: Vec<Change>,
}

/// A description that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DescriptionChange {
    /// The old text.
    pub old: Option<String>,
    /// The new text.
    pub new: Option<String>,
    /// The cost of the texts in tokens.
    pub tokens: Delta,
    /// The tool's quality score before and after; absent where it is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tdqs: Option<ScoreDelta>,
}

/// A score before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScoreDelta {
    /// Before.
    pub old: f64,
    /// After.
    pub new: f64,
}

/// One change inside a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The place, as a JSON pointer into the new tool; for removed parts, into the old one.
    pub pointer: String,
    /// The kind of change.
    pub kind: Kind,
    /// The effect on callers.
    pub class: Class,
    /// The change.
    pub message: String,
    /// The reason why it breaks callers, or not.
    pub reason: &'static str,
}

/// The effect of a change on callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Calls that worked can fail.
    Breaking,
    /// Not decided: a limit of the comparison was reached.
    NotCompared,
    /// Calls that worked still work.
    Compatible,
}

/// Kinds of change inside a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A property was added.
    PropertyAdded,
    /// A property was removed.
    PropertyRemoved,
    /// An existing property became required.
    RequiredAdded,
    /// A required property became optional.
    RequiredRemoved,
    /// Less is accepted.
    Narrowed,
    /// More is accepted.
    Widened,
    /// Neither can be proven.
    Changed,
    /// The schema was added.
    SchemaAdded,
    /// The schema was removed.
    SchemaRemoved,
    /// Descriptions and hints: no constraint changed.
    Annotation,
    /// Too large or too deep to compare: there may be any change.
    NotCompared,
}

impl Kind {
    /// The kind of the reverse change.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::PropertyAdded => Self::PropertyRemoved,
            Self::PropertyRemoved => Self::PropertyAdded,
            Self::RequiredAdded => Self::RequiredRemoved,
            Self::RequiredRemoved => Self::RequiredAdded,
            Self::Narrowed => Self::Widened,
            Self::Widened => Self::Narrowed,
            Self::SchemaAdded => Self::SchemaRemoved,
            Self::SchemaRemoved => Self::SchemaAdded,
            Self::Changed => Self::Changed,
            Self::Annotation => Self::Annotation,
            Self::NotCompared => Self::NotCompared,
        }
    }
}

/// The side that writes the values that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The caller.
    Input,
    /// The tool.
    Output,
}

impl CatalogDiff {
    /// Returns true if nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.renamed.is_empty()
            && self.changed.is_empty()
    }
}
