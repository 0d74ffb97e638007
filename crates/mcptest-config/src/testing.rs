//! Configurations in one line per server, for tests.

use mcptest_yaml::Diagnostic;

use crate::configured_server::{ConfiguredServer, ServerTarget};
use crate::read;
use crate::template::{Template, TemplatePiece};

fn shown(template: &Template) -> String {
    let pieces = template.pieces().iter().map(|piece| match piece {
        TemplatePiece::Text(text) => text.clone(),
        TemplatePiece::Variable { name, default } => match default {
            Some(default) => format!("{{{name}:-{default}}}"),
            None => format!("{{{name}}}"),
        },
        TemplatePiece::ProjectFolder => "<project>".to_owned(),
        TemplatePiece::HomeFolder => "<home>".to_owned(),
    });
    pieces.collect()
}

/// The servers of a configuration, each in one line.
pub(crate) fn described(name: &str, text: &str) -> Vec<String> {
    let config = read(name, text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
    let one = |server: &ConfiguredServer| {
        let mut words = vec![format!("{}:", server.name)];
        match &server.target {
            ServerTarget::Command {
                argv,
                env,
                env_file,
                cwd,
            } => {
                words.extend(argv.iter().map(shown));
                words.extend(
                    env.iter()
                        .map(|(name, value)| format!("{name}={}", shown(value))),
                );
                words.extend(
                    env_file
                        .iter()
                        .map(|file| format!("env file {}", shown(file))),
                );
                words.extend(cwd.iter().map(|cwd| format!("in {}", shown(cwd))));
            }
            ServerTarget::Http { url, headers } => {
                words.push(shown(url));
                let headers = headers.iter();
                words.extend(headers.map(|(name, value)| format!("{name}: {}", shown(value))));
            }
            ServerTarget::Unsupported { reason } => words.push(format!("cannot: {reason}")),
        }
        words.extend(server.disabled.then(|| "(disabled)".to_owned()));
        words.join(" ")
    };
    config.servers.iter().map(one).collect()
}

/// The problems of a configuration, each with its line and column.
pub(crate) fn problems(name: &str, text: &str) -> Vec<String> {
    let problems = match read(name, text.as_bytes()) {
        Ok(config) => panic!("{config:?}"),
        Err(problems) => problems,
    };
    let one = |problem: &Diagnostic| {
        let (line, column) = problem.location().1.unwrap_or_default();
        format!("{line}:{column} {}", problem.message)
    };
    problems.0.iter().map(one).collect()
}
