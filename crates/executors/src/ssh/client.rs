//! `gt` and `bd` as an agent on another machine calls them: done at home.

use std::io::{self, BufReader, IsTerminal as _, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::protocol::{FromHome, FromThere, OutputStream, receive, send};

/// How long it is tried to connect to home, and how long apart.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(90);
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Why a command was not done at home, as far as can be told.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There is no line home.
    #[error(
        "home cannot be reached from here, so nothing was done: the line to it is down; it is dialled again by itself, so \
         go on with what needs no gt and try this again in a few minutes"
    )]
    NoLine,
    /// The line broke meanwhile.
    #[error(
        "the line home broke before an answer came, so this may or may not have been done; look before you do it again"
    )]
    Broken,
}

/// Has a command done at home, with our standard streams. Gives its exit status.
pub fn call_home(socket: &Path, program: &str, arguments: Vec<String>) -> Result<u8, CallError> {
    let mut home = connect(socket)?;
    let call = FromThere::Call { call: 0, program: program.to_owned(), arguments };
    send(&mut home, &call, &[]).map_err(|_| CallError::NoLine)?;
    let input = home.try_clone().map_err(|_| CallError::Broken)?;
    // It is not waited for: our caller may leave its input open for ever.
    thread::spawn(move || pass_input(input));
    let mut from = BufReader::new(home);
    loop {
        match receive::<FromHome>(&mut from) {
            Ok(Some((FromHome::Said { stream, .. }, payload))) => {
                // A closed output is no failure of the command.
                let _ = match stream {
                    OutputStream::Out => {
                        io::stdout().write_all(&payload).and_then(|()| io::stdout().flush())
                    }
                    OutputStream::Error => io::stderr().write_all(&payload),
                };
            }
            Ok(Some((FromHome::Answered { status, .. }, _))) => return Ok(status),
            Ok(_) | Err(_) => return Err(CallError::Broken),
        }
    }
}

fn connect(socket: &Path) -> Result<UnixStream, CallError> {
    let began = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(home) => return Ok(home),
            Err(_) if began.elapsed() < CONNECT_WAIT_MAX => thread::sleep(CONNECT_RETRY_INTERVAL),
            Err(_) => return Err(CallError::NoLine),
        }
    }
}

/// Sends standard input, to its end.
fn pass_input(mut home: UnixStream) {
    let input = io::stdin();
    let mut chunk = vec![0; 32 << 10];
    loop {
        let read = if input.is_terminal() { 0 } else { input.lock().read(&mut chunk).unwrap_or(0) };
        let sent = send(&mut home, &FromThere::Input { call: 0 }, &chunk[..read]);
        if read == 0 || sent.is_err() {
            return;
        }
    }
}
