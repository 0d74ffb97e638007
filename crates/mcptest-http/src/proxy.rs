//! The proxies that the environment names, and which addresses go through them.
//!
//! `HTTPS_PROXY` is for `https` addresses, `HTTP_PROXY` for `http`, `NO_PROXY` for those that go
//! without; the names in small letters come first, as in curl. What is on this machine is never
//! sent through a proxy, unless `MCPTEST_PROXY_LOOPBACK` is set: test servers live there.

use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;

use hyper::header::HeaderValue;

use crate::address::Address;

/// The variable that also sends what is on this machine through a proxy.
const LOOPBACK: &str = "MCPTEST_PROXY_LOOPBACK";

static INSTALLED: OnceLock<Proxies> = OnceLock::new();

/// Makes all connections from now on heed these proxies. Only the first time counts.
pub fn use_proxies(proxies: Proxies) {
    let _ = INSTALLED.set(proxies);
}

/// How an address is reached.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    Direct,
    Via(Proxy),
    /// The environment names a proxy that cannot be used: this is why.
    Unknown(String),
}

impl Route {
    /// By the proxies in use.
    pub fn to(address: &Address) -> Self {
        match INSTALLED.get().map(|proxies| proxies.of(address)) {
            None | Some(Ok(None)) => Self::Direct,
            Some(Ok(Some(proxy))) => Self::Via(proxy),
            Some(Err(words)) => Self::Unknown(words),
        }
    }
}

/// What the environment says about proxies.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<Named>,
    https: Option<Named>,
    without: Vec<Exception>,
    loopback: bool,
}

/// A variable and what it holds, which may be a password.
#[derive(Clone)]
struct Named {
    variable: String,
    value: String,
}

/// What goes without a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exception {
    Everything,
    /// This host and all below it.
    Host {
        name: String,
        port: Option<u16>,
    },
    /// These addresses: as many leading bits are the same.
    Net {
        address: IpAddr,
        bits: u32,
        port: Option<u16>,
    },
}

/// A proxy.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    /// Sensitive: no debug output shows it.
    pub authorization: Option<HeaderValue>,
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
        let first = |names: [&str; 2]| {
            names.into_iter().find_map(|name| {
                let value = env(name)?.trim().to_owned();
                (!value.is_empty()).then(|| Named {
                    variable: name.to_owned(),
                    value,
                })
            })
        };
        let without = first(["no_proxy", "NO_PROXY"])
            .map(|named| named.value)
            .unwrap_or_default();
        Self {
            http: first(["http_proxy", "HTTP_PROXY"]),
            https: first(["https_proxy", "HTTPS_PROXY"]),
            without: without
                .split([',', ' '])
                .filter_map(|entry| Exception::read(entry.trim()))
                .collect(),
            loopback: env(LOOPBACK)
                .is_some_and(|value| !matches!(value.trim(), "" | "0" | "false")),
        }
    }

    /// The passwords in it, as written and as sent: nobody may see them.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        for named in self.http.iter().chain(&self.https) {
            let Some((_, password)) = split(&named.value).1.and_then(|user| user.split_once(':'))
            else {
                continue;
            };
            secrets.push(password.to_owned());
            secrets.push(String::from_utf8_lossy(&decoded(password)).into_owned());
        }
        // Hiding every `1` of a report would hide the report.
        secrets.retain(|secret| secret.len() >= 6);
        secrets.sort();
        secrets.dedup();
        secrets
    }

    /// The proxy of an address, if it has one.
    ///
    /// # Errors
    /// The variable that names no proxy, without what it holds.
    fn of(&self, address: &Address) -> Result<Option<Proxy>, String> {
        let Some(named) = (if address.tls { &self.https } else { &self.http }) else {
            return Ok(None);
        };
        if (is_loopback(&address.host) && !self.loopback)
            || self.without.iter().any(|one| one.covers(address))
        {
            return Ok(None);
        }
        named.proxy().map(Some)
    }
}

impl Named {
    fn proxy(&self) -> Result<Proxy, String> {
        let (scheme, user, place) = {
            let (scheme, user, place) = split(&self.value);
            (scheme.to_ascii_lowercase(), user, place)
        };
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(format!(
                "`{}` names a proxy that is not spoken to here; use http:// or https://",
                self.variable
            ));
        }
        let address = Address::parse(&format!("{scheme}://{place}")).map_err(|_| {
            format!(
                "`{}` is no address of a proxy; write it as http://host:port",
                self.variable
            )
        })?;
        Ok(Proxy {
            tls: address.tls,
            host: address.host,
            port: address.port,
            authorization: user.and_then(basic),
            variable: self.variable.clone(),
        })
    }
}

/// The scheme, who connects, and where to. Without a scheme it is http.
fn split(value: &str) -> (&str, Option<&str>, &str) {
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match place.rsplit_once('@') {
        Some((user, place)) => (scheme, Some(user), place),
        None => (scheme, None, place),
    }
}

/// Who connects, as a proxy wants to hear it.
fn basic(user: &str) -> Option<HeaderValue> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let mut both = decoded(name);
    both.push(b':');
    both.extend(decoded(password));
    let mut value = HeaderValue::from_str(&format!("Basic {}", base64(&both))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// `%40` as `@`.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            // Six bits are an index below 64.
            let letter = LETTERS[(group >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= chunk.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}

fn ip(host: &str) -> Option<IpAddr> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical())
}

fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || ip(&name).is_some_and(|address| address.is_loopback() || address.is_unspecified())
}

impl Exception {
    /// An entry of `NO_PROXY`; nothing if it says nothing.
    fn read(entry: &str) -> Option<Self> {
        if entry == "*" {
            return Some(Self::Everything);
        }
        if let Some((address, bits)) = entry.split_once('/') {
            let (address, bits) = (ip(address)?, bits.parse().ok()?);
            return (bits <= width(address)).then_some(Self::Net {
                address,
                bits,
                port: None,
            });
        }
        // An IPv6 address has colons of its own, unless it stands in brackets.
        let (name, port) = match entry.rsplit_once(':') {
            Some((name, port)) if ip(entry).is_none() => (name, Some(port.parse().ok()?)),
            _ => (entry, None),
        };
        if let Some(address) = ip(name) {
            let bits = width(address);
            return Some(Self::Net {
                address,
                bits,
                port,
            });
        }
        let name = name
            .trim_start_matches('*')
            .trim_matches('.')
            .to_ascii_lowercase();
        (!name.is_empty()).then_some(Self::Host { name, port })
    }

    fn covers(&self, address: &Address) -> bool {
        let at = |port: &Option<u16>| port.is_none_or(|port| port == address.port);
        match self {
            Self::Everything => true,
            Self::Host { name, port } => {
                let host = address.host.trim_end_matches('.').to_ascii_lowercase();
                let below = host.strip_suffix(name.as_str());
                at(port) && below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            Self::Net {
                address: net,
                bits,
                port,
            } => at(port) && ip(&address.host).is_some_and(|host| same_bits(*net, host, *bits)),
        }
    }
}

fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn same_bits(net: IpAddr, host: IpAddr, bits: u32) -> bool {
    let number = |address: IpAddr| match address {
        // The leading bits are those of the address.
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    let differ = number(net) ^ number(host);
    width(net) == width(host) && differ.leading_zeros() >= bits
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

    /// `host:port` of the proxy, or why there is none.
    fn route(variables: &[(&str, &str)], url: &str) -> String {
        match proxies(variables).of(&Address::parse(url).unwrap()) {
            Ok(None) => "direct".to_owned(),
            Ok(Some(proxy)) => proxy.to_string(),
            Err(words) => words,
        }
    }

    #[test]
    fn each_scheme_has_its_variable_and_small_letters_come_first() {
        let both = [("HTTPS_PROXY", "http://a:1"), ("HTTP_PROXY", "b:2")];
        assert_eq!(
            route(&both, "https://x.test/"),
            "the proxy a:1 (HTTPS_PROXY)"
        );
        assert_eq!(route(&both, "http://x.test/"), "the proxy b:2 (HTTP_PROXY)");
        assert_eq!(route(&both[..1], "http://x.test/"), "direct");
        let small = [("HTTPS_PROXY", "http://a:1"), ("https_proxy", "http://c")];
        assert_eq!(
            route(&small, "https://x.test/"),
            "the proxy c:80 (https_proxy)"
        );
        // An empty variable is as good as none.
        assert_eq!(
            route(&[("https_proxy", " "), small[0]], "https://x.test/"),
            "the proxy a:1 (HTTPS_PROXY)"
        );
        assert_eq!(
            route(&[("HTTPS_PROXY", "https://[::2]/")], "https://x.test/"),
            "the proxy ::2:443 (HTTPS_PROXY)"
        );
    }

    #[test]
    fn what_is_on_this_machine_is_not_proxied_unless_asked() {
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
    fn exceptions() {
        for (entry, yes, no) in [
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
        ] {
            let variables = [("HTTP_PROXY", "p:1"), ("NO_PROXY", entry)];
            assert_eq!(
                route(&variables, &format!("http://{yes}/")),
                "direct",
                "{entry}: {yes}"
            );
            assert_ne!(
                route(&variables, &format!("http://{no}/")),
                "direct",
                "{entry}: {no}"
            );
        }
        assert_eq!(
            route(
                &[("HTTP_PROXY", "p:1"), ("no_proxy", "*")],
                "http://x.test/"
            ),
            "direct"
        );
        for nothing in ["", ",", "x:y", "1.2.3.4/33", "1.2.3.4/x", "..", "*."] {
            let variables = [("HTTP_PROXY", "p:1"), ("NO_PROXY", nothing)];
            assert_ne!(route(&variables, "http://1.2.3.4/"), "direct", "{nothing}");
        }
    }

    #[test]
    fn a_variable_that_names_no_proxy_is_told_without_what_it_holds() {
        for value in [
            "socks5://me:s3cret@h:1",
            "http://me:s3cret@",
            "http://me:s3cret@h:99999",
            "me:s3cret@ h",
        ] {
            let words = route(&[("HTTPS_PROXY", value)], "https://x.test/");
            assert!(
                words.contains("`HTTPS_PROXY`") && !words.contains("s3cret"),
                "{value}: {words}"
            );
        }
    }

    #[test]
    fn credentials_are_sent_and_not_shown() {
        let proxies = proxies(&[("HTTPS_PROXY", "http://me:p%40ss%3aword@h:1")]);
        let address = Address::parse("https://x.test/").unwrap();
        let proxy = proxies.of(&address).unwrap().unwrap();
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
    fn base64_of_every_length() {
        for (text, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
        assert_eq!(base64(&[255, 254, 253, 0]), "//79AA==");
    }

    proptest! {
        #[test]
        fn nothing_that_the_environment_holds_makes_it_panic(
            proxy in ".{0,40}",
            without in ".{0,40}",
            host in "[a-z0-9.]{1,12}",
        ) {
            let found = proxies(&[("HTTP_PROXY", &proxy), ("NO_PROXY", &without)]);
            let _ = found.secrets();
            if let Ok(address) = Address::parse(&format!("http://{host}/")) {
                let _ = found.of(&address);
            }
        }
    }
}
