//! The configurations of MCP clients, for commands that start servers.

use crate::init::NOTES;
use crate::support::{folder, mcptest, ran, run};

/// Each format with the same server, and the path of its file.
const CONFIGS: [(&str, &str); 6] = [
    (
        "mcp.json",
        r#"{"mcpServers": {"notes": {"command": "mcptest", "args": ["mock", "--tools-from", "${FILE:-server.yml}"]}}}"#,
    ),
    (
        "claude_desktop_config.json",
        r#"{"mcpServers": {"notes": {"command": "mcptest", "args": ["mock", "--tools-from", "server.yml"]}}}"#,
    ),
    (
        ".vscode/mcp.json",
        "{\n  // comments, and a comma at the end\n  \"inputs\": [{\"id\": \"a-key\", \"type\": \"promptString\", \"description\": \"The key\"}],\n  \"servers\": {\"notes\": {\"command\": \"mcptest\", \"args\": [\"mock\", \"--tools-from\", \"${workspaceFolder}/server.yml\"], \"env\": {\"K\": \"${input:a-key}\"}}},\n}",
    ),
    (
        ".cursor/mcp.json",
        r#"{"mcpServers": {"notes": {"command": "mcptest", "args": ["mock", "--tools-from", "server.yml"], "env": {"K": "${env:A_KEY}"}}}}"#,
    ),
    (
        "mcp_config.json",
        r#"{"mcpServers": {"notes": {"command": "mcptest", "args": ["mock", "--tools-from", "server.yml"]}}}"#,
    ),
    (
        ".codex/config.toml",
        "[mcp_servers.notes]\ncommand = \"mcptest\"\nargs = [\"mock\", \"--tools-from\", \"server.yml\"]\nenv_vars = [\"A_KEY\"]\n",
    ),
];

#[test]
fn every_format_starts_its_servers() {
    for (path, text) in CONFIGS {
        let dir = folder(&[("server.yml", NOTES)]);
        let file = dir.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        for command in [
            vec!["list", path],
            vec!["doctor", "--from", path],
            vec!["call", "notes", "list_notes", "--from", path],
            vec!["init", "--from", path, "--yes"],
            vec!["run", "--no-history"],
        ] {
            let output = mcptest(dir.path())
                .args(&command)
                .env("A_KEY", "s3cr3t-value")
                .output()
                .unwrap();
            let done = ran(&output);
            assert_eq!(
                done.code, 0,
                "{path}: {command:?}: {}{}",
                done.stdout, done.stderr
            );
        }
        let suite = std::fs::read_to_string(dir.path().join("mcptest.yml")).unwrap();
        assert!(!suite.contains("s3cr3t"), "{suite}");
        assert_eq!(
            suite.contains("${A_KEY}"),
            text.contains("A_KEY") || text.contains("a-key"),
            "{path}: {suite}"
        );
    }
}

#[test]
fn a_value_that_a_client_would_ask_for_is_named() {
    let (path, text) = CONFIGS[2];
    let dir = folder(&[("server.yml", NOTES)]);
    std::fs::create_dir(dir.path().join(".vscode")).unwrap();
    std::fs::write(dir.path().join(path), text).unwrap();
    let listed = run(dir.path(), &["list", path]);
    assert_eq!(listed.code, 2);
    assert!(
        listed
            .stderr
            .contains("the environment variable A_KEY is not set; VS Code asks for it: The key"),
        "{}",
        listed.stderr
    );
}

#[test]
fn problems_of_a_configuration_have_their_places() {
    let dir = folder(&[
        (
            "a.json",
            "{\"mcpServers\": {\n  \"x\": {\"command\": 5},\n  \"y\": []\n}}",
        ),
        ("b.toml", "[mcp_servers.x\n"),
        ("c.json", ""),
    ]);
    for (file, places) in [
        (
            "a.json",
            &[
                "a.json:3:8",
                "expected a mapping with `command` or `url`, found a list",
            ][..],
        ),
        ("b.toml", &["b.toml:1:", "not valid TOML"]),
        ("c.json", &["the file is empty"]),
    ] {
        let refused = run(dir.path(), &["doctor", "--from", file]);
        assert_eq!(refused.code, 2);
        for words in places {
            assert!(
                refused.stderr.contains(words),
                "{file}: {words}: {}",
                refused.stderr
            );
        }
    }
}
