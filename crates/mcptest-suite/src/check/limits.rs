//! Budgets and early stopping.

use mcptest_gate_api::LoadedGate;
use mcptest_numbers::usd::{MAX_DECIMALS, MAX_DOLLARS, Usd};
use serde_json::Number;

use super::Checker;
use super::diagnostics::{item_place, key_error};
use crate::file::AgentFields;
use crate::import::Part;
use crate::limits::{StopFile, TestBudget, WrittenRuns};

impl Checker<'_> {
    /// Merges the limits of all files; those of the importing file win.
    pub(super) fn budget(&mut self, part: &Part) {
        let file = &part.file.budget;
        if let Some(cap) = self.dollars(part, "/budget/per_test_usd", file.per_test_usd.as_ref()) {
            self.suite.budget.per_test_usd = Some(cap);
        }
        if let Some(cap) = self.dollars(part, "/budget/per_suite_usd", file.per_suite_usd.as_ref())
        {
            self.suite.budget.usd = Some(cap);
        }
        if let Some(duration) =
            self.duration(part, "/budget/max_duration", file.max_duration.as_ref())
        {
            self.suite.budget.duration = Some(duration);
        }
        self.suite.budget.tokens = file.max_tokens.or(self.suite.budget.tokens);
    }

    fn dollars(&mut self, part: &Part, at: &str, written: Option<&Number>) -> Option<Usd> {
        let written = written?;
        let amount = Usd::from_number(written);
        if amount.is_none() {
            let message = format!(
                "{written} is not an amount of dollars: expected a number from 0 to {MAX_DOLLARS} \
                 with at most {MAX_DECIMALS} decimals"
            );
            self.problems.push(part.document.diagnostic_at(at, message));
        }
        amount
    }

    /// The limits of one test. Under a limit in dollars every model must have a price.
    pub(super) fn test_budget(
        &mut self,
        part: &Part,
        at: &str,
        own: &AgentFields,
        base: Option<&AgentFields>,
        is_external: bool,
    ) -> TestBudget {
        let at_budget = format!("{at}/budget");
        let written = own.budget.as_ref();
        let own_usd = self.dollars(
            part,
            &format!("{at_budget}/usd"),
            written.and_then(|budget| budget.usd.as_ref()),
        );
        // An agent's amount is checked in the agent, if it is itself a test; an invalid one is
        // ignored here.
        let inherited = base.and_then(|base| base.budget.as_ref());
        let base_usd = inherited.and_then(|budget| Usd::from_number(budget.usd.as_ref()?));
        let budget = TestBudget {
            usd: own_usd.or(base_usd).or(self.suite.budget.per_test_usd),
            tokens: written
                .and_then(|budget| budget.max_tokens)
                .or_else(|| inherited?.max_tokens),
        };
        // An agent under test reports its cost itself.
        if !is_external && (budget.usd.is_some() || self.suite.budget.usd.is_some()) {
            let models = own.models.as_ref().or_else(|| base?.models.as_ref());
            for (index, model) in models.iter().flat_map(|models| &models.0).enumerate() {
                let place = if own.models.is_some() {
                    item_place(part, at, &["models", "model"], index)
                } else {
                    format!("{at}/agent")
                };
                self.priced(part, &place, model);
            }
        }
        budget
    }

    /// Checks that a model under a limit in dollars has a price.
    pub(super) fn priced(&mut self, part: &Part, place: &str, model: &str) {
        // A built-in model is free, unless the suite sets a price.
        if model.starts_with("builtin/") || self.suite.prices.find(model).is_some() {
            return;
        }
        let message =
            format!("no price is known for model `{model}`, so a limit in dollars cannot apply");
        self.problems
            .push(part.document.diagnostic_at(place, message).help(format!(
                "add `prices: {{ {model}: {{ input_per_mtok: 1.5, output_per_mtok: 6 }} }}` with its prices"
            )));
    }

    /// Returns true if a test stops when its verdicts are decided; warns if a gate needs all runs.
    pub(super) fn stops_when_decided(
        &mut self,
        part: &Part,
        at: &str,
        runs: Option<WrittenRuns>,
        gates: &[LoadedGate],
    ) -> bool {
        let decided = runs.is_some_and(|runs| runs.stop == Some(StopFile::Decided));
        let needs_all = gates.iter().find(|gate| !gate.decides_early());
        if let (true, Some(gate)) = (decided, needs_all) {
            let block = gate.info().block;
            let message =
                format!("`{block}` needs all runs, so `stop: decided` never stops this test early");
            self.problems
                .push(key_error(part, &format!("{at}/{block}"), message).warning());
        }
        decided
    }
}
