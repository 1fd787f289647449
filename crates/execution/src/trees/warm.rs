//! Trees that are made ready before a run needs them.
//!
//! # Invariants
//!
//! - A warm tree belongs to a polecat that has had no run yet, or whose last run has left nothing there. Until it is
//!   complete, the store shows its polecat without a tree.
//! - A mark beside the tree says that the setup of the rig is complete. It is written last, and removed before
//!   anything else happens to the tree.
//! - A process that works at a tree here has its lock, like the supervisor of a run. A run that is given the polecat
//!   meanwhile finds it busy, and goes elsewhere.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use gt_core::rig::RigState;
use gt_core::schedule::{
    Polecat, RunState, TreeState, WorkerPlace, free_polecat_name, is_host_named,
};
use gt_core::{ExecutorKind, Rig, RigSlug, Timestamp};
use gt_executors::git::{Commit, Repository};
use gt_executors::runs::{Liveness, RunFiles};

use super::lock::{TreeLock, lock_tree};
use super::prepare::reuse;
use super::setup::{TreeSetup, set_up};
use super::trash::{TrashReason, move_away};
use gt_beads::polecat_names::live_run_at;
use gt_scheduling::dispatch::unused_polecat;
use gt_scheduling::processes::ProcessProbe;
use gt_town::settings::layers_in;
use gt_town::tree_paths::{Trees, git_failed};
use gt_town::{OperationError, Result, Town, with_causes};

/// The changes to warm trees.
#[derive(Debug, Default)]
pub struct WarmTreeChanges {
    /// Those that were made.
    pub made: Vec<WorkerPlace>,
    /// Those that were there, and were moved to the newest base.
    pub refreshed: Vec<WorkerPlace>,
    /// Those that are not wanted any more; they are in the trash.
    pub removed: Vec<WorkerPlace>,
    /// There are rigs on this host that want warm trees or have some.
    pub keeps_some: bool,
    /// The rigs in which it failed, and why. Each failure is reported once, although it is tried again.
    pub problems: Vec<(RigSlug, String)>,
}

/// How long a rig whose setup failed is not tried again while nothing has changed.
const RETRY_DELAY: Duration = Duration::from_mins(10);

/// Keeps as many free trees ready in each rig of this machine as `rig.<slug>.warm_worktrees` says, on the newest base
/// that is known here: those that will be given to runs next. Any process may call this at any time; if another
/// process is at it already, nothing happens. The dispatcher calls it after its starts, best on a thread of its own:
/// the command of a rig takes its time.
pub fn keep_warm(town: &Town, processes: &dyn ProcessProbe) -> Result<WarmTreeChanges> {
    let mut warmed = WarmTreeChanges::default();
    if !town.has_directory() {
        return Ok(warmed);
    }
    let rigs = rigs(town, processes.host())?;
    warmed.keeps_some = !rigs.is_empty();
    for (rig, wanted) in rigs {
        let Some(trees) = Trees::of(town, &rig) else { continue };
        let keeper = WarmTreeKeeper { trees: &trees, host: processes.host(), wanted };
        let Some(_turn) = keeper.take_turn()? else { continue };
        match keeper.keep(&mut warmed) {
            Ok(()) => {}
            Err(error) if error.is_of_store() => return Err(error),
            Err(error) => {
                let why = with_causes(&error);
                if keeper.note_failure(&why)? {
                    warmed.problems.push((rig.slug.clone(), why));
                }
            }
        }
    }
    Ok(warmed)
}

/// The rigs that want warm trees here or have some, and how many they want.
fn rigs(town: &Town, host: &str) -> Result<Vec<(Rig, usize)>> {
    town.read(|reader| {
        let layers = layers_in(town.root(), reader)?;
        let polecats = reader.polecats()?;
        let mut rigs = Vec::new();
        for rig in reader.rigs()? {
            // Workers on other machines make their own trees.
            if !matches!(rig.executor, ExecutorKind::Tmux | ExecutorKind::Process) {
                continue;
            }
            let only = layers.rig_host(&rig.slug)?;
            if !only.is_empty() && !is_host_named(host, &only) {
                continue;
            }
            let wanted = usize::try_from(layers.rig_warm_worktrees(&rig.slug)?).unwrap_or(0);
            let has_some =
                polecats.iter().any(|one| one.rig == rig.slug && one.host == host && one.is_warm());
            if rig.state == RigState::Active && (wanted > 0 || has_some) {
                rigs.push((rig, wanted));
            }
        }
        Ok(rigs)
    })
}

/// The mark of a warm tree.
fn mark_path(trees: &Trees<'_>, name: &str) -> PathBuf {
    trees.home(name).join("warm")
}

/// Removes the mark of a tree, and returns its text.
pub(super) fn take_mark(trees: &Trees<'_>, name: &str) -> Result<Option<String>> {
    let path = mark_path(trees, name);
    let failed = |action| {
        let path = path.clone();
        move |source| OperationError::File { action, path, source }
    };
    let mark = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // An unreadable mark does not count, and must not stay either.
        mark => mark.ok(),
    };
    fs::remove_file(&path).map_err(failed("remove"))?;
    Ok(mark)
}

/// The keeper of the warm trees of a rig.
struct WarmTreeKeeper<'a> {
    trees: &'a Trees<'a>,
    host: &'a str,
    wanted: usize,
}

/// The wanted state of a tree.
struct WarmTreeState {
    repository: Repository,
    base: Commit,
    wishes: TreeSetup,
    /// The mark of a tree in this state.
    mark: String,
}

/// The lock for the warm trees of a rig.
struct WarmTreesLock {
    // Closing it releases the lock.
    _file: File,
}

impl WarmTreeKeeper<'_> {
    fn town(&self) -> &Town {
        self.trees.town
    }

    fn rig(&self) -> &Rig {
        self.trees.rig
    }

    fn place(&self, name: &str) -> Result<WorkerPlace> {
        Ok(WorkerPlace::polecat(&self.rig().slug, name)?)
    }

    /// Takes the lock for the warm trees of this rig; nothing if another process has it.
    fn take_turn(&self) -> Result<Option<WarmTreesLock>> {
        let directory = self.trees.directory();
        let path = directory.join(".warm.lock");
        let failed = |source| OperationError::File { action: "lock", path: path.clone(), source };
        fs::create_dir_all(&directory).map_err(failed)?;
        let file = gt_executors::private::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(WarmTreesLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// One small step after the other, so that a process that is killed in between has done some of them.
    fn keep(&self, warmed: &mut WarmTreeChanges) -> Result<()> {
        self.remove_surplus(warmed)?;
        if self.wanted == 0 || self.has_failed_lately()? {
            return Ok(());
        }
        let standard = self.standard()?;
        let mut ready = 0;
        for polecat in self.usable()? {
            if ready == self.wanted {
                break;
            }
            if self.is_as_wanted(&polecat, &standard) {
                ready += 1;
            } else if self.refresh(&polecat, &standard)? {
                warmed.refreshed.push(self.place(&polecat.name)?);
                ready += 1;
            }
        }
        while ready < self.wanted {
            let made = self.make(&standard)?;
            warmed.made.push(self.place(&made)?);
            ready += 1;
        }
        self.forget_failure()
    }

    /// The polecats with a tree that is warm or can be made so, the next to be given away first. The tree of a run
    /// that did not end well stays as it is, for people to look at.
    fn usable(&self) -> Result<Vec<Polecat>> {
        let (warm, idle): (Vec<_>, Vec<_>) = self.free()?.into_iter().partition(Polecat::is_warm);
        let mut usable = warm;
        for polecat in idle.into_iter().filter(|one| one.tree == TreeState::Ready) {
            let last = match &polecat.last_run {
                Some(last) => self.town().read(|reader| Ok(reader.run(last)?))?,
                None => None,
            };
            if last.is_some_and(|run| run.state == RunState::Done) {
                usable.push(polecat);
            }
        }
        Ok(usable)
    }

    /// The polecats of this machine without a run, the longest idle first.
    fn free(&self) -> Result<Vec<Polecat>> {
        self.town().read(|reader| {
            let mut polecats = reader.polecats_of(&self.rig().slug)?;
            let live = reader.live_runs()?;
            let is_free = |polecat: &Polecat| {
                let place = self.place(&polecat.name).ok();
                place.is_some() && !live.iter().any(|run| run.place == place)
            };
            polecats.retain(|polecat| polecat.host == self.host && is_free(polecat));
            Ok(polecats)
        })
    }

    /// Removes the last warm trees beyond the wanted number.
    fn remove_surplus(&self, warmed: &mut WarmTreeChanges) -> Result<()> {
        let warm: Vec<Polecat> = self.free()?.into_iter().filter(Polecat::is_warm).collect();
        for polecat in warm.iter().skip(self.wanted) {
            let Some(_lock) = self.occupy(polecat)? else { continue };
            move_away(self.town(), self.rig(), polecat, TrashReason::Unwanted)?;
            warmed.removed.push(self.place(&polecat.name)?);
        }
        Ok(())
    }

    fn standard(&self) -> Result<WarmTreeState> {
        let rig = self.rig();
        let failed = git_failed(rig);
        let repository = Repository::clone_from(&rig.repo, self.trees.repository().path());
        let repository = repository.map_err(&failed)?;
        let base = repository.tip(&rig.default_branch).map_err(&failed)?;
        let base = base.ok_or_else(|| {
            OperationError::rejected(format!(
                "the repository of the rig {} has no branch {}, so no tree can be made ahead",
                rig.slug, rig.default_branch
            ))
        })?;
        let wishes = TreeSetup::of(self.town(), rig)?;
        let mark = wishes.mark(&base)?;
        Ok(WarmTreeState { repository, base, wishes, mark })
    }

    /// Whether a run could begin in a tree at once.
    fn is_as_wanted(&self, polecat: &Polecat, standard: &WarmTreeState) -> bool {
        let tree = self.trees.tree(&polecat.name);
        let head = || tree.head().ok().flatten();
        let mark = || fs::read_to_string(mark_path(self.trees, &polecat.name));
        polecat.is_warm()
            && mark().is_ok_and(|mark| mark == standard.mark)
            && head().as_ref() == Some(&standard.base)
    }

    /// Takes the lock of a tree; nothing if another process has it, or a process of its last run is left.
    fn occupy(&self, polecat: &Polecat) -> Result<Option<TreeLock>> {
        let Some(lock) = lock_tree(self.trees, &polecat.name)? else { return Ok(None) };
        let place = self.place(&polecat.name)?;
        let is_unchanged = self.town().read(|reader| {
            let now = reader.polecat(&polecat.rig, &polecat.name)?;
            Ok(now.as_ref() == Some(polecat) && live_run_at(reader, &place)?.is_none())
        })?;
        let is_left = polecat.last_run.as_ref().is_none_or(|last| {
            let files = RunFiles::of(&self.town().runs_directory(), &last.to_string());
            matches!(files.liveness(), Ok(Liveness::Free | Liveness::NeverTaken))
                && !files.was_cut_off()
        });
        Ok(Some(lock).filter(|_| is_unchanged && is_left))
    }

    /// Puts a tree that is there on the newest base. `false` if another process uses it.
    fn refresh(&self, polecat: &Polecat, standard: &WarmTreeState) -> Result<bool> {
        let Some(_lock) = self.occupy(polecat)? else { return Ok(false) };
        let tree = self.trees.tree(&polecat.name);
        take_mark(self.trees, &polecat.name)?;
        let recycled =
            reuse(self.town(), self.trees, polecat, &tree, |t| t.recycle_detached(&standard.base))?;
        if !recycled {
            move_away(self.town(), self.rig(), polecat, TrashReason::Unclean)?;
            standard
                .repository
                .add_detached_worktree(tree.path(), &standard.base)
                .map_err(git_failed(self.rig()))?;
        }
        self.finish(&polecat.name, standard)?;
        Ok(true)
    }

    /// Makes a tree for a polecat without one, and returns the name of the polecat.
    fn make(&self, standard: &WarmTreeState) -> Result<String> {
        for polecat in self.free()?.iter().filter(|one| one.tree == TreeState::Absent) {
            if let Some(_lock) = self.occupy(polecat)? {
                self.build(polecat, standard)?;
                return Ok(polecat.name.clone());
            }
        }
        let polecat = self.town().write(|writer| {
            let known = writer.polecats_of(&self.rig().slug)?;
            let live = writer.live_runs()?;
            let is_taken = |name: &str| {
                let place = self.place(name).ok();
                known.iter().any(|polecat| polecat.name == name)
                    || live.iter().any(|run| run.place.is_some() && run.place == place)
            };
            let name = free_polecat_name(is_taken);
            let polecat = unused_polecat(&self.rig().slug, &name, self.host, writer.now());
            writer.put_polecat(&polecat)?;
            Ok(polecat)
        })?;
        match self.occupy(&polecat)? {
            Some(_lock) => self.build(&polecat, standard)?,
            // A run has it already, and makes the tree itself.
            None => return Ok(polecat.name),
        }
        Ok(polecat.name)
    }

    fn build(&self, polecat: &Polecat, standard: &WarmTreeState) -> Result<()> {
        take_mark(self.trees, &polecat.name)?;
        // A tree that an earlier process began and did not finish.
        move_away(self.town(), self.rig(), polecat, TrashReason::Unclean)?;
        let tree = self.trees.tree(&polecat.name);
        let made = standard.repository.add_detached_worktree(tree.path(), &standard.base);
        made.map_err(git_failed(self.rig()))?;
        self.finish(&polecat.name, standard)
    }

    /// Sets up a tree, and then records that it is there.
    fn finish(&self, name: &str, standard: &WarmTreeState) -> Result<()> {
        let (tree, place) = (self.trees.tree(name), self.place(name)?);
        set_up(self.trees, &standard.wishes, &tree, (name, &place.to_string()), None, "")?;
        tree.remember().map_err(git_failed(self.rig()))?;
        let path = mark_path(self.trees, name);
        let failed = |source| OperationError::File { action: "write", path: path.clone(), source };
        fs::write(&path, &standard.mark).map_err(failed)?;
        self.town().write(|writer| {
            // The polecat may have been nuked.
            let Some(now) = writer.polecat(&self.rig().slug, name)? else { return Ok(()) };
            let run = live_run_at(writer, &place)?;
            // The work of the last run is safe, and the tree no longer belongs to it.
            let last_run = now.last_run.clone().filter(|_| run.is_some());
            Ok(writer.put_polecat(&Polecat {
                tree: TreeState::Ready,
                branch: String::new(),
                last_run,
                ..now
            })?)
        })
    }

    fn failure_path(&self) -> PathBuf {
        self.trees.directory().join(".warm-failed")
    }

    /// The circumstances that must change before another attempt is useful, as far as they are known.
    fn circumstances(&self) -> Result<String> {
        let rig = self.rig();
        let base = self.trees.repository().tip(&rig.default_branch).ok().flatten();
        let wishes = TreeSetup::of(self.town(), rig)?;
        let mark = base.as_ref().and_then(|base| wishes.mark(base).ok());
        Ok(format!("{:?}", (&rig.repo, base, wishes, mark)))
    }

    /// When it failed under the present circumstances, and why.
    fn failure(&self) -> Result<Option<(Timestamp, String)>> {
        let Ok(text) = fs::read_to_string(self.failure_path()) else { return Ok(None) };
        let mut lines = text.splitn(3, '\n');
        let at = lines.next().and_then(|at| Timestamp::parse(at).ok());
        let (circumstances, why) = (lines.next(), lines.next().unwrap_or_default().to_owned());
        if circumstances != Some(&self.circumstances()?) {
            return Ok(None);
        }
        Ok(at.map(|at| (at, why)))
    }

    fn has_failed_lately(&self) -> Result<bool> {
        let now = self.town().now();
        // After a clock was set back, the failure may be in the future.
        Ok(self.failure()?.is_some_and(|(at, _)| at <= now && now.since(at) < RETRY_DELAY))
    }

    /// Records the failure; returns whether it is new.
    fn note_failure(&self, why: &str) -> Result<bool> {
        let is_news = self.failure()?.is_none_or(|(_, before)| before != why);
        let text = format!("{}\n{}\n{why}", self.town().now(), self.circumstances()?);
        let path = self.failure_path();
        fs::write(&path, text).map_err(|source| OperationError::File {
            action: "write",
            path,
            source,
        })?;
        Ok(is_news)
    }

    fn forget_failure(&self) -> Result<()> {
        let path = self.failure_path();
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => {
                removed.map_err(|source| OperationError::File { action: "remove", path, source })
            }
        }
    }
}
