//! The seam to the description lint: what a tool's texts are worth, whoever measures it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::catalog::Tool;

/// Measures the descriptions of tools. The benchmark and the catalog diff take any measure; without one they leave its figures out.
pub trait CatalogQuality {
    /// What one tool's texts are worth; nothing if that is not measured.
    fn assess(&self, tool: &Tool) -> Option<ToolQuality>;
}

/// What one tool's texts are worth.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolQuality {
    /// The score, 0 to 1.
    pub score: f64,
    /// The named smells with how often they were found.
    pub smells: BTreeMap<String, u64>,
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
pub struct Quality {
    /// The mean of the tools' scores.
    pub tdqs_mean: f64,
    /// The worst tool's score.
    pub tdqs_min: f64,
    /// The named smells with how often they were found.
    pub smells: BTreeMap<String, u64>,
}

impl Quality {
    /// Over the tools of a catalog; nothing for no tools, or if one was not measured.
    #[must_use]
    pub fn of(tools: &[Option<ToolQuality>]) -> Option<Self> {
        let mut smells = BTreeMap::new();
        let mut sum = 0.0;
        let mut least = f64::INFINITY;
        for tool in tools {
            let tool = tool.as_ref()?;
            sum += tool.score;
            least = least.min(tool.score);
            for (smell, count) in &tool.smells {
                *smells.entry(smell.clone()).or_insert(0) += count;
            }
        }
        (!tools.is_empty()).then(|| Self {
            tdqs_mean: sum / tools.len() as f64,
            tdqs_min: least,
            smells,
        })
    }
}

/// The smells that there are more of than before.
#[must_use]
pub fn smells_introduced(before: &Quality, after: &Quality) -> BTreeMap<String, u64> {
    let more = |(smell, count): (&String, &u64)| {
        let gained = count.saturating_sub(before.smells.get(smell).copied().unwrap_or(0));
        (gained > 0).then(|| (smell.clone(), gained))
    };
    after.smells.iter().filter_map(more).collect()
}
