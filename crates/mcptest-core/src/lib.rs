//! The pure parts of mcptest under one name: traces in, figures and verdicts out.
//!
//! A [`Trace`](trace::Trace) records the calls of one run. Gates ([`eval`]) turn the traces of a
//! test's runs into figures, and expectations ([`expect`]) turn figures into
//! [verdicts](verdict::Verdict). Nothing here uses files, clocks, networks or terminals.
//!
//! Score a trace:
//!
//! ```
//! use mcptest_core::eval::trajectory::{Trajectory, validate_trace};
//! use mcptest_core::{tool_id::KnownServers, trace};
//!
//! let expected: Trajectory = serde_json::from_str(
//!     r#"{"calls": [{"name": "get_weather", "args": {"subset": {"city": "Davis"}}}]}"#,
//! )?;
//! let text = r#"{"tool_calls": [{"name": "get_weather", "args": {"city": "Davis", "days": 2}}]}"#;
//! let validation = validate_trace(&expected, &trace::read(text)?[0], &KnownServers::default())?;
//! assert!(validation.passed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To judge many runs, on several threads or machines, use the accumulators of [`eval`].
//!
//! | for | see |
//! |---|---|
//! | traces, targets, matchers, expectations, verdicts | [`trace`], [`target`], [`matcher`], [`expect`], [`verdict`] |
//! | gates, their scoring functions, their figures; mutations of traces | [`eval`], [`outcome`], [`mutate`] |
//! | faults and attacks that a run can meet | [`fault`], [`attack`] |
//! | catalogs: lint, quality, changes, benchmark, token counts, prices | [`lint`], [`quality`], [`catalog_diff`], [`tool_bench`], [`tokens`], [`prices`] |
//! | secrets and volatile values | [`redact`], [`volatile`] |
//! | exact percentages, intervals, random numbers | [`percent`], [`statistics`], [`random`] |
//!
//! This crate only re-exports; the code is in one crate per concern.

pub use mcptest_attack as attack;
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
    catalog, expect, fault, judged, matcher, outcome, parallel, snapshot, target, tool_id, trace,
    verdict,
};
