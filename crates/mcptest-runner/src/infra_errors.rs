//! Errors of the connection to a server, as errors of a run.

use mcptest_trace::server_messages;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::{WireError, WireErrorKind, not_offered};

pub(crate) fn unknown_server(name: &str) -> RunError {
    RunError {
        kind: ErrorKind::Transport,
        message: format!("unknown server `{name}`"),
    }
}

pub(crate) fn run_error(error: &WireError) -> RunError {
    let mut message = error.to_string();
    if let Some(key) = unanswered(&message) {
        message.push_str(&format!("; a suite answers it with `client: {{{key}: …}}`"));
    }
    RunError {
        kind: match error.kind() {
            WireErrorKind::Timeout => ErrorKind::Timeout,
            WireErrorKind::ServerCrash => ErrorKind::ServerCrash,
            WireErrorKind::Protocol => ErrorKind::Protocol,
            WireErrorKind::Auth => ErrorKind::Auth,
            WireErrorKind::RateLimit => ErrorKind::RateLimit,
            _ => ErrorKind::Transport,
        },
        message,
    }
}

/// The key of the answer that a server needed, if that ended the call.
fn unanswered(message: &str) -> Option<&'static str> {
    let requests = server_messages::REQUESTS.iter();
    let mut keys = requests.filter(|(method, _)| message.ends_with(&not_offered(method).message));
    keys.next().map(|(_, key)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_ended_a_call_has_a_key_in_suites() {
        let asked = |method: &str| format!("input_required: {}", not_offered(method).message);
        assert_eq!(
            unanswered(&asked("elicitation/create")),
            Some("elicitation")
        );
        assert_eq!(unanswered(&asked("roots/list")), Some("roots"));
        assert_eq!(unanswered(&asked("other/request")), None);
    }
}
