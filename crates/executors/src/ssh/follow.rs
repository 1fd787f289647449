//! Reports the output and the end of a run over there to home.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::attendant::HomeWriter;
use super::protocol::{FromThere, RemoteRunEnd};
use crate::runs::{RunFiles, boot_identity};

/// How much of an output is sent at once.
const CHUNK: usize = 64 << 10;

/// The pauses between two looks at the output: while it grows, and at most.
const OUTPUT_POLL_MIN: Duration = Duration::from_millis(20);
const OUTPUT_POLL_MAX: Duration = Duration::from_millis(500);

/// Sends the output of a run from this byte on, as it grows, and how the run ended once nothing of it is left.
pub(super) fn follow(files: &RunFiles, from: u64, voice: &HomeWriter) -> io::Result<()> {
    let (ended, end) = mpsc::channel();
    let waited_for = files.clone();
    // The kernel wakes a thread that waits for a lock, so no polling is needed.
    thread::Builder::new().spawn(move || {
        // The receiver is gone when the line has gone first.
        let _ = ended.send(waited_for.wait_until_free());
    })?;
    let mut output = Output { files, file: None, at: from };
    let mut pause = OUTPUT_POLL_MIN;
    loop {
        let waited = end.recv_timeout(pause);
        pause = if output.send_all(voice)? {
            OUTPUT_POLL_MIN
        } else {
            (pause * 2).min(OUTPUT_POLL_MAX)
        };
        match waited {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(waited) => {
                waited?;
                break;
            }
            Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
    let end = files.agent_end()?.map(|end| end.to_string());
    let begun = files.output_path().exists();
    // The agent that could call home has ended.
    let _ = fs::remove_file(files.socket_path());
    voice.say(&FromThere::Ended(RemoteRunEnd { end, begun, boot: boot_identity() }), &[])
}

/// An output that may not be there yet.
struct Output<'a> {
    files: &'a RunFiles,
    file: Option<File>,
    at: u64,
}

impl Output<'_> {
    /// Sends everything that there is; says whether there was anything.
    fn send_all(&mut self, voice: &HomeWriter) -> io::Result<bool> {
        let file = match self.file.take() {
            Some(file) => file,
            None => match File::open(self.files.output_path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                opened => {
                    let mut file = opened?;
                    file.seek(SeekFrom::Start(self.at))?;
                    file
                }
            },
        };
        let file = self.file.insert(file);
        let mut chunk = vec![0; CHUNK];
        let mut any = false;
        loop {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                return Ok(any);
            }
            any = true;
            voice.say(&FromThere::Output, &chunk[..read])?;
        }
    }
}
