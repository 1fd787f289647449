//! How home stays with a run on another machine.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::calls::{HomeCalls, HomeCommands};
use super::connection::{SshConnection, SshConnectionError};
use super::protocol::{FromHome, FromThere, RemoteOrder, RemoteReady, RemoteRunEnd};
use super::site::RemoteRunRecord;
use crate::runs::{
    AgentEnd, ControlPipe, REMOVAL_CHECK_INTERVAL, RunFiles, RunLock, SupervisorRequest,
};

/// The result of asking the other machine to take a run.
#[derive(Debug)]
pub enum RemoteRunReply {
    /// It has its lock, and waits for the order.
    Ready(Box<SshConnection>, RemoteReady),
    /// It cannot have it yet.
    Busy(String),
    /// It cannot have it.
    Refused(String),
}

/// Has the other machine take the lock of a run.
pub fn begin(
    posting: &RemoteRunRecord,
    files: &RunFiles,
) -> Result<RemoteRunReply, SshConnectionError> {
    let mut line = SshConnection::dial(&posting.site, files.root())?;
    line.say(&FromHome::Begin(posting.place.clone()), &[])?;
    let host = &posting.site.host;
    loop {
        match line.answer()? {
            FromThere::Ready(ready) => return Ok(RemoteRunReply::Ready(Box::new(line), ready)),
            FromThere::Refused { why, busy: true } => {
                return Ok(RemoteRunReply::Busy(format!("{why}, on {host}")));
            }
            FromThere::Refused { why, .. } => {
                return Ok(RemoteRunReply::Refused(format!("{host}: {why}")));
            }
            // Nothing else is said before a run is ordered.
            _ => {}
        }
    }
}

/// Gives the order. From here on an agent may be there, even if the line breaks.
pub fn order(
    line: &SshConnection,
    order: RemoteOrder,
    prompt: &[u8],
) -> Result<(), SshConnectionError> {
    line.say(&FromHome::Order(order), prompt)
}

/// How it ended with a run over there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteRunOutcome {
    /// Its agent ended like this.
    Ended(AgentEnd),
    /// Its agent could not be started.
    NotStarted(String),
    /// Nothing of it is left, and its end was not seen.
    Vanished {
        /// Whether the machine was started anew meanwhile.
        rebooted: bool,
    },
    /// The result is not wanted any more, or its files at home were deleted, and the machine cannot be reached.
    Abandoned,
}

/// A run over there that home stays with.
pub struct RemoteRun<'a> {
    /// Its files at home.
    pub files: &'a RunFiles,
    /// Its lock at home.
    pub lock: &'a RunLock,
    /// Where it is.
    pub posting: &'a RemoteRunRecord,
    /// How the commands of its agent are executed.
    pub caller: &'a HomeCommands,
    /// Whether the result is still wanted; asked before each dialling.
    pub is_wanted: &'a dyn Fn() -> bool,
    /// Whether it was already asked to end.
    pub is_cancelled: bool,
}

/// The pause before the machine is dialled again: at first, and at most.
const DIAL_PAUSE_MIN: Duration = Duration::from_millis(250);
const DIAL_PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long it is tried to pass on a request about a run that is over in the store.
const WISH_PATIENCE: Duration = Duration::from_mins(10);

impl RemoteRun<'_> {
    /// Stays with the run until nothing of it is left, over as many lines as that takes, beginning with this one. `started`
    /// is called once it is known that the agent is there.
    pub fn to_the_end(
        &self,
        line: Option<Box<SshConnection>>,
        started: &mut dyn FnMut(),
    ) -> io::Result<RemoteRunOutcome> {
        let mut slot = None;
        let control = ControlPipe::ready(&mut slot, self.files)?;
        let mut output =
            crate::private::options().append(true).create(true).open(self.files.output_path())?;
        let wish = self.is_cancelled.then_some(SupervisorRequest::Cancel);
        let calls = HomeCalls::default();
        let mut visit = RemoteRunLoop { stay: self, control, output: &mut output, wish, calls };
        let mut line = line;
        // The mark of an earlier supervisor may be out of date.
        self.mark(None);
        let (mut pause, mut down_since) = (DIAL_PAUSE_MIN, None);
        loop {
            let broken = match line.take() {
                Some(mut line) => match visit.listen(&mut line, started) {
                    ListenResult::Over(outcome) => return Ok(outcome),
                    ListenResult::Broken { why, was_of_use } => {
                        if was_of_use {
                            (pause, down_since) = (DIAL_PAUSE_MIN, None);
                        }
                        why
                    }
                },
                None => match self.rejoin(visit.output) {
                    Ok(joined) => {
                        line = Some(joined);
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
            };
            // Calls over the line that broke cannot be answered any more.
            visit.calls = HomeCalls::default();
            self.mark(Some(&broken));
            let down_since = *down_since.get_or_insert_with(Instant::now);
            if self.lock.is_removed() {
                return Ok(RemoteRunOutcome::Abandoned);
            }
            let is_missed = visit.wish.is_some() && down_since.elapsed() < WISH_PATIENCE;
            if !is_missed && !(self.is_wanted)() {
                return Ok(RemoteRunOutcome::Abandoned);
            }
            visit.rest(pause);
            pause = (pause * 2).min(DIAL_PAUSE_MAX);
        }
    }

    fn rejoin(&self, output: &File) -> Result<Box<SshConnection>, SshConnectionError> {
        let line = SshConnection::dial(&self.posting.site, self.files.root())?;
        // If its length cannot be read, the output is sent from the beginning, rather than not at
        // all.
        let output_from = output.metadata().map_or(0, |output| output.len());
        line.say(&FromHome::Join { place: self.posting.place.clone(), output_from }, &[])?;
        Ok(Box::new(line))
    }

    /// Says to others why the machine cannot be reached, or, with an empty file, since when it can.
    fn mark(&self, broken: Option<&str>) {
        // It is told to people; no end of a run depends on it. An empty file would say that the machine can be reached.
        let _ = crate::private::replace(&self.files.unreachable_path(), broken.unwrap_or_default());
    }
}

/// The result of listening on a line.
enum ListenResult {
    Over(RemoteRunOutcome),
    Broken {
        why: String,
        /// Whether anything came over it.
        was_of_use: bool,
    },
}

/// Being on the line, or waiting for one.
struct RemoteRunLoop<'a> {
    stay: &'a RemoteRun<'a>,
    control: &'a mut ControlPipe,
    output: &'a mut File,
    /// The request about the run; said over every line anew.
    wish: Option<SupervisorRequest>,
    calls: HomeCalls,
}

impl RemoteRunLoop<'_> {
    /// Listens until the run is over or the line is.
    fn listen(&mut self, line: &mut SshConnection, started: &mut dyn FnMut()) -> ListenResult {
        let mut was_of_use = false;
        let broken = |error: &SshConnectionError, was_of_use| ListenResult::Broken {
            why: error.to_string(),
            was_of_use,
        };
        // Before the agent is there, no process over there would hear a request.
        let (mut is_there, mut is_told) = (false, None);
        loop {
            loop {
                let (message, payload) = match line.message() {
                    Ok(Some(message)) => message,
                    Ok(None) => break,
                    Err(error) => return broken(&error, was_of_use),
                };
                match message {
                    FromThere::Started | FromThere::Alive => {
                        // Said once for each line: it tells since when the machine can be reached.
                        if !is_there {
                            self.stay.mark(None);
                        }
                        (is_there, was_of_use) = (true, true);
                        started();
                    }
                    FromThere::Output => {
                        // Output that could not be kept is asked for again.
                        if let Err(error) = self.output.write_all(&payload) {
                            let why = format!("its output cannot be kept here: {error}");
                            return ListenResult::Broken { why, was_of_use: false };
                        }
                    }
                    FromThere::Ended(ended) => {
                        self.stay.mark(None);
                        return ListenResult::Over(self.outcome(&ended));
                    }
                    FromThere::NotStarted { why } => {
                        self.stay.mark(None);
                        return ListenResult::Over(RemoteRunOutcome::NotStarted(why));
                    }
                    FromThere::Unknown { why } | FromThere::Refused { why, .. } => {
                        return ListenResult::Broken { why, was_of_use: false };
                    }
                    FromThere::Call { call, request } => {
                        self.calls.begin(self.stay.caller, call, request, &line.voice());
                    }
                    FromThere::Input { call } => self.calls.input(call, payload),
                    FromThere::HungUp { call } => self.calls.hang_up(call),
                    FromThere::Ready(_) => {}
                }
            }
            if is_there && self.wish.is_some() && self.wish != is_told {
                is_told = self.wish;
                let word = match self.wish {
                    Some(SupervisorRequest::Cancel) => FromHome::Cancel,
                    Some(SupervisorRequest::Leave | SupervisorRequest::HandOver) | None => {
                        FromHome::Leave
                    }
                };
                if let Err(error) = line.say(&word, &[]) {
                    return broken(&error, was_of_use);
                }
            }
            let [is_spoken_to, is_heard] = {
                let mut polled = [
                    PollFd::new(&*self.control, PollFlags::IN),
                    PollFd::new(&*line, PollFlags::IN),
                ];
                // The reason why the wait ended does not matter: the loop looks again.
                let timeout = Timespec::try_from(REMOVAL_CHECK_INTERVAL).ok();
                let _ = poll(&mut polled, timeout.as_ref());
                polled.map(|polled| !polled.revents().is_empty())
            };
            if is_spoken_to {
                self.hear_wish();
            }
            if self.stay.lock.is_removed() {
                self.wish = Some(SupervisorRequest::Cancel);
            }
            if is_heard && let Err(error) = line.hear() {
                return broken(&error, was_of_use);
            }
        }
    }

    fn hear_wish(&mut self) {
        // A run over there has one session: a request for another was refused already.
        let heard = self.control.wish().filter(|wish| *wish != SupervisorRequest::HandOver);
        // The stronger request wins.
        self.wish = self.wish.max(heard);
    }

    /// Waits before the next dialling. Requests are heard meanwhile, and a cancellation does not
    /// wait for the whole pause.
    fn rest(&mut self, pause: Duration) {
        let began = Instant::now();
        loop {
            let left = pause.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            let timeout = Timespec::try_from(left).ok();
            let mut polled = [PollFd::new(&*self.control, PollFlags::IN)];
            let _ = poll(&mut polled, timeout.as_ref());
            if !polled.map(|polled| polled.revents().is_empty())[0] {
                self.hear_wish();
                return;
            }
        }
    }

    fn outcome(&self, ended: &RemoteRunEnd) -> RemoteRunOutcome {
        match ended.end.as_deref().and_then(AgentEnd::parse) {
            Some(end) => RemoteRunOutcome::Ended(end),
            None if !ended.begun => {
                RemoteRunOutcome::NotStarted("the line broke before its agent was there".to_owned())
            }
            None => RemoteRunOutcome::Vanished {
                rebooted: self.stay.posting.boot.is_some() && ended.boot != self.stay.posting.boot,
            },
        }
    }
}
