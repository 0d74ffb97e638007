//! The failure of an attempt, and the error message when no attempt succeeds.

use std::io;
use std::time::Duration;

use hyper::StatusCode;
use mcptest_http::body::{describe_status, error_chain};
use mcptest_json::text::{one_line, shorten};
use mcptest_redact::redact::Redactor;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::adapter::{ApiError, ApiErrorKind};
use crate::retry::RetryDecision;

/// The most characters of a provider's own message that an error shows.
const MAX_MESSAGE: usize = 300;

/// The failure of one attempt.
#[derive(Debug)]
pub(crate) struct SendFailure {
    pub cause: FailureCause,
    /// The message of the provider or the connection.
    pub message: String,
    /// The wait that the provider requests.
    pub retry_after: Option<Duration>,
}

/// The cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// The provider answered with an error.
    Answered(ApiErrorKind, Option<StatusCode>),
    /// No connection, or a lost one.
    Connection,
    /// The server is not trusted, or the host is invalid. A retry cannot succeed.
    Untrusted,
    /// No answer within this time.
    Timeout(Duration),
}

impl SendFailure {
    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self {
            cause: FailureCause::Connection,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The connection could not be made.
    pub(crate) fn not_connected(error: &io::Error) -> Self {
        // Failed TLS verification and invalid hosts have these kinds.
        let untrusted = matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
        );
        Self {
            cause: if untrusted {
                FailureCause::Untrusted
            } else {
                FailureCause::Connection
            },
            message: error_chain(error),
            retry_after: None,
        }
    }

    pub(crate) fn answered(
        kind: ApiErrorKind,
        status: Option<StatusCode>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            cause: FailureCause::Answered(kind, status),
            message: message.into(),
            retry_after: None,
        }
    }

    pub(crate) fn from_api(error: ApiError, status: StatusCode) -> Self {
        Self {
            // A success status says nothing about an error inside the answer.
            cause: FailureCause::Answered(
                error.kind,
                Some(status).filter(|status| !status.is_success()),
            ),
            message: error.message,
            retry_after: error.retry_after,
        }
    }

    /// Returns true if the same request may succeed later.
    pub(crate) fn is_retryable(&self) -> bool {
        match self.cause {
            FailureCause::Answered(kind, _) => matches!(
                kind,
                ApiErrorKind::RateLimit | ApiErrorKind::Overloaded | ApiErrorKind::Transient
            ),
            FailureCause::Connection | FailureCause::Timeout(_) => true,
            FailureCause::Untrusted => false,
        }
    }

    /// Returns true if the provider is overloaded, so that fewer requests should be in flight.
    pub(crate) fn is_congestion(&self) -> bool {
        matches!(
            self.cause,
            FailureCause::Answered(ApiErrorKind::RateLimit | ApiErrorKind::Overloaded, _)
        )
    }

    /// Returns the time lost in a timeout.
    pub(crate) fn time_lost(&self) -> Duration {
        match self.cause {
            FailureCause::Timeout(lost) => lost,
            _ => Duration::ZERO,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self.cause {
            FailureCause::Answered(ApiErrorKind::RateLimit, _) => ErrorKind::RateLimit,
            FailureCause::Answered(ApiErrorKind::Auth, _) => ErrorKind::Auth,
            FailureCause::Answered(_, _) => ErrorKind::Provider,
            FailureCause::Connection | FailureCause::Untrusted => ErrorKind::Transport,
            FailureCause::Timeout(_) => ErrorKind::Timeout,
        }
    }
}

/// A failed request, for its message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedRequest<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    /// The base URL, without secrets.
    pub url: &'a str,
    pub attempts: u32,
    /// The environment variables that may hold the key.
    pub key_variables: &'a [String],
}

/// Returns the error of the run: provider, model, failure, number of attempts, the provider's own
/// message, and advice.
pub(crate) fn run_error(
    request: FailedRequest<'_>,
    failure: &SendFailure,
    decision: Option<RetryDecision>,
    redactor: &Redactor,
) -> RunError {
    let FailedRequest {
        provider, model, ..
    } = request;
    let mut message = match failure.cause {
        FailureCause::Answered(_, Some(status)) => {
            format!(
                "{provider} answered for {model} with {}",
                describe_status(status)
            )
        }
        FailureCause::Answered(ApiErrorKind::Malformed, None) => {
            format!("{provider} gave no usable answer for {model}")
        }
        FailureCause::Answered(_, None) => format!("{provider} failed to answer for {model}"),
        FailureCause::Connection | FailureCause::Untrusted => {
            format!("no answer for {model} from {provider} at {}", request.url)
        }
        FailureCause::Timeout(_) => {
            format!("no answer for {model} from {provider} in the time allowed")
        }
    };
    if request.attempts > 1 {
        message.push_str(&format!(", {} times", request.attempts));
    }
    let own = one_line(
        shorten(redactor.text(&failure.message).trim(), MAX_MESSAGE).trim_end_matches('.'),
    );
    if !own.is_empty() {
        message.push_str(&format!(": {own}"));
    }
    message.push('.');
    match decision {
        Some(RetryDecision::RetryAfterTooLong(wait)) => {
            message.push_str(&format!(
                " It asks to wait {}s, which is longer than a request may wait in total.",
                wait.as_secs_f64().ceil()
            ));
        }
        Some(RetryDecision::WaitExhausted) => {
            message.push_str(" The total time that a request may wait is used up.")
        }
        _ => {}
    }
    if let Some(advice) = advice(request, failure) {
        message.push(' ');
        message.push_str(&advice);
    }
    RunError {
        kind: failure.kind(),
        message,
    }
}

fn advice(request: FailedRequest<'_>, failure: &SendFailure) -> Option<String> {
    let provider = request.provider;
    let advice = match failure.cause {
        FailureCause::Answered(ApiErrorKind::RateLimit | ApiErrorKind::Overloaded, _) => format!(
            "Run fewer requests in parallel (`providers.{provider}.max_concurrency`), allow more \
             retries (`providers.{provider}.retries`), or try again later."
        ),
        FailureCause::Answered(ApiErrorKind::Auth, _) => match request.key_variables {
            [] => format!("Name the key's variable in `providers.{provider}.api_key_env`."),
            names => format!(
                "Check the key in {}, and its permissions.",
                names.join(" or ")
            ),
        },
        FailureCause::Answered(ApiErrorKind::Refused, Some(StatusCode::NOT_FOUND)) => {
            format!(
                "Check the model's id and `providers.{provider}.base_url` ({}).",
                request.url
            )
        }
        FailureCause::Answered(ApiErrorKind::Malformed, _) => format!(
            "Check `providers.{provider}.base_url` ({}) and `providers.{provider}.api`.",
            request.url
        ),
        FailureCause::Timeout(_) => format!("Allow more time with `providers.{provider}.timeout`."),
        FailureCause::Untrusted => format!(
            "Check `providers.{provider}.base_url`. For a certificate authority that this \
             system does not know, set SSL_CERT_FILE to its certificate file."
        ),
        FailureCause::Connection => {
            format!("Check `providers.{provider}.base_url`, and that a server listens there.")
        }
        FailureCause::Answered(_, _) => return None,
    };
    Some(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(failure: &SendFailure, attempts: u32, decision: Option<RetryDecision>) -> RunError {
        let variables = ["ACME_KEY".to_owned()];
        let request = FailedRequest {
            provider: "acme",
            model: "m-1",
            url: "http://127.0.0.1:9/v1",
            attempts,
            key_variables: &variables,
        };
        run_error(
            request,
            failure,
            decision,
            &Redactor::new(["s3cret-value".to_owned()]),
        )
    }

    #[test]
    fn a_message_has_status_attempts_own_message_and_advice() {
        let status = Some(StatusCode::TOO_MANY_REQUESTS);
        let error = error_of(
            &SendFailure::answered(ApiErrorKind::RateLimit, status, "slow\ndown, s3cret-value."),
            9,
            Some(RetryDecision::RetriesExhausted),
        );
        assert_eq!(error.kind, ErrorKind::RateLimit);
        assert_eq!(
            error.message,
            "acme answered for m-1 with HTTP 429 Too Many Requests, 9 times: slow\\ndown, \
             [redacted]. Run fewer requests in parallel \
             (`providers.acme.max_concurrency`), allow more retries \
             (`providers.acme.retries`), or try again later."
        );
        let error = error_of(
            &SendFailure::answered(ApiErrorKind::Auth, Some(StatusCode::UNAUTHORIZED), ""),
            1,
            None,
        );
        assert_eq!(error.kind, ErrorKind::Auth);
        assert_eq!(
            error.message,
            "acme answered for m-1 with HTTP 401 Unauthorized. Check the key in ACME_KEY, and its \
             permissions."
        );
        let error = error_of(
            &SendFailure::connection("refused"),
            2,
            Some(RetryDecision::RetryAfterTooLong(Duration::from_millis(
                90_500,
            ))),
        );
        assert_eq!(error.kind, ErrorKind::Transport);
        assert!(
            error.message.contains("It asks to wait 91s"),
            "{}",
            error.message
        );
    }

    #[test]
    fn an_untrusted_certificate_is_not_retried() {
        let of = |kind| SendFailure::not_connected(&io::Error::new(kind, "x")).is_retryable();
        assert!(!of(io::ErrorKind::InvalidData));
        assert!(of(io::ErrorKind::ConnectionRefused) && of(io::ErrorKind::TimedOut));
    }

    #[test]
    fn every_cause_has_its_error_kind() {
        for (cause, kind) in [
            (
                FailureCause::Answered(ApiErrorKind::Overloaded, None),
                ErrorKind::Provider,
            ),
            (
                FailureCause::Answered(ApiErrorKind::Transient, None),
                ErrorKind::Provider,
            ),
            (
                FailureCause::Answered(ApiErrorKind::Refused, None),
                ErrorKind::Provider,
            ),
            (
                FailureCause::Answered(ApiErrorKind::Malformed, None),
                ErrorKind::Provider,
            ),
            (FailureCause::Timeout(Duration::ZERO), ErrorKind::Timeout),
            (FailureCause::Untrusted, ErrorKind::Transport),
        ] {
            let failure = SendFailure {
                cause,
                message: "\u{1b}[31m".repeat(1000),
                retry_after: None,
            };
            let error = error_of(&failure, 1, None);
            assert_eq!(error.kind, kind);
            assert!(!error.message.contains('\u{1b}') && error.message.len() < 4000);
        }
    }
}
