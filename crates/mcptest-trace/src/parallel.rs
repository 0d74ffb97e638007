//! Work that is distributed over the cores. Results keep the order of the items, so they do not
//! depend on the number of cores.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The number of threads that this machine runs in parallel.
#[must_use]
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The number of threads for this many items: one if there are fewer than `least`.
#[must_use]
pub fn threads_for(items: usize, least: usize) -> usize {
    if items < least { 1 } else { threads() }
}

/// Applies `work` to each item and returns the results in the order of the items. With one thread,
/// or fewer than two items, no thread is started.
///
/// ```
/// assert_eq!(mcptest_trace::parallel::map(4, vec![1, 2, 3], |number| number * 2), [2, 4, 6]);
/// ```
///
/// # Panics
/// If `work` panics.
pub fn map<T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let mut done: Vec<(usize, R)> = Vec::with_capacity(items.len());
    // A free thread takes the next item: items may differ much in size.
    let items = Mutex::new(items.into_iter().enumerate());
    let take = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let some = || -> Vec<(usize, R)> {
        std::iter::from_fn(take)
            .map(|(place, item)| (place, work(item)))
            .collect()
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
        done.extend(some());
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fewer_than_two_items_start_no_thread() {
        let here = thread::current().id();
        let where_it_ran = |_| thread::current().id();
        assert!(map(8, Vec::<u8>::new(), where_it_ran).is_empty());
        assert_eq!(map(8, vec![1_u8], where_it_ran), [here]);
        assert_eq!(map(1, vec![1_u8, 2], where_it_ran), [here, here]);
    }

    #[test]
    fn a_panic_of_the_work_is_not_lost() {
        let hit =
            std::panic::catch_unwind(|| map(3, (0..50).collect(), |number| assert_ne!(number, 31)));
        assert!(hit.is_err());
    }

    proptest! {
        #[test]
        fn results_do_not_depend_on_the_number_of_threads(items in prop::collection::vec(any::<u16>(), 0..60), threads in 0..6_usize) {
            let alone: Vec<String> = items.iter().map(ToString::to_string).collect();
            prop_assert_eq!(map(threads, items, |item| item.to_string()), alone);
        }
    }
}
