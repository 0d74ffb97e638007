//! Near-duplicates of real tools.

use serde_json::Value;

use crate::lexical::words;
use mcptest_numbers::random::SplitMix64;
use mcptest_trace::catalog::Tool;

/// The maximum length of a name: model providers reject longer ones.
const MAX_NAME_LENGTH: usize = 64;
/// The length of the longest suffix.
const MAX_SUFFIX_LENGTH: usize = 12;

/// The way a near-duplicate differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Version(u32),
    Internal,
    Legacy,
    Beta,
    Casing,
    Plural,
    Singular,
}

impl Kind {
    /// The addition of a truthful server to the description.
    fn remark(self) -> String {
        match self {
            Self::Version(1) => "This is version 1, kept for old clients.".to_owned(),
            Self::Version(version) => format!("This is version {version}, still in preview."),
            Self::Internal => "For internal use by the platform team.".to_owned(),
            Self::Legacy => "Deprecated, kept for old clients.".to_owned(),
            Self::Beta => "Beta: results may be incomplete.".to_owned(),
            Self::Casing => "Alias for clients with another naming style.".to_owned(),
            Self::Plural => "Works on several items at once.".to_owned(),
            Self::Singular => "Works on one item only.".to_owned(),
        }
    }

    fn label(self) -> String {
        match self {
            Self::Version(version) => format!("v{version}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

/// Returns near-duplicates without end, in an order that the generator decides. The first ones mix
/// all kinds; further versions follow.
pub(super) fn near_duplicates<'a>(
    tool: &'a Tool,
    random: &mut SplitMix64,
) -> impl Iterator<Item = Tool> + use<'a> {
    let server = tool.server().map_or(0, |server| server.len() + 2);
    let stem = stem(
        tool.name(),
        MAX_NAME_LENGTH.saturating_sub(server + MAX_SUFFIX_LENGTH),
    );
    let mut first: Vec<(String, Kind)> = [
        (Kind::Version(2), "v2"),
        (Kind::Version(3), "v3"),
        (Kind::Version(1), "v1"),
        (Kind::Internal, "internal"),
        (Kind::Legacy, "legacy"),
        (Kind::Beta, "beta"),
    ]
    .into_iter()
    .map(|(kind, suffix)| (with_suffix(stem, suffix), kind))
    .collect();
    first.extend(casings(stem).into_iter().map(|name| (name, Kind::Casing)));
    first.extend(other_number(stem));
    random.shuffle(&mut first);
    let more = (4..).map(move |version| {
        (
            with_suffix(stem, &format!("v{version}")),
            Kind::Version(version),
        )
    });
    first
        .into_iter()
        .chain(more)
        .map(|(name, kind)| disguise(tool, &name, kind))
}

/// At most this number of bytes of a name, but at least its beginning.
fn stem(name: &str, max: usize) -> &str {
    let mut end = max.max(MAX_SUFFIX_LENGTH).min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Words of a name joined by `_` or `-`, or by a change of case.
fn is_camel(name: &str) -> bool {
    !name.contains(['_', '-', '.']) && words(name).len() > 1
}

fn with_suffix(name: &str, suffix: &str) -> String {
    if is_camel(name) {
        format!("{name}{}", capital(suffix))
    } else if name.contains('-') && !name.contains('_') {
        format!("{name}-{suffix}")
    } else {
        format!("{name}_{suffix}")
    }
}

fn capital(word: &str) -> String {
    let mut characters = word.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().chain(characters).collect())
        .unwrap_or_default()
}

/// The same words in the other styles of names.
fn casings(name: &str) -> Vec<String> {
    // Other characters belong to the name, and dropping them would be more than casing.
    if !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    {
        return Vec::new();
    }
    let words = words(name);
    let pascal: String = words.iter().map(|word| capital(word)).collect();
    let camel: String = words
        .iter()
        .enumerate()
        .map(|(index, word)| {
            if index == 0 {
                word.clone()
            } else {
                capital(word)
            }
        })
        .collect();
    let mut styles = vec![words.join("_"), camel, pascal, words.join("-")];
    let mut seen = vec![name.to_owned()];
    styles.retain(|style| {
        let new = !style.is_empty() && !seen.contains(style);
        seen.push(style.clone());
        new
    });
    styles
}

/// The name with its last word in the plural instead of the singular, or the other way round.
fn other_number(name: &str) -> Option<(String, Kind)> {
    let at = name
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_ascii_alphabetic())
        .last()
        .map(|(at, _)| at)?;
    let (head, tail) = name.split_at(at);
    let lower = tail.to_lowercase();
    if let Some(singular) = singular(&lower) {
        // The endings are in lowercase even if the word begins with a capital letter.
        let kept = tail.get(..singular.len().min(tail.len()))?;
        let word = if lower.starts_with(&singular) {
            kept.to_owned()
        } else {
            format!(
                "{}{}",
                tail.get(..singular.len() - 1)?,
                &singular[singular.len() - 1..]
            )
        };
        return Some((format!("{head}{word}"), Kind::Singular));
    }
    let ends = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
    let consonant_y = lower.ends_with('y') && !ends(&["ay", "ey", "oy", "uy"]) && lower.len() > 1;
    let word = if consonant_y {
        format!("{}ies", tail.get(..tail.len() - 1)?)
    } else if ends(&["s", "x", "z", "ch", "sh"]) {
        format!("{tail}es")
    } else {
        format!("{tail}s")
    };
    Some((format!("{head}{word}"), Kind::Plural))
}

/// The singular of a word that looks like a plural.
pub(super) fn singular(word: &str) -> Option<String> {
    let cut = |ending: &str, with: &str| {
        word.strip_suffix(ending)
            .filter(|rest| rest.len() > 1)
            .map(|rest| format!("{rest}{with}"))
    };
    if ["ss", "us", "is"]
        .iter()
        .any(|ending| word.ends_with(ending))
    {
        return None;
    }
    cut("ies", "y")
        .or_else(|| {
            ["ses", "xes", "zes", "ches", "shes"]
                .iter()
                .any(|ending| word.ends_with(ending))
                .then(|| cut("es", ""))
                .flatten()
        })
        .or_else(|| cut("s", ""))
}

/// The tool under another name, with a remark that fits the name; everything else as it was.
fn disguise(tool: &Tool, name: &str, kind: Kind) -> Tool {
    let mut raw = tool.raw().clone();
    let description = tool.description().unwrap_or("").trim();
    let stop = if description.is_empty() || description.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    let description = format!("{description}{stop} {}", kind.remark());
    raw.insert("name".into(), name.into());
    raw.insert("description".into(), description.trim().into());
    let label = kind.label();
    let retitle = |title: &mut Value| {
        if let Value::String(text) = title {
            *text = format!("{text} ({label})");
        }
    };
    raw.get_mut("title").map(retitle);
    raw.get_mut("annotations")
        .and_then(|annotations| annotations.get_mut("title"))
        .map(retitle);
    Tool::from_listing(None, &Value::Object(raw)).unwrap_or_else(|| tool.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> Tool {
        Tool::from_listing(
            Some("shop"),
            &json!({"name": name, "title": "Search", "description": "Search the product catalog by keyword",
                "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}}),
        )
        .unwrap()
    }

    fn names(name: &str, count: usize) -> Vec<String> {
        near_duplicates(&tool(name), &mut SplitMix64::new(1))
            .take(count)
            .map(|tool| tool.name().to_owned())
            .collect()
    }

    #[test]
    fn kinds_of_names() {
        let mut all = names("search_products", 12);
        all.sort_unstable();
        assert_eq!(
            all,
            [
                "SearchProducts",
                "search-products",
                "searchProducts",
                "search_product",
                "search_products_beta",
                "search_products_internal",
                "search_products_legacy",
                "search_products_v1",
                "search_products_v2",
                "search_products_v3",
                "search_products_v4",
                "search_products_v5",
            ]
        );
        let camel = names("getProduct", 10);
        for name in [
            "getProductV2",
            "getProductInternal",
            "get_product",
            "GetProduct",
            "get-product",
            "getProducts",
        ] {
            assert!(camel.iter().any(|other| other == name), "{name}: {camel:?}");
        }
        assert!(names("list-items", 10).contains(&"list-items-v2".to_owned()));
        assert!(names("http.get", 8).contains(&"http.get_v2".to_owned()));
        assert!(!names("http.get", 8).contains(&"httpGet".to_owned()));
        assert!(names("search", 10).contains(&"Search".to_owned()));
        assert!(names("Größe", 7).contains(&"Größe_v2".to_owned()));
        assert_eq!(names("", 3).len(), 3);
    }

    #[test]
    fn numbers() {
        for (name, other) in [
            ("get_product", "get_products"),
            ("search_products", "search_product"),
            ("list_cities", "list_city"),
            ("get_city", "get_cities"),
            ("find_box", "find_boxes"),
            ("find_boxes", "find_box"),
            ("get_day", "get_days"),
            ("get_address", "get_addresses"),
            ("get_status", "get_statuses"),
            ("getItems", "getItem"),
            ("get_v2", "-"),
            ("as", "ases"),
        ] {
            let found = other_number(name).map_or_else(|| "-".to_owned(), |(name, _)| name);
            assert_eq!(found, other, "{name}");
        }
    }

    #[test]
    fn the_rest_is_copied_with_a_remark() {
        let original = tool("search_products");
        for copy in near_duplicates(&original, &mut SplitMix64::new(3)).take(20) {
            assert_eq!(copy.server(), Some("shop"));
            assert_eq!(copy.input_schema(), original.input_schema());
            let description = copy.description().unwrap();
            assert!(
                description.starts_with("Search the product catalog by keyword. "),
                "{description}"
            );
            assert_ne!(copy.raw()["title"], original.raw()["title"]);
        }
        let bare = Tool::from_listing(None, &json!({"name": "f"})).unwrap();
        let copy = near_duplicates(&bare, &mut SplitMix64::new(3))
            .next()
            .unwrap();
        assert!(!copy.description().unwrap().is_empty());
    }

    #[test]
    fn long_names_stay_within_what_providers_accept() {
        let long = "a".repeat(70);
        assert!(
            names(&long, 30)
                .iter()
                .all(|name| name.len() + "shop__".len() <= 64)
        );
    }
}
