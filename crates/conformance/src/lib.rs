//! The suite that every engine must pass: each verb, each refusal, and the races between writers.
//!
//! # Architecture invariants
//!
//! - A case knows a store by its public verbs alone, so it says the same of every engine.
//! - It is a crate of its own: as a feature of the store it made Cargo compile every crate above the store twice, for builds and for tests.
//!
//! An engine joins by implementing [`EngineUnderTest`] in its tests and taking its place in
//! [`for_each_conformance_subject!`](crate::for_each_conformance_subject). Tests and
//! [`reference()`] are made from the same two lists, so that both name the same
//! cases.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of `Reader<'_>` is not general enough to be passed by name"
)]

mod accounts;
mod beads;
mod blocking;
mod board;
mod check_runs;
mod comments;
mod contest;
mod contexts;
mod convoy_status;
mod convoys;
mod counts;
mod dependencies;
mod events;
mod filters;
mod followers;
mod groups;
mod identity;
mod kit;
mod labels;
mod list;
mod merge_requests;
mod messages;
mod orders;
mod outbox;
mod parks;
mod queries;
mod races;
mod readiness;
mod reference;
mod requests;
mod rigs;
mod rows;
mod run_outputs;
mod runs;
mod scans;
mod settings;
mod texts;
mod town_numbers;
mod transactions;
mod usage;
mod waiting;
mod work;
mod workplaces;

pub use readiness::reasons_to_wait;
pub use reference::reference;

use gt_store::Store;

/// A database that the suite is run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// SQLite, in memory or in a file.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

impl Engine {
    /// Every engine.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// How an engine makes stores for the suite.
pub trait EngineUnderTest: Sync {
    /// The engine.
    fn engine(&self) -> Engine;

    /// A new, empty store.
    fn fresh(&self) -> Store;

    /// Another way to the same store, as another process would have it.
    fn another(&self, store: &Store) -> Store;

    /// Whether reads go on beside a write. Otherwise all calls take turns.
    fn reads_beside_writes(&self) -> bool {
        true
    }
}

/// One thing that must be true of a store.
#[derive(Clone, Copy)]
pub struct Case {
    /// The property, as `group::sentence`.
    pub name: &'static str,
    /// Panics if it is not.
    pub run: fn(&dyn EngineUnderTest),
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

impl Case {
    /// Why there is nothing to see on this engine, if there is not.
    pub fn why_not_on(&self, engine: Engine) -> Option<&'static str> {
        let excepted = |(name, on, _): &&(&str, Engine, &str)| *name == self.name && *on == engine;
        EXCEPTIONS.iter().find(excepted).map(|(_, _, why)| *why)
    }
}

/// Cases that mean nothing on an engine, and why. Its tests of them do nothing.
pub const EXCEPTIONS: &[(&str, Engine, &str)] = &[(
    "transactions::nothing_is_wrong_with_the_file_of_a_healthy_store",
    Engine::Postgres,
    "a server looks after its own files",
)];

/// Runs the case of this name, unless it means nothing on this engine.
pub fn run(name: &str, subject: &dyn EngineUnderTest) {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.expect("there is a case of this name");
    if case.why_not_on(subject.engine()).is_none() {
        (case.run)(subject);
    }
}

macro_rules! list {
    ($($group:ident { $($case:ident,)* })*) => {
        /// Every case.
        pub const CASES: &[Case] = &[
            $($(Case {
                name: concat!(stringify!($group), "::", stringify!($case)),
                run: $group::$case,
            },)*)*
        ];
    };
}

crate::for_each_conformance_case!(list);

macro_rules! subjects {
    ($($place:ident $subject:ident $engine:ident,)*) => {
        /// Where the tests run every case: the name of the place, and the engine.
        pub const PLACES: &[(&str, Engine)] = &[$((stringify!($place), Engine::$engine),)*];
    };
}

crate::for_each_conformance_subject!(subjects);
