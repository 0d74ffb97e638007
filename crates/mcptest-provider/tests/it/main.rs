//! Sending, waiting and retrying, against a local provider that the test controls.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod events;
mod sending;
mod stand_in;
