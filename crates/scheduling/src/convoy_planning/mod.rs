//! Staging convoys, how far they are, and feeding those whose members wait for nothing.

mod forecast;
mod graph;
mod overview;
mod retry;
mod stage;
mod status;
mod stranded;

pub use forecast::DurationEstimate;
pub use graph::graph;
pub use gt_core::convoy_graph::TrackedState;
pub use gt_store::MemberRow;
pub use overview::{ConvoyOverview, overview};
pub use retry::retry;
pub use stage::{LacksBranch, StageRequest, Staged, stage, stage_telling};
pub use status::{ConvoyStatus, TrackedBead, status};
pub use stranded::check_convoys;
pub use stranded::{
    ConvoyCheck, FeedAction, FeedDetail, FeedLimits, StrandedConvoy, feed, stranded,
};
