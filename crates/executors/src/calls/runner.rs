//! The part of a call that knows commands; the rest only moves bytes.

use std::fmt;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::caller_connection::CallerFiles;
use super::protocol::{CallRequest, OutputStream};
use crate::process::while_serving;

/// Carries out the commands of workers, on the thread that calls it.
pub trait CallRunner: Send + Sync {
    /// Carries out one command, with these streams. Gives its exit status.
    fn run(&self, request: CallRequest, streams: CallStreams) -> u8;
}

/// The exit status of a command that panicked, as that of a process would be.
pub(super) const PANICKED: u8 = 101;

/// Carries out one command. A panic of it ends this call alone.
pub(super) fn run_guarded(
    runner: &dyn CallRunner,
    request: CallRequest,
    streams: CallStreams,
) -> u8 {
    let output = streams.output.clone();
    let run = || while_serving(|| runner.run(request, streams));
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let sentence = b"Error: gt broke down over this; its log has the reason\n";
        let _ = output.0.write(OutputStream::Error, sentence);
        PANICKED
    })
}

/// The standard streams of a caller.
pub struct CallStreams {
    /// Its standard input, which is asked for when it is first read. If the caller goes away before its end, reading fails.
    pub input: Box<dyn Read + Send>,
    /// Its two outputs.
    pub output: CallerOutput,
    /// The files that it names.
    pub files: CallerFiles,
}

/// Where the output of a call goes.
pub trait OutputSink: Send + Sync {
    /// Passes bytes on. Fails if the caller has gone.
    fn write(&self, stream: OutputStream, bytes: &[u8]) -> io::Result<()>;
    /// Waits this long, or until the caller has gone; says whether it has.
    fn wait_for_end(&self, time: Duration) -> bool;
}

/// The outputs of a caller; clones lead to the same caller.
#[derive(Clone)]
pub struct CallerOutput(pub Arc<dyn OutputSink>);

impl fmt::Debug for CallerOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerOutput")
    }
}

impl fmt::Debug for CallStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallStreams")
    }
}
