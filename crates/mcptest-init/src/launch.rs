//! The way to reach a server, as a suite writes it: without secrets.
//!
//! A credential in an argument, a variable, a header or an address becomes a reference to an
//! environment variable. [`Launch::variables`] are the names that must be set before the suite
//! runs.

use mcptest_config::{ServerTarget, Template, TemplatePiece};
use mcptest_redact::redact::{Redactor, is_secret_name};
use mcptest_yaml::write::escape_references;
use serde_json::Value;

/// Values of variables that are settings, not secrets.
const SETTINGS: [&str; 28] = [
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "debug",
    "info",
    "notice",
    "warn",
    "warning",
    "error",
    "trace",
    "verbose",
    "silent",
    "production",
    "development",
    "prod",
    "dev",
    "test",
    "staging",
    "local",
    "stdio",
    "http",
    "sse",
    "readonly",
    "default",
    "none",
];

/// Headers whose values are never secrets.
const PLAIN_HEADERS: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];

/// A server in the words of a suite. References to variables are written as `${NAME}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// The program and its arguments; empty for an address.
    pub argv: Vec<String>,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// Its working directory, relative to the suite.
    pub cwd: Option<String>,
    /// The address.
    pub url: Option<String>,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// The way to a token for the address.
    pub auth: Option<Value>,
    /// A file with further variables, which the suite does not read.
    pub env_file: Option<String>,
    /// The project's folder in arguments.
    project: String,
    /// The variables without a default that the above refer to, in the order of their use.
    pub variables: Vec<String>,
}

impl Launch {
    /// A command line. `server` is the name of the server, for names of variables.
    #[must_use]
    pub fn command(server: &str, argv: &[String], cwd: Option<String>) -> Self {
        let mut launch = Self {
            cwd,
            ..Self::default()
        };
        let argv: Vec<Template> = argv.iter().map(Template::literal).collect();
        launch.set_argv(server, &argv);
        launch
    }

    /// An address with headers.
    #[must_use]
    pub fn http(server: &str, url: &str, headers: &[(String, String)]) -> Self {
        let mut launch = Self::default();
        launch.set_url(server, &Template::literal(url));
        for (name, value) in headers {
            launch.add_header(server, name, &Template::literal(value));
        }
        launch
    }

    /// A server of a client's configuration. `folder` is the project's folder, relative to the
    /// suite.
    #[must_use]
    pub fn configured(server: &str, target: &ServerTarget, folder: &str) -> Self {
        let mut launch = Self {
            project: match folder {
                "." => "${CONFIG_DIR}".to_owned(),
                folder => format!("${{CONFIG_DIR}}/{folder}"),
            },
            ..Self::default()
        };
        match target {
            ServerTarget::Command {
                argv,
                env,
                env_file,
                cwd,
            } => {
                launch.set_argv(server, argv);
                for (name, value) in env {
                    let written = launch.variable_value(name, value);
                    launch.env.push((name.clone(), written));
                }
                launch.env_file = env_file.as_ref().map(|file| launch.written(file, folder));
                let cwd = cwd.as_ref().map(|cwd| launch.written(cwd, folder));
                launch.cwd = match cwd {
                    Some(cwd) if cwd.starts_with('/') => Some(cwd),
                    Some(cwd) if folder == "." => Some(cwd),
                    // The project's folder is already part of it.
                    Some(cwd) if cwd.starts_with(folder) => Some(cwd),
                    Some(cwd) => Some(format!("{folder}/{cwd}")),
                    None if folder == "." => None,
                    None => Some(folder.to_owned()),
                };
            }
            ServerTarget::Http { url, headers } => {
                launch.set_url(server, url);
                for (name, value) in headers {
                    launch.add_header(server, name, value);
                }
            }
            ServerTarget::Unsupported { .. } => {}
        }
        launch
    }

    fn set_argv(&mut self, server: &str, argv: &[Template]) {
        let mut flag: Option<String> = None;
        for template in argv {
            let Some(argument) = template.as_literal() else {
                let written = self.written(template, &self.project.clone());
                self.argv.push(written);
                flag = None;
                continue;
            };
            let secret_flag = flag.take().filter(|_| !argument.starts_with('-'));
            let written = match secret_flag {
                Some(name) => self.refer(&name),
                None => self.argument(server, &argument),
            };
            self.argv.push(written);
            let is_flag = argument.starts_with('-') && !argument.contains(['=', ' ']);
            if is_flag && is_secret_name(&argument) {
                flag = Some(variable_name(&argument));
            }
        }
    }

    /// An argument by itself.
    fn argument(&mut self, server: &str, argument: &str) -> String {
        // `--api-key=x` and `API_KEY=x`.
        if let Some((name, value)) = argument.split_once('=')
            && is_secret_name(name)
            && !value.is_empty()
            && !name.contains([' ', '/', '?'])
        {
            return format!(
                "{}={}",
                escape_references(name),
                self.refer(&variable_name(name))
            );
        }
        // `Authorization: Bearer x`, as bridges take it.
        if let Some((name, value)) = argument.split_once(':')
            && is_secret_name(name)
            && !value.trim().is_empty()
            && !name.contains([' ', '/'])
        {
            let space = if value.starts_with(' ') { " " } else { "" };
            let value = self.credential(server, name, value.trim());
            return format!("{name}:{space}{value}");
        }
        if argument.contains("://") {
            return self.address(server, argument);
        }
        if is_clean(argument) {
            escape_references(argument)
        } else {
            self.refer(&variable_name(&format!("{server}_secret")))
        }
    }

    fn set_url(&mut self, server: &str, url: &Template) {
        let written = match url.as_literal() {
            Some(url) => self.address(server, &url),
            None => self.written(url, "."),
        };
        self.url = Some(written);
    }

    /// An address without credentials: of a user, or in its query.
    fn address(&mut self, server: &str, url: &str) -> String {
        let after = url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return self.refer(&variable_name(&format!("{server}_url")));
        }
        let (base, query) = match url.split_once('?') {
            Some((base, query)) => (base, Some(query)),
            None => (url, None),
        };
        if !is_clean(base) {
            return self.refer(&variable_name(&format!("{server}_url")));
        }
        let Some(query) = query else {
            return escape_references(base);
        };
        let parts: Vec<String> = query
            .split('&')
            .map(|part| match part.split_once('=') {
                Some((name, value))
                    if !value.is_empty() && (is_secret_name(name) || !is_clean(value)) =>
                {
                    format!("{name}={}", self.refer(&variable_name(name)))
                }
                _ => escape_references(part),
            })
            .collect();
        format!("{}?{}", escape_references(base), parts.join("&"))
    }

    fn add_header(&mut self, server: &str, name: &str, value: &Template) {
        let written = match value.as_literal() {
            Some(text) if PLAIN_HEADERS.contains(&name.to_lowercase().as_str()) => {
                escape_references(&text)
            }
            Some(text) => self.credential(server, name, &text),
            None => self.written(value, "."),
        };
        self.headers.push((name.to_owned(), written));
    }

    /// The value of a header, with its scheme.
    fn credential(&mut self, server: &str, name: &str, value: &str) -> String {
        let scheme = value.split_once(' ').map(|(scheme, _)| scheme);
        let is_scheme = |scheme: &&str| {
            ["bearer", "basic", "token", "apikey"].contains(&scheme.to_lowercase().as_str())
        };
        match scheme.filter(is_scheme) {
            Some(scheme) => {
                let variable = variable_name(&format!("{server}_token"));
                format!("{scheme} {}", self.refer(&variable))
            }
            None => {
                let variable = variable_name(&format!("{server}_{name}"));
                self.refer(&variable)
            }
        }
    }

    /// The value of a variable: a setting as it is, everything else as a reference to a variable
    /// of the same name.
    fn variable_value(&mut self, name: &str, value: &Template) -> String {
        match value.as_literal() {
            Some(text) if is_setting(name, &text) => escape_references(&text),
            Some(_) => self.refer(&variable_name(name)),
            None if is_secret_name(name) => {
                self.written(&without_defaults(value), &self.project.clone())
            }
            None => self.written(value, &self.project.clone()),
        }
    }

    /// A template with its references.
    fn written(&mut self, template: &Template, folder: &str) -> String {
        let mut out = String::new();
        for piece in template.pieces() {
            match piece {
                TemplatePiece::Text(text) => out.push_str(&escape_references(text)),
                TemplatePiece::Variable { name, default } => match default {
                    Some(default) if is_clean(default) && !default.contains('}') => {
                        out.push_str(&format!("${{{name}:-{default}}}"));
                    }
                    _ => {
                        let reference = self.refer(name);
                        out.push_str(&reference);
                    }
                },
                TemplatePiece::ProjectFolder => out.push_str(folder),
                TemplatePiece::HomeFolder => {
                    let reference = self.refer("HOME");
                    out.push_str(&reference);
                }
            }
        }
        out
    }

    fn refer(&mut self, name: &str) -> String {
        // Every shell sets this one.
        if name != "HOME" && !self.variables.iter().any(|known| known == name) {
            self.variables.push(name.to_owned());
        }
        format!("${{{name}}}")
    }
}

/// The template without the defaults of its variables, which may be secrets.
fn without_defaults(template: &Template) -> Template {
    let pieces = template.pieces().iter().map(|piece| match piece {
        TemplatePiece::Variable { name, .. } => TemplatePiece::Variable {
            name: name.clone(),
            default: None,
        },
        other => other.clone(),
    });
    pieces.collect()
}

/// Returns true for a value that is not a secret: a switch, a level, a port.
fn is_setting(name: &str, value: &str) -> bool {
    let is_code = ["pin", "otp", "code"]
        .iter()
        .any(|word| name.to_lowercase().contains(word));
    let is_number = !is_code && value.len() <= 5 && value.bytes().all(|byte| byte.is_ascii_digit());
    !is_secret_name(name)
        && (value.is_empty() || is_number || SETTINGS.contains(&value.to_lowercase().as_str()))
}

fn is_clean(text: &str) -> bool {
    Redactor::new(std::iter::empty()).is_clean(text)
}

/// The name of an environment variable: `--api-key` is `API_KEY`.
fn variable_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_uppercase());
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_end_matches('_');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.to_owned()
    } else {
        format!("SECRET_{name}").trim_end_matches('_').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn command(argv: &[&str]) -> Launch {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        Launch::command("github", &argv, None)
    }

    #[test]
    fn credentials_in_arguments_become_references() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let cases: [(&[&str], &[&str], &[&str]); 8] = [
            (
                &["npx", "-y", "pkg", "--flag", "x"],
                &["npx", "-y", "pkg", "--flag", "x"],
                &[],
            ),
            (
                &["x", "--api-key", "s3cret"],
                &["x", "--api-key", "${API_KEY}"],
                &["API_KEY"],
            ),
            (
                &["x", "--token=s3cret"],
                &["x", "--token=${TOKEN}"],
                &["TOKEN"],
            ),
            (
                &["docker", "run", "-e", "MY_TOKEN=s3cret", "img"],
                &["docker", "run", "-e", "MY_TOKEN=${MY_TOKEN}", "img"],
                &["MY_TOKEN"],
            ),
            (
                &["x", &token],
                &["x", "${GITHUB_SECRET}"],
                &["GITHUB_SECRET"],
            ),
            (
                &["x", "postgresql://u:p@h/db"],
                &["x", "${GITHUB_URL}"],
                &["GITHUB_URL"],
            ),
            (
                &["x", "https://h/mcp?api_key=s3cret&a=b"],
                &["x", "https://h/mcp?api_key=${API_KEY}&a=b"],
                &["API_KEY"],
            ),
            (
                &[
                    "npx",
                    "mcp-remote",
                    "https://h",
                    "--header",
                    "Authorization: Bearer s3cret",
                ],
                &[
                    "npx",
                    "mcp-remote",
                    "https://h",
                    "--header",
                    "Authorization: Bearer ${GITHUB_TOKEN}",
                ],
                &["GITHUB_TOKEN"],
            ),
        ];
        for (argv, written, variables) in cases {
            let launch = command(argv);
            assert_eq!(launch.argv, written);
            assert_eq!(launch.variables, variables);
        }
        assert_eq!(command(&["x", "${HOME}"]).argv, ["x", "$${HOME}"]);
        // A flag without a value.
        assert_eq!(
            command(&["x", "--token", "--other"]).argv,
            ["x", "--token", "--other"]
        );
    }

    #[test]
    fn headers_and_addresses_have_no_credentials() {
        let headers = [
            ("Authorization".to_owned(), "Bearer s3cret".to_owned()),
            ("X-Api-Key".to_owned(), "s3cret".to_owned()),
            ("Accept".to_owned(), "text/plain".to_owned()),
        ];
        let launch = Launch::http("my-api", "https://u:p@h/mcp", &headers);
        assert_eq!(launch.url.as_deref(), Some("${MY_API_URL}"));
        let written: Vec<&str> = launch
            .headers
            .iter()
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(
            written,
            [
                "Bearer ${MY_API_TOKEN}",
                "${MY_API_X_API_KEY}",
                "text/plain"
            ]
        );
        assert_eq!(
            launch.variables,
            ["MY_API_URL", "MY_API_TOKEN", "MY_API_X_API_KEY"]
        );
    }

    fn configured(json: &str, folder: &str) -> Launch {
        let text = format!("{{\"servers\": {{\"s\": {json}}}}}");
        let config = mcptest_config::read(".vscode/mcp.json", text.as_bytes()).unwrap();
        Launch::configured("s", &config.servers[0].target, folder)
    }

    #[test]
    fn variables_of_configurations_become_references() {
        let launch = configured(
            r#"{"command": "x", "args": ["${workspaceFolder}/s.py", "${env:DIR}"], "env": {"KEY": "s3cret", "DEBUG": "true", "PORT": "3000", "MODE": "weird value", "PIN": "1234", "API_TOKEN": "off"}}"#,
            ".",
        );
        assert_eq!(launch.argv, ["x", "${CONFIG_DIR}/s.py", "${DIR}"]);
        let env: Vec<String> = launch
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            env,
            [
                "KEY=${KEY}",
                "DEBUG=true",
                "PORT=3000",
                "MODE=${MODE}",
                "PIN=${PIN}",
                "API_TOKEN=${API_TOKEN}"
            ]
        );
        assert_eq!(launch.variables, ["DIR", "KEY", "MODE", "PIN", "API_TOKEN"]);
        assert_eq!(launch.cwd, None);
    }

    #[test]
    fn folders_are_relative_to_the_suite() {
        let cwd = |json: &str, folder: &str| configured(json, folder).cwd;
        assert_eq!(
            cwd(r#"{"command": "x"}"#, "../.."),
            Some("../..".to_owned())
        );
        assert_eq!(
            cwd(r#"{"command": "x", "cwd": "sub"}"#, ".."),
            Some("../sub".to_owned())
        );
        assert_eq!(
            cwd(r#"{"command": "x", "cwd": "${workspaceFolder}/sub"}"#, ".."),
            Some("../sub".to_owned())
        );
        let below = configured(
            r#"{"command": "x", "args": ["${workspaceFolder}/s.py"]}"#,
            "..",
        );
        assert_eq!(below.argv, ["x", "${CONFIG_DIR}/../s.py"]);
        assert_eq!(
            cwd(r#"{"command": "x", "cwd": "/abs"}"#, ".."),
            Some("/abs".to_owned())
        );
        assert_eq!(
            cwd(r#"{"command": "x", "cwd": "sub"}"#, "."),
            Some("sub".to_owned())
        );
    }

    proptest! {
        #[test]
        fn a_secret_variable_is_never_written(value in "[a-zA-Z0-9]{6,20}") {
            let launch = configured(&format!(r#"{{"command": "x", "env": {{"A_KEY": "{value}"}}}}"#), ".");
            prop_assert_eq!(&launch.env[0].1, "${A_KEY}");
        }
    }
}
