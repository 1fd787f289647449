//! Programs of the user that run after a bead was created, changed or closed.
//!
//! The transaction that changes beads notes which hooks are to run for them. After the commit, one helper process
//! runs the hooks one after the other. So the command need not wait, and a hook cannot undo the commit. Only a command of
//! a worker waits for the helper: everything that a worker has started ends with its run.

mod log;
mod run;

pub use run::{HELPER, run};

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_core::{BeadId, EventKind, Invalid, NewEvent};
use gt_executors::background::{detach, nameless_file, run_apart};
use gt_records::write_bead;
use gt_store::{BeadRow, Reader, Writer};
use serde::{Deserialize, Serialize};

use crate::beads::listed;
use gt_town::settings::layers_in;
use gt_town::town::{CommitFollower, CommitHook, DIRECTORY};
use gt_town::{Environment, OperationError, Result, Town};

/// The directories of hooks; of two with the same name the first one runs.
const DIRECTORIES: [&str; 2] = [".gt/hooks", ".beads/hooks"];

/// The kind of change that a hook is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HookEvent {
    Create,
    Update,
    Close,
}

impl HookEvent {
    const ALL: [Self; 3] = [Self::Create, Self::Update, Self::Close];

    /// The name of the program.
    fn program(self) -> &'static str {
        match self {
            Self::Create => "on_create",
            Self::Update => "on_update",
            Self::Close => "on_close",
        }
    }

    /// The argument of the program.
    fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Close => "close",
        }
    }

    /// The occasion of an event, if hooks are run for it.
    fn of(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::Created => Some(Self::Create),
            EventKind::Closed => Some(Self::Close),
            EventKind::Updated
            | EventKind::StatusChanged
            | EventKind::Claimed
            | EventKind::Reopened
            | EventKind::LabelAdded
            | EventKind::LabelRemoved
            | EventKind::DependencyAdded
            | EventKind::DependencyRemoved
            | EventKind::DependencyChanged
            | EventKind::Commented
            | EventKind::HookReleased => Some(Self::Update),
            // An import runs no hooks; a deleted bead has nothing to show; that a bead is no longer blocked follows
            // from another change; an event of a run changes the bead too where it matters.
            EventKind::Imported
            | EventKind::Deleted
            | EventKind::Unblocked
            | EventKind::RigAdded
            | EventKind::RigChanged
            | EventKind::RigRemoved
            | EventKind::SettingChanged
            | EventKind::Scheduled
            | EventKind::RetryNow
            | EventKind::Unscheduled
            | EventKind::CircuitBroken
            | EventKind::Quarantined
            | EventKind::RunStarting
            | EventKind::StartFailed
            | EventKind::Dispatched
            | EventKind::HandedOver
            | EventKind::OverLimit
            | EventKind::RunSilent
            | EventKind::RunGoesOn
            | EventKind::RunDone
            | EventKind::RunFailed
            | EventKind::RunLost
            | EventKind::RunCancelled
            | EventKind::RunUsed
            | EventKind::ConvoyLanded
            | EventKind::WorkAccepted
            | EventKind::Landed
            | EventKind::RequestOpened
            | EventKind::RequestChanged
            | EventKind::Reviewed
            | EventKind::QueueChanged
            | EventKind::Rescued
            | EventKind::TreeMoved
            | EventKind::TreeRestored
            | EventKind::TreeDue
            | EventKind::TreePurged
            | EventKind::Escalated
            | EventKind::Paused
            | EventKind::Resumed
            | EventKind::Parked
            | EventKind::Limited
            | EventKind::Unparked
            | EventKind::AccountChanged
            | EventKind::StepDone
            | EventKind::MessageSent
            | EventKind::MessageDelivered
            | EventKind::MessageSeen
            | EventKind::MessagesPurged
            | EventKind::EventsPurged
            | EventKind::HelpWanted
            | EventKind::RunBlocked
            | EventKind::RunUnblocked
            | EventKind::TokenChanged
            | EventKind::HostChanged
            | EventKind::Other(_) => None,
        }
    }
}

/// Runs the user's hooks after every change. The program must call [`run`] when it is started with [`HELPER`].
#[derive(Debug, Clone, Copy)]
pub struct RunHooks {
    enabled: bool,
    /// Whether the command waits for its hooks.
    waits: bool,
}

impl RunHooks {
    /// Hooks run unless `BD_NO_HOOKS` is set.
    pub fn of(environment: &Environment) -> Self {
        let off =
            environment.get("BD_NO_HOOKS").is_some_and(|value| !matches!(value, "0" | "false"));
        Self { enabled: !off, waits: environment.may_be_worker() }
    }
}

impl CommitHook for RunHooks {
    fn begin(&self, town: &Town) -> Option<Box<dyn CommitFollower>> {
        let hooks = if self.enabled { Hooks::of(town.root())? } else { return None };
        Some(Box::new(WantedHooks { hooks, calls: None, waits: self.waits }))
    }
}

/// The hooks to run for one write.
struct WantedHooks {
    hooks: Hooks,
    calls: Option<HookCalls>,
    waits: bool,
}

impl CommitFollower for WantedHooks {
    fn before_commit(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        let more = self.hooks.calls(writer)?;
        match &mut self.calls {
            Some(calls) => calls.add(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    fn after_commit(self: Box<Self>) {
        self.calls.into_iter().for_each(|calls| calls.launch(self.waits));
    }
}

/// The hooks of a town.
#[derive(Debug)]
struct Hooks {
    root: PathBuf,
    /// The occasion of each, and its path below the root.
    programs: Vec<(HookEvent, String)>,
}

/// One hook to be run for one bead.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookCall {
    /// The path of the program below the root.
    program: String,
    bead: String,
    event: String,
    /// The bead as JSON.
    json: String,
}

impl HookCall {
    /// Parses a line of the helper's input.
    pub fn parse(line: &str) -> Result<Self, Invalid> {
        serde_json::from_str(line).map_err(|error| Invalid(error.to_string()))
    }

    /// The line for the helper.
    fn line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| OperationError::rejected(error.to_string()))
    }
}

/// The hooks to run when a transaction is committed.
#[derive(Debug)]
struct HookCalls {
    root: PathBuf,
    timeout: Duration,
    list: Vec<HookCall>,
}

impl Hooks {
    /// The hooks of the town at `root`, if it has any.
    fn of(root: &Path) -> Option<Self> {
        let present = DIRECTORIES.into_iter().filter(|name| root.join(name).is_dir());
        let present: Vec<&str> = present.collect();
        let program = |occasion: HookEvent| {
            let paths = present.iter().map(|name| format!("{name}/{}", occasion.program()));
            let path = paths.into_iter().find(|path| root.join(path).is_file())?;
            Some((occasion, path))
        };
        let programs: Vec<_> = HookEvent::ALL.into_iter().filter_map(program).collect();
        (!programs.is_empty()).then(|| Self { root: root.to_owned(), programs })
    }

    /// The hooks to run for the changes of `writer`, with the beads as they are now.
    fn calls(&self, writer: &Writer<'_>) -> Result<HookCalls> {
        let none = HookCalls { root: self.root.clone(), timeout: Duration::ZERO, list: Vec::new() };
        let wanted = self.wanted(writer.recorded());
        if wanted.is_empty() {
            return Ok(none);
        }
        let timeout = match self.timeout(writer) {
            Ok(Some(timeout)) => timeout,
            Ok(None) => return Ok(none),
            // Broken settings are no reason to refuse work on beads.
            Err(error) => {
                log::append(&self.root, &format!("hooks are not run: {error}"));
                return Ok(none);
            }
        };
        let mut ids: Vec<BeadId> = Vec::new();
        for (id, ..) in &wanted {
            if ids.last() != Some(id) {
                ids.push(id.clone());
            }
        }
        let rows = writer.bead_rows(&ids)?;
        let rows: HashMap<&BeadId, &BeadRow> = rows.iter().map(|row| (&row.bead.id, row)).collect();
        let mut list = Vec::new();
        for (id, occasion, program) in wanted {
            // A bead that was deleted after it was changed has nothing to show.
            let Some(row) = rows.get(&id) else {
                continue;
            };
            let mut json = String::new();
            write_bead(&mut json, &listed(row), |_| {});
            let (program, event) = (program.to_owned(), occasion.word().to_owned());
            list.push(HookCall { program, bead: id.to_string(), event, json });
        }
        Ok(HookCalls { timeout, list, ..none })
    }

    /// The beads that hooks are told about, in the order in which they were first changed, each with
    /// the programs to run. A program is told about a bead once; of a new bead its changes are no news.
    fn wanted(&self, events: &[NewEvent]) -> Vec<(BeadId, HookEvent, &str)> {
        let mut occasions: Vec<(&BeadId, Vec<HookEvent>)> = Vec::new();
        let mut places = HashMap::new();
        for event in events {
            let (Some(bead), Some(occasion)) = (&event.bead, HookEvent::of(&event.kind())) else {
                continue;
            };
            let place = *places.entry(bead).or_insert_with(|| {
                occasions.push((bead, Vec::new()));
                occasions.len() - 1
            });
            let known = &mut occasions[place].1;
            let is_old = occasion == HookEvent::Update && known.contains(&HookEvent::Create);
            if !is_old && !known.contains(&occasion) {
                known.push(occasion);
            }
        }
        let mut wanted = Vec::new();
        for (bead, occasions) in occasions {
            for occasion in occasions {
                let program = self.programs.iter().find(|(known, _)| *known == occasion);
                wanted.extend(program.map(|(_, path)| (bead.clone(), occasion, path.as_str())));
            }
        }
        wanted
    }

    /// How long a hook may run; nothing if none is to run.
    fn timeout(&self, reader: &Reader<'_>) -> Result<Option<Duration>> {
        let layers = layers_in(&self.root, reader)?;
        if !layers.hooks_enabled()? {
            return Ok(None);
        }
        Ok(Some(layers.hooks_timeout()?))
    }
}

impl HookCalls {
    /// Adds the calls of another part of the same transaction; of two calls for the same hook and bead the later one
    /// has the newer bead.
    fn add(&mut self, more: Self) {
        for call in more.list {
            let same =
                |known: &&mut HookCall| known.program == call.program && known.bead == call.bead;
            match self.list.iter_mut().find(same) {
                Some(known) => known.json = call.json,
                None => self.list.push(call),
            }
        }
        self.timeout = self.timeout.max(more.timeout);
    }

    /// Starts the helper that runs the hooks. The commit stays: a helper that cannot start is only logged.
    fn launch(self, waits: bool) {
        if self.list.is_empty() {
            return;
        }
        if let Err(error) = self.start(waits) {
            log::append(&self.root, &format!("hooks are not run: {error}"));
        }
    }

    fn start(&self, waits: bool) -> Result<()> {
        let scratch = self.root.join(DIRECTORY);
        let failed = |source| OperationError::File {
            action: "use a temporary file in",
            path: scratch.clone(),
            source,
        };
        let mut file = nameless_file(&scratch).map_err(failed)?;
        let lines = self.list.iter().map(HookCall::line).collect::<Result<Vec<String>>>()?;
        file.write_all(lines.join("\n").as_bytes()).and_then(|()| file.rewind()).map_err(failed)?;
        let program = std::env::current_exe().map_err(|source| OperationError::File {
            action: "find",
            path: PathBuf::from("this program"),
            source,
        })?;
        // Hooks run in the root, where a path relative to another directory would be wrong.
        let root = std::path::absolute(&self.root).unwrap_or_else(|_| self.root.clone());
        let timeout = self.timeout.as_millis().to_string();
        let arguments = [HELPER.as_ref(), root.as_os_str(), OsStr::new(&timeout)];
        let start = if waits { run_apart } else { detach };
        Ok(start(&program, &arguments, file)?)
    }
}
