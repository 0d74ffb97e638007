//! Bounds on the size of a document.

/// Bounds on the size of a document.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DocumentLimits {
    /// Bytes of text.
    pub bytes: usize,
    /// Levels of nesting.
    pub depth: usize,
    /// Values, with aliases expanded.
    pub nodes: usize,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self {
            bytes: 8 * 1024 * 1024,
            depth: 64,
            nodes: 1_000_000,
        }
    }
}
