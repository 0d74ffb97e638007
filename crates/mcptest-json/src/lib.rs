//! JSON compared by value, canonical JSON, JSON pointers, and untrusted text made safe to show.

pub mod json;
pub mod text;
