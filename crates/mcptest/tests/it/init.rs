//! `mcptest init`: what it writes validates and runs immediately, and nothing is left behind where
//! it cannot.

use std::path::Path;

use serde_json::Value;

use crate::support::{HttpMock, Ran, files, folder, mcptest, ran, run};

/// A server with tools that read, one that fails for made-up arguments, and some that change.
pub const NOTES: &str = r#"
mock_server:
  name: notes
  version: "1.2"
  tools:
    - name: list_notes
      description: List the titles of all notes.
      output_schema: { type: object, required: [titles], properties: { titles: { type: array } } }
      response: { structured_content: { titles: [milk, rent] } }
    - name: read_note
      description: Read the text of the note with this title.
      input_schema: { type: object, required: [title], properties: { title: { type: string } } }
      responses:
        - { when: { title: milk }, content: [Buy milk.] }
        - { content: ["There is no note ${args.title}."], is_error: true }
    - name: write_note
      description: Write a note.
      input_schema: { type: object, required: [title], properties: { title: { type: string } } }
      response: { content: [CHANGED], is_error: true }
    - name: purge
      description: Remove everything.
      annotations: { readOnlyHint: false, destructiveHint: true }
      response: CHANGED
"#;

/// The command line of a mock server.
fn mock(file: &str) -> [&str; 4] {
    ["mcptest", "mock", "--tools-from", file]
}

/// Runs `init` without a terminal.
pub fn init(dir: &Path, args: &[&str]) -> Ran {
    run(dir, &[&["init"], args].concat())
}

pub fn init_mock(dir: &Path, args: &[&str], file: &str) -> Ran {
    init(dir, &[args, &["--"], &mock(file)[..]].concat())
}

/// Checks that the files pass `validate` and `run`.
pub fn passes(dir: &Path) -> Ran {
    let validated = run(dir, &["validate", "--deny-warnings"]);
    assert_eq!(validated.code, 0, "{}", validated.stderr);
    let played = run(dir, &["run", "--no-history"]);
    assert_eq!(played.code, 0, "{}{}", played.stdout, played.stderr);
    played
}

pub fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The names of everything in a folder, also what is hidden.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_server_gets_a_suite_that_passes_immediately() {
    let dir = folder(&[("server.yml", NOTES)]);
    let made = init_mock(dir.path(), &["--yes"], "server.yml");
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(
        made.stdout.starts_with("notes: 1 tool answered, 1 failed with made-up arguments, 2 not called (may change something)\n"),
        "{}",
        made.stdout
    );
    let suite = read(dir.path(), "mcptest.yml");
    assert!(suite.contains("There is no note example."), "{suite}");
    let played = passes(dir.path());
    assert!(
        played.stdout.contains("6 tests: 6 passed"),
        "{}",
        played.stdout
    );
    for file in [
        "mocks/notes.yml",
        ".gitignore",
        ".github/workflows/mcptest.yml",
        ".mcptest/suite.schema.json",
        ".mcptest/mock.schema.json",
    ] {
        assert!(dir.path().join(file).is_file(), "{file}");
    }
    // A tool that may change something was not called.
    assert!(!read(dir.path(), "mocks/notes.yml").contains("CHANGED"));
    // The schemas accept what was written, as an editor would.
    for (file, schema) in [
        ("mcptest.yml", ".mcptest/suite.schema.json"),
        ("mocks/notes.yml", ".mcptest/mock.schema.json"),
    ] {
        let schema: Value = serde_json::from_str(&read(dir.path(), schema)).unwrap();
        let text = read(dir.path(), file);
        let document = mcptest_yaml::Document::parse(
            file,
            text.as_bytes(),
            &mcptest_yaml::DocumentLimits::default(),
        )
        .unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&document.root().to_json())
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{file}: {errors:?}");
    }
    // Without the server, the mock has its tools.
    std::fs::remove_file(dir.path().join("server.yml")).unwrap();
    let offline = run(dir.path(), &["run", "--tag", "offline", "--no-history"]);
    assert_eq!(offline.code, 0, "{}{}", offline.stdout, offline.stderr);
    assert!(
        offline.stdout.contains("4 tests: 4 passed"),
        "{}",
        offline.stdout
    );
}

#[test]
fn nothing_is_replaced_without_asking() {
    let dir = folder(&[
        ("server.yml", NOTES),
        ("mcptest.yml", "mine\n"),
        (".gitignore", "node_modules"),
    ]);
    let refused = init_mock(dir.path(), &["--yes"], "server.yml");
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stderr
            .contains("`mcptest.yml` exists; `--force` replaces it"),
        "{}",
        refused.stderr
    );
    assert_eq!(read(dir.path(), "mcptest.yml"), "mine\n");
    assert_eq!(
        names(dir.path()),
        [".gitignore", "mcptest.yml", "server.yml"]
    );
    std::fs::remove_file(dir.path().join("mcptest.yml")).unwrap();
    std::fs::create_dir_all(dir.path().join("mocks")).unwrap();
    std::fs::create_dir_all(dir.path().join(".github/workflows")).unwrap();
    std::fs::write(dir.path().join("mocks/notes.yml"), "mine\n").unwrap();
    std::fs::write(dir.path().join(".github/workflows/mcptest.yml"), "mine\n").unwrap();
    let refused = init_mock(dir.path(), &["--yes"], "server.yml");
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stderr
            .contains("these files exist, and nothing was written: mocks/notes.yml"),
        "{}",
        refused.stderr
    );
    assert!(!dir.path().join("mcptest.yml").exists());
    std::fs::remove_file(dir.path().join("mocks/notes.yml")).unwrap();
    let made = init_mock(dir.path(), &["--yes"], "server.yml");
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(
        made.stdout.contains("exists, and was kept as it is"),
        "{}",
        made.stdout
    );
    assert_eq!(read(dir.path(), ".github/workflows/mcptest.yml"), "mine\n");
    assert_eq!(
        read(dir.path(), ".gitignore"),
        "node_modules\n# mcptest: logs of runs, reports\n.mcptest/history/\nmcptest-report/\n"
    );
    let ignored = read(dir.path(), ".gitignore");
    let again = init_mock(dir.path(), &["--yes", "--force"], "server.yml");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(read(dir.path(), ".gitignore"), ignored);
    assert_ne!(read(dir.path(), ".github/workflows/mcptest.yml"), "mine\n");
    // This one would be run in place of ours.
    std::fs::write(dir.path().join("mcptest.yaml"), "").unwrap();
    let refused = init_mock(dir.path(), &["--force"], "server.yml");
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("would take it before mcptest.yml"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_same_server_gives_the_same_bytes() {
    let made = || {
        let dir = folder(&[("server.yml", NOTES)]);
        assert_eq!(
            init_mock(dir.path(), &["--attacks", "--snapshots"], "server.yml").code,
            0
        );
        ["mcptest.yml", "mocks/notes.yml", "attacks/starter.yml"].map(|file| read(dir.path(), file))
    };
    assert_eq!(made(), made());
}

#[test]
fn attacks_and_snapshots_pass_too() {
    let dir = folder(&[("server.yml", NOTES)]);
    let made = init_mock(
        dir.path(),
        &["--attacks", "--snapshots", "--ci", "gitlab"],
        "server.yml",
    );
    assert_eq!(made.code, 0, "{}", made.stderr);
    let played = passes(dir.path());
    assert!(played.stdout.contains("obeyed 0/36"), "{}", played.stdout);
    assert!(
        dir.path()
            .join("snapshots/mcptest/list_notes-answers.json")
            .is_file()
    );
    assert!(dir.path().join(".gitlab-ci.yml").is_file() && !dir.path().join(".github").exists());
    // A snapshot can fail.
    let changed = NOTES.replace("[milk, rent]", "[milk]");
    std::fs::write(dir.path().join("server.yml"), changed).unwrap();
    let played = run(dir.path(), &["run", "--no-history"]);
    assert_eq!(played.code, 1, "{}", played.stdout);
}

#[test]
fn every_tool_or_none_is_called_on_request() {
    let dir = folder(&[("server.yml", NOTES)]);
    let all = init_mock(dir.path(), &["--call", "all", "--ci", "none"], "server.yml");
    assert!(
        all.stdout.starts_with("notes: 2 tools answered, 2 failed"),
        "{}",
        all.stdout
    );
    assert!(read(dir.path(), "mocks/notes.yml").contains("CHANGED"));
    assert!(!dir.path().join(".github").exists());
    passes(dir.path());
    let none = init_mock(dir.path(), &["--call", "none", "--force"], "server.yml");
    assert!(
        none.stdout
            .starts_with("notes: 0 tools answered, 4 not tried"),
        "{}",
        none.stdout
    );
    passes(dir.path());
}

#[test]
fn another_folder_keeps_the_command_working() {
    let dir = folder(&[("server.yml", NOTES)]);
    std::fs::create_dir(dir.path().join(".git")).unwrap();
    std::fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/master\n").unwrap();
    let made = init_mock(
        dir.path(),
        &["tests/mcp", "--name", "My Notes", "--yes"],
        "server.yml",
    );
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(
        made.stdout
            .ends_with("Next:\n  cd tests/mcp\n  mcptest run\n"),
        "{}",
        made.stdout
    );
    let inner = dir.path().join("tests/mcp");
    let suite = read(&inner, "mcptest.yml");
    assert!(
        suite.contains("\n    cwd: \"../..\"\n") && suite.contains("\nname: My Notes\n"),
        "{suite}"
    );
    assert!(suite.contains("\n  my-notes:\n"), "{suite}");
    passes(&inner);
    // A workflow belongs to the root of the repository.
    let workflow = read(dir.path(), ".github/workflows/mcptest.yml");
    assert!(
        workflow.contains("working-directory: tests/mcp")
            && workflow.contains("branches: [master]"),
        "{workflow}"
    );
}

#[test]
fn a_command_is_words_a_string_or_an_entry_point() {
    let script = "import os\nos.execv(os.environ['MCPTEST_BIN'], ['mcptest', 'mock', '--tools-from', 'server.yml'])\nif __name__ == '__main__': pass\n";
    for source in [
        vec![
            "--command",
            "mcptest",
            "mock",
            "--tools-from",
            "server.yml",
            "--yes",
        ],
        vec![
            "--command",
            "mcptest mock --tools-from 'server.yml'",
            "--yes",
        ],
        vec!["--yes", "--command", "server.py"],
        vec!["--yes", "--from", "server.py"],
        vec!["server.py", "--yes"],
    ] {
        let dir = folder(&[("server.yml", NOTES), ("server.py", script)]);
        let made = mcptest(dir.path())
            .env("MCPTEST_BIN", env!("CARGO_BIN_EXE_mcptest"))
            .arg("init")
            .args(&source)
            .output()
            .unwrap();
        let made = ran(&made);
        assert_eq!(made.code, 0, "{source:?}: {}", made.stderr);
        let suite = read(dir.path(), "mcptest.yml");
        let expected = if source.contains(&"server.py") {
            "command: [python3, server.py]"
        } else {
            "command: [mcptest, mock, --tools-from, server.yml]"
        };
        assert!(suite.contains(expected), "{source:?}: {suite}");
        assert!(suite.contains("\nname: notes\n"), "{suite}");
    }
}

#[test]
fn an_address_is_captured_and_its_credentials_are_not_written() {
    let dir = folder(&[("server.yml", NOTES)]);
    let server = HttpMock::start(dir.path(), "server.yml");
    let url = format!("{}?api_key=s3cr3t-key-1", server.url);
    let made = init(
        dir.path(),
        &[
            "--url",
            &url,
            "--header",
            "Authorization: Bearer s3cr3t-token-2",
            "--yes",
        ],
    );
    assert_eq!(made.code, 0, "{}", made.stderr);
    let suite = read(dir.path(), "mcptest.yml");
    assert!(
        suite.contains("?api_key=${API_KEY}") && suite.contains("Bearer ${NOTES_TOKEN}"),
        "{suite}"
    );
    nothing_has(dir.path(), "s3cr3t");
    assert!(
        made.stdout.contains("export API_KEY=…") && !made.stdout.contains("s3cr3t"),
        "{}",
        made.stdout
    );
    let unset = run(dir.path(), &["validate"]);
    assert!(
        unset.code == 2 && unset.stderr.contains("`${API_KEY}` is not set"),
        "{}",
        unset.stderr
    );
    let played = mcptest(dir.path())
        .args(["run", "--no-history"])
        .env("API_KEY", "s3cr3t-key-1")
        .env("NOTES_TOKEN", "s3cr3t-token-2")
        .output()
        .unwrap();
    assert_eq!(ran(&played).code, 0, "{}", ran(&played).stderr);
}

/// No file below a folder has these words, apart from the server's own.
fn nothing_has(dir: &Path, words: &str) {
    for ending in ["yml", "json", "gitignore"] {
        for file in files(dir, ending) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&file).unwrap();
            let own = ["server.yml", ".mcp.json", "claude_desktop_config.json"];
            assert!(
                own.contains(&name.as_str()) || !text.contains(words),
                "{}",
                file.display()
            );
        }
    }
}

#[test]
fn values_of_configurations_become_references() {
    let config = r#"{"mcpServers": {
        "Notes Server": {
            "command": "mcptest",
            "args": ["mock", "--tools-from", "server.yml"],
            "env": {"NOTES_TOKEN": "s3cr3t-value-1", "REGION": "a private place", "DEBUG": "true"}
        },
        "off": {"command": "false", "disabled": true}
    }}"#;
    for name in [".mcp.json", "claude_desktop_config.json"] {
        let dir = folder(&[("server.yml", NOTES), (name, config)]);
        let made = init(dir.path(), &["--from", name, "--yes"]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        let suite = read(dir.path(), "mcptest.yml");
        assert!(suite.contains("\n  notes-server:\n"), "{suite}");
        assert!(
            suite.contains(
                "env: { NOTES_TOKEN: \"${NOTES_TOKEN}\", REGION: \"${REGION}\", DEBUG: \"true\" }"
            ),
            "{suite}"
        );
        assert!(
            suite.contains("Set these environment variables before: NOTES_TOKEN, REGION."),
            "{suite}"
        );
        nothing_has(dir.path(), "s3cr3t");
        nothing_has(dir.path(), "a private place");
        let workflow = read(dir.path(), ".github/workflows/mcptest.yml");
        assert!(
            workflow.contains("NOTES_TOKEN: ${{ secrets.NOTES_TOKEN }}"),
            "{workflow}"
        );
        let played = mcptest(dir.path())
            .args(["run", "--no-history"])
            .env("NOTES_TOKEN", "x")
            .env("REGION", "y")
            .output()
            .unwrap();
        assert_eq!(ran(&played).code, 0, "{}", ran(&played).stderr);
    }
}

#[test]
fn a_secret_in_an_answer_is_masked() {
    let secret = format!("ghp_{}", "a1B2c3".repeat(6));
    let server = format!(
        "mock_server:\n  name: leaky\n  tools:\n    - name: get_config\n      description: Get it. The key is {secret}.\n      response: \"key: {secret}, home: ${{args.x}}\"\n"
    );
    let dir = folder(&[("server.yml", &server)]);
    let made = init_mock(dir.path(), &["--yes"], "server.yml");
    assert_eq!(made.code, 0, "{}", made.stderr);
    nothing_has(dir.path(), &secret);
    passes(dir.path());
}

#[test]
fn several_servers_are_all_or_chosen_ones() {
    let config = r#"{"mcpServers": {
        "one": {"command": "mcptest", "args": ["mock", "--tools-from", "server.yml"]},
        "two": {"command": "mcptest", "args": ["mock", "--preset", "tidy"]},
        "keyed": {"command": "sh", "args": ["-c", "echo 'ONE_API_KEY is not set' >&2; exit 3"]}
    }}"#;
    let dir = folder(&[("server.yml", NOTES), (".mcp.json", config)]);
    let refused = init(dir.path(), &["--from", ".mcp.json", "--yes"]);
    assert_eq!(refused.code, 2);
    for words in [
        "ONE_API_KEY is not set",
        "exited with code 3",
        "to leave them out: --server one --server two",
    ] {
        assert!(
            refused.stderr.contains(words),
            "{words}: {}",
            refused.stderr
        );
    }
    assert_eq!(names(dir.path()), [".mcp.json", "server.yml"]);
    let made = init(
        dir.path(),
        &[
            "--from",
            ".mcp.json",
            "--server",
            "one",
            "--server",
            "two",
            "--attacks",
        ],
    );
    assert_eq!(made.code, 0, "{}", made.stderr);
    let suite = read(dir.path(), "mcptest.yml");
    assert!(
        suite.contains("name: \"one, two\"") && suite.contains("one: selects list_notes"),
        "{suite}"
    );
    assert!(dir.path().join("mocks/two.yml").is_file());
    passes(dir.path());
    let unknown = init(
        dir.path(),
        &["--from", ".mcp.json", "--server", "three", "--force"],
    );
    assert!(
        unknown.code == 2
            && unknown
                .stderr
                .contains("has no server `three`; its servers are one, two, keyed"),
        "{}",
        unknown.stderr
    );
}
