//! The diagnostic log (`-v`, `MCPTEST_LOG`) and `--quiet`.

use crate::support::{folder, mcptest, ran, run};

const SUITE: &str = "
servers: { s: { command: [mcptest, mock, --tools-from, m.yml] } }
agents:
  - name: searches
    model: builtin/lexical
    servers: [s]
    prompt: search
    tool_selection: { expected_tool: search, min_selection_rate: 0.5 }
";

const MANIFEST: &str =
    "mock_server: {name: s, tools: [{name: search, description: search the web}]}\n";

#[test]
fn messages_are_logged_if_asked_for() {
    let dir = folder(&[("s.yml", SUITE), ("m.yml", MANIFEST)]);
    let silent = run(dir.path(), &["run", "s.yml", "--no-timing"]);
    assert!(!silent.stderr.contains("mcptest::"), "{}", silent.stderr);
    let verbose = run(dir.path(), &["run", "s.yml", "-v", "--no-timing"]);
    assert_eq!(verbose.stdout, silent.stdout);
    for part in [
        "method=\"tools/call\"",
        "mcptest::wire: sent",
        "mcptest::agent: tool called",
    ] {
        assert!(verbose.stderr.contains(part), "{part}: {}", verbose.stderr);
    }
    let doctor = run(dir.path(), &["doctor", "-v", "--suite", "s.yml"]);
    assert!(
        doctor.stderr.contains("method=\"tools/list\""),
        "{}",
        doctor.stderr
    );
    let with_variable = |value: &str| {
        let mut command = mcptest(dir.path());
        ran(&command
            .env("MCPTEST_LOG", value)
            .args(["run", "s.yml"])
            .output()
            .unwrap())
    };
    let selected = with_variable("mcptest::agent=debug");
    assert!(
        selected.stderr.contains("mcptest::agent"),
        "{}",
        selected.stderr
    );
    assert!(
        !selected.stderr.contains("mcptest::wire"),
        "{}",
        selected.stderr
    );
    let wrong = with_variable("mcptest=loud");
    assert_eq!((wrong.code, wrong.stdout.as_str()), (2, ""));
    assert!(
        wrong
            .stderr
            .starts_with("error: MCPTEST_LOG is `mcptest=loud`"),
        "{}",
        wrong.stderr
    );
}

/// A mock that a suite starts is a separate process, for which logging was not requested.
#[test]
fn servers_do_not_inherit_the_log_variable() {
    let server = |env: &str| {
        let script = r#"echo "$${MCPTEST_LOG-unset}" > seen; exec "$0" mock --tools-from m.yml"#;
        let program = env!("CARGO_BIN_EXE_mcptest");
        format!("servers: {{ s: {{ command: [sh, -c, '{script}', '{program}']{env} }} }}")
    };
    for (env, seen) in [("", "unset\n"), (", env: { MCPTEST_LOG: warn }", "warn\n")] {
        let (_, agents) = SUITE.split_once("\nagents:").unwrap();
        let suite = format!("{}\nagents:{agents}", server(env));
        let dir = folder(&[("s.yml", &suite), ("m.yml", MANIFEST)]);
        let mut command = mcptest(dir.path());
        let command = command.env("MCPTEST_LOG", "mcptest=info");
        let ran = ran(&command.args(["run", "s.yml"]).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("mcptest::wire"), "{}", ran.stderr);
        let found = std::fs::read_to_string(dir.path().join("seen")).unwrap();
        assert_eq!(found, seen);
    }
}

#[test]
fn quiet_prints_only_errors_and_results() {
    let dir = folder(&[("s.yml", SUITE), ("m.yml", MANIFEST)]);
    let loud = run(dir.path(), &["run", "s.yml", "--no-timing"]);
    assert!(
        loud.stderr.contains("tool-selection floor"),
        "{}",
        loud.stderr
    );
    let quiet = run(dir.path(), &["run", "s.yml", "--quiet", "--no-timing"]);
    assert_eq!((quiet.stdout, quiet.stderr.as_str()), (loud.stdout, ""));
    let wrong = run(dir.path(), &["-q", "run", "none.yml"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("error"), "{}", wrong.stderr);
    assert_eq!(run(dir.path(), &["run", "s.yml", "-q", "-v"]).code, 2);
}
