//! The quality of single tools: the [quality score](crate::quality) and the smells of the
//! [lint](crate::lint), so that an edit of one tool is measured by that tool alone.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use mcptest_numbers::ratio::{Ratio, mean};
use mcptest_trace::catalog::Tool;

/// Measures the descriptions of tools. The benchmark and the catalog diff accept any measure; without
/// one they omit its figures.
pub trait CatalogQuality {
    /// The quality of one tool; `None` if it is not measured.
    fn assess(&self, tool: &Tool) -> Option<ToolQuality>;
}

/// The quality of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolQuality {
    /// The score, 0 to 1.
    pub score: f64,
    /// The smells with their counts.
    pub smells: BTreeMap<String, u64>,
}

/// The quality score and the smells of the description lint.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tdqs;

impl CatalogQuality for Tdqs {
    fn assess(&self, tool: &Tool) -> Option<ToolQuality> {
        let quality = crate::quality::assess(&[Value::Object(tool.raw().clone())]);
        let found = quality.smells.into_iter().filter(|(_, count)| *count > 0);
        Some(ToolQuality {
            score: quality.mean_score?,
            smells: found
                .map(|(smell, count)| (smell.to_owned(), count))
                .collect(),
        })
    }
}

/// No measure: no figures.
#[derive(Debug, Clone, Copy, Default)]
pub struct NotMeasured;

impl CatalogQuality for NotMeasured {
    fn assess(&self, _: &Tool) -> Option<ToolQuality> {
        None
    }
}

/// The quality of a whole catalog.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Quality {
    /// The mean of the tools' scores.
    pub tdqs_mean: f64,
    /// The worst tool's score.
    pub tdqs_min: f64,
    /// The smells with their counts.
    pub smells: BTreeMap<String, u64>,
}

impl Quality {
    /// The quality of a catalog; `None` without tools, or if one was not measured.
    #[must_use]
    pub fn of(tools: &[Option<ToolQuality>]) -> Option<Self> {
        let mut smells = BTreeMap::new();
        let mut scores = Vec::new();
        let mut least = f64::INFINITY;
        for tool in tools {
            let tool = tool.as_ref()?;
            scores.push(Ratio::new(
                (tool.score * BINARY_PLACES as f64) as u64,
                BINARY_PLACES,
            ));
            least = least.min(tool.score);
            for (smell, count) in &tool.smells {
                *smells.entry(smell.clone()).or_insert(0) += count;
            }
        }
        mean(&scores).map(|tdqs_mean| Self {
            tdqs_mean,
            tdqs_min: least,
            smells,
        })
    }
}

/// Scores are doubles from 0 to 1, in which this many parts of one are exact: so their mean is
/// rounded once.
const BINARY_PLACES: u64 = 1 << 60;

/// The smells that are more frequent than before.
#[must_use]
pub fn smells_introduced(before: &Quality, after: &Quality) -> BTreeMap<String, u64> {
    let more = |(smell, count): (&String, &u64)| {
        let gained = count.saturating_sub(before.smells.get(smell).copied().unwrap_or(0));
        (gained > 0).then(|| (smell.clone(), gained))
    };
    after.smells.iter().filter_map(more).collect()
}
