//! Finding servers: in suites, configurations of MCP clients, addresses and command lines. Every
//! command finds them here.

mod client_config;
mod server_list;

pub use client_config::ResolvedConfig;
pub use server_list::ServerList;

use std::path::{Path, PathBuf};

use mcptest_suite::suite::{HttpAddress, Server};

use crate::cli::{CatalogArgs, HttpHeader, OneServerArgs, UrlAuthArgs};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;
use crate::secrets;

/// The source of one catalog.
#[derive(Debug)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// A server, which is started or connected to.
    Server {
        /// Its name in reports.
        name: String,
        server: Box<Server>,
        /// The authorization flags, for an address of the command line.
        auth: Option<Box<UrlAuthArgs>>,
    },
}

impl Source {
    pub fn server(name: impl Into<String>, server: Server) -> Self {
        Self::Server {
            name: name.into(),
            server: Box::new(server),
            auth: None,
        }
    }

    /// A command line.
    pub fn command(argv: &[String]) -> Self {
        let first = argv.first().map_or("server", String::as_str);
        let name = Path::new(first).file_stem().map_or_else(
            || first.to_owned(),
            |stem| stem.to_string_lossy().into_owned(),
        );
        Self::server(name, Server::command(argv.to_vec(), PathBuf::from(".")))
    }

    /// An address.
    pub fn url(url: &str, headers: &[HttpHeader], auth: &UrlAuthArgs) -> Self {
        let headers = headers
            .iter()
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect();
        let address = HttpAddress {
            url: url.to_owned(),
            headers,
            ..HttpAddress::default()
        };
        let mut server = Server::command(Vec::new(), PathBuf::from("."));
        server.http = Some(address);
        Self::Server {
            name: host_of(url).to_owned(),
            server: Box::new(server),
            auth: Some(Box::new(auth.clone())),
        }
    }
}

/// Everything that the arguments name, in this order: files, servers of the suite or of the
/// configuration, addresses, the command.
///
/// # Errors
/// A suite or configuration that cannot be used, or a server that it has not.
pub fn named(args: &CatalogArgs, gates: Gates, output: &Output) -> Result<Vec<Source>, Failure> {
    secrets::hide(secrets_of(&args.header));
    let mut sources: Vec<Source> = args.tools_from.iter().cloned().map(Source::File).collect();
    let list = match (&args.suite, &args.from) {
        (Some(suite), _) => Some(ServerList::of_suite(suite, gates, output)?),
        (None, Some(config)) => Some(ServerList::of_config(config)?),
        (None, None) if !args.server.is_empty() => Some(ServerList::here(gates, output)?),
        (None, None) => None,
    };
    if let Some(list) = list {
        if args.server.is_empty() {
            sources.extend(list.all()?);
        } else {
            for name in &args.server {
                sources.push(list.find(name)?);
            }
        }
    }
    let urls = args.url.iter();
    sources.extend(urls.map(|url| Source::url(url, &args.header, &args.auth)));
    if !args.command.is_empty() {
        sources.push(Source::command(&args.command));
    }
    Ok(sources)
}

/// The one server that the arguments name: a command, an address, or a server of a suite or of a
/// configuration by its name. The name can be left out if there is one server only.
///
/// # Errors
/// No such server, or several.
pub fn one(
    name: Option<&str>,
    args: &OneServerArgs,
    gates: Gates,
    output: &Output,
) -> Result<Source, Failure> {
    secrets::hide(secrets_of(&args.header));
    if !args.command.is_empty() {
        return Ok(Source::command(&args.command));
    }
    if let Some(url) = &args.url {
        return Ok(Source::url(url, &args.header, &args.auth));
    }
    if let Some(url) = name.filter(|name| is_address(name)) {
        return Ok(Source::url(url, &args.header, &args.auth));
    }
    let list = match (&args.suite, &args.from) {
        (Some(suite), _) => ServerList::of_suite(suite, gates, output)?,
        (None, Some(config)) => ServerList::of_config(config)?,
        (None, None) => ServerList::here(gates, output)?,
    };
    match name {
        Some(name) => list.find(name),
        None => list.only(),
    }
}

/// One side of a comparison as it is typed: a file, an address, or `server:NAME`.
///
/// # Errors
/// A server without a suite or configuration, or one that it has not.
pub fn side(
    written: &str,
    list: Option<&ServerList>,
    headers: &[HttpHeader],
    auth: &UrlAuthArgs,
) -> Result<Source, Failure> {
    if is_address(written) {
        return Ok(Source::url(written, headers, auth));
    }
    match (written.strip_prefix("server:"), list) {
        (Some(name), Some(list)) => list.find(name),
        (Some(name), None) => Err(Failure::Message(format!(
            "`server:{name}` is a server of a suite, and no suite is named: give `--suite FILE`, \
             or `--from CONFIG`"
        ))),
        (None, _) => Ok(Source::File(PathBuf::from(written))),
    }
}

/// Returns true for an address in place of a name or a path.
pub fn is_address(written: &str) -> bool {
    written.starts_with("http://") || written.starts_with("https://")
}

/// The values of headers, whole and without their scheme (`Bearer …`).
pub fn secrets_of(headers: &[HttpHeader]) -> Vec<String> {
    let mut secrets = Vec::new();
    for header in headers {
        secrets.extend(credentials(&header.value));
    }
    secrets
}

/// The value of a header that may be a credential, whole and without its scheme.
fn credentials(value: &str) -> Vec<String> {
    let credential = value
        .split_once(' ')
        .map(|(_, credential)| credential.trim());
    let mut secrets: Vec<String> = credential.map(str::to_owned).into_iter().collect();
    secrets.push(value.to_owned());
    secrets.retain(|secret| secret.len() >= 4);
    secrets
}

/// Host and port of an address, which is how reports call the server.
pub fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// An address as it is shown: queries carry keys now and then.
pub fn shown(written: &str) -> String {
    match written.split_once('?') {
        Some((before, _)) if is_address(written) => format!("{before}?…"),
        _ => written.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_a_file_an_address_or_a_server() {
        let auth = UrlAuthArgs::default();
        let kind = |written: &str| match side(written, None, &[], &auth) {
            Ok(Source::File(path)) => path.display().to_string(),
            Ok(Source::Server { name, server, .. }) => {
                format!(
                    "{name} at {}",
                    server.http.map_or_else(String::new, |http| http.url)
                )
            }
            Err(_) => "refused".to_owned(),
        };
        assert_eq!(kind("tools.json"), "tools.json");
        assert_eq!(kind("./server:x"), "./server:x");
        assert_eq!(
            kind("http://127.0.0.1:3000/mcp?key=1"),
            "127.0.0.1:3000 at http://127.0.0.1:3000/mcp?key=1"
        );
        assert_eq!(kind("server:weather"), "refused");
        assert_eq!(shown("https://host/mcp?key=1"), "https://host/mcp?…");
        assert_eq!(shown("what?.json"), "what?.json");
    }

    #[test]
    fn the_values_of_headers_are_secrets_with_and_without_their_scheme() {
        let header = |value: &str| HttpHeader {
            name: "Authorization".to_owned(),
            value: value.to_owned(),
        };
        assert_eq!(
            secrets_of(&[header("Bearer s3cret"), header("abc")]),
            ["s3cret", "Bearer s3cret"]
        );
    }
}
