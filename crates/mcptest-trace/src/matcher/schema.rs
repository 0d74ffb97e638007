//! The JSON Schema of the matcher language, so that editors complete and check it.

use schemars::{Schema, SchemaGenerator, json_schema};

/// `x-mcptest-*` annotations are for our own messages; other tools ignore them.
#[must_use]
pub fn matcher_schema(generator: &mut SchemaGenerator) -> Schema {
    const NAME: &str = "Matcher";
    if !generator.definitions().contains_key(NAME) {
        let this = serde_json::json!({ "$ref": "#/$defs/Matcher" });
        let list = |description: &str| serde_json::json!({"type": "array", "items": this, "minItems": 1, "description": description});
        let values = |description: &str| serde_json::json!({"type": "array", "minItems": 1, "description": description});
        let nested =
            |description: &str| serde_json::json!({"allOf": [this], "description": description});
        let number =
            |description: &str| serde_json::json!({"type": "number", "description": description});
        let mut schema = serde_json::json!({
            "type": "object",
            "description": "What a value must look like; several keys must all hold.",
            "x-mcptest-expected": "a matcher, such as `exact: value`",
            "minProperties": 1,
            "additionalProperties": false,
            "properties": {
                "exact": {"description": "Equals this deeply; numbers by value."},
                "contains": {"description": "Substring of a string, element (or multiset) of a list, subset of an object."},
                "icontains": {"description": "As contains, without regard to case."},
                "contains-all": values("Contains every one of these."),
                "contains_all": {"x-mcptest-alias-of": "contains-all", "type": "array", "minItems": 1},
                "contains-any": values("Contains at least one of these."),
                "contains_any": {"x-mcptest-alias-of": "contains-any", "type": "array", "minItems": 1},
                "not": nested("Does not match this."),
                "any-of": list("Matches at least one of these."),
                "any_of": {"x-mcptest-alias-of": "any-of", "type": "array", "items": this, "minItems": 1},
                "all-of": list("Matches every one of these."),
                "all_of": {"x-mcptest-alias-of": "all-of", "type": "array", "items": this, "minItems": 1},
                "any": nested("A list of which at least one element matches."),
                "every": nested("A list of which every element matches."),
                "none": nested("A list of which no element matches."),
                "regex": {"type": "string", "description": "A string in which this regular expression is found."},
                "schema": {"type": ["object", "boolean"], "description": "Valid under this JSON Schema."},
                "length": {
                    "description": "This many characters, elements or keys.",
                    "x-mcptest-expected": "a count, or comparisons such as `{\">=\": 1}`",
                    "anyOf": [
                        {"type": "integer", "minimum": 0},
                        {"type": "object", "minProperties": 1, "additionalProperties": false, "properties": {
                            ">=": {"type": "number"}, ">": {"type": "number"}, "<=": {"type": "number"},
                            "<": {"type": "number"}, "==": {"type": "number"}, "!=": {"type": "number"}}}
                    ]
                },
                "type": {"enum": ["string", "number", "integer", "boolean", "array", "object", "null"], "description": "Is of this type."},
                "exists": {"type": "boolean", "description": "Is there, or is not."},
                ">=": number("At least."), ">": number("More than."), "<=": number("At most."), "<": number("Less than."),
                "==": {"description": "Equals, as exact."},
                "!=": {"description": "Differs."},
            }
        });
        for (key, judged) in crate::judge::schemas() {
            schema["properties"][key] = judged;
        }
        generator.definitions_mut().insert(NAME.into(), schema);
    }
    json_schema!({ "$ref": "#/$defs/Matcher" })
}
