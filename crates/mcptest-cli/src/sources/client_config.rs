//! The servers of a client's configuration, with the values of this process's environment.

use std::path::{Path, PathBuf};

use mcptest_config::{ClientConfig, ConfiguredServer, Missing, ServerTarget, TemplateValues};
use mcptest_redact::redact::{is_searchable, is_secret_name};
use mcptest_suite::suite::{HttpAddress, Server};

use super::credentials;
use crate::failure::Failure;
use crate::files;
use crate::secrets;

/// A configuration whose values are inserted.
pub struct ResolvedConfig {
    /// The file as written.
    pub config: ClientConfig,
    /// The folder in which commands run, as it is named from the current one.
    pub folder: PathBuf,
    /// Its servers, in the order of the file.
    pub servers: Vec<ResolvedServer>,
}

/// A server of a configuration.
pub struct ResolvedServer {
    pub name: String,
    /// The server, or the reason why it cannot be started.
    pub server: Result<Server, String>,
    /// True if the client does not start it.
    pub disabled: bool,
}

impl ResolvedConfig {
    /// Reads a configuration. Its secrets are masked from now on.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        Self::read_with(path, &|name| std::env::var(name).ok())
    }

    /// Reads a configuration, with values of a function in place of the environment.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn read_with(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let bytes = files::read(path)?;
        let config = mcptest_config::read(&path.display().to_string(), &bytes)?;
        let folder = config.format.folder(path);
        let servers = config
            .servers
            .iter()
            .map(|server| ResolvedServer {
                name: server.name.clone(),
                server: resolve(server, &config, &folder, env),
                disabled: server.disabled,
            })
            .collect();
        Ok(Self {
            config,
            folder,
            servers,
        })
    }
}

fn resolve(
    configured: &ConfiguredServer,
    config: &ClientConfig,
    folder: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Server, String> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let project = absolute.to_string_lossy();
    let values = TemplateValues {
        env,
        project_folder: &project,
    };
    let missing = |missing: Missing| {
        let input = config
            .inputs
            .iter()
            .find(|input| input.variable == missing.0);
        match input.and_then(|input| input.description.as_deref()) {
            Some(question) => format!("{missing}; {} asks for it: {question}", config.format.title),
            None => missing.to_string(),
        }
    };
    match &configured.target {
        ServerTarget::Unsupported { reason } => Err(reason.clone()),
        ServerTarget::Http { url, headers } => {
            let url = url.resolve(&values).map_err(missing)?;
            let mut resolved = Vec::new();
            for (name, value) in headers {
                let value = value.resolve(&values).map_err(missing)?;
                secrets::hide(credentials(&value));
                resolved.push((name.clone(), value));
            }
            let mut server = Server::command(Vec::new(), folder.to_owned());
            server.http = Some(HttpAddress {
                url,
                headers: resolved,
                ..HttpAddress::default()
            });
            Ok(server)
        }
        ServerTarget::Command {
            argv,
            env: variables,
            env_file,
            cwd,
        } => {
            let resolve =
                |template: &mcptest_config::Template| template.resolve(&values).map_err(missing);
            let argv = argv.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
            let mut environment = Vec::new();
            if let Some(file) = env_file {
                let file = absolute.join(resolve(file)?);
                let text = std::fs::read_to_string(&file)
                    .map_err(|error| files::unreadable(&file, &error))?;
                environment.extend(env_file_entries(&text));
            }
            for (name, value) in variables {
                environment.push((name.clone(), resolve(value)?));
            }
            let is_hidden = |(name, value): &&(String, String)| {
                is_searchable(value) && (is_secret_name(name) || !is_setting(value))
            };
            let hidden = environment.iter().filter(is_hidden);
            secrets::hide(hidden.map(|(_, value)| value.clone()));
            let cwd = match cwd {
                Some(cwd) => folder.join(resolve(cwd)?),
                None => folder.to_owned(),
            };
            let mut server = Server::command(argv, cwd);
            server.env = environment;
            Ok(server)
        }
    }
}

/// Returns true for a value that no credential looks like: a path, an address without a user, or
/// a sentence.
fn is_setting(value: &str) -> bool {
    let is_path = value.starts_with(['/', '.', '~']) || value.contains(' ');
    let is_plain_address = super::is_address(value) && !value.contains('@') && !value.contains('?');
    is_path || is_plain_address
}

/// The entries of a file with lines `NAME=value`.
fn env_file_entries(text: &str) -> Vec<(String, String)> {
    let entries = text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=')?;
        let value = value.trim();
        let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
        let name = name.trim();
        (!name.is_empty() && !name.starts_with('#')).then(|| (name.to_owned(), value.to_owned()))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn env_files_have_names_and_values() {
        let text = "# comment\nA=1\nexport B = 'two words'\nC=\"x=y\"\n\nnonsense\n=z\n";
        let found = env_file_entries(text);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, [("A", "1"), ("B", "two words"), ("C", "x=y")]);
    }

    #[test]
    fn values_come_from_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".mcp.json");
        std::fs::write(
            &path,
            r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${CFG_KEY}"}}, "b": {"command": "${CFG_NOPE}"}, "c": {"url": "https://h/${CFG_KEY}"}}}"#,
        )
        .unwrap();
        let config = ResolvedConfig::read_with(&path, &|name| {
            (name == "CFG_KEY").then(|| "value-1".to_owned())
        })
        .unwrap_or_else(|_| panic!("refused"));
        let shown: Vec<String> = config
            .servers
            .iter()
            .map(|server| match &server.server {
                Ok(found) => match &found.http {
                    Some(http) => http.url.clone(),
                    None => format!("{:?} {:?}", found.argv, found.env),
                },
                Err(reason) => reason.clone(),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "[\"x\"] [(\"K\", \"value-1\")]",
                "the environment variable CFG_NOPE is not set",
                "https://h/value-1"
            ]
        );
        assert_eq!(config.folder, folder.path());
    }
}
