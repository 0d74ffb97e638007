//! What changed between two catalogs, and what of it breaks callers.
//!
//! A caller of a tool writes arguments and reads results. So an *input* schema that accepts less breaks, and an *output* schema that allows more
//! does. A tool that is gone breaks, and so does one that is renamed. Whatever cannot be decided (a rewritten pattern, a changed `if`)
//! counts as breaking, and says so.
//!
//! | change | input schema | output schema |
//! |---|---|---|
//! | required property added | breaking | compatible |
//! | optional property added | compatible | compatible |
//! | property removed | breaking | breaking |
//! | property became required | breaking | compatible |
//! | property became optional | compatible | breaking |
//! | narrowed: type, values, bounds, a rule or `additionalProperties: false` added | breaking | compatible |
//! | widened: the opposite | compatible | breaking |
//! | changed in a way that is neither | breaking | breaking |
//! | description, default and other annotations | compatible | compatible |
//! | the whole schema added or removed | as from or to "anything" | added compatible, removed breaking |
//!
//! The order of tools, of keys, and of what is a set (`required`, `enum`, `type`) says nothing. Changes are listed by tool name, then by place.

mod rename;
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::catalog::Tool;
use crate::json::{canonical, equal, pointer_join};
use crate::text::one_line;
use crate::tokens;
use crate::tool_bench::CatalogQuality;

/// What changed between two catalogs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CatalogDiff {
    /// Whether anything breaks callers.
    pub breaking: bool,
    /// How many changes break callers: removed and renamed tools, and changes inside of tools.
    pub breaking_count: u64,
    /// How many changes do not.
    pub compatible_count: u64,
    /// Tools that are new.
    pub added: Vec<Listed>,
    /// Tools that are gone: breaking.
    pub removed: Vec<Listed>,
    /// Tools with another name: breaking.
    pub renamed: Vec<Renamed>,
    /// Tools that are in both, or renamed, and not the same.
    pub changed: Vec<ToolChange>,
    /// What the catalogs cost.
    pub tokens: Delta,
}

/// A tool that is in one catalog only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it costs, in tokens.
    pub tokens: u64,
}

/// A tool with another name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Renamed {
    /// The old name.
    pub from: String,
    /// The new name.
    pub to: String,
}

/// A count before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// Before.
    pub old: u64,
    /// After.
    pub new: u64,
    /// After − before.
    pub delta: i64,
}

impl Delta {
    fn new(old: u64, new: u64) -> Self {
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            old,
            new,
            delta: signed(new) - signed(old),
        }
    }
}

/// What changed in one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolChange {
    /// The tool's name (the new one).
    pub tool: String,
    /// What the tool costs.
    pub tokens: Delta,
    /// The description, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<DescriptionChange>,
    /// Everything else that changed.
    pub changes: Vec<Change>,
}

/// A description that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DescriptionChange {
    /// The old text.
    pub old: Option<String>,
    /// The new text.
    pub new: Option<String>,
    /// What the texts cost.
    pub tokens: Delta,
    /// The tool's quality score before and after; nothing where that is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tdqs: Option<ScoreDelta>,
}

/// A score before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScoreDelta {
    /// Before.
    pub old: f64,
    /// After.
    pub new: f64,
}

/// One change inside of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where, as a JSON pointer into the new tool; for what is gone, into the old one.
    pub pointer: String,
    /// What kind of change.
    pub kind: Kind,
    /// What it does to callers.
    pub class: Class,
    /// What changed.
    pub message: String,
    /// Why it breaks callers, or why not.
    pub reason: &'static str,
}

/// What a change does to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// What worked can fail.
    Breaking,
    /// What worked still does.
    Compatible,
}

/// Kinds of change inside of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A property is new.
    PropertyAdded,
    /// A property is gone.
    PropertyRemoved,
    /// A property that was there became required.
    RequiredAdded,
    /// A property that was required became optional.
    RequiredRemoved,
    /// Less is accepted.
    Narrowed,
    /// More is accepted.
    Widened,
    /// Neither can be shown.
    Changed,
    /// The schema as a whole is new.
    SchemaAdded,
    /// The schema as a whole is gone.
    SchemaRemoved,
    /// Words and hints: no rule changed.
    Annotation,
}

impl Kind {
    /// What the same change is when old and new trade places.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::PropertyAdded => Self::PropertyRemoved,
            Self::PropertyRemoved => Self::PropertyAdded,
            Self::RequiredAdded => Self::RequiredRemoved,
            Self::RequiredRemoved => Self::RequiredAdded,
            Self::Narrowed => Self::Widened,
            Self::Widened => Self::Narrowed,
            Self::SchemaAdded => Self::SchemaRemoved,
            Self::SchemaRemoved => Self::SchemaAdded,
            Self::Changed => Self::Changed,
            Self::Annotation => Self::Annotation,
        }
    }
}

/// Who writes what a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// The caller.
    Input,
    /// The tool.
    Output,
}

impl CatalogDiff {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.renamed.is_empty() && self.changed.is_empty()
    }
}

/// What changed from `old` to `new`.
#[must_use]
pub fn diff(old: &[Tool], new: &[Tool], quality: &dyn CatalogQuality) -> CatalogDiff {
    let mut pairs: Vec<(&Tool, &Tool)> = Vec::new();
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let (mut by_old, mut by_new) = (by_name(old), by_name(new));
    let names: BTreeSet<_> = by_old.keys().chain(by_new.keys()).copied().collect();
    for name in names {
        let (olds, news) = (
            by_old.remove(&name).unwrap_or_default(),
            by_new.remove(&name).unwrap_or_default(),
        );
        let both = olds.len().min(news.len());
        pairs.extend(olds.iter().copied().zip(news.iter().copied()));
        removed.extend(olds.into_iter().skip(both));
        added.extend(news.into_iter().skip(both));
    }
    let renames = rename::find(&removed, &added);
    let mut renamed = Vec::new();
    for (from, to) in &renames {
        let (old, new) = (removed[*from], added[*to]);
        pairs.push((old, new));
        renamed.push(Renamed {
            from: old.name().to_owned(),
            to: new.name().to_owned(),
        });
    }
    renamed.sort();
    let rest = |tools: Vec<&Tool>, taken: BTreeSet<usize>| {
        let left = tools
            .into_iter()
            .enumerate()
            .filter(|(place, _)| !taken.contains(place));
        let mut left: Vec<Listed> = left.map(|(_, tool)| listed(tool)).collect();
        left.sort();
        left
    };
    let removed = rest(removed, renames.iter().map(|(from, _)| *from).collect());
    let added = rest(added, renames.iter().map(|(_, to)| *to).collect());
    pairs.sort_by_key(|(old, new)| (new.name(), old.name()));
    let changed: Vec<ToolChange> = pairs
        .into_iter()
        .filter_map(|(old, new)| tool_change(old, new, quality))
        .collect();
    let of_class = |class: Class| {
        let changes = changed.iter().flat_map(|tool| &tool.changes);
        changes.filter(|change| change.class == class).count() as u64
    };
    let descriptions = changed.iter().filter(|tool| tool.description.is_some()).count() as u64;
    let breaking_count = of_class(Class::Breaking) + (removed.len() + renamed.len()) as u64;
    CatalogDiff {
        breaking: breaking_count > 0,
        breaking_count,
        compatible_count: of_class(Class::Compatible) + descriptions + added.len() as u64,
        added,
        removed,
        renamed,
        changed,
        tokens: Delta::new(tokens::of_catalog(old), tokens::of_catalog(new)),
    }
}

/// Tools by server and name. Several of one name are put in an order that does not depend on their places.
fn by_name(tools: &[Tool]) -> BTreeMap<(Option<&str>, &str), Vec<&Tool>> {
    let mut map: BTreeMap<_, Vec<&Tool>> = BTreeMap::new();
    for tool in tools {
        map.entry((tool.server(), tool.name())).or_default().push(tool);
    }
    for several in map.values_mut().filter(|several| several.len() > 1) {
        several.sort_by_cached_key(|tool| canonical(&Value::Object(tool.raw().clone())));
    }
    map
}

fn listed(tool: &Tool) -> Listed {
    Listed {
        name: tool.name().to_owned(),
        tokens: tokens::of_tool(tool),
    }
}

/// A tool without an input schema takes anything.
fn input_schema(tool: &Tool) -> &Value {
    tool.input_schema().unwrap_or(&Value::Bool(true))
}

fn tool_change(old: &Tool, new: &Tool, quality: &dyn CatalogQuality) -> Option<ToolChange> {
    let description = (old.raw().get("description") != new.raw().get("description")).then(|| {
        let count = |tool: &Tool| tool.description().map_or(0, tokens::count);
        let text = |tool: &Tool| tool.description().map(str::to_owned);
        DescriptionChange {
            old: text(old),
            new: text(new),
            tokens: Delta::new(count(old), count(new)),
            tdqs: (quality.assess(old).zip(quality.assess(new))).map(|(old, new)| ScoreDelta {
                old: old.score,
                new: new.score,
            }),
        }
    });
    let mut changes: Vec<Change> = schema::compare("/inputSchema", input_schema(old), input_schema(new))
        .into_iter()
        .map(|fact| classed(fact, Direction::Input))
        .collect();
    changes.extend(output_changes(old, new));
    changes.extend(hint_changes(old, new));
    changes.sort_by(|a, b| (a.class, &a.pointer, a.kind).cmp(&(b.class, &b.pointer, b.kind)));
    (description.is_some() || !changes.is_empty()).then(|| ToolChange {
        tool: new.name().to_owned(),
        tokens: Delta::new(tokens::of_tool(old), tokens::of_tool(new)),
        description,
        changes,
    })
}

fn classed(fact: schema::Fact, direction: Direction) -> Change {
    let breaks = fact.breaks(direction);
    Change {
        class: if breaks { Class::Breaking } else { Class::Compatible },
        reason: reason(fact.kind, direction, breaks),
        pointer: fact.pointer,
        kind: fact.kind,
        message: fact.message,
    }
}

fn reason(kind: Kind, direction: Direction, breaks: bool) -> &'static str {
    match (kind, direction) {
        (Kind::PropertyAdded, Direction::Input) if breaks => "calls without it are refused",
        (Kind::PropertyAdded, Direction::Input) => "calls without it stay valid",
        (Kind::PropertyRemoved, Direction::Input) => "calls that send it are refused, or it is ignored",
        (Kind::RequiredAdded, Direction::Input) => "calls without it are refused",
        (Kind::RequiredRemoved, Direction::Input) => "calls that give it stay valid",
        (Kind::Narrowed, Direction::Input) => "arguments that were accepted can be refused",
        (Kind::Widened, Direction::Input) => "arguments that were accepted still are",
        (Kind::Changed, Direction::Input) => "arguments that were accepted may be refused",
        (Kind::PropertyAdded, Direction::Output) => "results have something more",
        (Kind::PropertyRemoved, Direction::Output) => "who reads it finds nothing",
        (Kind::RequiredAdded, Direction::Output) => "results always have it now",
        (Kind::RequiredRemoved, Direction::Output) => "results may come without it",
        (Kind::Narrowed, Direction::Output) => "results stay within what was promised",
        (Kind::Widened, Direction::Output) => "results may be what was not promised",
        (Kind::Changed, Direction::Output) => "results may not be what was promised",
        (Kind::SchemaAdded, _) => "a promise that was not there before",
        (Kind::SchemaRemoved, _) => "nothing is promised about results any more",
        (Kind::Annotation, _) => "no rule changed",
    }
}

fn output_changes(old: &Tool, new: &Tool) -> Vec<Change> {
    let at = "/outputSchema";
    let whole = |kind: Kind, class: Class, message: &str| {
        vec![Change {
            pointer: at.to_owned(),
            kind,
            class,
            message: message.to_owned(),
            reason: reason(kind, Direction::Output, class == Class::Breaking),
        }]
    };
    match (old.raw().get("outputSchema"), new.raw().get("outputSchema")) {
        (None, None) => Vec::new(),
        (None, Some(_)) => whole(Kind::SchemaAdded, Class::Compatible, "there is an output schema now"),
        (Some(_), None) => whole(Kind::SchemaRemoved, Class::Breaking, "the output schema is gone"),
        (Some(old), Some(new)) => schema::compare(at, old, new)
            .into_iter()
            .map(|fact| classed(fact, Direction::Output))
            .collect(),
    }
}

/// Titles, annotations, and whatever else a tool carries.
fn hint_changes(old: &Tool, new: &Tool) -> Vec<Change> {
    const ELSEWHERE: [&str; 5] = ["server", "name", "description", "inputSchema", "outputSchema"];
    let mut changes = Vec::new();
    let mut hint = |pointer: String, name: &str, old: Option<&Value>, new: Option<&Value>| {
        if old == new || old.zip(new).is_some_and(|(old, new)| equal(old, new)) {
            return;
        }
        let text = |value: &Value| crate::text::shorten(&one_line(&value.to_string()), 60);
        let name = one_line(name);
        let message = match (old, new) {
            (None, Some(new)) => format!("`{name}` is new: {}", text(new)),
            (Some(old), None) => format!("`{name}` is gone: {}", text(old)),
            (old, new) => format!(
                "`{name}` {} is now {}",
                old.map(text).unwrap_or_default(),
                new.map(text).unwrap_or_default()
            ),
        };
        changes.push(Change {
            pointer,
            kind: Kind::Annotation,
            class: Class::Compatible,
            message,
            reason: reason(Kind::Annotation, Direction::Input, false),
        });
    };
    let keys: BTreeSet<&String> = old.raw().keys().chain(new.raw().keys()).collect();
    for key in keys.into_iter().filter(|key| !ELSEWHERE.contains(&key.as_str())) {
        let (was, is) = (old.raw().get(key), new.raw().get(key));
        let at = pointer_join("", key);
        match (was, is) {
            (Some(Value::Object(was)), Some(Value::Object(is))) => {
                let inner: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
                for inside in inner {
                    hint(pointer_join(&at, inside), inside, was.get(inside), is.get(inside));
                }
            }
            _ => hint(at, key, was, is),
        }
    }
    changes
}

#[cfg(test)]
mod tests {
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
        compare(json!([{"name": "t", key: old}]), json!([{"name": "t", key: new}]))
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
        let grown = compare(json!([{"name": "b"}]), json!([{"name": "b"}, {"name": "c"}]));
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
                tool("lookup", "Searches the handbook for pages", &json!({"required": ["z"]}))
            )
            .is_empty()
        );
        // The same name in another spelling, whatever else changed.
        assert_eq!(
            renames(old, tool("findDocs", "Other words", &json!({"required": ["z"]}))),
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
        let old = json!({"properties": {"a": {"type": "number"}, "b": {}, "gone": {}}, "required": ["b"]});
        let new = json!({"properties": {"a": {"type": "integer"}, "b": {}, "new": {}}, "required": ["new"]});
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
        let odd = json!([{"name": 3, "inputSchema": null}, {"inputSchema": "x"}, {"name": "a"}, {"name": "a", "inputSchema": []}]);
        assert!(compare(odd.clone(), odd.clone()).is_empty());
        compare(
            odd,
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

    /// Objects have so many of three properties.
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
                inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
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

        // An independent validator is the judge: what is called compatible must not refuse what was accepted.
        #[test]
        fn compatible_arguments_stay_valid(old in schema_of(3..4), new in schema_of(3..4), values in prop::collection::vec(value(), 8)) {
            let facts = schema::compare("", &old, &new);
            // A new optional property is compatible by decision, though an open schema allowed anything in its place.
            prop_assume!(!facts.iter().any(|fact| fact.kind == Kind::PropertyAdded));
            let validators = (jsonschema::validator_for(&old).unwrap(), jsonschema::validator_for(&new).unwrap());
            let refused = values.iter().find(|value| validators.0.is_valid(value) && !validators.1.is_valid(value));
            if let Some(value) = refused {
                prop_assert!(facts.iter().any(|fact| fact.breaks(Direction::Input)), "{value} is refused by {new}");
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
}
