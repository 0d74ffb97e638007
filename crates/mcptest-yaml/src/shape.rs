//! Compares a document with a JSON Schema and says, in words for people, where they differ.
//!
//! A general validator reports against the schema ("is not valid under any of the schemas listed");
//! this one knows the small part of JSON Schema that our own types generate, and reports against
//! the text: all problems at once, each at its place, with the nearest known word. What it does not
//! know it leaves to serde and to the semantic checks.
//!
//! Three annotations of ours steer the messages: [`ALIAS_OF`], [`EXPECTED`] and [`UNAVAILABLE`].

use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;
use crate::document::{Document, Entry, Node, NodeValue};
use crate::fits::Shapes;

/// On a property: it is another spelling of the named one; giving both is an error.
pub const ALIAS_OF: &str = "x-mcptest-alias-of";
/// On any schema: the words for "expected …" in messages.
pub const EXPECTED: &str = "x-mcptest-expected";
/// On a property: known, but without an engine in this build. Using it is an error, never ignored.
pub const UNAVAILABLE: &str = "x-mcptest-unavailable";

/// Reports every difference between the document and the schema.
#[must_use]
pub fn check(document: &Document, schema: &Value) -> Vec<Diagnostic> {
    check_with(document, &Shapes::of(schema), || schema)
}

/// The same with the schema's shapes made ahead of time; the schema itself is needed only when
/// something is wrong.
#[must_use]
pub fn check_with<'s>(
    document: &Document,
    shapes: &Shapes,
    schema: impl FnOnce() -> &'s Value,
) -> Vec<Diagnostic> {
    if shapes.fit(document.root()) {
        return Vec::new();
    }
    check_in_words(document, schema())
}

/// The reading that can explain itself.
pub(crate) fn check_in_words(document: &Document, schema: &Value) -> Vec<Diagnostic> {
    let checker = Checker {
        document,
        root: schema,
    };
    let mut problems = Vec::new();
    checker.node(document.root(), schema, "", &mut problems);
    problems
}

/// The known word nearest to `word`, if one is near enough to be what was meant.
#[must_use]
pub fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            let longest = word.chars().count().max(candidate.chars().count());
            (*distance <= (longest / 3).max(1) && *distance < longest)
                || (word.len() > 3 && candidate.starts_with(word))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

struct Checker<'a> {
    document: &'a Document,
    root: &'a Value,
}

impl<'a> Checker<'a> {
    /// `name` is the key that led here, for messages.
    fn node(&self, node: &Node, schema: &'a Value, name: &str, problems: &mut Vec<Diagnostic>) {
        if *schema == Value::Bool(false) {
            problems.push(
                self.document
                    .error(node.span, format!("{} is not allowed here", subject(name))),
            );
            return;
        }
        let Some(schema) = self.resolve(schema) else {
            return;
        };
        if let Some(allowed) = self.allowed_values(schema) {
            if !allowed.contains(&node.to_json()) {
                problems.push(self.not_allowed(node, &allowed, name));
            }
            return;
        }
        if let Some(branches) = branches(schema) {
            self.any_of(node, schema, branches, name, problems);
            return;
        }
        if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
            for part in all {
                self.node(node, part, name, problems);
            }
        }
        if !self.type_fits(node, schema) {
            problems.push(self.mismatch(node, &self.expected(schema), name));
            return;
        }
        match &node.value {
            NodeValue::Mapping(entries) => self.mapping(node, entries, schema, name, problems),
            NodeValue::Sequence(items) => self.sequence(node, items, schema, name, problems),
            NodeValue::Number(number) => self.number(node, number.as_f64(), schema, name, problems),
            NodeValue::String(text) => {
                let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
                if (text.chars().count() as u64) < least {
                    problems.push(
                        self.document
                            .error(node.span, format!("{} is empty", subject(name)))
                            .label(format!("expected {}", self.expected(schema))),
                    );
                }
            }
            _ => {}
        }
    }

    fn mapping(
        &self,
        node: &Node,
        entries: &[Entry],
        schema: &'a Map<String, Value>,
        name: &str,
        problems: &mut Vec<Diagnostic>,
    ) {
        let empty = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        let additional = schema.get("additionalProperties");
        for entry in entries {
            if let Some(property) = properties.get(&entry.key) {
                if let Some(note) = property.get(UNAVAILABLE).and_then(Value::as_str) {
                    problems.push(
                        self.document
                            .error(
                                entry.key_span,
                                format!("`{}` is not available in this build", entry.key),
                            )
                            .label(note),
                    );
                    continue;
                }
                if let Some(canonical) = property.get(ALIAS_OF).and_then(Value::as_str)
                    && let Some(other) = entries.iter().find(|other| other.key == canonical)
                {
                    problems.push(
                        self.document
                            .error(
                                entry.key_span,
                                format!("`{}` and `{canonical}` mean the same", entry.key),
                            )
                            .related(other.key_span, "the other spelling")
                            .help(format!("keep `{canonical}`")),
                    );
                    continue;
                }
                // The generator has no way to say it in `properties`: resolve the alias to the
                // canonical property's schema.
                let target = property
                    .get(ALIAS_OF)
                    .and_then(Value::as_str)
                    .and_then(|canonical| properties.get(canonical))
                    .unwrap_or(property);
                self.node(&entry.value, target, &entry.key, problems);
            } else {
                match additional {
                    Some(Value::Bool(false)) => {
                        problems.push(self.unknown_key(entry, properties, name));
                    }
                    Some(more @ Value::Object(_)) => {
                        self.node(&entry.value, more, &entry.key, problems);
                    }
                    _ => {}
                }
            }
        }
        for required in strings(schema.get("required")) {
            if !entries.iter().any(|entry| entry.key == required) {
                problems.push(self.missing_key(node, required, properties, name));
            }
        }
        let least = schema.get("minProperties").and_then(Value::as_u64);
        let most = schema.get("maxProperties").and_then(Value::as_u64);
        let count = entries.len() as u64;
        if least.is_some_and(|least| count < least) || most.is_some_and(|most| count > most) {
            problems.push(self.mismatch(node, &self.expected(schema), name));
        }
    }

    fn sequence(
        &self,
        node: &Node,
        items: &[Node],
        schema: &'a Map<String, Value>,
        name: &str,
        problems: &mut Vec<Diagnostic>,
    ) {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if (items.len() as u64) < least {
            problems.push(
                self.document
                    .error(node.span, format!("{} is empty", subject(name)))
                    .label(format!("expected {}", self.expected(schema))),
            );
        }
        if let Some(each) = schema.get("items") {
            for item in items {
                self.node(item, each, name, problems);
            }
        }
    }

    fn number(
        &self,
        node: &Node,
        value: Option<f64>,
        schema: &Map<String, Value>,
        name: &str,
        problems: &mut Vec<Diagnostic>,
    ) {
        let Some(value) = value else { return };
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let low = bound("minimum").filter(|minimum| value < *minimum);
        let high = bound("maximum").filter(|maximum| value > *maximum);
        if let Some(limit) = low.or(high) {
            let word = if low.is_some() { "below" } else { "above" };
            problems.push(
                self.document
                    .error(node.span, format!("{} is {word} {limit}", subject(name)))
                    .label(format!("expected {}", self.expected(schema))),
            );
        }
    }

    /// At least one branch must fit. When none does, the message is about the branch that the
    /// author most likely meant.
    fn any_of(
        &self,
        node: &Node,
        schema: &'a Map<String, Value>,
        branches: &'a [Value],
        name: &str,
        problems: &mut Vec<Diagnostic>,
    ) {
        let mut nearest: Option<(usize, Vec<Diagnostic>)> = None;
        for branch in branches {
            let mut found = Vec::new();
            self.node(node, branch, name, &mut found);
            if found.is_empty() {
                return;
            }
            let Some(resolved) = self.resolve(branch) else {
                return;
            };
            // A branch of another type says nothing about what is wrong inside this value.
            if !self.type_fits(node, resolved) {
                continue;
            }
            let unfit = found.len() + self.distance(node, resolved);
            if nearest.as_ref().is_none_or(|(best, _)| unfit < *best) {
                nearest = Some((unfit, found));
            }
        }
        match nearest {
            // Scalars have no inside to go into: the whole list of what fits says more.
            Some((_, found))
                if matches!(node.value, NodeValue::Mapping(_) | NodeValue::Sequence(_)) =>
            {
                problems.extend(found);
            }
            Some((_, found)) if found.len() == 1 && branches.len() == 2 => problems.extend(found),
            _ => problems.push(self.mismatch(node, &self.expected(schema), name)),
        }
    }

    /// How many of the mapping's keys the branch does not know: the branch that knows most of them
    /// was meant.
    fn distance(&self, node: &Node, schema: &Map<String, Value>) -> usize {
        let (NodeValue::Mapping(entries), Some(properties)) = (
            &node.value,
            schema.get("properties").and_then(Value::as_object),
        ) else {
            return 0;
        };
        entries
            .iter()
            .filter(|entry| !properties.contains_key(&entry.key))
            .count()
    }

    fn unknown_key(
        &self,
        entry: &Entry,
        properties: &Map<String, Value>,
        name: &str,
    ) -> Diagnostic {
        let known: Vec<&str> = properties
            .iter()
            .filter(|(_, property)| property.get(ALIAS_OF).is_none())
            .map(|(key, _)| key.as_str())
            .collect();
        let place = if name.is_empty() {
            String::new()
        } else {
            format!(" in `{name}`")
        };
        let diagnostic = self.document.error(
            entry.key_span,
            format!("unknown key `{}`{place}", entry.key),
        );
        match suggest(&entry.key, properties.keys().map(String::as_str)) {
            Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
            None if known.is_empty() => diagnostic.label("no key is allowed here"),
            None => diagnostic.help(format!("known keys: {}", known.join(", "))),
        }
    }

    fn missing_key(
        &self,
        node: &Node,
        required: &str,
        properties: &Map<String, Value>,
        name: &str,
    ) -> Diagnostic {
        let place = if name.is_empty() {
            String::new()
        } else {
            format!(" in `{name}`")
        };
        let mut span = node.span;
        // A block mapping's span may be empty or run on for pages: its first key marks it best.
        if let NodeValue::Mapping(entries) = &node.value
            && let Some(first) = entries.first()
        {
            span = first.key_span;
        }
        let what = properties
            .get(required)
            .and_then(|property| self.resolve(property))
            .map(|property| self.expected(property));
        let diagnostic = self
            .document
            .error(span, format!("missing key `{required}`{place}"));
        match what {
            Some(what) => diagnostic.label(format!("expected `{required}:` with {what}")),
            None => diagnostic,
        }
    }

    fn mismatch(&self, node: &Node, expected: &str, name: &str) -> Diagnostic {
        let message = if name.is_empty() {
            format!("expected {expected}")
        } else {
            format!("`{name}` must be {expected}")
        };
        self.document
            .error(node.span, message)
            .label(format!("found {}", found(node)))
    }

    fn not_allowed(&self, node: &Node, allowed: &[Value], name: &str) -> Diagnostic {
        let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        let diagnostic = self.mismatch(node, &one_of(allowed), name);
        if let NodeValue::String(text) = &node.value
            && let Some(near) = suggest(text, words)
        {
            return diagnostic.help(format!("did you mean `{near}`?"));
        }
        diagnostic
    }

    /// Follows `$ref`; a schema without constraints (`true`, `{}`) has nothing to check.
    fn resolve(&self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        let mut schema = schema;
        // Bounded: a reference that leads round in a circle constrains nothing.
        for _ in 0..16 {
            let map = schema.as_object()?;
            let Some(reference) = map.get("$ref").and_then(Value::as_str) else {
                return Some(map);
            };
            schema = self.root.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }

    /// The values of a closed set, also where each stands in a branch of its own with its
    /// description.
    fn allowed_values(&self, schema: &'a Map<String, Value>) -> Option<Vec<Value>> {
        if let Some(only) = schema.get("const") {
            return Some(vec![only.clone()]);
        }
        if let Some(several) = schema.get("enum").and_then(Value::as_array) {
            return Some(several.clone());
        }
        let mut all = Vec::new();
        for branch in branches(schema)? {
            let branch = self.resolve(branch)?;
            if branch.get("type").and_then(Value::as_str) == Some("null") {
                all.push(Value::Null);
            } else {
                all.extend(self.allowed_values(branch)?);
            }
        }
        Some(all)
    }

    fn type_fits(&self, node: &Node, schema: &'a Map<String, Value>) -> bool {
        if let Some(branches) = branches(schema) {
            return branches.iter().any(|branch| {
                self.resolve(branch)
                    .is_none_or(|branch| self.type_fits(node, branch))
            });
        }
        let Some(wanted) = schema.get("type") else {
            return self.allowed_values(schema).is_none_or(|allowed| {
                allowed
                    .iter()
                    .any(|value| json_type(value) == node_type(node))
            });
        };
        let fits = |wanted: &str| match (wanted, &node.value) {
            ("integer", NodeValue::Number(number)) => {
                number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|n| n.fract() == 0.0)
            }
            _ => wanted == node_type(node),
        };
        match wanted {
            Value::String(wanted) => fits(wanted),
            Value::Array(list) => list.iter().filter_map(Value::as_str).any(fits),
            _ => true,
        }
    }

    /// The words for "expected …".
    fn expected(&self, schema: &'a Map<String, Value>) -> String {
        if let Some(words) = schema.get(EXPECTED).and_then(Value::as_str) {
            return words.to_owned();
        }
        if let Some(allowed) = self.allowed_values(schema) {
            return one_of(&allowed);
        }
        if let Some(branches) = branches(schema) {
            let mut words: Vec<String> = Vec::new();
            for branch in branches {
                if let Some(branch) = self.resolve(branch) {
                    let word = self.expected(branch);
                    if word != "nothing" && !words.contains(&word) {
                        words.push(word);
                    }
                }
            }
            return join_or(&words);
        }
        let word = |name: &str| match name {
            "string" => "a string".to_owned(),
            "integer" => "a whole number".to_owned(),
            "number" => "a number".to_owned(),
            "boolean" => "true or false".to_owned(),
            "null" => "nothing".to_owned(),
            "object" => "a mapping".to_owned(),
            "array" => match schema.get("items").and_then(|items| self.resolve(items)) {
                Some(items) => match self.expected(items).strip_prefix("a ") {
                    Some(word) if !word.contains(' ') => format!("a list of {word}s"),
                    _ => "a list".to_owned(),
                },
                None => "a list".to_owned(),
            },
            other => other.to_owned(),
        };
        let base = match schema.get("type") {
            Some(Value::String(name)) => word(name),
            Some(Value::Array(names)) => join_or(
                &names
                    .iter()
                    .filter_map(Value::as_str)
                    .filter(|name| *name != "null")
                    .map(word)
                    .collect::<Vec<_>>(),
            ),
            _ => "a value".to_owned(),
        };
        match (schema.get("minimum"), schema.get("maximum")) {
            (Some(low), Some(high)) => format!("{base} from {low} to {high}"),
            (Some(low), None) if low.as_f64() != Some(0.0) => format!("{base} from {low}"),
            _ => base,
        }
    }
}

fn branches(schema: &Map<String, Value>) -> Option<&[Value]> {
    schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Value::as_array)
        .map(Vec::as_slice)
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn subject(name: &str) -> String {
    if name.is_empty() {
        "the file".to_owned()
    } else {
        format!("`{name}`")
    }
}

fn one_of(allowed: &[Value]) -> String {
    let words: Vec<String> = allowed
        .iter()
        .filter(|value| !value.is_null())
        .map(|value| match value {
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        })
        .collect();
    join_or(&words)
}

fn join_or(words: &[String]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn found(node: &Node) -> String {
    match &node.value {
        NodeValue::Bool(value) => format!("the boolean `{value}`"),
        NodeValue::Number(value) => format!("the number `{value}`"),
        NodeValue::String(value) => {
            let short: String = value.chars().take(40).collect();
            let dots = if short.len() < value.len() { "…" } else { "" };
            format!("the string `{}{dots}`", short.escape_debug())
        }
        _ => node.kind().to_owned(),
    }
}

fn node_type(node: &Node) -> &'static str {
    match &node.value {
        NodeValue::Null => "null",
        NodeValue::Bool(_) => "boolean",
        NodeValue::Number(_) => "number",
        NodeValue::String(_) => "string",
        NodeValue::Sequence(_) => "array",
        NodeValue::Mapping(_) => "object",
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use crate::from_bytes;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Suite {
        name: String,
        #[serde(default)]
        runs: Option<u32>,
        #[serde(default)]
        items: Vec<Item>,
        #[serde(default)]
        mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Item {
        server: String,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Strict,
        Subset,
    }

    fn problems(text: &str) -> String {
        from_bytes::<Suite>("t.yml", text.as_bytes())
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn all_problems_of_a_file_at_once() {
        let text =
            problems("nmae: x\nruns: many\nitems:\n  - server: 3\n  - sever: a\nmode: strickt\n");
        for (message, place) in [
            ("unknown key `nmae`", "t.yml:1:1"),
            ("did you mean `name`?", "t.yml:1:1"),
            ("missing key `name`", "t.yml:1:1"),
            ("`runs` must be a whole number", "t.yml:2:7"),
            ("`server` must be a string", "t.yml:4:13"),
            ("unknown key `sever`", "t.yml:5:5"),
            ("`mode` must be `strict` or `subset`", "t.yml:6:7"),
            ("did you mean `strict`?", "t.yml:6:7"),
        ] {
            assert!(text.contains(message), "{message} not in\n{text}");
            assert!(text.contains(place), "{place} not in\n{text}");
        }
    }

    #[test]
    fn negative_where_a_count_is_wanted() {
        assert!(problems("name: x\nruns: -1\n").contains("`runs` is below 0"));
    }

    #[test]
    fn an_empty_file_is_explained() {
        let text = problems("");
        assert!(text.contains("expected a mapping"), "{text}");
        assert!(text.contains("t.yml:1:1"), "{text}");
    }

    #[test]
    fn what_fits_decodes() {
        let (suite, _) = from_bytes::<Suite>(
            "t.yml",
            b"name: x\nruns: 3\nitems: [{server: a}]\nmode: subset",
        )
        .unwrap();
        assert_eq!(suite.items[0].server, "a");
        assert_eq!(suite.runs, Some(3));
    }

    #[test]
    fn the_nearest_word_is_near_or_none() {
        assert_eq!(super::suggest("promt", ["prompt", "runs"]), Some("prompt"));
        assert_eq!(super::suggest("xyzzy", ["prompt", "runs"]), None);
    }
}
