//! Workers that write down what they do, and a daemon that starts them.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};

use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};

/// How long anything may take before it is taken for stuck.
const LIMIT: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The pipe that a worker of [`arrive`] waits for, where there is one: the benchmark opens and
/// closes it. With a name, it is only for the worker of that name.
pub(super) const HOLD: &str = "hold";
/// How many milliseconds each worker works, if this file is there.
const LINGER: &str = "linger";
/// Every worker that has begun, one on each line.
const ALL_BEGUN: &str = "all";

/// The worker of a run: it writes down when it began, waits if there is a pipe to wait for, writes down when it ended, and
/// reports that its work is done.
pub(crate) fn arrive(directory: &Path, name: &str) -> BenchmarkResult<()> {
    write_moment(directory, name)?;
    let own = directory.join(format!("{HOLD}-{name}"));
    let hold = if own.exists() { own } else { directory.join(HOLD) };
    if hold.exists() {
        // It opens when the benchmark opens the other end, and ends when the benchmark closes it.
        File::open(hold)?.read_to_end(&mut Vec::new())?;
    } else if let Ok(linger) = fs::read_to_string(directory.join(LINGER)) {
        let all = File::options().create(true).append(true).open(directory.join(ALL_BEGUN));
        all?.write_all(format!("{name}\n").as_bytes())?;
        std::thread::sleep(Duration::from_millis(linger.parse()?));
    }
    write_moment(directory, &format!("{name}.left"))?;
    // A run whose tree is unchanged is over only if its worker says so.
    let is_run = std::env::var_os("GT_RUN").is_some();
    if is_run && Path::new(".git").exists() {
        let done = ["done", "--no-changes", "-m", "a benchmark"];
        let status = Command::new("gt").args(done).stdout(Stdio::null()).status()?;
        if !status.success() {
            return Err(format!("gt done of {name} failed").into());
        }
    }
    Ok(())
}

fn write_moment(directory: &Path, name: &str) -> BenchmarkResult<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
    let beside = directory.join(format!("{name}.next"));
    fs::write(&beside, format!("{} {own} {parent}", now.as_nanos()))?;
    Ok(fs::rename(&beside, directory.join(name))?)
}

/// How long each worker works from now on.
pub(super) fn linger(arrivals: &Path, time: Duration) -> BenchmarkResult<()> {
    Ok(fs::write(arrivals.join(LINGER), time.as_millis().to_string())?)
}

/// When the worker of this name began.
pub(super) fn began(arrivals: &Path, name: &str) -> BenchmarkResult<SystemTime> {
    let moment = moment(arrivals, name)?;
    Ok(SystemTime::UNIX_EPOCH + Duration::from_nanos(moment[0]))
}

/// When the worker of this name ended.
pub(super) fn left(arrivals: &Path, name: &str) -> BenchmarkResult<SystemTime> {
    began(arrivals, &format!("{name}.left"))
}

/// The time, the worker and its parent, as the worker wrote them down.
fn moment(arrivals: &Path, name: &str) -> BenchmarkResult<[u64; 3]> {
    let file = arrivals.join(name);
    wait_until(&format!("{name} was written down"), || file.exists())?;
    let text = fs::read_to_string(&file)?;
    let numbers: Vec<u64> = text.split(' ').filter_map(|number| number.parse().ok()).collect();
    Ok(numbers.try_into().map_err(|_| format!("{} is not understood", file.display()))?)
}

pub(super) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) -> BenchmarkResult<()> {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > LIMIT {
            return Err(format!("waited too long until {what}").into());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// The daemon of a town, while this value is there, and the workers that it starts.
pub(super) struct DaemonTown<'l> {
    lab: &'l Lab,
    town: PathBuf,
    arrivals: PathBuf,
    sockets: PathBuf,
}

impl<'l> DaemonTown<'l> {
    /// Starts the daemon of a town. Its workers write to `arrivals`, and sockets of sessions are in `sockets`.
    pub(super) fn up(
        lab: &'l Lab,
        town: &BenchmarkTown,
        arrivals: &Path,
        sockets: &Path,
    ) -> BenchmarkResult<Self> {
        let site = Self {
            lab,
            town: town.path.clone(),
            arrivals: arrivals.to_owned(),
            sockets: sockets.to_owned(),
        };
        site.gt(&["up"])?;
        Ok(site)
    }

    /// Runs `gt` in the town.
    pub(super) fn gt(&self, words: &[&str]) -> BenchmarkResult<()> {
        self.lab.time(self.command("gt")?.args(words)).map(drop)
    }

    fn command(&self, name: &str) -> BenchmarkResult<Command> {
        let mut command = self.lab.program(name, &self.town)?;
        command.env("TMUX_TMPDIR", &self.sockets);
        Ok(command)
    }

    /// The output of a program of ours in the town.
    pub(super) fn output(&self, name: &str, words: &[&str]) -> BenchmarkResult<String> {
        self.lab.output(self.command(name)?.args(words))
    }

    /// The process of the daemon.
    pub(super) fn daemon(&self) -> BenchmarkResult<u32> {
        let said = self.output("gt", &["daemon", "status", "--json"])?;
        let number = said.split("\"pid\": ").nth(1).and_then(|rest| {
            rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
        });
        Ok(number.ok_or("the daemon does not say its number")?)
    }

    /// Creates beads and schedules them, each worker held if `is_held`.
    pub(super) fn schedule(&self, beads: &[String], is_held: bool) -> BenchmarkResult<()> {
        let source = self.arrivals.join("beads.jsonl");
        let lines = beads.iter().map(|bead| super::queue::line(bead, 2, None));
        fs::write(&source, lines.collect::<String>())?;
        self.lab.time(self.command("bd")?.arg("import").arg(&source))?;
        self.sling(beads, is_held)
    }

    /// Schedules beads that are there.
    pub(super) fn sling(&self, beads: &[String], is_held: bool) -> BenchmarkResult<()> {
        for bead in beads.iter().filter(|_| is_held) {
            let pipe = self.arrivals.join(format!("{HOLD}-{bead}"));
            mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR)?;
        }
        let mut command = self.command("gt")?;
        command.arg("sling").args(beads);
        self.lab.time(command.args(["--no-boot", "--no-convoy"])).map(drop)
    }

    /// Lets a worker end that is held.
    pub(super) fn release(&self, bead: &str) -> BenchmarkResult<()> {
        let pipe = self.arrivals.join(format!("{HOLD}-{bead}"));
        drop(File::options().write(true).open(&pipe)?);
        Ok(fs::remove_file(&pipe)?)
    }

    /// When the worker of a bead began.
    pub(super) fn began(&self, bead: &str) -> BenchmarkResult<SystemTime> {
        began(&self.arrivals, bead)
    }

    /// When the worker of a bead ended.
    pub(super) fn left(&self, bead: &str) -> BenchmarkResult<SystemTime> {
        left(&self.arrivals, bead)
    }

    /// Kills the worker of a bead and its supervisor, and forgets that it was there; returns the
    /// time of that.
    pub(super) fn kill(&self, bead: &str) -> BenchmarkResult<SystemTime> {
        let [_, worker, supervisor] = moment(&self.arrivals, bead)?;
        fs::remove_file(self.arrivals.join(bead))?;
        let pid = |number: u64| i32::try_from(number).ok().and_then(Pid::from_raw);
        let (worker, supervisor) = pid(worker).zip(pid(supervisor)).ok_or("no such process")?;
        kill_process(supervisor, Signal::KILL)?;
        let now = SystemTime::now();
        kill_process(worker, Signal::KILL)?;
        Ok(now)
    }

    /// Every worker that has begun since workers linger.
    pub(super) fn all_begun(&self) -> Vec<String> {
        let text = fs::read_to_string(self.arrivals.join(ALL_BEGUN)).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// How long the log of the daemon is.
    pub(super) fn log_length(&self) -> BenchmarkResult<u64> {
        Ok(fs::metadata(self.log())?.len())
    }

    fn log(&self) -> PathBuf {
        self.town.join(".gt/logs/daemon.log")
    }

    /// Waits until the daemon has logged this of a bead, after the beginning of its log; when that was.
    pub(super) fn told(&self, after: u64, event: &str, bead: &str) -> BenchmarkResult<SystemTime> {
        let (event, bead) = (format!("\"event\":\"{event}\""), format!("\"bead\":\"{bead}\""));
        let mut log = File::open(self.log())?;
        let start = Instant::now();
        let after = usize::try_from(after)?;
        let mut text = Vec::new();
        loop {
            log.read_to_end(&mut text)?;
            let now = SystemTime::now();
            let new = String::from_utf8_lossy(text.get(after..).unwrap_or_default());
            if new.lines().any(|line| line.contains(&event) && line.contains(&bead)) {
                return Ok(now);
            }
            if start.elapsed() > LIMIT {
                return Err(format!("the daemon did not log {event} of {bead}").into());
            }
            std::thread::sleep(POLL_INTERVAL / 4);
        }
    }

    /// How many beads have this status.
    pub(super) fn count(&self, status: &str) -> BenchmarkResult<u32> {
        let said = self.output("bd", &["count", "--status", status, "--json"])?;
        let number = said.split("\"count\": ").nth(1).and_then(|rest| {
            rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
        });
        Ok(number.ok_or_else(|| format!("bd count said {said}"))?)
    }

    /// The processes of workers that are there, from the process table.
    pub(super) fn workers(&self) -> Vec<i32> {
        let is_worker = |line: &[u8]| {
            let mut words = line.split(|byte| *byte == 0);
            words.next().is_some_and(|program| program.ends_with(b"gt-benchmarks"))
                && words.next() == Some(b"arrive")
                && words.next() == Some(self.arrivals.as_os_str().as_encoded_bytes())
        };
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let look = |number: &i32| fs::read(format!("/proc/{number}/cmdline"));
        numbers.filter(|number| look(number).is_ok_and(|line| is_worker(&line))).collect()
    }
}

impl Drop for DaemonTown<'_> {
    fn drop(&mut self) {
        // The daemon first, so that it starts nothing in the place of what is ended.
        let _ = self.gt(&["down"]);
        for worker in self.workers().into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(worker, Signal::KILL);
        }
        let _ = wait_until("all workers have ended", || self.workers().is_empty());
    }
}
