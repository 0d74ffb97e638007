//! Catalogs that no server should send.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use mcptest_numbers::random::SplitMix64;
use serde_json::{Map, Value, json};

/// One place is damaged per this number of tools of a catalog, plus `EXTRA_DAMAGED_PLACES`.
const TOOLS_PER_DAMAGED_PLACE: u64 = 3;
const EXTRA_DAMAGED_PLACES: u64 = 3;

/// Copies of catalogs with members removed, replaced by values of other types, doubled, or filled
/// with odd texts. The same every time.
pub fn damaged(files: &[PathBuf], copies: u64, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for (seed, file) in (0..).zip(files) {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let catalog: Value = serde_json::from_str(&text)
            .with_context(|| format!("{} is not valid JSON", file.display()))?;
        let name = super::stem(file);
        for copy in 0..copies {
            let mut random = SplitMix64::new(seed * copies + copy);
            let mut tools = catalog["tools"].as_array().cloned().unwrap_or_default();
            for _ in 0..tools.len() as u64 / TOOLS_PER_DAMAGED_PLACE + EXTRA_DAMAGED_PLACES {
                let place = random.below(tools.len() as u64);
                if let Some(tool) = tools.get_mut(usize::try_from(place)?) {
                    wound(tool, &mut random);
                }
            }
            made.push(write(
                folder,
                &format!("{name}-{copy}"),
                &json!({"tools": tools}),
            )?);
        }
    }
    Ok(made)
}

/// Goes down at random and changes what it ends at.
fn wound(value: &mut Value, random: &mut SplitMix64) {
    let deeper = random.below(5) > 0;
    match value {
        Value::Object(members) if deeper && !members.is_empty() => {
            let place = random.below(members.len() as u64);
            let Some(key) = members
                .keys()
                .nth(usize::try_from(place).unwrap_or(0))
                .cloned()
            else {
                return;
            };
            match random.below(6) {
                0 => {
                    members.shift_remove(&key);
                }
                1 => {
                    // The same under a name that has to be escaped.
                    let twin = members[&key].clone();
                    members.insert(format!("{key}/~ä"), twin);
                }
                _ => wound(&mut members[&key], random),
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let place = usize::try_from(random.below(items.len() as u64)).unwrap_or(0);
            wound(&mut items[place], random);
        }
        other => *other = odd(random),
    }
}

/// Something that nobody expects there.
fn odd(random: &mut SplitMix64) -> Value {
    match random.below(18) {
        0 => Value::Null,
        1 => true.into(),
        2 => false.into(),
        3 => (-7).into(),
        4 => u64::MAX.into(),
        5 => "".into(),
        6 => " \t\n ".into(),
        7 => "日本語のツール 🙂🙂🙂 e\u{301} \u{200b}\u{feff}".into(),
        8 => "\u{1b}[31mred\u{1b}[0m <script>alert(1)</script> <|endoftext|>".into(),
        9 => "x".repeat(30_000).into(),
        10 => "ß".repeat(19).into(),
        11 => "word ".repeat(101).into(),
        12 => json!([]),
        13 => json!({}),
        14 => json!(["string", "null"]),
        15 => {
            json!({"type": "object", "properties": {"inner": {"type": ["array", "null"], "items": {"enum": []}}}})
        }
        16 => json!({"$ref": "#/properties/a"}),
        _ => json!([{"type": "string"}, 1, null]),
    }
}

/// Catalogs for which reading must be bounded or careful.
pub fn made(folder: &Path) -> Result<Vec<PathBuf>> {
    let text = "Counts the words of a text. Returns a number.";
    let tool = |name: &str, schema: Value| json!({"name": name, "description": text, "inputSchema": schema});
    let mut nested = json!({"type": "string"});
    for _ in 0..25 {
        nested = json!({"type": "object", "properties": {"a": nested}});
    }
    let many: Map<String, Value> = (0..3000)
        .map(|number| {
            (
                format!("p{number}"),
                json!({"type": "string", "description": "d"}),
            )
        })
        .collect();
    let circle = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/node"}, "self": {"$ref": "#"}},
        "required": ["next", "self"],
        "$defs": {"node": {"$ref": "#/$defs/edon"}, "edon": {"$ref": "#/$defs/node"}},
    });
    let keys = json!({
        "type": "object",
        "properties": {"": {}, "a/b~c": {}, "日本": {"type": "string"}, "__proto__": {"type": "array"}, "10": {}, "9": {}},
        "required": ["", "a/b~c", "a/b~c", "not there"],
    });
    let catalogs = [
        ("nothing", json!({"tools": []})),
        (
            "no-tools",
            json!({"tools": [null, 1, "x", [], {}, {"name": null}, {"name": " "}]}),
        ),
        ("nested", json!({"tools": [tool("count", nested)]})),
        (
            "many-properties",
            json!({"tools": [tool("count", json!({"type": "object", "properties": many}))]}),
        ),
        ("circle", json!({"tools": [tool("count", circle)]})),
        ("keys", json!({"tools": [tool("count", keys)]})),
        (
            "twins",
            json!({"tools": [tool("same", json!({"type": "object"})), tool("same", json!(null))]}),
        ),
        (
            "huge-text",
            json!({"tools": [{"name": "n", "description": "lorem ipsum ".repeat(80_000)}]}),
        ),
        (
            "many-tools",
            json!({"tools": vec![tool("t", json!({"type": "object"})); 2000]}),
        ),
    ];
    catalogs
        .iter()
        .map(|(name, catalog)| write(folder, name, catalog))
        .collect()
}

/// Files in which there is no catalog.
pub fn refused(folder: &Path) -> Result<Vec<PathBuf>> {
    let deep = format!(
        "{{\"tools\": {}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let files: [(&str, &[u8]); 6] = [
        ("empty", b""),
        ("number", b"7"),
        ("broken", b"{\"tools\": [{\"name\": \"a\""),
        ("no-list", b"{\"tools\": {\"name\": \"a\"}}"),
        ("bytes", b"{\"tools\": [{\"name\": \"\xff\xfe\"}]}"),
        ("deep", deep.as_bytes()),
    ];
    let write = |(name, bytes): &(&str, &[u8])| {
        let path = folder.join(format!("refused-{name}.json"));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    };
    files.iter().map(write).collect()
}

fn write(folder: &Path, name: &str, catalog: &Value) -> Result<PathBuf> {
    let path = folder.join(format!("{name}.json"));
    std::fs::write(&path, catalog.to_string())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_done_and_repeatable() {
        let tool = json!({"name": "a", "inputSchema": {"type": "object", "properties": {"b": {"type": "string"}}}});
        let damage = |seed| {
            let mut value = tool.clone();
            wound(&mut value, &mut SplitMix64::new(seed));
            value
        };
        assert!((0..20).all(|seed| damage(seed) == damage(seed)));
        assert!((0..20).filter(|seed| damage(*seed) != tool).count() > 15);
    }
}
