//! Servers in processes of their own: ours, and the bare ones that it is compared with.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::client::{ClientConnection, field, request, runtime};
use crate::BenchmarkResult;
use crate::lab::Lab;

/// The body of a submission.
pub(super) const SUBMISSION: &str = r#"{"type":"deploy","description":"Retry the landing queue when the remote is slow","priority":3,"created_by":"Bench Mark","payload":{"branch":"main","attempt":1}}"#;

/// A server; it ends with this value.
pub(super) struct ServerProcess {
    child: Child,
    /// Where it listens.
    pub(super) address: SocketAddr,
}

impl ServerProcess {
    /// `gt serve` as it is by default, over the store at `url`, which is made if it is not there.
    pub(super) fn ours(lab: &Lab, url: &str) -> BenchmarkResult<Self> {
        let mut command = lab.program("gt", lab.path())?;
        command.env("DATABASE_URL", url).args(["serve", "--bind", "127.0.0.1:0"]);
        // It writes its access log, as it does wherever it is not started by hand.
        Self::start(command.stderr(Stdio::null()))
    }

    /// A bare one, over the same kind of store.
    pub(super) fn bare(lab: &Lab, part: &str, url: &str) -> BenchmarkResult<Self> {
        Self::start(lab.part(part)?.arg(url))
    }

    /// Starts it and waits until it says where it listens.
    fn start(command: &mut Command) -> BenchmarkResult<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut serving = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let mut lines = BufReader::new(output).lines();
        let said = lines.next().ok_or("a server ended before it listened")??;
        let (_, address) = said.rsplit_once("http://").ok_or("a server did not say where it is")?;
        serving.address = address.trim().parse()?;
        // Its further output is read, so that it does not block.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(serving)
    }

    /// Asks for one thing, on a connection of its own.
    pub(super) fn ask(&self, method: &str, path: &str, body: &str) -> BenchmarkResult<String> {
        runtime()?.block_on(async {
            let mut line = ClientConnection::connect(self.address).await?;
            let answer = line.ask(&request(method, path, body)).await?;
            Ok(String::from_utf8(answer.to_vec())?)
        })
    }

    /// The most memory that it has had, in KiB.
    pub(super) fn peak_kib(&self) -> BenchmarkResult<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")).ok_or("no VmHWM")?;
        Ok(kib.trim().parse()?)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The bare ones end with their input, ours when it is asked to.
        drop(self.child.stdin.take());
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// Makes a store with one item in it, so that the inbox is there. Returns the id of that item.
pub(super) fn make_store(lab: &Lab, url: &str) -> BenchmarkResult<String> {
    let serving = ServerProcess::ours(lab, url)?;
    let item = serving.ask("POST", "/work", SUBMISSION)?;
    let id = field(&item, "id").ok_or_else(|| format!("no id in {item}"))?;
    Ok(id.to_owned())
}

/// A new store in a file, with one item in it; its path.
pub(super) fn make_file(lab: &Lab, name: &str) -> BenchmarkResult<std::path::PathBuf> {
    let directory = lab.path().join(name);
    std::fs::create_dir(&directory)?;
    let path = directory.join("queue.db");
    make_store(lab, text(&path)?)?;
    Ok(path)
}

/// A path as text.
pub(super) fn text(path: &Path) -> BenchmarkResult<&str> {
    Ok(path.to_str().ok_or("a path is not UTF-8")?)
}
