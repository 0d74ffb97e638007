//! Figures of a message beside those of its run.

pub(crate) mod message;
mod near_miss;
pub(crate) mod pool;
mod sentence_words;
