//! Catalogs from files: a captured `tools/list` answer in any of its forms, or a mock manifest.

use std::path::Path;

use mcptest_core::catalog::Tool;
use mcptest_core::json::type_name;
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};

/// The tools of a file, and what is in their list but is no tool.
pub struct Catalog {
    pub tools: Vec<Tool>,
    pub warnings: Diagnostics,
}

/// Reads the tools of a file.
///
/// # Errors
/// A file that cannot be read, or holds no catalog, with the place where that is known.
pub fn read(path: &Path) -> Result<Catalog, Diagnostics> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            _ => error.to_string(),
        };
        Diagnostics::from(Diagnostic::new(Severity::Error, format!("cannot read `{name}`: {why}")))
    })?;
    let manifest = mcptest_mock::load(&name, &bytes)?;
    let mut catalog = Catalog {
        tools: Vec::new(),
        warnings: Diagnostics::default(),
    };
    for (index, listed) in manifest.listed_tools().enumerate() {
        match Tool::from_listing(None, listed) {
            Some(tool) => catalog.tools.push(tool),
            None => catalog.warnings.0.push(
                Diagnostic::new(
                    Severity::Warning,
                    format!(
                        "entry {index} of the tools is left out: it is no tool, but JSON of type {}",
                        type_name(listed)
                    ),
                )
                .in_file(&name, None),
            ),
        }
    }
    Ok(catalog)
}
