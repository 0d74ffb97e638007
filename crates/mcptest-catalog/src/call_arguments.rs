//! Arguments of a call as people type them: `city=Paris`, `limit=5`, `filter.tag=new`,
//! `range:=[1,2]`.
//!
//! `key=value` takes the type that the tool's schema gives the key; `key:=value` is JSON. Dots in a
//! key select members of objects and, as numbers, elements of lists, unless the schema has a
//! property with that exact name. A key of a list that is given several times collects its values.

use serde_json::{Map, Value};

/// An argument that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{argument}`: {reason}")]
pub struct ArgumentError {
    /// The argument as typed.
    pub argument: String,
    /// The reason.
    pub reason: String,
}

/// The largest index of a list.
const MAX_INDEX: usize = 1000;

/// The depth to which references of a schema are followed.
const MAX_DEPTH: usize = 16;

/// Adds typed arguments to others.
///
/// # Errors
/// An argument without a name, of the wrong type, or in the place of another one.
pub fn add(
    arguments: &mut Map<String, Value>,
    typed: &[String],
    schema: Option<&Value>,
) -> Result<(), ArgumentError> {
    let mut given: Vec<String> = Vec::new();
    for argument in typed {
        let fail = |reason: String| ArgumentError {
            argument: argument.clone(),
            reason,
        };
        let (key, text, is_json) = split(argument)
            .ok_or_else(|| fail("expected `name=value`, or `name:=JSON`".to_owned()))?;
        let root = Place {
            root: schema,
            schema,
        };
        let path = root.path(key);
        let mut place = root;
        for step in &path {
            place = place.step(step);
        }
        let value = if is_json {
            serde_json::from_str(text).map_err(|error| fail(format!("not valid JSON: {error}")))?
        } else {
            place.typed(text).map_err(&fail)?
        };
        let again = given.iter().any(|one| one == key);
        given.push(key.to_owned());
        insert(arguments, &path, value, again, place.is_list()).map_err(&fail)?;
    }
    Ok(())
}

/// The names of top-level arguments that a schema does not have.
#[must_use]
pub fn unknown<'a>(arguments: &'a Map<String, Value>, schema: Option<&Value>) -> Vec<&'a str> {
    let Some(Value::Object(properties)) = schema.and_then(|schema| schema.get("properties")) else {
        return Vec::new();
    };
    let is_unknown = |name: &&String| !properties.contains_key(name.as_str());
    arguments
        .keys()
        .filter(is_unknown)
        .map(String::as_str)
        .collect()
}

/// Key, value, and true if the value is JSON.
fn split(argument: &str) -> Option<(&str, &str, bool)> {
    let at = argument.find('=')?;
    let (key, value) = (&argument[..at], &argument[at + 1..]);
    let (key, is_json) = match key.strip_suffix(':') {
        Some(key) => (key, true),
        None => (key, false),
    };
    (!key.is_empty()).then_some((key, value, is_json))
}

/// A place in a schema.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The whole schema, for references.
    root: Option<&'a Value>,
    schema: Option<&'a Value>,
}

impl<'a> Place<'a> {
    /// The steps that a key names.
    fn path(self, key: &str) -> Vec<String> {
        if self.property(key).is_some() {
            return vec![key.to_owned()];
        }
        key.split('.').map(str::to_owned).collect()
    }

    fn step(self, step: &str) -> Self {
        Self {
            root: self.root,
            schema: self
                .property(step)
                .or_else(|| step.parse::<usize>().ok().and_then(|_| self.items())),
        }
    }

    fn property(self, name: &str) -> Option<&'a Value> {
        self.find(&|schema| schema.get("properties")?.get(name))
    }

    fn items(self) -> Option<&'a Value> {
        self.find(&|schema| schema.get("items"))
    }

    fn is_list(self) -> bool {
        self.types().contains(&"array")
    }

    /// The first part of the schema, with its references and alternatives, that has something.
    fn find(self, wanted: &dyn Fn(&'a Value) -> Option<&'a Value>) -> Option<&'a Value> {
        self.parts().into_iter().find_map(wanted)
    }

    /// The schema and everything that it refers to or combines.
    fn parts(self) -> Vec<&'a Value> {
        let mut open: Vec<(&Value, usize)> =
            self.schema.into_iter().map(|schema| (schema, 0)).collect();
        let mut parts = Vec::new();
        while let Some((schema, depth)) = open.pop() {
            parts.push(schema);
            if depth >= MAX_DEPTH || parts.len() > 256 {
                continue;
            }
            let target = schema.get("$ref").and_then(Value::as_str);
            let target = target
                .and_then(|target| target.strip_prefix('#'))
                .and_then(|pointer| self.root?.pointer(pointer));
            open.extend(target.map(|target| (target, depth + 1)));
            for key in ["oneOf", "anyOf", "allOf"] {
                let members = schema.get(key).and_then(Value::as_array);
                let members = members.into_iter().flatten().rev();
                open.extend(members.map(|member| (member, depth + 1)));
            }
        }
        parts
    }

    /// The types that the schema allows, as it names them.
    fn types(self) -> Vec<&'a str> {
        let mut types = Vec::new();
        for part in self.parts() {
            match part.get("type") {
                Some(Value::String(one)) => types.push(one.as_str()),
                Some(Value::Array(several)) => {
                    types.extend(several.iter().filter_map(Value::as_str));
                }
                _ if part.get("properties").is_some() => types.push("object"),
                _ if part.get("items").is_some() => types.push("array"),
                _ => {}
            }
        }
        types.dedup();
        types
    }

    /// The value of a typed string.
    fn typed(self, text: &str) -> Result<Value, String> {
        if let Some(value) = self.allowed(text) {
            return Ok(value);
        }
        let types = self.types();
        let allows = |name: &str| types.contains(&name);
        if allows("null") && text == "null" {
            return Ok(Value::Null);
        }
        if (allows("integer") || allows("number"))
            && let Ok(number) = serde_json::from_str::<serde_json::Number>(text)
            && (allows("number") || !number.is_f64())
        {
            return Ok(Value::Number(number));
        }
        if allows("boolean")
            && let Ok(flag) = text.parse::<bool>()
        {
            return Ok(flag.into());
        }
        if allows("array") || allows("object") {
            match serde_json::from_str::<Value>(text) {
                Ok(value @ Value::Array(_)) if allows("array") => return Ok(value),
                Ok(value @ Value::Object(_)) if allows("object") => return Ok(value),
                _ => {}
            }
        }
        if allows("string") || types.is_empty() {
            return Ok(text.into());
        }
        if allows("array") {
            let item = Self {
                root: self.root,
                schema: self.items(),
            };
            return Ok(Value::Array(vec![item.typed(text)?]));
        }
        let names: Vec<&str> = types.iter().map(|name| noun(name)).collect();
        Err(format!("expected {}", names.join(" or ")))
    }

    /// The value of an `enum` or `const` that a string names.
    fn allowed(self, text: &str) -> Option<Value> {
        let is_named = |value: &&Value| match value {
            Value::String(one) => one == text,
            other => serde_json::from_str::<Value>(text).is_ok_and(|typed| typed == **other),
        };
        self.parts().into_iter().find_map(|part| {
            let values = part.get("enum").and_then(Value::as_array);
            let values = values.into_iter().flatten().chain(part.get("const"));
            values.into_iter().find(is_named).cloned()
        })
    }
}

fn noun(name: &str) -> &str {
    match name {
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "`true` or `false`",
        "object" => "an object, as JSON",
        "array" => "a list, as JSON",
        "null" => "`null`",
        other => other,
    }
}

/// Inserts a value at a path. A list that is named again gets one more element.
fn insert(
    top: &mut Map<String, Value>,
    path: &[String],
    value: Value,
    again: bool,
    is_list: bool,
) -> Result<(), String> {
    let [first, rest @ ..] = path else {
        return Err("a name is missing".to_owned());
    };
    let mut slot = top.entry(first.clone()).or_insert(Value::Null);
    for step in rest {
        slot = match step.parse::<usize>() {
            Ok(index) if !slot.is_object() => element(slot, index)?,
            _ => member(slot, step)?,
        };
    }
    match slot {
        Value::Array(items) if again && is_list => match value {
            Value::Array(more) => items.extend(more),
            other => items.push(other),
        },
        _ if again => return Err("it is given twice".to_owned()),
        slot => *slot = value,
    }
    Ok(())
}

fn element(slot: &mut Value, index: usize) -> Result<&mut Value, String> {
    if slot.is_null() {
        *slot = Value::Array(Vec::new());
    }
    let Value::Array(items) = slot else {
        return Err("it leads into a value that is not a list".to_owned());
    };
    if index > MAX_INDEX {
        return Err(format!("a list has at most {MAX_INDEX} elements here"));
    }
    if items.len() <= index {
        items.resize(index + 1, Value::Null);
    }
    // The list was made long enough above.
    items
        .get_mut(index)
        .ok_or_else(|| "the list is too short".to_owned())
}

fn member<'a>(slot: &'a mut Value, step: &str) -> Result<&'a mut Value, String> {
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(entries) => Ok(entries.entry(step.to_owned()).or_insert(Value::Null)),
        _ => Err("it leads into a value that is not an object".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parsed(typed: &[&str], schema: Value) -> Result<Value, String> {
        let typed: Vec<String> = typed.iter().map(|one| (*one).to_owned()).collect();
        let mut arguments = Map::new();
        add(&mut arguments, &typed, Some(&schema)).map_err(|error| error.to_string())?;
        Ok(Value::Object(arguments))
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "limit": {"type": "integer"},
                "ratio": {"type": "number"},
                "deep": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "ids": {"type": "array", "items": {"type": "integer"}},
                "mode": {"enum": ["fast", 2, null]},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "text_or_number": {"type": ["string", "integer"]},
                "filter": {"$ref": "#/$defs/filter"},
                "a.b": {"type": "integer"},
                "anything": {}
            },
            "$defs": {"filter": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}},
                "again": {"$ref": "#/$defs/filter"}
            }}}
        })
    }

    #[test]
    fn values_have_the_type_of_the_schema() {
        for (typed, expected) in [
            (vec!["city=5"], json!({"city": "5"})),
            (vec!["city="], json!({"city": ""})),
            (vec!["city=a=b"], json!({"city": "a=b"})),
            (
                vec!["limit=-3", "ratio=2.5", "deep=true"],
                json!({"limit": -3, "ratio": 2.5, "deep": true}),
            ),
            (vec!["tags=a", "tags=b"], json!({"tags": ["a", "b"]})),
            (vec!["tags=[\"a\",\"b\"]"], json!({"tags": ["a", "b"]})),
            (vec!["ids=1", "ids=2"], json!({"ids": [1, 2]})),
            (vec!["mode=2"], json!({"mode": 2})),
            (vec!["mode=null"], json!({"mode": null})),
            (vec!["maybe=7"], json!({"maybe": 7})),
            (vec!["maybe=null"], json!({"maybe": null})),
            (vec!["text_or_number=7"], json!({"text_or_number": 7})),
            (vec!["text_or_number=x"], json!({"text_or_number": "x"})),
            (vec!["anything=7"], json!({"anything": "7"})),
            (
                vec!["anything:={\"a\": [1]}"],
                json!({"anything": {"a": [1]}}),
            ),
            (vec!["unknown=1"], json!({"unknown": "1"})),
            (vec!["filter.size=4"], json!({"filter": {"size": 4}})),
            (
                vec!["filter.again.again.size=4"],
                json!({"filter": {"again": {"again": {"size": 4}}}}),
            ),
            (
                vec!["filter.list.1.n=2"],
                json!({"filter": {"list": [null, {"n": 2}]}}),
            ),
            (vec!["a.b=1"], json!({"a.b": 1})),
        ] {
            assert_eq!(parsed(&typed, schema()), Ok(expected), "{typed:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_reason() {
        for (typed, expected) in [
            (vec!["limit=x"], "`limit=x`: expected an integer"),
            (vec!["limit=1.5"], "`limit=1.5`: expected an integer"),
            (vec!["deep=yes"], "`deep=yes`: expected `true` or `false`"),
            (vec!["filter=x"], "`filter=x`: expected an object, as JSON"),
            (vec!["ids=x"], "`ids=x`: expected an integer"),
            (
                vec!["city"],
                "`city`: expected `name=value`, or `name:=JSON`",
            ),
            (vec!["=x"], "`=x`: expected `name=value`, or `name:=JSON`"),
            (vec!["city=a", "city=b"], "`city=b`: it is given twice"),
            (
                vec!["city=a", "city.x=b"],
                "`city.x=b`: it leads into a value that is not an object",
            ),
            (
                vec!["filter.list.5000.n=1"],
                "`filter.list.5000.n=1`: a list has at most 1000 elements here",
            ),
        ] {
            assert_eq!(parsed(&typed, schema()), Err(expected.to_owned()));
        }
        let bad = parsed(&["anything:={"], schema()).unwrap_err();
        assert!(bad.starts_with("`anything:={`: not valid JSON"), "{bad}");
    }

    #[test]
    fn unknown_names_are_found() {
        let arguments = json!({"city": 1, "citty": 2});
        let arguments = arguments.as_object().unwrap();
        assert_eq!(unknown(arguments, Some(&schema())), ["citty"]);
        assert!(unknown(arguments, None).is_empty());
    }

    proptest! {
        #[test]
        fn any_argument_is_read_or_refused(typed in prop::collection::vec("[a-z.0-9:=\\[\\]{}\" -]{0,20}", 0..5)) {
            let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
            let _ = parsed(&typed, schema());
        }

        #[test]
        fn json_is_kept(value in "[a-z ]{0,10}", number in any::<i32>()) {
            let json = json!([value, number]);
            prop_assert_eq!(
                parsed(&[&format!("anything:={json}")], schema()),
                Ok(json!({"anything": json}))
            );
        }
    }
}
