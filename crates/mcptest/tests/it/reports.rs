//! `report`: shown again, compared, merged; the reporters that CI systems read.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{files, folder, root, run};

const MANIFEST: &str = "
mock_server:
  name: s
  tools:
    - {name: search, description: search the web, input_schema: {type: object}, response: found}
    - {name: fetch, description: fetch one page, input_schema: {type: object}, response: page}
";

/// A floor over two models, and direct calls; `rest` are the calls of the second model's second
/// run.
fn suite(rest: &str) -> String {
    format!(
        "
name: both
servers: {{s: {{command: [mcptest, mock, --tools-from, m.yml]}}}}
agents:
  - name: selection
    models: [builtin/lexical, builtin/scripted]
    servers: [s]
    prompt: search for cats
    runs: 2
    script: [[{{calls: [{{tool: search}}], usage: {{input: 10, output: 5}}}}, {{say: ok}}], [{{calls: [{{tool: {rest}}}]}}, {{say: ok}}]]
    tool_selection: {{expected_tool: search, min_selection_rate: 0.8}}
tools:
  - {{name: fetches, server: s, tool: fetch, expect: [{{result.text: page}}]}}
"
    )
}

fn report_of(dir: &Path, suite: &str, args: &[&str]) -> i32 {
    let mut all = vec!["run", suite];
    all.extend(args);
    run(dir, &all).code
}

#[test]
fn a_report_shown_again_is_the_same_bytes() {
    // Every example: all gates, errors, missing figures.
    let dir = folder(&[]);
    let written = dir.path().join("r.json");
    let target = format!("json={}", written.display());
    let mut shown = 0;
    for suite in files(&root().join("examples"), "yml") {
        if suite.starts_with(root().join("examples/own-agents")) {
            // Its agents need programs and keys of their own.
            continue;
        }
        let suite = suite.display().to_string();
        std::fs::remove_file(&written).ok();
        let pretty = run(
            &root(),
            &["run", &suite, "--reporter", &target, "--reporter", "pretty"],
        );
        let Ok(bytes) = std::fs::read_to_string(&written) else {
            // A manifest, a bench, a suite for `score`.
            continue;
        };
        let file = written.display().to_string();
        let again = run(&root(), &["report", &file, "--reporter", "json"]);
        assert_eq!((again.code, &again.stdout), (0, &bytes), "{suite}");
        assert_eq!(
            run(&root(), &["report", &file]).stdout,
            pretty.stdout,
            "{suite}"
        );
        let same = run(
            &root(),
            &["report", &file, "--compare", &file, "--reporter", "json"],
        );
        assert_eq!(
            (same.code, &same.json()["cases"]),
            (0, &json!([])),
            "{suite}"
        );
        shown += 1;
    }
    assert!(shown > 15, "{shown}");
}

#[test]
fn a_floor_that_flipped_is_reported() {
    let dir = folder(&[
        ("good.yml", &suite("search")),
        ("bad.yml", &suite("fetch")),
        ("m.yml", MANIFEST),
    ]);
    assert_eq!(
        report_of(dir.path(), "good.yml", &["--reporter", "json=good.json"]),
        0
    );
    assert_eq!(
        report_of(dir.path(), "bad.yml", &["--reporter", "json=bad.json"]),
        1
    );
    let worse = run(
        dir.path(),
        &["report", "bad.json", "--compare", "good.json"],
    );
    assert_eq!(worse.code, 1);
    assert_eq!(
        worse.stdout,
        "both
  REGRESSED  selection [builtin/scripted]  pass -> fail  (may be noise)
             tool_selection: pass -> fail  [REGRESSED]
               floor.selection_rate  100 % -> 50 %: -50 points (95 %: -91 to +27), p 1.000, \
         adjusted 1.000; not enough runs to tell: 12 more per side would do
               floor.pass_hat_k  100 -> 50 (-50)
               floor.passed  1 -> 0 (-1)
               floor.passed {\">=\":1}  [REGRESSED]

3 tests: 1 regressed, 2 unchanged
"
    );
    let better = run(
        dir.path(),
        &[
            "report",
            "good.json",
            "--compare",
            "bad.json",
            "--reporter",
            "json",
        ],
    );
    assert_eq!(better.code, 0);
    let told = better.json();
    assert_eq!(told["counts"]["fixed"], 1);
    assert_eq!(told["cases"][0]["gates"][0]["flip"], "fixed");
    let rate = &told["cases"][0]["gates"][0]["values"][0];
    for (key, value) in [("old", 50), ("new", 100), ("delta", 50)] {
        assert_eq!(rate[key], value, "{rate}");
    }
    assert_eq!(rate["name"], "floor.selection_rate");
    assert_eq!(rate["statistics"]["significant"], false, "{rate}");
    let page = run(
        dir.path(),
        &[
            "report",
            "bad.json",
            "--compare",
            "good.json",
            "--reporter",
            "markdown",
        ],
    );
    assert!(
        page.stdout.contains(
            "| `selection [builtin/scripted]` | **regressed** (may be noise) | pass -> fail |"
        ),
        "{}",
        page.stdout
    );
    let refused = run(
        dir.path(),
        &[
            "report",
            "bad.json",
            "--compare",
            "good.json",
            "--reporter",
            "allure=results",
        ],
    );
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("these can: pretty, json, markdown"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_file_that_is_not_a_report_is_an_error() {
    let dir = folder(&[
        ("text.json", "hello"),
        ("other.json", "{\n\"tests\": 1}"),
        ("new.json", "{\"schema_version\": 2}"),
    ]);
    let told = |args: &[&str]| {
        let ran = run(dir.path(), args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert_eq!(ran.stdout, "");
        ran.stderr
    };
    assert_eq!(
        told(&["report", "none.json"]),
        "error: cannot read `none.json`: no such file\n"
    );
    assert_eq!(
        told(&["report", "new.json"]),
        "error: new.json: the report has schema version 2, and this mcptest reads version 1\n"
    );
    assert_eq!(
        told(&["report", "other.json"]),
        "error: other.json:2:11: not a report of mcptest: missing field `schema_version`\n  a report is what `--reporter json` writes, see `mcptest schema report`\n"
    );
    assert!(told(&["report", "text.json"]).contains("text.json:1:1: not a report of mcptest"));
    assert!(told(&["report", "merge", "new.json"]).contains("schema version 2"));
    assert!(told(&["report"]).contains("there is no run in the history"));
    let shared = [
        "report",
        "new.json",
        "--reporter",
        "json=r",
        "--reporter",
        "junit=r",
    ];
    assert_eq!(
        told(&shared),
        "error: two reporters cannot share the file `r`\n"
    );
    assert!(
        told(&["report", "new.json", "--reporter", "xml"])
            .contains("known are pretty, json, junit, markdown")
    );
}

#[test]
fn shards_of_any_number_make_the_whole_again() {
    let other = "
name: other
servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}
tools:
  - {name: one, server: s, tool: fetch}
  - {name: two, server: s, tool: nope}
  - {name: three, server: s, tool: fetch}
";
    let dir = folder(&[
        ("a.yml", &suite("fetch")),
        ("b.yml", other),
        ("m.yml", MANIFEST),
    ]);
    let whole = run(
        dir.path(),
        &["run", ".", "--reporter", "json", "--no-timing"],
    );
    let timed = run(dir.path(), &["run", ".", "--reporter", "json=timed.json"]);
    assert_eq!((whole.code, timed.code), (1, 1));
    for of in 1..=8 {
        let mut args = vec!["report".to_owned(), "merge".to_owned()];
        let mut cases = 0;
        for number in 1..=of {
            let (shard, file) = (format!("{number}/{of}"), format!("json=part-{number}.json"));
            let mut command = vec![
                "run",
                ".",
                "--shard",
                &shard,
                "--no-timing",
                "--reporter",
                &file,
            ];
            if of % 2 == 0 {
                command.extend(["--timings", "timed.json"]);
            }
            let ran = run(dir.path(), &command);
            let part =
                std::fs::read_to_string(dir.path().join(format!("part-{number}.json"))).unwrap();
            let part: Value = serde_json::from_str(&part).unwrap();
            assert_eq!(part["shard"]["total"], 6);
            let inside = part["tests"].as_array().unwrap().len();
            cases += inside;
            if inside == 0 {
                assert_eq!(ran.code, 0);
                assert_eq!(ran.stderr, format!("shard {shard} has nothing to run\n"));
            }
            // The last one first.
            args.insert(2, format!("part-{number}.json"));
        }
        assert_eq!(cases, 6, "each case is in one shard");
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let merged = run(dir.path(), &args);
        assert_eq!(
            (merged.code, &merged.stdout),
            (1, &whole.stdout),
            "{of} shards"
        );
        if of > 1 {
            let missing = run(dir.path(), &args[..args.len() - 1]);
            assert_eq!(missing.code, 2);
            assert!(missing.stderr.contains("shard 1 of"), "{}", missing.stderr);
        }
    }
    let output = run(
        dir.path(),
        &["report", "merge", "timed.json", "--output", "again.json"],
    );
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert_eq!(
        std::fs::read(dir.path().join("again.json")).unwrap(),
        std::fs::read(dir.path().join("timed.json")).unwrap()
    );
}

#[test]
fn models_are_shown_side_by_side() {
    let dir = folder(&[("s.yml", &suite("fetch")), ("m.yml", MANIFEST)]);
    let ran = run(dir.path(), &["run", "s.yml"]);
    assert!(
        ran.stdout.contains(
            "
both by model
             builtin/lexical  builtin/scripted
  selection  PASS 100%        FAIL 50%
"
        ),
        "{}",
        ran.stdout
    );
    let page = run(dir.path(), &["run", "s.yml", "--reporter", "markdown"]).stdout;
    assert!(
        page.contains(
            "| test | `builtin/lexical` | `builtin/scripted` |\n|---|---|---|\n| `selection` | pass 100% | fail 50% |\n"
        ),
        "{page}"
    );
}

#[test]
fn junit_counts_tests_and_shows_attempts() {
    let dir = folder(&[("s.yml", &suite("fetch")), ("m.yml", MANIFEST)]);
    let xml = run(
        dir.path(),
        &["run", "s.yml", "--reporter", "junit", "--no-timing"],
    )
    .stdout;
    assert!(
        xml.contains("<testsuite name=\"both\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"0.000\">"),
        "{xml}"
    );
    assert_eq!(xml.matches("<testcase ").count(), 3);
    assert!(
        xml.contains("<failure message=\"tool_selection: selection 1/2 (50%)"),
        "{xml}"
    );
}

#[test]
fn the_page_is_one_file_and_the_same_bytes_every_time() {
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", &suite("fetch"))]);
    let pages = ["a.html", "b.html"].map(|name| {
        let target = format!("html={name}");
        let args = [
            "--no-timing",
            "--reporter",
            &target,
            "--reporter",
            "json=r.json",
        ];
        assert_eq!(report_of(dir.path(), "s.yml", &args), 1);
        std::fs::read_to_string(dir.path().join(name)).unwrap()
    });
    assert_eq!(pages[0], pages[1]);
    let again = run(dir.path(), &["report", "r.json", "--reporter", "html"]);
    assert_eq!((again.code, again.stdout), (0, pages[0].clone()));
    let head = pages[0].split_once("id=\"head\">").unwrap().1;
    let head: Value = serde_json::from_str(head.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(head["verdict"], "fail");
    // Where a suite is, as the times, differs between machines.
    assert_eq!(head["tests"][0].get("file"), None);
    // The gate's own words, with the range of its figures.
    let meaning = &head["gates"][0];
    assert_eq!(meaning["block"], "tool_selection");
    assert_eq!(meaning["targets"][0]["range"], json!([0.0, 100.0]));
    assert_eq!(head["tests"][1]["plots"]["selection"]["runs"], 2);
    // Nothing is loaded from elsewhere.
    assert!(!pages[0].contains(" src=") && !pages[0].contains("@import"));
    let timed = run(dir.path(), &["run", "s.yml", "--reporter", "html"]).stdout;
    let head = timed.split_once("id=\"head\">").unwrap().1;
    let head: Value = serde_json::from_str(head.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(head["tests"][0]["file"], "s.yml");
}

#[test]
fn a_page_needs_the_log_that_it_follows() {
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", &suite("fetch"))]);
    let ran = run(dir.path(), &["run", "s.yml", "--ui", "--no-history"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--no-history"), "{}", ran.stderr);
    // Without a reader, a run with a page ends as it does without one.
    let ran = run(dir.path(), &["run", "s.yml", "--ui"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("http://127.0.0.1:"), "{}", ran.stderr);
    let ran = run(dir.path(), &["report", "--serve", "--list"]);
    assert_eq!(ran.code, 2);
}

#[test]
fn issue_13_forges_show_a_test_at_its_line() {
    let main = "imports: [more.yml]
servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}
tools:
  - {name: passes, server: s, tool: fetch}
  - name: fails
    server: s
    tool: fetch
    expect: [{\"result.content[0].text\": other}]
agents:
  - name: selects
    model: builtin/lexical
    servers: [s]
    prompt: fetch the page
    expect: [{tool_calls: {length: 7}}]
";
    let more = "tools:\n  - {name: imported, server: s, tool: search, expect: [{\"result.content[0].text\": other}]}\n";
    let dir = folder(&[("m.yml", MANIFEST), ("main.yml", main), ("more.yml", more)]);
    let args = ["run", "main.yml", "--reporter", "json=r.json"];
    let ran = run(dir.path(), &[&args[..], &["--reporter", "github"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let at = |name: &str| {
        let wanted = format!("title=mcptest fail%3A {name}::");
        let mut found = ran.stdout.lines().filter(|line| line.contains(&wanted));
        let line = found.next().unwrap_or_else(|| panic!("{}", ran.stdout));
        let end = line.find(",title=").unwrap();
        line[..end].to_owned()
    };
    assert_eq!(at("fails"), "::error file=main.yml,line=5");
    assert_eq!(at("selects"), "::error file=main.yml,line=10");
    assert_eq!(at("imported"), "::error file=main.yml");
    // The report that is read again has the same lines.
    let again = run(dir.path(), &["report", "r.json", "--reporter", "gitlab"]);
    let issues: Value = serde_json::from_str(&again.stdout).unwrap();
    let lines: Vec<&Value> = issues.as_array().unwrap().iter().collect();
    let begins: Vec<u64> = lines
        .iter()
        .map(|issue| issue["location"]["lines"]["begin"].as_u64().unwrap())
        .collect();
    assert_eq!(begins.iter().sum::<u64>(), 5 + 10 + 1, "{issues}");
}
