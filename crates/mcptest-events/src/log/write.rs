//! Events as compact JSON: the bytes of [`serde_json::to_string`], in less time.
//!
//! The events of every run are written key by key. A test compares them with what serde writes, and
//! a field that is added to one of them does not compile before it is written here.

use mcptest_json::write::{number, string};
use mcptest_trace::verdict::Verdict;
use serde::Serialize;

use crate::event::{CaseJudged, Event, RunFacts, RunFinished};
use crate::{CaseId, PlannedCase, RunRecord};

/// The key of a record in the line of a `run_finished` event.
pub(super) const RECORD_KEY: &str = "\"record\":";

/// Appends an event. The trace of a record, which is most of a log, is copied without being parsed.
pub(super) fn write_event(event: &Event, out: &mut Vec<u8>) -> serde_json::Result<()> {
    match event {
        Event::Planned { cases, shard } => {
            text("{\"planned\":{\"cases\":[", out);
            for (at, case) in cases.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                planned(case, out)?;
            }
            text("]", out);
            optional(",\"shard\":", shard.as_ref(), out)?;
        }
        Event::RunStarted { case, run } => {
            count("{\"run_started\":{\"case\":", *case as u64, out);
            count(",\"run\":", u64::from(*run), out);
        }
        Event::RunFinished(finished) => run_finished(finished, out)?,
        Event::CaseJudged(judged) => case_judged(judged, out)?,
        other => return serde_json::to_writer(out, other),
    }
    text("}}", out);
    Ok(())
}

fn planned(case: &PlannedCase, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let PlannedCase {
        id: CaseId { suite, name, model },
        kind,
        label,
        runs,
        position,
        tags,
        file,
        line,
    } = case;
    text("{\"id\":{\"suite\":", out);
    string(suite, out);
    text(",\"name\":", out);
    string(name, out);
    optional(",\"model\":", model.as_ref(), out)?;
    text("},\"kind\":", out);
    serde_json::to_writer(&mut *out, kind)?;
    text(",\"label\":", out);
    string(label, out);
    count(",\"runs\":", u64::from(*runs), out);
    count(",\"position\":", *position, out);
    optional(
        ",\"tags\":",
        Some(tags).filter(|tags| !tags.is_empty()),
        out,
    )?;
    if let Some(file) = file {
        text(",\"file\":", out);
        string(file, out);
    }
    if let Some(line) = line {
        count(",\"line\":", u64::from(*line), out);
    }
    text("}", out);
    Ok(())
}

fn run_finished(finished: &RunFinished, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let RunFinished {
        case,
        run,
        calls,
        errors,
        tokens,
        duration_ms,
        facts:
            RunFacts {
                verdict,
                counted,
                fails_case,
                expectations_held,
                error,
            },
        spend,
        record,
    } = finished;
    count("{\"run_finished\":{\"case\":", *case as u64, out);
    count(",\"run\":", u64::from(*run), out);
    count(",\"calls\":", *calls, out);
    count(",\"errors\":", *errors, out);
    optional(",\"tokens\":", tokens.as_ref(), out)?;
    count(",\"duration_ms\":", *duration_ms, out);
    text(",\"facts\":{\"verdict\":", out);
    text(word(*verdict), out);
    text(",\"counted\":", out);
    text(word(*counted), out);
    if *fails_case {
        text(",\"fails_case\":true", out);
    }
    optional(",\"expectations_held\":", expectations_held.as_ref(), out)?;
    optional(",\"error\":", error.as_ref(), out)?;
    text("}", out);
    optional(",\"spend\":", spend.as_ref(), out)?;
    if let Some(record) = record {
        text(",", out);
        text(RECORD_KEY, out);
        write_record(record, out)?;
    }
    Ok(())
}

fn case_judged(judged: &CaseJudged, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let CaseJudged {
        case,
        verdict,
        complete,
        gates,
        no_evidence,
        saved_runs,
        spend,
        replayed,
        duration_ms,
        status_lines,
    } = judged;
    count("{\"case_judged\":{\"case\":", *case as u64, out);
    text(",\"verdict\":", out);
    text(word(*verdict), out);
    text(",\"complete\":", out);
    text(if *complete { "true" } else { "false" }, out);
    optional(",\"gates\":", Some(gates), out)?;
    optional(",\"no_evidence\":", no_evidence.as_ref(), out)?;
    optional(",\"saved_runs\":", saved_runs.as_ref(), out)?;
    optional(",\"spend\":", spend.as_ref(), out)?;
    optional(",\"replayed\":", replayed.as_ref(), out)?;
    optional(",\"duration_ms\":", duration_ms.as_ref(), out)?;
    let lines = Some(status_lines).filter(|lines| !lines.is_empty());
    optional(",\"status_lines\":", lines, out)
}

/// Appends a record.
fn write_record(record: &RunRecord, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let RunRecord {
        index,
        name,
        verdict,
        trace,
        assertions,
        error,
    } = record;
    count("{\"index\":", *index, out);
    text(",\"name\":", out);
    string(name, out);
    text(",\"verdict\":", out);
    text(word(*verdict), out);
    text(",\"trace\":", out);
    trace.write_json(out);
    text(",\"assertions\":[", out);
    for (at, assertion) in assertions.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        assertion.write_json(out)?;
    }
    text("]", out);
    optional(",\"error\":", error.as_ref(), out)?;
    text("}", out);
    Ok(())
}

/// A verdict as JSON.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "\"pass\"",
        Verdict::NoEvidence => "\"no_evidence\"",
        Verdict::Fail => "\"fail\"",
        Verdict::Error => "\"error\"",
    }
}

/// Appends JSON text.
fn text(json: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(json.as_bytes());
}

/// Appends a key, with what is before it, and a number.
fn count(key: &str, value: u64, out: &mut Vec<u8>) {
    text(key, out);
    number(value, out);
}

/// Appends a key, with what is before it, and a value, if there is one.
fn optional<T: Serialize>(
    key: &str,
    value: Option<&T>,
    out: &mut Vec<u8>,
) -> serde_json::Result<()> {
    match value {
        Some(value) => {
            text(key, out);
            serde_json::to_writer(out, value)
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_written_as_serde_writes_them() {
        for verdict in Verdict::ALL {
            let expected = serde_json::to_string(&verdict).expect("a word");
            assert_eq!(word(verdict), expected);
        }
    }
}
