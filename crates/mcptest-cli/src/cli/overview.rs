//! The help of the program: its commands by purpose, the topics of `mcptest help`, the exit codes.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};
use mcptest_report::ExitCode;

use super::{Cli, GLOBAL};
use crate::columns;

/// The commands by purpose.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Test servers and agents",
        &["init", "run", "score", "validate", "mutate", "plan-runs"],
    ),
    (
        "Inspect and imitate servers",
        &[
            "list",
            "call",
            "catalog",
            "doctor",
            "explain",
            "diff",
            "tool-bench",
            "mock",
            "proxy",
        ],
    ),
    ("Results and recordings", &["report", "trace", "cassette"]),
    ("For coding agents", &["mcp", "agents-md"]),
    (
        "Setup and help",
        &["auth", "agents", "schema", "completions", "man", "help"],
    ),
];

/// The heading of commands without a purpose in [`GROUPS`].
const OTHER: &str = "Other commands";

/// The topics of `mcptest help`.
pub const TOPICS: [(&str, &str); 9] = [
    ("gates", "the figures that are computed from runs"),
    ("matchers", "the conditions of assertions"),
    ("targets", "the values that assertions select"),
    ("exit-codes", "the exit codes of the program"),
    ("models", "model ids, providers and their keys"),
    (
        "traces",
        "the recorded evidence, and the formats that are read",
    ),
    ("agents", "the agents that suites can test"),
    (
        "authorization",
        "servers that require a token: OAuth, logins, variables",
    ),
    ("reporters", "the formats of reports"),
];

const EXAMPLES: &str = "\
Examples:
  mcptest init --command python server.py                             write a suite for a server
  mcptest doctor -- npx -y @modelcontextprotocol/server-everything    inspect a server
  mcptest validate                                                    check mcptest.yml
  mcptest run --reporter pretty --reporter html=report.html           run it, with a page as report
  mcptest mcp                                                         serve a coding agent
  mcptest help gates                                                  list the gates";

/// The command line with the help of the program.
pub fn command_line() -> Command {
    let command = Cli::command();
    let header = *command.get_styles().get_header();
    let heading = |title: &str| format!("{header}{title}:{header:#}\n");
    let mut template = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (title, rows) in groups(&command) {
        // Writing to a String cannot fail.
        let _ = writeln!(template, "{}{}", heading(&title), columns::rows(&rows));
    }
    let _ = writeln!(
        template,
        "{}{}",
        heading("Topics of `mcptest help TOPIC`"),
        columns::rows(&TOPICS)
    );
    let _ = write!(template, "{}{{options}}\n\n", heading("Options"));
    let _ = writeln!(
        template,
        "{}{}\n{EXAMPLES}",
        heading("Exit codes"),
        columns::rows(&exit_codes())
    );
    with_short_help(command.help_template(template))
}

/// The command with a `--help` of one line per flag, also where values are described.
fn with_short_help(command: Command) -> Command {
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::HelpShort)
        .help_heading(GLOBAL)
        .help("Print help");
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(unfolded(&text)),
        None => command,
    };
    command
        .disable_help_flag(true)
        .arg(help)
        .mut_subcommands(with_short_help)
}

/// The text with one line per paragraph, as the terminal's width is known only when it is printed.
/// Lists and examples, which have indented lines, stay as they are.
fn unfolded(text: &str) -> String {
    let paragraph = |paragraph: &str| {
        if paragraph.lines().any(|line| line.starts_with(' ')) {
            paragraph.to_owned()
        } else {
            paragraph.replace('\n', " ")
        }
    };
    text.split("\n\n")
        .map(paragraph)
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// The exit codes with their meaning.
pub fn exit_codes() -> [(String, &'static str); 6] {
    ExitCode::ALL.map(|(code, meaning)| (u8::from(code).to_string(), meaning))
}

/// The commands of each group, with their descriptions.
fn groups(command: &Command) -> Vec<(String, Vec<(String, String)>)> {
    let row = |command: &Command| {
        let about = command.get_about().map(ToString::to_string);
        (command.get_name().to_owned(), about.unwrap_or_default())
    };
    let visible = || {
        command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
    };
    let mut groups: Vec<_> = GROUPS
        .iter()
        .map(|(title, names)| {
            let rows = names
                .iter()
                .filter_map(|name| command.find_subcommand(name));
            ((*title).to_owned(), rows.map(row).collect::<Vec<_>>())
        })
        .collect();
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<_> = visible()
        .filter(|inner| !grouped(inner.get_name()))
        .map(row)
        .collect();
    if !others.is_empty() {
        groups.push((OTHER.to_owned(), others));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_purpose() {
        let groups = groups(&Cli::command());
        let others = groups.iter().find(|(title, _)| title == OTHER);
        assert!(others.is_none(), "add to GROUPS: {others:?}");
        let listed: usize = groups.iter().map(|(_, rows)| rows.len()).sum();
        let named: usize = GROUPS.iter().map(|(_, names)| names.len()).sum();
        assert_eq!(listed, named, "GROUPS names a command that does not exist");
    }

    /// All commands, with those inside of others.
    fn all() -> Vec<Command> {
        let mut program = command_line();
        program.build();
        let mut found = vec![program];
        let mut at = 0;
        while at < found.len() {
            let inner: Vec<Command> = found[at].get_subcommands().cloned().collect();
            found.extend(inner);
            at += 1;
        }
        found
    }

    #[test]
    fn paragraphs_break_only_where_the_line_is_full() {
        for width in [80, 100] {
            for command in all() {
                let name = command.get_bin_name().unwrap_or("mcptest").to_owned();
                let help = command.term_width(width).render_help().to_string();
                let text = help
                    .rsplit_once("Global options:\n")
                    .map_or("", |(_, text)| text);
                for (line, next) in text.lines().zip(text.lines().skip(1)) {
                    let word = next.split(' ').next().unwrap_or_default();
                    let prose = !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
                    if prose && !word.is_empty() {
                        let length = line.chars().count() + 1 + word.chars().count();
                        assert!(length > width, "`{name} --help` at {width}: {line}\n{next}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_flag_takes_one_line_of_the_help() {
        for command in all() {
            let name = command.get_bin_name().unwrap_or("mcptest").to_owned();
            let help = command.term_width(100).render_help().to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 100, "{name}: {line}");
                // A description that continues is below its beginning.
                let indent = line.len() - line.trim_start().len();
                let continues = indent >= 10 && !line.trim_start().starts_with('-');
                assert!(
                    !continues,
                    "`{name} --help` has a description of two lines: {line}"
                );
            }
        }
    }

    #[test]
    fn every_help_ends_with_examples() {
        for mut command in all() {
            let name = command.get_bin_name().unwrap_or("mcptest").to_owned();
            let help = command.render_help().to_string();
            let (_, examples) = help
                .rsplit_once("Examples:\n")
                .unwrap_or_else(|| panic!("`{name} --help` has no examples"));
            assert!(examples.contains("  mcptest "), "{name}");
            assert!(
                !examples.contains("\n\n"),
                "{name}: the examples are not the end"
            );
        }
    }
}
