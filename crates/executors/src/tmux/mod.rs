//! Sessions of workers in tmux: one server for each town, on a socket of its own.
//!
//! # Invariants
//!
//! - The tmux of a person is not touched: our servers have their own sockets and read no configuration.
//! - A session means exactly the one of that name. Names that tmux would change are refused.
//! - The command of a session is given to tmux as words; nothing is typed and no shell sees it.
//! - The environment of a session is that of a child of ours, and not that of the process that started the server.
//!   Values are not seen in the list of processes.
//! - No server is the same as no sessions.

mod error;
mod invocation;
mod paste;
mod server;
mod session;
mod socket;
mod version;

pub use error::TmuxError;
pub use paste::{Confirmation, Pasted};
pub use session::{Capture, Pane, TmuxSession};

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use gt_core::hexadecimal::digits_of;
use sha2::{Digest as _, Sha256};

use self::invocation::{InvocationFailure, ask, exact_word, without_formats};
use self::session::{SessionName, captured, capturing, finding, found};
use crate::process::{ProcessError, command};

/// The oldest version that has the commands that we use.
const OLDEST: (u32, u32) = (3, 0);

/// How much of the hash of a town is in the name of its socket: enough for all towns of a machine, and short,
/// because paths of sockets are.
const SOCKET_HASH_BYTES: usize = 6;

/// The longest name of a session, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// The longest variable, in bytes: tmux silently leaves out variables that do not fit into a
/// message.
const VARIABLE_BYTES_MAX: usize = 16_000;

/// How long we wait for an answer. Generous: only a server that hangs takes this long.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// An option of the server which says that it has been prepared.
const PREPARED: &str = "@gt-prepared";

/// The size of a pane while no client is attached.
const COLUMNS: &str = "200";
const ROWS: &str = "50";

/// The variables with which tmux tells its panes where they are.
const PLACE_VARIABLES: [&str; 2] = ["TMUX", "TMUX_PANE"];

/// The tmux server of one town.
#[derive(Debug, Clone)]
pub struct Tmux {
    socket: String,
}

impl Tmux {
    /// Fails if tmux is missing or too old. Starting a server checks it too, so this is for callers
    /// that want to know before.
    pub fn check() -> Result<(), TmuxError> {
        version::check()
    }

    /// The server of the town with this identity, which need not run.
    pub fn of_town(identity: &str) -> Self {
        let hash = Sha256::digest(identity.as_bytes());
        Self { socket: format!("gt-{}", digits_of(&hash[..SOCKET_HASH_BYTES])) }
    }

    /// The name of the socket, as in `tmux -L <name>`.
    pub fn socket(&self) -> &str {
        &self.socket
    }

    /// Starts a session that runs a program, and returns as soon as tmux has started it. The session ends with the
    /// program. That it could not be started is seen only by its absence.
    ///
    /// The program gets the environment of this process, changed by `environment`.
    pub fn new_session(
        &self,
        name: &str,
        directory: &Path,
        environment: &[(String, String)],
        argv: &[OsString],
    ) -> Result<TmuxSession, TmuxError> {
        let name = SessionName::new(name)?;
        // Tmux would go somewhere else.
        if !directory.is_dir() {
            return Err(TmuxError::Directory { path: directory.to_owned() });
        }
        let names = variables(environment)?;
        let words = program_words(argv)?;
        let printed = self
            .with_prepared_server(|| {
                let mut command = self.command();
                command
                    .envs(environment.iter().map(|(name, value)| (name, value)))
                    .args(["show-options", "-gv", PREPARED, ";"])
                    // The values go to the server with the environment of its client.
                    .args(["set-option", "-g", "update-environment"])
                    .args([names.as_str(), ";"])
                    .args(["new-session", "-d", "-P", "-F", "#{pane_pid} #{pane_tty}", "-x", COLUMNS])
                    .args(["-y", ROWS, "-s", name.as_str(), "-c"])
                    .arg(exact_word(&without_formats(directory.as_os_str())))
                    .arg("--")
                    .args(words.iter().map(|word| exact_word(word)))
                    // From now on the server ends with its last session.
                    .args([";", "set-option", "-s", "exit-empty", "on"]);
                ask(&mut command, b"")
            })
            .map_err(|failure| match failure {
                InvocationFailure::NoServer => TmuxError::ServerGone,
                failure => name.error_of(&self.socket, failure),
            })?;
        let printed = String::from_utf8_lossy(&printed);
        let pane = printed.lines().next_back().and_then(|line| line.trim().split_once(' '));
        let pane = pane.and_then(|(number, terminal)| Some((number.parse().ok()?, terminal)));
        let (pane_pid, terminal) = pane.ok_or_else(|| TmuxError::Failed {
            message: format!("it did not say which process it started for {}", name.as_str()),
        })?;
        Ok(TmuxSession { name: name.as_str().to_owned(), pane_pid, terminal: terminal.into() })
    }

    /// The names of all sessions, with one call of tmux.
    pub fn sessions(&self) -> Result<Vec<String>, TmuxError> {
        match self.ask(&["list-sessions", "-F", "#{session_name}"], b"") {
            Ok(printed) => {
                Ok(String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect())
            }
            Err(InvocationFailure::NoServer | InvocationFailure::NoTarget) => Ok(Vec::new()),
            Err(failure) => Err(error_of(&self.socket, failure)),
        }
    }

    /// Whether there is a session of this name.
    pub fn has(&self, name: &str) -> Result<bool, TmuxError> {
        let name = SessionName::new(name)?;
        self.whether(&["has-session", "-t", &name.session()])
    }

    /// Gives a session another name. Says whether there was one.
    pub fn rename(&self, name: &str, new: &str) -> Result<bool, TmuxError> {
        let (name, new) = (SessionName::new(name)?, SessionName::new(new)?);
        match self.ask(&["rename-session", "-t", &name.session(), new.as_str()], b"") {
            Ok(_) => Ok(true),
            Err(InvocationFailure::NoServer | InvocationFailure::NoTarget) => Ok(false),
            Err(failure) => Err(new.error_of(&self.socket, failure)),
        }
    }

    /// The command with which each pane of a session was started, as tmux writes it; nothing for
    /// the default command.
    pub fn started_with(&self, name: &str) -> Result<Vec<String>, TmuxError> {
        let name = SessionName::new(name)?;
        let words = ["list-panes", "-s", "-t", &name.session(), "-F", "#{pane_start_command}"];
        let printed = self.ask(&words, b"");
        let printed = printed.map_err(|failure| name.error_of(&self.socket, failure))?;
        Ok(String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect())
    }

    /// The number of the process that is the server, if there is one.
    pub fn server_process(&self) -> Option<u32> {
        let printed = self.ask(&["display-message", "-p", "#{pid}"], b"").ok()?;
        String::from_utf8_lossy(&printed).trim().parse().ok()
    }

    /// The contents of the pane of a session.
    pub fn capture(&self, name: &str, capture: Capture) -> Result<String, TmuxError> {
        let name = SessionName::new(name)?;
        self.capture_from(&name, &name.pane(), capture)
    }

    /// The contents of a pane.
    pub fn capture_pane(&self, pane: &Pane, capture: Capture) -> Result<String, TmuxError> {
        self.capture_from(&pane.name, &pane.id, capture)
    }

    fn capture_from(
        &self,
        name: &SessionName,
        pane: &str,
        capture: Capture,
    ) -> Result<String, TmuxError> {
        let words = capturing(pane, capture);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let printed = self.ask(&words, b"");
        let printed = printed.map_err(|failure| name.error_of(&self.socket, failure))?;
        Ok(captured(&printed, capture))
    }

    /// The rows and columns of the pane of a session, if it is there.
    pub fn size_of(&self, name: &str) -> Option<(u16, u16)> {
        let name = SessionName::new(name).ok()?;
        let format = "#{pane_height} #{pane_width}";
        let printed = self.ask(&["display-message", "-p", "-t", &name.pane(), format], b"").ok()?;
        let printed = String::from_utf8_lossy(&printed);
        let (rows, columns) = printed.trim().split_once(' ')?;
        Some((rows.parse().ok()?, columns.parse().ok()?))
    }

    /// The pane that was started with this process, or with its parent, if it is in one of our
    /// sessions.
    pub fn pane_of(&self, process: u32) -> Result<Option<Pane>, TmuxError> {
        match self.ask(&finding(), b"") {
            Ok(printed) => {
                let of_parent = || found(&printed, crate::runs::parent_of(process)?);
                Ok(found(&printed, process).or_else(of_parent))
            }
            Err(InvocationFailure::NoServer | InvocationFailure::NoTarget) => Ok(None),
            Err(failure) => Err(error_of(&self.socket, failure)),
        }
    }

    /// The command with which a person looks at a session and types into it.
    pub fn attach_command(&self, name: &str) -> Result<AttachCommand, TmuxError> {
        let name = SessionName::new(name)?;
        let words = ["-u", "-L", &self.socket, "attach-session", "-E", "-t", &name.session()];
        Ok(AttachCommand { arguments: words.map(str::to_owned).to_vec() })
    }

    fn whether(&self, words: &[&str]) -> Result<bool, TmuxError> {
        match self.ask(words, b"") {
            Ok(_) => Ok(true),
            Err(InvocationFailure::NoServer | InvocationFailure::NoTarget) => Ok(false),
            Err(failure) => Err(error_of(&self.socket, failure)),
        }
    }

    fn ask(&self, words: &[&str], input: &[u8]) -> Result<Vec<u8>, InvocationFailure> {
        match ask(self.command().args(words), input) {
            Err(InvocationFailure::NoServer) if self.restore_socket() => {
                ask(self.command().args(words), input)
            }
            asked => asked,
        }
    }

    /// The program with the options of every call: UTF-8 in any locale, our socket, no
    /// configuration of a person.
    fn command(&self) -> Command {
        let mut command = command("tmux");
        command.args(["-u", "-L", &self.socket, "-f", "/dev/null"]);
        for variable in PLACE_VARIABLES {
            command.env_remove(variable);
        }
        command
    }
}

/// The command with which a person looks at a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachCommand {
    arguments: Vec<String>,
}

impl AttachCommand {
    /// The program.
    pub const PROGRAM: &str = "tmux";

    /// Its arguments.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Becomes this program, and so returns only if that is not possible.
    pub fn become_it(&self) -> ProcessError {
        let mut command = command(Self::PROGRAM);
        command.args(&self.arguments);
        for variable in PLACE_VARIABLES {
            // Tmux refuses to be looked at from inside of another tmux.
            command.env_remove(variable);
        }
        ProcessError::Start { program: Self::PROGRAM.to_owned(), source: command.exec() }
    }
}

/// The error of a failure where no session was named.
fn error_of(socket: &str, failure: InvocationFailure) -> TmuxError {
    match failure {
        InvocationFailure::NoServer => TmuxError::ServerGone,
        InvocationFailure::TooLong => TmuxError::TooLong,
        InvocationFailure::Silent => TmuxError::Silent { socket: socket.to_owned() },
        InvocationFailure::Io(error) if error.kind() == ErrorKind::NotFound => TmuxError::Missing,
        InvocationFailure::Io(error) => TmuxError::Io(error),
        InvocationFailure::Unusable(error) => error,
        InvocationFailure::Refused(message) => TmuxError::Failed { message },
        InvocationFailure::NoTarget => {
            TmuxError::Failed { message: "there is no such target".to_owned() }
        }
        InvocationFailure::Duplicate => {
            TmuxError::Failed { message: "the name is taken".to_owned() }
        }
        InvocationFailure::Unprepared => TmuxError::Failed {
            message: format!("its server cannot be prepared; end it: tmux -L {socket} kill-server"),
        },
    }
}

/// The words with which tmux runs exactly this program. One word alone would be given to a shell.
fn program_words(argv: &[OsString]) -> Result<Vec<OsString>, TmuxError> {
    let has_zero = |word: &OsString| word.as_bytes().contains(&0);
    match argv {
        [] => Err(TmuxError::Words),
        [program, ..] if program.is_empty() || argv.iter().any(has_zero) => Err(TmuxError::Words),
        [program] => {
            let mut words: Vec<OsString> = ["/bin/sh", "-c", "exec \"$0\""].map(Into::into).into();
            words.push(program.clone());
            Ok(words)
        }
        several => Ok(several.to_vec()),
    }
}

/// The names of the variables that a session gets from its client: ours and the given ones, as the value of
/// an option, which is a list of patterns.
fn variables(environment: &[(String, String)]) -> Result<String, TmuxError> {
    for (name, value) in environment {
        let fits = name.len() + value.len() < VARIABLE_BYTES_MAX;
        if !is_plain(OsStr::new(name)) || !fits || value.contains('\0') {
            return Err(TmuxError::Variable { name: name.clone() });
        }
    }
    let ours = std::env::vars_os().map(|(name, _)| name).filter(|name| is_plain(name));
    let ours = ours.filter_map(|name| name.into_string().ok());
    let given = environment.iter().map(|(name, _)| name.clone());
    let mut names: Vec<String> = ours.chain(given).collect();
    names.retain(|name| !PLACE_VARIABLES.contains(&name.as_str()));
    names.sort_unstable();
    names.dedup();
    Ok(names.join(" "))
}

/// Whether tmux takes the name of a variable for nothing else.
fn is_plain(name: &OsStr) -> bool {
    let is_harmless = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty() && name.as_bytes().iter().all(is_harmless)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn towns_have_different_sockets() {
        let [one, again, other] = ["a", "a", "b"].map(|identity| Tmux::of_town(identity).socket);
        assert_eq!(one, again);
        assert_ne!(one, other);
        assert!(one.starts_with("gt-") && one.len() < 20, "{one}");
    }

    #[test]
    fn a_program_alone_is_not_given_to_a_shell() {
        let words = |argv: &[&str]| program_words(&argv.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(words(&["a b"]).unwrap(), ["/bin/sh", "-c", "exec \"$0\"", "a b"]);
        assert_eq!(words(&["a", ""]).unwrap(), ["a", ""]);
        for wrong in [&[][..], &["", "a"], &["a", "b\0"]] {
            assert!(matches!(words(wrong), Err(TmuxError::Words)), "{wrong:?}");
        }
    }

    #[test]
    fn variables_that_would_not_arrive_are_refused() {
        let given = |name: &str, value: &str| variables(&[(name.to_owned(), value.to_owned())]);
        assert!(given("GT_RUN", "a#1").unwrap().split(' ').any(|name| name == "GT_RUN"));
        let long = "x".repeat(VARIABLE_BYTES_MAX);
        for (name, value) in [("", "a"), ("A B", "a"), ("A*", "a"), ("A=", "a"), ("A", "\0")] {
            assert!(matches!(given(name, value), Err(TmuxError::Variable { .. })), "{name}");
        }
        assert!(matches!(given("A", &long), Err(TmuxError::Variable { .. })));
    }

    #[test]
    fn a_person_attaches_to_exactly_one_session() {
        let tmux = Tmux { socket: "gt-x".to_owned() };
        let attach = tmux.attach_command("gt-a").unwrap();
        assert_eq!(attach.arguments()[1..], ["-L", "gt-x", "attach-session", "-E", "-t", "=gt-a"]);
        assert!(tmux.attach_command("a:b").is_err());
    }
}
