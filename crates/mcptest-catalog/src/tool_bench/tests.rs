use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::lexical::select;
use mcptest_numbers::percent::Rate;

fn bench(spec: Value, quality: &dyn CatalogQuality) -> BenchReport {
    let spec: BenchSpec = serde_json::from_value(spec).unwrap();
    let tools = spec.catalog.clone().unwrap().0;
    let mutations = spec.mutations(&tools).unwrap();
    run(&tools, &spec.intents, &mutations, quality)
}

/// The document's example, with a second tool to lose against.
fn weather() -> Value {
    json!({
        "catalog": {"tools": [
            {"name": "lookup_a", "description": "Return the current weather forecast for a city, as JSON."},
            {"name": "lookup_b", "description": "Return the exchange rate of two currencies."},
        ]},
        "intents": [
            {"query": "what is the weather forecast in Paris", "gold": ["lookup_a"]},
            {"query": "exchange rate of euro and dollar", "gold": ["lookup_b"]},
        ],
        "mutations": [
            {"tool": "lookup_a", "kind": "blank"},
            {"tool": "lookup_a", "kind": "drop_keyword", "word": "Weather"},
            {"tool": "lookup_b", "kind": "truncate", "chars": 10},
            {"tool": "lookup_b", "kind": "drop_keyword", "word": "weather"},
            {"tool": "lookup_b", "kind": "genericize"},
        ],
    })
}

#[test]
fn a_mutation_costs_the_picks_that_it_changes() {
    let report = bench(weather(), &NotMeasured);
    assert_eq!(
        (report.baseline.correct, report.baseline.accuracy),
        (2, 1.0)
    );
    // Wilson for 2 of 2 with z = 1.96: n / (n + z²) = 2 / 5.8416.
    assert!((report.baseline.wilson.lower - 2.0 / 5.8416).abs() < 1e-12);
    assert_eq!(report.baseline.wilson.upper, 1.0);
    // Two names, ten words and seven.
    assert_eq!(report.baseline.whitespace_tokens, 2 + 10 + 7);
    let figures: Vec<_> = report
        .mutations
        .iter()
        .map(|one| (one.changed, one.score.correct, one.drop, one.tokens_removed))
        .collect();
    assert_eq!(
        figures,
        [
            (true, 1, 0.5, 10),
            // `forecast` is left, and nobody else has it.
            (true, 2, 0.0, 1),
            (true, 1, 0.5, 5),
            (false, 2, 0.0, 0),
            (true, 1, 0.5, 2),
        ]
    );
    assert_eq!(report.max_drop, Some(0.5));
    assert_eq!(
        report.mutations[0].moved,
        [Moved {
            query: "what is the weather forecast in Paris".into(),
            from: Some("lookup_a".into()),
            to: None,
            was_correct: true,
            is_correct: false,
        }]
    );
}

#[test]
fn thresholds_are_compared_exactly() {
    let report = bench(weather(), &NotMeasured);
    let reaches = |rate| report.reaches(Rate::from_f64(rate).unwrap());
    assert_eq!(
        (reaches(0.5), reaches(0.51), reaches(0.0)),
        (Some(true), Some(false), Some(true))
    );
    let mut none = weather();
    none["mutations"] = json!([]);
    assert_eq!(
        bench(none, &NotMeasured).reaches(Rate::from_f64(0.0).unwrap()),
        None
    );
    // 7 of 10 lost meets 0.7, which doubles would miss.
    let intents: Vec<Value> = (0..10)
        .map(|n| json!({"query": if n < 7 { "alpha" } else { "beta" }, "gold": ["t"]}))
        .collect();
    let spec = json!({
        "catalog": [{"name": "t", "description": "alpha beta"}],
        "intents": intents,
        "mutations": [{"tool": "t", "kind": "drop_keyword", "word": "alpha"}],
    });
    let report = bench(spec, &NotMeasured);
    assert_eq!(report.max_drop, Some(0.7));
    assert_eq!(report.reaches(Rate::from_f64(0.7).unwrap()), Some(true));
}

#[test]
fn an_edit_that_helps_has_a_drop_below_zero() {
    let spec = json!({
        "catalog": [{"name": "noise", "description": "mail weather"}, {"name": "mail", "description": "more words in here"}],
        "intents": [{"query": "mail", "gold": ["mail"]}],
        "mutations": [{"tool": "noise", "kind": "blank"}],
    });
    let report = bench(spec, &NotMeasured);
    assert_eq!(
        (report.baseline.accuracy, report.max_drop),
        (0.0, Some(-1.0))
    );
    assert_eq!(report.reaches(Rate::from_f64(0.0).unwrap()), Some(false));
}

#[test]
fn the_confusion_table_shows_picks_and_words() {
    let spec = json!({
        "catalog": [
            {"name": "search_web", "description": "search pages"},
            {"name": "search_docs", "description": "search internal pages of the handbook"},
            {"name": "ping", "description": "ping"},
        ],
        "intents": [
            {"query": "search for pages", "gold": ["search_docs", "ping"]},
            {"query": "handbook", "gold": ["search_docs"]},
            {"query": "something else", "gold": ["ping"]},
            {"query": "search the handbook", "gold": ["gone"]},
        ],
    });
    let report = bench(spec, &NotMeasured);
    let words = |words: &BTreeSet<String>| words.iter().cloned().collect::<Vec<_>>().join(" ");
    let rows: Vec<_> = report
        .confusion
        .iter()
        .map(|row| {
            format!(
                "{} -> {:?} {} {} [{}] [{}]",
                row.intended,
                row.picked.as_deref(),
                row.correct,
                row.count,
                words(&row.picked_words),
                words(&row.intended_words)
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            r#"search_docs -> Some("search_web") false 1 [pages search] [pages search]"#,
            r#"search_docs -> Some("search_docs") true 1 [handbook] [handbook]"#,
            r"ping -> None false 1 [] []",
            r#"gone -> Some("search_docs") false 1 [handbook search] []"#,
        ]
    );
    assert_eq!(report.max_drop, None);
}

#[test]
fn the_measure_is_that_of_the_lint() {
    let report = bench(weather(), &Tdqs);
    let whole: Vec<Value> = weather()["catalog"]["tools"].as_array().unwrap().clone();
    let expected = crate::quality::assess(&whole);
    let quality = report.baseline.quality.unwrap();
    assert_eq!(Some(quality.tdqs_min), expected.min_score);
    assert!((quality.tdqs_mean - expected.mean_score.unwrap()).abs() < 1e-12);
    assert_eq!(quality.smells.values().sum::<u64>(), expected.smell_total);
    // Without a description the tool is underspecified.
    let introduced = report.mutations[0].smells_introduced.as_ref().unwrap();
    assert_eq!(introduced.get("underspecified"), Some(&1));
    assert!(report.mutations[0].score.quality.as_ref().unwrap().tdqs_min < quality.tdqs_min);
    assert!(
        report.mutations[3]
            .smells_introduced
            .as_ref()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_measure_fills_in_quality() {
    /// Half a point per word, and short is a smell.
    struct Words;
    impl CatalogQuality for Words {
        fn assess(&self, tool: &Tool) -> Option<ToolQuality> {
            let words = tool
                .description()
                .map_or(0, |text| text.split_whitespace().count());
            let smells = (words < 2)
                .then(|| ("underspecified".to_owned(), 1))
                .into_iter()
                .collect();
            Some(ToolQuality {
                score: words as f64 / 2.0,
                smells,
            })
        }
    }
    let spec = json!({
        "catalog": [{"name": "a", "description": "one two"}, {"name": "b", "description": "three"}],
        "intents": [{"query": "one", "gold": ["a"]}],
        "mutations": [{"tool": "a", "kind": "blank"}, {"tool": "b", "kind": "blank"}],
    });
    let report = bench(spec.clone(), &Words);
    let quality = report.baseline.quality.unwrap();
    assert_eq!((quality.tdqs_mean, quality.tdqs_min), (0.75, 0.5));
    assert_eq!(quality.smells, [("underspecified".to_owned(), 1)].into());
    let introduced: Vec<_> = report
        .mutations
        .iter()
        .map(|one| one.smells_introduced.clone().unwrap())
        .collect();
    assert_eq!(
        introduced,
        [[("underspecified".to_owned(), 1)].into(), BTreeMap::new()]
    );
    assert_eq!(
        report.mutations[0].score.quality.as_ref().unwrap().tdqs_min,
        0.0
    );
    assert_eq!(bench(spec, &NotMeasured).baseline.quality, None);
}

proptest! {
    #[test]
    fn picks_are_those_of_the_selector(
        tools in prop::collection::vec(("[a-d]{1,2}", "[a-d ]{0,10}"), 0..5),
        queries in prop::collection::vec("[a-d ]{1,6}", 1..4),
    ) {
        let tools: Vec<Tool> = tools
            .iter()
            .map(|(name, description)| Tool::from_listing(None, &json!({"name": name, "description": description})).unwrap())
            .collect();
        let intents: Vec<IntentSpec> = queries
            .iter()
            .map(|query| IntentSpec { query: query.clone(), gold: vec!["a".into(), "b".into()] })
            .collect();
        let mutations = all_mutations(&tools, &[]);
        let report = run(&tools, &intents, &mutations, &NotMeasured);
        let correct = |tools: &[Tool]| intents.iter().filter(|intent| {
            select(&intent.query, tools.iter().map(|tool| (tool.name(), tool.description().unwrap_or(""))))
                .is_some_and(|pick| intent.gold.iter().any(|gold| gold == tools[pick.index].name()))
        }).count() as u64;
        prop_assert_eq!(report.baseline.correct, correct(&tools));
        prop_assert_eq!(report.confusion.iter().map(|cell| cell.count).sum::<u64>(), intents.len() as u64);
        for one in &report.mutations {
            let edited: Vec<Tool> = tools
                .iter()
                .map(|tool| if tool.name() == one.mutation.tool { one.mutation.apply(tool) } else { tool.clone() })
                .collect();
            prop_assert_eq!(one.score.correct, correct(&edited));
            prop_assert_eq!(one.score.whitespace_tokens, edited.iter().map(whitespace_tokens).sum::<u64>());
            prop_assert_eq!(one.changed, edited != tools);
        }
    }
}
