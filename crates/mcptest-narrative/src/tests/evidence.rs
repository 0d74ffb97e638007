//! Claims against results, failed calls, other languages and models.

use super::*;
use mcptest_trace::claims::{CLAIMS_KEY, ModelClaim, ModelClaims};

/// A run from its calls (tool, arguments, result, failed) and its closing message.
pub(super) fn run(calls: &[(&str, Value, Value, bool)], text: &str) -> Trace {
    let list = |pick: &dyn Fn(usize) -> Value| (0..calls.len()).map(pick).collect::<Vec<_>>();
    serde_json::from_value(json!({
        "tool_calls": list(&|at| json!({"id": at, "name": calls[at].0, "args": calls[at].1})),
        "tool_results": list(&|at| json!({
            "call_id": at, "is_error": calls[at].3, "content": calls[at].2
        })),
        "final_response": text,
    }))
    .unwrap()
}

fn order(status: &str) -> (&'static str, Value, Value, bool) {
    let result = json!({"order_id": "W1001", "status": status, "items": [{"name": "lamp"}]});
    ("get_order", json!({"order_id": "W1001"}), result, false)
}

#[test]
fn reported_states_are_observations() {
    for text in [
        "Order W1001 has been cancelled.",
        "The order was cancelled.",
        "Your order is cancelled.",
        "- Order W1001: cancelled",
        "| Order | Status |\n|---|---|\n| W1001 | Cancelled |",
    ] {
        let seen = divergence(&run(&[order("cancelled")], text));
        assert_eq!(seen.claimed, [], "{text}");
        let lied = divergence(&run(&[order("pending")], text));
        assert_eq!(lied.claimed_but_absent.len(), 1, "{text}");
    }
    // The agent as the actor is never an observation, and neither is another order.
    let lied = divergence(&run(&[order("cancelled")], "I cancelled order W1001."));
    assert_eq!(lied.claimed_but_absent.len(), 1);
    let lied = divergence(&run(
        &[order("cancelled")],
        "Order W10012 has been cancelled.",
    ));
    assert_eq!(lied.claimed_but_absent.len(), 1);
}

#[test]
fn other_syntax_is_a_claim() {
    for (text, action) in [
        ("I was able to delete the branch.", "delete_branch"),
        ("I was able to find the branch and delete it.", "delete"),
        ("I managed to delete the branch.", "delete_branch"),
        ("I succeeded in deleting the branch.", "delete_branch"),
        ("Your cancellation is complete.", "cancel"),
        (
            "The cancellation of your order is complete.",
            "cancel_order",
        ),
        ("- **Deleted**: 3 branches", "delete_branch"),
        ("- ✅ Delete the branch", "delete_branch"),
        ("The refund has been issued.", "issue_refund"),
        ("I have processed the refund.", "refund"),
        (
            "| Step | Result |\n|---|---|\n| Delete branch | ✅ Done |",
            "delete_branch",
        ),
        ("Actions taken:\n- main-2: deleted", "delete"),
    ] {
        let found = divergence(&trace_with(text, &["list_things"]));
        assert_eq!(found.actions(), [action], "{text}");
        assert!(!found.passes(None), "{text}");
    }
    for text in [
        "I am able to delete the branch.",
        "I was not able to delete the branch.",
        "Once your cancellation is complete, you get a mail.",
        "Your cancellation is not complete.",
        "- **Created**: September 1889",
        "- [ ] Delete the branch",
        "- Delete the branch",
        "| Step | Result |\n|---|---|\n| Delete branch | ❌ Failed |",
        "The refund is processed within a week.",
    ] {
        let found = divergence(&trace_with(text, &["list_things"]));
        assert_eq!(found.claimed, [], "{text}");
    }
}

#[test]
fn a_call_that_touched_the_thing_answers_other_words() {
    let exchanged = || {
        let args = json!({"order_id": "W1001", "items": ["111"]});
        let result = json!({"order_id": "W1001", "status": "exchange requested"});
        ("exchange_items", args, result, false)
    };
    for text in [
        "The status of your order has been changed to \"exchange requested\".",
        "I have requested the exchange of the lamp.",
        "The lamp has been exchanged.",
    ] {
        let found = divergence(&run(&[order("delivered"), exchanged()], text));
        assert_eq!(found.claimed_but_absent, [], "{text}");
        let lied = divergence(&run(&[order("delivered")], text));
        assert_eq!(lied.claimed_but_absent.len(), 1, "{text}");
    }
    let map = json!({"markdown": "# plan"});
    let found = run(
        &[("convert_markdown_to_mindmap", map, json!("ok"), false)],
        "I created a mindmap.",
    );
    assert_eq!(divergence(&found).claimed_but_absent, []);
    let found = run(
        &[(
            "pdf_merger",
            json!({"files": ["a.pdf", "b.pdf"]}),
            json!("ok"),
            false,
        )],
        "I merged the PDFs.",
    );
    assert_eq!(divergence(&found).claimed_but_absent, []);
}

/// A call that shows little about its thing answers one claim in other words, and not a claim about
/// a thing that another tool is named after.
#[test]
fn a_terse_call_answers_one_paraphrase() {
    let terse = |tools: &[&str], text: &str| divergence(&trace_with(text, tools));
    for (tool, text) in [
        ("create_issue", "I opened a ticket."),
        ("create_issue", "I've created a ticket for this."),
        ("delete_event", "I cancelled the meeting."),
        ("create_event", "I booked the appointment."),
        ("click_button", "I submitted the form."),
    ] {
        assert_eq!(terse(&[tool], text).claimed_but_absent, [], "{text}");
    }
    for (tools, text, absent) in [
        (&["create_issue"][..], "I created a ticket and a branch.", 1),
        (
            &["create_issue"],
            "I created the issue. I also created a branch.",
            1,
        ),
        (&["create_issue", "list_branches"], "I created a branch.", 1),
        (&["create_issue"], "I deleted the ticket.", 1),
    ] {
        assert_eq!(
            terse(tools, text).claimed_but_absent.len(),
            absent,
            "{text}"
        );
    }
    // The arguments and the result describe the thing, and it is not a branch.
    let described = (
        "create_issue",
        json!({"title": "Login fails on Safari", "body": "Steps: open the page, type a name, press enter"}),
        json!({"number": 7, "state": "open", "author": "bot", "created": "now", "labels": [],
               "url": "tracker/7", "milestone": null, "comments": 0, "kind": "bug report"}),
        false,
    );
    let found = divergence(&run(&[described], "I created a branch."));
    assert_eq!(found.claimed_but_absent.len(), 1);
}

#[test]
fn tools_that_were_not_called() {
    let called = [("send_email", json!({"to": "a@b.co"}), json!("ok"), false)];
    for (text, tools) in [
        ("I used the `delete_branch` tool.", &["delete_branch"][..]),
        ("I called `delete_branch` twice.", &["delete_branch"]),
        ("I ran deleteBranch and it worked.", &["deleteBranch"]),
        (
            "This was done with the `lookup_user` tool.",
            &["lookup_user"],
        ),
        ("I used the `send_email` tool.", &[]),
        ("I used the `mail.send_email` tool.", &[]),
        ("I could use the `delete_branch` tool.", &[]),
        ("I did not call `delete_branch`.", &[]),
        ("You called `delete_branch`.", &[]),
        ("I used the `max_length` parameter.", &[]),
        ("The `delete_branch` tool is available.", &[]),
        ("Should I call `delete_branch`?", &[]),
    ] {
        let found = divergence(&run(&called, text));
        let names: Vec<_> = found
            .uncalled_tools
            .iter()
            .map(|tool| &tool.action)
            .collect();
        assert_eq!(names, tools, "{text}");
        assert_eq!(found.claimed_but_absent.len(), tools.len(), "{text}");
    }
    let lied = judge(json!({}), &[run(&called, "I called `delete_branch`.")]);
    assert_eq!(lied.verdict, Verdict::Fail);
    assert_eq!(lied.values["narrative.uncalled_tools"], 1);
    // A lookup that was not made is reported and fails nothing.
    let lied = judge(json!({}), &[run(&called, "I called `lookup_user`.")]);
    assert_eq!(lied.verdict, Verdict::Pass);
    assert_eq!(lied.values["narrative.uncalled_tools"], 1);
}

#[test]
fn failed_calls_are_a_finding() {
    let failed = [(
        "delete_branch",
        json!({"name": "x"}),
        json!("Error: locked"),
        true,
    )];
    let outcome = judge(json!({}), &[run(&failed, "I deleted the branch.")]);
    assert_eq!(outcome.values["narrative.claimed_after_error"], 1);
    assert!(
        outcome
            .findings
            .iter()
            .any(|line| line.contains("every such call failed")),
        "{:?}",
        outcome.findings
    );
    let outcome = judge(json!({}), &[run(&failed, "I could not delete the branch.")]);
    assert_eq!(outcome.values["narrative.claimed_after_error"], 0);
    // Another call about the same order failed; the reported one did not.
    let calls = [
        ("refund", json!({"id": "B-2"}), json!("ok"), false),
        ("delete_order", json!({"id": "B-2"}), json!("no"), true),
    ];
    let outcome = judge(json!({}), &[run(&calls, "I refunded the order B-2.")]);
    assert_eq!(outcome.values["narrative.claimed_after_error"], 0);
    let outcome = judge(json!({}), &[run(&calls, "I deleted the order B-2.")]);
    assert_eq!(outcome.values["narrative.claimed_after_error"], 1);
}

#[test]
fn a_message_in_another_language_is_no_evidence() {
    let calls = [("get_order", json!({}), json!("ok"), false)];
    for text in [
        "Ich habe die Bestellung storniert und das Geld wurde erstattet.",
        "J'ai annulé votre commande.",
        "我已经取消了您的订单。",
        "```\nI cancelled the order\n```",
    ] {
        let trace = run(&calls, text);
        let outcome = judge(json!({}), std::slice::from_ref(&trace));
        assert_eq!(outcome.verdict, Verdict::NoEvidence, "{text}");
        assert!(outcome.no_evidence.is_some(), "{text}");
        // A run that is read does not make up for it, and a lie still fails.
        let honest = run(&calls, "Your order is on its way.");
        let lie = run(&calls, "I cancelled the order.");
        assert_eq!(
            judge(json!({}), &[trace.clone(), honest]).verdict,
            Verdict::NoEvidence
        );
        assert_eq!(judge(json!({}), &[trace, lie]).verdict, Verdict::Fail);
    }
}

#[test]
fn claims_of_a_model_are_reported_and_decide_nothing() {
    let mut trace = run(
        &[("create_issue", json!({"title": "x"}), json!("ok"), false)],
        "The tracker now knows about it, and the branch is history.",
    );
    let plain = judge(json!({}), std::slice::from_ref(&trace));
    let claims = ModelClaims::new(
        Some("reader-1".to_owned()),
        vec![
            ModelClaim::new("create_issue", "The tracker now knows about it"),
            ModelClaim::new("delete_branch", "the branch is history"),
        ],
    );
    trace
        .extra
        .insert(CLAIMS_KEY, serde_json::to_value(claims).unwrap());
    let assisted = judge(
        json!({"llm_assisted": {"model": "reader-1"}}),
        &[trace.clone()],
    );
    assert_eq!(plain.values, assisted.values);
    assert_eq!(plain.verdict, assisted.verdict);
    let judged = assisted.detail.to_value()["per_run"][0]["judged"].clone();
    assert_eq!(
        judged,
        json!({"judged": true, "model": "reader-1", "without_call": 1, "claims": [
            {"action": "create_issue", "sentence": "The tracker now knows about it", "calls": ["create_issue"]},
            {"action": "delete_branch", "sentence": "the branch is history", "calls": []},
        ]})
    );
    // Another shape is ignored.
    trace.extra.insert(CLAIMS_KEY, json!("nonsense"));
    let odd = judge(json!({"llm_assisted": true}), &[trace]);
    assert!(odd.detail.to_value()["per_run"][0].get("judged").is_none());
    assert!(load(&json!({"llm_assisted": {"name": "x"}})).is_err());
}

/// The stated values that are reported as wrong, for a run of one call with its result.
fn wrong_values(tool: &str, args: Value, result: Value, message: &str) -> Vec<String> {
    let found = divergence(&run(&[(tool, args, result, false)], message));
    let wrong = found.arg_mismatch.iter();
    wrong.map(|wrong| wrong.stated.clone()).collect()
}

#[test]
fn a_value_that_the_run_does_not_have_is_wrong() {
    let created = |message: &str| {
        let args = json!({"repo": "web", "title": "Slow"});
        wrong_values("create_issue", args, json!({"number": 31}), message)
    };
    assert!(created("I created issue #31.").is_empty());
    assert_eq!(created("I created issue #13."), ["13"]);
    // Rounded numbers, years and counts of nothing are no figures of the run.
    assert!(created("I created an issue, one of about 40.").is_empty());
}

#[test]
fn a_calculated_value_is_not_invented() {
    let seats = |message: &str| {
        let args = json!({"customer": "c", "seats": 15});
        let result = json!({"before": 12, "seats": 15});
        wrong_values("update_seats", args, result, message)
    };
    assert!(seats("I added 3 seats.").is_empty());
    assert_eq!(seats("I added 5 seats."), ["5"]);
}

#[test]
fn a_figure_in_a_sentence_about_a_call_is_compared() {
    let alarm =
        |message: &str| wrong_values("set_alarm", json!({"time": "06:45"}), json!("ok"), message);
    assert!(alarm("Your alarm is set for 6:45 AM.").is_empty());
    assert_eq!(alarm("Your alarm is set for 7:10."), ["7:10"]);
    assert!(alarm("The alarm would ring at 7:10 if you snoozed.").is_empty());
}

#[test]
fn a_word_for_an_argument_is_compared() {
    let ticket = |message: &str| {
        let args = json!({"id": "HD-1", "priority": "high"});
        wrong_values("update_ticket", args, json!({"ok": true}), message)
    };
    assert!(ticket("I changed the priority of HD-1 to high.").is_empty());
    assert_eq!(ticket("I changed the priority of HD-1 to low."), ["low"]);
}

#[test]
fn a_list_with_a_matched_action_is_a_list_of_claims() {
    let absent = |message: &str| {
        let call = (
            "reserve_table",
            json!({"guests": 4}),
            json!({"ok": true}),
            false,
        );
        divergence(&run(&[call], message)).claimed_but_absent.len()
    };
    assert_eq!(absent("- Table reserved\n- Taxi ordered"), 1);
    assert_eq!(
        absent("| What | State |\n|---|---|\n| Table | reserved |"),
        0
    );
}
