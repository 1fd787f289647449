//! The limits of a live run: its supervisor asks the worker to hand over, and then ends the run.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use gt_core::decide::{LimitStep, LimitUse, RunLimits, RunProgress, limit_step};
use gt_core::message::{MessageBody, MessageKind, NewMessage};
use gt_core::schedule::{Run, RunLimit, Usage};
use gt_core::{Message, MessageAddress, Sender};
use gt_executors::runs::{AskResult, RunFiles, ask_to_cancel};

use super::message_delivery::deliver;
use super::service_limit::ServiceLimitWatch;
use super::session_reports::SessionReports;
use super::telemetry::RunTelemetry;
use super::usage::book_live_usage;
use gt_scheduling::usage_windows::note_windows;
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::{Result, Town};

/// How often the usage of a live run is recorded, if it has grown.
const LIVE_USAGE_INTERVAL: Duration = Duration::from_secs(2);
/// The same if a limit depends on it. An agent begins its next model call at once.
const LIMITED_USAGE_INTERVAL: Duration = Duration::from_millis(250);

/// Watches over the usage and the limits of one run.
pub(super) struct LimitWatch<'a> {
    town: &'a Town,
    run: &'a Run,
    files: &'a RunFiles,
    limits: RunLimits,
    /// By the clock that cannot be set. The time for which the machine sleeps does not count.
    began: Instant,
    /// The age of the run when the watch began.
    age: Duration,
    usage: Usage,
    asked: Option<RunProgress>,
    service: ServiceLimitWatch,
    reports: &'a SessionReports<'a>,
    /// When the reports of the sessions were read last.
    reported: Instant,
}

impl<'a> LimitWatch<'a> {
    /// Begins to watch over a run that has been claimed.
    pub(super) fn begin(
        town: &'a Town,
        run: &'a Run,
        files: &'a RunFiles,
        settings: &SchedulerSettings,
        reports: &'a SessionReports<'a>,
    ) -> Self {
        Self {
            town,
            run,
            files,
            limits: *settings.run_limits_in(&run.rig),
            began: Instant::now(),
            age: run.running_at.map(|at| town.now().since(at)).unwrap_or_default(),
            usage: run.usage,
            asked: None,
            service: ServiceLimitWatch::of(town, run, settings.limit_patience),
            reports,
            reported: Instant::now(),
        }
    }

    /// Records the usage that the agents of the run send, if they send any, and applies the limits of the run until it is
    /// over. Says whether the agent was ended because it waited for the end of a usage limit.
    pub(super) fn watch_until(mut self, end: &Receiver<()>, telemetry: &RunTelemetry) -> bool {
        let mut is_limited = false;
        let mut booked = Vec::new();
        let (mut in_files, mut windows) = (Vec::new(), Vec::new());
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(self.interval()) {
            if self.reported.elapsed() >= LIVE_USAGE_INTERVAL {
                self.reported = Instant::now();
                let (records, told) = self.reports.look();
                in_files = records;
                if told != windows && note_windows(self.town, self.run, &told).is_ok() {
                    windows = told;
                }
            }
            let mut records = telemetry.records();
            records.extend(in_files.iter().cloned());
            // A limit that cannot be recorded now is tried again: the counters contain it.
            if records != booked
                && let Ok(usage) = book_live_usage(self.town, self.run, &records)
            {
                self.usage = usage;
                booked = records;
            }
            // A store that does not answer is asked again.
            let _ = self.apply();
            if self.asked.is_none() && self.service.is_over(self.town, self.run) {
                is_limited |= matches!(ask_to_cancel(self.files), Ok(AskResult::Told));
            }
        }
        is_limited
    }

    fn interval(&self) -> Duration {
        let usage =
            if self.limits.limit_usage() { LIMITED_USAGE_INTERVAL } else { LIVE_USAGE_INTERVAL };
        let time_left = match (&self.asked, self.limits.time) {
            (Some(asked), _) => Some(asked.alive + self.limits.handoff_time),
            (None, time) => time,
        };
        let time_left = time_left.map(|time| time.saturating_sub(self.alive()));
        // Not in a busy loop if the store does not answer.
        time_left.map_or(usage, |left| left.clamp(LIMITED_USAGE_INTERVAL, usage))
    }

    fn alive(&self) -> Duration {
        self.age + self.began.elapsed()
    }

    fn progress(&self) -> RunProgress {
        RunProgress {
            alive: self.alive(),
            tokens: self.usage.tokens.unwrap_or(0),
            cost: self.usage.cost.unwrap_or_default(),
        }
    }

    fn apply(&mut self) -> Result<()> {
        let progress = self.progress();
        match limit_step(&self.limits, &progress, self.asked.as_ref()) {
            LimitStep::GoOn => Ok(()),
            LimitStep::AskToHandOver(_) => {
                // A person may have raised the limit since the run began.
                self.limits = *self.town.scheduler_settings()?.run_limits_in(&self.run.rig);
                let step = limit_step(&self.limits, &progress, None);
                if let LimitStep::AskToHandOver(limit) = step {
                    self.ask(limit, &progress)?;
                    self.asked = Some(progress);
                }
                Ok(())
            }
            LimitStep::End => {
                // A run that cannot be reached has just ended.
                let _ = ask_to_cancel(self.files);
                Ok(())
            }
        }
    }

    /// Writes down that the run is over a limit, and asks its worker to hand over.
    fn ask(&self, limit: RunLimit, progress: &RunProgress) -> Result<()> {
        let used = LimitUse { limit, limits: &self.limits, progress };
        let body = MessageBody::parse(&format!(
            "Your run {used} ({}) and ends soon. Commit what you have; then gt done if the work is done, else gt handoff \
             -m \"…\" with what the next worker must know.",
            limit.setting()
        ))?;
        let message: Option<Message> = self.town.write(|writer| {
            if !writer.mark_over_limit(self.run, limit)? {
                return Ok(None);
            }
            let bead = &self.run.id.bead;
            Ok(Some(writer.send_message(NewMessage {
                kind: MessageKind::Nudge,
                from: Sender::Standing(MessageAddress::Deacon),
                to: MessageAddress::Work(bead.clone()),
                subject: None,
                body: body.clone(),
                bead: Some(bead.clone()),
                topic: None,
                reply_to: None,
            })?))
        })?;
        // A message that cannot be typed waits until the worker looks.
        let _ = message.map(|message| deliver(self.town, &message)).transpose();
        Ok(())
    }
}
