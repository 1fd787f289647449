//! Convoys: beads that travel together, how far they are, and whether they have landed.

mod change;
mod limits;
mod make;
mod watchers;

use gt_core::decide::{
    ContainerChange, ConvoyState, Members, convoy_change, integration_base, is_bookkeeping,
    is_owned, lands_by_itself,
};
use gt_core::schedule::ContextOrigin;
use gt_core::{Bead, BeadChangeKind, BeadId, IssueType, Json, Status};
use gt_store::{BeadFilter, BeadOrder, ConvoyTally, Pause, Reader, StatusFilter, Writer};

pub(crate) use change::close_bookkeeping;
pub use change::{ConvoyClose, NewConvoy, RemovedMembers, clear_trees, close, land, remove};
pub use change::{add_members, again, create_in, end_bookkeeping};
pub use limits::{cap, pause, require_review, resume};
pub use make::{ConvoyRules, ConvoyToMake, make};
pub(crate) use watchers::send_to_watchers;
pub use watchers::watch;

use crate::containers::land_if_done;
use crate::lookup::resolve_in;
use crate::review_rules::metadata_requires_review;
use gt_town::{OperationError, Result, Town};

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
    /// The convoy of a bead with the counts of its members, if it has any.
    pub fn of(bead: Bead, tally: Option<ConvoyTally>) -> Self {
        let Some(tally) = tally else {
            let (members, paused) = (Members::default(), None);
            return Self { bead, members, landings: 0, cap: 0, paused };
        };
        let ConvoyTally { members, landings, cap, paused, .. } = tally;
        Self { bead, members, landings, cap, paused }
    }

    /// How many of its beads can be worked on at once where so many can at all.
    pub fn slots_within(&self, slots: Option<u32>) -> Option<u32> {
        let own = Some(self.cap).filter(|cap| *cap > 0);
        [slots, own].into_iter().flatten().min()
    }

    /// The addresses that get a message when it lands.
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

    /// Whether its work comes together on a branch of its own, which is brought to the base at the end.
    pub fn is_integrated(&self) -> bool {
        integration_base(&self.bead).is_some()
    }

    /// Whether a person has to approve its work before it lands.
    pub fn requires_review(&self) -> bool {
        metadata_requires_review(&self.bead)
    }

    /// Whether a sling made it for one bead, for its own bookkeeping.
    pub fn is_bookkeeping(&self) -> bool {
        is_bookkeeping(&self.bead) && self.members.total <= 1
    }

    /// The text in its metadata under this name, if there is one.
    pub fn metadata_text(&self, name: &str) -> Option<String> {
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
pub fn find(reader: &Reader<'_>, status: StatusFilter) -> Result<Vec<BeadId>> {
    Ok(reader.find(&BeadFilter {
        status,
        types: vec![IssueType::trusted("convoy".to_owned())],
        order: BeadOrder::Created,
        ..BeadFilter::default()
    })?)
}

/// The convoys that are complete and have not landed.
pub fn landable(reader: &Reader<'_>) -> Result<Vec<Convoy>> {
    let mut landable = Vec::new();
    for tally in reader.convoys_without_open_members()? {
        let Some(bead) = reader.bead(&tally.convoy)? else { continue };
        let convoy = Convoy::of(bead, Some(tally));
        let change = convoy_change(convoy.state(), !lands_by_itself(&convoy.bead), convoy.members);
        if change == Some(ContainerChange::Lands) {
            landable.push(convoy);
        }
    }
    Ok(landable)
}

/// Lands every convoy that is complete and has not landed yet: one that an import brought, say. Returns those that
/// landed, or that would. Only this one, if one is named.
pub fn check(town: &Town, input: Option<&str>, rehearsal: bool) -> Result<Vec<Convoy>> {
    town.write_or_rehearse(rehearsal, |writer| {
        let wanted = input.map(|input| require(town, writer, input)).transpose()?;
        let mut landed = landable(writer)?;
        landed.retain(|convoy| wanted.as_ref().is_none_or(|wanted| wanted.id == convoy.bead.id));
        for convoy in &landed {
            land_if_done(writer, &convoy.bead.id)?;
        }
        Ok(landed)
    })
}

/// Opens a convoy that is staged, as a part of its launch.
pub fn open_staged(writer: &mut Writer<'_>, convoy: &BeadId) -> Result<()> {
    let old = writer.bead(convoy)?.ok_or_else(|| OperationError::NoBead(convoy.to_string()))?;
    if ConvoyState::of(&old) != ConvoyState::Staged {
        return Err(OperationError::rejected(format!(
            "{convoy} is {}, and only what is staged can be launched; gt convoy status {convoy} shows how far it is",
            old.status
        )));
    }
    let updated_at = writer.now().of_change_after(old.updated_at);
    let open = Bead { status: Status::Open, updated_at, ..old.clone() };
    writer.save_bead(&old, &open, BeadChangeKind::StatusChanged)?;
    // Everything may have been done meanwhile.
    land_if_done(writer, convoy)
}

/// Those of these beads that are scheduled because a convoy tracks them, in order, each with that convoy.
pub fn scheduled_by_convoy(town: &Town, beads: &[BeadId]) -> Result<Vec<(BeadId, BeadId)>> {
    town.read(|reader| {
        let contexts = reader.open_contexts_of(beads)?.into_values();
        let fed = contexts.filter(|context| context.origin == ContextOrigin::Convoy);
        let mut scheduled: Vec<_> =
            fed.filter_map(|context| Some((context.bead, context.parameters.convoy?))).collect();
        scheduled.sort();
        Ok(scheduled)
    })
}

/// The convoy that the input names.
pub fn require(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Bead> {
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
