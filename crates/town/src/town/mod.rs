//! A town: where it is and how it is opened.

mod commit_hook;
mod credentials;
mod database;
mod file;
mod install;
pub mod known_repositories;
mod relocation;

pub use commit_hook::{CommitFollower, CommitHook};
pub use file::TownFile;
pub use install::{Installed, install, join, start_store};
pub use relocation::{StoreMove, move_store};

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gt_core::decide::{MachineFacts, Right};
use gt_core::schedule::RunId;
use gt_core::settings::Layers;
use gt_core::{Clock, Rig, Timestamp};
use gt_executors::daemon::{bell_path, calls_path, ring};
use gt_executors::{git, private};
use gt_store::{
    Authorship, Bell, LeaseClock, Options, Proof, Reader, Store, StoreError, Worker, Writer,
};

use self::commit_hook::Followers;
use self::database::TownDatabase;
use self::relocation::{AfterMarks, follow_marks};
use crate::file_settings;
use crate::identity::{CHECK, RUN_OF_CHECK};
use crate::{Actor, Environment, LeaseHost, Machine, OperationError, RealMachine, Result};

/// The directory inside a town that is ours.
pub const DIRECTORY: &str = ".gt";
/// The store inside that directory.
pub(crate) const STORE: &str = "gt.db";
/// The backups inside that directory; the store puts its own there before it migrates.
const BACKUPS: &str = "backups";

/// The variable with the directory where a machine is described, for tests: `/` if it is not set.
const MACHINE: &str = "GT_MACHINE";

/// The root of a town without a directory.
const NOWHERE: &str = "/nonexistent";

/// Called before every transaction. A failure is that of the store.
type Seam = Arc<dyn Fn() -> Result<(), StoreError> + Send + Sync>;

/// An open town: everything an operation needs. Cheap to clone; every clone is the same town.
#[derive(Clone)]
pub struct Town {
    id: String,
    root: PathBuf,
    working_directory: PathBuf,
    /// The place in the town that the caller named instead of its working directory.
    named_place: Option<PathBuf>,
    store: Store,
    clock: Arc<dyn Clock>,
    actor: Actor,
    /// The worker that acts; nothing if a person or the program itself does.
    worker: Option<Worker>,
    /// The identity of this host, if it was given from outside.
    host_id: Option<String>,
    /// The one agent that the actor may do pulled work for; any agent if there is none.
    only_agent: Option<String>,
    /// The hooks that are called for every write, in this order.
    commit_hooks: Vec<Arc<dyn CommitHook>>,
    seam: Option<Seam>,
    /// The host, if it has no directory.
    lease_host: Option<Arc<dyn LeaseHost>>,
    /// Whether concurrent writes share a commit.
    shares_commits: bool,
    /// The bell of this town's daemon, which is rung after every commit.
    bell: Option<PathBuf>,
    machine: Option<Arc<dyn Machine>>,
}

/// The action if a named database is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfAbsent {
    /// It is made: for a server, or for a command that gives others access.
    Make,
    /// It is refused: a command that only administers a database was given a wrong name.
    Refuse,
}

impl fmt::Debug for Town {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Town")
            .field("root", &self.root)
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}

impl Town {
    /// The root of the town around `directory`: the nearest one above it, else what the environment
    /// names, else the town of the repository.
    pub fn find(directory: &Path, environment: &Environment) -> Result<PathBuf> {
        if let Some(root) = enclosing_town(directory) {
            return Ok(root);
        }
        if let Some(root) =
            Self::beads_of_environment(directory, environment).and_then(|at| enclosing_town(&at))
        {
            return Ok(root);
        }
        for name in ["GT_TOWN_ROOT", "GT_ROOT"] {
            if let Some(root) = environment.path(name) {
                return enclosing_town(&root).filter(|found| *found == root).ok_or_else(|| {
                    OperationError::rejected(format!(
                        "{name} is {}, but there is no town; make one with gt install {}",
                        root.display(),
                        root.display()
                    ))
                });
            }
        }
        if let Some(root) = known_repositories::town_of(directory, environment) {
            return Ok(root);
        }
        // The town that a server makes of a database has no directory.
        match TownDatabase::of_environment(environment, directory) {
            Ok(Some(_)) => Err(OperationError::NoDirectory),
            _ => Err(OperationError::NoTown(directory.to_owned())),
        }
    }

    /// The directory or file of beads that `BEADS_DIR` or `BEADS_DB` names, if it is in a town.
    pub fn beads_of_environment(directory: &Path, environment: &Environment) -> Option<PathBuf> {
        let named = ["BEADS_DIR", "BEADS_DB"].into_iter().filter_map(|name| environment.path(name));
        named.map(|at| directory.join(at)).find(|at| enclosing_town(at).is_some())
    }

    /// Opens the town at `root`.
    pub fn open(
        root: &Path,
        working_directory: &Path,
        environment: &Environment,
        actor: Actor,
        clock: Arc<dyn Clock>,
        options: Options,
        consequences: Arc<dyn CommitHook>,
    ) -> Result<Self> {
        let file = file::read(root)?;
        // Entries that are not ours to change are reported by gt doctor.
        let _ = private::tighten(&root.join(DIRECTORY));
        let database = TownDatabase::of_town(root, &file, environment, working_directory)?;
        let of_files = root.to_owned();
        let options = Options {
            lease_clock: LeaseClock::Store,
            settings_below: Some(Arc::new(move || {
                file_settings::layers(&of_files).unwrap_or_default()
            })),
            ..options
        };
        let store = Store::open(&database.address, clock.now(), options.clone())
            .map_err(|error| database.explain(error, root))?;
        let marks = store.read(|reader| -> Result<_> { Ok(reader.marks()?) })?;
        database.check_owner(&marks, &file.id)?;
        let place = &database.address;
        match follow_marks(root, &file, place, &marks, environment, clock.now())? {
            AfterMarks::Use => {}
            AfterMarks::OpenAgain => {
                let (directory, hooks) = (working_directory, consequences);
                return Self::open(root, directory, environment, actor, clock, options, hooks);
            }
        }
        let worker = worker_of(&store, environment)?;
        let host_id = environment.get("GT_HOST_ID").map(str::to_owned);
        host_id.as_deref().map_or(Ok(()), crate::identity::check_host_id)?;
        Ok(Self {
            id: file.id,
            root: root.to_owned(),
            working_directory: working_directory.to_owned(),
            named_place: None,
            store,
            clock,
            actor,
            worker,
            host_id,
            only_agent: None,
            commit_hooks: vec![consequences],
            seam: None,
            lease_host: None,
            shares_commits: false,
            bell: Some(bell_path(&root.join(DIRECTORY))),
            machine: Some(Arc::new(RealMachine::at(
                environment.path(MACHINE).unwrap_or_else(|| PathBuf::from("/")),
                root,
            ))),
        })
    }

    /// A town without a directory: the database that `DATABASE_URL` names and nothing else. Nothing if the variable names
    /// none, or one of a kind that we do not know.
    pub fn of_database(
        working_directory: &Path,
        environment: &Environment,
        actor: Actor,
        clock: Arc<dyn Clock>,
        absent: IfAbsent,
        options: Options,
        consequences: Arc<dyn CommitHook>,
    ) -> Result<Option<Self>> {
        let Some(database) = TownDatabase::of_environment(environment, working_directory)? else {
            return Ok(None);
        };
        let options = Options { lease_clock: LeaseClock::Store, ..options };
        let store = match absent {
            IfAbsent::Make => database.create(clock.now(), options)?,
            IfAbsent::Refuse => database.open(clock.now(), options)?,
        };
        let by = Authorship { actor: actor.name.clone(), at: clock.now(), worker: None };
        let (id, _) = database.town_id(&store, &by)?;
        let working_directory = working_directory.to_owned();
        let worker = worker_of(&store, environment)?;
        Ok(Some(Self {
            id,
            working_directory,
            worker,
            ..Self::over(store, actor, clock, consequences)
        }))
    }

    /// The same town for a caller that named this place in it instead of its working directory.
    #[must_use]
    pub fn at_place(self, place: &Path) -> Self {
        Self { named_place: Some(place.to_owned()), ..self }
    }

    /// Adds work to every write of this town, after what was added before.
    #[must_use]
    pub fn with_commit_hook(mut self, hook: Arc<dyn CommitHook>) -> Self {
        self.commit_hooks.push(hook);
        self
    }

    /// A town without a directory, in memory, for tests.
    pub fn in_memory(
        actor: Actor,
        clock: Arc<dyn Clock>,
        consequences: Arc<dyn CommitHook>,
    ) -> Result<Self> {
        Ok(Self::over(Store::in_memory()?, actor, clock, consequences))
    }

    /// A town without a directory over an open store, for tests and the simulator.
    pub fn over(
        store: Store,
        actor: Actor,
        clock: Arc<dyn Clock>,
        consequences: Arc<dyn CommitHook>,
    ) -> Self {
        let root = PathBuf::from(NOWHERE);
        let (id, working_directory, worker) = (String::new(), root.clone(), None);
        Self {
            id,
            root,
            working_directory,
            named_place: None,
            store,
            clock,
            actor,
            worker,
            host_id: None,
            only_agent: None,
            commit_hooks: vec![consequences],
            seam: None,
            lease_host: None,
            shares_commits: false,
            bell: None,
            machine: None,
        }
    }

    /// The same town for another actor, perhaps the worker of a run, for which the caller vouches.
    #[must_use]
    pub fn acting_as(mut self, actor: Actor, run: Option<RunId>) -> Self {
        if !self.is_check() {
            self.worker = run.map(|run| Worker { run, proof: Proof::Vouched });
        }
        self.actor = actor;
        self
    }

    /// The same town for a caller whose command this process carries out: in its directory, for its actor, as the worker that
    /// its environment names. The commit hooks of this process are left out, because those of a command depend on its
    /// environment.
    pub fn for_caller(
        &self,
        working_directory: &Path,
        environment: &Environment,
        actor: Actor,
    ) -> Result<Self> {
        let worker = worker_of(&self.store, environment)?;
        let (working_directory, this) = (working_directory.to_owned(), self.clone());
        // The first one is that of the store's consequences.
        let commit_hooks = self.commit_hooks.iter().take(1).cloned().collect();
        Ok(Self { working_directory, actor, worker, commit_hooks, ..this })
    }

    /// The same town for the program itself, which carries out what a worker asked for and was heard to ask: a run that
    /// ends while that goes on does not stop it halfway.
    #[must_use]
    pub fn as_system(&self) -> Self {
        if self.is_check() {
            return self.clone();
        }
        Self { worker: None, ..self.clone() }
    }

    /// Whether a check acts, which may only read.
    fn is_check(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| matches!(worker.proof, Proof::Check(_)))
    }

    /// Refuses a change outside of any transaction to a worker that lacks the right to it.
    pub fn require_right(&self, right: Right, change: &str) -> Result<()> {
        match &self.worker {
            Some(worker) => self.read(|reader| Ok(reader.require_right(worker, right, change)?)),
            None => Ok(()),
        }
    }

    /// Limits the actor to the pulled work of this agent, if one is given.
    #[must_use]
    pub fn only_for(mut self, agent: Option<String>) -> Self {
        self.only_agent = agent;
        self
    }

    /// The one agent that the actor may do pulled work for; any agent if there is none.
    pub fn only_agent(&self) -> Option<&str> {
        self.only_agent.as_deref()
    }

    /// Has runs on this machine. A town without a directory does not know its own, and nothing is held up by it.
    #[must_use]
    pub fn with_machine(mut self, machine: Arc<dyn Machine>) -> Self {
        self.machine = Some(machine);
        self
    }

    /// The facts about the machine that runs are started on.
    pub fn machine(&self) -> MachineFacts {
        self.machine.as_ref().map(|machine| machine.facts()).unwrap_or_default()
    }

    /// Calls this before every transaction, when none is open: there the simulator lets others go first, ends the process
    /// that was about to write, or cuts it off from the store.
    #[must_use]
    pub fn with_seam(
        mut self,
        seam: impl Fn() -> Result<(), StoreError> + Send + Sync + 'static,
    ) -> Self {
        self.seam = Some(Arc::new(seam));
        self
    }

    /// Has this host, which has a lease and no directory.
    #[must_use]
    pub fn with_lease_host(mut self, host: Arc<dyn LeaseHost>) -> Self {
        self.lease_host = Some(host);
        self
    }

    /// The host, if it has no directory.
    pub(crate) fn lease_host(&self) -> Option<&Arc<dyn LeaseHost>> {
        self.lease_host.as_ref()
    }

    /// Lets concurrent writes share a commit, where the operation allows it; for a server with many clients.
    #[must_use]
    pub fn with_shared_commits(mut self) -> Self {
        self.shares_commits = true;
        self
    }

    pub(crate) fn pass_seam(&self) -> Result<(), StoreError> {
        self.seam.as_ref().map_or(Ok(()), |seam| seam())
    }

    /// Tells the daemon of this town, if one runs, that something may have changed. It finds out what by itself.
    fn ring(&self) {
        if let Some(bell) = &self.bell {
            ring(bell);
        }
    }

    /// Whether the town has a directory in which files can be.
    pub fn has_directory(&self) -> bool {
        self.root != Path::new(NOWHERE)
    }

    /// The town's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The id that tells the town apart from others.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where backups go unless told otherwise.
    pub fn backups(&self) -> PathBuf {
        self.root.join(DIRECTORY).join(BACKUPS)
    }

    /// The actor of all operations.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The run in which they act, if they are a worker.
    pub fn acting_run(&self) -> Option<&RunId> {
        self.worker.as_ref().map(|worker| &worker.run)
    }

    /// The identity of this host, if it was given from outside.
    pub(crate) fn host_id(&self) -> Option<&str> {
        self.host_id.as_deref()
    }

    /// The worker that acts, if one does.
    pub fn worker(&self) -> Option<&Worker> {
        self.worker.as_ref()
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The clock of the town.
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The file or the server that the store is on; nothing if it is in memory.
    pub fn store_place(&self) -> String {
        self.store.address().map_or_else(String::new, |address| address.to_string())
    }

    /// The URL of the store for another host, with the password that this host uses. `named` is its address for that host, if
    /// that is another one.
    pub fn url_for_others(&self, named: Option<&str>, environment: &Environment) -> Result<String> {
        database::url_for_others(&file::read(&self.root)?, named, environment)
    }

    /// The file the store lives in, if it lives in one.
    pub fn store_path(&self) -> Option<&Path> {
        self.store.path()
    }

    /// Something that says when there may be news.
    pub fn bell(&self) -> Bell {
        self.store.bell()
    }

    /// The store of the town.
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn authorship(&self) -> Authorship {
        let worker = self.worker.clone();
        Authorship { actor: self.actor.name.clone(), at: self.now(), worker }
    }

    /// Reads one consistent state of the store.
    pub fn read<T>(&self, work: impl FnOnce(&Reader<'_>) -> Result<T>) -> Result<T> {
        self.pass_seam()?;
        self.store.read(work)
    }

    /// Like [`Town::read`], for one statement: see [`Store::read_newest`].
    pub fn read_newest<T>(&self, work: impl Fn(&Reader<'_>) -> Result<T>) -> Result<T> {
        self.pass_seam()?;
        self.store.read_newest(work)
    }

    /// Like [`Town::read`], for work that has errors of its own.
    pub fn read_for<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.pass_seam()?;
        self.store.read(work)
    }

    /// Runs `work` and the consequences of its changes in one transaction.
    pub fn write<T>(&self, work: impl FnOnce(&mut Writer<'_>) -> Result<T>) -> Result<T> {
        self.write_or_rehearse(false, work)
    }

    /// Like [`Town::write`]; a rehearsal does everything and then undoes it.
    pub fn write_or_rehearse<T>(
        &self,
        rehearsal: bool,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut followers = Followers::begin(self);
        let done = self.transact(rehearsal, |writer| {
            let done = work(writer)?;
            followers.before_commit(writer)?;
            Ok(done)
        })?;
        if !rehearsal {
            followers.after_commit();
        }
        Ok(done)
    }

    /// Like [`Town::write`], together with the other waiting writes if this town shares commits. Each stands and falls
    /// alone.
    pub fn submit<T, E>(
        &self,
        work: impl FnOnce(&Self, &mut Writer<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + From<OperationError> + Send + 'static,
    {
        self.pass_seam()?;
        let mut followers = Followers::begin(self);
        let town = self.clone();
        let job = move |writer: &mut Writer<'_>| {
            let done = work(&town, writer)?;
            followers.before_commit(writer)?;
            Ok::<_, E>((done, followers))
        };
        let (done, followers) = if self.shares_commits {
            self.store.submit(self.authorship(), job).wait()?
        } else {
            self.store.write(&self.authorship(), job)?
        };
        self.ring();
        followers.after_commit();
        Ok(done)
    }

    /// Like [`Town::write_or_rehearse`], for what comes from elsewhere: no hook runs.
    pub fn take_in_or_rehearse<T>(
        &self,
        rehearsal: bool,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        self.transact(rehearsal, work)
    }

    fn transact<T>(
        &self,
        rehearsal: bool,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        self.pass_seam()?;
        let written = self.store.write(&self.authorship(), |writer| {
            let done = work(writer).map_err(NotCommitted::Failed)?;
            if rehearsal { Err(NotCommitted::Rehearsed(done)) } else { Ok(done) }
        });
        match written {
            Ok(done) => {
                self.ring();
                Ok(done)
            }
            Err(NotCommitted::Rehearsed(done)) => Ok(done),
            Err(NotCommitted::Failed(error)) => Err(error),
        }
    }

    /// Runs `work` for each item in one transaction. An item that fails is undone alone.
    pub fn write_each<I, T>(
        &self,
        items: impl IntoIterator<Item = I>,
        mut work: impl FnMut(&mut Writer<'_>, I) -> Result<T>,
    ) -> Result<Vec<Result<T>>> {
        self.pass_seam()?;
        let mut followers = Followers::begin(self);
        let results = self.store.write_each(&self.authorship(), items, |writer, item| {
            let done = work(writer, item)?;
            followers.before_commit(writer)?;
            Ok(done)
        })?;
        self.ring();
        followers.after_commit();
        Ok(results)
    }

    /// The settings of files, for consequences. A file that cannot be read does not stop a write: the commands that
    /// depend on it report it.
    pub fn file_settings(&self) -> Layers {
        file_settings::layers(&self.root).unwrap_or_default()
    }

    /// The directory with the files of the runs of this town.
    pub fn runs_directory(&self) -> PathBuf {
        self.root().join(DIRECTORY).join("runs")
    }

    /// The socket at which the daemon of this town on this host carries out commands of workers.
    pub fn calls_socket(&self) -> PathBuf {
        calls_path(&self.root().join(DIRECTORY))
    }

    /// The directory with the locks of the processes that start runs.
    pub fn starters_directory(&self) -> PathBuf {
        self.root().join(DIRECTORY).join("starters")
    }

    /// The rig whose directory the caller stands in, or has named.
    pub fn rig_here(&self, rigs: &[Rig]) -> Option<Rig> {
        self.rig_at(rigs, self.named_place.as_deref().unwrap_or(&self.working_directory))
    }

    /// The rig whose directory, or whose own repository, holds `path`, else the one of whose repository a linked worktree does.
    pub fn rig_at(&self, rigs: &[Rig], path: &Path) -> Option<Rig> {
        let path = self.working_directory.join(path);
        let path = path.canonicalize().unwrap_or(path);
        let repository = || git::repository_of_worktree(&path);
        self.rig_holding(rigs, &path).or_else(|| self.rig_holding(rigs, &repository()?))
    }

    fn rig_holding(&self, rigs: &[Rig], path: &Path) -> Option<Rig> {
        let depth = |rig: &&Rig| {
            let own = path.strip_prefix(&self.root).ok();
            let inside = own.is_some_and(|own| rig.path == "." || own.starts_with(&rig.path));
            let in_repository = rig.repo.starts_with('/') && path.starts_with(&rig.repo);
            let own = if rig.path == "." { 1 } else { 1 + rig.path.len() };
            (usize::from(inside) * own).max(usize::from(in_repository) * rig.repo.len())
        };
        rigs.iter().filter(|rig| depth(rig) > 0).max_by_key(depth).cloned()
    }
}

/// The worker that the environment names. A token without a run names its run too.
fn worker_of(store: &Store, environment: &Environment) -> Result<Option<Worker>> {
    if let Some(check) = environment.get(CHECK) {
        let proof = Proof::Check(check.to_owned());
        return Ok(Some(Worker { run: RunId::parse(RUN_OF_CHECK)?, proof }));
    }
    let proof = environment.proof();
    let run = match (environment.acting_run(), &proof) {
        (Some(run), _) => Some(run),
        (None, Proof::Token(hash)) => {
            let run = store.read(|reader| reader.run_of_token(hash))?;
            Some(run.ok_or_else(|| {
                OperationError::rejected(
                    "GT_RUN_TOKEN is set, but this town has no run with that token; unset it if you are no worker",
                )
            })?)
        }
        (None, Proof::Missing | Proof::Vouched | Proof::Check(_)) => None,
    };
    Ok(run.map(|run| Worker { run, proof }))
}

/// Why a transaction is not committed.
enum NotCommitted<T> {
    Rehearsed(T),
    Failed(OperationError),
}

impl<T> From<StoreError> for NotCommitted<T> {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// The nearest directory at or above `directory` that holds a town.
pub(crate) fn enclosing_town(directory: &Path) -> Option<PathBuf> {
    let is_town = |at: &&Path| at.join(DIRECTORY).join(file::NAME).is_file();
    directory.ancestors().find(is_town).map(Path::to_owned)
}
