//! Bounds on what a server can make us store.
//!
//! The server under test is untrusted, so everything that it can grow (a line, a list, a log)
//! has a bound. The defaults are far above what real servers send.

/// The bounds of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireLimits {
    /// Longest line accepted on stdout, in bytes without the newline. A longer one is discarded as
    /// it arrives and fails the waiting calls.
    pub max_line_bytes: usize,
    /// Violations kept in full; later ones are only counted.
    pub max_violations: usize,
    /// Characters of server text kept with a violation or an error.
    pub max_text_chars: usize,
    /// Notifications and requests of the server kept in full; the oldest are discarded first.
    pub max_server_messages: usize,
    /// Lines of stderr kept for error messages (the last ones).
    pub max_stderr_lines: usize,
    /// Bytes of stderr kept for error messages (the last ones).
    pub max_stderr_bytes: usize,
    /// Pages fetched by one list request.
    pub max_pages: usize,
    /// Items accepted from one list request, over all its pages.
    pub max_items: usize,
    /// Bytes of the messages of one list request, over all its pages.
    pub max_list_bytes: usize,
}

impl Default for WireLimits {
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
            max_list_bytes: 64 * 1024 * 1024,
        }
    }
}
