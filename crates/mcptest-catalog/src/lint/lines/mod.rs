//! The findings as a person reads them: few lines, the ones that matter first.
//!
//! A line is one tool and one rule with the number of places and the worst of them. Rules that
//! usually fire on all tools of a server take one line per catalog, and so does any warning that
//! fires on more than half of the tools.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Entry, Family, Finding, Severity};

/// The choice of lines.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Every finding, in one line per tool and rule.
    pub all: bool,
    /// Only these rules, in one line per tool and rule. Empty for all rules.
    pub rules: Vec<String>,
}

impl Selection {
    /// Returns true if it asks for more than the default lines.
    fn is_explicit(&self) -> bool {
        self.all || !self.rules.is_empty()
    }
}

/// One line: one rule on one tool, or on several tools of a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// The server, where the catalog has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The rule's id.
    pub rule: String,
    /// The severity.
    pub severity: Severity,
    /// The tools, the worst first.
    pub tools: Vec<String>,
    /// The number of tools that were linted.
    pub of_tools: usize,
    /// The number of places.
    pub count: usize,
    /// The problem at the worst place.
    pub message: String,
    /// The worst place, as a JSON pointer into the first tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A fix for the worst place that can be pasted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The reason of the waiver, if it is waived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
}

/// The rules on the strictness of schemas, which are summed up in one line per catalog.
pub const STRICTNESS: [&str; 3] = ["SCH-001", "SCH-002", "SCH-004"];

/// Rules that are a habit of the whole server: one line per catalog.
const CATALOG_WIDE_RULES: [&str; 3] = ["DESC-009", "DESC-010", "DESC-012"];

/// The order of warnings: first those that cost tokens or selection.
const ORDER: [&str; 11] = [
    "DESC-013", "DESC-006", "DESC-002", "DESC-008", "DESC-005", "DESC-004", "DESC-011", "DESC-007",
    "DESC-012", "DESC-010", "DESC-009",
];

/// A warning on fewer tools than this keeps its lines.
const MIN_TOOLS: usize = 4;

/// The lines for a selection, the most important first. The default leaves out minor findings and
/// the rules of [`STRICTNESS`]; waived findings are last, in one line per rule and reason.
#[must_use]
pub fn lines(findings: &[Finding], selection: &Selection) -> Vec<Line> {
    let explicit = selection.is_explicit();
    let wanted = |finding: &&Finding| {
        let rule = finding.rule.as_deref().unwrap_or_default();
        let named = |id: &String| id.eq_ignore_ascii_case(rule);
        finding.severity != Severity::Pass
            && if explicit {
                selection.rules.is_empty() || selection.rules.iter().any(named)
            } else {
                finding.waived.is_some() || (!finding.minor && !STRICTNESS.contains(&rule))
            }
    };
    let mut of_tools: BTreeMap<&Option<String>, usize> = BTreeMap::new();
    for finding in findings {
        let tools = of_tools.entry(&finding.server).or_default();
        if finding.entry == Entry::Tool {
            *tools = (*tools).max(finding.index + 1);
        }
    }
    // All findings of one rule on one catalog, by tool.
    type Group<'a> = BTreeMap<(Entry, usize), Vec<&'a Finding>>;
    let mut groups: BTreeMap<(usize, &str, &Option<String>), Group<'_>> = BTreeMap::new();
    let mut servers: Vec<&Option<String>> = Vec::new();
    for finding in findings.iter().filter(wanted) {
        let server = servers
            .iter()
            .position(|known| *known == &finding.server)
            .unwrap_or_else(|| {
                servers.push(&finding.server);
                servers.len() - 1
            });
        let rule = finding.rule.as_deref().unwrap_or_default();
        groups
            .entry((server, rule, &finding.waived))
            .or_default()
            .entry((finding.entry, finding.index))
            .or_default()
            .push(finding);
    }
    let mut lines = Vec::new();
    for ((server, rule, waived), tools) in groups {
        let of_tools = of_tools.get(servers[server]).copied().unwrap_or_default();
        let severity = tools
            .values()
            .flatten()
            .map(|finding| finding.severity)
            .max()
            .unwrap_or(Severity::Pass);
        let is_habit = CATALOG_WIDE_RULES.contains(&rule)
            || (tools.len() >= MIN_TOOLS && tools.len() * 2 > of_tools);
        // Each attack is read by itself.
        let is_habit = is_habit && super::family(rule) != Family::Security;
        let whole = !explicit && (waived.is_some() || (severity == Severity::Warning && is_habit));
        let mut made: Vec<(u64, Line)> = tools
            .into_values()
            .filter_map(|places| line(&places, of_tools))
            .collect();
        // Stable: tools of equal weight keep the order of the list.
        made.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        if whole && made.len() > 1 {
            made = merged(made).into_iter().collect();
        }
        lines.extend(
            made.into_iter()
                .map(|(weight, line)| (rank(&line), server, weight, line)),
        );
    }
    lines.sort_by_key(|(rank, server, _, _)| (*rank, *server));
    lines.into_iter().map(|(_, _, _, line)| line).collect()
}

/// Critical first, then attacks, then by the order of warnings, then waived ones.
fn rank(line: &Line) -> (bool, bool, usize) {
    let place = if super::family(&line.rule) == Family::Security {
        0
    } else {
        let known = ORDER.iter().position(|rule| *rule == line.rule);
        known.unwrap_or(ORDER.len()) + 1
    };
    (
        line.waived.is_some(),
        line.severity != Severity::Critical,
        place,
    )
}

/// The line of one rule on one tool, with the weight of its worst place.
fn line(places: &[&Finding], of_tools: usize) -> Option<(u64, Line)> {
    let first = places.first()?;
    // The first of the worst.
    let worst = places.iter().fold(first, |worst, one| {
        if one.weight > worst.weight {
            one
        } else {
            worst
        }
    });
    let line = Line {
        server: worst.server.clone(),
        rule: worst.rule.clone().unwrap_or_default(),
        severity: worst.severity,
        tools: vec![worst.tool.clone()],
        of_tools,
        count: places.len(),
        message: worst.message.clone(),
        path: worst.path.clone(),
        fix: worst.fix.clone(),
        waived: worst.waived.clone(),
    };
    Some((worst.weight, line))
}

/// One line for several tools; the first is the worst.
fn merged(lines: Vec<(u64, Line)>) -> Option<(u64, Line)> {
    let same = lines
        .windows(2)
        .all(|pair| pair[0].1.message == pair[1].1.message);
    let mut lines = lines.into_iter();
    let (weight, mut line) = lines.next()?;
    if !same && let Some(rule) = super::find(&line.rule) {
        line.message = format!("{} (worst: {})", rule.title, line.message);
    }
    for (_, other) in lines {
        line.count += other.count;
        line.tools.extend(other.tools);
    }
    Some((weight, line))
}

/// The number of findings that count and are in none of the lines, and of rules among them.
#[must_use]
pub fn left_out(findings: &[Finding], lines: &[Line]) -> (usize, usize) {
    let counted: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.counts())
        .filter_map(|finding| finding.rule.as_deref())
        .filter(|rule| !STRICTNESS.contains(rule))
        .collect();
    let mut by_rule: BTreeMap<&str, usize> = BTreeMap::new();
    for rule in counted {
        *by_rule.entry(rule).or_default() += 1;
    }
    for line in lines.iter().filter(|line| line.waived.is_none()) {
        if let Some(count) = by_rule.get_mut(line.rule.as_str()) {
            *count = count.saturating_sub(line.count);
        }
    }
    let rules = by_rule.values().filter(|count| **count > 0).count();
    (by_rule.values().sum(), rules)
}

/// A rule on the strictness of schemas, summed up over a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleSum {
    /// The rule's id.
    pub rule: String,
    /// The number of places.
    pub count: usize,
    /// The number of tools.
    pub tools: usize,
}

/// The findings that count of the rules of [`STRICTNESS`], for one server.
#[must_use]
pub fn strictness(findings: &[Finding], server: Option<&str>) -> Vec<RuleSum> {
    STRICTNESS
        .into_iter()
        .filter_map(|rule| {
            let mut tools: Vec<usize> = findings
                .iter()
                .filter(|finding| finding.counts() && finding.rule.as_deref() == Some(rule))
                .filter(|finding| finding.server.as_deref() == server)
                .map(|finding| finding.index)
                .collect();
            let count = tools.len();
            tools.dedup();
            (count > 0).then(|| RuleSum {
                rule: rule.to_owned(),
                count,
                tools: tools.len(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
