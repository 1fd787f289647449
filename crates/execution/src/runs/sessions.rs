//! The sessions of a run: one agent after the other, in the same tree and under the same lock.

use std::io::Write as _;
use std::path::Path;

use gt_core::decide::needs_fresh_session;
use gt_core::event::SessionBegun;
use gt_core::runtime::Runtime;
use gt_core::schedule::{Account, Run, StepProgress, WorkerPlace};
use gt_core::{Bead, EventPayload, Message, Rig};
use gt_executors::runs::{
    AgentEnd, RunFiles, RunLock, SessionEnd, Supervision, SupervisorAnswer, say,
};

use super::launch_spec::{LaunchSpec, launch_spec, wrap_agent};
use super::retry_while_unreachable::retry_while_unreachable;
use super::session_reports::SessionReports;
use super::spawner::with_causes;
use super::telemetry::RunTelemetry;
use crate::trees::ignore_files;
use gt_beads::messages::put_before_in;
use gt_beads::steps::progress_in;
use gt_scheduling::run_transitions::ClaimedRun;
use gt_scheduling::run_transitions::SESSION_SEPARATOR;
use gt_scheduling::runtimes;
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::tree_paths::Trees;
use gt_town::{Result, Town};

/// The progress of a run without steps.
const NO_STEPS: StepProgress = StepProgress { done: 0, total: 0 };

/// The data that the sessions of a run share.
pub(super) struct SessionInputs<'a> {
    pub(super) telemetry: &'a RunTelemetry,
    pub(super) reports: &'a SessionReports<'a>,
    pub(super) town: &'a Town,
    pub(super) rig: &'a Rig,
    pub(super) settings: &'a SchedulerSettings,
    pub(super) account: Option<&'a Account>,
    /// This program.
    pub(super) program: &'a Path,
    pub(super) files: &'a RunFiles,
    pub(super) lock: &'a RunLock,
}

/// The end of the sessions of a run.
pub(super) enum SessionsEnd {
    /// The last agent ended like this.
    Ended(AgentEnd, Box<Runtime>),
    /// The first agent could not be started, for this reason.
    NotStarted(String),
    /// An agent was to go on with the work of another, and could not be started, for this reason.
    NotContinued(String),
}

/// The step after a session.
enum AfterSession {
    /// Another one.
    Session(Box<ClaimedRun>),
    /// Nothing: the run ends like this.
    End(AgentEnd),
}

impl SessionInputs<'_> {
    /// Has agents work on a run until it is over.
    pub(super) fn work(
        &self,
        mut order: ClaimedRun,
        supervision: &mut Supervision,
    ) -> Result<SessionsEnd> {
        let mut session = 1;
        let asked = order.context.parameters.runtime.as_deref();
        let runtime = match runtimes::resolve(self.town, self.settings, &self.rig.slug, asked) {
            Ok(runtime) => Box::new(runtime),
            Err(error) => return Ok(SessionsEnd::NotStarted(with_causes(&error))),
        };
        loop {
            let step_by_step = order.context.parameters.ralph;
            let before = if step_by_step { self.progress(&order)? } else { NO_STEPS };
            let end = match self.session(&order, &runtime, session, supervision) {
                Ok(ended) => ended,
                Err(why) if session == 1 => return Ok(SessionsEnd::NotStarted(why)),
                Err(why) => return Ok(SessionsEnd::NotContinued(why)),
            };
            let why = match end {
                SessionEnd::HandedOver => "it was handed over",
                SessionEnd::Over(AgentEnd::Exited(0))
                    if self.continues_step_by_step(&order, before)? =>
                {
                    "a step is done, and others are left"
                }
                SessionEnd::Over(end) => return Ok(SessionsEnd::Ended(end, runtime)),
            };
            session += 1;
            match retry_while_unreachable(self.lock, || self.hand_over(&order, session, why))? {
                AfterSession::Session(next) => order = *next,
                AfterSession::End(end) => return Ok(SessionsEnd::Ended(end, runtime)),
            }
        }
    }

    /// One agent, from its start to its end.
    fn session(
        &self,
        order: &ClaimedRun,
        runtime: &Runtime,
        session: u32,
        supervision: &mut Supervision,
    ) -> std::result::Result<SessionEnd, String> {
        ignore_files(self.town, self.rig, &runtime.ignore).map_err(|error| with_causes(&error))?;
        let launch_spec = || {
            launch_spec(self.town, self.rig, order, runtime, self.account, self.program, session)
        };
        // The dispatcher waits for the first agent, so that failure is reported at once; later sessions can retry.
        let launched = if session == 1 {
            launch_spec()
        } else {
            retry_while_unreachable(self.lock, launch_spec)
        };
        let LaunchSpec { mut agent, told } = launched.map_err(|error| with_causes(&error))?;
        self.reports.begin_session(&agent.environment);
        let telemetry = self.telemetry.begin_session(session, runtime, &agent.environment);
        agent.environment.extend(telemetry);
        wrap_agent(self.town, self.rig, &order.run, &mut agent)
            .map_err(|error| with_causes(&error))?;
        let started = || {
            if session == 1 {
                say(&SupervisorAnswer::Started);
            }
            mark_told(self.town, &told);
        };
        let grace = self.settings.kill_grace;
        let end = supervision.stay_with(self.files, self.lock, &agent, grace, started);
        end.map_err(|error| with_causes(&error))
    }

    fn progress(&self, order: &ClaimedRun) -> Result<StepProgress> {
        let progress = retry_while_unreachable(self.lock, || {
            self.town.read(|reader| progress_in(reader, &order.run))
        })?;
        Ok(progress.unwrap_or(NO_STEPS))
    }

    /// Whether a fresh session goes on without a handoff.
    fn continues_step_by_step(&self, order: &ClaimedRun, before: StepProgress) -> Result<bool> {
        let step_by_step = order.context.parameters.ralph;
        Ok(step_by_step && needs_fresh_session(step_by_step, before, self.progress(order)?))
    }

    /// An agent that was ended in the middle of something may have left the index of its tree locked, and the next one
    /// could commit nothing. If it cannot be freed, git says so.
    fn free_index(&self, order: &ClaimedRun) {
        let name = order.run.place.as_ref().and_then(WorkerPlace::polecat_name);
        if let (Some(trees), Some(name)) = (Trees::of(self.town, self.rig), name) {
            let _ = trees.tree(name).free_index();
        }
    }

    /// Makes sure that the run still goes on, and records its next session.
    fn hand_over(&self, order: &ClaimedRun, session: u32, why: &str) -> Result<AfterSession> {
        let id = &order.run.id;
        let head = head_of(self.town, self.rig, &order.run);
        let sequel = self.town.write(|writer| {
            let run = writer.run(id)?.filter(|run| run.state.is_live() && run.ended_by.is_empty());
            let bead: Option<Bead> = writer.bead(&id.bead)?;
            let (Some(run), Some(bead)) = (run, bead) else {
                return Ok(AfterSession::End(AgentEnd::Cancelled));
            };
            if run.over_limit.is_some() {
                // It was asked to hand over to the next run, not to a fresh session.
                return Ok(AfterSession::End(AgentEnd::Cancelled));
            }
            let begun = SessionBegun { session, why: why.to_owned(), head: head.clone() };
            writer.record_run(&run, EventPayload::HandedOver(begun));
            let (context, token) = (order.context.clone(), order.token.clone());
            Ok(AfterSession::Session(Box::new(ClaimedRun { run, bead, context, token })))
        })?;
        if matches!(sequel, AfterSession::Session(_)) {
            self.free_index(order);
            let line = format!(
                "{SESSION_SEPARATOR}{session} of {id} begins at {}: {why}\n",
                self.town.now()
            );
            let log = gt_executors::private::options()
                .append(true)
                .create(true)
                .open(self.files.output_path());
            // A log that cannot be written does not stop the run.
            let _ = log.and_then(|mut log| log.write_all(line.as_bytes()));
        }
        Ok(sequel)
    }
}

/// The commit in the tree of a run; empty if it has none, or git cannot say.
pub(crate) fn head_of(town: &Town, rig: &Rig, run: &Run) -> String {
    let name = run.place.as_ref().and_then(WorkerPlace::polecat_name);
    let (Some(trees), Some(name)) = (Trees::of(town, rig), name) else { return String::new() };
    let head = trees.tree(name).head().ok().flatten();
    head.map(|head| head.to_string()).unwrap_or_default()
}

/// Marks the messages of a prompt as delivered, so that they are not typed into the session as well.
pub(super) fn mark_told(town: &Town, told: &[Message]) {
    if told.iter().any(|message| message.delivered_at.is_none()) {
        // A failure here does not stop the agent.
        let _ = town.write(|writer| put_before_in(writer, told));
    }
}
