//! `auth:` of a server: authorization by OAuth.

use std::net::IpAddr;

use super::Checker;
use super::diagnostics::has_host;
use crate::file::{AuthFile, AuthGrantFile};
use crate::import::Part;
use crate::suite::{EnvSecret, ServerAuth};

impl Checker<'_> {
    /// Checks the authorization of the server at `at`, which has this address and these headers.
    pub(super) fn auth(
        &mut self,
        part: &Part,
        at: &str,
        url: &str,
        file: &AuthFile,
        headers: &[(String, String)],
    ) -> Option<ServerAuth> {
        let before = self.problems.len();
        let at = format!("{at}/auth");
        if headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            self.auth_problem(
                part,
                &at,
                "`auth` and a token of your own (`bearer`, or the header `Authorization`) cannot \
                 both be set",
                "keep one of them",
            );
        }
        if has_host(url) && !is_secure(url) {
            self.auth_problem(
                part,
                &at,
                "a token is sent over https only, except to this machine",
                "write the address of the server with https://",
            );
        }
        self.auth_keys(part, &at, file);
        if let Some(issuer) = &file.issuer {
            let at = format!("{at}/issuer");
            if !has_host(issuer) || issuer.contains('#') {
                let message = "`issuer` must be a URL without a fragment";
                self.auth_problem(part, &at, message, "for example `https://auth.example.com`");
            } else if !is_secure(issuer) {
                let message = "an authorization server is asked over https only, except on this \
                               machine";
                self.auth_problem(part, &at, message, "write it with https://");
            }
        }
        if let Some(resource) = &file.resource
            && !is_absolute(resource)
        {
            let at = format!("{at}/resource");
            let message = "`resource` must be an absolute URI without a fragment";
            self.auth_problem(
                part,
                &at,
                message,
                "for example `https://mcp.example.com/mcp`",
            );
        }
        let scopes = file.scopes.as_ref().map(|scopes| scopes.0.clone());
        let scopes: Vec<String> = scopes
            .unwrap_or_default()
            .iter()
            .flat_map(|written| written.split_whitespace().map(str::to_owned))
            .collect();
        if scopes.iter().any(|scope| !scope.bytes().all(is_scope_byte)) {
            let at = format!("{at}/scopes");
            let message = "a scope has printable ASCII characters other than `\"` and `\\`";
            self.auth_problem(part, &at, message, "check the names of the scopes");
        }
        (self.problems.len() == before).then(|| ServerAuth {
            grant: file.grant,
            client_id: file.client_id.clone(),
            client_secret: self.env_secret(file.client_secret_env.as_deref()),
            private_key_file: file
                .private_key_file
                .as_ref()
                .map(|path| part.dir.join(path)),
            scopes,
            refresh_token: self.env_secret(file.refresh_token_env.as_deref()),
            issuer: file.issuer.clone(),
            resource: file.resource.clone(),
            redirect_port: file.redirect_port,
        })
    }

    /// Checks which keys a grant needs, and which have no effect.
    fn auth_keys(&mut self, part: &Part, at: &str, file: &AuthFile) {
        use AuthGrantFile::{AuthorizationCode, ClientCredentials, RefreshToken};
        let grant = match file.grant {
            ClientCredentials => "client_credentials",
            AuthorizationCode => "authorization_code",
            RefreshToken => "refresh_token",
        };
        let has_secret = file.client_secret_env.is_some();
        let has_key = file.private_key_file.is_some();
        if has_secret && has_key {
            let at = format!("{at}/private_key_file");
            let message = "`client_secret_env` and `private_key_file` cannot both be set";
            self.auth_problem(part, &at, message, "keep one of them");
        }
        let needs_id = file.grant != AuthorizationCode || has_secret || has_key;
        if needs_id && file.client_id.is_none() {
            let message = match file.grant {
                AuthorizationCode => {
                    "a client with a secret or a key needs a `client_id`".to_owned()
                }
                _ => format!("`type: {grant}` needs a `client_id`"),
            };
            let help = "the authorization server gives it to you when you register a client there";
            self.auth_problem(part, at, &message, help);
        }
        if file.grant == ClientCredentials && !has_secret && !has_key {
            self.auth_problem(
                part,
                at,
                "`type: client_credentials` needs `client_secret_env` or `private_key_file`",
                "for example `client_secret_env: MCP_CLIENT_SECRET`: the secret itself is not part \
                 of a suite",
            );
        }
        match (file.grant, &file.refresh_token_env) {
            (RefreshToken, None) => self.auth_problem(
                part,
                at,
                "`type: refresh_token` needs `refresh_token_env`",
                "for example `refresh_token_env: MCP_REFRESH_TOKEN`",
            ),
            (ClientCredentials | AuthorizationCode, Some(_)) => {
                let at = format!("{at}/refresh_token_env");
                let message = format!("`refresh_token_env` has no effect with `type: {grant}`");
                self.auth_problem(part, &at, &message, "write `type: refresh_token`");
            }
            _ => {}
        }
        if file.grant != AuthorizationCode && file.redirect_port.is_some() {
            let at = format!("{at}/redirect_port");
            let message = format!("`redirect_port` has no effect with `type: {grant}`");
            self.auth_problem(part, &at, &message, "write `type: authorization_code`");
        }
    }

    fn auth_problem(&mut self, part: &Part, at: &str, message: &str, help: &str) {
        let problem = part.document.diagnostic_at(at, message);
        self.problems.push(problem.help(help));
    }

    fn env_secret(&self, variable: Option<&str>) -> Option<EnvSecret> {
        let variable = variable?;
        let value = (self.options.env)(variable).map(|value| value.trim().to_owned());
        Some(EnvSecret {
            variable: variable.to_owned(),
            value: value.filter(|value| !value.is_empty()),
        })
    }
}

/// The characters of a scope (RFC 6749, 3.3).
fn is_scope_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'"' && byte != b'\\'
}

/// Returns true for a URI with a scheme and without a fragment.
fn is_absolute(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return false;
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme && !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic() && c != '#')
}

/// Returns true if a URL uses TLS, or stays on this machine.
fn is_secure(url: &str) -> bool {
    let url = url.trim();
    let Some(rest) = url.strip_prefix("http://") else {
        return url.starts_with("https://");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let name = host.to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_an_absolute_uri() {
        for uri in [
            "https://x.example/mcp",
            "api://1234-5678",
            "urn:example:mcp",
        ] {
            assert!(is_absolute(uri), "{uri}");
        }
        for uri in [
            "",
            "mcp",
            "/mcp",
            "https://x/#y",
            "a b:c",
            ":x",
            "x:",
            "1x:y",
        ] {
            assert!(!is_absolute(uri), "{uri}");
        }
    }

    #[test]
    fn tokens_are_sent_over_tls_or_on_this_machine() {
        for url in [
            "https://mcp.example/mcp",
            "http://127.0.0.1:3000/mcp",
            "http://localhost/mcp",
            "http://x.localhost:1/",
            "http://[::1]:3000",
        ] {
            assert!(is_secure(url), "{url}");
        }
        for url in [
            "http://mcp.example/mcp",
            "http://10.0.0.1/",
            "http://localhost.evil.example/",
            "http://127.0.0.1.evil.example/",
            "http://user@127.0.0.1/",
        ] {
            assert!(!is_secure(url), "{url}");
        }
    }
}
