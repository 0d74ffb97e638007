//! Fixtures from logs: without the paths and names of this machine, and without long strings.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::super::testbed::Testbed;
use crate::workspace;

/// The length of the longest string that is kept whole, in characters.
const MAX_STRING: usize = 400;
/// The number of strings that are kept of a longer list.
const MAX_LIST: usize = 8;
/// The length of the longest line that is kept. Longer ones have prompts and catalogs.
const MAX_LINE: usize = 16_000;

/// Writes a fixture from a file of a session.
pub fn write(testbed: &Testbed, session: &Path, from: &Path, to: &Path) -> Result<()> {
    let bytes = std::fs::read(from)?;
    let fixture = match String::from_utf8(bytes) {
        Ok(text) => {
            let text = tidied(testbed, session, &text)?;
            for word in own_words().iter().filter(|word| word.len() > 3) {
                ensure!(
                    !text.contains(word),
                    "`{word}` of this machine is in a fixture"
                );
            }
            text.into_bytes()
        }
        // An archive is kept as it is; its JSON form, which is written too, shows what it has.
        Err(archive) => archive.into_bytes(),
    };
    std::fs::write(to, &fixture).with_context(|| format!("cannot write {}", to.display()))
}

fn tidied(testbed: &Testbed, session: &Path, text: &str) -> Result<String> {
    let text = anonymous(testbed, session, text)?;
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        return Ok(format!("{}\n", shortened(value)));
    }
    let mut lines = String::new();
    for line in text.lines() {
        let value = serde_json::from_str(line).context("a line is not JSON")?;
        let line = shortened(value).to_string();
        if line.len() <= MAX_LINE {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    Ok(lines)
}

/// Replaces the paths and names of this machine, each in the same way everywhere.
fn anonymous(testbed: &Testbed, session: &Path, text: &str) -> Result<String> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let target = workspace::target_directory()?;
    let mut replaced = text.to_owned();
    let program = testbed.program.clone();
    for (from, to) in [
        (path(session), "/run"),
        (path(&program), "/bin/mcptest"),
        (path(&target), "/target"),
        (path(workspace::root()), "/source"),
    ] {
        replaced = replaced.replace(&from, to);
        // Without the first slash, and as Claude Code names a folder after another one.
        replaced = replaced.replace(from.trim_start_matches('/'), to.trim_start_matches('/'));
        let dashed = from.replace(['/', '.', '_'], "-");
        replaced = replaced.replace(&dashed, &to.replace('/', "-"));
    }
    let port = regex::Regex::new(r"127\.0\.0\.1:[0-9]+").context("a pattern")?;
    replaced = port.replace_all(&replaced, "127.0.0.1:8000").into_owned();
    let kernel = regex::Regex::new(r"Linux [0-9]+\.[0-9]+[-.0-9a-z]*").context("a pattern")?;
    replaced = kernel.replace_all(&replaced, "Linux").into_owned();
    Ok(replaced)
}

/// Strings that show where a fixture was made.
fn own_words() -> Vec<String> {
    let home = std::env::var("HOME").ok().map(|home| format!("{home}/"));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.map(|name| name.trim().to_owned());
    let session = Some(super::PREFIX.to_owned());
    [home, host, session].into_iter().flatten().collect()
}

/// Cuts long strings and lists of strings. JSON in a string is kept, as readers may parse it.
fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) => {
            let is_json =
                || serde_json::from_str::<Value>(&text).is_ok_and(|json| !json.is_number());
            if text.chars().count() <= MAX_STRING || is_json() {
                return Value::String(text);
            }
            let start: String = text.chars().take(60).collect();
            Value::String(format!("{start}…"))
        }
        Value::Array(items) => {
            let strings = items.iter().all(Value::is_string);
            let keep = if strings { MAX_LIST } else { usize::MAX };
            items.into_iter().take(keep).map(shortened).collect()
        }
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, value)| (key, shortened(value)))
                .collect(),
        ),
        other => other,
    }
}
