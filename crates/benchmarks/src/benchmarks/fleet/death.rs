//! How soon the other hosts notice that a host died, counted from the moment at which it sent its last renewal.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use gt_core::decide::{HostState, LeaseTimes};
use gt_executors::runs::{LeaseFile, since_boot};
use gt_scheduling::fleet;
use gt_store::HostRecord;
use gt_testkit::Cluster;
use rustix::process::{Pid, Signal, kill_process};

use super::super::queue::{gt, open, rig};
use super::super::server::DURABLE;
use super::super::site::{DaemonTown, wait_until};
use super::join;
use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::report::ReportRow;

const GRACE: &str = "3s";
const DYING: &str = "fleet-dying";
/// How long after its lease a dead host may count as alive.
const NOTICED_WITHIN: Duration = Duration::from_secs(1);

pub(super) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let rounds = if lab.scale.long_rounds > 1 { 5 } else { 1 };
    let cluster = Cluster::start(DURABLE);
    let url = cluster.fresh_database();
    let watching = join(lab, "fleet-watching", &url, 0)?;
    let dying = join(lab, DYING, &url, 0)?;
    let (arrivals, sockets) = (lab.path().join("arrivals-death"), lab.path().join("t-death"));
    for directory in [&arrivals, &sockets] {
        fs::create_dir_all(directory)?;
    }
    rig(lab, &watching, "web")?;
    let worker = lab.part("arrive")?;
    let command =
        format!("'{}' arrive '{}' {{bead}}", worker.get_program().display(), arrivals.display());
    for (setting, value) in [
        ("rig.web.command", command.as_str()),
        ("host.grace", GRACE),
        ("scheduler.max_polecats", "4"),
        ("recovery.cooldown", "0s"),
    ] {
        gt(lab, &watching, &["config", "set", setting, value])?;
    }
    let watcher = DaemonTown::up(lab, &watching, &arrivals, &sockets)?;
    let victim = DaemonTown::up(lab, &dying, &arrivals, &sockets)?;
    let trial =
        HostDeath { watcher, victim, town: open(&watching)?, directory: dying.path.join(".gt") };
    let (mut away, mut gone) = (Duration::ZERO, Duration::ZERO);
    for round in 0..rounds {
        let late = trial.kill_host(&format!("web-{round}"))?;
        away = away.max(late.away);
        gone = gone.max(late.gone);
    }
    let after = |time: Duration| format!("{:.2} s after", time.as_secs_f64());
    let row = |what: String, time: Duration, most: Option<Duration>| ReportRow {
        name: format!("fleet: {what}, the latest of {rounds}"),
        ours: after(time),
        baseline: "–".to_owned(),
        ratio: "–".to_owned(),
        target: most.map_or("–".to_owned(), |most| format!("≤ {} s", most.as_secs())),
        met: most.map(|most| time <= most),
    };
    Ok(vec![
        row(
            format!(
                "a host of which every process was killed counts as away after its lease of {GRACE}"
            ),
            away,
            Some(NOTICED_WITHIN),
        ),
        row(format!("its runs are lost after its lease and a grace of {GRACE}"), gone, None),
    ])
}

/// How long after their time another host noticed the steps of a death.
struct NoticeDelays {
    away: Duration,
    gone: Duration,
}

/// A host that is killed again and again, and one that watches it.
struct HostDeath<'l> {
    watcher: DaemonTown<'l>,
    victim: DaemonTown<'l>,
    town: gt_town::Town,
    directory: PathBuf,
}

impl HostDeath<'_> {
    /// Has the host work on a bead, and kills all of its processes.
    fn kill_host(&self, bead: &str) -> BenchmarkResult<NoticeDelays> {
        self.victim.gt(&["up"])?;
        self.wait_for("the host is active", |host| host.state() == HostState::Active)?;
        // So that the bead starts on the other one.
        self.watcher.gt(&["host", "drain", "fleet-watching"])?;
        self.victim.schedule(&[bead.to_owned()], true)?;
        self.victim.began(bead)?;
        self.watcher.gt(&["host", "resume", "fleet-watching"])?;
        let daemon = i32::try_from(self.victim.daemon()?)?;
        kill_process(Pid::from_raw(daemon).ok_or("no daemon")?, Signal::KILL)?;
        self.victim.kill(bead)?;

        let (sent, grace) = self.last_renewal()?;
        let times = LeaseTimes::of(grace);
        let late = |due: Duration| since_boot().saturating_sub(sent + due);
        let is_away = |host: &HostRecord| !host.state().is_present();
        self.wait_for("the host is away", is_away)?;
        let away = late(times.lease());
        self.wait_for("its runs are lost", |host| host.is_declared_gone)?;
        let gone = late(times.lease() + times.grace());

        self.watcher.began(bead)?;
        self.watcher.release(bead)?;
        let status = ["list", "--status", "closed", "--limit", "0", "--json"];
        let id = format!("\"{bead}\"");
        let is_closed =
            || self.watcher.output("bd", &status).is_ok_and(|closed| closed.contains(&id));
        wait_until("another host has done its work", is_closed)?;
        Ok(NoticeDelays { away, gone })
    }

    fn wait_for(&self, what: &str, holds: impl Fn(&HostRecord) -> bool) -> BenchmarkResult<()> {
        let is_dying = |host: &fleet::FleetHost| host.record.host.name == DYING;
        wait_until(what, || {
            let hosts = fleet::list(&self.town).unwrap_or_default();
            hosts.iter().find(|host| is_dying(host)).is_some_and(|host| holds(&host.record))
        })
    }

    /// When the host sent its last renewal that arrived, since the boot of this machine, and its grace.
    fn last_renewal(&self) -> BenchmarkResult<(Duration, Duration)> {
        let files = fs::read_dir(&self.directory)?.flatten().map(|file| file.path());
        let is_lease = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lease-"))
        };
        let renewals = files.filter(is_lease).filter_map(|path| LeaseFile::at(path).read());
        Ok(renewals.max().ok_or("the host has renewed no lease")?)
    }
}
