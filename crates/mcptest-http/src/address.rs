//! Where requests go, and what is sent with each.

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::text::quote;

/// An address that a request can be sent to.
#[derive(Debug, Clone)]
pub struct Address {
    /// Whether it is `https`.
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

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it, in words; a query is not repeated in them.
    pub fn parse(url: &str) -> Result<Self, String> {
        let shown = quote(&without_query(url), 200);
        let uri: Uri = url.parse().map_err(|error| {
            format!("`{shown}` is no address ({error}); write it as http://host:port/path")
        })?;
        let (Some(scheme), Some(authority), Some(host)) =
            (uri.scheme_str(), uri.authority(), uri.host())
        else {
            return Err(format!("`{shown}` must begin with http:// or https://"));
        };
        let tls = match scheme {
            "http" => false,
            "https" => true,
            other => {
                let other = quote(other, 40);
                return Err(format!(
                    "`{other}` is no scheme that is spoken here; use http or https"
                ));
            }
        };
        if authority.as_str().contains('@') {
            return Err(
                "a user name in the address is not sent; write an Authorization header".to_owned(),
            );
        }
        let after_host = authority.as_str().strip_prefix(host).unwrap_or_default();
        if uri.port_u16().is_none() && !matches!(after_host, "" | ":") {
            return Err(format!(
                "`{shown}` has a port that is none; ports are from 0 to 65535"
            ));
        }
        Ok(Self {
            tls,
            host: host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port: uri.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            authority: HeaderValue::from_str(authority.as_str())
                .map_err(|error| error.to_string())?,
            path: uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned(),
        })
    }
}

/// Headers as they are sent. Their values appear in no debug output.
///
/// # Errors
/// Which of them cannot be sent.
pub fn header_map<N: AsRef<str>, V: AsRef<str>>(
    headers: impl IntoIterator<Item = (N, V)>,
) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let shown = quote(name.as_ref(), 80);
        let key = HeaderName::from_bytes(name.as_ref().as_bytes())
            .map_err(|_| format!("`{shown}` cannot be the name of a header"))?;
        let mut value = HeaderValue::from_str(value.as_ref()).map_err(|_| {
            format!("the value of the header `{shown}` has characters that no header can carry")
        })?;
        value.set_sensitive(true);
        map.append(key, value);
    }
    Ok(map)
}

/// Queries carry keys now and then.
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
    fn what_is_no_address_is_told_without_its_query() {
        for (url, words) in [
            ("", "is no address"),
            ("localhost", "must begin with"),
            ("ftp://x/", "`ftp` is no scheme"),
            ("http://me:secret@x/", "a user name"),
            ("/v1?key=s3cret", "must begin with"),
            ("http://x:99999/?key=s3cret", "has a port that is none"),
            ("http://[::1]:70000/", "has a port that is none"),
        ] {
            let error = Address::parse(url).unwrap_err();
            assert!(
                error.contains(words) && !error.contains("s3cret"),
                "{url}: {error}"
            );
        }
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_named_and_its_value_is_not() {
        let error = header_map([("x-key", "s3cret\n")]).unwrap_err();
        assert_eq!(
            error,
            "the value of the header `x-key` has characters that no header can carry"
        );
        assert!(
            header_map([("no good", "v")])
                .unwrap_err()
                .contains("`no good`")
        );
        let map = header_map([("x-key", "s3cret")]).unwrap();
        assert!(!format!("{map:?}").contains("s3cret"));
    }
}
