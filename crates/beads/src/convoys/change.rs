//! Making a convoy, and changing an existing one.

use std::collections::BTreeSet;

use gt_core::decide::{ConvoyState, LANDED};
use gt_core::schedule::{Merge, Polecat, WorkerPlace};
use gt_core::{Bead, BeadChangeKind, BeadId, DependencyType, Outcome, Status};
use gt_store::{Reader, Writer};

use super::make::{ConvoyRules, ConvoyToMake, make};
use super::watchers::{own_address, send_to_watchers, watcher, write_watchers};
use super::{Convoy, require};
use crate::containers::{self, land_if_done};
use crate::lookup::resolve_in;
use crate::merge_requests::cancel_request_in;
use crate::review_rules::refuse_review_of_local;
use gt_town::{OperationError, Result, Town};

/// A convoy that is to be made on request.
#[derive(Debug, Clone, Default)]
pub struct NewConvoy {
    /// Its title; the title of its epic, if none is given.
    pub title: Option<String>,
    /// It tracks the parts of the named epic.
    pub from_epic: bool,
    /// Its owner lands it.
    pub owned: bool,
    /// Its owner, if that is not its maker.
    pub owner: Option<String>,
    /// The addresses that get a message when it lands; nothing stands for its maker.
    pub notify: Vec<Option<String>>,
    /// How its work is merged.
    pub merge: Option<Merge>,
    /// The branch that its work begins from and lands on.
    pub base_branch: Option<String>,
    /// A person has to approve its work before it lands.
    pub review: bool,
    /// Its work comes together on a branch of its own, which is brought to `base_branch` at the end.
    pub integration: bool,
}

/// Makes a convoy of these beads, each named once.
pub fn create_in(
    town: &Town,
    writer: &mut Writer<'_>,
    new: &NewConvoy,
    of_epic: Option<&str>,
    beads: &[BeadId],
) -> Result<BeadId> {
    refuse_review_of_local(new.review, new.merge)?;
    let title = new.title.as_deref().or(of_epic).unwrap_or_default();
    if title.trim().is_empty() {
        return Err(OperationError::rejected("a convoy needs a name"));
    }
    let mut watchers = Vec::new();
    for address in &new.notify {
        let address = match address {
            Some(text) => watcher(writer, text)?,
            None => own_address(town, writer)?,
        };
        if !watchers.contains(&address) {
            watchers.push(address);
        }
    }
    let rules = ConvoyRules {
        owned: new.owned,
        merge: new.merge,
        base_branch: new.base_branch.as_deref().filter(|_| !new.integration),
        review: new.review,
        integration: new.integration.then(|| new.base_branch.as_deref().unwrap_or_default()),
    };
    let mut metadata = rules.metadata();
    if !watchers.is_empty() {
        metadata.push(("watchers".to_owned(), write_watchers(&watchers)));
    }
    let status = Status::Open;
    let id = make(town, writer, &ConvoyToMake { title, metadata, beads, status })?;
    if let (Some(owner), Some(made)) = (&new.owner, writer.bead(&id)?) {
        let owned = Bead { owner: owner.clone(), ..made.clone() };
        writer.save_bead(&made, &owned, BeadChangeKind::Updated)?;
    }
    Ok(id)
}

/// A convoy that something has joined.
pub struct JoinedConvoy {
    pub convoy: BeadId,
    /// The beads that it did not track before.
    pub added: Vec<BeadId>,
    /// Whether anything of it starts.
    pub is_under_way: bool,
}

/// Lets a convoy track more beads, each named once. One that is over is open again.
pub fn add_members(
    town: &Town,
    writer: &mut Writer<'_>,
    convoy: &str,
    beads: &[BeadId],
) -> Result<JoinedConvoy> {
    let convoy = require(town, writer, convoy)?;
    let edges = writer.edges_from(&convoy.id)?;
    let known: BTreeSet<&BeadId> = edges.iter().map(|edge| &edge.target).collect();
    let tracks = |bead: &BeadId| {
        edges.iter().any(|edge| edge.target == *bead && edge.kind == DependencyType::Tracks)
    };
    if let Some(other) = beads.iter().find(|bead| known.contains(bead) && !tracks(bead)) {
        return Err(OperationError::rejected(format!(
            "{} depends on {other} in another way already; take that away with bd dep remove {} {other}",
            convoy.id, convoy.id
        )));
    }
    let added: Vec<BeadId> = beads.iter().filter(|bead| !known.contains(bead)).cloned().collect();
    let state = ConvoyState::of(&convoy);
    if matches!(state, ConvoyState::Closed | ConvoyState::Landed) && !added.is_empty() {
        containers::reopen(writer, &convoy)?;
    }
    writer.track(&convoy.id, &added)?;
    let is_under_way = match state {
        ConvoyState::Staged => false,
        ConvoyState::Open => true,
        ConvoyState::Closed | ConvoyState::Landed => !added.is_empty(),
    };
    Ok(JoinedConvoy { convoy: convoy.id, added, is_under_way })
}

/// The result of taking beads out of a convoy.
#[derive(Debug)]
pub struct RemovedMembers {
    /// The convoy as it is now.
    pub convoy: Convoy,
    /// The beads that it does not track any more.
    pub removed: Vec<BeadId>,
    /// The beads that it did not track anyway.
    pub unknown: Vec<BeadId>,
}

/// Takes beads out of a convoy; their runs go on. The rest may be done, and then it lands.
pub fn remove(town: &Town, convoy: &str, beads: &[String]) -> Result<RemovedMembers> {
    town.write(|writer| {
        let convoy = require(town, writer, convoy)?;
        let (mut removed, mut unknown) = (Vec::new(), Vec::new());
        for input in beads {
            let bead = resolve_in(town, writer, input)?;
            let edges = writer.edges_from(&convoy.id)?.into_iter();
            let mut tracked =
                edges.filter(|edge| edge.target == bead && edge.kind == DependencyType::Tracks);
            match tracked.next() {
                Some(edge) => {
                    writer.remove_dependency(&edge, true)?;
                    removed.push(bead);
                }
                None => unknown.push(bead),
            }
        }
        land_if_done(writer, &convoy.id)?;
        Ok(RemovedMembers { convoy: again(writer, &convoy.id)?, removed, unknown })
    })
}

/// The convoy as it is now.
pub fn again(reader: &Reader<'_>, convoy: &BeadId) -> Result<Convoy> {
    let bead = reader.bead(convoy)?.ok_or_else(|| OperationError::NoBead(convoy.to_string()))?;
    Ok(Convoy::of(bead, reader.convoy_tally(convoy)?))
}

/// How a convoy is closed by hand.
#[derive(Debug, Clone, Default)]
pub struct ConvoyClose {
    /// The reason.
    pub reason: Option<String>,
    /// Although something of it is not done.
    pub force: bool,
    /// Its watchers are told.
    pub notify: bool,
}

/// Closes a convoy. The work on its beads goes on without it. `false` if it was closed already.
pub fn close(town: &Town, convoy: &str, how: &ConvoyClose) -> Result<(Convoy, bool)> {
    town.write(|writer| {
        let old = require(town, writer, convoy)?;
        let state = ConvoyState::of(&old);
        let before = again(writer, &old.id)?;
        if matches!(state, ConvoyState::Closed | ConvoyState::Landed) {
            return Ok((before, false));
        }
        if how.reason.as_deref() == Some(LANDED) {
            return Err(OperationError::rejected(format!(
                "\"{LANDED}\" is what a landing is called; give another reason, or land it with gt convoy land {}",
                old.id
            )));
        }
        let members = before.members;
        let is_done = members.open + members.failed == 0;
        if state == ConvoyState::Open && !is_done && !how.force {
            return Err(OperationError::rejected(format!(
                "{} is not done: {} of {} beads are open, and {} failed; close it all the same with --force, and they \
                 go on without it",
                old.id, members.open, members.total, members.failed
            )));
        }
        if let Some(request) = writer.open_merge_request(&old.id)? {
            if !how.force {
                return Err(OperationError::rejected(format!(
                    "the branch of {} is on its way: {}; close it all the same with --force, and the branch stays where it is",
                    old.id,
                    request.state_reason()
                )));
            }
            cancel_request_in(writer, &old.id, "its convoy was closed")?;
        }
        let now = writer.now();
        let reason = how.reason.clone().unwrap_or_else(|| format!("closed by {}", town.actor().name));
        let outcome = if is_done { Outcome::Success } else { Outcome::Cancelled };
        let new = Bead {
            status: Status::Closed,
            outcome: Some(outcome),
            closed_at: Some(now),
            close_reason: reason.clone(),
            updated_at: now.of_change_after(old.updated_at),
            ..old.clone()
        };
        writer.save_bead(&old, &new, BeadChangeKind::Closed)?;
        let convoy = again(writer, &old.id)?;
        if how.notify {
            let what = format!(
                "{} ({}) is closed: {reason}. {} of {} beads are done.",
                old.id, old.title, members.completed(), members.total
            );
            send_to_watchers(writer, &old, &what)?;
        }
        Ok((convoy, true))
    })
}

/// Closes the convoy that a sling made for this bead alone, if the bead is open and neither scheduled nor running: it was
/// taken out of the queue, or its run was cancelled. A later sling makes another convoy. Returns what was closed.
pub fn end_bookkeeping(
    writer: &mut Writer<'_>,
    bead: &BeadId,
    why: &str,
) -> Result<Option<BeadId>> {
    let is_over = writer.bead(bead)?.is_none_or(|bead| bead.status == Status::Closed);
    if is_over || writer.open_context(bead)?.is_some() || writer.live_run(bead)?.is_some() {
        return Ok(None);
    }
    close_bookkeeping(writer, bead, why)
}

/// Closes the convoy that a sling made for this bead alone, if it is open. Returns what was closed.
pub(crate) fn close_bookkeeping(
    writer: &mut Writer<'_>,
    bead: &BeadId,
    why: &str,
) -> Result<Option<BeadId>> {
    for edge in writer.edges_to(bead)? {
        if edge.kind != DependencyType::Tracks {
            continue;
        }
        let Some(old) = writer.bead(&edge.issue)?.filter(|bead| bead.issue_type.is_convoy()) else {
            continue;
        };
        let convoy = Convoy::of(old.clone(), writer.convoy_tally(&old.id)?);
        if convoy.state() != ConvoyState::Open || convoy.is_owned() || !convoy.is_bookkeeping() {
            continue;
        }
        let now = writer.now();
        let new = Bead {
            status: Status::Closed,
            outcome: Some(Outcome::Cancelled),
            closed_at: Some(now),
            close_reason: format!("{bead} {why}"),
            updated_at: now.of_change_after(old.updated_at),
            ..old.clone()
        };
        writer.save_bead(&old, &new, BeadChangeKind::Closed)?;
        return Ok(Some(old.id));
    }
    Ok(None)
}

/// Lands a convoy that its owner lands. `force` lands it although something is not done.
pub fn land(town: &Town, convoy: &str, force: bool, rehearsal: bool) -> Result<Convoy> {
    town.write_or_rehearse(rehearsal, |writer| {
        let old = require(town, writer, convoy)?;
        let before = again(writer, &old.id)?;
        let (id, members) = (&old.id, before.members);
        let refused = |why: String| Err(OperationError::rejected(why));
        match before.state() {
            ConvoyState::Open => {}
            ConvoyState::Staged => {
                return refused(format!("{id} is staged; start it with gt convoy launch {id}"));
            }
            ConvoyState::Landed => return Ok(before),
            ConvoyState::Closed => return refused(format!("{id} is closed: {}", old.close_reason)),
        }
        if !before.is_owned() {
            return refused(format!(
                "{id} lands by itself when everything it tracks is done; gt convoy close {id} ends it before"
            ));
        }
        if !members.are_done() && !force {
            return refused(format!(
                "{id} is not done: {} of {} beads are open, and {} failed; land it all the same with --force",
                members.open, members.total, members.failed
            ));
        }
        if writer.convoy_tally(id)?.is_none() {
            return refused(format!("{id} tracks nothing; gt convoy close {id} closes it"));
        }
        containers::land(writer, &old)?;
        again(writer, id)
    })
}

/// Moves the trees of polecats whose last run worked on a tracked bead to the trash. Returns their places, or why one
/// stays.
pub fn clear_trees(
    town: &Town,
    convoy: &BeadId,
    move_to_trash: impl Fn(&WorkerPlace) -> Result<()>,
) -> Result<Vec<std::result::Result<WorkerPlace, OperationError>>> {
    let places = town.read(|reader| {
        let edges = reader.edges_from(convoy)?.into_iter();
        let tracked: BTreeSet<BeadId> = edges
            .filter(|edge| edge.kind == DependencyType::Tracks)
            .map(|edge| edge.target)
            .collect();
        let of_convoy = |polecat: &Polecat| {
            polecat.last_run.as_ref().is_some_and(|run| tracked.contains(&run.bead))
        };
        let mut places = Vec::new();
        for polecat in reader.polecats()?.iter().filter(|polecat| of_convoy(polecat)) {
            places.push(WorkerPlace::polecat(&polecat.rig, &polecat.name)?);
        }
        Ok(places)
    })?;
    let clear = |place: WorkerPlace| move_to_trash(&place).map(|()| place);
    Ok(places.into_iter().map(clear).collect())
}
