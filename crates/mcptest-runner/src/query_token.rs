//! The token for queries of mock servers.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A token that others cannot guess, for the mock servers of an invocation.
pub(crate) fn new_token() -> String {
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}

/// Returns true if a command starts our mock server: `mcptest mock`, also within a shell command.
pub(crate) fn is_mock(argv: &[String]) -> bool {
    argv.iter()
        .any(|argument| argument.split_whitespace().any(|word| word == "mock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_mocks_are_recognised() {
        assert_ne!(new_token(), new_token());
        assert_eq!(new_token().len(), 32);
        let argv = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        assert!(is_mock(&argv(&[
            "mcptest",
            "mock",
            "--tools-from",
            "x.yml"
        ])));
        assert!(is_mock(&argv(&[
            "sh",
            "-c",
            "exec mcptest mock --tools-from x.yml"
        ])));
        assert!(!is_mock(&argv(&["python", "mock_server.py"])));
    }
}
