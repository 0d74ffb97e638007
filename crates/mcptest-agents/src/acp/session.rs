//! The state of an ACP session: messages, calls, tokens, cost.

use std::time::Instant;

use serde_json::{Map, Value};

use super::permission;
use crate::agent::Agent;
use crate::file::UsageFile;
use crate::outcome::{AgentTokens, BuiltinCall};
use crate::reader::is_mcp_name;
use crate::task::ServerLaunch;

/// The number of calls that are kept.
const MAX_CALLS: usize = 10_000;

/// The bytes of all messages of one turn that are kept.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// The state of a session.
pub(super) struct SessionState<'a> {
    agent: &'a Agent,
    servers: &'a [ServerLaunch],
    mcp_prefixes: Vec<String>,
    turn: u32,
    /// The messages of the turn. A call ends a message.
    messages: Vec<String>,
    message_open: bool,
    text_bytes: usize,
    /// All calls, by id, in order: the fields of all updates.
    calls: Vec<Call>,
    tokens: Option<AgentTokens>,
    cost: Option<f64>,
}

struct Call {
    id: String,
    turn: u32,
    /// The time of its first update.
    at: Instant,
    fields: Map<String, Value>,
}

impl<'a> SessionState<'a> {
    pub(super) fn new(
        agent: &'a Agent,
        servers: &'a [ServerLaunch],
        mcp_prefixes: Vec<String>,
    ) -> Self {
        Self {
            agent,
            servers,
            mcp_prefixes,
            turn: 0,
            messages: Vec::new(),
            message_open: false,
            text_bytes: 0,
            calls: Vec::new(),
            tokens: None,
            cost: None,
        }
    }

    pub(super) fn begin_turn(&mut self) {
        self.turn += 1;
        self.messages.clear();
        self.message_open = false;
        self.text_bytes = 0;
    }

    /// Reads the tokens of a prompt's result.
    pub(super) fn end_turn(&mut self, result: &Value) {
        if self.agent.usage == UsageFile::Partial {
            return;
        }
        let usage = &result["usage"];
        let count = |key: &str| usage[key].as_u64();
        let (output, total) = (count("outputTokens"), count("totalTokens"));
        let cached = count("cachedReadTokens");
        let cache_write = count("cachedWriteTokens").unwrap_or(0);
        let input = count("inputTokens").map(|input| {
            // Agents differ: for some the input includes the cached tokens. The total shows it.
            let is_whole =
                total.is_some() && total == Some(input.saturating_add(output.unwrap_or(0)));
            let cached = if is_whole {
                0
            } else {
                cached.unwrap_or(0).saturating_add(cache_write)
            };
            input.saturating_add(cached)
        });
        let tokens = AgentTokens {
            input,
            output,
            cached,
            total,
        };
        // Gemini has them in its own field.
        let quota = &result["_meta"]["quota"]["token_count"];
        let tokens = if tokens == AgentTokens::default() {
            AgentTokens {
                input: quota["input_tokens"].as_u64(),
                output: quota["output_tokens"].as_u64(),
                ..AgentTokens::default()
            }
        } else {
            tokens
        };
        if tokens != AgentTokens::default() {
            let total = tokens
                .total
                .or_else(|| Some(tokens.input?.saturating_add(tokens.output?)));
            let tokens = AgentTokens { total, ..tokens };
            self.tokens = Some(match self.tokens {
                Some(before) => before.plus(tokens),
                None => tokens,
            });
        }
    }

    /// Handles `session/update`.
    pub(super) fn update(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => {
                if let Some(text) = update["content"]["text"].as_str() {
                    self.text(text);
                }
            }
            "tool_call" | "tool_call_update" => {
                self.message_open = false;
                self.call(update, true);
            }
            "usage_update" => {
                if let Some(amount) = update["cost"]["amount"].as_f64() {
                    self.cost = Some((amount * 1e12).round() / 1e12);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.text_bytes + text.len() > MAX_TEXT_BYTES {
            return;
        }
        self.text_bytes += text.len();
        match self.messages.last_mut() {
            Some(message) if self.message_open => message.push_str(text),
            _ => self.messages.push(text.to_owned()),
        }
        self.message_open = true;
    }

    /// Adds the fields of an update to its call. A request for permission only adds what is not
    /// known yet: its title is often without the server.
    fn call(&mut self, update: &Value, overrides: bool) {
        let (Some(id), Value::Object(fields)) = (update["toolCallId"].as_str(), update) else {
            return;
        };
        // Gemini sends updates of calls that it never announced.
        let place = self.calls.iter().rposition(|call| call.id == id);
        let place = match place {
            Some(place) => place,
            None if self.calls.len() < MAX_CALLS => {
                self.calls.push(Call {
                    id: id.to_owned(),
                    turn: self.turn,
                    at: Instant::now(),
                    fields: Map::new(),
                });
                self.calls.len() - 1
            }
            None => return,
        };
        let known = &mut self.calls[place].fields;
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            if overrides || !known.contains_key(key) {
                known.insert(key.clone(), value.clone());
            }
        }
    }

    /// The answer to a request for permission.
    pub(super) fn permission(&mut self, params: &Value) -> Value {
        let call = &params["toolCall"];
        self.call(call, false);
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let known = self.calls.iter().rfind(|known| known.id == id);
        let known = known.map_or_else(|| call.clone(), |known| known.fields.clone().into());
        permission::answer(&self.agent.permissions, &known, params)
    }

    /// The agent's messages in this turn.
    pub(super) fn messages(&self) -> Vec<String> {
        self.messages.clone()
    }

    /// The last message of the turn.
    pub(super) fn final_response(&self) -> Option<String> {
        self.messages
            .last()
            .map(|message| message.trim().to_owned())
            .filter(|message| !message.is_empty())
    }

    /// True if the turn has a call.
    pub(super) fn has_calls(&self) -> bool {
        self.calls.iter().any(|call| call.turn == self.turn)
    }

    pub(super) fn tokens(&self) -> Option<AgentTokens> {
        self.tokens
    }

    pub(super) fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// The calls of the agent's own tools.
    pub(super) fn builtin_calls(&self) -> Vec<BuiltinCall> {
        self.calls
            .iter()
            .filter_map(|call| {
                let fields = Value::Object(call.fields.clone());
                if self.is_mcp(&fields) {
                    return None;
                }
                let status = fields["status"].as_str();
                let result = ["rawOutput", "content"]
                    .iter()
                    .map(|key| &fields[*key])
                    .find(|value| !value.is_null());
                Some(BuiltinCall {
                    name: tool_name(&fields),
                    args: fields["rawInput"].clone(),
                    is_error: match status {
                        Some("failed") => Some(true),
                        Some("completed") => Some(false),
                        _ => None,
                    },
                    result: result.cloned(),
                    turn: call.turn,
                    at: call.at,
                })
            })
            .collect()
    }

    /// Returns true if a call is one of a server's tools.
    fn is_mcp(&self, call: &Value) -> bool {
        let by_input = self.servers.iter().any(|server| {
            call["rawInput"]["server"] == server.name() && call["rawInput"]["tool"].is_string()
        });
        by_input
            || permission::candidates(call).any(|name| {
                is_mcp_name(&self.mcp_prefixes, name)
                    || self
                        .servers
                        .iter()
                        .any(|server| has_server_form(name, server.name()))
            })
    }
}

/// Returns true if a title is that of a server's tool, in one of the forms that agents use.
fn has_server_form(title: &str, server: &str) -> bool {
    let title = title.strip_prefix("Tool: ").unwrap_or(title);
    let prefixes = [
        format!("mcp__{server}__"),
        format!("mcp_{server}_"),
        format!("mcp.{server}."),
        format!("{server}/"),
        format!("{server}_"),
        format!("{server}-"),
        format!("{server}."),
    ];
    prefixes
        .iter()
        .any(|prefix| title.starts_with(prefix.as_str()))
        || title.contains(&format!("({server} MCP Server)"))
}

/// The name of an agent's own tool: its name, or its kind. A title is often the whole command.
fn tool_name(call: &Value) -> String {
    [
        &call["name"],
        &call["_meta"]["claudeCode"]["toolName"],
        &call["_meta"]["toolName"],
        &call["kind"],
        &call["title"],
    ]
    .into_iter()
    .find_map(Value::as_str)
    .unwrap_or("unknown")
    .to_owned()
}
