//! Addresses that requests are sent to, and the headers sent with each request.

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::text::quote;

/// An address that a request can be sent to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Address {
    /// True for `https`.
    pub tls: bool,
    /// The host, without brackets around an IPv6 address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Host and port as the `Host` header has them.
    pub authority: HeaderValue,
    /// Path and query, beginning with `/`.
    pub path: String,
}

/// A URL that requests cannot be sent to. Its query is never shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The string cannot be parsed as a URL.
    #[error("`{url}` is not a valid URL ({reason}); write it as http://host:port/path")]
    Invalid {
        /// The URL as messages may show it.
        url: String,
        /// The parser's explanation.
        reason: String,
    },
    /// The URL has no scheme or no host.
    #[error("`{0}` must begin with http:// or https://")]
    NotAbsolute(String),
    /// The scheme is neither `http` nor `https`.
    #[error("the scheme `{0}` is not supported; use http or https")]
    UnsupportedScheme(String),
    /// The URL contains credentials.
    #[error("a user name in the URL is not sent; write an Authorization header")]
    UserInfo,
    /// The port is not a number from 0 to 65535.
    #[error("`{0}` has an invalid port; ports are from 0 to 65535")]
    InvalidPort(String),
}

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    /// The URL is invalid or not supported.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let shown = quote(&without_query(url), 200);
        let invalid = |reason: String| AddressError::Invalid {
            url: shown.clone(),
            reason,
        };
        let uri: Uri = url
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| invalid(error.to_string()))?;
        let (Some(scheme), Some(authority), Some(host)) =
            (uri.scheme_str(), uri.authority(), uri.host())
        else {
            return Err(AddressError::NotAbsolute(shown));
        };
        let tls = match scheme {
            "http" => false,
            "https" => true,
            other => return Err(AddressError::UnsupportedScheme(quote(other, 40))),
        };
        if authority.as_str().contains('@') {
            return Err(AddressError::UserInfo);
        }
        let after_host = authority.as_str().strip_prefix(host).unwrap_or_default();
        if uri.port_u16().is_none() && !matches!(after_host, "" | ":") {
            return Err(AddressError::InvalidPort(shown));
        }
        Ok(Self {
            tls,
            host: host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port: uri.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            authority: HeaderValue::from_str(authority.as_str())
                .map_err(|error| invalid(error.to_string()))?,
            path: uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned(),
        })
    }
}

/// A header that cannot be sent. Its value is never shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The name has characters that a header name cannot have.
    #[error("`{0}` is not a valid header name")]
    Name(String),
    /// The value has characters that a header cannot carry.
    #[error("the value of the header `{0}` has characters that a header cannot carry")]
    Value(String),
}

/// Builds a header map. Its values do not appear in debug output.
///
/// # Errors
/// A header that cannot be sent.
pub fn header_map<N: AsRef<str>, V: AsRef<str>>(
    headers: impl IntoIterator<Item = (N, V)>,
) -> Result<HeaderMap, HeaderError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let shown = || quote(name.as_ref(), 80);
        let key = HeaderName::from_bytes(name.as_ref().as_bytes())
            .map_err(|_| HeaderError::Name(shown()))?;
        let mut value =
            HeaderValue::from_str(value.as_ref()).map_err(|_| HeaderError::Value(shown()))?;
        value.set_sensitive(true);
        map.append(key, value);
    }
    Ok(map)
}

/// A URL with its query replaced by `…`, because queries sometimes carry keys.
#[must_use]
pub fn without_query(url: &str) -> String {
    match url.split_once('?') {
        Some((before, _)) => format!("{before}?…"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_hosts_and_paths() {
        let address = Address::parse("https://[::1]/v1?x=1").unwrap();
        assert!(address.tls);
        assert_eq!((address.host.as_str(), address.port), ("::1", 443));
        assert_eq!(
            (address.authority.as_bytes(), address.path.as_str()),
            (&b"[::1]"[..], "/v1?x=1")
        );
        let address = Address::parse("http://localhost:8080").unwrap();
        assert_eq!((address.port, address.path.as_str()), (8080, "/"));
        assert_eq!(Address::parse("http://localhost:/").unwrap().port, 80);
    }

    #[test]
    fn an_invalid_url_is_reported_without_its_query() {
        for (url, part) in [
            ("", "is not a valid URL"),
            ("localhost", "must begin with"),
            ("ftp://x/", "the scheme `ftp`"),
            ("http://me:secret@x/", "a user name"),
            ("/v1?key=s3cret", "must begin with"),
            ("http://x:99999/?key=s3cret", "has an invalid port"),
            ("http://[::1]:70000/", "has an invalid port"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(
                error.contains(part) && !error.contains("s3cret"),
                "{url}: {error}"
            );
        }
    }

    #[test]
    fn an_invalid_header_is_named_without_its_value() {
        let error = header_map([("x-key", "s3cret\n")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the value of the header `x-key` has characters that a header cannot carry"
        );
        let error = header_map([("no good", "v")]).unwrap_err();
        assert_eq!(error, HeaderError::Name("no good".to_owned()));
        let map = header_map([("x-key", "s3cret")]).unwrap();
        assert!(!format!("{map:?}").contains("s3cret"));
    }
}
