//! Distractors: tools that no server has, put into the lists on their way, and refused by the proxy
//! when they are called.

use std::collections::BTreeSet;

use mcptest_gates::distractors::{Distractors, PlannedRun, offer_order, plan_injection, refusal};
use mcptest_protocol::Revision;
use mcptest_trace::catalog::Tool;
use mcptest_trace::tool_id;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Which distractors are put in: those that a run of the block would get.
#[derive(Debug, Clone)]
pub struct Distraction {
    block: Distractors,
    planned: PlannedRun,
}

impl Distraction {
    /// What run `run` (from 1) of a test gets. A block with several counts is taken at its first.
    #[must_use]
    pub fn new(block: Distractors, test: &str, run: u32) -> Self {
        let run = run.max(1);
        let schedule = block.schedule(test, run);
        let planned = schedule.get(run as usize - 1).copied();
        Self {
            planned: planned.unwrap_or(PlannedRun { count: 0, seed: 0 }),
            block,
        }
    }
}

/// The state of a session with distractors.
#[derive(Debug)]
pub(crate) struct Distractor {
    plan: Distraction,
    /// The real tools of the listing that goes on, over all pages so far.
    real: Vec<Tool>,
    names: BTreeSet<String>,
    /// Every one that was offered, as the trace names it.
    pub(crate) ids: Vec<String>,
    /// Why none could be put in.
    pub(crate) problem: Option<String>,
}

/// A line with a list of tools, and where the list stands in it.
struct Spliced<'a> {
    before: &'a str,
    tools: Vec<&'a RawValue>,
    after: &'a str,
    is_last: bool,
}

impl Distractor {
    pub(crate) fn new(plan: Distraction) -> Self {
        Self {
            plan,
            real: Vec::new(),
            names: BTreeSet::new(),
            ids: Vec::new(),
            problem: None,
        }
    }

    /// Whether a call of this tool is ours to answer.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.names.contains(tool)
    }

    /// A page of a listing on its way to the client. On the last one, when all real names are
    /// known, the distractors come in, in a new order with what stands on that page; every other
    /// byte stays. Gives the new line and the tools that were put in.
    pub(crate) fn page(
        &mut self,
        line: &[u8],
        server: Option<&str>,
        first_page: bool,
    ) -> Option<(Vec<u8>, Vec<Tool>)> {
        if first_page {
            self.real.clear();
        }
        let Some(spliced) = splice(line) else {
            self.problem.get_or_insert_with(|| {
                "a list of tools could not be read, so it was passed on as it is".to_owned()
            });
            return None;
        };
        let listed = spliced.tools.iter().filter_map(|raw| {
            let tool: Value = serde_json::from_str(raw.get()).ok()?;
            Tool::from_listing(server, &tool)
        });
        self.real.extend(listed);
        if !spliced.is_last {
            return None;
        }
        let planned = self.plan.planned;
        let fakes = match plan_injection(&self.plan.block, &self.real, planned.count, planned.seed)
        {
            Ok(fakes) => fakes,
            Err(error) => {
                self.problem.get_or_insert(error.to_string());
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
        let all: Vec<&str> = spliced
            .tools
            .iter()
            .map(|raw| raw.get())
            .chain(texts.iter().map(String::as_str))
            .collect();
        let order = offer_order(all.len(), planned.seed);
        let list: Vec<&str> = order
            .into_iter()
            .filter_map(|index| all.get(index).copied())
            .collect();
        let line = format!("{}[{}]{}", spliced.before, list.join(","), spliced.after);
        Some((line.into_bytes(), fakes))
    }
}

/// Finds the list in a reply, without touching anything.
fn splice(line: &[u8]) -> Option<Spliced<'_>> {
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
    Some(Spliced {
        before: line.get(..start)?,
        tools: serde_json::from_str(list).ok()?,
        after: line.get(start + list.len()..)?,
        is_last: result
            .next_cursor
            .is_none_or(|cursor| matches!(cursor.get(), "null" | "\"\"")),
    })
}

/// A tool as a server lists it: without the server's name, which is ours.
fn as_listed(tool: &Tool) -> String {
    let mut raw: Map<String, Value> = tool.raw().clone();
    raw.remove("server");
    Value::Object(raw).to_string()
}

/// The proxy's answer to a call of a distractor, as a line.
pub(crate) fn answer(message: &Value, tool: &str) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": refusal(tool)}], "isError": true});
    let version = message
        .get("params")
        .and_then(|params| params.get("_meta")?.get(META_VERSION)?.as_str());
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
    use mcptest_gates::distractors::Distractors;
    use proptest::prelude::*;

    use super::*;

    fn distractor(block: Value) -> Distractor {
        let block: Distractors = serde_json::from_value(block).expect("a block");
        Distractor::new(Distraction::new(block, "t", 1))
    }

    fn of_catalog(count: u32) -> Distractor {
        distractor(json!({"count": count, "source": {"from": "catalog"}, "seed": 7}))
    }

    #[test]
    fn tools_come_in_and_every_other_byte_stays() {
        let line = "{ \"id\":1,\"jsonrpc\":\"2.0\",  \"result\": {\"ttlMs\": 1e3, \"tools\" : [ {\"name\":\"a\", \"x\": 1.50}, {\"name\":\"b\"} ], \"z\":1 } }\r\n";
        let mut distractor = of_catalog(3);
        let (new, fakes) = distractor
            .page(line.as_bytes(), Some("web"), true)
            .expect("a list");
        let new = String::from_utf8(new).expect("text");
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
        // The same list again: the same offer, nothing new in the trace.
        let again = distractor
            .page(line.as_bytes(), Some("web"), true)
            .expect("a list")
            .0;
        assert_eq!(again, new.as_bytes());
        assert_eq!(distractor.ids.len(), 3);
    }

    #[test]
    fn they_come_with_the_last_page_when_all_names_are_known() {
        let block =
            json!({"count": 2, "source": {"from": "near_duplicate", "of": ["search"]}, "seed": 1});
        let mut distractor = distractor(block);
        let first = br#"{"id":1,"result":{"tools":[{"name":"search"}],"nextCursor":"p2"}}"#;
        assert!(distractor.page(first, None, true).is_none());
        let last = br#"{"id":2,"result":{"tools":[{"name":"search_v2"}]}}"#;
        let (_, fakes) = distractor.page(last, None, false).expect("the last page");
        assert_eq!(fakes.len(), 2);
        assert!(
            fakes
                .iter()
                .all(|fake| fake.name() != "search_v2" && fake.name() != "search")
        );
        assert_eq!(distractor.problem, None);
    }

    #[test]
    fn what_cannot_be_done_is_remembered() {
        let mut nothing_to_copy = distractor(
            json!({"count": 2, "source": {"from": "near_duplicate", "of": ["nope"]}, "seed": 1}),
        );
        let line = br#"{"id":1,"result":{"tools":[{"name":"search"}]}}"#;
        assert!(nothing_to_copy.page(line, None, true).is_none());
        assert!(
            nothing_to_copy
                .problem
                .as_deref()
                .is_some_and(|why| why.contains("`nope`"))
        );
        let mut odd = of_catalog(1);
        assert!(
            odd.page(br#"{"id":1,"result":{"tools":3}}"#, None, true)
                .is_none()
        );
        assert!(odd.problem.is_some());
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
        let meta = json!({META_VERSION: "2026-07-28"});
        let new = answer(&json!({"id": 1, "params": {"_meta": meta}}), "x");
        assert_eq!(new["result"]["resultType"], "complete");
    }

    proptest! {
        #[test]
        fn a_list_keeps_its_tools(names in prop::collection::btree_set("[a-z_]{1,12}", 0..12), count in 0u32..20, seed: u64) {
            let tools: Vec<Value> = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
            let line = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
            let mut distractor = distractor(json!({"count": count, "source": {"from": "catalog"}, "seed": seed}));
            let (new, fakes) = distractor.page(line.as_bytes(), None, true).expect("a list");
            let reply: Value = serde_json::from_slice(&new).expect("JSON");
            let mut offered: Vec<String> = reply["result"]["tools"].as_array().expect("a list").iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect();
            prop_assert_eq!(offered.len(), names.len() + count as usize);
            prop_assert_eq!(fakes.len(), count as usize);
            offered.retain(|name| !distractor.has(name));
            offered.sort();
            prop_assert_eq!(offered, names.into_iter().collect::<Vec<_>>());
        }
    }
}
