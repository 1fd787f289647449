//! Runs on another machine: what home does for them. How the two talk is in [`gt_executors::ssh`].

mod over_there;
pub(super) mod reach;
mod site;

pub use over_there::{attend_line, called_from, keep_run};
pub(crate) use site::{check_host, check_rig};

use std::path::{Path, PathBuf};

use gt_core::Rig;
use gt_core::decide::home_call;
use gt_core::runtime::Runtime;
use gt_core::schedule::{Context, Loss, Run, RunEnd, RunId, RunState, Workplace};
use gt_executors::runs::{RunFiles, RunLock, say};
use gt_executors::ssh::{
    self, Begun, Caller, Line, Outcome, Posting, Ready, RemoteOrder, RunPlace, Stay,
};

use super::claim::{Claim, WorkOrder, claim};
use super::conclude::conclude;
use super::finish::{exec_failed, finish};
use super::spawner::with_causes;
use super::supervise::{BUSY, STARTED, insist, say_failed};
use super::workbench::{Ground, Workbench, environment_of, lay_out};
use crate::{OperationError, Result, Town, runtimes};

/// A run, and everything that says how it is carried out.
pub(super) struct Assignment<'a> {
    pub(super) town: &'a Town,
    pub(super) rig: Rig,
    pub(super) run: Run,
    pub(super) context: Context,
    /// Our own program.
    pub(super) program: &'a Path,
}

/// Carries out a run on another machine from its claim to its end, or stays with one that goes on there.
pub(super) fn carry_out(it: &Assignment<'_>, files: &RunFiles, lock: &RunLock) -> Result<()> {
    match it.run.state {
        RunState::Starting => start(it, files, lock),
        RunState::Running | RunState::Blocked => rejoin(it, files, lock),
        RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => {
            say_failed(&format!("{} is {}", it.run.id, it.run.state.as_str()));
            Ok(())
        }
    }
}

fn start(it: &Assignment<'_>, files: &RunFiles, lock: &RunLock) -> Result<()> {
    let mut posting = match posting_of(it) {
        Ok(posting) => posting,
        Err(error) => {
            say_failed(&with_causes(&error));
            return Ok(());
        }
    };
    let (line, ready) = match ssh::begin(&posting, files) {
        Ok(Begun::Ready(line, ready)) => (line, ready),
        Ok(Begun::Busy(why)) => {
            say(&format!("{BUSY}{why}"));
            return Ok(());
        }
        Ok(Begun::Refused(why)) => {
            say_failed(&why);
            return Ok(());
        }
        Err(error) => {
            say_failed(&error.to_string());
            return Ok(());
        }
    };
    posting.boot.clone_from(&ready.boot);
    // Before the run is taken: whoever comes after us must find it.
    posting.write(files).map_err(|source| failed_with(files, source))?;
    let order = match claim(it.town, &it.run.id, &Workplace::default())? {
        Claim::Granted(order) => order,
        Claim::Refused(why) => {
            say_failed(&why);
            return Ok(());
        }
    };
    match give_order(it, &order, &line, &ready) {
        // A line that broke may have brought it there; that is found out with the next.
        Ok(runtime) => stay(it, files, lock, &posting, Some(line), &runtime),
        Err(error) => give_back(it.town, &it.run.id, &with_causes(&error)),
    }
}

/// Says what is to be done. Fails only as long as nothing can have been begun.
fn give_order(
    it: &Assignment<'_>,
    order: &WorkOrder,
    line: &Line,
    ready: &Ready,
) -> Result<Runtime> {
    let ground =
        Ground::There { program: Path::new(&ready.gt), prompt_file: Path::new(&ready.prompt_file) };
    let Workbench { agent, runtime, prompt_file } = lay_out(it.town, &it.rig, order, &ground)?;
    let mut environment = agent.environment;
    // It is not there: what is to be asked of the town is asked through the line.
    environment.retain(|(name, _)| name != "GT_TOWN_ROOT");
    let terminal = agent.terminal.is_some();
    let order = RemoteOrder { argv: agent.argv, environment, terminal, prompt_file };
    let _ = ssh::order(line, order, &agent.prompt);
    Ok(runtime)
}

fn rejoin(it: &Assignment<'_>, files: &RunFiles, lock: &RunLock) -> Result<()> {
    let posting = Posting::read(files).map_err(|source| failed_with(files, source))?;
    let Some(posting) = posting else {
        say_failed(&format!("nobody knows on which machine {} is", it.run.id));
        return Ok(());
    };
    let runtime = runtimes::resolve(it.town, &it.rig, it.context.parameters.runtime.as_deref())?;
    stay(it, files, lock, &posting, None, &runtime)
}

fn stay(
    it: &Assignment<'_>,
    files: &RunFiles,
    lock: &RunLock,
    posting: &Posting,
    line: Option<Box<Line>>,
    runtime: &Runtime,
) -> Result<()> {
    let (town, id) = (it.town, &it.run.id);
    let caller = Caller {
        program: it.program.to_owned(),
        directory: town.root().join(&it.rig.path),
        environment: environment_of(town, &it.run, &it.context, it.program)?,
        translate: |program, arguments| {
            home_call(program, arguments).map_err(|error| error.to_string())
        },
    };
    // If the store cannot say, the run is not given up.
    let is_wanted = || {
        let run = town.read(|reader| Ok(reader.run(id)?));
        run.map_or(true, |run| run.is_some_and(|run| run.state.is_live()))
    };
    let is_cancelled = !it.run.ended_by.is_empty();
    let stay = Stay { files, posting, caller: &caller, is_wanted: &is_wanted, is_cancelled };
    let mut is_said = false;
    let outcome = stay.to_the_end(line, &mut || {
        if !std::mem::replace(&mut is_said, true) {
            say(STARTED);
        }
    });
    match outcome.map_err(|source| failed_with(files, source))? {
        Outcome::Ended(end) => {
            lock.keep_end(end);
            insist(|| conclude(town, &it.rig, &it.run, &it.context, runtime, end))?;
        }
        Outcome::NotStarted(why) => give_back(town, id, &why)?,
        Outcome::Vanished { rebooted } => {
            let host = &posting.site.host;
            let (why, loss) = if rebooted {
                (format!("{host}, on which it ran, went down"), Loss::Host)
            } else {
                let why =
                    format!("none of its processes is left on {host}, and none said how it ended");
                (why, Loss::Agent)
            };
            let end = RunEnd { loss, ..RunEnd::without_status(RunState::Lost, why) };
            insist(|| finish(town, id, &end))?;
        }
        Outcome::Abandoned => return Ok(()),
    }
    let over = Posting { is_over: true, ..posting.clone() };
    over.write(files).map_err(|source| failed_with(files, source))
}

/// Takes back a run that was taken and could not be begun.
fn give_back(town: &Town, id: &RunId, why: &str) -> Result<()> {
    insist(|| exec_failed(town, id, why))?;
    say_failed(why);
    Ok(())
}

/// Where a run is to go.
fn posting_of(it: &Assignment<'_>) -> Result<Posting> {
    let site = site::site_of(it.town, &it.rig)?;
    let id = &it.run.id;
    let earlier = |epoch| RunId { bead: id.bead.clone(), epoch }.to_string();
    let grace = it.town.scheduler_settings()?.kill_grace;
    let place = RunPlace {
        directory: site.directory,
        town: it.town.id().to_owned(),
        run: id.to_string(),
        earlier: (1..id.epoch).rev().take(EARLIER_MAX).map(earlier).collect(),
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
    };
    Ok(Posting { site: site.machine, place, boot: None, is_over: false })
}

/// How many runs of a bead before this one are looked for over there.
const EARLIER_MAX: usize = 100;

fn failed_with(files: &RunFiles, source: std::io::Error) -> OperationError {
    let path: PathBuf = files.posting_path();
    OperationError::File { action: "keep what belongs to", path, source }
}
