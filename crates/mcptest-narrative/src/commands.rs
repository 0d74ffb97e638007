//! Shell commands and database statements that only look.

use serde_json::Value;

/// First words of statements that only look.
const STATEMENTS: &[&str] = &[
    "select", "show", "describe", "desc", "explain", "pragma", "values",
];

/// Words of statements that write.
const WRITES: &[&str] = &[
    "insert", "update", "delete", "create", "drop", "alter", "truncate", "merge", "replace",
    "grant", "into",
];

/// Programs that only look.
#[rustfmt::skip]
const PROGRAMS: &[&str] = &[
    "ls", "cat", "grep", "rg", "head", "tail", "du", "df", "pwd", "wc", "which", "stat", "tree", "cd", "echo", "ps",
    "date", "whoami", "uname", "less", "more", "sort", "uniq", "cut", "jq", "env", "printenv", "id", "file", "diff",
];

/// Commands of git that only look.
const GIT: &[&str] = &["log", "status", "diff", "show", "blame"];

/// Programs and their first arguments that only test, check or build.
#[rustfmt::skip]
const CHECKS: &[&str] = &[
    "npm test", "npm run test", "npm run lint", "npm run build", "yarn test", "yarn lint", "yarn build", "pnpm test", "npx vitest",
    "npx jest", "npx tsc", "npx eslint", "pytest", "python -m pytest", "cargo test", "cargo check", "cargo build", "cargo clippy",
    "go test", "go build", "go vet", "make test", "make check", "mvn test", "gradle test", "ruff check", "mypy", "tsc", "eslint", "jest", "vitest",
    "bazel build", "bazel test", "bazel query", "dotnet test", "phpunit", "rspec", "tox",
];

/// Returns true if the arguments of a tool that runs code have a command, and all of its parts only
/// test, check, build or look.
pub(crate) fn only_checks(args: &Value) -> bool {
    let is_check = |part: &str| {
        is_look(part)
            || CHECKS.iter().any(|known| {
                part.strip_prefix(known)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            })
    };
    let text = args
        .as_object()
        .and_then(|map| map.iter().find(|(key, _)| is_code(key)))
        .map(|(_, value)| match value {
            Value::String(text) => text.clone(),
            Value::Array(list) => {
                let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                words.join(" ")
            }
            _ => String::new(),
        })
        .unwrap_or_default();
    let text = text.replace("2>&1", "");
    !text.contains(['>', '`'])
        && !["$(", "--fix", "--write", "-u"]
            .iter()
            .any(|own| text.contains(own))
        && !text.trim().is_empty()
        && text
            .split(['\n', ';', '|', '&'])
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .all(is_check)
}

/// Returns true if the arguments of a tool that runs code have a command or a statement, and all of
/// them only look.
pub(crate) fn only_reads(args: &Value) -> bool {
    let mut found = false;
    reads(args, &mut found) && found
}

fn reads(value: &Value, found: &mut bool) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| is_code(key))
            .all(|(_, value)| reads(value, found)),
        Value::Array(list) => list.iter().all(|value| reads(value, found)),
        Value::String(text) => {
            *found = true;
            text.len() < 10_000 && (is_query(text) || is_look(text))
        }
        _ => true,
    }
}

/// The verbs of what a statement or a command does: `delete` of `DELETE FROM …` and of `rm a`.
///
/// `None` if one of its parts is not known, or if it is a program: that can do anything.
pub(crate) fn command_verbs(args: &Value) -> Option<Vec<&'static str>> {
    let mut found = Vec::new();
    (collect_verbs(args, &mut found) && !found.is_empty()).then_some(found)
}

fn collect_verbs(value: &Value, found: &mut Vec<&'static str>) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| is_code(key))
            .all(|(_, value)| collect_verbs(value, found)),
        Value::Array(list) => list.iter().all(|value| collect_verbs(value, found)),
        Value::String(text) if text.len() < 10_000 => text
            .split(['\n', ';', '|', '&'])
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .all(|part| {
                is_query(part)
                    || is_look(part)
                    || command_verb(part).is_some_and(|own| {
                        found.push(own);
                        true
                    })
            }),
        _ => true,
    }
}

/// First words of statements and commands, with the verb of what they do.
const COMMAND_VERBS: &[(&str, &str)] = &[
    ("insert", "insert"),
    ("update", "update"),
    ("delete", "delete"),
    ("create", "create"),
    ("drop", "drop"),
    ("alter", "alter"),
    ("truncate", "delete"),
    ("grant", "grant"),
    ("revoke", "revoke"),
    ("rm", "delete"),
    ("rmdir", "delete"),
    ("mv", "move"),
    ("cp", "copy"),
    ("mkdir", "create"),
    ("touch", "create"),
];

fn command_verb(part: &str) -> Option<&'static str> {
    let first = part.split_whitespace().next()?.to_ascii_lowercase();
    COMMAND_VERBS
        .iter()
        .find(|(word, _)| *word == first)
        .map(|(_, verb)| *verb)
}

fn is_code(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    [
        "command",
        "cmd",
        "sql",
        "query",
        "statement",
        "script",
        "code",
    ]
    .iter()
    .any(|known| key.contains(known))
}

fn is_query(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    let mut words = low
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty());
    words.next().is_some_and(|word| STATEMENTS.contains(&word))
        && !words.any(|word| WRITES.contains(&word))
}

fn is_look(text: &str) -> bool {
    let text = text.replace("2>&1", "").replace(">/dev/null", "");
    if text.contains(['>', '`']) || text.contains("$(") {
        return false;
    }
    text.split(['\n', ';', '|', '&'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .all(|part| {
            let mut words = part.split_whitespace();
            match words.next() {
                Some("git") => words.next().is_some_and(|word| GIT.contains(&word)),
                Some(program) => PROGRAMS.contains(&program),
                None => true,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{command_verbs, only_reads};

    #[test]
    fn the_verbs_of_commands() {
        let sql = json!({"sql": "SELECT 1; DELETE FROM users"});
        assert_eq!(command_verbs(&sql), Some(vec!["delete"]));
        let shell = json!({"command": "cd a && rm b.txt && mkdir c"});
        assert_eq!(command_verbs(&shell), Some(vec!["delete", "create"]));
        assert_eq!(
            command_verbs(&json!({"command": "rm a && ./deploy.sh"})),
            None
        );
        assert_eq!(command_verbs(&json!({"command": "ls"})), None);
        assert_eq!(command_verbs(&json!({"path": "a"})), None);
    }

    #[test]
    fn commands_and_statements() {
        for reads in [
            json!({"sql": "SELECT id, deleted FROM users"}),
            json!({"command": "ls -l | grep x"}),
            json!({"command": "cd a && git status", "timeout": 3}),
        ] {
            assert!(only_reads(&reads), "{reads}");
        }
        for acts in [
            json!({"sql": "DELETE FROM users"}),
            json!({"sql": "SELECT 1; DROP TABLE users"}),
            json!({"command": "echo x > a"}),
            json!({"command": "ls; rm a"}),
            json!({"command": "git push"}),
            json!({"file": "a.py"}),
        ] {
            assert!(!only_reads(&acts), "{acts}");
        }
    }
}
