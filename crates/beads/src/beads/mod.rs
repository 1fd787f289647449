//! Beads: making, finding, changing and ending them.

mod close;
mod contexts;
mod create;
mod defer;
mod duplicates;
mod editing;
mod epics;
mod focus;
mod history;
mod lint;
mod list;
mod moving;
mod orphans;
mod plan;
mod prime;
mod query;
mod ready;
mod references;
mod show;
mod shown_json;
mod status;
mod types;
mod update;

pub use close::{Close, ClosedBead, close, reopen};
pub use close::{close_in, reopen_in};
pub use create::create_in;
pub use create::{CreateResult, Created, NewBead, create, create_once};
pub use defer::{defer, undefer};
pub use duplicates::{
    DuplicateGroup, ReplacedBead, Replacement, duplicates, merge_duplicates, replace,
};
pub use editing::edit_text;
pub use epics::{ALL_PARTS_CLOSED, EpicProgress, close_finished_epics, open_epics};
pub use focus::{current_bead, thread};
pub use history::{PastBead, bead_as_of};
pub use lint::{LintFinding, LintSummary, lint};
pub use list::{
    blocked, check_status, count, count_by, for_each_page, label_counts, labels_matching,
    labels_of, own_statistics, statistics,
};
pub(crate) use moving::{CarriedRig, carried_rig};
pub use orphans::{Orphan, orphans};
pub use plan::{CreatedPlan, PlanOptions, create_all};
pub use prime::{Primer, primer};
pub use query::query_filter;
pub use ready::{ExplanationSummary, ReadyExplanation, claim_first, explain, ready, ready_count};
pub use references::{Mention, References, references};
pub(crate) use references::{mentions_of, with_other_ids};
pub use show::{BeadDetails, listed, show};
pub use shown_json::{LabelsOf, ShownBeadParts, linked};
pub(crate) use status::cancel_before_delete_in;
pub use types::custom_types;
pub(crate) use update::update_in;
pub use update::{BeadChanges, FieldEdit, update};
