//! Staging convoys, how far they are, and feeding those whose members wait for nothing.

mod forecast;
mod overview;
mod picture;
mod retry;
mod stage;
mod stranded;

pub use forecast::Estimate;
pub use gt_store::Sketch;
pub use overview::{Overview, overview};
pub use picture::{Picture, Tracked, TrackedState, status};
pub use retry::retry;
pub use stage::{LacksBranch, StageRequest, Staged, stage, stage_telling};
pub use stranded::attend;
pub use stranded::{Attended, Feed, FeedAction, FeedDetail, StrandedConvoy, feed, stranded};
