//! Starting a program, feeding it, and waiting for it without ever hanging.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::finished_program::FinishedProgram;
use crate::wait::holds_within;

/// How long a program may run. Generous: it is reached only when something hangs.
pub const TIME_LIMIT: Duration = Duration::from_mins(1);

/// The pause between two looks at a running program. Short, because it is added to every command
/// of every test.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How long the last output may take to arrive after a program was killed. Something else may
/// hold the pipe open, so it is not waited for without limit.
const LAST_OUTPUT_LIMIT: Duration = Duration::from_millis(500);

/// A program about to be started in a sandbox.
#[derive(Debug, Clone)]
#[must_use = "nothing runs before .run() or .start()"]
pub struct SandboxCommand {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
    directory: PathBuf,
    input: Option<Vec<u8>>,
    time_limit: Duration,
}

impl SandboxCommand {
    pub(crate) fn new(
        program: PathBuf,
        environment: BTreeMap<OsString, OsString>,
        directory: PathBuf,
    ) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            environment,
            directory,
            input: None,
            time_limit: TIME_LIMIT,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<I, S>(mut self, arguments: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the environment, on top of the sandbox's own.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Has the program look for others in this directory first.
    pub fn path_first(self, directory: impl AsRef<Path>) -> Self {
        let path = self.environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let mut joined = directory.as_ref().as_os_str().to_owned();
        joined.push(":");
        joined.push(path);
        self.env("PATH", joined)
    }

    /// Takes a variable out of the environment.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.remove(name.as_ref());
        self
    }

    /// Gives the program this input; without it, standard input is empty.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Runs in this directory; a relative path starts from the sandbox's current directory.
    pub fn dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = self.directory.join(directory);
        self
    }

    /// Replaces [`TIME_LIMIT`] for a program that is known to take long.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Runs the program to its end; panics with a transcript if that takes longer than the limit.
    #[track_caller]
    #[must_use = "say what is expected: .ok() or .fails(code)"]
    pub fn run(self) -> FinishedProgram {
        self.start().wait()
    }

    /// Starts the program and leaves it running, for commands that follow something.
    #[track_caller]
    pub fn start(self) -> RunningProgram {
        let description = self.describe();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.directory)
            .stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("cannot start a program: {error}\n$ {description}"),
        };
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), self.input) {
            // On its own thread, because a program that writes before it has read everything
            // would wait for us while we wait for it. A program may stop reading early: the
            // broken pipe is its own business.
            thread::spawn(move || pipe.write_all(&input).ok());
        }
        let stdout = OutputReader::start(child.stdout.take());
        let stderr = OutputReader::start(child.stderr.take());
        RunningProgram {
            child,
            stdout,
            stderr,
            description,
            deadline: Instant::now() + self.time_limit,
            time_limit: self.time_limit,
        }
    }

    /// The command line as a person would type it, and where.
    fn describe(&self) -> String {
        let program = self.program.file_name().unwrap_or_default();
        let words = self.arguments.iter().map(|argument| quoted_if_needed(argument));
        let line: Vec<String> =
            [program.to_string_lossy().into_owned()].into_iter().chain(words).collect();
        format!("{}    (in {})", line.join(" "), self.directory.display())
    }
}

fn quoted_if_needed(argument: &OsStr) -> String {
    let text = argument.to_string_lossy();
    let plain = |character: char| character.is_alphanumeric() || "-_./=:,@%+#".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("{text:?}")
    }
}

/// A program that was started and may still run. Dropping it kills it.
#[derive(Debug)]
pub struct RunningProgram {
    child: Child,
    stdout: OutputReader,
    stderr: OutputReader,
    description: String,
    deadline: Instant,
    time_limit: Duration,
}

impl RunningProgram {
    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Its process id, for tests that send it a signal.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; panics with a transcript if that comes later than the limit, which
    /// counts from the start.
    #[track_caller]
    #[must_use = "say what is expected: .ok() or .fails(code)"]
    pub fn wait(mut self) -> FinishedProgram {
        loop {
            // In this order: when the program has ended and its output too, nothing can follow.
            let ended = self.poll();
            let drained = self.stdout.finished() && self.stderr.finished();
            if let Some(status) = ended
                && drained
            {
                return self.ran(status);
            }
            if Instant::now() >= self.deadline {
                let problem = if ended.is_some() {
                    "ended, but something it started still holds its output open"
                } else {
                    "did not end"
                };
                let limit = self.time_limit;
                let ran = self.kill();
                panic!("the program {problem} within {limit:?}\n{ran}");
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills it if it still runs, and returns its output until then.
    pub fn kill(mut self) -> FinishedProgram {
        let status = self.end();
        holds_within(LAST_OUTPUT_LIMIT, || self.stdout.finished() && self.stderr.finished());
        self.ran(status)
    }

    fn poll(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the state of a child of ours can be asked for")
    }

    fn end(&mut self) -> ExitStatus {
        // Killing fails only if it has ended already, and then waiting returns at once.
        self.child.kill().ok();
        self.child.wait().expect("a killed child of ours can be waited for")
    }

    fn ran(&self, status: ExitStatus) -> FinishedProgram {
        FinishedProgram {
            code: status
                .code()
                .or_else(|| status.signal().map(|signal| 128 + signal))
                .unwrap_or(-1),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            command: self.description.clone(),
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Reads a pipe on its own thread, so that it never fills up, into memory that can be looked at
/// meanwhile.
#[derive(Debug)]
struct OutputReader {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl OutputReader {
    fn start(pipe: Option<impl Read + Send + 'static>) -> Self {
        let mut pipe = pipe.expect("a pipe was asked for");
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            // An error ends the output as the end of the file does: the exit code tells the rest.
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..count]);
            }
        });
        Self { bytes, thread }
    }

    fn finished(&self) -> bool {
        self.thread.is_finished()
    }

    fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sandbox, wait_until};

    fn shell(script: &str) -> SandboxCommand {
        let environment = BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]);
        SandboxCommand::new("/bin/sh".into(), environment, "/".into()).args(["-c", script])
    }

    #[test]
    fn code_and_both_streams_come_back() {
        let ran = shell("echo out; echo err >&2; exit 3").run().fails(3);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn a_signal_counts_as_in_a_shell() {
        shell("kill -TERM $$").run().fails(128 + 15);
    }

    #[test]
    fn much_input_and_output_at_once_does_not_block() {
        // Far more than a pipe holds, in both directions and on both streams.
        let input = vec![b'x'; 1 << 20];
        let ran = shell("tee /dev/stderr").stdin(input).run().ok();
        assert_eq!((ran.stdout.len(), ran.stderr.len()), (1 << 20, 1 << 20));
    }

    #[test]
    fn a_program_may_leave_its_input_unread() {
        shell("exit 0").stdin(vec![b'x'; 1 << 20]).run().ok();
    }

    #[test]
    fn without_input_there_is_none() {
        assert_eq!(shell("cat").run().ok().stdout, "");
    }

    #[test]
    fn variables_are_set_and_taken_away() {
        let ran = shell("echo ${A-none} ${B-none}").env("A", "1").env("B", "2").env_remove("B");
        assert_eq!(ran.run().ok().line(), "1 none");
    }

    #[test]
    fn a_directory_is_put_before_the_path() {
        let ran = shell("echo $PATH").path_first("/first").run().ok();
        assert_eq!(ran.line(), "/first:/usr/bin:/bin");
    }

    #[test]
    #[should_panic(expected = "did not end within 100ms\n$ sh -c \"echo begun; exec sleep 30\"")]
    fn a_program_that_hangs_is_killed() {
        shell("echo begun; exec sleep 30").time_limit(Duration::from_millis(100)).run().ok();
    }

    #[test]
    #[should_panic(expected = "still holds its output open within 100ms")]
    fn a_grandchild_that_holds_the_pipe_does_not_hang_the_test() {
        shell("sleep 2 & exit 0").time_limit(Duration::from_millis(100)).run().ok();
    }

    #[test]
    #[should_panic(expected = "cannot start a program: No such file or directory")]
    fn a_missing_program_is_named() {
        Sandbox::new("/nonexistent/gt").gt(["status"]).ok();
    }

    #[test]
    fn a_running_program_can_be_watched_and_killed() {
        let running = shell("echo begun; exec sleep 30").start();
        wait_until("it has begun", || running.stdout() == "begun\n");
        let ran = running.kill().fails(128 + 9);
        assert_eq!(ran.line(), "begun");
    }
}
