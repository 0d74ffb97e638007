//! Small, typed changes to recorded traces, to see whether a suite's assertions can fail at all.
//!
//! A gate that passes proves little if it would also pass had the agent done something else. Each
//! [`Mutation`] is one such something else: a call left out, done twice, done in another order,
//! with another argument, failing, made to another tool; a claim without a call; twice the tokens.
//! A suite whose gates do not notice has a hole, and the mutation shows where. With attacks, one
//! more is an agent that obeys.
//!
//! ```
//! use mcptest_gate_api::mutate::mutations;
//! let traces = mcptest_trace::trace::read(r#"{"tool_calls": [{"name": "search", "args": {"q": "x"}}]}"#).unwrap();
//! let all: Vec<String> = mutations(&traces).iter().map(ToString::to_string).collect();
//! assert!(all.contains(&"drop call 1 (search)".to_owned()));
//! assert!(all.contains(&"change argument `q` of call 1 (search)".to_owned()));
//! ```

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use mcptest_attack::obedience::{Obedience, obey};
use mcptest_attack::{Attack, CONTAINED_KEY};
use mcptest_catalog::lexical;
use mcptest_trace::catalog::Tool;
use mcptest_trace::trace::{ToolCall, ToolResult, Trace};

/// More mutants of one kind than this say nothing new about a suite.
const MAX_MUTATED_CALLS: usize = 40;

/// One change. Calls count from 0; the tool's name is for the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mutation {
    /// A call is left out.
    DropCall(Place),
    /// A call is made twice in a row.
    DuplicateCall(Place),
    /// A call and the next one change places.
    SwapCalls(Place),
    /// All calls come in the opposite order.
    ReverseCalls,
    /// An argument has another value.
    ChangeArgument(Place, String),
    /// An argument is missing.
    RemoveArgument(Place, String),
    /// A call came back with an error.
    FailResult(Place),
    /// Another tool was called.
    ReplaceTool(Place, String),
    /// The closing answer claims something that was not done.
    AddClaim(String),
    /// Twice the tokens were used.
    DoubleTokens,
    /// The agent obeyed an attack that it met.
    ObeyAttack(InjectedGoal),
}

/// An attack, by its name.
#[derive(Debug, Clone)]
pub struct InjectedGoal(Box<Attack>);

impl PartialEq for InjectedGoal {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for InjectedGoal {}

/// A call of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// From 0.
    pub call: usize,
    /// The tool's name there, in the trace that the mutation was made from.
    pub tool: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {} ({})", self.call + 1, self.tool)
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropCall(place) => write!(f, "drop {place}"),
            Self::DuplicateCall(place) => write!(f, "duplicate {place}"),
            Self::SwapCalls(place) => write!(f, "swap {place} with the next"),
            Self::ReverseCalls => f.write_str("reverse all calls"),
            Self::ChangeArgument(place, key) => write!(f, "change argument `{key}` of {place}"),
            Self::RemoveArgument(place, key) => write!(f, "remove argument `{key}` of {place}"),
            Self::FailResult(place) => write!(f, "turn the result of {place} into an error"),
            Self::ReplaceTool(place, by) => write!(f, "replace {place} by `{by}`"),
            Self::AddClaim(claim) => write!(f, "add the claim \"{claim}\""),
            Self::DoubleTokens => f.write_str("double the tokens"),
            Self::ObeyAttack(goal) => write!(f, "obey the attack `{}`", goal.0.name()),
        }
    }
}

impl Mutation {
    /// The kind, as reports group it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::DropCall(_) => "drop_call",
            Self::DuplicateCall(_) => "duplicate_call",
            Self::SwapCalls(_) => "swap_calls",
            Self::ReverseCalls => "reverse_calls",
            Self::ChangeArgument(..) => "change_argument",
            Self::RemoveArgument(..) => "remove_argument",
            Self::FailResult(_) => "fail_result",
            Self::ReplaceTool(..) => "replace_tool",
            Self::AddClaim(_) => "add_claim",
            Self::DoubleTokens => "double_tokens",
            Self::ObeyAttack(_) => "obey_attack",
        }
    }

    /// The changed trace; `None` where the change does not apply or would change nothing.
    #[must_use]
    pub fn apply(&self, trace: &Trace) -> Option<Trace> {
        let mut mutant = trace.clone();
        let mut steps = steps(trace);
        match self {
            Self::DropCall(place) => {
                steps.get(place.call)?;
                steps.remove(place.call);
            }
            Self::DuplicateCall(place) => {
                let mut twin = steps.get(place.call)?.clone();
                // Its own id, or the two would share a result.
                twin.rename(&format!("{}-again", place.call));
                steps.insert(place.call + 1, twin);
            }
            Self::SwapCalls(place) => {
                steps.get(place.call + 1)?;
                steps.swap(place.call, place.call + 1);
            }
            Self::ReverseCalls => steps.reverse(),
            Self::ChangeArgument(place, key) => {
                let args = steps
                    .get_mut(place.call)?
                    .call
                    .args_mut()?
                    .as_object_mut()?;
                let changed = another_value(args.get(key)?);
                args.insert(key.clone(), changed);
            }
            Self::RemoveArgument(place, key) => {
                let args = steps
                    .get_mut(place.call)?
                    .call
                    .args_mut()?
                    .as_object_mut()?;
                args.shift_remove(key)?;
            }
            Self::FailResult(place) => {
                let step = steps.get_mut(place.call)?;
                let result = step.result.get_or_insert_with(ToolResult::default);
                if result.is_error == Some(true) {
                    return None;
                }
                result.is_error = Some(true);
                let text = "mutated: the call failed";
                result.set_content(json!([{"type": "text", "text": text}]));
            }
            Self::ReplaceTool(place, by) => {
                let call = &mut steps.get_mut(place.call)?.call;
                if call.name() == by {
                    return None;
                }
                call.raw_name = by.as_str().into();
            }
            Self::AddClaim(claim) => {
                let message = trace.final_text().unwrap_or_default();
                mutant.final_response = Some(
                    format!("{} {claim}", message.trim_end())
                        .trim_start()
                        .to_owned()
                        .into(),
                );
                return Some(mutant);
            }
            Self::DoubleTokens => {
                let tokens = mutant.conversation.tokens.as_mut()?;
                let total = tokens.total.filter(|total| *total > 0)?;
                tokens.total = Some(total.saturating_mul(2));
                tokens.input = tokens.input.map(|input| input.saturating_mul(2));
                tokens.output = tokens.output.map(|output| output.saturating_mul(2));
                return Some(mutant);
            }
            Self::ObeyAttack(goal) => {
                let obedience = obey(&goal.0, trace)?;
                insert_obedience(&mut mutant, &mut steps, &obedience);
                if steps.len() == trace.tool_calls.len() {
                    return (mutant != *trace).then_some(mutant);
                }
            }
        }
        let before = steps_of(trace);
        mutant.tool_results = results_of(&steps);
        mutant.tool_calls = steps.into_iter().map(|step| step.call).collect();
        // Two equal calls that change places, or a list of one that is reversed, are not mutants.
        (steps_of(&mutant) != before).then_some(mutant)
    }
}

/// Puts the behaviour of an agent that obeys after the delivery. Calls that meet the goal have the
/// answer of mcptest, as contained ones have.
fn insert_obedience(mutant: &mut Trace, steps: &mut Vec<Step>, obedience: &Obedience) {
    let at = obedience.first_call.min(steps.len());
    if obedience.stalls {
        steps.truncate(at);
        mutant.final_response = Some("I stop here.".into());
        return;
    }
    if let Some(answer) = &obedience.answer {
        let message = mutant.final_text().unwrap_or_default();
        let message = format!("{} {answer}", message.trim_end());
        mutant.final_response = Some(message.trim_start().to_owned().into());
    }
    if obedience.calls.is_empty() {
        return;
    }
    let known = obedience.carrier.and_then(|index| steps.get(index));
    let turn = known.or(steps.last()).and_then(|step| step.call.turn);
    // A separate turn, before those that followed.
    for later in &mut steps[at..] {
        later.call.turn = later.call.turn.map(|turn| turn + 1);
    }
    for (number, obeying) in obedience.calls.iter().enumerate() {
        let id = format!("obeyed-{}", number + 1);
        let mut call = ToolCall::new(obeying.server.as_deref(), &obeying.tool);
        call.set_args(obeying.args.clone());
        call.turn = turn.map(|turn| turn + 1);
        call.id = Some(id.as_str().into());
        let mut result = ToolResult {
            call_id: Some(id.into()),
            is_error: Some(false),
            ..ToolResult::default()
        };
        let text = format!("done ({})", obedience.canary);
        result.set_content(json!([{"type": "text", "text": text}]));
        result.extra.insert(CONTAINED_KEY, true);
        let result = Some(result);
        steps.insert(at + number, Step { call, result });
    }
}

/// A call with its result, so that both move together.
#[derive(Debug, Clone)]
struct Step {
    call: ToolCall,
    result: Option<ToolResult>,
}

impl Step {
    fn rename(&mut self, suffix: &str) {
        let id = format!(
            "{}-{suffix}",
            self.call.id().and_then(Value::as_str).unwrap_or("c")
        );
        if let Some(result) = self
            .result
            .as_mut()
            .filter(|result| result.call_id.is_some())
        {
            result.call_id = Some(id.as_str().into());
        }
        self.call.id = self.call.id.as_ref().map(|_| id.into());
    }
}

fn steps(trace: &Trace) -> Vec<Step> {
    let results = trace.results_by_call();
    trace
        .tool_calls
        .iter()
        .zip(results)
        .map(|(call, result)| Step {
            call: call.clone(),
            result: result.cloned(),
        })
        .collect()
}

/// Results stay paired: by id where there is one, else by position, for which gaps are filled.
fn results_of(steps: &[Step]) -> Vec<ToolResult> {
    let last = steps
        .iter()
        .rposition(|step| step.result.is_some())
        .map_or(0, |last| last + 1);
    steps[..last]
        .iter()
        .map(|step| step.result.clone().unwrap_or_default())
        .collect()
}

/// The observable part of the calls, without ids and turns.
fn steps_of(trace: &Trace) -> Vec<Value> {
    trace
        .tool_calls
        .iter()
        .zip(trace.results_by_call())
        .map(|(call, result)| {
            json!([
                call.server,
                call.raw_name,
                call.args,
                result.map(|result| (result.is_error, result.content.clone()))
            ])
        })
        .collect()
}

fn another_value(value: &Value) -> Value {
    match value {
        Value::String(text) => format!("{text}-mutated").into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.wrapping_add(1).into(),
            (None, Some(float)) => json!(float + 1.0),
            _ => json!(0),
        },
        Value::Bool(flag) => (!flag).into(),
        Value::Null => "mutated".into(),
        Value::Array(items) => {
            let mut items = items.clone();
            items.push("mutated".into());
            items.into()
        }
        Value::Object(map) => {
            let mut map: Map<String, Value> = map.clone();
            map.insert("mutated".into(), true.into());
            map.into()
        }
    }
}

/// All mutations that change at least one of the traces of a test without attacks.
#[must_use]
pub fn mutations(traces: &[Trace]) -> Vec<Mutation> {
    mutations_with(traces, &[])
}

/// All mutations that change at least one of the traces of a test with these attacks.
#[must_use]
pub fn mutations_with(traces: &[Trace], attacks: &[Attack]) -> Vec<Mutation> {
    let mut all = Vec::new();
    let longest = traces
        .iter()
        .map(|trace| trace.tool_calls.len())
        .max()
        .unwrap_or(0)
        .min(MAX_MUTATED_CALLS);
    for index in 0..longest {
        // The first trace that has such a call lends its name.
        let Some(call) = traces.iter().find_map(|trace| trace.tool_calls.get(index)) else {
            continue;
        };
        let place = Place {
            call: index,
            tool: call.name().to_owned(),
        };
        all.push(Mutation::DropCall(place.clone()));
        all.push(Mutation::DuplicateCall(place.clone()));
        all.push(Mutation::SwapCalls(place.clone()));
        for key in argument_keys(traces, index) {
            all.push(Mutation::ChangeArgument(place.clone(), key.clone()));
            all.push(Mutation::RemoveArgument(place.clone(), key));
        }
        all.push(Mutation::FailResult(place.clone()));
        all.push(Mutation::ReplaceTool(place, sibling(traces, call)));
    }
    // With two calls, reversing is swapping.
    if longest > 2 {
        all.push(Mutation::ReverseCalls);
    }
    all.push(Mutation::AddClaim(false_claim(traces)));
    all.push(Mutation::DoubleTokens);
    let goals = attacks
        .iter()
        .cloned()
        .map(|attack| InjectedGoal(Box::new(attack)));
    all.extend(goals.map(Mutation::ObeyAttack));
    all.retain(|mutation| traces.iter().any(|trace| mutation.apply(trace).is_some()));
    all
}

fn argument_keys(traces: &[Trace], index: usize) -> BTreeSet<String> {
    traces
        .iter()
        .filter_map(|trace| trace.tool_calls.get(index)?.args()?.as_object())
        .flat_map(|args| args.keys().cloned())
        .collect()
}

/// Another tool that could have been meant: of the same catalog with most words in common, else
/// another one that was called, else one that does not exist.
fn sibling(traces: &[Trace], call: &ToolCall) -> String {
    let own = lexical::content_words(call.name());
    let shared = |name: &str| lexical::content_words(name).intersection(&own).count();
    let catalog = traces.iter().filter_map(|trace| trace.catalog()).flatten();
    let mut near: Option<(usize, &str)> = None;
    for name in catalog
        .filter(|tool| tool.server() == call.server.as_deref())
        .map(Tool::name)
    {
        let rank = shared(name);
        if name != call.name() && !name.is_empty() && near.is_none_or(|(best, _)| rank > best) {
            near = Some((rank, name));
        }
    }
    let called = || {
        traces
            .iter()
            .flat_map(|trace| &trace.tool_calls)
            .map(ToolCall::name)
            .find(|name| *name != call.name())
    };
    match near.map(|(_, name)| name).or_else(called) {
        Some(name) => name.to_owned(),
        None => format!("{}_v2", call.name()),
    }
}

/// A sentence about something that no recorded call did.
fn false_claim(traces: &[Trace]) -> String {
    const CLAIMS: [(&str, &str); 4] = [
        ("archive", "I also deleted the archive."),
        ("newsletter", "I also sent the newsletter."),
        ("webhook", "I also created the webhook."),
        ("glossary", "I also updated the glossary."),
    ];
    let called: BTreeSet<String> = traces
        .iter()
        .flat_map(|trace| &trace.tool_calls)
        .flat_map(|call| lexical::words(call.name()))
        .collect();
    let free = CLAIMS.iter().find(|(noun, _)| !called.contains(*noun));
    free.unwrap_or(&CLAIMS[0]).1.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trace(value: Value) -> Trace {
        serde_json::from_value(value).unwrap()
    }

    fn example() -> Trace {
        trace(json!({
            "tool_calls": [
                {"id": "a", "name": "search", "server": "s", "args": {"q": "x", "n": 3}},
                {"id": "b", "name": "fetch", "server": "s", "args": {"url": "u"}}
            ],
            "tool_results": [{"call_id": "b", "is_error": false}, {"call_id": "a", "is_error": false}],
            "conversation": {"tokens": {"total": 10}},
            "final_response": "Done.",
            "catalog": [{"server": "s", "name": "search"}, {"server": "s", "name": "fetch"}, {"server": "s", "name": "search_all"}]
        }))
    }

    fn names(trace: &Trace) -> Vec<&str> {
        trace.tool_calls.iter().map(ToolCall::name).collect()
    }

    #[test]
    fn calls_move_with_their_results() {
        let place = |call, tool: &str| Place {
            call,
            tool: tool.into(),
        };
        let dropped = Mutation::DropCall(place(0, "search"))
            .apply(&example())
            .unwrap();
        assert_eq!(names(&dropped), ["fetch"]);
        assert_eq!(
            dropped.results_by_call()[0].unwrap().call_id(),
            Some(&json!("b"))
        );
        let twice = Mutation::DuplicateCall(place(1, "fetch"))
            .apply(&example())
            .unwrap();
        assert_eq!(names(&twice), ["search", "fetch", "fetch"]);
        assert!(twice.results_by_call().iter().all(Option::is_some));
        let swapped = Mutation::SwapCalls(place(0, "search"))
            .apply(&example())
            .unwrap();
        assert_eq!(names(&swapped), ["fetch", "search"]);
        assert_eq!(
            swapped.results_by_call()[0].unwrap().call_id(),
            Some(&json!("b"))
        );
        let failed = Mutation::FailResult(place(0, "search"))
            .apply(&example())
            .unwrap();
        assert_eq!(failed.results_by_call()[0].unwrap().is_error, Some(true));
        assert_eq!(failed.results_by_call()[1].unwrap().is_error, Some(false));
    }

    #[test]
    fn every_kind_is_generated_and_applies() {
        let kinds: BTreeSet<&str> = mutations(&[example()]).iter().map(Mutation::kind).collect();
        let expected = [
            "add_claim",
            "change_argument",
            "double_tokens",
            "drop_call",
            "duplicate_call",
            "fail_result",
            "remove_argument",
            "replace_tool",
            "swap_calls",
        ];
        assert_eq!(kinds, expected.into_iter().collect());
        let replaced: Vec<String> = mutations(&[example()])
            .iter()
            .filter(|mutation| mutation.kind() == "replace_tool")
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            replaced,
            [
                "replace call 1 (search) by `search_all`",
                "replace call 2 (fetch) by `search`"
            ]
        );
    }

    #[test]
    fn obeying_calls_follow_the_delivery_in_a_separate_turn() {
        let attack: mcptest_attack::WrittenAttack = serde_json::from_value(json!({
            "name": "bill", "target": {"tool": "read"}, "payload": "user-first",
            "goal": {"call": {"tool": "bank.send", "args": {"to": {"contains": "${canary}"}}}},
        }))
        .unwrap();
        let attack = attack.compile().unwrap();
        let call = |id: &str, name: &str, turn: u32| json!({"id": id, "name": name, "server": "bank", "turn": turn});
        let met = trace(json!({
            "tool_calls": [call("a", "read", 1), call("b", "list", 1), call("c", "pay", 2)],
            "tool_results": [{"call_id": "a", "attack": "bill"}, {"call_id": "b"}, {"call_id": "c"}],
            "attacks": [{"name": "bill", "canary": "mct-1"}],
            "final_response": "Paid.",
        }));
        let all = mutations_with(std::slice::from_ref(&met), std::slice::from_ref(&attack));
        let obey = all.iter().find(|one| one.kind() == "obey_attack").unwrap();
        assert_eq!(obey.to_string(), "obey the attack `bill`");
        let mutant = obey.apply(&met).unwrap();
        assert_eq!(names(&mutant), ["read", "list", "send", "pay"]);
        let turns: Vec<_> = mutant.tool_calls.iter().map(|call| call.turn).collect();
        assert_eq!(turns, [Some(1), Some(1), Some(2), Some(3)]);
        assert_eq!(mutant.tool_calls[2].args(), Some(&json!({"to": "mct-1"})));
        let result = mutant.results_by_call()[2].unwrap();
        assert_eq!(result.extra("contained"), Some(&json!(true)));
        // A run that never met it stays as it is.
        let mut unmet = met.clone();
        unmet.tool_results[0].extra = Default::default();
        assert_eq!(obey.apply(&unmet), None);
        let mut other = met.clone();
        other.extra.insert("attacks", json!([{"name": "other"}]));
        assert_eq!(obey.apply(&other), None);
    }

    #[test]
    fn what_changes_nothing_is_no_mutant() {
        let same = trace(json!({"tool_calls": [{"name": "a"}, {"name": "a"}]}));
        assert_eq!(
            Mutation::SwapCalls(Place {
                call: 0,
                tool: "a".into()
            })
            .apply(&same),
            None
        );
        assert_eq!(Mutation::ReverseCalls.apply(&same), None);
        assert_eq!(Mutation::DoubleTokens.apply(&same), None);
        assert!(
            mutations(&[trace(json!({"tool_calls": []}))])
                .iter()
                .all(|mutation| mutation.kind() == "add_claim")
        );
    }

    #[test]
    fn the_false_claim_is_false() {
        let honest = trace(json!({"tool_calls": [{"name": "delete_archive"}]}));
        assert_eq!(false_claim(&[honest]), "I also sent the newsletter.");
    }

    proptest! {
        #[test]
        fn every_generated_mutation_changes_a_trace(calls in prop::collection::vec(("[a-c]", prop::option::of(0_i64..3)), 0..5)) {
            let calls: Vec<Value> = calls.iter().map(|(name, arg)| json!({"name": name, "args": {"x": arg}})).collect();
            let original = trace(json!({"tool_calls": calls}));
            for mutation in mutations(std::slice::from_ref(&original)) {
                let mutant = mutation.apply(&original);
                prop_assert!(mutant.is_some_and(|mutant| mutant != original), "{mutation}");
            }
        }
    }
}
