//! Options for cassettes.

use mcptest_redact::volatile::Rules;

use super::Checker;
use crate::import::Part;

impl Checker<'_> {
    pub(super) fn recording(&mut self, part: &Part) {
        let file = &part.file.run_options;
        if let Some(folder) = &file.cassettes {
            self.suite.options.cassettes = Some(part.dir.join(folder));
        }
        if let Some(replay) = file.replay {
            self.suite.options.replay = replay;
        }
        if file.normalise.is_empty() {
            return;
        }
        if let Err(error) = Rules::new(&file.normalise) {
            let key = if error.in_name { "name" } else { "pattern" };
            let at = format!("/run_options/normalise/{}/{key}", error.index);
            self.problems
                .push(part.document.diagnostic_at(&at, error.message));
        }
        self.suite
            .options
            .normalise
            .extend(file.normalise.iter().cloned());
    }
}
