//! One-to-one assignments, in any order and in order.

use std::collections::VecDeque;

/// A largest one-to-one assignment of left to right vertices; `edges[left]` lists the right ones
/// that fit.
///
/// Greedy assignment is wrong where shapes overlap: a call that fits two expectations may
/// take the only one that another call fits. Here an earlier choice moves over when that lets a
/// later vertex in, so as many as possible are matched, and a left vertex once matched stays so:
/// what is left over are later ones.
///
/// A search that finds nothing has seen vertices that no later search can use either, so they are
/// left out from then on; all failing searches together visit every edge once.
pub(super) fn largest_assignment(edges: &[Vec<usize>], rights: usize) -> Vec<Option<usize>> {
    let mut of_left: Vec<Option<usize>> = vec![None; edges.len()];
    let mut of_right: Vec<Option<usize>> = vec![None; rights];
    let mut dead = vec![false; rights];
    for start in 0..edges.len() {
        // Breadth first over alternating paths; `reached_from[right]` is the left vertex that found
        // it.
        let mut reached_from: Vec<Option<usize>> = vec![None; rights];
        let mut reached = Vec::new();
        let mut queue = VecDeque::from([start]);
        let mut free = None;
        'search: while let Some(left) = queue.pop_front() {
            for &right in &edges[left] {
                if dead[right] || reached_from[right].is_some() {
                    continue;
                }
                reached_from[right] = Some(left);
                reached.push(right);
                match of_right[right] {
                    None => {
                        free = Some(right);
                        break 'search;
                    }
                    Some(owner) => queue.push_back(owner),
                }
            }
        }
        if free.is_none() {
            for right in reached {
                dead[right] = true;
            }
        }
        // Back along the path: each left vertex takes the right one it reached, and leaves its
        // former one to its finder.
        while let Some(right) = free {
            let Some(left) = reached_from[right] else {
                break;
            };
            of_right[right] = Some(left);
            free = of_left[left].replace(right);
        }
    }
    of_left
}

/// A largest assignment that keeps the order of both sides (a longest common subsequence); earliest
/// right vertices first.
pub(super) fn largest_ordered_assignment(
    edges: &[Vec<usize>],
    rights: usize,
) -> Vec<Option<usize>> {
    // If all can be matched, taking the earliest each time does it, without the table.
    let mut from = 0;
    let greedy: Option<Vec<usize>> = edges
        .iter()
        .map(|fitting| {
            let right = fitting
                .iter()
                .copied()
                .filter(|right| *right >= from)
                .min()?;
            from = right + 1;
            Some(right)
        })
        .collect();
    if let Some(all) = greedy {
        return all.into_iter().map(Some).collect();
    }
    let lefts = edges.len();
    let width = rights + 1;
    // best[l * width + r]: the most that can be matched of the left ones from l on with the right
    // ones from r on.
    let mut best = vec![0_u32; (lefts + 1) * width];
    for left in (0..lefts).rev() {
        let mut fits = vec![false; rights];
        for &right in &edges[left] {
            fits[right] = true;
        }
        for right in (0..rights).rev() {
            let skip = best[(left + 1) * width + right].max(best[left * width + right + 1]);
            let take = if fits[right] {
                best[(left + 1) * width + right + 1] + 1
            } else {
                0
            };
            best[left * width + right] = skip.max(take);
        }
    }
    let mut assigned = vec![None; lefts];
    let mut from = 0;
    for (left, slot) in assigned.iter_mut().enumerate() {
        let most = best[left * width + from];
        // Matching a left vertex with its first fitting right one is as good as any, if matching it
        // is good at all.
        let first = edges[left]
            .iter()
            .copied()
            .filter(|right| *right >= from)
            .min();
        if let Some(right) = first.filter(|right| best[(left + 1) * width + right + 1] + 1 == most)
        {
            *slot = Some(right);
            from = right + 1;
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_earlier_choice_moves_over() {
        assert_eq!(
            largest_assignment(&[vec![0, 1], vec![0]], 2),
            [Some(1), Some(0)]
        );
        assert_eq!(
            largest_assignment(&[vec![0, 1], vec![0, 2], vec![0], vec![0]], 3),
            [Some(1), Some(2), Some(0), None]
        );
        assert_eq!(largest_assignment(&[], 3), []);
        assert_eq!(largest_assignment(&[vec![], vec![]], 0), [None, None]);
    }

    #[test]
    fn as_many_as_possible_keep_their_order() {
        // a b c among b c a: leaving out `a` is better than leaving out the other two.
        assert_eq!(
            largest_ordered_assignment(&[vec![2], vec![0], vec![1]], 3),
            [None, Some(0), Some(1)]
        );
        assert_eq!(
            largest_ordered_assignment(&[vec![0, 1], vec![0, 1]], 2),
            [Some(0), Some(1)]
        );
        assert_eq!(largest_ordered_assignment(&[vec![]], 0), [None]);
    }

    #[test]
    fn a_thousand_like_calls_for_half_as_many_places() {
        let edges: Vec<Vec<usize>> = (0..1000).map(|_| (0..500).collect()).collect();
        let matched = largest_assignment(&edges, 500);
        assert_eq!(matched.iter().flatten().count(), 500);
        assert!(matched[..500].iter().all(Option::is_some));
    }

    /// The size of the best assignment, by trying everything.
    fn by_trying(edges: &[Vec<usize>], taken: u32, ordered: bool) -> usize {
        let Some((first, rest)) = edges.split_first() else {
            return 0;
        };
        let mut most = by_trying(rest, taken, ordered);
        for right in first {
            let bit = 1 << right;
            let barred = if ordered {
                taken >> right != 0
            } else {
                taken & bit != 0
            };
            if !barred {
                most = most.max(1 + by_trying(rest, taken | bit, ordered));
            }
        }
        most
    }

    fn graphs() -> impl Strategy<Value = Vec<Vec<usize>>> {
        let row =
            prop::collection::btree_set(0_usize..5, 0..4).prop_map(|set| set.into_iter().collect());
        prop::collection::vec(row, 0..6)
    }

    proptest! {
        #[test]
        fn no_assignment_is_larger(edges in graphs()) {
            for ordered in [false, true] {
                let found = if ordered { largest_ordered_assignment(&edges, 5) } else { largest_assignment(&edges, 5) };
                let used: Vec<usize> = found.iter().flatten().copied().collect();
                prop_assert_eq!(used.len(), by_trying(&edges, 0, ordered));
                for (left, right) in found.iter().enumerate() {
                    prop_assert!(right.is_none_or(|right| edges[left].contains(&right)));
                }
                let mut distinct = used.clone();
                distinct.sort_unstable();
                distinct.dedup();
                prop_assert_eq!(distinct.len(), used.len());
                if ordered {
                    prop_assert!(used.is_sorted());
                }
            }
        }
    }
}
