use proptest::prelude::*;
use serde_json::json;

use super::*;

const A: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const B: &str = "11111111-2222-3333-4444-555555555555";

fn rules() -> Arc<Rules> {
    // Compiling takes longer than the tests themselves.
    static COMPILED: std::sync::OnceLock<Arc<Rules>> = std::sync::OnceLock::new();
    COMPILED
        .get_or_init(|| Arc::new(Rules::new(&[]).unwrap()))
        .clone()
}

#[test]
fn equal_values_share_a_placeholder_and_the_table_has_the_values() {
    let rules = rules();
    let mut normaliser = Normaliser::new(rules.clone());
    let mut value = json!({"id": A, "text": format!("{B} after {A} at 2026-07-28T10:00:00Z"), A: "<uuid:1>", "n": 3});
    normaliser.value(&mut value);
    assert_eq!(
        value,
        json!({"id": "<uuid:1>", "text": "<uuid:2> after <uuid:1> at <timestamp:1>", "<uuid:1>": "<literal:1>", "n": 3})
    );
    let table = Value::Object(normaliser.take_values());
    assert_eq!(
        table,
        json!({"<uuid:1>": A, "<uuid:2>": B, "<timestamp:1>": "2026-07-28T10:00:00Z", "<literal:1>": "<uuid:1>"})
    );
}

#[test]
fn rules_find_their_values_and_nothing_else() {
    let rules = Rules::new(&[Rule {
        name: "order".into(),
        pattern: "order ([0-9]+)".into(),
    }])
    .unwrap();
    for (text, names) in [
        ("order 17 of 12", "order"),
        ("call_abc123def456ghi", "id"),
        ("toolu_01A09q90qw90lq917835lq9", "id"),
        ("call_weather_service", ""),
        ("call_supercalifragilistic", ""),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "date"),
        ("on 2026-07-28", ""),
        ("2026-07-28 10:00:00.5+02:00", "timestamp"),
        ("9f86d081884c7d659a2feaa0c55ad015", ""),
        (r#"{"created_at": 1763258400}"#, "epoch"),
        (r#"{"startTime":1763258400123,"n":1763258400}"#, "epoch"),
        (r#"{"time": 12, "price": 1763258400}"#, ""),
        (r#"{\"updated_at\": 1763258400.25}"#, "epoch"),
        ("1763258400", ""),
    ] {
        let found: Vec<&str> = rules.find(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found.join(" "), names, "{text}");
    }
    assert_eq!(
        &"order 17 of 12"[rules.find("order 17 of 12")[0].0.clone()],
        "17"
    );
}

#[test]
fn invalid_rules_are_rejected() {
    for (name, pattern, in_name) in [
        ("", "x", true),
        ("Order", "x", true),
        ("literal", "x", true),
        ("a", "(", false),
        ("a", "x*", false),
    ] {
        let rule = Rule {
            name: name.into(),
            pattern: pattern.into(),
        };
        let error = Rules::new(&[rule]).unwrap_err();
        assert_eq!(
            (error.index, error.in_name),
            (0, in_name),
            "{name} {pattern}"
        );
    }
    let uuid = Rule {
        name: "uuid".into(),
        pattern: "U[0-9]".into(),
    };
    assert!(
        Rules::new(std::slice::from_ref(&uuid))
            .unwrap()
            .find(A)
            .is_empty()
    );
    let many: Vec<Rule> = (0..200)
        .map(|number| Rule {
            name: format!("r{number}"),
            pattern: "x".into(),
        })
        .collect();
    assert_eq!(Rules::compile(&many).unwrap_err().index, 100);
    assert!(Rules::new(&[uuid.clone(), uuid]).unwrap_err().in_name);
}

#[test]
fn live_values_replace_recorded_ones_and_stay_bound() {
    let rules = rules();
    let table = json!({"<uuid:1>": A, "<uuid:2>": B});
    let table = table.as_object().unwrap();
    let mut bindings = Bindings::new(rules, table.clone());
    let fresh = "aaaaaaaa-2222-3333-4444-555555555555";
    assert!(!bindings.align(&json!({"id": "<uuid:1>"}), &json!({"id": "none"})));
    assert!(!bindings.align(&json!(["<uuid:1>", "<uuid:2>"]), &json!([fresh, fresh])));
    assert!(bindings.align(&json!({"id": "<uuid:1>"}), &json!({"id": fresh})));
    assert!(bindings.align(&json!("again <uuid:1>"), &json!(format!("again {fresh}"))));
    assert!(!bindings.align(&json!("<uuid:1>"), &json!(B)));
    assert!(!bindings.align(&json!("<uuid:2>"), &json!(fresh)));
    let mut reply = json!(["<uuid:1>", "<uuid:2>", "<uuid:3>"]);
    bindings.restore(&mut reply);
    assert_eq!(reply, json!([fresh, B, "<uuid:3>"]));
    bindings.denote(&mut reply);
    assert_eq!(reply, json!(["<uuid:1>", "<uuid:2>", "<literal:?>"]));
}

#[test]
fn seconds_since_1970_are_volatile_under_a_key_that_names_a_time() {
    let live = json!({
        "content": [{"text": r#"{"created_at": 1763258400}"#}],
        "structured": {"created_at": 1763258400, "updatedAt": 1763258400.5, "expires": 1763258400123_u64, "count": 1763258400, "date": 20261116},
    });
    let mut recorded = live.clone();
    let mut normaliser = Normaliser::new(rules());
    normaliser.value(&mut recorded);
    assert_eq!(
        recorded,
        json!({
            "content": [{"text": r#"{"created_at": <epoch:1>}"#}],
            "structured": {"created_at": "<epoch:2>", "updatedAt": "<epoch:3>", "expires": "<epoch:4>", "count": 1763258400, "date": 20261116},
        })
    );
    let table = normaliser.take_values();
    assert_eq!(
        Value::Object(table.clone()),
        json!({"<epoch:1>": "1763258400", "<epoch:2>": 1763258400, "<epoch:3>": 1763258400.5, "<epoch:4>": 1763258400123_u64})
    );
    let mut bindings = Bindings::new(rules(), table.clone());
    let mut back = recorded.clone();
    bindings.restore(&mut back);
    assert_eq!(back, live);
    bindings.denote(&mut back);
    assert_eq!(back, recorded);
    // A live server an hour later.
    let later: Value = serde_json::from_str(
        &live
            .to_string()
            .replace("1763258400}", "1763262000}")
            .replace("\"created_at\":1763258400,", "\"created_at\":1763262000,"),
    )
    .unwrap();
    let mut bindings = Bindings::new(rules(), table);
    assert!(bindings.align(&recorded, &later));
    let mut asked = json!({"created_at": "<epoch:2>", "text": "after <epoch:1>"});
    bindings.restore(&mut asked);
    assert_eq!(
        asked,
        json!({"created_at": 1763262000, "text": "after 1763262000"})
    );
    assert!(!bindings.align(
        &json!({"created_at": "<epoch:2>"}),
        &json!({"created_at": 7})
    ));
    assert!(!bindings.align(
        &json!({"created_at": "<uuid:1>"}),
        &json!({"created_at": 1763262000})
    ));
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(A.to_owned()),
        Just(B.to_owned()),
        Just("<uuid:1>".to_owned()),
        Just("2026-07-28T10:00:00Z".to_owned()),
        Just("call_abc123def456ghi".to_owned()),
        Just(r#""ts": 1763258400"#.to_owned()),
        Just("<epoch:1>".to_owned()),
        "[ -~]{0,6}",
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn normalised_values_are_restored(
        texts in prop::collection::vec(text(), 0..6),
        times in prop::collection::vec(("(ts|date|n|<epoch:1>)", 0_u64..4_000_000_000_000), 0..6),
    ) {
        let rules = rules();
        let mut normaliser = Normaliser::new(rules.clone());
        let times: Vec<Value> = times.into_iter().map(|(key, time)| json!({key: time})).collect();
        let live = json!([texts, times]);
        let mut recorded = live.clone();
        normaliser.value(&mut recorded);
        let table = normaliser.take_values();
        prop_assert!(unexplained(&recorded, &table).is_empty());
        let mut bindings = Bindings::new(rules.clone(), table.clone());
        prop_assert!(bindings.align(&recorded, &live));
        let mut bindings = Bindings::new(rules.clone(), table.clone());
        let mut back = recorded.clone();
        bindings.restore(&mut back);
        prop_assert_eq!(&back, &live);
        bindings.denote(&mut back);
        prop_assert_eq!(back, recorded);
    }
}
