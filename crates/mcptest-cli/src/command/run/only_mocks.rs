//! `run --only-mocks`: a suite may start this program as a mock server, and nothing else.

use mcptest_suite::Suite;
use mcptest_suite::suite::Server;

/// The flags of `mcptest mock` that neither write a file nor open a port. Each has a value.
const HARMLESS_FLAGS: [&str; 5] = [
    "--tools-from",
    "--preset",
    "--fault",
    "--attacks",
    "--attack",
];

/// Checks that a suite starts mocks only.
///
/// # Errors
/// The first server or agent that is something else.
pub fn check(suite: &Suite) -> Result<(), String> {
    for (name, server) in &suite.servers {
        if let Some(why) = objection(server) {
            return Err(format!(
                "{}: `--only-mocks` does not allow the server `{name}`: {why}",
                suite.file.display()
            ));
        }
    }
    for test in suite.agent_tests() {
        if let Some(agent) = test.agents.first() {
            return Err(format!(
                "{}: `--only-mocks` does not allow the test `{}`: it starts the agent `{}`",
                suite.file.display(),
                test.name,
                agent.label
            ));
        }
    }
    Ok(())
}

/// The reason why a server is not only a mock.
fn objection(server: &Server) -> Option<String> {
    if server.http.is_some() {
        return Some("it is an address".to_owned());
    }
    let [program, command, arguments @ ..] = server.argv.as_slice() else {
        return Some("its command is not `mcptest mock`".to_owned());
    };
    // The runner replaces exactly this word by the path of this program.
    if (program.as_str(), command.as_str()) != ("mcptest", "mock") {
        return Some(format!("it starts `{program}`"));
    }
    // A variable can make any program load any code.
    if let Some((name, _)) = server.env.first() {
        return Some(format!("it sets the variable `{name}`"));
    }
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (flag, value) = match argument.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (argument.as_str(), None),
        };
        if !HARMLESS_FLAGS.contains(&flag) {
            return Some(format!("the mock has the argument `{argument}`"));
        }
        if value.is_none() {
            arguments.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn objection_to(argv: &[&str]) -> Option<String> {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        objection(&Server::command(argv, PathBuf::new()))
    }

    #[test]
    fn mocks_are_allowed() {
        for argv in [
            &["mcptest", "mock", "--tools-from", "a.yml"][..],
            &["mcptest", "mock", "--preset=tidy", "--fault", "slow:5"],
            &["mcptest", "mock", "--tools-from", "--record"],
        ] {
            assert_eq!(objection_to(argv), None, "{argv:?}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for argv in [
            &[][..],
            &["mcptest"],
            &["./mcptest", "mock", "--preset", "tidy"],
            &["mcptest", "proxy", "--", "sh"],
            &["sh", "-c", "mcptest mock"],
            &[
                "mcptest",
                "mock",
                "--preset",
                "tidy",
                "--record",
                "sent.jsonl",
            ],
            &["mcptest", "mock", "--preset", "tidy", "--record=sent.jsonl"],
            &["mcptest", "mock", "--preset", "tidy", "--http", "0"],
            &["mcptest", "-v", "mock", "--preset", "tidy"],
        ] {
            assert!(objection_to(argv).is_some(), "{argv:?}");
        }
        let mut server = Server::command(
            ["mcptest", "mock", "--preset", "tidy"]
                .map(String::from)
                .to_vec(),
            PathBuf::new(),
        );
        server
            .env
            .push(("LD_PRELOAD".to_owned(), "evil.so".to_owned()));
        assert!(objection(&server).is_some());
    }
}
