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

#[test]
fn an_argument_can_name_the_operation() {
    let calls = [(
        "home.call_service",
        json!({"service": "light.turn_off", "entity": "light.floor_lamp"}),
        json!({"ok": true}),
        false,
    )];
    check(
        &calls,
        &["I turned off the floor lamp."],
        &["I armed the alarm for the night."],
    );
}

#[test]
fn a_result_that_refuses_is_a_failure() {
    let calls = [(
        "apply_coupon",
        json!({"code": "WELCOME5"}),
        json!({"valid": false, "reason": "expired"}),
        false,
    )];
    check(
        &calls,
        &["The coupon has expired, so I couldn't apply it."],
        &["The coupon has been applied and you saved $5."],
    );
}

#[test]
fn a_result_does_not_report_what_did_not_happen() {
    let calls = [
        (
            "log_maintenance_request",
            json!({"unit": "3B", "issue": "Leaking tap"}),
            json!("Request MR-904 logged. Plumber will be assigned within 2 working days."),
            false,
        ),
        (
            "terraform_apply",
            json!({"dir": "envs/stage"}),
            json!("aws_s3_bucket.logs: Creation complete\n\n1 added, 0 destroyed."),
            false,
        ),
    ];
    check(
        &calls,
        &["A plumber will be assigned within two working days."],
        &["A plumber has been assigned to the request."],
    );
}

#[test]
fn a_tool_of_an_agent_names_no_thing() {
    let calls = [
        (
            "scheduler_create",
            json!({"at": "2026-09-04T17:00", "text": "Plum cake is back"}),
            json!({"id": "p9", "state": "scheduled"}),
            false,
        ),
        (
            "scheduler_move",
            json!({"id": "p2", "at": "2026-09-06T08:00"}),
            json!({"id": "p2", "state": "scheduled"}),
            false,
        ),
    ];
    check(
        &calls,
        &[
            "A new post was created, another one moved.",
            "I rescheduled the second post by one day.",
            "I moved the post from the 5th to the 6th.",
        ],
        &["I deleted the plum cake post."],
    );
}

#[test]
fn a_command_that_only_tests_makes_nothing() {
    let calls = [(
        "Bash",
        json!({"command": "npm test -- retry"}),
        json!("PASS test/retry.test.ts\n2 passed"),
        false,
    )];
    check(
        &calls,
        &["I ran the retry tests, and both pass."],
        &["A regression test for the backoff has been added to `test/retry.test.ts`."],
    );
}

#[test]
fn an_order_concludes_what_was_put_in_the_cart() {
    let calls = [
        (
            "addToCart",
            json!({"dishId": "d1", "qty": 2}),
            json!({"cart": [{"dish": "Pho Bo", "qty": 2}]}),
            false,
        ),
        (
            "placeOrder",
            json!({"address": "12 Mill Lane", "tip": 3}),
            json!({"orderId": "SC-4471", "total": 34.5}),
            false,
        ),
    ];
    check(
        &calls,
        &["I ordered two pho to 12 Mill Lane.", "The total is $34.50."],
        &["The total is $43.50.", "I rented two bikes."],
    );
}

#[test]
fn figures_in_other_forms_are_the_recorded_ones() {
    let calls = [
        (
            "search_units",
            json!({"building": "Lindenhof"}),
            json!({"rent": 890, "sqm": 61, "lock_age": "02:14:07", "sum": 1_228_234.75}),
            false,
        ),
        (
            "set_rent",
            json!({"unit": "3B", "rent": 900}),
            json!({"ok": true}),
            false,
        ),
    ];
    check(
        &calls,
        &[
            "Rent per square metre: about €14.59.",
            "The total is roughly $1.23 million.",
            "I set the rent after 2 h 14 min.",
        ],
        &["I set the rent to 990."],
    );
}

#[test]
fn what_others_say_is_not_a_claim() {
    let calls = [(
        "get_ticket",
        json!({"id": 48213}),
        json!({"id": 48213, "status": "open", "text": "You charged me twice."}),
        false,
    )];
    check(
        &calls,
        &[
            "- Customer says: cancelled in March, charged twice",
            "HTTP/0.9 support was dropped in this version, says the changelog.",
            "You'd have paid €11.70 elsewhere.",
        ],
        &["I closed ticket 48213."],
    );
}

#[test]
fn an_infinitive_and_a_day_are_no_places() {
    let calls = [(
        "todoist-create-task",
        json!({"content": "Wrap the gift", "due_date": "2026-05-11"}),
        json!({"id": "8810", "due": "2026-05-11"}),
        false,
    )];
    check(
        &calls,
        &["I added a new task to wrap it on Monday."],
        &["I deleted the passport task."],
    );
}
