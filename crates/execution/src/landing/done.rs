//! `gt done`: a worker reports the end of its work.

use std::path::Path;

use gt_core::merging::{AcceptedBlocker, MergeMethod, MergeRequest, RequestState};
use gt_core::schedule::{Context, DoneStatus, Merge, Run, RunId, RunState, WorkerPlace};
use gt_core::{BeadId, Rig};
use gt_executors::git::{Commit, GitError, Rebased, Repository, WorkToRebase};
use gt_executors::runs::{RunFiles, tell_done};

use super::commit::{CommitFailure, commit};
use super::delivery_mode::DeliveryMode;
use super::end::{AcceptedEnd, EndReport, end};
use super::end_with_rescue::end_with_rescue;
use crate::checks::protected_paths;
use crate::merge_queue::merge_of_rig;
use crate::trees::look_at_target;
use gt_beads::acting::current_run;
use gt_beads::review_rules::is_review_required;
use gt_beads::run_records::resolve;
use gt_town::settings::{file_layers, layers_over};
use gt_town::tree_paths::{Trees, git_failed, signature_of};
use gt_town::{OperationError, Result, Town};

/// The report of a worker about its run.
#[derive(Debug, Clone)]
pub struct DoneRequest<'a> {
    /// The run.
    pub run: &'a RunId,
    /// How it ends.
    pub said: DoneStatus,
    /// The message of the commit of uncommitted work; the title of the bead without one. With `no_changes`, the
    /// reason why nothing had to change.
    pub message: Option<&'a str>,
    /// The worker says that the work needed no change.
    pub no_changes: bool,
}

/// The report with which the work of a run ends.
#[derive(Debug, Clone, Copy)]
pub struct DoneReport<'a> {
    /// How it ends.
    pub said: DoneStatus,
    /// The worker's words, if there are any.
    pub message: Option<&'a str>,
    /// The worker says that the work needed no change.
    pub no_changes: bool,
}

impl<'a> DoneReport<'a> {
    /// A report without `no_changes`, with this message.
    pub fn plain(said: DoneStatus, message: Option<&'a str>) -> Self {
        Self { said, message, no_changes: false }
    }
}

/// The place of finished work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkDelivery {
    /// There was nothing to deliver.
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
    /// The merge queue has it, as this request.
    Merging(Box<MergeRequest>),
    /// It could not be committed, and is saved as it is.
    Saved {
        /// The reference it is saved as.
        reference: String,
        /// The commit of that reference.
        commit: String,
        /// The branch, which has the commits from before.
        branch: String,
        /// The files that are not in it, and why not.
        left_out: Vec<String>,
        /// Why it could not be committed.
        why: String,
    },
    /// It could neither be committed nor saved, and stays where it is.
    Left {
        /// The tree, from the root of the town.
        tree: String,
        /// Why it could not be saved.
        why: String,
    },
}

/// The outcome of `gt done`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneResult {
    /// The run.
    pub run: RunId,
    /// The result that the worker reported.
    pub said: DoneStatus,
    /// Where the work is.
    pub delivery: WorkDelivery,
}

/// Why work was not accepted: a sentence that the worker can act on.
#[derive(Debug)]
pub enum DoneRefusal {
    /// A fault of the work.
    Work(String),
    /// Nothing was changed, and the worker did not report that nothing had to change.
    Unchanged(String),
    /// Others changed the same lines; a new start from there would help.
    Conflict(String),
    /// The branch that it was to land on is not there any more: only a person can say where it belongs.
    Gone(String),
    /// Another error.
    Elsewhere(OperationError),
}

impl From<CommitFailure> for DoneRefusal {
    fn from(uncommitted: CommitFailure) -> Self {
        match uncommitted {
            CommitFailure::Work(why) => Self::Work(format!("{why}; then say gt done again")),
            CommitFailure::Elsewhere(error) => Self::Elsewhere(error),
        }
    }
}

impl From<OperationError> for DoneRefusal {
    fn from(error: OperationError) -> Self {
        Self::Elsewhere(error)
    }
}

impl DoneRefusal {
    /// The refusal as an error.
    fn into_error(self) -> OperationError {
        match self {
            Self::Work(why) | Self::Unchanged(why) | Self::Conflict(why) => {
                OperationError::Rejected(why)
            }
            Self::Gone(branch) => OperationError::Rejected(format!(
                "{branch}; ask a person where it belongs: gt done --status escalated -m \"where does this belong?\""
            )),
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

/// Ends a run as its worker reports: commits uncommitted work, accepts it, and makes its merge request in the transaction that
/// ends the run. The caller lets the queue land it.
pub fn done(town: &Town, request: &DoneRequest<'_>) -> Result<DoneResult> {
    let ReportingRun { run, rig, context } = reporting_run(town, request.run)?;
    let town = &town.as_system();
    let DoneRequest { said, message, no_changes, .. } = *request;
    if no_changes && message.is_none_or(|why| why.trim().is_empty()) {
        return Err(OperationError::rejected(
            "say why nothing has to change: gt done --no-changes -m \"<why>\"",
        ));
    }
    let statement = DoneReport { said, message, no_changes };
    let delivery = finish_work(town, &rig, &run, context.as_ref(), statement)
        .map_err(DoneRefusal::into_error)?;
    Ok(DoneResult { run: run.id, said: request.said, delivery })
}

/// Makes a merge request of a commit that is known to apply, and ends its run as completed. Nothing here touches git.
pub fn submit_accepted(town: &Town, run: &RunId, accepted: &str) -> Result<MergeRequest> {
    let ReportingRun { run, rig, context } = reporting_run(town, run)?;
    let town = &town.as_system();
    let LandingRules { merge, review } =
        LandingRules::of(town, &rig, &run.id.bead, context.as_ref())?;
    let parameters = context.as_ref().map(|context| &context.parameters);
    let mode = DeliveryMode::of(DoneStatus::Completed, parameters, merge, review);
    let said = DoneStatus::Completed;
    let words = EndReport { said, message: None, no_changes: false, left: None };
    let work = AcceptedEnd { accepted, base: &run.workplace.base_commit, mode, review };
    let request = end(town, &run, &words, &work).map_err(DoneRefusal::into_error)?;
    request.ok_or_else(|| OperationError::rejected(format!("the work of {} stays", run.id)))
}

/// A run whose worker reports that its work is over.
struct ReportingRun {
    run: Run,
    rig: Rig,
    context: Option<Context>,
}

/// Looks up a run whose worker reports; refuses one that has ended, or has not begun.
fn reporting_run(town: &Town, id: &RunId) -> Result<ReportingRun> {
    let run = resolve(town, &id.to_string())?;
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
    if let Some(worker) = town.worker() {
        town.read(|reader| current_run(reader, worker))?;
    }
    let (rig, context) = town.as_system().read(|reader| {
        let rig = gt_town::rig_names::require(reader, run.rig.as_str())?;
        Ok((rig, reader.context_by_number(run.context)?))
    })?;
    Ok(ReportingRun { run, rig, context })
}

/// Tells the supervisor of a run that its work is over. An agent that goes on living would keep its place; one without a
/// supervisor is found by the next run that needs the place.
pub fn tell_supervisor(town: &Town, run: &RunId) {
    let files = RunFiles::of(&town.runs_directory(), &run.to_string());
    let _ = tell_done(&files);
}

/// How the work of a rig lands, and whether a person has to approve it.
struct LandingRules {
    merge: Merge,
    review: bool,
}

impl LandingRules {
    /// Review is required if the sling, the bead, a convoy of it or the rig says so.
    fn of(town: &Town, rig: &Rig, bead: &BeadId, context: Option<&Context>) -> Result<Self> {
        let files = file_layers(town)?;
        let (layers, is_asked) = town.read(|reader| {
            Ok((layers_over(&files, reader)?, is_review_required(reader, bead, context)?))
        })?;
        let merge = merge_of_rig(&layers, &rig.slug)?;
        let is_required = layers.rig_review(&rig.slug)? == "required";
        Ok(Self { merge, review: is_asked || is_required })
    }
}

/// The same for a caller that has looked everything up, and says how it ended and in which words.
pub(crate) fn finish_work(
    town: &Town,
    rig: &Rig,
    run: &Run,
    context: Option<&Context>,
    statement: DoneReport<'_>,
) -> std::result::Result<WorkDelivery, DoneRefusal> {
    let DoneReport { said, message, no_changes } = statement;
    let words = &EndReport { said, message, no_changes, left: None };
    let rules = LandingRules::of(town, rig, &run.id.bead, context)?;
    let parameters = context.map(|context| &context.parameters);
    let mode = DeliveryMode::of(said, parameters, rules.merge, rules.review);
    let Some(trees) = Trees::of(town, rig).filter(|_| !run.workplace.tree.is_empty()) else {
        end(town, run, words, &AcceptedEnd::default())?;
        return Ok(WorkDelivery::Nothing);
    };
    let moved = on_renamed_branch(rig, run, context, &trees.repository())?;
    let run = moved.as_ref().unwrap_or(run);
    // Work that was in conflict may apply by now: it is tried on its target below.
    let sent_back = town.read(|reader| Ok(reader.open_merge_request(&run.id.bead)?))?;
    let sent_back = sent_back.filter(|request| request.state == RequestState::Failed);
    if no_changes && sent_back.is_none() {
        demand_unchanged(town, rig, run)?;
    }
    let accepted = match commit(town, rig, run, &trees, message) {
        Ok(accepted) => accepted,
        Err(uncommitted) => {
            return match (said, uncommitted) {
                (_, CommitFailure::Elsewhere(error)) if error.may_pass() => Err(error.into()),
                (DoneStatus::Completed, uncommitted) => Err(uncommitted.into()),
                (DoneStatus::Escalated | DoneStatus::Deferred, uncommitted) => {
                    end_with_rescue(town, rig, run, words, &uncommitted.why())
                }
            };
        }
    };
    let is_same = sent_back.as_ref().is_some_and(|request| request.accepted == accepted.as_str());
    let is_unchanged = run.workplace.base_commit == accepted.as_str();
    let has_nothing = said == DoneStatus::Completed
        && (is_unchanged || has_nothing_of_its_own(rig, run, &trees, &accepted)?);
    if let Some(request) = &sent_back
        && said == DoneStatus::Completed
        && is_same != no_changes
        // A repair may take all of its work back, if it says why.
        && (is_same || !has_nothing)
    {
        return Err(refuse_same_work(run, request, is_same));
    }
    let is_review = context.is_some_and(|context| context.parameters.review_only);
    let is_silent = said == DoneStatus::Completed && !no_changes && !is_review;
    if is_silent && has_nothing {
        return Err(DoneRefusal::Unchanged(format!(
            "{} changed nothing: {} has no commit that {} does not have, and its tree has no change; work in {}, or say \
             why nothing has to change: gt done --no-changes -m \"<why>\"",
            run.id, run.workplace.branch, run.workplace.base, run.workplace.tree
        )));
    }
    if is_silent && sent_back.is_none() && brings_no_change(rig, run, &trees, &accepted)? {
        return Err(DoneRefusal::Unchanged(format!(
            "{} changed nothing: the commits of {} leave every file as it is in {}; work in {}, or say why nothing has to \
             change: gt done --no-changes -m \"<why>\"",
            run.id, run.workplace.branch, run.workplace.base, run.workplace.tree
        )));
    }
    if (is_unchanged || no_changes) && !is_same {
        end(town, run, words, &AcceptedEnd::kept(accepted.as_str()))?;
        return Ok(WorkDelivery::Nothing);
    }
    let mode = match mode {
        // What a person has to see goes through the queue in every case.
        DeliveryMode::Keep if said == DoneStatus::Completed => {
            let base = base_of_work(rig, run, &trees.repository(), &accepted)?;
            let is_protected = touches_protected_paths(town, rig, &base, &accepted)?;
            if is_protected { DeliveryMode::Submit(MergeMethod::Queue) } else { mode }
        }
        mode => mode,
    };
    // Work on top of a commit that has not landed is tried when that has.
    if matches!(mode, DeliveryMode::Submit(_)) && !is_stacked(town, run)? {
        try_on_target(town, rig, run, &trees.repository(), &accepted)?;
    }
    let base = match mode {
        DeliveryMode::Keep => String::new(),
        DeliveryMode::PushBranch => {
            // It was not tried on the target, which the worker may have fetched by itself.
            fetch_if_reachable(rig, &trees.repository())?;
            base_of_work(rig, run, &trees.repository(), &accepted)?
        }
        DeliveryMode::Submit(_) => base_of_work(rig, run, &trees.repository(), &accepted)?,
    };
    let review = rules.review || touches_protected_paths(town, rig, &base, &accepted)?;
    let mode = match mode {
        DeliveryMode::Submit(MergeMethod::Direct) if review => {
            DeliveryMode::Submit(MergeMethod::Queue)
        }
        mode => mode,
    };
    let work = AcceptedEnd { accepted: accepted.as_str(), base: &base, mode, review };
    let request = end(town, run, words, &work)?;
    let branch = run.workplace.branch.clone();
    Ok(match request {
        Some(request) => WorkDelivery::Merging(Box::new(request)),
        None => WorkDelivery::Kept { branch, pushed: false },
    })
}

/// The run with the branch that its rig lands on now, if the one that it began from was renamed meanwhile: the origin does not
/// have that any more. A branch that was chosen for the work is not replaced.
fn on_renamed_branch(
    rig: &Rig,
    run: &Run,
    context: Option<&Context>,
    repository: &Repository,
) -> Result<Option<Run>> {
    let failed = git_failed(rig);
    let is_chosen = context.is_none_or(|context| context.parameters.base_branch.is_some());
    if is_chosen || run.workplace.base == rig.default_branch {
        return Ok(None);
    }
    if !fetch_if_reachable(rig, repository)? {
        return Ok(None);
    }
    let is_there = |branch: &str| repository.tip(branch).map(|tip| tip.is_some()).map_err(&failed);
    if is_there(&run.workplace.base)? || !is_there(&rig.default_branch)? {
        return Ok(None);
    }
    let mut moved = run.clone();
    moved.workplace.base.clone_from(&rig.default_branch);
    Ok(Some(moved))
}

/// Asks the origin for its branches; `false` if it does not answer.
fn fetch_if_reachable(rig: &Rig, repository: &Repository) -> Result<bool> {
    match repository.fetch() {
        Ok(()) => Ok(true),
        Err(GitError::Unreachable { .. }) => Ok(false),
        Err(error) => Err(git_failed(rig)(error)),
    }
}

/// Whether a blocker of this work has been accepted and has not landed.
fn is_stacked(town: &Town, run: &Run) -> Result<bool> {
    let bead = std::slice::from_ref(&run.id.bead);
    let accepted = town.read(|reader| Ok(reader.accepted_blockers_of(bead)?))?;
    let is_for_target =
        |blocker: &AcceptedBlocker| blocker.rig == run.rig && blocker.target == run.workplace.base;
    Ok(accepted.get(&run.id.bead).is_some_and(|blockers| blockers.iter().any(is_for_target)))
}

/// The commit after which everything in accepted work is its own: where the run began, or the newest commit of the target that
/// the worker has put it on since. Without that, the commits of others in between would count as the work.
fn base_of_work(
    rig: &Rig,
    run: &Run,
    repository: &Repository,
    accepted: &Commit,
) -> Result<String> {
    let failed = git_failed(rig);
    let (began, target) = (&run.workplace.base_commit, run.workplace.base.as_str());
    let tip = repository.tip(target).map_err(&failed)?;
    let moved = Commit::parse(began).zip(tip).filter(|(base, tip)| base != tip);
    let Some((base, tip)) = moved else { return Ok(began.clone()) };
    let common = repository.merge_base(accepted, &tip).map_err(&failed)?;
    let Some(common) = common.filter(|common| common != accepted && *common != base) else {
        return Ok(began.clone());
    };
    // A base that the target does not have is the work of a blocker, or was taken back.
    let is_outside = !repository.origin_has(target, &base).map_err(&failed)?;
    let is_kept = is_outside && repository.has_in_history(accepted, &base).map_err(&failed)?;
    Ok(if is_kept { began.clone() } else { common.to_string() })
}

/// Whether work changes files that need a review in its rig.
fn touches_protected_paths(town: &Town, rig: &Rig, base: &str, accepted: &Commit) -> Result<bool> {
    match Commit::parse(base) {
        Some(base) => Ok(!protected_paths(town, rig, &base, accepted)?.is_empty()),
        None => Ok(false),
    }
}

/// Refuses work that does not apply to its target: its worker still knows what it was about. An origin that does not answer
/// is left to the merge queue.
fn try_on_target(
    town: &Town,
    rig: &Rig,
    run: &Run,
    repository: &Repository,
    accepted: &Commit,
) -> std::result::Result<(), DoneRefusal> {
    let failed = git_failed(rig);
    let target = &run.workplace.base;
    if !fetch_if_reachable(rig, repository)? {
        return Ok(());
    }
    let Some(tip) = repository.tip(target).map_err(&failed)? else {
        return Err(DoneRefusal::Gone(format!(
            "{target} is not at the origin any more, and what {} did was to land there; it is committed on {} and safe",
            run.id, run.workplace.branch
        )));
    };
    // Commits that this run has pushed itself are no landing of it, as long as nothing of it is accepted. If that fails, the
    // next landing looks again.
    let _ = look_at_target(town, rig, repository, target, &tip);
    let base = Commit::parse(&run.workplace.base_commit);
    let work = WorkToRebase { commit: accepted, base: base.as_ref() };
    match repository.rebase_onto(work, &tip, &signature_of(run)).map_err(&failed)? {
        Rebased::Clean(_) => {
            let missing = repository.missing_large_files(accepted, target, &tip);
            match missing.map_err(&failed)? {
                Some(why) => Err(DoneRefusal::Work(format!(
                    "what git-lfs keeps for it cannot be brought to the origin: {why}; put that right and say gt done again"
                ))),
                None => Ok(()),
            }
        }
        Rebased::Conflict { paths, since, has_merges } => {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let taken_back = match since {
                Some(_) => ", and the origin has taken back commits that it began from",
                None => "",
            };
            Err(DoneRefusal::Conflict(format!(
                "others have changed {} on {target} since {} began{taken_back}; run {}, resolve what conflicts, and \
                 say gt done again",
                paths.join(", "),
                run.id,
                commands_to_combine(target, since.as_ref(), has_merges)
            )))
        }
    }
}

/// Whether the branch of a run has only commits that the origin has as well, and none of them was brought there for it.
fn has_nothing_of_its_own(
    rig: &Rig,
    run: &Run,
    trees: &Trees<'_>,
    accepted: &Commit,
) -> Result<bool> {
    if run.landing.accepted == accepted.as_str() {
        return Ok(false);
    }
    let (repository, failed) = (trees.repository(), git_failed(rig));
    match repository.tip(&run.workplace.base).map_err(&failed)? {
        Some(tip) => repository.is_ancestor(accepted, &tip).map_err(&failed),
        None => Ok(false),
    }
}

/// Whether the commits of a run leave every file as it was where its work began.
fn brings_no_change(rig: &Rig, run: &Run, trees: &Trees<'_>, work: &Commit) -> Result<bool> {
    if run.landing.accepted == work.as_str() {
        return Ok(false);
    }
    let (repository, failed) = (trees.repository(), git_failed(rig));
    let tip = repository.tip(&run.workplace.base).map_err(&failed)?;
    for known in tip.into_iter().chain(Commit::parse(&run.workplace.base_commit)) {
        if repository.is_without_change(work, &known).map_err(&failed)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses a repair that brings the work back as it was sent back, without saying why; or that says so, and has changed it.
fn refuse_same_work(run: &Run, request: &MergeRequest, is_same: bool) -> DoneRefusal {
    let MergeRequest { id, accepted, .. } = request;
    let short: String = accepted.chars().take(12).collect();
    if !is_same {
        return DoneRefusal::Work(format!(
            "{} has changed the work of {id}; say gt done without --no-changes",
            run.id
        ));
    }
    DoneRefusal::Unchanged(format!(
        "{} changed nothing: {} is still at {short}, which was sent back ({}); mend it and commit, or say why nothing has to \
         change: gt done --no-changes -m \"<why>\"",
        run.id,
        run.workplace.branch,
        request.state_reason()
    ))
}

/// Refuses a worker that reports that nothing had to change, and has changed something.
fn demand_unchanged(town: &Town, rig: &Rig, run: &Run) -> std::result::Result<(), DoneRefusal> {
    if is_untouched(town, rig, run)? {
        return Ok(());
    }
    Err(DoneRefusal::Work(format!(
        "{} has changed something in {}; say gt done without --no-changes to land it, or take it back first (git status \
         shows it)",
        run.id, run.workplace.tree
    )))
}

/// Whether a run has changed no file, in its commits and in its tree.
pub(crate) fn is_untouched(town: &Town, rig: &Rig, run: &Run) -> Result<bool> {
    let name = run.place.as_ref().and_then(WorkerPlace::polecat_name);
    let (Some(trees), Some(name)) = (Trees::of(town, rig), name) else { return Ok(false) };
    let (tree, failed) = (trees.tree(name), git_failed(rig));
    let Some(head) = tree.head().map_err(&failed)? else { return Ok(false) };
    let is_at_base = head.as_str() == run.workplace.base_commit
        || has_nothing_of_its_own(rig, run, &trees, &head)?
        || brings_no_change(rig, run, &trees, &head)?;
    Ok(is_at_base && tree.status().map_err(&failed)?.is_clean())
}

/// How a worker combines its work with that of others. A rebase would lose changes that only a merge commit has.
fn commands_to_combine(branch: &str, since: Option<&Commit>, has_merges: bool) -> String {
    match (since, has_merges) {
        (None, false) => format!("git rebase origin/{branch}"),
        (None, true) => format!("git merge origin/{branch}"),
        (Some(since), false) => format!("git rebase --onto origin/{branch} {since}"),
        (Some(since), true) => format!(
            "git reset --soft {since} && git commit -m \"<what you did>\" to make one commit of your work, then git \
             rebase --onto origin/{branch} {since}"
        ),
    }
}
