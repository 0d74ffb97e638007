//! Reads a JSON Lines file line by line, parses every line, and does nothing else. Prints how many
//! there were.
//!
//! The first argument is the parser: `serde` keeps all values, as a program would that needs them;
//! `sonic` parses each line into a value and drops it.

use std::fs::File;
use std::io::{BufRead as _, BufReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(parser), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: yardstick serde|sonic FILE".into());
    };
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut line = String::new();
    let mut lines = 0_u64;
    let mut kept: Vec<serde_json::Value> = Vec::new();
    let is_sonic = parser == "sonic";
    while file.read_line(&mut line)? > 0 {
        lines += 1;
        if is_sonic {
            let value: sonic_rs::Value = sonic_rs::from_str(&line)?;
            std::hint::black_box(&value);
        } else {
            kept.push(serde_json::from_str(&line)?);
        }
        line.clear();
    }
    println!("{lines}");
    // A program that has read a file is not measured for freeing its memory.
    std::mem::forget(kept);
    Ok(())
}
