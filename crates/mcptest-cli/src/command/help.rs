//! `mcptest help`.

mod topics;

pub use topics::matcher_names;

use mcptest_json::text::one_line;
use mcptest_report::ExitCode;
use mcptest_yaml::suggest;

use crate::cli::{HelpArgs, TOPICS, command_line};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;

pub fn help(args: &HelpArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let text = match args.topic.as_slice() {
        [word] => match topics::find(word, gates) {
            Some(text) => text,
            None => command(&args.topic, gates, output)?,
        },
        words => command(words, gates, output)?,
    };
    output.result(&text);
    Ok(ExitCode::Passed)
}

/// The help of a command, as its `--help` prints it; without words, that of the program.
fn command(words: &[String], gates: Gates, output: &Output) -> Result<String, Failure> {
    let mut found = command_line();
    found.build();
    for word in words {
        let Some(inner) = found.find_subcommand(word).cloned() else {
            return Err(unknown(word, &found, gates));
        };
        found = inner;
    }
    let help = found.render_help();
    Ok(if output.result_style().colour {
        help.ansi().to_string()
    } else {
        help.to_string()
    })
}

fn unknown(word: &str, command: &clap::Command, gates: Gates) -> Failure {
    let commands = command.get_subcommands().map(clap::Command::get_name);
    let known = commands
        .chain(TOPICS.map(|(topic, _)| topic))
        .chain(gates.iter().map(|gate| gate.block));
    let hint = suggest(word, known).map_or_else(
        || "`mcptest help` lists the topics and the commands".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    let word = one_line(word);
    Failure::Message(format!("there is no help on `{word}`; {hint}"))
}
