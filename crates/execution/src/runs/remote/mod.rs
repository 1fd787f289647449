//! Runs on another machine: the part of home. The protocol is in [`gt_executors::ssh`].

mod remote_side;
mod site;

pub use remote_side::{attend_line, keep_run};

use std::path::Path;
use std::sync::{Arc, mpsc};

use gt_core::runtime::Runtime;
use gt_core::schedule::{RunEnd, RunId, RunLoss, RunState, Workplace};
use gt_core::work::RunToken;
use gt_executors::calls::{CallRunner, SOCKETS, TOKEN_FILE};
use gt_executors::runs::{RunFiles, RunLock, SupervisorAnswer, say};
use gt_executors::ssh::{
    self, HomeCommands, RemoteOrder, RemoteReady, RemoteRun, RemoteRunOutcome, RemoteRunRecord,
    RemoteRunReply, RunPlace, SshConnection,
};

use super::conclude::conclude;
use super::launch_spec::{LaunchHost, LaunchSpec, environment_of, launch_spec, wrap_agent};
use super::limits::LimitWatch;
use super::retry_while_unreachable::retry_while_unreachable;
use super::sessions::mark_told;
use super::spawner::with_causes;
use super::supervise::{ClaimInputs, end_without_town, say_failed};
use gt_scheduling::run_transitions::{Claim, ClaimedRun, claim, renew_token};
use gt_scheduling::run_transitions::{exec_failed, finish};
use gt_scheduling::runtimes;
use gt_town::{OperationError, Result, Town};

/// A supervisor at home that has the lock of its run.
pub(super) struct HomeSupervisor<'a> {
    pub(super) town: &'a Town,
    /// Our own program.
    pub(super) program: &'a Path,
    pub(super) files: &'a RunFiles,
    pub(super) lock: &'a RunLock,
    /// Carries out the commands of its worker.
    pub(super) runner: &'a Arc<dyn CallRunner>,
}

/// Carries out a run on another machine from its claim to its end, or stays with one that goes on there.
pub(super) fn carry_out(home: &HomeSupervisor<'_>, it: &ClaimInputs) -> Result<()> {
    match it.run.state {
        RunState::Starting => home.start(it),
        RunState::Running | RunState::Blocked => home.rejoin(it),
        RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => {
            say_failed(&format!("{} is {}", it.run.id, it.run.state.as_str()));
            Ok(())
        }
    }
}

/// How many runs of a bead before this one are looked for over there.
const EARLIER_MAX: usize = 100;

impl HomeSupervisor<'_> {
    fn start(&self, it: &ClaimInputs) -> Result<()> {
        let mut posting = match self.posting_of(it) {
            Ok(posting) => posting,
            Err(error) => {
                say_failed(&with_causes(&error));
                return Ok(());
            }
        };
        let (line, ready) = match ssh::begin(&posting, self.files) {
            Ok(RemoteRunReply::Ready(line, ready)) => (line, ready),
            Ok(RemoteRunReply::Busy(why)) => {
                say(&SupervisorAnswer::Busy(why));
                return Ok(());
            }
            Ok(RemoteRunReply::Refused(why)) => {
                say_failed(&why);
                return Ok(());
            }
            Err(error) => {
                say_failed(&error.to_string());
                return Ok(());
            }
        };
        posting.boot.clone_from(&ready.boot);
        // Before the run is claimed: a later supervisor must find it.
        posting.write(self.files).map_err(|source| self.failed(source))?;
        let order = match claim(self.town, &it.run.id, &Workplace::default())? {
            Claim::Granted(order) => order,
            Claim::Refused(why) => {
                say_failed(&why);
                return Ok(());
            }
        };
        match self.give_order(it, &order, &line, &ready) {
            Ok(runtime) => self.stay(it, &posting, Some(line), &runtime, &order.token),
            Err(error) => self.give_back(&it.run.id, &with_causes(&error)),
        }
    }

    /// Sends the order. Fails only as long as nothing can have been started.
    fn give_order(
        &self,
        it: &ClaimInputs,
        order: &ClaimedRun,
        line: &SshConnection,
        ready: &RemoteReady,
    ) -> Result<Runtime> {
        let (program, prompt_file) = (Path::new(&ready.gt), Path::new(&ready.prompt_file));
        let ground = LaunchHost::There { program, prompt_file };
        let (runtime, account) = (self.runtime_of(it)?, it.account.as_ref());
        let LaunchSpec { mut agent, told, prompt_file } =
            launch_spec(self.town, &it.rig, order, &runtime, account, &ground, 1)?;
        // The town is not there: calls to it go through the line. No secret leaves home: the line proves whose calls
        // they are, and home adds the token to them.
        let is_of_home = |name: &str| ["GT_TOWN_ROOT", SOCKETS, TOKEN_FILE].contains(&name);
        agent.environment.retain(|(name, _)| !is_of_home(name));
        wrap_agent(self.town, &it.rig, &order.run, &mut agent, false)?;
        let terminal = agent.terminal.is_some();
        let (argv, environment) = (agent.argv, agent.environment);
        let order = RemoteOrder { argv, environment, terminal, prompt_file };
        // A line that broke may have brought it there; that is found out with the next.
        let _ = ssh::order(line, order, &agent.prompt);
        mark_told(self.town, &told);
        Ok(runtime)
    }

    fn runtime_of(&self, it: &ClaimInputs) -> Result<Runtime> {
        let asked = it.context.parameters.runtime.as_deref();
        runtimes::resolve(self.town, &it.settings, &it.rig.slug, asked)
    }

    fn rejoin(&self, it: &ClaimInputs) -> Result<()> {
        let posting = RemoteRunRecord::read(self.files).map_err(|source| self.failed(source))?;
        let Some(posting) = posting else {
            say_failed(&format!("no record says on which machine {} runs", it.run.id));
            return Ok(());
        };
        let runtime = self.runtime_of(it)?;
        let token = retry_while_unreachable(self.lock, || renew_token(self.town, &it.run.id))?;
        self.stay(it, &posting, None, &runtime, &token)
    }

    fn stay(
        &self,
        it: &ClaimInputs,
        posting: &RemoteRunRecord,
        line: Option<Box<SshConnection>>,
        runtime: &Runtime,
        token: &RunToken,
    ) -> Result<()> {
        let (town, id) = (self.town, &it.run.id);
        let caller = HomeCommands {
            runner: Arc::clone(self.runner),
            token: token.reveal(),
            directory: town.root().join(&it.rig.path).display().to_string(),
            variables: environment_of(town, &it.run, &it.context, self.program)?,
        };
        // If the store cannot say, the run is not given up.
        let is_wanted = || {
            let run = town.read(|reader| Ok(reader.run(id)?));
            run.map_or(true, |run| run.is_some_and(|run| run.state.is_live()))
        };
        let stay = RemoteRun {
            files: self.files,
            lock: self.lock,
            posting,
            caller: &caller,
            is_wanted: &is_wanted,
            is_cancelled: !it.run.ended_by.is_empty(),
        };
        let mut is_said = false;
        let outcome = std::thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let watch = LimitWatch::begin(town, &it.run, self.files, &it.settings, None);
            // Its agent sends nothing home: only its time is known.
            scope.spawn(move || {
                watch.watch_until(&end, None);
            });
            let outcome = stay.to_the_end(line, &mut || {
                if !std::mem::replace(&mut is_said, true) {
                    say(&SupervisorAnswer::Started);
                }
            });
            drop(ended);
            outcome
        });
        let outcome = outcome.map_err(|source| self.failed(source))?;
        if self.lock.is_removed() {
            end_without_town(town, id);
            return Ok(());
        }
        match outcome {
            RemoteRunOutcome::Ended(end) => {
                self.lock.keep_end(end);
                retry_while_unreachable(self.lock, || {
                    conclude(town, &it.rig, &it.run, &it.context, runtime, (end, RunLoss::Agent))
                })?;
            }
            RemoteRunOutcome::NotStarted(why) => self.give_back(id, &why)?,
            RemoteRunOutcome::Vanished { rebooted } => {
                let end = vanished(&posting.site.host, rebooted);
                retry_while_unreachable(self.lock, || finish(town, id, &end))?;
            }
            RemoteRunOutcome::Abandoned => return Ok(()),
        }
        let over = RemoteRunRecord { is_over: true, ..posting.clone() };
        over.write(self.files).map_err(|source| self.failed(source))
    }

    /// Takes back a run that was claimed and could not be started.
    fn give_back(&self, id: &RunId, why: &str) -> Result<()> {
        retry_while_unreachable(self.lock, || exec_failed(self.town, id, why))?;
        say_failed(why);
        Ok(())
    }

    /// Where a run is to go.
    fn posting_of(&self, it: &ClaimInputs) -> Result<RemoteRunRecord> {
        let site = site::site_of(self.town, &it.rig)?;
        let id = &it.run.id;
        let earlier = |epoch| RunId { bead: id.bead.clone(), epoch }.to_string();
        let place = RunPlace {
            directory: site.directory,
            town: self.town.id().to_owned(),
            run: id.to_string(),
            earlier: (1..id.epoch).rev().take(EARLIER_MAX).map(earlier).collect(),
            grace_ms: u64::try_from(it.settings.kill_grace.as_millis()).unwrap_or(u64::MAX),
        };
        Ok(RemoteRunRecord { site: site.machine, place, boot: None, is_over: false })
    }

    fn failed(&self, source: std::io::Error) -> OperationError {
        let path = self.files.posting_path();
        OperationError::File { action: "keep what belongs to", path, source }
    }
}

/// The end of a run of which no process is left, and whose end no supervisor saw.
fn vanished(host: &str, rebooted: bool) -> RunEnd {
    let (why, loss) = if rebooted {
        (format!("{host}, on which it ran, went down"), RunLoss::Host)
    } else {
        let why = format!("none of its processes is left on {host}, and none said how it ended");
        (why, RunLoss::Agent)
    };
    RunEnd { loss, ..RunEnd::without_status(RunState::Lost, why) }
}
