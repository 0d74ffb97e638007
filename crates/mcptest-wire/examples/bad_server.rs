//! A server that misbehaves on request, for the tests of this crate.
//!
//! `bad_server MODE [FILE]`: the mode selects how it starts and lists; the name of a called tool
//! selects how that call fails. FILE receives process ids, so that a test can check which processes
//! are alive.

use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mode = args.next().unwrap_or_default();
    let file = args.next();
    if let Some(file) = &file {
        write_pid(file);
    }
    match mode.as_str() {
        "exit-at-once" => {
            complain("first line\n\u{1b}[31mfatal: no database\u{1b}[0m\n");
            return ExitCode::from(3);
        }
        "garbage" => {
            for _ in 0..1000 {
                say("Starting up, please wait...");
            }
            park();
        }
        "never-reads" => park(),
        "flood-stderr" => {
            for n in 0..50_000 {
                complain(&format!("log line {n} {}\n", "x".repeat(80)));
            }
        }
        "noisy" => {
            say("Loading configuration from .env file...");
            say("");
            say(r#"{"level":"info","error":"none","msg":"an OpenTelemetry record"}"#);
            raw(b"\xff\xfe broken bytes\n");
        }
        "sleeper" => {
            // The grandchild of "daemon": in its own session.
            let _ = rustix::process::setsid();
            if let Some(file) = &file {
                write_pid(file);
            }
            park();
        }
        "daemon-between" => {
            spawn_self("sleeper", file.as_deref());
            return ExitCode::SUCCESS;
        }
        "daemon" => spawn_self("daemon-between", file.as_deref()),
        _ => {}
    }
    let code = serve(&mode);
    if mode == "says-goodbye"
        && let Some(file) = &file
    {
        append(file, "goodbye");
    }
    code
}

fn serve(mode: &str) -> ExitCode {
    let mut pages = 0;
    let mut probes = 0;
    let mut waiting: Option<Value> = None;
    let mut late: Option<Value> = None;
    let mut asking: Option<Value> = None;
    let mut answers = Vec::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let id = message["id"].clone();
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => match mode {
                "dies-on-probe" => {
                    complain("Traceback: unknown method\n");
                    return ExitCode::from(1);
                }
                "ignores-probe" | "deaf" | "silent" => {}
                // Like a message during the start: it is answered when the next message arrives.
                "wakes-late" | "wakes-late-old" => waiting = Some(id),
                // Like a message before the server could read.
                "slow-stateless" => {
                    probes += 1;
                    if probes > 1 {
                        reply(
                            &id,
                            json!({
                                "supportedVersions": ["2026-07-28"],
                                "capabilities": {"tools": {}},
                            }),
                        );
                    }
                }
                "null-id-on-probe" => {
                    say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#);
                }
                "old-list" => reply(&id, json!({"supportedVersions": ["2025-06-18"]})),
                _ => refuse(&id, -32601, "Method not found"),
            },
            "ping" if matches!(mode, "deaf" | "silent") => {}
            "ping" => {
                match waiting.take() {
                    Some(probe) if mode == "wakes-late" => reply(
                        &probe,
                        json!({
                            "supportedVersions": ["2026-07-28", "2025-11-25"],
                            "capabilities": {"tools": {}},
                        }),
                    ),
                    Some(probe) => refuse(&probe, -32601, "Method not found"),
                    None => {}
                }
                reply(&id, json!({}));
            }
            "initialize" => match mode {
                "silent" => {}
                "asks-early" => {
                    send(
                        &json!({"jsonrpc": "2.0", "id": "e1", "method": "sampling/createMessage"}),
                    );
                    send(&json!({"jsonrpc": "2.0", "id": "e2", "method": "no/such/method"}));
                    reply(&id, handshake("2025-11-25"));
                }
                "slow-stateless" => refuse(&id, -32022, "this connection serves 2026-07-28"),
                "unknown-revision" => {
                    reply(
                        &id,
                        json!({"protocolVersion": "2031-01-01", "capabilities": {}}),
                    );
                }
                "picky" if message["params"]["protocolVersion"] != "2025-03-26" => {
                    let data = json!({"supported": ["2024-11-05", "2025-03-26"]});
                    let error = json!({"code": -32602, "message": "no", "data": data});
                    send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                }
                "noisy" => {
                    let result = handshake("2025-06-18").to_string();
                    say(&format!(
                        "\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\r"
                    ));
                }
                "picky" => reply(&id, handshake("2025-03-26")),
                _ => reply(&id, handshake("2025-11-25")),
            },
            "notifications/initialized" if mode == "answers-notifications" => {
                say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"huh"}}"#);
            }
            "notifications/cancelled" => {
                // A late answer.
                if let Some(id) = late.take() {
                    reply(&id, json!({"content": []}));
                }
            }
            "tools/list" => {
                pages += 1;
                match mode {
                    "pages-forever" => {
                        reply(
                            &id,
                            json!({"tools": [{"name": "t"}], "nextCursor": pages.to_string()}),
                        );
                    }
                    "large-pages" => {
                        let text = "x".repeat(100_000);
                        let cursor = pages.to_string();
                        reply(
                            &id,
                            json!({"tools": [{"name": text}], "nextCursor": cursor}),
                        );
                    }
                    "slow-pages" => {
                        std::thread::sleep(Duration::from_millis(300));
                        reply(&id, json!({"tools": [], "nextCursor": pages.to_string()}));
                    }
                    "same-cursor" => {
                        reply(
                            &id,
                            json!({"tools": [{"name": "t"}], "nextCursor": "again"}),
                        );
                    }
                    "empty-cursor" => {
                        reply(&id, json!({"tools": [{"name": "t"}], "nextCursor": ""}));
                    }
                    "no-tools" => reply(&id, json!({"tool": []})),
                    "answers-notifications" => {
                        std::thread::sleep(Duration::from_millis(900));
                        reply(&id, json!({"tools": []}));
                    }
                    _ => reply(&id, json!({"tools": [{"name": "t", "x-odd": 1}]})),
                }
            }
            "tools/call" => {
                let name = message["params"]["name"].as_str().unwrap_or_default();
                if name == "slow" {
                    late = Some(id);
                } else if name == "floods" {
                    for number in 0..10_000 {
                        let id = format!("f{number}");
                        send(&json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"}));
                    }
                } else if name == "asks-after" {
                    reply(&id, json!({"content": []}));
                    send(&json!({"jsonrpc": "2.0", "id": "a1", "method": "roots/list"}));
                } else if name == "asks" {
                    send(&json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"}));
                    send(&json!({"jsonrpc": "2.0", "id": 2, "method": "roots/list"}));
                    let progress = json!({"progressToken": 1, "progress": 1});
                    let method = "notifications/progress";
                    send(&json!({"jsonrpc": "2.0", "method": method, "params": progress}));
                    asking = Some(id);
                } else if let Some(code) = call(name, &id, &message["params"]["arguments"]) {
                    return code;
                }
            }
            "" => {
                // An answer to a request of "asks": the result collects all of them.
                answers.push(message);
                if answers.len() == 2
                    && let Some(id) = asking.take()
                {
                    reply(&id, json!({ "answers": answers }));
                }
            }
            _ => {}
        }
    }
    if mode == "ignores-eof" || mode == "daemon" {
        park();
    }
    ExitCode::SUCCESS
}

/// Handles one call, which fails as its name describes.
fn call(name: &str, id: &Value, arguments: &Value) -> Option<ExitCode> {
    let result = json!({"content": [{"type": "text", "text": "ok"}]});
    match name {
        "text-result" => reply(id, json!("x")),
        "number-result" => reply(id, json!(5)),
        "text-content" => reply(id, json!({"content": "boom"})),
        "text-is-error" => reply(id, json!({"content": [], "isError": "yes"})),
        "wrong-id" => reply(&json!(id.as_u64().unwrap_or(0) + 1000), result),
        "string-id" => reply(&json!(id.to_string()), result),
        "bool-id" => reply(&json!(true), result),
        "null-id" => reply(&Value::Null, result),
        "null-id-error" => refuse(&Value::Null, -32603, "something broke"),
        "no-id" => send(&json!({"jsonrpc": "2.0", "result": result})),
        "truncated" => say(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"ty"
        )),
        "both" => send(&json!({
            "jsonrpc": "2.0", "id": id, "result": result, "error": {"code": 1, "message": "m"}
        })),
        "neither" => send(&json!({"jsonrpc": "2.0", "id": id})),
        "no-version" => send(&json!({"id": id, "result": result})),
        "bad-error" => send(&json!({"jsonrpc": "2.0", "id": id, "error": "boom"})),
        "null-error" => {
            send(&json!({"jsonrpc": "2.0", "id": id, "result": result, "error": null}));
        }
        "deep" => {
            let (open, close) = ("[".repeat(500), "]".repeat(500));
            say(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{open}{close}}}"
            ));
        }
        "bad-utf8" => {
            let head = r#""result":{"content":[{"type":"text","text":""#;
            raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{head}").as_bytes());
            raw(b"\xff\"}\n");
        }
        "huge" => {
            let size = arguments["bytes"].as_u64().unwrap_or(0);
            let head = r#""result":{"content":[{"type":"text","text":""#;
            raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{head}").as_bytes());
            for _ in 0..size / 1024 {
                raw(&[b'x'; 1024]);
            }
            raw(b"\"}]}}\n");
        }
        "broken-then-good" => {
            reply(&json!(id.to_string()), result.clone());
            reply(id, result);
        }
        "twice" => {
            reply(id, result.clone());
            reply(id, result);
        }
        "batch" => say(&json!([
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}},
            {"jsonrpc": "2.0", "id": id, "result": result},
        ])
        .to_string()),
        "noise-only" => say("I am thinking about it"),
        "crash" => {
            complain("panic: index out of range\n");
            return Some(ExitCode::from(7));
        }
        "killed" => {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
        "unterminated" => {
            raw(json!({"jsonrpc": "2.0", "id": id, "result": result})
                .to_string()
                .as_bytes());
            return Some(ExitCode::SUCCESS);
        }
        "stops-reading" => park(),
        "where" => reply(
            id,
            json!({
                "cwd": std::env::current_dir().ok(),
                "added": std::env::var("ADDED").ok(),
                "path": std::env::var("PATH").ok(),
            }),
        ),
        "silence" => {}
        _ => reply(id, json!({"content": [], "arguments": arguments})),
    }
    None
}

fn handshake(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bad", "version": "0"},
    })
}

fn reply(id: &Value, result: Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn refuse(id: &Value, code: i64, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

fn send(message: &Value) {
    say(&message.to_string());
}

fn say(line: &str) {
    raw(format!("{line}\n").as_bytes());
}

fn raw(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

fn complain(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn park() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn spawn_self(mode: &str, file: Option<&str>) {
    let Ok(exe) = std::env::current_exe() else {
        return;
    };
    let mut command = Command::new(exe);
    command.arg(mode).args(file).stdin(Stdio::null());
    if let Ok(mut child) = command.stdout(Stdio::null()).spawn()
        && mode == "daemon-between"
    {
        let _ = child.wait();
    }
}

fn write_pid(file: &str) {
    append(file, &std::process::id().to_string());
}

fn append(file: &str, line: &str) {
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file) {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
