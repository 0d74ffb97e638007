//! What a comparison of two catalogs tells.

use serde::Serialize;

/// What changed between two catalogs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CatalogDiff {
    /// Whether anything breaks callers.
    pub breaking: bool,
    /// How many changes break callers: removed and renamed tools, and changes inside of tools.
    pub breaking_count: u64,
    /// How many changes do not.
    pub compatible_count: u64,
    /// Tools that are new.
    pub added: Vec<Listed>,
    /// Tools that are gone: breaking.
    pub removed: Vec<Listed>,
    /// Tools with another name: breaking.
    pub renamed: Vec<Renamed>,
    /// Tools that are in both, or renamed, and not the same.
    pub changed: Vec<ToolChange>,
    /// What the catalogs cost.
    pub tokens: Delta,
}

/// A tool that is in one catalog only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it costs, in tokens.
    pub tokens: u64,
}

/// A tool with another name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Renamed {
    /// The old name.
    pub from: String,
    /// The new name.
    pub to: String,
}

/// A count before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

/// What changed in one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolChange {
    /// The tool's name (the new one).
    pub tool: String,
    /// What the tool costs.
    pub tokens: Delta,
    /// The description, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<DescriptionChange>,
    /// Everything else that changed.
    pub changes: Vec<Change>,
}

/// A description that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DescriptionChange {
    /// The old text.
    pub old: Option<String>,
    /// The new text.
    pub new: Option<String>,
    /// What the texts cost.
    pub tokens: Delta,
    /// The tool's quality score before and after; nothing where that is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tdqs: Option<ScoreDelta>,
}

/// A score before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScoreDelta {
    /// Before.
    pub old: f64,
    /// After.
    pub new: f64,
}

/// One change inside of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where, as a JSON pointer into the new tool; for what is gone, into the old one.
    pub pointer: String,
    /// What kind of change.
    pub kind: Kind,
    /// What it does to callers.
    pub class: Class,
    /// What changed.
    pub message: String,
    /// Why it breaks callers, or why not.
    pub reason: &'static str,
}

/// What a change does to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// What worked can fail.
    Breaking,
    /// What worked still does.
    Compatible,
}

/// Kinds of change inside of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A property is new.
    PropertyAdded,
    /// A property is gone.
    PropertyRemoved,
    /// A property that was there became required.
    RequiredAdded,
    /// A property that was required became optional.
    RequiredRemoved,
    /// Less is accepted.
    Narrowed,
    /// More is accepted.
    Widened,
    /// Neither can be shown.
    Changed,
    /// The schema as a whole is new.
    SchemaAdded,
    /// The schema as a whole is gone.
    SchemaRemoved,
    /// Words and hints: no rule changed.
    Annotation,
}

impl Kind {
    /// What the same change is when old and new trade places.
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
        }
    }
}

/// Who writes what a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The caller.
    Input,
    /// The tool.
    Output,
}

impl CatalogDiff {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.renamed.is_empty()
            && self.changed.is_empty()
    }
}
