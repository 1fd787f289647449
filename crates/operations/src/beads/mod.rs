//! Beads: making, finding, changing and ending them.

mod close;
mod contexts;
mod create;
mod defer;
mod delete;
mod facts;
mod lint;
mod list;
mod moving;
mod plan;
mod prime;
mod query;
mod ready;
mod references;
mod resolve;
mod show;
mod status;
mod types;
mod update;

pub use close::{Close, Closed, close, reopen};
pub(crate) use close::{close_in, reopen_in};
pub(crate) use contexts::{shown_id, tracking_edge};
pub use create::{Created, NewBead, Once, create, create_once};
pub(crate) use create::{create_in, edge, resolve_target, target_name};
pub use defer::{defer, undefer};
pub use delete::{Deletion, delete, preview_delete};
pub(crate) use facts::BeadFacts;
pub use lint::{Finding, LintSummary, lint};
pub use list::{
    blocked, check_status, count, count_by, everything, for_each_page, label_counts, statistics,
};
pub(crate) use moving::{CarriedRig, carried_rig};
pub use plan::{Made, PlanOptions, create_all};
pub use prime::{Primer, primer};
pub use query::query_filter;
pub use ready::{Explained, ExplanationSummary, claim_first, explain, ready, ready_count};
pub use references::{Mention, References, references};
pub(crate) use resolve::{Named, require, resolve_in, resolve_shown_id_in, resolve_shown_in};
pub use resolve::{resolve, resolve_shown};
pub use show::{Shown, listed, show};
pub(crate) use status::{enter, refuse_if_over};
pub(crate) use update::update_in;
pub use update::{BeadChanges, Edit, update};
