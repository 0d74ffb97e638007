//! The program that libFuzzer drives: one target, named by `MCPTEST_FUZZ_TARGET`. `cargo xtask
//! fuzz` builds and starts it.

#![no_main]

use std::sync::LazyLock;

use mcptest_fuzz::{Target, find};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("MCPTEST_FUZZ_TARGET").unwrap_or_default();
    match find(&name) {
        Some(target) => target,
        None => panic!("MCPTEST_FUZZ_TARGET names no target: {name:?}"),
    }
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.run)(input));
