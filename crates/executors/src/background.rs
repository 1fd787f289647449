//! Programs in the background, and programs that get a limited time.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::process::{ProcessError, command, command_in};
use crate::runs::outside_control_group;

/// Starts a program in a process group of its own that outlives us. It reads `input` and has no output.
///
/// A command of a worker cannot start one that outlives its run: see [`run_apart`].
pub fn detach(program: &Path, arguments: &[&OsStr], input: File) -> Result<(), ProcessError> {
    let mut child = start_apart(program, arguments, input)?;
    // A program that stays must not collect the ones that ended; for one that ends this never matters.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Like [`detach`], and waits for its end: for a command of a worker, with whose run everything ends that it has started.
pub fn run_apart(program: &Path, arguments: &[&OsStr], input: File) -> Result<(), ProcessError> {
    let mut child = start_apart(program, arguments, input)?;
    child
        .wait()
        .map(drop)
        .map_err(|source| ProcessError::Start { program: program.display().to_string(), source })
}

fn start_apart(program: &Path, arguments: &[&OsStr], input: File) -> Result<Child, ProcessError> {
    let mut command = command(program);
    command.args(arguments).stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
    outside_control_group(|| command.process_group(0).spawn())
        .map_err(|source| ProcessError::Start { program: program.display().to_string(), source })
}

/// A program that gets a limited time.
#[derive(Debug, Clone, Copy)]
pub struct LimitedProgram<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// Where it runs.
    pub directory: &'a Path,
    /// Variables it gets besides ours.
    pub environment: &'a [(&'a str, &'a str)],
    /// The bytes on its standard input.
    pub input: &'a [u8],
    /// A directory on whose file system its input and its error output are kept meanwhile.
    pub scratch: &'a Path,
    /// How long it may run.
    pub limit: Duration,
    /// How many bytes of its error output are kept.
    pub words_bytes_max: usize,
}

/// How a program with a limited time ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramEnd {
    /// In time and well.
    Well,
    /// In time, but badly.
    Badly {
        /// Its exit status.
        status: ExitStatus,
        /// The end of its error output.
        words: String,
    },
    /// It took too long and was ended, with everything it had started.
    TooLate,
}

impl LimitedProgram<'_> {
    /// Runs the program to its end, or kills it when its time is up. Processes that it started go
    /// on after it ends by itself.
    pub fn run(&self) -> Result<ProgramEnd, ProcessError> {
        let failed =
            |source| ProcessError::Start { program: self.program.display().to_string(), source };
        // Files, because a pipe would block us when the program does not read it, or a child holds
        // it open.
        let mut input = nameless_file(self.scratch).map_err(failed)?;
        input.write_all(self.input).and_then(|()| input.rewind()).map_err(failed)?;
        let mut errors = nameless_file(self.scratch).map_err(failed)?;
        let mut command = command_in(self.program, self.directory);
        command
            .args(self.arguments)
            .envs(self.environment.iter().copied())
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(errors.try_clone().map_err(failed)?)
            .process_group(0);
        let mut child = spawn(&mut command).map_err(failed)?;
        let in_time = ends_within(&child, self.limit);
        if !in_time {
            // The child is not collected yet, so its number is still its own.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        }
        let status = child.wait().map_err(failed)?;
        Ok(match (in_time, status.success()) {
            (false, _) => ProgramEnd::TooLate,
            (true, true) => ProgramEnd::Well,
            (true, false) => {
                ProgramEnd::Badly { status, words: last_words(&mut errors, self.words_bytes_max) }
            }
        })
    }
}

/// A file that no other process can open by name, gone when it is closed.
pub fn nameless_file(directory: &Path) -> io::Result<File> {
    // A name that another thread already uses is skipped.
    for attempt in 0_u32.. {
        let path = directory.join(format!("scratch.{}.{attempt}", std::process::id()));
        match crate::private::options().read(true).write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => {
                let file = opened?;
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Starts a program, even if it was only just written and another process still has it open for
/// writing.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_TRIES_MAX {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(BUSY_PAUSE);
            }
            started => return started,
        }
    }
    command.spawn()
}

/// How often, and how long apart, a program is tried again that is being written.
const BUSY_TRIES_MAX: u32 = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Waits until the child has ended, but no longer than this, and does not collect it.
pub(crate) fn ends_within(child: &Child, limit: Duration) -> bool {
    let pid = Pid::from_child(child);
    let (ended, news) = mpsc::channel();
    std::thread::spawn(move || {
        let ended_only = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), ended_only), Err(Errno::INTR)) {}
        // The receiver is gone when the time was up first.
        let _ = ended.send(());
    });
    news.recv_timeout(limit).is_ok()
}

/// The end of a text that a program wrote, on one line.
fn last_words(file: &mut File, bytes_max: usize) -> String {
    let mut bytes = Vec::new();
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let start = length.saturating_sub(bytes_max as u64);
    // If the words cannot be read, the exit status still tells.
    let _ = file
        .seek(SeekFrom::Start(start))
        .and_then(|_| file.take(bytes_max as u64).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    struct Script {
        directory: tempfile::TempDir,
        path: PathBuf,
    }

    fn script(text: &str) -> Script {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Script { directory, path }
    }

    impl Script {
        fn run(&self, limit: Duration) -> Result<ProgramEnd, ProcessError> {
            LimitedProgram {
                program: &self.path,
                arguments: &["one", "two words"],
                directory: self.directory.path(),
                environment: &[("COLOUR", "red")],
                input: "line\n".repeat(100_000).as_bytes(),
                scratch: self.directory.path(),
                limit,
                words_bytes_max: 20,
            }
            .run()
        }

        fn file(&self, name: &str) -> String {
            std::fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
        }
    }

    const LONG: Duration = Duration::from_mins(10);

    #[test]
    fn a_program_gets_arguments_input_and_variables() {
        let script = script("echo \"$1|$2|$COLOUR|$(wc -l)|$PWD\" > said");

        assert_eq!(script.run(LONG).unwrap(), ProgramEnd::Well);

        let here = script.directory.path().canonicalize().unwrap();
        let said = script.file("said").replace(' ', "");
        assert_eq!(said, format!("one|twowords|red|100000|{}\n", here.display()));
    }

    #[test]
    fn a_failed_program_has_the_end_of_its_error_output() {
        let script = script("echo 'and many things before' >&2; echo 'no such key' >&2; exit 3");

        match script.run(LONG).unwrap() {
            ProgramEnd::Badly { status, words } => {
                assert_eq!(status.code(), Some(3));
                assert_eq!(words, "before no such key");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_program_over_its_time_limit_is_ended_with_its_children() {
        let script = script("sleep 600 & echo $! > child; sleep 600");

        let ending = script.run(Duration::from_millis(300)).unwrap();

        assert_eq!(ending, ProgramEnd::TooLate);
        let child = script.file("child");
        // Without a child there was no time to start one, which is fine too.
        if let Ok(pid) = child.trim().parse().map(Pid::from_raw) {
            gt_testkit::wait_until("the child is gone", || {
                let state = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
                let is_over = state.map_or(true, |state| state.contains(") Z"));
                is_over || rustix::process::test_kill_process(pid.unwrap()).is_err()
            });
        }
    }

    #[test]
    fn a_program_that_cannot_start_is_an_error() {
        let script = script("exit 0");
        std::fs::set_permissions(&script.path, PermissionsExt::from_mode(0o644)).unwrap();

        assert!(matches!(script.run(LONG), Err(ProcessError::Start { .. })));
    }

    #[test]
    fn nameless_files_leave_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let _files =
            [nameless_file(directory.path()).unwrap(), nameless_file(directory.path()).unwrap()];
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
