//! Catalogs from every source, for every command that takes one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

use crate::support::{HttpMock, folder, root, run};

fn mock(manifest: &str) -> HttpMock {
    HttpMock::start(&root(), manifest)
}

const BEFORE: &str = "examples/catalog-diff/before.json";
const AFTER: &str = "examples/catalog-diff/after.json";

#[test]
fn the_difference_is_the_same_from_every_source() {
    let dir = root();
    let (before, after) = (mock(BEFORE), mock(AFTER));
    let expected = run(&dir, &["diff", BEFORE, AFTER]);
    assert_eq!(expected.code, 1, "{}", expected.stderr);
    let suite = format!(
        "servers:\n  before: {{ command: [mcptest, mock, --tools-from, {BEFORE}], cwd: {0:?} }}\n  after: {{ url: {1:?} }}\n",
        dir.display(),
        after.url
    );
    let scratch = folder(&[("s.yml", &suite)]);
    let suite = scratch.path().join("s.yml").display().to_string();
    for sides in [
        vec![&*before.url, &*after.url],
        vec![BEFORE, "--", "mcptest", "mock", "--tools-from", AFTER],
        vec!["server:before", "server:after", "--suite", &suite],
        vec![
            &*before.url,
            "server:after",
            "--suite",
            &suite,
            "--timeout",
            "20s",
        ],
    ] {
        let found = run(&dir, &[&["diff"], sides.as_slice()].concat());
        assert_eq!(
            (found.code, found.stdout),
            (1, expected.stdout.clone()),
            "{sides:?}\n{}",
            found.stderr
        );
    }
    let named = run(
        &dir,
        &[
            "diff",
            "server:before",
            &after.url,
            "--suite",
            &suite,
            "--format",
            "json",
        ],
    )
    .json();
    assert_eq!(
        (&named["old"], &named["new"]),
        (&json!("server:before"), &json!(after.url))
    );
}

#[test]
fn a_catalog_that_cannot_be_loaded_is_reported() {
    let dir = root();
    for (arguments, words) in [
        (
            vec![BEFORE, "server:x"],
            "no suite is named: give `--suite FILE`",
        ),
        (
            vec![
                BEFORE,
                "server:x",
                "--suite",
                "examples/quickstart/mcptest.yml",
            ],
            "the suite has no server `x`; its servers are weather",
        ),
        (
            vec![BEFORE, "http://127.0.0.1:1/mcp", "--timeout", "100ms"],
            "nothing accepted a connection at http://127.0.0.1:1/mcp within 100ms",
        ),
        (vec![BEFORE, "--", "no-such-program"], "no-such-program"),
        (vec![BEFORE], "required arguments were not provided"),
        (vec![BEFORE, AFTER, "--", "x"], "cannot be used with"),
        (
            vec![BEFORE, AFTER, "--header", "s3cret"],
            "expected a name, a colon and a value",
        ),
    ] {
        let found = run(&dir, &[&["diff"], arguments.as_slice()].concat());
        assert_eq!(found.code, 2, "{arguments:?}");
        assert!(
            found.stderr.contains(words),
            "{arguments:?}: {}",
            found.stderr
        );
        assert_eq!(found.stdout, "");
    }
}

#[test]
fn doctor_and_tool_bench_take_addresses_too() {
    let dir = root();
    let files = mock("examples/servers/files.yml");
    let from_url = run(&dir, &["doctor", "--url", &files.url, "--format", "json"]).json();
    assert_eq!(from_url["servers"][0]["startable"], true, "{from_url}");
    let host = files
        .url
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    assert_eq!(from_url["servers"][0]["name"], host);
    let from_file = run(
        &dir,
        &[
            "doctor",
            "--tools-from",
            "examples/servers/files.yml",
            "--format",
            "json",
        ],
    )
    .json();
    assert_eq!(
        from_url["servers"][0]["tools"],
        from_file["servers"][0]["tools"]
    );

    // Without its own catalog, and with one that is set aside.
    let intents = "intents: [{ query: read the file, gold: [read_file] }]\n";
    let own = format!("catalog: [{{ name: other, description: Other. }}]\n{intents}");
    let scratch = folder(&[("bare.yml", intents), ("own.yml", &own)]);
    for spec in ["bare.yml", "own.yml"] {
        let found = run(
            scratch.path(),
            &["tool-bench", "run", spec, "--url", &files.url, "--json"],
        );
        assert_eq!(found.code, 0, "{}", found.stderr);
        assert_eq!(found.json()["tools"], 2);
        assert_eq!(found.json()["baseline"]["correct"], 1);
    }
    let found = run(scratch.path(), &["tool-bench", "run", "bare.yml"]);
    assert_eq!(found.code, 2);
    assert!(
        found.stderr.contains("there is no catalog"),
        "{}",
        found.stderr
    );
}

/// A server over HTTP that lists entries which are not tools, if the credential is right. Ends with
/// the test's process.
fn strange() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || while answer(&stream).is_some() {});
        }
    });
    format!("http://{address}/mcp")
}

fn answer(mut stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut length, mut authorized) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let lower = line.trim_end().to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        authorized |= lower == "authorization: bearer tok-31415926";
        if lower.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})
        }
        Some("tools/list") => json!({"tools": [
            {"name": "good", "description": "It echoes tok-31415926.", "inputSchema": {"type": "object"}},
            7,
            {"description": "nameless"},
            {"name": "no schema", "annotations": null},
        ]}),
        _ => {
            let head = "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n";
            return stream.write_all(head.as_bytes()).ok();
        }
    };
    let (status, body) = if authorized {
        (
            "200 OK",
            json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string(),
        )
    } else {
        ("401 Unauthorized", String::new())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).ok()
}

#[test]
fn a_malformed_tool_is_a_finding_and_a_credential_is_not_shown() {
    let dir = folder(&[("empty.json", "[]")]);
    let url = strange();
    let header = ["--header", "Authorization: Bearer tok-31415926"];

    let found = run(
        dir.path(),
        &[
            &[
                "doctor",
                "--url",
                &url,
                "--lint-descriptions",
                "--format",
                "json",
            ],
            &header[..],
        ]
        .concat(),
    );
    assert_eq!(found.code, 1, "{}", found.stderr);
    let report = found.json();
    assert_eq!(
        report["servers"][0]["tools"].as_array().map(Vec::len),
        Some(4),
        "{report}"
    );
    let rules: Vec<&str> = report["lint"]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| finding["rule"].as_str())
        .collect();
    assert!(rules.contains(&"TOOL-001"), "{rules:?}");
    assert!(!found.stdout.contains("tok-31415926"), "{}", found.stdout);

    let found = run(
        dir.path(),
        &[&["diff", "empty.json", &url], &header[..]].concat(),
    );
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stdout.contains("added good"), "{}", found.stdout);
    assert!(
        found.stderr.contains(
            "entry 1 of the tools is left out: it is not a tool, but JSON of type number"
        ),
        "{}",
        found.stderr
    );
    assert!(!found.stdout.contains("tok-31415926"), "{}", found.stdout);

    let refused = run(dir.path(), &["diff", "empty.json", &url]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("401"), "{}", refused.stderr);
}
