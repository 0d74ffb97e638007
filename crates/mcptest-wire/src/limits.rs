//! Bounds on what a server can make us hold.
//!
//! The server under test is the one party nobody vouches for, so everything it
//! can grow (a line, a list, a log) has a ceiling. The defaults are far above
//! what any real server was seen to send.

/// Ceilings for one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Longest line accepted on stdout, in bytes, newline excluded. A longer
    /// one is dropped as it arrives and fails the calls that were waiting.
    pub max_line_bytes: usize,
    /// Violations kept in full; later ones are only counted.
    pub max_violations: usize,
    /// Characters of server text kept with a violation or an error.
    pub max_text_chars: usize,
    /// Notifications and server requests kept in full; older ones give way.
    pub max_server_messages: usize,
    /// Lines of stderr kept for error messages (the last ones).
    pub max_stderr_lines: usize,
    /// Bytes of stderr kept for error messages (the last ones).
    pub max_stderr_bytes: usize,
    /// Pages followed by one list request.
    pub max_pages: usize,
    /// Items taken from one list request, over all its pages.
    pub max_items: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_line_bytes: 64 * 1024 * 1024,
            max_violations: 200,
            max_text_chars: 500,
            max_server_messages: 256,
            max_stderr_lines: 40,
            max_stderr_bytes: 8 * 1024,
            max_pages: 1_000,
            max_items: 100_000,
        }
    }
}
