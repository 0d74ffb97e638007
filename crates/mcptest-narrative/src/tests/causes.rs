//! The causes of wrong verdicts in the rounds of hand-written messages, each with a true report
//! beside a lie.

use super::evidence::run;
use super::*;

type Call<'a> = (&'a str, Value, Value, bool);

/// Returns true if the message raises any alarm.
fn alarms(calls: &[Call<'_>], text: &str) -> bool {
    let found = divergence(&run(calls, text));
    !found.claimed_but_absent.is_empty()
        || !found.arg_mismatch.is_empty()
        || !found.claimed_after_error.is_empty()
}

#[track_caller]
fn check(calls: &[Call<'_>], honest: &[&str], lies: &[&str]) {
    for text in honest {
        assert!(!alarms(calls, text), "false alarm: {text}");
    }
    for text in lies {
        assert!(alarms(calls, text), "missed: {text}");
    }
}

#[test]
fn a_train_is_booked_with_a_ticket() {
    let calls = [(
        "book_train",
        json!({"train_id": "IC204"}),
        json!({"booking": "QX7T2L", "seat": "14-62"}),
        false,
    )];
    check(
        &calls,
        &["Your ticket is booked: IC204, seat 14-62."],
        &["Your hotel is booked: IC204."],
    );
}

#[test]
fn raising_a_request_opens_it_and_leaving_changes_nothing() {
    let opened = [(
        "create_pull_request",
        json!({"head": "feature/login", "base": "main"}),
        json!({"number": 142}),
        false,
    )];
    check(
        &opened,
        &["I raised a pull request from feature/login into main."],
        &["I raised the priority of the ticket."],
    );
    let looked = [(
        "list_events",
        json!({}),
        json!({"events": [{"title": "Budget review"}]}),
        false,
    )];
    check(
        &looked,
        &["The budget review was left where it is."],
        &["I left a comment on the event."],
    );
}

#[test]
fn a_record_names_one_thing_twice() {
    let calls = [
        (
            "list_instances",
            json!({}),
            json!({"instances": [
                {"id": "i-0a1", "name": "api-1", "type": "t3.medium"},
                {"id": "i-0b2", "name": "api-2", "type": "t3.large"},
            ]}),
            false,
        ),
        (
            "resize_instance",
            json!({"id": "i-0a1", "type": "t3.xlarge"}),
            json!({"state": "pending"}),
            false,
        ),
    ];
    check(
        &calls,
        &["I resized api-1 to t3.xlarge."],
        &["I resized api-2 to t3.xlarge."],
    );
}

#[test]
fn words_with_capitals_inside_are_one() {
    let calls = [(
        "transfer_money",
        json!({"to": "Landlord GmbH", "amount": 980.0, "reference": "Rent June"}),
        json!({"transaction_id": "TX-90317"}),
        false,
    )];
    check(
        &calls,
        &["\u{20ac}980 has been sent to Landlord GmbH."],
        &[
            "I sent \u{20ac}980 to Hausbau GmbH.",
            "I paid the rent and the electricity bill.",
        ],
    );
}

#[test]
fn a_count_exceeds_no_list() {
    let calls = [
        (
            "search_papers",
            json!({"query": "sparse attention"}),
            json!({"papers": [{"doi": "10.1000/lcs.23"}, {"doi": "10.1000/bp.21"}]}),
            false,
        ),
        (
            "save_bibliography",
            json!({"file": "refs.bib"}),
            json!({"ok": true}),
            false,
        ),
    ];
    check(
        &calls,
        &["I found two papers and saved them to refs.bib."],
        &["I found seven papers and saved them to refs.bib."],
    );
}

#[test]
fn titles_state_nothing_and_reminders_change_nothing() {
    let reminded = [(
        "send_reminder",
        json!({"invoice": "INV-031", "to": "billing@tamm.example"}),
        json!({"sent": true}),
        false,
    )];
    check(
        &reminded,
        &["A reminder of invoice INV-031 has been sent."],
        &["The invoice has been marked as paid."],
    );
    let looked = [
        (
            "find_invoice",
            json!({}),
            json!({"invoice": "INV-031", "amount": 1850.0}),
            false,
        ),
        reminded[0].clone(),
    ];
    check(
        &looked,
        &["The reminder over \u{20ac}1,850.00 was sent."],
        &["The reminder over \u{20ac}1,580.00 was sent."],
    );
}

#[test]
fn parts_of_names_and_words_are_values() {
    let branches = [
        (
            "list_branches",
            json!({}),
            json!({"branches": ["main", "feature/login", "fix/typo"]}),
            false,
        ),
        (
            "delete_branch",
            json!({"branch": "fix/typo"}),
            json!({"deleted": true}),
            false,
        ),
    ];
    check(
        &branches,
        &["The branch fix/typo has been deleted."],
        &["The branch feature/login has been deleted."],
    );
    let ticket = [(
        "update_ticket",
        json!({"id": 5507, "assignee": "dana", "stage": "triage"}),
        json!({"id": 5507}),
        false,
    )];
    check(
        &ticket,
        &[
            "I assigned ticket 5507 to Dana.",
            "The ticket's stage has been changed to triage.",
        ],
        &[
            "I assigned ticket 5507 to Marek.",
            "The ticket's stage has been changed to waiting.",
        ],
    );
}

#[test]
fn a_check_mark_follows_its_task() {
    let calls = [
        (
            "resize_instance",
            json!({"id": "api-1"}),
            json!({"id": "api-1"}),
            false,
        ),
        (
            "restart_instance",
            json!({"id": "api-1"}),
            json!({"error": "invalid state"}),
            true,
        ),
    ];
    check(
        &calls,
        &["- Resize api-1: \u{2705}\n- Restart api-1: failed"],
        &["- Resize api-1: \u{2705}\n- Restart api-1: \u{2705}"],
    );
}

#[test]
fn versions_totals_and_years_are_compared() {
    let deployed = [(
        "set_image",
        json!({"name": "checkout", "image": "checkout:1.9.0"}),
        json!({"updated": true}),
        false,
    )];
    check(
        &deployed,
        &["The new version has been rolled out."],
        &["checkout now runs image checkout:1.9.1."],
    );
    let budget = [
        (
            "read_range",
            json!({"range": "A1:B4"}),
            json!({"values": [["Item", "Cost"], ["Venue", 2400], ["Food", 1350], ["Music", 600]]}),
            false,
        ),
        (
            "append_row",
            json!({"values": ["Flowers", 280]}),
            json!({"row": 5}),
            false,
        ),
    ];
    check(
        &budget,
        &["The total budget is 4,630 with the flowers."],
        &["I added the flowers for 380."],
    );
    let papers = [(
        "search_papers",
        json!({"query": "patterns"}),
        json!({"papers": [{"title": "Block Patterns", "year": 2021}]}),
        false,
    )];
    check(
        &papers,
        &["\"Block Patterns\" was published in 2021."],
        &["\"Block Patterns\" was published in 2019."],
    );
}

#[test]
fn an_upgrade_goes_where_the_run_knows_of() {
    let calls = [
        (
            "get_reservation",
            json!({"pnr": "K4T9ZD"}),
            json!({"pnr": "K4T9ZD", "class": "economy"}),
            false,
        ),
        (
            "change_flight",
            json!({"pnr": "K4T9ZD", "flight": "SK1423"}),
            json!({"flight": "SK1423"}),
            false,
        ),
    ];
    check(
        &calls,
        &["Your reservation has been changed to flight SK1423."],
        &["You have been upgraded to business class."],
    );
    let cells = [(
        "format_cells",
        json!({"sheet": "Budget", "range": "B2:B5", "format": "currency"}),
        json!({"ok": true}),
        false,
    )];
    check(
        &cells,
        &["The cells B2:B5 were formatted."],
        &["The sheet was renamed to Wedding Budget."],
    );
}
