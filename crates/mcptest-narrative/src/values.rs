//! The values that a claim states, and those that disagree with the calls.

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Number,
    /// A number of things that were acted on.
    Count,
    Date,
    /// A time of day.
    Time,
    Quote,
    /// A word that is the value of an argument.
    Word,
    Identifier,
    Path,
    Email,
}

impl ValueKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Count => "count",
            Self::Date => "date",
            Self::Time => "time",
            Self::Quote => "quoted text",
            Self::Word => "word",
            Self::Identifier => "identifier",
            Self::Path => "path",
            Self::Email => "e-mail",
        }
    }
}

/// A value as a claim states it.
#[derive(Debug, Clone)]
pub(crate) struct Stated {
    pub(crate) kind: ValueKind,
    pub(crate) text: String,
    /// In the form in which values of the kind are compared.
    pub(crate) normal: String,
    /// The word before it, folded: "order" of "order 43".
    pub(crate) role: Option<String>,
    /// The word after it, folded: "bag" of "3 bags".
    pub(crate) counted: Option<String>,
    pub(crate) money: bool,
    /// True if it is the value that something got: "to 17 degrees".
    pub(crate) measured: bool,
    /// True if the words around it say that it is not exact.
    pub(crate) rounded: bool,
    pub(crate) percent: bool,
    /// True if it is what something was before: "from 12".
    pub(crate) former: bool,
    /// The place of its first token.
    pub(crate) at: usize,
}

/// A stated value that no matching call has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub kind: ValueKind,
    pub stated: String,
    /// The values that the calls have instead.
    pub recorded: Vec<String>,
}
