//! End-to-end checks with parts that other people made: their servers against our client, their
//! client against our mock server, their stand-ins for model providers and a real small model
//! against our agents.
//!
//! Everything is installed into `e2e/` in cargo's target directory, once per set of versions.

mod agent_failures;
mod agents;
mod agents_under_test;
mod attacks;
mod catalogs;
mod coding_agents;
mod conformance;
pub mod html;
mod init;
pub mod init_servers;
mod inspector;
mod install;
mod kills;
mod legacy_sse;
mod oauth;
mod own_agents;
pub mod parts;
mod processes;
pub mod producers;
mod protocol;
mod providers;
mod proxies;
mod readers;
mod sdk_clients;
mod serving;
mod signals;
mod small_model;
mod stand_ins;
mod suites;
mod testbed;
mod tool_tests;
mod tutorials;

use std::path::PathBuf;

use anyhow::Result;

use stand_ins::StandIns;
use testbed::Testbed;

/// Runs the checks whose name contains the text; without one, all. True if none failed. `wheel`
/// builds the wheel that is installed.
pub fn run(only: Option<&str>, wheel: fn() -> Result<PathBuf>) -> Result<bool> {
    let testbed = Testbed::set_up()?;
    let mut checks = Checks {
        only,
        passed: 0,
        failed: 0,
    };
    suites::run(&testbed, &mut checks);
    protocol::run(&testbed, &mut checks);
    tool_tests::run(&testbed, &mut checks);
    tutorials::run(&testbed, &mut checks);
    init::run(&testbed, &mut checks);
    inspector::run(&testbed, &mut checks);
    sdk_clients::run(&testbed, &mut checks);
    catalogs::run(&testbed, &mut checks);
    readers::run(&testbed, &mut checks);
    html::run(&testbed, &mut checks);
    install::run(&testbed, wheel, &mut checks);
    conformance::run(&testbed, &mut checks);
    oauth::run(&testbed, &mut checks);
    legacy_sse::run(&testbed, &mut checks);
    agents::run(&testbed, &mut checks);
    agents_under_test::run(&testbed, &mut checks);
    agent_failures::run(&testbed, &mut checks);
    attacks::run(&testbed, &mut checks);
    own_agents::run(&testbed, &mut checks);
    coding_agents::run(&testbed, &mut checks);
    producers::run(&testbed, &mut checks);
    signals::run(&testbed, &mut checks);
    kills::run(&testbed, &mut checks);
    let stand_ins = StandIns::new(&testbed);
    providers::run(&testbed, &stand_ins, &mut checks);
    proxies::run(&testbed, &stand_ins, &mut checks);
    small_model::run(&testbed, &stand_ins, &mut checks);
    drop(stand_ins);
    testbed.clean_up();
    println!("{} passed, {} failed", checks.passed, checks.failed);
    Ok(checks.failed == 0 && checks.passed > 0)
}

/// Counts the outcomes, and prints each when it is known.
struct Checks<'a> {
    only: Option<&'a str>,
    passed: usize,
    failed: usize,
}

impl Checks<'_> {
    fn check(&mut self, name: &str, body: impl FnOnce() -> Result<()>) {
        if self.only.is_some_and(|only| !name.contains(only)) {
            return;
        }
        match body() {
            Ok(()) => {
                self.passed += 1;
                println!("ok   {name}");
            }
            Err(error) => {
                self.failed += 1;
                println!("FAIL {name}");
                for line in format!("{error:#}").lines() {
                    println!("       {line}");
                }
            }
        }
    }
}
