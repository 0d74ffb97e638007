//! `servers:`: programs and addresses.

use std::time::Duration;

use super::Checker;
use super::diagnostics::{escape, has_host, key_error};
use crate::file::{LifecycleFile, ServerFile, TransportFile};
use crate::import::Part;
use crate::suite::{HttpAddress, Server};

const DEFAULT_STARTUP: Duration = Duration::from_secs(30);

impl Checker<'_> {
    pub(super) fn servers(&mut self, part: &Part) {
        for (name, file) in &part.file.servers {
            let at = format!("/servers/{}", escape(name));
            if self.suite.servers.contains_key(name) {
                self.problems
                    .push(key_error(part, &at, format!("duplicate server `{name}`")));
                continue;
            }
            if let Some(server) = self.server(part, &at, name, file) {
                self.suite.servers.insert(name.clone(), server);
            }
        }
    }

    fn server(&mut self, part: &Part, at: &str, name: &str, file: &ServerFile) -> Option<Server> {
        let mut server = Server {
            http: None,
            argv: Vec::new(),
            env: file
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.0.clone()))
                .collect(),
            cwd: part.dir.join(file.cwd.as_deref().unwrap_or("")),
            timeout: self.duration(part, &format!("{at}/timeout"), file.timeout.as_ref()),
            startup_timeout: self
                .duration(
                    part,
                    &format!("{at}/startup_timeout"),
                    file.startup_timeout.as_ref(),
                )
                .unwrap_or(DEFAULT_STARTUP),
            lifecycle: file.lifecycle,
            isolation: file.isolation,
        };
        if let Some(url) = &file.url {
            server.http = self.http(part, at, name, file, url);
            return server.http.is_some().then_some(server);
        }
        let for_http = [
            ("headers", !file.headers.is_empty()),
            ("bearer", file.bearer.is_some()),
            ("auth", file.auth.is_some()),
            ("transport", file.transport != TransportFile::Auto),
        ];
        for (key, _) in for_http.iter().filter(|(_, written)| *written) {
            let help = match *key {
                "transport" => "a program is reached over its standard streams",
                _ => "pass secrets to a program through `env:`",
            };
            self.problems.push(
                part.document
                    .diagnostic_at(
                        &format!("{at}/{key}"),
                        format!("`{key}` applies only to a server with a `url`"),
                    )
                    .help(help),
            );
        }
        let Some(command) = &file.command else {
            self.problems.push(
                key_error(part, at, format!("server `{name}` has no `command` and no `url`"))
                    .help("write `command: [\"program\", \"argument\"]`, or `url: http://127.0.0.1:3000/mcp`"),
            );
            return None;
        };
        if let ([only], true) = (command.0.as_slice(), file.args.is_empty())
            && only.contains(char::is_whitespace)
        {
            let words: Vec<String> = only
                .split_whitespace()
                .map(|word| format!("\"{word}\""))
                .collect();
            self.problems.push(
                part.document
                    .diagnostic_at(
                        &format!("{at}/command"),
                        "a command runs without a shell, so a single string is the name of a program",
                    )
                    .help(format!("write it as a list: [{}]", words.join(", "))),
            );
            return None;
        }
        server.argv = command.0.iter().chain(&file.args).cloned().collect();
        Some(server)
    }

    /// The address of a server over HTTP. Keys for a program cannot be combined with it.
    fn http(
        &mut self,
        part: &Part,
        at: &str,
        name: &str,
        file: &ServerFile,
        url: &str,
    ) -> Option<HttpAddress> {
        let for_programs = [
            ("command", file.command.is_some()),
            ("args", !file.args.is_empty()),
            ("env", !file.env.is_empty()),
            ("cwd", file.cwd.is_some()),
        ];
        let mut fine = true;
        for (key, _) in for_programs.iter().filter(|(_, written)| *written) {
            fine = false;
            let message = format!(
                "server `{name}` has a `url`, so no program is started and `{key}` has no effect"
            );
            self.problems
                .push(part.document.diagnostic_at(&format!("{at}/{key}"), message));
        }
        if !has_host(url) {
            fine = false;
            self.problems.push(
                part.document
                    .diagnostic_at(
                        &format!("{at}/url"),
                        "a URL must start with http:// or https:// and have a host",
                    )
                    .help("for example `http://127.0.0.1:3000/mcp`"),
            );
        }
        let mut headers: Vec<(String, String)> = file
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.0.clone()))
            .collect();
        if let Some(token) = &file.bearer {
            fine &= self.bearer(part, &format!("{at}/bearer"), token, &headers);
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        if file.transport == TransportFile::Sse && file.lifecycle == LifecycleFile::Discover {
            fine = false;
            let message =
                "HTTP+SSE has no `server/discover`, so it cannot be `lifecycle: discover`";
            let at = format!("{at}/transport");
            self.problems
                .push(part.document.diagnostic_at(&at, message));
        }
        let mut auth = None;
        if let Some(written) = &file.auth {
            let checked = self.auth(part, at, url, written, &headers);
            fine &= checked.is_some();
            auth = checked.map(Box::new);
        }
        fine.then(|| HttpAddress {
            url: url.trim().to_owned(),
            headers,
            transport: file.transport,
            auth,
        })
    }

    /// Returns true if a token can be sent with these headers.
    fn bearer(&mut self, part: &Part, at: &str, token: &str, headers: &[(String, String)]) -> bool {
        let mut fine = true;
        let taken = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        if headers.iter().any(taken) {
            fine = false;
            let message = "`bearer` and the header `Authorization` cannot both be set";
            self.problems.push(
                part.document
                    .diagnostic_at(at, message)
                    .help("keep one of them"),
            );
        }
        if !token.chars().all(|c| c.is_ascii_graphic()) {
            fine = false;
            let message = "a bearer token must be printable ASCII characters without spaces";
            let help = "write the token alone, without `Bearer`";
            self.problems
                .push(part.document.diagnostic_at(at, message).help(help));
        }
        fine
    }
}
