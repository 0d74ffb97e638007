//! Figures that follow from recorded ones: sums, differences, products, shares, other units.

use serde_json::Value;

use mcptest_trace::trace::TraceView;
use rustc_hash::{FxHashMap, FxHashSet};

/// The number of figures of one call or result that are combined in pairs.
const MAX_PAIRED: usize = 60;
/// The number of figures of one call or result up to which one is divided by another.
const MAX_DIVIDED: usize = 12;
/// The number of figures of one call or result that are added.
const MAX_TERMS: usize = 2_000;
/// The number of calls whose figures are combined.
const MAX_GROUPS: usize = 400;

/// Factors between units of time, length, size and money.
#[rustfmt::skip]
const FACTORS: [f64; 20] = [
    100.0, 1_000.0, 60.0, 1_024.0, 1e6, 24.0, 7.0, 12.0, 3_600.0, 1_048_576.0, 1e9, 1e12, 86_400.0, 1_073_741_824.0,
    2.54, 1.609_344, 0.453_592, 0.3048, 3.785_41, 30.48,
];

/// The figures of a run by where they are, to be combined.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    groups: Vec<Vec<(u32, f64)>>,
    /// The keys of amounts.
    amounts: FxHashSet<u32>,
    /// The keys of what was before, and of what is after.
    states: FxHashSet<u32>,
    /// Sums of the figures under one key: in one result, and over all calls of one tool.
    sums: Vec<f64>,
    /// The figures under one key over all calls of one tool.
    columns: Vec<Vec<f64>>,
    /// The figures under keys of amounts in the whole run.
    money: Vec<f64>,
    /// The few figures under one key in the whole run.
    by_key: Vec<Vec<f64>>,
    /// All figures, each once.
    all: Vec<f64>,
}

impl Terms {
    pub(crate) fn new(trace: &TraceView<'_>) -> Self {
        let mut terms = Self::default();
        let mut keys: FxHashMap<String, u32> = FxHashMap::default();
        let mut by_tool: FxHashMap<(&str, u32), Vec<f64>> = FxHashMap::default();
        let mut by_key: FxHashMap<u32, Vec<f64>> = FxHashMap::default();
        let results = trace.results_by_call();
        for (index, call) in trace.tool_calls.iter().enumerate().take(MAX_GROUPS) {
            let mut given = Vec::new();
            if let Some(args) = call.args() {
                collect(args, "", &mut keys, &mut given);
            }
            let mut got = Vec::new();
            if let Some(result) = results.get(index).copied().flatten() {
                let values = result.content().into_iter().chain(result.extra.values());
                values.for_each(|value| collect(value, "", &mut keys, &mut got));
            }
            for group in [&given, &got] {
                for (key, value) in group {
                    by_tool.entry((call.name(), *key)).or_default().push(*value);
                    by_key.entry(*key).or_default().push(*value);
                }
            }
            terms.groups.push(given);
            terms.groups.push(got);
        }
        let mut said = Vec::new();
        let turns = trace.conversation.turns.as_deref().unwrap_or_default();
        for turn in turns {
            if turn.role.as_deref() != Some("assistant") {
                collect_text(&turn.text(), u32::MAX, &mut keys, &mut said);
            }
        }
        terms.groups.push(said);
        terms.amounts = keys
            .iter()
            .filter(|(key, _)| is_amount_key(key))
            .map(|(_, id)| *id)
            .collect();
        terms.states = keys
            .iter()
            .filter(|(key, _)| is_state_key(key))
            .map(|(_, id)| *id)
            .collect();
        for group in &terms.groups {
            let mut sums: FxHashMap<u32, (f64, usize)> = FxHashMap::default();
            for (key, value) in group {
                let own = sums.entry(*key).or_default();
                own.0 += value;
                own.1 += 1;
            }
            terms
                .sums
                .extend(sums.values().filter(|own| own.1 > 1).map(|own| own.0));
        }
        terms.sums.extend(
            by_tool
                .values()
                .filter(|own| own.len() > 1)
                .map(|own| own.iter().sum::<f64>()),
        );
        terms.columns = by_tool
            .into_values()
            .filter(|own| own.len() > 1)
            .map(|mut own| {
                own.sort_by(f64::total_cmp);
                own.dedup();
                own
            })
            .collect();
        for (key, own) in &by_key {
            if terms.amounts.contains(key) {
                terms.money.extend(own);
            }
        }
        terms.money.sort_by(f64::total_cmp);
        terms.money.dedup();
        terms.money.truncate(MAX_PAIRED);
        terms.by_key = by_key
            .into_values()
            .map(|mut own| {
                own.sort_by(f64::total_cmp);
                own.dedup();
                own
            })
            .filter(|own| (2..=MAX_SUBSET).contains(&own.len()))
            .collect();
        let mut seen: FxHashSet<u64> = FxHashSet::default();
        for group in &terms.groups {
            for (_, value) in group {
                if seen.insert(value.to_bits()) {
                    terms.all.push(*value);
                }
            }
        }
        terms
    }

    /// Returns true if a stated number follows from recorded ones, or from others that the message
    /// states.
    pub(crate) fn give(&self, asked: &Asked<'_>) -> bool {
        let Asked {
            stated,
            percent,
            message,
            counts,
            total,
            combined,
            converted,
        } = *asked;
        let Ok(value) = stated.parse::<f64>() else {
            return true;
        };
        let decimals = stated.split_once('.').map_or(0, |(_, digits)| digits.len());
        let half = 0.5 / 10_f64.powi(decimals as i32) + 1e-9;
        let rounds = |own: f64| (own.abs() - value.abs()).abs() <= half;
        let exact = |own: f64| (own.abs() - value.abs()).abs() < 0.006;
        // `4.19` as "4.2", but not `44.3` as "44".
        let rounded =
            |own: f64| rounds(own) && (decimals > 0 || own.abs() >= 100.0 || exact(own) || percent);
        if self.all.iter().any(|own| rounded(*own)) || self.sums.iter().any(|own| exact(*own)) {
            return true;
        }
        if converted
            && self.all.iter().any(|own| {
                FACTORS.iter().any(|factor| {
                    exact(own * factor) && value >= 1.0
                        || factor.fract() != 0.0 && rounds(own * factor)
                        || rounds(own / factor) && own / factor >= 1.0
                }) || rounds(own * 1.8 + 32.0)
                    || rounds((own - 32.0) / 1.8)
            })
        {
            return true;
        }
        // "150 each, 300 for two"
        let multiple = |own: &f64| {
            counts
                .iter()
                .any(|count| exact(own * count) || exact(own / count))
        };
        if self.all.iter().any(multiple) || message.iter().any(multiple) {
            return true;
        }
        // "€14.59 per square metre"
        let ratio = |group: &Vec<(u32, f64)>| {
            group.len() <= MAX_DIVIDED
                && group.iter().enumerate().any(|(place, (_, left))| {
                    group[place + 1..]
                        .iter()
                        .any(|(_, right)| rounds(left / right) || rounds(right / left))
                })
        };
        if decimals == 2 && self.groups.iter().any(ratio) {
            return true;
        }
        if !combined {
            return false;
        }
        if percent && self.is_share(value, half.max(0.5)) {
            return true;
        }
        if self
            .groups
            .iter()
            .any(|group| self.combines(group, value, percent))
        {
            return true;
        }
        if !percent
            && self.by_key.iter().chain([&self.money]).any(|own| {
                own.iter().enumerate().any(|(place, left)| {
                    own[place + 1..]
                        .iter()
                        .any(|right| exact(left + right) || exact(left - right))
                })
            })
        {
            return true;
        }
        if total
            && (is_subset_sum(message, value)
                || self.columns.iter().any(|own| is_subset_sum(own, value))
                // What was there and what a call added to it.
                || self.by_key.iter().any(|own| is_subset_sum(own, value))
                || self.groups.iter().any(|group| {
                    let mut keys: Vec<u32> = group.iter().map(|(key, _)| *key).collect();
                    keys.sort_unstable();
                    keys.dedup();
                    keys.iter().any(|key| {
                        let own: Vec<f64> = group
                            .iter()
                            .filter(|(other, _)| other == key)
                            .map(|(_, own)| *own)
                            .collect();
                        is_subset_sum(&own, value)
                    })
                }))
        {
            return true;
        }
        // "$54.04 and $20.00, $74.04 in total"
        message.iter().enumerate().any(|(place, left)| {
            message[place + 1..]
                .iter()
                .any(|right| exact(left + right) || exact(left - right) || exact(left * right))
        }) || message.len() > 2 && exact(message.iter().sum())
            || (2..message.len()).any(|count| exact(message[..count].iter().sum()))
    }

    /// Returns true if two figures of one place give the value.
    fn combines(&self, group: &[(u32, f64)], value: f64, percent: bool) -> bool {
        if percent {
            return false;
        }
        let group = &group[..group.len().min(MAX_PAIRED)];
        let exact = |own: f64| (own.abs() - value.abs()).abs() < 0.006;
        let is_amount = |key: &u32, own: f64| self.amounts.contains(key) || own.fract() != 0.0;
        group.iter().enumerate().any(|(place, (key, left))| {
            group[place + 1..].iter().any(|(other, right)| {
                let alike = key == other
                    || self.states.contains(key)
                    || self.states.contains(other)
                    || is_amount(key, *left) && is_amount(other, *right);
                exact(left * right) || alike && (exact(left - right) || exact(left + right))
            })
        })
    }

    /// Returns true if a percentage is a share or a change of recorded figures.
    fn is_share(&self, value: f64, tolerance: f64) -> bool {
        let near = |own: f64| own.is_finite() && (own.abs() - value).abs() <= tolerance;
        let all = &self.all[..self.all.len().min(200)];
        all.iter().any(|own| near(100.0 - own) || near(own * 100.0))
            || all.iter().enumerate().any(|(place, left)| {
                all[place + 1..].iter().any(|right| {
                    near(left / right * 100.0)
                        || near(right / left * 100.0)
                        || near((left - right) / left * 100.0)
                        || near((right - left) / right * 100.0)
                })
            })
    }
}

/// A stated number, and what it may follow from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub stated: &'a str,
    pub percent: bool,
    /// Other numbers of the message that the run has.
    pub message: &'a [f64],
    /// Small whole numbers that the message or the user states.
    pub counts: &'a [f64],
    /// True if the sentence is about a total.
    pub total: bool,
    /// True if the number can be a sum, a difference or a share.
    pub combined: bool,
    /// True if the number can be one in another unit.
    pub converted: bool,
}

/// The number of figures whose subsets are added.
const MAX_SUBSET: usize = 12;

/// Returns true if some of the first figures add up to the value.
fn is_subset_sum(figures: &[f64], value: f64) -> bool {
    let figures = &figures[..figures.len().min(MAX_SUBSET)];
    (1_u32..1 << figures.len()).any(|subset| {
        let sum: f64 = figures
            .iter()
            .enumerate()
            .filter(|(place, _)| subset & (1 << place) != 0)
            .map(|(_, own)| own)
            .sum();
        (sum - value).abs() < 0.006
    })
}

/// Returns true if a key is of an earlier or a later state: `before`, `new_total`.
fn is_state_key(key: &str) -> bool {
    key.to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| {
            matches!(
                word,
                "before"
                    | "after"
                    | "previous"
                    | "previously"
                    | "prior"
                    | "old"
                    | "new"
                    | "former"
                    | "was"
            )
        })
}

/// Returns true if a key is about money.
fn is_amount_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    [
        "amount", "price", "total", "cost", "fee", "balance", "payment", "refund", "differ",
        "paid", "sum", "budget", "salary", "value",
    ]
    .iter()
    .any(|known| key.contains(known))
}

fn collect(
    value: &Value,
    key: &str,
    keys: &mut FxHashMap<String, u32>,
    found: &mut Vec<(u32, f64)>,
) {
    if found.len() >= MAX_TERMS {
        return;
    }
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| collect(value, key, keys, found)),
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect(value, key, keys, found)),
        Value::Number(own) => {
            let id = keys.len() as u32;
            let id = *keys.entry(key.to_owned()).or_insert(id);
            found.extend(own.as_f64().map(|own| (id, own)));
        }
        Value::String(text) => {
            let trimmed = text.trim_start();
            if trimmed.starts_with(['{', '['])
                && trimmed.len() < 1_000_000
                && let Ok(inner @ (Value::Object(_) | Value::Array(_))) =
                    serde_json::from_str(trimmed)
            {
                collect(&inner, key, keys, found);
            } else {
                let id = keys.len() as u32;
                let id = *keys.entry(key.to_owned()).or_insert(id);
                collect_text(text, id, keys, found);
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
}

/// The numbers of a string. In lines such as `price: 12`, each has its key.
fn collect_text(
    text: &str,
    key: u32,
    keys: &mut FxHashMap<String, u32>,
    found: &mut Vec<(u32, f64)>,
) {
    for line in text.lines() {
        if found.len() >= MAX_TERMS {
            return;
        }
        let label = line
            .split_once(':')
            .map(|(label, _)| label.trim_start_matches(['-', ' ', '*']))
            .filter(|label| !label.is_empty() && label.len() <= 30 && !label.contains(' '));
        let key = match label {
            Some(label) => {
                let id = keys.len() as u32;
                *keys.entry(label.to_owned()).or_insert(id)
            }
            None => key,
        };
        let numbers = crate::tokens::numbers_in(line);
        found.extend(
            numbers
                .iter()
                .filter_map(|own| Some((key, own.parse().ok()?))),
        );
    }
}
