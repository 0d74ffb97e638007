//! The pairing of calls and results.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::{Raw, ToolResultView, TraceView};

/// An id as pairing compares it: by value. Most ids are strings, which need no parsing.
#[derive(PartialEq, Eq, Hash)]
enum Id<'t> {
    Text(&'t str),
    Other(&'t Value),
}

impl<'t> Id<'t> {
    fn of(raw: &'t Raw<'_>) -> Self {
        match raw.plain_str() {
            Some(text) => Self::Text(text),
            None => match raw.value() {
                Value::String(text) => Self::Text(text),
                other => Self::Other(other),
            },
        }
    }
}

impl<'a> TraceView<'a> {
    /// The number of results that are errors.
    #[must_use]
    pub fn failed_results(&self) -> usize {
        let results = self.tool_results.iter();
        results.filter(|one| one.is_error == Some(true)).count()
    }

    /// For each call, the index of its result: by id where both have one, else by position.
    #[must_use]
    pub fn pair_results(&self) -> Vec<Option<usize>> {
        if let Some(paired) = self.pairs_in_step() {
            return paired;
        }
        let mut paired: Vec<Option<usize>> = vec![None; self.tool_calls.len()];
        let mut used = vec![false; self.tool_results.len()];
        // Where an id was given to several calls, results go to them in order.
        let mut calls_by_id: HashMap<Id<'_>, VecDeque<usize>> = HashMap::new();
        for (at, call) in self.tool_calls.iter().enumerate() {
            if let Some(id) = &call.id {
                calls_by_id.entry(Id::of(id)).or_default().push_back(at);
            }
        }
        for (index, result) in self.tool_results.iter().enumerate() {
            let waiting = result
                .call_id
                .as_ref()
                .and_then(|id| calls_by_id.get_mut(&Id::of(id)));
            if let Some(call) = waiting.and_then(VecDeque::pop_front) {
                paired[call] = Some(index);
                used[index] = true;
            }
        }
        for (index, call) in self.tool_calls.iter().enumerate() {
            // An id on both sides that does not match is another call's result, not this
            // position's.
            let by_position = self.tool_results.get(index).is_some_and(|result| {
                !used[index] && (result.call_id.is_none() || call.id.is_none())
            });
            if paired[index].is_none() && by_position {
                paired[index] = Some(index);
            }
        }
        paired
    }

    /// The pairs of the usual trace: results in the order of the calls, each with its call's id.
    /// A repeated id changes nothing: its results go to its calls in order too.
    fn pairs_in_step(&self) -> Option<Vec<Option<usize>>> {
        if self.tool_calls.len() != self.tool_results.len() {
            return None;
        }
        let mut both = self.tool_calls.iter().zip(&self.tool_results);
        both.all(|(call, result)| match (&call.id, &result.call_id) {
            (Some(id), Some(call_id)) => Id::of(id) == Id::of(call_id),
            _ => false,
        })
        .then(|| (0..self.tool_calls.len()).map(Some).collect())
    }

    /// The result of each call, in the order of the calls.
    #[must_use]
    pub fn results_by_call(&self) -> Vec<Option<&ToolResultView<'a>>> {
        self.pair_results()
            .into_iter()
            .map(|index| index.and_then(|index| self.tool_results.get(index)))
            .collect()
    }
}
