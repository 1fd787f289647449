//! Which of the waiting goes first.

use std::cmp::Ordering;
use std::time::Duration;

use crate::{Invalid, Priority, Timestamp};

/// One class of priority is gained for each of these that a bead has waited.
const AGEING_INTERVAL: Duration = Duration::from_hours(24);

/// The order of the queue: the setting `scheduler.order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DispatchOrder {
    /// By urgency, then by number.
    #[default]
    Priority,
    /// By number alone.
    Fifo,
}

impl DispatchOrder {
    /// Reads the value of the setting.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "priority" => Ok(Self::Priority),
            "fifo" => Ok(Self::Fifo),
            other => Err(Invalid(format!(
                "\"{}\" is not an order; write priority or fifo",
                other.chars().take(60).collect::<String>().escape_debug()
            ))),
        }
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Priority => "priority",
            Self::Fifo => "fifo",
        }
    }

    /// Which of two goes first at `now`. A total order: two places are equal only if their numbers are
    /// (and, by priority, their urgency), and no two in a line have the same number.
    pub fn compare(self, a: &OrderPosition, b: &OrderPosition, now: Timestamp) -> Ordering {
        let by_number = a.number.cmp(&b.number);
        match self {
            Self::Priority => a.urgency(now).cmp(&b.urgency(now)).then(by_number),
            Self::Fifo => by_number,
        }
    }
}

/// Where one that waits stands in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderPosition {
    /// The priority of its bead.
    pub priority: Priority,
    /// Its number in the queue, given by the transaction that queued it.
    pub number: u64,
    /// Since when it waits. Only its age counts; it is never compared with another's.
    pub waiting_since: Timestamp,
}

impl OrderPosition {
    fn urgency(&self, now: Timestamp) -> u8 {
        urgency(self.priority, now.since(self.waiting_since))
    }
}

/// The class in which something of this priority stands after so long: one better for every full day, 0
/// being the best there is.
pub fn urgency(priority: Priority, waited: Duration) -> u8 {
    let class = u8::try_from(priority.number()).unwrap_or(u8::MAX);
    let days = u8::try_from(waited.as_secs() / AGEING_INTERVAL.as_secs()).unwrap_or(u8::MAX);
    class.saturating_sub(days)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);
    const HOUR: Duration = Duration::from_hours(1);

    fn place(priority: i64, number: u64, hours: u32) -> OrderPosition {
        let waiting_since = NOW.minus(HOUR * hours);
        OrderPosition { priority: Priority::new(priority).unwrap(), number, waiting_since }
    }

    #[test]
    fn a_day_of_waiting_is_worth_a_class() {
        for (priority, hours, expected) in [
            (2, 0, 2),
            (2, 23, 2),
            (2, 24, 1),
            (2, 47, 1),
            (2, 48, 0),
            (2, 1000, 0),
            (4, 72, 1),
            (0, 99, 0),
        ] {
            let priority = Priority::new(priority).unwrap();
            assert_eq!(urgency(priority, HOUR * hours), expected, "{priority} after {hours} h");
        }
        assert_eq!(urgency(Priority::new(4).unwrap(), Duration::MAX), 0);
    }

    #[test]
    fn by_priority_the_urgent_go_first_and_then_the_early() {
        let order = DispatchOrder::Priority;
        let before = |a, b| order.compare(&a, &b, NOW) == Ordering::Less;
        assert!(before(place(1, 9, 0), place(2, 1, 0)));
        assert!(before(place(2, 1, 0), place(2, 9, 0)));
        assert!(before(place(4, 9, 96), place(1, 1, 0)), "a low priority does not starve");
        assert!(before(place(2, 1, 24), place(1, 2, 0)), "a class gained counts like one given");
    }

    #[test]
    fn first_come_first_served_knows_no_priority() {
        let compared = DispatchOrder::Fifo.compare(&place(4, 1, 0), &place(0, 2, 99), NOW);
        assert_eq!(compared, Ordering::Less);
    }

    #[test]
    fn a_wait_since_the_future_counts_as_no_wait() {
        let early =
            OrderPosition { waiting_since: Timestamp::from_nanos(i64::MAX), ..place(3, 1, 0) };
        assert_eq!(early.urgency(NOW), 3);
        let compared = DispatchOrder::Priority.compare(&early, &place(3, 2, 0), NOW);
        assert_eq!(compared, Ordering::Less);
    }

    #[test]
    fn the_setting_reads_back() {
        for order in [DispatchOrder::Priority, DispatchOrder::Fifo] {
            assert_eq!(DispatchOrder::parse(order.as_str()), Ok(order));
        }
        assert!(DispatchOrder::parse("lifo").is_err());
    }

    fn any_place() -> impl Strategy<Value = OrderPosition> {
        let since = prop_oneof![
            (-100_i64..300).prop_map(|hours| NOW.as_nanos() - hours * 3_600_000_000_000),
            any::<i64>(),
        ];
        (0_i64..5, 0_u64..6, since).prop_map(|(priority, number, since)| OrderPosition {
            priority: Priority::new(priority).unwrap(),
            number,
            waiting_since: Timestamp::from_nanos(since),
        })
    }

    proptest! {
        #[test]
        fn it_is_a_total_order(a in any_place(), b in any_place(), c in any_place()) {
            for order in [DispatchOrder::Priority, DispatchOrder::Fifo] {
                let compare = |a, b| order.compare(a, b, NOW);
                prop_assert_eq!(compare(&a, &a), Ordering::Equal);
                prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
                if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                    prop_assert!(compare(&a, &c).is_le());
                }
                if compare(&a, &b) == Ordering::Equal {
                    prop_assert_eq!(a.number, b.number);
                }
            }
        }

        #[test]
        fn equals_that_came_in_turn_go_in_turn(
            priority in 0_i64..5,
            mut since in prop::collection::vec(0_u32..300, 0..20),
        ) {
            since.sort_unstable_by(|a, b| b.cmp(a));
            let line: Vec<OrderPosition> =
                (0..).zip(since).map(|(number, hours)| place(priority, number, hours)).collect();
            let in_turn = |a: &OrderPosition, b: &OrderPosition| DispatchOrder::Priority.compare(a, b, NOW).is_lt();
            prop_assert!(line.is_sorted_by(in_turn));
        }

        #[test]
        fn waiting_never_makes_it_later(priority in 0_i64..5, short: u32, longer: u32) {
            let priority = Priority::new(priority).unwrap();
            let (short, longer) = (short.min(longer), short.max(longer));
            let after = |seconds: u32| urgency(priority, Duration::from_secs(seconds.into()));
            prop_assert!(after(longer) <= after(short));
        }
    }
}
