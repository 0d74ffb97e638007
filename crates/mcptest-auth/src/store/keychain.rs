//! The system's keychain, through the program that comes with it: `secret-tool` for the Secret
//! Service of Linux desktops, `security` for the keychain of macOS.
//!
//! Only the key of the store is kept there, which is short: keychains limit the length of entries,
//! and the tokens of a login can be long. The libraries for the Secret Service would bring more
//! code along than the rest of this crate. The value never is an argument of a program, which
//! other users could see.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time for the keychain, in which a person may have to unlock it.
const LIMIT: Duration = Duration::from_secs(60);
const CHECK: Duration = Duration::from_millis(20);

const SERVICE: &str = "mcptest";
const ACCOUNT: &str = "logins";

/// The key in the keychain, if there is one.
pub(super) fn read() -> Result<Option<String>, String> {
    let (code, text) = if cfg!(target_os = "macos") {
        let arguments = ["find-generic-password", "-s", SERVICE, "-a", ACCOUNT, "-w"];
        run("security", &arguments, None)?
    } else {
        let arguments = ["lookup", "service", SERVICE, "account", ACCOUNT];
        run("secret-tool", &arguments, None)?
    };
    let text = text.trim();
    Ok((code == Some(0) && !text.is_empty()).then(|| text.to_owned()))
}

/// Puts the key into the keychain.
pub(super) fn write(key: &str) -> Result<(), String> {
    let (code, _) = if cfg!(target_os = "macos") {
        // In its interactive mode it reads commands, so the key is not an argument.
        let line = format!("add-generic-password -U -s {SERVICE} -a {ACCOUNT} -w {key}\n");
        run("security", &["-i"], Some(&line))?
    } else {
        let arguments = [
            "store",
            "--label=mcptest: key of the logins",
            "service",
            SERVICE,
            "account",
            ACCOUNT,
        ];
        run("secret-tool", &arguments, Some(key))?
    };
    // The interactive mode has no exit code of its own.
    match (code, read()?) {
        (_, Some(found)) if found == key => Ok(()),
        (code, _) => Err(format!("the keychain did not keep the key ({code:?})")),
    }
}

/// Runs a program. Returns its exit code and its output.
fn run(
    program: &str,
    arguments: &[&str],
    input: Option<&str>,
) -> Result<(Option<i32>, String), String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(match input {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A program that does not read it fails by itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let read = output.map(|output| output.take(64 * 1024).read_to_string(&mut text));
        read.and_then(Result::ok).map(|_| text).unwrap_or_default()
    });
    let code = wait(&mut child).ok_or_else(|| {
        format!(
            "`{program}` did not answer within {} s: the keychain may be locked",
            LIMIT.as_secs()
        )
    })?;
    Ok((code, reader.join().unwrap_or_default()))
}

/// Waits for the end of a program; `None` if it took too long and was killed.
fn wait(child: &mut Child) -> Option<Option<i32>> {
    let until = Instant::now() + LIMIT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.code()),
            Ok(None) if Instant::now() < until => thread::sleep(CHECK),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}
