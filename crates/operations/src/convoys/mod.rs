//! Convoys: beads that travel together, how far they are, and whether they have landed.

mod change;
mod forecast;
mod limits;
mod make;
mod overview;
mod picture;
mod retry;
mod stage;
mod stranded;
mod watchers;

use gt_core::decide::{ConvoyState, Members, is_bookkeeping, is_owned};
use gt_core::schedule::Origin;
use gt_core::{Bead, BeadId, EventKind, IssueType, Json, Status};
use gt_store::{BeadFilter, BeadOrder, Pause, Reader, StatusFilter, Tally, Writer};

pub use change::{ConvoyClose, NewConvoy, Removed, clear_trees, close, land, remove};
pub(crate) use change::{board, create_in, end_bookkeeping, settle};
pub use forecast::Estimate;
pub use gt_store::Sketch;
pub use limits::{cap, pause, resume};
pub(crate) use make::{ConvoyToMake, kept, make};
pub use overview::{Overview, overview};
pub use picture::{Picture, Tracked, TrackedState, status};
pub use retry::retry;
pub use stage::{StageRequest, Staged, stage, stage_telling};
pub(crate) use stranded::attend;
pub use stranded::{Attended, Feed, FeedAction, FeedDetail, StrandedConvoy, feed, stranded};
pub(crate) use watchers::tell_watchers;
pub use watchers::watch;

use crate::beads::resolve_in;
use crate::{OperationError, Result, Town};

/// A convoy, and how what it tracks stands.
#[derive(Debug, Clone)]
pub struct Convoy {
    /// The bead that it is.
    pub bead: Bead,
    /// How the beads stand that it tracks.
    pub members: Members,
    /// How often it has landed.
    pub landings: u64,
    /// How many of its beads may be worked on at once; 0 for any number.
    pub cap: u32,
    /// Nothing of it starts while this is set.
    pub paused: Option<Pause>,
}

impl Convoy {
    fn of(bead: Bead, tally: Option<Tally>) -> Self {
        let Some(tally) = tally else {
            let (members, paused) = (Members::default(), None);
            return Self { bead, members, landings: 0, cap: 0, paused };
        };
        let Tally { members, landings, cap, paused, .. } = tally;
        Self { bead, members, landings, cap, paused }
    }

    /// How many of its beads can be worked on at once where so many can at all.
    fn slots_within(&self, slots: Option<u32>) -> Option<u32> {
        let own = Some(self.cap).filter(|cap| *cap > 0);
        [slots, own].into_iter().flatten().min()
    }

    /// Who is told when it lands.
    pub fn watchers(&self) -> Vec<String> {
        watchers::watchers(&self.bead)
    }

    /// Where it stands.
    pub fn state(&self) -> ConvoyState {
        ConvoyState::of(&self.bead)
    }

    /// Whether it lands when its owner says so, and not by itself.
    pub fn is_owned(&self) -> bool {
        is_owned(&self.bead)
    }

    /// Whether a sling made it for one bead, for its own bookkeeping.
    pub fn is_bookkeeping(&self) -> bool {
        is_bookkeeping(&self.bead) && self.members.total <= 1
    }

    /// What was said about it under this name when it was made, if anything was.
    pub fn said(&self, name: &str) -> Option<String> {
        self.bead.metadata.as_ref().and_then(|metadata| Json::string_field(metadata, name))
    }
}

/// Which convoys are listed.
#[derive(Debug, Clone, Default)]
pub struct ConvoyFilter {
    /// Also those that are closed, and those that a sling made for one bead.
    pub all: bool,
    /// Only those with this status.
    pub status: Option<Status>,
}

/// The convoys of a town, the newest first.
pub fn list(town: &Town, filter: &ConvoyFilter) -> Result<Vec<Convoy>> {
    let status = match (&filter.status, filter.all) {
        (Some(status), _) => StatusFilter::OneOf(vec![status.clone()]),
        (None, true) => StatusFilter::All,
        (None, false) => StatusFilter::Current,
    };
    town.read(|reader| {
        let found = find(reader, status)?;
        let mut convoys = Vec::with_capacity(found.len());
        for row in reader.bead_rows(&found)? {
            let tally = reader.convoy_tally(&row.bead.id)?;
            let convoy = Convoy::of(row.bead, tally);
            if filter.all || !convoy.is_bookkeeping() {
                convoys.push(convoy);
            }
        }
        Ok(convoys)
    })
}

/// The convoys with such a status, the newest first.
fn find(reader: &Reader<'_>, status: StatusFilter) -> Result<Vec<BeadId>> {
    Ok(reader.find(&BeadFilter {
        status,
        types: vec![IssueType::trusted("convoy".to_owned())],
        order: BeadOrder::Created,
        ..BeadFilter::default()
    })?)
}

/// Lands every convoy of which everything is done and that nobody has landed: what came in by an import, say. Returns those
/// that landed, or that would. Only this one, if one is named.
pub fn check(town: &Town, input: Option<&str>, rehearsal: bool) -> Result<Vec<Convoy>> {
    town.write_or_rehearse(rehearsal, |writer| {
        let wanted = input.map(|input| require(town, writer, input)).transpose()?;
        let mut landed = stranded::landable(writer)?;
        landed.retain(|convoy| wanted.as_ref().is_none_or(|wanted| wanted.id == convoy.bead.id));
        for convoy in &landed {
            settle(writer, &convoy.bead.id)?;
        }
        Ok(landed)
    })
}

/// Opens a convoy that is staged, as a part of its launch.
pub(crate) fn open_staged(writer: &mut Writer<'_>, convoy: &BeadId) -> Result<()> {
    let old = writer.bead(convoy)?.ok_or_else(|| OperationError::NoBead(convoy.to_string()))?;
    if ConvoyState::of(&old) != ConvoyState::Staged {
        return Err(OperationError::rejected(format!(
            "{convoy} is {}, and only what is staged can be launched; gt convoy status {convoy} shows how far it is",
            old.status
        )));
    }
    let updated_at = writer.now().max(old.updated_at);
    let open = Bead { status: Status::Open, updated_at, ..old.clone() };
    writer.save_bead(&old, &open, EventKind::StatusChanged)?;
    // Everything may have been done meanwhile.
    settle(writer, convoy)
}

/// Those of these beads that are scheduled because a convoy tracks them, in order, each with that convoy.
pub fn travelling(town: &Town, beads: &[BeadId]) -> Result<Vec<(BeadId, BeadId)>> {
    town.read(|reader| {
        let contexts = reader.open_contexts_of(beads)?.into_values();
        let fed = contexts.filter(|context| context.origin == Origin::Convoy);
        let mut travelling: Vec<_> =
            fed.filter_map(|context| Some((context.bead, context.parameters.convoy?))).collect();
        travelling.sort();
        Ok(travelling)
    })
}

/// The convoy that somebody means.
pub(crate) fn require(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Bead> {
    let id = resolve_in(town, reader, input)?;
    let bead = reader.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))?;
    if !bead.issue_type.is_convoy() {
        return Err(OperationError::rejected(format!(
            "{id} is a {}, and no convoy; gt convoy list shows the convoys",
            bead.issue_type
        )));
    }
    Ok(bead)
}
