//! Screens of workers that clients look at. Each is rendered once for all clients, and only while one looks.
//!
//! A client gets the newest frame when it is ready for one. Frames that it was too slow for are never made for it, so that
//! a client that stops reading costs nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_api::{ScreenDocument, to_json};
use gt_core::schedule::{Run, RunId};
use gt_execution::runs::{RunScreen, ScreenSource};
use gt_town::Town;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::auth::RequestCaller;
use crate::problem::RequestProblem;
use crate::service::SharedService;

/// How often the output of an opened screen is looked at, and so the most frames of it in a second are ten.
const SCREEN_INTERVAL: Duration = Duration::from_millis(100);
/// The same for tiles: two frames in a second.
const TILE_INTERVAL: Duration = Duration::from_millis(500);
/// How often the store is asked whether the run has ended.
const END_INTERVAL: Duration = Duration::from_secs(2);
/// The largest tile.
const TILE_LINES: u16 = 24;
const TILE_COLUMNS: u16 = 100;
/// How many screens are rendered at a time: each takes about a megabyte.
const RENDERED_MAX: usize = 200;
/// How many streams of screens one holder of a token or session may have open.
const STREAMS_PER_CALLER: usize = 12;
/// How long a keyboard belongs to the client that typed last.
const KEYBOARD_HOLD: Duration = Duration::from_secs(10);
/// How many keyboards are remembered before old ones are forgotten.
const TYPISTS_BEFORE_CLEANUP: usize = 256;

/// The form in which a client looks at a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenForm {
    /// All of it.
    Whole,
    /// A small part.
    Tile,
}

/// The newest frames of a screen, as they are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RenderedFrames {
    whole: Option<Bytes>,
    tile: Option<Bytes>,
    is_last: bool,
}

/// All screens that clients look at.
#[derive(Debug, Default)]
pub(crate) struct Screens {
    shared: Mutex<HashMap<RunId, Arc<SharedScreen>>>,
    streams: Mutex<HashMap<String, Arc<Semaphore>>>,
    typists: Mutex<HashMap<RunId, Typist>>,
}

/// A screen and the clients that look at it.
#[derive(Debug)]
pub(crate) struct SharedScreen {
    frames: watch::Sender<RenderedFrames>,
    /// How many clients look at all of it.
    whole_viewers: AtomicUsize,
    /// A client has come that needs a frame although nothing was printed.
    is_asked: AtomicBool,
}

/// The client that typed last.
#[derive(Debug, Clone)]
struct Typist {
    token: String,
    name: String,
    at: Instant,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Screens {
    /// A place for one more stream of this caller.
    pub(crate) fn enter(
        &self,
        caller: &RequestCaller,
    ) -> Result<OwnedSemaphorePermit, Box<RequestProblem>> {
        let id = caller.token().map(|token| token.id.to_string()).unwrap_or_default();
        let mut streams = locked(&self.streams);
        streams.retain(|_, places| places.available_permits() < STREAMS_PER_CALLER);
        let places =
            streams.entry(id).or_insert_with(|| Arc::new(Semaphore::new(STREAMS_PER_CALLER)));
        Arc::clone(places).try_acquire_owned().map_err(|_| {
            RequestProblem::busy(format!(
                "{STREAMS_PER_CALLER} screens and walls are open already with this login; close some"
            ))
        })
    }

    /// Looks at the screen of a run from now on.
    pub(crate) async fn watch(
        service: &SharedService,
        run: Run,
        form: ScreenForm,
    ) -> Result<ScreenViewer, Box<RequestProblem>> {
        if let Some(viewer) = service.screens.join(&run.id, form) {
            return Ok(viewer);
        }
        if locked(&service.screens.shared).len() >= RENDERED_MAX {
            return Err(RequestProblem::busy(format!(
                "{RENDERED_MAX} screens are looked at already; close some"
            )));
        }
        let (id, opened) = (run.id.clone(), run.clone());
        let screen = service.ask(move |town| RunScreen::of(town, &opened)).await?;
        // Another client may have opened it meanwhile.
        if let Some(viewer) = service.screens.join(&id, form) {
            return Ok(viewer);
        }
        let shared = Arc::new(SharedScreen {
            frames: watch::Sender::new(RenderedFrames::default()),
            whole_viewers: AtomicUsize::new(0),
            is_asked: AtomicBool::new(true),
        });
        let viewer = ScreenViewer::of(&shared, form);
        locked(&service.screens.shared).insert(id.clone(), Arc::clone(&shared));
        let painter = ScreenPainter { service: Arc::clone(service), run: id, shared };
        tokio::spawn(painter.paint(screen));
        Ok(viewer)
    }

    fn join(&self, run: &RunId, form: ScreenForm) -> Option<ScreenViewer> {
        // Under the lock, so that the screen does not end at the same time.
        let shared = locked(&self.shared);
        shared.get(run).map(|screen| ScreenViewer::of(screen, form))
    }

    /// Gives the keyboard of a run to this caller, unless another one typed there a moment ago.
    pub(crate) fn take_keyboard(
        &self,
        run: &RunId,
        caller: &RequestCaller,
    ) -> Result<(), Box<RequestProblem>> {
        let Some(token) = caller.token() else { return Ok(()) };
        let mut typists = locked(&self.typists);
        let id = token.id.to_string();
        if let Some(typist) = typists.get(run)
            && typist.token != id
            && typist.at.elapsed() < KEYBOARD_HOLD
        {
            return Err(keyboard_taken(&format!("{} types into {run}", typist.name)));
        }
        if typists.len() >= TYPISTS_BEFORE_CLEANUP {
            typists.retain(|_, typist| typist.at.elapsed() < KEYBOARD_HOLD);
        }
        let name = token.name.clone();
        typists.insert(run.clone(), Typist { token: id, name, at: Instant::now() });
        Ok(())
    }
}

/// The answer to a client that types while another one does.
pub(crate) fn keyboard_taken(why: &str) -> Box<RequestProblem> {
    let mut problem = RequestProblem::conflict(format!(
        "{why}; the keyboard is free {} s after the last key",
        KEYBOARD_HOLD.as_secs()
    ));
    problem.code = "keyboard-taken";
    problem
}

/// A client that looks at a screen.
#[derive(Debug)]
pub(crate) struct ScreenViewer {
    screen: Arc<SharedScreen>,
    frames: watch::Receiver<RenderedFrames>,
    form: ScreenForm,
    is_over: bool,
    /// When the last frame was sent.
    sent_at: Option<Instant>,
}

impl ScreenViewer {
    fn of(screen: &Arc<SharedScreen>, form: ScreenForm) -> Self {
        let mut frames = screen.frames.subscribe();
        if form == ScreenForm::Whole {
            screen.whole_viewers.fetch_add(1, Ordering::SeqCst);
        }
        let is_there = match form {
            ScreenForm::Whole => frames.borrow().whole.is_some(),
            ScreenForm::Tile => frames.borrow().tile.is_some(),
        };
        if is_there {
            frames.mark_changed();
        } else {
            screen.is_asked.store(true, Ordering::SeqCst);
        }
        Self { screen: Arc::clone(screen), frames, form, is_over: false, sent_at: None }
    }

    /// The next frame that this client has not got; nothing when the run is over and everything was sent.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        while !self.is_over {
            // An opened screen is rendered more often than its tile may change.
            if let Some(at) = self.sent_at.filter(|_| self.form == ScreenForm::Tile) {
                tokio::time::sleep_until((at + TILE_INTERVAL).into()).await;
            }
            if self.frames.changed().await.is_err() {
                return None;
            }
            let newest = self.frames.borrow_and_update().clone();
            self.is_over = newest.is_last;
            let frame = match self.form {
                ScreenForm::Whole => newest.whole,
                ScreenForm::Tile => newest.tile,
            };
            if frame.is_some() {
                self.sent_at = Some(Instant::now());
                return frame;
            }
        }
        None
    }
}

impl Drop for ScreenViewer {
    fn drop(&mut self) {
        if self.form == ScreenForm::Whole {
            self.screen.whole_viewers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Renders one screen for as long as a client looks.
struct ScreenPainter {
    service: SharedService,
    run: RunId,
    shared: Arc<SharedScreen>,
}

impl ScreenPainter {
    async fn paint(self, mut screen: RunScreen) {
        let mut length = None;
        let mut asked_at = None;
        loop {
            if self.leave_if_alone() || self.service.stopping.is_cancelled() {
                return;
            }
            let is_asked = self.shared.is_asked.swap(false, Ordering::SeqCst);
            // The store is asked before the file is read, so that nothing before the end is missed.
            let is_due = asked_at.is_none_or(|at: Instant| at.elapsed() >= END_INTERVAL);
            let is_over = is_due && !self.is_live().await;
            if is_due {
                asked_at = Some(Instant::now());
            }
            // One system call, which is over before another thread would be awake.
            let found = std::fs::metadata(screen.path()).ok().map(|file| file.len());
            if found != length || is_asked || is_over {
                length = found;
                match self.render(screen, is_over).await {
                    Some((rendered, frames)) => {
                        screen = rendered;
                        // A frame that looks like the one before is not sent.
                        self.shared.frames.send_if_modified(|before| {
                            let is_new = *before != frames;
                            *before = frames;
                            is_new
                        });
                    }
                    // It cannot be read any more.
                    None => break,
                }
            }
            if is_over {
                break;
            }
            let interval = match self.shared.whole_viewers.load(Ordering::SeqCst) {
                0 => TILE_INTERVAL,
                _ => SCREEN_INTERVAL,
            };
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = self.service.stopping.cancelled() => return,
            }
        }
        self.forget();
    }

    /// Reads and renders on a thread that may wait.
    async fn render(
        &self,
        mut screen: RunScreen,
        is_over: bool,
    ) -> Option<(RunScreen, RenderedFrames)> {
        let run = self.run.to_string();
        let wants_whole = self.shared.whole_viewers.load(Ordering::SeqCst) > 0;
        let work = move |_: &Town| {
            screen.update()?;
            let frame = screen.frame();
            let is_terminal = screen.source() == ScreenSource::Terminal;
            let event = |name: &str, frame| {
                let document = ScreenDocument::of(&run, is_terminal, frame, is_over);
                // JSON on one line has no line breaks, so that one data field holds it.
                Bytes::from(format!("event: {name}\ndata: {}\n\n", to_json(&document)))
            };
            let frames = RenderedFrames {
                whole: wants_whole.then(|| event("screen", &frame)),
                tile: Some(event("tile", &frame.tile(TILE_LINES, TILE_COLUMNS))),
                is_last: is_over,
            };
            Ok::<_, Box<RequestProblem>>((screen, frames))
        };
        self.service.ask(work).await.ok()
    }

    async fn is_live(&self) -> bool {
        let run = self.run.clone();
        let read = move |town: &Town| {
            let run = town.read(|reader| Ok(reader.run(&run)?))?;
            Ok::<_, Box<RequestProblem>>(run.is_some_and(|run| run.state.is_live()))
        };
        // A store that cannot be read does not end what is shown.
        self.service.look_up(read).await.unwrap_or(true)
    }

    /// Ends the rendering if no client looks any more.
    fn leave_if_alone(&self) -> bool {
        let mut shared = locked(&self.service.screens.shared);
        if self.shared.frames.receiver_count() > 0 {
            return false;
        }
        shared.remove(&self.run);
        true
    }

    fn forget(&self) {
        locked(&self.service.screens.shared).remove(&self.run);
    }
}
