//! Sessions that are begun before there is a run for them.
//!
//! A session and the supervisor in it take as long to begin as all decisions about a run, and nothing in them depends on
//! which run it will be. So one is begun for the polecat that is going to get a run: while that is being decided, or where
//! its tree stands ready. Whoever has reserved the polecat then finds a supervisor that only has to be told.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use gt_core::schedule::RunId;
use gt_executors::runs::{
    Post, RunFiles, Standby, enter_control_group, give_order, is_listened_to, make_post, post_of,
    speak_into,
};
use gt_executors::tmux::Tmux;

use super::spawner::{SessionWords, begin_session, session_server};
use super::supervise::supervise;
use crate::{Actor, OperationError, Result, Town};

/// How long a session may take until its supervisor listens: on a machine that is very busy, with a server to be started
/// before.
pub(super) const LISTENS_WITHIN: Duration = Duration::from_secs(3);

/// Whether a supervisor waits in this session for a run; then nobody works in it.
pub(crate) fn stands_by(town: &Town, session: &str) -> bool {
    post_of(&town.runs_directory(), session).exists()
}

/// Tells the supervisor that waits in this session, if one does, to carry out a run. Only whoever has reserved the polecat
/// of the session does.
pub(super) fn tell(runs: &Path, session: &str, run: &RunId, agent: &str) -> bool {
    let post = post_of(runs, session);
    post.exists() && give_order(&post, &format!("{run} {agent}"), LISTENS_WITHIN)
}

/// A session that was begun ahead. When this is dropped and nobody had a run for it, it ends.
pub struct SessionAhead {
    post: PathBuf,
    /// Until then it is not known whether there is one.
    begun: Option<JoinHandle<Option<Standby>>>,
}

impl SessionAhead {
    /// Begins a session, beside whatever else is done; nothing if somebody else has. Whatever goes wrong is left to those
    /// who have a run for it and begin one themselves, who can say so.
    pub fn begin(town: &Town, program: &Path, session: &str) -> Option<Self> {
        let runs = town.runs_directory();
        gt_executors::private::create_dir_all(&runs).ok()?;
        let post = post_of(&runs, session);
        if !make_post(&post).ok()? {
            return None;
        }
        let tmux = Tmux::of_town(&session_server(town));
        let words = SessionWords::standing_by(program, town.root(), &post);
        let (root, session, at) = (town.root().to_owned(), session.to_owned(), post.clone());
        // Nobody comes to listen where it did not begin.
        let begin = move || {
            let begun = begin_session(&tmux, &session, &root, &words);
            let limit = if begun.is_ok() { LISTENS_WITHIN } else { Duration::ZERO };
            Standby::wait(&at, limit)
        };
        let begun = std::thread::Builder::new().spawn(begin);
        if begun.is_err() {
            let _ = std::fs::remove_file(&post);
        }
        Some(Self { post, begun: Some(begun.ok()?) })
    }

    /// Whether somebody had a run for it, or it has ended.
    fn is_over(&self) -> bool {
        let is_begun = self.begun.as_ref().is_none_or(JoinHandle::is_finished);
        is_begun && !is_listened_to(&self.post)
    }
}

impl Drop for SessionAhead {
    fn drop(&mut self) {
        // The end of what the thread gives is what ends the session.
        if let Some(begun) = self.begun.take() {
            drop(begun.join());
        }
    }
}

/// The sessions that somebody keeps for the polecats whose trees stand ready.
#[derive(Default)]
pub(crate) struct SessionsAhead(HashMap<String, SessionAhead>);

impl SessionsAhead {
    /// Sees to it that there is one for each of these, and none for others.
    pub(crate) fn keep(&mut self, town: &Town, program: &Path, wanted: &[String]) {
        self.0.retain(|session, ahead| wanted.contains(session) && !ahead.is_over());
        for session in wanted {
            if !self.0.contains_key(session)
                && let Some(ahead) = SessionAhead::begin(town, program, session)
            {
                self.0.insert(session.clone(), ahead);
            }
        }
    }
}

/// Waits for an order and carries it out: what `gt worker exec --stand-by` does. `open` opens the town.
pub fn supervise_on_order<E: From<OperationError>>(
    pipe: &Path,
    program: &Path,
    open: impl FnOnce() -> std::result::Result<Town, E>,
) -> std::result::Result<(), E> {
    let failed = |action| {
        let path = pipe.to_owned();
        move |source| OperationError::File { action, path, source }
    };
    // First, because somebody may have an order already.
    let post = Post::take(pipe).map_err(failed("listen at"))?;
    let town = open()?;
    get_ready(&town)?;
    let Some(order) = post.order().map_err(failed("read"))? else { return Ok(()) };
    let (run, agent) = order.split_once(' ').unwrap_or((&order, ""));
    let id = RunId::parse(run).map_err(OperationError::from)?;
    let voice = RunFiles::of(&town.runs_directory(), run).voice_path();
    speak_into(&voice).map_err(failed("speak for"))?;
    let town = town.acting_as(Actor { name: agent.to_owned(), owner: String::new() }, None);
    Ok(supervise(&town, &id, program)?)
}

/// Reads what every run asks for, so that it need not be found out how when there is one.
fn get_ready(town: &Town) -> Result<()> {
    if town.scheduler_settings()?.control_groups {
        enter_control_group(&town.runs_directory());
    }
    town.read(|reader| {
        reader.rigs()?;
        reader.live_runs()?;
        Ok(reader.prepare_claim()?)
    })
}
