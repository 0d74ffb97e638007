//! The servers of a suite or of a configuration, by name.

use std::path::{Path, PathBuf};

use mcptest_suite::Purpose;
use mcptest_suite::suite::Server;
use mcptest_yaml::suggest;

use super::Source;
use super::client_config::ResolvedConfig;
use crate::cli::UrlAuthArgs;
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;
use crate::suites;

/// The servers of a suite or of a client's configuration.
pub struct ServerList {
    /// `the suite`, or the configuration's file.
    origin: String,
    servers: Vec<Listed>,
}

/// A server by its name.
struct Listed {
    name: String,
    /// The server, or the reason why it cannot be started.
    server: Result<Server, String>,
    /// True if all servers together leave it out.
    disabled: bool,
    /// A configuration names no authorization: the login of an address is used, if there is one.
    auth: Option<UrlAuthArgs>,
}

const NOTHING_HERE: &str = "there is neither mcptest.yaml nor mcptest.yml here, and no \
     configuration of an MCP client";

impl ServerList {
    /// The servers of a suite. Its warnings are printed.
    ///
    /// # Errors
    /// All problems of the suite.
    pub fn of_suite(path: &Path, gates: Gates, output: &Output) -> Result<Self, Failure> {
        let loaded = suites::load_one(path, Purpose::Run, gates)?;
        output.problems(&loaded.warnings);
        let servers = loaded.suite.servers.into_iter();
        Ok(Self {
            origin: "the suite".to_owned(),
            servers: servers
                .map(|(name, server)| Listed {
                    name,
                    server: Ok(server),
                    disabled: false,
                    auth: None,
                })
                .collect(),
        })
    }

    /// The servers of a client's configuration.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn of_config(path: &Path) -> Result<Self, Failure> {
        let config = ResolvedConfig::read(path)?;
        Ok(Self {
            origin: format!("`{}`", path.display()),
            servers: config
                .servers
                .into_iter()
                .map(|found| Listed {
                    name: found.name,
                    server: found.server,
                    disabled: found.disabled,
                    auth: Some(UrlAuthArgs::default()),
                })
                .collect(),
        })
    }

    /// The servers of a file: a suite, or a configuration by its extension.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn of_file(path: &Path, gates: Gates, output: &Output) -> Result<Self, Failure> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("json" | "jsonc" | "toml") => Self::of_config(path),
            _ => Self::of_suite(path, gates, output),
        }
    }

    /// The servers of the current folder: of the suite that `run` would find, else of the first
    /// configuration of a client.
    ///
    /// # Errors
    /// Neither is there, or it has problems.
    pub fn here(gates: Gates, output: &Output) -> Result<Self, Failure> {
        if let Some(suite) = suites::find(&[])
            .ok()
            .and_then(|found| found.into_iter().next())
        {
            return Self::of_suite(&suite, gates, output);
        }
        let configs = mcptest_config::PROJECT_FILES.iter().map(PathBuf::from);
        match configs.into_iter().find(|path| path.is_file()) {
            Some(config) => Self::of_config(&config),
            None => Err(Failure::Message(format!(
                "{NOTHING_HERE}; give `--suite FILE`, `--from CONFIG`, `--url URL`, or \
                 `-- command args…`"
            ))),
        }
    }

    /// The server with this name.
    ///
    /// # Errors
    /// There is none, or it cannot be started.
    pub fn find(&self, name: &str) -> Result<Source, Failure> {
        let Some(found) = self.servers.iter().find(|listed| listed.name == name) else {
            let names = self.names();
            let hint = match suggest(name, names.iter().copied()) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            };
            return Err(Failure::Message(format!(
                "{} has no server `{name}`; its servers are {}{hint}",
                self.origin,
                names.join(", ")
            )));
        };
        found.source(&self.origin)
    }

    /// All servers that are not disabled.
    ///
    /// # Errors
    /// One of them cannot be started.
    pub fn all(&self) -> Result<Vec<Source>, Failure> {
        let enabled = self.servers.iter().filter(|listed| !listed.disabled);
        enabled.map(|listed| listed.source(&self.origin)).collect()
    }

    /// The server, if there is one only.
    ///
    /// # Errors
    /// There are none or several.
    pub fn only(&self) -> Result<Source, Failure> {
        match self.servers.as_slice() {
            [only] => only.source(&self.origin),
            [] => Err(Failure::Message(format!("{} has no servers", self.origin))),
            _ => Err(Failure::Message(format!(
                "{} has several servers: name one of {}",
                self.origin,
                self.names().join(", ")
            ))),
        }
    }

    fn names(&self) -> Vec<&str> {
        self.servers
            .iter()
            .map(|listed| listed.name.as_str())
            .collect()
    }
}

impl Listed {
    fn source(&self, origin: &str) -> Result<Source, Failure> {
        match &self.server {
            Ok(server) => Ok(Source::Server {
                name: self.name.clone(),
                server: Box::new(server.clone()),
                auth: self.auth.clone().map(Box::new),
            }),
            Err(reason) => Err(Failure::Message(format!(
                "server `{}` of {origin} cannot be started: {reason}",
                self.name
            ))),
        }
    }
}
