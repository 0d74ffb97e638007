//! Comparison of two catalogs: the changes, and which of them break callers.
//!
//! A caller of a tool writes arguments and reads results. So an *input* schema that accepts less
//! breaks callers, and so does an *output* schema that allows more. A removed tool breaks callers,
//! and so does a renamed one. A change that cannot be decided (a rewritten pattern, a changed `if`)
//! counts as breaking, with a note.
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
//! | too large or too deep to compare | not compared | not compared |
//! | the whole schema added or removed | as from or to "anything" | added compatible, removed breaking |
//!
//! The order of tools, of keys, and of sets (`required`, `enum`, `type`) does not matter. Changes
//! are listed by tool name, then by place.

mod changes;
mod rename;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::tokens;
use crate::tool_bench::CatalogQuality;
use mcptest_json::text::one_line;
use mcptest_json::{canonical, equal, pointer_join};
use mcptest_trace::catalog::Tool;

use changes::Direction;
pub use changes::{
    CatalogDiff, Change, Class, Delta, DescriptionChange, Kind, Listed, Renamed, ScoreDelta,
    ToolChange,
};

/// Compares `old` with `new`.
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
    let descriptions = changed
        .iter()
        .filter(|tool| tool.description.is_some())
        .count() as u64;
    let breaking_count = of_class(Class::Breaking) + (removed.len() + renamed.len()) as u64;
    CatalogDiff {
        breaking: breaking_count > 0,
        breaking_count,
        compatible_count: of_class(Class::Compatible) + descriptions + added.len() as u64,
        not_compared_count: of_class(Class::NotCompared),
        added,
        removed,
        renamed,
        changed,
        tokens: Delta::new(tokens::of_catalog(old), tokens::of_catalog(new)),
    }
}

/// Tools by server and name. Several tools with the same name are sorted by content, so that their
/// positions do not matter.
fn by_name(tools: &[Tool]) -> BTreeMap<(Option<&str>, &str), Vec<&Tool>> {
    let mut map: BTreeMap<_, Vec<&Tool>> = BTreeMap::new();
    for tool in tools {
        map.entry((tool.server(), tool.name()))
            .or_default()
            .push(tool);
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

/// The input schema; a tool without one accepts anything.
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
    let mut changes: Vec<Change> =
        schema::compare("/inputSchema", input_schema(old), input_schema(new))
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
        class: match fact.kind {
            Kind::NotCompared => Class::NotCompared,
            _ if breaks => Class::Breaking,
            _ => Class::Compatible,
        },
        reason: reason(fact.kind, direction, breaks),
        pointer: fact.pointer,
        kind: fact.kind,
        message: fact.message,
    }
}

fn reason(kind: Kind, direction: Direction, breaks: bool) -> &'static str {
    match (kind, direction) {
        (Kind::PropertyAdded, Direction::Input) if breaks => "calls without it are rejected",
        (Kind::PropertyAdded, Direction::Input) => "calls without it stay valid",
        (Kind::PropertyRemoved, Direction::Input) => {
            "calls that send it are rejected, or it is ignored"
        }
        (Kind::RequiredAdded, Direction::Input) => "calls without it are rejected",
        (Kind::RequiredRemoved, Direction::Input) => "calls with it stay valid",
        (Kind::Narrowed, Direction::Input) => "arguments that were accepted can be rejected",
        (Kind::Widened, Direction::Input) => "arguments that were accepted still are",
        (Kind::Changed, Direction::Input) => "arguments that were accepted may be rejected",
        (Kind::PropertyAdded, Direction::Output) => "results contain an additional value",
        (Kind::PropertyRemoved, Direction::Output) => "readers of it no longer find it",
        (Kind::RequiredAdded, Direction::Output) => "results always have it now",
        (Kind::RequiredRemoved, Direction::Output) => "results may lack it",
        (Kind::Narrowed, Direction::Output) => "results still fit the old schema",
        (Kind::Widened, Direction::Output) => "results may not fit the old schema",
        (Kind::Changed, Direction::Output) => "results may no longer fit the old schema",
        (Kind::SchemaAdded, _) => "results had no schema before",
        (Kind::SchemaRemoved, _) => "results no longer have a schema",
        (Kind::Annotation, _) => "no constraint changed",
        (Kind::NotCompared, _) => "there may be any change",
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
        (None, Some(_)) => whole(
            Kind::SchemaAdded,
            Class::Compatible,
            "the output schema was added",
        ),
        (Some(_), None) => whole(
            Kind::SchemaRemoved,
            Class::Breaking,
            "the output schema was removed",
        ),
        (Some(old), Some(new)) => schema::compare(at, old, new)
            .into_iter()
            .map(|fact| classed(fact, Direction::Output))
            .collect(),
    }
}

/// Titles, annotations, and all other keys of a tool.
fn hint_changes(old: &Tool, new: &Tool) -> Vec<Change> {
    const ELSEWHERE: [&str; 5] = [
        "server",
        "name",
        "description",
        "inputSchema",
        "outputSchema",
    ];
    let mut changes = Vec::new();
    let mut hint = |pointer: String, name: &str, old: Option<&Value>, new: Option<&Value>| {
        if old == new || old.zip(new).is_some_and(|(old, new)| equal(old, new)) {
            return;
        }
        let text = |value: &Value| mcptest_json::text::shorten(&one_line(&value.to_string()), 60);
        let name = one_line(name);
        let message = match (old, new) {
            (None, Some(new)) => format!("`{name}` was added: {}", text(new)),
            (Some(old), None) => format!("`{name}` was removed: {}", text(old)),
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
    for key in keys
        .into_iter()
        .filter(|key| !ELSEWHERE.contains(&key.as_str()))
    {
        let (was, is) = (old.raw().get(key), new.raw().get(key));
        let at = pointer_join("", key);
        match (was, is) {
            (Some(Value::Object(was)), Some(Value::Object(is))) => {
                let inner: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
                for inside in inner {
                    hint(
                        pointer_join(&at, inside),
                        inside,
                        was.get(inside),
                        is.get(inside),
                    );
                }
            }
            _ => hint(at, key, was, is),
        }
    }
    changes
}
