//! The directory, the actor and the open town that most commands need.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gt_beads::beads_directory::TouchBeadsDirectory;
use gt_beads::hooks::RunHooks;
use gt_core::bead::check_label;
use gt_daemon::export_helper::ExportBeads;
use gt_daemon::notice_helper::SendNotices;
use gt_scheduling::Consequences;
use gt_town::{Actor, Environment, IfAbsent, StoreOptions, SystemClock, Town};

use crate::common::Common;
use crate::error::CliError;
use crate::output::Printer;
use crate::served;

/// The actor of a supervisor that is given no other.
const WORKER: &str = "gt";
/// The actor of a server that is given no other.
const SERVER: &str = "api";

/// The directory in which a command runs, and its actor.
pub(crate) struct CommandContext<'p> {
    pub(crate) printer: &'p Printer,
    pub(crate) environment: Environment,
    /// Where relative paths begin.
    pub(crate) directory: PathBuf,
    /// Where the town is looked for; the same unless a store was named.
    place: PathBuf,
    actor: Option<String>,
}

impl<'p> CommandContext<'p> {
    pub(crate) fn new(
        printer: &'p Printer,
        environment: Environment,
        common: Common,
    ) -> Result<Self, CliError> {
        SystemClock.check()?;
        let here = served::directory().map_err(|_| {
            CliError::request("the current directory is gone; change to another one")
        })?;
        let directory = match common.directory {
            None => here,
            Some(asked) => enter(&here.join(&asked)).map_err(|_| {
                CliError::request(format!("there is no directory {}", asked.display()))
            })?,
        };
        Ok(Self { printer, environment, place: directory.clone(), directory, actor: common.actor })
    }

    /// The person's editor. Without a terminal it has to be named: an unseen editor would wait for ever.
    pub(crate) fn editor(&self) -> Result<&str, CliError> {
        match self.environment.editor() {
            Some(editor) => Ok(editor),
            None if served::stdin_is_terminal() && served::stdout_is_terminal() => Ok("vi"),
            None => Err(CliError::request(
                "there is no terminal for an editor; gt config set and bd update take changes as arguments",
            )),
        }
    }

    /// Looks for the town that this file belongs to; without one, for that of `BEADS_DIR` or `BEADS_DB`.
    pub(crate) fn with_store(mut self, file: Option<&Path>) -> Self {
        let named = match file {
            Some(file) => Some(self.directory.join(file)),
            None => Town::beads_of_environment(&self.directory, &self.environment),
        };
        self.place = named.unwrap_or(self.place);
        self
    }

    /// The same person and directory, in this town.
    pub(crate) fn in_town(&self, root: &Path) -> Self {
        let (environment, directory) = (self.environment.clone(), self.directory.clone());
        let (place, actor) = (root.to_owned(), self.actor.clone());
        Self { printer: self.printer, environment, directory, place, actor }
    }

    /// The same directory and town, for this actor.
    pub(crate) fn for_actor(&self, name: &str) -> Self {
        let (environment, directory) = (self.environment.clone(), self.directory.clone());
        let (place, actor) = (self.place.clone(), Some(name.to_owned()));
        Self { printer: self.printer, environment, directory, place, actor }
    }

    /// The root of the town, if there is one.
    pub(crate) fn root(&self) -> Result<PathBuf, CliError> {
        let root = Town::find(&self.place, &self.environment)?;
        let is_same =
            |own: &Path| own == root || own.canonicalize().ok() == root.canonicalize().ok();
        match served::current() {
            Some(call) if !is_same(call.town.root()) => Err(CliError::request(format!(
                "workers act in their own town, {}, and not in {}",
                call.town.root().display(),
                root.display()
            ))),
            Some(call) => Ok(call.town.root().to_owned()),
            None => Ok(root),
        }
    }

    /// The actor that the command line names.
    pub(crate) fn given_actor(&self) -> Option<&str> {
        self.actor.as_deref()
    }

    pub(crate) fn actor(&self) -> Result<Actor, CliError> {
        let actor = Actor::find(self.actor.as_deref(), &self.environment, &self.directory);
        check_label("actor", &actor.name)?;
        Ok(actor)
    }

    /// The town around the working directory.
    pub(crate) fn town(&self) -> Result<Town, CliError> {
        self.town_as(self.actor()?, self.options_with_wait_notice())
    }

    /// The same for a process that gt starts, often: it does not ask git for a name, and prints no note while it
    /// waits for the store.
    pub(crate) fn town_of_worker(&self) -> Result<Town, CliError> {
        let name = self.actor.clone().unwrap_or_else(|| WORKER.to_owned());
        self.town_as(Actor { name, owner: String::new() }, StoreOptions::default())
    }

    /// The town around the working directory or, if there is none, the store that `DATABASE_URL` names: for commands that
    /// need nothing of a town but its store.
    pub(crate) fn store_town(&self) -> Result<Town, CliError> {
        self.town_or_database(IfAbsent::Refuse)
    }

    /// The town around the working directory or, if there is none, what `DATABASE_URL` names: a server needs no town,
    /// nor do commands that maintain its database.
    pub(crate) fn town_or_database(&self, absent: IfAbsent) -> Result<Town, CliError> {
        self.town_or_database_as(self.actor()?, absent, self.options_with_wait_notice())
    }

    /// The same for the server itself.
    pub(crate) fn town_to_serve(&self) -> Result<Town, CliError> {
        let name = self.actor.clone().unwrap_or_else(|| SERVER.to_owned());
        let actor = Actor { name, owner: String::new() };
        self.town_or_database_as(actor, IfAbsent::Make, StoreOptions::default())
    }

    fn town_or_database_as(
        &self,
        actor: Actor,
        absent: IfAbsent,
        options: StoreOptions,
    ) -> Result<Town, CliError> {
        let Err(none) = self.root() else {
            return self.town_as(actor, options);
        };
        let (environment, clock) = (&self.environment, Arc::new(SystemClock));
        let town = Town::of_database(
            &self.directory,
            environment,
            actor,
            clock,
            absent,
            options,
            Arc::new(Consequences),
        )?;
        town.ok_or(none)
    }

    fn town_as(&self, actor: Actor, options: StoreOptions) -> Result<Town, CliError> {
        let root = self.root()?;
        let environment = &self.environment;
        if let Some(call) = served::current() {
            let town = call.town.for_caller(&self.directory, environment, actor)?;
            return Ok(self.with_hooks(town));
        }
        let clock = Arc::new(SystemClock);
        let town = Town::open(
            &root,
            &self.directory,
            environment,
            actor,
            clock,
            options,
            Arc::new(Consequences),
        )?;
        if let Some(news) = gt_town::hosts::news(&town) {
            self.printer.note(news);
        }
        let is_elsewhere = self.place != self.directory;
        let town = if is_elsewhere { town.at_place(&self.place) } else { town };
        Ok(self.with_hooks(town))
    }

    fn with_hooks(&self, town: Town) -> Town {
        town.with_commit_hook(Arc::new(RunHooks::of(&self.environment)))
            .with_commit_hook(Arc::new(TouchBeadsDirectory))
            .with_commit_hook(Arc::new(ExportBeads))
            .with_commit_hook(Arc::new(SendNotices))
    }

    /// Says on standard error when the store is busy, unless a view takes up the terminal.
    fn options_with_wait_notice(&self) -> StoreOptions {
        if self.printer.is_capturing() {
            return StoreOptions::default();
        }
        StoreOptions { on_wait: Some(Arc::new(waiting)), ..StoreOptions::default() }
    }
}

/// This program, to be started again.
pub(crate) fn this_program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|error| {
        CliError::request(format!("cannot find this program to start it again: {error}"))
    })
}

/// Changes the working directory, so that relative paths begin there.
fn enter(directory: &Path) -> std::io::Result<PathBuf> {
    let directory = directory.canonicalize()?;
    served::enter(&directory)?;
    Ok(directory)
}

fn waiting(holder: Option<&str>) {
    let holder = holder.unwrap_or("another gt");
    crate::output::tell(&format!("waiting for {holder} to finish writing…"));
}
