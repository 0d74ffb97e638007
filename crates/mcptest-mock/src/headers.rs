//! The checks of request headers: the host must be this machine, and from 2026-07-28 on the headers
//! must match the body.

use hyper::header::HeaderMap;
use mcptest_protocol::headers::{ParamHeader, has_value, name_of};
use serde_json::Value;

use crate::jsonrpc::clip;

/// Returns true if a `Host` is this machine, with any port.
pub(crate) fn is_local_authority(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port))
            if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .any(|local| name.eq_ignore_ascii_case(local))
}

/// Returns true if an `Origin` is a page of this machine.
pub(crate) fn is_local_origin(origin: &str) -> bool {
    let authority = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(is_local_authority)
}

/// The first mismatch between the headers and the body of a stateless request.
pub(crate) fn header_mismatch(
    headers: &HeaderMap,
    version: Option<&str>,
    in_body: Option<&Value>,
    message: &Value,
    parameters: impl Fn(&str) -> Vec<ParamHeader>,
) -> Option<String> {
    let differs = |header: &str| Some(format!("Header mismatch: {header} does not match the body"));
    let missing = |header: &str| Some(format!("Header mismatch: {header} is missing"));
    match (version, in_body) {
        (None, _) => return missing("MCP-Protocol-Version"),
        (Some(version), Some(body)) if body.as_str().is_some_and(|body| body != version) => {
            return differs("MCP-Protocol-Version");
        }
        _ => {}
    }
    let method = message
        .get("method")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match header_value(headers, "mcp-method") {
        None => return missing("Mcp-Method"),
        Some(header) if header != method => return differs("Mcp-Method"),
        Some(_) => {}
    }
    let params = message.get("params")?;
    let target = name_of(method, params)?;
    match header_value(headers, "mcp-name") {
        None => return missing("Mcp-Name"),
        Some(header) if !has_value(&header, target) => {
            return Some(format!(
                "Header mismatch: Mcp-Name does not match the body ({})",
                clip(target)
            ));
        }
        Some(_) => {}
    }
    if method != "tools/call" {
        return None;
    }
    let arguments = params.get("arguments")?;
    parameters(target).into_iter().find_map(|parameter| {
        let name = parameter.name();
        match (header_value(headers, name), parameter.value(arguments)) {
            (None, Some(_)) => missing(name),
            (Some(header), Some(value)) if has_value(&header, &value) => None,
            (Some(_), _) => differs(name),
            (None, None) => None,
        }
    })
}

fn header_value(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_names_are_local() {
        for local in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:4000",
            "[::1]",
            "[::1]:9",
        ] {
            assert!(is_local_authority(local), "{local}");
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
            assert!(!is_local_authority(other), "{other}");
        }
        assert!(is_local_origin("http://localhost:3000"));
        for other in [
            "null",
            "localhost",
            "file://localhost",
            "http://evil.example",
            "http://localhost/x",
        ] {
            assert!(!is_local_origin(other), "{other}");
        }
    }
}
