//! The thread that hears everything: the bell, signals, the ends of workers, and the time.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gt_core::latency::{Latencies, Trigger};
use gt_core::time::format_duration;
use gt_core::{Event, EventKind, Json};
use gt_executors::daemon::{ClockWatch, DaemonLock, DoorBell, Jump, Keeper, Signals, wait_for_any};
use gt_store::EventFilter;

use super::concerns::concerned;
use super::duties::Duty;
use super::journal::Level;
use super::lock_path;
use super::office::Office;
use super::report::{LatencyReport, Report};
use super::rounds::number;
use super::run::DaemonSettings;
use super::watch::{Ended, take_ended, unexpected, watch_all, watch_news};
use crate::Result;
use crate::error::with_causes;
use crate::events::Follower;

/// How often the number of the last event is looked at, whether anybody has rung or not.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often it is written down how the daemon is, if nothing has changed.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// How long nothing must have happened for a find to be one that nobody told of.
const QUIET: Duration = Duration::from_secs(1);
/// Whoever is at starts or at what died for longer than this is stuck. A start may take long by itself.
const STUCK_AFTER: Duration = Duration::from_mins(15);
/// How long whoever is at something has to end when the daemon stops.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How long apart one looks whether they have.
const STOP_PAUSE: Duration = Duration::from_millis(100);

/// How long supervisors are kept that have nothing to do.
const IDLE_SUPERVISORS: Duration = Duration::from_mins(1);
/// How long after the end of a worker one looks again: somebody may have been in its tree the first time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The thread that hears everything.
pub(super) struct Heart {
    office: Arc<Office>,
    lock: DaemonLock,
    bell: Option<DoorBell>,
    signals: Signals,
    keeper: Keeper,
    /// How often whoever keeps us running wants to hear that all is well.
    watchdog: Option<Duration>,
    settings: DaemonSettings,
    report: Report,
    news: Follower,
    latencies: Latencies,
    clocks: ClockWatch,
    last_news: Instant,
    next_look: Instant,
    next_scan: Instant,
    /// When it was written down last how the daemon is, and whether that has changed since.
    reported: Instant,
    changed: bool,
    /// Somebody rang and nothing had happened: a notice may wait.
    rang_for_nothing: bool,
    next_watchdog: Instant,
    /// Why the store cannot be read, while it cannot.
    away: Option<String>,
    /// Recovery has looked at everything once, so that starts may begin.
    recovered: bool,
}

/// What a heart begins with.
pub(super) struct Beginnings {
    pub(super) lock: DaemonLock,
    pub(super) bell: Option<DoorBell>,
    pub(super) signals: Signals,
    pub(super) keeper: Keeper,
    pub(super) watchdog: Option<Duration>,
    pub(super) settings: DaemonSettings,
    pub(super) report: Report,
}

impl Heart {
    pub(super) fn new(office: Arc<Office>, with: Beginnings) -> Result<Self> {
        // What happens from here on is news, even if the first look sees it already.
        let news = Follower::from_now(&office.town, EventFilter::default())?;
        let now = Instant::now();
        Ok(Self {
            clocks: ClockWatch::new(office.now()),
            office,
            lock: with.lock,
            bell: with.bell,
            signals: with.signals,
            keeper: with.keeper,
            watchdog: with.watchdog,
            settings: with.settings,
            report: Report { last_event: news.reached(), ..with.report },
            news,
            latencies: Latencies::default(),
            last_news: now,
            next_look: now + LOOK_EVERY,
            next_scan: now + with.settings.scan_every,
            reported: now,
            changed: true,
            rang_for_nothing: false,
            next_watchdog: now,
            away: None,
            recovered: false,
        })
    }

    /// Beats until somebody asks it to stop, and then until nobody is at anything. `on_ready` is told when everything was
    /// looked at once.
    pub(super) fn beat(&mut self, on_ready: &mut dyn FnMut(&Report)) -> Result<()> {
        self.report.adopted = watch_all(&self.office)?;
        // Nothing starts before everything that is alive is known.
        for duty in Duty::ALL.into_iter().filter(|duty| *duty != Duty::Dispatch) {
            self.office.wake(duty).ring();
        }
        while !self.signals.stop() && self.has_town() {
            self.wait();
            self.hear();
            self.look_at_clock();
            self.begin_when_recovered(on_ready);
            self.say_how_it_is();
        }
        self.stop();
        Ok(())
    }

    /// Whether the town is still there. Whoever has removed it, or put another in its place, has no use for this daemon.
    fn has_town(&self) -> bool {
        let has_town = self.lock.is_in_place(&lock_path(self.office.town.root()));
        if !has_town {
            self.office.tell(Level::Error, "town gone", &[]);
        }
        has_town
    }

    fn wait(&self) {
        let mut sources = vec![self.signals.as_fd(), self.office.heart().as_fd()];
        sources.extend(self.bell.as_ref().map(|bell| bell.as_fd()));
        let next = self.next_look.min(self.next_scan);
        let next = self.watchdog.map_or(next, |_| next.min(self.next_watchdog));
        wait_for_any(&sources, next.saturating_duration_since(Instant::now()));
    }

    /// Hears whatever there is to be heard.
    fn hear(&mut self) {
        self.changed |= self.office.heart().take();
        if self.signals.take_hangup() {
            self.office.journal.reopen();
            self.office.tell(Level::Info, "log reopened", &[]);
            self.scan();
        }
        self.hear_of_ends();
        let rung = self.bell.as_ref().is_some_and(DoorBell::was_rung);
        let rung = self.office.was_rung() || rung;
        let is_time = Instant::now() >= self.next_look;
        if is_time {
            self.next_look = Instant::now() + LOOK_EVERY;
            if std::mem::take(&mut self.rang_for_nothing) {
                self.office.wake(Duty::Outbox).ring();
            }
        }
        if rung || is_time {
            let before = self.report.last_event;
            match self.hear_news() {
                Ok(()) => {
                    self.rang_for_nothing |= rung && self.report.last_event == before;
                    self.is_back();
                }
                Err(error) => self.is_away(&with_causes(&error)),
            }
        }
    }

    fn hear_of_ends(&mut self) {
        let ended = take_ended(&self.office);
        if ended.is_empty() {
            return;
        }
        // A store that cannot say is asked again by whoever looks.
        let unexpected = unexpected(&self.office, ended.clone()).unwrap_or(ended);
        for one in &unexpected {
            if let Ended::Run(run) = one {
                let bead = ("bead", Json::string(run.bead.as_str()));
                let more = [bead, ("run", Json::string(&run.to_string()))];
                self.office.tell(Level::Warning, "cut off", &more);
            }
        }
        if !unexpected.is_empty() {
            self.last_news = Instant::now();
            self.office.wake(Duty::Liveness).ring();
            self.office.wake(Duty::Liveness).wake_at(Instant::now() + LOOK_AGAIN);
            self.office.wake(Duty::Landing).ring();
        }
    }

    fn hear_news(&mut self) -> Result<()> {
        loop {
            let events = self.news.next(&self.office.town)?;
            if events.is_empty() {
                return Ok(());
            }
            self.last_news = Instant::now();
            self.changed = true;
            let mut concerns = [false; Duty::ALL.len()];
            for event in &events {
                for duty in concerned(&event.kind) {
                    concerns[*duty as usize] = true;
                }
                if event.kind == EventKind::SettingChanged {
                    self.read_settings();
                }
            }
            for duty in Duty::ALL.into_iter().filter(|duty| concerns[*duty as usize]) {
                // Starts begin when everything that is alive is known.
                if duty != Duty::Dispatch || self.recovered {
                    self.office.wake(duty).ring_after(duty.delay());
                }
            }
            for event in &events {
                self.tell(event);
            }
            watch_news(&self.office, &events)?;
            self.report.last_event = self.news.reached();
        }
    }

    /// Writes down how runs begin and end.
    fn tell(&mut self, event: &Event) {
        let latency = self.latencies.see(event);
        let what = match event.kind {
            EventKind::Dispatched => "started",
            EventKind::RunDone => "done",
            EventKind::RunFailed => "failed run",
            EventKind::RunLost => "lost run",
            EventKind::RunCancelled => "cancelled",
            _ => return,
        };
        let mut more = Vec::new();
        more.extend(event.bead.as_ref().map(|bead| ("bead", Json::string(bead.as_str()))));
        more.extend(event.run.as_ref().map(|run| ("run", Json::string(run))));
        if let Some(latency) = latency {
            let name = match latency.trigger {
                Trigger::Close => "after_close_ms",
                Trigger::End => "after_end_ms",
            };
            let milliseconds = u64::try_from(latency.time.as_millis()).unwrap_or(u64::MAX);
            more.push((name, number(milliseconds)));
        }
        self.office.tell(Level::Info, what, &more);
    }

    fn is_away(&mut self, why: &str) {
        if self.away.as_deref() != Some(why) {
            self.office.tell(Level::Error, "store away", &[("error", Json::string(why))]);
            self.away = Some(why.to_owned());
        }
    }

    fn is_back(&mut self) {
        if self.away.take().is_some() {
            self.office.tell(Level::Info, "store back", &[]);
            self.scan();
        }
    }

    fn look_at_clock(&mut self) {
        let now = self.office.now();
        if let Some(jump) = self.clocks.look(now) {
            let (what, time) = match jump {
                Jump::Slept(time) => ("woke", time),
                Jump::Forward(time) => ("clock set forward", time),
                Jump::Back(time) => ("clock set back", time),
            };
            let more = [("time", Json::string(&format_duration(time)))];
            self.office.tell(Level::Warning, what, &more);
            self.report.clock_jumps += 1;
            self.scan();
        }
        if Instant::now() >= self.next_scan {
            self.scan();
        }
    }

    /// Has everybody look at everything.
    fn scan(&mut self) {
        self.read_settings();
        self.next_scan = Instant::now() + self.settings.scan_every;
        let unprompted = self.last_news.elapsed() >= QUIET && self.office.is_quiet();
        // Whoever is alive and not watched is watched from now on.
        if let Err(error) = watch_all(&self.office) {
            self.is_away(&with_causes(&error));
        }
        self.office.spawner.dismiss_idle(IDLE_SUPERVISORS);
        self.report.scans += 1;
        for duty in Duty::ALL.into_iter().filter(|duty| self.recovered || *duty != Duty::Dispatch) {
            self.office.wake(duty).scan(unprompted);
        }
    }

    fn read_settings(&mut self) {
        // What cannot be read stays as it was; whoever depends on it says so.
        if let Ok(settings) = DaemonSettings::of(&self.office.town) {
            self.settings = settings;
            self.next_scan = self.next_scan.min(Instant::now() + settings.scan_every);
            self.office.journal.set_limit(settings.log_size);
        }
    }

    /// Lets starts begin when everything was recovered once, and says that the daemon is ready when everything was
    /// looked at once.
    fn begin_when_recovered(&mut self, on_ready: &mut dyn FnMut(&Report)) {
        let has_looked = |duty: Duty| self.office.tally(duty).report.rounds > 0;
        if !self.recovered && has_looked(Duty::Liveness) && has_looked(Duty::Convoys) {
            self.recovered = true;
            self.office.wake(Duty::Dispatch).ring();
        }
        if !self.report.ready && has_looked(Duty::Dispatch) && has_looked(Duty::Outbox) {
            self.report.ready = true;
            self.write_report();
            self.keeper.tell(&format!("READY=1\n{}", self.status_line()));
            let more = [("adopted", number(self.report.adopted))];
            self.office.tell(Level::Info, "ready", &more);
            on_ready(&self.report);
        }
    }

    fn status_line(&self) -> String {
        let dispatch = &self.report.reconcilers.get(Duty::Dispatch.name());
        let started = dispatch.map_or(0, |dispatch| dispatch.done);
        format!("STATUS={started} started, {} workers watched", self.report.watched)
    }

    /// Writes down how it is, and tells whoever keeps us running.
    fn say_how_it_is(&mut self) {
        let now = Instant::now();
        if let Some(interval) = self.watchdog
            && now >= self.next_watchdog
            && self.office.longest_at(&[Duty::Dispatch, Duty::Liveness]) <= STUCK_AFTER
        {
            self.next_watchdog = now + interval;
            self.keeper.tell(&format!("WATCHDOG=1\n{}", self.status_line()));
        }
        let every = if self.changed { LOOK_EVERY } else { REPORT_EVERY };
        if now.duration_since(self.reported) >= every {
            self.write_report();
        }
    }

    fn write_report(&mut self) {
        (self.reported, self.changed) = (Instant::now(), false);
        let office = &self.office;
        let report = &mut self.report;
        report.seen_at = office.now().to_string();
        let watched = office.watched.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        report.watched = watched.len() as u64;
        drop(watched);
        report.scan_findings = 0;
        for duty in Duty::ALL {
            let tally = office.tally(duty);
            report.scan_findings += tally.findings;
            report.reconcilers.insert(duty.name().to_owned(), tally.report.clone());
        }
        let dispatch = report.reconcilers.get(Duty::Dispatch.name());
        report.passes = dispatch.map_or(0, |dispatch| dispatch.rounds);
        report.close_to_start = LatencyReport::of(self.latencies.close_to_start());
        report.end_to_start = LatencyReport::of(self.latencies.end_to_start());
        report.write(office.town.root());
    }

    /// Lets everybody end what they are at. Workers go on.
    fn stop(&mut self) {
        self.keeper.tell("STOPPING=1");
        for duty in Duty::ALL {
            self.office.wake(duty).stop();
        }
        let began = Instant::now();
        while !self.office.is_quiet() && began.elapsed() < STOP_PATIENCE {
            // Whoever does not end in time is started anew by the next daemon: each step is in the store or is not.
            wait_for_any(&[self.office.heart().as_fd()], STOP_PAUSE);
            self.office.heart().take();
        }
        self.office.tell(Level::Info, "stopped", &[]);
        Report::remove(self.office.town.root());
    }
}
