//! Bounds on a document.

/// Bounds on a document: decisions, section 2.
#[derive(Debug, Clone)]
pub struct DocumentLimits {
    /// Bytes of text.
    pub bytes: usize,
    /// Levels of nesting.
    pub depth: usize,
    /// Values after aliases are put in.
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
