//! One dispatch cycle: plan, start, report.

use std::time::Duration;

use gt_core::decide::{DispatchPlan, Slots, plan_dispatch};

use gt_town::parallel;

/// One dispatch cycle over pending work. It asks how many may start and what is pending, plans, and starts that many from
/// the front. It knows neither store nor executor nor clock: five callbacks give it everything.
///
/// ```
/// use std::time::Duration;
///
/// use gt_core::decide::Slots;
/// use gt_scheduling::dispatch::DispatchCycle;
///
/// let mut closed = Vec::new();
/// let report = DispatchCycle {
///     available_capacity: || Ok(Slots::Free(2)),
///     query_pending: || Ok(vec!["gt-1", "gt-2", "gt-3"]),
///     execute: |bead: &&str| if *bead == "gt-2" { Err("no such program") } else { Ok(()) },
///     on_success: |bead: &&str| {
///         closed.push(bead.to_string());
///         Ok(())
///     },
///     on_failure: |_: &&str, _: &&str| (),
///     batch_size: 10,
///     spawn_delay: Duration::ZERO,
///     parallelism: 4,
///     pause: &std::thread::sleep,
/// }
/// .run()?;
/// assert_eq!(report.dispatched, ["gt-1"]);
/// assert_eq!(report.failed, [("gt-2", "no such program")]);
/// assert_eq!(report.skipped, ["gt-3"]);
/// assert_eq!(report.plan.reason.as_str(), "capacity");
/// assert_eq!(closed, ["gt-1"]);
/// # Ok::<(), &str>(())
/// ```
#[must_use = "a cycle does nothing until it runs"]
pub struct DispatchCycle<'a, Capacity, Pending, Execute, OnSuccess, OnFailure> {
    /// Says how many may start now.
    pub available_capacity: Capacity,
    /// Lists what is pending, in the order in which it is to start.
    pub query_pending: Pending,
    /// Starts one item. Several may be under way at once.
    pub execute: Execute,
    /// Called for each item that has started, in order, on the thread of the caller.
    pub on_success: OnSuccess,
    /// Called for each item that could not be started, in order, on the thread of the caller.
    pub on_failure: OnFailure,
    /// The most that are started; 0 is no limit.
    pub batch_size: u32,
    /// The least time between two starts, at any parallelism. A start that failed does not count.
    pub spawn_delay: Duration,
    /// How many starts are under way at once, unless there is a delay between them.
    pub parallelism: usize,
    /// Waits between starts; [`std::thread::sleep`] outside of simulations.
    pub pause: &'a dyn Fn(Duration),
}

/// The result of a cycle. Everything that was pending is in exactly one of the lists, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct CycleReport<P, E> {
    /// The plan.
    pub plan: DispatchPlan,
    /// Items that have started.
    pub dispatched: Vec<P>,
    /// Items that could not be started, and why.
    pub failed: Vec<(P, E)>,
    /// Items that have started although `on_success` failed, and why. To count them as failed would start them twice.
    pub unrecorded: Vec<(P, E)>,
    /// Items that were pending beyond the plan.
    pub skipped: Vec<P>,
}

impl<P, E, Capacity, Pending, Execute, OnSuccess, OnFailure>
    DispatchCycle<'_, Capacity, Pending, Execute, OnSuccess, OnFailure>
where
    P: Sync,
    E: Send,
    Capacity: FnMut() -> Result<Slots, E>,
    Pending: FnMut() -> Result<Vec<P>, E>,
    Execute: Fn(&P) -> Result<(), E> + Sync,
    OnSuccess: FnMut(&P) -> Result<(), E>,
    OnFailure: FnMut(&P, &E),
{
    /// Runs the cycle once. An error means that nothing was started, because the capacity or the pending items are unknown.
    pub fn run(&mut self) -> Result<CycleReport<P, E>, E> {
        let slots = (self.available_capacity)()?;
        let mut pending = (self.query_pending)()?;
        let plan = plan_dispatch(slots, self.batch_size, pending.len());
        let skipped = pending.split_off(plan.to_dispatch);
        let (dispatched, failed, unrecorded) = (Vec::new(), Vec::new(), Vec::new());
        let mut report = CycleReport { plan, dispatched, failed, unrecorded, skipped };
        let mut note = |item: P, outcome: Result<(), E>| match outcome {
            Ok(()) => match (self.on_success)(&item) {
                Ok(()) => report.dispatched.push(item),
                Err(error) => report.unrecorded.push((item, error)),
            },
            Err(error) => {
                (self.on_failure)(&item, &error);
                report.failed.push((item, error));
            }
        };
        if self.spawn_delay.is_zero() {
            for done in parallel::execute(pending, self.parallelism, &self.execute) {
                note(done.input, done.outcome);
            }
        } else {
            // Whether to wait before the next start depends on the result of this one, so they cannot overlap.
            let mut has_started = false;
            for item in pending {
                if has_started {
                    (self.pause)(self.spawn_delay);
                }
                let outcome = (self.execute)(&item);
                has_started = outcome.is_ok();
                note(item, outcome);
            }
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Mutex;

    use gt_core::decide::PlanReason;
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Odd numbers cannot be started.
    fn start(item: u32) -> Result<(), String> {
        if item.is_multiple_of(2) { Ok(()) } else { Err(format!("{item} is odd")) }
    }

    #[test]
    fn a_cycle_starts_the_plan_and_reports_every_item() {
        let told = RefCell::new(Vec::new());
        let report = DispatchCycle {
            available_capacity: || Ok(Slots::Free(4)),
            query_pending: || Ok((0..6).collect()),
            execute: |item: &u32| start(*item),
            on_success: |item: &u32| {
                told.borrow_mut().push(format!("{item} started"));
                Ok(())
            },
            on_failure: |item: &u32, error: &String| {
                told.borrow_mut().push(format!("{item} failed: {error}"));
            },
            batch_size: 0,
            spawn_delay: Duration::ZERO,
            parallelism: 3,
            pause: &|_| (),
        }
        .run()
        .unwrap();
        assert_eq!(report.plan.reason, PlanReason::Capacity);
        assert_eq!(report.dispatched, [0, 2]);
        assert_eq!(report.failed, [(1, "1 is odd".to_owned()), (3, "3 is odd".to_owned())]);
        assert_eq!(report.skipped, [4, 5]);
        let told = told.into_inner();
        assert_eq!(told, ["0 started", "1 failed: 1 is odd", "2 started", "3 failed: 3 is odd"]);
    }

    /// A cycle without callbacks for results.
    fn run<P: Sync, E: Send>(
        available_capacity: impl FnMut() -> Result<Slots, E>,
        query_pending: impl FnMut() -> Result<Vec<P>, E>,
        execute: impl Fn(&P) -> Result<(), E> + Sync,
    ) -> Result<CycleReport<P, E>, E> {
        DispatchCycle {
            available_capacity,
            query_pending,
            execute,
            on_success: |_: &P| Ok(()),
            on_failure: |_: &P, _: &E| (),
            batch_size: 0,
            spawn_delay: Duration::ZERO,
            parallelism: 1,
            pause: &|_| (),
        }
        .run()
    }

    #[test]
    fn without_slots_nothing_is_started() {
        let report =
            run(|| Ok(Slots::Free(0)), || Ok((0..3).collect()), |item| start(*item)).unwrap();
        assert_eq!((report.dispatched, report.skipped), (vec![], vec![0, 1, 2]));
    }

    #[test]
    fn nothing_is_started_while_capacity_or_pending_items_are_unknown() {
        let started = Mutex::new(Vec::new());
        let execute = |item: &u32| {
            started.lock().unwrap().push(*item);
            Ok(())
        };
        let error = run(|| Err("the store is away"), || Ok(vec![1]), execute).unwrap_err();
        assert_eq!(error, "the store is away");
        assert!(run(|| Ok(Slots::Unlimited), || Err("the store is away"), execute).is_err());
        assert!(started.lock().unwrap().is_empty());
    }

    #[test]
    fn a_start_that_could_not_be_recorded_is_no_failed_start() {
        let report = DispatchCycle {
            available_capacity: || Ok(Slots::Unlimited),
            query_pending: || Ok(vec![0]),
            execute: |item: &u32| start(*item),
            on_success: |_: &u32| Err("the store is away".to_owned()),
            on_failure: |item: &u32, _: &String| panic!("{item} has started"),
            batch_size: 0,
            spawn_delay: Duration::ZERO,
            parallelism: 1,
            pause: &|_| (),
        }
        .run()
        .unwrap();
        assert_eq!(report.unrecorded, [(0, "the store is away".to_owned())]);
        assert!(report.dispatched.is_empty() && report.failed.is_empty());
    }

    #[test]
    fn the_delay_follows_each_start_except_the_last_and_no_failure() {
        let story = Mutex::new(Vec::new());
        let tell = |what: String| story.lock().unwrap().push(what);
        let pending = vec![("a", true), ("b", false), ("c", true), ("d", true)];
        let report = DispatchCycle {
            available_capacity: || Ok(Slots::Unlimited),
            query_pending: || Ok(pending.clone()),
            execute: |(name, starts): &(&str, bool)| {
                tell((*name).to_owned());
                if *starts { Ok(()) } else { Err("no") }
            },
            on_success: |_: &(&str, bool)| Ok(()),
            on_failure: |_: &(&str, bool), _: &&str| (),
            batch_size: 0,
            spawn_delay: SECOND * 2,
            parallelism: 4,
            pause: &|duration| tell(format!("{duration:?}")),
        }
        .run()
        .unwrap();
        assert_eq!(*story.lock().unwrap(), ["a", "2s", "b", "c", "2s", "d"]);
        assert_eq!(report.failed, [(("b", false), "no")]);
    }

    #[test]
    fn a_cycle_can_run_again() {
        let mut waiting = vec![1, 2, 3];
        let mut cycle = DispatchCycle {
            available_capacity: || Ok::<_, ()>(Slots::Unlimited),
            query_pending: || Ok(std::mem::take(&mut waiting)),
            execute: |_: &i32| Ok(()),
            on_success: |_: &i32| Ok(()),
            on_failure: |_: &i32, (): &()| (),
            batch_size: 0,
            spawn_delay: Duration::ZERO,
            parallelism: 1,
            pause: &|_| (),
        };
        assert_eq!(cycle.run().unwrap().dispatched, [1, 2, 3]);
        assert_eq!(cycle.run().unwrap().plan.reason, PlanReason::None);
    }

    proptest! {
        #[test]
        fn no_item_is_lost_or_doubled_and_the_order_is_kept(
            slots in prop_oneof![Just(Slots::Unlimited), (0_u32..12).prop_map(Slots::Free)],
            ready in 0_u32..12, batch in 0_u32..6, parallelism in 0_usize..5, delay in 0_u32..2,
        ) {
            let begun = Mutex::new(Vec::new());
            let report = DispatchCycle {
                available_capacity: || Ok(slots),
                query_pending: || Ok((0..ready).collect()),
                execute: |item: &u32| {
                    begun.lock().unwrap().push(*item);
                    start(*item)
                },
                on_success: |_: &u32| Ok(()),
                on_failure: |_: &u32, _: &String| (),
                batch_size: batch,
                spawn_delay: SECOND * delay,
                parallelism,
                pause: &|_| (),
            }
            .run()
            .unwrap();
            let planned = u32::try_from(report.plan.to_dispatch).unwrap();
            let failed: Vec<u32> = report.failed.into_iter().map(|(item, _)| item).collect();
            prop_assert_eq!(report.dispatched, (0..planned).step_by(2).collect::<Vec<_>>());
            prop_assert_eq!(failed, (1..planned).step_by(2).collect::<Vec<_>>());
            prop_assert_eq!(report.skipped, (planned..ready).collect::<Vec<_>>());
            let mut begun = begun.into_inner().unwrap();
            if parallelism < 2 || delay > 0 {
                prop_assert!(begun.is_sorted());
            }
            begun.sort_unstable();
            prop_assert_eq!(begun, (0..planned).collect::<Vec<_>>());
        }
    }
}
