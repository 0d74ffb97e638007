//! Scoring recorded traces: a long JSON Lines file through `mcptest score`, with the default
//! reporter and with `json`, beside programs that parse the same file line by line with serde_json
//! and with sonic-rs and do nothing else, and a plain Python loop that computes the same scores.
//! All are whole processes, from their start to their end; they alternate. The figures are traces
//! per second of CPU time, which other work on the machine hardly changes, and the peak of memory.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use mcptest_numbers::random::SplitMix64;
use serde_json::json;

use super::figures::{Bound, Options, Target, Usage, conclude, measure, median, median_ratio};
use crate::workspace::{self, Profile};

const TRACES: u64 = 100_000;
/// The most memory that scoring may take, whatever the number of traces.
const MAX_MIB: f64 = 64.0;
/// The most CPU time that scoring may take, as a multiple of that of bare parsing into values.
const MAX_RATIO: f64 = 1.5;
/// The least rate of scoring, as a multiple of that of parsing with sonic-rs.
const MIN_OF_SONIC: f64 = 0.6;
/// The least rate of scoring, as a multiple of that of the Python loop.
const MIN_OF_PYTHON: f64 = 4.0;
/// The Python loop.
const PYTHON_LOOP: &str = include_str!("plain_loop.py");
/// The tools that each run calls.
const TOOLS: [&str; 10] = [
    "search",
    "find",
    "details",
    "reviews",
    "prices",
    "map",
    "availability",
    "compare",
    "book",
    "confirm",
];

const SUITE: &str = r#"
name: many runs
tests:
  - name: booking
    expect:
      - tool_calls[0].args.city: { exists: true }
      - final_response: { contains: booked }
    tool_selection:
      expected_tool: book
      min_selection_rate: 0.5
      max_total_tokens: 5000
    equal_function_sets:
      classes:
        - { name: search, members: [travel.search, travel.find] }
        - { name: book, members: [travel.book] }
      expect:
        - tool_selection.f1: { ">=": 20 }
    trajectory:
      mode: superset
      calls:
        - { name: search, args: any }
        - { name: book, args: any }
      expect:
        - trajectory.mismatch_count: { ">=": 0 }
"#;

/// Measures and prints. True if all bounds are kept.
pub fn run(options: Options) -> Result<bool> {
    let (traces, rounds) = if options.quick {
        (TRACES / 50, 2)
    } else {
        (TRACES, 5)
    };
    let program = workspace::build(Profile::Release)?;
    let target = workspace::target_directory()?.join("bench/yardstick");
    let yardstick =
        workspace::build_apart("xtask/yardstick", &target)?.join("mcptest-bench-yardstick");
    let scratch = tempfile::tempdir()?;
    let [suite, file, report] =
        ["suite.yml", "traces.jsonl", "report.json"].map(|name| scratch.path().join(name));
    let python_loop = scratch.path().join("plain_loop.py");
    std::fs::write(&suite, SUITE)?;
    std::fs::write(&python_loop, PYTHON_LOOP)?;
    let text = trace_lines(traces);
    std::fs::write(&file, &text)?;
    let mib = text.len() >> 20;
    drop(text);

    let to_json = format!("json={}", report.display());
    let scoring = [
        &program,
        Path::new("score"),
        &suite,
        Path::new("--trace"),
        &file,
    ];
    let mut with_json = scoring.to_vec();
    with_json.extend([Path::new("--reporter"), Path::new(&to_json)]);
    let parsing = |parser: &'static str| [yardstick.as_path(), Path::new(parser), &file];
    let in_python = [Path::new("python3"), &python_loop, &file];
    let mut usages: [Vec<Usage>; 5] = Default::default();
    // The first round warms the caches of the disk.
    for round in 0..=rounds {
        let measured = [
            measure(&parsing("serde"))?,
            measure(&parsing("sonic"))?,
            measure(&in_python)?,
            measure(&scoring)?,
            measure(&with_json)?,
        ];
        if round > 0 {
            for (usages, usage) in usages.iter_mut().zip(measured) {
                usages.push(usage);
            }
        }
    }
    let names = [
        "serde_json, parsing only",
        "sonic-rs, parsing only",
        "Python, the same scores",
        "mcptest score",
        "mcptest score, json",
    ];
    let [serde, sonic, python, score, with_json] = usages.each_ref();
    let ratio = |to: &[Usage]| {
        let rate = |usages: &[Usage]| {
            usages
                .iter()
                .map(|one| 1.0 / one.cpu_s.max(0.001))
                .collect()
        };
        let (ours, theirs): (Vec<f64>, Vec<f64>) = (rate(score), rate(to));
        median_ratio(&ours, &theirs)
    };
    let (of_sonic, of_python) = (ratio(sonic), ratio(python));
    let rows = [serde, sonic, python, score, with_json].map(|usages| Row::of(usages, traces));
    let rows: Vec<(&str, Row)> = names.into_iter().zip(rows).collect();
    if !options.json {
        println!("{traces} traces, {mib} MiB");
        println!(
            "{:<26} {:>16} {:>10} {:>10}",
            "", "traces/CPU s", "CPU s", "peak MiB"
        );
        for (name, row) in &rows {
            println!(
                "{name:<26} {:>16.0} {:>10.2} {:>10.1}",
                row.traces_per_cpu_s, row.cpu_s, row.peak_mib
            );
        }
    }
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    let [parse, sonic, python, score, with_json] = rows.as_slice() else {
        anyhow::bail!("there is a row for each program");
    };
    let figures = json!({
        "traces": traces, "mib": mib, "rounds": rounds,
        "parse": parse.figures(), "sonic": sonic.figures(), "python": python.figures(),
        "score": score.figures(), "score_json": with_json.figures(),
        "of_sonic": of_sonic, "of_python": of_python,
    });
    let at_least = |what: &str, value: f64, least: f64| Bound {
        what: what.to_owned(),
        value,
        target: Target::AtLeast(least),
        unit: "x",
    };
    let at_most = |what: &str, value: f64, most: f64, unit: &'static str| Bound {
        what: what.to_owned(),
        value,
        target: Target::AtMost(most),
        unit,
    };
    let bounds = [
        at_least(
            "rate of scoring over that of sonic-rs",
            of_sonic,
            MIN_OF_SONIC,
        ),
        at_least(
            "rate of scoring over that of Python",
            of_python,
            MIN_OF_PYTHON,
        ),
        at_most(
            "CPU time of scoring over that of parsing",
            score.cpu_s / parse.cpu_s,
            MAX_RATIO,
            "x",
        ),
        at_most("peak memory of scoring", score.peak_mib, MAX_MIB, " MiB"),
        at_most(
            "peak memory of scoring with the json reporter",
            with_json.peak_mib,
            MAX_MIB,
            " MiB",
        ),
    ];
    Ok(conclude(options, figures, &bounds))
}

/// The medians over all rounds.
struct Row {
    cpu_s: f64,
    peak_mib: f64,
    traces_per_cpu_s: f64,
}

impl Row {
    fn of(rounds: &[Usage], traces: u64) -> Self {
        let cpu_s = median(rounds.iter().map(|round| round.cpu_s).collect());
        Self {
            cpu_s,
            peak_mib: median(rounds.iter().map(|round| round.peak_mib).collect()),
            traces_per_cpu_s: traces as f64 / cpu_s.max(0.01),
        }
    }

    fn figures(&self) -> serde_json::Value {
        json!({
            "cpu_s": self.cpu_s, "peak_mib": self.peak_mib,
            "traces_per_cpu_s": self.traces_per_cpu_s,
        })
    }
}

/// This number of runs of one test, a line each, as agents leave them: ten calls with results, some
/// prose, token counts; about 2.7 kB. The same every time.
fn trace_lines(traces: u64) -> String {
    let mut random = SplitMix64::new(1);
    let mut text = String::new();
    for run in 1..=traces {
        let mut calls = Vec::new();
        let mut results = Vec::new();
        for (place, tool) in TOOLS.iter().enumerate() {
            let id = format!("c{run}_{place}");
            let city =
                ["Rome", "Oslo", "Lima", "Kyoto"][usize::try_from(random.below(4)).unwrap_or(0)];
            calls.push(json!({
                "id": id, "server": "travel", "name": tool, "turn": place + 1,
                "args": {"city": city, "nights": random.below(9), "breakfast": true},
            }));
            let hotel =
                json!({"city": city, "name": "Grand Hotel", "price": 99 + random.below(100)});
            results.push(json!({
                "call_id": id, "is_error": false,
                "content": [{"type": "text", "text": hotel.to_string()}],
            }));
        }
        let tokens = random.below(1000) + 2000;
        let trace = json!({
            "test": "booking", "model": "model-a", "run": run,
            "tool_calls": calls, "tool_results": results,
            "conversation": {
                "turns": [
                    {"role": "user", "content": "Find a hotel for the weekend and book it."},
                    {"role": "assistant", "content": "I am going to look for hotels first."},
                ],
                "tokens": {"input": tokens, "output": 200, "total": tokens + 200},
            },
            "final_response": "I have booked the Grand Hotel for the weekend.",
        });
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{trace}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traces_are_the_same_every_time_and_are_traces() {
        let text = trace_lines(3);
        assert_eq!(text, trace_lines(3));
        let traces = mcptest_trace::trace::read(&text).unwrap();
        assert_eq!(traces.len(), 3);
        assert_eq!(traces[2].tool_calls.len(), TOOLS.len());
        assert!((2500..3000).contains(&(text.len() / 3)), "{}", text.len());
    }
}
