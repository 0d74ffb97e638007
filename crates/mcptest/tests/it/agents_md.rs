//! `mcptest agents-md`: the text that teaches coding agents.

use serde_json::json;

use crate::docs::blocks;
use crate::support::{folder, run};

#[test]
fn the_text_for_agents_is_short_and_its_blocks_work() {
    let dir = folder(&[]);
    let text = run(dir.path(), &["agents-md"]).stdout;
    assert!(text.lines().count() <= 120, "{}", text.lines().count());
    for gate in mcptest_gates::GATES {
        assert!(
            text.contains(&format!("- `{}`: ", gate.block)),
            "{}",
            gate.block
        );
    }
    let blocks = blocks("agents-md", &text);
    let [suite, manifest] = blocks.as_slice() else {
        panic!("{} blocks", blocks.len());
    };
    std::fs::write(dir.path().join("mcptest.yml"), &suite.text).unwrap();
    std::fs::write(dir.path().join("weather.yml"), &manifest.text).unwrap();
    let validated = run(dir.path(), &["validate", "--deny-warnings"]);
    assert_eq!(validated.code, 0, "{}", validated.stderr);
    let passed = run(dir.path(), &["run", "--no-history"]);
    assert_eq!(passed.code, 0, "{}{}", passed.stdout, passed.stderr);
    let linted = ["doctor", "--tools-from", "weather.yml", "--format", "json"];
    assert_eq!(
        run(dir.path(), &linted).json()["servers"][0]["problems"],
        json!([])
    );
    // Commands that it names exist.
    for command in text.split('`').filter(|part| part.starts_with("mcptest ")) {
        let words: Vec<&str> = command.split(' ').skip(1).take(1).collect();
        let help = run(dir.path(), &["help", words[0]]);
        assert_eq!(help.code, 0, "{command}");
    }
}
