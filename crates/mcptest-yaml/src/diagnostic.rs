//! Problems with their place, the expectation, and what to do.

use std::fmt;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use mcptest_json::text::lines;
use serde_json::{Value, json};

use crate::source::{Source, Span};

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file works, but probably not as intended.
    Warning,
}

/// One problem.
///
/// Its texts may repeat parts of a file or of what a server sent, so characters that could control
/// a terminal are escaped in all of them.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The problem, in one line.
    pub message: String,
    /// The label under the marked place.
    pub label: Option<String>,
    /// Hints for solving it.
    pub help: Vec<String>,
    place: Option<(Arc<Source>, Span)>,
    /// A second place that belongs to the problem, with its label.
    related: Option<(Span, String)>,
    /// The file, for a problem whose lines cannot be shown (a file that cannot be read or is not
    /// UTF-8), with line and column where they are known.
    file: Option<(String, Option<(usize, usize)>)>,
}

impl Diagnostic {
    /// Creates a problem without a place.
    #[must_use]
    pub fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self {
            severity,
            message: lines(&message.into()),
            label: None,
            help: Vec::new(),
            place: None,
            related: None,
            file: None,
        }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, source: &Arc<Source>, span: Span) -> Self {
        self.place = Some((Arc::clone(source), span));
        self
    }

    /// Names the file, where no lines can be shown.
    #[must_use]
    pub fn in_file(mut self, name: impl Into<String>, position: Option<(usize, usize)>) -> Self {
        self.file = Some((name.into(), position));
        self
    }

    /// Sets the label under the marked place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(lines(&label.into()));
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(lines(&help.into()));
        self
    }

    /// Marks a second place in the same file.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related = Some((span, lines(&label.into())));
        self
    }

    /// Replaces the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = lines(&message.into());
        self
    }

    /// Changes message, label and hints, for example to mask secrets in them.
    #[must_use]
    pub fn map_text(mut self, change: impl Fn(&str) -> String) -> Self {
        self.message = change(&self.message);
        self.label = self.label.as_deref().map(&change);
        self.help = self.help.iter().map(|help| change(help)).collect();
        self
    }

    /// Turns the problem into a warning.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// The marked bytes of the file.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.place.as_ref().map(|(_, span)| *span)
    }

    /// File name, line and column (from 1), as far as known.
    #[must_use]
    pub fn location(&self) -> (Option<&str>, Option<(usize, usize)>) {
        match &self.place {
            Some((source, span)) => (Some(source.name()), Some(source.line_column(span.start))),
            None => match &self.file {
                Some((file, position)) => (Some(file), *position),
                None => (None, None),
            },
        }
    }

    /// The machine-readable form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (file, position) = self.location();
        json!({
            "severity": match self.severity { Severity::Error => "error", Severity::Warning => "warning" },
            "file": file,
            "line": position.map(|(line, _)| line),
            "column": position.map(|(_, column)| column),
            "message": self.message,
            "label": self.label,
            "help": self.help,
        })
    }

    /// Renders the problem for a terminal, with the marked lines of the file.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let message = match (&self.place, &self.file) {
            (None, Some((file, Some((line, column))))) => {
                format!("{file}:{line}:{column}: {}", self.message)
            }
            (None, Some((file, None))) => format!("{file}: {}", self.message),
            _ => self.message.clone(),
        };
        let title = level.primary_title(message);
        let mut group = match &self.place {
            Some((source, span)) => title.element(self.snippet(source, *span)),
            None => Group::with_title(title),
        };
        for help in &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }

    fn snippet<'a>(
        &'a self,
        source: &'a Source,
        span: Span,
    ) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let (first_line, window) = source.window(span, 0);
        let clip = |span: Span| {
            let start = span.start.clamp(window.start, window.end);
            let end = span.end.clamp(start, window.end);
            let mut end = end.min(start + MAX_MARKED);
            while !source.text().is_char_boundary(end) {
                end -= 1;
            }
            // An empty span is not drawn: widen it to one character.
            let end = if end == start {
                source.text()[start..window.end]
                    .chars()
                    .next()
                    .map_or(end, |next| start + next.len_utf8())
            } else {
                end
            };
            start - window.start..end - window.start
        };
        let mut primary = AnnotationKind::Primary.span(clip(span));
        if let Some(label) = &self.label {
            primary = primary.label(label.as_str());
        }
        let mut snippet = Snippet::source(&source.text()[window.clone()])
            .line_start(first_line)
            .path(source.name())
            .annotation(primary);
        if let Some((related, label)) = &self.related {
            // A place outside the window, or far away in the same line, is not drawn: everything
            // between the two places would be. The message names its line.
            let is_near = related.start.abs_diff(span.start) <= MAX_MARKED;
            let same_line = source.line_column(related.start).0 == source.line_column(span.start).0;
            if window.contains(&related.start) && (is_near || !same_line) {
                snippet = snippet.annotation(
                    AnnotationKind::Context
                        .span(clip(*related))
                        .label(label.as_str()),
                );
            }
        }
        snippet
    }
}

/// The number of bytes of one line that are marked at most. Everything that is marked is printed.
const MAX_MARKED: usize = 400;

/// The number of problems that are shown for a terminal.
const MAX_RENDERED: usize = 200;

/// All problems of one or several files, in the order in which they were found.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Returns true if any of them is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.0
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Renders the problems for a terminal: the first ones, and the number of the others. Each
    /// shows its whole line, so thousands of problems in a long line would be a multiple of the
    /// file.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let mut out = String::new();
        for (index, diagnostic) in self.0.iter().take(MAX_RENDERED).enumerate() {
            if index > 0 {
                out.push('\n');
            }
            out.push_str(diagnostic.render(colour).trim_end());
            out.push('\n');
        }
        if let Some(more @ 1..) = self.0.len().checked_sub(MAX_RENDERED) {
            out.push_str(&format!("\n… and {more} more problems\n"));
        }
        out
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
