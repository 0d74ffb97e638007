//! Tool catalogs: lint rules, quality score, diff, tool-bench, token counts and prices.

pub mod call_arguments;
pub mod diff;
pub mod discovery;
pub mod distractors;
pub mod doctor;
pub mod lexical;
pub mod lint;
pub mod pin;
pub mod prices;
pub mod quality;
pub mod saved;
pub mod similar_names;
pub mod tokens;
pub mod tool_bench;
