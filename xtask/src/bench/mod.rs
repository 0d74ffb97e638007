//! Measurements. They are printed and compared with targets, but no test depends on a clock.

pub mod startup;
