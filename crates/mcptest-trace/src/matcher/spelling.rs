//! Matchers as other tools spell them.

/// The keys of other tools, with the key here and the way to write it.
const OTHER_SPELLINGS: &[(&[&str], &str, &str)] = &[
    (
        &["equals", "equal", "eq", "is", "equal_to", "toBe", "toEqual"],
        "exact",
        "`exact: …`",
    ),
    (
        &["not_equals", "not_equal", "ne", "neq", "is_not"],
        "!=",
        "`\"!=\": …` or `not: {exact: …}`",
    ),
    (
        &["matches", "match", "pattern", "regexp", "toMatch"],
        "regex",
        "`regex: …`",
    ),
    (
        &[
            "gte",
            "ge",
            "at_least",
            "min",
            "minimum",
            "greater_than_or_equal",
        ],
        ">=",
        "`\">=\": …`",
    ),
    (
        &["gt", "greater_than", "more_than", "above"],
        ">",
        "`\">\": …`",
    ),
    (
        &[
            "lte",
            "le",
            "at_most",
            "max",
            "maximum",
            "less_than_or_equal",
        ],
        "<=",
        "`\"<=\": …`",
    ),
    (&["lt", "less_than", "below"], "<", "`\"<\": …`"),
    (
        &[
            "not_contains",
            "not-contains",
            "excludes",
            "does_not_contain",
            "notContains",
        ],
        "contains",
        "`not: {contains: …}`",
    ),
    (
        &["not_matches", "not_regex", "not-regex", "does_not_match"],
        "regex",
        "`not: {regex: …}`",
    ),
    (
        &["includes", "include", "has", "contain"],
        "contains",
        "`contains: …`",
    ),
    (
        &["starts_with", "startswith", "starts-with", "prefix"],
        "regex",
        "`regex: \"^…\"`",
    ),
    (
        &["ends_with", "endswith", "ends-with", "suffix"],
        "regex",
        "`regex: \"…$\"`",
    ),
    (
        &["in", "one_of", "oneOf", "is_one_of"],
        "any-of",
        "`any-of: [{exact: …}, …]`",
    ),
    (&["len", "size", "count"], "length", "`length: …`"),
    (
        &["json_schema", "jsonschema", "is-json"],
        "schema",
        "`schema: {…}`",
    ),
    (
        &["present", "defined", "is_defined"],
        "exists",
        "`exists: true`",
    ),
    (
        &["absent", "is_null", "undefined"],
        "exists",
        "`exists: false`",
    ),
];

/// The spelling here of a key that other tools use, where the keys of matchers are allowed.
#[must_use]
pub fn other_spelling(word: &str, is_known: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    // `exact` and `contains` together are the keys of matchers.
    if !is_known("exact") || !is_known("contains") {
        return None;
    }
    let (_, key, spelling) = OTHER_SPELLINGS
        .iter()
        .find(|(words, ..)| words.iter().any(|known| known.eq_ignore_ascii_case(word)))?;
    is_known(key).then_some(*spelling)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_tool_has_a_spelling_only_among_matchers() {
        let matchers = |key: &str| ["exact", "contains", "regex", ">="].contains(&key);
        assert_eq!(other_spelling("toEqual", &matchers), Some("`exact: …`"));
        assert_eq!(other_spelling("GTE", &matchers), Some("`\">=\": …`"));
        // `any-of` is not allowed here.
        assert_eq!(other_spelling("in", &matchers), None);
        assert_eq!(other_spelling("equals", &|key| key == "exact"), None);
        assert_eq!(other_spelling("cities", &matchers), None);
    }
}
