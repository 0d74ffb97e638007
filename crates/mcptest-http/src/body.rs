//! Bounded reading of response bodies, and messages about responses.

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use hyper::{Response, StatusCode};

use crate::text::quote;

/// Bytes read of an unusable response, to show its beginning.
const EXCERPT_BYTES: usize = 16 * 1024;

/// A body that could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection failed in the middle of the body.
    #[error("the body was interrupted after {} bytes: {error}", read.len())]
    Interrupted {
        /// The bytes received before.
        read: Vec<u8>,
        /// The cause.
        #[source]
        error: hyper::Error,
    },
    /// The body is longer than allowed.
    #[error("the body is longer than the limit; {} bytes were read", read.len())]
    TooLong {
        /// The bytes within the limit.
        read: Vec<u8>,
    },
}

/// Reads the whole body.
///
/// # Errors
/// The body was interrupted, or is longer than `max_bytes`.
pub async fn read_all<B: Body<Data = Bytes, Error = hyper::Error> + Unpin>(
    body: &mut B,
    max_bytes: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Err(BodyError::Interrupted { read, error }),
        };
        if let Some(data) = frame.data_ref() {
            if read.len() + data.len() > max_bytes {
                return Err(BodyError::TooLong { read });
            }
            read.extend_from_slice(data);
        }
    }
    Ok(read)
}

/// Reads the beginning of a body; errors after that are ignored.
pub async fn read_excerpt<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Vec<u8> {
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

/// The content type without its parameters, or a description of a compression that we did not
/// request.
pub fn content_type<B>(response: &Response<B>) -> Option<String> {
    if let Some(encoding) = response.headers().get(CONTENT_ENCODING)
        && encoding.as_bytes() != b"identity"
    {
        let encoding = String::from_utf8_lossy(encoding.as_bytes());
        return Some(format!(
            "(compressed with {encoding}, which was not requested)"
        ));
    }
    let value = response.headers().get(CONTENT_TYPE)?;
    let value = String::from_utf8_lossy(value.as_bytes());
    let essence = value.split(';').next().unwrap_or_default();
    Some(essence.trim().to_ascii_lowercase())
}

/// A status as messages show it: `HTTP 404 Not Found`.
#[must_use]
pub fn describe_status(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("HTTP {} {reason}", status.as_u16()),
        None => format!("HTTP {}", status.as_u16()),
    }
}

/// An error with all its causes: the outermost error alone rarely explains anything.
#[must_use]
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        message = format!("{message}: {inner}");
        source = inner.source();
    }
    quote(&message, 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_body_is_not_json() {
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
        let compressed = response(&[
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
        ]);
        assert!(compressed.is_some_and(|kind| kind.contains("compressed with gzip")));
    }
}
