//! A JSON Schema compiled into a table of rules.
//!
//! The types of a file generate its JSON Schema, the schema compiles to this table, and the table
//! gives both the verdict ([`CompiledSchema::fits`]) and the explanation
//! ([`CompiledSchema::problems`]). All lists are `Cow`, so that a table can be a constant of a
//! program.
//!
//! The table covers the keywords that our types generate; other keywords are ignored. Two
//! annotations of ours steer the messages: [`ALIAS_OF`] and [`EXPECTED`].

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

/// On a property: another spelling of the named property; setting both is an error.
pub const ALIAS_OF: &str = "x-mcptest-alias-of";
/// On any schema: the phrase after "expected" in messages.
pub const EXPECTED: &str = "x-mcptest-expected";

/// A compiled schema: rules that refer to each other by index. The first is the document's.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledSchema(pub Cow<'static, [Rule]>);

/// The index of a rule in its table.
pub type RuleIndex = usize;

/// The constraints on one value.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The phrase after "expected" in messages, where the schema sets one ([`EXPECTED`]).
    pub expected: Option<Cow<'static, str>>,
    /// The constraint.
    pub kind: RuleKind,
}

/// The kinds of constraint.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleKind {
    /// Any value fits.
    Anything,
    /// No value fits.
    Nothing,
    /// One of these values.
    Values(Cow<'static, [Literal]>),
    /// A value that fits at least one of these rules.
    AnyOf(Cow<'static, [RuleIndex]>),
    /// A value that satisfies these keywords.
    Keywords(Keywords),
}

/// A value of a closed set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// A string.
    String(Cow<'static, str>),
    /// Any other value, as JSON text.
    Json(Cow<'static, str>),
}

/// The keywords of one schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Keywords {
    /// `allOf`: rules that must fit too.
    pub all_of: Cow<'static, [RuleIndex]>,
    /// `type`: the allowed types.
    pub types: TypeSet,
    /// `properties`: the known keys.
    pub properties: Cow<'static, [Property]>,
    /// `additionalProperties`: the rule for other keys.
    pub additional: Additional,
    /// `required`: keys that must be present.
    pub required: Cow<'static, [Cow<'static, str>]>,
    /// `minProperties` and `maxProperties`.
    pub key_count: (u64, u64),
    /// `items`: the rule for every item.
    pub items: Option<RuleIndex>,
    /// `minItems`.
    pub min_items: u64,
    /// `minimum`.
    pub minimum: Option<f64>,
    /// `maximum`.
    pub maximum: Option<f64>,
    /// `minLength`.
    pub min_length: u64,
}

impl Keywords {
    /// The keywords of an empty schema.
    pub const NONE: Self = Self {
        all_of: Cow::Borrowed(&[]),
        types: TypeSet::ALL,
        properties: Cow::Borrowed(&[]),
        additional: Additional::Any,
        required: Cow::Borrowed(&[]),
        key_count: (0, u64::MAX),
        items: None,
        min_items: 0,
        minimum: None,
        maximum: None,
        min_length: 0,
    };

    pub(crate) fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|known| known.name == name)
    }
}

/// A known key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// The key.
    pub name: Cow<'static, str>,
    /// The key that this one is another spelling of ([`ALIAS_OF`]).
    pub alias_of: Option<Cow<'static, str>>,
    /// The rule for its value; for an alias, the rule of its canonical key.
    pub rule: RuleIndex,
}

/// The rule for keys that are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Additional {
    /// They may have any value.
    Any,
    /// They are not allowed.
    Forbidden,
    /// Their values must fit this rule.
    Rule(RuleIndex),
}

/// A set of JSON types, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeSet(pub u8);

impl TypeSet {
    pub(crate) const INTEGER: Self = Self(1);
    pub(crate) const NUMBER: Self = Self(2);
    pub(crate) const NULL: Self = Self(4);
    pub(crate) const BOOLEAN: Self = Self(8);
    pub(crate) const STRING: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    /// Every type.
    pub const ALL: Self = Self(u8::MAX);

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if the two sets have a type in common.
    pub(crate) const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The value of a `type` keyword.
    fn of_keyword(value: &Value) -> Self {
        let named = |name: &Value| match name.as_str() {
            Some("integer") => Self::INTEGER,
            Some("number") => Self::NUMBER,
            Some("null") => Self::NULL,
            Some("boolean") => Self::BOOLEAN,
            Some("string") => Self::STRING,
            Some("array") => Self::ARRAY,
            Some("object") => Self::OBJECT,
            // No value has an unknown type.
            _ => Self(0),
        };
        match value {
            Value::String(_) => named(value),
            Value::Array(names) => names
                .iter()
                .fold(Self(0), |types, name| types.union(named(name))),
            _ => Self::ALL,
        }
    }
}

impl CompiledSchema {
    /// Compiles a JSON Schema.
    #[must_use]
    pub fn compile(schema: &Value) -> Self {
        let mut compiler = Compiler {
            root: schema,
            rules: Vec::new(),
            compiled: HashMap::new(),
        };
        compiler.rule(schema);
        Self(compiler.rules.into())
    }

    /// Removes duplicate rules, so that a table inside a program is small.
    #[must_use]
    pub fn deduplicated(self) -> Self {
        let mut rules = self.0.into_owned();
        // Rules that become equal once others are merged are found in the next round.
        loop {
            let mut kept: Vec<Rule> = Vec::new();
            let mut new_indexes = Vec::new();
            for rule in &rules {
                let known = kept.iter().position(|one| one == rule);
                new_indexes.push(known.unwrap_or(kept.len()));
                if known.is_none() {
                    kept.push(rule.clone());
                }
            }
            if kept.len() == rules.len() {
                return Self(rules.into());
            }
            for rule in &mut kept {
                rule.renumber(&new_indexes);
            }
            rules = kept;
        }
    }
}

impl Rule {
    /// Replaces the indexes of other rules by their new ones.
    fn renumber(&mut self, new_indexes: &[RuleIndex]) {
        let renumber_all = |list: &mut Cow<'static, [RuleIndex]>| {
            for index in list.to_mut() {
                *index = new_indexes[*index];
            }
        };
        match &mut self.kind {
            RuleKind::Anything | RuleKind::Nothing | RuleKind::Values(_) => {}
            RuleKind::AnyOf(branches) => renumber_all(branches),
            RuleKind::Keywords(keywords) => {
                renumber_all(&mut keywords.all_of);
                keywords.items = keywords.items.map(|index| new_indexes[index]);
                if let Additional::Rule(index) = &mut keywords.additional {
                    *index = new_indexes[*index];
                }
                for property in keywords.properties.to_mut() {
                    property.rule = new_indexes[property.rule];
                }
            }
        }
    }
}

/// The maximum length of a chain of `$ref`: a circle of references constrains nothing.
const MAX_REFERENCES: usize = 16;

struct Compiler<'a> {
    root: &'a Value,
    rules: Vec<Rule>,
    /// Rules by the address of their schema: definitions are shared, and may refer to themselves.
    compiled: HashMap<*const Map<String, Value>, RuleIndex>,
}

impl<'a> Compiler<'a> {
    /// Compiles a schema, unless that has happened, and returns its rule.
    fn rule(&mut self, schema: &'a Value) -> RuleIndex {
        let resolved = self.resolve(schema);
        if let Some(index) = resolved.and_then(|map| self.compiled.get(&std::ptr::from_ref(map))) {
            return *index;
        }
        let index = self.rules.len();
        let without_words = |kind| Rule {
            expected: None,
            kind,
        };
        let Some(map) = resolved else {
            self.rules.push(without_words(match schema {
                Value::Bool(false) => RuleKind::Nothing,
                _ => RuleKind::Anything,
            }));
            return index;
        };
        // Reserved first, so that schemas inside this one can refer to it.
        self.rules.push(without_words(RuleKind::Anything));
        self.compiled.insert(std::ptr::from_ref(map), index);
        self.rules[index] = Rule {
            expected: map
                .get(EXPECTED)
                .and_then(Value::as_str)
                .map(|words| Cow::Owned(words.to_owned())),
            kind: self.kind(map),
        };
        index
    }

    fn rules(&mut self, schemas: &'a [Value]) -> Cow<'static, [RuleIndex]> {
        schemas.iter().map(|schema| self.rule(schema)).collect()
    }

    fn kind(&mut self, map: &'a Map<String, Value>) -> RuleKind {
        let mut values = Vec::new();
        if self.closed_set(map, &mut values) {
            return RuleKind::Values(values.into());
        }
        if let Some(branches) = branches(map) {
            return RuleKind::AnyOf(self.rules(branches));
        }
        let list = |value: &'a Value| value.as_array().map_or(&[][..], Vec::as_slice);
        let mut keywords = Keywords::NONE;
        for (key, value) in map {
            match key.as_str() {
                "allOf" => keywords.all_of = self.rules(list(value)),
                "type" => keywords.types = TypeSet::of_keyword(value),
                "properties" => {
                    if let Some(properties) = value.as_object() {
                        keywords.properties = properties
                            .iter()
                            .map(|(name, schema)| self.property(name, schema, properties))
                            .collect();
                    }
                }
                "additionalProperties" => {
                    keywords.additional = match value {
                        Value::Bool(false) => Additional::Forbidden,
                        Value::Object(_) => Additional::Rule(self.rule(value)),
                        _ => Additional::Any,
                    }
                }
                "required" => {
                    let names = list(value).iter().filter_map(Value::as_str);
                    keywords.required = names.map(|name| Cow::Owned(name.to_owned())).collect();
                }
                "minProperties" => keywords.key_count.0 = value.as_u64().unwrap_or(0),
                "maxProperties" => keywords.key_count.1 = value.as_u64().unwrap_or(u64::MAX),
                "items" => keywords.items = Some(self.rule(value)),
                "minItems" => keywords.min_items = value.as_u64().unwrap_or(0),
                "minimum" => keywords.minimum = value.as_f64(),
                "maximum" => keywords.maximum = value.as_f64(),
                "minLength" => keywords.min_length = value.as_u64().unwrap_or(0),
                _ => {}
            }
        }
        if keywords == Keywords::NONE {
            RuleKind::Anything
        } else {
            RuleKind::Keywords(keywords)
        }
    }

    fn property(
        &mut self,
        name: &str,
        schema: &'a Value,
        properties: &'a Map<String, Value>,
    ) -> Property {
        let alias_of = schema.get(ALIAS_OF).and_then(Value::as_str);
        let schema = alias_of
            .and_then(|name| properties.get(name))
            .unwrap_or(schema);
        Property {
            name: Cow::Owned(name.to_owned()),
            alias_of: alias_of.map(|name| Cow::Owned(name.to_owned())),
            rule: self.rule(schema),
        }
    }

    /// Collects the values of a closed set, also where each is in its own branch; returns
    /// false for any other schema.
    fn closed_set(&self, map: &Map<String, Value>, found: &mut Vec<Literal>) -> bool {
        if let Some(only) = map.get("const") {
            found.push(literal(only));
            return true;
        }
        if let Some(several) = map.get("enum").and_then(Value::as_array) {
            found.extend(several.iter().map(literal));
            return true;
        }
        let Some(branches) = branches(map) else {
            return false;
        };
        branches.iter().all(|branch| match self.resolve(branch) {
            Some(branch) if branch.get("type").and_then(Value::as_str) == Some("null") => {
                found.push(literal(&Value::Null));
                true
            }
            Some(branch) => self.closed_set(branch, found),
            None => false,
        })
    }

    /// Follows `$ref`. A schema without constraints (`true`) gives none.
    fn resolve<'s>(&self, schema: &'s Value) -> Option<&'s Map<String, Value>>
    where
        'a: 's,
    {
        let mut schema = schema;
        for _ in 0..MAX_REFERENCES {
            let map = schema.as_object()?;
            let Some(reference) = map.get("$ref").and_then(Value::as_str) else {
                return Some(map);
            };
            schema = self.root.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }
}

fn literal(value: &Value) -> Literal {
    match value {
        Value::String(string) => Literal::String(string.clone().into()),
        other => Literal::Json(other.to_string().into()),
    }
}

fn branches(map: &Map<String, Value>) -> Option<&Vec<Value>> {
    map.get("anyOf")
        .or_else(|| map.get("oneOf"))
        .and_then(Value::as_array)
}
