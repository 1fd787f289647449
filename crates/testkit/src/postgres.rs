//! A PostgreSQL server of one's own, which is gone when the test is.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use crate::wait_until;

/// A throw-away PostgreSQL cluster.
///
/// It listens on a socket in its own directory, so that it needs no port. A small shell beside it
/// holds a pipe to this process; when that closes, however this process ends, the shell stops the
/// server and the directory goes.
#[derive(Debug)]
pub struct Cluster {
    directory: PathBuf,
    binaries: PathBuf,
    user: Option<User>,
    port: Option<u16>,
    guard: Child,
    databases: AtomicU64,
}

/// The user that runs the server if we are root, which PostgreSQL refuses to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) id: u32,
    pub(crate) group: u32,
}

/// Nothing here outlives the test, so nothing has to survive a power cut.
const SETTINGS: &str = "fsync = off
full_page_writes = off
max_connections = 300
shared_buffers = '64MB'
listen_addresses = ''
";

/// A server process that works for one of our clients, if possible one within a transaction.
const VICTIM: &str = "FROM pg_stat_activity WHERE application_name = 'gt' \
    ORDER BY xact_start IS NULL, random() LIMIT 1";

impl Cluster {
    /// The cluster that all tests of this process share. Those that stop it, or fill it up, start
    /// their own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(""))
    }

    /// Starts a cluster with these lines added to its settings.
    pub fn start(settings: &str) -> Self {
        let binaries = binaries();
        let user = server_user();
        let directory = tempfile::Builder::new()
            .prefix("gt-pg-")
            .tempdir()
            .expect("make a directory for the server");
        if let Some(user) = user {
            chown(directory.path(), Some(user.id), Some(user.group)).expect("give it away");
        }
        let guard = start_guard(directory.path(), &binaries, user);
        // From here on the guard removes it.
        let directory = TempDir::keep(directory);
        let cluster =
            Self { directory, binaries, user, port: None, guard, databases: AtomicU64::new(0) };
        let data = cluster.data();
        let initdb =
            ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N", "-D"];
        cluster.run("initdb", initdb.into_iter().chain([text(&data)]));
        let config = data.join("postgresql.conf");
        let sockets = format!("unix_socket_directories = '{}'\n", cluster.directory.display());
        let old = fs::read_to_string(&config).expect("read the server's settings");
        fs::write(&config, old + SETTINGS + &sockets + settings).expect("write the settings");
        cluster.start_server();
        cluster
    }

    /// Starts a cluster that listens on a port of this machine too.
    pub fn start_with_port(settings: &str) -> Self {
        // Another process may take the port between our looking and the server's.
        for _ in 0..10 {
            let free = std::net::TcpListener::bind("127.0.0.1:0").expect("find a free port");
            let port = free.local_addr().expect("it has an address").port();
            drop(free);
            let more = format!("listen_addresses = '127.0.0.1'\nport = {port}\n{settings}");
            let started = std::panic::catch_unwind(|| Self::start(&more));
            if let Ok(mut cluster) = started {
                cluster.port = Some(port);
                return cluster;
            }
        }
        panic!("no free port was found for PostgreSQL");
    }

    /// A new, empty database; its URL.
    pub fn fresh_database(&self) -> String {
        self.clone_database("template0")
    }

    /// A new database that is a copy of `template`; its URL.
    pub fn clone_database(&self, template: &str) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        self.url(&name)
    }

    /// The URL of a database, through the socket.
    pub fn url(&self, database: &str) -> String {
        let socket = text(&self.directory).replace('/', "%2F");
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("postgres://postgres@{socket}{port}/{database}")
    }

    /// The URL of a database, through the port.
    pub fn url_by_port(&self, database: &str) -> String {
        let port = self.port.expect("the cluster was started with a port");
        format!("postgres://postgres@localhost:{port}/{database}")
    }

    /// Runs SQL and gives the output of `psql`: a line per row, `|` between columns.
    #[track_caller]
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let port = self.port.map_or_else(|| "5432".to_owned(), |port| port.to_string());
        let directory = text(&self.directory);
        let arguments = ["-X", "-q", "-A", "-t", "-U", "postgres", "-v", "ON_ERROR_STOP=1"];
        let place = ["-h", directory, "-p", &port, "-d", database, "-c", sql];
        let output = self.run("psql", arguments.into_iter().chain(place));
        String::from_utf8(output.stdout).expect("psql prints UTF-8").trim_end().to_owned()
    }

    /// Starts the server again after [`Cluster::stop`].
    pub fn start_server(&self) {
        let log = self.directory.join("log");
        // -W would return before the server answers.
        self.run("pg_ctl", ["-D", text(&self.data()), "-l", text(&log), "-s", "-w", "start"]);
    }

    /// Stops the server at once: every connection breaks.
    pub fn stop(&self) {
        let data = self.data();
        self.run("pg_ctl", ["-D", text(&data), "-s", "-w", "-m", "immediate", "stop"]);
    }

    /// The directory that everything of the cluster is in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The socket that the server listens on.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(format!(".s.PGSQL.{}", self.port.unwrap_or(5432)))
    }

    /// Breaks the server down as a crash does, and starts it again.
    pub fn crash(&self) {
        self.stop();
        self.start_server();
    }

    /// Kills the server process of a client with `kill -9`, whereupon the server ends all others and recovers. Waits until it
    /// has; says whether there was such a process.
    pub fn kill_backend(&self) -> bool {
        let recoveries = || {
            let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            log.matches("ready to accept connections").count()
        };
        let before = recoveries();
        let pid = self.sql("postgres", &format!("SELECT pid {VICTIM}"));
        let mut kill = command(Path::new("/bin/sh"), self.user);
        kill.args(["-c", "kill -9 \"$1\"", "kill", &pid]).stderr(Stdio::null());
        let is_hit = !pid.is_empty() && kill.status().is_ok_and(|status| status.success());
        if is_hit {
            wait_until("the server has recovered", || recoveries() > before);
        }
        is_hit
    }

    /// Ends the server process of a client with `pg_terminate_backend`; says whether there was one.
    pub fn terminate_backend(&self) -> bool {
        self.sql("postgres", &format!("SELECT pg_terminate_backend(pid) {VICTIM}")) == "t"
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    #[track_caller]
    fn run<'a>(&self, program: &str, arguments: impl IntoIterator<Item = &'a str>) -> Output {
        let mut command = command(&self.binaries.join(program), self.user);
        command.args(arguments).stdin(Stdio::null()).current_dir(&self.directory);
        let output = command.output().unwrap_or_else(|error| panic!("start {program}: {error}"));
        if !output.status.success() {
            let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            let said = String::from_utf8_lossy(&output.stderr);
            panic!("{program} failed: {said}\n{log}");
        }
        output
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
        // Where only we may.
        let _ = fs::remove_dir(&self.directory);
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

pub(crate) fn command(program: &Path, user: Option<User>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
    if let Some(user) = user {
        command.uid(user.id).gid(user.group);
    }
    command
}

fn start_guard(directory: &Path, binaries: &Path, user: Option<User>) -> Child {
    // If the test was killed while initdb was at work, that may still be writing. The directory itself belongs to one that
    // the server's user may not be allowed to change.
    let script = "read -r _; \"$1/pg_ctl\" -D \"$2/data\" -s -m immediate stop; \
                  until rm -rf -- \"$2\" || ! ls -A \"$2\" | grep -q .; do sleep 1; done";
    let mut guard = command(Path::new("/bin/sh"), user);
    guard.args(["-c", script, "guard", text(binaries), text(directory)]);
    // A signal to the test's whole group, as ^C sends it, must not reach the guard first.
    guard.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    guard.current_dir("/").spawn().expect("start the guard of the server")
}

/// Where PostgreSQL's programs are; Debian keeps the server's off the search path.
fn binaries() -> PathBuf {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.parse().ok()?;
            let binaries = path.join("bin");
            binaries.join("initdb").is_file().then_some((version, binaries))
        })
        .collect();
    versions.sort();
    versions.pop().map(|(_, path)| path).expect(
        "PostgreSQL is not installed; scripts/test installs it (Debian's package postgresql)",
    )
}

pub(crate) fn server_user() -> Option<User> {
    let id_of = |arguments: &[&str]| -> u32 {
        let output = Command::new("id").args(arguments).output().expect("id runs");
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().expect("there is a user for PostgreSQL")
    };
    let root = id_of(&["-u"]) == 0;
    root.then(|| User { id: id_of(&["-u", "postgres"]), group: id_of(&["-g", "postgres"]) })
}
