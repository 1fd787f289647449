//! `gt done`: a worker says that it is done.

use gt_core::schedule::{
    Context, Landing, LandingState, Merge, Run, RunEnd, RunId, RunState, Said,
};
use gt_core::{EventKind, Rig, Status};
use gt_executors::git::{Commit, GitError, Limits};
use gt_store::Writer;

use super::land::{Landed, land};
use crate::beads::enter;
use crate::runs::{finish_in, resolve};
use crate::trees::{Trees, git_failed, signature_of};
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

/// The largest file that is committed for a worker.
const FILE_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Why work was not accepted: a sentence that whoever did it can act on.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Something about the work.
    Work(String),
    /// Others changed the same; beginning again from there would do.
    Conflict(String),
    /// The origin or the store cannot be reached.
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
            Self::Work(why) | Self::Conflict(why) => OperationError::Rejected(why),
            Self::Elsewhere(error) => error,
        }
    }
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
    let Some(trees) = Trees::of(town, rig).filter(|_| !run.workplace.tree.is_empty()) else {
        confirm(town, run, said, &Landing::default(), None)?;
        return Ok(Fate::Nothing);
    };
    let accepted = commit(town, rig, run, &trees, message)?;
    let base = Commit::parse(&run.workplace.base_commit);
    let nothing_new = base.as_ref() == Some(&accepted);
    let mut landing =
        Landing { accepted: accepted.to_string(), state: None, commit: String::new() };
    let live = town.write(|writer| Ok(writer.accept_work(run, said, &landing)?))?;
    if !live {
        return Err(Refused::Work(format!("{} has ended meanwhile; stop here", run.id)));
    }
    let parameters = context.map(|context| &context.parameters);
    let branch = run.workplace.branch.clone();
    let way = match (said, parameters) {
        (Said::Escalated | Said::Deferred, _) => Way::Keep,
        (Said::Completed, Some(parameters)) if parameters.review_only => Way::Keep,
        (Said::Completed, Some(parameters)) if parameters.no_merge => Way::PushBranch,
        (Said::Completed, parameters) => {
            match parameters.and_then(|parameters| parameters.merge).unwrap_or(Merge::Direct) {
                Merge::Direct => Way::Land,
                Merge::Local => Way::Keep,
                Merge::Mr => Way::Queue,
            }
        }
    };
    let repository = trees.repository();
    let fate = match way {
        Way::Land if nothing_new => Fate::Nothing,
        Way::Land => {
            let onto = &run.workplace.base;
            let landed = land(town, rig, run, &repository, &accepted, onto)?;
            let commit = there(landed, onto, run)?;
            landing.state = Some(LandingState::Confirmed);
            landing.commit = commit.to_string();
            Fate::Landed { branch: onto.clone(), commit: commit.to_string() }
        }
        Way::PushBranch if nothing_new => Fate::Nothing,
        Way::PushBranch => {
            let landed = land(town, rig, run, &repository, &accepted, &branch)?;
            let commit = there(landed, &branch, run)?;
            landing.state = Some(LandingState::Confirmed);
            landing.commit = commit.to_string();
            Fate::Kept { branch, pushed: true }
        }
        Way::Keep => Fate::Kept { branch, pushed: false },
        Way::Queue => Fate::Merging { branch },
    };
    confirm(town, run, said, &landing, Some(way))?;
    Ok(fate)
}

/// Where accepted work goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Land,
    PushBranch,
    Keep,
    Queue,
}

/// Commits what is not committed; the commit that has everything.
fn commit(
    town: &Town,
    rig: &Rig,
    run: &Run,
    trees: &Trees<'_>,
    message: Option<&str>,
) -> std::result::Result<Commit, Refused> {
    let failed = git_failed(rig);
    let tree = run
        .place
        .as_ref()
        .and_then(gt_core::schedule::WorkerPlace::polecat_name)
        .map(|name| trees.tree(name))
        .ok_or_else(|| Refused::Work(format!("{} has no tree", run.id)))?;
    let on = tree.branch().map_err(&failed)?;
    if on.as_deref() != Some(run.workplace.branch.as_str()) {
        return Err(Refused::Work(format!(
            "{} is on {} and not on {}, the branch of {}; switch back with git switch {} and try again",
            run.workplace.tree,
            on.as_deref().unwrap_or("no branch"),
            run.workplace.branch,
            run.id,
            run.workplace.branch
        )));
    }
    let title =
        town.read(|reader| Ok(reader.bead(&run.id.bead)?.map(|bead| bead.title.to_string())))?;
    let title = title.unwrap_or_else(|| run.id.bead.to_string());
    let message = match message {
        Some(message) => message.to_owned(),
        None => format!("{title}\n\n{}", run.id),
    };
    let limits =
        Limits { file_bytes_max: FILE_BYTES_MAX, base: Commit::parse(&run.workplace.base_commit) };
    match tree.commit_all(&message, &signature_of(run), &limits) {
        Ok(_) => {}
        Err(
            error @ (GitError::ConflictMarkers { .. }
            | GitError::Oversize { .. }
            | GitError::Nested { .. }
            | GitError::Submodules { .. }
            | GitError::Unfinished { .. }),
        ) => return Err(Refused::Work(format!("{error}; then say gt done again"))),
        Err(error) => return Err(failed(error).into()),
    }
    let head = tree.head().map_err(&failed)?;
    head.ok_or_else(|| Refused::Work(format!("{} has no commit", run.workplace.branch)))
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
        Landed::Unreachable(why) => Err(Refused::Elsewhere(OperationError::rejected(format!(
            "the origin cannot be reached: {why}; your work is committed on {} and safe; say gt done again later",
            run.workplace.branch
        )))),
    }
}

/// The run ends, and what was done to the origin is confirmed, in one transaction.
fn confirm(
    town: &Town,
    run: &Run,
    said: Said,
    landing: &Landing,
    way: Option<Way>,
) -> std::result::Result<(), Refused> {
    let ended = town.write(|writer| {
        if landing.accepted.is_empty() && !writer.accept_work(run, said, landing)? {
            return Ok(false);
        }
        if let Some(state) = landing.state {
            writer.set_landing(run, state, &landing.commit)?;
        }
        end_in(writer, town, run, said, way)
    })?;
    if ended {
        return Ok(());
    }
    Err(Refused::Work(format!("{} has ended meanwhile; stop here", run.id)))
}

/// Ends the run as its worker said. `false` if it has ended already.
pub(super) fn end_as_said(writer: &mut Writer<'_>, town: &Town, run: &Run) -> Result<bool> {
    end_in(writer, town, run, run.said.unwrap_or(Said::Completed), Some(Way::Land))
}

fn end_in(
    writer: &mut Writer<'_>,
    town: &Town,
    run: &Run,
    said: Said,
    way: Option<Way>,
) -> Result<bool> {
    let state = match said {
        Said::Completed => RunState::Done,
        Said::Escalated | Said::Deferred => RunState::Cancelled,
    };
    let reason = match said {
        Said::Completed => "its worker said that it is done",
        Said::Escalated => "its worker asks for a person",
        Said::Deferred => "its worker put it off",
    };
    let end = RunEnd::without_status(state, reason);
    match (said, way) {
        (Said::Completed, Some(Way::Queue)) => {
            // The bead stays with the merge queue, which closes it.
            Ok(writer.end_run(run, &end, &run.agent)?)
        }
        (Said::Completed, _) => {
            Ok(finish_in(writer, town, run, &end, &run.ended_by)? != crate::runs::Finished::Already)
        }
        (Said::Escalated, _) => {
            if !writer.end_run(run, &end, &run.agent)? {
                return Ok(false);
            }
            writer.record_run(run, EventKind::Escalated, &[]);
            set_status(writer, run, Status::Blocked)?;
            Ok(true)
        }
        (Said::Deferred, _) => {
            if !writer.end_run(run, &end, &run.agent)? {
                return Ok(false);
            }
            set_status(writer, run, Status::Deferred)?;
            Ok(true)
        }
    }
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
