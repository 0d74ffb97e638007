//! Reading a suite file and the files it imports.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use mcptest_redact::redact::is_secret;
use mcptest_yaml::{Diagnostic, Document, DocumentLimits, Severity, Span};
use serde::Deserialize as _;
use serde_json::Value;

use crate::file::SuiteFile;
use crate::interpolate::{Scope, interpolate};

/// Reads a file of a suite.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// Reads a file of a suite from disk.
pub(crate) fn from_disk(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}

/// One file of a suite.
pub(crate) struct Part {
    pub document: Document,
    pub file: SuiteFile,
    /// The directory that its relative paths start from.
    pub dir: PathBuf,
}

/// A file that does not fit the schema, with the places of the problems.
pub(crate) struct InvalidFile {
    pub document: Document,
    pub problem_spans: Vec<Span>,
}

#[derive(Default)]
pub(crate) struct Gathered {
    /// Imported files first, so that their declarations come first.
    pub parts: Vec<Part>,
    pub invalid: Vec<InvalidFile>,
    pub problems: Vec<Diagnostic>,
    /// Display names in the order read.
    pub order: Vec<String>,
    pub secrets: Vec<String>,
}

/// Reads all files of the suite.
pub(crate) fn gather(
    path: &Path,
    env: &dyn Fn(&str) -> Option<String>,
    read_file: ReadFile<'_>,
) -> Gathered {
    let mut gathered = Gathered::default();
    let mut reader = Reader {
        env,
        read_file,
        gathered: &mut gathered,
        stack: Vec::new(),
        done: Vec::new(),
    };
    reader.read(path, &BTreeMap::new(), None);
    gathered
}

/// Reads a suite from a string, and the files that it imports.
pub(crate) fn gather_text(
    path: &Path,
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Gathered {
    let mut gathered = Gathered::default();
    let mut reader = Reader {
        env,
        read_file: &from_disk,
        gathered: &mut gathered,
        stack: Vec::new(),
        done: Vec::new(),
    };
    reader.read_bytes(path, text.as_bytes(), &BTreeMap::new(), None);
    gathered
}

/// Adds a file whose variables are replaced already.
pub(crate) fn decode_resolved(gathered: &mut Gathered, document: Document) {
    let problems = crate::schema::problems(&document);
    if !problems.is_empty() {
        gathered.problems.extend(problems);
        return;
    }
    match SuiteFile::deserialize(document.root()) {
        Ok(file) => gathered.parts.push(Part {
            document,
            file,
            dir: PathBuf::from("."),
        }),
        Err(error) => {
            let problem = document.diagnostic_at("", error.to_string());
            gathered.problems.push(problem);
        }
    }
}

struct Reader<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    read_file: ReadFile<'a>,
    gathered: &'a mut Gathered,
    /// The files that are being read, outermost first, to detect circular imports.
    stack: Vec<PathBuf>,
    done: Vec<PathBuf>,
}

impl Reader<'_> {
    /// `imported_at` is the place of the import, for a file that cannot be read.
    fn read(
        &mut self,
        path: &Path,
        outer: &BTreeMap<String, Value>,
        imported_at: Option<Diagnostic>,
    ) {
        let bytes = match (self.read_file)(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let message = format!(
                    "cannot read `{}`: {}",
                    path.display(),
                    plain_io_error(&error)
                );
                self.gathered.problems.push(match imported_at {
                    Some(place) => place.with_message(message),
                    None => Diagnostic::new(Severity::Error, message),
                });
                return;
            }
        };
        self.read_bytes(path, &bytes, outer, imported_at);
    }

    fn read_bytes(
        &mut self,
        path: &Path,
        bytes: &[u8],
        outer: &BTreeMap<String, Value>,
        imported_at: Option<Diagnostic>,
    ) {
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.stack.contains(&identity) {
            if let Some(place) = imported_at {
                let message = format!("circular import of `{}`", path.display());
                self.gathered.problems.push(place.with_message(message));
            }
            return;
        }
        // Two files may import the same third file: it is read once.
        if self.done.contains(&identity) {
            return;
        }
        let name = path.display().to_string();
        self.gathered.order.push(name.clone());
        let document = match Document::parse(&name, bytes, &DocumentLimits::default()) {
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
        let interpolated = interpolate(&mut document, scope);
        let unset: Vec<Option<Span>> = interpolated.problems.iter().map(Diagnostic::span).collect();
        self.gathered.problems.extend(interpolated.problems);
        for (name, value) in interpolated.from_env {
            self.secret(&name, value);
        }
        let mut problems = crate::schema::problems(&document);
        // A value that is not set has been reported.
        problems.retain(|problem| !unset.contains(&problem.span()));
        if !problems.is_empty() || !unset.is_empty() {
            let problem_spans = problems.iter().filter_map(Diagnostic::span).collect();
            self.gathered.problems.extend(problems);
            self.gathered.invalid.push(InvalidFile {
                document,
                problem_spans,
            });
            return;
        }
        let file = match SuiteFile::deserialize(document.root()) {
            Ok(file) => file,
            // The schema fits, so this is a gap between schema and types. It is reported at the
            // start of the file.
            Err(error) => {
                self.gathered
                    .problems
                    .push(document.diagnostic_at("", error.to_string()));
                return;
            }
        };
        for (index, import) in file.imports.iter().enumerate() {
            let place = document.diagnostic_at(&format!("/imports/{index}"), String::new());
            // The name is relative like that of the importing file, so that messages stay short and
            // without absolute paths.
            let imported = path.parent().unwrap_or(Path::new("")).join(import);
            self.read(&imported, &interpolated.variables, Some(place));
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
            // `Bearer abc`: output may show the credential without its scheme.
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
