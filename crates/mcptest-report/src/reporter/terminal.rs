//! Words, colours and lines on a terminal.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style as Paint};
use mcptest_trace::verdict::Verdict;

use super::Style;

/// The word for a verdict at the start of a row.
pub(super) fn badge_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS ",
        Verdict::Fail => "FAIL ",
        Verdict::NoEvidence => "NONE ",
        Verdict::Error => "ERROR",
    }
}

/// The colour of a verdict.
pub(crate) fn colour(verdict: Verdict) -> Paint {
    let colour = match verdict {
        Verdict::Pass => AnsiColor::Green,
        Verdict::Fail => AnsiColor::Red,
        Verdict::NoEvidence => AnsiColor::Yellow,
        Verdict::Error => AnsiColor::Magenta,
    };
    Paint::new().fg_color(Some(colour.into()))
}

/// The text in a style, if colours are on.
pub(crate) fn paint(style: Style, paint: Paint, text: &str) -> String {
    if style.colour {
        format!("{paint}{text}{paint:#}")
    } else {
        text.to_owned()
    }
}

/// Writes a line without spaces at its end.
pub(crate) fn line(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "{}", text.trim_end())
}
