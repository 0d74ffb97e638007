//! The suite: servers, direct calls, selection tests, attacks.

mod direct_tests;
mod selection_tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mcptest_yaml::write;
use serde_json::{Value, json};

use crate::attack_pack::{self, AttackedTool};
use crate::names::Unique;
use crate::server_draft::ServerDraft;

/// The parts that the suite is written from.
pub struct SuiteDraft<'a> {
    /// The name of the suite.
    pub name: &'a str,
    /// The servers.
    pub servers: &'a [ServerDraft],
    /// For each server the path of its mock manifest, relative to the suite.
    pub mock_files: &'a [String],
    /// For each server the tools of its mock, by position.
    pub mocked: &'a [BTreeSet<usize>],
    /// True if answers that repeat are compared with snapshots.
    pub snapshots: bool,
    /// The tool whose results carry attacks.
    pub attacked: Option<&'a AttackedTool>,
    /// The path of the JSON Schema, relative to the suite.
    pub schema: &'a str,
}

/// A suite, and what is in it.
#[derive(Debug, Default)]
pub struct SuiteText {
    /// The text.
    pub text: String,
    /// The direct tests: name, server and tool, for snapshots.
    pub direct: Vec<DirectTest>,
    /// The number of selection tests.
    pub selections: usize,
    /// Tools without a selection test, because no draft leads to them.
    pub ambiguous: usize,
    /// Tools without a selection test, because there are too many.
    pub unselected: usize,
}

/// A direct test that calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectTest {
    /// The name of the test.
    pub name: String,
    /// The position of the server.
    pub server: usize,
    /// The position of the tool; none for the call that is refused.
    pub tool: Option<usize>,
}

/// Writes the suite.
#[must_use]
pub fn write(draft: &SuiteDraft<'_>) -> SuiteText {
    let mut suite = SuiteText::default();
    let mut names = Unique::default();
    header(&mut suite.text, draft);
    write::entry(&mut suite.text, 0, "name", &draft.name.into());
    if let Some(attacked) = draft.attacked {
        let _ = writeln!(suite.text, "imports: [{}]", attack_pack::PACK_FILE);
        let tool = write::escape_references(&attacked.tool);
        let variables = json!({ "attacked_tool": tool });
        write::entry(&mut suite.text, 0, "variables", &variables);
    }
    suite.text.push('\n');
    servers(&mut suite.text, draft);
    direct_tests::write(&mut suite, draft, &mut names);
    selection_tests::write(&mut suite, draft, &mut names);
    suite
}

fn header(out: &mut String, draft: &SuiteDraft<'_>) {
    let _ = writeln!(out, "# yaml-language-server: $schema={}", draft.schema);
    let titles: Vec<&str> = draft
        .servers
        .iter()
        .map(|server| server.title.as_deref().unwrap_or(&server.name))
        .collect();
    let intro = format!(
        "Tests of {}, drafted by `mcptest init`. Edit them: a draft checks that things work, only \
         you know what they should do.",
        titles.join(", ")
    );
    write::comment(out, 0, &intro);
    out.push_str(
        "#\n#   mcptest run                  everything\n\
         #   mcptest run --tag offline    without the real server: a mock has its tools\n",
    );
    let mut variables: Vec<&str> = draft
        .servers
        .iter()
        .flat_map(|server| server.launch.variables.iter().map(String::as_str))
        .collect();
    variables.dedup();
    if !variables.is_empty() {
        let words = format!(
            "\nSet these environment variables before: {}.",
            variables.join(", ")
        );
        write::comment(out, 0, &words);
    }
    for file in draft
        .servers
        .iter()
        .filter_map(|server| server.launch.env_file.as_ref())
    {
        let words =
            format!("\nThe client's configuration reads variables from {file}: set those, too.");
        write::comment(out, 0, &words);
    }
}

fn servers(out: &mut String, draft: &SuiteDraft<'_>) {
    out.push_str("servers:\n");
    for (server, mock_file) in draft.servers.iter().zip(draft.mock_files) {
        let _ = writeln!(out, "  {}:", write::string(&server.name));
        let launch = &server.launch;
        match &launch.url {
            Some(url) => {
                write::entry(out, 4, "url", &url.clone().into());
                if !launch.headers.is_empty() {
                    write::entry(out, 4, "headers", &pairs(&launch.headers));
                }
                if let Some(auth) = &launch.auth {
                    write::entry(out, 4, "auth", auth);
                }
            }
            None => {
                write::entry(out, 4, "command", &launch.argv.clone().into());
                if !launch.env.is_empty() {
                    write::entry(out, 4, "env", &pairs(&launch.env));
                }
                if let Some(cwd) = &launch.cwd {
                    write::entry(out, 4, "cwd", &cwd.clone().into());
                }
            }
        }
        if let Some(timeout) = server.startup_timeout {
            let _ = writeln!(out, "    startup_timeout: {timeout}  # it starts slowly");
        }
        let _ = writeln!(
            out,
            "  # The same tools without the server, with recorded answers.\n  {}:",
            write::string(&server.mock)
        );
        let command = json!(["mcptest", "mock", "--tools-from", mock_file]);
        write::entry(out, 4, "command", &command);
    }
}

fn pairs(pairs: &[(String, String)]) -> Value {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (name.clone(), Value::String(value.clone())));
    Value::Object(pairs.collect())
}

/// The name of a test, with that of its server if there are several.
fn test_name(draft: &SuiteDraft<'_>, server: &ServerDraft, words: &str) -> String {
    let words = mcptest_json::text::shorten(&mcptest_json::text::one_line(words), 120);
    if draft.servers.len() > 1 {
        format!("{}: {words}", server.name)
    } else {
        words
    }
}

/// Names in a comment, not all of a long list.
fn listed(names: &[&str]) -> String {
    const MAX_NAMES: usize = 60;
    let shown: Vec<String> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| mcptest_json::text::shorten(&mcptest_json::text::one_line(name), 60))
        .collect();
    let mut text = shown.join(", ");
    if names.len() > MAX_NAMES {
        let _ = write!(text, " and {} more", names.len() - MAX_NAMES);
    }
    text
}

#[cfg(test)]
mod tests;
