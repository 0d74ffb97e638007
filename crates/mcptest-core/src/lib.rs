//! The pure heart of mcptest: evidence in, numbers and verdicts out.
//!
//! A [`Trace`](trace::Trace) records what an agent observably did in one run. Gates ([`eval`]) turn
//! the traces of a test's runs into numbers, expectations ([`expect`]) turn numbers into
//! [verdicts](verdict::Verdict). Nothing in this crate knows files, clocks, networks or terminals,
//! so a live run, a replayed one and a trace that came from elsewhere meet the same code and give
//! the same bytes.
//!
//! | module | what is there |
//! |---|---|
//! | [`trace`] | the recorded run, how it is read, how calls and results pair |
//! | [`catalog`] | tools as a server lists them |
//! | [`tool_id`] | when a written tool name means a recorded call |
//! | [`target`] | the path language that selects a value |
//! | [`matcher`] | what a selected value must look like |
//! | [`expect`] | target and matcher together, and the outcome of applying them |
//! | [`snapshot`] | answers kept in files: what is kept of them, and how a later one is held against it |
//! | [`eval`] | the gates, one file each, and their registry |
//! | [`judged`] | matchers that ask a model, and what it answered |
//! | [`json`] | comparing JSON by value, canonical form |
//! | [`percent`] | whole percents without floating point |
//! | [`tokens`] | token counts of texts, tools and catalogs |
//! | [`prices`] | what tokens cost: a dated table, and a suite's own prices |
//! | [`fault`] | injected faults: which calls they strike, and what is synthesized |
//! | [`statistics`] | Wilson and exact intervals, computed the same on every platform |
//! | [`parallel`] | work shared out over the cores, results in order |
//! | [`random`] | seeded order without a global generator |
//! | [`lint`] | rules over tool catalogs, one file each, their waivers and fixes |
//! | [`quality`] | the description quality score and the `tool_quality:` block |
//! | [`look_alikes`] | tools with the same name, or nearly |
//! | [`lexical`] | the word-overlap tool selector |
//! | [`tool_bench`] | whether descriptions carry the choice of a tool |
//! | [`catalog_diff`] | what changed between two catalogs, and what that breaks |
//! | [`mutate`] | small typed changes to traces, to see whether gates bite |
//! | [`verdict`] | the four verdicts and the typed causes of errors |
//! | [`protocol`] | what both ends of MCP agree on: revisions, headers |
//! | [`redact`] | taking secrets out of texts and values |
//! | [`volatile`] | values that are different in every run, and the placeholders for them |
//! | [`text`] | making untrusted text safe to show |

pub mod catalog;
pub mod catalog_diff;
pub mod eval;
pub mod expect;
pub mod fault;
pub mod json;
pub mod judged;
pub mod lexical;
pub mod lint;
pub mod look_alikes;
pub mod matcher;
pub mod mutate;
pub mod parallel;
pub mod percent;
pub mod prices;
pub mod protocol;
pub mod quality;
pub mod random;
mod ratio;
pub mod redact;
pub mod snapshot;
pub mod statistics;
pub mod target;
pub mod text;
pub mod tokens;
pub mod tool_bench;
pub mod tool_id;
pub mod trace;
pub mod verdict;
pub mod volatile;
