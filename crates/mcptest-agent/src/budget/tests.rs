use mcptest_catalog::prices::Prices;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Answers after some turns of the scheduler, with this usage.
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

/// A dollar for a million tokens, whichever way they go.
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

fn metered(books: &Arc<Books>, accounts: &[AccountId], model: Slow) -> Metered {
    Metered::new(
        Box::new(model),
        "m",
        Some(dollar()),
        books,
        accounts.to_vec(),
    )
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn a_cap_stops_before_the_next_request_and_not_before() {
    let books = Arc::new(Books::default());
    let caps = Caps {
        usd: Some(usd("0.00002")),
        tokens: None,
    };
    let suite = books.open("the suite's budget", caps);
    let model = metered(
        &books,
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
    let spend = books.spend(suite);
    assert_eq!(
        (spend.requests, spend.usage.input, spend.usage.output),
        (3, 15, 12)
    );
    assert_eq!(spend.usd.to_string(), "$0.000027");
    let why = books.stopped(&[suite]).unwrap();
    assert_eq!(why, "the suite's budget is spent ($0.000027 of $0.00002)");
    // What others are told is the same.
    assert_eq!(model.next(ask(4)).await.unwrap_err(), error);
}

#[tokio::test(flavor = "current_thread")]
async fn one_test_that_is_out_of_money_leaves_the_others_alone() {
    let books = Arc::new(Books::default());
    let suite = books.open("the suite's budget", Caps::default());
    let poor = Caps {
        usd: None,
        tokens: Some(5),
    };
    let tests = [
        books.open("the test's budget", poor),
        books.open("the test's budget", Caps::default()),
    ];
    let model = |test: usize| {
        metered(
            &books,
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
    assert_eq!(books.spend(suite).requests, 2);
    assert_eq!(books.stopped(&[suite, tests[1]]), None);
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_not_told_is_charged_as_it_was_held_and_what_failed_is_not() {
    let books = Arc::new(Books::default());
    let caps = Caps {
        usd: None,
        tokens: Some(10),
    };
    let suite = books.open("the suite's budget", caps);
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
        metered(&books, &[suite], failing)
            .next(ask(100))
            .await
            .is_err()
    );
    assert_eq!(books.spend(suite), Spend::default());
    let silent = metered(&books, &[suite], silent);
    silent.next(ask(9)).await.unwrap();
    silent.next(ask(9)).await.unwrap();
    assert_eq!(
        silent.next(ask(9)).await.unwrap_err().kind,
        ErrorKind::Budget
    );
    let spend = books.spend(suite);
    assert_eq!(
        (spend.requests, spend.untold, spend.usage),
        (2, 2, Usage::default())
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_request_that_nobody_waits_for_gives_back_what_it_held() {
    let books = Arc::new(Books::default());
    let caps = Caps {
        usd: None,
        tokens: Some(10),
    };
    let suite = books.open("the suite's budget", caps);
    let endless = metered(
        &books,
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
        &books,
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
async fn stopped_by_the_clock() {
    let books = Arc::new(Books::default());
    let suite = books.open("the suite's budget", Caps::default());
    books.stop(suite, "the time is over");
    books.stop(suite, "a second reason");
    let model = metered(
        &books,
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
fn everything_that_is_sent_is_counted() {
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
    assert_eq!(tokens_sent(&request), 1 + 2 + 1 + 1 + args + 2 + tool);
}

proptest! {
    /// Many runs at once, each with several requests that cost at most what was held for them.
    #[test]
    fn a_cap_is_overshot_by_one_request_at_most_and_sums_do_not_depend_on_order(
        runs in prop::collection::vec(prop::collection::vec((0_u64..20, 0_u32..5, any::<bool>()), 1..5), 1..8),
        cap in 0_u64..150,
    ) {
        let caps = Caps { usd: Usd::from_number(&(cap as f64 / 1e6).to_string().parse().unwrap()), tokens: Some(cap) };
        let books = Arc::new(Books::default());
        let suite = books.open("the suite's budget", caps);
        let free = books.open("another account", Caps::default());
        let answered = runtime().block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for run in runs.clone() {
                let books = Arc::clone(&books);
                tasks.spawn(async move {
                    let mut sum = 0;
                    for (output, yields, fails) in run {
                        let model = metered(&books, &[suite, free], Slow { usage: usage(0, output), yields, fails });
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
        let spend = books.spend(suite);
        prop_assert_eq!(spend.usage.output, answered);
        prop_assert_eq!(spend, books.spend(free));
        prop_assert_eq!(spend.usd, dollar().most(0, answered));
        prop_assert!(answered < cap.max(1) + 20, "{answered} spent under a cap of {cap}");
        // Nothing stays held, and nothing is refused that the cap allows.
        let wanted: u64 = runs.iter().flatten().filter(|(.., fails)| !fails).map(|(output, ..)| output).sum();
        prop_assert!(answered >= cap.min(wanted), "{answered} of {wanted} under a cap of {cap}");
        let books = books.accounts();
        prop_assert_eq!((books[0].held, books[0].under_way), (Amount::default(), 0));
    }
}
