//! Finished work on its way to the target branch: many requests in the merge queue, and one from `gt done` to landed.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::queue::{gt, line};
use super::site::wait_until;
use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// How many requests wait in the queue, and how many of them are checked together (the default of `mq.batch`).
const REQUESTS: u32 = 32;
const BATCH: usize = 8;
/// How many files the repository has.
const FILES: u32 = 500;
/// How many agents work at once before the measurement.
const CAP: &str = "4";

/// A queue of requests, and one `gt done`.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let is_full = lab.scale.long_rounds > 1;
    let (files, requests) = if is_full { (FILES, REQUESTS) } else { (FILES / 10, REQUESTS / 4) };
    Ok(vec![
        queue(lab, files, requests, lab.scale.long_rounds)?,
        done(lab, files, lab.scale.bursts)?,
    ])
}

/// `gt mq run` over requests of one commit each, against the same by hand with git.
fn queue(lab: &Lab, files: u32, requests: u32, rounds: usize) -> BenchmarkResult<ReportRow> {
    let place = LandingTown::new(lab, "queue", files)?;
    let worker = lab.path().join("landing-worker");
    fs::write(&worker, "echo \"$1\" > \"new-$1\"\nexec gt done -m \"Work of $1\"\n")?;
    let command = format!("sh '{}' {{bead}}", worker.display());
    gt(lab, &place.town, &["config", "set", "rig.web.command", &command])?;
    gt(lab, &place.town, &["config", "set", "scheduler.max_polecats", CAP])?;
    let by_hand = ManualQueue::new(lab, &place.origin)?;
    let (mut round, mut bare_round) = (0, 0);
    let ours: Arm<'_> = Box::new(|| {
        round += 1;
        place.fill_queue(round, requests)?;
        let took = lab.time(lab.program("gt", &place.town.path)?.args(["mq", "run"]))?;
        place.expect_open(0)?;
        Ok(took)
    });
    let bare: Arm<'_> = Box::new(|| {
        bare_round += 1;
        let work = by_hand.make_work(bare_round, requests)?;
        by_hand.land(&work)
    });
    let times = alternate(rounds, [ours, bare])?;
    let name = format!(
        "landing: {requests} requests of one commit in batches of {BATCH} with the check `true`, against `git fetch`, \
         `git cherry-pick` of each, `git checkout` for the check and `git push`"
    );
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(2.0)))
}

/// `gt done` in a town without daemon, with an empty queue and the check `true`, against work that lands without checks.
fn done(lab: &Lab, files: u32, rounds: usize) -> BenchmarkResult<ReportRow> {
    let place = LandingTown::new(lab, "done", files)?;
    let trees = lab.path().join("landing-trees");
    fs::create_dir(&trees)?;
    let worker = lab.path().join("landing-stays");
    let script = format!(
        "pwd > '{0}'/\"$1.new\"\nmv '{0}'/\"$1.new\" '{0}'/\"$1\"\nexec sleep 3600\n",
        trees.display()
    );
    fs::write(&worker, script)?;
    let command = format!("sh '{}' {{bead}}", worker.display());
    gt(lab, &place.town, &["config", "set", "rig.web.command", &command])?;
    let (mut round, mut direct_round) = (0, 0);
    let checked: Arm<'_> = Box::new(|| {
        round += 1;
        place.done(&trees, &format!("web-c{round}"), "mr")
    });
    let direct: Arm<'_> = Box::new(|| {
        direct_round += 1;
        place.done(&trees, &format!("web-d{direct_round}"), "direct")
    });
    let times = alternate(rounds, [checked, direct])?;
    let name = "landing: `gt done` to landed with the check `true` and an empty queue, against work that lands without checks";
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(2.0)))
}

/// A town whose rig has an origin and the check `true`.
struct LandingTown<'l> {
    lab: &'l Lab,
    town: BenchmarkTown,
    origin: PathBuf,
}

impl<'l> LandingTown<'l> {
    fn new(lab: &'l Lab, what: &str, files: u32) -> BenchmarkResult<Self> {
        let first = lab.path().join(format!("landing-{what}-first"));
        let origin = lab.path().join(format!("landing-{what}-origin.git"));
        for number in 0..files {
            let directory = first.join(format!("part-{}", number / 50));
            fs::create_dir_all(&directory)?;
            let line = format!("line of file {number}\n");
            fs::write(directory.join(format!("file-{number}.txt")), line.repeat(40))?;
        }
        git(lab, &first, &["init", "--quiet", "--initial-branch=main"])?;
        git(lab, &first, &["add", "--all"])?;
        git(lab, &first, &["commit", "--quiet", "--message", "All files"])?;
        clone(lab, &first, &origin)?;
        let town = lab.empty_town(&format!("landing-{what}"))?;
        let mut add = lab.program("gt", &town.path)?;
        add.args(["rig", "add", "web"]).arg(&origin);
        lab.time(add.args(["--prefix", "web", "--executor", "process"]))?;
        gt(lab, &town, &["rig", "check", "add", "web", "nothing", "true"])?;
        Ok(Self { lab, town, origin })
    }

    /// Lets workers finish so many beads while the queue is paused. All their processes have ended then.
    fn fill_queue(&self, round: u32, requests: u32) -> BenchmarkResult<()> {
        let (lab, town) = (self.lab, &self.town);
        gt(lab, town, &["mq", "pause", "web"])?;
        let beads: Vec<String> =
            (1..=requests).map(|number| format!("web-r{round}n{number}")).collect();
        self.import(&beads)?;
        let mut sling = lab.program("gt", &town.path)?;
        lab.time(sling.arg("sling").args(&beads).args(["--no-boot", "--no-convoy"]))?;
        // It fails, because nothing lands.
        let mut workers = lab.program("gt", &town.path)?;
        workers.args(["scheduler", "run", "--until-done"]).status()?;
        self.wait_for_supervisors()?;
        self.expect_open(requests)?;
        gt(lab, town, &["mq", "resume", "web"])
    }

    fn import(&self, beads: &[String]) -> BenchmarkResult<()> {
        let source = self.lab.path().join("landing.jsonl");
        fs::write(&source, beads.iter().map(|bead| line(bead, 2, None)).collect::<String>())?;
        self.lab.time(self.lab.bd(&self.town, ["import"])?.arg(&source)).map(drop)
    }

    /// Waits until the process of each run has ended: it may land work, too.
    fn wait_for_supervisors(&self) -> BenchmarkResult<()> {
        let town = self.town.path.as_os_str().as_encoded_bytes();
        let is_supervisor = |line: &[u8]| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.contains(&town) && words.windows(2).any(|two| two == [&b"worker"[..], b"exec"])
        };
        wait_until("all supervisors have ended", || {
            let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
            let mut lines = processes.map(|process| fs::read(process.path().join("cmdline")));
            !lines.any(|line| line.is_ok_and(|line| is_supervisor(&line)))
        })
    }

    /// Fails unless so many requests are open.
    fn expect_open(&self, wanted: u32) -> BenchmarkResult<()> {
        let mut list = self.lab.program("gt", &self.town.path)?;
        let listed = self.lab.output(list.args(["mq", "list", "--json"]))?;
        let open = listed.matches("\"state\":").count();
        if open == usize::try_from(wanted)? {
            return Ok(());
        }
        Err(format!("{open} requests are open, and {wanted} should be").into())
    }

    /// Has a worker change a file, and finishes its run; how long `gt done` took.
    fn done(&self, trees: &Path, bead: &str, merge: &str) -> BenchmarkResult<Duration> {
        let (lab, town) = (self.lab, &self.town);
        self.import(&[bead.to_owned()])?;
        gt(lab, town, &["sling", bead, "--no-boot", "--no-convoy", "--merge", merge])?;
        let told = trees.join(bead);
        wait_until(&format!("the worker of {bead} is in its tree"), || told.exists())?;
        let tree = PathBuf::from(fs::read_to_string(&told)?.trim());
        fs::write(tree.join(format!("new-{bead}")), "work\n")?;
        let mut done = lab.program("gt", &town.path)?;
        let took = lab.time(done.args(["done", "--run", bead, "-m", "Work"]))?;
        self.expect_open(0)?;
        self.wait_for_supervisors()?;
        Ok(took)
    }
}

/// The repository of a careful script that lands commits in batches.
struct ManualQueue<'l> {
    lab: &'l Lab,
    repository: PathBuf,
    /// Where commits are put on top of the target.
    build: PathBuf,
    /// Where the check runs.
    check: PathBuf,
}

impl<'l> ManualQueue<'l> {
    /// A clone of a copy of the origin.
    fn new(lab: &'l Lab, origin: &Path) -> BenchmarkResult<Self> {
        let place = |name: &str| lab.path().join(format!("landing-bare-{name}"));
        let (copy, repository) = (place("origin.git"), place("shared.git"));
        clone(lab, origin, &copy)?;
        clone(lab, &copy, &repository)?;
        let queue = Self { lab, repository, build: place("build"), check: place("check") };
        let branches = "+refs/heads/*:refs/remotes/origin/*";
        git(lab, &queue.repository, &["config", "remote.origin.fetch", branches])?;
        git(lab, &queue.repository, &["fetch", "--quiet", "origin"])?;
        for tree in [&queue.build, &queue.check] {
            let add = ["worktree", "add", "--quiet", "--detach"];
            let mut command = lab.system("git", &queue.repository)?;
            lab.time(command.args(add).arg(tree).arg("origin/main"))?;
        }
        Ok(queue)
    }

    /// Makes commits, each with one new file on top of the target.
    fn make_work(&self, round: u32, requests: u32) -> BenchmarkResult<Vec<String>> {
        git(self.lab, &self.repository, &["fetch", "--quiet", "origin"])?;
        let mut input = String::new();
        let mut names = Vec::new();
        for number in 1..=requests {
            let name = format!("r{round}n{number}");
            let message = format!("Work of {name}\n");
            write!(
                input,
                "commit refs/heads/{name}\ncommitter Bench Mark <bench@example.com> now\ndata {}\n{message}\
                 from refs/remotes/origin/main^0\nM 100644 inline new-{name}\ndata {}\n{name}\n",
                message.len(),
                name.len(),
            )?;
            names.push(name);
        }
        let mut command = self.lab.system("git", &self.repository)?;
        command.args(["fast-import", "--quiet", "--date-format=now"]).stdin(Stdio::piped());
        let mut import = command.spawn()?;
        import.stdin.take().ok_or("no input of git fast-import")?.write_all(input.as_bytes())?;
        if !import.wait()?.success() {
            return Err("git fast-import failed".into());
        }
        Ok(names)
    }

    /// Lands commits, a batch at a time.
    fn land(&self, work: &[String]) -> BenchmarkResult<Duration> {
        let lab = self.lab;
        let start = Instant::now();
        for batch in work.chunks(BATCH) {
            git(lab, &self.repository, &["fetch", "--quiet", "--prune", "origin"])?;
            let base = self.commit(&self.repository, "origin/main")?;
            git(lab, &self.build, &["checkout", "--quiet", "--detach", &base])?;
            for name in batch {
                // Each of them can conflict, so that they are picked one by one.
                git(lab, &self.build, &["cherry-pick", name])?;
            }
            let tip = self.commit(&self.build, "HEAD")?;
            git(lab, &self.check, &["checkout", "--quiet", "--force", "--detach", &tip])?;
            git(lab, &self.check, &["clean", "--quiet", "-d", "-f", "-f"])?;
            lab.time(lab.system("sh", &self.check)?.args(["-c", "true"]))?;
            let lease = format!("--force-with-lease=main:{base}");
            let refspec = format!("{tip}:refs/heads/main");
            git(lab, &self.repository, &["push", "--quiet", &lease, "origin", &refspec])?;
        }
        Ok(start.elapsed())
    }

    fn commit(&self, directory: &Path, name: &str) -> BenchmarkResult<String> {
        let mut command = self.lab.system("git", directory)?;
        Ok(self.lab.output(command.args(["rev-parse", "--verify", name]))?.trim().to_owned())
    }
}

fn git(lab: &Lab, directory: &Path, arguments: &[&str]) -> BenchmarkResult<()> {
    let mut command: Command = lab.system("git", directory)?;
    lab.time(command.args(arguments)).map(drop)
}

/// A bare copy of a repository.
fn clone(lab: &Lab, from: &Path, to: &Path) -> BenchmarkResult<()> {
    let mut command = lab.system("git", lab.path())?;
    lab.time(command.args(["clone", "--quiet", "--bare", "--template="]).arg(from).arg(to))
        .map(drop)
}
