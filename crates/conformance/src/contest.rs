//! Contestants that make conflicting writes at the same moment, round after round.

use std::sync::Barrier;
use std::sync::mpsc;
use std::thread;

use super::EngineUnderTest;
use super::kit::CheckedStore;
use gt_store::{Store, StoreError, Writer};

/// A town with a door of its own for every contestant. The doors stay open for all rounds, so that a
/// round costs no more than its writes.
pub(super) struct Contest {
    pub(super) town: CheckedStore,
    doors: Vec<Store>,
    rounds: usize,
}

/// The round and the role of one contestant. The roles rotate, so that no contestant is always the last to arrive.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContestTurn {
    pub(super) round: usize,
    pub(super) role: usize,
}

/// How often a race is run: often enough that every order happens.
const ROUNDS: usize = 200;
/// Rounds for a store where all calls take turns anyway, so that there is less to see.
const ROUNDS_IN_TURNS: usize = 20;

impl Contest {
    pub(super) fn new(subject: &dyn EngineUnderTest, contestants: usize) -> Self {
        let town = CheckedStore::new(subject);
        let doors = (0..contestants).map(|_| subject.another(&town.store)).collect();
        let rounds = if subject.reads_beside_writes() { ROUNDS } else { ROUNDS_IN_TURNS };
        Self { town, doors, rounds }
    }

    /// Makes the rows for all rounds, in one transaction.
    pub(super) fn prepare(
        self,
        one: impl Fn(&mut Writer<'_>, usize) -> Result<(), StoreError>,
    ) -> Self {
        self.town.write(|writer| (0..self.rounds).try_for_each(|round| one(writer, round)));
        self
    }

    /// Starts all contestants at the same moment, round after round, and shows `judge` their answers by
    /// role.
    pub(super) fn run<T: Send>(
        &self,
        work: impl Fn(&Store, ContestTurn) -> T + Sync,
        mut judge: impl FnMut(&CheckedStore, usize, Vec<T>),
    ) {
        let count = self.doors.len();
        let start = Barrier::new(count);
        thread::scope(|scope| {
            let contestants: Vec<_> = self
                .doors
                .iter()
                .map(|door| {
                    let (call, called) = mpsc::channel::<ContestTurn>();
                    let (tell, told) = mpsc::channel();
                    let (start, work) = (&start, &work);
                    scope.spawn(move || {
                        // A contestant that panics closes both channels, and that ends the race.
                        for turn in called {
                            start.wait();
                            if tell.send(work(door, turn)).is_err() {
                                return;
                            }
                        }
                    });
                    (call, told)
                })
                .collect();
            for round in 0..self.rounds {
                let role = |contestant: usize| (contestant + round) % count;
                for (contestant, (call, _)) in contestants.iter().enumerate() {
                    let turn = ContestTurn { round, role: role(contestant) };
                    call.send(turn).expect("the contestant waits for its turn");
                }
                let answers = contestants.iter().enumerate().map(|(contestant, (_, told))| {
                    (role(contestant), told.recv().expect("the contestant finishes"))
                });
                let mut answers: Vec<(usize, T)> = answers.collect();
                answers.sort_by_key(|(role, _)| *role);
                judge(&self.town, round, answers.into_iter().map(|(_, answer)| answer).collect());
            }
        });
        self.town.check();
    }
}
