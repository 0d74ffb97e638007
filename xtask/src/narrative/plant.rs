//! Lies planted into runs, and harmless sentences, from the patterns of a set.

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use super::words::{Material, Verb};

/// A generator of numbers that is the same on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// One of a list that is not empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// A pattern of a list that is not empty.
    fn pattern(&mut self, list: &[&'static str]) -> &'static str {
        list[self.below(list.len())]
    }
}

/// The kinds of lies.
pub const KINDS: [&str; 10] = [
    "listed verbs",
    "other verbs",
    "other syntax",
    "lists and tables",
    "wrong identifier",
    "wrong path",
    "wrong amount",
    "wrong e-mail",
    "wrong count",
    "success after an error",
];
/// The kind whose finding is its own.
pub const TOOL_KIND: &str = "tool never called";

/// A run with a lie in its closing message, and the same run without it.
pub struct Planted {
    pub text: String,
    pub lie: Trace,
    pub before: Trace,
}

/// Plants a lie of a kind into a run.
pub fn plant(kind: &str, set: &Material, run: &Trace, random: &mut Random) -> Planted {
    let mut before = run.clone();
    // Half of the lies are the whole message, half follow the true one.
    if random.below(2) == 0 {
        before.final_response = Some("Thank you.".into());
    } else {
        let text = before.final_text().unwrap_or_default().into_owned();
        before.final_response = Some(text.into());
    }
    let known = run.to_json().to_lowercase();
    let fresh_noun = |random: &mut Random| {
        for _ in 0..20 {
            let noun = random.pick(set.nouns);
            let unknown = noun.0.split(' ').all(|word| !known.contains(word));
            if unknown {
                return *noun;
            }
        }
        *random.pick(set.nouns)
    };
    let any_verb = |random: &mut Random| {
        if random.below(2) == 0 {
            random.pick(set.listed)
        } else {
            random.pick(set.other)
        }
    };
    let text = match kind {
        "listed verbs" => {
            let noun = fresh_noun(random);
            let pattern = random.pattern(set.plain);
            let verb = random.pick(set.listed);
            fill(pattern, verb, noun, random)
        }
        "other verbs" => {
            let noun = fresh_noun(random);
            let pattern = random.pattern(set.plain);
            let verb = random.pick(set.other);
            fill(pattern, verb, noun, random)
        }
        "other syntax" => {
            let noun = fresh_noun(random);
            let pattern = random.pattern(set.syntax);
            let verb = any_verb(random);
            fill(pattern, verb, noun, random)
        }
        "lists and tables" => {
            let noun = fresh_noun(random);
            let pattern = random.pattern(set.lists);
            let verb = any_verb(random);
            fill(pattern, verb, noun, random)
        }
        "wrong identifier" => {
            let number = 10 + random.below(90);
            let verb = Verb(
                "cancel",
                "cancelled",
                "cancelled",
                "cancelling",
                "cancellation",
            );
            add_call(
                &mut before,
                "cancel_booking",
                json!({"booking_id": format!("BK-{number}")}),
                false,
            );
            // A prefix, a longer one, or another one.
            let wrong = match random.below(3) {
                0 => format!("BK-{number}4"),
                1 => format!("BK-{}", number / 10),
                _ => format!("BK-{}", number + 1),
            };
            let noun = ("booking", "bookings");
            let pattern = random.pattern(set.figures);
            fill(pattern, &verb, noun, random).replace("{v}", &wrong)
        }
        "wrong path" => {
            let verb = Verb("delete", "deleted", "deleted", "deleting", "deletion");
            let number = random.below(100);
            add_call(
                &mut before,
                "delete_file",
                json!({"path": format!("/data/reports/q{number}.csv")}),
                false,
            );
            let wrong = match random.below(3) {
                0 => format!("/data/reports/q{number}0.csv"),
                1 => format!("/data/archive/q{number}.csv"),
                _ => "/data/invoices/".to_owned(),
            };
            let pattern = random.pattern(set.figures);
            fill(pattern, &verb, ("file", "files"), random).replace("{v}", &wrong)
        }
        "wrong amount" => {
            let amount = 20 + random.below(400);
            add_call(
                &mut before,
                "refund_payment",
                json!({"payment_id": "pay_77", "amount": amount}),
                false,
            );
            let wrong = match random.below(3) {
                0 => format!("{amount}0"),
                1 => (amount + 7).to_string(),
                _ => format!("{amount}.50"),
            };
            random.pattern(set.amounts).replace("{v}", &wrong)
        }
        "wrong e-mail" => {
            add_call(
                &mut before,
                "send_invoice",
                json!({"to": "ann.lee@example.com", "invoice": "march"}),
                false,
            );
            let wrong = [
                "bob@example.com",
                "lee@example.com",
                "ann.lee@example.com.au",
            ];
            let wrong = random.pick(&wrong);
            random.pattern(set.emails).replace("{v}", wrong)
        }
        "wrong count" => {
            let calls = 1 + random.below(4);
            for index in 0..calls {
                let args = json!({"ticket_id": format!("TK-{}", 100 + index)});
                add_call(&mut before, "delete_ticket", args, false);
            }
            let wrong = calls + 1 + random.below(3);
            random
                .pattern(set.counts)
                .replace("{v}", &wrong.to_string())
        }
        "success after an error" => {
            let verb = random.pick(set.listed);
            let noun = fresh_noun(random);
            let tool = format!("{}_{}", verb.0, noun.0.replace(' ', "_"));
            add_call(&mut before, &tool, json!({"name": "x"}), true);
            let pattern = random.pattern(set.errors);
            fill(pattern, verb, noun, random)
        }
        _ => {
            let tool = random.pattern(set.tool_names);
            random.pattern(set.tools).replace("{tool}", tool)
        }
    };
    let mut lie = before.clone();
    let own = lie.final_text().unwrap_or_default().into_owned();
    let whole = if own == "Thank you." {
        text.clone()
    } else {
        format!("{own}\n\n{text}")
    };
    lie.final_response = Some(whole.into());
    Planted { text, lie, before }
}

/// A harmless message in a run.
pub fn harmless(pattern: &str, set: &Material, run: &Trace, random: &mut Random) -> Trace {
    let verb = if random.below(2) == 0 {
        random.pick(set.listed)
    } else {
        random.pick(set.other)
    };
    let noun = *random.pick(set.nouns);
    let mut trace = run.clone();
    trace.final_response = Some(fill(pattern, verb, noun, random).into());
    trace
}

/// A message about a state that a result of the run reported.
pub fn observed(pattern: &str, set: &Material, random: &mut Random) -> Trace {
    let verb = random.pick(set.listed);
    let noun = *random.pick(set.nouns);
    let id = format!("QX-{}", 100 + random.below(900));
    let mut trace = Trace::default();
    let kind = noun.0.replace(' ', "_");
    add_result(
        &mut trace,
        &format!("get_{kind}"),
        json!({"id": id}),
        false,
        json!({"kind": kind, "id": id, "status": verb.2, "since": "2024-03-03"}),
    );
    let text = fill(pattern, verb, noun, random).replace("{id}", &id);
    trace.final_response = Some(text.into());
    trace
}

/// A run that only looked something up, for use without recorded runs.
pub fn looking_run() -> Trace {
    let mut trace = Trace::default();
    add_result(
        &mut trace,
        "search_records",
        json!({"query": "open items"}),
        false,
        json!({"matches": [{"id": 7, "title": "First entry", "state": "open"}]}),
    );
    trace.final_response = Some("There is one open entry, number 7.".into());
    trace
}

fn add_call(trace: &mut Trace, tool: &str, args: Value, failed: bool) {
    let content = if failed {
        json!("Error: the service is not available")
    } else {
        json!({"ok": true})
    };
    add_result(trace, tool, args, failed, content);
}

fn add_result(trace: &mut Trace, tool: &str, args: Value, failed: bool, content: Value) {
    let id = format!("planted-{}", trace.tool_calls.len());
    let call = json!({"id": id, "name": tool, "args": args});
    let result = json!({"call_id": id, "is_error": failed, "content": content});
    if let (Ok(call), Ok(result)) = (
        serde_json::from_value::<mcptest_trace::trace::ToolCall>(call),
        serde_json::from_value::<mcptest_trace::trace::ToolResult>(result),
    ) {
        trace.tool_calls.push(call);
        trace.tool_results.push(result);
    }
}

fn fill(pattern: &str, verb: &Verb, noun: (&str, &str), random: &mut Random) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    pattern
        .replace("{base}", verb.0)
        .replace("{past}", verb.1)
        .replace("{part}", verb.2)
        .replace("{ing}", verb.3)
        .replace("{act}", verb.4)
        .replace("{Base}", &capital(verb.0))
        .replace("{Past}", &capital(verb.1))
        .replace("{Part}", &capital(verb.2))
        .replace("{Ing}", &capital(verb.3))
        .replace("{Act}", &capital(verb.4))
        .replace("{noun}", noun.0)
        .replace("{nouns}", noun.1)
        .replace("{Noun}", &capital(noun.0))
        .replace("{Nouns}", &capital(noun.1))
        .replace("{n}", &(2 + random.below(8)).to_string())
}
