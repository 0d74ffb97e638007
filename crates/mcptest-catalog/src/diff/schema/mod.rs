//! Comparison of two JSON Schemas: does the new one accept less, more, or something else?
//!
//! JSON Schema is too rich to decide inclusion in general. Known here are types, values, bounds,
//! properties, items, local references and unions; any other rule that was added narrows, one that
//! was removed widens, and one that was rewritten counts as changed, for which the worst is
//! assumed. `oneOf` is read as `anyOf`, and keywords next to a reference override those of its
//! target.

mod keywords;
mod normalize;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};

use serde_json::{Map, Value};

use super::{Direction, Kind};
use mcptest_json::text::{one_line, shorten};
use mcptest_json::{canonical, equal, pointer_join};

use keywords::{BOUNDS, OTHER_RULES, annotations, bound, other_rule, types, unique_items, values};
use normalize::{as_rules, has_refs, is_plain_union, required, resolve, split, union};

/// The number of different pairs of schemas that are compared.
const FUEL: u32 = 50_000;
/// The depth of nesting and references down to which schemas are compared.
const DEPTH: usize = 96;

/// A fact about two schemas.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fact {
    /// The place in the new schema; for removed parts, in the old one.
    pub(super) pointer: String,
    pub(super) kind: Kind,
    /// True if an added property is required.
    pub(super) required: bool,
    pub(super) message: String,
}

impl Fact {
    /// Returns true if the change can break a caller that relies on the old schema.
    pub(super) fn breaks(&self, direction: Direction) -> bool {
        match (self.kind, direction) {
            (Kind::PropertyAdded, Direction::Input) => self.required,
            (Kind::RequiredAdded | Kind::Narrowed, Direction::Input)
            | (Kind::RequiredRemoved | Kind::Widened, Direction::Output)
            | (Kind::PropertyRemoved | Kind::Changed, _) => true,
            _ => false,
        }
    }

    /// The same fact at another place.
    fn moved(&self, from: &str, to: &str) -> Self {
        let mut fact = self.clone();
        if let Some(rest) = self.pointer.strip_prefix(from).filter(|_| from != to) {
            fact.pointer = format!("{to}{rest}");
        }
        fact
    }
}

/// All facts, sorted by place, each once.
pub(super) fn compare(at: &str, old: &Value, new: &Value) -> Vec<Fact> {
    // References are local, so equal schemas mean the same.
    if equal(old, new) {
        return Vec::new();
    }
    let mut comparer = Comparer {
        old_root: old,
        new_root: new,
        at_root: at.to_owned(),
        has_refs: has_refs(old) || has_refs(new),
        references: Vec::new(),
        is_turned: false,
        known: HashMap::new(),
        hashers: [RandomState::new(), RandomState::new()],
        lowest_cut: usize::MAX,
        fuel: FUEL,
        depth: 0,
        is_limited: false,
    };
    let mut facts = Vec::new();
    comparer.schemas(at, old, new, &mut facts);
    // A limit that was hit while alternatives were paired leaves no fact of its own.
    if comparer.is_limited && !facts.iter().any(|fact| fact.kind == Kind::NotCompared) {
        fact(&mut facts, at, Kind::NotCompared, TOO_LARGE);
    }
    facts.sort();
    facts.dedup();
    facts
}

struct Comparer<'a> {
    old_root: &'a Value,
    new_root: &'a Value,
    at_root: String,
    has_refs: bool,
    /// The pairs of references that are being followed: a pair that leads back to itself has no
    /// difference of its own.
    references: Vec<(Option<String>, Option<String>)>,
    /// True while the comparison is turned around.
    is_turned: bool,
    /// The facts of pairs that were compared before, with the place where.
    known: HashMap<PairKey, (String, Vec<Fact>)>,
    hashers: [RandomState; 2],
    /// The lowest of `references` that cut a comparison short since the last reset.
    lowest_cut: usize,
    fuel: u32,
    depth: usize,
    /// True if a limit was hit, so that not everything was compared.
    is_limited: bool,
}

/// A pair of schemas by two independent hashes of their text, and the direction.
type PairKey = ([u64; 2], bool);

const TOO_LARGE: &str = "the schema is too large or too deep to compare";

impl Comparer<'_> {
    fn schemas(&mut self, at: &str, old: &Value, new: &Value, facts: &mut Vec<Fact>) {
        if !self.has_refs && equal(old, new) {
            return;
        }
        if self.fuel == 0 || self.depth >= DEPTH {
            self.is_limited = true;
            fact(facts, at, Kind::NotCompared, TOO_LARGE);
            return;
        }
        let key = self.key(old, new);
        if let Some((place, known)) = self.known.get(&key) {
            facts.extend(known.iter().map(|fact| fact.moved(place, at)));
            return;
        }
        self.fuel -= 1;
        self.depth += 1;
        let depth_of_references = self.references.len();
        let outer_cut = std::mem::replace(&mut self.lowest_cut, usize::MAX);
        let mut found = Vec::new();
        self.resolved(at, old, new, &mut found);
        self.depth -= 1;
        // A result that was cut short by a pair which is still being compared is not whole: it must
        // not stand for this pair elsewhere.
        if self.lowest_cut >= depth_of_references && !self.is_limited {
            self.known.insert(key, (at.to_owned(), found.clone()));
        }
        self.lowest_cut = self.lowest_cut.min(outer_cut);
        facts.append(&mut found);
    }

    fn key(&self, old: &Value, new: &Value) -> PairKey {
        let text = (old.to_string(), new.to_string());
        let hashes = [&self.hashers[0], &self.hashers[1]].map(|hasher| hasher.hash_one(&text));
        (hashes, self.is_turned)
    }

    fn resolved(&mut self, at: &str, old: &Value, new: &Value, facts: &mut Vec<Fact>) {
        let (old, old_ref) = resolve(self.old_root, old);
        let (new, new_ref) = resolve(self.new_root, new);
        let mut at = Cow::Borrowed(at);
        let followed = old_ref.is_some() || new_ref.is_some();
        if followed {
            let pair = (old_ref.clone(), new_ref.clone());
            if let Some(index) = self.references.iter().position(|known| *known == pair) {
                self.lowest_cut = self.lowest_cut.min(index);
                return;
            }
            self.references.push(pair);
            // A shared definition has one place, however often it is used.
            if let (Some(old_ref), Some(new_ref)) = (&old_ref, &new_ref)
                && old_ref == new_ref
            {
                at = Cow::Owned(format!(
                    "{}{}",
                    self.at_root,
                    old_ref.trim_start_matches('#')
                ));
            }
        }
        match (as_rules(&old), as_rules(&new)) {
            (Some(old), Some(new)) => self.maps(&at, &old, &new, facts),
            _ if equal(&old, &new) => {}
            (_, None) if *new == Value::Bool(false) => {
                fact(
                    facts,
                    &at,
                    Kind::Narrowed,
                    "nothing is accepted here any more",
                );
            }
            (None, _) if *old == Value::Bool(false) => {
                fact(facts, &at, Kind::Widened, "something is accepted here now")
            }
            _ => fact(facts, &at, Kind::Changed, "not a valid schema"),
        }
        if followed {
            self.references.pop();
        }
    }

    fn maps(
        &mut self,
        at: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        facts: &mut Vec<Fact>,
    ) {
        annotations(at, old, new, facts);
        let unions = (union(old), union(new));
        if (unions.0.is_some() || unions.1.is_some()) && is_plain_union(old) && is_plain_union(new)
        {
            self.unions(at, &split(at, old), &split(at, new), facts);
            return;
        }
        self.union_beside_rules(at, unions.0, unions.1, facts);
        types(at, old, new, facts);
        values(at, old, new, facts);
        for (keyword, larger_is_stricter) in BOUNDS {
            bound(at, keyword, larger_is_stricter, old, new, facts);
        }
        for keyword in OTHER_RULES {
            other_rule(at, keyword, old, new, facts);
        }
        unique_items(at, old, new, facts);
        self.nested(at, "items", old, new, facts);
        self.nested(at, "additionalProperties", old, new, facts);
        self.properties(at, old, new, facts);
    }

    fn properties<'m>(
        &mut self,
        at: &str,
        old: &'m Map<String, Value>,
        new: &'m Map<String, Value>,
        facts: &mut Vec<Fact>,
    ) {
        let empty = Map::new();
        let of =
            |schema: &'m Map<String, Value>| schema.get("properties").and_then(Value::as_object);
        let (old_properties, new_properties) =
            (of(old).unwrap_or(&empty), of(new).unwrap_or(&empty));
        let (old_required, new_required) = (required(old), required(new));
        let names: BTreeSet<&String> = old_properties
            .keys()
            .chain(new_properties.keys())
            .chain(&old_required)
            .chain(&new_required)
            .collect();
        for name in names {
            let place = if old_properties.contains_key(name) || new_properties.contains_key(name) {
                pointer_join(&format!("{at}/properties"), name)
            } else {
                format!("{at}/required")
            };
            let shown = one_line(name);
            let (was, is) = (old_required.contains(name), new_required.contains(name));
            match (old_properties.get(name), new_properties.get(name)) {
                (None, Some(_)) if !was => {
                    let how = if is { "a required" } else { "an optional" };
                    facts.push(Fact {
                        pointer: place,
                        kind: Kind::PropertyAdded,
                        required: is,
                        message: format!("`{shown}` was added, {how} property"),
                    });
                    continue;
                }
                (Some(_), None) if !is => {
                    fact(
                        facts,
                        &place,
                        Kind::PropertyRemoved,
                        format!("`{shown}` was removed"),
                    );
                    continue;
                }
                (old, new) => {
                    // A property that is only required, not described, may be anything.
                    let open = Value::Bool(true);
                    self.schemas(&place, old.unwrap_or(&open), new.unwrap_or(&open), facts);
                }
            }
            if was != is {
                let (kind, now) = if is {
                    (Kind::RequiredAdded, "is now required")
                } else {
                    (Kind::RequiredRemoved, "is now optional")
                };
                fact(facts, &place, kind, format!("`{shown}` {now}"));
            }
        }
    }

    /// `items` and `additionalProperties`: a schema for all items or other keys.
    fn nested(
        &mut self,
        at: &str,
        keyword: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        facts: &mut Vec<Fact>,
    ) {
        let open = Value::Bool(true);
        let (old, new) = (
            old.get(keyword).unwrap_or(&open),
            new.get(keyword).unwrap_or(&open),
        );
        let is_open =
            |schema: &Value| *schema == open || schema.as_object().is_some_and(Map::is_empty);
        let place = format!("{at}/{keyword}");
        let closed = Value::Bool(false);
        if is_open(old) && is_open(new) {
            return;
        }
        if old.is_array() || new.is_array() {
            // A tuple.
            if !equal(old, new) {
                fact(facts, &place, Kind::Changed, format!("`{keyword}` changed"));
            }
        } else if is_open(old) || (*new == closed && *old != closed) {
            let message = match (keyword, *new == closed) {
                ("additionalProperties", true) => {
                    "other properties are no longer allowed".to_owned()
                }
                ("additionalProperties", false) => "other properties now have a schema".to_owned(),
                _ => format!("`{keyword}` now has a schema"),
            };
            fact(facts, &place, Kind::Narrowed, message);
        } else if is_open(new) || (*old == closed && *new != closed) {
            let message = match keyword {
                "additionalProperties" => "other properties are now allowed".to_owned(),
                _ => format!("`{keyword}` no longer has a schema"),
            };
            fact(facts, &place, Kind::Widened, message);
        } else {
            self.schemas(&place, old, new, facts);
        }
    }

    /// Alternatives next to other constraints are a constraint among them.
    fn union_beside_rules(
        &mut self,
        at: &str,
        old: Option<(&str, &Vec<Value>)>,
        new: Option<(&str, &Vec<Value>)>,
        facts: &mut Vec<Fact>,
    ) {
        match (old, new) {
            (None, None) => {}
            (None, Some((keyword, _))) => {
                let place = format!("{at}/{keyword}");
                fact(
                    facts,
                    &place,
                    Kind::Narrowed,
                    format!("`{keyword}` was added"),
                );
            }
            (Some((keyword, _)), None) => {
                let place = format!("{at}/{keyword}");
                fact(
                    facts,
                    &place,
                    Kind::Widened,
                    format!("`{keyword}` was removed"),
                );
            }
            (Some((old_keyword, old)), Some((new_keyword, new))) => {
                let places = |keyword: &str, branches: &[Value]| -> Vec<(String, Value)> {
                    let place = |(index, branch): (usize, &Value)| {
                        (format!("{at}/{keyword}/{index}"), branch.clone())
                    };
                    branches.iter().enumerate().map(place).collect()
                };
                self.unions(
                    at,
                    &places(old_keyword, old),
                    &places(new_keyword, new),
                    facts,
                );
            }
        }
    }

    /// Alternatives, each with its place.
    fn unions(
        &mut self,
        at: &str,
        old: &[(String, Value)],
        new: &[(String, Value)],
        facts: &mut Vec<Fact>,
    ) {
        // Equal alternatives are paired first: most of a large union did not change.
        let (old_rest, mut left_new) = if self.has_refs {
            (old.iter().collect(), new.iter().collect())
        } else {
            without_equal(old, new)
        };
        let mut left_old = Vec::new();
        for branch in old_rest {
            let mut same = None;
            for (index, (place, other)) in left_new.iter().enumerate() {
                let found = self.trial(place, &branch.1, other);
                if found.iter().all(|fact| fact.kind == Kind::Annotation) {
                    same = Some((index, found));
                    break;
                }
            }
            match same {
                Some((index, found)) => {
                    left_new.remove(index);
                    facts.extend(found);
                }
                None => left_old.push(branch),
            }
        }
        if let ([old], [new]) = (left_old.as_slice(), left_new.as_slice()) {
            self.schemas(&new.0, &old.1, &new.1, facts);
            return;
        }
        // An alternative that another one covers is neither removed nor added.
        let lost: Vec<_> = left_old
            .into_iter()
            .filter(|(_, branch)| !new.iter().any(|(_, other)| self.covers(branch, other)))
            .collect();
        let gained: Vec<_> = left_new
            .into_iter()
            .filter(|(_, branch)| {
                !old.iter()
                    .any(|(_, other)| self.turned(|turned| turned.covers(branch, other)))
            })
            .collect();
        if let ([old], [new]) = (lost.as_slice(), gained.as_slice()) {
            self.schemas(&new.0, &old.1, &new.1, facts);
            return;
        }
        let show = |branch: &Value| shorten(&one_line(&branch.to_string()), 80);
        for (place, branch) in lost {
            let message = format!("the alternative `{}` was removed", show(branch));
            fact(
                facts,
                if place.is_empty() { at } else { place },
                Kind::Narrowed,
                message,
            );
        }
        for (place, branch) in gained {
            fact(
                facts,
                place,
                Kind::Widened,
                format!("the alternative `{}` was added", show(branch)),
            );
        }
    }

    fn trial(&mut self, at: &str, old: &Value, new: &Value) -> Vec<Fact> {
        let mut facts = Vec::new();
        self.schemas(at, old, new, &mut facts);
        facts
    }

    /// Returns true if the new schema accepts everything that the old one accepts.
    fn covers(&mut self, old: &Value, new: &Value) -> bool {
        self.trial("", old, new)
            .iter()
            .all(|fact| !fact.breaks(Direction::Input))
    }

    /// The comparison in the other direction.
    fn turned<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let turn = |comparer: &mut Self| {
            std::mem::swap(&mut comparer.old_root, &mut comparer.new_root);
            comparer.is_turned = !comparer.is_turned;
            for pair in &mut comparer.references {
                *pair = (pair.1.take(), pair.0.take());
            }
        };
        turn(self);
        let result = work(self);
        turn(self);
        result
    }
}

/// A schema and its place.
type Placed = (String, Value);

/// The alternatives of both sides that have no equal one on the other side.
fn without_equal<'v>(old: &'v [Placed], new: &'v [Placed]) -> (Vec<&'v Placed>, Vec<&'v Placed>) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (_, branch) in new {
        *counts.entry(canonical(branch)).or_default() += 1;
    }
    let mut paired: HashMap<String, usize> = HashMap::new();
    let has_equal = |(_, branch): &&Placed| {
        let text = canonical(branch);
        let Some(left) = counts.get_mut(&text).filter(|left| **left > 0) else {
            return false;
        };
        *left -= 1;
        *paired.entry(text).or_default() += 1;
        true
    };
    let mut has_equal = has_equal;
    let old: Vec<&Placed> = old.iter().filter(|branch| !has_equal(branch)).collect();
    let is_paired = |(_, branch): &&Placed| {
        let left = paired.get_mut(&canonical(branch)).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let mut is_paired = is_paired;
    let new = new.iter().filter(|branch| !is_paired(branch)).collect();
    (old, new)
}

fn fact(facts: &mut Vec<Fact>, at: &str, kind: Kind, message: impl Into<String>) {
    facts.push(Fact {
        pointer: at.to_owned(),
        kind,
        required: false,
        message: message.into(),
    });
}
