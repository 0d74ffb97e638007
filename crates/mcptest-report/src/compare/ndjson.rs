//! A comparison as JSON lines: a line per test that differs, per rate and per mean, then the
//! counts.

use std::io::Write;

use serde::Serialize;
use serde_json::json;

use super::changed::changed;
use super::{Comparison, Style};
use crate::model::SCHEMA_VERSION;
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::entries::write_json;

/// A line: the kind of event before its content.
#[derive(Serialize)]
struct Line<'a, T> {
    event: &'a str,
    #[serde(flatten)]
    content: &'a T,
}

pub(super) fn render(
    comparison: &Comparison,
    current: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let begin = json!({
        "event": "begin",
        "schema_version": SCHEMA_VERSION,
        "mcptest": env!("CARGO_PKG_VERSION"),
        "baselines": comparison.baselines,
        "population": comparison.population,
    });
    write_json(&begin, out)?;
    for test in changed(comparison, current) {
        let mut line = json!(Line {
            event: "change",
            content: test.case
        });
        line["facts"] = test.facts().into();
        line["file"] = test.file().into();
        line["line"] = test.line().into();
        line["again"] = test.command().into();
        write_json(&line, out)?;
    }
    for rate in &comparison.rates {
        let content = rate;
        write_json(
            &Line {
                event: "rate",
                content,
            },
            out,
        )?;
    }
    for mean in &comparison.means {
        let content = mean;
        write_json(
            &Line {
                event: "mean",
                content,
            },
            out,
        )?;
    }
    let end = json!({
        "event": "end",
        "exit_code": comparison.exit_code,
        "counts": comparison.counts,
    });
    Ok(write_json(&end, out)?)
}
