use mcptest_trace::verdict::Verdict::{self, Error, Fail, NoEvidence, Pass};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::samples;

/// A report with a test per list of runs; the verdict is the worst of them.
fn report(tests: &[(&str, &[Verdict])]) -> Report {
    let tests = tests.iter().map(|(name, runs)| {
        let verdict = Verdict::worst(runs.iter().copied());
        let mut test = samples::test(name, None, verdict);
        let numbered = (1..).zip(runs.iter());
        test.runs = numbered
            .map(|(at, verdict)| samples::run(at, name, *verdict, Some(100 * at)))
            .collect();
        test
    });
    samples::concluded(tests.collect())
}

fn trend(reports: &[Report]) -> Trend {
    let mut fold = TrendFold::default();
    for (at, report) in reports.iter().enumerate() {
        assert!(fold.add(&format!("report {at}"), report, None));
    }
    fold.finish()
}

fn rendered(name: &str, trend: &Trend, width: Option<u16>) -> String {
    let style = Style {
        width,
        ..Style::default()
    };
    let mut out = Vec::new();
    render(name, trend, style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn figures_are_those_of_each_report() {
    let trend = trend(&[
        report(&[("a", &[Pass, Pass]), ("b", &[Pass, Fail]), ("c", &[Fail])]),
        report(&[("a", &[Pass]), ("b", &[Pass]), ("c", &[Pass])]),
    ]);
    let first = &trend.points[0];
    assert_eq!((first.tests, first.passed, first.runs), (3, 1, 5));
    assert_eq!(first.pass_rate, Some(1.0 / 3.0));
    assert_eq!(first.run_pass_rate, Some(0.6));
    // 100, 200, 100, 200 and 100 tokens.
    assert_eq!(first.tokens_per_run, Some(140.0));
    // One of the two tests with several runs.
    assert_eq!(first.flakiness, Some(0.5));
    assert_eq!((first.f1, first.verdict), (None, Fail));
    assert_eq!(trend.points[1].pass_rate, Some(1.0));
    assert_eq!(trend.points[1].flakiness, None);
    assert!(trend.same_tests);
    let names: Vec<&str> = trend.flaky.iter().map(|it| it.id.name.as_str()).collect();
    assert_eq!(names, ["b", "c"], "b flipped and was mixed, c flipped");
}

#[test]
fn f1_and_cost_are_over_the_tests_that_have_them() {
    let mut tests = vec![
        samples::test("a", None, Pass),
        samples::test("b", None, Pass),
        samples::test("c", None, Pass),
    ];
    for (test, f1) in tests.iter_mut().zip([100, 50]) {
        let mut gate = samples::floor(Pass, 100);
        gate.block = F1.0.to_owned();
        gate.values.insert(F1.1.to_owned(), json!(f1));
        test.gates.push(gate);
    }
    for (test, usd) in tests.iter_mut().zip([0.1, 0.2]) {
        let spend = mcptest_events::Spend {
            usd: Some(usd),
            ..Default::default()
        };
        test.spend = Some(spend);
    }
    let trend = trend(&[samples::concluded(tests)]);
    assert_eq!(trend.points[0].f1, Some(75.0));
    assert_eq!(trend.points[0].usd, Some(0.3));
}

#[test]
fn tests_without_a_judgement_do_not_flip() {
    let course = [Pass, Error, Pass, NoEvidence, Fail, Fail, Pass];
    let reports: Vec<Report> = course.iter().map(|it| report(&[("a", &[*it])])).collect();
    let trend = trend(&reports);
    let [test] = trend.flaky.as_slice() else {
        panic!("{:?}", trend.flaky)
    };
    assert_eq!((test.flips, test.judged), (2, 5));
    assert_eq!(test.flip_rate, Some(0.5));
    let expected: Vec<Option<Verdict>> = course.into_iter().map(Some).collect();
    assert_eq!(test.verdicts, expected);
}

#[test]
fn a_suite_can_be_chosen() {
    let mut fold = TrendFold::default();
    let report = report(&[("a", &[Pass])]);
    assert!(!fold.add("other", &report, Some("another suite")));
    assert!(fold.add("this", &report, Some(&report.tests[0].id.suite)));
    let trend = fold.finish();
    assert_eq!(trend.points.len(), 1);
    assert!(trend.flaky.is_empty());
}

#[test]
fn people_see_sparklines_and_flaky_tests() {
    let trend = trend(&[
        report(&[("a", &[Pass]), ("\u{1b}[31mb", &[Pass, Fail])]),
        report(&[("a", &[Pass])]),
        report(&[("a", &[Fail])]),
    ]);
    assert_eq!(
        rendered("pretty", &trend, None),
        "3 reports: report 0 to report 2\n\
         \x20 tests passed    ▅█▁  0.0 %  (0.0 % to 100.0 %)\n\
         \x20 runs passed     ▆█▁  0.0 %  (0.0 % to 100.0 %)\n\
         \x20 flaky tests     █··  100.0 %\n\
         \x20 tokens per run  █▆▆  100  (100 to 133)\n\
         \x20 Not all reports have the same tests: figures may differ because of that.\n\n\
         flaky tests\n\
         \x20 ✓✓✗  a: 1 flip in 3 reports\n\
         \x20 ✗    \\u{1b}[31mb: 0 flips in 1 report, only some runs passed in 1\n"
    );
    let empty = TrendFold::default().finish();
    assert_eq!(rendered("pretty", &empty, None), "no reports\n");
}

#[test]
fn long_histories_fit_the_display() {
    let reports: Vec<Report> = (0..200)
        .map(|at| report(&[("a", &[if at % 2 == 0 { Pass } else { Fail }])]))
        .collect();
    let trend = trend(&reports);
    for width in [60, 80, 200] {
        for line in rendered("pretty", &trend, Some(width)).lines() {
            assert!(
                line.chars().count() <= usize::from(width),
                "{width}: {line}"
            );
        }
    }
}

#[test]
fn programs_and_pages_have_the_same_figures() {
    let trend = trend(&[
        report(&[("</script><b>", &[Pass])]),
        report(&[("</script><b>", &[Fail])]),
    ]);
    let json: Value = serde_json::from_str(&rendered("json", &trend, None)).unwrap();
    assert_eq!(json["points"][1]["pass_rate"], 0.0);
    assert_eq!(json["flaky"][0]["flips"], 1);
    let page = rendered("html", &trend, None);
    let (_, rest) = page.split_once("id=\"head\">").unwrap();
    let head: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(head["trend"], json);
    assert!(page.contains("Content-Security-Policy"));
    let mut out = Vec::new();
    let refused = render("junit", &trend, Style::default(), &mut out).unwrap_err();
    let message = refused.to_string();
    assert!(message.contains("pretty, json, html"), "{message}");
}

proptest! {
    #[test]
    fn flips_are_bounded_by_the_judged_reports(
        course in prop::collection::vec(prop::sample::select(vec![Pass, Fail, Error, NoEvidence]), 1..12)
    ) {
        let reports: Vec<Report> = course.iter().map(|it| report(&[("a", &[*it])])).collect();
        let trend = trend(&reports);
        let judged = course.iter().filter(|it| matches!(it, Pass | Fail)).count() as u64;
        let both = course.contains(&Pass) && course.contains(&Fail);
        prop_assert_eq!(!trend.flaky.is_empty(), both);
        for test in &trend.flaky {
            prop_assert_eq!(test.judged, judged);
            prop_assert!(test.flips < judged);
            prop_assert!(test.flip_rate.is_some_and(|rate| (0.0..=1.0).contains(&rate)));
        }
    }
}
