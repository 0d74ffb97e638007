//! Scoring recorded traces: a long JSON Lines file through `mcptest score`, beside a program that
//! parses the same file with serde_json, line by line, and does nothing else. Both are whole
//! processes, from their start to having seen their end; they take turns, and are compared within
//! each round.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use mcptest_numbers::random::SplitMix64;
use serde_json::{Value, json};

use super::figures::{Bound, Options, Target, conclude, median, median_ratio, time};
use crate::workspace::{self, Profile};

const TRACES: u64 = 20_000;
/// The most that scoring may take, as a multiple of the time that parsing alone takes on one core.
/// On one core it is about this much: several must not make it slower.
const MOST: f64 = 3.0;

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
        - tool_selection.f1: { ">=": 50 }
    trajectory:
      mode: superset
      calls:
        - { name: search, args: any }
        - { name: book, args: any }
      expect:
        - trajectory.mismatch_count: { ">=": 0 }
"#;

/// Measures and prints. True if everything is as it must be.
pub fn run(options: Options) -> Result<bool> {
    let (traces, rounds) = if options.quick {
        (TRACES / 10, 3)
    } else {
        (TRACES, 15)
    };
    let program = workspace::build(Profile::Release)?;
    let target = workspace::target_directory()?.join("bench/yardstick");
    let yardstick =
        workspace::build_apart("xtask/yardstick", &target)?.join("mcptest-bench-yardstick");
    let scratch = tempfile::tempdir()?;
    let [suite, file] = ["suite.yml", "traces.jsonl"].map(|name| scratch.path().join(name));
    std::fs::write(&suite, SUITE)?;
    let text = trace_lines(traces);
    std::fs::write(&file, &text)?;
    let mib = text.len() >> 20;
    drop(text);

    let scoring = [
        &program,
        Path::new("score"),
        &suite,
        Path::new("--trace"),
        &file,
    ];
    let parsing = [yardstick.as_path(), &file];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first round warms the caches of the disk.
    for round in 0..=rounds {
        let (parsed, scored) = (time(&parsing)?, time(&scoring)?);
        if round > 0 {
            theirs.push(parsed);
            ours.push(scored);
        }
    }
    let ratio = median_ratio(&ours, &theirs);
    let (ours, theirs) = (median(ours), median(theirs));
    let cores = mcptest_trace::parallel::threads();
    if !options.json {
        println!("{traces} traces, {mib} MiB, {cores} cores");
        println!("{:<24} {theirs:>9.0} ms", "serde_json, one core");
        println!("{:<24} {ours:>9.0} ms", "mcptest score");
    }
    let figures = json!({"traces": traces, "mib": mib, "cores": cores, "rounds": rounds, "parse_ms": theirs, "score_ms": ours, "ratio": ratio});
    let bounds = [Bound {
        what: "scoring over parsing the file on one core".to_owned(),
        value: ratio,
        target: Target::AtMost(MOST),
        unit: "x",
    }];
    Ok(conclude(options, figures, &bounds))
}

/// This number of runs of one test, a line each, as agents leave them: calls with results, some prose,
/// token counts. The same every time.
fn trace_lines(traces: u64) -> String {
    let mut random = SplitMix64::new(1);
    let mut text = String::new();
    for run in 1..=traces {
        let mut calls = Vec::new();
        let mut results = Vec::new();
        let tools = ["search", "find", "details", "book"];
        for (place, tool) in tools.iter().enumerate() {
            let id = format!("call_{run}_{place}");
            let city =
                ["Rome", "Oslo", "Lima", "Kyoto"][usize::try_from(random.below(4)).unwrap_or(0)];
            calls.push(json!({"id": id, "server": "travel", "name": tool, "turn": place + 1,
                "args": {"city": city, "nights": random.below(9), "filters": {"stars": [3, 4, 5], "breakfast": true}}}));
            let hotels: Vec<Value> = (0..6)
                .map(|_| json!({"id": random.below(1 << 40), "name": "Grand Hotel by the \"river\"", "price": 99.5 + random.below(100) as f64}))
                .collect();
            let text = json!({"city": city, "hotels": hotels}).to_string();
            results.push(json!({"call_id": id, "is_error": false, "content": [{"type": "text", "text": text}]}));
        }
        let tokens = random.below(1000) + 2000;
        let trace = json!({
            "test": "booking", "model": "model-a", "run": run, "tool_calls": calls, "tool_results": results,
            "conversation": {
                "turns": [
                    {"role": "user", "content": "Find a hotel with breakfast for the weekend, not too far from the station, and book it."},
                    {"role": "assistant", "content": "I am going to look for hotels first, and then compare what they cost."},
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
        assert_eq!(traces[2].tool_calls.len(), 4);
    }
}
