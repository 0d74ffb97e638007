//! Distractors: tools that no server has. They are added to lists, and the proxy refuses their
//! calls.

use std::collections::BTreeSet;

use mcptest_catalog::distractors::{Distractors, PlannedRun, offer_order, plan_injection, refusal};
use mcptest_protocol::{Revision, meta};
use mcptest_trace::catalog::Tool;
use mcptest_trace::tool_id;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The distractors to add.
#[derive(Debug, Clone)]
pub struct DistractorPlan {
    source: Source,
    /// The seed of the order of tools.
    seed: u64,
}

/// The origin of the distractors.
#[derive(Debug, Clone)]
enum Source {
    /// Those that a run of the block would get, for the tools that the server lists.
    Block { block: Box<Distractors>, count: u32 },
    /// These tools, which were chosen before.
    Tools(Vec<Tool>),
}

impl DistractorPlan {
    /// Plans the distractors of run `run` (from 1) of a test. If the block has several counts, the
    /// first one applies.
    #[must_use]
    pub fn new(block: Distractors, test: &str, run: u32) -> Self {
        let run = run.max(1);
        let schedule = block.schedule(test, run);
        let planned = schedule.get(run as usize - 1).copied();
        let planned = planned.unwrap_or(PlannedRun { count: 0, seed: 0 });
        Self {
            source: Source::Block {
                block: Box::new(block),
                count: planned.count,
            },
            seed: planned.seed,
        }
    }

    /// Plans these distractors. `seed` decides about the order of tools.
    #[must_use]
    pub fn of_tools(tools: Vec<Tool>, seed: u64) -> Self {
        Self {
            source: Source::Tools(tools),
            seed,
        }
    }

    /// The distractors for a server that lists these tools.
    fn tools(&self, real: &[Tool]) -> Result<Vec<Tool>, String> {
        match &self.source {
            Source::Block { block, count } => {
                plan_injection(block, real, *count, self.seed).map_err(|error| error.to_string())
            }
            Source::Tools(tools) => Ok(tools.clone()),
        }
    }
}

/// The distractors of a session.
#[derive(Debug)]
pub(crate) struct DistractorInjector {
    plan: DistractorPlan,
    /// The real tools of the current listing, over all pages so far.
    real: Vec<Tool>,
    names: BTreeSet<String>,
    /// The ids of all offered distractors, as in the trace.
    pub(crate) ids: Vec<String>,
    /// The reason why none could be added.
    pub(crate) failure: Option<String>,
}

/// A line with a list of tools, split around the list.
struct SplitLine<'a> {
    before: &'a str,
    tools: Vec<&'a RawValue>,
    after: &'a str,
    is_last: bool,
}

impl DistractorInjector {
    pub(crate) fn new(plan: DistractorPlan) -> Self {
        Self {
            plan,
            real: Vec::new(),
            names: BTreeSet::new(),
            ids: Vec::new(),
            failure: None,
        }
    }

    /// Returns true if the tool is a distractor.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.names.contains(tool)
    }

    /// Handles a page of a listing for the client. On the last page, when all real names are known,
    /// the distractors are added and the tools of that page reordered; every other byte stays.
    /// Returns the new line and the distractors.
    pub(crate) fn add_to_page(
        &mut self,
        line: &[u8],
        server: Option<&str>,
        first_page: bool,
    ) -> Option<(Vec<u8>, Vec<Tool>)> {
        if first_page {
            self.real.clear();
        }
        let Some(split) = split_line(line) else {
            self.failure.get_or_insert_with(|| {
                "a list of tools could not be parsed, so it was passed on unchanged".to_owned()
            });
            return None;
        };
        let listed = split.tools.iter().filter_map(|raw| {
            let tool: Value = serde_json::from_str(raw.get()).ok()?;
            Tool::from_listing(server, &tool)
        });
        self.real.extend(listed);
        if !split.is_last {
            return None;
        }
        let fakes = match self.plan.tools(&self.real) {
            Ok(fakes) => fakes,
            Err(error) => {
                self.failure.get_or_insert(error);
                return None;
            }
        };
        for fake in &fakes {
            let id = tool_id::full_id(fake.server(), fake.name());
            if !self.ids.contains(&id) {
                self.ids.push(id);
            }
            self.names.insert(fake.name().to_owned());
        }
        let texts: Vec<String> = fakes.iter().map(as_listed).collect();
        let all: Vec<&str> = split
            .tools
            .iter()
            .map(|raw| raw.get())
            .chain(texts.iter().map(String::as_str))
            .collect();
        let order = offer_order(all.len(), self.plan.seed);
        let list: Vec<&str> = order
            .into_iter()
            .filter_map(|index| all.get(index).copied())
            .collect();
        let line = format!("{}[{}]{}", split.before, list.join(","), split.after);
        Some((line.into_bytes(), fakes))
    }
}

/// Finds the list in a reply.
fn split_line(line: &[u8]) -> Option<SplitLine<'_>> {
    #[derive(Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        result: Listing<'a>,
    }
    #[derive(Deserialize)]
    struct Listing<'a> {
        #[serde(borrow)]
        tools: &'a RawValue,
        #[serde(borrow, rename = "nextCursor", default)]
        next_cursor: Option<&'a RawValue>,
    }
    let line = std::str::from_utf8(line).ok()?;
    let Reply { result } = serde_json::from_str(line).ok()?;
    let list = result.tools.get();
    let start = (list.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    Some(SplitLine {
        before: line.get(..start)?,
        tools: serde_json::from_str(list).ok()?,
        after: line.get(start + list.len()..)?,
        is_last: result
            .next_cursor
            .is_none_or(|cursor| matches!(cursor.get(), "null" | "\"\"")),
    })
}

/// A tool as a server lists it: without the server's name, which only our traces have.
fn as_listed(tool: &Tool) -> String {
    let mut raw: Map<String, Value> = tool.raw().clone();
    raw.remove("server");
    Value::Object(raw).to_string()
}

/// The proxy's answer to a call of a distractor.
pub(crate) fn answer(message: &Value, tool: &str) -> Value {
    error_answer(message, &refusal(tool))
}

/// An answer of the proxy to a call: an error result with this text.
pub(crate) fn error_answer(message: &Value, text: &str) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    let version = message
        .get("params")
        .and_then(|params| params.get("_meta")?.get(meta::PROTOCOL_VERSION)?.as_str());
    if version
        .and_then(Revision::from_wire)
        .is_some_and(Revision::is_stateless)
    {
        result["resultType"] = "complete".into();
    }
    json!({"jsonrpc": "2.0", "id": message.get("id"), "result": result})
}

#[cfg(test)]
mod tests {
    use mcptest_catalog::distractors::Distractors;
    use proptest::prelude::*;

    use super::*;

    fn injector(block: Value) -> DistractorInjector {
        let block: Distractors = serde_json::from_value(block).expect("a block");
        DistractorInjector::new(DistractorPlan::new(block, "t", 1))
    }

    fn of_catalog(count: u32) -> DistractorInjector {
        injector(json!({"count": count, "source": {"from": "catalog"}, "seed": 7}))
    }

    #[test]
    fn tools_are_added_and_every_other_byte_stays() {
        let line = "{ \"id\":1,\"jsonrpc\":\"2.0\",  \"result\": {\"ttlMs\": 1e3, \"tools\" : \
                    [ {\"name\":\"a\", \"x\": 1.50}, {\"name\":\"b\"} ], \"z\":1 } }\r\n";
        let mut distractor = of_catalog(3);
        let (new, fakes) = distractor
            .add_to_page(line.as_bytes(), Some("web"), true)
            .expect("a list");
        let new = String::from_utf8(new).expect("UTF-8");
        assert_eq!(fakes.len(), 3);
        let (before, rest) = new.split_once('[').expect("a list");
        assert_eq!(
            before,
            "{ \"id\":1,\"jsonrpc\":\"2.0\",  \"result\": {\"ttlMs\": 1e3, \"tools\" : "
        );
        assert!(rest.ends_with("], \"z\":1 } }\r\n"), "{rest}");
        assert!(rest.contains("{\"name\":\"a\", \"x\": 1.50}"), "{rest}");
        let reply: Value = serde_json::from_str(&new).expect("JSON");
        let names: Vec<&str> = reply["result"]["tools"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert_eq!(names.len(), 5);
        assert!(!new.contains("\"server\""));
        assert_eq!(distractor.ids.len(), 3);
        for fake in &fakes {
            assert!(names.contains(&fake.name()) && distractor.has(fake.name()));
            assert!(distractor.ids.contains(&format!("web.{}", fake.name())));
        }
        // The same list again gives the same offer and nothing new in the trace.
        let again = distractor
            .add_to_page(line.as_bytes(), Some("web"), true)
            .expect("a list")
            .0;
        assert_eq!(again, new.as_bytes());
        assert_eq!(distractor.ids.len(), 3);
    }

    #[test]
    fn distractors_are_added_to_the_last_page() {
        let block =
            json!({"count": 2, "source": {"from": "near_duplicate", "of": ["search"]}, "seed": 1});
        let mut distractor = injector(block);
        let first = br#"{"id":1,"result":{"tools":[{"name":"search"}],"nextCursor":"p2"}}"#;
        assert!(distractor.add_to_page(first, None, true).is_none());
        let last = br#"{"id":2,"result":{"tools":[{"name":"search_v2"}]}}"#;
        let (_, fakes) = distractor
            .add_to_page(last, None, false)
            .expect("the last page");
        assert_eq!(fakes.len(), 2);
        assert!(
            fakes
                .iter()
                .all(|fake| fake.name() != "search_v2" && fake.name() != "search")
        );
        assert_eq!(distractor.failure, None);
    }

    #[test]
    fn failures_are_kept() {
        let mut nothing_to_copy = injector(
            json!({"count": 2, "source": {"from": "near_duplicate", "of": ["nope"]}, "seed": 1}),
        );
        let line = br#"{"id":1,"result":{"tools":[{"name":"search"}]}}"#;
        assert!(nothing_to_copy.add_to_page(line, None, true).is_none());
        assert!(
            nothing_to_copy
                .failure
                .as_deref()
                .is_some_and(|reason| reason.contains("`nope`"))
        );
        let mut invalid = of_catalog(1);
        assert!(
            invalid
                .add_to_page(br#"{"id":1,"result":{"tools":3}}"#, None, true)
                .is_none()
        );
        assert!(invalid.failure.is_some());
    }

    #[test]
    fn the_answer_fits_the_revision() {
        let old = answer(
            &json!({"id": "c", "method": "tools/call", "params": {"name": "x"}}),
            "x",
        );
        assert_eq!(old["id"], "c");
        assert_eq!(old["result"]["isError"], true);
        assert_eq!(old["result"].get("resultType"), None);
        let meta = json!({meta::PROTOCOL_VERSION: "2026-07-28"});
        let new = answer(&json!({"id": 1, "params": {"_meta": meta}}), "x");
        assert_eq!(new["result"]["resultType"], "complete");
    }

    proptest! {
        #[test]
        fn a_list_keeps_its_tools(
            names in prop::collection::btree_set("[a-z_]{1,12}", 0..12),
            count in 0u32..20,
            seed: u64,
        ) {
            let schema = json!({"type": "object"});
            let tools: Vec<Value> = names
                .iter()
                .map(|name| json!({"name": name, "inputSchema": schema}))
                .collect();
            let line = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
            let block = json!({"count": count, "source": {"from": "catalog"}, "seed": seed});
            let mut distractor = injector(block);
            let (new, fakes) = distractor.add_to_page(line.as_bytes(), None, true).expect("a list");
            let reply: Value = serde_json::from_slice(&new).expect("JSON");
            let listed = reply["result"]["tools"].as_array().expect("a list");
            let mut offered: Vec<String> = listed
                .iter()
                .filter_map(|tool| Some(tool["name"].as_str()?.to_owned()))
                .collect();
            prop_assert_eq!(offered.len(), names.len() + count as usize);
            prop_assert_eq!(fakes.len(), count as usize);
            offered.retain(|name| !distractor.has(name));
            offered.sort();
            prop_assert_eq!(offered, names.into_iter().collect::<Vec<_>>());
        }
    }
}
