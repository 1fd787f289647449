//! A machine that is reached over ssh, played by this one.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::postgres::text;
use crate::wait_until;

/// The name of the machine in [`Sshd::client_config`].
const HOST: &str = "builder";

/// An ssh server of one's own on a free port of this machine, with keys of its own. It is gone when the test is, however
/// that ends: a small shell beside it holds a pipe to this process.
#[derive(Debug)]
pub struct Sshd {
    directory: TempDir,
    program: PathBuf,
    port: u16,
    /// The variables that its sessions have.
    environment: Vec<(String, String)>,
    running: Option<RunningSshd>,
}

#[derive(Debug)]
struct RunningSshd {
    guard: Child,
    process: u32,
}

impl Sshd {
    /// Starts the server, whose sessions have these variables. Fails loudly where there is none: scripts/test installs it.
    #[track_caller]
    pub fn start(environment: &[(&str, &str)]) -> Self {
        let program =
            ["/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"].map(PathBuf::from);
        let program = program.into_iter().find(|path| path.is_file()).expect(
            "sshd is not installed; scripts/test installs it (Debian's package openssh-server)",
        );
        let directory =
            tempfile::Builder::new().prefix("gt-ssh-").tempdir().expect("make a directory");
        for name in ["host-key", "key", "wrong-key"] {
            let file = directory.path().join(name);
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", text(&file)])
                .status()
                .expect("ssh-keygen runs");
            assert!(made.success(), "no key was made");
        }
        // Without it a server that root starts does not start.
        if Path::new("/run").is_dir() && !Path::new("/run/sshd").exists() {
            let _ = fs::create_dir("/run/sshd");
            let _ = fs::set_permissions("/run/sshd", PermissionsExt::from_mode(0o755));
        }
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = environment.iter().map(owned).collect();
        let mut sshd = Self { directory, program, port: 0, environment, running: None };
        // Another process may take the port between our looking and the server's.
        for _ in 0..10 {
            sshd.port = free_port();
            sshd.write_settings();
            if sshd.try_resume() {
                return sshd;
            }
        }
        panic!("sshd does not start: {}", sshd.log());
    }

    /// The name of the machine.
    pub fn host(&self) -> &'static str {
        HOST
    }

    /// The configuration of a client that may come in.
    pub fn client_config(&self) -> PathBuf {
        self.path("config")
    }

    /// The configuration of a client that is turned away.
    pub fn wrong_client_config(&self) -> PathBuf {
        self.path("wrong-config")
    }

    /// Stops the server and breaks every line to it. Processes that were started over them go on.
    pub fn stop(&mut self) {
        let Some(RunningSshd { mut guard, process }) = self.running.take() else { return };
        drop(guard.stdin.take());
        // The first one first: it could take another line.
        kill(process);
        lines_of(self.port).into_iter().for_each(kill);
        let _ = guard.wait();
        wait_until("the server is gone", || TcpStream::connect(("127.0.0.1", self.port)).is_err());
    }

    /// Starts the server again after [`Sshd::stop`].
    #[track_caller]
    pub fn resume(&mut self) {
        assert!(self.try_resume(), "sshd does not start again: {}", self.log());
    }

    fn try_resume(&mut self) -> bool {
        let script = "\"$1\" -D -f \"$2\" -E \"$3\" & echo $!; read -r _; kill -9 $!";
        let mut guard = Command::new("/bin/sh");
        guard.args(["-c", script, "guard", text(&self.program)]);
        guard.args([text(&self.path("sshd_config")), text(&self.path("log"))]);
        // A signal to the test's whole group, as ^C sends it, must not reach the guard first.
        guard.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut guard = guard.current_dir("/").spawn().expect("start the guard of the server");
        let mut line = String::new();
        let out = guard.stdout.take().expect("it has one");
        BufReader::new(out).read_line(&mut line).expect("the guard names the server");
        let process: u32 = line.trim().parse().expect("the guard names the server");
        self.running = Some(RunningSshd { guard, process });
        let mut answers = false;
        wait_until("the server answers or has ended", || {
            answers = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            answers || has_ended(process)
        });
        if !answers {
            self.stop();
        }
        answers
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn write_settings(&self) {
        let write = |name: &str, contents: String| {
            fs::write(self.path(name), contents).expect("write a setting of ssh");
        };
        let read = |name: &str| fs::read_to_string(self.path(name)).expect("read a key");
        let (port, here) = (self.port, self.directory.path().display());
        let variables: Vec<String> =
            self.environment.iter().map(|(name, value)| format!("\"{name}={value}\"")).collect();
        let variables = match variables.as_slice() {
            [] => String::new(),
            some => format!("SetEnv {}\n", some.join(" ")),
        };
        write("authorized_keys", read("key.pub"));
        write("known_hosts", format!("[127.0.0.1]:{port} {}", read("host-key.pub")));
        write(
            "sshd_config",
            format!(
                "ListenAddress 127.0.0.1:{port}\nHostKey {here}/host-key\nPidFile none\nStrictModes no\n\
                 AuthorizedKeysFile {here}/authorized_keys\nPasswordAuthentication no\n\
                 KbdInteractiveAuthentication no\nPermitRootLogin yes\nUsePAM no\nMaxStartups 100\n\
                 PrintMotd no\n{variables}"
            ),
        );
        for (name, key) in [("config", "key"), ("wrong-config", "wrong-key")] {
            write(
                name,
                format!(
                    "Host {HOST}\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {here}/{key}\n  \
                     IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile {here}/known_hosts\n  \
                     GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n"
                ),
            );
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A free port that the kernel gives to no other process by itself: the server leaves it when it stops, and wants it again.
fn free_port() -> u16 {
    const PORTS: std::ops::Range<u64> = 10_000..32_000;
    loop {
        let number = RandomState::new().hash_one(std::process::id());
        let port = PORTS.start + number % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).expect("it is one");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn kill(process: u32) {
    // It may have ended by itself.
    let _ = Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status();
}

fn has_ended(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    !status.lines().any(|line| line.starts_with("State:") && !line.contains(['Z', 'X']))
}

/// The processes of the server, each of which has a line: they have a socket with this port of ours, and the name.
fn lines_of(port: u16) -> Vec<u32> {
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let ending = format!(":{port:04X}");
    let inodes: Vec<String> = sockets
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(1).is_some_and(|local| local.ends_with(&ending)))
        .filter_map(|fields| fields.get(9).map(|inode| format!("socket:[{inode}]")))
        .collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|number| has_one_of(*number, &inodes)).collect()
}

fn has_one_of(process: u32, sockets: &[String]) -> bool {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let is_one = |file: fs::DirEntry| {
        fs::read_link(file.path())
            .is_ok_and(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
    };
    name.starts_with("sshd") && files.into_iter().any(is_one)
}
