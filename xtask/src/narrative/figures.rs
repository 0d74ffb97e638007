//! Messages with figures, made from templates: the true values, and one wrong value at a time.
//!
//! A line of a set is a run with slots (`{id}`) in its calls and in its messages. A slot has a
//! kind and so a range of values: `id:ORD-####` (a digit for `#`, a letter for `@`),
//! `amount:5-900`, `int:2-40`, `count:2-7`, `date`, `time`, `email`, `path:/srv/*.csv` and
//! `name:a|b|c`. A message is written once with the values of the calls, which is harmless, and
//! once for each of its slots with another value there, which is a lie.

use std::collections::BTreeMap;
use std::io::{Error, Result};

use serde::Deserialize;
use serde_json::{Value, json};

use super::plant::Random;
use super::rounds::{Call, files, trace};
use super::{alarms, percent, score};

/// Drawings of values for each message.
const DRAWINGS: usize = 4;

#[derive(Deserialize)]
struct Template {
    context: String,
    slots: BTreeMap<String, String>,
    calls: Vec<Value>,
    messages: Vec<String>,
}

/// Measures the sets. Returns the share of lies that are caught, and of true messages that raise
/// an alarm; with `show`, prints every message that is judged wrongly.
pub fn measure(show: bool) -> Result<(f64, f64)> {
    let (mut caught, mut lies, mut raised, mut harmless) = (0, 0, 0, 0);
    for (name, text) in files("figures")? {
        let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let (mut alarmed, mut all) = (0, 0);
        let mut random = Random::new(23);
        for line in text.lines() {
            let template: Template = serde_json::from_str(line)
                .map_err(|error| Error::other(format!("{name}: {error}")))?;
            for message in &template.messages {
                for drawing in 0..DRAWINGS {
                    let values = template.draw(&mut random);
                    let calls = template.calls(&values)?;
                    let truth = template.write(message, &values, &mut random);
                    all += 1;
                    let found = score(&trace(&calls, &truth)?);
                    if alarms(&found) > 0 {
                        alarmed += 1;
                        if show && drawing == 0 {
                            let context = &template.context;
                            println!("  alarm ({context}): {truth:?} {:?}", found.actions());
                        }
                    }
                    for (slot, kind) in &template.slots {
                        if !message.contains(&format!("{{{slot}}}")) {
                            continue;
                        }
                        let mut wrong = values.clone();
                        wrong.insert(slot.clone(), other_value(kind, &values[slot], &mut random));
                        let lie = template.write(message, &wrong, &mut random);
                        let kind = kind.split(':').next().unwrap_or_default().to_owned();
                        let (own, of) = kinds.entry(kind).or_default();
                        *of += 1;
                        if alarms(&score(&trace(&calls, &lie)?)) > 0 {
                            *own += 1;
                        } else if show && drawing == 0 {
                            let context = &template.context;
                            println!("  missed {slot} ({context}): {lie:?}");
                        }
                    }
                }
            }
        }
        let own: usize = kinds.values().map(|(own, _)| own).sum();
        let of: usize = kinds.values().map(|(_, of)| of).sum();
        let kinds: Vec<String> = kinds
            .iter()
            .map(|(kind, (own, of))| format!("{kind} {own}/{of}"))
            .collect();
        println!(
            "{name}: {own} of {of} wrong figures caught ({:.1} %: {}), {alarmed} of {all} true \
             messages raised an alarm ({:.1} %)",
            percent(own, of) * 100.0,
            kinds.join(", "),
            percent(alarmed, all) * 100.0
        );
        caught += own;
        lies += of;
        raised += alarmed;
        harmless += all;
    }
    Ok((percent(caught, lies), percent(raised, harmless)))
}

impl Template {
    fn draw(&self, random: &mut Random) -> BTreeMap<String, String> {
        self.slots
            .iter()
            .map(|(slot, kind)| (slot.clone(), value(kind, random)))
            .collect()
    }

    /// The calls with their values.
    fn calls(&self, values: &BTreeMap<String, String>) -> Result<Vec<Call>> {
        let mut calls = Vec::new();
        for call in &self.calls {
            let times = match call.get("repeat").and_then(Value::as_str) {
                Some(slot) => values[slot].parse().map_err(Error::other)?,
                None => 1,
            };
            for index in 0..times {
                let mut values = values.clone();
                values.insert("i".to_owned(), (index + 1).to_string());
                let filled = self.fill(call, &values);
                calls.push(serde_json::from_value(filled).map_err(Error::other)?);
            }
        }
        Ok(calls)
    }

    fn fill(&self, value: &Value, values: &BTreeMap<String, String>) -> Value {
        match value {
            Value::Object(map) => {
                // `{"list": "n", "of": "msg-{i}"}`
                if let (Some(Value::String(slot)), Some(of)) = (map.get("list"), map.get("of")) {
                    let items = values[slot].parse().unwrap_or(0);
                    return (1..=items)
                        .map(|index: usize| {
                            let mut values = values.clone();
                            values.insert("i".to_owned(), index.to_string());
                            self.fill(of, &values)
                        })
                        .collect();
                }
                map.iter()
                    .map(|(key, value)| (key.clone(), self.fill(value, values)))
                    .collect()
            }
            Value::Array(list) => list.iter().map(|value| self.fill(value, values)).collect(),
            Value::String(text) => {
                let only = text
                    .strip_prefix('{')
                    .and_then(|rest| rest.strip_suffix('}'));
                if let Some(slot) = only.filter(|slot| is_numeric(self.kind(slot))) {
                    let number: f64 = values[slot].parse().unwrap_or_default();
                    return if number.fract() == 0.0 {
                        json!(number as i64)
                    } else {
                        json!(number)
                    };
                }
                let mut text = text.clone();
                for (slot, value) in values {
                    text = text.replace(&format!("{{{slot}}}"), value);
                }
                Value::String(text)
            }
            other => other.clone(),
        }
    }

    fn kind(&self, slot: &str) -> &str {
        self.slots.get(slot).map_or("", String::as_str)
    }

    /// The message with its values as people write them.
    fn write(
        &self,
        message: &str,
        values: &BTreeMap<String, String>,
        random: &mut Random,
    ) -> String {
        let mut text = message.to_owned();
        for (slot, value) in values {
            let written = written(self.kind(slot), value, random);
            text = text.replace(&format!("{{{slot}}}"), &written);
        }
        let mut letters = text.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect())
            .unwrap_or_default()
    }
}

fn is_numeric(kind: &str) -> bool {
    ["amount", "int", "count"]
        .iter()
        .any(|known| kind.starts_with(known))
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const PEOPLE: [&str; 8] = [
    "ana",
    "b.lund",
    "chris",
    "dora.meyer",
    "eli",
    "f.haas",
    "gus",
    "h.ito",
];
const DOMAINS: [&str; 4] = [
    "corp.example",
    "mail.example",
    "north.example",
    "shop.example",
];
const STEMS: [&str; 8] = [
    "budget",
    "summary",
    "june",
    "orders",
    "readme",
    "plan-b",
    "minutes",
    "inventory",
];

/// A value of a kind, as a call has it.
fn value(kind: &str, random: &mut Random) -> String {
    let (kind, range) = kind.split_once(':').unwrap_or((kind, ""));
    let between = |random: &mut Random| {
        let (low, high) = range.split_once('-').unwrap_or(("1", "9"));
        let low: usize = low.parse().unwrap_or(1);
        let high: usize = high.parse().unwrap_or(9);
        low + random.below(high - low + 1)
    };
    match kind {
        "id" => range
            .chars()
            .map(|c| match c {
                '#' => char::from(b'1' + random.below(9) as u8),
                '@' => char::from(b'A' + random.below(26) as u8),
                other => other,
            })
            .collect(),
        "amount" => {
            let whole = between(random);
            match random.below(2) {
                0 => whole.to_string(),
                _ => format!("{whole}.{:02}", 5 + random.below(94)),
            }
        }
        "int" | "count" => between(random).to_string(),
        "date" => format!(
            "2026-{:02}-{:02}",
            1 + random.below(12),
            1 + random.below(28)
        ),
        "time" => format!("{:02}:{:02}", 6 + random.below(16), 5 * random.below(12)),
        "email" => format!("{}@{}", random.pick(&PEOPLE), random.pick(&DOMAINS)),
        "path" => {
            let stem: &&str = random.pick(&STEMS);
            range.replace('*', stem)
        }
        _ => {
            let names: Vec<&str> = range.split('|').collect();
            (*random.pick(&names)).to_owned()
        }
    }
}

fn other_value(kind: &str, value_now: &str, random: &mut Random) -> String {
    for _ in 0..100 {
        let other = value(kind, random);
        if other != value_now {
            return other;
        }
    }
    format!("{value_now}0")
}

/// A value as people write it.
fn written(kind: &str, value: &str, random: &mut Random) -> String {
    match kind.split(':').next().unwrap_or_default() {
        "amount" => {
            let (whole, cents) = value.split_once('.').unwrap_or((value, ""));
            let mut grouped = String::new();
            for (place, digit) in whole.chars().enumerate() {
                if place > 0 && (whole.len() - place) % 3 == 0 {
                    grouped.push(',');
                }
                grouped.push(digit);
            }
            let number = match (cents, random.below(2)) {
                ("", 0) => grouped,
                ("", _) => format!("{grouped}.00"),
                (cents, _) => format!("{grouped}.{cents}"),
            };
            match random.below(4) {
                0 => format!("€{number}"),
                1 => format!("{number} EUR"),
                2 => format!("{number} dollars"),
                _ => format!("${number}"),
            }
        }
        "count" => {
            let words = [
                "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
            ];
            match value.parse::<usize>() {
                Ok(count @ 2..=10) if random.below(2) == 0 => words[count - 2].to_owned(),
                _ => value.to_owned(),
            }
        }
        "date" => {
            let month: usize = value[5..7].parse().unwrap_or(1);
            let day: usize = value[8..10].parse().unwrap_or(1);
            let month = MONTHS[month - 1];
            match random.below(5) {
                0 => value.to_owned(),
                1 => format!("{day} {month} 2026"),
                2 => format!("{month} {day}, 2026"),
                3 => format!("{} {day}", &month[..3]),
                _ => format!("{month} {day}"),
            }
        }
        "time" => {
            let hour: usize = value[..2].parse().unwrap_or(0);
            let half = if hour < 12 { "AM" } else { "PM" };
            match random.below(3) {
                0 => format!("{}:{} {half}", (hour + 11) % 12 + 1, &value[3..]),
                1 => format!("{hour}:{}", &value[3..]),
                _ => value.to_owned(),
            }
        }
        "path" if random.below(2) == 0 => {
            format!("`{}`", value.rsplit('/').next().unwrap_or(value))
        }
        _ => value.to_owned(),
    }
}
