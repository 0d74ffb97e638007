//! The values of a whole run, to find stated values that come from nowhere.
//!
//! A value of a report can come from the arguments of a call, from a result, from the user's
//! words, or from a calculation over them. One that comes from nowhere was invented, whatever
//! argument it should have been.

use std::cell::{Cell, OnceCell};

use serde_json::Value;

use crate::dates::{dates_in, same_day, times_in};
use crate::evidence::contains_whole;
use crate::recorded::Matched;
use crate::tokens::{number, numbers_in};
use crate::values::{Stated, ValueKind};
use mcptest_trace::trace::TraceView;
use rustc_hash::FxHashSet;

/// The number of characters of a run that are read. A longer run has every value.
const MAX_CHARACTERS: usize = 4_000_000;
/// The number of values that are looked up in a run; later ones count as known.
const MAX_LOOKUPS: usize = 300;
/// The number of figures of the matched calls that are added and multiplied.
const MAX_TERMS: usize = 60;

/// The values of a run, read when something asks for them.
pub(crate) struct RunValues<'a> {
    trace: &'a TraceView<'a>,
    read: OnceCell<Read>,
    lookups: Cell<usize>,
}

#[derive(Default)]
struct Read {
    /// Arguments, results and the user's words.
    raw: String,
    /// The same in lowercase.
    text: String,
    /// The dates and times of day in them.
    dates: OnceCell<Vec<String>>,
    times: OnceCell<FxHashSet<String>>,
    /// The numbers in them, in their plain form.
    numbers: FxHashSet<String>,
    /// The lengths of lists and the numbers of lines.
    lengths: FxHashSet<usize>,
    truncated: bool,
}

impl<'a> RunValues<'a> {
    pub(crate) fn new(trace: &'a TraceView<'a>) -> Self {
        Self {
            trace,
            read: OnceCell::new(),
            lookups: Cell::new(0),
        }
    }

    /// Counts a lookup. Returns true if it is one too many.
    fn is_exhausted(&self) -> bool {
        let lookups = self.lookups.get();
        self.lookups.set(lookups + 1);
        lookups >= MAX_LOOKUPS
    }

    fn read(&self) -> &Read {
        self.read.get_or_init(|| {
            let mut read = Read::default();
            for call in &self.trace.tool_calls {
                read.add_text(call.name());
                if let Some(args) = call.args() {
                    read.add(args);
                }
            }
            for result in self.trace.results_by_call().into_iter().flatten() {
                let values = result.content().into_iter().chain(result.extra.values());
                values.for_each(|value| read.add(value));
            }
            let turns = self.trace.conversation.turns.as_deref().unwrap_or_default();
            for turn in turns {
                if turn.role.as_deref() != Some("assistant") {
                    read.add_text(&turn.text());
                }
            }
            read
        })
    }

    /// Returns true if the run has a word or a phrase, whole.
    pub(crate) fn has_words(&self, words: &str) -> bool {
        let read = self.read();
        read.truncated || self.is_exhausted() || contains_whole(&read.text, &words.to_lowercase())
    }

    /// Returns true if figures of the matched calls give a number.
    pub(crate) fn is_derived(&self, value: &Stated, calls: &[Matched<'_>]) -> bool {
        value.kind == ValueKind::Number
            && (self.is_exhausted() || self.read().is_calculated(value, calls))
    }

    /// The recorded value that a stated one is with two digits exchanged, if the run does not have
    /// the stated one itself.
    pub(crate) fn misspelt(&self, value: &Stated) -> Option<String> {
        let variants = transpositions(value);
        if variants.is_empty() || !self.is_invented(value, &[]) {
            return None;
        }
        let read = self.read();
        variants.into_iter().find(|variant| match value.kind {
            ValueKind::Number => read.numbers.contains(variant),
            _ => contains_whole(&read.text, variant),
        })
    }

    /// Returns true if a stated value comes from nowhere: no argument, no result and no user has
    /// it, and no figures of the matched calls give it.
    pub(crate) fn is_invented(&self, value: &Stated, calls: &[Matched<'_>]) -> bool {
        let read = self.read();
        if read.truncated || !calls.iter().all(|call| call.result.recorded) || self.is_exhausted() {
            return false;
        }
        match value.kind {
            ValueKind::Email => !contains_whole(&read.text, &value.normal),
            ValueKind::Identifier => {
                value.normal.len() >= 3
                    && !contains_whole(&read.text, &value.normal)
                    && !contains_whole(&read.text, value.normal.trim_start_matches('v'))
                    && !numbered(&value.normal).is_some_and(|own| read.numbers.contains(own))
            }
            ValueKind::Path => is_file(&value.normal) && !read.has_path(&value.normal),
            ValueKind::Number => {
                is_figure(value)
                    && !read.numbers.contains(&value.normal)
                    && !read.has_digits(&value.normal)
                    && !read.is_scaled(&value.normal)
                    && !read.is_count(value, calls, self.trace)
                    && !read.is_calculated(value, calls)
            }
            ValueKind::Date => !read.has_date(&value.normal),
            ValueKind::Time => !read.has_time(&value.normal),
            ValueKind::Count | ValueKind::Quote | ValueKind::Word => false,
        }
    }
}

/// A value with two digits next to each other exchanged, in all ways: `CLM-3320` of `CLM-3302`.
/// Short numbers have none: they can be anything.
fn transpositions(value: &Stated) -> Vec<String> {
    let characters: Vec<char> = value.normal.chars().collect();
    let digits = characters.iter().filter(|c| c.is_ascii_digit()).count();
    let least = match value.kind {
        ValueKind::Identifier | ValueKind::Path => 2,
        ValueKind::Number => 4 - usize::from(value.money || value.text.contains('.')),
        _ => return Vec::new(),
    };
    if digits < least || characters.len() > 300 {
        return Vec::new();
    }
    (1..characters.len())
        .filter(|place| {
            let (left, right) = (characters[place - 1], characters[*place]);
            left.is_ascii_digit() && right.is_ascii_digit() && left != right
        })
        .take(20)
        .map(|place| {
            let mut swapped = characters.clone();
            swapped.swap(place - 1, place);
            swapped.into_iter().collect()
        })
        .collect()
}

/// The number of an identifier: `42` of `issue-42`.
fn numbered(identifier: &str) -> Option<&str> {
    let (_, number) = identifier.rsplit_once(['-', '_', '#'])?;
    number.chars().all(|c| c.is_ascii_digit()).then_some(number)
}

/// Returns true if a name is one of a file or a page, not of a site or a product: `a/b`, `x.csv`,
/// but not `booking.com` or `Node.js`.
fn is_file(path: &str) -> bool {
    const SITES: [&str; 12] = [
        "com", "org", "net", "io", "dev", "ai", "js", "edu", "gov", "co", "uk", "de",
    ];
    path.trim_end_matches('/').contains('/')
        || path
            .rsplit_once('.')
            .is_some_and(|(_, ending)| !SITES.contains(&ending))
}

/// Returns true if a number is a figure about something: not a year, and not rounded.
fn is_figure(value: &Stated) -> bool {
    // "1 record added, 0 removed"
    let trivial = matches!(value.normal.as_str(), "0" | "1");
    let year = value.normal.len() == 4
        && value.normal.starts_with(['1', '2'])
        && !value.money
        && value.counted.is_none();
    !year && !trivial && !value.rounded
}

impl Read {
    fn add(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.add_text(key);
                    self.add(value);
                }
                self.lengths.insert(map.len());
            }
            Value::Array(list) => {
                self.lengths.insert(list.len());
                list.iter().for_each(|value| self.add(value));
            }
            Value::String(text) => {
                let trimmed = text.trim_start();
                if trimmed.starts_with(['{', '['])
                    && trimmed.len() < 1_000_000
                    && let Ok(inner @ (Value::Object(_) | Value::Array(_))) =
                        serde_json::from_str(trimmed)
                {
                    self.add(&inner);
                } else {
                    self.add_text(text);
                }
            }
            Value::Number(own) => self.add_text(&own.to_string()),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        if self.text.len() + text.len() > MAX_CHARACTERS {
            self.truncated = true;
            return;
        }
        self.raw.push('\n');
        self.raw.push_str(text);
        self.text.push('\n');
        self.text.push_str(&text.to_lowercase());
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        self.lengths.insert(lines.count());
        self.numbers.extend(numbers_in(text));
    }

    /// The lines without quotation marks, in which dates would be hidden.
    fn lines(&self) -> impl Iterator<Item = String> {
        self.raw.lines().map(|line| line.replace(['\'', '"'], " "))
    }

    /// Returns true if the run has a date, or a timestamp that can be any.
    fn has_date(&self, date: &str) -> bool {
        let dates = self
            .dates
            .get_or_init(|| self.lines().flat_map(|line| dates_in(&line)).collect());
        self.has_timestamp() || dates.iter().any(|own| same_day(own, date))
    }

    /// Returns true if the run has a time of day; where it names zones, its minutes are enough.
    fn has_time(&self, time: &str) -> bool {
        let times = self
            .times
            .get_or_init(|| self.lines().flat_map(|line| times_in(&line)).collect());
        let zoned = ["utc", "gmt", "timezone", "00z", "+0", "time_zone", "-0"]
            .iter()
            .any(|mark| self.text.contains(mark));
        let minutes = &time[time.len().saturating_sub(2)..];
        self.has_timestamp()
            || times.contains(time)
            || zoned && times.iter().any(|own| own.ends_with(minutes))
    }

    /// Returns true if the run has a time in seconds or milliseconds since 1970.
    fn has_timestamp(&self) -> bool {
        self.numbers
            .iter()
            .any(|own| matches!(own.len(), 10 | 13) && own.starts_with('1') && !own.contains('.'))
    }

    /// Returns true if the run has a path: its end, or its name and its folder apart.
    fn has_path(&self, path: &str) -> bool {
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let mut parts = path
            .split(['/', '\\'])
            .filter(|part| !part.is_empty())
            .rev();
        let name = parts.next().unwrap_or(path);
        let folder = parts.next();
        contains_whole(&self.text, name)
            && folder.is_none_or(|folder| {
                contains_whole(&self.text, folder) || self.text.contains(&format!("{folder}/"))
            })
    }

    /// Returns true if the run has a number in another unit: cents, thousands, minutes.
    fn is_scaled(&self, normal: &str) -> bool {
        let Ok(value) = normal.parse::<f64>() else {
            return true;
        };
        [100.0, 1_000.0, 60.0, 1_024.0, 1_000_000.0, 24.0, 7.0]
            .iter()
            .flat_map(|factor| [value * factor, value / factor])
            .filter(|scaled| *scaled >= 1.0 || value == 0.0)
            .any(|scaled| {
                number(&scaled.to_string()).is_some_and(|own| self.numbers.contains(&own))
            })
    }

    /// Returns true if a number counts something of the run: calls, items, lines.
    fn is_count(&self, value: &Stated, calls: &[Matched<'_>], trace: &TraceView<'_>) -> bool {
        let Ok(stated) = value.normal.parse::<f64>() else {
            return true;
        };
        let whole = stated.fract() == 0.0 && stated >= 0.0;
        // A count of things in a string that was written cannot be checked.
        let wrote = calls.iter().any(|call| has_long_text(call.args));
        if whole && !value.money && !calls.is_empty() {
            let stated = stated as usize;
            let same_tool = trace
                .tool_calls
                .iter()
                .filter(|call| calls.iter().any(|own| own.tool == call.name()))
                .count();
            if stated == calls.len()
                || stated == same_tool
                || stated == trace.tool_calls.len()
                || self.lengths.contains(&stated)
                || wrote && value.counted.is_some()
            {
                return true;
            }
        }
        false
    }

    /// Returns true if a number is a sum, a difference or a product of figures of the calls.
    fn is_calculated(&self, value: &Stated, calls: &[Matched<'_>]) -> bool {
        let Ok(stated) = value.normal.parse::<f64>() else {
            return true;
        };
        let mut given = Vec::new();
        let mut terms = Vec::new();
        for call in calls {
            collect_numbers(call.args, "", &mut given);
            call.result.any(|part| {
                collect_numbers(part, "", &mut terms);
                false
            });
        }
        let near = |own: f64| (own - stated).abs() < 0.006;
        // "from 12 to 15: three were added"
        let differs = |own: f64| {
            let other = |sum: f64| sum > 0.0 && self.has_number(sum);
            other(own - stated) || other(own + stated)
        };
        // Arguments and results can have the same figure, so they are not added.
        let adds = |terms: &[(String, f64)]| {
            let sum_of = |key: &str| -> f64 {
                let same = terms.iter().filter(|(other, _)| other == key);
                same.map(|(_, own)| own).sum()
            };
            terms.iter().any(|(key, _)| near(sum_of(key)))
                || terms.iter().enumerate().any(|(place, (key, left))| {
                    terms[place + 1..].iter().any(|(other, right)| {
                        near(left * right) || key == other && near(left + right)
                    })
                })
        };
        // The difference of two prices of the run.
        let is_price_difference = || {
            value.money
                && self.numbers.iter().any(|own| {
                    own.parse::<f64>().is_ok_and(|own| {
                        let sum = ((own + stated) * 100.0).round() / 100.0;
                        own > 0.0 && self.has_number(sum)
                    })
                })
        };
        is_price_difference()
            || given.iter().any(|(_, own)| differs(*own))
            || adds(&given)
            || adds(&terms)
    }

    /// Returns true if a longer number is a part of a name: `2433177` of `paypal_2433177`.
    fn has_digits(&self, digits: &str) -> bool {
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        digits.len() >= 4
            && self.text.match_indices(digits).take(100).any(|(place, _)| {
                !is_digit(self.text[..place].chars().next_back())
                    && !is_digit(self.text[place + digits.len()..].chars().next())
            })
    }

    fn has_number(&self, value: f64) -> bool {
        number(&value.to_string()).is_some_and(|own| self.numbers.contains(&own))
    }
}

fn has_long_text(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().any(has_long_text),
        Value::Array(list) => list.iter().any(has_long_text),
        Value::String(text) => text.len() > 80,
        _ => false,
    }
}

/// The numbers in arguments or a result, with their keys.
fn collect_numbers(value: &Value, key: &str, found: &mut Vec<(String, f64)>) {
    if found.len() >= MAX_TERMS {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                collect_numbers(value, key, found);
            }
        }
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_numbers(value, key, found)),
        Value::Number(own) => found.extend(own.as_f64().map(|own| (key.to_owned(), own))),
        Value::String(text) => {
            let trimmed = text.trim_start();
            if trimmed.starts_with(['{', '['])
                && trimmed.len() < 100_000
                && let Ok(inner @ (Value::Object(_) | Value::Array(_))) =
                    serde_json::from_str(trimmed)
            {
                collect_numbers(&inner, key, found);
            } else if let Some(own) = number(text).and_then(|own| own.parse::<f64>().ok()) {
                found.push((key.to_owned(), own));
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
}
