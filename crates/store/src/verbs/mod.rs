//! The verbs: each file holds the SQL of one kind of record.

mod accounts;
mod beads;
mod blocking;
mod board;
mod bulk;
mod check;
mod check_runs;
mod check_schedule;
mod comments;
mod contexts;
mod convoy_status;
mod convoys;
mod dependencies;
mod events;
mod filter;
mod find;
mod hosts;
mod hydrate;
mod labels;
mod marks;
mod merge_requests;
mod messages;
mod old_queues;
mod outbox;
mod parameters;
mod parks;
mod polecats;
mod port_ranges;
mod pull;
mod pull_requests;
mod query;
mod requests;
mod rigs;
mod run_outputs;
mod runs;
mod scheduler;
mod select;
mod settings;
mod statistics;
mod steps;
mod tokens;
mod town_numbers;
mod trash;
mod upkeep;
mod usage;
mod usage_windows;
mod waits;
mod work;
mod workers;

pub use beads::{BlockerFacts, differing_fields};
pub use board::BoardFilter;
pub use bulk::Bulk;
pub use check::Difference;
pub use contexts::{Lane, NewContext};
pub use convoy_status::{Member, MemberRow, QueuedMember};
pub use convoys::{ConvoyTally, TouchedContainer, Unscheduled};
pub use dependencies::DependencyChange;
pub use events::EventFilter;
pub use filter::{BeadFilter, BeadOrder, Between, CountGroup, Readiness, StatusFilter};
pub(crate) use hosts::{FORGET_HOSTS, renew_known_host};
pub use hosts::{HostDeclaration, HostRecord, HostRow};
pub use hydrate::BeadRow;
pub use marks::StoreMarks;
pub(crate) use marks::{FENCE_KEY, TOWN_KEY};
pub use merge_requests::{CandidateCheck, MergeQueueRow, RedTarget, RequestFilter};
pub use outbox::{DueNotices, UnsentNotices};
pub use pull::{Offer, Offered, PullQuery};
pub use rigs::RigCounts;
pub use run_outputs::RunOutputTail;
pub use runs::RunPage;
pub use scheduler::{Pause, SchedulerState};
pub use settings::SettingScope;
pub(crate) use settings::{PUT_MARK, REMOVE_MARK};
pub use statistics::Statistics;
pub use steps::{DoneStep, LiveSteps};
pub use town_numbers::{CheckNumbers, QueueNumbers, RunNumbers, TownNumbers};
pub use upkeep::{Growth, Totals};
pub use usage::{Guard, MemoryEstimate, SpendingEntry, UsageAt};
pub(crate) use workers::WorkerGuard;

/// Names the statements of a module and lists them, so that a test can prepare every one.
macro_rules! statements {
    ($($name:ident = $sql:expr;)*) => {
        $(pub(super) const $name: &str = $sql;)*
        /// The statements of this module.
        pub(crate) const STATEMENTS: &[&str] = &[$($name),*];
    };
}
use statements;

/// Every fixed statement there is. Filters and pages build theirs; their tests run those.
pub fn all_statements() -> Vec<&'static str> {
    [
        crate::transaction::STATEMENTS,
        accounts::STATEMENTS,
        beads::STATEMENTS,
        blocking::STATEMENTS,
        bulk::STATEMENTS,
        check::STATEMENTS,
        check_runs::STATEMENTS,
        check_schedule::STATEMENTS,
        comments::STATEMENTS,
        contexts::STATEMENTS,
        convoys::STATEMENTS,
        dependencies::STATEMENTS,
        events::STATEMENTS,
        find::STATEMENTS,
        hosts::STATEMENTS,
        labels::STATEMENTS,
        marks::STATEMENTS,
        merge_requests::STATEMENTS,
        pull_requests::STATEMENTS,
        messages::STATEMENTS,
        outbox::STATEMENTS,
        old_queues::STATEMENTS,
        parks::STATEMENTS,
        convoy_status::STATEMENTS,
        polecats::STATEMENTS,
        port_ranges::STATEMENTS,
        pull::STATEMENTS,
        requests::STATEMENTS,
        rigs::STATEMENTS,
        run_outputs::STATEMENTS,
        runs::STATEMENTS,
        scheduler::STATEMENTS,
        settings::STATEMENTS,
        statistics::STATEMENTS,
        steps::STATEMENTS,
        tokens::STATEMENTS,
        town_numbers::STATEMENTS,
        trash::STATEMENTS,
        upkeep::STATEMENTS,
        usage::STATEMENTS,
        usage_windows::STATEMENTS,
        waits::STATEMENTS,
        work::STATEMENTS,
        workers::STATEMENTS,
    ]
    .concat()
}
