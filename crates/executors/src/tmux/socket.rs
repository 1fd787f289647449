//! The socket of a server. Programs that clean /tmp delete it while the server goes on with its sessions.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, getuid, kill_process};

use super::Tmux;
use crate::private;

/// The kernel's name of the process of a server.
const SERVER_NAME: &str = "tmux: server\n";

/// The variable that says where tmux has its sockets.
const PLACE: &str = "TMUX_TMPDIR";

/// How long a server may take to make its socket again.
const SOCKET_WAIT_MAX: Duration = Duration::from_secs(1);
const SOCKET_POLL_INTERVAL: Duration = Duration::from_millis(5);

impl Tmux {
    /// Has a server that runs without its socket make it again. Says whether there is one now.
    pub(super) fn restore_socket(&self) -> bool {
        let path = self.socket_path();
        if path.exists() {
            return false;
        }
        let Some(server) = self.find_server() else { return false };
        let made = path.parent().is_some_and(|place| private::create_dir_all(place).is_ok());
        if !made || kill_process(server, Signal::USR1).is_err() {
            return false;
        }
        let began = Instant::now();
        while !path.exists() {
            if began.elapsed() >= SOCKET_WAIT_MAX {
                return false;
            }
            thread::sleep(SOCKET_POLL_INTERVAL);
        }
        true
    }

    fn socket_path(&self) -> PathBuf {
        let place = place().unwrap_or_else(|| "/tmp".into());
        PathBuf::from(place).join(format!("tmux-{}", getuid().as_raw())).join(self.socket())
    }

    /// The process that was started as the server of this socket, in the same place.
    fn find_server(&self) -> Option<Pid> {
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter_map(Pid::from_raw).find(|pid| {
            let part = |name: &str| {
                fs::read(format!("/proc/{}/{name}", pid.as_raw_pid())).unwrap_or_default()
            };
            part("comm") == SERVER_NAME.as_bytes()
                && part("cmdline")
                    .split(|byte| *byte == 0)
                    .any(|word| word == self.socket.as_bytes())
                && part("environ").split(|byte| *byte == 0).find_map(place_in)
                    == place().as_ref().map(|place| place.as_bytes().to_owned())
        })
    }
}

fn place() -> Option<OsString> {
    env::var_os(PLACE).filter(|place| !place.is_empty())
}

fn place_in(variable: &[u8]) -> Option<Vec<u8>> {
    let value = variable.strip_prefix(PLACE.as_bytes())?.strip_prefix(b"=")?;
    (!value.is_empty()).then(|| value.to_owned())
}
