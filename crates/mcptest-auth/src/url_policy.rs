//! The addresses that metadata may send us to.
//!
//! A server under test names the addresses of its metadata, its authorization server and the
//! endpoints of that. It is untrusted, so it must not make us send requests, least of all
//! with credentials, to services that only this machine or its network can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// The reachability of a host. A server may send us to hosts that are at least as reachable as
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reachability {
    /// Any name, and addresses of the internet.
    Public,
    /// An address of a private network.
    Private,
    /// This machine, or an address that only its own link has.
    Local,
}

/// The rule for addresses, derived from the addresses that the user wrote.
#[derive(Debug, Clone)]
pub(crate) struct UrlPolicy {
    reach: Reachability,
}

impl UrlPolicy {
    /// The rule for metadata of a server, or of an issuer that the user named.
    pub(crate) fn of<'a>(written: impl IntoIterator<Item = &'a str>) -> Self {
        let reach = written
            .into_iter()
            .filter_map(|url| Url::parse(url).ok())
            .map(|url| reach_of(&url))
            .max();
        Self {
            reach: reach.unwrap_or(Reachability::Public),
        }
    }

    /// Parses an address and checks that a request may be sent to it.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub(crate) fn check(&self, url: &str) -> Result<Url, String> {
        let parsed = Url::parse(url).map_err(|error| format!("it is not a valid URL ({error})"))?;
        let reach = reach_of(&parsed);
        match parsed.scheme() {
            "https" => {}
            "http" if is_loopback(&parsed) => {}
            "http" => return Err("it must use https".to_owned()),
            other => return Err(format!("its scheme is `{other}`, not https")),
        }
        if parsed.host().is_none() {
            return Err("it has no host".to_owned());
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err("it has a user name or a password".to_owned());
        }
        if parsed.fragment().is_some() {
            return Err("it has a fragment".to_owned());
        }
        if reach > self.reach {
            return Err(match reach {
                Reachability::Local => "it is on this machine, and the server is not",
                _ => "it is in a private network, and the server is not",
            }
            .to_owned());
        }
        Ok(parsed)
    }
}

/// Returns true if an address is on this machine, so that it may be used without TLS.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => embedded(address).is_loopback(),
        None => false,
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

fn reach_of(url: &Url) -> Reachability {
    match url.host() {
        Some(Host::Domain(name)) if is_localhost(name) => Reachability::Local,
        Some(Host::Domain(_)) | None => Reachability::Public,
        Some(Host::Ipv4(address)) => reach_of_v4(address),
        Some(Host::Ipv6(address)) => match embedded(address) {
            IpAddr::V4(address) => reach_of_v4(address),
            IpAddr::V6(address) => reach_of_v6(address),
        },
    }
}

/// The IPv4 address inside of an IPv6 address, if it has one.
fn embedded(address: Ipv6Addr) -> IpAddr {
    match address.to_ipv4_mapped() {
        Some(address) => IpAddr::V4(address),
        None => IpAddr::V6(address),
    }
}

fn reach_of_v4(address: Ipv4Addr) -> Reachability {
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    if address.is_loopback() || address.is_unspecified() || address.is_link_local() {
        Reachability::Local
    } else if address.is_private() || is_shared || address.is_broadcast() || first == 0 {
        Reachability::Private
    } else {
        Reachability::Public
    }
}

fn reach_of_v6(address: Ipv6Addr) -> Reachability {
    let first = address.segments()[0];
    if address.is_loopback() || address.is_unspecified() || first & 0xffc0 == 0xfe80 {
        Reachability::Local
    } else if first & 0xfe00 == 0xfc00 {
        Reachability::Private
    } else {
        Reachability::Public
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_server_cannot_send_us_to_other_networks() {
        let policy = UrlPolicy::of(["https://mcp.example.com/mcp"]);
        for url in [
            "https://auth.example.com/.well-known/x",
            "https://93.184.216.34/x",
            "https://[2606:2800:220:1::1]/",
        ] {
            assert!(policy.check(url).is_ok(), "{url}");
        }
        for (url, part) in [
            ("http://auth.example.com/", "must use https"),
            ("https://localhost/", "on this machine"),
            ("https://LOCALHOST./", "on this machine"),
            ("https://x.localhost:8080/", "on this machine"),
            ("http://127.0.0.1:9/", "on this machine"),
            ("https://127.1/", "on this machine"),
            ("https://2130706433/", "on this machine"),
            ("https://[::1]/", "on this machine"),
            ("https://[::ffff:127.0.0.1]/", "on this machine"),
            ("https://169.254.169.254/latest/", "on this machine"),
            ("https://0.0.0.0/", "on this machine"),
            ("https://[fe80::1]/", "on this machine"),
            ("https://10.1.2.3/", "in a private network"),
            ("https://192.168.0.1/", "in a private network"),
            ("https://100.64.0.1/", "in a private network"),
            ("https://[fd00::1]/", "in a private network"),
            ("file:///etc/passwd", "scheme is `file`"),
            ("ftp://example.com/", "scheme is `ftp`"),
            ("https://user:pw@example.com/", "a user name"),
            ("https://example.com/#x", "a fragment"),
            ("not a url", "not a valid URL"),
        ] {
            let reason = policy.check(url).unwrap_err();
            assert!(reason.contains(part), "{url}: {reason}");
        }
    }

    #[test]
    fn a_local_server_may_use_loopback_without_tls() {
        let policy = UrlPolicy::of(["http://127.0.0.1:3000/mcp"]);
        for url in [
            "http://localhost:4000/",
            "http://[::1]:4000/",
            "https://auth.example.com/",
        ] {
            assert!(policy.check(url).is_ok(), "{url}");
        }
        for url in ["http://auth.example.com/", "http://169.254.169.254/"] {
            assert!(policy.check(url).is_err(), "{url}");
        }
        let policy = UrlPolicy::of(["https://10.0.0.5/mcp"]);
        assert!(policy.check("https://10.0.0.6/").is_ok());
        assert!(policy.check("https://127.0.0.1/").is_err());
        let policy = UrlPolicy::of(["https://mcp.example.com", "http://localhost:1/"]);
        assert!(policy.check("http://127.0.0.1:1/").is_ok());
    }
}
