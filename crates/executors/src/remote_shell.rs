//! Commands on another machine, over `ssh` or a program like it.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::process::{Child, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::background::{ends_within, spawn};
use crate::process::command;

/// The exit status by which `ssh` says that it did not get through.
const SSH_FAILED: i32 = 255;

/// How much output of a command is kept.
const OUTPUT_BYTES_MAX: u64 = 256 << 10;

/// Why a command on another machine did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum RemoteShellError {
    /// The machine does not answer, or does not let us in.
    #[error("{target} cannot be reached: {why}")]
    Unreachable {
        /// The machine.
        target: String,
        /// The reason.
        why: String,
    },
    /// The command failed there. The words are its own.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("{target} has not answered for {} s", limit.as_secs())]
    TooLate {
        /// The machine.
        target: String,
        /// The time that it had.
        limit: Duration,
    },
}

/// The standard input of a command on another machine.
#[derive(Debug)]
pub enum RemoteInput<'a> {
    /// No input.
    Nothing,
    /// A short text. It may be a secret: it is in no arguments and no file.
    Text(&'a str),
    /// A file, however large.
    File(File),
}

/// A machine that commands are given to.
#[derive(Debug, Clone)]
pub struct RemoteShell {
    /// The program that reaches it, and its options.
    pub command: Vec<String>,
    /// That program's name of the machine.
    pub target: String,
}

impl RemoteShell {
    /// Carries out a script of `/bin/sh` there, with these arguments as `$1` and so on, and gives its output. It asks no
    /// questions, and ends after this time at the latest.
    pub fn run(
        &self,
        script: &str,
        arguments: &[&str],
        input: RemoteInput<'_>,
        limit: Duration,
    ) -> Result<String, RemoteShellError> {
        let unreachable =
            |why: String| RemoteShellError::Unreachable { target: self.target.clone(), why };
        let (child, text) = self.start(script, arguments, input).map_err(|error| {
            let program = self.command.first().map_or("ssh", String::as_str);
            unreachable(format!("cannot start {program}: {error}"))
        })?;
        let (status, output, words) =
            finish(child, text, limit).map_err(|error| unreachable(error.to_string()))?;
        let Some(status) = status else {
            return Err(RemoteShellError::TooLate { target: self.target.clone(), limit });
        };
        if status.success() {
            return Ok(output);
        }
        let said = last_line(&words).or_else(|| last_line(&output));
        let said = said.unwrap_or_else(|| status.to_string());
        Err(if status.code() == Some(SSH_FAILED) {
            unreachable(said)
        } else {
            RemoteShellError::Failed(said)
        })
    }

    fn start<'i>(
        &self,
        script: &str,
        arguments: &[&str],
        input: RemoteInput<'i>,
    ) -> io::Result<(Child, &'i str)> {
        let Some((program, options)) = self.command.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
        };
        let (stdin, text) = match input {
            RemoteInput::Nothing => (Stdio::null(), ""),
            RemoteInput::Text(text) => (Stdio::piped(), text),
            RemoteInput::File(file) => (file.into(), ""),
        };
        let mut ssh = command(program);
        ssh.args(options).args(["--", &self.target]).arg(command_line(script, arguments));
        ssh.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok((spawn(&mut ssh)?, text))
    }
}

/// The end of a child, with its output and its error output; no status if its time was up.
type ChildEnd = (Option<std::process::ExitStatus>, String, String);

fn finish(mut child: Child, text: &str, limit: Duration) -> io::Result<ChildEnd> {
    let readers =
        [child.stdout.take().map(read_beginning), child.stderr.take().map(read_beginning)];
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read it says why.
        let _ = stdin.write_all(text.as_bytes());
    }
    let in_time = ends_within(&child, limit);
    if !in_time {
        // It may have ended since.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let [output, words] = readers.map(|reader| {
        let read = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
        String::from_utf8_lossy(&read).into_owned()
    });
    Ok((in_time.then_some(status), output, words))
}

/// Reads a stream to its end and keeps its beginning.
fn read_beginning(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        // A stream that breaks ends.
        let _ = (&mut stream).take(OUTPUT_BYTES_MAX).read_to_end(&mut kept);
        let _ = io::copy(&mut stream, &mut io::sink());
        kept
    })
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.strip_prefix("Error: ").unwrap_or(line).to_owned())
}

/// One line for the login shell of the other machine, whichever that is.
fn command_line(script: &str, arguments: &[&str]) -> String {
    let words = ["exec", "/bin/sh", "-c"].map(ToOwned::to_owned).into_iter();
    let rest = [script, "gt"].into_iter().chain(arguments.iter().copied()).map(quoted);
    words.chain(rest).collect::<Vec<_>>().join(" ")
}

/// A word between single quotes, in which a shell changes nothing.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that is this one: its program carries out the last argument.
    fn here() -> RemoteShell {
        let script = "while [ $# -gt 1 ]; do shift; done; exec /bin/sh -c \"$1\"";
        let command = ["/bin/sh", "-c", script, "ssh"].map(ToOwned::to_owned);
        RemoteShell { command: command.to_vec(), target: "here".to_owned() }
    }

    const LIMIT: Duration = Duration::from_mins(1);

    #[test]
    fn arguments_and_input_arrive_as_they_are() {
        let word = "it's \"$HOME\" `x` \\ ; é";
        let said = here().run("cat; printf %s \"$1\"", &[word], RemoteInput::Text("in\n"), LIMIT);
        assert_eq!(said.unwrap(), format!("in\n{word}"));
        let said = here().run("cat", &[], RemoteInput::Nothing, LIMIT);
        assert_eq!(said.unwrap(), "");
    }

    #[test]
    fn failures_are_told_apart() {
        let failed = |script: &str, limit| {
            here().run(script, &[], RemoteInput::Nothing, limit).unwrap_err().to_string()
        };
        assert_eq!(failed("echo 'Error: no room' >&2; exit 1", LIMIT), "no room");
        assert_eq!(
            failed("echo no route >&2; exit 255", LIMIT),
            "here cannot be reached: no route"
        );
        let limit = Duration::from_millis(50);
        assert_eq!(failed("exec sleep 60", limit), "here has not answered for 0 s");
        let nothing = RemoteShell { command: Vec::new(), target: "x".to_owned() };
        let error = nothing.run("true", &[], RemoteInput::Nothing, LIMIT).unwrap_err();
        assert!(error.to_string().starts_with("x cannot be reached"), "{error}");
    }
}
