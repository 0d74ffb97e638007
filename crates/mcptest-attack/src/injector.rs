//! The attacks of one run: what is rewritten, what is contained, what was offered.
//!
//! The agent loop, the proxies and the mock server ask here before they pass a call on, and before
//! they hand an answer of a server to the agent. Messages have the form of MCP (`isError`,
//! `structuredContent`, `inputSchema`). Changes are edits of the `result` of a message.

use std::collections::BTreeMap;

use mcptest_trace::tool_id::KnownServers;
use serde_json::{Map, Value, json};

use crate::attack::{Attack, PlannedAttack};
use crate::edit::{Change, Edit, Key, get};
use crate::record::{ATTACK_KEY, CONTAINED_KEY, InjectedAttack};
use crate::rewrite::{
    Changes, append, append_at, describe, describe_parameter, embedded_resource, has_tool,
    own_tool, set,
};
use crate::written::{AttackTarget, Place};

/// An answer of mcptest itself to a call, which is not passed on.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAnswer {
    /// The text of the result.
    pub text: String,
    /// True for an error result.
    pub is_error: bool,
    /// Further keys of the recorded result.
    pub marks: Map<String, Value>,
}

/// An attack of the run, and how often it could have applied.
#[derive(Debug, Clone)]
struct Active {
    planned: PlannedAttack,
    /// The calls, or reads of its text, that it matched.
    matched: u64,
    /// The lists of tools so far, by server.
    lists: BTreeMap<String, u64>,
    /// True if the client received the notice that the list has changed.
    notified: bool,
    offered_after_calls: Option<u64>,
}

impl Active {
    /// Counts an opportunity. Returns true if the attack applies to it.
    fn applies(&mut self) -> bool {
        self.matched += 1;
        self.matched > self.planned.attack.after
    }

    /// Returns true if a call is one of the attacker's tool, which the agent was offered.
    fn is_own_tool(&self, server: Option<&str>, tool: &str, first_server: Option<&str>) -> bool {
        let own_server = self.planned.attack.target.server.as_deref();
        let is_server = match (own_server.or(first_server), server) {
            (Some(own), Some(server)) => own == server,
            _ => true,
        };
        self.offered_after_calls.is_some()
            && self.planned.own_tool.as_deref() == Some(tool)
            && is_server
    }
}

/// The attacks of one run.
#[derive(Debug, Clone, Default)]
pub struct AttackRun {
    active: Vec<Active>,
    /// The servers of the run, in order.
    names: Vec<String>,
    servers: KnownServers,
    /// The number of calls so far.
    calls: u64,
}

impl AttackRun {
    /// The start of a run of a test. Runs with these attacks count from 1. `servers` are all
    /// servers of the run.
    #[must_use]
    pub fn new(attacks: &[Attack], test: &str, run: u64, servers: &[String]) -> Self {
        let active = attacks.iter().map(|attack| Active {
            planned: attack.plan(test, run),
            matched: 0,
            lists: BTreeMap::new(),
            notified: false,
            offered_after_calls: None,
        });
        Self {
            active: active.collect(),
            names: servers.to_vec(),
            servers: servers.iter().cloned().collect(),
            calls: 0,
        }
    }

    /// Returns true if the run has no attack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// The attacks as planned.
    pub fn planned(&self) -> impl Iterator<Item = &PlannedAttack> {
        self.active.iter().map(|active| &active.planned)
    }

    /// The entries of the trace, with what was offered so far.
    #[must_use]
    pub fn records(&self) -> Vec<InjectedAttack> {
        let records = self.active.iter().map(|active| InjectedAttack {
            offered_after_calls: active.offered_after_calls,
            ..active.planned.record()
        });
        records.collect()
    }

    /// Returns true if a call may have to be contained, so that every call must be seen.
    #[must_use]
    pub fn contains_calls(&self) -> bool {
        self.planned()
            .any(|planned| planned.attack.contain || planned.own_tool.is_some())
    }

    /// Sets the number of all calls so far, for calls that were made without
    /// [`on_call`](Self::on_call).
    pub fn set_calls(&mut self, calls: u64) {
        self.calls = calls;
    }

    /// Counts a call that something else answered, such as a fault.
    pub fn answered_elsewhere(&mut self) {
        self.calls += 1;
    }

    /// Returns true if a list of tools changes during the run.
    #[must_use]
    pub fn changes_later_lists(&self) -> bool {
        self.planned()
            .any(|planned| planned.attack.after > 0 && planned.attack.place.is_listed())
    }

    /// Returns true if an attack can change a list of tools.
    #[must_use]
    pub fn changes_lists(&self) -> bool {
        self.planned()
            .any(|planned| planned.attack.place.is_listed())
    }

    /// Counts a call, and answers it if it must not reach its server: one that meets a step of a
    /// goal, one of an attacker's tool, and one that `place: error` applies to.
    pub fn on_call(
        &mut self,
        server: Option<&str>,
        tool: &str,
        args: Option<&Value>,
    ) -> Option<CallAnswer> {
        self.calls += 1;
        let first_server = self.names.first().map(String::as_str);
        let contained = self.active.iter().find(|active| {
            let planned = &active.planned;
            // The default goal of an attacker's tool is met by that tool only.
            let has_goal = planned.own_tool.is_none() || planned.attack.goal.is_some();
            active.is_own_tool(server, tool, first_server)
                || (planned.attack.contain
                    && has_goal
                    && planned.goal.meets_step(server, tool, args, &self.servers))
        });
        if let Some(active) = contained {
            return Some(CallAnswer {
                text: format!("done ({})", active.planned.canary),
                is_error: false,
                marks: Map::from_iter([(CONTAINED_KEY.to_owned(), true.into())]),
            });
        }
        let server = server.unwrap_or_default();
        for active in &mut self.active {
            let attack = &active.planned.attack;
            if attack.place == Place::Error
                && attack.target.is_tool(server, tool)
                && active.applies()
            {
                let name = active.planned.attack.name.as_str();
                return Some(CallAnswer {
                    text: active.planned.text.clone(),
                    is_error: true,
                    marks: Map::from_iter([(ATTACK_KEY.to_owned(), name.into())]),
                });
            }
        }
        None
    }

    /// The changes of a tool's result.
    pub fn on_result(&mut self, server: &str, tool: &str, result: &Value) -> Changes {
        let mut changed = result.clone();
        let mut changes = Changes::default();
        let mut carried: Vec<Value> = Vec::new();
        for active in &mut self.active {
            let attack = &active.planned.attack;
            if let Some(plant) = &attack.plant {
                let planted = active.planned.planted.as_str();
                let edits = if plant.resource.is_some() {
                    embedded_resource(&changed, plant, server, planted)
                } else if plant.prompt.is_none() && plant.is_tool(server, tool) {
                    append(&changed, planted)
                } else {
                    Vec::new()
                };
                changes.add(&mut changed, edits);
            }
            let edits = match attack.place {
                Place::Result if attack.target.is_tool(server, tool) => match &active.planned.at {
                    Some(at) => append_at(&changed, at.as_str(), &active.planned.text),
                    None => append(&changed, &active.planned.text),
                },
                Place::Resource => {
                    embedded_resource(&changed, &attack.target, server, &active.planned.text)
                }
                _ => continue,
            };
            // A result without the resource is no opportunity for the attack; one without the text
            // at `at` is.
            if (edits.is_empty() && attack.place == Place::Resource) || !active.applies() {
                continue;
            }
            if changes.add(&mut changed, edits) {
                carried.push(active.planned.attack.name.as_str().into());
            }
        }
        if let Some(mark) = match carried.len() {
            0 => None,
            1 => carried.pop(),
            _ => Some(Value::Array(carried)),
        } {
            changes.marks.insert(ATTACK_KEY.to_owned(), mark);
        }
        changes
    }

    /// The changes of a page of a list of tools.
    pub fn on_tools(
        &mut self,
        server: &str,
        result: &Value,
        is_first_page: bool,
        is_last_page: bool,
    ) -> Changes {
        let mut changed = result.clone();
        let mut changes = Changes::default();
        let first_server = self.names.first().map(String::as_str);
        for active in &mut self.active {
            let planned = &active.planned;
            let attack = &planned.attack;
            let lists = active.lists.entry(server.to_owned()).or_default();
            *lists += u64::from(is_first_page);
            if *lists <= attack.after {
                continue;
            }
            let edits = match attack.place {
                Place::Description => describe(&changed, &attack.target, server, &planned.text),
                Place::Parameter => {
                    describe_parameter(&changed, &attack.target, server, &planned.text)
                }
                Place::Tool => {
                    let wanted = attack.target.server.as_deref().or(first_server);
                    let here = wanted.is_none_or(|wanted| wanted == server);
                    let tool = planned.own_tool.as_deref().filter(|_| here && is_last_page);
                    // A second tool of the same name would hide the server's own.
                    tool.filter(|tool| !has_tool(&changed, tool))
                        .map(|tool| own_tool(tool, &planned.text))
                        .into_iter()
                        .collect()
                }
                _ => Vec::new(),
            };
            if changes.add(&mut changed, edits) {
                active.offered_after_calls.get_or_insert(self.calls);
            }
        }
        changes
    }

    /// The changes of the answer to `initialize` or `server/discover`.
    pub fn on_instructions(&mut self, server: &str, result: &Value) -> Changes {
        let mut changed = result.clone();
        let mut changes = Changes::default();
        for active in &mut self.active {
            let attack = &active.planned.attack;
            if attack.place != Place::Instructions || !attack.target.is_server(server) {
                continue;
            }
            let text = &active.planned.text;
            let path = vec!["instructions".into()];
            let edit = match changed.get("instructions").and_then(Value::as_str) {
                Some(old) => set(path, old, text),
                None => Edit {
                    path: Vec::new(),
                    change: Change::Insert("instructions".to_owned(), text.as_str().into()),
                },
            };
            if changes.add(&mut changed, vec![edit]) {
                active.offered_after_calls.get_or_insert(self.calls);
            }
        }
        changes
    }

    /// The instructions of a server with those that attacks add, given its own. `None` if no
    /// attack adds any.
    pub fn instructions(&mut self, server: &str, own: Option<&str>) -> Option<String> {
        let mut result = json!({});
        if let Some(own) = own {
            result["instructions"] = own.into();
        }
        let changes = self.on_instructions(server, &result);
        if changes.is_empty() {
            return None;
        }
        changes.apply(&mut result);
        Some(result.get("instructions")?.as_str()?.to_owned())
    }

    /// The changes of the answer to `resources/read`.
    pub fn on_resource(&mut self, server: &str, uri: &str, result: &Value) -> Changes {
        let is_meant = |target: &AttackTarget| target.is_resource(server, uri);
        self.on_texts(result, Place::Resource, &is_meant, |result| {
            let blocks = result.get("contents")?.as_array()?;
            let index = blocks
                .iter()
                .rposition(|block| block.get("text").is_some_and(Value::is_string))?;
            Some(vec!["contents".into(), index.into(), "text".into()])
        })
    }

    /// The changes of the answer to `prompts/get`.
    pub fn on_prompt(&mut self, server: &str, prompt: &str, result: &Value) -> Changes {
        let is_meant = |target: &AttackTarget| {
            let wanted = target.prompt.as_deref();
            target.is_server(server) && wanted.is_none_or(|wanted| wanted == prompt)
        };
        self.on_texts(result, Place::Prompt, &is_meant, |result| {
            let messages = result.get("messages")?.as_array()?;
            let index = messages.iter().rposition(|message| {
                message
                    .pointer("/content/text")
                    .is_some_and(Value::is_string)
            })?;
            Some(vec![
                "messages".into(),
                index.into(),
                "content".into(),
                "text".into(),
            ])
        })
    }

    fn on_texts(
        &mut self,
        result: &Value,
        place: Place,
        is_meant: &dyn Fn(&AttackTarget) -> bool,
        path: impl Fn(&Value) -> Option<Vec<Key>>,
    ) -> Changes {
        let mut changed = result.clone();
        let mut changes = Changes::default();
        let calls = self.calls;
        for active in &mut self.active {
            let attack = &active.planned.attack;
            let plants = attack.plant.as_ref().is_some_and(|plant| {
                let names_place = match place {
                    Place::Prompt => plant.prompt.is_some(),
                    _ => plant.resource.is_some(),
                };
                names_place && is_meant(plant)
            });
            let applies = attack.place == place && is_meant(&attack.target) && active.applies();
            let texts = [
                (plants, active.planned.planted.as_str(), false),
                (applies, active.planned.text.as_str(), true),
            ];
            for (applies, text, is_attack) in texts {
                let Some(path) = path(&changed).filter(|_| applies) else {
                    continue;
                };
                let Some(old) = get(&changed, &path).and_then(Value::as_str) else {
                    continue;
                };
                let edit = set(path, old, text);
                if changes.add(&mut changed, vec![edit]) && is_attack {
                    active.offered_after_calls.get_or_insert(calls);
                }
            }
        }
        changes
    }

    /// Returns true, once, if the client shall list the tools of a server again: an attack waits
    /// for that list.
    pub fn takes_list_changed(&mut self, server: &str) -> bool {
        let mut due = false;
        for active in &mut self.active {
            let attack = &active.planned.attack;
            let lists = active.lists.get(server).copied().unwrap_or(0);
            if attack.place.is_listed()
                && attack.after > 0
                && lists == attack.after
                && attack.target.is_server(server)
                && !active.notified
            {
                active.notified = true;
                due = true;
            }
        }
        due
    }
}

#[cfg(test)]
mod tests;
