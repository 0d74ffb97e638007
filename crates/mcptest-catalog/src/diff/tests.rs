use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::tool_bench::NotMeasured;

fn tools(list: &Value) -> Vec<Tool> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|tool| Tool::from_listing(None, tool).unwrap())
        .collect()
}

fn compare(old: Value, new: Value) -> CatalogDiff {
    diff(&tools(&old), &tools(&new), &NotMeasured)
}

fn lines(diff: &CatalogDiff) -> Vec<String> {
    let changes = diff.changed.iter().flat_map(|tool| &tool.changes);
    changes
        .map(|change| format!("{:?} {} {:?}", change.class, change.pointer, change.kind))
        .collect()
}

fn with_schemas(key: &str, old: Value, new: Value) -> CatalogDiff {
    compare(
        json!([{"name": "t", key: old}]),
        json!([{"name": "t", key: new}]),
    )
}

#[test]
fn added_and_removed() {
    let found = compare(
        json!([{"name": "a", "description": "one"}, {"name": "b"}]),
        json!([{"name": "b"}, {"name": "c", "description": "entirely different"}]),
    );
    assert_eq!(found.removed[0].name, "a");
    assert_eq!(found.added[0].name, "c");
    assert!(found.renamed.is_empty() && found.changed.is_empty());
    assert_eq!(
        (found.breaking, found.breaking_count, found.compatible_count),
        (true, 1, 1)
    );
    let grown = compare(
        json!([{"name": "b"}]),
        json!([{"name": "b"}, {"name": "c"}]),
    );
    assert!(!grown.breaking);
}

#[test]
fn renames_need_the_same_arguments_and_alike_words() {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let tool = |name: &str, description: &str, schema: &Value| json!({"name": name, "description": description, "inputSchema": schema});
    let renames = |old: Value, new: Value| {
        let found = compare(json!([old]), json!([new]));
        found
            .renamed
            .iter()
            .map(|one| format!("{} {}", one.from, one.to))
            .collect::<Vec<_>>()
    };
    let old = tool("find_docs", "Searches the handbook for pages", &schema);
    assert_eq!(
        renames(
            old.clone(),
            tool("lookup", "Searches the handbook for good pages", &schema)
        ),
        ["find_docs lookup"]
    );
    assert_eq!(
        renames(old.clone(), tool("find_docs_v2", "Other words", &schema)),
        ["find_docs find_docs_v2"]
    );
    assert!(renames(old.clone(), tool("lookup", "Other words", &schema)).is_empty());
    assert!(
        renames(
            old.clone(),
            tool(
                "lookup",
                "Searches the handbook for pages",
                &json!({"required": ["z"]})
            )
        )
        .is_empty()
    );
    // The same name in another spelling, whatever else changed.
    assert_eq!(
        renames(
            old,
            tool("findDocs", "Other words", &json!({"required": ["z"]}))
        ),
        ["find_docs findDocs"]
    );
}

#[test]
fn the_best_pair_is_the_rename() {
    let found = compare(
        json!([{"name": "get_user", "description": "Reads one user"}]),
        json!([{"name": "get_user_list", "description": "Reads all users there are"}, {"name": "fetch_user", "description": "Reads one user"}]),
    );
    assert_eq!(
        found.renamed,
        [Renamed {
            from: "get_user".into(),
            to: "fetch_user".into()
        }]
    );
    assert_eq!(found.added.len(), 1);
}

#[test]
fn input_and_output_break_the_other_way_round() {
    let old =
        json!({"properties": {"a": {"type": "number"}, "b": {}, "gone": {}}, "required": ["b"]});
    let new =
        json!({"properties": {"a": {"type": "integer"}, "b": {}, "new": {}}, "required": ["new"]});
    assert_eq!(
        lines(&with_schemas("inputSchema", old.clone(), new.clone())),
        [
            "Breaking /inputSchema/properties/a/type Narrowed",
            "Breaking /inputSchema/properties/gone PropertyRemoved",
            "Breaking /inputSchema/properties/new PropertyAdded",
            "Compatible /inputSchema/properties/b RequiredRemoved",
        ]
    );
    assert_eq!(
        lines(&with_schemas("outputSchema", old, new)),
        [
            "Breaking /outputSchema/properties/b RequiredRemoved",
            "Breaking /outputSchema/properties/gone PropertyRemoved",
            "Compatible /outputSchema/properties/a/type Narrowed",
            "Compatible /outputSchema/properties/new PropertyAdded",
        ]
    );
}

#[test]
fn whole_schemas_come_and_go() {
    let schema = json!({"type": "object"});
    let with = json!([{"name": "t", "outputSchema": schema, "inputSchema": schema}]);
    let without = json!([{"name": "t"}]);
    assert_eq!(
        lines(&compare(with.clone(), without.clone())),
        [
            "Breaking /outputSchema SchemaRemoved",
            "Compatible /inputSchema/type Widened"
        ]
    );
    assert_eq!(
        lines(&compare(without, with)),
        [
            "Breaking /inputSchema/type Narrowed",
            "Compatible /outputSchema SchemaAdded"
        ]
    );
}

#[test]
fn words_and_hints_break_nothing() {
    let found = compare(
        json!([{"name": "t", "description": "Short.", "annotations": {"readOnlyHint": true}, "title": "T"}]),
        json!([{"name": "t", "description": "Much longer than that.", "annotations": {"readOnlyHint": false, "x": 1}}]),
    );
    assert!(!found.breaking);
    assert_eq!(
        lines(&found),
        [
            "Compatible /annotations/readOnlyHint Annotation",
            "Compatible /annotations/x Annotation",
            "Compatible /title Annotation",
        ]
    );
    let description = found.changed[0].description.as_ref().unwrap();
    let count = |text| tokens::count(text);
    assert_eq!(
        (description.tokens.old, description.tokens.new),
        (count("Short."), count("Much longer than that."))
    );
    assert_eq!(found.compatible_count, 4);
    assert_eq!(found.changed[0].tokens.delta, description.tokens.delta);
}

#[test]
fn malformed_tools_are_compared_as_they_are() {
    let malformed = json!([{"name": 3, "inputSchema": null}, {"inputSchema": "x"}, {"name": "a"}, {"name": "a", "inputSchema": []}]);
    assert!(compare(malformed.clone(), malformed.clone()).is_empty());
    compare(
        malformed,
        json!([{"name": "a", "inputSchema": {"type": ["string", 4], "required": "x", "enum": 3}}]),
    );
}

fn keys_turned(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .rev()
                .map(|(k, v)| (k.clone(), keys_turned(v)))
                .collect::<Map<_, _>>(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(keys_turned).collect()),
        other => other.clone(),
    }
}

fn schema() -> impl Strategy<Value = Value> {
    schema_of(0..3)
}

/// A schema; objects have this number of three properties.
fn schema_of(properties: std::ops::Range<usize>) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        "string|number|integer|null".prop_map(|kind| json!({"type": kind})),
        (0..4_u8).prop_map(|n| json!({"type": "string", "maxLength": n, "minLength": n})),
        prop::collection::btree_set("[a-c]", 1..3).prop_map(|values| json!({"enum": values})),
        "[a-b]".prop_map(|text| json!({"description": text, "pattern": text})),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|all| json!({"anyOf": all})),
            (
                prop::collection::btree_map("[a-c]", inner, properties.clone()),
                prop::collection::btree_set("[a-d]", 0..2),
                any::<bool>()
            )
                .prop_map(|(properties, required, closed)| json!({
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": !closed,
                })),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        (-1..4_i64).prop_map(|n| json!(n)),
        Just(json!(1.5)),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn catalog() -> impl Strategy<Value = Value> {
    let tool = (
        "[a-c](_[a-c])?",
        prop::option::of("[a-c ]{0,6}"),
        schema(),
        prop::option::of(schema()),
    )
        .prop_map(|(name, description, input, output)| {
            let mut tool = json!({"name": name, "inputSchema": input});
            if let Some(description) = description {
                tool["description"] = description.into();
            }
            if let Some(output) = output {
                tool["outputSchema"] = output;
            }
            tool
        });
    prop::collection::vec(tool, 0..5).prop_map(Value::Array)
}

proptest! {
    #[test]
    fn a_catalog_has_no_difference_to_itself(catalog in catalog()) {
        prop_assert!(compare(catalog.clone(), catalog).is_empty());
    }

    #[test]
    fn the_order_of_tools_and_keys_does_not_matter(old in catalog(), new in catalog()) {
        let turned = |catalog: &Value| {
            let tools = keys_turned(catalog);
            Value::Array(tools.as_array().unwrap().iter().rev().cloned().collect())
        };
        prop_assert!(compare(old.clone(), turned(&old)).is_empty());
        let straight = compare(old.clone(), new.clone());
        let reversed = compare(turned(&old), turned(&new));
        prop_assert_eq!(lines(&straight), lines(&reversed));
        let names = |list: &[Listed]| list.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        prop_assert_eq!(names(&straight.added), names(&reversed.added));
        prop_assert_eq!(names(&straight.removed), names(&reversed.removed));
        prop_assert_eq!(straight.renamed, reversed.renamed);
    }

    #[test]
    fn turned_around_everything_is_its_opposite(old in catalog(), new in catalog()) {
        let there = compare(old.clone(), new.clone());
        let back = compare(new, old);
        prop_assert_eq!(&there.added, &back.removed);
        prop_assert_eq!(&there.removed, &back.added);
        let swapped: BTreeSet<_> = back.renamed.iter().map(|one| (one.to.clone(), one.from.clone())).collect();
        let straight: BTreeSet<_> = there.renamed.iter().map(|one| (one.from.clone(), one.to.clone())).collect();
        prop_assert_eq!(swapped, straight);
        let kinds = |diff: &CatalogDiff, turn: bool| {
            let mut kinds: Vec<Kind> = diff
                .changed
                .iter()
                .flat_map(|tool| &tool.changes)
                .map(|change| if turn { change.kind.opposite() } else { change.kind })
                .collect();
            kinds.sort();
            kinds
        };
        prop_assert_eq!(kinds(&there, false), kinds(&back, true));
    }

    // An independent validator is the judge: a compatible schema must not reject what was
    // accepted.
    #[test]
    fn compatible_arguments_stay_valid(old in schema_of(3..4), new in schema_of(3..4), values in prop::collection::vec(value(), 8)) {
        let facts = schema::compare("", &old, &new);
        // A new optional property is compatible by decision, though an open schema allowed anything
        // in its place.
        prop_assume!(!facts.iter().any(|fact| fact.kind == Kind::PropertyAdded));
        let validators = (jsonschema::validator_for(&old).unwrap(), jsonschema::validator_for(&new).unwrap());
        let rejected = values.iter().find(|value| validators.0.is_valid(value) && !validators.1.is_valid(value));
        if let Some(value) = rejected {
            prop_assert!(facts.iter().any(|fact| fact.breaks(Direction::Input)), "{value} is rejected by {new}");
            let back = schema::compare("", &new, &old);
            let added = back.iter().any(|fact| fact.kind == Kind::PropertyAdded);
            prop_assert!(added || back.iter().any(|fact| fact.breaks(Direction::Output)), "{value} is not promised by {new}");
        }
    }

    #[test]
    fn more_is_compatible_for_callers_and_less_is_not(properties in prop::collection::btree_map("[a-d]", schema(), 1..4)) {
        let full = json!({"type": "object", "properties": properties});
        let bare = json!({"type": "object"});
        prop_assert!(!with_schemas("inputSchema", bare.clone(), full.clone()).breaking);
        prop_assert!(with_schemas("inputSchema", full, bare).breaking);
    }
}

/// A schema with alternatives inside alternatives, each level referring to the next one.
fn nested_unions(levels: usize, leaf: &Value) -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        let branch = |name: &str| json!({"type": "object", "properties": {name: next.clone()}});
        definitions.insert(
            format!("l{level}"),
            json!({"anyOf": [branch("a"), branch("b"), branch("c")]}),
        );
    }
    definitions.insert(format!("l{levels}"), leaf.clone());
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": definitions})
}

fn of_schemas(old: Value, new: Value) -> CatalogDiff {
    let tool = |schema: Value| {
        Tool::from_listing(None, &json!({"name": "t", "inputSchema": schema})).unwrap()
    };
    diff(&[tool(old)], &[tool(new)], &NotMeasured)
}

#[test]
fn issue_14_a_change_below_many_levels_of_alternatives_is_found() {
    for levels in [1, 5, 6, 12, 30] {
        let found = of_schemas(
            nested_unions(levels, &json!({"type": "string", "maxLength": 9})),
            nested_unions(levels, &json!({"type": "string", "maxLength": 5})),
        );
        assert!(found.breaking, "{levels}: {found:?}");
        assert_eq!(found.not_compared_count, 0, "{levels}: {found:?}");
    }
}

#[test]
fn issue_14_a_change_behind_a_long_chain_of_references_is_found() {
    let chain = |leaf: Value| {
        let mut definitions = serde_json::Map::new();
        for link in 0..500 {
            let next = json!({"$ref": format!("#/$defs/c{}", link + 1)});
            definitions.insert(format!("c{link}"), next);
        }
        definitions.insert("c500".to_owned(), leaf);
        json!({"properties": {"x": {"$ref": "#/$defs/c0"}}, "$defs": definitions})
    };
    let found = of_schemas(
        chain(json!({"type": "string"})),
        chain(json!({"type": "integer"})),
    );
    assert!(found.breaking, "{found:?}");
    let circular = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    assert!(of_schemas(circular.clone(), circular).is_empty());
}

#[test]
fn issue_14_what_is_not_compared_is_never_equal() {
    let deep = |leaf: Value| {
        (0..120).fold(
            leaf,
            |inner, _| json!({"type": "object", "properties": {"p": inner}}),
        )
    };
    let found = of_schemas(
        deep(json!({"type": "string"})),
        deep(json!({"type": "integer"})),
    );
    assert_eq!(found.not_compared_count, 1, "{found:?}");
    assert!(!found.is_empty());
    // Two unions whose alternatives all differ in pairs need more comparisons than there are.
    let union = |offset: usize| {
        let branches: Vec<Value> = (0..240)
            .map(|index| json!({"type": "string", "maxLength": 2 * index + offset}))
            .collect();
        json!({"properties": {"x": {"anyOf": branches}}})
    };
    let found = of_schemas(union(1), union(2));
    assert!(found.not_compared_count > 0, "{found:?}");
}

#[test]
fn issue_14_many_renamed_tools_are_paired() {
    let tools = |prefix: &str| -> Vec<Tool> {
        (0..2000)
            .map(|index| {
                let listing = json!({
                    "name": format!("{prefix}_record_{index}"),
                    "description": format!("Reads record number {index} of the archive."),
                    "inputSchema": {"type": "object"},
                });
                Tool::from_listing(None, &listing).unwrap()
            })
            .collect()
    };
    let found = diff(&tools("get"), &tools("fetch"), &NotMeasured);
    assert_eq!(found.renamed.len(), 2000);
    let suffix = |name: &str| name.rsplit('_').next().unwrap().to_owned();
    assert!(
        found
            .renamed
            .iter()
            .all(|renamed| suffix(&renamed.from) == suffix(&renamed.to))
    );
}
