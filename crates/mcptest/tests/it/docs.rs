//! The pages: what they show is what happens.
//!
//! In `README.md` and every page below `docs/`,
//!
//! - a `console` block is run: `$ mcptest …` in the workspace's root, with `< FILE` for standard
//!   input and `# exit N` for a code other than 0. Below it is the output, standard error
//!   first. `[..]` in a line matches any characters, and a line `...` any lines;
//! - a block with `file=PATH` behind its language is a file. The commands of a page with such
//!   blocks are run in a fresh folder, which has the files of the blocks above them. A page with
//!   `<!-- plays: fastmcp -->` is played only if MCPTEST_FASTMCP_BIN names a folder with a
//!   `python3` that has FastMCP, as `cargo xtask e2e tutorials` does;
//! - a `yaml` block is loaded and held against the published schema: a suite, a mock manifest, a
//!   benchmark spec, a map of a trace format, the fields of an agent test, or entries of `tools:`,
//!   `resources:` or `prompts:`. A `yaml,bad` block must be refused;
//! - a `json` block is parsed, and read as a trace if it has `tool_calls`; a `jsonl` block is read
//!   as traces;
//! - between `<!-- generated: NAME -->` and `<!-- /generated -->` stands what [`generate`] makes of
//!   the name;
//! - a link to another file leads somewhere.
//!
//! [`site`](crate::site) has the checks of the pages as a whole.
//!
//! `UPDATE_GOLDEN=1` updates output and generated parts.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use mcptest_catalog::tool_bench::{BenchSpec, spec_schema};
use mcptest_gates::GATES;
use mcptest_report::ExitCode;
use mcptest_suite::{LoadOptions, Purpose};
use mcptest_yaml::{Document, DocumentLimits};
use serde_json::{Value, json};

use crate::support::{files, folder, mcptest, ran, root};

/// Pages with their path, as messages show it, and their text.
pub fn pages() -> Vec<(PathBuf, String, String)> {
    let root = root();
    let mut paths = files(&root.join("docs"), "md");
    paths.extend(Some(root.join("README.md")).filter(|readme| readme.is_file()));
    paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            (path, name, text)
        })
        .collect()
}

/// A fenced block.
pub struct Block {
    /// The words behind the fence.
    pub info: String,
    /// Page and line, for messages.
    pub place: String,
    pub text: String,
}

impl Block {
    pub fn language(&self) -> &str {
        self.info.split([',', ' ']).next().unwrap_or_default()
    }

    /// The path of a block that is a file.
    pub fn file(&self) -> Option<&str> {
        self.info
            .split(' ')
            .find_map(|word| word.strip_prefix("file="))
    }
}

pub fn blocks(name: &str, page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (index, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                open = true;
                blocks.push(Block {
                    info: info.to_owned(),
                    place: format!("{name}:{}", index + 1),
                    text: String::new(),
                });
            }
            None if open => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "{name}: the last block is not closed");
    blocks
}

/// The blocks of a language, from all pages.
pub fn blocks_of(language: &str) -> Vec<Block> {
    let mut found: Vec<Block> = pages()
        .iter()
        .flat_map(|(_, name, page)| blocks(name, page))
        .collect();
    found.retain(|block| block.language() == language);
    found
}

/// Two tests rewrite pages: one after the other, so that neither undoes what the other wrote.
static WRITING: Mutex<()> = Mutex::new(());

/// Compares a page with what it should be, or writes it.
fn settle(path: &Path, name: &str, now: &str, wanted: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, wanted).unwrap();
        return;
    }
    if let Some((line, (now, wanted))) = (1..)
        .zip(now.lines().zip(wanted.lines()))
        .find(|(_, (a, b))| a != b)
    {
        panic!(
            "{name}:{line}: run with UPDATE_GOLDEN=1 if this is meant\n  page:  {now}\n  truth: {wanted}"
        );
    }
    assert_eq!(now.lines().count(), wanted.lines().count(), "{name}");
}

// Console blocks.

#[test]
fn commands_do_what_the_pages_show() {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut commands = 0;
    for (path, name, page) in pages() {
        if page.contains(PLAYS_FASTMCP) && fastmcp().is_none() {
            continue;
        }
        let files: Vec<Block> = blocks(&name, &page);
        let mut files = files
            .iter()
            .filter(|block| block.file().is_some())
            .peekable();
        // A page with files starts in an empty folder.
        let scratch = files.peek().map(|_| folder(&[]));
        let dir = scratch
            .as_ref()
            .map_or_else(root, |dir| dir.path().to_owned());
        let mut wanted = String::new();
        let mut lines = page.lines().enumerate().peekable();
        let mut in_console = false;
        while let Some((index, line)) = lines.next() {
            wanted.push_str(line);
            wanted.push('\n');
            if line.starts_with("```") {
                in_console = line == "```console";
                if line.contains(" file=") {
                    write_file(&dir, files.next().unwrap());
                }
                continue;
            }
            let Some(command) = line.strip_prefix("$ ").filter(|_| in_console) else {
                continue;
            };
            commands += 1;
            let mut shown = Vec::new();
            while let Some((_, line)) =
                lines.next_if(|(_, line)| !line.starts_with("```") && !line.starts_with("$ "))
            {
                shown.push(line);
            }
            let output = run_command(command, &dir, &format!("{name}:{}", index + 1));
            let output: Vec<&str> = output.trim_end().lines().collect();
            let kept = if fits(&shown, &output) {
                &shown
            } else {
                &output
            };
            wanted.extend(kept.iter().flat_map(|line| [line.trim_end(), "\n"]));
            // Commands in one block stay apart.
            if kept.last().is_some_and(|last| !last.is_empty())
                && lines.peek().is_some_and(|(_, line)| line.starts_with('$'))
            {
                wanted.push('\n');
            }
        }
        settle(&path, &name, &page, &wanted);
    }
    assert!(commands > 10, "{commands} commands");
}

/// The mark of a page whose commands need FastMCP.
const PLAYS_FASTMCP: &str = "<!-- plays: fastmcp -->";

/// The folder of an interpreter that has FastMCP.
fn fastmcp() -> Option<std::ffi::OsString> {
    std::env::var_os("MCPTEST_FASTMCP_BIN")
}

fn write_file(dir: &Path, block: &Block) {
    let path = dir.join(block.file().unwrap());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, &block.text).unwrap();
}

/// Standard error and standard output of a command line, after a check of its exit code.
fn run_command(line: &str, dir: &Path, place: &str) -> String {
    let (line, code) = match line.rsplit_once(" # exit ") {
        Some((line, code)) => (line, code.trim().parse().unwrap()),
        None => (line, 0),
    };
    let mut words = words(line).into_iter();
    assert_eq!(
        words.next().as_deref(),
        Some("mcptest"),
        "{place}: only mcptest is run"
    );
    let mut command = mcptest(dir);
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    if let Some(bin) = fastmcp() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(bin.into()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).unwrap());
    }
    while let Some(word) = words.next() {
        if word == "<" {
            let file = dir.join(words.next().unwrap());
            command.stdin(
                std::fs::File::open(&file)
                    .unwrap_or_else(|error| panic!("{place}: {}: {error}", file.display())),
            );
        } else {
            command.arg(word);
        }
    }
    let ran = ran(&command.output().unwrap());
    assert_eq!(
        ran.code, code,
        "{place}: {line}\n{}{}",
        ran.stderr, ran.stdout
    );
    ran.stderr + &ran.stdout
}

/// Splits at spaces outside of quotes.
pub fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, ' ') => words.push(String::new()),
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns true if the shown lines, with their wildcards, match the output.
fn fits(shown: &[&str], output: &[&str]) -> bool {
    match shown {
        [rest @ .., last] if last.trim().is_empty() && output.last() != Some(last) => {
            fits(rest, output)
        }
        [] => output.is_empty(),
        ["...", rest @ ..] => (0..=output.len()).any(|skip| fits(rest, &output[skip..])),
        [line, rest @ ..] => match output {
            [first, others @ ..] => line_fits(line, first) && fits(rest, others),
            [] => false,
        },
    }
}

/// A line without the duration at its end, which differs from run to run: `1 passed in 7 ms`.
fn without_duration(line: &str) -> &str {
    let line = line.trim_end();
    let is_time = |text: &str| {
        let (number, unit) = text.split_once(' ').unwrap_or_default();
        ["ms", "s"].contains(&unit) && number.parse::<f64>().is_ok()
    };
    match line.rsplit_once(" in ") {
        Some((before, time)) if is_time(time) => before,
        _ => line,
    }
}

fn line_fits(shown: &str, output: &str) -> bool {
    match shown.split_once("[..]") {
        None => without_duration(shown) == without_duration(output),
        Some((before, after)) => output.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| line_fits(after, &rest[at..]))
        }),
    }
}

#[test]
fn wildcards_match_text_and_lines() {
    assert!(fits(
        &["a [..] c", "...", "z", ""],
        &["a b c", "x", "y", "z"]
    ));
    assert!(fits(&["..."], &[]));
    assert!(!fits(&["a", "z"], &["a", "y", "z"]));
    assert!(!fits(&["a [..] c"], &["a b d"]));
    assert_eq!(words("a 'b c' --d \"e f\""), ["a", "b c", "--d", "e f"]);
}

// YAML and JSON blocks.

/// The contents of a YAML block, made complete.
enum Shown {
    Suite(Value),
    Manifest(Value),
    Bench(Value),
}

/// Blocks show whole files, or parts of a suite: entries of `tools:`, `resources:` or `prompts:`,
/// fields of an agent test.
fn whole(block: Value, schema: &Value) -> Shown {
    let has = |keys: &Value, key: &str| keys["properties"].get(key).is_some();
    match block {
        Value::Array(ref entries) => {
            let is = |keys: &[&str]| {
                let mut entries = entries.iter();
                entries.any(|entry| keys.iter().any(|key| entry.get(key).is_some()))
            };
            let section = if is(&["uri", "template"]) {
                "resources"
            } else if is(&["prompt"]) {
                "prompts"
            } else {
                "tools"
            };
            Shown::Suite(json!({ section: block }))
        }
        Value::Object(map) if map.contains_key("mock_server") => {
            Shown::Manifest(Value::Object(map))
        }
        Value::Object(map) if map.contains_key("intents") => Shown::Bench(Value::Object(map)),
        Value::Object(mut map) => {
            let test = &schema["$defs"]["Test"];
            let is_field = |(key, value): (&String, &Value)| {
                (has(test, key) && !has(schema, key)) || (key == "servers" && !value.is_object())
            };
            if !map.iter().any(is_field) {
                return Shown::Suite(Value::Object(map));
            }
            let section = if map.contains_key("agent") {
                "tests"
            } else {
                "agents"
            };
            map.entry("name").or_insert_with(|| "example".into());
            Shown::Suite(json!({ section: [map] }))
        }
        other => Shown::Suite(other),
    }
}

/// All problems with a block.
fn problems_of(text: &str) -> Vec<String> {
    let suite_schema = mcptest_suite::suite_schema(GATES);
    let document = match Document::parse("block", text.as_bytes(), &DocumentLimits::default()) {
        Ok(document) => document,
        Err(problems) => return vec![problems.to_string()],
    };
    let written = document.root().to_json();
    // A workflow of GitHub; `site` checks its commands.
    if written.get("jobs").is_some() {
        return Vec::new();
    }
    // The one kind of file whose calls are a JSON pointer.
    if written["calls"].is_string() {
        let map = mcptest_formats::Map::load("block.yml", text.as_bytes());
        return map
            .err()
            .map(|error| error.to_string())
            .into_iter()
            .collect();
    }
    let (value, schema, loaded) = match whole(written, &suite_schema) {
        Shown::Manifest(value) => {
            let loaded = mcptest_mock::load("block.yml", text.as_bytes()).map(|_| ());
            (value, mcptest_mock::manifest_schema(), loaded)
        }
        Shown::Bench(value) => {
            let loaded = mcptest_yaml::decode::<BenchSpec>(&document).map(|_| ());
            (value, spec_schema(), loaded)
        }
        Shown::Suite(value) => {
            let loaded = load_suite(&value);
            (value, suite_schema, loaded)
        }
    };
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut problems: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("schema, {}: {error}", error.instance_path()))
        .collect();
    problems.extend(loaded.err().map(|problems| problems.to_string()));
    problems
}

/// Loads a suite for scoring (a part of a suite names no servers), with every environment variable
/// set but `NOT_SET`.
fn load_suite(suite: &Value) -> Result<(), mcptest_yaml::Diagnostics> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("suite.yml");
    std::fs::write(&file, suite.to_string()).unwrap();
    for import in suite["imports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let path = dir.path().join(import);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "description: an imported file\n").unwrap();
    }
    let options = LoadOptions {
        purpose: Purpose::Score,
        gates: GATES,
        env: &|name| {
            (name != "NOT_SET" && name.to_uppercase() == name).then(|| "example".to_owned())
        },
        check_model: &|_| Ok(()),
        providers: &mcptest_runner::built_in_providers(),
        models: &[],
    };
    mcptest_suite::load(&file, &options).map(|_| ())
}

#[test]
fn yaml_blocks_load_and_bad_ones_are_refused() {
    let blocks = blocks_of("yaml");
    assert!(blocks.len() > 10, "{} blocks", blocks.len());
    for block in blocks {
        let problems = problems_of(&block.text);
        match block.info.split(" file=").next().unwrap() {
            "yaml" => assert!(
                problems.is_empty(),
                "{}: {}",
                block.place,
                problems.join("\n")
            ),
            "yaml,bad" => assert!(!problems.is_empty(), "{} is accepted", block.place),
            other => panic!("{}: unknown block `{other}`", block.place),
        }
    }
}

#[test]
fn json_blocks_parse_and_traces_are_traces() {
    for block in blocks_of("json") {
        let value: Value = serde_json::from_str(&block.text)
            .unwrap_or_else(|error| panic!("{}: {error}", block.place));
        if value.get("tool_calls").is_some() {
            mcptest_trace::trace::read(&block.text)
                .unwrap_or_else(|error| panic!("{}: {error}", block.place));
        }
    }
    for block in blocks_of("jsonl") {
        let traces = mcptest_trace::trace::read(&block.text)
            .unwrap_or_else(|error| panic!("{}: {error}", block.place));
        assert!(!traces.is_empty(), "{}", block.place);
    }
}

#[test]
fn links_lead_somewhere() {
    for (path, name, text) in pages() {
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = link.split('#').next().unwrap();
            // Pages on gates are generated from the gates themselves.
            if file.is_empty() || file.contains("://") || file.contains("gates/") {
                continue;
            }
            assert!(
                path.parent().unwrap().join(file).exists(),
                "{name}: {link} leads nowhere"
            );
        }
    }
}

// Generated parts.

#[test]
fn generated_parts_are_up_to_date() {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut parts = 0;
    for (path, name, page) in pages() {
        let mut wanted = String::new();
        let mut rest = page.as_str();
        while let Some((before, after)) = rest.split_once("<!-- generated: ") {
            let (title, after) = after
                .split_once(" -->\n")
                .unwrap_or_else(|| panic!("{name}: an open mark"));
            let (_, after) = after
                .split_once("<!-- /generated -->")
                .unwrap_or_else(|| panic!("{name}: `{title}` has no end"));
            wanted.push_str(before);
            wanted.push_str(&format!(
                "<!-- generated: {title} -->\n{}<!-- /generated -->",
                generate(title)
            ));
            rest = after;
            parts += 1;
        }
        wanted.push_str(rest);
        settle(&path, &name, &page, &wanted);
    }
    assert!(parts > 5, "{parts} parts");
}

/// The table of providers that need not be declared.
fn providers() -> String {
    let list = |words: &[&str]| {
        words
            .iter()
            .map(|word| code(word))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let rows = mcptest_runner::registry::PROVIDERS.map(|known| {
        vec![
            code(known.name),
            list(known.prefixes),
            code(known.base_url),
            code(known.api.as_str()),
            list(known.key_variables),
        ]
    });
    table(
        &[
            "provider",
            "ids that begin with",
            "base URL",
            "speaks",
            "key in",
        ],
        &rows,
    )
}

/// `exit codes`, `reporters`, `lint rules`, `providers`, `client configurations`, `target steps`,
/// `run targets`, `tool targets`, `quality targets`, `volatile rules`, `redaction shapes`, `keys of
/// SCHEMA[/TYPE]` or `values of SCHEMA/TYPE`; the schemas are those of `mcptest schema`.
fn generate(title: &str) -> String {
    if title == "exit codes" {
        let rows = ExitCode::ALL
            .map(|(code, meaning)| vec![u8::from(code).to_string(), meaning.to_owned()]);
        return table(&["code", "meaning"], &rows);
    }
    if title == "reporters" {
        let rows =
            mcptest_report::REPORTERS.map(|(name, what, _)| vec![code(name), what.to_owned()]);
        return table(&["reporter", "what it is"], &rows);
    }
    if title == "lint rules" {
        let rules = mcptest_catalog::lint::RULES;
        let rows = rules.map(|rule| {
            vec![
                rule.id.to_owned(),
                rule.severity.as_str().to_owned(),
                rule.title.to_owned(),
            ]
        });
        return table(&["rule", "severity", "fires when"], &rows);
    }
    if title == "providers" {
        return providers();
    }
    if title == "client configurations" {
        let rows: Vec<_> = mcptest_config::FORMATS
            .iter()
            .map(|format| {
                let files: Vec<String> = format.files.iter().map(|file| code(file)).collect();
                let key = code(&format.key.replace('/', "."));
                vec![format.title.to_owned(), files.join(", "), key]
            })
            .collect();
        return table(&["format", "files", "servers under"], &rows);
    }
    if let "target steps" | "run targets" | "tool targets" = title {
        use mcptest_suite::targets::{DIRECT_TARGETS, RUN_TARGETS, STEPS};
        let (first, second, rows) = match title {
            "target steps" => ("step", "selects", &STEPS[..]),
            "run targets" => ("target", "value", &RUN_TARGETS[..]),
            _ => ("target", "value", &DIRECT_TARGETS[..]),
        };
        let rows: Vec<_> = rows
            .iter()
            .map(|(target, meaning)| vec![code(target), (*meaning).to_owned()])
            .collect();
        return table(&[first, second], &rows);
    }
    if title == "quality targets" {
        let rows = mcptest_catalog::quality::TARGETS
            .map(|(name, meaning)| vec![code(name), meaning.to_owned()]);
        return table(&["target", "meaning"], &rows);
    }
    if title == "volatile rules" {
        let rows = mcptest_redact::volatile::BUILTIN.map(|(name, pattern, meaning)| {
            vec![
                code(name),
                meaning.to_owned(),
                code(&pattern.replace('|', "\\|")),
            ]
        });
        return table(&["rule", "finds", "pattern"], &rows);
    }
    if title == "redaction shapes" {
        let rows = mcptest_redact::redact::CREDENTIAL_FORMATS
            .map(|(shape, meaning)| vec![shape.to_owned(), meaning.to_owned()]);
        return table(&["shape", "of"], &rows);
    }
    let (what, path) = title
        .split_once(" of ")
        .unwrap_or_else(|| panic!("unknown part `{title}`"));
    let (name, definition) = path.split_once('/').unwrap_or((path, ""));
    let schema = match name {
        "suite" => mcptest_suite::suite_schema(GATES),
        "mock" => mcptest_mock::manifest_schema(),
        "report" => mcptest_report::report_schema(),
        "comparison" => mcptest_report::comparison_schema(),
        "trend" => mcptest_report::trend_schema(),
        "trace" => mcptest_trace::schema::trace_schema(),
        other => panic!("unknown schema `{other}`"),
    };
    let part = if definition.is_empty() {
        &schema
    } else {
        &schema["$defs"][definition]
    };
    match what {
        // What a report must have is for its writer, not its reader.
        "keys" => keys(
            &schema,
            part,
            !matches!(name, "report" | "comparison" | "trend"),
        ),
        "values" => {
            let values = part["oneOf"]
                .as_array()
                .unwrap_or_else(|| panic!("`{path}` has no values"));
            let rows: Vec<_> = values
                .iter()
                .map(|value| {
                    vec![
                        code(text(&value["const"])),
                        text(&value["description"]).to_owned(),
                    ]
                })
                .collect();
            table(&["value", "meaning"], &rows)
        }
        other => panic!("unknown part `{other}`"),
    }
}

fn keys(schema: &Value, part: &Value, tell_required: bool) -> String {
    let properties = part["properties"].as_object().expect("a type with keys");
    let is_required = |key: &str| {
        let mut required = part["required"].as_array().into_iter().flatten();
        tell_required && required.any(|name| name == key)
    };
    let alias_of = |property: &Value| {
        property
            .get(mcptest_yaml::ALIAS_OF)
            .map(|of| text(of).to_owned())
    };
    let mut rows = Vec::new();
    for (key, property) in properties {
        if alias_of(property).is_some() {
            continue;
        }
        let aliases = properties
            .iter()
            .filter(|(_, other)| alias_of(other).as_ref() == Some(key));
        let names: Vec<_> = std::iter::once(key)
            .chain(aliases.map(|(alias, _)| alias))
            .map(|name| code(name))
            .collect();
        // A gate's block is described where its type is.
        let description = match text(&property["description"]) {
            "" => text(&resolve(schema, property)["description"]),
            own => own,
        };
        rows.push(vec![
            names.join(" or "),
            type_words(schema, property) + if is_required(key) { ", required" } else { "" },
            description.to_owned(),
        ]);
    }
    table(&["key", "value", "meaning"], &rows)
}

fn resolve<'a>(schema: &'a Value, part: &'a Value) -> &'a Value {
    match part.get("$ref").and_then(Value::as_str) {
        Some(reference) => schema.pointer(reference.trim_start_matches('#')).unwrap(),
        None => part,
    }
}

/// The values that are allowed, for people.
fn type_words(schema: &Value, part: &Value) -> String {
    let part = resolve(schema, part);
    if let Some(words) = part.get(mcptest_yaml::EXPECTED) {
        return text(words).to_owned();
    }
    let joined = |parts: &Vec<Value>| {
        let mut all: Vec<String> = parts.iter().map(|part| type_words(schema, part)).collect();
        all.retain(|words| words != "null");
        all.dedup();
        all.join(" or ")
    };
    if let Some(parts) = ["anyOf", "oneOf", "allOf"]
        .iter()
        .find_map(|key| part.get(key)?.as_array())
    {
        // Clashing spellings are forbidden with `allOf`; that says nothing about the type.
        if part.get("properties").is_none() {
            return joined(parts);
        }
    }
    if let Some(values) = part.get("enum").and_then(Value::as_array) {
        return values
            .iter()
            .map(|value| code(&value.to_string().replace('"', "")))
            .collect::<Vec<_>>()
            .join(" or ");
    }
    if let Some(value) = part.get("const") {
        return code(text(value));
    }
    let kinds: Vec<&str> = match &part["type"] {
        Value::Array(kinds) => kinds
            .iter()
            .map(text)
            .filter(|kind| *kind != "null")
            .collect(),
        kind => vec![text(kind)],
    };
    let words: Vec<String> = kinds
        .iter()
        .map(|kind| kind_words(schema, part, kind))
        .collect();
    words.join(" or ")
}

fn kind_words(schema: &Value, part: &Value, kind: &str) -> String {
    let least_and_most = match (part.get("minimum"), part.get("maximum")) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) if *least != json!(0) => format!(", {least} or more"),
        _ => String::new(),
    };
    match kind {
        "string" => "text".to_owned(),
        "integer" => format!("whole number{least_and_most}"),
        "number" => format!("number{least_and_most}"),
        "boolean" => "`true` or `false`".to_owned(),
        "array" => match part.get("items").map(|items| type_words(schema, items)) {
            Some(items) => format!("list of: {items}"),
            None => "list".to_owned(),
        },
        "object" => match part
            .get("additionalProperties")
            .filter(|more| more.is_object())
        {
            Some(more) => format!("mapping of names to: {}", type_words(schema, more)),
            None => "mapping".to_owned(),
        },
        "null" => "null".to_owned(),
        _ => "any value".to_owned(),
    }
}

fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let row = |cells: &[String]| {
        // Line breaks and bars would end a cell.
        let cells: Vec<_> = cells
            .iter()
            .map(|cell| cell.replace('\n', " ").replace('|', "\\|"))
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let line = format!("|{}\n", "---|".repeat(head.len()));
    std::iter::once(row(&head))
        .chain([line])
        .chain(rows.iter().map(|cells| row(cells)))
        .collect()
}

fn code(word: &str) -> String {
    format!("`{word}`")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
