//! The figures of a gate and the outcome of judging them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::detail::Detail;
use crate::expect::Assertion;
use crate::verdict::Verdict;

/// A figure that a gate reports and a suite can assert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetInfo {
    /// The full name, such as `tool_selection.f1`.
    pub name: &'static str,
    /// The unit that it counts.
    pub unit: Unit,
    /// One line for docs.
    pub doc: &'static str,
}

impl TargetInfo {
    /// One of a gate's list.
    #[must_use]
    pub const fn new(name: &'static str, unit: Unit, doc: &'static str) -> Self {
        Self { name, unit, doc }
    }
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Whole percent, 0 to 100.
    Percent,
    /// A count of things.
    Count,
    /// A number from 0 to 1.
    Fraction,
    /// Tokens.
    Tokens,
    /// US dollars.
    Dollars,
    /// Milliseconds of virtual time.
    Milliseconds,
    /// 0 or 1.
    Flag,
    /// A difference of percentages.
    Points,
    /// A list of whole percents; assert single ones with an index.
    List,
}

impl Unit {
    /// The least and the greatest value; `None` for a list.
    #[must_use]
    pub fn range(self) -> Option<(f64, f64)> {
        match self {
            Self::Percent => Some((0.0, 100.0)),
            Self::Fraction | Self::Flag => Some((0.0, 1.0)),
            Self::Count | Self::Tokens | Self::Dollars | Self::Milliseconds => {
                Some((0.0, f64::INFINITY))
            }
            Self::Points => Some((-100.0, 100.0)),
            Self::List => None,
        }
    }

    /// The unit and its range, for docs and the schema.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Percent => "whole percent, 0 to 100",
            Self::Count => "count",
            Self::Fraction => "0 to 1",
            Self::Tokens => "tokens",
            Self::Dollars => "US dollars",
            Self::Milliseconds => "milliseconds",
            Self::Flag => "0 or 1",
            Self::Points => "percentage points, -100 to 100",
            Self::List => "list",
        }
    }
}

/// The outcome of a gate over the runs of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateOutcome {
    /// The block's name.
    pub block: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Every assertable target under its full name; `null` for an undefined figure.
    pub values: Map<String, Value>,
    /// The facts behind the numbers.
    pub detail: Detail,
    /// The expectations and their outcomes.
    pub assertions: Vec<Assertion>,
    /// One line for people.
    pub summary: String,
    /// Each problem, one line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The number of problems that `findings` does not list.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_findings: u64,
    /// Facts about single runs that are not problems, one line each: the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Opinions of a model that were asked for, one line each. They decide nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advisories: Vec<String>,
    /// The reason why there was nothing to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_evidence: Option<String>,
    /// Lines for standard error.
    #[serde(skip)]
    pub status_lines: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
