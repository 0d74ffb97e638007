//! The servers of a configuration as data.

use crate::template::Template;

/// A server of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredServer {
    /// Its name.
    pub name: String,
    /// The way to reach it.
    pub target: ServerTarget,
    /// True if the client does not start it.
    pub disabled: bool,
}

/// The way to reach a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTarget {
    /// A program that the client starts.
    Command {
        /// The program and its arguments.
        argv: Vec<Template>,
        /// Variables of its environment.
        env: Vec<(String, Template)>,
        /// A file with further variables.
        env_file: Option<Template>,
        /// Its working directory.
        cwd: Option<Template>,
    },
    /// An address that speaks streamable HTTP.
    Http {
        /// The address.
        url: Template,
        /// Headers of every request.
        headers: Vec<(String, Template)>,
    },
    /// Something that mcptest cannot connect to.
    Unsupported {
        /// The reason.
        reason: String,
    },
}

impl ServerTarget {
    /// All templates.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Command {
                argv,
                env,
                env_file,
                cwd,
            } => {
                let env = env.iter().map(|(_, value)| value);
                argv.iter().chain(env).chain(env_file).chain(cwd).collect()
            }
            Self::Http { url, headers } => {
                let headers = headers.iter().map(|(_, value)| value);
                std::iter::once(url).chain(headers).collect()
            }
            Self::Unsupported { .. } => Vec::new(),
        }
    }
}

/// A value that a client asks its user for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The environment variable that has the value here.
    pub variable: String,
    /// The question.
    pub description: Option<String>,
    /// True if the answer must not be shown.
    pub password: bool,
}
