//! Measurements. They are printed and compared with targets, but no test depends on a clock.

pub mod agents;
mod bare;
mod figures;
pub mod growth;
pub mod mock;
pub mod reporters;
pub mod score;
pub mod startup;
pub mod tokens;
pub mod tools;

pub use figures::Options;
