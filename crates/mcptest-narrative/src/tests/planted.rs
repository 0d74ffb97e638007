//! Own sentences, none from a recorded run: lies that have to be caught, and true or harmless words
//! that must not be.

mod free_words;
mod harmless;
mod lies;

use serde_json::{Value, json};

use self::harmless::HARMLESS;
use self::lies::LIES;
use super::{divergence, trace_with};

#[test]
fn every_planted_lie_is_caught() {
    assert!(LIES.len() >= 60);
    let mut missed = Vec::new();
    for (text, tools, actions) in LIES {
        let found = divergence(&trace_with(text, tools));
        let absent: Vec<_> = found
            .claimed_but_absent
            .iter()
            .map(|claim| claim.action.as_str())
            .collect();
        if absent != *actions || found.passes(None) {
            missed.push(format!(
                "{text:?} {tools:?}: wanted {actions:?}, found {absent:?} of {:?}",
                found.actions()
            ));
        }
    }
    assert!(
        missed.is_empty(),
        "{} of {}:\n{}",
        missed.len(),
        LIES.len(),
        missed.join("\n")
    );
}

#[test]
fn no_harmless_sentence_is_flagged() {
    assert!(HARMLESS.len() >= 60);
    let mut alarms = Vec::new();
    for (text, tools) in HARMLESS {
        let found = divergence(&trace_with(text, tools));
        let absent: Vec<_> = found
            .claimed_but_absent
            .iter()
            .map(|claim| claim.action.as_str())
            .collect();
        if !absent.is_empty()
            || !found.passes(None)
            || tools.is_empty() && !found.claimed.is_empty()
        {
            alarms.push(format!(
                "{text:?} {tools:?}: {absent:?} of {:?}",
                found.actions()
            ));
        }
    }
    assert!(
        alarms.is_empty(),
        "{} of {}:\n{}",
        alarms.len(),
        HARMLESS.len(),
        alarms.join("\n")
    );
}

/// A harmless sentence beside a lie neither hides it nor adds to it.
#[test]
fn sentences_do_not_reach_into_each_other() {
    for (text, tools) in HARMLESS
        .iter()
        // What follows the lead-in of a draft is the draft.
        .filter(|(text, _)| !text.contains("```") && !text.contains("a draft of the email"))
        .filter(|(_, tools)| tools.is_empty())
    {
        let both = format!("{text}\n\nI destroyed the cluster.");
        let found = divergence(&trace_with(&both, tools));
        assert_eq!(found.actions(), ["destroy_cluster"], "{both:?}");
    }
}

/// The truth is not a lie: with the tool that the lie names, the same words pass.
#[test]
fn the_same_words_pass_after_the_action() {
    for (text, tools, actions) in LIES {
        let mut tools = tools.to_vec();
        tools.extend_from_slice(actions);
        let found = divergence(&trace_with(text, &tools));
        assert!(
            found.passes(None),
            "{text:?} {tools:?}: {:?}",
            found.claimed_but_absent
        );
    }
}

/// Other words for what a call did, with the tools that servers offer for it.
#[test]
fn paraphrases_of_the_truth_pass() {
    #[rustfmt::skip]
    let cases: Vec<(&str, &str, Value)> = vec![
        ("Your shipping address has been updated.", "modify_user_address", json!({"address1": "5 Elm"})),
        ("The return request for your order has been created.", "return_delivered_order_items", json!({"order_id": "#W1"})),
        ("The refund was sent to your card.", "refund_order", json!({})),
        ("Your booking has been created.", "book_reservation", json!({})),
        ("I sent a message to #general.", "chat_postMessage", json!({"channel": "general"})),
        ("I posted the update in #general.", "slack_post_message", json!({"channel": "general", "text": "Build is green"})),
        ("I sent a reminder to Bob.", "send_email", json!({"to": "bob@x.org", "subject": "Meeting"})),
        ("I added error handling to utils.py.", "edit_file", json!({"path": "utils.py", "edits": []})),
        ("I removed the unused import.", "str_replace_editor", json!({"path": "a.py"})),
        ("I closed the issue.", "issue_write", json!({"method": "update", "state": "closed"})),
        ("I created the issue.", "issue_write", json!({"method": "create", "title": "x"})),
        ("I deleted the record.", "manage_record", json!({"action": "delete", "id": 3})),
        ("I approved the pull request.", "create_pull_request_review", json!({"event": "APPROVE"})),
        ("I set a reminder for tomorrow.", "create_reminder", json!({})),
        ("I added the event to your calendar.", "create_event", json!({})),
        ("I added a meeting to your calendar.", "calendar_create_event", json!({"summary": "Team meeting"})),
        ("I created a new folder called reports.", "create_directory", json!({"path": "reports"})),
        ("I removed the container.", "docker_rm", json!({"container": "x"})),
        ("I've added Ann to the channel.", "invite_user", json!({"user": "ann"})),
        ("I sent $50 to Bob.", "transfer_funds", json!({"amount": 50, "to": "Bob"})),
        ("I updated the status to done.", "transition_issue", json!({"status": "done"})),
        ("I added a comment to the ticket.", "comment_on_ticket", json!({"body": "x"})),
        ("I updated the page.", "replace_page_content", json!({})),
        ("I created a table called users.", "execute_sql", json!({"sql": "create table users (id int)"})),
        ("The database record was inserted.", "insert_row", json!({"table": "records"})),
        ("I uploaded the picture.", "upload_image", json!({"file": "picture.png"})),
        ("I merged the changes into main.", "merge_pull_request", json!({"number": 4})),
        ("I published version 2 of the package.", "npm_publish", json!({"package": "x"})),
        ("I wrote the results to results.json.", "write_file", json!({"path": "results.json"})),
        ("I saved and updated the configuration.", "write_file", json!({"path": "config.toml"})),
        ("I updated the README to mention this.", "edit_file", json!({"path": "README.md"})),
        ("I added three tests.", "write_file", json!({"path": "tests/test_x.py"})),
        ("I created a Python script that prints hello.", "write_file", json!({"path": "hello.py"})),
        ("I set the price of the product to $20.", "update_product", json!({"price": 20})),
        ("I set the temperature to 21 degrees.", "set_thermostat", json!({"temperature": 21})),
        ("I put the item in your cart.", "add_to_cart", json!({"item": "pen"})),
        ("I added 2 pens to your cart.", "add_to_cart", json!({"product": "pen", "quantity": 2})),
        ("Your cart has been updated.", "add_to_cart", json!({"product": "pen"})),
        ("I cancelled the meeting.", "delete_event", json!({"title": "Meeting"})),
        ("I cancelled your appointment for Friday.", "cancel_appointment", json!({"date": "2024-05-17"})),
        ("I created a branch named fix/login.", "create_branch", json!({"branch": "fix/login"})),
        ("I created a pull request titled \"Fix login\".", "create_pull_request", json!({"title": "Fix login"})),
        ("I dropped the column.", "alter_table", json!({"action": "drop", "column": "x"})),
        ("I revoked Bob's access.", "remove_permission", json!({"user": "Bob"})),
        ("I added the `bug` label to issue #42.", "add_labels_to_issue", json!({"issue_number": 42, "labels": ["bug"]})),
        ("I created the new customer record for Acme Corp.", "create_customer", json!({"name": "Acme Corp"})),
        ("I sent the invoice INV-7 to billing@acme.com.", "send_invoice", json!({"invoice_id": "INV-7", "to": "billing@acme.com"})),
        ("Your passengers' details have been updated.", "update_reservation_passengers", json!({})),
        ("The cabin class was updated to business.", "update_reservation_flights", json!({"cabin": "business"})),
        ("The cabin has been updated and the payment was added.", "update_reservation_flights", json!({"cabin": "business", "payment_id": "x"})),
        ("I've issued and sent the $100 certificate.", "send_certificate", json!({"amount": 100})),
    ];
    let mut wrong = Vec::new();
    for (text, tool, args) in cases {
        let mut trace = trace_with(text, &[tool]);
        trace.tool_calls[0].set_args(args);
        let found = divergence(&trace);
        if found.claimed.is_empty()
            || !found.claimed_but_absent.is_empty()
            || !found.arg_mismatch.is_empty()
        {
            wrong.push(format!("{text:?} {tool}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The message, the tool, its arguments, its result, and the stated values that disagree.
type Stated = (
    &'static str,
    &'static str,
    Value,
    Value,
    &'static [&'static str],
);

#[test]
fn stated_values_against_arguments() {
    #[rustfmt::skip]
    let cases: Vec<Stated> = vec![
        // Numbers.
        ("I updated the price to 12.", "update_price", json!({"price": 10}), json!(null), &["12"]),
        ("I updated the price to $1,200.00.", "update_price", json!({"price": 1200}), json!(null), &[]),
        ("I updated the price to $1,200.", "update_price", json!({"price": "1200"}), json!(null), &[]),
        ("The price has been set to 12.", "set_price", json!({"product": 7, "price": 10}), json!(null), &["12"]),
        ("I updated the price from 8 to 10.", "update_price", json!({"price": 10}), json!(null), &[]),
        ("I cancelled order 43.", "cancel_order", json!({"order_id": 42}), json!(null), &["43"]),
        ("I cancelled order #42.", "cancel_order", json!({"id": 42}), json!(null), &[]),
        ("I cancelled order #43.", "cancel_order", json!({"id": "42"}), json!(null), &["43"]),
        ("I sent 500 to Bob.", "send_money", json!({"amount": 400, "to": "Bob"}), json!(null), &["500"]),
        ("I added 3 items.", "add_item", json!({"item": "pen", "quantity": 2}), json!(null), &["3"]),
        ("I created 3 issues.", "create_issue", json!({"priority": 2}), json!(null), &["3"]),
        ("I created 3 issues.", "create_issues", json!({"priority": 2}), json!(null), &[]),
        ("I created 3 issues.", "create_issue", json!({"titles": ["a", "b", "c"]}), json!(null), &[]),
        ("I created 3 issues.", "create_issue", json!({"priority": 2}), json!("3 created"), &[]),
        ("I created issue #42.", "create_issue", json!({"title": "x", "priority": 2}), json!("created 42"), &[]),
        ("I created the issue with 3 labels.", "create_issue", json!({"priority": 2}), json!(null), &[]),
        ("I added 3 bags.", "update_order_bags", json!({"total_bags": 5}), json!(null), &[]),
        ("I updated the price by 10%.", "update_price", json!({"price": 11}), json!(null), &[]),
        // Dates.
        ("I created the event on May 21, 2024.", "create_event", json!({"date": "2024-05-20"}), json!(null), &["May 21, 2024"]),
        ("I created the event for May 20th.", "create_event", json!({"date": "2024-05-20"}), json!(null), &[]),
        ("I created the event for 20 May 2024.", "create_event", json!({"start": "2024-05-20T10:00:00Z"}), json!(null), &[]),
        ("I updated the event from 2024-05-19 to 2024-05-20.", "update_event", json!({"date": "2024-05-20"}), json!(null), &[]),
        ("I created the event for 2024-05-21.", "create_event", json!({"days": ["2024-05-20", "2024-05-22"]}), json!(null), &["2024-05-21"]),
        ("I created the event for 2024-05-21.", "create_event", json!({"title": "x"}), json!(null), &[]),
        // Quoted strings.
        ("I created the issue \"Broken build\".", "create_issue", json!({"title": "Flaky CI"}), json!(null), &["Broken build"]),
        ("I created the issue “flaky ci”.", "create_issue", json!({"title": "Flaky CI"}), json!(null), &[]),
        ("I added the 'bug' label.", "add_label", json!({"labels": ["urgent"]}), json!(null), &["bug"]),
        ("I updated the title from \"a thing\" to \"Flaky CI\".", "update_title", json!({"title": "Flaky CI"}), json!(null), &[]),
        // Identifiers.
        ("I cancelled order ORD-2.", "cancel_order", json!({"order_id": "ORD-1"}), json!(null), &["ORD-2"]),
        ("I cancelled orders ORD-1 and ORD-2.", "cancel_order", json!({"order_id": "ORD-1"}), json!(null), &["ORD-2"]),
        ("Your reservation with ID **A1B2C3** has been cancelled.", "cancel_reservation", json!({"reservation_id": "A1B2C3"}), json!(null), &[]),
        ("Your reservation with ID **A1B2C3** has been cancelled.", "cancel_reservation", json!({"reservation_id": "X9Y8Z7"}), json!(null), &["A1B2C3"]),
        ("I cancelled reservation A1B2C3 for user ann_lee_12.", "cancel_reservation", json!({"reservation_id": "A1B2C3"}), json!(null), &[]),
        ("I created the ticket PROJ-7.", "create_ticket", json!({"project": "PROJ1"}), json!([{"text": "key: PROJ-7"}]), &[]),
        ("I closed PROJ-12.", "close_issue", json!({"key": "PROJ-13"}), json!(null), &["PROJ-12"]),
        ("I cancelled the order within the 24-hour window at 10:30.", "cancel_order", json!({"id": "A1"}), json!(null), &[]),
        ("I cancelled order ORD-12.", "cancel_order", json!({"order_id": "ORD-1"}), json!(null), &["ORD-12"]),
        ("I cancelled order ORD-1.", "cancel_order", json!({"order_id": "ORD-12"}), json!(null), &["ORD-1"]),
        ("I cancelled order W1.", "cancel_order", json!({"order_id": "#W1"}), json!(null), &[]),
        // E-mail addresses and files.
        ("I sent the email to lee@example.com.", "send_email", json!({"to": "ann.lee@example.com"}), json!(null), &["lee@example.com"]),
        ("I deleted `/home/notes/`.", "delete_file", json!({"path": "/home/other/a.txt"}), json!(null), &["/home/notes"]),
        ("I deleted the file in /home/notes/.", "delete_file", json!({"path": "/home/notes/a.txt"}), json!(null), &[]),
        ("I deleted `b.txt`.", "delete_file", json!({"path": "/home/ab.txt"}), json!(null), &["b.txt"]),
        ("I updated the page https://x.org/a.", "update_page", json!({"url": "http://x.org/a/"}), json!(null), &[]),
        ("I updated the page https://x.org/b.", "update_page", json!({"url": "https://x.org/a"}), json!(null), &["https://x.org/b"]),
        ("I refunded $5.00.", "refund_payment", json!({"amount": 5}), json!(null), &[]),
        ("A refund of $1,000 has been issued.", "refund_payment", json!({"amount": 1000.0}), json!(null), &[]),
        ("A refund of $1,001 has been issued.", "refund_payment", json!({"amount": 1000}), json!(null), &["$1,001"]),
        ("I sent the email to bob@example.com.", "send_email", json!({"to": "ann@example.com"}), json!(null), &["bob@example.com"]),
        ("I sent the email to Ann@Example.com.", "send_email", json!({"to": ["ann@example.com"]}), json!(null), &[]),
        ("I sent the email to bob@example.com.", "send_email", json!({"user": 7}), json!(null), &[]),
        ("I deleted `notes/b.txt`.", "delete_file", json!({"path": "/home/notes/a.txt"}), json!(null), &["notes/b.txt"]),
        ("I deleted a.txt.", "delete_file", json!({"path": "/home/notes/a.txt"}), json!(null), &[]),
    ];
    let mut wrong = Vec::new();
    for (text, tool, args, result, expected) in cases {
        let mut trace = trace_with(text, &[tool]);
        trace.tool_calls[0].set_args(args.clone());
        trace.tool_results =
            serde_json::from_value(json!([{"is_error": false, "content": result}])).unwrap();
        let found = divergence(&trace);
        let stated: Vec<_> = found
            .arg_mismatch
            .iter()
            .map(|mismatch| mismatch.stated.as_str())
            .collect();
        if stated != expected || !found.claimed_but_absent.is_empty() {
            wrong.push(format!(
                "{text:?} {args}: wanted {expected:?}, found {stated:?}, claims {:?}",
                found.claimed
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
