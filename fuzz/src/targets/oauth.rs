//! Answers of authorization servers and browsers: challenges, metadata, tokens, redirects.

use std::net::IpAddr;

use mcptest_auth::{AuthConfig, Grant, fuzzing};
use serde_json::Value;

const SERVER: &str = "https://mcp.example/public/mcp";
const ISSUER: &str = "https://auth.example/tenant";
const STATE: &str = "s7a7e";

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let headers: Vec<String> = text.split('\n').map(str::to_owned).collect();
    if let Some(found) = fuzzing::challenge(&headers) {
        assert_challenge(&found);
    }
    if let Ok(Value::Object(document)) = serde_json::from_slice(input) {
        if let Ok(found) = fuzzing::server_metadata(&document, ISSUER, SERVER) {
            assert_eq!(found["issuer"], ISSUER, "another issuer");
            let endpoints = found["endpoints"].as_array().into_iter().flatten();
            for endpoint in endpoints.filter_map(Value::as_str) {
                assert_public(endpoint);
            }
        }
        let config = AuthConfig::new(SERVER, Grant::AuthorizationCode);
        let server = fuzzing::check_address(SERVER, SERVER).expect("the server's own address");
        if let Ok(found) = fuzzing::resource_metadata(&document, &server, &config) {
            let resource = found["resource"].as_str().unwrap_or_default();
            assert!(!resource.is_empty(), "a resource without a name");
        }
    }
    if let Ok((shown, token)) = fuzzing::tokens(input) {
        assert!(
            token.len() < 8 || !shown.contains(&token),
            "a token is shown: {shown}"
        );
    }
    let address = text.trim();
    if let Ok(found) = fuzzing::redirect(address, STATE) {
        let is_answer = found["code"].is_string() || found["error"].is_string();
        assert!(is_answer && address.contains('?'), "{found}");
    }
    if fuzzing::check_address(SERVER, address).is_ok() {
        assert_public(address);
    }
}

/// A challenge that is written again reads the same.
fn assert_challenge(found: &Value) {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut header = "Bearer realm=\"x\"".to_owned();
    for key in ["error", "error_description", "resource_metadata"] {
        if let Some(value) = found[key].as_str() {
            header.push_str(&format!(", {key}=\"{}\"", quoted(value)));
        }
    }
    let scopes = found["scope"].as_array().into_iter().flatten();
    let scopes: Vec<&str> = scopes.filter_map(Value::as_str).collect();
    header.push_str(&format!(", scope=\"{}\"", quoted(&scopes.join(" "))));
    // The part of a header that is read ends somewhere.
    if header.len() < 16 * 1024 {
        let again = fuzzing::challenge(&[header]);
        assert_eq!(again.as_ref(), Some(found), "differs after it was written");
    }
}

/// A server on the internet names addresses on the internet.
fn assert_public(address: &str) {
    let url = match fuzzing::check_address(SERVER, address) {
        Ok(url) => url,
        Err(reason) => panic!("{address}: {reason}"),
    };
    assert_eq!(url.scheme(), "https", "{address}");
    assert!(url.username().is_empty() && url.password().is_none());
    let host = url.host_str().unwrap_or_default();
    let name = host.trim_end_matches('.');
    assert!(name != "localhost" && !name.ends_with(".localhost"));
    let is_local = match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
        Err(_) => false,
    };
    assert!(!is_local, "{address} is not on the internet");
}
