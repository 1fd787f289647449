//! Where agents over there call home: a socket beside the files of their run, as long as there is a line.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::attendant::HomeWriter;
use super::protocol::FromThere;
use crate::calls::protocol::{CallReply, CallerMessage};
use crate::calls::{OutputStream, receive, send};

/// How long a caller may take to read an answer.
const READING_PATIENCE: Duration = Duration::from_secs(10);

/// The callers that have not been answered yet, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange {
    callers: Arc<Mutex<HashMap<u64, UnixStream>>>,
}

impl Exchange {
    /// Opens the socket, instead of one that an earlier line has left. An agent works without one too; it is told when it
    /// calls.
    pub(super) fn open(socket: &Path, voice: &HomeWriter) -> Option<Self> {
        let exchange = Self::default();
        exchange.listen(socket, voice).ok().map(|()| exchange)
    }

    fn listen(&self, socket: &Path, voice: &HomeWriter) -> io::Result<()> {
        match std::fs::remove_file(socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(socket)?;
        std::fs::set_permissions(socket, PermissionsExt::from_mode(0o600))?;
        let (this, voice) = (self.clone(), voice.clone());
        thread::Builder::new().spawn(move || {
            for (number, caller) in listener.incoming().enumerate() {
                let Ok(caller) = caller else { continue };
                let (this, voice) = (this.clone(), voice.clone());
                // A caller that cannot be served sees the end of the connection.
                let _ = thread::Builder::new().spawn(move || {
                    let _ = this.serve(number as u64, &caller, &voice);
                });
            }
        })?;
        Ok(())
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<u64, UnixStream>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on the messages of a caller, until it hangs up.
    fn serve(&self, number: u64, caller: &UnixStream, voice: &HomeWriter) -> io::Result<()> {
        caller.set_write_timeout(Some(READING_PATIENCE))?;
        self.callers().insert(number, caller.try_clone()?);
        let mut from = BufReader::new(caller);
        while let Ok(Some((message, payload))) = receive::<CallerMessage>(&mut from) {
            match message {
                CallerMessage::Call(request) => {
                    voice.say(&FromThere::Call { call: number, request }, &[])?;
                }
                CallerMessage::Input => {
                    voice.say(&FromThere::Input { call: number }, &payload)?;
                }
            }
        }
        if self.callers().remove(&number).is_some() {
            voice.say(&FromThere::HungUp { call: number }, &[])?;
        }
        Ok(())
    }

    /// Passes on the output of a command.
    pub(super) fn said(&self, call: u64, stream: OutputStream, payload: &[u8]) {
        self.pass(call, &CallReply::Said { stream }, payload);
    }

    /// Passes on that a command reads its input.
    pub(super) fn input_wanted(&self, call: u64) {
        self.pass(call, &CallReply::InputWanted, &[]);
    }

    /// Passes on how a command has ended.
    pub(super) fn answered(&self, call: u64, status: u8) {
        self.pass(call, &CallReply::Answered { status }, &[]);
        if let Some(caller) = self.callers().remove(&call) {
            let _ = caller.shutdown(Shutdown::Both);
        }
    }

    fn pass(&self, call: u64, message: &CallReply, payload: &[u8]) {
        let caller = self.callers().get(&call).and_then(|caller| caller.try_clone().ok());
        if let Some(mut caller) = caller
            && send(&mut caller, message, payload).is_err()
        {
            // A caller that does not read is disconnected.
            let _ = caller.shutdown(Shutdown::Both);
        }
    }
}
