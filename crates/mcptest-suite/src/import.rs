//! Reading a suite file and the files it imports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mcptest_redact::redact::is_secret;
use mcptest_yaml::{Diagnostic, Document, DocumentLimits, Severity, Span};
use serde::Deserialize as _;
use serde_json::Value;

use crate::file::SuiteFile;
use crate::interpolate::{Scope, interpolate};

/// One file of a suite.
pub(crate) struct Part {
    pub document: Document,
    pub file: SuiteFile,
    /// Where its relative paths start.
    pub dir: PathBuf,
}

/// A file whose shape is wrong, with the places that are.
pub(crate) struct Broken {
    pub document: Document,
    pub wrong: Vec<Span>,
}

#[derive(Default)]
pub(crate) struct Gathered {
    /// Imported files first, so that what they declare comes first.
    pub parts: Vec<Part>,
    pub broken: Vec<Broken>,
    pub problems: Vec<Diagnostic>,
    /// Display names in the order read.
    pub order: Vec<String>,
    pub secrets: Vec<String>,
}

/// Reads everything that belongs to the suite.
pub(crate) fn gather(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Gathered {
    let mut gathered = Gathered::default();
    let mut reader = Reader {
        env,
        gathered: &mut gathered,
        stack: Vec::new(),
        done: Vec::new(),
    };
    reader.read(path, &BTreeMap::new(), None);
    gathered
}

struct Reader<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    gathered: &'a mut Gathered,
    /// The files that are being read, outermost first: one that comes again imports itself.
    stack: Vec<PathBuf>,
    done: Vec<PathBuf>,
}

impl Reader<'_> {
    /// `asked_by` is the place of the import, for a file that cannot be read.
    fn read(&mut self, path: &Path, outer: &BTreeMap<String, Value>, asked_by: Option<Diagnostic>) {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let words = format!(
                    "cannot read `{}`: {}",
                    path.display(),
                    plain_io_error(&error)
                );
                self.gathered.problems.push(match asked_by {
                    Some(place) => place.with_message(words),
                    None => Diagnostic::new(Severity::Error, words),
                });
                return;
            }
        };
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.stack.contains(&identity) {
            if let Some(place) = asked_by {
                let words = format!("`{}` imports itself in the end", path.display());
                self.gathered.problems.push(place.with_message(words));
            }
            return;
        }
        // Two files may import a third: it joins once.
        if self.done.contains(&identity) {
            return;
        }
        let name = path.display().to_string();
        self.gathered.order.push(name.clone());
        let document = match Document::parse(&name, &bytes, &DocumentLimits::default()) {
            Ok(document) => document,
            Err(problems) => {
                self.gathered.problems.extend(problems.0);
                return;
            }
        };
        self.stack.push(identity.clone());
        self.decode(document, path, outer);
        self.stack.pop();
        self.done.push(identity);
    }

    fn decode(&mut self, mut document: Document, path: &Path, outer: &BTreeMap<String, Value>) {
        let dir = directory_of(path);
        let scope = Scope {
            outer,
            config_dir: &dir.to_string_lossy(),
            env: self.env,
        };
        let put_in = interpolate(&mut document, scope);
        let unset: Vec<Option<Span>> = put_in.problems.iter().map(Diagnostic::span).collect();
        self.gathered.problems.extend(put_in.problems);
        for (name, value) in put_in.from_env {
            self.secret(&name, value);
        }
        let mut wrong = crate::schema::problems(&document);
        // That nothing is there has been said.
        wrong.retain(|problem| !unset.contains(&problem.span()));
        if !wrong.is_empty() || !unset.is_empty() {
            let spans = wrong.iter().filter_map(Diagnostic::span).collect();
            self.gathered.problems.extend(wrong);
            self.gathered.broken.push(Broken {
                document,
                wrong: spans,
            });
            return;
        }
        let file = match SuiteFile::deserialize(document.root()) {
            Ok(file) => file,
            // The shape is right, so this is a gap between schema and types: still told, at the
            // file's start.
            Err(error) => {
                self.gathered
                    .problems
                    .push(document.diagnostic_at("", error.to_string()));
                return;
            }
        };
        for (index, import) in file.imports.iter().enumerate() {
            let place = document.diagnostic_at(&format!("/imports/{index}"), String::new());
            // Named as the importing file is named, so that messages stay short and free of
            // absolute paths.
            let beside = path.parent().unwrap_or(Path::new("")).join(import);
            self.read(&beside, &put_in.variables, Some(place));
        }
        for server in file.servers.values() {
            for (name, value) in &server.env {
                self.secret(name, value.0.clone());
            }
            if let Some(token) = &server.bearer {
                self.secret("authorization", token.clone());
            }
        }
        let of_servers = file.servers.values().flat_map(|server| &server.headers);
        let of_providers = file
            .providers
            .values()
            .flat_map(|provider| &provider.headers);
        for (name, value) in of_servers.chain(of_providers) {
            // `Bearer abc`: whoever shows the credential may leave out its scheme.
            if let Some((_, credential)) = value.0.split_once(' ') {
                self.secret(name, credential.trim().to_owned());
            }
            self.secret(name, value.0.clone());
        }
        self.gathered.parts.push(Part {
            document,
            file,
            dir,
        });
    }

    fn secret(&mut self, name: &str, value: String) {
        if is_secret(name, &value) && !self.gathered.secrets.contains(&value) {
            self.gathered.secrets.push(value);
        }
    }
}

fn directory_of(path: &Path) -> PathBuf {
    let dir = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    std::path::absolute(&dir).unwrap_or(dir)
}

fn plain_io_error(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}
