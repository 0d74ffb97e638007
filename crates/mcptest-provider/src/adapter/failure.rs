//! What providers say when they refuse, in whichever of their dialects. Gateways mix them, so there
//! is one reader for all.

use std::time::Duration;

use mcptest_json::text;
use serde_json::Value;

use super::{Failure, FailureKind};

/// How much of a provider's words is kept.
const MOST_WORDS: usize = 400;

/// No provider asks for a longer pause than this in earnest.
const LONGEST_PAUSE_SECONDS: f64 = 24.0 * 3600.0;

impl Failure {
    /// A failure in words that may come from anywhere: they are cut and made safe to show.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl AsRef<str>) -> Self {
        Self {
            kind,
            message: text::one_line(&text::shorten(message.as_ref().trim(), MOST_WORDS)),
            retry_after: None,
        }
    }

    pub(super) fn malformed(message: impl AsRef<str>) -> Self {
        Self::new(FailureKind::Malformed, message)
    }

    /// An answer that the provider itself gave up: asked again, it may well come through.
    pub(super) fn broken_off(key: &str, reason: &str) -> Self {
        Self::new(
            FailureKind::Transient,
            format!("the provider broke the answer off ({key} `{reason}`)"),
        )
    }

    /// A stream that ended too early: sent again, it may well go through.
    pub(super) fn cut_short(missing: &str) -> Self {
        Self::new(
            FailureKind::Transient,
            format!("the stream ended before {missing}"),
        )
    }
}

/// The failure in an answer with a status of failure.
pub(super) fn from_status(status: u16, body: &[u8]) -> Failure {
    match serde_json::from_slice::<Value>(body) {
        Ok(body) => from_body(Some(status), &body),
        Err(_) => {
            let words = String::from_utf8_lossy(&body[..body.len().min(4 * MOST_WORDS)]);
            let words = if words.trim().is_empty() {
                "no explanation"
            } else {
                &words
            };
            Failure::new(kind_of_status(status), words)
        }
    }
}

/// The failure that an answer of success, or an event of a stream, carries under `error`.
pub(super) fn inside(answer: &Value) -> Option<Failure> {
    let error = answer.get("error").filter(|error| !error.is_null())?;
    // Some gateways send an empty error object along with a good answer.
    let tells = !error.as_object().is_some_and(serde_json::Map::is_empty);
    tells.then(|| from_body(None, answer))
}

/// Reads `{"error": {…}}`, `{"error": "…"}`, `[{"error": …}]`, `{"message": …}` and `{"detail":
/// …}`.
pub(super) fn from_body(status: Option<u16>, body: &Value) -> Failure {
    let body = body.get(0).unwrap_or(body);
    let error = body
        .get("error")
        .filter(|error| !error.is_null())
        .unwrap_or(body);
    // A number in `code` is a status of HTTP (Gemini, OpenRouter).
    let in_body = error
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok());
    let status = status.or(in_body.filter(|status| (400..600).contains(status)));
    let words = words(error, body);
    let kind = kind_of_words(&labels(error), &words).unwrap_or_else(|| match status {
        Some(status) => kind_of_status(status),
        None => kind_without_status(&labels(error)),
    });
    Failure {
        retry_after: retry_delay(error),
        ..Failure::new(kind, words)
    }
}

fn words(error: &Value, body: &Value) -> String {
    let places = [
        Some(error),
        error.get("message"),
        error.get("detail"),
        body.get("message"),
        body.get("detail"),
    ];
    let text = places
        .into_iter()
        .flatten()
        .find_map(Value::as_str)
        .filter(|text| !text.trim().is_empty());
    text.map_or_else(|| error.to_string(), str::to_owned)
}

/// The words by which a provider names the kind of an error: `type`, `code`, `status`, and Google's
/// `details[].reason`.
fn labels(error: &Value) -> Vec<&str> {
    let own = ["type", "code", "status"]
        .into_iter()
        .filter_map(|key| error.get(key)?.as_str());
    let details = error
        .get("details")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    own.chain(details.filter_map(|detail| detail.get("reason")?.as_str()))
        .collect()
}

/// The kinds that a status alone does not tell, or tells wrongly.
fn kind_of_words(labels: &[&str], words: &str) -> Option<FailureKind> {
    let any = |names: &[&str]| labels.iter().any(|label| names.contains(label));
    let no_credit = [
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
        "access_terminated",
    ];
    let no_access = [
        "authentication_error",
        "permission_error",
        "invalid_api_key",
        "API_KEY_INVALID",
    ];
    if any(&no_credit) || any(&no_access) || words.contains("credit balance is too low") {
        return Some(FailureKind::Auth);
    }
    if any(&["overloaded_error", "UNAVAILABLE"]) {
        return Some(FailureKind::Overloaded);
    }
    any(&[
        "rate_limit_error",
        "rate_limit_exceeded",
        "RESOURCE_EXHAUSTED",
    ])
    .then_some(FailureKind::RateLimit)
}

fn kind_of_status(status: u16) -> FailureKind {
    match status {
        401..=403 => FailureKind::Auth,
        // A request that came too late, lost a race or was too early may go through next time.
        408 | 409 | 425 => FailureKind::Transient,
        429 => FailureKind::RateLimit,
        503 | 529 => FailureKind::Overloaded,
        500.. => FailureKind::Transient,
        _ => FailureKind::Refused,
    }
}

/// In a stream there is no status. What is not known for a refusal is taken for an accident.
fn kind_without_status(labels: &[&str]) -> FailureKind {
    let refused = [
        "invalid_request_error",
        "not_found_error",
        "request_too_large",
        "invalid_prompt",
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "FAILED_PRECONDITION",
    ];
    let refuses = |label: &&str| {
        refused.contains(label) || label.contains("policy") || label.contains("image")
    };
    if labels.iter().any(refuses) {
        FailureKind::Refused
    } else {
        FailureKind::Transient
    }
}

/// Google's `RetryInfo`: `"retryDelay": "34.07s"`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (0.0..=LONGEST_PAUSE_SECONDS)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn kind(status: u16, body: Value) -> FailureKind {
        from_status(status, body.to_string().as_bytes()).kind
    }

    #[test]
    fn what_providers_send_is_told_apart() {
        use FailureKind::{Auth, Overloaded, RateLimit, Refused, Transient};
        let anthropic =
            |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "no"}});
        assert_eq!(kind(401, anthropic("authentication_error")), Auth);
        assert_eq!(kind(403, anthropic("permission_error")), Auth);
        assert_eq!(kind(404, anthropic("not_found_error")), Refused);
        assert_eq!(kind(413, anthropic("request_too_large")), Refused);
        assert_eq!(kind(429, anthropic("rate_limit_error")), RateLimit);
        assert_eq!(kind(500, anthropic("api_error")), Transient);
        assert_eq!(kind(529, anthropic("overloaded_error")), Overloaded);
        let poor = json!({"error": {"type": "invalid_request_error", "message": "Your credit balance is too low to …"}});
        assert_eq!(kind(400, poor), Auth);

        let openai = |kind: &str, code: Value| json!({"error": {"message": "no", "type": kind, "param": null, "code": code}});
        assert_eq!(
            kind(
                401,
                openai("invalid_request_error", json!("invalid_api_key"))
            ),
            Auth
        );
        assert_eq!(
            kind(
                429,
                openai("insufficient_quota", json!("insufficient_quota"))
            ),
            Auth
        );
        assert_eq!(
            kind(429, openai("requests", json!("rate_limit_exceeded"))),
            RateLimit
        );
        assert_eq!(
            kind(
                400,
                openai("invalid_request_error", json!("context_length_exceeded"))
            ),
            Refused
        );
        assert_eq!(
            kind(
                404,
                openai("invalid_request_error", json!("model_not_found"))
            ),
            Refused
        );
        assert_eq!(kind(503, openai("server_error", Value::Null)), Overloaded);
        assert_eq!(kind(502, json!("bad gateway")), Transient);

        let google = |code: u16, status: &str, details: Value| json!({"error": {"code": code, "message": "no", "status": status, "details": details}});
        assert_eq!(
            kind(400, google(400, "INVALID_ARGUMENT", json!([]))),
            Refused
        );
        assert_eq!(
            kind(
                400,
                google(
                    400,
                    "INVALID_ARGUMENT",
                    json!([{"reason": "API_KEY_INVALID"}])
                )
            ),
            Auth
        );
        assert_eq!(kind(403, google(403, "PERMISSION_DENIED", json!([]))), Auth);
        assert_eq!(kind(503, google(503, "UNAVAILABLE", json!([]))), Overloaded);
        assert_eq!(
            kind(429, json!([google(429, "RESOURCE_EXHAUSTED", json!([]))])),
            RateLimit
        );
    }

    #[test]
    fn googles_delay_is_read_and_a_silly_one_is_not() {
        let body = |delay: &str| {
            json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down", "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]}})
        };
        let delay = |text: &str| from_body(Some(429), &body(text)).retry_after;
        assert_eq!(delay("34.5s"), Some(Duration::from_millis(34_500)));
        assert_eq!(delay("0s"), Some(Duration::ZERO));
        for silly in ["-1s", "1e300s", "NaNs", "infs", "soon", "5", ""] {
            assert_eq!(delay(silly), None, "{silly}");
        }
    }

    #[test]
    fn the_words_are_the_providers_cut_and_harmless() {
        assert_eq!(
            from_status(400, br#"{"error": {"message": "bad schema"}}"#).message,
            "bad schema"
        );
        assert_eq!(
            from_status(500, br#"{"error": "model crashed"}"#).message,
            "model crashed"
        );
        assert_eq!(
            from_status(422, br#"{"detail": "Field required"}"#).message,
            "Field required"
        );
        assert_eq!(
            from_status(422, br#"{"detail": [{"msg": "x"}]}"#).message,
            r#"{"detail":[{"msg":"x"}]}"#
        );
        assert_eq!(
            from_status(502, b"<html>\x1b[31mBad Gateway").message,
            "<html>\\u{1b}[31mBad Gateway"
        );
        assert_eq!(from_status(500, b"").message, "no explanation");
        assert!(
            from_status(500, "ä".repeat(100_000).as_bytes())
                .message
                .chars()
                .count()
                <= MOST_WORDS
        );
    }

    #[test]
    fn an_error_inside_an_answer_counts_and_an_empty_one_does_not() {
        assert_eq!(inside(&json!({"choices": []})), None);
        assert_eq!(inside(&json!({"error": null, "choices": []})), None);
        assert_eq!(inside(&json!({"error": {}, "choices": []})), None);
        let failure = inside(&json!({"error": {"code": 429, "message": "busy"}})).unwrap();
        assert_eq!(
            (failure.kind, failure.message.as_str()),
            (FailureKind::RateLimit, "busy")
        );
        let kind = |label: &str| {
            inside(&json!({"error": {"type": label, "message": "x"}}))
                .unwrap()
                .kind
        };
        assert_eq!(kind("overloaded_error"), FailureKind::Overloaded);
        assert_eq!(kind("invalid_request_error"), FailureKind::Refused);
        assert_eq!(kind("api_error"), FailureKind::Transient);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_failure_of_bounded_length(status in 300u16..600, body in prop::collection::vec(any::<u8>(), 0..300)) {
            let failure = from_status(status, &body);
            // An escape is at most ten characters for one.
            prop_assert!(failure.message.chars().count() <= 10 * MOST_WORDS);
            prop_assert!(!failure.message.contains('\n'));
        }
    }
}
