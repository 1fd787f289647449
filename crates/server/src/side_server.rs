//! A server beside a daemon: it is there while the setting `serve.bind` says where.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use gt_beads::events::last_number;
use gt_town::{Town, settings, with_causes};

use crate::config::{Bind, DEFAULT_PORT, LogSink, ServeError, ServerConfig};
use crate::server::{Server, Stopper};

/// How often the setting is read for a change. It costs one lookup.
const SETTING_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many reads it takes until a failed start is tried again.
const POLLS_PER_RETRY: u32 = 15;

/// Is told what a server does: where it listens, why it does not, and what it could not do.
pub type ServerLog = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// A server that comes and goes with the setting, and is gone when this is dropped.
#[derive(Debug)]
pub struct SideServer {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SideServer {
    /// Begins to look at the setting.
    pub fn start(town: Town, tell: ServerLog) -> std::io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let attendant = SideServerThread { town, tell, over: Arc::clone(&over), running: None };
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
    bind: String,
    stopper: Stopper,
    thread: JoinHandle<Result<(), ServeError>>,
}

struct SideServerThread {
    town: Town,
    tell: ServerLog,
    over: Arc<AtomicBool>,
    running: Option<RunningServer>,
}

impl SideServerThread {
    fn serve(mut self) {
        let mut seen = None;
        let mut said = String::new();
        let mut looks = 0;
        while !self.over.load(Ordering::Relaxed) {
            let last = last_number(&self.town).ok();
            let is_failing = !said.is_empty() && looks % POLLS_PER_RETRY == 0;
            if (last.is_some() && last != seen) || is_failing {
                seen = last;
                match self.look() {
                    Ok(()) => said.clear(),
                    // The same trouble is told once.
                    Err(trouble) if trouble == said => {}
                    Err(trouble) => {
                        (self.tell)("cannot serve", &trouble);
                        said = trouble;
                    }
                }
            }
            looks += 1;
            std::thread::park_timeout(SETTING_POLL_INTERVAL);
        }
        self.end();
    }

    /// Has the server be where the setting says.
    fn look(&mut self) -> Result<(), String> {
        let wanted = settings::bind_address(&self.town).map_err(|error| with_causes(&error))?;
        let is_there = self
            .running
            .as_ref()
            .is_some_and(|running| running.bind == wanted && !running.thread.is_finished());
        if is_there {
            return Ok(());
        }
        self.end();
        if wanted.is_empty() {
            return Ok(());
        }
        let begin = || -> Result<RunningServer, ServeError> {
            let tell = Arc::clone(&self.tell);
            let log: LogSink = Box::new(move |lines| {
                let failed = lines.lines().filter(|line| line.contains("\"error\":"));
                failed.for_each(|line| tell("request failed", line));
            });
            let bind = vec![Bind::parse(&wanted, DEFAULT_PORT)?];
            let serving = ServerConfig { log: Some(log), ..ServerConfig::on(bind) };
            let server = Server::bind(self.town.clone(), serving)?;
            let stopper = server.stopper();
            for address in server.addresses() {
                (self.tell)("serves", &format!("http://{address}"));
            }
            let builder = std::thread::Builder::new().name("gt-serve".to_owned());
            let thread = builder.spawn(move || server.run()).map_err(ServeError::Begin)?;
            Ok(RunningServer { bind: wanted.clone(), stopper, thread })
        };
        self.running = Some(begin().map_err(|error| with_causes(&error))?);
        Ok(())
    }

    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.stopper.stop();
            if let Ok(Err(error)) = running.thread.join() {
                (self.tell)("cannot serve", &with_causes(&error));
            }
        }
    }
}
