//! Programs that are tried out: a limited time, and everything they say.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::background::{ends_within, nameless_file, spawn};
use crate::process::{ProcessError, command_in_as_git};

/// A program that is tried out.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// Where it runs; its input and output are kept there meanwhile too.
    pub directory: &'a Path,
    /// Variables it gets besides ours.
    pub environment: &'a [(String, String)],
    /// Variables of ours that it does not get.
    pub without: &'a [&'a str],
    /// The bytes on its standard input.
    pub input: &'a [u8],
    /// How long it may run.
    pub limit: Duration,
    /// How many bytes of the end of its output are kept.
    pub output_bytes_max: u64,
    /// Where its standard error goes.
    pub errors: ErrorStream,
}

/// Where the standard error of a program goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorStream {
    /// Into its output.
    Joined,
    /// Apart from its output.
    Apart,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialResult {
    /// How it ended; nothing if it took too long and was ended, with everything it had started.
    pub status: Option<ExitStatus>,
    /// The end of its output.
    pub output: String,
    /// The end of its standard error, if that was kept apart.
    pub errors: String,
}

impl Trial<'_> {
    /// Runs the program to its end, or ends it when its time is up.
    pub fn run(&self) -> Result<TrialResult, ProcessError> {
        let program = self.argv.first().map(String::as_str).unwrap_or_default();
        let failed = |source| ProcessError::Start { program: program.to_owned(), source };
        let mut output = nameless_file(self.directory).map_err(failed)?;
        let mut errors = match self.errors {
            ErrorStream::Joined => None,
            ErrorStream::Apart => Some(nameless_file(self.directory).map_err(failed)?),
        };
        let joined = errors.as_ref().unwrap_or(&output);
        let mut prepared = self.prepared(program, &output, joined).map_err(failed)?;
        let mut child = spawn(&mut prepared).map_err(failed)?;
        let in_time = ends_within(&child, self.limit);
        if !in_time {
            // The child is not collected yet, so its number is still its own.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        }
        let status = child.wait().map_err(failed)?;
        let end = |file: &mut File| end_of(file, self.output_bytes_max).map_err(failed);
        let errors = errors.as_mut().map(end).transpose()?.unwrap_or_default();
        Ok(TrialResult { status: in_time.then_some(status), output: end(&mut output)?, errors })
    }

    fn prepared(&self, program: &str, output: &File, errors: &File) -> io::Result<Command> {
        let mut input = nameless_file(self.directory)?;
        input.write_all(self.input)?;
        input.rewind()?;
        let mut command = command_in_as_git(program, self.directory);
        for name in self.without {
            command.env_remove(name);
        }
        command
            .args(self.argv.iter().skip(1))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(input))
            .stdout(output.try_clone()?)
            .stderr(errors.try_clone()?)
            .process_group(0);
        Ok(command)
    }
}

fn end_of(file: &mut File, bytes_max: u64) -> io::Result<String> {
    let start = file.metadata()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(script: &str, limit: Duration) -> Result<TrialResult, ProcessError> {
        let directory = tempfile::tempdir().unwrap();
        let argv = ["sh", "-c", script].map(str::to_owned);
        let environment = [("COLOUR".to_owned(), "red".to_owned())];
        Trial {
            argv: &argv,
            directory: directory.path(),
            environment: &environment,
            without: &[],
            input: b"in\n",
            limit,
            output_bytes_max: 10,
            errors: ErrorStream::Joined,
        }
        .run()
    }

    const LONG: Duration = Duration::from_mins(10);

    #[test]
    fn output_and_status_of_a_program_are_returned() {
        let tried = trial("cat; echo $COLOUR >&2; exit 3", LONG).unwrap();
        assert_eq!(tried.output, "in\nred\n");
        assert_eq!(tried.status.and_then(|status| status.code()), Some(3));
        assert_eq!(trial("echo 123456789abc", LONG).unwrap().output, "456789abc\n");
    }

    #[test]
    fn a_program_over_its_time_limit_is_ended() {
        let tried = trial("sleep 600", Duration::from_millis(100)).unwrap();
        assert_eq!(tried.status, None);
    }
}
