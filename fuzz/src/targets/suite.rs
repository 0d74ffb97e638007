//! Suites: problems have places, and a suite that loads also loads from its resolved form.

use std::io;
use std::path::Path;

use mcptest_gates::GATES;
use mcptest_suite::{LoadOptions, Purpose, ResolvedSuite, load_from};

use crate::property::assert_located;

const NAME: &str = "suite.yml";

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    // Imports would read files of this machine.
    let read_file = |path: &Path| match path == Path::new(NAME) {
        true => Ok(input.to_vec()),
        false => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    for purpose in [Purpose::Run, Purpose::Score] {
        let options = LoadOptions {
            purpose,
            gates: GATES,
            env: &|_| None,
            check_model: &|_| Ok(()),
            providers: &[],
            models: &[],
        };
        match load_from(Path::new(NAME), &options, &read_file) {
            Err(problems) => assert_located(&problems, NAME),
            Ok(loaded) => {
                let resolved = ResolvedSuite::read_from(Path::new(NAME), &options, &read_file);
                let again = match resolved {
                    Ok(resolved) => resolved.load(&options),
                    Err(problems) => panic!("it loads, and cannot be resolved: {problems}"),
                };
                match again {
                    Ok(again) => assert_eq!(
                        again.suite.tests.len(),
                        loaded.suite.tests.len(),
                        "tests are lost in the resolved form"
                    ),
                    Err(problems) => panic!("the resolved form does not load: {problems}"),
                }
            }
        }
    }
}
