//! Exact arithmetic for figures: whole percents, ratios, confidence intervals, comparisons of
//! samples, money and seeded order.
//!
//! The same input gives the same bytes on every platform.

pub mod comparison;
pub mod percent;
pub mod random;
pub mod ratio;
pub mod run_plan;
pub mod statistics;
pub mod usd;
