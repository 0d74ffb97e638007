//! Fixtures, saved values and snapshots of direct tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mcptest_trace::snapshot::{Snapshot, file_stem};
use mcptest_trace::target::Target;
use mcptest_yaml::suggest;
use serde_json::Value;

use super::diagnostics::{escape, key_error};
use super::{Checker, DIRECT_ROOTS, TOOL_ROOTS};
use crate::file::FixtureCallFile;
use crate::import::Part;
use crate::suite::{FixtureCall, StoredSnapshot};
use crate::template::Args;
use crate::tool_file::SnapshotFields;

/// The names of the values saved so far in a test.
pub(super) type Names = Vec<String>;

impl Checker<'_> {
    /// The calls of `setup:`, `trigger:` or `teardown:`. `at` makes the pointer to the list: most
    /// tests have none.
    pub(super) fn fixtures(
        &mut self,
        part: &Part,
        at: &dyn Fn() -> String,
        calls: &[FixtureCallFile],
        test_server: &str,
        saved: &mut Names,
    ) -> Vec<FixtureCall> {
        let mut checked = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let at = format!("{}/{index}", at());
            if let Some(server) = &call.server {
                self.named_server(part, &at, server);
            }
            let args = self.args(part, &|| format!("{at}/args"), call.args.clone(), saved);
            let place = || format!("{at}/save");
            let save = self.save(part, &place, &call.save, saved, &TOOL_ROOTS);
            checked.push(FixtureCall {
                server: call.server.as_deref().unwrap_or(test_server).to_owned(),
                tool: call.tool.clone(),
                args,
                save,
                timeout: self.duration(part, &format!("{at}/timeout"), call.timeout.as_ref()),
            });
        }
        checked
    }

    /// Arguments, which can use values saved before.
    pub(super) fn args(
        &mut self,
        part: &Part,
        at: &dyn Fn() -> String,
        written: Option<serde_json::Map<String, Value>>,
        saved: &Names,
    ) -> Args {
        let args = Args::new(written);
        self.saved_uses(part, at, &args, saved);
        args
    }

    /// Checks that values were saved before they are used.
    pub(super) fn saved_uses(
        &mut self,
        part: &Part,
        at: &dyn Fn() -> String,
        args: &Args,
        saved: &Names,
    ) {
        for (name, place) in args.uses() {
            if saved.contains(&name) {
                continue;
            }
            let problem = part.document.diagnostic_at(
                &format!("{}{place}", at()),
                format!("no value is saved as `{name}` before this call"),
            );
            self.problems
                .push(match suggest(&name, saved.iter().map(String::as_str)) {
                    Some(near) => problem.label(format!("did you mean `saved.{near}`?")),
                    None if saved.is_empty() => problem.help(
                        "save values of a result in `setup`: `save: { id: result.structuredContent.id }`",
                    ),
                    None => problem.help(format!("saved before this call: {}", saved.join(", "))),
                });
        }
    }

    pub(super) fn save(
        &mut self,
        part: &Part,
        at: &dyn Fn() -> String,
        written: &BTreeMap<String, String>,
        saved: &mut Names,
        roots: &[&str],
    ) -> Vec<(String, Target)> {
        let mut checked = Vec::new();
        for (name, path) in written {
            let place = format!("{}/{}", at(), escape(name));
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            if name.is_empty() || !name.chars().all(fits) {
                let message = format!("invalid name `{name}` for a saved value");
                self.problems.push(
                    key_error(part, &place, message).help("use letters, digits, `_`, `-` and `.`"),
                );
            }
            if saved.contains(name) {
                let message = format!("duplicate saved value `{name}` in this test");
                self.problems.push(key_error(part, &place, message));
            }
            // Known from here on even if its target is wrong, which is reported once.
            saved.push(name.clone());
            if let Some(target) = self.answer_target(part, &place, path, roots) {
                checked.push((name.clone(), target));
            }
        }
        checked
    }

    /// A path into the answer to a direct request.
    fn direct_target(&mut self, part: &Part, at: &str, path: &str) -> Option<Target> {
        self.answer_target(part, at, path, &DIRECT_ROOTS)
    }

    /// A path into an answer with these roots.
    fn answer_target(
        &mut self,
        part: &Part,
        at: &str,
        path: &str,
        roots: &[&str],
    ) -> Option<Target> {
        let problem = match Target::parse(path) {
            Ok(target) if roots.contains(&target.root()) => return Some(target),
            Ok(_) => part
                .document
                .diagnostic_at(at, format!("unknown target `{path}`"))
                .help(format!("a target here starts with {}", roots.join(", "))),
            Err(error) => part
                .document
                .diagnostic_at(at, format!("`{path}` is not a target: {error}"))
                .help("examples: `result.structuredContent.id`, `result.content[*].text`"),
        };
        self.problems.push(problem);
        None
    }

    /// The snapshot of a test, in `snapshots/SUITE/TEST.json` next to the file of the test.
    pub(super) fn snapshot(
        &mut self,
        part: &Part,
        at: &str,
        test: &str,
        fields: &SnapshotFields,
    ) -> Option<StoredSnapshot> {
        let at = format!("{at}/snapshot");
        let target = fields
            .target
            .as_ref()
            .map(|path| self.direct_target(part, &format!("{at}/target"), path));
        let ignore = fields
            .ignore
            .iter()
            .enumerate()
            .filter_map(|(index, path)| {
                self.direct_target(part, &format!("{at}/ignore/{index}"), path)
            })
            .collect();
        let stem = match &fields.name {
            Some(name) => {
                let stem = file_stem(name);
                if stem != *name {
                    let message = format!("invalid snapshot name `{name}`");
                    let help = format!("for example `{stem}`");
                    self.problems.push(
                        part.document
                            .diagnostic_at(&format!("{at}/name"), message)
                            .help(help),
                    );
                }
                stem
            }
            None => file_stem(test),
        };
        let file = snapshot_folder(part).join(format!("{stem}.json"));
        if let Some(first) = self.snapshots.get(&file) {
            let message = format!("this snapshot has the same file as that of `{first}`");
            self.problems.push(
                key_error(part, &at, message)
                    .help("set another name for one of them: `snapshot: { name: another-name }`"),
            );
            return None;
        }
        self.snapshots.insert(file.clone(), test.to_owned());
        Some(StoredSnapshot {
            snapshot: Snapshot {
                // An invalid target has been reported.
                target: target.flatten(),
                ignore,
            },
            file,
        })
    }
}

/// The folder of a file's snapshots, relative as the file's name is, so that messages stay short.
pub(super) fn snapshot_folder(part: &Part) -> PathBuf {
    let suite = Path::new(part.document.source().name());
    let stem = suite
        .file_stem()
        .map_or_else(|| "suite".into(), |stem| stem.to_string_lossy());
    suite
        .parent()
        .unwrap_or(Path::new(""))
        .join("snapshots")
        .join(file_stem(&stem))
}
