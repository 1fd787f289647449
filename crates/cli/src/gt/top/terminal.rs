//! Joins the model with a terminal, a town and the commands.

use std::time::{Duration, Instant};

use gt_beads::events::EventFollower;
use gt_daemon::daemon::Signals;
use gt_town::{Bell, EventFilter, Town, with_causes};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind,
};
use ratatui::crossterm::execute;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::draw::{draw, page_height};
use super::model::{PageSource, TopEffect, TopEvent, TopModel, TopView, page_lines, update};
use super::snapshot;
use super::transcript::TranscriptLines;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{LineStyle, StyledLine};

/// How long a key is waited for before the event counter is read.
const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The same while a transcript is shown, whose file grows without events.
const OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often ages on the screen grow. Nothing is read for it.
const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a view is read that changes without an event, such as by a disk that is full.
const AGING_INTERVAL: Duration = Duration::from_mins(1);
/// How long a store that is away is left alone.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// After so many waits without a ring the event counter is read in any case.
const WAITS_PER_READ_MAX: u32 = 50;
/// Exit codes of a program that a signal ended.
const TERMINATED: u8 = 128 + 15;
const HUNG_UP: u8 = 128 + 1;

/// Gives the terminal back, in whichever way the view ends. Ratatui's panic hook does the same before the message is printed.
struct TerminalGuard;

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // The terminal may be gone; then there is nothing to give back.
        let _ = execute!(std::io::stdout(), DisableBracketedPaste);
        let _ = ratatui::try_restore();
    }
}

pub(super) fn run(context: &CommandContext<'_>, view: TopView) -> Result<(), CliError> {
    let town = context.town()?;
    let signals = Signals::listen()?;
    context.printer.flush()?;
    let mut terminal = ratatui::try_init()?;
    let guard = TerminalGuard;
    execute!(std::io::stdout(), EnableBracketedPaste)?;
    let session = TopSession {
        context,
        town: &town,
        model: TopModel::new(view, town.now()),
        follower: None,
        bell: town.bell(),
        unread_waits: 0,
        reader: None,
        retry_at: None,
        loaded_at: Instant::now(),
        width: terminal.size()?.width,
    };
    let ended = session.run(&mut terminal, &signals);
    drop(guard);
    match ended? {
        TopEnd::Quit => Ok(()),
        TopEnd::Signal(code) => Err(CliError::Said(code)),
    }
}

/// Why the view is over.
enum TopEnd {
    Quit,
    Signal(u8),
}

/// The result of a wait for a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyWait {
    There,
    None,
    TerminalGone,
}

/// Waits for a key, up to this long. Crossterm never returns from a terminal that is gone: it reads its end over and over.
fn wait_for_key(wait: Duration) -> std::io::Result<KeyWait> {
    let input = std::io::stdin();
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut polled, Timespec::try_from(wait).ok().as_ref()) {
        // A signal may say that the terminal has another size.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if polled[0].revents().intersects(gone) {
        return Ok(KeyWait::TerminalGone);
    }
    let is_there = event::poll(Duration::ZERO)?;
    Ok(if is_there { KeyWait::There } else { KeyWait::None })
}

/// A view that is being looked at.
struct TopSession<'s, 'p> {
    context: &'s CommandContext<'p>,
    town: &'s Town,
    model: TopModel,
    /// The position in the event log; nothing while the store is away.
    follower: Option<EventFollower>,
    bell: Bell,
    unread_waits: u32,
    reader: Option<TranscriptLines>,
    /// When a store that is away is asked again.
    retry_at: Option<Instant>,
    loaded_at: Instant,
    width: u16,
}

impl TopSession<'_, '_> {
    fn run(
        mut self,
        terminal: &mut DefaultTerminal,
        signals: &Signals,
    ) -> Result<TopEnd, CliError> {
        let view = self.model.view;
        self.load(view);
        let mut ticked = Instant::now();
        let mut is_changed = true;
        loop {
            if is_changed {
                let size = terminal.size()?;
                self.width = size.width;
                self.handle(TopEvent::Tick(self.town.now(), page_height(size.height)));
                terminal.draw(|frame| {
                    draw(frame, &self.model, self.context.printer.colours());
                })?;
            }
            is_changed = false;
            let wait =
                if self.reader.is_some() { OUTPUT_POLL_INTERVAL } else { EVENT_POLL_INTERVAL };
            let mut key = wait_for_key(wait)?;
            while key == KeyWait::There {
                is_changed = true;
                let happened = match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => TopEvent::Key(key),
                    Event::Paste(text) => TopEvent::Paste(text),
                    _ => break,
                };
                for effect in update(&mut self.model, happened) {
                    match effect {
                        TopEffect::Quit => return Ok(TopEnd::Quit),
                        TopEffect::Redraw => terminal.clear()?,
                        effect => self.carry_out(effect),
                    }
                }
                key = wait_for_key(Duration::ZERO)?;
            }
            if key == KeyWait::TerminalGone {
                return Ok(TopEnd::Signal(HUNG_UP));
            }
            if signals.stop() {
                return Ok(TopEnd::Signal(TERMINATED));
            }
            if signals.take_hangup() {
                return Ok(TopEnd::Signal(HUNG_UP));
            }
            is_changed |= self.read_news();
            is_changed |= self.read_transcript();
            if ticked.elapsed() >= TICK_INTERVAL {
                ticked = Instant::now();
                is_changed = true;
            }
        }
    }

    fn handle(&mut self, event: TopEvent) {
        for effect in update(&mut self.model, event) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: TopEffect) {
        match effect {
            TopEffect::Load(view) => self.load(view),
            TopEffect::Run(words) => {
                let (is_done, output) = self.run_command(&words);
                let text = String::from_utf8_lossy(&output);
                let output = text.lines().map(str::to_owned).collect();
                self.handle(TopEvent::Ran { words, is_done, output });
            }
            TopEffect::Open(source) => self.open(&source),
            TopEffect::Explain { key, bead, seen_at } => {
                let read = snapshot::explain(self.town, &key, bead.as_deref(), seen_at);
                let text = read.unwrap_or_else(|_| format!("{key} is gone"));
                self.handle(TopEvent::Explained(text));
            }
            TopEffect::ClosePage => self.reader = None,
            // The loop does these itself.
            TopEffect::Redraw | TopEffect::Quit => {}
        }
    }

    fn load(&mut self, view: TopView) {
        self.loaded_at = Instant::now();
        // The follower begins before the look, so that no event in between is missed.
        let read = EventFollower::from_now(self.town, EventFilter::default())
            .and_then(|follower| Ok((follower, snapshot::read(self.town, view)?)));
        match read {
            Ok((follower, snapshot)) => {
                self.follower = Some(follower);
                self.retry_at = None;
                self.handle(TopEvent::Loaded(snapshot));
            }
            Err(error) => {
                self.follower = None;
                self.retry_at = Some(Instant::now() + RETRY_INTERVAL);
                let why = crate::output::harmless(&with_causes(&error)).into_owned();
                self.handle(TopEvent::Unread(self.town.now(), why));
            }
        }
    }

    /// Reads everything again if something happened in the town, or nothing for long; whether it did.
    fn read_news(&mut self) -> bool {
        let is_new = match &mut self.follower {
            None => self.retry_at.is_some_and(|at| Instant::now() >= at),
            Some(_) if self.loaded_at.elapsed() >= AGING_INTERVAL => true,
            Some(follower) => {
                if self.bell.rings() && !self.bell.wait(Duration::ZERO) {
                    self.unread_waits += 1;
                    if self.unread_waits < WAITS_PER_READ_MAX {
                        return false;
                    }
                }
                self.unread_waits = 0;
                // An error is told by the load.
                follower.next(self.town).map_or(true, |news| !news.is_empty())
            }
        };
        if is_new {
            self.load(self.model.view);
            let page = self.model.page.as_ref().map(|page| page.source.clone());
            if let Some(source @ PageSource::Command { is_live: true, .. }) = page {
                self.open(&source);
            }
        }
        is_new
    }

    fn open(&mut self, source: &PageSource) {
        match source {
            PageSource::Command { words, .. } => {
                let (_, output) = self.run_command(words);
                let lines = page_lines(words, &output);
                self.handle(TopEvent::PageRead(lines));
            }
            PageSource::Transcript(run) => {
                let opened = gt_beads::run_records::resolve(self.town, run)
                    .and_then(|run| TranscriptLines::open(self.town, &run));
                match opened {
                    Ok(reader) => self.reader = Some(reader),
                    Err(error) => {
                        self.handle(TopEvent::PageRead(vec![failed(with_causes(&error))]));
                    }
                }
            }
        }
    }

    /// Adds what a worker did since; whether it did something.
    fn read_transcript(&mut self) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        let lines = match reader.read() {
            Ok(lines) => lines,
            Err(error) => {
                self.reader = None;
                vec![failed(with_causes(&error))]
            }
        };
        if lines.is_empty() {
            return false;
        }
        self.handle(TopEvent::PageGrew(lines));
        true
    }

    /// Runs a command as the person who looks.
    fn run_command(&self, words: &[String]) -> (bool, Vec<u8>) {
        let mut words = words.to_vec();
        if let Some(actor) = self.context.given_actor() {
            words.insert(1, format!("--actor={actor}"));
        }
        let ran = crate::run_captured(&words, &self.context.environment, self.width);
        (ran.is_done, ran.output)
    }
}

fn failed(text: String) -> StyledLine {
    StyledLine { style: LineStyle::Failed, text }
}
