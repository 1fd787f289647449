//! When a worker that says nothing is told to people, and when that is over.

use std::time::Duration;

use crate::Timestamp;
use crate::schedule::Silence;

/// The facts about a running worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerActivity {
    /// When it said something last, by the clock of its machine.
    pub last: Timestamp,
    /// Since when its machine runs without a gap, if one is known: no worker reports anything while its machine sleeps.
    pub awake_since: Option<Timestamp>,
    /// The silence that people were told of and have not been told to be over.
    pub told: Option<Silence>,
}

/// A change of the silence of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceChange {
    /// It lasts so long that people are told.
    Begins(Silence),
    /// The worker has reported again, or the setting that asks for it was turned off.
    Ends(Silence),
}

/// The change, if there is one. A worker is silent after `limit`; zero turns this off. People are told once of
/// each silence.
pub fn silence_change(
    heard: WorkerActivity,
    limit: Duration,
    now: Timestamp,
) -> Option<SilenceChange> {
    match heard.told {
        Some(told) if heard.last > told.since || limit.is_zero() => Some(SilenceChange::Ends(told)),
        Some(_) => None,
        None if limit.is_zero() => None,
        None => {
            let from = heard.awake_since.map_or(heard.last, |awake| awake.max(heard.last));
            let is_long = now.since(from) >= limit;
            is_long.then_some(SilenceChange::Begins(Silence { since: heard.last }))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: Duration = Duration::from_mins(15);

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_nanos(minutes * 60 * 1_000_000_000)
    }

    fn heard(last: i64, awake: Option<i64>, told: Option<i64>) -> WorkerActivity {
        let told = told.map(|since| Silence { since: at(since) });
        WorkerActivity { last: at(last), awake_since: awake.map(at), told }
    }

    #[test]
    fn people_are_told_once_and_when_it_goes_on() {
        let silence = Silence { since: at(100) };
        for (facts, now, change) in [
            (heard(100, None, None), 114, None),
            (heard(100, None, None), 115, Some(SilenceChange::Begins(silence))),
            (heard(100, None, Some(100)), 500, None),
            (heard(501, None, Some(100)), 501, Some(SilenceChange::Ends(silence))),
            // A clock that was set back.
            (heard(100, None, None), 10, None),
        ] {
            assert_eq!(silence_change(facts, LIMIT, at(now)), change, "{facts:?} {now}");
        }
    }

    #[test]
    fn a_machine_that_slept_is_not_a_worker_that_is_silent() {
        // It slept from 105 to 600.
        assert_eq!(silence_change(heard(100, Some(600), None), LIMIT, at(601)), None);
        let told = silence_change(heard(100, Some(600), None), LIMIT, at(615));
        assert_eq!(told, Some(SilenceChange::Begins(Silence { since: at(100) })));
    }

    #[test]
    fn a_limit_of_zero_turns_the_notice_off() {
        assert_eq!(silence_change(heard(100, None, None), Duration::ZERO, at(9999)), None);
        let over = silence_change(heard(100, None, Some(100)), Duration::ZERO, at(9999));
        assert_eq!(over, Some(SilenceChange::Ends(Silence { since: at(100) })));
    }

    proptest! {
        #[test]
        fn at_most_two_changes_follow_each_other(
            last in 0_i64..1000, awake in prop::option::of(0_i64..1000), told in prop::option::of(0_i64..1000),
            limit in 0_u64..100, now in 0_i64..2000,
        ) {
            let (mut facts, limit) = (heard(last, awake, told), Duration::from_mins(limit));
            // One change can follow upon another at once; then there is peace.
            for _ in 0..2 {
                match silence_change(facts, limit, at(now)) {
                    Some(SilenceChange::Begins(silence)) => {
                        prop_assert!(at(now).since(facts.last) >= limit);
                        facts.told = Some(silence);
                    }
                    Some(SilenceChange::Ends(_)) => facts.told = None,
                    None => {}
                }
            }
            prop_assert_eq!(silence_change(facts, limit, at(now)), None);
        }
    }
}
