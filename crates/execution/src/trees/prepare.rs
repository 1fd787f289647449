//! A tree for a run.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use gt_core::decide::integration_base;
use gt_core::merging::AcceptedBlocker;
use gt_core::merging::convoy_of_branch;
use gt_core::schedule::{
    Polecat, Run, RunId, SlingParameters, TreeState, WorkerPlace, Workplace, branch_name,
    session_name,
};
use gt_core::{ExecutorKind, Rig, Timestamp};
use gt_executors::git::{
    CandidateMember, Commit, GitError, LandMethod, MemberOutcome, Push, Repository, Tree,
};
use gt_executors::runs::{Liveness, RunFiles, Strays, Suspect, end_strays};

use super::lock::{TreeLock, occupy};
use super::rescue::commits_are_safe;
use super::save;
use super::setup::{TreeSetup, set_up};
use super::trash::{TrashReason, move_away};
use super::warm::take_mark;
use crate::trees::{look_at_target, remember_repository, restore_settings};
use gt_scheduling::processes::STRAY_GRACE;
use gt_town::rigs::make_directory;
use gt_town::settings::layers;
use gt_town::tree_paths::{Trees, git_failed, signature_of};
use gt_town::{OperationError, Result, Town, with_causes};

/// Why a run has no tree.
#[derive(Debug)]
pub(crate) enum NotPrepared {
    /// Another process must leave the tree first.
    Busy(String),
    /// It cannot begin now, and no other place would do either: the origin or the store cannot be reached, or accepted commits
    /// conflict.
    Away(String),
    /// It could not be made.
    Failed(OperationError),
}

impl From<OperationError> for NotPrepared {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Git { source: GitError::Unreachable { .. }, .. } => {
                Self::Away(with_causes(&error))
            }
            error if error.may_pass() => Self::Away(with_causes(&error)),
            error => Self::Failed(error),
        }
    }
}

/// The prepared place of a run.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The place itself.
    pub place: Workplace,
    /// The polecat as it is once the run is claimed, unless that is recorded already.
    pub polecat: Option<Polecat>,
}

/// How long processes of the previous run may take to leave a tree before another tree is taken.
const PROCESS_EXIT_WAIT_MAX: Duration = Duration::from_secs(3);
/// How often that is checked.
const PROCESS_EXIT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Takes the lock of the tree of a run, and makes the tree ready. A run is over when its work is, and its processes are
/// gone a moment later: the tree is worth waiting for.
pub(crate) fn occupy_and_prepare(
    town: &Town,
    rig: &Rig,
    run: &Run,
    parameters: &SlingParameters,
    program: &Path,
) -> std::result::Result<(Option<TreeLock>, Prepared), NotPrepared> {
    let began = Instant::now();
    loop {
        let prepared = occupy(town, rig, run)
            .and_then(|lock| Ok((lock, prepare(town, rig, run, parameters, program)?)));
        if !matches!(prepared, Err(NotPrepared::Busy(_)))
            || began.elapsed() >= PROCESS_EXIT_WAIT_MAX
        {
            return prepared;
        }
        std::thread::sleep(PROCESS_EXIT_POLL_INTERVAL);
    }
}

/// Makes the tree of a run ready: on a fresh branch that begins where its base is now. The work of an earlier run
/// there is saved, and moved away if the tree was not clean. Only the holder of the tree's lock calls this.
fn prepare(
    town: &Town,
    rig: &Rig,
    run: &Run,
    parameters: &SlingParameters,
    program: &Path,
) -> std::result::Result<Prepared, NotPrepared> {
    // The agent of a run without a tree works in the directory of its rig.
    let Some(trees) = Trees::of(town, rig) else {
        make_directory(town, &rig.path)?;
        return Ok(Prepared::default());
    };
    let Some(name) = run.place.as_ref().and_then(WorkerPlace::polecat_name) else {
        make_directory(town, &rig.path)?;
        return Ok(Prepared::default());
    };
    let polecat = town.read(|reader| Ok(reader.polecat(&rig.slug, name)?))?;
    let polecat = polecat
        .ok_or_else(|| OperationError::rejected(format!("the polecat {name} was taken away")))?;
    refuse_left_processes(town, &polecat, run)?;
    let failed = git_failed(rig);
    // Before a repair, which would not tell.
    restore_settings(town, rig, run)?;
    let repository =
        Repository::clone_from(&rig.repo, trees.repository().path()).map_err(&failed)?;
    // The fence and the remote have to be there before the worker is, but nothing else waits for them.
    let fence = repository.clone();
    std::thread::scope(|scope| {
        let fenced = scope.spawn(move || {
            fence.keep_remote()?;
            fence.install_fence(program)
        });
        let place = make_tree(&trees, run, parameters, &repository, &polecat);
        fenced.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(&failed)?;
        remember_repository(town, rig)?;
        place
    })
}

/// Makes the tree itself.
fn make_tree(
    trees: &Trees<'_>,
    run: &Run,
    parameters: &SlingParameters,
    repository: &Repository,
    polecat: &Polecat,
) -> std::result::Result<Prepared, NotPrepared> {
    let (town, rig) = (trees.town, trees.rig);
    let failed = git_failed(rig);
    let name = &polecat.name;
    let base = parameters.base_branch.as_deref().unwrap_or(&rig.default_branch);
    let base_commit = base_of(town, repository, base, rig)?;
    // If that fails, the next landing looks again.
    let _ = look_at_target(town, rig, repository, base, &base_commit);
    let repair = repair_of(town, repository, run, &failed)?;
    let (branch, start, base_commit) = if let Some(repair) = repair {
        repair
    } else {
        let start = accepted_start(*trees, run, repository, base, &base_commit)?;
        let start = start.unwrap_or(base_commit);
        let text = start.to_string();
        (branch_name(name, &run.id.bead, town.now()), start, text)
    };
    let tree = trees.tree(name);
    let ready = Polecat {
        tree: TreeState::Ready,
        branch: branch.clone(),
        last_run: Some(run.id.clone()),
        updated_at: town.now(),
        ..polecat.clone()
    };
    let wishes = TreeSetup::of(town, rig)?;
    let mark = take_mark(trees, name)?;
    let recycle = |tree: &Tree| tree.recycle(&branch, &start);
    let is_reused = reuse(town, trees, polecat, &tree, recycle)?;
    if !is_reused {
        move_away(town, rig, polecat, TrashReason::For(&run.id))?;
        repository.add_worktree(tree.path(), &branch, &start).map_err(&failed)?;
        write_down(town, &ready)?;
    }
    // A warm tree has all of this, if it is still at the same commit.
    if !is_reused || mark != Some(wishes.mark(&start)?) {
        set_up(trees, &wishes, &tree, (name, &run.agent), Some(&run.id), &branch)?;
    }
    let place = Workplace {
        session: match run.executor {
            ExecutorKind::Tmux => session_name(&rig.prefix, &polecat.name),
            ExecutorKind::Process | ExecutorKind::Ssh | ExecutorKind::Pull | ExecutorKind::None => {
                String::new()
            }
        },
        tree: trees.below_town(tree.path()),
        branch,
        base: base.to_owned(),
        base_commit,
    };
    Ok(Prepared { place, polecat: is_reused.then_some(ready) })
}

/// The commit that work begins from in a rig where its blockers need not have landed: that of the only blocker, or a merge of
/// the target and the accepted commits of all. Commits that conflict with each other are waited for.
fn accepted_start(
    trees: Trees<'_>,
    run: &Run,
    repository: &Repository,
    target: &str,
    tip: &Commit,
) -> std::result::Result<Option<Commit>, NotPrepared> {
    let (town, rig) = (trees.town, trees.rig);
    let failed = git_failed(rig);
    let unblock = layers(town)?.rig_unblock(&rig.slug).map_err(OperationError::from)?;
    if unblock != "accepted" {
        return Ok(None);
    }
    let bead = &run.id.bead;
    let accepted =
        town.read(|reader| Ok(reader.accepted_blockers_of(std::slice::from_ref(bead))?))?;
    let blockers = accepted.get(bead).map_or(&[][..], Vec::as_slice);
    let begin = AcceptedBlocker::to_begin_from(blockers, &rig.slug, target);
    let member = |blocker: &AcceptedBlocker| {
        Some(CandidateMember {
            commit: Commit::parse(&blocker.accepted)?,
            base: None,
            name: blocker.bead.to_string(),
            message: None,
            trailers: Vec::new(),
            signature: signature_of(run),
            replaced_author: None,
        })
    };
    let mut members: Vec<CandidateMember> = begin.into_iter().filter_map(member).collect();
    let Some(first) = members.first().map(|first| (first.commit.clone(), first.name.clone()))
    else {
        return Ok(None);
    };
    let (first, first_name) = first;
    let is_alone = members.len() == 1;
    let base = if repository.has_in_history(&first, tip).map_err(&failed)? {
        members.remove(0);
        first.clone()
    } else {
        tip.clone()
    };
    if members.is_empty() {
        return Ok(Some(base));
    }
    let id = format!("start-{}", run.id);
    let built = repository.build_candidate(&id, &base, &members, LandMethod::Merge);
    let built = built.map_err(&failed)?;
    repository.drop_candidate(&id).map_err(&failed)?;
    let is_whole = built.members.iter().all(|outcome| {
        matches!(outcome, MemberOutcome::Applied { .. } | MemberOutcome::AlreadyThere)
    });
    match (is_whole, is_alone) {
        (true, _) => Ok(Some(built.tip)),
        // The blocker is sent back for it, and the work is told.
        (false, true) => Ok(Some(first)),
        (false, false) => Err(NotPrepared::Away(format!(
            "the accepted commits that {} is to begin from conflict with each other or with {target}; it begins when \
             {first_name} has landed",
            run.id.bead
        ))),
    }
}

/// Where a run goes on that repairs a merge request: the branch of the request if it is still as it was accepted, the
/// accepted commit, and the commit that the work began from. Nothing for every other run.
fn repair_of(
    town: &Town,
    repository: &Repository,
    run: &Run,
    failed: impl Fn(GitError) -> OperationError,
) -> Result<Option<(String, Commit, String)>> {
    let request = town.read(|reader| Ok(reader.open_merge_request(&run.id.bead)?))?;
    let Some(request) = request else { return Ok(None) };
    let Some(accepted) = Commit::parse(&request.accepted) else { return Ok(None) };
    let branch = format!("refs/heads/{}", request.branch);
    let at = repository.resolve(&branch).map_err(&failed)?;
    if at.as_ref() == Some(&accepted) {
        return Ok(Some((request.branch, accepted, request.base)));
    }
    if repository.resolve(accepted.as_str()).map_err(failed)?.is_none() {
        return Ok(None);
    }
    let name = run.place.as_ref().and_then(WorkerPlace::polecat_name).unwrap_or_default();
    let branch = branch_name(name, &run.id.bead, town.now());
    Ok(Some((branch, accepted, request.base)))
}

/// Gives a tree to a run only when no process of the last one is left in it.
fn refuse_left_processes(
    town: &Town,
    polecat: &Polecat,
    run: &Run,
) -> std::result::Result<(), NotPrepared> {
    let Some(last) = polecat.last_run.as_ref().filter(|last| **last != run.id) else {
        return Ok(());
    };
    let files = RunFiles::of(&town.runs_directory(), &last.to_string());
    match files.liveness() {
        Ok(Liveness::Free | Liveness::NeverTaken) => refuse_strays(town, polecat, last, &files),
        Ok(Liveness::Held) => {
            Err(NotPrepared::Busy(format!("{last} has not left the tree of {} yet", polecat.name)))
        }
        Err(error) => Err(NotPrepared::Busy(format!(
            "cannot tell from {} whether {last} has ended: {error}",
            files.lock_path().display()
        ))),
    }
}

/// Ends processes of a run whose supervisor was killed: they need not hold its lock, and may still write into the
/// tree. While another process is seen in the tree, no run gets it.
fn refuse_strays(
    town: &Town,
    polecat: &Polecat,
    last: &RunId,
    files: &RunFiles,
) -> std::result::Result<(), NotPrepared> {
    if !files.was_cut_off() {
        return Ok(());
    }
    let run = town.read(|reader| Ok(reader.run(last)?))?;
    let tree = run.map(|run| run.workplace.tree).filter(|tree| !tree.is_empty());
    let tree = tree.map(|tree| town.root().join(tree));
    let suspects: Vec<Suspect> = Suspect::of(files, &last.to_string(), tree).into_iter().collect();
    let left = end_strays(town.root(), &suspects, STRAY_GRACE);
    let left: Vec<String> =
        left.iter().flat_map(Strays::all).map(|process| process.to_string()).collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(NotPrepared::Busy(format!(
        "{last} was cut off in the tree of {}, and processes are there yet: {}",
        polecat.name,
        left.join(", ")
    )))
}

/// The commit that work begins from.
fn base_of(town: &Town, repository: &Repository, base: &str, rig: &Rig) -> Result<Commit> {
    let failed = git_failed(rig);
    match fetch_once(town, repository, &rig.repo, &failed) {
        // Work can begin from the commits fetched before, unless they are of a former repository of the rig.
        Err(OperationError::Git { source: GitError::Unreachable { .. }, .. })
            if was_fetched(repository, &rig.repo)
                && repository.tip(base).map_err(&failed)?.is_some() => {}
        fetched => fetched?,
    }
    let tip = match repository.tip(base).map_err(&failed)? {
        Some(tip) => Some(tip),
        None => begin_integration_branch(town, repository, base, rig)?,
    };
    tip.ok_or_else(|| {
        // The rig's own branch may have another name at the origin now.
        let renamed = if base == rig.default_branch {
            format!(", or gt rig set {} branch <branch> if it was renamed", rig.slug)
        } else {
            String::new()
        };
        OperationError::rejected(format!(
            "the repository of the rig {} has no branch {base}; name another with --base-branch, or make it{renamed}",
            rig.slug
        ))
    })
}

/// How long it may take to make a branch at the origin.
const BRANCH_PUSH_TIME_MAX: Duration = Duration::from_mins(2);

/// Makes the integration branch of a convoy at the origin, where the base of the convoy is now. Nothing if no convoy has a
/// branch of this name.
fn begin_integration_branch(
    town: &Town,
    repository: &Repository,
    branch: &str,
    rig: &Rig,
) -> Result<Option<Commit>> {
    let failed = git_failed(rig);
    let Some(convoy) = convoy_of_branch(branch) else { return Ok(None) };
    let convoy = town.read(|reader| Ok(reader.bead(&convoy)?))?;
    let Some(base) = convoy.and_then(|convoy| integration_base(&convoy)) else { return Ok(None) };
    let base = if base.is_empty() { &rig.default_branch } else { &base };
    let Some(tip) = repository.tip(base).map_err(&failed)? else { return Ok(None) };
    let pushed = repository.push(&tip, branch, None, BRANCH_PUSH_TIME_MAX).map_err(&failed)?;
    let refused = |why: String| {
        Err(OperationError::rejected(format!(
            "the branch {branch} of the rig {} cannot be made: {why}",
            rig.slug
        )))
    };
    match pushed {
        // Another run may have made it, and landed on it.
        Push::Done | Push::LostRace(_) => {}
        Push::Rejected(why) => return refused(why.to_string()),
        Push::Incomplete(why) | Push::Unable(why) | Push::Unreachable(why) => return refused(why),
        Push::Held(obstacle) => return refused(obstacle.to_string()),
    }
    repository.fetch().map_err(&failed)?;
    repository.tip(branch).map_err(&failed)
}

/// The file that says when the last fetch began, and from where.
const LAST_FETCH: &str = "gt-fetch";

/// Whether the last fetch was from this origin.
fn was_fetched(repository: &Repository, origin: &str) -> bool {
    let text = std::fs::read_to_string(repository.own_path().join(LAST_FETCH));
    text.is_ok_and(|text| text.split_once('\n').is_some_and(|(_, from)| from == origin))
}

/// Fetches from the origin. Of many parallel requests one fetches, for all that were made before it began.
fn fetch_once(
    town: &Town,
    repository: &Repository,
    origin: &str,
    failed: impl Fn(GitError) -> OperationError,
) -> Result<()> {
    let asked = town.now();
    let path = repository.own_path().join(LAST_FETCH);
    let wrong = |action| {
        let path = path.clone();
        move |source| OperationError::File { action, path, source }
    };
    let options = File::options().create(true).read(true).write(true).truncate(false).open(&path);
    let mut file = options.map_err(wrong("open"))?;
    file.lock().map_err(wrong("lock"))?;
    let mut text = String::new();
    // Unreadable text was not written by gt, and counts as no earlier fetch.
    let _ = file.read_to_string(&mut text);
    let (began, from) = text.split_once('\n').unwrap_or_default();
    let began = Timestamp::parse(began).ok().filter(|_| from == origin);
    // By a clock that was set back, the last time may be in the future.
    if began.is_some_and(|began| began >= asked && began <= town.now()) {
        return Ok(());
    }
    let began = town.now();
    repository.fetch().map_err(failed)?;
    let (before, text) = (text.len(), format!("{began}\n{origin}"));
    let mut written = file.rewind().and_then(|()| file.write_all(text.as_bytes()));
    // Truncating a file is slow, and it nearly always has the same length.
    if text.len() < before {
        written = written.and_then(|()| file.set_len(text.len() as u64));
    }
    written.map_err(wrong("write"))
}

fn write_down(town: &Town, polecat: &Polecat) -> Result<()> {
    town.write(|writer| Ok(writer.put_polecat(polecat)?))
}

/// Reuses the tree of a polecat, if it is there, whole and clean: `recycle` puts it on its new commit, and says
/// whether it is clean. The work of its last run is saved either way.
///
/// The new owner of the tree is not recorded here, but by the caller. A crash in between leaves a tree with nothing
/// to lose.
pub(super) fn reuse(
    town: &Town,
    trees: &Trees<'_>,
    polecat: &Polecat,
    tree: &Tree,
    recycle: impl FnOnce(&Tree) -> std::result::Result<(), GitError>,
) -> Result<bool> {
    if polecat.tree != TreeState::Ready || !tree.path().join(".git").exists() {
        return Ok(false);
    }
    let last = match &polecat.last_run {
        Some(last) => town.read(|reader| Ok(reader.run(last)?))?,
        None => None,
    };
    let mut unsaved = last.as_ref();
    if let Some(run) = unsaved.take_if(|run| !commits_are_safe(trees, &polecat.name, run))
        && !is_saved(town, trees.rig, run)?
    {
        return Ok(false);
    }
    match recycle(tree) {
        Ok(()) => Ok(true),
        // A tree that cannot be reused is moved away, and kept for a person to look at.
        Err(error) if is_about_the_tree(&error) => {
            unsaved.map(|run| is_saved(town, trees.rig, run)).transpose()?;
            Ok(false)
        }
        Err(error) => Err(git_failed(trees.rig)(error)),
    }
}

/// Saves the work of a run in its tree; `false` if git cannot read the tree, which is then kept as it is.
fn is_saved(town: &Town, rig: &Rig, run: &Run) -> Result<bool> {
    match save(town, rig, run) {
        Ok(_) => Ok(true),
        Err(OperationError::Git { source, .. }) if is_about_the_tree(&source) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the error is about this tree alone.
fn is_about_the_tree(error: &GitError) -> bool {
    match error {
        // A missing or damaged part of the tree; every other error is about the disk.
        GitError::File { source, .. } => matches!(
            source.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidData
        ),
        GitError::Start { .. } => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use gt_store::StoreError;

    use super::*;

    #[test]
    fn a_store_that_is_away_is_no_failure_of_a_start() {
        let away = NotPrepared::from(OperationError::from(StoreError::Locked(None)));
        assert!(matches!(away, NotPrepared::Away(_)), "{away:?}");
        let full = NotPrepared::from(OperationError::from(StoreError::Full));
        assert!(matches!(full, NotPrepared::Failed(_)), "{full:?}");
    }
}
