//! Servers beside a daemon: the work queue while the setting `serve.bind` says where, and the flight deck while
//! `deck.enabled` says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use gt_town::deck::{DeckRecord, DeckSettings, port_candidates};
use gt_town::{Town, settings, with_causes};

use crate::config::{Bind, DEFAULT_PORT, LogSink, ServeError, ServerConfig};
use crate::server::{Server, Stopper};

/// How often a change of the settings is looked for. It asks no store.
const SETTING_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After how many looks a failed start is tried again.
const POLLS_PER_RETRY: u32 = 15;

/// Is told what a server does: where it listens, why it does not, and what it could not do.
pub type ServerLog = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Servers that come and go with their settings, and are gone when this is dropped.
#[derive(Debug)]
pub struct SideServer {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SideServer {
    /// Begins to look at the settings, and looks again when `settings_state` is another number.
    pub fn start(
        town: Town,
        tell: ServerLog,
        settings_state: Arc<AtomicU64>,
    ) -> std::io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let attendant = SideServerThread {
            town,
            tell,
            over: Arc::clone(&over),
            settings_state,
            work_queue: ServerSlot::default(),
            deck: ServerSlot::default(),
        };
        let builder = std::thread::Builder::new().name("gt-serve-beside".to_owned());
        let thread = builder.spawn(move || attendant.serve())?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for SideServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

struct RunningServer {
    /// The settings that it was started for: it is started anew when those change.
    wanted: String,
    stopper: Stopper,
    thread: JoinHandle<Result<(), ServeError>>,
}

/// A server that is wanted or not, and the last trouble with it.
#[derive(Default)]
struct ServerSlot {
    running: Option<RunningServer>,
    said: String,
}

impl ServerSlot {
    fn is_there(&self, wanted: &str) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.wanted == wanted && !running.thread.is_finished())
    }
}

struct SideServerThread {
    town: Town,
    tell: ServerLog,
    over: Arc<AtomicBool>,
    settings_state: Arc<AtomicU64>,
    work_queue: ServerSlot,
    deck: ServerSlot,
}

impl SideServerThread {
    fn serve(mut self) {
        let mut seen = None;
        let mut looks = 0;
        while !self.over.load(Ordering::Relaxed) {
            let state = Some(self.settings_state.load(Ordering::SeqCst));
            let has_failed = !self.work_queue.said.is_empty() || !self.deck.said.is_empty();
            let is_failing = has_failed && looks % POLLS_PER_RETRY == 0;
            if state != seen || is_failing {
                seen = state;
                let (queue, deck) = (self.serve_queue(), self.serve_deck());
                self.report_trouble("cannot serve", queue, |this| &mut this.work_queue);
                self.report_trouble("cannot serve the deck", deck, |this| &mut this.deck);
            }
            looks += 1;
            std::thread::park_timeout(SETTING_POLL_INTERVAL);
        }
        for slot in [std::mem::take(&mut self.work_queue), std::mem::take(&mut self.deck)] {
            self.end(slot.running);
        }
    }

    /// Tells of new trouble. The same trouble is told once.
    fn report_trouble(
        &mut self,
        what: &str,
        looked: Result<(), String>,
        slot: impl Fn(&mut Self) -> &mut ServerSlot,
    ) {
        let trouble = looked.err().unwrap_or_default();
        if !trouble.is_empty() && trouble != slot(self).said {
            (self.tell)(what, &trouble);
        }
        slot(self).said = trouble;
    }

    /// Has the work queue be served where the setting says.
    fn serve_queue(&mut self) -> Result<(), String> {
        let wanted = settings::bind_address(&self.town).map_err(|error| with_causes(&error))?;
        if self.work_queue.is_there(&wanted) {
            return Ok(());
        }
        let before = self.work_queue.running.take();
        self.end(before);
        if wanted.is_empty() {
            return Ok(());
        }
        let config = Bind::parse(&wanted, DEFAULT_PORT).map(|bind| ServerConfig::on(vec![bind]));
        let begun = config.and_then(|config| self.begin(config, &wanted, ""));
        self.work_queue.running = Some(begun.map_err(|error| with_causes(&error))?);
        Ok(())
    }

    /// Has the deck be served if the setting says so, on the port that it always has.
    fn serve_deck(&mut self) -> Result<(), String> {
        let settings = DeckSettings::of(&self.town).map_err(|error| with_causes(&error))?;
        let wanted = format!("{settings:?}");
        if self.deck.is_there(&wanted) {
            return Ok(());
        }
        let before = self.deck.running.take();
        self.end(before);
        if !settings.enabled {
            return Ok(());
        }
        let record = DeckRecord::read(self.town.root());
        let chosen = settings.port.or(record.as_ref().map(|record| record.port));
        let ports: Vec<u16> = match chosen {
            Some(port) => vec![port],
            None => port_candidates(self.town.id()).collect(),
        };
        let mut begun = Err((0, String::new()));
        for port in ports {
            begun = self
                .begin(ServerConfig::deck(port), &wanted, "/deck/")
                .map(|running| (port, running))
                .map_err(|error| (port, with_causes(&error)));
            if begun.is_ok() {
                break;
            }
        }
        let (port, problem) = match begun {
            Ok((port, running)) => {
                self.deck.running = Some(running);
                (port, String::new())
            }
            Err((port, problem)) => (port, problem),
        };
        // A port that could not be had is kept only if it was chosen before: another one may be free next time.
        let record = DeckRecord { port, problem };
        if (record.problem.is_empty() || chosen.is_some())
            && let Err(error) = record.write(self.town.root())
        {
            (self.tell)("cannot record the port of the deck", &error.to_string());
        }
        if record.problem.is_empty() { Ok(()) } else { Err(record.problem) }
    }

    fn begin(
        &self,
        config: ServerConfig,
        wanted: &str,
        path: &str,
    ) -> Result<RunningServer, ServeError> {
        let tell = Arc::clone(&self.tell);
        let log: LogSink = Box::new(move |lines| {
            let failed = lines.lines().filter(|line| line.contains("\"error\":"));
            failed.for_each(|line| tell("request failed", line));
        });
        let server = Server::bind(self.town.clone(), ServerConfig { log: Some(log), ..config })?;
        let stopper = server.stopper();
        for address in server.addresses() {
            (self.tell)("serves", &format!("http://{address}{path}"));
        }
        let builder = std::thread::Builder::new().name("gt-serve".to_owned());
        let thread = builder.spawn(move || server.run()).map_err(ServeError::Begin)?;
        Ok(RunningServer { wanted: wanted.to_owned(), stopper, thread })
    }

    fn end(&self, running: Option<RunningServer>) {
        let Some(running) = running else { return };
        running.stopper.stop();
        if let Ok(Err(error)) = running.thread.join() {
            (self.tell)("cannot serve", &with_causes(&error));
        }
    }
}
