//! The diagnostic log on standard error: `-v`, `-vv` and the environment variable `MCPTEST_LOG`.
//!
//! The library crates describe their work as `tracing` events; nothing is formatted unless somebody
//! asks for it here, so that a run without a log pays for none. Everything a server or a provider
//! wrote may be in an event. So each line has secrets removed and is made safe for terminals at the
//! one place where lines leave the program.

use std::io::{self, Write};

use mcptest_json::text::{one_line, shorten};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::secrets;

/// The variable that selects parts and levels: `debug`, or `mcptest::wire=trace`.
const VARIABLE: &str = "MCPTEST_LOG";
/// Longest line with a single `-v`, in characters. `-vv` and `MCPTEST_LOG` do not truncate.
const MAX_LINE: usize = 400;

/// Starts the log if the flags or the environment ask for it. Returns true if there is one.
///
/// # Errors
/// A value of `MCPTEST_LOG` that is not a list of targets and levels.
pub fn start(verbose: u8, quiet: bool) -> Result<bool, String> {
    let setting = std::env::var(VARIABLE).unwrap_or_default();
    let Some((targets, limit)) = selection(verbose, quiet, &setting)? else {
        return Ok(false);
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_timer(tracing_subscriber::fmt::time::uptime())
        .with_writer(Lines { limit });
    let subscriber = tracing_subscriber::registry().with(targets).with(lines);
    // Only `main` calls this, once.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(true)
}

/// The targets that are logged, and the longest line; `None` if there is no log. The first one set
/// wins: `--quiet`, `--verbose`, the environment variable.
fn selection(
    verbose: u8,
    quiet: bool,
    setting: &str,
) -> Result<Option<(Targets, Option<usize>)>, String> {
    use tracing::level_filters::LevelFilter;
    let ours = Targets::new().with_target("mcptest", LevelFilter::TRACE);
    Ok(match verbose {
        _ if quiet => None,
        0 if setting.is_empty() => None,
        0 => {
            let targets = setting.parse::<Targets>().map_err(|error| {
                format!(
                    "{VARIABLE} is `{}`, which is not valid: {error}; expected a level, such as \
                     `debug`, or targets with levels, such as `mcptest::wire=trace`",
                    one_line(setting)
                )
            })?;
            Some((targets, None))
        }
        1 => Some((ours, Some(MAX_LINE))),
        _ => Some((ours, None)),
    })
}

/// Makes a writer for each event.
struct Lines {
    limit: Option<usize>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line {
            limit: self.limit,
            text: Vec::new(),
        }
    }
}

/// One line of the log. It is written when it is complete, that is, when it is dropped.
struct Line {
    limit: Option<usize>,
    text: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let clean = secrets::clean(&String::from_utf8_lossy(&self.text));
        let line = shown(&clean, self.limit);
        // A reader that has closed the pipe is not an error of ours.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }
}

/// An event as it is printed: on one line, safe for terminals.
fn shown(text: &str, limit: Option<usize>) -> String {
    let line = one_line(text.trim_end_matches('\n'));
    let mut line = match limit {
        Some(limit) => shorten(&line, limit),
        None => line,
    };
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(verbose: u8, quiet: bool, setting: &str) -> Option<String> {
        let found = selection(verbose, quiet, setting).unwrap();
        found.map(|(targets, limit)| format!("{targets} {}", limit.is_some()))
    }

    #[test]
    fn the_first_one_set_wins() {
        assert_eq!(of(0, false, ""), None);
        assert_eq!(of(0, true, "trace"), None);
        assert_eq!(of(1, false, "warn").as_deref(), Some("mcptest=trace true"));
        assert_eq!(of(2, false, "").as_deref(), Some("mcptest=trace false"));
        assert_eq!(of(0, false, "debug").as_deref(), Some("debug false"));
        let error = selection(0, false, "mcptest=loud").unwrap_err();
        assert!(
            error.starts_with("MCPTEST_LOG is `mcptest=loud`"),
            "{error}"
        );
    }

    #[test]
    fn a_line_has_no_secrets_and_cannot_steer_a_terminal() {
        secrets::hide(["hunter2-hunter2".to_owned()]);
        let of = |text: &str, limit| shown(&secrets::clean(text), limit);
        let line = of("a \u{1b}[31m hunter2-hunter2\nb\n", None);
        assert_eq!(line, "a \\u{1b}[31m [redacted]\\nb\n");
        // A secret at the cut does not lose its end, and with it its mask.
        assert_eq!(of("key hunter2-hunter2", Some(8)), "key [re…\n");
    }
}
