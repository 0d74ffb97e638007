//! The starter pack of attacks, adapted to a server.

use mcptest_yaml::write::{self, escape_references};
use mcptest_yaml::{Document, DocumentLimits, NodeValue};
use serde_json::{Map, Value};

use crate::server_draft::{Outcome, ServerDraft, ToolDraft};
use crate::synthesis;

/// The pack, a copy of `examples/attacks/starter.yml`: `cargo xtask generate` keeps them equal.
const PACK: &str = include_str!("attack_pack.yml");

/// The folder and name of the pack, relative to the suite.
pub const PACK_FILE: &str = "attacks/starter.yml";

/// A tool whose results carry the texts, and the arguments of a call that the mock accepts.
#[derive(Debug, Clone, PartialEq)]
pub struct AttackedTool {
    /// The position of its server.
    pub server: usize,
    /// Its name.
    pub tool: String,
    /// The arguments.
    pub args: Map<String, Value>,
}

/// The tool to attack: one that answered, else one that reads, else any with arguments that fit.
#[must_use]
pub fn attacked_tool(servers: &[ServerDraft]) -> Option<AttackedTool> {
    let weight = |tool: &ToolDraft| match tool.outcome {
        Outcome::Answered { .. } => 0,
        Outcome::Failed { .. } | Outcome::Planned { .. } => 1,
        _ => 2,
    };
    let mut all: Vec<(usize, &ToolDraft)> = servers
        .iter()
        .enumerate()
        .flat_map(|(index, server)| server.tools.iter().map(move |tool| (index, tool)))
        .collect();
    all.sort_by_key(|(_, tool)| weight(tool));
    all.into_iter().find_map(|(server, tool)| {
        let args = match tool.args() {
            Some(args) => args.clone(),
            None => synthesis::object(tool.input_schema()).ok()?,
        };
        Some(AttackedTool {
            server,
            tool: tool.name.clone(),
            args,
        })
    })
}

/// The names of the attacks of the pack.
#[must_use]
pub fn names() -> Vec<String> {
    let limits = DocumentLimits::default();
    let Ok(document) = Document::parse(PACK_FILE, PACK.as_bytes(), &limits) else {
        return Vec::new();
    };
    let attacks = document.get("/attacks").map(|node| &node.value);
    let Some(NodeValue::Sequence(attacks)) = attacks else {
        return Vec::new();
    };
    let name = |node: &mcptest_yaml::Node| match &node.entry("name")?.value.value {
        NodeValue::String(name) => Some(name.to_string()),
        _ => None,
    };
    attacks.iter().filter_map(name).collect()
}

/// The text of the pack for a project. `schema` is the path of the suite's JSON Schema.
#[must_use]
pub fn text(attacked: &AttackedTool, schema: &str) -> String {
    let tool = write::string(&escape_references(&attacked.tool));
    let mut out = String::new();
    for line in PACK.lines() {
        if line.starts_with("# yaml-language-server:") {
            out.push_str(&format!("# yaml-language-server: $schema={schema}"));
        } else if line.starts_with("  attacked_tool:") {
            out.push_str(&format!("  attacked_tool: {tool}"));
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server_draft::CallPolicy;

    #[test]
    fn the_pack_is_adapted() {
        assert!(names().len() >= 9, "{:?}", names());
        let attacked = AttackedTool {
            server: 0,
            tool: "odd: name".to_owned(),
            args: Map::new(),
        };
        let text = text(&attacked, "../x.json");
        assert!(text.starts_with("# yaml-language-server: $schema=../x.json\n"));
        assert!(text.contains("\n  attacked_tool: \"odd: name\"\n"));
        assert_eq!(text.lines().count(), PACK.lines().count());
    }

    #[test]
    fn a_tool_that_answered_is_preferred() {
        let mut draft = ServerDraft::default();
        draft.set_tools(
            vec![
                json!({"name": "send"}),
                json!({"name": "get_a"}),
                json!({"name": "get_b"}),
            ],
            CallPolicy::ReadOnly,
        );
        let attacked = |draft: &ServerDraft| {
            attacked_tool(std::slice::from_ref(draft)).map(|found| found.tool)
        };
        assert_eq!(attacked(&draft).as_deref(), Some("get_a"));
        draft.tools[2].outcome = Outcome::Answered {
            args: Map::new(),
            result: json!({}),
            no_snapshot: None,
            private: false,
        };
        assert_eq!(attacked(&draft).as_deref(), Some("get_b"));
        assert_eq!(attacked(&ServerDraft::default()), None);
    }
}
