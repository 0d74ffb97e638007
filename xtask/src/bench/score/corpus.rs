//! The suite and the traces that scoring is measured with.

use std::fmt::Write as _;

use mcptest_numbers::random::SplitMix64;

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
const CITIES: [&str; 4] = ["Rome", "Oslo", "Lima", "Kyoto"];

/// Two assertions and three gates.
pub const SUITE: &str = r#"
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

/// Runs of one test, a line each, as agents leave them: ten calls with results, some prose, token
/// counts; about 2.7 kB. The same every time.
pub struct Traces {
    random: SplitMix64,
    run: u64,
}

impl Traces {
    pub fn new() -> Self {
        Self {
            random: SplitMix64::new(1),
            run: 0,
        }
    }

    /// The lines of the next runs.
    pub fn lines(&mut self, runs: u64) -> String {
        let mut text = String::new();
        for _ in 0..runs {
            self.line(&mut text);
        }
        text
    }

    fn line(&mut self, text: &mut String) {
        self.run += 1;
        let run = self.run;
        let (mut calls, mut results) = (String::new(), String::new());
        // Writing to a String cannot fail.
        for (place, tool) in TOOLS.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let city = CITIES[usize::try_from(self.random.below(4)).unwrap_or(0)];
            let (turn, nights) = (place + 1, self.random.below(9));
            let _ = write!(
                calls,
                r#"{comma}{{"id":"c{run}_{place}","server":"travel","name":"{tool}","turn":{turn},"args":{{"city":"{city}","nights":{nights},"breakfast":true}}}}"#
            );
            let price = 99 + self.random.below(100);
            let _ = write!(
                results,
                r#"{comma}{{"call_id":"c{run}_{place}","is_error":false,"content":[{{"type":"text","text":"{{\"city\":\"{city}\",\"name\":\"Grand Hotel\",\"price\":{price}}}"}}]}}"#
            );
        }
        let tokens = self.random.below(1000) + 2000;
        let total = tokens + 200;
        let _ = writeln!(
            text,
            r#"{{"test":"booking","model":"model-a","run":{run},"tool_calls":[{calls}],"tool_results":[{results}],"conversation":{{"turns":[{{"role":"user","content":"Find a hotel for the weekend and book it."}},{{"role":"assistant","content":"I am going to look for hotels first."}}],"tokens":{{"input":{tokens},"output":200,"total":{total}}}}},"final_response":"I have booked the Grand Hotel for the weekend."}}"#
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traces_are_the_same_every_time_and_are_traces() {
        let text = Traces::new().lines(3);
        let mut again = Traces::new();
        assert_eq!(text, again.lines(1) + &again.lines(2));
        let traces = mcptest_trace::trace::read(&text).unwrap();
        assert_eq!(traces.len(), 3);
        assert_eq!(traces[2].tool_calls.len(), TOOLS.len());
        assert_eq!(traces[2].run, Some(3));
        assert!((2500..3000).contains(&(text.len() / 3)), "{}", text.len());
    }
}
