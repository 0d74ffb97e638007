//! Secrets and volatile values, found and replaced in everything that leaves the program.

pub mod redact;
pub mod volatile;
