//! The path language that selects a value: `tool_calls[0].args.city`, `tool_calls[-1].name`,
//! `tool_names`, `tool_calls[*].name`, `tool["read_file"].score`.
//!
//! | step | selects |
//! |---|---|
//! | `.key` | a key of letters, digits, `_`, `-` and `$` |
//! | `["any key"]`, `['any key']` | a key with any characters; `\"` and `\\` are escapes |
//! | `[2]`, `[-1]` | an item, from the front or from the back |
//! | `[*]` | every item of a list, or every value of an object, as a list |
//!
//! After a `[*]` the rest of the path applies to each item, and an item that does not have it gives
//! `null`: the selected list is never silently shorter than the evidence. Several `[*]`
//! give one flat list.

use std::fmt;

use serde_json::Value;

use crate::trace::Node;

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    text: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(i64),
    Each,
}

/// An error in a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at character {at}")]
pub struct TargetError {
    /// From 1.
    pub at: usize,
    /// The part that was expected.
    pub message: String,
}

impl Target {
    /// Parses a path.
    ///
    /// # Errors
    /// The first character that does not belong.
    ///
    /// ```
    /// # use mcptest_trace::target::Target;
    /// # use serde_json::json;
    /// let target = Target::parse("tool_calls[*].name").unwrap();
    /// let seen = json!({"tool_calls": [{"name": "search"}, {"name": "fetch"}]});
    /// assert_eq!(target.select(&seen), Some(json!(["search", "fetch"])));
    /// ```
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let is_key = |key: &str| !key.is_empty() && key.bytes().all(is_key_byte);
        if text.split('.').all(is_key) {
            return Ok(Self::dotted(text));
        }
        let mut parser = PathParser {
            characters: text.chars().collect(),
            at: 0,
        };
        Ok(Self {
            text: text.to_owned(),
            steps: parser.steps()?,
        })
    }

    /// A path of plain keys with dots between, such as a gate's own target.
    #[must_use]
    pub fn dotted(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            steps: text
                .split('.')
                .map(|key| Step::Key(key.to_owned()))
                .collect(),
        }
    }

    /// The first key.
    #[must_use]
    pub fn root(&self) -> &str {
        match self.steps.first() {
            Some(Step::Key(key)) => key,
            _ => "",
        }
    }

    /// The keys, for a path of nothing else.
    #[must_use]
    pub fn keys(&self) -> Option<Vec<&str>> {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Key(key) => Some(key.as_str()),
                Step::Index(_) | Step::Each => None,
            })
            .collect()
    }

    /// Returns true if the path is this figure or a part of it. Names match as a whole:
    /// `token_efficiency.cost` is not a part of `token_efficiency.cost_per_correct`, nor the other
    /// way round.
    ///
    /// ```
    /// # use mcptest_trace::target::Target;
    /// let target = Target::parse("reliability.decay[0]").unwrap();
    /// assert!(target.is_of("reliability.decay") && target.is_of("reliability"));
    /// assert!(!target.is_of("reliability.dec"));
    /// ```
    #[must_use]
    pub fn is_of(&self, name: &str) -> bool {
        let mut steps = self.steps.iter();
        name.split('.')
            .all(|key| matches!(steps.next(), Some(Step::Key(own)) if own == key))
    }

    /// The path as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Replaces every selected value. Nothing is added where the path selects nothing.
    pub fn replace(&self, root: &mut Value, with: &Value) {
        replace(&self.steps, root, with);
    }

    /// The value it selects, or nothing. Only that value is built.
    #[must_use]
    pub fn select<'n>(&self, root: impl Into<Node<'n>>) -> Option<Value> {
        select(&self.steps, root.into())
    }

    /// The place it selects, or nothing. Only a list of several places is built.
    pub(crate) fn find<'n>(&self, root: impl Into<Node<'n>>) -> Option<Selected<'n>> {
        find(&self.steps, root.into())
    }
}

/// A selected value.
pub(crate) enum Selected<'n> {
    /// A place in the evidence.
    Place(Node<'n>),
    /// A list of the values of several places.
    List(Value),
}

/// The place where a path leaves the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gap {
    /// An object without the key; it has these.
    Key { key: String, known: Vec<String> },
    /// A list that is too short.
    Index { index: i64, length: usize },
    /// A value that has no keys or items.
    Scalar,
}

impl Target {
    /// The part of the path that exists, and what is there instead of the next step. `None` if the
    /// path selects something, or has a `[*]` before the gap.
    pub(crate) fn gap<'n>(&self, root: impl Into<Node<'n>>) -> Option<(String, Gap)> {
        let mut node = root.into();
        let mut path = String::new();
        for step in &self.steps {
            let next = match step {
                Step::Key(key) => node.child(key).ok_or_else(|| Gap::Key {
                    key: key.clone(),
                    known: node.present_keys(),
                }),
                Step::Index(index) => {
                    let length = node.list_length();
                    let place = length.and_then(|length| place_of(*index, length));
                    place
                        .and_then(|place| node.item(place))
                        .ok_or(match length {
                            Some(length) => Gap::Index {
                                index: *index,
                                length,
                            },
                            None => Gap::Scalar,
                        })
                }
                Step::Each => return None,
            };
            match next {
                Ok(found) => node = found,
                Err(Gap::Key { known, .. }) if known.is_empty() && node.is_scalar() => {
                    return Some((path, Gap::Scalar));
                }
                Err(gap) => return Some((path, gap)),
            }
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.push_str(&format!(".{key}")),
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Each => {}
            }
        }
        None
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn replace(steps: &[Step], value: &mut Value, with: &Value) {
    let Some((step, rest)) = steps.split_first() else {
        *value = with.clone();
        return;
    };
    match (step, value) {
        (Step::Key(key), Value::Object(map)) => {
            if let Some(value) = map.get_mut(key) {
                replace(rest, value, with);
            }
        }
        (Step::Index(index), Value::Array(items)) => {
            if let Some(value) =
                place_of(*index, items.len()).and_then(|place| items.get_mut(place))
            {
                replace(rest, value, with);
            }
        }
        (Step::Each, Value::Array(items)) => {
            items.iter_mut().for_each(|item| replace(rest, item, with))
        }
        (Step::Each, Value::Object(map)) => {
            map.values_mut().for_each(|item| replace(rest, item, with))
        }
        _ => {}
    }
}

/// Where an index points, from the front or from the back.
fn place_of(index: i64, length: usize) -> Option<usize> {
    if index < 0 {
        length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
    } else {
        usize::try_from(index).ok()
    }
}

fn select(steps: &[Step], node: Node<'_>) -> Option<Value> {
    match find(steps, node)? {
        Selected::Place(node) => Some(node.to_value()),
        Selected::List(list) => Some(list),
    }
}

fn find<'n>(steps: &[Step], mut node: Node<'n>) -> Option<Selected<'n>> {
    for (at, step) in steps.iter().enumerate() {
        node = match step {
            Step::Key(key) => node.child(key)?,
            Step::Index(index) => node.item(place_of(*index, node.list_length()?)?)?,
            Step::Each => {
                let list = select_each(&steps[at + 1..], node.each()?);
                return list.map(Selected::List);
            }
        };
    }
    Some(Selected::Place(node))
}

fn select_each(rest: &[Step], items: Vec<Node<'_>>) -> Option<Value> {
    let nested = rest.contains(&Step::Each);
    let mut found = Vec::with_capacity(items.len());
    for item in items {
        match select(rest, item) {
            Some(Value::Array(inner)) if nested => found.extend(inner),
            Some(selected) => found.push(selected),
            None if nested => {}
            None => found.push(Value::Null),
        }
    }
    Some(Value::Array(found))
}

struct PathParser {
    characters: Vec<char>,
    at: usize,
}

/// Returns true for the characters of a key that are ASCII.
fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$' | b'@')
}

impl PathParser {
    fn steps(&mut self) -> Result<Vec<Step>, TargetError> {
        let mut steps = vec![Step::Key(self.key()?)];
        while let Some(character) = self.peek() {
            match character {
                '.' => {
                    self.at += 1;
                    steps.push(Step::Key(self.key()?));
                }
                '[' => {
                    self.at += 1;
                    steps.push(self.bracket()?);
                }
                _ => return Err(self.error("expected `.` or `[`")),
            }
        }
        Ok(steps)
    }

    fn key(&mut self) -> Result<String, TargetError> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|c| c.is_alphanumeric() || u8::try_from(c).is_ok_and(is_key_byte))
        {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.error("expected a key"));
        }
        Ok(self.characters[start..self.at].iter().collect())
    }

    fn bracket(&mut self) -> Result<Step, TargetError> {
        let step = match self.peek() {
            Some('*') => {
                self.at += 1;
                Step::Each
            }
            Some(quote @ ('"' | '\'')) => {
                self.at += 1;
                Step::Key(self.quoted(quote)?)
            }
            _ => self.index()?,
        };
        if self.peek() != Some(']') {
            return Err(self.error("expected `]`"));
        }
        self.at += 1;
        Ok(step)
    }

    fn index(&mut self) -> Result<Step, TargetError> {
        let start = self.at;
        if self.peek() == Some('-') {
            self.at += 1;
        }
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let text: String = self.characters[start..self.at].iter().collect();
        text.parse().map(Step::Index).map_err(|_| {
            self.at = start;
            self.error("expected a number, `*` or a quoted key")
        })
    }

    fn quoted(&mut self, quote: char) -> Result<String, TargetError> {
        let mut key = String::new();
        loop {
            match self.peek() {
                None => return Err(self.error("the quoted key is not closed")),
                Some('\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(c @ ('\\' | '"' | '\'')) => key.push(c),
                        _ => return Err(self.error("expected `\\\\` or an escaped quote")),
                    }
                }
                Some(c) if c == quote => {
                    self.at += 1;
                    return Ok(key);
                }
                Some(c) => key.push(c),
            }
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn error(&self, message: &str) -> TargetError {
        TargetError {
            at: self.at + 1,
            message: message.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn issue_10_names_match_as_a_whole() {
        for (path, name, is_of) in [
            ("a.cost", "a.cost", true),
            ("a.cost_per_correct", "a.cost", false),
            ("a.cost", "a.cost_per_correct", false),
            ("a.cost[0]", "a.cost", true),
            ("a.cost[0].x", "a.cost", true),
            ("a[\"cost\"]", "a.cost", true),
            ("a[*].cost", "a.cost", false),
            ("a", "a.cost", false),
            ("ab.cost", "a", false),
        ] {
            assert_eq!(
                Target::parse(path).unwrap().is_of(name),
                is_of,
                "{path} {name}"
            );
        }
    }

    fn get(path: &str, value: Value) -> Option<Value> {
        Target::parse(path).unwrap().select(&value)
    }

    #[test]
    fn steps() {
        let value =
            json!({"a": {"b-c": [10, 20, 30]}, "tool": {"read_file": {"score": 0.5}, "a.b\"c": 1}});
        assert_eq!(get("a.b-c[0]", value.clone()), Some(json!(10)));
        assert_eq!(get("a.b-c[-1]", value.clone()), Some(json!(30)));
        assert_eq!(get("a.b-c[3]", value.clone()), None);
        assert_eq!(get("a.b-c[-4]", value.clone()), None);
        assert_eq!(get("a.nope", value.clone()), None);
        assert_eq!(get("a[0]", value.clone()), None);
        assert_eq!(
            get(r#"tool["read_file"].score"#, value.clone()),
            Some(json!(0.5))
        );
        assert_eq!(get(r#"tool["a.b\"c"]"#, value.clone()), Some(json!(1)));
        assert_eq!(get("tool['read_file'][\"score\"]", value), Some(json!(0.5)));
    }

    #[test]
    fn wildcards_keep_every_item() {
        let value = json!({"c": [{"n": 1}, {}, {"n": 3}], "o": {"x": {"n": 7}, "y": {"n": 8}}, "e": [], "s": "text"});
        assert_eq!(get("c[*].n", value.clone()), Some(json!([1, null, 3])));
        assert_eq!(get("o[*].n", value.clone()), Some(json!([7, 8])));
        assert_eq!(get("e[*].n", value.clone()), Some(json!([])));
        assert_eq!(get("s[*]", value.clone()), None);
        assert_eq!(get("missing[*].n", value), None);
        let nested = json!({"r": [{"c": [{"t": "a"}, {"t": "b"}]}, {"c": [{"t": "d"}]}, {}]});
        assert_eq!(get("r[*].c[*].t", nested), Some(json!(["a", "b", "d"])));
    }

    #[test]
    fn replacing_reaches_what_is_selected_and_adds_nothing() {
        let replaced = |path: &str, mut value: Value| {
            Target::parse(path)
                .unwrap()
                .replace(&mut value, &json!("x"));
            value
        };
        assert_eq!(
            replaced("a.b[-1]", json!({"a": {"b": [1, 2]}})),
            json!({"a": {"b": [1, "x"]}})
        );
        assert_eq!(
            replaced("a[*].t", json!({"a": [{"t": 1}, {"u": 2}, 3]})),
            json!({"a": [{"t": "x"}, {"u": 2}, 3]})
        );
        assert_eq!(
            replaced("a[*]", json!({"a": {"k": 1, "l": []}})),
            json!({"a": {"k": "x", "l": "x"}})
        );
        for absent in ["b", "a.b", "a[3]", "a[-3]", "a[0].b"] {
            assert_eq!(
                replaced(absent, json!({"a": [1, 2]})),
                json!({"a": [1, 2]}),
                "{absent}"
            );
        }
    }

    #[test]
    fn errors_point_at_the_character() {
        for (path, at) in [
            ("", 1),
            ("a.", 3),
            ("a[", 3),
            ("a[x]", 3),
            ("a[1", 4),
            ("a]", 2),
            ("a[\"x", 5),
            ("a b", 2),
            ("[0]", 1),
            ("a[1.5]", 4),
        ] {
            let error = Target::parse(path).unwrap_err();
            assert_eq!(error.at, at, "{path}: {error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,20}|[a\\.\\[\\]\\*\"'\\\\0-9-]{0,20}") {
            let _ = Target::parse(&text);
        }

        #[test]
        fn what_was_replaced_is_what_is_selected(path in "a(\\.b|\\[0\\]|\\[-1\\]){0,3}", leaf in 0_u8..9) {
            let target = Target::parse(&path).unwrap();
            let mut value = json!({"a": {"b": [{"b": [leaf, {"b": leaf}]}, [leaf, [leaf]]]}});
            let was_there = target.select(&value).is_some();
            target.replace(&mut value, &json!("new"));
            prop_assert_eq!(target.select(&value), was_there.then(|| json!("new")));
        }

        #[test]
        fn any_key_can_be_quoted(key in "\\PC{0,10}") {
            let path = format!("root[\"{}\"]", key.replace('\\', "\\\\").replace('"', "\\\""));
            let mut map = serde_json::Map::new();
            map.insert(key, json!(42));
            prop_assert_eq!(get(&path, json!({"root": map})), Some(json!(42)));
        }
    }
}
