//! Credentials that are obtained and replaced while requests are made.
//!
//! A request is sent with the current credential. If the server refuses it (401, or 403 for a
//! missing permission), the source of credentials is asked for another one, and the request is sent
//! again: a server that refuses a request has not processed it.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::header::{HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

/// The number of times that one request is sent again after a refusal.
const MAX_REPEATS: usize = 4;

/// A future of a source of credentials.
pub type CredentialFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, CredentialError>> + Send + 'a>>;

/// The reason why there is no credential, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CredentialError(pub String);

/// The value of the `Authorization` header of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    header: HeaderValue,
    serial: u64,
}

impl Credential {
    /// A bearer token; `None` if it has characters that a header cannot carry. The number
    /// distinguishes the credentials of one source apart.
    #[must_use]
    pub fn bearer(token: &str, serial: u64) -> Option<Self> {
        let mut header = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        header.set_sensitive(true);
        Some(Self { header, serial })
    }

    /// The value of the header.
    #[must_use]
    pub fn header(&self) -> &HeaderValue {
        &self.header
    }

    /// Its number among the credentials of its source.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("serial", &self.serial)
            .finish_non_exhaustive()
    }
}

/// A response that refuses a request because of its credential.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Refusal {
    /// 401 or 403.
    pub status: StatusCode,
    /// The values of `WWW-Authenticate`.
    pub challenges: Vec<String>,
    /// The number of the credential that was sent.
    pub serial: Option<u64>,
}

impl Refusal {
    /// The refusal in a response, if it is one.
    #[must_use]
    pub fn of<B>(response: &Response<B>, used: Option<&Credential>) -> Option<Self> {
        let status = response.status();
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return None;
        }
        let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
        Some(Self {
            status,
            challenges: challenges
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect(),
            serial: used.map(Credential::serial),
        })
    }
}

/// A source of credentials for the requests to one server.
pub trait Credentials: Send + Sync + fmt::Debug {
    /// The credential for the next request; `None` if the server has not asked for one yet.
    fn current(&self) -> CredentialFuture<'_, Option<Credential>>;

    /// Another credential, after a request was refused; `None` if no credential would help.
    fn replace(&self, refusal: Refusal) -> CredentialFuture<'_, Option<Credential>>;

    /// Reports that a request with this credential was not refused.
    fn accepted(&self, credential: &Credential);

    /// Values that no message may show.
    fn secrets(&self) -> Vec<String>;
}

/// The attempts to send one request: with the current credential, and again with another one if it
/// is refused.
///
/// `waiting` is called with true before the source is asked, and with false afterwards: obtaining a
/// credential is not the time of the request.
#[derive(Debug)]
pub struct Attempts<'a> {
    credentials: Option<&'a dyn Credentials>,
    credential: Option<Credential>,
    repeats: usize,
}

impl<'a> Attempts<'a> {
    /// Begins with the current credential; without a source, there is only one attempt.
    ///
    /// # Errors
    /// No credential could be obtained.
    pub async fn begin(
        credentials: Option<&'a dyn Credentials>,
        waiting: &impl Fn(bool),
    ) -> Result<Self, CredentialError> {
        let credential = match credentials {
            Some(credentials) => wait_for(credentials.current(), waiting).await?,
            None => None,
        };
        Ok(Self {
            credentials,
            credential,
            repeats: 0,
        })
    }

    /// The credential of the next attempt.
    #[must_use]
    pub fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// The refusal in a response to the last attempt.
    #[must_use]
    pub fn refusal<B>(&self, response: &Response<B>) -> Option<Refusal> {
        self.credentials?;
        Refusal::of(response, self.credential())
    }

    /// Returns true if the request is to be sent again, with another credential.
    ///
    /// # Errors
    /// No other credential could be obtained.
    pub async fn repeat(
        &mut self,
        refusal: Option<Refusal>,
        waiting: &impl Fn(bool),
    ) -> Result<bool, CredentialError> {
        let Some(credentials) = self.credentials else {
            return Ok(false);
        };
        let Some(refusal) = refusal else {
            if let Some(credential) = &self.credential {
                credentials.accepted(credential);
            }
            return Ok(false);
        };
        if self.repeats == MAX_REPEATS {
            return Ok(false);
        }
        self.repeats += 1;
        match wait_for(credentials.replace(refusal), waiting).await? {
            Some(other) => {
                self.credential = Some(other);
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

async fn wait_for<T>(
    future: CredentialFuture<'_, T>,
    waiting: &impl Fn(bool),
) -> Result<T, CredentialError> {
    waiting(true);
    let result = future.await;
    waiting(false);
    result
}

/// The time in which credentials were obtained, by whichever request.
#[derive(Debug, Default)]
pub struct WaitClock(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    now: usize,
    since: Option<Instant>,
    total: Duration,
}

impl WaitClock {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins or ends the wait of one request.
    pub fn set(&self, waits: bool) {
        let mut state = self.waits();
        if waits {
            state.now += 1;
            state.since.get_or_insert_with(Instant::now);
            return;
        }
        state.now = state.now.saturating_sub(1);
        if state.now == 0
            && let Some(since) = state.since.take()
        {
            state.total += since.elapsed();
        }
    }

    /// The time so far, and whether a request waits now.
    #[must_use]
    pub fn read(&self) -> (Duration, bool) {
        let state = self.waits();
        let current = state.since.map_or(Duration::ZERO, |since| since.elapsed());
        (state.total + current, state.since.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_appear_in_debug_output() {
        let credential = Credential::bearer("s3cret-token", 7).unwrap();
        assert_eq!(credential.header().as_bytes(), b"Bearer s3cret-token");
        assert!(!format!("{credential:?}").contains("s3cret"));
        assert!(Credential::bearer("a\nb", 1).is_none());
    }

    #[test]
    fn waits_at_the_same_time_count_once() {
        let clock = WaitClock::default();
        assert_eq!(clock.read(), (Duration::ZERO, false));
        clock.set(true);
        clock.set(true);
        clock.set(false);
        assert!(clock.read().1);
        clock.set(false);
        let (total, waits) = clock.read();
        assert!(!waits);
        assert_eq!(clock.read().0, total);
    }

    #[test]
    fn only_401_and_403_are_refusals() {
        let response = |status: u16| {
            Response::builder()
                .status(status)
                .header("www-authenticate", "Bearer a=\"b\"")
                .header("www-authenticate", "Basic")
                .body(())
                .unwrap()
        };
        let used = Credential::bearer("t", 3);
        let refusal = Refusal::of(&response(401), used.as_ref()).unwrap();
        assert_eq!(refusal.challenges, ["Bearer a=\"b\"", "Basic"]);
        assert_eq!(refusal.serial, Some(3));
        assert!(Refusal::of(&response(403), None).is_some());
        assert!(Refusal::of(&response(404), None).is_none());
    }
}
