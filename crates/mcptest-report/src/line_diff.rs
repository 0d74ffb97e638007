//! Line-by-line differences in the unified form that `patch` and people read.

use std::fmt::Write as _;

use similar::{ChangeTag, DiffOp, TextDiff};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// The unified diff of two strings, empty if their lines are equal. A missing line end at the end
/// of a string is ignored.
#[must_use]
pub fn unified_diff(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    let hunks = hunks(old, new);
    if hunks.is_empty() {
        return hunks;
    }
    format!("--- {old_name}\n+++ {new_name}\n{hunks}")
}

/// The hunks of the unified diff, without the lines that name files.
pub(crate) fn hunks(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let diff = TextDiff::configure().diff_slices(&old, &new);
    let mut out = String::new();
    for ops in diff.grouped_ops(CONTEXT) {
        let Some((first, last)) = ops.first().zip(ops.last()) else {
            continue;
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "@@ -{} +{} @@",
            range(first, last, DiffOp::old_range),
            range(first, last, DiffOp::new_range)
        );
        for change in ops.iter().flat_map(|op| diff.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let _ = writeln!(out, "{mark}{}", change.value());
        }
    }
    out
}

/// `start,count`. The count is always written: `similar` omits a count of one, and readers of our
/// output have always seen it. An empty range starts at the line before it.
fn range(first: &DiffOp, last: &DiffOp, of: fn(&DiffOp) -> std::ops::Range<usize>) -> String {
    let (start, end) = (of(first).start, of(last).end);
    let count = end.saturating_sub(start);
    format!("{},{count}", if count == 0 { start } else { start + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the hunks of a diff to the old lines.
    fn patched(old: &str, diff: &str) -> String {
        let old: Vec<&str> = old.lines().collect();
        let (mut out, mut at) = (Vec::new(), 0);
        for line in diff.lines() {
            if let Some(header) = line.strip_prefix("@@ -") {
                let (start, rest) = header.split_once(',').unwrap();
                let (count, _) = rest.split_once(' ').unwrap();
                let start: usize = start.parse().unwrap();
                let start = if count == "0" { start } else { start - 1 };
                out.extend_from_slice(&old[at..start]);
                at = start;
                continue;
            }
            match line.split_at(1) {
                ("+", added) => out.push(added),
                ("-", removed) => {
                    assert_eq!(old[at], removed);
                    at += 1;
                }
                (_, kept) => {
                    assert_eq!(old[at], kept);
                    out.push(kept);
                    at += 1;
                }
            }
        }
        out.extend_from_slice(&old[at..]);
        out.iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn applying_a_diff_gives_the_new_text() {
        let texts = [
            "",
            "a\n",
            "b\n",
            "a\nb\n",
            "b\na\n",
            "a\nb\nc\na\nb\nb\na\n",
            "c\nb\na\nb\na\nc\n",
            "x\ny\nz\n",
        ];
        for old in texts {
            for new in texts {
                assert_eq!(patched(old, &hunks(old, new)), new, "{old:?} {new:?}");
            }
        }
    }

    #[test]
    fn hunks_have_context_and_counts() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let new = old.replace("\n5\n", "\n5\nnew\n").replace("\n18\n", "\n");
        let wanted = "--- a\n+++ b\n@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+new\n 6\n 7\n 8\n\
                      @@ -15,6 +16,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n";
        assert_eq!(unified_diff("a", "b", &old, &new), wanted);
        assert_eq!(unified_diff("a", "b", &old, &old), "");
        assert_eq!(hunks("a", "b"), "@@ -1,1 +1,1 @@\n-a\n+b\n");
    }
}
