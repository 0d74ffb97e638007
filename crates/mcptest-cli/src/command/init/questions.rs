//! Questions on a terminal: one line each, with a default for Enter.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::failure::Failure;
use crate::output;

/// A person who can be asked, or nobody.
#[derive(Debug, Clone, Copy)]
pub struct Questions {
    interactive: bool,
}

impl Questions {
    /// Somebody can be asked if both ends are a terminal, unless `--yes` says not to.
    pub fn new(yes: bool) -> Self {
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Self {
            interactive: terminal && !yes,
        }
    }

    pub fn interactive(self) -> bool {
        self.interactive
    }

    /// Asks for a line; an empty one is the default.
    ///
    /// # Errors
    /// The input ends.
    pub fn line(self, question: &str, default: &str) -> Result<String, Failure> {
        let shown = if default.is_empty() {
            format!("{question}: ")
        } else {
            format!("{question} [{default}]: ")
        };
        let answer = read_line(&shown)?;
        Ok(if answer.is_empty() {
            default.to_owned()
        } else {
            answer
        })
    }

    /// Asks for yes or no until it is one of them. Without a terminal, the default.
    ///
    /// # Errors
    /// The input ends.
    pub fn confirm(self, question: &str, default: bool) -> Result<bool, Failure> {
        if !self.interactive {
            return Ok(default);
        }
        let choices = if default { "Y/n" } else { "y/N" };
        loop {
            let answer = read_line(&format!("{question} [{choices}] "))?;
            match answer.to_lowercase().as_str() {
                "" => return Ok(default),
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => output::status("  answer y or n"),
            }
        }
    }

    /// Asks for one of some words until it is one of them. Without a terminal, the default.
    ///
    /// # Errors
    /// The input ends.
    pub fn choice<'a>(
        self,
        question: &str,
        words: &[&'a str],
        default: &'a str,
    ) -> Result<&'a str, Failure> {
        if !self.interactive {
            return Ok(default);
        }
        loop {
            let answer = read_line(&format!("{question} ({}) [{default}]: ", words.join(", ")))?;
            if answer.is_empty() {
                return Ok(default);
            }
            let answer = answer.to_lowercase();
            if let Some(word) = words.iter().find(|word| word.starts_with(&answer)) {
                return Ok(word);
            }
            output::status(&format!("  answer one of {}", words.join(", ")));
        }
    }
}

fn read_line(question: &str) -> Result<String, Failure> {
    let mut stderr = std::io::stderr().lock();
    // A terminal that is gone is noticed by the read.
    let _ = write!(stderr, "{question}");
    let _ = stderr.flush();
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(1..) => Ok(line.trim().to_owned()),
        Ok(0) | Err(_) => {
            let _ = writeln!(stderr);
            Err(Failure::Message(
                "the input ended before the question was answered; nothing was written".to_owned(),
            ))
        }
    }
}
