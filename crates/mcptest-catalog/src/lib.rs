//! Tool catalogs: lint rules, quality score, diff, tool-bench, token counts and prices.

pub mod catalog_diff;
pub mod doctor;
pub mod lexical;
pub mod lint;
pub mod look_alikes;
pub mod prices;
pub mod quality;
pub mod tokens;
pub mod tool_bench;
