//! Exact arithmetic for figures: whole percents, ratios, confidence intervals, comparisons of
//! samples, money, seeded order, and integers in few bytes.
//!
//! The same input gives the same bytes on every platform.

pub mod attack_plan;
pub mod comparison;
pub mod percent;
pub mod random;
pub mod ratio;
pub mod run_plan;
pub mod statistics;
pub mod usd;
pub mod varint;
