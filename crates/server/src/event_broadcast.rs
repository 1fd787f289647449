//! The event log, read once for all listeners.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gt_api::{EventDocument, to_json};
use gt_beads::events::{self, EventFollower};
use gt_core::{Event, EventKind};
use gt_town::{BellState, ChangeMark, EventFilter, Result, Town};
use tokio::sync::{broadcast, watch};

/// Events that a listener may be behind before it has to read the store for itself.
const BEHIND_MAX: usize = 2048;
/// How often a commit of another process is looked for while a client listens and no bell rings for it. It costs one system call,
/// or one lookup in a store that is in no file.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often the log is read while no client listens, while a bell rings, or while its file looks as before.
const IDLE_LOG_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The same once its file has looked alike at two looks in a row, so that no commit can be hidden in it.
const OLD_MARK_POLL_INTERVAL: Duration = Duration::from_secs(15);
/// The pause before a store that cannot be read is tried again.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// An event as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct EventFrame {
    pub(crate) number: u64,
    pub(crate) text: Bytes,
}

impl EventFrame {
    pub(crate) fn of(event: &Event) -> Self {
        let (number, kind) = (event.number, event.kind.as_str());
        // JSON on one line has no line breaks, so that one data field holds it.
        let text = format!(
            "id: {number}\nevent: {kind}\ndata: {}\n\n",
            to_json(&EventDocument::from(event))
        );
        Self { number, text: Bytes::from(text) }
    }
}

/// Rung when something was written.
#[derive(Debug, Default)]
struct WriteSignal {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl WriteSignal {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.heard.notify_one();
    }

    /// Waits until it is rung, at most so long; says whether it was.
    fn wait(&self, at_most: Duration) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.heard.wait_timeout_while(rung, at_most, |rung| !*rung);
        std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Sends events to all listeners.
#[derive(Debug)]
pub(crate) struct EventBroadcast {
    frames: broadcast::Sender<EventFrame>,
    /// Changes when there may be work for a request that found none.
    chances: watch::Sender<u64>,
    /// Changes when a token may not be what it was.
    tokens: watch::Sender<u64>,
    reached: AtomicU64,
    bell: WriteSignal,
    server_bell: BellState,
    stopped: AtomicBool,
}

impl EventBroadcast {
    /// Starts the thread that reads the log, from now on.
    pub(crate) fn start(town: &Arc<Town>) -> Result<Arc<Self>> {
        let reached = events::last_number(town)?;
        let server = town.bell();
        let news = Arc::new(Self {
            frames: broadcast::Sender::new(BEHIND_MAX),
            chances: watch::Sender::new(0),
            tokens: watch::Sender::new(0),
            reached: AtomicU64::new(reached),
            bell: WriteSignal::default(),
            server_bell: server.state(),
            stopped: AtomicBool::new(false),
        });
        let (town, reader) = (Arc::clone(town), Arc::clone(&news));
        let begin = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let failed = |error| {
                gt_town::OperationError::rejected(format!("cannot start a thread: {error}"))
            };
            std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(failed).map(drop)
        };
        if server.rings() {
            let news = Arc::clone(&news);
            begin(
                "gt-serve-bell",
                Box::new(move || {
                    while !news.stopped.load(Ordering::Relaxed) {
                        if server.wait(IDLE_LOG_POLL_INTERVAL) {
                            news.ring();
                        }
                    }
                }),
            )?;
        }
        begin("gt-serve-news", Box::new(move || reader.follow(&town, reached)))?;
        Ok(news)
    }

    /// Something was written here: no listener needs to wait for the next poll.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Ends the thread that reads the log.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.ring();
    }

    /// The number of the last event that was told.
    pub(crate) fn reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// The events from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<EventFrame> {
        self.frames.subscribe()
    }

    /// When there may be work.
    pub(crate) fn chances(&self) -> watch::Receiver<u64> {
        self.chances.subscribe()
    }

    /// Changes when a token may not be what it was.
    pub(crate) fn token_changes(&self) -> watch::Receiver<u64> {
        self.tokens.subscribe()
    }

    fn follow(&self, town: &Town, from: u64) {
        let mut follower = EventFollower::after(from, EventFilter::default());
        // The mark of the last look, if nothing was heard for a while after it.
        let mut old_mark = None;
        while !self.stopped.load(Ordering::Relaxed) {
            // Before the log is read, so that a commit meanwhile makes a difference.
            let mark = town.store().change_mark();
            match follower.next(town) {
                Ok(events) if events.is_empty() => {
                    // Two commits within a tick of the clock leave one mark. One that is still the same is older than that.
                    let is_old = mark.is_some() && mark == old_mark;
                    let limit =
                        if is_old { OLD_MARK_POLL_INTERVAL } else { IDLE_LOG_POLL_INTERVAL };
                    let was_quiet = self.wait_for_commit(town, mark.as_ref(), limit);
                    old_mark = mark.filter(|_| was_quiet);
                }
                Ok(events) => self.broadcast(&events),
                // A request hears why. Nothing is lost: the events are read when the store is back.
                Err(_) => {
                    self.bell.wait(STORE_RETRY_DELAY);
                }
            }
        }
    }

    /// Waits until there may be events. A file that looks as before is not read, up to this limit; returns whether it was reached.
    fn wait_for_commit(&self, town: &Town, mark: Option<&ChangeMark>, limit: Duration) -> bool {
        let mut waited = Duration::ZERO;
        loop {
            let pause = self.wait_limit();
            let is_rung = self.bell.wait(pause);
            waited += pause;
            if is_rung || mark.is_none() || town.store().change_mark().as_ref() != mark {
                return false;
            }
            if waited >= limit {
                return true;
            }
        }
    }

    fn wait_limit(&self) -> Duration {
        let listened = self.frames.receiver_count() > 0 || self.chances.receiver_count() > 0;
        if listened {
            // A revoked token must end its streams soon, also if the bell is cut off without a word.
            self.server_bell.poll_interval(LOG_POLL_INTERVAL).min(IDLE_LOG_POLL_INTERVAL)
        } else {
            self.server_bell.poll_interval(IDLE_LOG_POLL_INTERVAL)
        }
    }

    fn broadcast(&self, events: &[Event]) {
        // First, so that a listener whose token is revoked hears nothing that happened afterwards.
        if events.iter().any(|event| is_about_tokens(&event.kind)) {
            self.tokens.send_modify(|changes| *changes += 1);
        }
        let listened = self.frames.receiver_count() > 0;
        for event in events {
            if listened {
                // The last listener may have gone meanwhile.
                let _ = self.frames.send(EventFrame::of(event));
            }
            self.reached.store(event.number, Ordering::Release);
        }
        if events.iter().any(|event| is_chance(&event.kind)) {
            self.chances.send_modify(|chances| *chances += 1);
        }
    }
}

/// Whether there may be work after this for a request that found none before. Kinds that are not known here may mean
/// anything.
fn is_chance(kind: &EventKind) -> bool {
    !matches!(
        kind,
        EventKind::Commented
            | EventKind::RunStarting
            | EventKind::Dispatched
            | EventKind::Claimed
            | EventKind::StepDone
            | EventKind::RunUsed
            | EventKind::ConvoyLanded
            | EventKind::MessageSent
            | EventKind::MessageDelivered
            | EventKind::MessageSeen
            | EventKind::MessagesPurged
            | EventKind::EventsPurged
    )
}

fn is_about_tokens(kind: &EventKind) -> bool {
    kind.as_str().starts_with("token")
}

#[cfg(test)]
mod tests {
    use gt_core::{Json, Timestamp};

    use super::*;

    #[test]
    fn an_event_is_sent_in_one_piece_with_its_number() {
        let event = Event {
            number: 7,
            at: Timestamp::from_nanos(0),
            kind: EventKind::Closed,
            bead: None,
            rig: None,
            run: None,
            actor: "ann\nid: 9".to_owned(),
            payload: Json::trusted("{}".to_owned()),
        };
        let frame = EventFrame::of(&event);
        let text = String::from_utf8(frame.text.to_vec()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["id: 7", "event: closed"]);
        assert!(lines[2].starts_with("data: {\"number\":7,"));
        assert_eq!(lines[3..], [""]);
    }
}
