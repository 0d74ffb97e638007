//! The two output streams: results go to standard output, status lines to standard error.

use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write};
use std::path::Path;
use std::sync::OnceLock;

use mcptest_files::AtomicFile;
use mcptest_json::text::lines;
use mcptest_json::visible::{VisibleJson, visible};
use mcptest_report::{REPORTERS, RenderError, Report, Style};
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};

use crate::cli::{Colour, ReportArgs};
use crate::gates::{self, Gates};
use crate::secrets;

/// The two streams of the process, and the style of each.
#[derive(Clone, Copy)]
pub struct Output {
    out: Style,
    err: Style,
    /// True if only errors and results are printed.
    quiet: bool,
    /// True if there is a diagnostic log. A moving progress bar would be torn by its lines.
    pub logs: bool,
    /// The gates that reports explain.
    pub gates: Gates,
}

impl Output {
    pub fn new(wish: Colour, quiet: bool, verbose: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let style = |terminal: bool, width: Option<u16>| Style {
            width: width.filter(|_| terminal),
            verbose,
            gates: &[],
            colour: match wish {
                Colour::Always => true,
                Colour::Never => false,
                Colour::Auto => {
                    terminal && !set("NO_COLOR") && std::env::var("TERM").as_deref() != Ok("dumb")
                }
            },
        };
        Self {
            out: style(std::io::stdout().is_terminal(), terminal_width()),
            err: style(std::io::stderr().is_terminal(), None),
            quiet,
            logs: false,
            gates: &[],
        }
    }

    /// Prints a result without secrets and hidden characters. An error is kept for the end, see
    /// [`unwritten`].
    pub fn result(&self, text: &str) {
        let mut stdout = CheckedStdout::default();
        let _ = stdout
            .write_all(visible(&secrets::clean(text)).as_bytes())
            .and_then(|()| stdout.flush());
    }

    /// Prints a status line, unless `--quiet` is given. Control characters are escaped: it may
    /// quote a file or a server.
    pub fn status(&self, text: &str) {
        if !self.quiet {
            status(&lines(text));
        }
    }

    /// Prints an error message.
    pub fn error(&self, text: &str) {
        let text = lines(text);
        let bold_red = anstyle::AnsiColor::Red.on_default().bold();
        if self.err.colour {
            status(&format!("{bold_red}error{bold_red:#}: {text}"));
        } else {
            status(&format!("error: {text}"));
        }
    }

    /// Prints a warning, unless `--quiet` is given.
    pub fn warning(&self, text: &str) {
        self.status(&format!("warning: {text}"));
    }

    /// Prints errors and warnings about files, if there are any. With `--quiet`, only the errors.
    pub fn problems(&self, problems: &Diagnostics) {
        let is_shown = |problem: &&Diagnostic| !self.quiet || problem.severity == Severity::Error;
        let shown: Vec<Diagnostic> = problems.0.iter().filter(is_shown).cloned().collect();
        if !shown.is_empty() {
            let text = Diagnostics(shown).render(self.err.colour);
            // The renderer shows other control characters as symbols.
            status(visible(&text).trim_end());
        }
    }

    /// The style of results on standard output.
    pub fn result_style(&self) -> Style {
        self.out
    }

    /// Returns true if standard error has colours.
    pub fn error_colour(&self) -> bool {
        self.err.colour
    }

    /// The style of status lines on standard error.
    pub fn status_style(&self) -> Style {
        self.err
    }

    /// Returns true if a progress bar makes sense: a person is watching.
    pub fn is_watched(&self) -> bool {
        !self.quiet
            && !self.logs
            && std::io::stderr().is_terminal()
            && std::env::var_os("CI").is_none()
    }

    /// Writes a report with every requested reporter.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn report(&self, reporters: &[Reporter], report: &Report) -> Result<(), String> {
        for reporter in reporters {
            if let (ALLURE, Some(folder)) = (reporter.name, &reporter.file) {
                write_allure(folder, report)?;
                continue;
            }
            let style = self.style_for(reporter);
            self.deliver(reporter, |out| {
                mcptest_report::render(reporter.name, report, style, out)
            })?;
        }
        Ok(())
    }

    /// The style for a reporter: a file has no colours and no width.
    pub fn style_for(&self, reporter: &Reporter) -> Style {
        if reporter.file.is_some() {
            return self.file_style();
        }
        Style {
            gates: gates::meanings(self.gates),
            ..self.out
        }
    }

    /// The style of files: no colours and no width.
    pub fn file_style(&self) -> Style {
        Style {
            verbose: self.out.verbose,
            gates: gates::meanings(self.gates),
            ..Style::default()
        }
    }

    /// Writes the output of a reporter to its file, or to standard output.
    ///
    /// # Errors
    /// A file that cannot be written. An error of standard output is kept for the end, see
    /// [`unwritten`].
    pub fn deliver(
        &self,
        reporter: &Reporter,
        render: impl FnOnce(&mut dyn std::io::Write) -> Result<(), RenderError>,
    ) -> Result<(), String> {
        let Some(file) = &reporter.file else {
            let mut stdout = BufWriter::new(CheckedStdout::default());
            return match with_visible_json(reporter, &mut stdout, render) {
                Ok(()) => {
                    let _ = stdout.flush();
                    Ok(())
                }
                // Serializers wrap the error of a writer in their own errors.
                Err(_) if stdout.get_ref().failed => Ok(()),
                Err(error) => Err(error.to_string()),
            };
        };
        write_file_with(file, |out| with_visible_json(reporter, out, render))
    }
}

/// Renders a report. JSON has no hidden characters.
fn with_visible_json(
    reporter: &Reporter,
    out: &mut dyn Write,
    render: impl FnOnce(&mut dyn Write) -> Result<(), RenderError>,
) -> Result<(), RenderError> {
    if reporter.name == "json" {
        render(&mut VisibleJson::new(out))
    } else {
        render(out)
    }
}

/// The first error of standard output, other than a reader that left.
static UNWRITTEN: OnceLock<String> = OnceLock::new();

/// Standard output, with its errors kept for the end of the process.
///
/// Results that could not be written must not end with exit code 0, in any command. So errors are
/// kept here, and not where a command could forget them.
#[derive(Debug, Default)]
pub struct CheckedStdout {
    /// True after an error of any kind.
    failed: bool,
}

impl CheckedStdout {
    fn checked<T>(&mut self, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let result = if mcptest_stdio::was_closed() {
            Err(io::Error::other("it is closed"))
        } else {
            write()
        };
        result.inspect_err(|error| match error.kind() {
            ErrorKind::Interrupted | ErrorKind::WouldBlock => {}
            // A reader that has what it wants (`| head`) is not an error.
            ErrorKind::BrokenPipe => self.failed = true,
            _ => {
                self.failed = true;
                UNWRITTEN.get_or_init(|| error.to_string());
            }
        })
    }
}

impl Write for CheckedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.checked(|| io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.checked(|| io::stdout().flush())
    }
}

/// The reason why results could not be written to standard output, as a message.
pub fn unwritten() -> Option<String> {
    let error = UNWRITTEN.get()?;
    Some(format!("cannot write to standard output: {error}"))
}

fn terminal_width() -> Option<u16> {
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

/// Prints a line on standard error without secrets, whatever the flags are.
pub fn status(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", secrets::clean(text));
}

/// Replaces a file as a whole: a reader never sees half of it. Secrets are masked.
///
/// # Errors
/// A message with the file's name.
pub fn write_file(path: &str, text: &str) -> Result<(), String> {
    mcptest_files::write(Path::new(path), secrets::clean(text))
        .map_err(|error| format!("cannot write `{path}`: {error}"))
}

/// Replaces a file as a whole with the output of a function.
///
/// # Errors
/// A message with the file's name.
pub fn write_file_with(
    path: &str,
    write: impl FnOnce(&mut dyn std::io::Write) -> Result<(), RenderError>,
) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("cannot write `{path}`: {error}");
    let mut file = AtomicFile::create(Path::new(path)).map_err(|error| fail(&error))?;
    write(&mut file).map_err(|error| fail(&error))?;
    file.commit().map_err(|error| fail(&error))
}

/// The reporter that writes a folder.
const ALLURE: &str = "allure";

/// Writes the results of Allure into a folder, each as a whole. Other files there are left alone:
/// Allure joins the results of several tools.
fn write_allure(folder: &str, report: &Report) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("cannot write `{folder}`: {error}");
    std::fs::create_dir_all(folder).map_err(|error| fail(&error))?;
    mcptest_report::allure_results(report, |name, text| {
        mcptest_files::write_unsynced(&Path::new(folder).join(name), text)
    })
    .map_err(|error| fail(&error))
}

/// A reporter and where it writes.
#[derive(Debug)]
pub struct Reporter {
    pub name: &'static str,
    pub file: Option<String>,
}

/// Reads `--reporter` values.
///
/// # Errors
/// An unknown reporter, or two that would share standard output or a file.
pub fn reporters(args: &ReportArgs) -> Result<Vec<Reporter>, String> {
    let mut reporters = Vec::new();
    if args.reporter.is_empty() {
        reporters.push(Reporter {
            name: "pretty",
            file: None,
        });
    }
    for written in &args.reporter {
        let (name, file) = match written.split_once('=') {
            Some((name, file)) => (name, Some(file.to_owned())),
            None => (written.as_str(), None),
        };
        let Some(name) = mcptest_report::find(name) else {
            let known: Vec<&str> = REPORTERS.iter().map(|(known, ..)| *known).collect();
            return Err(format!(
                "unknown reporter `{name}`; known are {}",
                known.join(", ")
            ));
        };
        if file.as_deref() == Some("") {
            return Err(format!("`--reporter {written}` does not name a file"));
        }
        reporters.push(Reporter { name, file });
    }
    if reporters
        .iter()
        .any(|reporter| reporter.name == ALLURE && reporter.file.is_none())
    {
        return Err("`allure` writes a folder: `--reporter allure=allure-results`".to_owned());
    }
    if reporters
        .iter()
        .filter(|reporter| reporter.file.is_none())
        .count()
        > 1
    {
        return Err(
            "two reporters cannot share standard output; give one of them a file: `--reporter json=report.json`"
                .to_owned(),
        );
    }
    let mut files: Vec<&String> = reporters
        .iter()
        .filter_map(|reporter| reporter.file.as_ref())
        .collect();
    files.sort();
    if let Some(pair) = files.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("two reporters cannot share the file `{}`", pair[0]));
    }
    Ok(reporters)
}
