//! End-to-end checks with parts that other people made: their servers against our client, their
//! client against our mock server, their stand-ins for model providers and a real small model
//! against our agents.
//!
//! Everything is installed into `e2e/` in cargo's target directory, once per set of versions.

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
mod lab;
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
mod tool_tests;
mod tutorials;

use std::path::PathBuf;

use anyhow::Result;

use lab::Lab;
use stand_ins::StandIns;

/// Runs the checks whose name contains the text; without one, all. True if none failed. `wheel`
/// builds the wheel that is installed.
pub fn run(only: Option<&str>, wheel: fn() -> Result<PathBuf>) -> Result<bool> {
    let lab = Lab::set_up()?;
    let mut checks = Checks {
        only,
        passed: 0,
        failed: 0,
    };
    suites::run(&lab, &mut checks);
    protocol::run(&lab, &mut checks);
    tool_tests::run(&lab, &mut checks);
    tutorials::run(&lab, &mut checks);
    init::run(&lab, &mut checks);
    inspector::run(&lab, &mut checks);
    sdk_clients::run(&lab, &mut checks);
    catalogs::run(&lab, &mut checks);
    readers::run(&lab, &mut checks);
    html::run(&lab, &mut checks);
    install::run(&lab, wheel, &mut checks);
    conformance::run(&lab, &mut checks);
    oauth::run(&lab, &mut checks);
    legacy_sse::run(&lab, &mut checks);
    agents::run(&lab, &mut checks);
    agents_under_test::run(&lab, &mut checks);
    attacks::run(&lab, &mut checks);
    own_agents::run(&lab, &mut checks);
    coding_agents::run(&lab, &mut checks);
    producers::run(&lab, &mut checks);
    signals::run(&lab, &mut checks);
    kills::run(&lab, &mut checks);
    let stand_ins = StandIns::new(&lab);
    providers::run(&lab, &stand_ins, &mut checks);
    proxies::run(&lab, &stand_ins, &mut checks);
    small_model::run(&lab, &stand_ins, &mut checks);
    drop(stand_ins);
    lab.clean_up();
    println!("{} passed, {} failed", checks.passed, checks.failed);
    Ok(checks.failed == 0 && checks.passed > 0)
}

/// Counts, and tells each outcome as it comes.
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
