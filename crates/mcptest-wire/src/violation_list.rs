//! The bounded record of protocol violations of one connection.

use mcptest_http::text::quote;

use crate::log::ConnectionLog;
use crate::violation::{Violation, ViolationKind};

/// The bounded list of a connection's violations.
#[derive(Debug)]
pub(crate) struct ViolationList {
    list: Vec<Violation>,
    next_seq: u64,
    max: usize,
    max_chars: usize,
    log: ConnectionLog,
}

impl ViolationList {
    pub(crate) fn new(max: usize, max_chars: usize, log: ConnectionLog) -> Self {
        Self {
            list: Vec::new(),
            next_seq: 0,
            max,
            max_chars,
            log,
        }
    }

    /// Records a violation; `text` is the raw server text.
    pub(crate) fn record(&mut self, kind: ViolationKind, detail: &str, text: &str) {
        self.log.violation(kind, detail);
        let seq = self.next_seq;
        self.next_seq += 1;
        let merged = matches!(
            kind,
            ViolationKind::CrLf | ViolationKind::BlankLine | ViolationKind::ByteOrderMark
        );
        if merged && let Some(seen) = self.list.iter_mut().find(|v| v.kind == kind) {
            seen.count += 1;
            return;
        }
        if self.list.len() >= self.max {
            return;
        }
        self.list.push(Violation {
            seq,
            kind,
            detail: quote(detail, self.max_chars),
            text: quote(text, self.max_chars),
            count: 1,
        });
    }

    /// The number of violations, including those not kept.
    pub(crate) fn total(&self) -> u64 {
        self.next_seq
    }

    pub(crate) fn to_vec(&self) -> Vec<Violation> {
        self.list.clone()
    }

    /// The violations recorded since `seq`, for an error message.
    pub(crate) fn since(&self, seq: u64, max_shown: usize) -> Option<String> {
        let new: Vec<&Violation> = self.list.iter().filter(|v| v.seq >= seq).collect();
        if new.is_empty() {
            return None;
        }
        let mut shown: Vec<String> = new.iter().take(max_shown).map(|v| v.to_string()).collect();
        if new.len() > max_shown {
            shown.push(format!("and {} more", new.len() - max_shown));
        }
        Some(shown.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bounded_but_the_count_is_not() {
        let mut violations = ViolationList::new(2, 4, ConnectionLog::default());
        violations.record(ViolationKind::BlankLine, "", "");
        for _ in 0..5 {
            violations.record(ViolationKind::StdoutNoise, "", "abcdefgh\u{1b}");
        }
        violations.record(ViolationKind::BlankLine, "", "");
        let list = violations.to_vec();
        assert_eq!(list.len(), 2);
        assert_eq!(list[0].count, 2);
        assert_eq!(list[1].text, "abcd… (9 bytes in total)");
        assert_eq!(violations.total(), 7);
    }

    #[test]
    fn only_new_violations_are_listed() {
        let mut violations = ViolationList::new(10, 100, ConnectionLog::default());
        violations.record(ViolationKind::StdoutNoise, "", "old");
        let mark = violations.total();
        assert_eq!(violations.since(mark, 3), None);
        violations.record(ViolationKind::StdoutNoise, "", "new");
        assert_eq!(
            violations.since(mark, 3).unwrap(),
            "text on stdout that is not a message: new"
        );
    }
}
