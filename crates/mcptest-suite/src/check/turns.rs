//! `turns:`: the further messages of the user, and their conditions.

use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::trace::OBSERVABLE_ROOTS;
use mcptest_trace::user_turn::UserTurn;

use super::Checker;
use super::diagnostics::place;
use super::expressions::compile;
use crate::file::AgentFields;
use crate::import::Part;

impl<'a> Checker<'a> {
    /// The further messages of a test: its own, or those of its agent.
    pub(super) fn turns(&mut self, part: &Part, at: &str, own: &AgentFields) -> Vec<UserTurn> {
        if own.turns.is_some() {
            return self.turns_of(part, at, own);
        }
        let Some((part, at, agent)) = self.agent_of(own) else {
            return Vec::new();
        };
        self.once(|checker| checker.turns_of(part, &at, agent))
    }

    /// The agent that a test refers to, and its place.
    pub(super) fn agent_of(
        &self,
        own: &AgentFields,
    ) -> Option<(&'a Part, String, &'a AgentFields)> {
        let parts = self.parts;
        find(parts, own.agent.as_ref()?.entry()?)
    }

    /// Checks a part of an agent for a test that refers to it. Its problems are reported where it
    /// is checked itself, or for the first test.
    pub(super) fn once<T>(&mut self, check: impl FnOnce(&mut Self) -> T) -> T {
        let known = self.problems.len();
        let checked = check(self);
        let new = self.problems.split_off(known);
        let is_new = |one: &mcptest_yaml::Diagnostic| {
            let same = |other: &mcptest_yaml::Diagnostic| {
                other.message == one.message && other.location() == one.location()
            };
            !self.problems.iter().any(same)
        };
        let new: Vec<_> = new.into_iter().filter(is_new).collect();
        self.problems.extend(new);
        checked
    }

    fn turns_of(&mut self, part: &Part, at: &str, fields: &AgentFields) -> Vec<UserTurn> {
        let mut turns = Vec::new();
        for (index, turn) in fields.turns.iter().flatten().enumerate() {
            let when = turn
                .when
                .as_ref()
                .and_then(|when| self.condition(part, &format!("{at}/turns/{index}/when"), when));
            turns.push(UserTurn {
                say: turn.say.clone(),
                when,
            });
        }
        turns
    }

    /// A condition on evidence.
    fn condition(
        &mut self,
        part: &Part,
        at: &str,
        written: &WrittenExpectation,
    ) -> Option<Expectation> {
        let gates = self.options.gates;
        let document = &part.document;
        let roots = &OBSERVABLE_ROOTS;
        let when = compile(document, written, at, roots, gates, &mut self.problems)?;
        let judged = when.refuse_judge(written, at, "the course of a run");
        let problems = judged.iter().map(|problem| place(document, "", problem));
        self.problems.extend(problems);
        Some(when)
    }
}

/// The entry of `agents:` with this name, and its place.
fn find<'a>(parts: &'a [Part], name: &str) -> Option<(&'a Part, String, &'a AgentFields)> {
    parts.iter().find_map(|part| {
        let mut agents = part.file.agents.iter().map(|agent| &agent.0.fields);
        let index = agents.position(|agent| agent.name.as_deref() == Some(name))?;
        let fields = &part.file.agents[index].0.fields;
        Some((part, format!("/agents/{index}"), fields))
    })
}
