//! From the end of a run to the first instruction of the next worker, and from one close to ten of them.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, TransactionBehavior};

use super::super::queue::line;
use super::super::site::{DaemonTown, began, wait_until};
use super::super::workers::WorkerTown;
use crate::BenchmarkResult;
use crate::baseline;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// How many files the repository has that workers get.
const FILES: u32 = 2_000;
/// How many beads one close unblocks.
const UNBLOCKED: usize = 10;
/// How long it stays quiet before a round: the work that follows the round before is over then.
const QUIET: Duration = Duration::from_millis(300);

pub(super) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let is_long = lab.scale.long_rounds > 1;
    let files = if is_long { FILES } else { FILES / 20 };
    Ok(vec![
        one_after_the_other(lab, files, if is_long { 40 } else { 3 })?,
        ten_at_once(lab, files, if is_long { 15 } else { 2 })?,
    ])
}

/// A town with a daemon and so many trees that are made ready, and the same by hand.
struct NextStartComparison<'l> {
    lab: &'l Lab,
    // Before the place, whose server of sessions workers need.
    site: DaemonTown<'l>,
    place: WorkerTown<'l>,
    slots: usize,
    connection: RefCell<Connection>,
    round: RefCell<u32>,
    bare_round: RefCell<u32>,
}

impl<'l> NextStartComparison<'l> {
    fn new(lab: &'l Lab, what: &str, files: u32, slots: usize) -> BenchmarkResult<Self> {
        let place = WorkerTown::new(lab, what, files)?;
        let connection = baseline::create(&lab.path().join(format!("bare-{what}.db")))?;
        for number in 0..slots {
            let tree = place.bare_trees.join(number.to_string());
            place.git(&place.bare, &["worktree", "add", "--quiet", "--detach"], &[&tree])?;
        }
        let site = DaemonTown::up(lab, &place.town, &place.arrivals, &place.sockets)?;
        let number = slots.to_string();
        for (setting, value) in [
            ("scheduler.max_polecats", number.as_str()),
            ("rig.web.warm_worktrees", number.as_str()),
        ] {
            site.gt(&["config", "set", setting, value])?;
        }
        Ok(Self {
            lab,
            site,
            place,
            slots,
            connection: RefCell::new(connection),
            round: RefCell::default(),
            bare_round: RefCell::default(),
        })
    }

    /// Waits until all trees are ready that are wanted.
    fn warm(&self) -> BenchmarkResult<()> {
        let polecats = self.place.town.path.join("web/polecats");
        let mut count = 0;
        let waited = wait_until("trees are ready", || {
            let homes = fs::read_dir(&polecats).into_iter().flatten().flatten();
            count = homes.filter(|home| home.path().join("warm").exists()).count();
            count >= self.slots
        });
        waited.map_err(|error| format!("{error}: {count} of {} are", self.slots))?;
        std::thread::sleep(QUIET);
        Ok(())
    }

    fn commit(&self, id: &str) -> BenchmarkResult<()> {
        let mut connection = self.connection.borrow_mut();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        baseline::insert_bead(&transaction, id, 1)?;
        Ok(transaction.commit()?)
    }

    /// A session of the baseline, in one of its trees.
    fn session(&self, name: &str, tree: usize) -> BenchmarkResult<()> {
        let worker = self.lab.part("arrive")?;
        let mut tmux = self.place.program_of_system("tmux")?;
        tmux.args(["-L", "bare", "-f", "/dev/null", "new-session", "-d", "-s", name, "-c"]);
        tmux.arg(self.bare_tree(tree)).arg("--").arg(worker.get_program()).arg("arrive");
        self.lab.time(tmux.arg(&self.place.arrivals).arg(name)).map(drop)
    }

    fn bare_tree(&self, number: usize) -> PathBuf {
        self.place.bare_trees.join(number.to_string())
    }

    fn next_round(&self) -> u32 {
        *self.round.borrow_mut() += 1;
        *self.round.borrow()
    }

    /// Two commits, a tree on a fresh branch, and a session.
    fn one_by_hand(&self) -> BenchmarkResult<Duration> {
        *self.bare_round.borrow_mut() += 1;
        let name = format!("bare-{}", self.bare_round.borrow());
        std::thread::sleep(QUIET);
        let start = SystemTime::now();
        self.commit(&format!("{name}-ended"))?;
        self.commit(&format!("{name}-begun"))?;
        self.place.fetch_by_hand()?;
        self.place.switch_by_hand(&self.bare_tree(0), &name)?;
        self.session(&name, 0)?;
        Ok(began(&self.place.arrivals, &name)?.duration_since(start)?)
    }

    /// One fetch, and ten times: a tree on a fresh branch, a commit, and a session.
    fn ten_by_hand(&self) -> BenchmarkResult<Duration> {
        *self.bare_round.borrow_mut() += 1;
        let round = *self.bare_round.borrow();
        let name = |number: usize| format!("bare-{round}-{number}");
        std::thread::sleep(QUIET);
        let start = SystemTime::now();
        self.place.fetch_by_hand()?;
        for number in 0..self.slots {
            self.place.switch_by_hand(&self.bare_tree(number), &name(number))?;
            self.commit(&name(number))?;
            self.session(&name(number), number)?;
        }
        let mut last = start;
        for number in 0..self.slots {
            last = last.max(began(&self.place.arrivals, &name(number))?);
        }
        Ok(last.duration_since(start)?)
    }

    /// Ends the worker that is there; how long it takes until the next has begun.
    fn one_by_us(&self) -> BenchmarkResult<Duration> {
        let round = self.next_round();
        let bead = |number: u32| format!("web-{number}");
        // One works while the next waits for its slot.
        let new = if round == 1 { vec![bead(1), bead(2)] } else { vec![bead(round + 1)] };
        self.site.schedule(&new, true)?;
        self.site.began(&bead(round))?;
        self.warm()?;
        self.site.release(&bead(round))?;
        let next = self.site.began(&bead(round + 1))?;
        Ok(next.duration_since(self.site.left(&bead(round))?)?)
    }

    /// Closes a bead that ten others wait for; how long it takes until the last of them has begun.
    fn ten_by_us(&self) -> BenchmarkResult<Duration> {
        let round = self.next_round();
        let blocker = format!("web-close-{round}");
        let beads: Vec<String> = (0..self.slots).map(|n| format!("web-{round}-{n}")).collect();
        let mut text = line(&blocker, 2, None);
        text.extend(beads.iter().map(|bead| line(bead, 2, Some(&blocker))));
        let source = self.place.arrivals.join("fan.jsonl");
        fs::write(&source, text)?;
        self.lab.time(self.lab.bd(&self.place.town, ["import"])?.arg(&source))?;
        // No end of a worker shares the processors with the start of another.
        self.site.sling(&beads, true)?;
        self.warm()?;
        let start = SystemTime::now();
        self.lab.time(&mut self.lab.bd(&self.place.town, ["close", &blocker])?)?;
        let mut last = start;
        for bead in &beads {
            last = last.max(self.site.began(bead)?);
        }
        for bead in &beads {
            self.site.release(bead)?;
        }
        for bead in &beads {
            self.site.gt(&["wait", bead])?;
        }
        Ok(last.duration_since(start)?)
    }
}

fn one_after_the_other(lab: &Lab, files: u32, rounds: usize) -> BenchmarkResult<ReportRow> {
    let race = NextStartComparison::new(lab, "next", files, 1)?;
    let ours: Arm<'_> = Box::new(|| race.one_by_us());
    let bare: Arm<'_> = Box::new(|| race.one_by_hand());
    let times = alternate(rounds, [ours, bare])?;
    let name = format!(
        "daemon: the last instruction of a worker to the first of the next, on a warm tree of {files} files, against two \
         commits, `git fetch`, `git switch -C` and `tmux new-session`"
    );
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(5.0)))
}

fn ten_at_once(lab: &Lab, files: u32, rounds: usize) -> BenchmarkResult<ReportRow> {
    let race = NextStartComparison::new(lab, "fan", files, UNBLOCKED)?;
    let ours: Arm<'_> = Box::new(|| race.ten_by_us());
    let bare: Arm<'_> = Box::new(|| race.ten_by_hand());
    let times = alternate(rounds, [ours, bare])?;
    let name = format!(
        "daemon: `bd close` of what {UNBLOCKED} beads wait for to the first instruction of the last of their workers, against \
         one `git fetch` and {UNBLOCKED} times `git switch -C`, a commit and `tmux new-session`"
    );
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(2.0)))
}
