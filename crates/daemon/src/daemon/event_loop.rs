//! The event loop of the daemon: the bell, signals, the ends of workers, and the time.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gt_core::latency::{Latencies, Trigger};
use gt_core::time::format_duration;
use gt_core::{Event, EventKind, Json};
use gt_executors::daemon::{
    BellSocket, ClockJump, ClockWatch, DaemonLock, ServiceManager, Signals, wait_for_any,
};
use gt_store::{BellState, EventFilter};

use super::event_routing::reconcilers_for;
use super::journal::Level;
use super::lock_path;
use super::reconciler_kind::ReconcilerKind;
use super::reconcilers::number;
use super::report::{DaemonReport, LatencyReport};
use super::run::DaemonSettings;
use super::state::DaemonState;
use super::watch::{FreedLock, take_ended, unexpected, watch_all, watch_news};
use gt_beads::events::EventFollower;
use gt_town::Result;
use gt_town::error::with_causes;

/// How often the event loop wakes if nothing happens. It then reads the new events, even if the bell has not rung; while a
/// server announces each commit, it does so less often.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);
/// How often the report is written while nothing changes.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// The interval between full scans of a town at rest, while a server announces each commit.
const SCAN_INTERVAL_AT_REST: Duration = Duration::from_hours(1);
/// So many scans without an event between them come before the rest.
const SCANS_BEFORE_REST: u32 = 5;
/// A scan counts its findings as unannounced only if no event came for this long before it.
const UNPROMPTED_AFTER: Duration = Duration::from_secs(1);
/// A dispatch or liveness round that takes longer than this is stuck. A start may take minutes by itself.
const STUCK_AFTER: Duration = Duration::from_mins(15);
/// The longest that a stopping daemon waits for busy reconcilers.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a stopping daemon checks whether they are done.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The delay of a second liveness round after a worker ends: another process may hold its tree during the first.
const SECOND_LIVENESS_DELAY: Duration = Duration::from_secs(1);

/// The event loop of the daemon.
pub(super) struct EventLoop {
    state: Arc<DaemonState>,
    lock: DaemonLock,
    bell: Option<BellSocket>,
    server_bell: BellState,
    signals: Signals,
    service_manager: ServiceManager,
    /// How often the service manager expects a keepalive message.
    watchdog: Option<Duration>,
    settings: DaemonSettings,
    report: DaemonReport,
    news: EventFollower,
    latencies: Latencies,
    clocks: ClockWatch,
    last_news: Instant,
    next_wake: Instant,
    last_read: Instant,
    next_scan: Instant,
    quiet_scans: QuietScans,
    /// When the report was written last, and whether it has changed since.
    reported: Instant,
    changed: bool,
    /// The bell rang and there was no new event: a notice may wait in the outbox.
    rang_for_nothing: bool,
    next_watchdog: Instant,
    /// Why the store cannot be read, while it cannot.
    away: Option<String>,
    /// The first recovery is complete, so that starts may begin.
    recovered: bool,
}

/// The full scans since the last event.
#[derive(Debug, Default)]
struct QuietScans {
    event: u64,
    scans: u32,
}

impl QuietScans {
    /// Counts a scan, before which `event` was the last one. The first scan after an event is not quiet.
    fn count(&mut self, event: u64) -> u32 {
        let is_quiet = self.event == event;
        *self = Self { event, scans: if is_quiet { self.scans.saturating_add(1) } else { 0 } };
        self.scans
    }
}

/// The resources that the event loop owns.
pub(super) struct EventLoopParts {
    pub(super) lock: DaemonLock,
    pub(super) bell: Option<BellSocket>,
    pub(super) signals: Signals,
    pub(super) service_manager: ServiceManager,
    pub(super) watchdog: Option<Duration>,
    pub(super) settings: DaemonSettings,
    pub(super) report: DaemonReport,
}

impl EventLoop {
    pub(super) fn new(
        state: Arc<DaemonState>,
        server_bell: BellState,
        with: EventLoopParts,
    ) -> Result<Self> {
        // Events from here on count as news, even if the first scan already sees their effects.
        let news = EventFollower::from_now(&state.town, EventFilter::default())?;
        state.events_read.store(news.reached(), Ordering::SeqCst);
        let now = Instant::now();
        Ok(Self {
            clocks: ClockWatch::new(state.now()),
            state,
            lock: with.lock,
            bell: with.bell,
            server_bell,
            signals: with.signals,
            service_manager: with.service_manager,
            watchdog: with.watchdog,
            settings: with.settings,
            report: DaemonReport { last_event: news.reached(), ..with.report },
            news,
            latencies: Latencies::default(),
            last_news: now,
            next_wake: now + WAKE_INTERVAL,
            last_read: now,
            next_scan: now + with.settings.scan_every,
            quiet_scans: QuietScans::default(),
            reported: now,
            changed: true,
            rang_for_nothing: false,
            next_watchdog: now,
            away: None,
            recovered: false,
        })
    }

    /// Runs until the daemon is asked to stop, and then until no reconciler is busy. Calls `on_ready` after the first
    /// full scan.
    pub(super) fn run(&mut self, on_ready: &mut dyn FnMut(&DaemonReport)) -> Result<()> {
        self.report.adopted = watch_all(&self.state)?;
        // Nothing starts before all live runs are known.
        for kind in ReconcilerKind::ALL.into_iter().filter(|kind| *kind != ReconcilerKind::Dispatch)
        {
            self.state.wake(kind).ring();
        }
        while !self.signals.stop() && self.has_town() {
            self.wait();
            self.handle_inputs();
            self.handle_time();
            self.begin_when_recovered(on_ready);
            self.publish_report();
        }
        self.stop();
        Ok(())
    }

    /// Whether the town is still there. A daemon whose town was removed or replaced must end.
    fn has_town(&self) -> bool {
        let has_town = self.lock.is_in_place(&lock_path(self.state.town.root()));
        if !has_town {
            self.state.tell(Level::Error, "town gone", &[]);
        }
        has_town
    }

    fn wait(&self) {
        let mut sources = vec![self.signals.as_fd(), self.state.event_loop().as_fd()];
        sources.extend(self.bell.as_ref().map(|bell| bell.as_fd()));
        let next = self.next_wake.min(self.next_scan);
        let next = self.watchdog.map_or(next, |_| next.min(self.next_watchdog));
        wait_for_any(&sources, next.saturating_duration_since(Instant::now()));
    }

    /// Handles signals, ended workers, the bell and new events.
    fn handle_inputs(&mut self) {
        self.changed |= self.state.event_loop().take();
        if self.signals.take_hangup() {
            self.state.journal.reopen();
            self.state.tell(Level::Info, "log reopened", &[]);
            self.scan();
        }
        self.handle_ended_workers();
        let rung = self.bell.as_ref().is_some_and(BellSocket::was_rung);
        let rung = self.state.was_rung() || rung;
        let now = Instant::now();
        if now >= self.next_wake {
            self.next_wake = now + WAKE_INTERVAL;
            if std::mem::take(&mut self.rang_for_nothing) {
                self.state.wake(ReconcilerKind::Outbox).ring();
            }
        }
        let is_time = now >= self.last_read + self.server_bell.poll_interval(WAKE_INTERVAL);
        if rung || is_time {
            self.last_read = now;
            let before = self.report.last_event;
            match self.handle_events() {
                Ok(()) => {
                    self.rang_for_nothing |= rung && self.report.last_event == before;
                    self.note_store_back();
                }
                Err(error) => self.note_store_away(&with_causes(&error)),
            }
        }
    }

    fn handle_ended_workers(&mut self) {
        let ended = take_ended(&self.state);
        if ended.is_empty() {
            return;
        }
        // If the store cannot be read, the liveness reconciler asks again.
        let unexpected = unexpected(&self.state, ended.clone()).unwrap_or(ended);
        for one in &unexpected {
            if let FreedLock::Run(run) = one {
                let bead = ("bead", Json::string(run.bead.as_str()));
                let more = [bead, ("run", Json::string(&run.to_string()))];
                self.state.tell(Level::Warning, "cut off", &more);
            }
        }
        if !unexpected.is_empty() {
            self.last_news = Instant::now();
            self.state.wake(ReconcilerKind::Liveness).ring();
            self.state
                .wake(ReconcilerKind::Liveness)
                .wake_at(Instant::now() + SECOND_LIVENESS_DELAY);
        }
    }

    fn handle_events(&mut self) -> Result<()> {
        loop {
            let events = self.news.next(&self.state.town)?;
            if events.is_empty() {
                return Ok(());
            }
            self.last_news = Instant::now();
            self.next_scan = self.next_scan.min(self.last_news + self.settings.scan_every);
            self.changed = true;
            let mut concerns = [false; ReconcilerKind::ALL.len()];
            for event in &events {
                for kind in reconcilers_for(&event.kind) {
                    concerns[*kind as usize] = true;
                }
                if event.kind == EventKind::SettingChanged {
                    self.read_settings();
                }
            }
            for kind in ReconcilerKind::ALL.into_iter().filter(|kind| concerns[*kind as usize]) {
                // Starts begin only when all live runs are known.
                if kind != ReconcilerKind::Dispatch || self.recovered {
                    self.state.wake(kind).ring_after(kind.delay());
                }
            }
            for event in &events {
                self.tell(event);
            }
            watch_news(&self.state, &events)?;
            self.report.last_event = self.news.reached();
            self.state.events_read.store(self.report.last_event, Ordering::SeqCst);
        }
    }

    /// Logs the starts and ends of runs.
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
        self.state.tell(Level::Info, what, &more);
    }

    fn note_store_away(&mut self, why: &str) {
        if self.away.as_deref() != Some(why) {
            self.state.tell(Level::Error, "store away", &[("error", Json::string(why))]);
            self.away = Some(why.to_owned());
        }
    }

    fn note_store_back(&mut self) {
        if self.away.take().is_some() {
            self.state.tell(Level::Info, "store back", &[]);
            self.scan();
        }
    }

    fn handle_time(&mut self) {
        let now = self.state.now();
        if let Some(jump) = self.clocks.jump_since_last_call(now) {
            let (what, time) = match jump {
                ClockJump::Slept(time) => ("woke", time),
                ClockJump::Forward(time) => ("clock set forward", time),
                ClockJump::Back(time) => ("clock set back", time),
            };
            let more = [("time", Json::string(&format_duration(time)))];
            self.state.tell(Level::Warning, what, &more);
            self.report.clock_jumps += 1;
            self.scan();
        }
        if Instant::now() >= self.next_scan {
            self.scan();
        }
    }

    /// Has every reconciler do a full scan.
    fn scan(&mut self) {
        self.read_settings();
        let scan_every = self.settings.scan_every;
        let is_at_rest = self.is_at_rest();
        let interval = if is_at_rest { scan_every.max(SCAN_INTERVAL_AT_REST) } else { scan_every };
        self.next_scan = Instant::now() + interval;
        let unprompted = self.last_news.elapsed() >= UNPROMPTED_AFTER && self.state.is_quiet();
        // Live runs that no thread watches yet are watched from now on.
        if let Err(error) = watch_all(&self.state) {
            self.note_store_away(&with_causes(&error));
        }
        self.report.scans += 1;
        for kind in ReconcilerKind::ALL
            .into_iter()
            .filter(|kind| self.recovered || *kind != ReconcilerKind::Dispatch)
        {
            self.state.wake(kind).scan(unprompted);
        }
    }

    /// Whether only a new event, which the server will announce, can give this daemon work: nothing has happened for several
    /// scans, and nothing is under way.
    fn is_at_rest(&mut self) -> bool {
        self.quiet_scans.count(self.report.last_event) >= SCANS_BEFORE_REST
            && self.server_bell.is_listening()
            && self.recovered
            && self.state.town.read_newest(|reader| Ok(reader.is_at_rest()?)).unwrap_or(false)
    }

    fn read_settings(&mut self) {
        self.state.settings_state.fetch_add(1, Ordering::SeqCst);
        // Unreadable settings keep their last value; the reconcilers that need them report the error.
        if let Ok(settings) = DaemonSettings::of(&self.state.town) {
            self.settings = settings;
            self.next_scan = self.next_scan.min(Instant::now() + settings.scan_every);
            self.state.journal.set_limit(settings.log_size);
        }
    }

    /// Lets starts begin after the first liveness and convoys rounds, and reports the daemon as ready after the first
    /// dispatch and outbox rounds.
    fn begin_when_recovered(&mut self, on_ready: &mut dyn FnMut(&DaemonReport)) {
        let has_looked = |kind: ReconcilerKind| self.state.tally(kind).report.rounds > 0;
        if !self.recovered
            && has_looked(ReconcilerKind::Liveness)
            && has_looked(ReconcilerKind::Convoys)
        {
            self.recovered = true;
            self.state.wake(ReconcilerKind::Dispatch).ring();
        }
        if !self.report.ready
            && has_looked(ReconcilerKind::Dispatch)
            && has_looked(ReconcilerKind::Outbox)
        {
            self.report.ready = true;
            self.write_report();
            self.service_manager.tell(&format!("READY=1\n{}", self.status_line()));
            let more = [("adopted", number(self.report.adopted))];
            self.state.tell(Level::Info, "ready", &more);
            on_ready(&self.report);
        }
    }

    fn status_line(&self) -> String {
        let dispatch = &self.report.reconcilers.get(ReconcilerKind::Dispatch.name());
        let started = dispatch.map_or(0, |dispatch| dispatch.done);
        format!("STATUS={started} started, {} workers watched", self.report.watched)
    }

    /// Writes the report, and sends the service manager its keepalive message.
    fn publish_report(&mut self) {
        let now = Instant::now();
        if let Some(interval) = self.watchdog
            && now >= self.next_watchdog
            && self.state.longest_at(&[ReconcilerKind::Dispatch, ReconcilerKind::Liveness])
                <= STUCK_AFTER
        {
            self.next_watchdog = now + interval;
            self.service_manager.tell(&format!("WATCHDOG=1\n{}", self.status_line()));
        }
        let every = if self.changed { WAKE_INTERVAL } else { REPORT_INTERVAL };
        if now.duration_since(self.reported) >= every {
            self.write_report();
        }
    }

    fn write_report(&mut self) {
        (self.reported, self.changed) = (Instant::now(), false);
        let state = &self.state;
        let report = &mut self.report;
        report.seen_at = state.now().to_string();
        let watched = state.watched.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        report.watched = watched.len() as u64;
        drop(watched);
        report.scan_findings = 0;
        for kind in ReconcilerKind::ALL {
            let tally = state.tally(kind);
            report.scan_findings += tally.findings;
            report.reconcilers.insert(kind.name().to_owned(), tally.report.clone());
        }
        let dispatch = report.reconcilers.get(ReconcilerKind::Dispatch.name());
        report.passes = dispatch.map_or(0, |dispatch| dispatch.rounds);
        report.close_to_start = LatencyReport::of(self.latencies.close_to_start());
        report.end_to_start = LatencyReport::of(self.latencies.end_to_start());
        report.write(state.town.root());
    }

    /// Waits until the reconcilers have finished their rounds. Workers go on.
    fn stop(&mut self) {
        self.service_manager.tell("STOPPING=1");
        for kind in ReconcilerKind::ALL {
            self.state.wake(kind).stop();
        }
        let began = Instant::now();
        while !self.state.is_quiet() && began.elapsed() < STOP_TIMEOUT {
            // The next daemon repeats a round that does not end in time: each step is in the store or is not.
            wait_for_any(&[self.state.event_loop().as_fd()], STOP_POLL_INTERVAL);
            self.state.event_loop().take();
        }
        self.state.tell(Level::Info, "stopped", &[]);
        DaemonReport::remove(self.state.town.root());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_scans_are_counted_from_the_last_event() {
        let mut quiet = QuietScans::default();
        let counted = [3, 3, 3, 4, 4].map(|event| quiet.count(event));
        assert_eq!(counted, [0, 1, 2, 0, 1]);
    }
}
