//! The difference of two texts, line by line, in the form that `patch` and people read.

use std::fmt::Write as _;

/// Lines around a change.
const CONTEXT: usize = 3;

/// A step from the old text to the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Keep,
    Remove,
    Add,
}

/// A unified diff; empty if the texts are equal. Both texts are taken to end with a line end.
#[must_use]
pub fn unified_diff(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let steps = script(&old, &new);
    let mut out = String::new();
    if steps.iter().all(|step| *step == Step::Keep) {
        return out;
    }
    // Writing to a String cannot fail.
    let _ = writeln!(out, "--- {old_name}\n+++ {new_name}");
    let changes: Vec<usize> = (0..steps.len())
        .filter(|index| steps[*index] != Step::Keep)
        .collect();
    let mut next = 0;
    while let Some(first) = changes.get(next).copied() {
        // Changes that are near each other share a hunk.
        let mut last = first;
        while let Some(more) = changes
            .get(next + 1)
            .filter(|more| **more - last <= 2 * CONTEXT)
        {
            last = *more;
            next += 1;
        }
        next += 1;
        let (from, to) = (
            first.saturating_sub(CONTEXT),
            (last + CONTEXT + 1).min(steps.len()),
        );
        write_hunk(&mut out, &steps, from..to, &old, &new);
    }
    out
}

fn write_hunk(
    out: &mut String,
    steps: &[Step],
    range: std::ops::Range<usize>,
    old: &[&str],
    new: &[&str],
) {
    let count =
        |steps: &[Step], without: Step| steps.iter().filter(|step| **step != without).count();
    let before = &steps[..range.start];
    let (mut at_old, mut at_new) = (count(before, Step::Add), count(before, Step::Remove));
    let inside = &steps[range];
    let (old_lines, new_lines) = (count(inside, Step::Add), count(inside, Step::Remove));
    let start = |at: usize, lines: usize| if lines == 0 { at } else { at + 1 };
    let _ = writeln!(
        out,
        "@@ -{},{old_lines} +{},{new_lines} @@",
        start(at_old, old_lines),
        start(at_new, new_lines)
    );
    for step in inside {
        let (mark, line) = match step {
            Step::Keep => (' ', old[at_old]),
            Step::Remove => ('-', old[at_old]),
            Step::Add => ('+', new[at_new]),
        };
        at_old += usize::from(*step != Step::Add);
        at_new += usize::from(*step != Step::Remove);
        let _ = writeln!(out, "{mark}{line}");
    }
}

/// The shortest way from one text to the other (Myers): cheap where they differ little, which is
/// what a fix does.
fn script(old: &[&str], new: &[&str]) -> Vec<Step> {
    let same_start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[same_start..], &new[same_start..]);
    let most = a.len() + b.len();
    let offset = most + 1;
    let mut reach = vec![0_usize; 2 * most + 3];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    'search: for distance in 0..=most {
        trace.push(reach[offset - distance..=offset + distance].to_vec());
        for k in (offset - distance..=offset + distance).step_by(2) {
            let down =
                k == offset - distance || (k != offset + distance && reach[k - 1] < reach[k + 1]);
            let mut x = if down { reach[k + 1] } else { reach[k - 1] + 1 };
            // Diagonal k is x - y + offset.
            let mut y = x + offset - k;
            while x < a.len() && y < b.len() && a[x] == b[y] {
                x += 1;
                y += 1;
            }
            reach[k] = x;
            if x >= a.len() && y >= b.len() {
                break 'search;
            }
        }
    }
    let mut steps = walk_back(&trace, a.len(), b.len());
    steps.extend(std::iter::repeat_n(Step::Keep, same_start));
    steps.reverse();
    steps
}

/// From the end to the start, along what was reached at each distance.
fn walk_back(trace: &[Vec<usize>], mut x: usize, mut y: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for (distance, reach) in trace.iter().enumerate().rev() {
        // `reach` holds the diagonals -distance..=distance as they were before this distance.
        let at = |k: i64| {
            usize::try_from(k + distance as i64)
                .ok()
                .and_then(|index| reach.get(index))
                .copied()
                .unwrap_or(0)
        };
        let k = x as i64 - y as i64;
        let d = distance as i64;
        if distance == 0 {
            steps.extend(std::iter::repeat_n(Step::Keep, x));
            break;
        }
        let down = k == -d || (k != d && at(k - 1) < at(k + 1));
        let before_k = if down { k + 1 } else { k - 1 };
        let before_x = at(before_k);
        let before_y = usize::try_from(before_x as i64 - before_k).unwrap_or(0);
        while x > before_x && y > before_y {
            steps.push(Step::Keep);
            x -= 1;
            y -= 1;
        }
        steps.push(if down { Step::Add } else { Step::Remove });
        (x, y) = (before_x, before_y);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies a script: what is kept or added is the new text, what is kept or removed the old
    /// one.
    fn check(old: &str, new: &str) {
        let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let (mut x, mut y) = (0, 0);
        for step in script(&a, &b) {
            match step {
                Step::Keep => {
                    assert_eq!(a[x], b[y], "{old:?} {new:?}");
                    x += 1;
                    y += 1;
                }
                Step::Remove => x += 1,
                Step::Add => y += 1,
            }
        }
        assert_eq!((x, y), (a.len(), b.len()), "{old:?} {new:?}");
    }

    #[test]
    fn scripts_lead_from_one_text_to_the_other() {
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
                check(old, new);
            }
        }
    }

    #[test]
    fn hunks_have_context_and_counts() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let new = old.replace("\n5\n", "\n5\nnew\n").replace("\n18\n", "\n");
        let wanted = "--- a\n+++ b\n@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+new\n 6\n 7\n 8\n@@ -15,6 +16,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n";
        assert_eq!(unified_diff("a", "b", &old, &new), wanted);
        assert_eq!(unified_diff("a", "b", &old, &old), "");
    }
}
