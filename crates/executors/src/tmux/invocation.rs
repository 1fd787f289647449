//! One call of the tmux program: its words, its answer, and the classes of its complaints.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::{ANSWER_LIMIT, TmuxError};
use crate::background::spawn;

/// Why a call came to nothing.
#[derive(Debug)]
pub(super) enum InvocationFailure {
    /// No server listens on this socket.
    NoServer,
    /// The server is not one that we have prepared.
    Unprepared,
    /// There is no such session, window or pane.
    NoTarget,
    /// The name is taken.
    Duplicate,
    /// It does not fit into one message.
    TooLong,
    /// No answer.
    Silent,
    /// Tmux refused for another reason.
    Refused(String),
    /// The program is not one that we can use.
    Unusable(TmuxError),
    /// The program could not be started or spoken to.
    Io(io::Error),
}

impl InvocationFailure {
    /// The failure that a complaint of tmux stands for.
    fn of(complaint: &str) -> Self {
        let complaint = complaint.trim();
        let begins = |beginnings: &[&str]| beginnings.iter().any(|it| complaint.starts_with(it));
        if begins(&["no server running", "error connecting to", "lost server", "server exited"]) {
            Self::NoServer
        } else if begins(&["invalid option: @", "unknown option: @"]) {
            Self::Unprepared
        } else if begins(&["can't find ", "no such session", "no current "]) {
            Self::NoTarget
        } else if begins(&["duplicate session"]) {
            Self::Duplicate
        } else if complaint.contains("command too long") || complaint.contains("too large") {
            Self::TooLong
        } else {
            Self::Refused(complaint.to_owned())
        }
    }
}

impl From<io::Error> for InvocationFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A word as the tmux program must be given it to mean exactly that: a semicolon at the end of a word would
/// end the command.
pub(super) fn exact_word(word: &OsStr) -> OsString {
    match word.as_bytes().split_last() {
        Some((b';', before)) => OsString::from_vec([before, b"\\;"].concat()),
        _ => word.to_owned(),
    }
}

/// A word that tmux would expand as a format, kept from it.
pub(super) fn without_formats(word: &OsStr) -> OsString {
    let doubled = word.as_bytes().iter().flat_map(|byte| {
        let times = if *byte == b'#' { 2 } else { 1 };
        std::iter::repeat_n(*byte, times)
    });
    OsString::from_vec(doubled.collect())
}

/// Runs the program, gives it `input`, and returns its output.
pub(super) fn ask(command: &mut Command, input: &[u8]) -> Result<Vec<u8>, InvocationFailure> {
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = spawn(command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    if let Some(mut pipe) = child.stdin.take() {
        let input = input.to_owned();
        // If the program does not read all of it, its exit status says why.
        thread::spawn(move || pipe.write_all(&input));
    }
    let printed = gather(child.stdout.take());
    let complained = gather(child.stderr.take());
    let deadline = Instant::now() + ANSWER_LIMIT;
    let wait = |words: &mpsc::Receiver<Vec<u8>>| {
        words.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    };
    let (Ok(printed), Ok(complained)) = (wait(&printed), wait(&complained)) else {
        // The child was not waited for yet, so no other process has its number.
        let _ = child.kill();
        child.wait()?;
        return Err(InvocationFailure::Silent);
    };
    let status = child.wait()?;
    if status.success() {
        return Ok(printed);
    }
    let complaint = String::from_utf8_lossy(&complained);
    match complaint.trim() {
        // Without a server tmux may end badly and say nothing but what it said on the way.
        "" => {
            Err(InvocationFailure::of(&format!("{status} {}", String::from_utf8_lossy(&printed))))
        }
        complaint => Err(InvocationFailure::of(complaint)),
    }
}

/// Reads a pipe to its end, meanwhile.
fn gather(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut words = Vec::new();
        if let Some(mut pipe) = pipe {
            // Bytes that were read before it broke are better than nothing.
            let _ = pipe.read_to_end(&mut words);
        }
        // The receiver is gone when the time was up first.
        let _ = tell.send(words);
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_of_tmux_are_classified() {
        let is = |text: &str| InvocationFailure::of(text);
        assert!(matches!(is("no server running on /tmp/tmux-0/x\n"), InvocationFailure::NoServer));
        assert!(matches!(
            is("error connecting to /tmp/tmux-0/x (No such file or directory)"),
            InvocationFailure::NoServer
        ));
        assert!(matches!(is("can't find session: a"), InvocationFailure::NoTarget));
        assert!(matches!(is("can't find pane: a"), InvocationFailure::NoTarget));
        assert!(matches!(is("duplicate session: a"), InvocationFailure::Duplicate));
        assert!(matches!(is("invalid option: @gt-prepared"), InvocationFailure::Unprepared));
        assert!(matches!(is("command too long"), InvocationFailure::TooLong));
        assert!(matches!(is("bad thing"), InvocationFailure::Refused(said) if said == "bad thing"));
    }

    #[test]
    fn semicolons_and_formats_in_words_are_escaped() {
        let exact = |word: &str| exact_word(OsStr::new(word)).into_string().unwrap();
        assert_eq!(exact(""), "");
        assert_eq!(exact(";"), "\\;");
        assert_eq!(exact("a;b"), "a;b");
        assert_eq!(exact("a;"), "a\\;");
        assert_eq!(exact("a\\;"), "a\\\\;");
        assert_eq!(without_formats(OsStr::new("/a#{b}")), "/a##{b}");
    }
}
