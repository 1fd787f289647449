//! `gt deacon stale-hooks`: beads that somebody is said to have, and nobody is at.

use std::fmt;
use std::time::Duration;

use gt_core::schedule::{Run, RunId};
use gt_core::time::format_duration;
use gt_core::{Bead, BeadId, EventKind, ExecutorKind, Status};
use gt_store::{BeadFilter, Reader, StatusFilter, Writer};

use crate::landing::merging_in;
use crate::runs::{cancel_in, release_as};
use crate::{Result, Town};

/// A hook that was taken back, or in a rehearsal would be.
#[derive(Debug, Clone)]
pub struct StaleHook {
    /// Which bead.
    pub bead: BeadId,
    /// Its title.
    pub title: String,
    /// Who was said to have it; empty for nobody.
    pub assignee: String,
    /// What it was.
    pub status: Status,
    /// How long nothing had happened to it.
    pub idle: Duration,
}

/// Why a hook was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// A worker has it.
    Running(RunId),
    /// A person or a standing agent is at it, and says when it is done.
    WithCrew(String, RunId),
    /// Its work is done and on its way.
    Merging(RunId),
    /// Something has happened to it since.
    Young(Duration),
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running(run) => write!(f, "running as {run}"),
            Self::WithCrew(who, run) => write!(f, "with {who}, who says when it is done ({run})"),
            Self::Merging(run) => write!(f, "done by {run}, and not merged yet"),
            Self::Young(idle) => write!(f, "touched {} ago", format_duration(*idle)),
        }
    }
}

impl Kept {
    /// A short name that programs can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Running(_) => "running",
            Self::WithCrew(..) => "with-crew",
            Self::Merging(_) => "merging",
            Self::Young(_) => "young",
        }
    }
}

/// What a look at all hooks found.
#[derive(Debug, Clone, Default)]
pub struct StaleHooks {
    /// What was taken back.
    pub released: Vec<StaleHook>,
    /// What was left alone, and why.
    pub kept: Vec<(BeadId, Kept)>,
}

/// Takes back every hook, in all rigs, that nobody is at and that nothing has happened to for `max_age`: the bead is
/// open, and nobody has it. A rehearsal changes nothing.
pub fn stale_hooks(town: &Town, max_age: Duration, rehearsal: bool) -> Result<StaleHooks> {
    town.write_or_rehearse(rehearsal, |writer| {
        let statuses = vec![Status::Hooked, Status::InProgress];
        let filter = BeadFilter { status: StatusFilter::OneOf(statuses), ..BeadFilter::default() };
        let mut found = StaleHooks::default();
        for id in writer.find(&filter)? {
            let Some(bead) = writer.bead(&id)?.filter(|bead| bead.rig.is_some()) else { continue };
            let live = writer.live_run(&id)?;
            let idle = writer.now().since(bead.updated_at);
            if let Some(kept) = kept(writer, &bead, live.as_ref(), idle, max_age)? {
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
    })
}

/// Why a hook stays, if it does.
fn kept(
    reader: &Reader<'_>,
    bead: &Bead,
    live: Option<&Run>,
    idle: Duration,
    max_age: Duration,
) -> Result<Option<Kept>> {
    match live {
        // A person who has not begun yet may never have looked.
        Some(run) if run.executor == ExecutorKind::None && bead.status == Status::Hooked => {}
        Some(run) if run.executor == ExecutorKind::None => {
            return Ok(Some(Kept::WithCrew(run.agent.clone(), run.id.clone())));
        }
        Some(run) => return Ok(Some(Kept::Running(run.id.clone()))),
        None => {
            if let Some(run) = merging_in(reader, bead)? {
                return Ok(Some(Kept::Merging(run.id)));
            }
        }
    }
    Ok((idle < max_age).then_some(Kept::Young(idle)))
}

fn release(writer: &mut Writer<'_>, bead: &Bead, live: Option<&Run>) -> Result<()> {
    match live {
        Some(run) => cancel_in(writer, run),
        None => release_as(writer, &bead.id, EventKind::HookReleased),
    }
}
