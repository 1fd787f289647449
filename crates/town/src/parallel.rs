//! Several things at once, with the results in the order of the things.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// One item after the work on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedItem<T, R> {
    /// Where it stood.
    pub index: usize,
    /// The item.
    pub input: T,
    /// Its result.
    pub outcome: R,
}

/// Works on all items, at most `parallelism` at once, and answers in their order.
///
/// Items are begun in their order; each worker takes the next one when it is free. The caller is one of the
/// workers, so a parallelism of 0 or 1 is one after the other on its thread, and a system that grants
/// fewer threads only makes it slower. If `work` panics, nothing further is begun, what is under way is
/// finished, and the panic goes on in the caller.
///
/// ```
/// use gt_town::parallel::execute;
///
/// let finished = execute(vec!["1", "two", "3"], 2, |text| text.parse::<u32>());
/// assert_eq!(finished[0].outcome, Ok(1));
/// assert_eq!((finished[1].index, finished[1].input), (1, "two"));
/// assert!(finished[1].outcome.is_err());
/// assert_eq!(finished[2].outcome, Ok(3));
/// ```
pub fn execute<T: Sync, R: Send>(
    items: Vec<T>,
    parallelism: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<FinishedItem<T, R>> {
    let line = ItemQueue { items: &items, next: AtomicUsize::new(0) };
    let worker = || {
        let stop = StopOnPanic(&line);
        let mut outcomes = Vec::new();
        while let Some((index, item)) = stop.0.take() {
            outcomes.push((index, work(item)));
        }
        outcomes
    };
    let helpers = parallelism.min(items.len()).saturating_sub(1);
    let mut outcomes = thread::scope(|scope| {
        let started: Vec<_> = (0..helpers)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, worker).ok())
            .collect();
        let mut outcomes = worker();
        for helper in started {
            match helper.join() {
                Ok(more) => outcomes.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcomes
    });
    outcomes.sort_unstable_by_key(|(index, _)| *index);
    let finished = items.into_iter().zip(outcomes);
    finished.map(|(input, (index, outcome))| FinishedItem { index, input, outcome }).collect()
}

/// The items, and which of them is the next to be begun.
struct ItemQueue<'a, T> {
    items: &'a [T],
    next: AtomicUsize,
}

impl<'a, T> ItemQueue<'a, T> {
    fn take(&self) -> Option<(usize, &'a T)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        self.items.get(index).map(|item| (index, item))
    }
}

/// Ends the line when its worker panics, so that the others stop as soon as they can.
struct StopOnPanic<'a, T>(&'a ItemQueue<'a, T>);

impl<T> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.next.store(self.0.items.len(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Barrier, Mutex};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parallelism_limit_is_respected() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // No thread passes before three are there, so this ends only if three run together.
        let together = Barrier::new(3);
        execute((0..12).collect(), 3, |_: &u32| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            together.wait();
            running.fetch_sub(1, Ordering::SeqCst);
        });
        assert_eq!(most.into_inner(), 3);
    }

    #[test]
    fn without_parallelism_the_caller_does_everything_in_order() {
        for parallelism in [0, 1] {
            let begun = Mutex::new(Vec::new());
            let here = thread::current().id();
            execute(vec![3, 1, 2], parallelism, |item| {
                assert_eq!(thread::current().id(), here);
                begun.lock().unwrap().push(*item);
            });
            assert_eq!(begun.into_inner().unwrap(), [3, 1, 2]);
        }
    }

    #[test]
    fn a_panic_goes_on_in_the_caller_and_nothing_further_is_begun() {
        for parallelism in [1, 2, 4] {
            let begun = AtomicUsize::new(0);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                execute((0..1000).collect(), parallelism, |item: &u32| -> u32 {
                    begun.fetch_add(1, Ordering::SeqCst);
                    panic!("no luck with {item}")
                })
            }));
            let panic = caught.expect_err("the work panicked");
            let message = panic.downcast_ref::<String>().expect("a message");
            assert!(message.starts_with("no luck with "), "{message}");
            assert!(begun.into_inner() <= parallelism);
        }
    }

    proptest! {
        #[test]
        fn results_are_in_the_order_of_the_items(
            items in prop::collection::vec(any::<u16>(), 0..50),
            parallelism in 0_usize..9,
        ) {
            let finished = execute(items.clone(), parallelism, |item| u32::from(*item) * 2);
            prop_assert_eq!(finished.len(), items.len());
            for (index, (finished, input)) in finished.into_iter().zip(items).enumerate() {
                let outcome = u32::from(input) * 2;
                prop_assert_eq!(finished, FinishedItem { index, input, outcome });
            }
        }
    }
}
