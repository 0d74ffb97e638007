//! The delivery of an attack: the moment when the agent received its text.
//!
//! A trace of mcptest marks the delivery. In a trace of another program, it is found by searching
//! for the canary, if it is known, and for the text itself.

use std::borrow::Cow;
use std::cell::OnceCell;

use mcptest_trace::trace::{ToolResultView, TraceView, TurnView};
use serde_json::Value;

use crate::attack::Attack;
use crate::foreign::{ForeignText, ReadableResult};
use crate::record::{ATTACK_KEY, CONTAINED_KEY, InjectedAttack};
use crate::written::Place;

/// The key of traces that have only what passed a proxy: calls and results, no answers.
const RECORDED_BY: &str = "recorded_by";

/// The moment when the agent received the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The index of the first call that can follow from the text.
    pub first_call: usize,
    /// The index of the call whose result carried the text, if one did.
    pub carrier: Option<usize>,
}

impl Delivery {
    /// A delivery before the first call.
    pub const AT_START: Self = Self {
        first_call: 0,
        carrier: None,
    };
}

/// The texts that the model of a run received.
pub struct Received<'a> {
    trace: &'a TraceView<'a>,
    /// The result of each call.
    results: Vec<Option<&'a ToolResultView<'a>>>,
    readable: OnceCell<Vec<Option<ReadableResult>>>,
}

impl<'a> Received<'a> {
    /// Pairs the results of a trace with its calls.
    #[must_use]
    pub fn new(trace: &'a TraceView<'a>) -> Self {
        Self {
            trace,
            results: trace.results_by_call(),
            readable: OnceCell::new(),
        }
    }

    /// The results that the server sent, for searching.
    fn readable(&self) -> &[Option<ReadableResult>] {
        self.readable.get_or_init(|| {
            let results = self.results.iter().map(|result| {
                let result = result.filter(|result| !is_contained(result))?;
                let structured = result.extra("structured_content");
                Some(ReadableResult::new(
                    [result.content(), structured].into_iter().flatten(),
                ))
            });
            results.collect()
        })
    }

    /// Returns true if a result or an argument has a canary.
    fn mentions(&self, canary: &str) -> bool {
        let mut calls = self.trace.tool_calls.iter();
        self.readable()
            .iter()
            .flatten()
            .any(|result| result.has_canary(canary))
            || calls.any(|call| {
                let args = call.args();
                args.is_some_and(|args| ReadableResult::new([args]).has_canary(canary))
            })
    }

    /// The canary of an attack in this run, if it is known: as recorded in the trace, the same in
    /// every run, or derived from the trace's test and run. `runs_each` is the number of runs with
    /// each attack.
    #[must_use]
    pub fn canary(
        &self,
        attack: &Attack,
        record: Option<&InjectedAttack>,
        runs_each: Option<u64>,
    ) -> Option<String> {
        if let Some(canary) = record.and_then(|record| record.canary.clone()) {
            return Some(canary);
        }
        if let Some(fixed) = attack.fixed_canary() {
            return Some(fixed.to_owned());
        }
        // A log of the same run by another program has the canary of that run. Its number counts
        // the runs with this attack; the trace's may count those of the test.
        let (test, run) = (self.trace.test.as_deref()?, self.trace.run?);
        let own = attack.canary(test, run);
        let of_block = runs_each.filter(|runs| *runs > 0 && run > *runs);
        let other = of_block.map(|runs| attack.canary(test, (run - 1) % runs + 1));
        match other {
            Some(other) if self.mentions(&other) => Some(other),
            _ => Some(own),
        }
    }

    /// The delivery of an attack; `None` if the agent never met it.
    #[must_use]
    pub fn delivery(
        &self,
        attack: &Attack,
        record: Option<&InjectedAttack>,
        canary: Option<&str>,
    ) -> Option<Delivery> {
        let marked = |index: usize| {
            self.results
                .get(index)
                .is_some_and(|result| result.is_some_and(|one| is_marked(one, attack.name())))
        };
        if (0..self.results.len()).any(marked) {
            return self.carried(&marked);
        }
        let place = record.map_or(attack.written().place, |record| record.place);
        let is_of_result = matches!(place, Place::Result | Place::Error);
        if let Some(record) = record.filter(|_| !is_of_result) {
            return self.offered(self.recorded_offer(attack, record)?);
        }
        let needle = Needle::of(attack, record, canary);
        if needle.is_empty() {
            return None;
        }
        if !is_of_result {
            let offered = self
                .catalog_offers(attack, &needle)
                .then_some(0)
                .or_else(|| self.offered_in_conversation(&needle));
            if let Some(delivery) = offered.and_then(|calls| self.offered(calls)) {
                return Some(delivery);
            }
        }
        let readable = self.readable();
        self.carried(&|index| {
            let result = readable.get(index).and_then(Option::as_ref);
            result.is_some_and(|result| needle.is_in(result))
        })
    }

    /// The delivery by the first result for which `carries` returns true.
    fn carried(&self, carries: &dyn Fn(usize) -> bool) -> Option<Delivery> {
        let index = (0..self.results.len()).find(|index| carries(*index))?;
        self.asked_after(index).then(|| Delivery {
            first_call: self.first_after(index),
            carrier: Some(index),
        })
    }

    /// The delivery of the text that was offered after this number of calls.
    fn offered(&self, calls: usize) -> Option<Delivery> {
        self.asked_since(calls).then_some(Delivery {
            first_call: calls,
            carrier: None,
        })
    }

    /// The number of calls before the model was offered the text, as recorded in our trace.
    fn recorded_offer(&self, attack: &Attack, record: &InjectedAttack) -> Option<usize> {
        if let Some(calls) = record.offered_after_calls {
            return usize::try_from(calls).ok();
        }
        // In our trace of another agent, the catalog lists the attacker's tool.
        let own = attack.own_tool()?;
        let catalog = self.trace.catalog()?;
        catalog.iter().any(|tool| tool.name() == own).then_some(0)
    }

    /// Returns true if the catalog has the attacker's tool or the text.
    fn catalog_offers(&self, attack: &Attack, needle: &Needle) -> bool {
        let target = &attack.written().target;
        let own_tool = attack.own_tool();
        let catalog = self.trace.catalog().unwrap_or_default();
        catalog.iter().any(|tool| match &own_tool {
            Some(own) => tool.name() == own,
            None => {
                let is_meant = match tool.server() {
                    Some(server) => target.is_tool(server, tool.name()),
                    None => true,
                };
                let values = tool.raw().values();
                is_meant && needle.is_in(&ReadableResult::new(values))
            }
        })
    }

    /// The number of calls before the text is in a message that is not from the model.
    fn offered_in_conversation(&self, needle: &Needle) -> Option<usize> {
        let turns = self.trace.conversation.turns.as_deref()?;
        let mut asked = 0;
        for turn in turns {
            if is_assistant(turn) {
                asked += 1;
                continue;
            }
            let content = turn.content();
            if content.is_some_and(|content| needle.is_in(&ReadableResult::new([content]))) {
                let mut calls = self.trace.tool_calls.iter();
                let later = calls.position(|call| call.turn.is_some_and(|turn| turn > asked));
                return Some(later.unwrap_or(if asked == 0 {
                    0
                } else {
                    self.trace.tool_calls.len()
                }));
            }
        }
        None
    }

    /// Returns true if the model was asked again after this number of calls.
    fn asked_since(&self, calls: usize) -> bool {
        self.trace.tool_calls.len() > calls
            || match calls.checked_sub(1) {
                Some(last) => self.asked_after(last),
                None => {
                    self.trace.final_text().is_some()
                        || self.assistant_turns() > 0
                        || self.is_from_proxy()
                }
            }
    }

    /// The first call that the model made after it had the result of this one. Calls of one turn
    /// are made together.
    fn first_after(&self, call: usize) -> usize {
        let calls = &self.trace.tool_calls;
        let turn = calls.get(call).and_then(|call| call.turn);
        let later = calls.iter().enumerate().skip(call + 1);
        let mut later = later.filter(|(_, later)| match (turn, later.turn) {
            (Some(turn), Some(later)) => later > turn,
            _ => true,
        });
        later.next().map_or(calls.len(), |(index, _)| index)
    }

    /// Returns true if the model was asked again after the result of a call.
    fn asked_after(&self, call: usize) -> bool {
        if self.first_after(call) < self.trace.tool_calls.len() || self.is_from_proxy() {
            return true;
        }
        if self.trace.final_response.is_some() {
            return true;
        }
        match self.trace.tool_calls.get(call).and_then(|call| call.turn) {
            Some(turn) => self.assistant_turns() > turn,
            // Without numbers: something was said after the last result.
            None => {
                let turns = self.trace.conversation.turns.as_deref().unwrap_or_default();
                let results = turns
                    .iter()
                    .any(|turn| matches!(turn.role.as_deref(), Some("tool" | "function")));
                turns.last().is_some_and(is_assistant) && results
            }
        }
    }

    fn assistant_turns(&self) -> u64 {
        let turns = self.trace.conversation.turns.as_deref().unwrap_or_default();
        turns.iter().filter(|turn| is_assistant(turn)).count() as u64
    }

    /// Returns true if only calls and results are known. Then the client had the result, and the
    /// trace cannot show whether it was used.
    fn is_from_proxy(&self) -> bool {
        self.trace.extra(RECORDED_BY).and_then(Value::as_str) == Some("proxy")
            && self.trace.conversation.turns.is_none()
    }
}

/// The strings that show a delivery in a trace without marks.
struct Needle<'a> {
    /// The canary, unless it is data of the server.
    canary: Option<&'a str>,
    texts: Cow<'a, [ForeignText]>,
}

impl<'a> Needle<'a> {
    fn of(attack: &'a Attack, record: Option<&InjectedAttack>, canary: Option<&'a str>) -> Self {
        let recorded = record.and_then(|record| ForeignText::new(record.text.as_deref()?));
        Self {
            canary: canary.filter(|_| !attack.plants()),
            texts: match recorded {
                Some(text) => Cow::Owned(vec![text]),
                None => attack.foreign_texts(canary),
            },
        }
    }

    fn is_empty(&self) -> bool {
        self.canary.is_none() && self.texts.is_empty()
    }

    fn is_in(&self, result: &ReadableResult) -> bool {
        self.canary.is_some_and(|canary| result.has_canary(canary))
            || self.texts.iter().any(|text| result.has_text(text))
    }
}

fn is_assistant(turn: &TurnView<'_>) -> bool {
    turn.role.as_deref() == Some("assistant")
}

/// Returns true if a result carried the text of an attack.
fn is_marked(result: &ToolResultView<'_>, name: &str) -> bool {
    match result.extra(ATTACK_KEY) {
        Some(Value::String(mark)) => mark == name,
        Some(Value::Array(marks)) => marks.iter().any(|mark| mark == name),
        _ => false,
    }
}

fn is_contained(result: &ToolResultView<'_>) -> bool {
    result.extra(CONTAINED_KEY) == Some(&Value::Bool(true))
}
