//! The page of the `html` reporter: one file, made of the sources beside it.
//!
//! The sources are ES modules without a framework. Joining them needs no tool of another
//! ecosystem: each module becomes a function that returns its exports, in the order of the
//! imports. So the build is pinned by this file, and people can read the script in the page.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use sha2::{Digest as _, Sha256};

use crate::generated::Generated;
use crate::workspace;

const FOLDER: &str = "crates/mcptest-report/page";

static IMPORT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?m)^import (\{[^}]*\}) from "\./(\w+)\.js";$"#));
static EXPORT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^export ((?:async )?(?:function|const|class) (\w+))"));

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants of this file"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// The page, without data.
pub fn file() -> Result<Generated> {
    let folder = workspace::root().join(FOLDER);
    let mut script = Script {
        folder: folder.join("src"),
        known: BTreeSet::new(),
        text: "\"use strict\";\n".to_owned(),
    };
    script.add("main")?;
    let style = read(&folder.join("page.css"))?;
    for text in [&script.text, &style] {
        ensure!(
            !text.contains("</") || !text.contains("</script") && !text.contains("</style"),
            "the sources of the page must not end their own element"
        );
    }
    // The hashes come first: what they are the hashes of may contain anything.
    let page = read(&folder.join("template.html"))?
        .replace("{{script-hash}}", &hash(&script.text))
        .replace("{{style-hash}}", &hash(&style))
        .replace("{{style}}", &style)
        .replace("{{script}}", &script.text);
    Ok(Generated {
        path: format!("{FOLDER}/report.html"),
        text: page,
    })
}

/// The hash of an inline element, as a content security policy states it.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The modules so far, each after those that it imports.
struct Script {
    folder: std::path::PathBuf,
    known: BTreeSet<String>,
    text: String,
}

impl Script {
    fn add(&mut self, name: &str) -> Result<()> {
        if !self.known.insert(name.to_owned()) {
            return Ok(());
        }
        let source = read(&self.folder.join(format!("{name}.js")))?;
        for import in IMPORT.captures_iter(&source) {
            self.add(&import[2])?;
        }
        self.text.push_str(&module(name, &source));
        Ok(())
    }
}

/// A module as a function that returns its exports.
fn module(name: &str, source: &str) -> String {
    let exports: Vec<&str> = EXPORT
        .captures_iter(source)
        .filter_map(|found| found.get(2))
        .map(|name| name.as_str())
        .collect();
    let body = IMPORT.replace_all(source, "const $1 = m_$2;");
    let body = EXPORT.replace_all(&body, "$1");
    format!(
        "const m_{name} = (() => {{\n{body}return {{ {} }};\n}})();\n",
        exports.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_functions() {
        let source = "import { a, b } from \"./one.js\";\nexport function c() {}\n\
                      export async function d() {}\nexport const E = 1;\nconst f = \"export x\";\n";
        assert_eq!(
            module("two", source),
            "const m_two = (() => {\nconst { a, b } = m_one;\nfunction c() {}\n\
             async function d() {}\nconst E = 1;\nconst f = \"export x\";\n\
             return { c, d, E };\n})();\n"
        );
    }
}
