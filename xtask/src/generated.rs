//! A generated file.

/// A file, from the root of the workspace, and what it should hold.
pub struct Generated {
    pub path: String,
    pub text: String,
}
