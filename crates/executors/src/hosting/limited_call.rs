//! One call of a tool: a limited time, limited output, both streams apart.

use std::io::{self, Read, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::background::{ends_within, nameless_file, spawn};
use crate::process::command_in_as_git;

/// How long the last output may take to arrive after the tool has ended.
const LAST_OUTPUT_LIMIT: Duration = Duration::from_secs(5);

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitedCall<'a> {
    /// The tool.
    pub(super) program: &'a str,
    /// Its arguments.
    pub(super) arguments: &'a [String],
    /// Where it runs.
    pub(super) directory: &'a Path,
    /// Variables it gets besides those of our caller.
    pub(super) environment: &'a [(String, String)],
    /// The bytes on its standard input.
    pub(super) input: &'a [u8],
    /// How long it may take.
    pub(super) limit: Duration,
    /// How many bytes of each stream are read.
    pub(super) output_bytes_max: u64,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// The tool has ended by itself.
    Ended(CallOutput),
    /// It was ended at the time limit, with everything that it had started.
    TooLate,
    /// It printed more than is read.
    TooMuch,
}

/// The output of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallOutput {
    /// Its exit code; none if a signal ended it.
    pub(super) code: Option<i32>,
    /// Its standard output.
    pub(super) stdout: String,
    /// Its standard error.
    pub(super) stderr: String,
}

impl LimitedCall<'_> {
    /// Makes the call.
    pub(super) fn run(&self) -> io::Result<CallEnd> {
        let mut input = nameless_file(self.directory)?;
        input.write_all(self.input)?;
        input.rewind()?;
        let mut command = command_in_as_git(self.program, self.directory);
        command
            .args(self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = spawn(&mut command)?;
        let stdout = child.stdout.take().map(|pipe| read_limited(pipe, self.output_bytes_max));
        let stderr = child.stderr.take().map(|pipe| read_limited(pipe, self.output_bytes_max));
        let in_time = ends_within(&child, self.limit);
        // The child is not collected yet, so its number is still its own. A process that it left behind may hold its
        // output open.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let status = child.wait()?;
        if !in_time {
            return Ok(CallEnd::TooLate);
        }
        let (Some(stdout), Some(stderr)) = (received(stdout), received(stderr)) else {
            return Ok(CallEnd::TooLate);
        };
        let is_too_much = |bytes: &[u8]| bytes.len() as u64 > self.output_bytes_max;
        if is_too_much(&stdout) || is_too_much(&stderr) {
            return Ok(CallEnd::TooMuch);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&stdout), text(&stderr));
        Ok(CallEnd::Ended(CallOutput { code: status.code(), stdout, stderr }))
    }
}

/// Reads a pipe to its end, or one byte more than the limit; then the pipe is closed, and its writer fails.
fn read_limited(pipe: impl Read + Send + 'static, bytes_max: u64) -> Receiver<Vec<u8>> {
    let (read, output) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Bytes that were read before an error still tell something.
        let _ = pipe.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
        let _ = read.send(bytes);
    });
    output
}

fn received(output: Option<Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    output?.recv_timeout(LAST_OUTPUT_LIMIT).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(script: &str, limit: Duration) -> CallEnd {
        let directory = tempfile::tempdir().unwrap();
        let arguments = ["-c", script].map(str::to_owned);
        let environment = [("COLOUR".to_owned(), "red".to_owned())];
        let call = LimitedCall {
            program: "sh",
            arguments: &arguments,
            directory: directory.path(),
            environment: &environment,
            input: b"in\n",
            limit,
            output_bytes_max: 100,
        };
        call.run().unwrap()
    }

    const LONG: Duration = Duration::from_mins(10);

    #[test]
    fn both_streams_and_the_exit_code_are_returned() {
        let ended = call("cat; echo $COLOUR >&2; exit 3", LONG);
        let (stdout, stderr) = ("in\n".to_owned(), "red\n".to_owned());
        assert_eq!(ended, CallEnd::Ended(CallOutput { code: Some(3), stdout, stderr }));
    }

    #[test]
    fn a_tool_over_its_time_limit_ends_with_its_children() {
        let marker = tempfile::tempdir().unwrap();
        let script = format!("(sleep 600; touch {}/late) & wait", marker.path().display());
        assert_eq!(call(&script, Duration::from_millis(200)), CallEnd::TooLate);
    }

    #[test]
    fn a_tool_that_prints_too_much_is_not_read_to_its_end() {
        assert_eq!(call("yes", LONG), CallEnd::TooMuch);
        assert_eq!(call("yes >&2", LONG), CallEnd::TooMuch);
    }

    #[test]
    fn a_process_that_is_left_behind_does_not_hold_up_the_answer() {
        let CallEnd::Ended(output) = call("sleep 600 & echo done", LONG) else { panic!() };
        assert_eq!(output.stdout, "done\n");
    }
}
