//! The documentation as a whole: its table of contents, and blocks that are not run.

use std::collections::BTreeSet;

use crate::docs::{blocks, blocks_of, pages, words};
use crate::support::{folder, root, run};

#[test]
fn the_table_of_contents_has_every_page_once() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let links: Vec<String> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|link| format!("docs/{link}"))
        .collect();
    let listed: BTreeSet<String> = links.iter().cloned().collect();
    assert_eq!(links.len(), listed.len(), "a page is listed twice");
    let found: BTreeSet<String> = pages()
        .into_iter()
        .map(|(_, name, _)| name)
        .filter(|name| name != "README.md" && name != "docs/SUMMARY.md")
        .collect();
    let missing: Vec<_> = found.difference(&listed).collect();
    assert!(missing.is_empty(), "add to docs/SUMMARY.md: {missing:?}");
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "docs/SUMMARY.md lists {gone:?}");
}

/// The servers that the blocks of gates name.
const SERVERS: [&str; 7] = [
    "catalog", "shop", "shell", "weather", "tracker", "files", "mail",
];

/// A suite with a test that has this block.
fn under_a_test(block: &str) -> String {
    let mut suite = String::from("servers:\n");
    for server in SERVERS {
        suite += &format!("  {server}: {{ command: [mcptest, mock, --preset, tidy] }}\n");
    }
    suite += "agents:\n  - name: example\n    model: builtin/lexical\n";
    suite += &format!("    servers: [{}]\n", SERVERS.join(", "));
    if !block.contains("prompt:") {
        suite += "    prompt: Please help.\n";
    }
    for line in block.lines() {
        suite += &format!("    {line}\n");
    }
    suite
}

#[test]
fn the_block_of_a_gate_can_be_pasted_under_a_test() {
    let pages = pages();
    let gates = pages
        .iter()
        .filter(|(_, name, _)| name.starts_with("docs/gates/") && !name.ends_with("README.md"));
    let mut checked = 0;
    for (_, name, page) in gates {
        let question = page.lines().find(|line| line.starts_with("**"));
        assert!(
            question.is_some_and(|line| line.contains('?')),
            "{name} opens with no question"
        );
        let all = blocks(name, page);
        let block = all.first().unwrap_or_else(|| panic!("{name} has no block"));
        assert_eq!(
            block.info, "yaml",
            "{}: the first block is the one to paste",
            block.place
        );
        // A gate that needs more of the suite than its test shows the whole.
        let (suite, arguments) = if block.text.contains("\nagents:\n") {
            (block.text.clone(), &["validate", "--for", "score"][..])
        } else {
            (under_a_test(&block.text), &["validate"][..])
        };
        let dir = folder(&[("mcptest.yml", &suite)]);
        let ran = run(dir.path(), arguments);
        assert_eq!(ran.code, 0, "{}:\n{}{suite}", block.place, ran.stderr);
        checked += 1;
    }
    assert!(checked > 12, "{checked} pages of gates");
}

/// The commands of a script: continued lines joined, without comments, and apart at `&&` and `|`.
fn commands(script: &str) -> Vec<Vec<String>> {
    let joined = script.replace("\\\n", " ");
    let lines = joined
        .lines()
        .map(|line| line.split(" #").next().unwrap_or_default());
    let parts = lines.flat_map(|line| {
        let mut parts: Vec<Vec<String>> = vec![Vec::new()];
        for word in words(line) {
            match word.as_str() {
                "&&" | "|" | ";" => parts.push(Vec::new()),
                _ => parts.last_mut().unwrap().push(word),
            }
        }
        parts
    });
    parts
        .filter(|words| words.first().is_some_and(|first| !first.starts_with('#')))
        .collect()
}

#[test]
fn commands_in_scripts_are_valid() {
    let mut checked = 0;
    for block in blocks_of("sh") {
        for command in commands(&block.text) {
            // Variables of a single command are in front of it.
            let is_variable = |word: &&String| word.contains('=') && !word.starts_with('-');
            let command: Vec<&str> = command
                .iter()
                .skip_while(is_variable)
                .map(String::as_str)
                .take_while(|word| !matches!(*word, ">" | "<" | "2>"))
                .collect();
            if let ["mcptest", arguments @ ..] = command.as_slice() {
                if let Err(error) = mcptest_cli::check_arguments(arguments.iter().copied()) {
                    panic!("{}: {command:?}\n{error}", block.place);
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "{checked} commands");
}

#[test]
fn commands_of_workflows_are_valid() {
    let mut checked = 0;
    let blocks = blocks_of("yaml").into_iter().chain(blocks_of("yml"));
    for block in blocks.filter(|block| block.text.contains("\njobs:\n")) {
        for line in block.text.lines().map(str::trim_start) {
            // Commands, and the arguments that the Action adds to `mcptest run`.
            let arguments = match (
                line.strip_prefix("- run: mcptest "),
                line.strip_prefix("args: "),
            ) {
                (Some(arguments), _) => words(arguments),
                (_, Some(more)) => words(&format!("run {more}")),
                _ => continue,
            };
            if let Err(error) = mcptest_cli::check_arguments(arguments.iter().map(String::as_str)) {
                panic!("{}: {line}\n{error}", block.place);
            }
            checked += 1;
        }
    }
    assert!(checked > 0, "{checked} commands");
}

#[test]
fn every_block_has_a_known_language() {
    // Python blocks are run by `cargo xtask python tests` and `cargo xtask e2e tutorials`. Those of
    // the second line are formats of other tools and sketches of output, which nothing runs.
    let known = [
        "console",
        "json",
        "jsonl",
        "python",
        "sh",
        "yaml", //
        "dockerfile",
        "js",
        "text",
        "toml",
        "ts",
        "yml",
    ];
    for (_, name, page) in pages() {
        for block in blocks(&name, &page) {
            let language = block.language();
            assert!(known.contains(&language), "{}: `{language}`", block.place);
        }
    }
}
