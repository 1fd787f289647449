//! Beads that a convoy tracks and that are not scheduled: found, told, and scheduled through the one way in.

use std::collections::BTreeMap;
use std::time::Duration;

use gt_core::BeadId;
use gt_core::decide::WaitReason;
use gt_core::schedule::Context;
use gt_core::time::format_duration;
use gt_store::{Reader, Unscheduled};

use crate::dispatch::{DispatchInputs, SchedulingSnapshot};
use crate::schedule::{UnscheduledMember, feed_in, strays};
use gt_beads::containers::land_if_done;
use gt_beads::convoys::{Convoy, again, end_bookkeeping, landable};
use gt_town::{Result, Town};

/// A convoy with beads that are not scheduled.
#[derive(Debug, Clone)]
pub struct StrandedConvoy {
    /// The convoy.
    pub convoy: Convoy,
    /// The unscheduled beads that could start at once.
    pub ready: Vec<BeadId>,
    /// The unscheduled beads that wait for something else as well.
    pub waiting: Vec<BeadId>,
}

/// The convoys that are under way and of which something is stranded.
pub fn stranded(town: &Town) -> Result<Vec<StrandedConvoy>> {
    let inputs = DispatchInputs::read(town)?;
    town.read(|reader| {
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?;
        let found = strays(reader, &snapshot, Unscheduled::Anywhere)?;
        let mut convoys = Vec::new();
        for (convoy, strays) in by_convoy(&found) {
            let ids = |wanted: bool| {
                let of = strays.iter().filter(|stray| stray.is_ready() == wanted);
                of.map(|stray| stray.bead.id.clone()).collect::<Vec<_>>()
            };
            let (ready, waiting) = (ids(true), ids(false));
            convoys.push(StrandedConvoy { convoy: again(reader, convoy)?, ready, waiting });
        }
        Ok(convoys)
    })
}

/// The stranded beads, by convoy.
fn by_convoy(found: &[UnscheduledMember]) -> BTreeMap<&BeadId, Vec<&UnscheduledMember>> {
    let mut convoys: BTreeMap<&BeadId, Vec<&UnscheduledMember>> = BTreeMap::new();
    for stray in found.iter().filter(|stray| stray.is_stranded()) {
        convoys.entry(&stray.convoy).or_default().push(stray);
    }
    convoys
}

/// The result of a check of all convoys.
#[derive(Debug, Default)]
pub struct ConvoyCheck {
    /// The contexts of beads that were stranded and are scheduled now.
    pub scheduled: Vec<Context>,
    /// The convoys that have landed: everything they track was done.
    pub landed: Vec<BeadId>,
}

/// Looks after every convoy that is under way: what is stranded is scheduled, and what is done lands. Nothing is written if
/// there is nothing to do.
pub fn check_convoys(town: &Town, inputs: &DispatchInputs) -> Result<ConvoyCheck> {
    let is_needed = town.read(|reader| {
        if !landable(reader)?.is_empty() {
            return Ok(true);
        }
        if reader.unscheduled_members(Unscheduled::Anywhere)?.is_empty() {
            return Ok(false);
        }
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, inputs, town.now())?;
        let found = strays(reader, &snapshot, Unscheduled::Anywhere)?;
        Ok(found.iter().any(UnscheduledMember::is_stranded)
            || !taken_back(reader, &found)?.is_empty())
    })?;
    if !is_needed {
        return Ok(ConvoyCheck::default());
    }
    town.write(|writer| {
        let snapshot = SchedulingSnapshot::read_for_daemon(writer, inputs, town.now())?;
        let found = strays(writer, &snapshot, Unscheduled::Anywhere)?;
        let fed = feed_in(writer, &snapshot, &found)?;
        let landed: Vec<BeadId> = landable(writer)?.into_iter().map(|done| done.bead.id).collect();
        for convoy in &landed {
            land_if_done(writer, convoy)?;
        }
        // The command that cancels a run may be gone before it could do this.
        for bead in taken_back(writer, &found)? {
            end_bookkeeping(writer, &bead, "was taken back")?;
        }
        Ok(ConvoyCheck { scheduled: fed.scheduled, landed })
    })
}

/// The beads that a sling made a convoy for, and that a person has taken back since.
fn taken_back(reader: &Reader<'_>, strays: &[UnscheduledMember]) -> Result<Vec<BeadId>> {
    let is_taken = |reason: &WaitReason| {
        matches!(reason, WaitReason::Cleared(_) | WaitReason::RunCancelled(_))
    };
    let mut found = Vec::new();
    for stray in strays.iter().filter(|stray| stray.reasons.iter().any(is_taken)) {
        let Some(bead) = reader.bead(&stray.convoy)? else { continue };
        let convoy = Convoy::of(bead, reader.convoy_tally(&stray.convoy)?);
        if convoy.is_bookkeeping() && !convoy.is_owned() {
            found.push(stray.bead.id.clone());
        }
    }
    Ok(found)
}

/// How the deacon feeds.
#[derive(Debug, Clone, Copy)]
pub struct FeedLimits {
    /// So many convoys at most.
    pub max_feeds: u32,
    /// None that was fed less than this ago.
    pub cooldown: Duration,
}

/// The action that was taken for a convoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedAction {
    /// Its stranded beads are scheduled.
    Fed,
    /// It was done, and has landed.
    Closed,
    /// It is left for another time.
    Skipped,
    /// Only a person can help.
    NeedsAttention,
    /// That failed.
    Error,
}

impl FeedAction {
    /// A short name that programs can rely on.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fed => "fed",
            Self::Closed => "closed",
            Self::Skipped => "skipped",
            Self::NeedsAttention => "needs_attention",
            Self::Error => "error",
        }
    }
}

/// The action that was taken for a convoy, and why.
#[derive(Debug, Clone)]
pub struct FeedDetail {
    /// The convoy.
    pub convoy: BeadId,
    /// The action.
    pub action: FeedAction,
    /// A sentence about it.
    pub message: String,
    /// The contexts that were made.
    pub contexts: Vec<u64>,
}

/// Feeds stranded beads, convoy by convoy, through the one way in, within limits. Names the convoys that need a
/// person.
pub fn feed(town: &Town, how: &FeedLimits) -> Result<Vec<FeedDetail>> {
    let inputs = DispatchInputs::read(town)?;
    let mut details = Vec::new();
    let (found, done, stuck) = town.read(|reader| {
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?;
        let found = strays(reader, &snapshot, Unscheduled::Anywhere)?;
        let convoys: Vec<BeadId> = by_convoy(&found).into_keys().cloned().collect();
        Ok((convoys, landable(reader)?, stuck(reader, &found)?))
    })?;
    for convoy in done.into_iter().map(|done| done.bead.id) {
        town.write(|writer| land_if_done(writer, &convoy))?;
        let message = "everything it tracks is done; it has landed".to_owned();
        details.push(FeedDetail {
            convoy,
            action: FeedAction::Closed,
            message,
            contexts: Vec::new(),
        });
    }
    let mut fed = 0;
    for convoy in found {
        let detail = if fed >= how.max_feeds {
            let message = format!("{} were fed already (--max-feeds)", how.max_feeds);
            let (action, contexts) = (FeedAction::Skipped, Vec::new());
            FeedDetail { convoy, action, message, contexts }
        } else {
            match feed_one(town, &inputs, &convoy, how.cooldown) {
                Ok(detail) => detail,
                Err(error) => FeedDetail {
                    convoy,
                    action: FeedAction::Error,
                    message: error.to_string(),
                    contexts: Vec::new(),
                },
            }
        };
        fed += u32::from(detail.action == FeedAction::Fed);
        details.push(detail);
    }
    details.extend(stuck);
    Ok(details)
}

fn feed_one(
    town: &Town,
    inputs: &DispatchInputs,
    convoy: &BeadId,
    cooldown: Duration,
) -> Result<FeedDetail> {
    town.write(|writer| {
        let detail = |action, message, contexts| FeedDetail {
            convoy: convoy.clone(),
            action,
            message,
            contexts,
        };
        let snapshot = SchedulingSnapshot::read_for_daemon(writer, inputs, town.now())?;
        let tally = writer.convoy_tally(convoy)?;
        let now = writer.now();
        // A date in the future comes of a clock that was set back.
        let fed_at = tally.and_then(|tally| tally.fed_at).map(|at| at.min(now));
        if let Some(left) =
            fed_at.map(|at| cooldown.saturating_sub(now.since(at))).filter(|left| !left.is_zero())
        {
            let message = format!(
                "it was fed, and may be again in {}",
                format_duration(Duration::from_secs(left.as_secs().max(1)))
            );
            return Ok(detail(FeedAction::Skipped, message, Vec::new()));
        }
        let found = strays(writer, &snapshot, Unscheduled::In(convoy))?;
        let fed = feed_in(writer, &snapshot, &found)?;
        if fed.scheduled.is_empty() {
            return Ok(match fed.refused.first() {
                Some((_, why)) => detail(FeedAction::NeedsAttention, why.to_string(), Vec::new()),
                // Another process was quicker.
                None => detail(
                    FeedAction::Skipped,
                    "nothing of it is stranded any more".to_owned(),
                    Vec::new(),
                ),
            });
        }
        writer.note_fed(convoy)?;
        let names: Vec<&str> = fed.scheduled.iter().map(|context| context.bead.as_str()).collect();
        let contexts = fed.scheduled.iter().map(|context| context.number).collect();
        Ok(detail(FeedAction::Fed, format!("scheduled {}", names.join(", ")), contexts))
    })
}

/// The convoys in which nothing goes on because of something that only a person can change.
fn stuck(reader: &Reader<'_>, found: &[UnscheduledMember]) -> Result<Vec<FeedDetail>> {
    let mut stuck: BTreeMap<BeadId, Vec<String>> = BTreeMap::new();
    for tally in reader.convoys_without_open_members()? {
        if tally.members.failed > 0 {
            let what = format!(
                "failed: {}; gt convoy retry {} tries them again",
                tally.members.failed, tally.convoy
            );
            stuck.entry(tally.convoy).or_default().push(what);
        }
    }
    for stray in found.iter().filter(|stray| !stray.is_stranded()) {
        let person =
            stray.reasons.iter().find(|reason| !matches!(reason, WaitReason::WaitsForPullAgent));
        if let Some(reason) = person.filter(|reason| !reason.passes_by_itself()) {
            let what = format!("{}: {reason}", stray.bead.id);
            stuck.entry(stray.convoy.clone()).or_default().push(what);
        }
    }
    let detail = |(convoy, what): (BeadId, Vec<String>)| FeedDetail {
        convoy,
        action: FeedAction::NeedsAttention,
        message: what.join("; "),
        contexts: Vec::new(),
    };
    Ok(stuck.into_iter().map(detail).collect())
}
