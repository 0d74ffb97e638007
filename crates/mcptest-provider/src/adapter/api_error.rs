//! The errors of all providers. Gateways mix the formats, so one parser reads all of them.

use std::time::Duration;

use mcptest_json::text;
use serde_json::Value;

/// An error of a provider: the reason why there is no turn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The kind of error.
    pub kind: ApiErrorKind,
    /// The provider's message, truncated.
    pub message: String,
    /// The wait that the provider requests, if any.
    pub retry_after: Option<std::time::Duration>,
}

/// The kinds of errors. The first three are retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiErrorKind {
    /// Too many requests, or an exhausted quota that is reset.
    RateLimit,
    /// The provider is overloaded (529, 503, `overloaded_error`, `UNAVAILABLE`).
    Overloaded,
    /// The provider or the network failed: a 5xx, a lost connection, a truncated stream.
    Transient,
    /// The key is missing, wrong or not permitted, or the account has no credit.
    Auth,
    /// The request was rejected: unknown model, invalid schema, too long.
    Refused,
    /// The answer does not follow the provider's API.
    Malformed,
}

/// The most characters of a provider's message that are kept.
const MAX_MESSAGE: usize = 400;

/// The longest wait that is believed, in seconds.
const MAX_DELAY_SECONDS: f64 = 24.0 * 3600.0;

impl ApiError {
    /// Creates an error. The message may come from anywhere: it is truncated and escaped.
    #[must_use]
    pub fn new(kind: ApiErrorKind, message: impl AsRef<str>) -> Self {
        Self {
            kind,
            message: text::one_line(&text::shorten(message.as_ref().trim(), MAX_MESSAGE)),
            retry_after: None,
        }
    }

    pub(super) fn malformed(message: impl AsRef<str>) -> Self {
        Self::new(ApiErrorKind::Malformed, message)
    }

    /// An answer that the provider aborted; a retry may succeed.
    pub(super) fn aborted(key: &str, reason: &str) -> Self {
        Self::new(
            ApiErrorKind::Transient,
            format!("the provider aborted the answer ({key} `{reason}`)"),
        )
    }

    /// A stream that ended too early; a retry may succeed.
    pub(super) fn truncated(missing: &str) -> Self {
        Self::new(
            ApiErrorKind::Transient,
            format!("the stream ended before {missing}"),
        )
    }
}

/// Returns the error of an answer with an error status.
pub(super) fn from_status(status: u16, body: &[u8]) -> ApiError {
    match serde_json::from_slice::<Value>(body) {
        Ok(body) => from_body(Some(status), &body),
        Err(_) => {
            let text = String::from_utf8_lossy(&body[..body.len().min(4 * MAX_MESSAGE)]);
            let message = if text.trim().is_empty() {
                "no explanation"
            } else {
                &text
            };
            ApiError::new(kind_of_status(status), message)
        }
    }
}

/// Returns the error under `error` in a successful answer or an event of a stream.
pub(super) fn inside(answer: &Value) -> Option<ApiError> {
    let error = answer.get("error").filter(|error| !error.is_null())?;
    // Some gateways add an empty error object to a successful answer.
    let is_error = !error.as_object().is_some_and(serde_json::Map::is_empty);
    is_error.then(|| from_body(None, answer))
}

/// Reads `{"error": {…}}`, `{"error": "…"}`, `[{"error": …}]`, `{"message": …}` and `{"detail":
/// …}`.
pub(super) fn from_body(status: Option<u16>, body: &Value) -> ApiError {
    let body = body.get(0).unwrap_or(body);
    let error = body
        .get("error")
        .filter(|error| !error.is_null())
        .unwrap_or(body);
    // A number in `code` is an HTTP status (Gemini, OpenRouter).
    let in_body = error
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok());
    let status = status.or(in_body.filter(|status| (400..600).contains(status)));
    let message = message(error, body);
    let kind = kind_of_labels(&labels(error), &message).unwrap_or_else(|| match status {
        Some(status) => kind_of_status(status),
        None => kind_without_status(&labels(error)),
    });
    ApiError {
        retry_after: retry_delay(error),
        ..ApiError::new(kind, message)
    }
}

fn message(error: &Value, body: &Value) -> String {
    let candidates = [
        Some(error),
        error.get("message"),
        error.get("detail"),
        body.get("message"),
        body.get("detail"),
    ];
    let text = candidates
        .into_iter()
        .flatten()
        .find_map(Value::as_str)
        .filter(|text| !text.trim().is_empty());
    text.map_or_else(|| error.to_string(), str::to_owned)
}

/// Returns the provider's names for the kind of error: `type`, `code`, `status`, and Google's
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

/// Returns the kind where the status alone is missing or misleading.
fn kind_of_labels(labels: &[&str], message: &str) -> Option<ApiErrorKind> {
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
    if any(&no_credit) || any(&no_access) || message.contains("credit balance is too low") {
        return Some(ApiErrorKind::Auth);
    }
    if any(&["overloaded_error", "UNAVAILABLE"]) {
        return Some(ApiErrorKind::Overloaded);
    }
    any(&[
        "rate_limit_error",
        "rate_limit_exceeded",
        "RESOURCE_EXHAUSTED",
    ])
    .then_some(ApiErrorKind::RateLimit)
}

fn kind_of_status(status: u16) -> ApiErrorKind {
    match status {
        401..=403 => ApiErrorKind::Auth,
        // Timeouts, conflicts and early requests may succeed next time.
        408 | 409 | 425 => ApiErrorKind::Transient,
        429 => ApiErrorKind::RateLimit,
        503 | 529 => ApiErrorKind::Overloaded,
        500.. => ApiErrorKind::Transient,
        _ => ApiErrorKind::Refused,
    }
}

/// Returns the kind of an error in a stream, which has no status. An unknown label is transient.
fn kind_without_status(labels: &[&str]) -> ApiErrorKind {
    let refused = [
        "invalid_request_error",
        "not_found_error",
        "request_too_large",
        "invalid_prompt",
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "FAILED_PRECONDITION",
    ];
    let is_refusal = |label: &&str| {
        refused.contains(label) || label.contains("policy") || label.contains("image")
    };
    if labels.iter().any(is_refusal) {
        ApiErrorKind::Refused
    } else {
        ApiErrorKind::Transient
    }
}

/// Google's `RetryInfo`: `"retryDelay": "34.07s"`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (0.0..=MAX_DELAY_SECONDS)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn kind(status: u16, body: Value) -> ApiErrorKind {
        from_status(status, body.to_string().as_bytes()).kind
    }

    #[test]
    fn errors_of_all_providers_are_classified() {
        use ApiErrorKind::{Auth, Overloaded, RateLimit, Refused, Transient};
        let anthropic =
            |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "no"}});
        assert_eq!(kind(401, anthropic("authentication_error")), Auth);
        assert_eq!(kind(403, anthropic("permission_error")), Auth);
        assert_eq!(kind(404, anthropic("not_found_error")), Refused);
        assert_eq!(kind(413, anthropic("request_too_large")), Refused);
        assert_eq!(kind(429, anthropic("rate_limit_error")), RateLimit);
        assert_eq!(kind(500, anthropic("api_error")), Transient);
        assert_eq!(kind(529, anthropic("overloaded_error")), Overloaded);
        let no_credit = json!({
            "error": {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to …",
            },
        });
        assert_eq!(kind(400, no_credit), Auth);

        let openai = |kind: &str, code: Value| {
            json!({
                "error": {"message": "no", "type": kind, "param": null, "code": code},
            })
        };
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

        let google = |code: u16, status: &str, details: Value| {
            json!({
                "error": {"code": code, "message": "no", "status": status, "details": details},
            })
        };
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
    fn googles_delay_is_read_unless_it_is_invalid() {
        let body = |delay: &str| {
            let info = "type.googleapis.com/google.rpc.RetryInfo";
            let details = json!([
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
                {"@type": info, "retryDelay": delay},
            ]);
            json!({"error": {
                "code": 429,
                "status": "RESOURCE_EXHAUSTED",
                "message": "slow down",
                "details": details,
            }})
        };
        let delay = |text: &str| from_body(Some(429), &body(text)).retry_after;
        assert_eq!(delay("34.5s"), Some(Duration::from_millis(34_500)));
        assert_eq!(delay("0s"), Some(Duration::ZERO));
        for invalid in ["-1s", "1e300s", "NaNs", "infs", "soon", "5", ""] {
            assert_eq!(delay(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn the_message_is_the_providers_truncated_and_escaped() {
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
                <= MAX_MESSAGE
        );
    }

    #[test]
    fn an_empty_error_object_is_not_an_error() {
        assert_eq!(inside(&json!({"choices": []})), None);
        assert_eq!(inside(&json!({"error": null, "choices": []})), None);
        assert_eq!(inside(&json!({"error": {}, "choices": []})), None);
        let failure = inside(&json!({"error": {"code": 429, "message": "busy"}})).unwrap();
        assert_eq!(
            (failure.kind, failure.message.as_str()),
            (ApiErrorKind::RateLimit, "busy")
        );
        let kind = |label: &str| {
            inside(&json!({"error": {"type": label, "message": "x"}}))
                .unwrap()
                .kind
        };
        assert_eq!(kind("overloaded_error"), ApiErrorKind::Overloaded);
        assert_eq!(kind("invalid_request_error"), ApiErrorKind::Refused);
        assert_eq!(kind("api_error"), ApiErrorKind::Transient);
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_error_of_limited_length(
            status in 300u16..600,
            body in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let failure = from_status(status, &body);
            // Escaping turns one character into at most ten.
            prop_assert!(failure.message.chars().count() <= 10 * MAX_MESSAGE);
            prop_assert!(!failure.message.contains('\n'));
        }
    }
}
