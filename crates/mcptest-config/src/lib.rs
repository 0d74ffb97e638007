//! The configuration files of MCP clients: which servers they start, and how.
//!
//! [`read`] turns the text of a file into a [`ClientConfig`]. Every format is one file in
//! `format/`, named as its users name it, and one line in [`FORMATS`]. Values stay
//! [`Template`]s: a client inserts variables of its environment, so a secret can stay where it is.
//!
//! Nothing here reads a file or the environment.

mod client_config;
mod configured_server;
mod entry;
mod format;
mod jsonc;
mod template;
#[cfg(test)]
mod testing;
mod toml_tree;

pub use client_config::ClientConfig;
pub use configured_server::{ConfiguredServer, Input, ServerTarget};
pub use format::{FORMATS, Format, PROJECT_FILES, find};
pub use template::{Missing, Template, TemplatePiece, TemplateValues};

use mcptest_yaml::{Diagnostic, Diagnostics, Severity};

/// The largest file that is read, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Reads a configuration file. `name` is its path: it is shown in messages, and the formats are
/// recognized by it.
///
/// # Errors
/// Every problem, each with its place.
pub fn read(name: &str, bytes: &[u8]) -> Result<ClientConfig, Diagnostics> {
    let refuse = |message: String| {
        Diagnostics::from(Diagnostic::new(Severity::Error, message).in_file(name, None))
    };
    if bytes.len() > MAX_BYTES {
        let max = MAX_BYTES >> 20;
        return Err(refuse(format!("the file is larger than {max} MiB")));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        refuse(format!(
            "not UTF-8: byte {} cannot be read",
            error.valid_up_to() + 1
        ))
    })?;
    let document = if is_toml(name) {
        toml_tree::parse(name, text)?
    } else {
        jsonc::parse(name, text)?
    };
    ClientConfig::of(name, &document)
}

fn is_toml(name: &str) -> bool {
    name.rsplit('.')
        .next()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}
