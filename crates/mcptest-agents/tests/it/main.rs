//! Tests with fake agents: scripts that hang, crash, leave processes behind, or write nonsense.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod acp;
mod command;
mod http;
mod streams;
mod support;
