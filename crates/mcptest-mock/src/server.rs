//! The protocol: a pure state machine from messages to replies. It knows no transport, no clock and no randomness.

use serde_json::{Map, Value, json};

use crate::calls::{Tool, call_tool, get_prompt, text_param};
use crate::compile::{Manifest, Prompt};
use crate::jsonrpc::{Incoming, PARSE_ERROR, Replies, Reply, ResultBody, RpcError, classify, clip, write_json};
use crate::listed::{Listed, Outcome, members};
use crate::revision::Revision;
use crate::session::{Session, request_revision};

/// How many messages a batch may hold.
const MAX_BATCH: usize = 1000;

const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The mock server. One serves any number of sessions.
#[derive(Debug)]
pub struct MockServer {
    info: Value,
    capabilities: Value,
    instructions: Option<String>,
    /// What 2026-07-28 adds to every result, and to results that may be cached.
    stateless_head: Vec<u8>,
    cacheable_head: Vec<u8>,
    tools: Option<Listed<Tool>>,
    resources: Option<Listed<Vec<u8>>>,
    prompts: Option<Listed<Prompt>>,
}

impl MockServer {
    /// Prepares the answers.
    #[must_use]
    pub fn new(manifest: Manifest) -> Self {
        let info = json!({"name": manifest.name, "version": manifest.version});
        let tools = manifest.tools.map(|tools| {
            let tools = tools.into_iter().map(|tool| {
                let served = Tool::new(tool.input_schema, tool.response);
                (tool.wire, tool.name, served)
            });
            Listed::new("tools", tools.collect())
        });
        let resources = (!manifest.resources.is_empty()).then(|| {
            let resources = manifest.resources.into_iter().map(|resource| {
                let mut contents = br#""contents":["#.to_vec();
                write_json(&mut contents, &resource.contents);
                contents.push(b']');
                (resource.wire, Some(resource.uri), contents)
            });
            Listed::new("resources", resources.collect())
        });
        let prompts = (!manifest.prompts.is_empty()).then(|| {
            let prompts = manifest
                .prompts
                .into_iter()
                .map(|prompt| (prompt.wire.clone(), Some(prompt.name.clone()), prompt));
            Listed::new("prompts", prompts.collect())
        });
        let mut capabilities = Map::new();
        for (name, declared) in [
            ("tools", tools.is_some()),
            ("resources", resources.is_some()),
            ("prompts", prompts.is_some()),
        ] {
            if declared {
                capabilities.insert(name.to_owned(), json!({}));
            }
        }
        let meta = json!({META_SERVER_INFO: info});
        Self {
            stateless_head: head(&json!({"resultType": "complete", "_meta": meta})),
            // Stale at once: a client under test shall ask as often as it would ask any server.
            cacheable_head: head(&json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "public", "_meta": meta})),
            info,
            capabilities: capabilities.into(),
            instructions: manifest.instructions,
            tools,
            resources,
            prompts,
        }
    }

    /// A new connection.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::default()
    }

    /// How many tools are listed.
    #[must_use]
    pub fn tool_count(&self) -> usize {
        self.tools.as_ref().map_or(0, |tools| tools.length)
    }

    /// How many resources are listed.
    #[must_use]
    pub fn resource_count(&self) -> usize {
        self.resources.as_ref().map_or(0, |listed| listed.length)
    }

    /// How many prompts are listed.
    #[must_use]
    pub fn prompt_count(&self) -> usize {
        self.prompts.as_ref().map_or(0, |listed| listed.length)
    }

    /// Answers one line of the stdio transport: appends the reply with its line end, or nothing.
    pub fn handle_line(&self, session: &mut Session, line: &[u8], out: &mut Vec<u8>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let written = match serde_json::from_slice::<Value>(line) {
            Ok(message) => self.handle(session, &message).write_to(out),
            Err(error) => {
                let error = RpcError::new(PARSE_ERROR, format!("Parse error: {error}"));
                Replies::One(Reply::error(None, error)).write_to(out)
            }
        };
        if written {
            out.push(b'\n');
        }
    }

    /// Answers one message, or a batch of them.
    #[must_use]
    pub fn handle(&self, session: &mut Session, message: &Value) -> Replies<'_> {
        let refuse = |text| Replies::One(Reply::error(None, RpcError::invalid_request(text)));
        let Value::Array(batch) = message else {
            return match self.handle_one(session, message) {
                Some(reply) => Replies::One(reply),
                None => Replies::None,
            };
        };
        if !session.revision.is_some_and(Revision::has_batches) {
            return refuse("Invalid request: only revision 2025-03-26 has batches");
        }
        if batch.is_empty() {
            return refuse("Invalid request: the batch is empty");
        }
        if batch.len() > MAX_BATCH {
            return refuse("Invalid request: the batch has more than 1000 messages");
        }
        let replies: Vec<_> = batch
            .iter()
            .filter_map(|message| match classify(message) {
                Incoming::Request {
                    id,
                    method: "initialize",
                    ..
                } => Some(Reply::error(
                    Some(id.clone()),
                    RpcError::invalid_request("Invalid request: initialize cannot be in a batch"),
                )),
                _ => self.handle_one(session, message),
            })
            .collect();
        if replies.is_empty() {
            Replies::None
        } else {
            Replies::Batch(replies)
        }
    }

    fn handle_one(&self, session: &mut Session, message: &Value) -> Option<Reply<'_>> {
        match classify(message) {
            Incoming::Silent => None,
            Incoming::Invalid { id, error } => Some(Reply::error(id.cloned(), error)),
            Incoming::Request { id, method, params } => {
                let nothing = Map::new();
                let params = params.unwrap_or(&nothing);
                let outcome = self.request(session, method, params);
                Some(Reply {
                    id: Some(id.clone()),
                    outcome,
                })
            }
        }
    }

    fn request(
        &self,
        session: &mut Session,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<ResultBody<'_>, RpcError> {
        let revision = request_revision(session, method, params)?;
        let outcome = match revision {
            Some(revision) => self.dispatch(revision, method, params)?,
            None if method == "initialize" => self.initialize(session, params)?,
            // Allowed before the handshake, too.
            None => Outcome::fresh(Vec::new()),
        };
        let stateless = method == "server/discover" || revision.is_some_and(Revision::is_stateless);
        let head: &[u8] = match (stateless, outcome.cacheable) {
            (true, true) => &self.cacheable_head,
            (true, false) => &self.stateless_head,
            (false, _) => &[],
        };
        Ok(ResultBody {
            head,
            members: outcome.members,
        })
    }

    fn initialize(&self, session: &mut Session, params: &Map<String, Value>) -> Result<Outcome<'_>, RpcError> {
        let Some(requested) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(RpcError::invalid_params(
                "Invalid params: protocolVersion is not a string",
            ));
        };
        let revision = Revision::parse(requested)
            .filter(|revision| !revision.is_stateless())
            .unwrap_or(Revision::NEWEST_WITH_INITIALIZE);
        session.revision = Some(revision);
        let mut result = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": self.capabilities,
            "serverInfo": self.info,
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.clone().into();
        }
        Ok(Outcome::fresh(members(&result)))
    }

    fn dispatch(&self, revision: Revision, method: &str, params: &Map<String, Value>) -> Result<Outcome<'_>, RpcError> {
        let unknown = || RpcError::method_not_found(method);
        match method {
            "ping" if !revision.is_stateless() => Ok(Outcome::fresh(Vec::new())),
            "server/discover" => Ok(self.discover()),
            "tools/list" => self.tools.as_ref().ok_or_else(unknown)?.page(params),
            "tools/call" => {
                let tools = self.tools.as_ref().ok_or_else(unknown)?;
                call_tool(tools, revision, params)
            }
            "resources/list" => self.resources.as_ref().ok_or_else(unknown)?.page(params),
            "resources/templates/list" if self.resources.is_some() => {
                Ok(Outcome::cacheable(br#""resourceTemplates":[]"#.as_slice()))
            }
            "resources/read" => {
                let resources = self.resources.as_ref().ok_or_else(unknown)?;
                let uri = text_param(params, "uri")?;
                match resources.by_name.get(uri) {
                    Some(contents) => Ok(Outcome::cacheable(contents.as_slice())),
                    None => Err(RpcError::new(
                        revision.resource_not_found_code(),
                        format!("Resource not found: {}", clip(uri)),
                    )
                    .with_data(json!({"uri": clip(uri)}))),
                }
            }
            "prompts/list" => self.prompts.as_ref().ok_or_else(unknown)?.page(params),
            "prompts/get" => get_prompt(self.prompts.as_ref().ok_or_else(unknown)?, params),
            _ => Err(unknown()),
        }
    }

    fn discover(&self) -> Outcome<'_> {
        let mut result = json!({
            "supportedVersions": Revision::ALL.map(Revision::as_str),
            "capabilities": self.capabilities,
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.clone().into();
        }
        Outcome::cacheable(members(&result))
    }
}

/// Members that others follow.
fn head(object: &Value) -> Vec<u8> {
    let mut text = members(object);
    text.push(b',');
    text
}
