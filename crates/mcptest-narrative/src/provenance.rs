//! The values of a whole run, to find stated values that come from nowhere.
//!
//! A value of a report can come from the arguments of a call, from a result, from the user's
//! words, or from a calculation over them. One that comes from nowhere was invented, whatever
//! argument it should have been.

use std::cell::{Cell, OnceCell};

use serde_json::Value;

use crate::dates::{dates_in, same_day, times_in};
use crate::derive::{Asked, Terms};
use crate::evidence::contains_whole;
use crate::recorded::Matched;
use crate::tokens::{numbers_in, unescaped};
use crate::values::{Stated, ValueKind};
use mcptest_trace::trace::TraceView;
use rustc_hash::FxHashSet;

/// The number of characters of a run that are read. A longer run has every value.
const MAX_CHARACTERS: usize = 4_000_000;
/// The number of values that are looked up in a run; later ones count as known.
const MAX_LOOKUPS: usize = 300;
/// The values of a run, read when something asks for them.
pub(crate) struct RunValues<'a> {
    trace: &'a TraceView<'a>,
    read: OnceCell<Read>,
    terms: OnceCell<Terms>,
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
    /// The numbers at the end of names: `32` of `ep32`.
    embedded: FxHashSet<String>,
    /// The lengths of lists and the numbers of lines.
    lengths: FxHashSet<usize>,
    truncated: bool,
}

impl<'a> RunValues<'a> {
    pub(crate) fn new(trace: &'a TraceView<'a>) -> Self {
        Self {
            trace,
            read: OnceCell::new(),
            terms: OnceCell::new(),
            lookups: Cell::new(0),
        }
    }

    /// The figures of the run, to be combined.
    pub(crate) fn terms(&self) -> &Terms {
        self.terms.get_or_init(|| Terms::new(self.trace))
    }

    /// Returns true if a number follows from recorded figures in any way.
    fn is_calculated(&self, value: &Stated) -> bool {
        self.terms().give(&Asked {
            stated: &value.normal,
            percent: value.percent,
            message: &[],
            counts: &[],
            total: value.money,
            combined: true,
            converted: value.money || value.text.contains(char::is_alphabetic),
        })
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

    /// Returns true if the run has a number, by itself or as a part of a name.
    pub(crate) fn has_number_text(&self, normal: &str) -> bool {
        let read = self.read();
        let normal = normal.trim_start_matches('-');
        read.truncated
            || read.numbers.contains(normal)
            || read.embedded.contains(normal)
            || read.has_digits(normal)
    }

    /// Returns true if the run has a lowercase text.
    pub(crate) fn has_text(&self, text: &str) -> bool {
        let read = self.read();
        read.truncated || read.text.contains(text)
    }

    /// Returns true if the run has no such identifier, address or path.
    pub(crate) fn is_unknown_name(&self, value: &Stated) -> bool {
        let read = self.read();
        !read.truncated
            && value.normal.len() >= 3
            && !contains_whole(&read.text, &value.normal)
            && !contains_word(&read.text, &value.normal)
            && match value.kind {
                ValueKind::Identifier => {
                    !contains_whole(&read.text, value.normal.trim_start_matches('v'))
                        && !contains_whole(&read.text, &format!("v{}", value.normal))
                }
                ValueKind::Path => !read.has_path(&value.normal),
                _ => true,
            }
    }

    /// Returns true if the run has no such date or time of day.
    pub(crate) fn is_unknown_time(&self, value: &Stated) -> bool {
        let read = self.read();
        !read.truncated
            && match value.kind {
                ValueKind::Date => !read.has_date(&value.normal),
                ValueKind::Time => {
                    !read.has_time(&value.normal)
                        && !half_day_later(&value.normal, &value.text)
                            .is_some_and(|later| read.has_time(&later))
                }
                _ => false,
            }
    }

    /// Returns true if figures of the matched calls give a number.
    pub(crate) fn is_derived(&self, value: &Stated) -> bool {
        value.kind == ValueKind::Number && (self.is_exhausted() || self.is_calculated(value))
    }

    /// The recorded value that a stated one is with two digits exchanged, if the run does not have
    /// the stated one itself.
    pub(crate) fn misspelt(&self, value: &Stated) -> Option<String> {
        let variants = transpositions(value);
        if variants.is_empty() || !self.is_invented(value, &[]) {
            return None;
        }
        let read = self.read();
        // `0.826` as "86.2 %"
        let share = |variant: &String| {
            let own: f64 = variant.parse().ok()?;
            let text = format!("{:.4}", own / 100.0);
            Some(text.trim_end_matches('0').to_owned())
        };
        variants.into_iter().find(|variant| match value.kind {
            ValueKind::Number if value.percent => {
                share(variant).is_some_and(|own| read.numbers.contains(&own))
                    || read.numbers.contains(variant)
            }
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
                    && !contains_word(&read.text, &value.normal)
                    && !contains_whole(&read.text, value.normal.trim_start_matches('v'))
                    && !contains_whole(&read.text, &format!("v{}", value.normal))
                    && !numbered(&value.normal).is_some_and(|own| read.numbers.contains(own))
            }
            ValueKind::Path => is_file(&value.normal) && !read.has_path(&value.normal),
            ValueKind::Number => {
                is_figure(value)
                    && !read.numbers.contains(&value.normal)
                    && !read.has_digits(&value.normal)
                    && !read.is_count(value, calls, self.trace)
                    && !self.is_calculated(value)
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
        ValueKind::Number if value.percent => 2,
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
    path.trim_end_matches('/').contains('/') || path.contains('.') && !is_site(path)
}

/// The numbers of short names of letters and digits: `119` of `A119`, `32` of `ep32`.
fn embedded_numbers(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    parts.filter_map(|part| {
        let letters = part.find(|c: char| c.is_ascii_digit())?;
        let digits = &part[letters..];
        let short = (1..=8).contains(&letters) && (2..=6).contains(&digits.len());
        (short && digits.bytes().all(|c| c.is_ascii_digit()) && !digits.starts_with('0'))
            .then(|| digits.to_owned())
    })
}

/// Returns true if a string has a word, also as a part of a name with underscores: `p95` of
/// `p95_ms`.
fn contains_word(text: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-');
    word.chars().all(char::is_alphanumeric)
        && text.match_indices(word).take(1_000).any(|(place, _)| {
            !part(text[..place].chars().next_back())
                && !part(text[place + word.len()..].chars().next())
        })
}

/// Returns true if a name ends like one of a site or a product.
pub(crate) fn is_site(name: &str) -> bool {
    const SITES: [&str; 12] = [
        "com", "org", "net", "io", "dev", "ai", "js", "edu", "gov", "co", "uk", "de",
    ];
    name.rsplit_once('.')
        .is_some_and(|(_, ending)| SITES.contains(&ending))
}

/// Returns true if a number is a figure about something: not a year, and not rounded.
fn is_figure(value: &Stated) -> bool {
    // "1 record added, 0 removed"
    let trivial = matches!(value.normal.as_str(), "0" | "1");
    let year = value.normal.len() == 4
        && value.normal.starts_with(['1', '2'])
        && !value.money
        && value.counted.is_none();
    // "from the 5th to the 6th": days
    let ordinal = value.text.ends_with(|c: char| c.is_ascii_lowercase())
        && ["st", "nd", "rd", "th"]
            .iter()
            .any(|end| value.text.ends_with(end));
    !year && !trivial && !value.rounded && !ordinal
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
        let text = &*unescaped(text);
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
        self.embedded.extend(embedded_numbers(text));
    }

    /// The lines without quotation marks, in which dates would be hidden.
    fn lines(&self) -> impl Iterator<Item = String> {
        self.raw.lines().map(|line| line.replace(['\'', '"'], " "))
    }

    /// The ends of lines with the beginnings of the next: a date can be wrapped.
    fn wrapped(&self) -> impl Iterator<Item = String> {
        let ends = |line: &str| -> String {
            let words: Vec<&str> = line.split_whitespace().rev().take(3).collect();
            words.into_iter().rev().collect::<Vec<_>>().join(" ")
        };
        let starts = |line: &str| -> String {
            line.split_whitespace()
                .take(3)
                .collect::<Vec<_>>()
                .join(" ")
        };
        self.raw
            .lines()
            .zip(self.raw.lines().skip(1))
            .filter(|(line, next)| {
                let digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
                digit(next) || digit(line)
            })
            .map(move |(line, next)| {
                let end = ends(line).replace(['\'', '"', '\\'], " ");
                format!("{end} {}", starts(next).replace(['\'', '"', '\\'], " "))
            })
    }

    /// Returns true if the run has a date, written out or as a timestamp.
    fn has_date(&self, date: &str) -> bool {
        let dates = self.dates.get_or_init(|| {
            let mut dates: Vec<String> = self.lines().flat_map(|line| dates_in(&line)).collect();
            dates.extend(self.wrapped().flat_map(|line| dates_in(&line)));
            dates.extend(self.numbers.iter().flat_map(|own| days_of_timestamp(own)));
            dates.sort_unstable();
            dates.dedup();
            dates
        });
        dates.iter().any(|own| same_day(own, date))
    }

    /// Returns true if the run has a time of day; where it names zones or has timestamps, its
    /// minutes are enough.
    fn has_time(&self, time: &str) -> bool {
        let times = self
            .times
            .get_or_init(|| self.lines().flat_map(|line| times_in(&line)).collect());
        let minutes = &time[time.len().saturating_sub(2)..];
        times.contains(time)
            || self.has_timestamp()
            || is_zoned(&self.text) && times.iter().any(|own| own.ends_with(minutes))
    }

    /// Returns true if the run has a time in seconds or milliseconds since 1970.
    fn has_timestamp(&self) -> bool {
        let named = ["timestamp", "_at\n", "time\n", "epoch", "unix", "ts\n"]
            .iter()
            .any(|mark| self.text.contains(mark));
        named
            && self
                .numbers
                .iter()
                .any(|own| !days_of_timestamp(own).is_empty())
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

    /// Returns true if a longer number is a part of a name: `2433177` of `paypal_2433177`.
    fn has_digits(&self, digits: &str) -> bool {
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        digits.len() >= 4
            && self.text.match_indices(digits).take(100).any(|(place, _)| {
                !is_digit(self.text[..place].chars().next_back())
                    && !is_digit(self.text[place + digits.len()..].chars().next())
            })
    }
}

/// The other time that "3:00" can mean.
fn half_day_later(time: &str, text: &str) -> Option<String> {
    let hours: u32 = time.split(':').next()?.parse().ok()?;
    let open = hours < 12 && !text.starts_with('0');
    open.then(|| format!("{}{}", hours + 12, &time[2..]))
}

/// Returns true if a string has times with a zone: `10:30Z`, `10:30+02:00`, "UTC".
fn is_zoned(text: &str) -> bool {
    let named = [
        "utc",
        "gmt",
        "timezone",
        "time_zone",
        " est",
        " cet",
        " pst",
    ]
    .iter()
    .any(|mark| text.contains(mark));
    let bytes = text.as_bytes();
    named
        || bytes.windows(4).any(|four| {
            four[0] == b':'
                && four[1].is_ascii_digit()
                && four[2].is_ascii_digit()
                && matches!(four[3], b'z' | b'+')
        })
}

/// The days around a number of seconds or milliseconds since 1970, from 2001 to 2096.
fn days_of_timestamp(number: &str) -> Vec<String> {
    let seconds = match (number.len(), number.parse::<u64>()) {
        (10, Ok(seconds)) => seconds,
        (13, Ok(milliseconds)) => milliseconds / 1_000,
        _ => return Vec::new(),
    };
    if !(1_000_000_000..4_000_000_000).contains(&seconds) {
        return Vec::new();
    }
    let day = (seconds / 86_400) as i64;
    (day - 1..=day + 1).map(civil_date).collect()
}

/// The date of a day since 1970.
fn civil_date(days: i64) -> String {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn has_long_text(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().any(has_long_text),
        Value::Array(list) => list.iter().any(has_long_text),
        Value::String(text) => text.len() > 80,
        _ => false,
    }
}
