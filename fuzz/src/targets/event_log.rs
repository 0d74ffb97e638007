//! Event logs: the reader in memory and the one of files agree, and every log has a report.

use mcptest_events::Event;
use mcptest_events::log::{LogReader, read, record_range};
use mcptest_report::{ReportFold, RunStore};

use super::report::check;

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let mut reader = LogReader::new(input);
    let mut fold = ReportFold::new();
    let mut events = 0;
    let mut is_sound = true;
    let outcome = loop {
        match reader.next_event() {
            Ok(Some(line)) => {
                assert!(input[line.offset as usize..].starts_with(line.text.as_bytes()));
                let _ = record_range(line.text);
                if let Event::RunFinished(finished) = &line.event {
                    // A report of a log with a damaged record is refused (`read_log`).
                    is_sound &= finished.record.is_none_or(|record| record.parse().is_ok());
                }
                fold.event(line.event, line.text, line.offset);
                events += 1;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.to_string()),
        }
    };
    if let Ok(text) = std::str::from_utf8(input) {
        let whole = read(text).map_err(|error| error.to_string());
        let count = whole.as_ref().map(Vec::len);
        match (&outcome, count) {
            (Ok(()), Ok(count)) => assert_eq!(count, events, "the two readers disagree"),
            (Err(one), Err(other)) => assert_eq!(one, other, "the two readers disagree"),
            (one, other) => panic!("only one reader accepts it: {one:?}, {other:?}"),
        }
    }
    if outcome.is_ok() {
        let _ = (fold.planned_runs(), fold.finished_runs(), fold.has_ended());
        let report = fold.finish(RunStore::Memory(input.to_vec()));
        if is_sound {
            check(&report);
        }
    }
}
