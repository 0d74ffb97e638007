//! Starting a server's process and describing its exit.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};

use crate::error::{WireError, WireErrorKind};
use crate::log;
use crate::reaper::{self, ProcessTree};
use mcptest_http::text::sanitize;

/// The variable that asks mcptest to log (`crates/mcptest/src/log.rs`). It is for one process:
/// a server gets it only from its own `env`.
const LOG_VARIABLE: &str = "MCPTEST_LOG";

/// The command of a server that communicates over its standard streams.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerCommand {
    /// The program and its arguments, without a shell.
    pub argv: Vec<String>,
    /// Variables added to the environment that the server inherits: ours without `MCPTEST_LOG`.
    pub env: Vec<(String, String)>,
    /// The working directory; ours if absent. A relative program path with a slash is resolved from
    /// it.
    pub cwd: Option<PathBuf>,
}

/// Starts the process in its own process group, marked so that [`ProcessTree`] finds all its
/// descendants.
pub(crate) fn spawn(
    server: &str,
    command: &ServerCommand,
) -> Result<(Child, ProcessTree), WireError> {
    spawn_with(server, command, Stdio::piped())
}

pub(crate) fn spawn_with(
    server: &str,
    command: &ServerCommand,
    stderr: Stdio,
) -> Result<(Child, ProcessTree), WireError> {
    let failed =
        |detail: String| WireError::new(WireErrorKind::Spawn, server, "starting it", detail);
    let Some((program, args)) = command.argv.split_first() else {
        return Err(failed("its command is empty".to_owned()));
    };
    if let Some(cwd) = &command.cwd
        && !cwd.is_dir()
    {
        // Otherwise the system reports the program as missing.
        return Err(failed(format!(
            "its working directory `{}` does not exist or is not a directory",
            sanitize(&cwd.to_string_lossy())
        )));
    }
    reaper::become_subreaper();
    let cookie = reaper::new_cookie();
    let mut builder = Command::new(program);
    mcptest_stdio::end_with_parent(builder.as_std_mut());
    builder
        .args(args)
        // A server that is mcptest itself, such as a mock, was not asked to log.
        .env_remove(LOG_VARIABLE)
        .envs(command.env.iter().map(|(k, v)| (k, v)))
        .env(reaper::COOKIE_VARIABLE, cookie.chained())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .process_group(0)
        .kill_on_drop(true);
    if let Some(cwd) = &command.cwd {
        builder.current_dir(cwd);
    }
    let child = builder
        .spawn()
        .map_err(|error| failed(describe_error(program, command.cwd.as_deref(), &error)))?;
    match child.id() {
        Some(pid) => {
            log::started(server, pid, &command.argv);
            Ok((child, ProcessTree::register(cookie, pid)))
        }
        None => Err(failed("its process has no id".to_owned())),
    }
}

/// The error for a process without standard streams.
pub(crate) fn no_streams(server: &str) -> WireError {
    let detail = "its standard streams could not be connected";
    WireError::new(WireErrorKind::Spawn, server, "starting it", detail)
}

pub(crate) fn describe_error(program: &str, cwd: Option<&Path>, error: &io::Error) -> String {
    let shown = sanitize(program);
    let location = cwd.map_or_else(String::new, |cwd| {
        format!(" (relative to `{}`)", sanitize(&cwd.to_string_lossy()))
    });
    match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') => {
            format!(
                "`{shown}`{location} does not exist, or the interpreter in its first line \
                 does not"
            )
        }
        io::ErrorKind::NotFound => {
            let hint = match Path::new(program).extension().and_then(OsStr::to_str) {
                Some("js" | "mjs" | "cjs" | "ts") => " (start a script through `node`)",
                Some("py") => " (start a script through `python3`)",
                _ if program.contains(' ') => {
                    " (it contains a space: write the program and its arguments as separate items)"
                }
                _ => "",
            };
            format!("command `{shown}` not found on PATH; install it or give its full path{hint}")
        }
        io::ErrorKind::PermissionDenied => {
            format!("`{shown}`{location} is not executable; check its mode (chmod +x)")
        }
        _ => format!("`{shown}`{location}: {error}"),
    }
}

/// The exit of a process, as a phrase after "the server".
pub(crate) fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => format!("ended ({status})"),
    }
}
