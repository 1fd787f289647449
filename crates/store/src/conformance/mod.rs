//! The suite that every engine must pass: each verb, each refusal, and the races between writers.
//!
//! An engine joins by implementing [`Subject`] in its tests and handing
//! [`for_each_conformance_case!`](crate::for_each_conformance_case) a macro that makes a test of each
//! case.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of `Reader<'_>` is not general enough to be passed by name"
)]

mod beads;
mod blocking;
mod comments;
mod contest;
mod counts;
mod dependencies;
mod dump;
mod events;
mod filters;
mod followers;
mod groups;
mod identity;
mod kit;
mod labels;
mod list;
mod orders;
mod races;
mod readiness;
mod rigs;
mod rows;
mod settings;
mod texts;
mod transactions;
mod waiting;

pub use dump::dump;
pub use readiness::reasons_to_wait;

use crate::Store;

/// How an engine makes stores for the suite.
pub trait Subject: Sync {
    /// A new, empty store.
    fn fresh(&self) -> Store;

    /// Another way to the same store, as another process would have it.
    fn another(&self, store: &Store) -> Store;

    /// Whether somebody can read while somebody else writes. Everybody else takes turns.
    fn reads_beside_writes(&self) -> bool {
        true
    }
}

/// One thing that must be true of a store.
#[derive(Clone, Copy)]
pub struct Case {
    /// What must be true: `group::sentence`.
    pub name: &'static str,
    /// Panics if it is not.
    pub run: fn(&dyn Subject),
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

/// Runs the case of this name.
pub fn run(name: &str, subject: &dyn Subject) {
    let case = CASES.iter().find(|case| case.name == name);
    (case.expect("there is a case of this name").run)(subject);
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
