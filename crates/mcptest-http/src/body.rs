//! Reading what a response holds, up to a bound.

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use hyper::{Response, StatusCode};

use crate::text::quote;

/// Bytes read of a response that is no answer, to show its beginning.
const EXCERPT_BYTES: usize = 16 * 1024;

/// Why a body was not read to its end.
#[derive(Debug)]
pub enum Unread {
    /// It broke off.
    BrokeOff {
        /// What came before.
        read: Vec<u8>,
        /// What happened.
        error: hyper::Error,
    },
    /// It is longer than allowed.
    TooLong {
        /// The part that is within the bound.
        read: Vec<u8>,
    },
}

/// The whole body.
///
/// # Errors
/// It broke off, or is longer than `most` bytes.
pub async fn whole<B: Body<Data = Bytes, Error = hyper::Error> + Unpin>(
    body: &mut B,
    most: usize,
) -> Result<Vec<u8>, Unread> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Err(Unread::BrokeOff { read, error }),
        };
        if let Some(data) = frame.data_ref() {
            if read.len() + data.len() > most {
                return Err(Unread::TooLong { read });
            }
            read.extend_from_slice(data);
        }
    }
    Ok(read)
}

/// The beginning of a body; what is wrong with the rest does not matter.
pub async fn excerpt<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Vec<u8> {
    let mut start = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Some(data) = frame.data_ref() {
            start.extend_from_slice(&data[..data.len().min(EXCERPT_BYTES - start.len())]);
        }
        if start.len() == EXCERPT_BYTES {
            break;
        }
    }
    start
}

/// The content type without its parameters; words for a body that is packed in a way we did not ask
/// for.
pub fn content_type<B>(response: &Response<B>) -> Option<String> {
    if let Some(encoding) = response.headers().get(CONTENT_ENCODING)
        && encoding.as_bytes() != b"identity"
    {
        let encoding = String::from_utf8_lossy(encoding.as_bytes());
        return Some(format!("(packed as {encoding}, though nobody asked)"));
    }
    let value = response.headers().get(CONTENT_TYPE)?;
    let text = String::from_utf8_lossy(value.as_bytes());
    let kind = text.split(';').next().unwrap_or_default();
    Some(kind.trim().to_ascii_lowercase())
}

/// A status for people.
#[must_use]
pub fn show(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("HTTP {} {reason}", status.as_u16()),
        None => format!("HTTP {}", status.as_u16()),
    }
}

/// The whole chain: the outermost error alone says little.
#[must_use]
pub fn explain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    quote(&text, 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_body_is_no_json() {
        let response = |headers: &[(&str, &str)]| {
            let mut builder = Response::builder();
            for (name, value) in headers {
                builder = builder.header(*name, *value);
            }
            content_type(&builder.body(()).unwrap())
        };
        assert_eq!(response(&[]), None);
        assert_eq!(
            response(&[("content-type", "Application/JSON; charset=utf-8")]).as_deref(),
            Some("application/json")
        );
        let packed = response(&[
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
        ]);
        assert!(packed.is_some_and(|words| words.contains("packed as gzip")));
    }
}
