//! `servers:`: how each is reached.

use std::time::Duration;

use super::Checker;
use super::words::{escape, key_error, names_a_host};
use crate::file::ServerFile;
use crate::import::Part;
use crate::suite::{HttpAddress, Server};

const DEFAULT_STARTUP: Duration = Duration::from_secs(30);

impl Checker<'_> {
    pub(super) fn servers(&mut self, part: &Part) {
        for (name, file) in &part.file.servers {
            let at = format!("/servers/{}", escape(name));
            if self.suite.servers.contains_key(name) {
                self.problems.push(key_error(
                    part,
                    &at,
                    format!("a second server called `{name}`"),
                ));
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
            ("headers", !file.headers.is_empty(), "headers are"),
            ("bearer", file.bearer.is_some(), "a bearer token is"),
        ];
        for (key, _, words) in for_http.iter().filter(|(_, written, _)| *written) {
            self.problems.push(
                part.document
                    .diagnostic_at(
                        &format!("{at}/{key}"),
                        format!("{words} for a server with a `url`"),
                    )
                    .help("a program takes its secrets from `env:`"),
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
                        "a command is run without a shell, so one text is one program name",
                    )
                    .help(format!("write it as a list: [{}]", words.join(", "))),
            );
            return None;
        }
        server.argv = command.0.iter().chain(&file.args).cloned().collect();
        Some(server)
    }

    /// The address of a server over HTTP, which nothing about a program can stand beside.
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
            let words = format!(
                "server `{name}` has a `url`, so nothing is started and `{key}` has no meaning"
            );
            self.problems
                .push(part.document.diagnostic_at(&format!("{at}/{key}"), words));
        }
        if !names_a_host(url) {
            fine = false;
            self.problems.push(
                part.document
                    .diagnostic_at(
                        &format!("{at}/url"),
                        "an address begins with http:// or https:// and names a host",
                    )
                    .help("write it as `http://127.0.0.1:3000/mcp`"),
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
        fine.then(|| HttpAddress {
            url: url.trim().to_owned(),
            headers,
        })
    }

    /// Whether a token can be sent beside these headers.
    fn bearer(&mut self, part: &Part, at: &str, token: &str, headers: &[(String, String)]) -> bool {
        let mut fine = true;
        let taken = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        if headers.iter().any(taken) {
            fine = false;
            let words = "`bearer` and a header `Authorization` are two answers to one question";
            self.problems.push(
                part.document
                    .diagnostic_at(at, words)
                    .help("keep one of them"),
            );
        }
        if !token.chars().all(|c| c.is_ascii_graphic()) {
            fine = false;
            let words = "a bearer token is one word of printable ASCII characters";
            let help = "write the token alone, without `Bearer`";
            self.problems
                .push(part.document.diagnostic_at(at, words).help(help));
        }
        fine
    }
}
