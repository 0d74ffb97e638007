use serde_json::json;

use super::*;

/// Facts as `pointer kind`, without messages.
fn facts(old: Value, new: Value) -> Vec<String> {
    compare("", &old, &new)
        .iter()
        .map(|fact| format!("{} {:?}", fact.pointer, fact.kind))
        .collect()
}

fn property(schema: Value) -> Value {
    json!({"type": "object", "properties": {"p": schema}})
}

/// One property with the old schema, then with the new one: the place below it and the kind; turned
/// around, the opposite kind.
fn check(old: Value, new: Value, place: &str, kind: Kind) {
    let found = facts(property(old.clone()), property(new.clone()));
    assert_eq!(
        found,
        [format!("/properties/p{place} {kind:?}")],
        "{old} → {new}"
    );
    let back = compare("", &property(new.clone()), &property(old.clone()));
    assert_eq!(back.len(), 1, "{new} → {old}: {back:?}");
    assert_eq!(back[0].kind, kind.opposite(), "{new} → {old}");
}

#[test]
fn types_and_values() {
    check(
        json!({"type": "number"}),
        json!({"type": "integer"}),
        "/type",
        Kind::Narrowed,
    );
    check(
        json!({"type": "string"}),
        json!({"type": "integer"}),
        "/type",
        Kind::Changed,
    );
    check(
        json!({}),
        json!({"type": "string"}),
        "/type",
        Kind::Narrowed,
    );
    check(
        json!({"type": ["string", "null"]}),
        json!({"type": "string"}),
        "/type",
        Kind::Narrowed,
    );
    check(
        json!({"enum": ["a", "b"]}),
        json!({"enum": ["b"]}),
        "/enum",
        Kind::Narrowed,
    );
    check(
        json!({"enum": ["a"]}),
        json!({"enum": ["b"]}),
        "/enum",
        Kind::Changed,
    );
    check(
        json!({"enum": ["a", 1]}),
        json!({"const": 1.0}),
        "/const",
        Kind::Narrowed,
    );
    check(json!({}), json!({"enum": ["a"]}), "/enum", Kind::Narrowed);
    assert!(
        facts(
            property(json!({"enum": ["a", "b"]})),
            property(json!({"enum": ["b", "a"]}))
        )
        .is_empty()
    );
}

#[test]
fn bounds_and_other_rules() {
    check(
        json!({"minimum": 1}),
        json!({"minimum": 2}),
        "/minimum",
        Kind::Narrowed,
    );
    check(
        json!({"maximum": 1}),
        json!({"maximum": 2.5}),
        "/maximum",
        Kind::Widened,
    );
    check(
        json!({}),
        json!({"maxLength": 5}),
        "/maxLength",
        Kind::Narrowed,
    );
    check(
        json!({}),
        json!({"pattern": "x"}),
        "/pattern",
        Kind::Narrowed,
    );
    check(
        json!({"pattern": "y"}),
        json!({"pattern": "x"}),
        "/pattern",
        Kind::Changed,
    );
    check(
        json!({"format": "uri"}),
        json!({}),
        "/format",
        Kind::Widened,
    );
    check(
        json!({}),
        json!({"uniqueItems": true}),
        "/uniqueItems",
        Kind::Narrowed,
    );
    assert!(
        facts(
            json!({"minLength": 0, "required": []}),
            json!({"uniqueItems": false})
        )
        .is_empty()
    );
}

#[test]
fn properties_and_what_is_required() {
    let p = |more: Value| {
        let mut schema = property(json!({}));
        schema
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        schema
    };
    let empty = json!({"type": "object"});
    let found = compare("", &empty, &p(json!({"required": ["p"]})));
    assert_eq!(
        (found.len(), found[0].kind, found[0].required),
        (1, Kind::PropertyAdded, true)
    );
    assert_eq!(
        facts(p(json!({"required": ["p"]})), empty),
        ["/properties/p PropertyRemoved"]
    );
    assert_eq!(
        facts(p(json!({})), p(json!({"required": ["p"]}))),
        ["/properties/p RequiredAdded"]
    );
    assert_eq!(
        facts(p(json!({"required": ["p"]})), p(json!({}))),
        ["/properties/p RequiredRemoved"]
    );
    assert_eq!(
        facts(p(json!({})), p(json!({"additionalProperties": false}))),
        ["/additionalProperties Narrowed"]
    );
    assert_eq!(
        facts(
            p(json!({"additionalProperties": {"type": "string"}})),
            p(json!({"additionalProperties": true}))
        ),
        ["/additionalProperties Widened"]
    );
    // A name that is only required has no schema; it is known nevertheless.
    assert_eq!(
        facts(
            json!({"type": "object", "required": ["p"]}),
            p(json!({"required": ["p"]}))
        ),
        Vec::<String>::new()
    );
}

#[test]
fn nested_schemas() {
    check(
        json!({"items": {"type": "string"}}),
        json!({"items": {"type": "string", "maxLength": 3}}),
        "/items/maxLength",
        Kind::Narrowed,
    );
    check(
        json!({}),
        json!({"items": {"type": "string"}}),
        "/items",
        Kind::Narrowed,
    );
    check(json!(true), json!(false), "", Kind::Narrowed);
    assert_eq!(
        facts(
            property(property(json!({"a": 1}))),
            property(property(json!({"a": 2})))
        ),
        ["/properties/p/properties/p/a Annotation"]
    );
    assert_eq!(
        facts(
            json!({"properties": {"a/b": {"minimum": 1}}}),
            json!({"properties": {"a/b": {}}})
        ),
        ["/properties/a~1b/minimum Widened"]
    );
}

#[test]
fn unions() {
    let string = json!({"type": "string"});
    let nothing = json!({"type": "null"});
    // One alternative more or less, also where one side is not written as a union.
    assert_eq!(
        facts(
            property(string.clone()),
            property(json!({"anyOf": [string, nothing], "default": null}))
        ),
        [
            "/properties/p/anyOf/1 Widened",
            "/properties/p/default Annotation"
        ]
    );
    assert_eq!(
        facts(
            property(json!({"anyOf": [string, nothing]})),
            property(string.clone())
        ),
        ["/properties/p/anyOf/1 Narrowed"]
    );
    assert!(
        facts(
            json!({"anyOf": [string, nothing]}),
            json!({"type": ["null", "string"]})
        )
        .is_empty()
    );
    assert!(
        facts(
            json!({"anyOf": [string, nothing]}),
            json!({"oneOf": [nothing, string]})
        )
        .is_empty()
    );
    // A change inside one alternative is reported there.
    assert_eq!(
        facts(
            json!({"anyOf": [{"type": "string", "maxLength": 9}, nothing]}),
            json!({"anyOf": [nothing, {"type": "string", "maxLength": 5}]})
        ),
        ["/anyOf/1/maxLength Narrowed"]
    );
    // An alternative that another one covers is not removed.
    assert_eq!(
        facts(
            json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}, nothing]}),
            json!({"anyOf": [{"type": "number"}]})
        ),
        ["/anyOf/1 Narrowed", "/anyOf/2 Narrowed", "/anyOf/0 Widened"]
            .map(str::to_owned)
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
}

#[test]
fn references_are_followed() {
    let with = |definition: Value| json!({"$defs": {"d": definition}, "properties": {"a": {"$ref": "#/$defs/d"}, "b": {"$ref": "#/$defs/d"}}});
    assert_eq!(
        facts(
            with(json!({"type": "string"})),
            with(json!({"type": "string", "maxLength": 2}))
        ),
        ["/$defs/d/maxLength Narrowed"]
    );
    // Written out or referred to is the same.
    let inline =
        json!({"properties": {"a": {"type": "string"}, "b": {"allOf": [{"type": "string"}]}}});
    assert!(facts(with(json!({"type": "string"})), inline).is_empty());
    // Recursion ends.
    let tree = |more: Value| json!({"$defs": {"t": {"properties": {"left": {"$ref": "#/$defs/t"}, "v": more}}}, "$ref": "#/$defs/t"});
    assert_eq!(
        facts(tree(json!({})), tree(json!({"type": "string"}))),
        ["/$defs/t/properties/v/type Narrowed"]
    );
    assert!(facts(tree(json!({})), tree(json!({}))).is_empty());
    let circle = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
    assert!(facts(circle.clone(), circle).is_empty());
    assert_eq!(
        facts(
            json!({"$ref": "https://example.org/a"}),
            json!({"$ref": "https://example.org/b"})
        ),
        ["/$ref Changed"]
    );
}

#[test]
fn invalid_schemas_do_not_panic() {
    for (old, new) in [
        (json!(null), json!({})),
        (json!("x"), json!(3)),
        (json!([]), json!({"type": 3})),
    ] {
        compare("", &old, &new);
        assert!(compare("", &old, &old).is_empty());
    }
}

#[test]
fn wide_unions_are_compared_in_time() {
    let branch = |n: usize| json!({"anyOf": (0..n).map(|i| json!({"properties": {"x": {"anyOf": (0..n).map(|j| json!({"const": i * n + j})).collect::<Vec<_>>()}}})).collect::<Vec<_>>()});
    assert!(!compare("", &branch(12), &branch(13)).is_empty());
}
