//! Of the calls that can be the action of a claim.

use rustc_hash::FxHashSet;
use serde_json::Value;

use crate::call_words::{Listed, is_mutating_name};
use serde_json::json;

use super::*;
use mcptest_catalog::lexical;
use mcptest_trace::trace::ToolCall;

fn fit(verb: &'static str, noun: &str, tool: &str, args: Value) -> Option<Fit> {
    let call = ToolCall {
        args: Some(args.into()),
        ..ToolCall::new(None, tool)
    };
    let nouns = if noun.is_empty() {
        vec![]
    } else {
        vec![noun.to_owned()]
    };
    let claim = Claim {
        verb,
        nouns,
        places: Vec::new(),
        targets: Vec::new(),
        alternative: None,
        open: None,
        past: false,
        news: false,
        fresh: false,
        weak: false,
        listed: false,
        own_thing: false,
        indefinite: false,
        others: false,
        joined: false,
        pronoun: false,
        shown: false,
        talk: false,
        chosen: false,
        named: false,
        how: How::Active,
        from: 0,
        to: 0,
    };
    let mut words = CallWords::new(&call, Listed::Nowhere);
    words.add_arguments(&call);
    words.fits(
        &claim,
        crate::run_evidence::CallResults::none(),
        Touch::Nothing,
    )
}

#[test]
fn every_token_of_the_action_is_in_the_tool() {
    assert_eq!(
        fit("create", "issue", "create_issue", json!({})),
        Some(Fit::Exact)
    );
    assert_eq!(
        fit("create", "issues", "createIssue", json!({})),
        Some(Fit::Exact)
    );
    assert_eq!(
        fit("update", "flight", "update_reservation_flights", json!({})),
        Some(Fit::Exact)
    );
    assert_eq!(fit("create", "branch", "create_issue", json!({})), None);
    assert_eq!(fit("delete", "issue", "create_issue", json!({})), None);
    assert_eq!(fit("create", "issue", "update_issue", json!({})), None);
    assert_eq!(fit("close", "issue", "get_issue", json!({})), None);
    assert_eq!(fit("publish", "post", "get_post", json!({})), None);
}

#[test]
fn another_word_for_the_same_action() {
    assert_eq!(
        fit("remove", "file", "delete_file", json!({})),
        Some(Fit::Related)
    );
    assert_eq!(
        fit("add", "tags", "update_article_tags", json!({})),
        Some(Fit::Related)
    );
    assert_eq!(
        fit("add", "label", "update_issue", json!({"labels": ["x"]})),
        Some(Fit::Related)
    );
    assert_eq!(
        fit("close", "issue", "update_issue", json!({"state": "closed"})),
        Some(Fit::Related)
    );
    assert_eq!(
        fit("close", "issue", "update_issue", json!({"state": "open"})),
        None
    );
    assert_eq!(
        fit(
            "create",
            "report",
            "write_file",
            json!({"path": "out/report.md"})
        ),
        Some(Fit::Related)
    );
    assert_eq!(
        fit(
            "delete",
            "log",
            "run_shell",
            json!({"command": "rm app.log"})
        ),
        Some(Fit::Exact)
    );
    assert_eq!(
        fit("create", "issue", "run_job", json!({"job": "issue"})),
        None
    );
    assert_eq!(
        fit("update", "cart", "add_to_cart", json!({})),
        Some(Fit::Related)
    );
    assert_eq!(
        fit(
            "create",
            "mindmap",
            "convert_markdown_to_mindmap",
            json!({})
        ),
        Some(Fit::Related)
    );
    assert_eq!(
        fit("merge", "pdf", "pdf_merger", json!({})),
        Some(Fit::Exact)
    );
    assert_eq!(
        fit("send", "refund", "refund_order", json!({})),
        Some(Fit::Related)
    );
    assert_eq!(fit("delete", "refund", "refund_order", json!({})), None);
    assert_eq!(
        fit(
            "delete",
            "record",
            "manage_record",
            json!({"action": "delete"})
        ),
        Some(Fit::Exact)
    );
    assert_eq!(
        fit("add", "function", "edit_file", json!({"path": "a.py"})),
        Some(Fit::Related)
    );
    assert_eq!(
        fit("create", "issue", "write_file", json!({"path": "a.py"})),
        None
    );
    assert_eq!(
        fit("update", "address", "modify_user_address", json!({})),
        Some(Fit::Related)
    );
    assert_eq!(fit("send", "", "send_mail", json!({})), Some(Fit::Exact));
    assert_eq!(fit("send", "invoice", "send", json!({})), Some(Fit::Exact));
}

#[test]
fn mutating_names_have_a_whole_verb() {
    assert!(is_mutating_name("create_issue"));
    assert!(is_mutating_name("post_search"));
    assert!(is_mutating_name("repoDelete"));
    assert!(!is_mutating_name("list_posts"));
    assert!(!is_mutating_name("get_settings"));
    assert!(!is_mutating_name("run_job"));
    assert!(!is_mutating_name(""));
}

#[test]
fn mention_needs_every_salient_word() {
    let text = |text: &str| {
        lexical::words(text)
            .iter()
            .map(|word| fold(word))
            .collect::<FxHashSet<_>>()
    };
    let call = |name: &str| CallWords::new(&ToolCall::new(None, name), Listed::Nowhere);
    assert!(call("create_issue").is_mentioned(&text("I created two issues")));
    assert!(!call("create_issue").is_mentioned(&text("I created it")));
    assert!(call("do_it_now").is_mentioned(&text("now")));
    assert!(!call("ls").is_mentioned(&text("I looked around")));
    assert!(call("ls").is_mentioned(&text("I ran `ls`")));
    assert!(!call("").is_mentioned(&text("anything")));
}
