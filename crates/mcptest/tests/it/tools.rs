//! Direct tool tests: fixtures, saved values, order, isolation, bounds, snapshots.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Ran, folder, mcptest, ran, run};

/// A server that gives every note the id `n-TITLE`, and records what it is asked.
const NOTES: &str = "
mock_server:
  name: notes
  tools:
    - {name: create, input_schema: {type: object, required: [title]}, response: {structured_content: {id: 'n-${args.title}', links: [1, 2]}}}
    - {name: read, response: {content: ['${args}'], structured_content: {of: '${args.id}', when: 'now'}}}
    - {name: delete, response: 'gone ${args.id}'}
    - {name: refuse, response: {content: [the disk is full], is_error: true}}
    - {name: slow, response: {before: [{wait_ms: 150}], content: [done]}}
    - {name: long, response: \"first line\\nsecond ${args.word}\\nthird line\"}
    - {name: late, response: {before: [{wait_ms: 700}], structured_content: {id: n-late}}}
    - {name: hang, fault: hang}
";

/// A suite with the server above; what it was asked is in `asked.jsonl`.
pub fn notes(tools: &str) -> tempfile::TempDir {
    let suite = format!(
        "servers:\n  s: {{command: [mcptest, mock, --tools-from, m.yml, --record, asked.jsonl]}}\ntools:\n{tools}"
    );
    folder(&[("s.yml", &suite), ("m.yml", NOTES)])
}

/// The calls that the server was asked for: the tool and its arguments.
pub fn asked(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("asked.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| line["message"].clone())
        .filter(|message| message["method"] == "tools/call")
        .map(|message| {
            let params = &message["params"];
            format!(
                "{} {}",
                params["name"].as_str().unwrap(),
                params["arguments"]
            )
        })
        .collect()
}

fn verdicts(report: &Value) -> Vec<&str> {
    let tests = report["tests"].as_array().unwrap();
    tests
        .iter()
        .filter_map(|test| test["verdict"].as_str())
        .collect()
}

fn report_of(dir: &Path) -> Value {
    run(dir, &["run", "s.yml", "--reporter", "json"]).json()
}

/// As a person at a terminal would run it: not in CI.
fn locally(dir: &Path, args: &[&str]) -> Ran {
    ran(&mcptest(dir).env_remove("CI").args(args).output().unwrap())
}

#[test]
fn values_go_from_setup_over_the_call_to_teardown() {
    let dir = notes(
        "  - name: read back
    server: s
    setup:
      - {tool: create, args: {title: a}, save: {first: result.structuredContent.id, links: result.structuredContent.links}}
      - {tool: create, args: {title: 'of ${saved.first}'}, save: {second: result.structuredContent.id}}
    tool: read
    args: {id: '${saved.second}', links: '${saved.links}', text: 'see ${saved.first}', literal: '$${saved.first}'}
    save: {read: result.structuredContent.of}
    expect: [{result.structuredContent.of: n-of n-a}]
    teardown:
      - {tool: delete, args: {id: '${saved.read}'}}
      - {tool: delete, args: {id: '${saved.first}'}}
",
    );
    let report = report_of(dir.path());
    assert_eq!(verdicts(&report), ["pass"], "{report}");
    assert_eq!(
        asked(dir.path()),
        [
            r#"create {"title":"a"}"#,
            r#"create {"title":"of n-a"}"#,
            r#"read {"id":"n-of n-a","links":[1,2],"text":"see n-a","literal":"${saved.first}"}"#,
            r#"delete {"id":"n-of n-a"}"#,
            r#"delete {"id":"n-a"}"#,
        ]
    );
    let trace = &report["tests"][0]["runs"][0]["trace"];
    assert_eq!(trace["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!(
        trace["fixtures"][0],
        json!({"stage": "setup", "server": "s", "name": "create", "args": {"title": "a"}, "is_error": false})
    );
    assert_eq!(trace["fixtures"].as_array().unwrap().len(), 4);
}

#[test]
fn a_setup_that_fails_is_an_error_and_what_was_made_is_cleaned_up() {
    let dir = notes(
        "  - name: refused
    server: s
    setup: [{tool: create, args: {title: a}, save: {id: result.structuredContent.id}}, {tool: refuse, save: {never: result.text}}]
    tool: read
    teardown: [{tool: delete, args: {id: '${saved.never}'}}, {tool: delete, args: {id: '${saved.id}'}}]
  - {name: no such tool, server: s, setup: [{tool: creat}], tool: read}
  - {name: nothing to save, server: s, setup: [{tool: read, save: {id: result.structuredContent.id}}], tool: read}
  - {name: fine, server: s, tool: read}
",
    );
    let report = report_of(dir.path());
    assert_eq!(verdicts(&report), ["error", "error", "error", "pass"]);
    assert_eq!(report["exit_code"], 2);
    let error = |test: usize| report["tests"][test]["runs"][0]["error"].clone();
    assert_eq!(
        error(0),
        json!({"kind": "fixture", "message": "setup call 2, `s.refuse`: it failed: the disk is full"})
    );
    let message = error(1)["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("server `s` lists no tool `creat`; did you mean `create`?"),
        "{message}"
    );
    let message = error(2)["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains(
            "there is no `result.structuredContent.id` in the answer, to be saved as `id`"
        ),
        "{message}"
    );
    // The call itself was not made; what setup made was removed, what it never made was not.
    assert_eq!(
        asked(dir.path())[..3],
        [
            r#"create {"title":"a"}"#,
            "refuse {}",
            r#"delete {"id":"n-a"}"#
        ]
    );
}

#[test]
fn teardown_follows_a_failure_and_its_own_failure_is_not_hidden() {
    let dir = notes(
        "  - {name: wrong, server: s, tool: read, expect: [{result.text: no}], teardown: [{tool: refuse}, {tool: delete, args: {id: x}}]}
  - {name: right, server: s, tool: delete, teardown: [{tool: refuse}, {tool: delete, args: {id: y}}]}
  - {name: after, server: s, tool: delete}
",
    );
    let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    let report = ran.json();
    assert_eq!(verdicts(&report), ["fail", "error", "pass"]);
    assert!(
        ran.stderr.contains(
            "warning: test `wrong`: teardown call 1, `s.refuse`: it failed: the disk is full"
        ),
        "{}",
        ran.stderr
    );
    assert_eq!(report["tests"][1]["runs"][0]["error"]["kind"], "fixture");
    assert_eq!(
        asked(dir.path()),
        [
            "read {}",
            "refuse {}",
            r#"delete {"id":"x"}"#,
            "delete {}",
            "refuse {}",
            r#"delete {"id":"y"}"#,
            "delete {}"
        ]
    );
}

/// A server that answers calls two at a time: one that comes alone waits forever.
const PAIRS: &str = r#"
held=
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}' ;;
    *tools/call*)
      held="$held $id"
      set -- $held
      if [ $# = 2 ]; then
        for one in "$@"; do echo '{"jsonrpc":"2.0","id":'$one',"result":{"content":[]}}'; done
        held=
      fi ;;
    *'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
  esac
done
"#;

#[test]
fn calls_to_one_server_are_under_way_together() {
    let suite = "servers: {s: {command: [sh, pairs.sh], timeout: 2s}}
tools:
  - {name: a, server: s, tool: t}
  - {name: b, server: s, tool: t}
  - {name: c, server: s, tool: t}
  - {name: d, server: s, tool: t}
";
    let dir = folder(&[("s.yml", suite), ("pairs.sh", PAIRS)]);
    assert_eq!(verdicts(&report_of(dir.path())), ["pass"; 4]);
    let one_by_one = run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "--reporter",
            "json",
            "--jobs",
            "1",
            "--filter",
            "a",
        ],
    )
    .json();
    assert_eq!(verdicts(&one_by_one), ["error"]);
    assert_eq!(
        one_by_one["tests"][0]["runs"][0]["error"]["kind"],
        "timeout"
    );
}

#[test]
fn a_serial_test_has_the_server_for_itself_in_its_place() {
    // The slow call is answered late: whoever does not wait for it comes before what follows it.
    let dir = notes(
        "  - {name: before, server: s, tool: slow, args: {n: 1}}
  - {name: alone, server: s, setup: [{tool: create, args: {title: x}}], tool: slow, args: {n: 2}, teardown: [{tool: delete}]}
  - {name: timed, server: s, tool: slow, args: {n: 3}, expect: {max_duration_ms: 60000}}
  - {name: asks for it, server: s, serial: true, setup: [{tool: slow, args: {n: 4}}], tool: slow, args: {n: 5}}
  - {name: after, server: s, tool: read}
",
    );
    let report = report_of(dir.path());
    assert_eq!(verdicts(&report), ["pass"; 5], "{report}");
    assert_eq!(
        asked(dir.path()),
        [
            r#"slow {"n":1}"#,
            r#"create {"title":"x"}"#,
            r#"slow {"n":2}"#,
            "delete {}",
            r#"slow {"n":3}"#,
            r#"slow {"n":4}"#,
            r#"slow {"n":5}"#,
            "read {}"
        ]
    );
    // One that allows it declares it, and then its own calls may have others between them.
    let dir = notes(
        "  - {name: careless, server: s, serial: false, setup: [{tool: slow, args: {n: 1}}], tool: slow, args: {n: 2}}
  - {name: between, server: s, tool: read}
",
    );
    assert_eq!(verdicts(&report_of(dir.path())), ["pass"; 2]);
    assert_eq!(
        asked(dir.path()),
        [r#"slow {"n":1}"#, "read {}", r#"slow {"n":2}"#]
    );
}

#[test]
fn a_test_can_have_its_own_server() {
    let suite = format!(
        "servers: {{s: {{command: [bash, -c, 'echo start >> starts; exec \"$0\" mock --tools-from m.yml', '{}']}}}}
tools:
  - {{name: a, server: s, tool: read}}
  - {{name: b, server: s, tool: read, isolation: run, setup: [{{tool: read}}], teardown: [{{tool: read}}]}}
  - {{name: c, server: s, tool: read}}
",
        env!("CARGO_BIN_EXE_mcptest")
    );
    let dir = folder(&[("s.yml", &suite), ("m.yml", NOTES)]);
    assert_eq!(verdicts(&report_of(dir.path())), ["pass", "pass", "pass"]);
    let starts = std::fs::read_to_string(dir.path().join("starts")).unwrap();
    assert_eq!(starts.lines().count(), 2);
}

#[test]
fn answers_have_a_price_in_tokens() {
    let dir = notes(
        "  - {name: cheap, server: s, tool: delete, args: {id: x}, expect: {max_response_tokens: 2}}
  - {name: dear, server: s, tool: delete, args: {id: x}, expect: {max_response_tokens: 1}}
  - {name: refused, server: s, tool: nope, expect: {assertions: [{error.code: -32602}], max_response_tokens: 20}}
",
    );
    let report = report_of(dir.path());
    assert_eq!(verdicts(&report), ["pass", "fail", "pass"], "{report}");
    let assertions = report["tests"][1]["runs"][0]["assertions"]
        .as_array()
        .unwrap();
    assert_eq!(
        assertions.last().unwrap(),
        &json!({"target": "response_tokens", "matcher": {"<=": 1}, "actual": 2, "passed": false, "default": false, "reason": "2 is greater than 1"})
    );
}

const SNAPSHOTS: &str = "
  - {name: Read it!, server: s, tool: read, args: {id: 7}, snapshot: true}
  - {name: part, server: s, tool: read, args: {id: 7}, snapshot: {target: result.structuredContent, ignore: [result.structuredContent.when], name: other}}
  - {name: refused, server: s, tool: nope, expect: [{error.code: -32602}], snapshot: true}
";

#[test]
fn a_snapshot_is_written_when_asked_and_then_holds() {
    let dir = notes(SNAPSHOTS);
    // Without one, the test fails and nothing is written.
    let first = locally(dir.path(), &["run", "s.yml"]);
    assert_eq!(first.code, 1);
    assert!(
        first.stdout.contains("there is no snapshot yet"),
        "{}",
        first.stdout
    );
    assert!(!dir.path().join("snapshots").exists());

    let written = locally(dir.path(), &["run", "s.yml", "--update-snapshots"]);
    assert_eq!(written.code, 0, "{}{}", written.stdout, written.stderr);
    let mut lines: Vec<&str> = written.stderr.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "snapshot written: snapshots/s/other.json",
            "snapshot written: snapshots/s/read-it.json",
            "snapshot written: snapshots/s/refused.json",
        ]
    );
    let stored =
        |name: &str| std::fs::read_to_string(dir.path().join("snapshots/s").join(name)).unwrap();
    assert_eq!(
        stored("other.json"),
        "{\n  \"of\": 7,\n  \"when\": \"[ignored]\"\n}\n"
    );
    assert_eq!(
        serde_json::from_str::<Value>(&stored("refused.json")).unwrap(),
        json!({"error": {"code": -32602, "message": "Unknown tool: nope"}})
    );
    // The same again changes nothing, in CI or not.
    let again = locally(dir.path(), &["run", "s.yml", "--update-snapshots"]);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));
    let report = report_of(dir.path());
    assert_eq!(verdicts(&report), ["pass", "pass", "pass"]);
    assert_eq!(
        report["tests"][0]["runs"][0]["assertions"][2],
        json!({"target": "result", "matcher": {"snapshot": "snapshots/s/read-it.json"}, "actual": null, "passed": true, "default": false})
    );
}

#[test]
fn a_snapshot_that_does_not_hold_shows_the_difference() {
    let dir = notes(
        "  - {name: t, server: s, tool: long, args: {word: '${WORD:-one}'}, snapshot: true}\n",
    );
    assert_eq!(
        locally(dir.path(), &["run", "s.yml", "--update-snapshots"]).code,
        0
    );
    let changed = |args: &[&str], ci: &str| {
        ran(&mcptest(dir.path())
            .env("CI", ci)
            .env("WORD", "two")
            .args(args)
            .output()
            .unwrap())
    };
    let failed = changed(&["run", "s.yml"], "true");
    assert_eq!(failed.code, 1);
    let wanted = "           at /content/0/text
             @@ -1,3 +1,3 @@
              first line
             -second one
             +second two
              third line
";
    assert!(failed.stdout.contains(wanted), "{}", failed.stdout);

    // CI does not write, whatever it is called, unless it has both flags.
    for ci in ["true", "1", "yes"] {
        let refused = changed(&["run", "s.yml", "--update-snapshots"], ci);
        assert_eq!(refused.code, 2);
        assert!(
            refused
                .stderr
                .contains("`--update-snapshots` is refused in CI"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(changed(&["run", "s.yml"], "").code, 1);
    for ci in ["", "0", "false"] {
        std::fs::remove_dir_all(dir.path().join("snapshots")).unwrap();
        assert_eq!(changed(&["run", "s.yml", "--update-snapshots"], ci).code, 0);
    }
    assert_eq!(
        locally(dir.path(), &["run", "s.yml", "--update-snapshots"]).stderr,
        "snapshot updated: snapshots/s/t.json\n"
    );
    let told_twice = changed(
        &["run", "s.yml", "--update-snapshots", "--allow-ci-updates"],
        "true",
    );
    assert_eq!(told_twice.code, 0, "{}", told_twice.stderr);
}

#[test]
fn a_wrong_answer_is_not_kept_and_unused_snapshots_are_listed() {
    let dir = notes(
        "  - {name: t, server: s, tool: refuse, snapshot: true}\n  - {name: u, server: s, tool: read, snapshot: true}\n",
    );
    let kept = dir.path().join("snapshots/s");
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(kept.join("old.json"), "1").unwrap();
    std::fs::write(kept.join("u.json"), "{").unwrap();
    let ran = locally(dir.path(), &["run", "s.yml", "--update-snapshots"]);
    assert_eq!(ran.code, 1);
    assert!(!kept.join("t.json").exists());
    assert!(
        ran.stderr.contains("snapshot updated: snapshots/s/u.json"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("unused snapshot, no test of the suite has it: snapshots/s/old.json"),
        "{}",
        ran.stderr
    );
    // A filter does not make the others' snapshots useless.
    let filtered = locally(
        dir.path(),
        &["run", "s.yml", "--update-snapshots", "--filter", "t"],
    );
    assert!(!filtered.stderr.contains("u.json"), "{}", filtered.stderr);
    let broken = |text: &str| {
        std::fs::write(kept.join("u.json"), text).unwrap();
        locally(dir.path(), &["run", "s.yml", "--filter", "u"])
    };
    assert!(broken("{").stdout.contains("the snapshot cannot be read"));
}

#[test]
fn secrets_do_not_reach_a_snapshot() {
    let dir =
        notes("  - {name: t, server: s, tool: read, args: {id: '${MY_TOKEN}'}, snapshot: true}\n");
    let run = |args: &[&str]| {
        ran(&mcptest(dir.path())
            .env_remove("CI")
            .env("MY_TOKEN", "s3cr3t-value")
            .args(args)
            .output()
            .unwrap())
    };
    let written = run(&["run", "s.yml", "--update-snapshots"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let text = std::fs::read_to_string(dir.path().join("snapshots/s/t.json")).unwrap();
    assert!(
        text.contains("[redacted]") && !text.contains("s3cr3t"),
        "{text}"
    );
    assert_eq!(run(&["run", "s.yml"]).code, 0);
}

#[test]
fn a_similar_tool_is_suggested_for_an_unknown_one() {
    let dir = notes(
        "  - {name: a, server: s, tool: reed}\n  - {name: b, server: s, tool: refuse}\n  - {name: c, server: s, tool: nope, expect: [{error.code: -32602}]}\n",
    );
    let report = report_of(dir.path());
    assert_eq!(verdicts(&report), ["fail", "fail", "pass"]);
    let reason = |test: usize| {
        let assertions = report["tests"][test]["runs"][0]["assertions"]
            .as_array()
            .unwrap();
        let failed = assertions
            .iter()
            .find(|assertion| assertion["passed"] == false)
            .unwrap();
        failed["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        reason(0),
        "server `s` lists no tool `reed`; did you mean `read`?"
    );
    // It is there and refused: nothing to add.
    assert_eq!(reason(1), "the values differ");
    let lists = std::fs::read_to_string(dir.path().join("asked.jsonl")).unwrap();
    assert_eq!(
        lists.matches("\"tools/list\"").count(),
        1,
        "asked for once, and only for a failure"
    );
}

#[test]
fn a_bearer_token_is_sent_and_hidden() {
    let address = crate::http::serve();
    let suite = format!(
        "servers: {{s: {{url: 'http://{address}/mcp', bearer: '${{WORD}}'}}}}
tools:
  - {{name: t, server: s, tool: whoami, expect: [{{result.text: 'you are Bearer abc-123-xyz'}}]}}
  - {{name: u, server: s, tool: whoami, expect: [{{result.text: 'you are nobody'}}]}}
"
    );
    let dir = folder(&[("s.yml", &suite)]);
    let ran = ran(&mcptest(dir.path())
        .env("WORD", "abc-123-xyz")
        .args(["run", "s.yml"])
        .output()
        .unwrap());
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("PASS   t"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("you are Bearer [redacted]"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("abc-123-xyz") && !ran.stderr.contains("abc-123-xyz"));
}
