//! Merging two recordings of the same case into one with more runs.

use crate::compare::{catalog_changes, changes};
use crate::format::{Cassette, RecordedRun, VolatileValues};

/// The differences that keep two cassettes from being merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the cassettes do not record the same case: {}", .0.join("; "))]
pub struct CassetteMergeError(pub Vec<String>);

/// Appends the runs of the second cassette to those of the first and renumbers them.
///
/// # Errors
/// The differences between the two cassettes.
pub fn merge(first: &Cassette, second: &Cassette) -> Result<Cassette, CassetteMergeError> {
    let mut differing: Vec<String> = changes(first, &second.subject, 0)
        .into_iter()
        .chain(catalog_changes(&first.catalogs, &second.catalogs))
        .map(|change| change.to_string())
        .collect();
    if first.fingerprint != second.fingerprint && differing.is_empty() {
        differing.push("the fingerprints differ".to_owned());
    }
    if first.rules != second.rules {
        differing.push("rules: volatile values were found by different rules".to_owned());
    }
    if !differing.is_empty() {
        return Err(CassetteMergeError(differing));
    }
    let mut merged = first.clone();
    merged.runs.clear();
    merged.volatile.clear();
    for cassette in [first, second] {
        for run in &cassette.runs {
            let number = u32::try_from(merged.runs.len() + 1).unwrap_or(u32::MAX);
            let volatile = cassette.volatile_of(run.run).cloned().unwrap_or_default();
            merged.volatile.push(VolatileValues {
                run: number,
                ..volatile
            });
            merged.runs.push(RecordedRun {
                run: number,
                ..run.clone()
            });
        }
    }
    merged.planned = u32::try_from(merged.runs.len()).unwrap_or(u32::MAX);
    Ok(merged)
}
