//! A pooler between clients and a PostgreSQL server.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::postgres::{command, server_user, text};
use crate::{Cluster, wait_until};

/// A `pgbouncer`, which gives every transaction a connection to the server that is free at that
/// moment.
///
/// It listens on a socket in its own directory. A shell beside it holds a pipe to this process and
/// ends it when that closes.
#[derive(Debug)]
pub struct Pooler {
    directory: TempDir,
    guard: Child,
}

/// The last part of the name of its socket.
const PORT: u16 = 6432;

impl Pooler {
    /// Starts it before `cluster`.
    pub fn start(cluster: &Cluster) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("gt-pooler-")
            .tempdir()
            .expect("make a directory for the pooler");
        let user = server_user();
        let (place, server) = (text(directory.path()), text(cluster.directory()));
        let settings = format!(
            "[databases]\n* = host={server} port=5432\n[pgbouncer]\nlisten_addr =\n\
             unix_socket_dir = {place}\nlisten_port = {PORT}\nauth_type = trust\n\
             auth_file = {place}/users\npool_mode = transaction\ndefault_pool_size = 8\n"
        );
        fs::write(directory.path().join("settings"), settings).expect("write the settings");
        fs::write(directory.path().join("users"), "\"postgres\" \"\"\n").expect("write the users");
        if let Some(user) = user {
            chown(directory.path(), Some(user.id), Some(user.group)).expect("give it away");
        }
        let script = "PATH=$PATH:/usr/sbin; pgbouncer -q \"$1\" & read -r _; kill $!; wait $!";
        let mut guard = command(Path::new("/bin/sh"), user);
        guard.args(["-c", script, "guard", &format!("{place}/settings")]);
        guard.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = guard.current_dir("/").spawn().expect("start the guard of the pooler");
        let pooler = Self { directory, guard };
        let socket = pooler.socket();
        wait_until("pgbouncer answers (is Debian's package pgbouncer installed?)", || {
            UnixStream::connect(&socket).is_ok()
        });
        pooler
    }

    /// The socket that it listens on.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join(format!(".s.PGSQL.{PORT}"))
    }

    /// The way through it to a database.
    pub fn url(&self, database: &str) -> String {
        let socket = text(self.directory.path()).replace('/', "%2F");
        format!("postgres://postgres@{socket}:{PORT}/{database}")
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
