//! Tool catalogs, from wherever they are: files, the servers of a suite, a command line.

use std::path::{Path, PathBuf};

use mcptest_core::catalog::Tool;
use mcptest_core::json::type_name;
use mcptest_mock::MockServer;
use mcptest_report::doctor::Checkup;
use mcptest_runner::CheckupSettings;
use mcptest_suite::Purpose;
use mcptest_suite::suite::Server;
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};
use serde_json::{Value, json};

use crate::cli::CatalogArgs;
use crate::command::warn;
use crate::output::Output;
use crate::signals::asked_to_end;
use crate::suites;

/// The complaint of a command that was broken off.
pub const INTERRUPTED: &str = "interrupted";

/// What was asked for, and the secrets that must not be shown.
pub struct Catalogs {
    pub checkups: Vec<Checkup>,
    pub secrets: Vec<String>,
}

/// Gets every catalog that the arguments name, in their order: files, servers of the suite, the command.
///
/// # Errors
/// What cannot be read, or that nothing is named. A server that does not start is no error but a result.
pub fn gather(args: &CatalogArgs, output: &Output) -> Result<Catalogs, String> {
    // Every catalog is priced: the vocabulary unpacks while files are read and servers start.
    std::thread::spawn(mcptest_core::tokens::prepare);
    let mut found = Catalogs {
        checkups: Vec::new(),
        secrets: Vec::new(),
    };
    for file in &args.tools_from {
        found.checkups.push(from_file(file)?);
    }
    let mut servers: Vec<(String, Server)> = Vec::new();
    if let Some(suite) = &args.suite {
        let loaded = suites::load_one(suite, Purpose::Run).map_err(|problems| {
            let text = problems.render(output.talk_style().colour);
            format!("the suite cannot be used\n{}", text.trim_end())
        })?;
        warn(&loaded.warnings, output);
        found.secrets.clone_from(&loaded.suite.secrets);
        servers.extend(chosen(&loaded.suite.servers, &args.server)?);
    }
    if !args.command.is_empty() {
        let first = args.command.first().map_or("server", String::as_str);
        let name = Path::new(first)
            .file_stem()
            .map_or_else(|| first.to_owned(), |stem| stem.to_string_lossy().into_owned());
        servers.push((name, Server::command(args.command.clone(), PathBuf::from("."))));
    }
    if !servers.is_empty() {
        found.checkups.extend(check_up(&servers, args)?);
    }
    if found.checkups.is_empty() {
        return Err("no catalog is named: give `--tools-from FILE`, `--suite FILE`, or `-- command args…`".to_owned());
    }
    Ok(found)
}

fn chosen(
    servers: &std::collections::BTreeMap<String, Server>,
    wanted: &[String],
) -> Result<Vec<(String, Server)>, String> {
    if wanted.is_empty() {
        return Ok(servers
            .iter()
            .map(|(name, server)| (name.clone(), server.clone()))
            .collect());
    }
    wanted
        .iter()
        .map(|name| match servers.get(name) {
            Some(server) => Ok((name.clone(), server.clone())),
            None => {
                let known: Vec<&str> = servers.keys().map(String::as_str).collect();
                Err(format!(
                    "the suite has no server `{name}`; its servers are {}",
                    known.join(", ")
                ))
            }
        })
        .collect()
}

fn check_up(servers: &[(String, Server)], args: &CatalogArgs) -> Result<Vec<Checkup>, String> {
    let settings = CheckupSettings {
        timeout: args.timeout,
        this_program: std::env::current_exe().map_err(|error| format!("cannot tell where this program is: {error}"))?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let ended = asked_to_end();
        let examine = async {
            let mut checkups = Vec::new();
            for (name, server) in servers {
                checkups.push(mcptest_runner::check_up(name, server, &settings).await);
            }
            Ok(checkups)
        };
        tokio::select! {
            done = examine => done,
            () = ended => {
                mcptest_runner::kill_all();
                Err(INTERRUPTED.to_owned())
            }
        }
    })
}

/// Reads a catalog file.
///
/// # Errors
/// That it cannot be read, or holds no catalog.
pub fn from_file(path: &Path) -> Result<Checkup, String> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("cannot read `{name}`: no such file"),
        _ => format!("cannot read `{name}`: {error}"),
    })?;
    let stem = path
        .file_stem()
        .map_or_else(|| name.clone(), |stem| stem.to_string_lossy().into_owned());
    let mut checkup = Checkup::new(&stem);
    let listed = match captured(&bytes) {
        Some(listed) => listed,
        None => {
            let manifest = mcptest_mock::load(&name, &bytes)
                .map_err(|problems| format!("`{name}` is no catalog\n{}", problems.render(false).trim_end()))?;
            listed_by(&MockServer::new(manifest)).ok_or_else(|| format!("`{name}` lists no tools"))?
        }
    };
    checkup.file = Some(name);
    checkup.text = String::from_utf8(bytes).ok();
    checkup.set_tools(listed);
    Ok(checkup)
}

/// The tools of a file, and what is in their list but is no tool.
pub struct Catalog {
    pub tools: Vec<Tool>,
    pub warnings: Diagnostics,
}

/// Reads the tools of a file, for commands that look at tools only.
///
/// # Errors
/// A file that cannot be read, or holds no catalog, with the place where that is known.
pub fn read(path: &Path) -> Result<Catalog, Diagnostics> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            _ => error.to_string(),
        };
        Diagnostics::from(Diagnostic::new(Severity::Error, format!("cannot read `{name}`: {why}")))
    })?;
    let listed = match captured(&bytes) {
        Some(listed) => listed,
        None => listed_by(&MockServer::new(mcptest_mock::load(&name, &bytes)?)).unwrap_or_default(),
    };
    let mut catalog = Catalog {
        tools: Vec::new(),
        warnings: Diagnostics::default(),
    };
    for (index, listed) in listed.iter().enumerate() {
        match Tool::from_listing(None, listed) {
            Some(tool) => catalog.tools.push(tool),
            None => catalog.warnings.0.push(
                Diagnostic::new(
                    Severity::Warning,
                    format!(
                        "entry {index} of the tools is left out: it is no tool, but JSON of type {}",
                        type_name(listed)
                    ),
                )
                .in_file(&name, None),
            ),
        }
    }
    Ok(catalog)
}

/// A captured answer in any form in which people keep it: the result, the whole reply, or the bare list. Entries stay as they are.
fn captured(bytes: &[u8]) -> Option<Vec<Value>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let tools = match serde_json::from_slice(bytes).ok()? {
        Value::Array(tools) => return Some(tools),
        Value::Object(mut file) if !file.contains_key("mock_server") => match file.remove("result") {
            Some(Value::Object(mut result)) => result.remove("tools"),
            _ => file.remove("tools"),
        },
        _ => None,
    };
    match tools {
        Some(Value::Array(tools)) => Some(tools),
        _ => None,
    }
}

/// What a mock server would list, over all pages.
fn listed_by(server: &MockServer) -> Option<Vec<Value>> {
    let mut session = server.session();
    let mut ask = |method: &str, params: Value| -> Option<Value> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut out = Vec::new();
        server.handle_line(&mut session, message.to_string().as_bytes(), &mut out);
        let mut reply: Value = serde_json::from_slice(&out).ok()?;
        reply.get_mut("result").map(Value::take)
    };
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "mcptest", "version": "0"}});
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
