//! Beads: making, finding, changing and ending them.

mod close;
mod create;
mod delete;
mod list;
mod ready;
mod resolve;
mod show;
mod update;

pub use close::{Close, Closed, close, reopen};
pub use create::{Created, Direction, Link, NewBead, Once, create, create_once};
pub(crate) use create::{edge, resolve_target, target_name};
pub use delete::{Deletion, delete, preview_delete};
pub(crate) use list::everything;
pub use list::{blocked, check_status, count, count_by, for_each_page, label_counts, statistics};
pub use ready::{Explained, ExplanationSummary, claim_first, explain, ready, ready_count};
pub use resolve::resolve;
pub(crate) use resolve::{require, resolve_in};
pub use show::{Shown, show};
pub use update::{BeadChanges, Edit, update};
