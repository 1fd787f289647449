//! `gt deacon stale-hooks`: beads with an assignee and no worker.

use std::fmt;
use std::time::Duration;

use gt_core::merging::MergeRequestId;
use gt_core::schedule::{Run, RunId};
use gt_core::time::format_duration;
use gt_core::{Bead, BeadChangeKind, BeadId, ExecutorKind, Status, Timestamp};
use gt_store::{BeadFilter, Reader, StatusFilter, Writer};

use gt_beads::run_records::{cancel_in, release_as};
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::settings::layers_in;
use gt_town::{Result, Town};

/// A hook that was taken back, or in a rehearsal would be.
#[derive(Debug, Clone)]
pub struct StaleHook {
    /// The bead.
    pub bead: BeadId,
    /// Its title.
    pub title: String,
    /// The former assignee; empty if it had none.
    pub assignee: String,
    /// The former status.
    pub status: Status,
    /// How long nothing had happened to it.
    pub idle: Duration,
}

/// Why a hook was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepReason {
    /// A worker has it.
    Running(RunId),
    /// A person or a standing agent has it, and reports when it is done.
    WithCrew(String, RunId),
    /// Its work is done and on its way.
    Merging(MergeRequestId),
    /// Something has happened to it since.
    Young(Duration),
    /// A person claimed it by hand; only a person takes it back.
    ByHand(String),
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running(run) => write!(f, "running as {run}"),
            Self::WithCrew(who, run) => write!(f, "with {who}, who says when it is done ({run})"),
            Self::Merging(request) => write!(f, "done, and {request} has not landed yet"),
            Self::Young(idle) => {
                write!(f, "touched {} ago", format_duration(Duration::from_secs(idle.as_secs())))
            }
            Self::ByHand(who) => write!(f, "claimed by {who} by hand"),
        }
    }
}

impl KeepReason {
    /// A short name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Running(_) => "running",
            Self::WithCrew(..) => "with-crew",
            Self::Merging(_) => "merging",
            Self::Young(_) => "young",
            Self::ByHand(_) => "by-hand",
        }
    }
}

/// The findings of a look at all hooks.
#[derive(Debug, Clone, Default)]
pub struct StaleHooks {
    /// The hooks that were taken back.
    pub released: Vec<StaleHook>,
    /// The hooks that were left alone, and why.
    pub kept: Vec<(BeadId, KeepReason)>,
}

/// Takes back every hook, in all rigs, that has no worker and to which nothing has happened for `max_age`: the bead
/// is open, without an assignee. A rehearsal changes nothing.
pub fn stale_hooks(town: &Town, max_age: Duration, rehearsal: bool) -> Result<StaleHooks> {
    town.write_or_rehearse(rehearsal, |writer| release_in(writer, max_age, &|_| None))
}

/// The same as the daemon does it: after the time of the setting, and beads that a person claimed are left to that person.
/// Returns the hooks that were released, and when the next one may be due.
pub fn release_stale_hooks(town: &Town) -> Result<(Vec<StaleHook>, Option<Timestamp>)> {
    let settings = town.read(|reader| SchedulerSettings::of(&layers_in(town.root(), reader)?))?;
    let max_age = settings.stale_hooks;
    if max_age.is_zero() {
        return Ok((Vec::new(), None));
    }
    // Nearly always there is nothing to write, so a read comes first.
    let (is_due, next) = town.read(|reader| due(reader, town.now(), max_age))?;
    if !is_due {
        return Ok((Vec::new(), next));
    }
    let found = town.write(|writer| release_in(writer, max_age, &by_hand))?;
    let (_, next) = town.read(|reader| due(reader, town.now(), max_age))?;
    Ok((found.released, next))
}

/// Whether a hook may be stale now, and when the next one may be.
fn due(
    reader: &Reader<'_>,
    now: Timestamp,
    max_age: Duration,
) -> Result<(bool, Option<Timestamp>)> {
    let (mut is_due, mut next) = (false, None::<Timestamp>);
    for id in hooks(reader)? {
        let Some(bead) = reader.bead(&id)?.filter(|bead| bead.rig.is_some()) else { continue };
        let live = reader.live_run(&id)?;
        let idle = now.since(bead.updated_at);
        match kept(reader, &bead, live.as_ref(), idle, max_age)?.or_else(|| by_hand(&bead)) {
            None => is_due = true,
            Some(KeepReason::Young(_)) => {
                let at = bead.updated_at.plus(max_age);
                next = Some(next.map_or(at, |earliest| earliest.min(at)));
            }
            Some(_) => {}
        }
    }
    Ok((is_due, next))
}

/// The beads that are hooked or claimed.
fn hooks(reader: &Reader<'_>) -> Result<Vec<BeadId>> {
    let statuses = vec![Status::Hooked, Status::InProgress];
    let filter = BeadFilter { status: StatusFilter::OneOf(statuses), ..BeadFilter::default() };
    Ok(reader.find(&filter)?)
}

/// A person claimed the bead by hand: it is in progress, and its assignee is no worker, whose address has a rig in it.
fn by_hand(bead: &Bead) -> Option<KeepReason> {
    let is_person = !bead.assignee.is_empty() && !bead.assignee.contains('/');
    let is_claimed = bead.status == Status::InProgress && is_person;
    is_claimed.then(|| KeepReason::ByHand(bead.assignee.clone()))
}

fn release_in(
    writer: &mut Writer<'_>,
    max_age: Duration,
    spared: &dyn Fn(&Bead) -> Option<KeepReason>,
) -> Result<StaleHooks> {
    let mut found = StaleHooks::default();
    for id in hooks(writer)? {
        let Some(bead) = writer.bead(&id)?.filter(|bead| bead.rig.is_some()) else { continue };
        let live = writer.live_run(&id)?;
        let idle = writer.now().since(bead.updated_at);
        let kept = kept(writer, &bead, live.as_ref(), idle, max_age)?;
        if let Some(kept) = kept.or_else(|| spared(&bead)) {
            found.kept.push((id, kept));
            continue;
        }
        release(writer, &bead, live.as_ref())?;
        found.released.push(StaleHook {
            bead: id,
            title: bead.title.to_string(),
            assignee: bead.assignee,
            status: bead.status,
            idle,
        });
    }
    Ok(found)
}

/// Why a hook stays, if it does.
fn kept(
    reader: &Reader<'_>,
    bead: &Bead,
    live: Option<&Run>,
    idle: Duration,
    max_age: Duration,
) -> Result<Option<KeepReason>> {
    match live {
        // A person who has not begun may never have seen it.
        Some(run) if run.executor == ExecutorKind::None && bead.status == Status::Hooked => {}
        Some(run) if run.executor == ExecutorKind::None => {
            return Ok(Some(KeepReason::WithCrew(run.agent.clone(), run.id.clone())));
        }
        Some(run) => return Ok(Some(KeepReason::Running(run.id.clone()))),
        None => {
            if let Some(request) = reader.open_merge_request(&bead.id)? {
                return Ok(Some(KeepReason::Merging(request.id)));
            }
        }
    }
    Ok((idle < max_age).then_some(KeepReason::Young(idle)))
}

fn release(writer: &mut Writer<'_>, bead: &Bead, live: Option<&Run>) -> Result<()> {
    match live {
        Some(run) => cancel_in(writer, run),
        None => release_as(writer, &bead.id, BeadChangeKind::HookReleased),
    }
}
