//! The server itself: started when it is needed, and prepared once.

use std::ffi::OsStr;
use std::thread;
use std::time::Duration;

use super::invocation::{InvocationFailure, ask};
use super::{PREPARED, Tmux, is_plain};
use crate::runs::outside_control_group;

/// How often, and how long apart, a start is tried again because the server ended when its last session did,
/// just then.
const TRIES_MAX: u32 = 20;
const ENDING_PAUSE: Duration = Duration::from_millis(10);

/// How many variables a server is made to forget with one call, which cannot be longer than a message.
const FORGOTTEN_AT_ONCE: usize = 100;

/// The options that all sessions have in common.
const SERVER_OPTIONS: [(&str, &str, &str); 7] = [
    ("-g", "status", "off"),
    ("-g", "history-limit", HISTORY_LINES),
    ("-wg", "remain-on-exit", "off"),
    ("-wg", "automatic-rename", "off"),
    ("-wg", "allow-rename", "off"),
    // The key that begins many sequences is not held back from agents.
    ("-s", "escape-time", "10"),
    // The output of a worker must not get into the clipboard of a person.
    ("-s", "set-clipboard", "off"),
];

/// How many lines a pane remembers. The log of a run has all of them.
const HISTORY_LINES: &str = "20000";

/// The variables that the server itself gets; sessions get those of the process that makes them.
const SERVER_VARIABLES: [&str; 9] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TMUX_TMPDIR"];

impl Tmux {
    /// Does something that begins by asking for the mark of a prepared server, and prepares one where
    /// there is none. So the usual case costs one call.
    pub(super) fn with_prepared_server<T>(
        &self,
        mut act: impl FnMut() -> Result<T, InvocationFailure>,
    ) -> Result<T, InvocationFailure> {
        // Where the socket is missing, tmux would start a second server.
        self.restore_socket();
        for _ in 0..TRIES_MAX {
            match act() {
                Err(InvocationFailure::NoServer | InvocationFailure::Unprepared) => {}
                outcome => return outcome,
            }
            match self.prepare() {
                // One that was just ending; the next will be ours.
                Err(InvocationFailure::NoServer) => thread::sleep(ENDING_PAUSE),
                prepared => prepared?,
            }
        }
        act()
    }

    /// Starts the server, if there is none, and sets the options of all sessions.
    fn prepare(&self) -> Result<(), InvocationFailure> {
        Self::check().map_err(InvocationFailure::Unusable)?;
        // The server has the sessions of other runs too, and must not end with one of them.
        let printed = outside_control_group(|| self.start_server())?;
        // The process that started it gave it an environment that must not reach the sessions of others. A line that looks
        // like a variable and is the second line of one does no harm.
        let printed = String::from_utf8_lossy(&printed);
        let names = printed.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
        let foreign = names.filter(|name| !SERVER_VARIABLES.contains(name));
        let foreign: Vec<&str> = foreign.filter(|name| is_plain(OsStr::new(name))).collect();
        for some in foreign.chunks(FORGOTTEN_AT_ONCE) {
            let mut command = self.command();
            for name in some {
                command.args(["set-environment", "-gu", name, ";"]);
            }
            command.args(["set-option", "-s", "exit-empty", "off"]);
            ask(&mut command, b"")?;
        }
        self.ask(&["set-option", "-g", PREPARED, "1"], b"").map(|_| ())
    }

    /// Starts the server, if there is none, and gives its environment.
    fn start_server(&self) -> Result<Vec<u8>, InvocationFailure> {
        let mut command = self.command();
        // Until the first session is there.
        command.args(["start-server", ";", "set-option", "-s", "exit-empty", "off"]);
        for (scope, option, value) in SERVER_OPTIONS {
            command.args([";", "set-option", scope, option, value]);
        }
        command.args([";", "show-environment", "-g"]);
        ask(&mut command, b"")
    }
}
