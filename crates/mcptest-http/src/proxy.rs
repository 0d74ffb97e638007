//! HTTP proxies from the environment.
//!
//! `HTTPS_PROXY` is for `https` addresses, `HTTP_PROXY` for `http`, and `NO_PROXY` lists hosts that
//! are reached directly; lowercase names win, as in curl. Addresses on this machine never use a
//! proxy unless `MCPTEST_PROXY_LOOPBACK` is set, because test servers run here.
//!
//! hyper-util's matcher decides whether a host is in `NO_PROXY`. The rest is here because that
//! crate ignores ports in `NO_PROXY`, `*` for IP addresses, and a proxy variable that it cannot
//! parse: requests would silently bypass the proxy.

use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::proxy::matcher::Matcher;
use percent_encoding::percent_decode_str;

use crate::address::Address;

/// The variable that lets addresses on this machine use a proxy, too.
const LOOPBACK: &str = "MCPTEST_PROXY_LOOPBACK";

static INSTALLED: OnceLock<Proxies> = OnceLock::new();

/// Makes all further connections use these proxies. Only the first call has an effect.
pub fn use_proxies(proxies: Proxies) {
    let _ = INSTALLED.set(proxies);
}

/// The way to an address.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    Direct,
    Proxy(Proxy),
    /// The environment names a proxy that cannot be used.
    Invalid(ProxyError),
}

impl Route {
    /// The way to an address with the installed proxies.
    pub fn to(address: &Address) -> Self {
        match INSTALLED.get().map(|proxies| proxies.proxy_for(address)) {
            None | Some(Ok(None)) => Self::Direct,
            Some(Ok(Some(proxy))) => Self::Proxy(proxy),
            Some(Err(error)) => Self::Invalid(error),
        }
    }
}

/// A variable whose value is not a usable proxy. The value may hold a password and is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("`{0}` names a proxy of an unsupported kind; use http:// or https://")]
    UnsupportedScheme(String),
    #[error("`{0}` is not a valid proxy address; write it as http://host:port")]
    InvalidAddress(String),
}

/// The proxy settings of the environment.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<Variable>,
    https: Option<Variable>,
    /// The entries of `NO_PROXY`.
    exceptions: Vec<String>,
    loopback: bool,
}

/// A variable that names a proxy. The value may hold a password.
#[derive(Clone)]
struct Variable {
    name: String,
    value: String,
}

/// A proxy.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    /// Marked as sensitive, so that debug output does not show it.
    pub authorization: Option<HeaderValue>,
    /// The name of the variable that it comes from.
    variable: String,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the proxy {}:{} ({})",
            self.host, self.port, self.variable
        )
    }
}

impl Proxies {
    /// Reads the environment.
    #[must_use]
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let first_set = |names: [&str; 2]| {
            names.into_iter().find_map(|name| {
                let value = env(name)?.trim().to_owned();
                (!value.is_empty()).then(|| Variable {
                    name: name.to_owned(),
                    value,
                })
            })
        };
        let exceptions = first_set(["no_proxy", "NO_PROXY"]);
        Self {
            http: first_set(["http_proxy", "HTTP_PROXY"]),
            https: first_set(["https_proxy", "HTTPS_PROXY"]),
            exceptions: exceptions
                .iter()
                .flat_map(|variable| variable.value.split([',', ' ']))
                .map(|entry| entry.trim().to_owned())
                .filter(|entry| !entry.is_empty())
                .collect(),
            loopback: env(LOOPBACK)
                .is_some_and(|value| !matches!(value.trim(), "" | "0" | "false")),
        }
    }

    /// The passwords of the proxies, as written and as sent; no output may show them.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        for variable in self.http.iter().chain(&self.https) {
            let user_info = split_proxy_url(&variable.value).1;
            let Some((_, password)) = user_info.and_then(|user| user.split_once(':')) else {
                continue;
            };
            secrets.push(password.to_owned());
            secrets.push(
                percent_decode_str(password)
                    .decode_utf8_lossy()
                    .into_owned(),
            );
        }
        // Masking every `1` of a report would make it unreadable.
        secrets.retain(|secret| secret.len() >= 6);
        secrets.sort();
        secrets.dedup();
        secrets
    }

    /// The proxy for an address, if it has one.
    fn proxy_for(&self, address: &Address) -> Result<Option<Proxy>, ProxyError> {
        let Some(variable) = (if address.tls { &self.https } else { &self.http }) else {
            return Ok(None);
        };
        if (is_loopback(&address.host) && !self.loopback) || self.is_exception(address) {
            return Ok(None);
        }
        variable.proxy().map(Some)
    }

    /// Returns true if `NO_PROXY` lists the address.
    fn is_exception(&self, address: &Address) -> bool {
        if self.exceptions.iter().any(|entry| entry == "*") {
            return true;
        }
        let hosts: Vec<String> = self
            .exceptions
            .iter()
            .filter_map(|entry| host_of_exception(entry, address.port))
            .collect();
        let host = match parse_ip(&address.host) {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            Some(IpAddr::V4(ip)) => ip.to_string(),
            None => address.host.trim_end_matches('.').to_owned(),
        };
        let Ok(uri) = format!("http://{host}/").parse::<Uri>() else {
            return false;
        };
        // The matcher decides about hosts only; the proxy in it represents any proxy.
        let matcher = Matcher::builder()
            .all("http://proxy")
            .no(hosts.join(","))
            .build();
        matcher.intercept(&uri).is_none()
    }
}

impl Variable {
    fn proxy(&self) -> Result<Proxy, ProxyError> {
        let (scheme, user_info, host_and_port) = split_proxy_url(&self.value);
        let scheme = scheme.to_ascii_lowercase();
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(ProxyError::UnsupportedScheme(self.name.clone()));
        }
        let address = Address::parse(&format!("{scheme}://{host_and_port}"))
            .map_err(|_| ProxyError::InvalidAddress(self.name.clone()))?;
        Ok(Proxy {
            tls: address.tls,
            host: address.host,
            port: address.port,
            authorization: user_info.and_then(basic_authorization),
            variable: self.name.clone(),
        })
    }
}

/// Splits a proxy URL into scheme, user info, and host with port. The default scheme is http.
fn split_proxy_url(url: &str) -> (&str, Option<&str>, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user_info, host_and_port)) => (scheme, Some(user_info), host_and_port),
        None => (scheme, None, authority),
    }
}

/// The `Proxy-Authorization` value for a name and a password.
fn basic_authorization(user_info: &str) -> Option<HeaderValue> {
    let (name, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    let mut credentials: Vec<u8> = percent_decode_str(name).collect();
    credentials.push(b':');
    credentials.extend(percent_decode_str(password));
    let mut value =
        HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(&credentials))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn parse_ip(host: &str) -> Option<IpAddr> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || parse_ip(&name).is_some_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

/// The host or network of an entry of `NO_PROXY`, in the form that the matcher expects; `None` if
/// the entry is invalid or for another port.
fn host_of_exception(entry: &str, port: u16) -> Option<String> {
    if entry.contains('/') {
        return Some(entry.replace(['[', ']'], ""));
    }
    // An IPv6 address contains colons, unless it is in brackets.
    let name = match entry.rsplit_once(':') {
        Some((name, given)) if parse_ip(entry).is_none() => {
            (given.parse() == Ok(port)).then_some(name)?
        }
        _ => entry,
    };
    if let Some(ip) = parse_ip(name) {
        return Some(ip.to_string());
    }
    let name = name.trim_start_matches('*').trim_matches('.');
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_env(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    /// The proxy for a URL, "direct", or the error.
    fn route(variables: &[(&str, &str)], url: &str) -> String {
        match proxies(variables).proxy_for(&Address::parse(url).unwrap()) {
            Ok(None) => "direct".to_owned(),
            Ok(Some(proxy)) => proxy.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_scheme_has_its_variable_and_lowercase_wins() {
        let both = [("HTTPS_PROXY", "http://a:1"), ("HTTP_PROXY", "b:2")];
        assert_eq!(
            route(&both, "https://x.test/"),
            "the proxy a:1 (HTTPS_PROXY)"
        );
        assert_eq!(route(&both, "http://x.test/"), "the proxy b:2 (HTTP_PROXY)");
        assert_eq!(route(&both[..1], "http://x.test/"), "direct");
        let lowercase = [("HTTPS_PROXY", "http://a:1"), ("https_proxy", "http://c")];
        assert_eq!(
            route(&lowercase, "https://x.test/"),
            "the proxy c:80 (https_proxy)"
        );
        // An empty variable counts as not set.
        assert_eq!(
            route(&[("https_proxy", " "), lowercase[0]], "https://x.test/"),
            "the proxy a:1 (HTTPS_PROXY)"
        );
        assert_eq!(
            route(&[("HTTPS_PROXY", "https://[::2]/")], "https://x.test/"),
            "the proxy ::2:443 (HTTPS_PROXY)"
        );
    }

    #[test]
    fn addresses_on_this_machine_use_no_proxy_by_default() {
        let all = [("HTTP_PROXY", "p:1"), (LOOPBACK, "1")];
        for url in [
            "http://localhost:80/",
            "http://api.LOCALHOST./",
            "http://127.9.9.9/",
            "http://[::1]:1/",
            "http://[::ffff:127.0.0.1]/",
            "http://0.0.0.0/",
        ] {
            assert_eq!(route(&all[..1], url), "direct", "{url}");
            assert_eq!(route(&all, url), "the proxy p:1 (HTTP_PROXY)", "{url}");
        }
        assert_eq!(
            route(&all[..1], "http://localhost.test/"),
            "the proxy p:1 (HTTP_PROXY)"
        );
    }

    #[test]
    fn exceptions_match_hosts_networks_and_ports() {
        for (entry, direct, proxied) in [
            ("example.com", "example.com", "notexample.com"),
            ("Example.com", "a.b.EXAMPLE.com.", "example.com.evil"),
            (".example.com", "example.com", "example.org"),
            ("*.example.com", "a.example.com", "example.co"),
            ("a, b.test ,c", "b.test", "d"),
            ("a b.test c", "b.test", "d"),
            ("example.com:8080", "example.com:8080", "example.com:80"),
            ("10.0.0.0/8", "10.1.2.3", "11.0.0.1"),
            ("10.0.0.0/0", "11.1.2.3", "[2001:db8::1]"),
            ("192.168.1.1", "192.168.1.1", "192.168.1.10"),
            ("192.168.1.1:80", "192.168.1.1:80", "192.168.1.1:81"),
            ("2001:db8::/32", "[2001:db8:1::1]", "[2001:db9::1]"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80", "[2001:db8::1]:81"),
            ("2001:db8::1", "[2001:db8::1]", "[2001:db8::2]"),
            ("10.0.0.0/8", "[::ffff:10.1.2.3]", "[::ffff:11.1.2.3]"),
        ] {
            let variables = [("HTTP_PROXY", "p:1"), ("NO_PROXY", entry)];
            assert_eq!(
                route(&variables, &format!("http://{direct}/")),
                "direct",
                "{entry}: {direct}"
            );
            assert_ne!(
                route(&variables, &format!("http://{proxied}/")),
                "direct",
                "{entry}: {proxied}"
            );
        }
        for url in ["http://x.test/", "http://1.2.3.4/", "http://[2001:db8::1]/"] {
            let variables = [("HTTP_PROXY", "p:1"), ("no_proxy", "a,*")];
            assert_eq!(route(&variables, url), "direct", "{url}");
        }
        for invalid in ["", ",", "x:y", "1.2.3.4/33", "1.2.3.4/x", "..", "*."] {
            let variables = [("HTTP_PROXY", "p:1"), ("NO_PROXY", invalid)];
            assert_ne!(route(&variables, "http://1.2.3.4/"), "direct", "{invalid}");
        }
    }

    #[test]
    fn an_invalid_variable_is_named_without_its_value() {
        for value in [
            "socks5://me:s3cret@h:1",
            "http://me:s3cret@",
            "http://me:s3cret@h:99999",
            "me:s3cret@ h",
        ] {
            let shown = route(&[("HTTPS_PROXY", value)], "https://x.test/");
            assert!(
                shown.contains("`HTTPS_PROXY`") && !shown.contains("s3cret"),
                "{value}: {shown}"
            );
        }
    }

    #[test]
    fn credentials_are_sent_and_not_shown() {
        let proxies = proxies(&[("HTTPS_PROXY", "http://me:p%40ss%3aword@h:1")]);
        let address = Address::parse("https://x.test/").unwrap();
        let proxy = proxies.proxy_for(&address).unwrap().unwrap();
        assert_eq!(
            proxy.authorization.as_ref().unwrap(),
            "Basic bWU6cEBzczp3b3Jk"
        );
        let shown = format!("{proxy} {proxy:?}");
        assert!(
            !shown.contains("bWU6") && !shown.contains("p@ss") && !shown.contains("p%40ss"),
            "{shown}"
        );
        assert_eq!(proxies.secrets(), ["p%40ss%3aword", "p@ss:word"]);
    }

    #[test]
    fn a_password_is_sent_byte_for_byte() {
        for (value, sent) in [
            ("http://me@h:1", "Basic bWU6"),
            ("http://me:a@b@h:1", "Basic bWU6YUBi"),
            ("http://me:%ff%zz@h:1", "Basic bWU6/yV6eg=="),
        ] {
            let proxies = proxies(&[("HTTPS_PROXY", value)]);
            let address = Address::parse("https://x.test/").unwrap();
            let proxy = proxies.proxy_for(&address).unwrap().unwrap();
            assert_eq!(proxy.authorization.unwrap(), sent, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_environment_causes_a_panic(
            proxy in ".{0,40}",
            exceptions in ".{0,40}",
            host in "[a-z0-9.]{1,12}",
        ) {
            let found = proxies(&[("HTTP_PROXY", &proxy), ("NO_PROXY", &exceptions)]);
            let _ = found.secrets();
            if let Ok(address) = Address::parse(&format!("http://{host}/")) {
                let _ = found.proxy_for(&address);
            }
        }
    }
}
