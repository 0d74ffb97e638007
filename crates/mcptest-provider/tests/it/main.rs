//! Sending, waiting, giving up, against a provider that does what the test says.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on says where by panicking"
)]

mod sending;
mod stand_in;
