//! Typing the prompt of an agent into its session, and seeing it arrive.

use std::cell::{Cell, RefCell};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gt_core::runtime::{Pattern, last_line};
use gt_executors::tmux::{Capture, Confirmation, Pane, Pasted, Tmux, TmuxError};

use super::spawner::session_server;
use gt_town::{OperationError, Result, Town};

/// How long a screen must stay the same to have come to rest.
const SCREEN_REST_TIME: Duration = Duration::from_millis(800);
/// How long a program may take to be ready.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// How long a program may show nothing at all before it counts as one without output.
const BLANK_LIMIT: Duration = Duration::from_secs(10);
/// How long a program may take to show what was typed.
const SHOWN_LIMIT: Duration = Duration::from_secs(10);
/// How often a prompt is typed that does not show.
const TRIES_MAX: u32 = 3;
/// How often the screen is read.
const SCREEN_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A prompt that is typed into a session.
#[derive(Debug, Clone, Copy)]
pub struct TypedPrompt<'a> {
    /// The number of the process that the session was started with.
    pub supervisor: u32,
    /// The text to type.
    pub text: &'a [u8],
    /// The pattern on the screen once it can be typed; none: when the screen has not changed for a moment.
    pub ready: Option<&'a Pattern>,
    /// The pattern on the screen once the text has arrived.
    pub confirm: &'a Pattern,
}

/// Types a prompt into the session of a supervisor once its agent is ready, and returns when the agent has it. A
/// prompt that may have arrived is not typed again: an agent that does everything twice is worse than one that does
/// not start.
pub fn type_prompt(town: &Town, prompt: &TypedPrompt<'_>) -> Result<()> {
    let tmux = Tmux::of_town(&session_server(town));
    let pane = tmux.pane_of(prompt.supervisor).map_err(|error| failed(&error))?;
    let pane = pane.ok_or_else(|| OperationError::rejected("its session is gone"))?;
    wait_until_ready(&tmux, &pane, prompt.ready)?;
    for _ in 0..TRIES_MAX {
        match type_once(&tmux, &pane, prompt).map_err(|error| failed(&error))? {
            Pasted::Confirmed => return Ok(()),
            Pasted::Unconfirmed { entered: false, .. } => {}
            Pasted::Unconfirmed { entered: true, screen } => {
                return Err(OperationError::rejected(format!(
                    "its prompt was typed, and nothing on its screen looks like \"{}\" (paste.confirm); it shows: {}",
                    prompt.confirm,
                    shown(&screen)
                )));
            }
        }
    }
    Err(OperationError::rejected(format!(
        "its prompt was typed {TRIES_MAX} times, and its screen stayed as it was; if it was not ready, say in paste.ready \
         what it shows when it is"
    )))
}

fn type_once(
    tmux: &Tmux,
    pane: &Pane,
    prompt: &TypedPrompt<'_>,
) -> std::result::Result<Pasted, TmuxError> {
    let before = tmux.capture_pane(pane, Capture::Visible)?;
    let has_arrived = Cell::new(false);
    let arrived = |screen: &str| {
        if screen != before && prompt.confirm.is_in(screen) {
            has_arrived.set(true);
        }
        has_arrived.get()
    };
    let seen = RefCell::new(WatchedScreen::new(&before));
    // A text that is confirmed only after it is sent must first have come to rest on the screen.
    let may_be_sent =
        |screen: &str| arrived(screen) || (seen.borrow_mut().rests(screen) && screen != before);
    let confirmation = Confirmation {
        before_enter: Some(&may_be_sent),
        after_enter: &arrived,
        limit: SHOWN_LIMIT,
    };
    tmux.paste_into(pane, prompt.text, &confirmation)
}

/// A screen, and since when it has not changed.
struct WatchedScreen {
    screen: String,
    since: Instant,
}

impl WatchedScreen {
    fn new(screen: &str) -> Self {
        Self { screen: screen.to_owned(), since: Instant::now() }
    }

    /// Whether the screen, which is like this now, has not changed for a while.
    fn rests(&mut self, screen: &str) -> bool {
        if self.screen != screen {
            *self = Self::new(screen);
        }
        self.since.elapsed() >= SCREEN_REST_TIME
    }
}

fn wait_until_ready(tmux: &Tmux, pane: &Pane, ready: Option<&Pattern>) -> Result<()> {
    let begun = Instant::now();
    let mut watched = WatchedScreen::new("");
    loop {
        let screen = tmux.capture_pane(pane, Capture::Visible).map_err(|error| failed(&error))?;
        let rests = watched.rests(&screen);
        let is_ready = match ready {
            Some(ready) => ready.is_in(&screen),
            None if screen.trim().is_empty() => begun.elapsed() >= BLANK_LIMIT,
            None => rests,
        };
        if is_ready {
            return Ok(());
        }
        if begun.elapsed() >= READY_LIMIT {
            let seconds = READY_LIMIT.as_secs();
            return Err(OperationError::rejected(match ready {
                Some(ready) => format!(
                    "nothing on its screen looked like \"{ready}\" (paste.ready) for {seconds} s; it shows: {}",
                    shown(&screen)
                ),
                None => format!(
                    "its screen did not come to rest for {seconds} s; say in paste.ready what it shows when it can be \
                     given its prompt"
                ),
            }));
        }
        sleep(SCREEN_POLL_INTERVAL);
    }
}

fn shown(screen: &str) -> String {
    last_line(screen).unwrap_or_else(|| "nothing".to_owned())
}

fn failed(error: &TmuxError) -> OperationError {
    OperationError::rejected(error.to_string())
}
