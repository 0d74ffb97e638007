//! One door to the pure parts of mcptest: evidence in, figures and verdicts out.
//!
//! A [`Trace`](trace::Trace) records the calls of one run. Gates ([`eval`]) turn the traces of a
//! test's runs into figures, expectations ([`expect`]) turn figures into
//! [verdicts](verdict::Verdict). Nothing behind this door knows files, clocks, networks or
//! terminals.
//!
//! This crate only re-exports; the code is in one crate per concern.

pub use mcptest_catalog::{
    diff as catalog_diff, lexical, lint, prices, quality, similar_names as look_alikes, tokens,
    tool_bench,
};
pub use mcptest_gates as eval;
pub use mcptest_gates::mutate;
pub use mcptest_json as json;
pub use mcptest_json::text;
pub use mcptest_numbers::{percent, random, statistics};
pub use mcptest_protocol as protocol;
pub use mcptest_redact::{redact, volatile};
pub use mcptest_trace::{
    catalog, expect, fault, judged, matcher, parallel, snapshot, target, tool_id, trace, verdict,
};
