//! The same work on many items, on all cores.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many items a thread claims at once: enough that claiming costs nothing,
/// few enough that no thread is left with a long tail.
const BATCH: usize = 16;

/// `items.iter().map(f)`, on as many threads as the machine has cores.
///
/// Results come back in the order of the items. Few items are done right here,
/// since starting a thread costs more than reading a handful of files.
pub fn map_parallel<T, R, F>(items: &[T], f: F) -> Vec<R>
where
    T: Sync,
    R: Send,
    F: Fn(&T) -> R + Sync,
{
    if items.len() <= BATCH {
        return items.iter().map(f).collect();
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(items.len().div_ceil(BATCH));
    if threads == 1 {
        return items.iter().map(f).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            let Some(batch) = items.get(start..items.len().min(start + BATCH)) else { break };
            if batch.is_empty() {
                break;
            }
            done.push((start, batch.iter().map(&f).collect::<Vec<R>>()));
        }
        done
    };
    let mut batches = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut batches = work();
        for other in others {
            match other.join() {
                Ok(done) => batches.extend(done),
                Err(payload) => panic::resume_unwind(payload),
            }
        }
        batches
    });
    batches.sort_unstable_by_key(|&(start, _)| start);
    batches.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        for count in [0, 1, 15, 16, 17, 1000, 1001] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = items.iter().map(|i| i * 2).collect();
            assert_eq!(map_parallel(&items, |i| i * 2), expected);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let items: Vec<usize> = (0..100).collect();
        let result = panic::catch_unwind(|| map_parallel(&items, |&i| assert_ne!(i, 77)));
        assert!(result.is_err());
    }
}
