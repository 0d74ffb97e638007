//! Volatile values: what is normalised for a cassette is restored for a replay.

use std::sync::{Arc, LazyLock};

use mcptest_redact::volatile::{Bindings, Normaliser, Rules};
use serde_json::Value;

static RULES: LazyLock<Arc<Rules>> =
    LazyLock::new(|| Arc::new(Rules::new(&[]).expect("the built-in rules")));

/// Runs one input: a JSON value.
pub(super) fn run(input: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    let rules = Arc::clone(&RULES);
    let mut normaliser = Normaliser::new(Arc::clone(&rules));
    let mut recorded = value.clone();
    normaliser.value(&mut recorded);
    let mut replayed = recorded.clone();
    let mut bindings = Bindings::new(rules, normaliser.take_values());
    bindings.restore(&mut replayed);
    assert_eq!(replayed, value, "recorded as {recorded}");
}
