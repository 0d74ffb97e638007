use std::collections::BTreeSet;

use mcptest_trace::catalog::Tool;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn block() -> Value {
    json!({"count": 2, "source": {"from": "catalog"}, "correct": ["s.a"]})
}

fn loaded(block: Value) -> Distractors {
    serde_json::from_value(block).unwrap()
}

fn near(of: &[&str]) -> Distractors {
    loaded(
        json!({"count": 3, "source": {"from": "near_duplicate", "of": of}, "correct": ["shop.search_products_v2"]}),
    )
}

fn real(server: &str, name: &str) -> Tool {
    let listed =
        json!({"name": name, "description": "Does something.", "inputSchema": {"type": "object"}});
    Tool::from_listing(Some(server), &listed).unwrap()
}

fn names(tools: &[Tool]) -> Vec<&str> {
    tools.iter().map(Tool::name).collect()
}

#[test]
fn near_duplicates_are_shared_out_and_never_real() {
    let tools = [
        real("shop", "search_products"),
        real("shop", "get_product"),
        real("shop", "get_products"),
        real("mail", "search_products_v3"),
    ];
    let planned = plan_injection(
        &near(&["search_products", "shop.get_product"]),
        &tools,
        40,
        5,
    )
    .unwrap();
    assert_eq!(planned.len(), 40);
    let unique: BTreeSet<_> = names(&planned).into_iter().collect();
    assert_eq!(unique.len(), 40);
    assert!(tools.iter().all(|tool| !unique.contains(tool.name())));
    assert!(!unique.contains("search_products_v2"), "declared correct");
    assert!(planned.iter().all(|tool| tool.server() == Some("shop")));
    let of_search = planned
        .iter()
        .filter(|tool| tool.name().to_lowercase().starts_with("search"));
    assert_eq!(of_search.count(), 20);
}

#[test]
fn of_must_name_offered_tools() {
    let error = plan_injection(
        &near(&["search_products", "nope"]),
        &[real("shop", "search_products")],
        1,
        1,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`distractors.source.of` names `nope`, but no server offers such a tool (offered: `shop.search_products`)"
    );
    assert!(
        plan_injection(&near(&["x"]), &[], 1, 1)
            .unwrap_err()
            .to_string()
            .contains("offered: nothing")
    );
}

#[test]
fn the_catalog_avoids_what_the_test_is_about() {
    let block = loaded(block());
    let tools = [real("meteo", "get_weather"), real("meteo", "send_email")];
    for seed in 0..50 {
        let planned = plan_injection(&block, &tools, 60, seed).unwrap();
        let names = names(&planned);
        assert!(!names.contains(&"send_email"));
        assert!(!names.contains(&"get_weather_forecast"), "{names:?}");
        assert!(planned.iter().all(|tool| tool.server() == Some("meteo")));
        assert!(
            planned
                .iter()
                .all(|tool| tool.input_schema().is_some() && tool.description().is_some())
        );
    }
    let everything = plan_injection(&block, &tools, 200, 1).unwrap();
    assert_eq!(
        names(&everything)
            .into_iter()
            .collect::<BTreeSet<_>>()
            .len(),
        200
    );
    // A server in another spelling of the same name is still that tool.
    let shouting = [real("s", "SEND_EMAIL")];
    assert!(!names(&plan_injection(&block, &shouting, 80, 1).unwrap()).contains(&"send_email"));
    // Without any real tool there is no server to belong to.
    assert_eq!(plan_injection(&block, &[], 3, 1).unwrap()[0].server(), None);
}

#[test]
fn several_servers_share_the_catalogs_tools() {
    let tools = [real("a", "one"), real("b", "two")];
    let planned = plan_injection(&loaded(block()), &tools, 40, 9).unwrap();
    for server in ["a", "b"] {
        let count = planned
            .iter()
            .filter(|tool| tool.server() == Some(server))
            .count();
        assert!((8..=32).contains(&count), "{server}: {count}");
    }
}

#[test]
fn injected_tools_never_change_between_releases() {
    let tools = [real("shop", "search_products")];
    assert_eq!(
        names(&plan_injection(&near(&["search_products"]), &tools, 4, 7).unwrap()),
        [
            "search-products",
            "search_products_v3",
            "search_products_beta",
            "search_product"
        ]
    );
    assert_eq!(
        names(&plan_injection(&loaded(block()), &tools, 4, 7).unwrap()),
        [
            "remove_background",
            "restart_service",
            "log_workout",
            "get_driving_directions"
        ]
    );
    assert_eq!(offer_order(6, 7), [5, 0, 3, 1, 4, 2]);
}

#[test]
fn a_sweep_runs_every_count_with_the_same_seeds() {
    let block = loaded(json!({"counts": [0, 4], "source": {"from": "catalog"}, "seed": 11}));
    let schedule = block.schedule("test", 3);
    let counts: Vec<u32> = schedule.iter().map(|planned| planned.count).collect();
    assert_eq!(counts, [0, 0, 0, 4, 4, 4]);
    for run in 0..3 {
        assert_eq!(schedule[run].seed, schedule[run + 3].seed);
    }
    assert_ne!(schedule[0].seed, schedule[1].seed);
    // A written seed frees the order from the test's name.
    assert_eq!(schedule, block.schedule("renamed", 3));
    let unseeded = loaded(json!({"count": 4, "source": {"from": "catalog"}}));
    assert_ne!(
        unseeded.schedule("test", 1),
        unseeded.schedule("renamed", 1)
    );
    assert_eq!(unseeded.schedule("test", 0).len(), 1);
}

proptest! {
    // The catalog's tools are many to copy in an unoptimized build.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn a_smaller_count_is_the_beginning_of_a_larger(seed: u64, few in 0_u32..20, more in 0_u32..120, near_by: bool) {
        let tools = [real("shop", "search_products"), real("mail", "send_note")];
        let block = if near_by { near(&["search_products", "send_note"]) } else { loaded(block()) };
        let large = plan_injection(&block, &tools, few + more, seed).unwrap();
        let small = plan_injection(&block, &tools, few, seed).unwrap();
        prop_assert_eq!(large.len() as u32, few + more);
        prop_assert_eq!(&large[..few as usize], &small[..]);
        let mut order = offer_order(large.len(), seed);
        order.sort_unstable();
        prop_assert!(order.into_iter().eq(0..large.len()));
    }

    #[test]
    fn near_duplicates_of_any_name_are_new(name in "[a-zA-Z0-9_.\\-äß ]{1,70}", seed: u64) {
        let tools = [real("s", &name)];
        // The full id: a bare name that begins with the server's own would mean another tool.
        let planned = plan_injection(&near(&[&format!("s.{name}")]), &tools, 25, seed).unwrap();
        let unique: BTreeSet<_> = names(&planned).into_iter().collect();
        prop_assert_eq!(unique.len(), 25);
        prop_assert!(!unique.contains(name.as_str()));
        prop_assert!(!unique.contains(""));
    }
}
