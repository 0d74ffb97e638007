use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use tokio::task::JoinSet;

use super::*;

/// Sends requests until the window is full.
fn filled(window: &mut Window, now: Instant) -> Vec<RequestStart> {
    let mut sent = Vec::new();
    while let Admission::Admitted(start) = window.admit(now) {
        sent.push(start);
    }
    sent
}

/// A request that was sent after a number of halvings.
fn after_halvings(halvings: u64) -> RequestStart {
    RequestStart {
        halvings,
        in_flight: 1,
    }
}

/// One full round: each answer admits the next requests.
fn round(window: &mut Window, now: Instant) {
    for start in filled(window, now) {
        window.answered(start);
        filled(window, now);
    }
    window.in_flight = 0;
}

#[test]
fn the_window_starts_at_32_or_at_its_limit() {
    let now = Instant::now();
    assert_eq!(filled(&mut Window::new(64), now).len(), 32);
    assert_eq!(filled(&mut Window::new(4), now).len(), 4);
    assert_eq!(filled(&mut Window::new(0), now).len(), 1);
}

#[test]
fn refusals_of_one_round_halve_the_window_once() {
    let now = Instant::now();
    let mut window = Window::new(64);
    for start in filled(&mut window, now) {
        window.refused(start, now, None);
    }
    assert_eq!((window.size, window.in_flight), (16, 0));
    // Refusals of the next round halve it once more.
    let sent = filled(&mut window, now);
    window.refused(sent[0], now, None);
    window.refused(sent[1], now, None);
    assert_eq!(window.size, 8);
    for halvings in 2..20 {
        window.refused(after_halvings(halvings), now, None);
    }
    assert_eq!(window.size, 1, "never zero");
}

#[test]
fn the_window_doubles_with_each_round_of_answers_until_it_is_refused() {
    let now = Instant::now();
    let mut window = Window::new(300);
    for expected in [64, 128, 256, 300, 300] {
        round(&mut window, now);
        assert_eq!(window.size, expected);
    }
    // Answers in a mostly empty window do not enlarge it.
    let mut idle = Window::new(64);
    for _ in 0..1000 {
        if let Admission::Admitted(start) = idle.admit(now) {
            idle.answered(start);
        }
    }
    assert_eq!(idle.size, INITIAL_WINDOW);
}

#[test]
fn after_a_refusal_it_doubles_up_to_half_of_what_was_refused() {
    let now = Instant::now();
    let mut window = Window::new(1024);
    let sent = filled(&mut window, now);
    window.refused(sent[0], now, None);
    window.in_flight = 0;
    assert_eq!((window.size, window.threshold), (16, 16));
    for expected in [17, 18, 19] {
        round(&mut window, now);
        assert_eq!(window.size, expected, "one per round");
    }
    // Refused at 128, of which only 32 are known to be accepted: it goes back further.
    let mut window = Window::new(1024);
    window.size = 128;
    let sent = filled(&mut window, now);
    window.refused(sent[127], now, None);
    window.in_flight = 0;
    assert_eq!((window.size, window.threshold), (16, 64));
    for expected in [32, 64, 65] {
        round(&mut window, now);
        assert_eq!(window.size, expected);
    }
}

#[test]
fn a_window_that_stays_full_grows_with_time() {
    let start = Instant::now();
    let mut window = Window::new(40);
    filled(&mut window, start);
    let later = start + GROWTH_TIME;
    assert_eq!(window.admit(start), Admission::Full(Some(later)));
    let just_before = later - Duration::from_nanos(1);
    assert_eq!(window.admit(just_before), Admission::Full(Some(later)));
    assert_eq!(filled(&mut window, later).len(), 3, "a tenth of 32");
    assert_eq!(
        window.admit(later),
        Admission::Full(Some(later + GROWTH_TIME))
    );
    // A process that was held up makes up for it, up to the limit of the window.
    let late = later + 4 * GROWTH_TIME;
    assert_eq!(filled(&mut window, late).len(), 5);
    assert_eq!(window.admit(late + 9 * GROWTH_TIME), Admission::Full(None));
    // A refusal ends it for good.
    let mut window = Window::new(1024);
    let sent = filled(&mut window, start);
    window.refused(sent[0], start, None);
    assert_eq!(window.admit(later), Admission::Full(None));
    // A window that was mostly empty in between has not been full all the time.
    let mut window = Window::new(1024);
    let sent = filled(&mut window, start);
    for start in &sent[..20] {
        window.answered(*start);
    }
    window.in_flight = window.size;
    assert_eq!(
        window.admit(later),
        Admission::Full(Some(later + GROWTH_TIME))
    );
}

#[test]
fn a_long_wait_is_made_up_for_only_in_part() {
    let start = Instant::now();
    let mut window = Window::new(1024);
    filled(&mut window, start);
    let sent = filled(&mut window, start + Duration::from_secs(10)).len();
    // 35, then 38, 41, 45, 49, 53, 58 and 63 for 100 ms.
    assert_eq!(sent, 63 - 32);
}

#[test]
fn a_pause_holds_all_requests_until_it_ends() {
    let now = Instant::now();
    let mut window = Window::new(64);
    window.admit(now);
    window.admit(now);
    assert!(window.refused(after_halvings(0), now, Some(Duration::from_secs(5))));
    assert!(
        !window.refused(after_halvings(0), now, Some(Duration::from_secs(2))),
        "the same pause"
    );
    let until = now + Duration::from_secs(5);
    assert_eq!(window.admit(now), Admission::PausedUntil(until));
    assert!(matches!(window.admit(until), Admission::Admitted(_)));
}

proptest! {
    #[test]
    fn the_width_stays_within_its_bounds(
        max in 1_u32..200,
        events in prop::collection::vec(0_u8..5, 0..400),
    ) {
        let mut now = Instant::now();
        let mut window = Window::new(max);
        let mut in_flight: Vec<RequestStart> = Vec::new();
        for event in events {
            let before = window.size;
            let refusals = window.halvings;
            match event {
                0 | 1 => {
                    if let Admission::Admitted(start) = window.admit(now) {
                        in_flight.push(start);
                        prop_assert!(window.in_flight <= window.size, "never beyond the window");
                    }
                }
                2 => if let Some(start) = in_flight.pop() { window.answered(start) },
                3 => now += GROWTH_TIME / 2,
                _ => if let Some(start) = in_flight.pop() {
                    window.refused(start, now, None);
                    prop_assert!(window.size <= before, "a refusal never widens it");
                    if window.halvings > refusals {
                        prop_assert!(window.size <= (before / 2).max(1));
                    }
                },
            }
            prop_assert!((1..=max).contains(&window.size));
            prop_assert!(window.size <= before.saturating_mul(2), "at most doubled in one step");
            prop_assert_eq!(window.in_flight as usize, in_flight.len());
            prop_assert!(window.in_flight <= max);
        }
    }
}

proptest! {
    // Each case is a whole simulation.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    /// A provider that accepts `capacity` requests in parallel and refuses others immediately:
    /// every request is accepted in the end, and none is refused more often than the window halves.
    #[test]
    fn a_provider_with_any_capacity_is_served(
        capacity in 1_u32..300,
        max in 1_u32..1100,
        requests in 1_u32..600,
        latency_ms in 1_u64..2000,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let most = runtime.block_on(async {
            let stand_in = StandIn::new(capacity, max);
            stand_in.serve(requests, Duration::from_millis(latency_ms)).await
        });
        prop_assert!(most.in_flight <= max);
        // Ten halvings lead from the largest window to one request; the rest are single ones too
        // many, when a window of the right size grows.
        prop_assert!(most.refusals_of_one <= 40, "{} refusals", most.refusals_of_one);
    }
}

/// A provider behind a limiter.
struct StandIn {
    limiter: Limiter,
    capacity: u32,
    inside: AtomicU32,
    most: AtomicU32,
}

struct Most {
    in_flight: u32,
    refusals_of_one: u32,
}

impl StandIn {
    fn new(capacity: u32, max: u32) -> Arc<Self> {
        Arc::new(Self {
            limiter: Limiter::new("acme", max),
            capacity,
            inside: AtomicU32::new(0),
            most: AtomicU32::new(0),
        })
    }

    /// Sends one request until it is accepted. Returns the number of refusals.
    async fn request(&self, latency: Duration) -> u32 {
        let mut refusals = 0;
        loop {
            let permit = self.limiter.acquire(Duration::from_secs(60)).await.unwrap();
            let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(inside, Ordering::SeqCst);
            let accepted = inside <= self.capacity;
            let answer = if accepted {
                latency
            } else {
                Duration::from_millis(5)
            };
            tokio::time::sleep(answer).await;
            self.inside.fetch_sub(1, Ordering::SeqCst);
            if accepted {
                permit.answered();
                return refusals;
            }
            permit.refused(None);
            refusals += 1;
            // As the retry schedule does, it waits longer each time.
            tokio::time::sleep(Duration::from_millis(100 << refusals.min(8))).await;
        }
    }

    async fn serve(self: Arc<Self>, requests: u32, latency: Duration) -> Most {
        let mut tasks = JoinSet::new();
        for _ in 0..requests {
            let stand_in = Arc::clone(&self);
            tasks.spawn(async move { stand_in.request(latency).await });
        }
        let mut refusals_of_one = 0;
        while let Some(joined) = tasks.join_next().await {
            refusals_of_one = refusals_of_one.max(joined.unwrap());
        }
        assert_eq!(self.limiter.window().in_flight, 0);
        Most {
            in_flight: self.most.load(Ordering::SeqCst),
            refusals_of_one,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_slow_requests_take_two_rounds() {
    let began = Instant::now();
    let stand_in = StandIn::new(u32::MAX, 1024);
    let most = stand_in.serve(1000, Duration::from_millis(600)).await;
    // The last ones are sent after less than half a second.
    assert!(
        began.elapsed() <= Duration::from_millis(1150),
        "{:?}",
        began.elapsed()
    );
    assert_eq!((most.in_flight, most.refusals_of_one), (1000, 0));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_soon_is_not_flooded() {
    // Of 1,000 requests, 32 are sent, 12 of them refused; then 16 and a few more are in flight.
    let stand_in = StandIn::new(20, 1024);
    let most = stand_in.serve(1000, Duration::from_millis(600)).await;
    assert_eq!(most.in_flight, 32);
}

#[tokio::test(start_paused = true)]
async fn every_waiting_request_is_admitted_in_the_end() {
    let limiter = Arc::new(Limiter::new("acme", 4));
    let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut tasks = JoinSet::new();
    for number in 0..200 {
        let (limiter, inside, most) = (limiter.clone(), inside.clone(), most.clone());
        tasks.spawn(async move {
            let permit = limiter.acquire(Duration::from_secs(60)).await.unwrap();
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            inside.fetch_sub(1, Ordering::SeqCst);
            match number % 3 {
                0 => permit.answered(),
                1 => drop(permit.refused(Some(Duration::from_millis(50)))),
                _ => drop(permit),
            }
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined.unwrap();
    }
    assert!((1..=4).contains(&most.load(Ordering::SeqCst)));
    assert_eq!(limiter.window().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_pause_longer_than_max_wait_is_an_error_immediately() {
    let limiter = Limiter::new("acme", 4);
    limiter
        .acquire(Duration::ZERO)
        .await
        .unwrap()
        .refused(Some(Duration::from_secs(90)));
    let began = Instant::now();
    let refused = limiter.acquire(Duration::from_secs(60)).await.unwrap_err();
    assert_eq!(
        (refused, began.elapsed()),
        (PausedFor(Duration::from_secs(90)), Duration::ZERO)
    );
    tokio::time::advance(Duration::from_secs(31)).await;
    limiter.acquire(Duration::from_secs(60)).await.unwrap();
}
