//! `gt` and `bd` as a worker calls them: carried out by the process that listens at a socket.

use std::io::{self, BufReader, IsTerminal as _, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::files::OwnFiles;
use super::frames::{receive, send};
use super::peer::is_socket_of_this_user;
use super::protocol::{CallReply, CallRequest, CallerMessage, OutputStream};

/// How long it is tried to connect, and how long apart.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(45);
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// How long a caller waits before it is told so. A daemon that is started anew takes less.
const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// How often a command that may be repeated is asked for.
const CALLS_MAX: u32 = 3;

/// How much standard input is sent in one message.
pub(super) const INPUT_CHUNK_BYTES: usize = 32 << 10;

/// Why a command was not carried out, as far as can be told.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No process listens on the machine of the town.
    #[error(
        "neither the daemon nor the supervisor of this run answers, so nothing was done; go on with what needs no gt and try \
         this again in a few minutes, or ask a person to start the daemon (gt up)"
    )]
    NoServer,
    /// There is no line home.
    #[error(
        "home cannot be reached from here, so nothing was done: the line to it is down; it is dialled again by itself, so \
         go on with what needs no gt and try this again in a few minutes"
    )]
    NoLine,
    /// The connection broke meanwhile.
    #[error(
        "the connection broke before an answer came, so this may or may not have been done; look before you do it again"
    )]
    Broken,
}

/// A command that is about to be carried out elsewhere.
#[derive(Debug)]
pub struct Calling<'a> {
    /// The sockets at which a process may listen, in the order in which they are tried.
    pub sockets: &'a [PathBuf],
    /// How long it is tried to connect; [`Calling::WAIT_MAX`] is usual.
    pub patience: Duration,
    /// Whether the command may be carried out twice. It is asked for again if the process that had it dies without a word.
    pub is_repeatable: bool,
}

impl Calling<'_> {
    /// How long it is usually tried to connect.
    pub const WAIT_MAX: Duration = CONNECT_WAIT_MAX;

    /// Has a command carried out, with our standard streams. Gives its exit status. `on_wait` is called once each time that has
    /// to wait.
    pub fn call(&self, request: &CallRequest, on_wait: &mut dyn FnMut()) -> Result<u8, CallError> {
        let mut calls_left = if self.is_repeatable { CALLS_MAX } else { 1 };
        loop {
            let mut has_answered = false;
            let called = self.call_once(request, on_wait, &mut has_answered);
            calls_left -= 1;
            if has_answered || calls_left == 0 || !matches!(called, Err(CallError::Broken)) {
                return called;
            }
        }
    }

    /// `has_answered` becomes true with the first message of the server, notes to people aside.
    fn call_once(
        &self,
        request: &CallRequest,
        on_wait: &mut dyn FnMut(),
        has_answered: &mut bool,
    ) -> Result<u8, CallError> {
        let unanswered =
            if request.token.is_some() { CallError::NoServer } else { CallError::NoLine };
        let Some(mut server) = self.connect(on_wait) else { return Err(unanswered) };
        send(&mut server, &CallerMessage::Call(request.clone()), &[])
            .map_err(|_| CallError::Broken)?;
        let mut from = BufReader::new(&server);
        let to = server.try_clone().map_err(|_| CallError::Broken)?;
        let to = Arc::new(Mutex::new(to));
        let mut files = OwnFiles::default();
        loop {
            let received = receive::<CallReply>(&mut from);
            let is_note =
                matches!(received, Ok(Some((CallReply::Said { stream: OutputStream::Error }, _))));
            *has_answered |= !is_note && matches!(received, Ok(Some(_)));
            match received {
                Ok(Some((CallReply::Said { stream, .. }, payload))) => {
                    // A closed output is no failure of the command.
                    let _ = match stream {
                        OutputStream::Out => {
                            io::stdout().write_all(&payload).and_then(|()| io::stdout().flush())
                        }
                        OutputStream::Error => io::stderr().write_all(&payload),
                    };
                }
                Ok(Some((CallReply::InputWanted, _))) => {
                    let input = Arc::clone(&to);
                    // It is not waited for: our caller may leave its input open for ever.
                    thread::spawn(move || pass_input(&input));
                }
                Ok(Some((CallReply::File { path, access }, piece))) => {
                    let mut answer = |error, piece: &[u8]| {
                        send_whole(&to, &CallerMessage::File { error }, piece)
                    };
                    // A command that does not want all of a file says why, and ends.
                    let _ = files.serve(Path::new(&path), access, &piece, &mut answer);
                }
                Ok(Some((CallReply::Answered { status }, _))) => return Ok(status),
                Ok(None) | Err(_) => return Err(CallError::Broken),
            }
        }
    }

    fn connect(&self, on_wait: &mut dyn FnMut()) -> Option<UnixStream> {
        let began = Instant::now();
        let mut is_told = false;
        loop {
            let connected = self.sockets.iter().find_map(|socket| {
                // A process of another user may have made a socket there, and is told nothing.
                is_socket_of_this_user(socket).then(|| UnixStream::connect(socket).ok()).flatten()
            });
            if connected.is_some() || began.elapsed() >= self.patience {
                return connected;
            }
            if began.elapsed() >= NOTICE_AFTER && !std::mem::replace(&mut is_told, true) {
                on_wait();
            }
            thread::sleep(CONNECT_RETRY_INTERVAL);
        }
    }
}

/// Sends standard input, to its end.
fn pass_input(server: &Mutex<UnixStream>) {
    let input = io::stdin();
    let mut chunk = vec![0; INPUT_CHUNK_BYTES];
    loop {
        let read = if input.is_terminal() { 0 } else { input.lock().read(&mut chunk).unwrap_or(0) };
        let sent = send_whole(server, &CallerMessage::Input, &chunk[..read]);
        if read == 0 || sent.is_err() {
            return;
        }
    }
}

/// Sends a message whole, beside another thread that sends others.
fn send_whole(
    server: &Mutex<UnixStream>,
    message: &CallerMessage,
    payload: &[u8],
) -> io::Result<()> {
    let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
    send(&mut *server, message, payload)
}
