//! One pass over what waits, with everything it touches passed in.

use std::time::Duration;

use gt_core::decide::{DispatchPlan, Slots, plan_dispatch};

use crate::parallel;

type Ask<'a, T, E> = Box<dyn FnMut() -> Result<T, E> + 'a>;
type Execute<'a, P, E> = Box<dyn Fn(&P) -> Result<(), E> + Sync + 'a>;
type OnSuccess<'a, P, E> = Box<dyn FnMut(&P) -> Result<(), E> + 'a>;
type OnFailure<'a, P, E> = Box<dyn FnMut(&P, &E) + 'a>;
type Pause<'a> = Box<dyn Fn(Duration) + 'a>;

/// One pass over what waits: asks how many may start and what is ready, plans, and starts that many from
/// the front. It knows neither store nor executor nor clock; `P` is what waits, `E` what can go wrong.
///
/// ```
/// use gt_core::decide::Slots;
/// use gt_operations::dispatch::DispatchCycle;
///
/// let report = DispatchCycle::new(
///     || Ok(Slots::Free(2)),
///     || Ok(vec!["gt-1", "gt-2", "gt-3"]),
///     |bead| if *bead == "gt-2" { Err("no such program") } else { Ok(()) },
/// )
/// .batch_size(10)
/// .parallelism(4)
/// .run()?;
/// assert_eq!(report.dispatched, ["gt-1"]);
/// assert_eq!(report.failed, [("gt-2", "no such program")]);
/// assert_eq!(report.skipped, ["gt-3"]);
/// assert_eq!(report.plan.reason.as_str(), "capacity");
/// # Ok::<(), &str>(())
/// ```
#[must_use = "a cycle does nothing until it runs"]
pub struct DispatchCycle<'a, P, E> {
    available_capacity: Ask<'a, Slots, E>,
    query_pending: Ask<'a, Vec<P>, E>,
    execute: Execute<'a, P, E>,
    on_success: OnSuccess<'a, P, E>,
    on_failure: OnFailure<'a, P, E>,
    pause: Pause<'a>,
    batch_size: u32,
    spawn_delay: Duration,
    parallelism: usize,
}

/// What a cycle did. Everything that was pending is in exactly one of the lists, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct CycleReport<P, E> {
    /// What was planned.
    pub plan: DispatchPlan,
    /// What has started.
    pub dispatched: Vec<P>,
    /// What could not be started, and why.
    pub failed: Vec<(P, E)>,
    /// What has started, though noting it down failed, and why. To count it as failed would start it twice.
    pub unrecorded: Vec<(P, E)>,
    /// What was pending beyond the plan.
    pub skipped: Vec<P>,
}

impl<'a, P: Sync, E: Send> DispatchCycle<'a, P, E> {
    /// A cycle that starts with `execute` what `query_pending` names, in that order, as far as
    /// `available_capacity` goes; all that is ready, one after the other, until told otherwise.
    pub fn new(
        available_capacity: impl FnMut() -> Result<Slots, E> + 'a,
        query_pending: impl FnMut() -> Result<Vec<P>, E> + 'a,
        execute: impl Fn(&P) -> Result<(), E> + Sync + 'a,
    ) -> Self {
        Self {
            available_capacity: Box::new(available_capacity),
            query_pending: Box::new(query_pending),
            execute: Box::new(execute),
            on_success: Box::new(|_| Ok(())),
            on_failure: Box::new(|_, _| ()),
            pause: Box::new(std::thread::sleep),
            batch_size: 0,
            spawn_delay: Duration::ZERO,
            parallelism: 1,
        }
    }

    /// Told of everything that has started, in order and on the thread of the caller.
    pub fn on_success(mut self, on_success: impl FnMut(&P) -> Result<(), E> + 'a) -> Self {
        self.on_success = Box::new(on_success);
        self
    }

    /// Told of everything that could not be started, in order and on the thread of the caller.
    pub fn on_failure(mut self, on_failure: impl FnMut(&P, &E) + 'a) -> Self {
        self.on_failure = Box::new(on_failure);
        self
    }

    /// Starts at most so many; 0 is no limit.
    pub fn batch_size(mut self, batch_size: u32) -> Self {
        self.batch_size = batch_size;
        self
    }

    /// Keeps starts at least so far apart, whatever the parallelism. A start that failed is none.
    pub fn spawn_delay(mut self, spawn_delay: Duration) -> Self {
        self.spawn_delay = spawn_delay;
        self
    }

    /// Has so many starts under way at once, unless there is a delay between them.
    pub fn parallelism(mut self, parallelism: usize) -> Self {
        self.parallelism = parallelism;
        self
    }

    /// Waits between starts; a simulator has a clock of its own.
    pub fn pause(mut self, pause: impl Fn(Duration) + 'a) -> Self {
        self.pause = Box::new(pause);
        self
    }

    /// One pass. An error means that nothing was started, because nobody could say how much may start, or
    /// what.
    pub fn run(&mut self) -> Result<CycleReport<P, E>, E> {
        let slots = (self.available_capacity)()?;
        let mut pending = (self.query_pending)()?;
        let plan = plan_dispatch(slots, self.batch_size, pending.len());
        let skipped = pending.split_off(plan.to_dispatch);
        let (dispatched, failed, unrecorded) = (Vec::new(), Vec::new(), Vec::new());
        let mut report = CycleReport { plan, dispatched, failed, unrecorded, skipped };
        if self.spawn_delay.is_zero() {
            let execute = &self.execute;
            for done in parallel::execute(pending, self.parallelism, |item| execute(item)) {
                self.note(&mut report, done.input, done.outcome);
            }
        } else {
            // Whether to wait before the next start depends on how this one went, so they cannot overlap.
            let mut has_started = false;
            for item in pending {
                if has_started {
                    (self.pause)(self.spawn_delay);
                }
                let outcome = (self.execute)(&item);
                has_started = outcome.is_ok();
                self.note(&mut report, item, outcome);
            }
        }
        Ok(report)
    }

    fn note(&mut self, report: &mut CycleReport<P, E>, item: P, outcome: Result<(), E>) {
        match outcome {
            Ok(()) => match (self.on_success)(&item) {
                Ok(()) => report.dispatched.push(item),
                Err(error) => report.unrecorded.push((item, error)),
            },
            Err(error) => {
                (self.on_failure)(&item, &error);
                report.failed.push((item, error));
            }
        }
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

    /// A cycle over the numbers below `ready`.
    fn cycle<'a>(slots: Slots, ready: u32) -> DispatchCycle<'a, u32, String> {
        DispatchCycle::new(move || Ok(slots), move || Ok((0..ready).collect()), |item| start(*item))
    }

    #[test]
    fn a_cycle_starts_what_is_planned_and_says_what_came_of_it() {
        let told = RefCell::new(Vec::new());
        let report = cycle(Slots::Free(4), 6)
            .parallelism(3)
            .on_success(|item| {
                told.borrow_mut().push(format!("{item} started"));
                Ok(())
            })
            .on_failure(|item, error| told.borrow_mut().push(format!("{item} failed: {error}")))
            .run()
            .unwrap();
        assert_eq!(report.plan.reason, PlanReason::Capacity);
        assert_eq!(report.dispatched, [0, 2]);
        assert_eq!(report.failed, [(1, "1 is odd".to_owned()), (3, "3 is odd".to_owned())]);
        assert_eq!(report.skipped, [4, 5]);
        let told = told.into_inner();
        assert_eq!(told, ["0 started", "1 failed: 1 is odd", "2 started", "3 failed: 3 is odd"]);
    }

    #[test]
    fn without_slots_nothing_is_started() {
        let report = cycle(Slots::Free(0), 3).run().unwrap();
        assert_eq!((report.dispatched, report.skipped), (vec![], vec![0, 1, 2]));
    }

    #[test]
    fn nothing_is_started_when_nobody_can_say_how_much_or_what() {
        let started = Mutex::new(Vec::new());
        let execute = |item: &u32| {
            started.lock().unwrap().push(*item);
            Ok(())
        };
        let unknown = || Err("the store is away");
        let error = DispatchCycle::new(unknown, || Ok(vec![1]), execute).run().unwrap_err();
        assert_eq!(error, "the store is away");
        let unknown = || Err("the store is away");
        assert!(DispatchCycle::new(|| Ok(Slots::Unlimited), unknown, execute).run().is_err());
        assert!(started.lock().unwrap().is_empty());
    }

    #[test]
    fn what_started_but_could_not_be_recorded_is_no_failed_start() {
        let report = cycle(Slots::Unlimited, 1)
            .on_success(|_| Err("the store is away".to_owned()))
            .on_failure(|item, _| panic!("{item} has started"))
            .run()
            .unwrap();
        assert_eq!(report.unrecorded, [(0, "the store is away".to_owned())]);
        assert!(report.dispatched.is_empty() && report.failed.is_empty());
    }

    #[test]
    fn starts_are_apart_but_nobody_waits_after_a_failure_or_the_last() {
        let story = Mutex::new(Vec::new());
        let tell = |what: String| story.lock().unwrap().push(what);
        let pending = vec![("a", true), ("b", false), ("c", true), ("d", true)];
        let report = DispatchCycle::new(
            || Ok(Slots::Unlimited),
            || Ok(pending.clone()),
            |(name, starts)| {
                tell((*name).to_owned());
                if *starts { Ok(()) } else { Err("no") }
            },
        )
        .spawn_delay(SECOND * 2)
        .parallelism(4)
        .pause(|duration| tell(format!("{duration:?}")))
        .run()
        .unwrap();
        assert_eq!(*story.lock().unwrap(), ["a", "2s", "b", "c", "2s", "d"]);
        assert_eq!(report.failed, [(("b", false), "no")]);
    }

    #[test]
    fn a_cycle_can_run_again() {
        let mut waiting = vec![1, 2, 3];
        let mut cycle = DispatchCycle::new(
            || Ok::<_, ()>(Slots::Unlimited),
            || Ok(std::mem::take(&mut waiting)),
            |_| Ok(()),
        );
        assert_eq!(cycle.run().unwrap().dispatched, [1, 2, 3]);
        assert_eq!(cycle.run().unwrap().plan.reason, PlanReason::None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_doubled_and_the_order_is_kept(
            slots in prop_oneof![Just(Slots::Unlimited), (0_u32..12).prop_map(Slots::Free)],
            ready in 0_u32..12, batch in 0_u32..6, parallelism in 0_usize..5, delay in 0_u32..2,
        ) {
            let begun = Mutex::new(Vec::new());
            let execute = |item: &u32| {
                begun.lock().unwrap().push(*item);
                start(*item)
            };
            let report = DispatchCycle::new(|| Ok(slots), || Ok((0..ready).collect()), execute)
                .batch_size(batch)
                .parallelism(parallelism)
                .spawn_delay(SECOND * delay)
                .pause(|_| ())
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
