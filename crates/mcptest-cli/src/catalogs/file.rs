//! Catalog files: manifests of the mock, and captured answers to `tools/list`.

use std::path::Path;

use mcptest_mock::MockServer;
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};
use serde_json::{Value, json};

use crate::files;

/// The entries that a file lists, as written.
#[derive(Default)]
pub struct CatalogFile {
    pub listed: Vec<Value>,
    /// The instructions of the server, if the file has them.
    pub instructions: Option<Value>,
    pub prompts: Vec<Value>,
    /// Resources and their templates.
    pub resources: Vec<Value>,
    /// Its text, to find lines in.
    pub text: Option<String>,
}

/// Reads a catalog file.
///
/// # Errors
/// That it cannot be read, or holds no catalog, with the place where that is known.
pub fn read(path: &Path) -> Result<CatalogFile, Diagnostics> {
    let name = path.display().to_string();
    let bytes = files::read(path)
        .map_err(|words| Diagnostics::from(Diagnostic::new(Severity::Error, words)))?;
    let mut file = match captured(&bytes) {
        Some(file) => file,
        None => CatalogFile {
            listed: listed_by(&MockServer::new(mcptest_mock::load(&name, &bytes)?))
                .unwrap_or_default(),
            ..CatalogFile::default()
        },
    };
    file.text = String::from_utf8(bytes).ok();
    Ok(file)
}

/// A captured answer in any form in which people keep it: the result, the whole reply, the bare
/// list, or a saved catalog, which also has instructions, prompts and resources. Entries stay as
/// they are.
fn captured(bytes: &[u8]) -> Option<CatalogFile> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut file = match serde_json::from_slice(bytes).ok()? {
        Value::Array(listed) => {
            return Some(CatalogFile {
                listed,
                ..CatalogFile::default()
            });
        }
        Value::Object(file) if !file.contains_key("mock_server") => file,
        _ => return None,
    };
    if let Some(Value::Object(result)) = file.get_mut("result") {
        file = std::mem::take(result);
    }
    let Some(Value::Array(listed)) = file.remove("tools") else {
        return None;
    };
    let mut list = |key: &str| match file.remove(key) {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    };
    let prompts = list("prompts");
    let mut resources = list("resources");
    resources.extend(list("resourceTemplates"));
    Some(CatalogFile {
        listed,
        instructions: file.remove("instructions").filter(Value::is_string),
        prompts,
        resources,
        text: None,
    })
}

/// The entries that a mock server would list, over all pages.
fn listed_by(server: &MockServer) -> Option<Vec<Value>> {
    let mut session = server.session();
    let mut ask = |method: &str, params: Value| -> Option<Value> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut out = Vec::new();
        server.handle_line(&mut session, message.to_string().as_bytes(), &mut out);
        let mut reply: Value = serde_json::from_slice(&out).ok()?;
        reply.get_mut("result").map(Value::take)
    };
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "mcptest", "version": "0"}});
    ask("initialize", hello)?;
    let mut listed = Vec::new();
    let mut params = json!({});
    loop {
        let mut page = ask("tools/list", params)?;
        match page.get_mut("tools").map(Value::take) {
            Some(Value::Array(tools)) if !tools.is_empty() => listed.extend(tools),
            _ => return Some(listed),
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return Some(listed),
        }
    }
}
