//! Copying between the terminal of an agent, its log and the display.

use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Display, Terminal};

/// How often the size of the display is looked at: no signal reaches us that would tell.
const SIZE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long to wait before reading again from a terminal that no process has open; it may be opened
/// again.
const REOPEN_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a display that takes nothing is waited for when the agent has ended. Everything is in the log.
const DISPLAY_PATIENCE: Duration = Duration::from_secs(1);

/// How long the rest of the output is read when the agent has ended. Far longer than it takes,
/// unless a process is left that prints.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// Makes a display empty, and turns off the bracketed paste that its last agent wanted. The output
/// of an earlier agent of the same session must not be taken for that of this one: the prompt would
/// be typed before it listens.
const CLEAR: &[u8] = b"\x1b[?2004l\x1b[2J\x1b[H";

/// How much is copied at once.
const PIECE_BYTES: usize = 64 * 1024;

/// How much of an agent's output was kept.
#[derive(Debug)]
pub struct KeptOutput {
    /// How much of it is in the log, in bytes.
    pub bytes: u64,
    /// The rest, if not all is.
    pub loss: Option<OutputLoss>,
}

/// Output that could not be kept.
#[derive(Debug)]
pub struct OutputLoss {
    /// The number of bytes.
    pub bytes: u64,
    /// The first error.
    pub error: io::Error,
}

/// Copies output and typed keys, in the background.
#[derive(Debug)]
pub struct Relay {
    /// Closed to say that it is over.
    over: PipeWriter,
    told: PipeReader,
    terminal: Arc<Terminal>,
    display: CurrentDisplay,
    printed: JoinHandle<KeptOutput>,
    typed: Vec<JoinHandle<()>>,
}

/// The display at the moment, if there is one.
type CurrentDisplay = Arc<Mutex<Option<Arc<Display>>>>;

fn current(shown: &CurrentDisplay) -> MutexGuard<'_, Option<Arc<Display>>> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Terminal {
    /// Copies what the agent prints to the end of the log and to the display, and what is typed there to the agent,
    /// until [`Relay::finish`].
    pub fn relay(self, log: File, display: Option<Display>) -> io::Result<Relay> {
        let (told, over) = io::pipe()?;
        let terminal = Arc::new(self);
        let shown = CurrentDisplay::default();
        let copy = AgentToDisplay {
            terminal: Arc::clone(&terminal),
            display: Arc::clone(&shown),
            log,
            told: told.try_clone()?,
            kept: KeptOutput { bytes: 0, loss: None },
            over_since: None,
        };
        let typed = Vec::new();
        let size = display.as_ref().and_then(Display::size);
        let keys = display.map(|display| show_on(display, b"", &shown));
        let printed = thread::Builder::new().name("output".to_owned()).spawn(move || copy.run())?;
        let mut relay = Relay { over, told, terminal, display: shown, printed, typed };
        if let Some(display) = keys {
            relay.listen_to(display, size)?;
        }
        Ok(relay)
    }
}

/// Makes a display the one that is written to, after it shows these bytes.
fn show_on(display: Display, first: &[u8], shown: &CurrentDisplay) -> Arc<Display> {
    // Where it cannot be cleared, it is gone or takes nothing, and that shows soon enough.
    let _ = display.file().write_all(CLEAR).and_then(|()| display.file().write_all(first));
    let display = Arc::new(display);
    *current(shown) = Some(Arc::clone(&display));
    display
}

impl Relay {
    /// Shows the agent on another display from now on, because the one before is gone. `printed` is the end of what the agent
    /// has printed so far.
    pub fn move_to(&mut self, display: Display, printed: &[u8]) -> io::Result<()> {
        if let Some(size) = display.size() {
            // An agent that draws a whole screen draws it again when the size changes, and it changes once more below.
            let smaller = Winsize { ws_row: size.ws_row.saturating_sub(1).max(1), ..size };
            let _ = tcsetwinsize(&self.terminal.back, smaller);
        }
        let display = show_on(display, printed, &self.display);
        self.listen_to(display, None)
    }

    /// Copies the keys typed on a display to the agent, which has been told of this size.
    fn listen_to(&mut self, display: Arc<Display>, size: Option<Winsize>) -> io::Result<()> {
        let (terminal, told) = (Arc::clone(&self.terminal), self.told.try_clone()?);
        let copy = DisplayToAgent { terminal, display, told, size };
        self.typed.push(thread::Builder::new().name("keys".to_owned()).spawn(move || copy.run())?);
        Ok(())
    }

    /// Copies the rest and ends. To be called when the agent and its processes have ended.
    pub fn finish(self) -> KeptOutput {
        drop(self.over);
        for typed in self.typed {
            // A failure of the typing thread does not matter; the log does.
            let _ = typed.join();
        }
        self.printed.join().unwrap_or_else(|_| KeptOutput {
            bytes: 0,
            loss: Some(OutputLoss {
                bytes: 0,
                error: io::Error::other("copying the output failed"),
            }),
        })
    }
}

/// From the agent to the log and the display.
struct AgentToDisplay {
    terminal: Arc<Terminal>,
    display: CurrentDisplay,
    log: File,
    told: PipeReader,
    kept: KeptOutput,
    over_since: Option<Instant>,
}

impl AgentToDisplay {
    fn run(mut self) -> KeptOutput {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            // Read before the output: nothing comes after the bytes that are read then.
            let is_over = self.is_over();
            match rustix::io::read(&self.terminal.back, &mut piece[..]) {
                // No process has it open, or nothing is left, and no process could print more.
                Ok(0) | Err(Errno::IO | Errno::AGAIN) if is_over => return self.kept,
                Ok(0) | Err(Errno::IO) => {
                    wait(&[(self.told.as_fd(), PollFlags::IN)], Some(REOPEN_POLL_INTERVAL));
                }
                Err(Errno::AGAIN) => {
                    let back = (self.terminal.back.as_fd(), PollFlags::IN);
                    wait(&[back, (self.told.as_fd(), PollFlags::IN)], None);
                }
                Ok(read) => {
                    self.keep(&piece[..read]);
                    self.show(&piece[..read]);
                    if self.over_since.is_some_and(|since| since.elapsed() >= DRAIN_LIMIT) {
                        return self.kept;
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.lose(0, error.into());
                    return self.kept;
                }
            }
        }
    }

    /// Whether we were told that the agent has ended.
    fn is_over(&mut self) -> bool {
        let told = (self.told.as_fd(), PollFlags::IN);
        if self.over_since.is_none() && wait(&[told], Some(Duration::ZERO)) {
            self.over_since = Some(Instant::now());
        }
        self.over_since.is_some()
    }

    fn keep(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.log.write(bytes) {
                Ok(0) => return self.lose(bytes.len(), ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.kept.bytes += written as u64;
                    bytes = &bytes[written..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.lose(bytes.len(), error),
            }
        }
    }

    fn lose(&mut self, bytes: usize, error: io::Error) {
        let loss = self.kept.loss.get_or_insert(OutputLoss { bytes: 0, error });
        loss.bytes += bytes as u64;
    }

    fn show(&mut self, mut bytes: &[u8]) {
        while let Some(display) = self.shown().filter(|_| !bytes.is_empty()) {
            match display.file().write(bytes) {
                Ok(written) if written > 0 => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.wait_for_display(&display) {
                        self.give_up(&display);
                    }
                }
                // It is gone.
                Ok(_) | Err(_) => self.give_up(&display),
            }
        }
    }

    fn shown(&self) -> Option<Arc<Display>> {
        current(&self.display).clone()
    }

    /// Writes to this display no more.
    fn give_up(&self, display: &Arc<Display>) {
        let mut current = current(&self.display);
        if current.as_ref().is_some_and(|now| Arc::ptr_eq(now, display)) {
            *current = None;
        }
    }

    /// Waits until the display takes more; gives up on it when the agent has ended and it takes nothing.
    fn wait_for_display(&mut self, display: &Display) -> bool {
        let out = (display.as_fd(), PollFlags::OUT);
        if !self.is_over() {
            wait(&[out, (self.told.as_fd(), PollFlags::IN)], None);
        }
        let patience = |since: Instant| DISPLAY_PATIENCE.saturating_sub(since.elapsed());
        !self.is_over() || wait(&[out], self.over_since.map(patience))
    }
}

/// From the display to the agent.
struct DisplayToAgent {
    terminal: Arc<Terminal>,
    display: Arc<Display>,
    told: PipeReader,
    /// The size that the agent was told of, if it was.
    size: Option<Winsize>,
}

impl DisplayToAgent {
    fn run(self) {
        let mut size = self.size;
        let mut piece = [0; 4096];
        loop {
            let keys = (self.display.as_fd(), PollFlags::IN);
            wait(&[keys, (self.told.as_fd(), PollFlags::IN)], Some(SIZE_POLL_INTERVAL));
            if self.is_over() {
                return;
            }
            let now = self.display.size();
            if let Some(now) = now.filter(|_| !is_same(now, size)) {
                size = Some(now);
                // An agent that is not told draws for the old size.
                let _ = tcsetwinsize(&self.terminal.back, now);
            }
            match self.display.file().read(&mut piece) {
                Ok(read) if read > 0 => {
                    if !self.give(&piece[..read]) {
                        return;
                    }
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                // It is gone.
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn is_over(&self) -> bool {
        wait(&[(self.told.as_fd(), PollFlags::IN)], Some(Duration::ZERO))
    }

    /// Whether the agent could be given this before its end.
    fn give(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match rustix::io::write(&self.terminal.back, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let back = (self.terminal.back.as_fd(), PollFlags::OUT);
                    wait(&[back, (self.told.as_fd(), PollFlags::IN)], None);
                    if self.is_over() {
                        return false;
                    }
                }
                // The terminal is not read now, but may be later.
                Err(_) => return true,
            }
        }
        true
    }
}

fn is_same(one: Option<Winsize>, other: Option<Winsize>) -> bool {
    let numbers = |size: Winsize| (size.ws_row, size.ws_col);
    one.map(numbers) == other.map(numbers)
}

/// Waits until one of these can be read from or written to, and says whether one can.
fn wait(wanted: &[(BorrowedFd<'_>, PollFlags)], limit: Option<Duration>) -> bool {
    let mut polled: Vec<PollFd<'_>> =
        wanted.iter().map(|(descriptor, flags)| PollFd::new(descriptor, *flags)).collect();
    let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
    // Interrupted is as good as woken: the caller looks again.
    poll(&mut polled, timeout.as_ref()).is_ok_and(|ready| ready > 0)
}
