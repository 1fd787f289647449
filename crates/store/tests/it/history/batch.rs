//! The ways in which steps are handed to a store.

use std::fmt::Debug;
use std::panic::resume_unwind;

use gt_store::{Authorship, Store, StoreError, Writer};
use proptest::prelude::*;

/// Something that a writer can be told.
pub(crate) trait Perform: Clone + Debug + Send + 'static {
    /// Does it.
    fn perform(&self, writer: &mut Writer<'_>) -> Result<(), StoreError>;
}

/// How a job ends after it has done its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepResult {
    Kept,
    Fails,
    Panics,
}

/// How steps are handed to the store.
#[derive(Debug, Clone)]
pub(crate) enum Batch<S> {
    /// One transaction for one step.
    Alone(S),
    /// One transaction for all.
    Together(Vec<S>),
    /// One transaction that comes to nothing.
    RolledBack(Vec<S>),
    /// One transaction in which some fail alone.
    Each(Vec<(S, bool)>),
    /// Each through the queue, all at once.
    Submitted(Vec<(S, StepResult)>),
}

fn step_result() -> impl Strategy<Value = StepResult> {
    prop_oneof![3 => Just(StepResult::Kept), 1 => Just(StepResult::Fails), 1 => Just(StepResult::Panics)]
}

/// Any way to do some of these steps; `apart` are those whose refusal is heard at once, so that they
/// may share a transaction in which each stands or falls alone, or fail for another reason.
pub(crate) fn batch<S: Perform, A: Strategy<Value = S>, B: Strategy<Value = S>>(
    step: impl Fn() -> A,
    apart: impl Fn() -> B,
) -> impl Strategy<Value = Batch<S>> {
    prop_oneof![
        20 => step().prop_map(Batch::Alone),
        1 => prop::collection::vec(step(), 1..5).prop_map(Batch::Together),
        1 => prop::collection::vec(apart(), 1..5).prop_map(Batch::RolledBack),
        1 => prop::collection::vec((apart(), any::<bool>()), 1..5).prop_map(Batch::Each),
        1 => prop::collection::vec((apart(), step_result()), 1..5).prop_map(Batch::Submitted),
    ]
}

fn changed_my_mind() -> StoreError {
    StoreError::NotCommitted("changed my mind".to_owned())
}

impl<S: Perform> Batch<S> {
    /// The steps that are still there afterwards, if the store refuses none of them.
    pub(crate) fn lasting(&self) -> Vec<&S> {
        match self {
            Self::Alone(step) => vec![step],
            Self::Together(steps) => steps.iter().collect(),
            Self::RolledBack(_) => Vec::new(),
            Self::Each(steps) => {
                steps.iter().filter(|(_, fails)| !fails).map(|(step, _)| step).collect()
            }
            Self::Submitted(steps) => {
                let kept = steps.iter().filter(|(_, step_result)| *step_result == StepResult::Kept);
                kept.map(|(step, _)| step).collect()
            }
        }
    }

    /// Whether each answer of [`Batch::carry_out`] is good, if the store refuses no step.
    pub(crate) fn successes(&self) -> Vec<bool> {
        match self {
            Self::Alone(_) | Self::Together(_) => vec![true],
            Self::RolledBack(_) => vec![false],
            Self::Each(steps) => steps.iter().map(|(_, fails)| !fails).collect(),
            Self::Submitted(steps) => {
                steps.iter().map(|(_, step_result)| *step_result == StepResult::Kept).collect()
            }
        }
    }

    /// Does it; an answer for each transaction or job.
    pub(crate) fn carry_out(&self, store: &Store, by: &Authorship) -> Vec<Result<(), StoreError>> {
        let all = |writer: &mut Writer<'_>, steps: &[S]| {
            steps.iter().try_for_each(|step| step.perform(writer))
        };
        match self {
            Self::Alone(step) => vec![store.write(by, |writer| step.perform(writer))],
            Self::Together(steps) => vec![store.write(by, |writer| all(writer, steps))],
            Self::RolledBack(steps) => vec![store.write(by, |writer| {
                all(writer, steps)?;
                Err(changed_my_mind())
            })],
            Self::Each(steps) => {
                let results = store.write_each(by, steps, |writer, (step, fails)| {
                    step.perform(writer)?;
                    if *fails { Err(changed_my_mind()) } else { Ok(()) }
                });
                results.unwrap_or_else(|error| vec![Err(error)])
            }
            Self::Submitted(steps) => {
                let submit = |(step, step_result): (S, StepResult)| {
                    store.submit(by.clone(), move |writer| {
                        step.perform(writer)?;
                        match step_result {
                            StepResult::Kept => Ok(()),
                            StepResult::Fails => Err(changed_my_mind()),
                            // Unlike `panic!`, this prints nothing.
                            StepResult::Panics => resume_unwind(Box::new("in the middle of it")),
                        }
                    })
                };
                let tickets: Vec<_> = steps.iter().cloned().map(submit).collect();
                tickets.into_iter().map(gt_store::Ticket::wait).collect()
            }
        }
    }
}
