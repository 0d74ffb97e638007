//! DESC-004: the description contains no common verb.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{Hit, Rule, Severity, Smell, description};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-004",
    severity: Severity::Warning,
    title: "the description contains no common verb",
    why: "A verb names what the tool does: read, change, search, send. Without one a model cannot categorise the tool. The rule knows some three hundred verbs and their usual forms; an empty description is DESC-001 alone.",
    bad: r#"{"name": "weather", "description": "Current temperature and sky conditions for a city.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::Uninformative),
    check,
};

/// Verbs for the actions of tools.
const VERBS: &str = "accept access acknowledge acquire activate add adjust aggregate allow analyse analyze answer append apply approve archive ask \
    assign attach authenticate authorize backup block book browse build buy calculate call cancel capture change check choose classify clean clear \
    click clone close collect combine commit compare compile complete compose compress compute configure confirm connect consume contain control \
    convert copy count crawl create cut debug decode decompress decrease decrypt define delete deliver deny deploy describe detect determine diff \
    disable discard discover dismiss dispatch display divide download draft drag draw drop duplicate echo edit embed emit enable encode encrypt end \
    enqueue ensure enter enumerate erase estimate evaluate examine execute exit expand explain explore export extract fail fetch fill filter find \
    finish follow force forget fork format forward generate get give go grant grep group handle help hide highlight hover identify import include \
    increase index infer insert inspect install interact invite invoke issue join kill label launch let list listen load locate lock log look \
    lookup make manage map mark match measure merge migrate modify monitor move multiply mute name navigate notify observe obtain offer open \
    optimize order parse paste patch pause perform pin ping place plan play plot poll populate post predict prepare press preview print process \
    produce profile provide publish pull purge push put query queue rank read rebuild receive recommend record redirect reduce refresh register \
    reject release reload remove rename render reopen replace reply report request reset resize resolve respond restart restore resume retrieve \
    return reveal revert review revoke rewrite roll rotate route run sample save scale scan schedule scrape scroll search see select send separate \
    serve set share show sign silence simulate skip sleep snapshot solve sort speak split start stop store stream submit subscribe subtract suggest \
    summarise summarize support suspend swap swipe switch sync synchronise synchronize tag take tap tell terminate test toggle track transcribe \
    transfer transform translate trigger truncate type unarchive unassign unblock undo uninstall unlock unmute unpin unsubscribe update upgrade \
    upload upsert use validate verify view visit visualise visualize wait wake watch write yield zoom";

fn check(tool: &Tool) -> Vec<Hit> {
    let text = description(tool);
    if text.is_empty() || has_verb(text) {
        return Vec::new();
    }
    vec![
        Hit::new(
            "the description has no common verb",
            "start with a verb: `Get …`, `Create …`, `Search …`",
        )
        .at("/description"),
    ]
}

static KNOWN: LazyLock<BTreeSet<&str>> = LazyLock::new(|| VERBS.split_whitespace().collect());

fn has_verb(text: &str) -> bool {
    text.split(|character: char| !character.is_alphabetic())
        .filter(|word| !word.is_empty())
        .any(|word| {
            let forms = forms(&word.to_lowercase());
            forms.iter().any(|form| KNOWN.contains(form.as_str()))
        })
}

/// The possible base forms of a word: `query` for `queries`, `stop` for `stopped`.
fn forms(word: &str) -> Vec<String> {
    let mut forms = vec![word.to_owned()];
    for ending in ["s", "es", "ed", "d", "ing"] {
        if let Some(stem) = word.strip_suffix(ending) {
            forms.push(stem.to_owned());
            forms.push(format!("{stem}e"));
            if let Some(y) = stem.strip_suffix('i') {
                forms.push(format!("{y}y"));
            }
            let mut back = stem.chars().rev();
            if let (Some(last), Some(before)) = (back.next(), back.next())
                && last == before
            {
                forms.push(stem[..stem.len() - last.len_utf8()].to_owned());
            }
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_verbs_count() {
        for text in [
            "Shows the tree",
            "Queries a table",
            "Used for things",
            "Stopped jobs",
            "Making maps",
            "LIST it",
        ] {
            assert!(has_verb(text), "{text}");
        }
        for text in [
            "Current temperature of a city",
            "A list-free sentence about cats",
        ] {
            assert_eq!(has_verb(text), text.contains("list"), "{text}");
        }
    }
}
