//! What the headers of a request must say: a host of this machine, and, from 2026-07-28 on, what the body says.

use hyper::header::HeaderMap;
use serde_json::Value;

use crate::content::is_base64;
use crate::jsonrpc::clip;

/// Whether a `Host` names this machine, with any port.
pub(crate) fn local_authority(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .any(|local| name.eq_ignore_ascii_case(local))
}

/// Whether an `Origin` is a page of this machine.
pub(crate) fn local_origin(origin: &str) -> bool {
    let authority = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(local_authority)
}

/// What disagrees between the headers and the body of a stateless request.
pub(crate) fn header_mismatch(
    headers: &HeaderMap,
    version: Option<&str>,
    in_body: Option<&Value>,
    message: &Value,
    parameters: impl Fn(&str) -> Vec<(String, String)>,
) -> Option<String> {
    let differs = |header: &str| Some(format!("Header mismatch: {header} is not what the body says"));
    let missing = |header: &str| Some(format!("Header mismatch: {header} is missing"));
    match (version, in_body) {
        (None, _) => return missing("MCP-Protocol-Version"),
        (Some(version), Some(body)) if body.as_str().is_some_and(|body| body != version) => {
            return differs("MCP-Protocol-Version");
        }
        _ => {}
    }
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    match text(headers, "mcp-method") {
        None => return missing("Mcp-Method"),
        Some(header) if header != method => return differs("Mcp-Method"),
        Some(_) => {}
    }
    let target = match method {
        "tools/call" | "prompts/get" => "/params/name",
        "resources/read" => "/params/uri",
        _ => return None,
    };
    let target = message.pointer(target).and_then(Value::as_str)?;
    match text(headers, "mcp-name") {
        None => return missing("Mcp-Name"),
        Some(header) if !says(&header, target) => {
            return Some(format!(
                "Header mismatch: Mcp-Name is not what the body says ({})",
                clip(target)
            ));
        }
        Some(_) => {}
    }
    if method != "tools/call" {
        return None;
    }
    parameters(target).into_iter().find_map(|(argument, suffix)| {
        let name = format!("Mcp-Param-{suffix}");
        let value = match message.pointer("/params/arguments")?.get(&argument) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        };
        match (text(headers, &name), value) {
            (None, Some(_)) => missing(&name),
            (Some(header), Some(value)) if says(&header, &value) => None,
            (Some(_), _) => differs(&name),
            (None, None) => None,
        }
    })
}

/// Whether a header has this value, as it is or encoded.
fn says(header: &str, value: &str) -> bool {
    match header
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    {
        Some(body) => decode(body).is_some_and(|decoded| decoded == value.as_bytes()),
        None => header == value,
    }
}

/// The arguments of a tool that headers repeat (`x-mcp-header` in its schema), each with the end of the header's name.
pub(crate) fn parameter_headers(input_schema: &Value) -> Vec<(String, String)> {
    let properties = input_schema.get("properties").and_then(Value::as_object);
    let marked = properties.into_iter().flatten().filter_map(|(name, property)| {
        let header = property.get("x-mcp-header")?.as_str()?;
        Some((name.clone(), header.to_owned()))
    });
    marked.collect()
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

/// What stands between `=?base64?` and `?=`, for values that a header cannot hold.
fn decode(body: &str) -> Option<Vec<u8>> {
    if !is_base64(body) {
        return None;
    }
    let mut out = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in body.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
        bits &= 0xff;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_names_are_local() {
        for local in ["localhost", "LOCALHOST:80", "127.0.0.1:4000", "[::1]", "[::1]:9"] {
            assert!(local_authority(local), "{local}");
        }
        for other in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com:80",
            "localhost:80:80",
            "localhost:x",
            "evil@localhost",
            "127.0.0.2",
        ] {
            assert!(!local_authority(other), "{other}");
        }
        assert!(local_origin("http://localhost:3000"));
        for other in [
            "null",
            "localhost",
            "file://localhost",
            "http://evil.example",
            "http://localhost/x",
        ] {
            assert!(!local_origin(other), "{other}");
        }
    }

    #[test]
    fn encoded_names_are_read() {
        assert!(says("=?base64?SGVsbG8=?=", "Hello"));
        assert!(says("=?base64?w7bDpA==?=", "öä"));
        assert!(says("Hello", "Hello"));
        // Without both ends it is a text like any other.
        assert!(says("=?base64?SGVsbG8=", "=?base64?SGVsbG8="));
        for wrong in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "SGVsbG8="] {
            assert!(!says(wrong, "Hello"), "{wrong}");
        }
    }
}
