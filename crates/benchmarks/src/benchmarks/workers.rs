//! From `gt sling` to the first instruction of a worker in its tree and session, and the list of many workers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::queue::gt;
use super::site::{HOLD, began, wait_until};
use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// How many files the repository has that workers get.
const FILES: u32 = 2_000;
/// How many sessions the list has.
const SESSIONS: u32 = 200;
/// The session that keeps a tmux server from ending between two rounds.
const KEEPER: &str = "keeper";

/// Starts on a new tree, on a tree that is used again and on a warm one, and the list of sessions.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let (files, sessions) =
        if lab.scale.long_rounds > 1 { (FILES, SESSIONS) } else { (FILES / 20, SESSIONS / 20) };
    let rounds = lab.scale.bursts * 2;
    let mut rows = Vec::new();
    for ground in [TreePreparation::New, TreePreparation::UsedAgain, TreePreparation::Warm] {
        rows.push(starts(lab, ground, files, rounds)?);
    }
    rows.push(list(lab, sessions)?);
    Ok(rows)
}

/// The tree that a worker gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TreePreparation {
    /// There was none.
    New,
    /// That of an earlier worker.
    UsedAgain,
    /// One that `rig.<slug>.warm_worktrees` asked for.
    Warm,
}

impl TreePreparation {
    /// Its name in a row.
    fn name(self) -> &'static str {
        match self {
            Self::New => "a new tree",
            Self::UsedAgain => "a tree that is used again",
            Self::Warm => "a warm tree",
        }
    }

    /// A word for directories.
    fn word(self) -> &'static str {
        match self {
            Self::New => "fresh",
            Self::UsedAgain => "reused",
            Self::Warm => "warm",
        }
    }
}

/// From the start of `gt sling` to the first instruction of the worker, against a bare `git fetch`, `git worktree add` (or
/// `git switch -C`, where the tree is there already) and `tmux new-session`. On both sides the tmux server runs.
fn starts(
    lab: &Lab,
    ground: TreePreparation,
    files: u32,
    rounds: usize,
) -> BenchmarkResult<ReportRow> {
    let place = WorkerTown::new(lab, ground.word(), files)?;
    if ground == TreePreparation::Warm {
        gt(lab, &place.town, &["config", "set", "rig.web.warm_worktrees", "1"])?;
    }
    let (mut round, mut bare_round) = (0, 0);
    let ours: Arm<'_> = Box::new(|| {
        round += 1;
        place.sling(&format!("web-{round}"), ground)
    });
    let bare: Arm<'_> = Box::new(|| {
        bare_round += 1;
        place.by_hand(&format!("bare-{bare_round}"), ground)
    });
    let times = alternate(rounds, [ours, bare])?;
    place.end()?;
    let tree = ground.name();
    let (by_hand, limit) = match ground {
        TreePreparation::New => ("`git worktree add`", 2.0),
        TreePreparation::UsedAgain | TreePreparation::Warm => ("`git switch -C`", 5.0),
    };
    let name = format!(
        "workers: `gt sling` to the first instruction of the worker on {tree} of {files} files, against \
         `git fetch`, {by_hand} and `tmux new-session`"
    );
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(limit)))
}

/// `gt polecat list` with so many sessions, against one `tmux list-panes -a` on the same server.
fn list(lab: &Lab, sessions: u32) -> BenchmarkResult<ReportRow> {
    let place = WorkerTown::new(lab, "list", 10)?;
    place.hold()?;
    let ids: Vec<String> = (1..=sessions).map(|number| format!("web-{number}")).collect();
    for id in &ids {
        place.create(id)?;
    }
    // As many as a machine starts without a timeout.
    for some in ids.chunks(20) {
        lab.time(place.program("gt", &place.town.path)?.arg("sling").args(some).arg("--no-boot"))?;
    }
    for id in &ids {
        place.arrival(id)?;
    }
    let ours: Arm<'_> = Box::new(|| {
        let mut command = place.program("gt", &place.town.path)?;
        lab.time(command.args(["polecat", "list"]))
    });
    let bare: Arm<'_> = Box::new(|| lab.time(place.tmux()?.args(["list-panes", "-a"])));
    let listed = lab.output(place.program("gt", &place.town.path)?.args(["polecat", "list"]))?;
    let working = listed.lines().filter(|line| line.contains("working")).count();
    if working != ids.len() {
        return Err(format!("{working} of {sessions} polecats work").into());
    }
    let times = alternate(lab.scale.short_rounds, [ours, bare])?;
    place.end()?;
    let name = format!(
        "workers: `gt polecat list` with {sessions} sessions, against one `tmux list-panes -a`"
    );
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(3.0)))
}

/// A town whose workers have trees and sessions, and the same by hand beside it.
pub(super) struct WorkerTown<'l> {
    lab: &'l Lab,
    pub(super) town: BenchmarkTown,
    /// Where workers write down when they began.
    pub(super) arrivals: PathBuf,
    /// The sockets of tmux, ours and that of the baseline.
    pub(super) sockets: PathBuf,
    /// A shared repository like ours, and trees of it, by hand.
    pub(super) bare: PathBuf,
    pub(super) bare_trees: PathBuf,
}

impl<'l> WorkerTown<'l> {
    pub(super) fn new(lab: &'l Lab, what: &str, files: u32) -> BenchmarkResult<Self> {
        let directory = lab.path().join(format!("workers-{what}"));
        let town = lab.empty_town(&format!("workers-{what}"))?;
        let origin = lab.path().join(format!("origin-{what}"));
        let place = Self {
            lab,
            arrivals: lab.path().join(format!("arrivals-{what}")),
            // Paths of sockets are short.
            sockets: lab.path().join(format!("t-{what}")),
            bare: lab.path().join(format!("bare-{what}.git")),
            bare_trees: lab.path().join(format!("bare-{what}")),
            town,
        };
        for directory in [&place.arrivals, &place.sockets, &origin] {
            fs::create_dir_all(directory)?;
        }
        place.fill(&origin, files)?;
        let clone = ["clone", "--quiet", "--bare", "--template="];
        place.git(&directory, &clone, &[&origin, &place.bare])?;
        let mut add = place.program("gt", &place.town.path)?;
        add.args(["rig", "add", "web"]).arg(&origin);
        lab.time(add.args(["--prefix", "web", "--executor", "tmux"]))?;
        let worker = lab.part("arrive")?;
        let command = format!(
            "'{}' arrive '{}' {{bead}}",
            worker.get_program().display(),
            place.arrivals.display()
        );
        gt(lab, &place.town, &["config", "set", "rig.web.command", &command])?;
        if what == "list" {
            return Ok(place);
        }
        // The server of the town is made by its first session, and kept by one of ours.
        place.create("web-first")?;
        place.hold()?;
        lab.time(place.program("gt", &place.town.path)?.args(["sling", "web-first", "--no-boot"]))?;
        place.arrival("web-first")?;
        lab.time(place.tmux()?.args(["new-session", "-d", "-s", KEEPER, "sleep 3600"]))?;
        let first = ["-L", "bare", "-f", "/dev/null"];
        let keep = ["new-session", "-d", "-s", KEEPER, "sleep 3600"];
        lab.time(place.program_of_system("tmux")?.args(first).args(keep))?;
        place.release()?;
        place.wait_for_end("web-first")?;
        Ok(place)
    }

    /// A program of ours, with sockets below the laboratory.
    fn program(&self, name: &str, directory: &Path) -> BenchmarkResult<Command> {
        let mut command = self.lab.program(name, directory)?;
        command.env("TMUX_TMPDIR", &self.sockets);
        Ok(command)
    }

    /// A program of the system, in the same environment.
    pub(super) fn program_of_system(&self, name: &str) -> BenchmarkResult<Command> {
        self.lab.system(name, self.lab.path()).map(|mut command| {
            command.env("TMUX_TMPDIR", &self.sockets);
            command
        })
    }

    /// Tmux on the server of the town.
    fn tmux(&self) -> BenchmarkResult<Command> {
        let is_ours = |name: &str| name.starts_with("gt-");
        let socket = fs::read_dir(&self.sockets)?.flatten().find_map(|directory| {
            let names = fs::read_dir(directory.path()).ok()?.flatten();
            names.filter_map(|entry| entry.file_name().into_string().ok()).find(|n| is_ours(n))
        });
        let socket = socket.ok_or("the town has no tmux server")?;
        let mut command = self.program_of_system("tmux")?;
        command.args(["-L", &socket, "-f", "/dev/null"]);
        Ok(command)
    }

    pub(super) fn git(
        &self,
        directory: &Path,
        arguments: &[&str],
        paths: &[&Path],
    ) -> BenchmarkResult<()> {
        let mut command = self.program_of_system("git")?;
        self.lab.time(command.current_dir(directory).args(arguments).args(paths)).map(drop)
    }

    /// A repository with so many files, fifty in a directory.
    fn fill(&self, origin: &Path, files: u32) -> BenchmarkResult<()> {
        for number in 0..files {
            let directory = origin.join(format!("part-{}", number / 50));
            fs::create_dir_all(&directory)?;
            let line = format!("line of file {number}\n");
            fs::write(directory.join(format!("file-{number}.txt")), line.repeat(40))?;
        }
        self.git(origin, &["init", "--quiet", "--initial-branch=main"], &[])?;
        self.git(origin, &["add", "--all"], &[])?;
        self.git(origin, &["commit", "--quiet", "--message", "All files"], &[])
    }

    fn create(&self, bead: &str) -> BenchmarkResult<()> {
        let create = ["create", "Work", "--id", bead, "--force"];
        self.lab.time(&mut self.lab.bd(&self.town, create)?).map(drop)
    }

    /// Makes workers wait after they have begun, until [`Self::release`].
    fn hold(&self) -> BenchmarkResult<()> {
        let mut command = self.program_of_system("mkfifo")?;
        self.lab.time(command.arg(self.arrivals.join(HOLD))).map(drop)
    }

    /// Lets all workers end that wait.
    fn release(&self) -> BenchmarkResult<()> {
        let pipe = self.arrivals.join(HOLD);
        let writer = File::options().write(true).open(&pipe)?;
        fs::remove_file(&pipe)?;
        drop(writer);
        Ok(())
    }

    /// Slings a bead; how long it took until its worker began.
    fn sling(&self, bead: &str, ground: TreePreparation) -> BenchmarkResult<Duration> {
        self.create(bead)?;
        if ground == TreePreparation::Warm {
            self.lab.time(self.program("gt", &self.town.path)?.args(["scheduler", "run"]))?;
        }
        let start = SystemTime::now();
        let mut command = self.program("gt", &self.town.path)?;
        self.lab.time(command.args(["sling", bead, "--no-boot", "--no-convoy"]))?;
        let took = self.arrival(bead)?.duration_since(start)?;
        self.wait_for_end(bead)?;
        if ground == TreePreparation::New {
            gt(self.lab, &self.town, &["polecat", "nuke", "web/furiosa"])?;
        }
        Ok(took)
    }

    /// The same by hand.
    fn by_hand(&self, name: &str, ground: TreePreparation) -> BenchmarkResult<Duration> {
        let is_fresh = ground == TreePreparation::New;
        let worker = self.lab.part("arrive")?;
        // Trees stay, like ours in the trash: a file system that has just lost thousands of files is slow.
        let tree = if is_fresh { self.bare_trees.join(name) } else { self.bare_trees.join("tree") };
        if !is_fresh && !tree.exists() {
            self.git(&self.bare, &["worktree", "add", "--quiet"], &[&tree])?;
        }
        let start = SystemTime::now();
        self.fetch_by_hand()?;
        if is_fresh {
            let words = ["worktree", "add", "--quiet", "--no-track", "-b", name];
            self.git(&self.bare, &words, &[&tree, Path::new("origin/main")])?;
        } else {
            self.switch_by_hand(&tree, name)?;
        }
        let mut tmux = self.program_of_system("tmux")?;
        tmux.args(["-L", "bare", "-f", "/dev/null", "new-session", "-d", "-s", name, "-c"]);
        tmux.arg(&tree).arg("--").arg(worker.get_program()).arg("arrive");
        self.lab.time(tmux.arg(&self.arrivals).arg(name))?;
        Ok(self.arrival(name)?.duration_since(start)?)
    }

    /// Brings the repository of the baseline up to date with the origin.
    pub(super) fn fetch_by_hand(&self) -> BenchmarkResult<()> {
        let branches = "+refs/heads/*:refs/remotes/origin/*";
        self.git(&self.bare, &["fetch", "--quiet", "origin", branches], &[])
    }

    /// Puts a tree of the baseline on a new branch that begins where the origin is.
    pub(super) fn switch_by_hand(&self, tree: &Path, branch: &str) -> BenchmarkResult<()> {
        self.git(tree, &["switch", "--quiet", "--no-track", "-C", branch, "origin/main"], &[])
    }

    /// When the worker of this name began.
    pub(super) fn arrival(&self, name: &str) -> BenchmarkResult<SystemTime> {
        began(&self.arrivals, name)
    }

    /// Waits until a bead is closed and nothing of its run is left.
    fn wait_for_end(&self, bead: &str) -> BenchmarkResult<()> {
        let mut wait = self.program("gt", &self.town.path)?;
        self.lab.time(wait.args(["wait", bead]))?;
        let mut names = String::new();
        wait_until(&format!("the session of {bead} has ended"), || {
            let asked = self.tmux().and_then(|mut tmux| {
                self.lab.output(tmux.args(["list-sessions", "-F", "#{session_name}"]))
            });
            names = asked.unwrap_or_default();
            names.lines().all(|name| name == KEEPER)
        })
    }

    /// Ends everything that was started here.
    pub(super) fn end(&self) -> BenchmarkResult<()> {
        if self.arrivals.join(HOLD).exists() {
            self.release()?;
        }
        // Without a keeper there is nothing to end.
        let _ = self.tmux()?.args(["kill-session", "-t", KEEPER]).status();
        wait_until("all sessions have ended", || {
            let asked = self.tmux().map(|mut tmux| tmux.arg("list-sessions").status());
            asked.is_ok_and(|status| status.is_ok_and(|status| !status.success()))
        })
    }
}

impl Drop for WorkerTown<'_> {
    fn drop(&mut self) {
        // The processes that are left after an error, and the server of the baseline in any case.
        let bare = self.program_of_system("tmux").map(|mut tmux| {
            tmux.args(["-L", "bare", "-f", "/dev/null"]);
            tmux
        });
        for mut server in [self.tmux(), bare].into_iter().flatten() {
            let _ = server.arg("kill-server").status();
        }
    }
}
