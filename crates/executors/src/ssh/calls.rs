//! Commands that agents on another machine call, carried out here.

use std::collections::HashMap;
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use gt_core::decide::CallerMachine;

use super::connection::ConnectionWriter;
use super::protocol::FromHome;
use crate::calls::{
    CallRequest, CallRunner, CallStreams, CallerOutput, OutputSink, OutputStream, check_input_size,
    run_guarded,
};

/// How the commands of one run are carried out.
pub struct HomeCommands {
    /// Carries them out.
    pub runner: Arc<dyn CallRunner>,
    /// The token of the run, which does not leave home: the line proves whose calls they are.
    pub token: String,
    /// The directory in which they are carried out.
    pub directory: String,
    /// The variables that identify the run.
    pub variables: Vec<(String, String)>,
}

/// A command that is under way.
struct RunningCall {
    /// Sends it further input; nothing once that has ended.
    input: Option<mpsc::Sender<Vec<u8>>>,
    output: Arc<LineOutput>,
}

/// The commands that are under way for one run.
#[derive(Default)]
pub(super) struct HomeCalls {
    running: HashMap<u64, RunningCall>,
}

impl HomeCalls {
    /// Begins a command; its answer goes to the calling agent, over the line.
    pub(super) fn begin(
        &mut self,
        home: &HomeCommands,
        call: u64,
        request: CallRequest,
        voice: &ConnectionWriter,
    ) {
        // Commands that were answered are forgotten, with input that they have not read.
        self.running.retain(|_, running| !running.output.is_over());
        let request = CallRequest {
            directory: Some(home.directory.clone()),
            token: Some(home.token.clone()),
            variables: home.variables.clone(),
            ..request
        };
        let output = Arc::new(LineOutput::new(call, voice.clone()));
        let (input, more) = mpsc::channel();
        let (runner, ours) = (Arc::clone(&home.runner), Arc::clone(&output));
        let carry_out = move || {
            let input = LineInput::new(more, Arc::clone(&ours));
            let streams = CallStreams {
                input: Box::new(input),
                output: CallerOutput(Arc::<LineOutput>::clone(&ours)),
            };
            let status = run_guarded(runner.as_ref(), CallerMachine::Other, request, streams);
            ours.end();
            // If the line has broken, the calling agent sees that.
            let _ = ours.voice.say(&FromHome::Answered { call, status }, &[]);
        };
        if thread::Builder::new().name("call".to_owned()).spawn(carry_out).is_ok() {
            self.running.insert(call, RunningCall { input: Some(input), output });
        } else {
            let _ = voice.say(&FromHome::Answered { call, status: 1 }, &[]);
        }
    }

    /// Gives a command more to read; nothing says that this was all.
    pub(super) fn input(&mut self, call: u64, bytes: Vec<u8>) {
        let Some(running) = self.running.get_mut(&call) else { return };
        let is_last = bytes.is_empty();
        if let Some(input) = &running.input {
            // A command that has ended does not read.
            let _ = input.send(bytes);
        }
        if is_last {
            running.input = None;
        }
    }

    /// Tells a command that its caller is gone.
    pub(super) fn hang_up(&mut self, call: u64) {
        if let Some(running) = self.running.remove(&call) {
            running.output.end();
        }
    }
}

impl Drop for HomeCalls {
    fn drop(&mut self) {
        self.running.values().for_each(|running| running.output.end());
    }
}

/// Where the output of a command goes: over the line.
struct LineOutput {
    call: u64,
    voice: ConnectionWriter,
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl LineOutput {
    fn new(call: u64, voice: ConnectionWriter) -> Self {
        Self { call, voice, is_over: Mutex::new(false), changed: Condvar::new() }
    }

    fn is_over(&self) -> bool {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl OutputSink for LineOutput {
    fn write(&self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        if self.is_over() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.voice.say(&FromHome::Said { call: self.call, stream }, bytes)
    }

    fn wait_for_end(&self, time: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_over, time, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The standard input of a command: what comes over the line.
struct LineInput {
    more: mpsc::Receiver<Vec<u8>>,
    output: Arc<LineOutput>,
    chunk: Cursor<Vec<u8>>,
    total_bytes: usize,
    is_asked: bool,
    is_over: bool,
}

impl LineInput {
    fn new(more: mpsc::Receiver<Vec<u8>>, output: Arc<LineOutput>) -> Self {
        let chunk = Cursor::default();
        Self { more, output, chunk, total_bytes: 0, is_asked: false, is_over: false }
    }
}

impl Read for LineInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.chunk.read(buffer)?;
        if read > 0 || buffer.is_empty() || self.is_over {
            return Ok(read);
        }
        if !std::mem::replace(&mut self.is_asked, true) {
            self.output.voice.say(&FromHome::InputWanted { call: self.output.call }, &[])?;
        }
        // Half of a text must not be taken for the whole.
        let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "the caller went away");
        let bytes = self.more.recv().map_err(|_| gone())?;
        self.is_over = bytes.is_empty();
        self.total_bytes += bytes.len();
        check_input_size(self.total_bytes)?;
        self.chunk = Cursor::new(bytes);
        self.chunk.read(buffer)
    }
}
