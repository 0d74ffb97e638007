//! Suites for tests of this crate.

use std::path::Path;
use std::sync::Arc;

use mcptest_suite::{LoadOptions, Purpose, Suite, load};

/// Loads a suite from its text. The text must be valid.
pub fn suite(folder: &Path, text: &str) -> Arc<Suite> {
    suite_for(Purpose::Run, folder, text)
}

/// Loads a suite for running or for scoring from its text. The text must be valid.
pub fn suite_for(purpose: Purpose, folder: &Path, text: &str) -> Arc<Suite> {
    let file = folder.join("suite.yml");
    std::fs::write(&file, text).expect("a file");
    let options = LoadOptions {
        purpose,
        gates: mcptest_gates::GATES,
        env: &|_| None,
        check_model: &crate::check_model,
        providers: &crate::built_in_providers(),
        models: &[],
    };
    match load(&file, &options) {
        Ok(loaded) => Arc::new(loaded.suite),
        Err(problems) => {
            let messages = problems.0.iter().map(|problem| problem.message.as_str());
            panic!("{:?}", messages.collect::<Vec<_>>())
        }
    }
}
