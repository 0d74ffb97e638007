use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::{self, Kind, Spend};
use crate::samples::{assertion, floor, run, test};

fn report(tests: Vec<model::TestReport>) -> Report {
    crate::samples::concluded(tests)
}

fn with_floor(name: &str, verdict: Verdict, rate: u64) -> model::TestReport {
    let mut test = test(name, Some("m"), verdict);
    test.gates.push(floor(verdict, rate));
    test
}

#[test]
fn a_failed_floor_is_a_regression_with_its_figures() {
    let comparison = compare(
        &report(vec![
            with_floor("a", Verdict::Pass, 90),
            with_floor("b", Verdict::Pass, 100),
        ]),
        &report(vec![
            with_floor("a", Verdict::Fail, 70),
            with_floor("b", Verdict::Pass, 100),
        ]),
    );
    assert_eq!(comparison.exit_code, ExitCode::Failed);
    assert_eq!(
        (comparison.counts.regressed, comparison.counts.unchanged),
        (1, 1)
    );
    let [case] = comparison.cases.as_slice() else {
        panic!("{comparison:#?}")
    };
    assert_eq!(
        (case.change, case.flip),
        (Change::Regressed, Some(Flip::Regressed))
    );
    let gate = &case.gates[0];
    assert_eq!(gate.flip, Some(Flip::Regressed));
    assert_eq!(
        serde_json::to_value(&gate.values[0]).unwrap(),
        json!({"name": "floor.selection_rate", "old": 90, "new": 70, "delta": -20})
    );
    assert_eq!(
        serde_json::to_value(&gate.bounds[0]).unwrap(),
        json!({"target": "floor.passed", "matcher": {">=": 1}, "flip": "regressed"})
    );
    assert_eq!(
        serde_json::to_value(&case.figures).unwrap(),
        json!([
            {"name": "runs.passed", "old": 1, "new": 0, "delta": -1},
            {"name": "runs.pass_rate", "old": 1.0, "new": 0.0, "delta": -1.0, "statistics": comparison.rates[0].statistics}
        ])
    );
}

fn with_runs(name: &str, passed: usize, runs: usize) -> model::TestReport {
    let verdict = |at: usize| {
        if at < passed {
            Verdict::Pass
        } else {
            Verdict::Fail
        }
    };
    let mut test = test(
        name,
        Some("m"),
        if passed == runs {
            Verdict::Pass
        } else {
            Verdict::Fail
        },
    );
    test.runs = (0..runs)
        .map(|at| {
            run(
                at as u64 + 1,
                &format!("{name} #{}", at + 1),
                verdict(at),
                Some(100 + at as u64),
            )
        })
        .collect();
    test
}

#[test]
fn rates_have_intervals_and_adjusted_p_values() {
    let comparison = compare(
        &report(vec![
            with_runs("a", 9, 10),
            with_runs("b", 20, 20),
            with_runs("c", 5, 5),
        ]),
        &report(vec![
            with_runs("a", 3, 10),
            with_runs("b", 2, 20),
            with_runs("c", 5, 5),
        ]),
    );
    let [a, b, c] = comparison.rates.as_slice() else {
        panic!("{comparison:#?}")
    };
    // The second example of Newcombe's table, with the sides exchanged.
    assert!((a.statistics.lower + 0.8090).abs() < 6e-5, "{a:?}");
    assert!((a.statistics.upper + 0.1705).abs() < 6e-5, "{a:?}");
    assert!((a.statistics.p_value - 0.019_8).abs() < 1e-4, "{a:?}");
    // The second of three.
    assert!((a.statistics.p_adjusted - a.statistics.p_value * 1.5).abs() < 1e-12);
    assert!(a.statistics.significant && b.statistics.significant);
    assert!(b.statistics.p_value < 1e-6);
    assert_eq!(
        (c.statistics.p_value, c.statistics.runs_needed),
        (1.0, None)
    );
    assert_eq!(
        comparison.exit_code_for(FailOn::Significant),
        ExitCode::Failed
    );
    assert!(comparison.population.same, "{:?}", comparison.population);
}

#[test]
fn too_few_runs_are_reported() {
    let comparison = compare(
        &report(vec![with_runs("a", 3, 3)]),
        &report(vec![with_runs("a", 1, 3)]),
    );
    let statistics = &comparison.rates[0].statistics;
    assert!(!statistics.significant);
    let needed = statistics.runs_needed.unwrap();
    assert!((4..=12).contains(&needed), "{needed}");
    let words = statistics.rate_words();
    let wanted = format!(
        "not enough runs to tell: {} more per side would do",
        needed - 3
    );
    assert!(words.ends_with(&wanted), "{words}");
    assert_eq!(comparison.cases[0].nature, Some(Nature::Noisy));
}

#[test]
fn changes_that_cannot_be_noise_are_marked() {
    let nature = |old: model::TestReport, new: model::TestReport| {
        let comparison = compare(&report(vec![old]), &report(vec![new]));
        (comparison.cases[0].nature, comparison.counts.deterministic)
    };
    let all = nature(with_runs("a", 3, 3), with_runs("a", 0, 3));
    assert_eq!(all, (Some(Nature::Deterministic), 1));
    let one = nature(with_runs("a", 1, 1), with_runs("a", 0, 1));
    assert_eq!(one, (Some(Nature::Noisy), 0));
    let tool = |verdict| {
        let mut test = test("t", None, verdict);
        test.kind = Kind::Tool;
        test
    };
    let direct = nature(tool(Verdict::Pass), tool(Verdict::Fail));
    assert_eq!(direct, (Some(Nature::Deterministic), 1));
}

#[test]
fn runs_of_several_baselines_are_taken_together() {
    let first = report(vec![with_runs("a", 3, 3)]);
    let more = [report(vec![with_runs("a", 2, 3)]), report(vec![])];
    let current = report(vec![with_runs("a", 0, 4)]);
    let comparison = compare_pooled(&first, &more, &current);
    let old = comparison.rates[0].counts.old.unwrap();
    assert_eq!((old.passed, old.runs, comparison.baselines), (5, 6, 3));
    assert_eq!(comparison.cases[0].verdict.old, Some(Verdict::Pass));
}

#[test]
fn each_fail_on_condition_has_its_own_code() {
    let codes = |old, new| {
        let comparison = compare(
            &report(vec![test("a", None, old)]),
            &report(vec![test("a", None, new)]),
        );
        [
            FailOn::Regression,
            FailOn::Flip,
            FailOn::Significant,
            FailOn::Any,
        ]
        .map(|wish| u8::from(comparison.exit_code_for(wish)))
    };
    assert_eq!(codes(Verdict::Pass, Verdict::Fail), [1, 1, 0, 1]);
    assert_eq!(codes(Verdict::Pass, Verdict::Error), [3, 1, 0, 1]);
    assert_eq!(codes(Verdict::Pass, Verdict::Pass), [0, 0, 0, 0]);
    assert_eq!(codes(Verdict::Fail, Verdict::Pass), [0, 0, 0, 0]);
}

#[test]
fn another_population_is_named() {
    let mut other = with_floor("b", Verdict::Pass, 90);
    other.suite = "renamed".to_owned();
    other.gates[0].assertions[0].matcher = json!({">=": 2});
    let comparison = compare(
        &report(vec![
            with_floor("a", Verdict::Pass, 90),
            with_floor("b", Verdict::Pass, 90),
        ]),
        &report(vec![other]),
    );
    assert_eq!(
        comparison.population.differences,
        [
            "1 test only in the baseline",
            "the suites are not the same",
            "1 test with other bounds"
        ]
    );
}

#[test]
fn a_comment_has_the_table_before_the_results() {
    let current = report(vec![with_runs("a", 0, 3)]);
    let comparison = compare(&report(vec![with_runs("a", 3, 3)]), &current);
    let mut out = Vec::new();
    render("pr", &comparison, &current, Style::default(), &mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    assert!(page.starts_with("<!-- mcptest: report -->\n"), "{page}");
    let (table, results) = (page.find("| test | change"), page.find("<details>"));
    assert!(table.is_some() && table < results, "{page}");
    assert!(page.contains("**regressed** (cannot be noise)"), "{page}");
}

#[test]
fn a_failed_bound_is_listed_even_if_the_gate_failed_before() {
    let gate = |first, second| {
        let mut gate = floor(Verdict::Fail, 50);
        gate.assertions = vec![
            assertion("floor.passed", json!({">=": 1}), json!(0), first),
            assertion("floor.selection_rate", json!({">=": 50}), json!(0), second),
        ];
        let mut test = test("a", None, Verdict::Fail);
        test.gates.push(gate);
        report(vec![test])
    };
    let comparison = compare(&gate(false, true), &gate(false, false));
    assert_eq!(comparison.counts.regressed, 1);
    assert_eq!(comparison.cases[0].gates[0].bounds.len(), 1);
    assert_eq!(
        compare(&gate(false, false), &gate(false, true))
            .counts
            .fixed,
        1
    );
    // One in each direction: the regression wins.
    assert_eq!(
        compare(&gate(true, false), &gate(false, true))
            .counts
            .regressed,
        1
    );
}

#[test]
fn an_error_is_a_loss_and_not_a_regression() {
    let verdict = |verdict| report(vec![test("a", None, verdict)]);
    for (old, new, change, code) in [
        (Verdict::Pass, Verdict::Error, Change::Lost, 3),
        (Verdict::Pass, Verdict::NoEvidence, Change::Lost, 3),
        (Verdict::Error, Verdict::Pass, Change::Regained, 0),
        (Verdict::Error, Verdict::Fail, Change::Changed, 0),
        (Verdict::Fail, Verdict::Pass, Change::Fixed, 0),
        (Verdict::Pass, Verdict::Fail, Change::Regressed, 1),
    ] {
        let comparison = compare(&verdict(old), &verdict(new));
        assert_eq!(comparison.cases[0].change, change, "{old:?} {new:?}");
        assert_eq!(u8::from(comparison.exit_code), code, "{old:?} {new:?}");
    }
}

#[test]
fn added_removed_and_not_run_are_distinguished() {
    let baseline = report(vec![
        test("stays", None, Verdict::Pass),
        test("goes", None, Verdict::Pass),
    ]);
    let mut current = report(vec![
        test("comes", None, Verdict::Fail),
        test("stays", None, Verdict::Pass),
    ]);
    let changes = |comparison: &Comparison| -> Vec<(String, Change)> {
        let changed = comparison.cases.iter();
        changed
            .map(|case| (case.id.name.clone(), case.change))
            .collect()
    };
    let comparison = compare(&baseline, &current);
    assert_eq!(
        changes(&comparison),
        [
            ("comes".to_owned(), Change::Added),
            ("goes".to_owned(), Change::Removed)
        ]
    );
    assert_eq!(comparison.exit_code, ExitCode::Passed);
    current.not_run = vec![baseline.tests[1].id.clone()];
    let comparison = compare(&baseline, &current);
    assert_eq!(changes(&comparison)[1], ("goes".to_owned(), Change::Lost));
    assert_eq!(comparison.exit_code, ExitCode::NoEvidence);
}

#[test]
fn tests_of_the_same_name_are_paired_in_order() {
    let both = report(vec![
        test("a", None, Verdict::Pass),
        test("a", None, Verdict::Fail),
    ]);
    assert!(compare(&both, &both).is_empty());
    let fewer = report(vec![test("a", None, Verdict::Pass)]);
    assert_eq!(compare(&both, &fewer).counts.removed, 1);
}

#[test]
fn a_renamed_suite_is_compared_by_its_tests() {
    let baseline = report(vec![
        test("a", None, Verdict::Pass),
        test("b", None, Verdict::Pass),
    ]);
    let mut current = report(vec![
        test("a", None, Verdict::Fail),
        test("b", None, Verdict::Pass),
    ]);
    for test in &mut current.tests {
        test.id.suite = "renamed".to_owned();
    }
    let comparison = compare(&baseline, &current);
    assert_eq!(
        (comparison.counts.regressed, comparison.counts.unchanged),
        (1, 1)
    );
    // A test of the same suite is preferred.
    let same_suite = report(vec![test("a", None, Verdict::Pass)]);
    current.tests.extend(same_suite.tests);
    let comparison = compare(&baseline, &current);
    assert_eq!(
        (comparison.counts.added, comparison.counts.unchanged),
        (1, 2)
    );
}

#[test]
fn differences_are_exact() {
    let of = |old: Value, new: Value| difference(&old, &new).map(|number| number.to_string());
    assert_eq!(of(json!(0.5), json!(0.8)).unwrap(), "0.3");
    assert_eq!(of(json!(0), json!(u64::MAX)).unwrap(), u64::MAX.to_string());
    assert_eq!(
        of(json!(i64::MIN), json!(0)).unwrap(),
        "9223372036854775808"
    );
    assert_eq!(of(json!(1), json!(0.25)).unwrap(), "-0.75");
    assert_eq!(
        of(json!(1e308), json!(-1e308)),
        None,
        "the difference overflows"
    );
    assert_eq!(of(json!(null), json!(1)), None);
    assert_eq!(of(json!([1]), json!([2])), None);
}

#[test]
fn token_figures_ignore_runs_without_tokens() {
    let mut several = test("a", None, Verdict::Pass);
    several.runs = vec![
        run(1, "a #1", Verdict::Pass, Some(u64::MAX)),
        run(2, "a #2", Verdict::Fail, None),
        run(3, "a #3", Verdict::Pass, Some(u64::MAX - 3)),
    ];
    let figures = |test: &model::TestReport| super::figures(&report(vec![test.clone()]).tests[0]);
    let all = figures(&several);
    assert_eq!(all["runs.total"], 3);
    assert_eq!(all["runs.passed"], 2);
    assert_eq!(all["tokens.median"], u64::MAX - 2);
    several.runs.clear();
    several.kind = Kind::ToolQuality;
    assert!(figures(&several).is_empty());
}

#[test]
fn spend_is_a_figure() {
    let spent = |usd: f64| {
        let mut test = test("a", Some("m"), Verdict::Pass);
        test.spend = Some(Spend {
            usd: Some(usd),
            ..Spend::default()
        });
        report(vec![test])
    };
    let comparison = compare(&spent(0.1), &spent(0.3));
    assert_eq!(
        serde_json::to_value(&comparison.cases[0].figures).unwrap(),
        json!([{"name": "spend.usd", "old": 0.1, "new": 0.3, "delta": 0.2}])
    );
    assert_eq!(comparison.cases[0].change, Change::Changed);
    assert_eq!(comparison.exit_code, ExitCode::Passed);
}

#[test]
fn the_page_has_the_comparison() {
    let (old, new) = (report(Vec::new()), report(Vec::new()));
    let comparison = compare(&old, &new);
    let mut out = Vec::new();
    render("html", &comparison, &new, Style::default(), &mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    let (_, rest) = page.split_once("id=\"head\">").unwrap();
    let head: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(
        head["comparison"],
        serde_json::to_value(&comparison).unwrap()
    );
}

#[test]
fn every_reporter_of_one_file_compares() {
    let nothing = compare(&report(Vec::new()), &report(Vec::new()));
    let rendered = |name: &str| {
        let mut out = Vec::new();
        render(
            name,
            &nothing,
            &report(Vec::new()),
            Style::default(),
            &mut out,
        )
        .map(|()| out)
    };
    assert_eq!(
        rendered("allure").unwrap_err().to_string(),
        "the reporter `allure` cannot show a comparison; these can: pretty, json, markdown, pr, \
         html, agent, github, junit, tap, ndjson, sarif, gitlab, ctrf, openmetrics"
    );
    for (name, _) in RENDERERS {
        assert!(crate::reporter::find(name).is_some(), "{name}");
        assert!(rendered(name).unwrap().ends_with(b"\n"));
    }
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Pass),
        Just(Verdict::Fail),
        Just(Verdict::NoEvidence),
        Just(Verdict::Error)
    ]
}

fn tests() -> impl Strategy<Value = model::TestReport> {
    let runs = proptest::collection::vec((verdicts(), proptest::option::of(0..3_u64)), 0..3);
    let gates = proptest::collection::vec((0..2_usize, verdicts(), 0..3_u64, any::<bool>()), 0..3);
    (0..3_u8, 0..2_u8, verdicts(), runs, gates).prop_map(|(name, suite, verdict, runs, gates)| {
        let mut test = test(&format!("t{name}"), Some("m"), verdict);
        test.suite = format!("s{suite}");
        test.runs = (1..)
            .zip(runs)
            .map(|(index, (verdict, tokens))| run(index, "r", verdict, tokens))
            .collect();
        let mut blocks = vec!["trajectory", "tool_selection"];
        for (at, verdict, rate, held) in gates {
            // Each block occurs once.
            if at < blocks.len() {
                let mut gate = floor(verdict, rate);
                gate.block = blocks.remove(at).to_owned();
                gate.assertions[0].passed = held;
                test.gates.push(gate);
            }
        }
        test
    })
}

fn reports() -> impl Strategy<Value = Report> {
    proptest::collection::vec(tests(), 0..5).prop_map(report)
}

/// The same change with the two reports swapped, without fields that depend on the order.
fn turned(case: &CaseChange) -> Value {
    fn turn(flip: Flip) -> Flip {
        match flip {
            Flip::Regressed => Flip::Fixed,
            Flip::Fixed => Flip::Regressed,
            Flip::Lost => Flip::Regained,
            Flip::Regained => Flip::Lost,
        }
    }
    fn turn_delta(delta: &Delta) -> Delta {
        Delta {
            name: delta.name.clone(),
            old: delta.new.clone(),
            new: delta.old.clone(),
            delta: difference(&delta.new, &delta.old),
            statistics: None,
        }
    }
    let mut case = case.clone();
    std::mem::swap(&mut case.verdict.old, &mut case.verdict.new);
    case.flip = case.flip.map(turn);
    case.figures = case.figures.iter().map(turn_delta).collect();
    for gate in &mut case.gates {
        std::mem::swap(&mut gate.verdict.old, &mut gate.verdict.new);
        gate.flip = gate.flip.map(turn);
        gate.values = gate.values.iter().map(turn_delta).collect();
        for bound in &mut gate.bounds {
            bound.flip = turn(bound.flip);
        }
    }
    comparable(&case)
}

fn comparable(case: &CaseChange) -> Value {
    let mut case = case.clone();
    // The suite is named after the current report.
    case.id.suite.clear();
    // Only regressions have it, and intervals have a separate test.
    case.nature = None;
    let of_gates = case.gates.iter_mut().flat_map(|gate| &mut gate.values);
    for delta in case.figures.iter_mut().chain(of_gates) {
        delta.statistics = None;
    }
    case.figures.sort_by(|a, b| a.name.cmp(&b.name));
    case.gates.sort_by(|a, b| a.block.cmp(&b.block));
    let mut value = serde_json::to_value(&case).unwrap();
    // Follows from the flips; the gravest of them is not the gravest of their opposites.
    value["change"] = Value::Null;
    value
}

proptest! {
    #[test]
    fn a_report_does_not_differ_from_itself(report in reports()) {
        let comparison = compare(&report, &report);
        prop_assert!(comparison.is_empty());
        prop_assert_eq!(comparison.exit_code, ExitCode::Passed);
        prop_assert_eq!(comparison.counts.unchanged, report.tests.len());
    }

    #[test]
    fn swapping_the_reports_inverts_every_change(old in reports(), new in reports()) {
        let mut there: Vec<Value> = compare(&old, &new).cases.iter().map(turned).collect();
        let mut back: Vec<Value> = compare(&new, &old).cases.iter().map(comparable).collect();
        there.sort_by_key(Value::to_string);
        back.sort_by_key(Value::to_string);
        prop_assert_eq!(there, back);
    }

    #[test]
    fn every_test_is_counted_once(old in reports(), new in reports()) {
        let comparison = compare(&old, &new);
        let counts = comparison.counts;
        let flipped = counts.regressed + counts.lost + counts.fixed + counts.regained;
        let Counts { changed, added, removed, unchanged, .. } = counts;
        prop_assert_eq!(flipped + changed + added + removed, comparison.cases.len());
        prop_assert_eq!(flipped + changed + added + unchanged, new.tests.len());
        prop_assert_eq!(old.tests.len() + added, new.tests.len() + removed);
    }
}

#[test]
fn a_figure_of_zero_is_short() {
    let short = super::statistics::short;
    assert_eq!(short(0.0, false), "0");
    assert_eq!(short(0.000_25, true), "+0.000250");
    assert_eq!(short(8.8, false), "8.80");
}

#[test]
fn machines_list_what_regressed_with_its_command() {
    let one = |verdict| {
        report(vec![
            test("a b", None, verdict),
            test("c", None, Verdict::Pass),
        ])
    };
    let (old, new) = (one(Verdict::Pass), one(Verdict::Fail));
    let comparison = compare(&old, &new);
    let rendered = |name: &str| {
        let mut out = Vec::new();
        render(name, &comparison, &new, Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let agent = rendered("agent");
    let lines: Vec<&str> = agent.lines().collect();
    assert_eq!(
        lines[0],
        "mcptest compare (exit 1): 2 tests: 1 regressed, 1 unchanged"
    );
    assert!(
        lines[1].starts_with("REGRESSED a b: pass -> fail (")
            && lines[1].contains("runs.pass_rate"),
        "{agent}"
    );
    assert_eq!(lines[2], "  mcptest run sample.yml --filter 'a b'");
    assert_eq!(lines.len(), 3, "{agent}");
    let github = rendered("github");
    let lines: Vec<&str> = github.lines().collect();
    assert!(
        lines[0].starts_with(
            "::error file=sample.yml,line=3,title=mcptest regressed%3A a b::a b: pass"
        ),
        "{github}"
    );
    assert!(lines[1].starts_with("::notice title=mcptest compared::2 tests: 1 regressed"));
    assert_eq!(lines.len(), 2, "{github}");
}

/// A test that regressed, one that is lost, one that is fixed; names that are hostile everywhere.
fn hostile_comparison() -> (Comparison, Report) {
    let name =
        |at: usize| format!("{at} </script><b>]]>\u{1b}[31m # SKIP\nok 9 `x` [a](1) \u{202e}&\"");
    let side = |verdicts: [Verdict; 3]| {
        let tests = verdicts.into_iter().enumerate();
        report(
            tests
                .map(|(at, verdict)| test(&name(at), Some("m\n"), verdict))
                .collect(),
        )
    };
    let old = side([Verdict::Pass, Verdict::Pass, Verdict::Fail]);
    let new = side([Verdict::Fail, Verdict::Error, Verdict::Pass]);
    (compare(&old, &new), new)
}

#[test]
fn formats_of_machines_know_what_is_worse() {
    let (comparison, new) = hostile_comparison();
    let rendered = |name: &str| {
        let mut out = Vec::new();
        render(name, &comparison, &new, Style::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let is_hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(is_hidden), "{name}: {text}");
        text
    };
    let tap = rendered("tap");
    assert!(tap.contains("1..3\nnot ok 1 - 0 <"), "{tap}");
    let point = |number: &str| tap.lines().find(|line| line.starts_with(number));
    assert!(
        point("ok 2 - ")
            .unwrap()
            .contains(" # SKIP lost: pass -> error")
    );
    assert!(!point("ok 3 - ").unwrap().contains(" # "));
    assert!(point("ok 9").is_none());
    let junit = rendered("junit");
    assert!(
        junit.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""),
        "{junit}"
    );
    assert!(!junit.contains("<b>") && !junit.contains("]]>"), "{junit}");
    let json = |name: &str| -> Value { serde_json::from_str(&rendered(name)).unwrap() };
    let results = json("sarif")["runs"][0]["results"].clone();
    assert_eq!(results.as_array().unwrap().len(), 2);
    assert_eq!(results[0]["ruleId"], "regressed");
    assert_eq!(results[1]["ruleId"], "lost");
    assert_eq!(json("gitlab").as_array().unwrap().len(), 2);
    let summary = json("ctrf")["results"]["summary"].clone();
    let counted = ["tests", "passed", "failed", "other"].map(|key| summary[key].clone());
    assert_eq!(counted, [3, 1, 1, 1].map(Value::from));
    let lines = rendered("ndjson");
    let events: Vec<Value> = lines
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(events[1]["event"], "change");
    assert_eq!(events[1]["change"], "regressed");
    assert_eq!(events.last().unwrap()["counts"]["lost"], 1);
    let metrics = rendered("openmetrics");
    assert!(
        metrics.contains("mcptest_compared_tests{change=\"regressed\"} 1\n"),
        "{metrics}"
    );
    assert!(metrics.ends_with("# EOF\n"));
}

#[test]
fn a_comparison_for_agents_is_of_bounded_size() {
    let many = |verdict| {
        let tests =
            (0..200).map(|at| test(&format!("test {at} {}", "x".repeat(90)), None, verdict));
        report(tests.collect())
    };
    let (old, new) = (many(Verdict::Pass), many(Verdict::Fail));
    let mut out = Vec::new();
    let comparison = compare(&old, &new);
    render("agent", &comparison, &new, Style::default(), &mut out).unwrap();
    assert!(out.len() <= 4096, "{}", out.len());
    assert!(String::from_utf8(out).unwrap().contains("more that differ"));
}
