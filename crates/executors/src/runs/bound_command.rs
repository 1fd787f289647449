//! A command that does one thing for the process that started it, and does not outlive that process: no run of this town, no
//! lock.
//!
//! An attendant, which is this program once more, stands between the two. It starts the command, and reads a pipe from the
//! process that started it. When that pipe has an end, because that process was killed or wants the command to end, the
//! attendant ends the command and everything that the command has started. When the attendant itself is killed, its
//! children become those of the process that started it, which ends them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::AgentEnd;
use super::agent::{adopt_orphans, agent_end, prompt_file};
use super::agent_watch::{AGENT_POLL_INTERVAL, COLLECT_INTERVAL, collect, end_of};
use super::ended_orphans::EndedOrphans;
use super::marks::ProcessMark;
use super::process_ending::{end_all, left_of, unrelated_children};
use super::processes::Process;
use super::supervisor::say_line;
use crate::background::spawn;
use crate::daemon::wait_for_any;
use crate::process::{ProcessError, command_in_as_git, command_with_everything};
use crate::terminal::Launcher;

/// The first word for this program when it is to attend a command: see [`attend_command`].
pub const ATTEND: &str = "__attend";

/// How long processes that do not even end when they are killed are waited for.
const KILL_WAIT_MAX: Duration = Duration::from_secs(2);

/// The attendant's message when the command runs, and the prefix of the error number if it cannot
/// be started.
const STARTED: &str = "started";
const NOT_STARTED: &str = "error number ";
/// The message to an attendant: how many milliseconds remain in which no other command has the same
/// work.
const TIME_LEFT: &str = "time left ";

/// A command to be started.
#[derive(Debug)]
pub struct CommandOrder<'a> {
    /// This program, with the argument that makes it call [`attend_command`] with the words that
    /// follow.
    pub attendant: &'a Launcher,
    /// The program and its arguments. A program with a relative path is looked for in `directory`.
    pub argv: &'a [String],
    /// Where it runs.
    pub directory: &'a Path,
    /// Variables it gets besides ours.
    pub environment: &'a [(&'a str, String)],
    /// Variables of ours that it does not get.
    pub without: &'a [&'a str],
    /// The bytes on its standard input.
    pub input: &'a [u8],
    /// Where its output goes.
    pub output: File,
    /// How long it may take to end when it is asked to.
    pub grace: Duration,
    /// For how long no other command can get the same work.
    pub time_left: Duration,
    /// A variable that the processes of this command have, and no other process. If its attendant is killed, they are found
    /// by it; without it, every process that this process gets meanwhile is taken for one of them.
    pub mark: Option<ProcessMark<'a>>,
}

/// A command at work. Dropping it ends the command.
#[derive(Debug)]
pub struct BoundCommand {
    attendant: Child,
    /// Closed to have the command end.
    orders: Option<ChildStdin>,
    voice: ChildStdout,
    said: Vec<u8>,
    grace: Duration,
    unrelated: Vec<Process>,
    mark: Option<(String, String)>,
}

impl BoundCommand {
    /// Starts a command.
    pub fn start(order: CommandOrder<'_>) -> Result<Self, ProcessError> {
        let program = order.argv.first().cloned().unwrap_or_default();
        let failed = |source| ProcessError::Start { program: program.clone(), source };
        let mut command = begin(order).map_err(failed)?;
        loop {
            if let Some(line) = command.next_line() {
                if line == STARTED {
                    return Ok(command);
                }
                if let Some(number) = line.strip_prefix(NOT_STARTED) {
                    command.end();
                    let number = number.parse().unwrap_or_default();
                    return Err(failed(io::Error::from_raw_os_error(number)));
                }
            } else if !command.hear() {
                command.end();
                return Err(failed(io::Error::other("its attendant ended without a word")));
            }
        }
    }

    /// Waits until it has ended, or something can be read from `other`, but no longer than this; how it ended, if it has.
    /// Nothing that it has started is left then.
    pub fn wait(&mut self, other: BorrowedFd<'_>, limit: Duration) -> Option<AgentEnd> {
        wait_for_any(&[self.voice.as_fd(), other], limit);
        if !is_readable(self.voice.as_fd()) {
            return None;
        }
        let is_there = self.hear();
        while let Some(line) = self.next_line() {
            if let Some(end) = AgentEnd::parse(&format!("{line}\n")) {
                return Some(end);
            }
        }
        if is_there {
            return None;
        }
        // Its attendant was killed, and no process can say any more how it ended.
        self.finish();
        Some(AgentEnd::Cancelled)
    }

    /// Notes that no other command can get the same work for so long from now. If this process is killed, the command has
    /// ended before that.
    pub fn has_time(&mut self, left: Duration) {
        if let Some(orders) = &mut self.orders {
            // An attendant that is gone is noticed by the next wait.
            let _ = writeln!(orders, "{TIME_LEFT}{}", left.as_millis());
        }
    }

    /// Ends it, and everything that it has started: asked first, and killed after its grace.
    pub fn end(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        self.orders = None;
        let began = Instant::now();
        let limit = self.grace.saturating_add(KILL_WAIT_MAX * 2);
        let status = loop {
            match self.attendant.try_wait() {
                Ok(None) => {}
                Ok(status) => break status,
                Err(_) => break None,
            }
            let Some(left) = limit.checked_sub(began.elapsed()) else {
                let _ = self.attendant.kill();
                break self.attendant.wait().ok();
            };
            // The end of its output is its own end, or nearly.
            if is_readable(self.voice.as_fd()) && !self.hear() {
                wait_for_any(&[], AGENT_POLL_INTERVAL);
            } else {
                wait_for_any(&[self.voice.as_fd()], left);
            }
        };
        if status.is_some_and(|status| !status.success()) {
            self.clear();
        }
    }

    /// Ends the processes of an attendant that was killed: the kernel has made them ours.
    fn clear(&mut self) {
        if let Some((name, value)) = &self.mark {
            ProcessMark { name, value }.end_all(self.grace);
            return;
        }
        let attendant = Pid::from_child(&self.attendant);
        end_all(self.grace, Some(KILL_WAIT_MAX), || left_of(attendant, &self.unrelated));
    }

    /// The next whole line that was heard.
    fn next_line(&mut self) -> Option<String> {
        let end = self.said.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.said.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    /// Waits for more words; whether there may be more after them.
    fn hear(&mut self) -> bool {
        let mut piece = [0; 1024];
        match self.voice.read(&mut piece) {
            Ok(0) => false,
            Ok(read) => {
                self.said.extend_from_slice(&piece[..read]);
                true
            }
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
        }
    }
}

impl Drop for BoundCommand {
    fn drop(&mut self) {
        self.finish();
    }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

fn begin(order: CommandOrder<'_>) -> io::Result<BoundCommand> {
    if order.argv.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    }
    let unrelated = if order.mark.is_some() {
        Vec::new()
    } else {
        // Orphans of an attendant that is killed become our children.
        adopt_orphans();
        unrelated_children()
    };
    let mut command = command_in_as_git(&order.attendant.program, order.directory);
    let number = |duration: Duration| duration.as_millis().to_string();
    for name in order.without {
        command.env_remove(name);
    }
    command
        .args(&order.attendant.arguments)
        .args([number(order.grace), number(order.time_left), order.input.len().to_string()])
        .args(order.argv)
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .envs(order.mark.map(|mark| (mark.name, mark.value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(order.output)
        // Signals from our terminal are for us alone.
        .process_group(0);
    let mut attendant = spawn(&mut command)?;
    let pipes = attendant.stdin.take().zip(attendant.stdout.take());
    let (mut orders, voice) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
    // One that is gone is noticed when it says nothing.
    let _ = orders.write_all(order.input);
    let (orders, said) = (Some(orders), Vec::new());
    let mark = order.mark.map(|mark| (mark.name.to_owned(), mark.value.to_owned()));
    Ok(BoundCommand { attendant, orders, voice, said, grace: order.grace, unrelated, mark })
}

/// Runs as an attendant: starts the command that the words name, says how it ended, and ends it
/// when its orders have an end. Its standard input is the command's input, followed by its orders.
/// It reports on standard output; its standard error is the output of the command.
pub fn attend_command(words: &[OsString]) -> io::Result<()> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "the attendant was called wrongly");
    let [grace, time_left, length, argv @ ..] = words else { return Err(wrong()) };
    let number =
        |word: &OsString| word.to_str().and_then(|word| word.parse().ok()).ok_or_else(wrong);
    let grace = Duration::from_millis(number(grace)?);
    let deadline = Instant::now() + Duration::from_millis(number(time_left)?);
    let length = usize::try_from(number(length)?).map_err(|_| wrong())?;
    let mut input = vec![0; length];
    let mut orders = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    orders.read_exact(&mut input)?;
    adopt_orphans();
    let child = match start(argv, &input) {
        Ok(child) => child,
        Err(error) => {
            say_line(&format!("{NOT_STARTED}{}", error.raw_os_error().unwrap_or_default()));
            return Ok(());
        }
    };
    say_line(STARTED);
    match stay(&mut orders, child, deadline) {
        AttendantResult::Ended(end) => {
            end_all(grace, Some(KILL_WAIT_MAX), || left_of(child, &[]));
            say_line(end.to_string().trim_end());
        }
        AttendantResult::Left(left) => {
            end_all(grace.min(left), Some(KILL_WAIT_MAX), || left_of(child, &[]));
            say_line(AgentEnd::Cancelled.to_string().trim_end());
        }
    }
    Ok(())
}

/// How it went with a command under its attendant.
enum AttendantResult {
    /// It ended by itself.
    Ended(AgentEnd),
    /// It is to end, and has so much time before another command may get the same work.
    Left(Duration),
}

fn stay(orders: &mut File, child: Pid, mut deadline: Instant) -> AttendantResult {
    let end: Option<OwnedFd> = end_of(child);
    let mut heard = Vec::new();
    let mut orphans = EndedOrphans::default();
    loop {
        match &end {
            Some(end) => wait_for_any(&[end.as_fd(), orders.as_fd()], COLLECT_INTERVAL),
            None => wait_for_any(&[orders.as_fd()], AGENT_POLL_INTERVAL),
        }
        let is_over = end.as_ref().is_some_and(|end| is_readable(end.as_fd()));
        orphans.collect(child);
        match collect(child, is_over) {
            Ok(Some(status)) => return AttendantResult::Ended(agent_end(status, false)),
            Ok(None) => {}
            // No process can say any more how it ended.
            Err(_) => return AttendantResult::Ended(AgentEnd::Cancelled),
        }
        if is_readable(orders.as_fd()) {
            let mut piece = [0; 256];
            match orders.read(&mut piece) {
                Ok(read) if read > 0 => heard.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    return AttendantResult::Left(
                        deadline.saturating_duration_since(Instant::now()),
                    );
                }
            }
            while let Some(at) = heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = heard.drain(..=at).collect();
                let line = String::from_utf8_lossy(&line);
                let left =
                    line.trim_end().strip_prefix(TIME_LEFT).and_then(|left| left.parse().ok());
                if let Some(left) = left {
                    deadline = Instant::now() + Duration::from_millis(left);
                }
            }
        }
    }
}

fn start(argv: &[OsString], input: &[u8]) -> io::Result<Pid> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // A program with a relative path is looked for where we are.
    let mut command = command_with_everything(program);
    let errors = io::stderr();
    command
        .args(arguments)
        .stdin(prompt_file(input)?)
        .stdout(errors.as_fd().try_clone_to_owned()?)
        .stderr(errors.as_fd().try_clone_to_owned()?)
        .process_group(0);
    spawn(&mut command).map(|child| Pid::from_child(&child))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::runs::processes;

    const LONG: Duration = Duration::from_mins(1);

    /// Runs as an attendant. As a test, without a command to attend, it does nothing.
    #[test]
    fn as_attendant() {
        let words: Vec<OsString> =
            std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
        if !words.is_empty() {
            attend_command(&words).unwrap();
        }
    }

    fn attendant() -> Launcher {
        let name = "runs::bound_command::tests::as_attendant";
        let arguments = ["--exact", name, "--nocapture", "--"].map(OsString::from).to_vec();
        Launcher { program: std::env::current_exe().unwrap(), arguments }
    }

    struct Started {
        directory: tempfile::TempDir,
        command: BoundCommand,
        never: io::PipeReader,
        _held: io::PipeWriter,
    }

    fn start(script: &str, grace: Duration) -> Started {
        let directory = tempfile::tempdir().unwrap();
        let output = File::create(directory.path().join("output")).unwrap();
        let argv = ["sh".to_owned(), "-c".to_owned(), script.to_owned()];
        let order = CommandOrder {
            attendant: &attendant(),
            argv: &argv,
            directory: directory.path(),
            environment: &[("COLOUR", "red".to_owned())],
            without: &[],
            input: b"an item",
            output,
            grace,
            time_left: LONG,
            mark: None,
        };
        let command = BoundCommand::start(order).unwrap();
        let (never, held) = io::pipe().unwrap();
        Started { directory, command, never, _held: held }
    }

    impl Started {
        fn wait(&mut self) -> Option<AgentEnd> {
            let began = Instant::now();
            loop {
                let ended = self.command.wait(self.never.as_fd(), LONG);
                if ended.is_some() || began.elapsed() > LONG {
                    return ended;
                }
            }
        }

        fn output(&self) -> String {
            fs::read_to_string(self.directory.path().join("output")).unwrap()
        }
    }

    #[test]
    fn a_command_gets_its_input_and_its_end_is_reported() {
        let mut started = start("echo \"$(cat) $COLOUR\"; echo wrong >&2; exit 3", LONG);
        assert_eq!(started.wait(), Some(AgentEnd::Exited(3)));
        assert_eq!(started.output(), "an item red\nwrong\n");
        assert_eq!(start("kill -9 $$", LONG).wait(), Some(AgentEnd::Signalled(9)));
    }

    #[test]
    fn a_command_that_cannot_be_started_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let attendant = attendant();
        let order = |argv| CommandOrder {
            attendant: &attendant,
            argv,
            directory: directory.path(),
            environment: &[],
            without: &[],
            input: b"",
            output: File::create(directory.path().join("output")).unwrap(),
            grace: LONG,
            time_left: LONG,
            mark: None,
        };
        let missing = ["./nothing".to_owned()];
        let error = BoundCommand::start(order(&missing)).unwrap_err();
        assert_eq!(error.to_string(), "cannot start ./nothing");
        assert!(BoundCommand::start(order(&[])).is_err());
    }

    #[test]
    fn no_process_of_a_command_is_left_when_it_has_ended() {
        let mut started = start("setsid sleep 600 & echo $! > left", LONG);
        assert_eq!(started.wait(), Some(AgentEnd::Exited(0)));
        let left = fs::read_to_string(started.directory.path().join("left")).unwrap();
        let left = processes::pid_of(left.trim()).and_then(processes::find);
        // The process that collects orphans here may take its time.
        assert!(left.is_none_or(|left| left.is_over));
    }

    #[test]
    fn processes_of_a_killed_attendant_are_found_by_their_mark() {
        let directory = tempfile::tempdir().unwrap();
        let value = directory.path().display().to_string();
        let mark = ProcessMark { name: "GT_TEST_MARK", value: &value };
        let argv = ["sh", "-c", "setsid sleep 600 & echo $! > left; wait"].map(str::to_owned);
        let mut command = BoundCommand::start(CommandOrder {
            attendant: &attendant(),
            argv: &argv,
            directory: directory.path(),
            environment: &[],
            without: &[],
            input: b"",
            output: File::create(directory.path().join("output")).unwrap(),
            grace: Duration::ZERO,
            time_left: LONG,
            mark: Some(mark),
        })
        .unwrap();
        let path = directory.path().join("left");
        gt_testkit::wait_until("the command is at work", || {
            fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n'))
        });
        let left = processes::pid_of(fs::read_to_string(&path).unwrap().trim()).unwrap();
        command.attendant.kill().unwrap();
        command.end();
        assert!(processes::find(left).is_none_or(|left| left.is_over));
        assert!(mark.end_all(Duration::ZERO));
    }

    #[test]
    fn a_command_ends_on_request_or_is_killed() {
        let begun = |started: &Started| {
            let path = started.directory.path().join("begun");
            gt_testkit::wait_until("the command is at work", || {
                fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n'))
            });
            processes::pid_of(fs::read_to_string(&path).unwrap().trim()).unwrap()
        };
        let polite = "trap 'echo bye; exit 0' TERM; echo $$ > begun; while :; do sleep 0.01; done";
        let polite = start(polite, LONG);
        begun(&polite);
        let Started { directory, command, .. } = polite;
        command.end();
        // The shell may say something of the program that it waited for before.
        let said = fs::read_to_string(directory.path().join("output")).unwrap();
        assert!(said.ends_with("bye\n"), "{said}");

        let deaf = "trap '' TERM; echo $$ > begun; while :; do sleep 0.01; done";
        let deaf = start(deaf, Duration::from_millis(50));
        let process = begun(&deaf);
        deaf.command.end();
        assert!(processes::find(process).is_none_or(|process| process.is_over));

        // One that has little time before others get its work is killed sooner than its grace says.
        let mut deaf = start("trap '' TERM; echo $$ > begun; while :; do sleep 0.01; done", LONG);
        let process = begun(&deaf);
        deaf.command.has_time(Duration::from_millis(50));
        deaf.command.end();
        assert!(processes::find(process).is_none_or(|process| process.is_over));
    }
}
