//! Commands that agents on another machine call, done here.

use std::collections::HashMap;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use super::connection::ConnectionWriter;
use super::protocol::{FromHome, OutputStream};
use crate::background::spawn;
use crate::process::command_in;

/// How the commands of one run are done.
pub struct HomeCommand {
    /// Our own program.
    pub program: PathBuf,
    /// The directory in which commands run.
    pub directory: PathBuf,
    /// The variables that identify the run.
    pub environment: Vec<(String, String)>,
    /// Translates a command line of the agent over there into one here, or says why it is refused.
    pub translate: fn(&str, Vec<String>) -> Result<Vec<String>, String>,
}

/// How much one command may read.
const INPUT_BYTES_MAX: usize = 64 << 20;

/// A command that is under way.
#[derive(Debug)]
struct RunningCall {
    child: Arc<Mutex<Child>>,
    /// Sends it further input; nothing once that has ended.
    input: Option<mpsc::Sender<Vec<u8>>>,
    input_bytes: usize,
    is_over: Arc<AtomicBool>,
}

/// The commands that are under way for one run. They end with it.
#[derive(Default)]
pub(super) struct HomeCalls {
    running: HashMap<u64, RunningCall>,
}

impl HomeCalls {
    /// Begins a command; its answer goes to the calling agent, over the line.
    pub(super) fn begin(
        &mut self,
        caller: &HomeCommand,
        call: u64,
        program: &str,
        arguments: Vec<String>,
        voice: &ConnectionWriter,
    ) {
        // Commands that were answered are forgotten, with input that they have not read.
        self.running.retain(|_, running| !running.is_over.load(Ordering::Relaxed));
        let begun = (caller.translate)(program, arguments).and_then(|arguments| {
            start(caller, &arguments, call, voice).map_err(|error| error.to_string())
        });
        match begun {
            Ok(running) => {
                self.running.insert(call, running);
            }
            Err(why) => refuse(voice, call, &why),
        }
    }

    /// Gives a command more to read; nothing says that this was all.
    pub(super) fn input(&mut self, call: u64, bytes: Vec<u8>) {
        let Some(running) = self.running.get_mut(&call) else { return };
        running.input_bytes += bytes.len();
        if bytes.is_empty() || running.input_bytes > INPUT_BYTES_MAX {
            running.input = None;
        } else if let Some(input) = &running.input {
            // A command that has ended does not read.
            let _ = input.send(bytes);
        }
    }

    /// Ends a command whose caller is gone. One that has ended is not touched.
    pub(super) fn hang_up(&mut self, call: u64) {
        if let Some(running) = self.running.remove(&call) {
            end(&running);
        }
    }
}

impl Drop for HomeCalls {
    fn drop(&mut self) {
        self.running.values().for_each(end);
    }
}

fn end(running: &RunningCall) {
    let _ = running.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
}

fn refuse(voice: &ConnectionWriter, call: u64, why: &str) {
    let said = FromHome::Said { call, stream: OutputStream::Error };
    // If the line has broken, the calling agent sees that.
    let _ = voice.say(&said, format!("Error: {why}\n").as_bytes());
    let _ = voice.say(&FromHome::Answered { call, status: 1 }, &[]);
}

fn start(
    caller: &HomeCommand,
    arguments: &[String],
    call: u64,
    voice: &ConnectionWriter,
) -> io::Result<RunningCall> {
    let mut command = command_in(&caller.program, &caller.directory);
    command
        .args(arguments)
        .envs(caller.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = spawn(&mut command)?;
    let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
    let ((stdin, out), error) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
    let child = Arc::new(Mutex::new(child));
    let (input, more) = mpsc::channel();
    thread::Builder::new().spawn(move || give(stdin, &more))?;
    let tell = |from: Box<dyn Read + Send>, stream| {
        let voice = voice.clone();
        thread::Builder::new().spawn(move || pass(from, call, stream, &voice))
    };
    let told =
        [tell(Box::new(out), OutputStream::Out)?, tell(Box::new(error), OutputStream::Error)?];
    let is_over = Arc::new(AtomicBool::new(false));
    let (waited, over, voice) = (Arc::clone(&child), Arc::clone(&is_over), voice.clone());
    thread::Builder::new().spawn(move || {
        for stream in told {
            let _ = stream.join();
        }
        let ended = waited.lock().unwrap_or_else(PoisonError::into_inner).wait();
        let code = ended.ok().and_then(|status| status.code());
        let status = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
        over.store(true, Ordering::Relaxed);
        let _ = voice.say(&FromHome::Answered { call, status }, &[]);
    })?;
    Ok(RunningCall { child, input: Some(input), input_bytes: 0, is_over })
}

/// Writes the input of a command.
fn give(mut stdin: ChildStdin, more: &mpsc::Receiver<Vec<u8>>) {
    for bytes in more {
        if stdin.write_all(&bytes).is_err() {
            // It has read enough.
            return;
        }
    }
}

/// Passes on the output of a command.
fn pass(mut from: Box<dyn Read + Send>, call: u64, stream: OutputStream, voice: &ConnectionWriter) {
    let mut chunk = vec![0; 32 << 10];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        if voice.say(&FromHome::Said { call, stream }, &chunk[..read]).is_err() {
            return;
        }
    }
}
