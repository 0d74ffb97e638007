//! Tokens, and the responses that carry them.

use std::fmt;
use std::time::{Duration, SystemTime};

use oauth2::basic::BasicTokenType;
use oauth2::{AccessToken, RefreshToken, Scope};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::challenge::split_scopes;

/// The longest time before the end of a token at which it is replaced.
const MAX_MARGIN: Duration = Duration::from_secs(30);

/// A token is replaced at this part of its life before its end.
const MARGIN_PART: u32 = 10;

/// The longest life that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Tokens of one grant.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: Option<String>,
    pub(crate) expires_at: Option<SystemTime>,
    /// The time before its end at which it is replaced.
    pub(crate) margin: Duration,
    /// The scopes that were requested.
    pub(crate) requested: Vec<String>,
    /// The scopes that were granted, if the answer states them.
    pub(crate) granted: Option<Vec<String>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("expires_at", &self.expires_at)
            .field("can_refresh", &self.refresh.is_some())
            .field("requested", &self.requested)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// The tokens of a response that arrived now.
    pub(crate) fn of(response: TokenResponse, requested: Vec<String>, now: SystemTime) -> Self {
        let lifetime = response.expires_in.map(|seconds| {
            let lifetime = Duration::from_secs(seconds);
            lifetime.min(MAX_LIFETIME)
        });
        Self {
            access: response.access_token.into_secret(),
            refresh: response.refresh_token.map(RefreshToken::into_secret),
            expires_at: lifetime.map(|lifetime| now + lifetime),
            margin: margin(lifetime),
            granted: response
                .scopes
                .map(|scopes| scopes.into_iter().map(|scope| scope.to_string()).collect()),
            requested,
        }
    }

    /// Returns true if the access token should be replaced before the next request.
    pub(crate) fn is_due(&self, now: SystemTime) -> bool {
        self.expires_at.is_some_and(|end| now + self.margin >= end)
    }

    /// Returns true if the access token is past its end.
    pub(crate) fn is_over(&self, now: SystemTime) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }
}

/// The time before its end at which a token is replaced.
pub(crate) fn margin(lifetime: Option<Duration>) -> Duration {
    lifetime.map_or(MAX_MARGIN, |lifetime| {
        (lifetime / MARGIN_PART).min(MAX_MARGIN)
    })
}

/// A response of a token endpoint. It is read leniently: some servers write the life of a token as
/// a string, and the scopes as a list.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TokenResponse {
    access_token: AccessToken,
    token_type: BasicTokenType,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
    #[serde(default)]
    refresh_token: Option<RefreshToken>,
    #[serde(default, rename = "scope", deserialize_with = "scopes")]
    scopes: Option<Vec<Scope>>,
}

impl oauth2::TokenResponse for TokenResponse {
    type TokenType = BasicTokenType;

    fn access_token(&self) -> &AccessToken {
        &self.access_token
    }

    fn token_type(&self) -> &BasicTokenType {
        &self.token_type
    }

    fn expires_in(&self) -> Option<Duration> {
        self.expires_in.map(Duration::from_secs)
    }

    fn refresh_token(&self) -> Option<&RefreshToken> {
        self.refresh_token.as_ref()
    }

    fn scopes(&self) -> Option<&Vec<Scope>> {
        self.scopes.as_ref()
    }
}

impl TokenResponse {
    /// The reason why the token cannot be used, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        let token = self.access_token.secret();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Some("its `access_token` has characters that a header cannot carry".to_owned());
        }
        let kind = self.token_type.as_ref();
        (!kind.eq_ignore_ascii_case("bearer"))
            .then(|| format!("its `token_type` is `{kind}`; only bearer tokens are supported"))
    }
}

/// Seconds as a number or a string; anything else is unknown.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => number
            .as_u64()
            // A fraction is rounded down; nothing is negative.
            .or_else(|| number.as_f64().map(|seconds| seconds.max(0.0) as u64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// Scopes as a string or a list; anything else is unknown.
fn scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Scope>>, D::Error> {
    let list = match Value::deserialize(deserializer)? {
        Value::String(text) => split_scopes(&text),
        Value::Array(items) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => return Ok(None),
    };
    Ok(Some(list.into_iter().map(Scope::new).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(response: Value) -> Tokens {
        let response: TokenResponse = serde_json::from_value(response).unwrap();
        Tokens::of(response, Vec::new(), SystemTime::UNIX_EPOCH)
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_token_is_replaced_shortly_before_its_end() {
        let hour = tokens(json!({"access_token": "a", "token_type": "Bearer", "expires_in": 3600}));
        assert!(!hour.is_due(at(3569)) && hour.is_due(at(3570)));
        assert!(!hour.is_over(at(3599)) && hour.is_over(at(3600)));
        let short = tokens(json!({"access_token": "a", "token_type": "bearer", "expires_in": 10}));
        assert!(!short.is_due(at(8)) && short.is_due(at(9)));
        let endless = tokens(json!({"access_token": "a", "token_type": "Bearer"}));
        assert!(!endless.is_due(at(u32::MAX.into())));
    }

    #[test]
    fn unusual_forms_are_read() {
        for (written, seconds) in [
            (json!("60"), Some(60)),
            (json!(60.9), Some(60)),
            (json!(-1), Some(0)),
            (json!(null), None),
            (json!("soon"), None),
            (json!(u64::MAX), Some(MAX_LIFETIME.as_secs())),
        ] {
            let found =
                tokens(json!({"access_token": "a", "token_type": "Bearer", "expires_in": written}));
            let expected = seconds.map(at);
            assert_eq!(found.expires_at, expected, "{written}");
        }
        let found =
            tokens(json!({"access_token": "a", "token_type": "Bearer", "scope": ["x", "y"]}));
        assert_eq!(found.granted.unwrap(), ["x", "y"]);
        let found = tokens(json!({"access_token": "a", "token_type": "Bearer", "scope": "x y"}));
        assert_eq!(found.granted.unwrap(), ["x", "y"]);
    }

    #[test]
    fn tokens_of_another_type_are_rejected() {
        let response = |value: Value| serde_json::from_value::<TokenResponse>(value).unwrap();
        let problem = response(json!({"access_token": "a", "token_type": "DPoP"})).problem();
        assert!(problem.unwrap().contains("`token_type` is `DPoP`"));
        let problem = response(json!({"access_token": "a b", "token_type": "Bearer"})).problem();
        assert!(problem.unwrap().contains("cannot carry"));
        let fine = response(json!({"access_token": "a.b-c", "token_type": "BEARER"}));
        assert_eq!(fine.problem(), None);
    }
}
