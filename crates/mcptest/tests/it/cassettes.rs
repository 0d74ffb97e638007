//! `run --record` and replay, and `cassette`: what is written, what comes back, what is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::models::{AGENT, searches, suite};
use crate::stand_in::StandIn;
use crate::support::{Ran, files, folder, mcptest, ran, run};

const TOOLS: &str = r#"
mock_server:
  name: weather
  tools:
    - name: get_weather
      description: Get the current weather of a city.
      input_schema:
        type: object
        required: [city]
        properties: { city: { type: string } }
        additionalProperties: false
      response: "Sunny in ${args.city}."
    - name: list_alerts
      description: List the storm alerts of a region.
      input_schema: { type: object, properties: { region: { type: string } }, additionalProperties: false }
      response: { content: ["No service."], is_error: true }
"#;

/// Says when it is started.
const SERVER: &str = r#"
servers:
  weather:
    command: ["sh", "-c", "echo started >> starts.log; exec \"$MCPTEST\" mock --tools-from tools.yml"]
    env: { MCPTEST: "${MCPTEST}" }
faults:
  - { name: flaky, target: { tool: get_weather }, kind: recover_after, failures: 1 }
"#;

fn agents(prompt: &str, runs: u32) -> String {
    format!(
        r#"{SERVER}
agents:
  - name: scripted
    model: builtin/scripted
    servers: [weather]
    prompt: {prompt}
    runs: {runs}
    script:
      - - {{ say: Looking., calls: [{{ tool: get_weather, args: {{ city: Rome }} }}, {{ tool: nope, args: {{}} }}], usage: {{ input: 10, output: 5 }} }}
        - {{ say: Sunny., usage: {{ input: 20, output: 5 }} }}
      - - {{ calls: [{{ tool: get_weather, args: "broken {{" }}, {{ tool: list_alerts }}], usage: {{ input: 10, output: 5 }} }}
        - {{ say: None., usage: {{ input: 20, output: 5 }} }}
      - - {{ say: I give up. }}
    expect:
      - tool_names: {{ contains: [get_weather] }}
    reliability: {{ tolerate_failed_runs: true, expect: [{{ reliability.pass_at_k: {{ ">=": 0 }} }}] }}
    stability: {{ expect: [{{ stability.tool_usage_stability: {{ ">=": 0 }} }}] }}
  - name: lexical
    model: builtin/lexical
    servers: [weather]
    prompt: {prompt}
    runs: {runs}
    distractors: {{ count: 2, correct: [get_weather], source: {{ from: near_duplicate, of: [get_weather] }} }}
  - name: recovers
    model: builtin/scripted
    servers: [weather]
    prompt: {prompt}
    runs: 2
    inject: flaky
    recovery: {{ max_detection_ms: 100 }}
    script:
      - - {{ calls: [{{ tool: get_weather, args: {{ city: Rome }} }}] }}
        - {{ calls: [{{ tool: get_weather, args: {{ city: Rome }} }}] }}
        - {{ say: Sunny. }}
"#
    )
}

fn with(dir: &Path, args: &[&str]) -> Ran {
    let program = env!("CARGO_BIN_EXE_mcptest");
    ran(&mcptest(dir)
        .env("MCPTEST", program)
        .args(args)
        .output()
        .unwrap())
}

fn starts(dir: &Path) -> usize {
    fs::read_to_string(dir.join("starts.log")).map_or(0, |log| log.lines().count())
}

fn cassette(dir: &Path, stem: &str) -> PathBuf {
    let all = files(&dir.join("cassettes"), "json");
    let named = |path: &&PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(stem)
    };
    all.iter()
        .find(named)
        .unwrap_or_else(|| panic!("{stem} in {all:?}"))
        .clone()
}

const REPORT: [&str; 3] = ["--reporter", "json", "--no-timing"];

fn reported(dir: &Path, args: &[&str]) -> Ran {
    with(dir, &[&["run", "s.yml"], args, &REPORT].concat())
}

#[test]
fn ten_runs_replay_to_the_same_bytes_without_a_server() {
    let dir = folder(&[
        ("s.yml", &agents("Weather in Rome?", 10)),
        ("tools.yml", TOOLS),
    ]);
    let dir = dir.path();
    let live = reported(dir, &["--jobs", "1"]);
    assert_eq!(live.code, 0, "{}\n{}", live.stdout, live.stderr);
    assert!(!dir.join("cassettes").exists());
    let recorded = reported(dir, &["--record", "--jobs", "8"]);
    assert_eq!(recorded.stdout, live.stdout);
    assert_eq!(
        recorded.stderr.matches("recorded ").count(),
        3,
        "{}",
        recorded.stderr
    );
    let before = starts(dir);
    for flags in [
        &["--jobs", "1"][..],
        &["--jobs", "8", "--replay-only"],
        &["--replay", "both"],
    ] {
        let replayed = reported(dir, flags);
        assert_eq!(replayed.stdout, live.stdout, "{flags:?}");
        assert!(
            replayed.stderr.contains("from cassettes: 3 of the tests"),
            "{}",
            replayed.stderr
        );
    }
    assert_eq!(starts(dir), before, "a replay starts no server");
    // One side live: the same again, since both are the same as when they were recorded.
    for what in ["model", "tools"] {
        let replayed = reported(dir, &["--replay", what]);
        assert_eq!(replayed.stdout, live.stdout, "{what}: {}", replayed.stderr);
    }
    assert_eq!(starts(dir), before + 1, "live tools need their server");
    assert_eq!(reported(dir, &["--live"]).stdout, live.stdout);
    assert_eq!(starts(dir), before + 2);
    // Recording again gives the same file, but for its last part.
    let text = |path: &Path| {
        fs::read_to_string(path)
            .unwrap()
            .split("\"volatile\"")
            .next()
            .unwrap()
            .to_owned()
    };
    let path = cassette(dir, "scripted");
    let first = text(&path);
    reported(dir, &["--record"]);
    assert_eq!(text(&path), first);
    assert_eq!(
        with(dir, &["cassette", "verify", "--suite", "s.yml"]).code,
        0
    );
}

#[test]
fn cassettes_score_like_the_run() {
    let dir = folder(&[
        ("s.yml", &agents("Weather in Rome?", 4)),
        ("tools.yml", TOOLS),
    ]);
    let dir = dir.path();
    let live = reported(dir, &["--record"]).json();
    let paths: Vec<String> = files(&dir.join("cassettes"), "json")
        .iter()
        .map(|path| path.to_str().unwrap().to_owned())
        .collect();
    let mut args = vec!["score", "s.yml", "--reporter", "json", "--trace"];
    args.extend(paths.iter().map(String::as_str));
    let scored = with(dir, &args).json();
    for (live, scored) in live["tests"]
        .as_array()
        .unwrap()
        .iter()
        .zip(scored["tests"].as_array().unwrap())
    {
        assert_eq!(live["gates"], scored["gates"], "{}", live["name"]);
    }
}

#[test]
fn changes_are_reported_and_nothing_runs_live_by_mistake() {
    let dir = folder(&[
        ("s.yml", &agents("Weather in Rome?", 3)),
        ("tools.yml", TOOLS),
    ]);
    let dir = dir.path();
    assert_eq!(reported(dir, &["--record"]).code, 0);
    let before = starts(dir);
    let refused = |suite: &str, flags: &[&str], words: &[&str]| {
        fs::write(dir.join("s.yml"), suite).unwrap();
        let ran = with(
            dir,
            &[&["run", "s.yml", "--filter", "scripted"], flags].concat(),
        );
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.stdout);
        for word in words {
            assert!(ran.stdout.contains(word), "{word}:\n{}", ran.stdout);
        }
        assert!(
            ran.stdout.contains("`--record` records again"),
            "{}",
            ran.stdout
        );
        assert_eq!(ran.stdout.matches("is stale").count(), 1, "{}", ran.stdout);
    };
    let suite = agents("Weather in Rome?", 3);
    refused(
        &agents("Weather in Oslo?", 3),
        &[],
        &["prompt: was \"Weather in Rome?\", is \"Weather in Oslo?\""],
    );
    refused(
        &agents("Weather in Rome?", 5),
        &["--replay-only"],
        &["runs: 3 recorded, 5 wanted"],
    );
    refused(
        &suite.replacen(
            "runs: 3",
            "runs: 3\n    system: Be brief.\n    max_tokens: 9",
            1,
        ),
        &[],
        &[
            "system: there was none, is \"Be brief.\"",
            "settings: `max_tokens` was not set, is 9",
        ],
    );
    refused(
        &suite.replace("I give up.", "I gave up."),
        &[],
        &["settings: `script` was"],
    );
    let fewer = suite.replacen("model: builtin/scripted", "model: builtin/lexical", 1);
    let fewer = fewer.replacen("script:", "unused:", 1);
    let start = fewer.find("    unused:").unwrap();
    let end = fewer.find("    expect:\n").unwrap();
    refused(
        &format!("{}{}", &fewer[..start], &fewer[end..]),
        &[],
        &["model: was \"builtin/scripted\", is \"builtin/lexical\""],
    );
    assert_eq!(starts(dir), before);
    // The tools of a mock server are in its file; those of any other must be asked for, by
    // `--replay model`.
    fs::write(dir.join("s.yml"), &suite).unwrap();
    fs::write(
        dir.join("tools.yml"),
        TOOLS.replace("city: { type: string }", "city: { type: number }"),
    )
    .unwrap();
    let ran = with(
        dir,
        &["run", "s.yml", "--filter", "lexical", "--replay", "model"],
    );
    assert_eq!(ran.code, 2);
    assert!(
        ran.stdout.contains(
            "schema: `weather.get_weather`: its inputSchema differs at /properties/city/type"
        ),
        "{}",
        ran.stdout
    );
    // Fewer runs than recorded are the first ones.
    fs::write(dir.join("s.yml"), suite.replace("runs: 3", "runs: 2")).unwrap();
    let fewer = with(
        dir,
        &["run", "s.yml", "--filter", "lexical", "--reporter", "json"],
    );
    assert_eq!(
        fewer.json()["tests"][0]["runs"].as_array().unwrap().len(),
        2,
        "{}",
        fewer.stderr
    );
}

#[test]
fn the_tools_of_a_mock_server_are_compared_without_starting_it() {
    let suite = "servers: { weather: { command: [mcptest, mock, --tools-from, tools.yml] } }\n\
        agents: [{ name: w, model: builtin/lexical, servers: [weather], prompt: Weather in Rome?, expect: [tool_names: { exact: [get_weather] }] }]\n";
    let dir = folder(&[("s.yml", suite), ("tools.yml", TOOLS)]);
    let dir = dir.path();
    assert_eq!(reported(dir, &["--record"]).code, 0);
    assert_eq!(reported(dir, &["--replay-only"]).code, 0);
    let more =
        format!("{TOOLS}    - {{ name: get_time, description: Tell the time., response: noon }}\n");
    let more = more.replace("List the storm alerts", "List all alerts");
    fs::write(dir.join("tools.yml"), more).unwrap();
    let ran = with(dir, &["run", "s.yml", "--replay-only"]);
    assert_eq!(ran.code, 2);
    for words in [
        "tools: `weather` has 1 more: `get_time`",
        "tools: `weather.list_alerts`: its description was",
    ] {
        assert!(ran.stdout.contains(words), "{words}\n{}", ran.stdout);
    }
    let verified = with(
        dir,
        &["cassette", "verify", "--suite", "s.yml", "--format", "json"],
    );
    assert_eq!(
        (verified.code, &verified.json()["cassettes"][0]["fit"]),
        (1, &Value::Bool(false))
    );
}

#[test]
fn a_damaged_or_unfinished_cassette_is_refused() {
    let suite = agents("Weather in Rome?", 2);
    let dir = folder(&[("s.yml", &suite), ("tools.yml", TOOLS)]);
    let dir = dir.path();
    assert_eq!(reported(dir, &["--record"]).code, 0);
    let path = cassette(dir, "lexical");
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, &good[..good.len() / 2]).unwrap();
    let ran = with(dir, &["run", "s.yml", "--filter", "lexical"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stdout.contains("not a cassette: EOF while parsing"),
        "{}",
        ran.stdout
    );
    let verified = with(dir, &["cassette", "verify", path.to_str().unwrap()]);
    assert_eq!(verified.code, 1);
    assert!(verified.stdout.starts_with("BAD  "), "{}", verified.stdout);
    // Half of the runs: as after a kill.
    fs::write(&path, good.replace("\"planned\": 2", "\"planned\": 3")).unwrap();
    let ran = with(dir, &["run", "s.yml", "--filter", "lexical"]);
    assert!(
        ran.stdout.contains("2 of 3 runs are there"),
        "{}",
        ran.stdout
    );
    // No cassette: built-in models need none.
    fs::remove_file(&path).unwrap();
    assert_eq!(
        with(
            dir,
            &["run", "s.yml", "--filter", "lexical", "--replay-only"]
        )
        .code,
        0
    );
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let dir = folder(&[]);
    for flags in [
        ["--record", "--live"],
        ["--record", "--replay-only"],
        ["--live", "--replay-only"],
        ["--record", "--replay=both"],
    ] {
        let ran = run(dir.path(), &["run", flags[0], flags[1]]);
        assert_eq!(ran.code, 2, "{flags:?}");
        assert!(ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    }
}

#[test]
fn prune_merge_diff_and_show() {
    let suite = agents("Weather in Rome?", 2);
    let dir = folder(&[("s.yml", &suite), ("tools.yml", TOOLS)]);
    let dir = dir.path();
    assert_eq!(reported(dir, &["--record"]).code, 0);
    let path = cassette(dir, "scripted");
    let name = path.to_str().unwrap();
    let merged = with(
        dir,
        &["cassette", "merge", name, name, "--output", "four.json"],
    );
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    let shown = with(dir, &["cassette", "show", "four.json", "--run", "4"]);
    assert!(
        shown.stdout.contains("runs     4\n") && shown.stdout.contains("run 4 ("),
        "{}",
        shown.stdout
    );
    assert_eq!(
        with(dir, &["cassette", "show", "four.json", "--run", "9"]).code,
        2
    );
    let same = with(dir, &["cassette", "diff", name, name]);
    assert_eq!((same.code, same.stdout.as_str()), (0, "no difference\n"));
    let more = with(
        dir,
        &["cassette", "diff", name, "four.json", "--format", "json"],
    );
    assert_eq!(
        (more.code, &more.json()["only_second"]),
        (1, &serde_json::json!([3, 4]))
    );
    let other = cassette(dir, "lexical");
    let refused = with(
        dir,
        &[
            "cassette",
            "merge",
            name,
            other.to_str().unwrap(),
            "--output",
            "x.json",
        ],
    );
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("do not record the same") && !dir.join("x.json").exists());

    // A test that is gone leaves an unused cassette; other files stay.
    let notes = path.with_file_name("notes.json");
    fs::write(&notes, "{}").unwrap();
    fs::write(
        dir.join("s.yml"),
        suite.replace("name: scripted", "name: renamed"),
    )
    .unwrap();
    let dry = with(dir, &["cassette", "prune", "s.yml", "--dry-run"]);
    assert!(
        dry.stdout.contains("unused   ") && path.exists(),
        "{}",
        dry.stdout
    );
    let pruned = with(dir, &["cassette", "prune", "s.yml"]);
    assert_eq!(pruned.code, 0);
    assert!(
        !path.exists() && other.exists() && notes.exists(),
        "{}",
        pruned.stdout
    );
}

/// One key in many encodings.
struct Planted {
    plain: &'static str,
    dressed: Vec<String>,
}

#[test]
fn a_planted_key_is_found_nowhere() {
    let key = "Pl4nted/k\u{fc}y+Sec\\ret";
    let percent = "Pl4nted%2Fk%C3%BCy%2BSec%5Cret";
    let escaped = "Pl4nted\\/k\\u00fcy+Sec\\\\ret";
    // `user:KEY` in base64.
    let basic = "dXNlcjpQbDRudGVkL2vDvHkrU2VjXHJldA==";
    let shaped = "sk-planted0123456789abcdef";
    let planted = Planted {
        plain: key,
        dressed: vec![
            percent.into(),
            escaped.into(),
            "UGw0bnRlZC9r".into(),
            "Pl4nted".into(),
            shaped.into(),
        ],
    };
    // The tool answers with everything it can get hold of; its arguments come from the model.
    let tools = format!(
        r#"
mock_server:
  name: leaky
  tools:
    - name: leak
      description: "Leaks {shaped} in its description."
      input_schema: {{ type: object }}
      response:
        content:
          - {{ type: text, text: "arg ${{args.key}}, query ?k={percent}, Authorization: Basic {basic}, and {shaped}" }}
          - {{ type: text, text: 'as JSON {{"k": "{escaped}"}}' }}
        structured_content: {{ echoed: "${{args.key}}" }}
"#
    );
    let suite = r#"
servers:
  leaky:
    command: ["mcptest", "mock", "--tools-from", "tools.yml"]
    env: { LEAKY_API_KEY: "${PLANTED_API_KEY}" }
agents:
  - name: leaks
    model: builtin/scripted
    servers: [leaky]
    prompt: "Use the key ${PLANTED_API_KEY}."
    runs: 2
    script:
      - - { say: "The key is ${PLANTED_API_KEY}", calls: [{ tool: leak, args: { key: "${PLANTED_API_KEY}", other: "sk-planted0123456789abcdef" } }] }
        - { say: "I used ${PLANTED_API_KEY} and sk-planted0123456789abcdef" }
    expect:
      - final_response: { contains: nothing of the kind }
tools:
  - { name: direct, server: leaky, tool: leak, args: { key: "${PLANTED_API_KEY}" }, expect: [{ result.text: { contains: nope } }] }
"#;
    let dir = folder(&[("s.yml", suite), ("tools.yml", &tools)]);
    let dir = dir.path();
    let run = |args: &[&str]| {
        ran(&mcptest(dir)
            .env("PLANTED_API_KEY", planted.plain)
            .args(args)
            .output()
            .unwrap())
    };
    let recorded = run(&[
        "run",
        "s.yml",
        "--record",
        "--reporter",
        "pretty",
        "--reporter",
        "json=report.json",
        "--traces",
        "traces.jsonl",
        "--no-timing",
    ]);
    assert_eq!(recorded.code, 1, "{}", recorded.stderr);
    let replayed = run(&[
        "run",
        "s.yml",
        "--reporter",
        "pretty",
        "--reporter",
        "json=replayed.json",
        "--no-timing",
    ]);
    let verified = run(&["cassette", "verify", "--suite", "s.yml"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    let shown = run(&[
        "cassette",
        "show",
        cassette(dir, "leaks").to_str().unwrap(),
        "--run",
        "1",
    ]);
    assert!(shown.stdout.contains("leaky.leak"), "{}", shown.stdout);
    assert_eq!(
        fs::read_to_string(dir.join("report.json")).unwrap(),
        fs::read_to_string(dir.join("replayed.json")).unwrap()
    );
    let mut texts: Vec<(String, String)> = [recorded, replayed, verified, shown]
        .into_iter()
        .enumerate()
        .flat_map(|(index, ran)| {
            [
                (format!("stdout {index}"), ran.stdout),
                (format!("stderr {index}"), ran.stderr),
            ]
        })
        .collect();
    let written = ["report.json", "replayed.json", "traces.jsonl"].map(|name| dir.join(name));
    for path in written
        .into_iter()
        .chain(files(&dir.join("cassettes"), "json"))
    {
        texts.push((
            path.display().to_string(),
            fs::read_to_string(&path).unwrap(),
        ));
    }
    for (name, text) in &texts {
        for secret in planted
            .dressed
            .iter()
            .map(String::as_str)
            .chain([planted.plain])
        {
            assert!(!text.contains(secret), "{secret} in {name}:\n{text}");
        }
    }
    assert!(
        texts
            .iter()
            .filter(|(_, text)| text.contains("[redacted]"))
            .count()
            >= 5
    );
}

#[test]
fn a_kill_at_any_moment_leaves_cassettes_that_load() {
    let suite = agents("Weather in Rome?", 30);
    let dir = folder(&[("s.yml", &suite), ("tools.yml", TOOLS)]);
    let dir = dir.path();
    assert_eq!(reported(dir, &["--record"]).code, 0);
    let whole = cassette(dir, "scripted");
    let partials = || {
        let mut all = files(&dir.join("cassettes"), "json");
        all.retain(|path| mcptest_cassette::is_partial(path));
        all
    };
    let mut partial = 0;
    for round in 0..15_u64 {
        partials()
            .iter()
            .for_each(|path| fs::remove_file(path).unwrap());
        let mut child = mcptest(dir)
            .env("MCPTEST", env!("CARGO_BIN_EXE_mcptest"))
            .args([
                "run",
                "s.yml",
                "--record",
                "--jobs",
                "2",
                "--reporter",
                "json=r.json",
            ])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The recording has begun; the moment of the kill varies over its length.
        while partials().is_empty() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(round * 37 % 150));
        child.kill().unwrap();
        child.wait().unwrap();
        for path in files(&dir.join("cassettes"), "json") {
            let cassette = mcptest_cassette::load(&path)
                .unwrap_or_else(|error| panic!("round {round}: {error}"));
            if mcptest_cassette::is_partial(&path) {
                partial += 1;
            } else {
                assert!(cassette.is_complete(), "{}", path.display());
            }
        }
        assert!(whole.exists());
    }
    assert!(partial > 0, "no kill came in the middle of a recording");
    // What the killed ones left behind does not hinder the next, and goes.
    assert_eq!(reported(dir, &["--record"]).code, 0);
    let left: Vec<_> = fs::read_dir(whole.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.') || name.contains("partial"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(reported(dir, &["--replay-only"]).code, 0);
}

#[test]
fn live_models_replay_with_the_network_cut_and_no_key() {
    let stand_in = StandIn::start(searches);
    let dir = suite(
        &stand_in,
        &AGENT.replace("    prompt:", "    runs: 10\n    prompt:"),
    );
    let dir = dir.path();
    let run = |args: &[&str], key: bool| {
        let mut command = mcptest(dir);
        if key {
            command.env("MY_PROVIDER_KEY", "pk-planted-42");
        }
        ran(&command
            .args([&["run", "s.yml"], args, &REPORT].concat())
            .output()
            .unwrap())
    };
    let missing = run(&["--replay-only"], false);
    assert_eq!(missing.code, 2);
    assert_eq!(
        missing.stdout.matches("there is no cassette").count(),
        2 * 4,
        "{}",
        missing.stdout
    );
    let verify = || {
        ran(&mcptest(dir)
            .args(["cassette", "verify", "--suite", "s.yml"])
            .output()
            .unwrap())
    };
    let unfit = verify();
    assert_eq!(
        (
            unfit.code,
            unfit
                .stdout
                .matches("there is no cassette of test `searches`")
                .count()
        ),
        (1, 4)
    );
    let recorded = run(&["--record"], true);
    assert_eq!(recorded.code, 0, "{}\n{}", recorded.stdout, recorded.stderr);
    assert_eq!(
        (verify().code, verify().stdout.matches("ok   ").count()),
        (0, 4)
    );
    // No server listens there.
    let text = fs::read_to_string(dir.join("s.yml")).unwrap();
    let cut = text.replace(&stand_in.url(""), "http://127.0.0.1:1");
    assert_ne!(cut, text);
    fs::write(dir.join("s.yml"), &cut).unwrap();
    for flags in [
        &[][..],
        &["--replay-only", "--jobs", "3"],
        &["--replay", "model"],
    ] {
        let replayed = run(flags, false);
        assert_eq!(
            replayed.stdout, recorded.stdout,
            "{flags:?}: {}",
            replayed.stderr
        );
    }
    // One model of the four, as `--model` asks for it.
    let one = run(&["--replay-only", "--model", "gpt-x"], false);
    assert_eq!(one.code, 0, "{}\n{}", one.stdout, one.stderr);
    let other = run(&["--replay-only", "--model", "gpt-y"], false);
    assert_eq!(other.code, 2);
    // What goes into every request is a part of what was recorded.
    fs::write(
        dir.join("s.yml"),
        cut.replace("temperature: 0", "temperature: 1"),
    )
    .unwrap();
    let changed = run(&[], false);
    assert_eq!(changed.code, 2);
    assert!(
        changed
            .stdout
            .contains("settings: `body` was {\\\"temperature\\\":0}, is {\\\"temperature\\\":1}"),
        "{}",
        changed.stdout
    );
}
