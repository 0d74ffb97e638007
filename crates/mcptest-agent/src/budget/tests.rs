use std::sync::Arc;

use mcptest_catalog::prices::{Price, Prices, Usd};
use mcptest_catalog::tokens;
use mcptest_trace::verdict::{ErrorKind, RunError};
use proptest::prelude::*;
use serde_json::json;

use super::ledger::Amount;
use super::metered::input_tokens;
use super::*;
use crate::model::{AssistantTurn, Future, Message, Model, Request, Usage};

/// A model that yields to the scheduler some times, then answers with this usage or fails.
struct Slow {
    usage: Option<Usage>,
    yields: u32,
    fails: bool,
}

impl Model for Slow {
    fn next<'a>(&'a self, _: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        Box::pin(async move {
            for _ in 0..self.yields {
                tokio::task::yield_now().await;
            }
            if self.fails {
                return Err(RunError {
                    kind: ErrorKind::RateLimit,
                    message: "later".to_owned(),
                });
            }
            Ok(AssistantTurn {
                usage: self.usage,
                ..AssistantTurn::default()
            })
        })
    }
}

fn usage(input: u64, output: u64) -> Option<Usage> {
    Some(Usage {
        input,
        output,
        ..Usage::default()
    })
}

/// A price of one dollar per million tokens, input and output alike.
fn dollar() -> Price {
    let written = json!({"m": {"input_per_mtok": 1, "output_per_mtok": 1}});
    let prices = Prices::default()
        .with(&serde_json::from_value(written).unwrap())
        .unwrap();
    *prices.find("m").unwrap()
}

fn usd(text: &str) -> Usd {
    Usd::from_number(&serde_json::from_str(text).unwrap()).unwrap()
}

fn ask(max_tokens: u32) -> Request<'static> {
    Request {
        system: None,
        messages: &[],
        tools: &[],
        max_tokens: Some(max_tokens),
    }
}

fn metered(ledger: &Arc<SpendLedger>, accounts: &[AccountId], model: Slow) -> MeteredModel {
    MeteredModel::new(
        Box::new(model),
        "m",
        Some(dollar()),
        ledger,
        accounts.to_vec(),
    )
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn a_cap_stops_the_first_request_after_it_is_reached() {
    let ledger = Arc::new(SpendLedger::default());
    let caps = SpendCaps {
        usd: Some(usd("0.00002")),
        tokens: None,
    };
    let suite = ledger.open("the suite's budget", caps);
    let model = metered(
        &ledger,
        &[suite],
        Slow {
            usage: usage(5, 4),
            yields: 0,
            fails: false,
        },
    );
    // 9, 18, 27 tokens at a millionth of a dollar each: after 18 it is still below 20.
    for _ in 0..3 {
        model.next(ask(4)).await.unwrap();
    }
    let error = model.next(ask(4)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Budget);
    assert_eq!(
        error.message,
        "the suite's budget is spent ($0.000027 of $0.00002); a request to `m` was not sent"
    );
    let totals = ledger.totals(suite);
    assert_eq!(
        (totals.requests, totals.usage.input, totals.usage.output),
        (3, 15, 12)
    );
    assert_eq!(totals.usd.to_string(), "$0.000027");
    let why = ledger.stopped(&[suite]).unwrap();
    assert_eq!(why, "the suite's budget is spent ($0.000027 of $0.00002)");
    // Every later request gets the same message.
    assert_eq!(model.next(ask(4)).await.unwrap_err(), error);
}

#[tokio::test(flavor = "current_thread")]
async fn a_spent_test_budget_does_not_stop_other_tests() {
    let ledger = Arc::new(SpendLedger::default());
    let suite = ledger.open("the suite's budget", SpendCaps::default());
    let poor = SpendCaps {
        usd: None,
        tokens: Some(5),
    };
    let tests = [
        ledger.open("the test's budget", poor),
        ledger.open("the test's budget", SpendCaps::default()),
    ];
    let model = |test: usize| {
        metered(
            &ledger,
            &[suite, tests[test]],
            Slow {
                usage: usage(3, 3),
                yields: 0,
                fails: false,
            },
        )
    };
    model(0).next(ask(1)).await.unwrap();
    assert!(model(0).next(ask(1)).await.is_err());
    model(1).next(ask(1)).await.unwrap();
    assert_eq!(ledger.totals(suite).requests, 2);
    assert_eq!(ledger.stopped(&[suite, tests[1]]), None);
}

#[tokio::test(flavor = "current_thread")]
async fn requests_without_usage_are_charged_in_full_and_failed_ones_not_at_all() {
    let ledger = Arc::new(SpendLedger::default());
    let caps = SpendCaps {
        usd: None,
        tokens: Some(10),
    };
    let suite = ledger.open("the suite's budget", caps);
    let failing = Slow {
        usage: None,
        yields: 1,
        fails: true,
    };
    let silent = Slow {
        usage: None,
        yields: 0,
        fails: false,
    };
    assert!(
        metered(&ledger, &[suite], failing)
            .next(ask(100))
            .await
            .is_err()
    );
    assert_eq!(ledger.totals(suite), SpendTotals::default());
    let silent = metered(&ledger, &[suite], silent);
    silent.next(ask(9)).await.unwrap();
    silent.next(ask(9)).await.unwrap();
    assert_eq!(
        silent.next(ask(9)).await.unwrap_err().kind,
        ErrorKind::Budget
    );
    let totals = ledger.totals(suite);
    assert_eq!(
        (totals.requests, totals.without_usage, totals.usage),
        (2, 2, Usage::default())
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_dropped_request_releases_its_reservation() {
    let ledger = Arc::new(SpendLedger::default());
    let caps = SpendCaps {
        usd: None,
        tokens: Some(10),
    };
    let suite = ledger.open("the suite's budget", caps);
    let endless = metered(
        &ledger,
        &[suite],
        Slow {
            usage: usage(1, 1),
            yields: u32::MAX,
            fails: false,
        },
    );
    {
        let mut request = endless.next(ask(50));
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(request.as_mut().poll(context)))
                .await;
        assert!(polled.is_pending());
    }
    let quick = metered(
        &ledger,
        &[suite],
        Slow {
            usage: usage(1, 1),
            yields: 0,
            fails: false,
        },
    );
    quick.next(ask(50)).await.unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn a_stopped_account_keeps_the_first_reason() {
    let ledger = Arc::new(SpendLedger::default());
    let suite = ledger.open("the suite's budget", SpendCaps::default());
    ledger.stop(suite, "the time is over");
    ledger.stop(suite, "a second reason");
    let model = metered(
        &ledger,
        &[suite],
        Slow {
            usage: None,
            yields: 0,
            fails: false,
        },
    );
    assert_eq!(
        model.next(ask(1)).await.unwrap_err().message,
        "the time is over; a request to `m` was not sent"
    );
}

#[test]
fn input_tokens_include_messages_calls_results_and_tools() {
    let tool: mcptest_trace::catalog::Tool = serde_json::from_value(
        json!({"name": "search", "description": "Finds things.", "inputSchema": {}}),
    )
    .unwrap();
    let offer = crate::Offer::new(vec![("a".to_owned(), vec![tool])]);
    let call = crate::ModelCall {
        id: None,
        wire_name: "search".to_owned(),
        args: Some(json!({"q": "x"})),
        caller: None,
    };
    let messages = [
        Message::User("hello world".to_owned()),
        Message::Assistant(AssistantTurn {
            text: "hello".to_owned(),
            calls: vec![call.clone()],
            ..AssistantTurn::default()
        }),
        Message::Results(vec![(call, crate::ToolReply::refusal("hello world"))]),
    ];
    let request = Request {
        system: Some("hello"),
        messages: &messages,
        tools: offer.tools(),
        max_tokens: None,
    };
    let args = tokens::count("{\"q\":\"x\"}");
    let tool = tokens::of_tool(&offer.tools()[0].tool);
    assert_eq!(input_tokens(&request), 1 + 2 + 1 + 1 + args + 2 + tool);
}

proptest! {
    /// Concurrent runs, each with several requests that cost at most what is reserved for them.
    #[test]
    fn a_cap_is_exceeded_by_one_request_at_most_in_any_order(
        runs in prop::collection::vec(
            prop::collection::vec((0_u64..20, 0_u32..5, any::<bool>()), 1..5),
            1..8,
        ),
        cap in 0_u64..150,
    ) {
        let caps = SpendCaps {
            usd: Usd::from_number(&(cap as f64 / 1e6).to_string().parse().unwrap()),
            tokens: Some(cap),
        };
        let ledger = Arc::new(SpendLedger::default());
        let suite = ledger.open("the suite's budget", caps);
        let free = ledger.open("another account", SpendCaps::default());
        let answered = runtime().block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for run in runs.clone() {
                let ledger = Arc::clone(&ledger);
                tasks.spawn(async move {
                    let mut sum = 0;
                    for (output, yields, fails) in run {
                        let model = metered(
                            &ledger,
                            &[suite, free],
                            Slow { usage: usage(0, output), yields, fails },
                        );
                        match model.next(ask(20)).await {
                            Ok(_) => sum += output,
                            Err(error) if error.kind == ErrorKind::Budget => break,
                            Err(_) => {}
                        }
                    }
                    sum
                });
            }
            tasks.join_all().await.iter().sum::<u64>()
        });
        let totals = ledger.totals(suite);
        prop_assert_eq!(totals.usage.output, answered);
        prop_assert_eq!(totals, ledger.totals(free));
        prop_assert_eq!(totals.usd, dollar().most(0, answered));
        prop_assert!(answered < cap.max(1) + 20, "{answered} spent under a cap of {cap}");
        // No reservation is left, and no request is refused that the cap allows.
        let wanted: u64 = runs.iter().flatten().filter(|(.., fails)| !fails).map(|(
            output,
            ..
        )| output).sum();
        prop_assert!(answered >= cap.min(wanted), "{answered} of {wanted} under a cap of {cap}");
        let accounts = ledger.accounts();
        prop_assert_eq!((accounts[0].reserved, accounts[0].in_flight), (Amount::default(), 0));
    }
}
