//! Which requests are built together, and which of them is to blame when a check fails.

use std::cmp::Reverse;

use super::request::MergeRequest;
use crate::Priority;

/// Sorts requests by their turn: `top` first, then those that no check error has held, fewer failed tries, higher priority, and
/// place in line.
pub fn in_queue_order(requests: &mut [(MergeRequest, Priority)]) {
    requests.sort_by_key(|(request, priority)| {
        let is_after_error = request.check_run.is_some();
        (Reverse(request.top), is_after_error, request.tries, *priority, request.position)
    });
}

/// Whether two requests in line may be built together. One that a check error has held alone may be to blame for it, and is tried
/// alone; those that the same error held are tried together.
pub fn may_share_batch(one: &MergeRequest, other: &MergeRequest) -> bool {
    one.check_run == other.check_run
}

/// The next step of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchStep<T> {
    /// Build and check these together on the target as it is now.
    Check(Vec<T>),
    /// A check fails with this one alone.
    Culprit(T),
    /// Nothing is left to search.
    Over,
}

/// The search for the culprit in a batch that failed: by halves, the older half first. A half that passes lands at once; one
/// that fails is searched, and the other half waits for the next batch.
#[derive(Debug, Clone)]
pub struct BatchSearch<T> {
    /// Requests that failed together, or are all that is left of such.
    suspects: Vec<T>,
    /// Whether the suspects failed as they are, and not as a part of more.
    is_proven: bool,
}

impl<T: Clone> BatchSearch<T> {
    /// A search in a batch that failed.
    pub fn new(batch: Vec<T>) -> Self {
        Self { suspects: batch, is_proven: true }
    }

    /// The next step.
    pub fn step(&self) -> SearchStep<T> {
        match self.suspects.as_slice() {
            [] => SearchStep::Over,
            [culprit] if self.is_proven => SearchStep::Culprit(culprit.clone()),
            [suspect] => SearchStep::Check(vec![suspect.clone()]),
            suspects => SearchStep::Check(suspects[..suspects.len().div_ceil(2)].to_vec()),
        }
    }

    /// The step was a check, and it passed: what it checked has landed.
    #[must_use]
    pub fn passed(self) -> Self {
        let checked = self.checked();
        Self { suspects: self.suspects[checked..].to_vec(), is_proven: false }
    }

    /// The step was a check, and it failed.
    #[must_use]
    pub fn failed(self) -> Self {
        let checked = self.checked();
        Self { suspects: self.suspects[..checked].to_vec(), is_proven: true }
    }

    fn checked(&self) -> usize {
        match self.step() {
            SearchStep::Check(part) => part.len(),
            SearchStep::Culprit(_) | SearchStep::Over => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::request::tests::any_request;
    use super::*;

    /// Runs batches until nothing is left; returns what landed, what was blamed, and how many checks were made beyond one
    /// for each batch.
    fn land(requests: usize, batch: usize, culprits: &[usize]) -> (Vec<usize>, Vec<usize>, usize) {
        let mut line: Vec<usize> = (0..requests).collect();
        let (mut landed, mut blamed, mut extra) = (Vec::new(), Vec::new(), 0);
        let is_red = |part: &[usize]| part.iter().any(|one| culprits.contains(one));
        while !line.is_empty() {
            let part: Vec<usize> = line.iter().copied().take(batch).collect();
            if !is_red(&part) {
                landed.extend(&part);
                line.retain(|one| !part.contains(one));
                continue;
            }
            let mut search = BatchSearch::new(part);
            loop {
                match search.step() {
                    SearchStep::Check(part) => {
                        extra += 1;
                        if is_red(&part) {
                            search = search.failed();
                        } else {
                            landed.extend(&part);
                            line.retain(|one| !part.contains(one));
                            search = search.passed();
                        }
                    }
                    SearchStep::Culprit(one) => {
                        blamed.push(one);
                        line.retain(|other| *other != one);
                        break;
                    }
                    SearchStep::Over => break,
                }
            }
        }
        (landed, blamed, extra)
    }

    #[test]
    fn one_culprit_among_32_costs_at_most_four_extra_checks() {
        for culprit in 0..32 {
            let (landed, blamed, extra) = land(32, 8, &[culprit]);
            assert_eq!((landed.len(), blamed), (31, vec![culprit]));
            assert!(extra <= 4, "{culprit}: {extra}");
        }
    }

    proptest! {
        #[test]
        fn exactly_the_culprits_are_blamed(
            requests in 1..40usize,
            batch in 1..12usize,
            culprits in proptest::collection::btree_set(0..40usize, 0..6),
        ) {
            let culprits: Vec<usize> = culprits.into_iter().filter(|one| *one < requests).collect();
            let (mut landed, mut blamed, _) = land(requests, batch, &culprits);
            landed.sort_unstable();
            blamed.sort_unstable();
            let innocent: Vec<usize> = (0..requests).filter(|one| !culprits.contains(one)).collect();
            prop_assert_eq!(landed, innocent);
            prop_assert_eq!(blamed, culprits);
        }
    }

    #[test]
    fn the_turn_depends_on_top_tries_priority_and_age() {
        let request = |name: &str, position, tries, top| MergeRequest {
            position,
            top,
            tries,
            ..any_request(name, 1)
        };
        let priority = |level: u8| Priority::parse(&level.to_string()).unwrap();
        let mut line = vec![
            (request("gt-old", 1, 0, false), priority(2)),
            (request("gt-new", 2, 0, false), priority(2)),
            (request("gt-urgent", 3, 0, false), priority(0)),
            (request("gt-failed", 0, 1, false), priority(0)),
            (request("gt-top", 4, 3, true), priority(4)),
            (MergeRequest { check_run: Some(7), ..request("gt-hung", 0, 0, false) }, priority(0)),
        ];
        in_queue_order(&mut line);
        let names: Vec<&str> = line.iter().map(|(request, _)| request.id.bead.as_str()).collect();
        assert_eq!(names, ["gt-top", "gt-urgent", "gt-old", "gt-new", "gt-failed", "gt-hung"]);
    }

    #[test]
    fn a_request_that_a_check_error_held_is_tried_without_the_others() {
        let held = |check_run| MergeRequest { check_run, ..any_request("gt-a", 1) };
        assert!(may_share_batch(&held(None), &held(None)));
        assert!(!may_share_batch(&held(None), &held(Some(7))));
        assert!(!may_share_batch(&held(Some(8)), &held(Some(7))));
        // The check did not end on the target either.
        assert!(may_share_batch(&held(Some(7)), &held(Some(7))));
    }
}
