//! Why a try gave no turn, and what a person is told in the end.

use std::io;
use std::time::Duration;

use hyper::StatusCode;
use mcptest_http::body::{describe_status, error_chain};
use mcptest_json::text::{one_line, shorten};
use mcptest_redact::redact::Redactor;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::adapter::{Failure, FailureKind};
use crate::retry::Next;

/// Characters of a provider's own words that an error shows.
const MOST_WORDS: usize = 300;

/// So many characters of a secret may be seen where a text was cut: fewer happen by chance, and
/// give nothing away.
const MOST_OF_A_SECRET: usize = 4;

/// Why one try gave no turn.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub what: What,
    /// What the provider or the connection says about it.
    pub words: String,
    /// How long the provider asks to wait.
    pub asked: Option<Duration>,
}

/// What kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The provider answered with a failure.
    Answered(FailureKind, Option<StatusCode>),
    /// No connection, or one that broke.
    Connection,
    /// Whoever listens there cannot be trusted, or the host is none. No later try can do better.
    Untrusted,
    /// No answer in time; this much time is lost.
    Timeout(Duration),
}

impl Trouble {
    pub(crate) fn connection(words: impl Into<String>) -> Self {
        Self {
            what: What::Connection,
            words: words.into(),
            asked: None,
        }
    }

    /// No connection was made.
    pub(crate) fn unconnected(error: &io::Error) -> Self {
        // What TLS refuses and what is no host is told by these kinds.
        let final_word = matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
        );
        Self {
            what: if final_word {
                What::Untrusted
            } else {
                What::Connection
            },
            words: error_chain(error),
            asked: None,
        }
    }

    pub(crate) fn answered(
        kind: FailureKind,
        status: Option<StatusCode>,
        words: impl Into<String>,
    ) -> Self {
        Self {
            what: What::Answered(kind, status),
            words: words.into(),
            asked: None,
        }
    }

    pub(crate) fn of(failure: Failure, status: StatusCode) -> Self {
        Self {
            // The words of a failure inside a good answer are all that there is.
            what: What::Answered(
                failure.kind,
                Some(status).filter(|status| !status.is_success()),
            ),
            words: failure.message,
            asked: failure.retry_after,
        }
    }

    /// Whether the same request may do better later.
    pub(crate) fn may_pass(&self) -> bool {
        match self.what {
            What::Answered(kind, _) => matches!(
                kind,
                FailureKind::RateLimit | FailureKind::Overloaded | FailureKind::Transient
            ),
            What::Connection | What::Timeout(_) => true,
            What::Untrusted => false,
        }
    }

    /// Whether the provider has too much to do, so that fewer requests at once are in order.
    pub(crate) fn is_congestion(&self) -> bool {
        matches!(
            self.what,
            What::Answered(FailureKind::RateLimit | FailureKind::Overloaded, _)
        )
    }

    pub(crate) fn lost(&self) -> Duration {
        match self.what {
            What::Timeout(lost) => lost,
            _ => Duration::ZERO,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self.what {
            What::Answered(FailureKind::RateLimit, _) => ErrorKind::RateLimit,
            What::Answered(FailureKind::Auth, _) => ErrorKind::Auth,
            What::Answered(_, _) => ErrorKind::Provider,
            What::Connection | What::Untrusted => ErrorKind::Transport,
            What::Timeout(_) => ErrorKind::Timeout,
        }
    }
}

/// What no message may show.
pub(crate) struct Hidden {
    redactor: Redactor,
    /// The same values: a text that was cut may end in the beginning of one.
    secrets: Vec<String>,
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hidden").finish_non_exhaustive()
    }
}

impl Hidden {
    pub(crate) fn new(secrets: Vec<String>) -> Self {
        Self {
            redactor: Redactor::new(secrets.iter().cloned()),
            secrets,
        }
    }

    /// Text without secrets, whole or cut off.
    pub(crate) fn clean(&self, text: &str) -> String {
        let clean = self.redactor.text(text);
        let Some(before) = clean.strip_suffix('…') else {
            return clean;
        };
        let cut = self.secrets.iter().flat_map(|secret| {
            let ends = secret
                .char_indices()
                .map(|(index, _)| index)
                .skip(MOST_OF_A_SECRET + 1);
            ends.map(|end| &secret[..end])
                .filter(|start| before.ends_with(start))
        });
        match cut.map(str::len).max() {
            Some(length) => format!("{}…", &before[..before.len() - length]),
            None => clean,
        }
    }
}

/// Who was asked for what, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    /// The address, without anything secret.
    pub url: &'a str,
    pub attempts: u32,
    /// The variables that may hold the key.
    pub key_variables: &'a [String],
}

/// What the run's error says: who, what, how often, in whose words, and what to do.
pub(crate) fn run_error(
    asked: Asked<'_>,
    trouble: &Trouble,
    end: Option<Next>,
    hidden: &Hidden,
) -> RunError {
    let Asked {
        provider, model, ..
    } = asked;
    let mut message = match trouble.what {
        What::Answered(_, Some(status)) => {
            format!(
                "{provider} answered for {model} with {}",
                describe_status(status)
            )
        }
        What::Answered(FailureKind::Malformed, None) => {
            format!("{provider} gave no usable answer for {model}")
        }
        What::Answered(_, None) => format!("{provider} failed to answer for {model}"),
        What::Connection | What::Untrusted => {
            format!("no answer for {model} from {provider} at {}", asked.url)
        }
        What::Timeout(_) => format!("no answer for {model} from {provider} in the time allowed"),
    };
    if asked.attempts > 1 {
        message.push_str(&format!(", {} times", asked.attempts));
    }
    let words =
        one_line(shorten(hidden.clean(&trouble.words).trim(), MOST_WORDS).trim_end_matches('.'));
    if !words.is_empty() {
        message.push_str(&format!(": {words}"));
    }
    message.push('.');
    match end {
        Some(Next::AskedTooMuch(wait)) => {
            message.push_str(&format!(
                " It asks to wait {}s, which is more than a request waits in all.",
                wait.as_secs_f64().ceil()
            ));
        }
        Some(Next::WaitedEnough) => {
            message.push_str(" The time that a request waits in all is used up.")
        }
        _ => {}
    }
    if let Some(advice) = advice(asked, trouble) {
        message.push(' ');
        message.push_str(&advice);
    }
    RunError {
        kind: trouble.kind(),
        message,
    }
}

fn advice(asked: Asked<'_>, trouble: &Trouble) -> Option<String> {
    let provider = asked.provider;
    let words = match trouble.what {
        What::Answered(FailureKind::RateLimit | FailureKind::Overloaded, _) => format!(
            "Run fewer at once (`providers.{provider}.max_concurrency`), allow more tries (`providers.{provider}.retries`), or come back later."
        ),
        What::Answered(FailureKind::Auth, _) => match asked.key_variables {
            [] => format!("Name the key's variable in `providers.{provider}.api_key_env`."),
            names => format!(
                "Check the key in {}, and what it may be used for.",
                names.join(" or ")
            ),
        },
        What::Answered(FailureKind::Refused, Some(StatusCode::NOT_FOUND)) => {
            format!(
                "Check the model's id and `providers.{provider}.base_url` ({}).",
                asked.url
            )
        }
        What::Answered(FailureKind::Malformed, _) => format!(
            "Check `providers.{provider}.base_url` ({}) and `providers.{provider}.api`.",
            asked.url
        ),
        What::Timeout(_) => format!("Allow more with `providers.{provider}.timeout`."),
        What::Untrusted => format!(
            "Check `providers.{provider}.base_url`; the file of an authority that this system does not know can be named in SSL_CERT_FILE."
        ),
        What::Connection => {
            format!("Check `providers.{provider}.base_url` and that something listens there.")
        }
        What::Answered(_, _) => return None,
    };
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(trouble: &Trouble, attempts: u32, end: Option<Next>) -> RunError {
        let variables = ["ACME_KEY".to_owned()];
        let asked = Asked {
            provider: "acme",
            model: "m-1",
            url: "http://127.0.0.1:9/v1",
            attempts,
            key_variables: &variables,
        };
        run_error(
            asked,
            trouble,
            end,
            &Hidden::new(vec!["s3cret-value".to_owned()]),
        )
    }

    #[test]
    fn who_what_how_often_in_whose_words_and_what_to_do() {
        let status = Some(StatusCode::TOO_MANY_REQUESTS);
        let error = told(
            &Trouble::answered(FailureKind::RateLimit, status, "slow\ndown, s3cret-value."),
            9,
            Some(Next::TriedEnough),
        );
        assert_eq!(error.kind, ErrorKind::RateLimit);
        assert_eq!(
            error.message,
            "acme answered for m-1 with HTTP 429 Too Many Requests, 9 times: slow\\ndown, [redacted]. Run fewer at once (`providers.acme.max_concurrency`), allow more tries (`providers.acme.retries`), or come back later."
        );
        let error = told(
            &Trouble::answered(FailureKind::Auth, Some(StatusCode::UNAUTHORIZED), ""),
            1,
            None,
        );
        assert_eq!(error.kind, ErrorKind::Auth);
        assert_eq!(
            error.message,
            "acme answered for m-1 with HTTP 401 Unauthorized. Check the key in ACME_KEY, and what it may be used for."
        );
        let error = told(
            &Trouble::connection("refused"),
            2,
            Some(Next::AskedTooMuch(Duration::from_millis(90_500))),
        );
        assert_eq!(error.kind, ErrorKind::Transport);
        assert!(
            error.message.contains("It asks to wait 91s"),
            "{}",
            error.message
        );
    }

    #[test]
    fn a_certificate_does_not_get_better_with_time() {
        let of = |kind| Trouble::unconnected(&io::Error::new(kind, "x")).may_pass();
        assert!(!of(io::ErrorKind::InvalidData));
        assert!(of(io::ErrorKind::ConnectionRefused) && of(io::ErrorKind::TimedOut));
    }

    #[test]
    fn a_secret_that_was_cut_off_is_hidden_too() {
        let hidden = Hidden::new(vec!["s3cret-value".to_owned()]);
        for (text, clean) in [
            ("your key s3cret-va…", "your key …"),
            ("your key s3cre…", "your key …"),
            ("your key s3cr…", "your key s3cr…"),
            ("your key s3cret-value…", "your key [redacted]…"),
            ("nothing here…", "nothing here…"),
        ] {
            assert_eq!(hidden.clean(text), clean);
        }
    }

    #[test]
    fn every_kind_has_its_type() {
        for (what, kind) in [
            (
                What::Answered(FailureKind::Overloaded, None),
                ErrorKind::Provider,
            ),
            (
                What::Answered(FailureKind::Transient, None),
                ErrorKind::Provider,
            ),
            (
                What::Answered(FailureKind::Refused, None),
                ErrorKind::Provider,
            ),
            (
                What::Answered(FailureKind::Malformed, None),
                ErrorKind::Provider,
            ),
            (What::Timeout(Duration::ZERO), ErrorKind::Timeout),
            (What::Untrusted, ErrorKind::Transport),
        ] {
            let trouble = Trouble {
                what,
                words: "\u{1b}[31m".repeat(1000),
                asked: None,
            };
            let error = told(&trouble, 1, None);
            assert_eq!(error.kind, kind);
            assert!(!error.message.contains('\u{1b}') && error.message.len() < 4000);
        }
    }
}
