//! `gt done`: a worker says that it is done.

use std::path::Path;

use gt_core::message::{MessageBody, Severity};
use gt_core::schedule::{Context, Landing, Run, RunEnd, RunId, RunState, Said};
use gt_core::{EventKind, Rig, Sender, Status};
use gt_executors::git::Commit;
use gt_executors::runs::{RunFiles, tell_done};
use gt_store::Writer;

use super::commit::commit;
use super::land::{Delivery, Landed};
use super::way::Way;
use crate::beads::enter;
use crate::messages::escalate_in;
use crate::runs::{Finished, finish_in, resolve};
use crate::trees::Trees;
use crate::{OperationError, Result, Town};

/// What a worker says.
#[derive(Debug, Clone)]
pub struct DoneRequest<'a> {
    /// Which run is meant.
    pub run: &'a RunId,
    /// How it ends.
    pub said: Said,
    /// What a commit of what is not committed yet says; the title of the bead without one.
    pub message: Option<&'a str>,
}

/// Where work that is done has gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// There was nothing to bring anywhere.
    Nothing,
    /// It is on this branch, as this commit.
    Landed {
        /// The branch.
        branch: String,
        /// The commit.
        commit: String,
    },
    /// It stays on its own branch.
    Kept {
        /// The branch.
        branch: String,
        /// Whether the origin has the branch too.
        pushed: bool,
    },
    /// The merge queue has it.
    Merging {
        /// The branch.
        branch: String,
    },
}

/// What came of `gt done`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The run.
    pub run: RunId,
    /// What was said.
    pub said: Said,
    /// Where the work is.
    pub fate: Fate,
}

/// Why work was not accepted: a sentence that whoever did it can act on.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Something about the work.
    Work(String),
    /// Others changed the same; beginning again from there would do.
    Conflict(String),
    /// The origin does not answer. What was accepted is on its way, and arrives when it does.
    Later(String),
    /// Something else went wrong.
    Elsewhere(OperationError),
}

impl From<OperationError> for Refused {
    fn from(error: OperationError) -> Self {
        Self::Elsewhere(error)
    }
}

impl Refused {
    /// The same as an error.
    fn into_error(self) -> OperationError {
        match self {
            Self::Work(why) | Self::Conflict(why) | Self::Later(why) => {
                OperationError::Rejected(why)
            }
            Self::Elsewhere(error) => error,
        }
    }
}

/// The live run whose tree this directory is in.
pub fn run_at(town: &Town, directory: &Path) -> Result<Option<RunId>> {
    let live = town.read(|reader| Ok(reader.live_runs()?))?;
    let is_inside = |run: &Run| {
        let tree = &run.workplace.tree;
        !tree.is_empty() && directory.starts_with(town.root().join(tree))
    };
    Ok(live.into_iter().find(is_inside).map(|run| run.id))
}

/// Ends a run as its worker says: commits what is not committed, accepts it, brings it where it belongs, and ends the run
/// in the transaction that confirms it.
pub fn done(town: &Town, request: &DoneRequest<'_>) -> Result<Done> {
    let run = resolve(town, &request.run.to_string())?;
    match run.state {
        RunState::Running | RunState::Blocked => {}
        RunState::Starting => {
            return Err(OperationError::rejected(format!("{} has not begun yet", run.id)));
        }
        RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => {
            let reason =
                if run.reason.is_empty() { String::new() } else { format!(" ({})", run.reason) };
            return Err(OperationError::rejected(format!(
                "{} is {} already{reason}; stop here: nothing that you do in it counts any more",
                run.id,
                run.state.as_str()
            )));
        }
    }
    let (rig, context) = town.read(|reader| {
        let rig = crate::rigs::require(reader, run.rig.as_str())?;
        Ok((rig, reader.context_by_number(run.context)?))
    })?;
    let fate = finish_work(town, &rig, &run, context.as_ref(), request.said, request.message)
        .map_err(Refused::into_error)?;
    // An agent that goes on living would keep its place. One without a supervisor is found by whoever wants the place.
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    let _ = tell_done(&files);
    Ok(Done { run: run.id, said: request.said, fate })
}

/// The same for somebody who has looked everything up.
pub(crate) fn finish_work(
    town: &Town,
    rig: &Rig,
    run: &Run,
    context: Option<&Context>,
    said: Said,
    message: Option<&str>,
) -> std::result::Result<Fate, Refused> {
    let words = (said, message);
    let way = Way::of(said, context.map(|context| &context.parameters));
    let Some(trees) = Trees::of(town, rig).filter(|_| !run.workplace.tree.is_empty()) else {
        end(town, run, words, Way::Keep, &Landing::default(), None)?;
        return Ok(Fate::Nothing);
    };
    let accepted = commit(town, rig, run, &trees, message)?;
    let landing = Landing { accepted: accepted.to_string(), ..Landing::default() };
    if run.workplace.base_commit == accepted.as_str() {
        end(town, run, words, Way::Keep, &landing, None)?;
        return Ok(Fate::Nothing);
    }
    let landed = match way.branch(run) {
        Some(branch) => {
            let repository = &trees.repository();
            let delivery =
                Delivery { town, rig, run, said, accepted: &accepted, branch, repository };
            Some((branch, there(delivery.land()?, branch, run)?))
        }
        None => None,
    };
    end(town, run, words, way, &landing, landed.as_ref())?;
    let branch = run.workplace.branch.clone();
    Ok(match (way, landed) {
        (Way::Land, Some((onto, commit))) => {
            Fate::Landed { branch: onto.to_owned(), commit: commit.to_string() }
        }
        (Way::Queue, _) => Fate::Merging { branch },
        (Way::Land | Way::PushBranch | Way::Keep, landed) => {
            Fate::Kept { branch, pushed: landed.is_some() }
        }
    })
}

fn there(landed: Landed, branch: &str, run: &Run) -> std::result::Result<Commit, Refused> {
    match landed {
        Landed::There(commit) => Ok(commit),
        Landed::Conflict(paths) => Err(Refused::Conflict(format!(
            "others have changed {} on {branch} since {} began; run git rebase origin/{branch}, resolve what \
             conflicts, and say gt done again",
            paths.join(", "),
            run.id
        ))),
        Landed::Rejected(why) => Err(Refused::Work(format!(
            "the origin does not take it: {why}; do what it asks for and say gt done again"
        ))),
        Landed::Unreachable(why) => Err(Refused::Later(format!(
            "the origin cannot be reached: {why}; your work is committed on {} and safe; say gt done again later, or \
             end, and gt lands it when the origin is there again",
            run.workplace.branch
        ))),
        Landed::Over => Err(over(run)),
    }
}

fn over(run: &Run) -> Refused {
    Refused::Work(format!("{} has ended meanwhile; stop here", run.id))
}

/// The run ends, and what was done to the origin is confirmed, in one transaction.
fn end(
    town: &Town,
    run: &Run,
    (said, message): (Said, Option<&str>),
    way: Way,
    landing: &Landing,
    landed: Option<&(&str, Commit)>,
) -> std::result::Result<(), Refused> {
    let ended = town.write(|writer| {
        match landed {
            // What the origin has it has, whatever became of the run.
            Some((branch, commit)) => writer.confirm_landing(run, branch, commit.as_str())?,
            None if writer.accept_work(run, said, landing)? => {}
            None => return Ok(false),
        }
        match way {
            // The bead stays with the merge queue, which closes it.
            Way::Queue => Ok(writer.end_run(run, &end_of(said), &run.agent)?),
            Way::Land | Way::PushBranch | Way::Keep => close(writer, town, run, said, message),
        }
    })?;
    if ended { Ok(()) } else { Err(over(run)) }
}

fn end_of(said: Said) -> RunEnd {
    match said {
        Said::Completed => {
            RunEnd::without_status(RunState::Done, "its worker said that it is done")
        }
        Said::Escalated => {
            RunEnd::without_status(RunState::Cancelled, "its worker asks for a person")
        }
        Said::Deferred => RunEnd::without_status(RunState::Cancelled, "its worker put it off"),
    }
}

/// Ends a run as its worker said, and what becomes of its bead. `false` if it has ended already.
pub(super) fn close(
    writer: &mut Writer<'_>,
    town: &Town,
    run: &Run,
    said: Said,
    message: Option<&str>,
) -> Result<bool> {
    let end = end_of(said);
    match said {
        Said::Completed => Ok(finish_in(writer, town, &run.id, &end, None)? != Finished::Already),
        Said::Escalated | Said::Deferred => {
            if !writer.end_run(run, &end, &run.agent)? {
                return Ok(false);
            }
            if said == Said::Escalated {
                ask_for_person(writer, run, message)?;
                set_status(writer, run, Status::Blocked)?;
            } else {
                set_status(writer, run, Status::Deferred)?;
            }
            Ok(true)
        }
    }
}

/// What its worker says that it needs a person for. What it said to the history of the branch is the best that is known.
fn ask_for_person(writer: &mut Writer<'_>, run: &Run, message: Option<&str>) -> Result<()> {
    let branch = &run.workplace.branch;
    let words = match message {
        Some(message) => message.to_owned(),
        None if branch.is_empty() => format!("{} cannot go on without a person", run.id),
        None => format!("{} cannot go on without a person; what it did is on {branch}", run.id),
    };
    let (body, from) = (MessageBody::parse(&words)?, Sender::Worker(run.id.clone()));
    escalate_in(writer, from, Some(run.id.bead.clone()), body, Severity::High)?;
    Ok(())
}

/// The bead of a run that its worker has given up: nobody has it any more.
fn set_status(writer: &mut Writer<'_>, run: &Run, status: Status) -> Result<()> {
    let Some(old) = writer.bead(&run.id.bead)? else { return Ok(()) };
    let mut new = old.clone();
    new.assignee = String::new();
    enter(&mut new, status, writer.now());
    new.updated_at = writer.now().max(old.updated_at);
    writer.save_bead(&old, &new, EventKind::StatusChanged)?;
    Ok(())
}
