//! How many ready contexts one cycle dispatches, and the limit that sets the bound.

/// How many more runs may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// No cap is in force.
    Unlimited,
    /// This many more.
    Free(u32),
}

impl Slots {
    /// The room that a cap (none: unlimited) leaves beside the `live` runs. A cap that was lowered below them
    /// leaves nothing.
    pub fn of_cap(cap: Option<u32>, live: u32) -> Self {
        cap.map_or(Self::Unlimited, |cap| Self::Free(cap.saturating_sub(live)))
    }

    /// The bound as a number, if there is one.
    fn bound(self) -> Option<usize> {
        match self {
            Self::Unlimited => None,
            Self::Free(slots) => Some(as_count(slots)),
        }
    }
}

/// The limit that decided how many contexts are dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanReason {
    /// Nothing is ready.
    None,
    /// The free slots.
    Capacity,
    /// The size of a batch.
    Batch,
    /// All that is ready goes.
    Ready,
}

impl PlanReason {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Capacity => "capacity",
            Self::Batch => "batch",
            Self::Ready => "ready",
        }
    }
}

/// The plan of one dispatch cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchPlan {
    /// How many of the ready go, from the front.
    pub to_dispatch: usize,
    /// How many ready contexts are not dispatched.
    pub skipped: usize,
    /// The limit that decided that.
    pub reason: PlanReason,
}

/// As many of the ready as the free slots and the batch (0: no limit) admit.
///
/// Where bounds are equal, the batch is named before the slots and these before the ready.
///
/// ```
/// use gt_core::decide::{PlanReason, Slots, plan_dispatch};
///
/// let plan = plan_dispatch(Slots::Free(2), 3, 10);
/// assert_eq!((plan.to_dispatch, plan.skipped, plan.reason), (2, 8, PlanReason::Capacity));
/// ```
pub fn plan_dispatch(slots: Slots, batch: u32, ready: usize) -> DispatchPlan {
    let batch = (batch > 0).then(|| as_count(batch));
    let (limit, reason) = match (slots.bound(), batch) {
        (Some(slots), Some(batch)) if slots < batch => (slots, PlanReason::Capacity),
        (_, Some(batch)) => (batch, PlanReason::Batch),
        (Some(slots), None) => (slots, PlanReason::Capacity),
        (None, None) => (ready, PlanReason::Ready),
    };
    let reason = match ready {
        0 => PlanReason::None,
        ready if ready < limit => PlanReason::Ready,
        _ => reason,
    };
    let to_dispatch = ready.min(limit);
    DispatchPlan { to_dispatch, skipped: ready - to_dispatch, reason }
}

fn as_count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_plan_table_holds() {
        use PlanReason::{Batch, Capacity, None, Ready};
        use Slots::{Free, Unlimited};
        for (slots, batch, ready, to_dispatch, skipped, reason) in [
            (Free(5), 3, 0, 0, 0, None),
            (Free(0), 3, 10, 0, 10, Capacity),
            (Free(2), 3, 10, 2, 8, Capacity),
            (Free(10), 3, 10, 3, 7, Batch),
            (Free(10), 5, 2, 2, 0, Ready),
            (Free(100), 3, 10, 3, 7, Batch),
            (Free(100), 5, 2, 2, 0, Ready),
            (Free(3), 3, 3, 3, 0, Batch),
            (Free(10), 3, 1, 1, 0, Ready),
            (Free(1), 3, 10, 1, 9, Capacity),
            (Unlimited, 3, 10, 3, 7, Batch),
            (Unlimited, 0, 10, 10, 0, Ready),
            (Free(5), 0, 10, 5, 5, Capacity),
            (Free(0), 0, 0, 0, 0, None),
            (Unlimited, 0, 0, 0, 0, None),
        ] {
            let expected = DispatchPlan { to_dispatch, skipped, reason };
            assert_eq!(plan_dispatch(slots, batch, ready), expected, "{slots:?} {batch} {ready}");
        }
    }

    #[test]
    fn a_cap_leaves_the_slots_without_a_live_run() {
        assert_eq!(Slots::of_cap(None, 7), Slots::Unlimited);
        assert_eq!(Slots::of_cap(Some(5), 2), Slots::Free(3));
        assert_eq!(Slots::of_cap(Some(5), 9), Slots::Free(0));
        assert_eq!(Slots::of_cap(Some(0), 0), Slots::Free(0));
    }

    fn any_slots() -> impl Strategy<Value = Slots> {
        prop_oneof![
            Just(Slots::Unlimited),
            (0_u32..20).prop_map(Slots::Free),
            any::<u32>().prop_map(Slots::Free)
        ]
    }

    proptest! {
        #[test]
        fn the_smallest_bound_decides(
            slots in any_slots(),
            batch in prop_oneof![0_u32..20, any::<u32>()],
            ready in prop_oneof![0_usize..20, any::<usize>()],
        ) {
            let plan = plan_dispatch(slots, batch, ready);
            prop_assert_eq!(plan.skipped, ready - plan.to_dispatch);
            let capacity = slots.bound().unwrap_or(usize::MAX);
            let batch = if batch == 0 { usize::MAX } else { as_count(batch) };
            prop_assert_eq!(plan.to_dispatch, ready.min(capacity).min(batch));
            let named = match plan.reason {
                PlanReason::None => 0,
                PlanReason::Capacity => capacity,
                PlanReason::Batch => batch,
                PlanReason::Ready => ready,
            };
            prop_assert_eq!(plan.to_dispatch, named, "{:?} did not decide", plan.reason);
            prop_assert_eq!(plan.reason == PlanReason::None, ready == 0);
        }
    }
}
