//! Every file that a command writes: links and devices stay, a full disk is exit 2, nothing is left
//! beside a file that could not be written, and no secret reaches any output.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{Ran, folder, ran, run};

/// A value that is a secret because a variable of the environment has it.
const SECRET: &str = "pLanted-7f3Kq9-Zx81vB";

/// Every command with a file to write, which is `OUT`.
const FILES: &[&[&str]] = &[
    &["run", "suite.yml", "--no-history", "--reporter", "json=OUT"],
    &[
        "run",
        "suite.yml",
        "--no-history",
        "--reporter",
        "junit=OUT",
    ],
    &["run", "suite.yml", "--no-history", "--reporter", "html=OUT"],
    &[
        "run",
        "suite.yml",
        "--no-history",
        "--reporter",
        "markdown=OUT",
    ],
    &[
        "run",
        "suite.yml",
        "--no-history",
        "--reporter",
        "pretty=OUT",
    ],
    &[
        "score",
        "suite.yml",
        "--trace",
        "trace.jsonl",
        "--reporter",
        "json=OUT",
    ],
    &[
        "score",
        "suite.yml",
        "--trace",
        "trace.jsonl",
        "--out",
        "OUT",
    ],
    &[
        "score",
        "suite.yml",
        "--trace",
        "trace.jsonl",
        "--partial",
        "OUT",
    ],
    &["report", "report.json", "--reporter", "json=OUT"],
    &["report", "report.json", "--reporter", "html=OUT"],
    &["report", "merge", "report.json", "--output", "OUT"],
    &["trace", "convert", "trace.jsonl", "--out", "OUT"],
    &["trace", "anonymise", "trace.jsonl", "--out", "OUT"],
    &["trace", "infer", "trace.jsonl", "--out", "OUT"],
    &["doctor", "--tools-from", "tools.json", "--fix", "OUT"],
    &[
        "cassette",
        "merge",
        "cassettes/suite.yml/agent.json",
        "cassettes/suite.yml/agent.json",
        "--output",
        "OUT",
    ],
    &["mock", "--tools-from", "tools.yml", "--record", "OUT"],
    &[
        "proxy",
        "--record",
        "OUT",
        "--",
        "mcptest",
        "mock",
        "--tools-from",
        "tools.yml",
    ],
];

/// Commands that only print.
const PRINTED: &[&[&str]] = &[
    &["run", "suite.yml", "--no-history", "-vv"],
    &["run", "suite.yml", "--record", "--reporter", "json"],
    &["run", "pLanted-7f3Kq9-Zx81vB.yml"],
    &["pLanted-7f3Kq9-Zx81vB"],
    &["run", "suite.yml", "--pLanted-7f3Kq9-Zx81vB"],
    &["score", "suite.yml", "--trace", "trace.jsonl"],
    &["score", "suite.yml", "--trace", "broken.jsonl"],
    &["validate", "suite.yml"],
    &["validate", "broken.yml"],
    &["validate", "broken.yml", "--format", "json"],
    &["mutate", "suite.yml", "--trace", "trace.jsonl"],
    &["report"],
    &["report", "--list"],
    &["report", "report.json"],
    &["report", "report.json", "--compare", "report.json"],
    &["report", "broken.jsonl"],
    &["report", "merge", "broken.jsonl"],
    &["trace", "show", "trace.jsonl"],
    &["trace", "stats", "trace.jsonl"],
    &["trace", "stats", "trace.jsonl", "--format", "json"],
    &["diff", "tools.json", "other.json"],
    &["diff", "tools.json", "other.json", "--format", "json"],
    &["diff", "tools.json", "other.json", "--format", "markdown"],
    &[
        "diff",
        "tools.json",
        "--",
        "mcptest",
        "mock",
        "--tools-from",
        "tools.yml",
    ],
    &["diff", "tools.json", "broken.jsonl"],
    &["tool-bench", "run", "bench.yml", "--all-mutations"],
    &["tool-bench", "run", "bench.yml", "--json"],
    &[
        "tool-bench",
        "run",
        "bench.yml",
        "--tools-from",
        "other.json",
    ],
    &[
        "tool-bench",
        "run",
        "bench.yml",
        "--",
        "mcptest",
        "mock",
        "--tools-from",
        "tools.yml",
    ],
    &["doctor", "--tools-from", "tools.json", "--all"],
    &["doctor", "--tools-from", "tools.json", "--format", "json"],
    &["doctor", "--tools-from", "tools.json", "--format", "sarif"],
    &["doctor", "--suite", "suite.yml"],
    &["doctor", "--", "sh", "-c", "echo pLanted-7f3Kq9-Zx81vB"],
    &["cassette", "show", "cassettes/suite.yml/agent.json"],
    &["cassette", "verify", "--suite", "suite.yml"],
    &[
        "cassette",
        "diff",
        "cassettes/suite.yml/agent.json",
        "cassettes/suite.yml/other.json",
    ],
    &["mock", "--tools-from", "broken.yml"],
    &["explain", "pLanted-7f3Kq9-Zx81vB"],
    &["agents", "show", "pLanted-7f3Kq9-Zx81vB"],
];

const MANIFEST: &str = r#"mock_server:
  name: words
  tools:
    - name: look_up
      description: Looks up a word SECRET in the list and returns it.
      inputSchema: {type: object, properties: {q: {type: string, description: "the word"}}}
      response: "found SECRET here"
"#;

const SUITE: &str = r#"name: outputs SECRET
servers:
  words: {command: [mcptest, mock, --tools-from, tools.yml], env: {WORD: SECRET}}
agents:
  - name: agent
    model: builtin/scripted
    servers: [words]
    prompt: Look up SECRET.
    script: [[{calls: [{tool: words.look_up, args: {q: SECRET}}]}, {say: "It is SECRET."}]]
    expect: [{final_response: {contains: nothing like it}}]
tools:
  - {name: direct SECRET, server: words, tool: look_up, args: {q: SECRET}}
"#;

const TRACE: &str = r#"{"test":"agent","model":"builtin/scripted","tool_calls":[{"id":"1","name":"look_up","server":"words","args":{"q":"SECRET"}}],"tool_results":[{"call_id":"1","is_error":false,"content":[{"type":"text","text":"found SECRET"}]}],"conversation":{"turns":[{"role":"user","content":"Look up SECRET."},{"role":"assistant","content":"It is SECRET."}],"tokens":{"input":1,"output":1,"total":2}},"final_response":"It is SECRET.","catalog":[{"server":"words","name":"look_up","description":"SECRET","inputSchema":{}}]}
"#;

const CATALOG: &str = r#"{"tools":[{"name":"look_up","description":"Looks up SECRET","inputSchema":{"type":"object","properties":{"q":{"type":"string","enum":["SECRET","other"]}}}}]}"#;

const OTHER: &str = r#"{"tools":[{"name":"look_up","description":"Looks SECRET up","inputSchema":{"type":"object","properties":{"q":{"type":"string","enum":["SECRET"]}}}},{"name":"SECRET","description":"SECRET","inputSchema":{}}]}"#;

const BENCH: &str = r#"catalog_path: tools.json
intents:
  - {query: "look up SECRET", gold: [look_up]}
"#;

const MESSAGES: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"SECRET","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"look_up","arguments":{"q":"SECRET"}}}
"#;

/// A folder with an input of every kind, each with a word in every place.
fn workspace(word: &str) -> TempDir {
    let put = |text: &str| text.replace("SECRET", word);
    let broken = "agents: [{name: x, model: SECRET, prompt: SECRET, SECRET: SECRET}]\n";
    let dir = folder(&[
        ("tools.yml", &put(MANIFEST)),
        ("suite.yml", &put(SUITE)),
        ("trace.jsonl", &put(TRACE)),
        ("tools.json", &put(CATALOG)),
        ("other.json", &put(OTHER)),
        ("bench.yml", &put(BENCH)),
        ("broken.yml", &put(broken)),
        ("broken.jsonl", &put("{\"SECRET\": SECRET}\n")),
        ("messages", &put(MESSAGES)),
    ]);
    // Made without the variable that makes the word a secret.
    let at = dir.path();
    let recorded = run(
        at,
        &[
            "run",
            "suite.yml",
            "--record",
            "--reporter",
            "json=report.json",
        ],
    );
    assert_eq!(recorded.code, 1, "{}{}", recorded.stdout, recorded.stderr);
    fs::copy(
        at.join("cassettes/suite.yml/agent.json"),
        at.join("cassettes/suite.yml/other.json"),
    )
    .unwrap();
    dir
}

/// Runs a command in a shell that first executes `before`, with `OUT` replaced.
fn in_shell(dir: &Path, before: &str, args: &[&str], out: &str) -> Ran {
    let program = env!("CARGO_BIN_EXE_mcptest");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(program)
        .args(args.iter().map(|arg| arg.replace("OUT", out)))
        .current_dir(dir)
        .env("CI", "true")
        .stdin(Stdio::from(fs::File::open(dir.join("messages")).unwrap()));
    ran(&shell.output().unwrap())
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[cfg(unix)]
#[test]
fn issue_14_links_and_devices_are_written_through() {
    let dir = workspace("word");
    let at = dir.path();
    std::os::unix::fs::symlink("target", at.join("link")).unwrap();
    for args in FILES {
        fs::write(at.join("target"), "old").unwrap();
        let ran = in_shell(at, "", args, "link");
        assert!((0..2).contains(&ran.code), "{args:?}: {}", ran.stderr);
        assert!(fs::symlink_metadata(at.join("link")).unwrap().is_symlink());
        assert_ne!(
            fs::read_to_string(at.join("target")).unwrap(),
            "old",
            "{args:?}"
        );
    }
    // A recorded cassette, too.
    let cassette = at.join("cassettes/suite.yml/agent.json");
    fs::rename(&cassette, at.join("target")).unwrap();
    let old = fs::metadata(at.join("target")).unwrap().modified().unwrap();
    std::os::unix::fs::symlink("../../target", &cassette).unwrap();
    run(at, &["run", "suite.yml", "--record"]);
    assert!(fs::symlink_metadata(&cassette).unwrap().is_symlink());
    assert!(fs::metadata(at.join("target")).unwrap().modified().unwrap() > old);
}

#[cfg(target_os = "linux")]
#[test]
fn issue_14_a_full_disk_is_exit_2_for_every_file() {
    let dir = workspace("word");
    let at = dir.path();
    let before = names(at);
    // A limit on the size of files is a disk that is full immediately; the signal must not end us.
    let full = "trap '' XFSZ; ulimit -f 0;";
    for args in FILES {
        for (shell, out) in [("", "/dev/full"), (full, "new")] {
            let ran = in_shell(at, shell, args, out);
            let shown = format!("{args:?} {out}: {}", ran.stderr);
            assert_eq!(ran.code, 2, "{shown}");
            assert!(ran.stderr.contains("error: "), "{shown}");
            // `infer` writes a temporary file first, and fails there.
            let names_file = ran.stderr.contains(out) || args[1] == "infer";
            assert!(names_file, "{shown}");
            // Lines that are appended one by one have a file from the start.
            let _ = fs::remove_file(at.join("new")).is_err();
            assert_eq!(names(at), before, "{shown}");
        }
    }
    // The log of a run and its cassettes are files as well.
    let ran = in_shell(at, full, &["run", "suite.yml", "--record"], "");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert_eq!(
        names(&at.join("cassettes/suite.yml")),
        ["agent.json", "other.json"]
    );
}

#[test]
fn issue_14_no_secret_reaches_any_output() {
    let dir = workspace(SECRET);
    let at = dir.path();
    let inputs = names(at);
    let mut leaks = Vec::new();
    let commands = PRINTED.iter().chain(FILES);
    for (index, args) in commands.enumerate() {
        let out = format!("out-{index}");
        let set = format!("export PLANTED_API_KEY={SECRET};");
        let ran = in_shell(at, &set, args, &out);
        // A relay and a server pass messages on as they are.
        let relays = ["mock", "proxy"].contains(&args[0]);
        if ran.stdout.contains(SECRET) && !relays {
            leaks.push(format!("{args:?}: standard output\n{}", ran.stdout));
        }
        if ran.stderr.contains(SECRET) {
            leaks.push(format!("{args:?}: standard error\n{}", ran.stderr));
        }
        for name in names(at).iter().filter(|name| !inputs.contains(name)) {
            let text = fs::read(at.join(name)).unwrap();
            if String::from_utf8_lossy(&text).contains(SECRET) {
                leaks.push(format!("{args:?}: the file {name}"));
            }
            fs::remove_file(at.join(name)).unwrap();
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n\n"));
}
