//! Problems in a written suite, with their positions.

/// A problem with something written, such as a matcher, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer from the place that was given for compiling.
    pub pointer: String,
    /// The problem.
    pub message: String,
    /// A remedy.
    pub help: Option<String>,
    /// True if it is only a warning.
    pub warning: bool,
    /// True if the key at the end of the pointer is wrong rather than its value.
    pub on_key: bool,
}

impl Problem {
    /// A problem at a place.
    #[must_use]
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
            help: None,
            warning: false,
            on_key: false,
        }
    }

    /// Blames the key, not the value.
    #[must_use]
    pub fn on_key(mut self) -> Self {
        self.on_key = true;
        self
    }

    /// Makes it a warning.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.warning = true;
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
