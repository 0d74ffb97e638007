//! A suite as data, without its files: variables are replaced and imports are included. Another
//! machine loads the same suite from it.

use std::path::{Path, PathBuf};

use mcptest_redact::redact::Redactor;
use mcptest_yaml::{Diagnostics, Document, DocumentLimits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::import::{self, Gathered, ReadFile};
use crate::load::{Loaded, load_gathered};
use crate::options::LoadOptions;

/// A suite as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResolvedSuite {
    /// The name in reports.
    pub name: String,
    /// The content of each file, imported ones first.
    pub parts: Vec<Value>,
}

impl ResolvedSuite {
    /// Reads a suite that was loaded from this file. Secrets are masked.
    ///
    /// # Errors
    /// The problems of a file that has changed since.
    pub fn read(path: &Path, options: &LoadOptions<'_>) -> Result<Self, Diagnostics> {
        Self::read_from(path, options, &import::from_disk)
    }

    /// The same for a suite whose files are read by a function.
    ///
    /// # Errors
    /// The problems of a file that has changed since.
    pub fn read_from(
        path: &Path,
        options: &LoadOptions<'_>,
        read_file: ReadFile<'_>,
    ) -> Result<Self, Diagnostics> {
        let gathered = import::gather(path, options.env, read_file);
        Self::of(gathered, path, options)
    }

    /// The same for the text of a suite.
    ///
    /// # Errors
    /// The problems of the text.
    pub fn read_text(
        path: &Path,
        text: &str,
        options: &LoadOptions<'_>,
    ) -> Result<Self, Diagnostics> {
        let gathered = import::gather_text(path, text, options.env);
        Self::of(gathered, path, options)
    }

    fn of(gathered: Gathered, path: &Path, options: &LoadOptions<'_>) -> Result<Self, Diagnostics> {
        let part = |part: &import::Part| {
            let mut content = part.document.root().to_json();
            if let Value::Object(content) = &mut content {
                content.remove("imports");
                content.remove("variables");
            }
            content
        };
        let mut parts: Vec<Value> = gathered.parts.iter().map(part).collect();
        let loaded = load_gathered(gathered, path, options)?;
        let redactor = Redactor::new(loaded.suite.secrets.iter().cloned());
        parts.iter_mut().for_each(|part| redactor.value(part));
        Ok(Self {
            name: redactor.text(&loaded.suite.name),
            parts,
        })
    }

    /// Loads the suite.
    ///
    /// # Errors
    /// Problems of the data, as if it were a file.
    pub fn load(&self, options: &LoadOptions<'_>) -> Result<Loaded, Diagnostics> {
        let name = PathBuf::from(&self.name);
        let mut gathered = Gathered::default();
        for part in &self.parts {
            let text = part.to_string();
            let document =
                Document::parse(&self.name, text.as_bytes(), &DocumentLimits::default())?;
            import::decode_resolved(&mut gathered, document);
        }
        let mut loaded = load_gathered(gathered, &name, options)?;
        loaded.suite.name.clone_from(&self.name);
        Ok(loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Purpose;

    fn options(env: &dyn Fn(&str) -> Option<String>) -> LoadOptions<'_> {
        LoadOptions {
            purpose: Purpose::Score,
            gates: mcptest_gates::GATES,
            env,
            check_model: &|_| Ok(()),
            providers: &[],
            models: &[],
        }
    }

    #[test]
    fn a_resolved_suite_needs_neither_files_nor_variables() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        write(
            "more.yml",
            "tests:\n  - name: second\n    golden_path: {calls: [\"${TOOL}\"]}\n",
        );
        let text = "\
name: whole
imports: [more.yml]
servers: {web: {command: [x], env: {API_TOKEN: \"${SECRET}\"}}}
tests:
  - name: \"first ${SECRET}\"
    expect: [{ final_response: { contains: \"$${x}\" } }]
    trajectory: {mode: subset, calls: [{name: a, args: any}]}
";
        let path = write("suite.yml", text);
        let secret = "0123456789abcdef-secret";
        let env = |name: &str| match name {
            "TOOL" => Some("search".to_owned()),
            "SECRET" => Some(secret.to_owned()),
            _ => None,
        };
        let resolved = ResolvedSuite::read(&path, &options(&env)).unwrap();
        let same = ResolvedSuite::read_text(&path, text, &options(&env)).unwrap();
        assert_eq!(same, resolved);
        let json = serde_json::to_string(&resolved).unwrap();
        assert!(!json.contains(secret), "{json}");
        drop(folder);
        let read: ResolvedSuite = serde_json::from_str(&json).unwrap();
        let loaded = read.load(&options(&|_| None)).unwrap();
        let names: Vec<&str> = loaded
            .suite
            .agent_tests()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(names, ["second", "first [redacted]"]);
        assert_eq!(loaded.suite.name, "whole");
        let gates: usize = loaded.suite.agent_tests().map(|it| it.gates.len()).sum();
        assert_eq!(gates, 2);
        assert!(json.contains("search"), "{json}");
    }
}
