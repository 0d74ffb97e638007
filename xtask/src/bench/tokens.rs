//! The cost of pricing a catalog: whole processes, from the start to having seen their end, beside
//! OpenAI's tokenizer in Python on the same catalog.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use mcptest_numbers::random::SplitMix64;
use serde_json::{Map, Value, json};

use super::figures::{Bound, Options, Target, conclude, median, median_ratio};
use crate::catalogs::Tokenizer;
use crate::workspace::{self, Profile};

const FEW_TOOLS: u64 = 50;
const MANY_TOOLS: u64 = 5000;

/// Words that descriptions are made of.
const WORDS: &str = "the a of to and in for with by from list create update delete search page issue file user team project \
    repository branch comment message channel calendar event query result filter order limit offset cursor name title body text \
    date time zone status open closed pending optional required returns identifier format value default maximum minimum number \
    only when before after between example array object string boolean integer path folder content permission access token \
    organization workspace metadata timestamp attachment notification subscription configuration authentication";
const SYLLABLES: [&str; 16] = [
    "ka", "lo", "mir", "ten", "sub", "xy", "qua", "dor", "ent", "plex", "ing", "ura", "Ver", "Id",
    "hub", "net",
];

/// Measures and prints. True if everything is as it must be.
pub fn run(options: Options) -> Result<bool> {
    let rounds = if options.quick { 3 } else { 15 };
    let tokenizer = Tokenizer::install()?;
    let program = workspace::build(Profile::Release)?;
    let scratch = tempfile::tempdir()?;
    let [none, few, many] = [0, FEW_TOOLS, MANY_TOOLS].map(|count| {
        let path = scratch.path().join(format!("{count}.json"));
        std::fs::write(&path, catalog(count).to_string())?;
        anyhow::Ok(path)
    });
    let (none, few, many) = (none?, few?, many?);
    let doctor = |catalog: &Path| {
        let mut command = Command::new(&program);
        command
            .args(["doctor", "--format", "json", "--tools-from"])
            .arg(catalog);
        command
    };
    let python = || {
        let mut command = tokenizer.with_ranks("count.py");
        command.arg(&many);
        command
    };
    let names = [
        "mcptest, no tools",
        "mcptest, 50 tools",
        "mcptest, 5000 tools",
        "tiktoken, 5000 tools",
    ];
    let mut wall = [const { Vec::new() }; 4];
    let mut processor = [const { Vec::new() }; 4];
    let mut tokens = [0; 4];
    for _ in 0..rounds {
        let commands = [doctor(&none), doctor(&few), doctor(&many), python()];
        for (place, mut command) in commands.into_iter().enumerate() {
            let before = children_ms()?;
            let began = Instant::now();
            let output = command
                .stdin(Stdio::null())
                .stderr(Stdio::inherit())
                .output()
                .with_context(|| format!("cannot run {command:?}"))?;
            wall[place].push(began.elapsed().as_secs_f64() * 1000.0);
            processor[place].push(children_ms()? - before);
            // Tools of nearly the same name do not invalidate the measurement.
            ensure!(
                matches!(output.status.code(), Some(0 | 1)),
                "{command:?}: {}",
                output.status
            );
            let report: Value = serde_json::from_slice(&output.stdout)?;
            tokens[place] = report["tokens"].as_u64().context("no count")?;
        }
    }
    ensure!(
        tokens[2] == tokens[3],
        "{} tokens, and {} by tiktoken",
        tokens[2],
        tokens[3]
    );

    let ratio = median_ratio(&wall[3], &wall[2]);
    let mut rows = Vec::new();
    if !options.json {
        println!(
            "{:<24} {:>10} {:>10} {:>10}",
            "whole process", "tokens", "median ms", "CPU ms"
        );
    }
    for (((name, tokens), wall), processor) in
        names.into_iter().zip(tokens).zip(&wall).zip(&processor)
    {
        let (wall, processor) = (median(wall.clone()), median(processor.clone()));
        if !options.json {
            println!("{name:<24} {tokens:>10} {wall:>10.1} {processor:>10.0}");
        }
        rows.push(json!({"process": name, "tokens": tokens, "median_ms": wall, "processor_ms": processor}));
    }
    let bounds = [
        Bound {
            what: "50 tools".to_owned(),
            value: median(wall[1].clone()),
            target: Target::AtMost(100.0),
            unit: " ms",
        },
        Bound {
            what: "5000 tools, times faster than tiktoken".to_owned(),
            value: ratio,
            target: Target::AtLeast(4.0),
            unit: "x",
        },
    ];
    Ok(conclude(options, rows.into(), &bounds))
}

/// The processor time of all children that have ended, in milliseconds, to the next ten.
fn children_ms() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    // The second field is a name in parentheses, which may hold anything; these two are the 16th
    // and 17th.
    let rest = text.rsplit(')').next().unwrap_or_default();
    let ticks = rest
        .split_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() * 10.0)
}

/// A catalog as servers have them: prose, identifiers, nested schemas. The same every time.
fn catalog(tools: u64) -> Value {
    let mut writer = Writer {
        random: SplitMix64::new(1),
        words: WORDS.split_whitespace().collect(),
    };
    let tools: Vec<Value> = (0..tools).map(|number| writer.tool(number)).collect();
    json!({"tools": tools})
}

struct Writer {
    random: SplitMix64,
    words: Vec<&'static str>,
}

impl Writer {
    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let place = self.random.below(choices.len() as u64);
        usize::try_from(place)
            .ok()
            .and_then(|place| choices.get(place))
            .copied()
            .unwrap_or_default()
    }

    /// A made-up word, which no vocabulary holds whole.
    fn name(&mut self) -> String {
        (0..3 + self.random.below(3))
            .map(|_| self.one_of(&SYLLABLES))
            .collect()
    }

    fn prose(&mut self, length: u64) -> String {
        let words = self.words.clone();
        let mut text = String::new();
        for place in 0..length {
            if place > 0 {
                text.push_str(if place % 11 == 10 { ". " } else { " " });
            }
            match self.random.below(8) {
                0 => text.push_str(&format!("`{}`", self.name())),
                _ => text.push_str(self.one_of(&words)),
            }
        }
        text
    }

    fn tool(&mut self, number: u64) -> Value {
        let mut properties = Map::new();
        for _ in 0..2 + self.random.below(7) {
            let kind = self.one_of(&["string", "integer", "boolean", "array", "object"]);
            let mut property = json!({"type": kind, "description": self.prose(14)});
            match kind {
                "array" => property["items"] = json!({"type": "string"}),
                "object" => {
                    property["properties"] =
                        json!({self.name(): {"type": "string", "description": self.prose(6)}})
                }
                _ => {}
            }
            properties.insert(self.name(), property);
        }
        let required: Vec<&String> = properties.keys().take(2).collect();
        json!({
            "name": format!("{}_{}_{number}", self.name(), self.name()),
            "description": self.prose(60),
            "inputSchema": {"type": "object", "required": required, "properties": properties},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalog_is_the_same_every_time() {
        assert_eq!(catalog(3), catalog(3));
        assert_eq!(catalog(3)["tools"][2], catalog(5)["tools"][2]);
        assert_eq!(catalog(0), json!({"tools": []}));
    }
}
