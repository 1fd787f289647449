//! Staging convoys, how far they are, and feeding those whose members wait for nothing.

mod failed_members;
mod forecast;
mod graph;
mod history;
mod overview;
mod stage;
mod status;
mod stranded;

pub use failed_members::failed_members;
pub use forecast::DurationEstimate;
pub use graph::graph;
pub use gt_core::convoy_graph::TrackedState;
pub use gt_store::MemberRow;
pub use history::{
    ConvoyTimeline, KeptLog, LogMoment, LogPlace, PastConvoy, Recalled, convoy_at, convoy_timeline,
};
pub use overview::{ConvoyOverview, overview};
pub use stage::{LacksBranch, StageRequest, Staged, preview, stage, stage_telling};
pub(crate) use status::tracked_with_contexts;
pub use status::{ConvoyStatus, TrackedBead, status};
pub use stranded::check_convoys;
pub use stranded::{
    ConvoyCheck, FeedAction, FeedDetail, FeedLimits, StrandedConvoy, feed, stranded,
};
