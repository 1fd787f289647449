//! The hosts of a town: the directories that work on it, their leases, and the runs that a lost host left behind.

use std::time::Duration;

use gt_core::decide::{HostMode, HostState, LeaseTimes};
use gt_core::event::HostChange;
use gt_core::schedule::{Run, RunId, RunState, host_identity};
use gt_core::{BeadId, EventPayload};

use super::beads::id_from;
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

statements! {
    ALL = "SELECT id, name, machine, path, incarnation, COALESCE(?1, unixepoch('now')) - seen_at_s, address, version, labels, max_runs, \
        rigs, runtimes, memory_mb, memory_free_mb, load_hundredths, cores, grace_ms, \
        COALESCE(?1, unixepoch('now')) - daemon_at_s, \
        mode, is_gone, seen_at_s FROM hosts ORDER BY name, id";
    STORE_CLOCK = "SELECT unixepoch('now')";
    SEEN = "INSERT INTO hosts (id, name, machine, path, incarnation, seen_at_s) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, machine = excluded.machine, path = excluded.path, \
        incarnation = excluded.incarnation, seen_at_s = excluded.seen_at_s, is_gone = 0";
    DECLARE = "UPDATE hosts SET address = ?2, version = ?3, labels = ?4, max_runs = ?5, rigs = ?6, runtimes = ?7, \
        memory_mb = ?8, memory_free_mb = ?9, load_hundredths = ?10, cores = ?11, grace_ms = ?12 WHERE id = ?1";
    DAEMON_SEEN = "UPDATE hosts SET daemon_at_s = ?2 WHERE id = ?1";
    DAEMON_LEFT = "UPDATE hosts SET daemon_at_s = 0 WHERE id = ?1";
    RENEW_KNOWN = "UPDATE hosts SET name = ?2, machine = ?3, path = ?4, incarnation = ?5, address = ?6, version = ?7, \
        labels = ?8, max_runs = ?9, rigs = ?10, runtimes = ?11, memory_mb = ?12, memory_free_mb = ?13, \
        load_hundredths = ?14, cores = ?15, grace_ms = ?16, seen_at_s = COALESCE(?17, unixepoch('now')), \
        daemon_at_s = COALESCE(?17, unixepoch('now')), is_gone = 0 WHERE id = ?1 \
        RETURNING (SELECT value FROM counters WHERE name = 'event')";
    SET_MODE = "UPDATE hosts SET mode = ?2 WHERE id = ?1 AND mode <> ?2";
    SET_GONE = "UPDATE hosts SET is_gone = 1 WHERE id = ?1 AND is_gone = 0";
    FORGET = "DELETE FROM hosts WHERE id = ?1";
    FORGET_ALL = "DELETE FROM hosts";
    LEAVE_RUN = "INSERT INTO left_runs (bead, epoch, host) VALUES (?1, ?2, ?3) ON CONFLICT (bead, epoch) DO NOTHING";
    LEFT_RUNS = "SELECT bead, epoch FROM left_runs WHERE host = ?1 ORDER BY bead, epoch";
    ALL_LEFT = "SELECT bead, host FROM left_runs ORDER BY bead, host";
    CLEAR_LEFT = "DELETE FROM left_runs WHERE bead = ?1 AND epoch = ?2";
    ADOPT_LEFT = "UPDATE left_runs SET host = ?2 WHERE host = ?1";
    ADOPT_RUNS = "UPDATE runs SET host = ?2 WHERE host LIKE ?1 AND state IN ('starting', 'running', 'blocked')";
    ADOPT_POLECATS = "UPDATE polecats SET host = ?2 WHERE host LIKE ?1";
    ADOPT_TRASH = "UPDATE trash SET host = ?2 WHERE host LIKE ?1";
    ADOPT_RESCUES = "UPDATE rescues SET host = ?2 WHERE host LIKE ?1";
}

/// Forgets all hosts.
pub(crate) const FORGET_HOSTS: &str = FORGET_ALL;

/// A directory that works on a town, as it was seen last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// Its identity.
    pub id: String,
    /// The name of its machine, or the one that its settings give it.
    pub name: String,
    /// The id of its machine; empty where there is none.
    pub machine: String,
    /// Its path.
    pub path: String,
    /// An id that tells this start of the machine, or this container, apart from others with the same identity.
    pub incarnation: String,
}

/// The declarations of a host about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostDeclaration {
    /// The address by which others reach it; may be empty.
    pub address: String,
    /// The version of its program; empty for one that declares nothing.
    pub version: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// The most live runs on it; 0 is no limit.
    pub max_runs: u32,
    /// The rigs that it works on; none for all.
    pub rigs: Vec<String>,
    /// The runtimes whose programs it has.
    pub runtimes: Vec<String>,
    /// All of its memory, in megabytes; 0 if that is not known.
    pub memory_mb: u64,
    /// The memory that is free, in megabytes.
    pub memory_free_mb: u64,
    /// Its load, in hundredths.
    pub load_hundredths: u64,
    /// Its processors.
    pub cores: u32,
    /// The grace that its workers keep to; zero if they keep to none.
    pub grace: Duration,
}

/// A host as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRecord {
    /// The host.
    pub host: HostRow,
    /// Its declarations.
    pub declared: HostDeclaration,
    /// How long ago it renewed its lease, by the store's clock.
    pub age: Duration,
    /// When that was, in seconds of the store's clock.
    pub seen_at_s: i64,
    /// How long ago its daemon did; nothing if no daemon has, or it was stopped.
    pub daemon_age: Option<Duration>,
    /// The mode that people gave it.
    pub mode: HostMode,
    /// Another host has declared its runs lost, and it has not renewed since.
    pub is_declared_gone: bool,
}

impl HostRecord {
    /// The times of its lease; nothing for an older program, which keeps to none.
    pub fn times(&self) -> Option<LeaseTimes> {
        (!self.declared.grace.is_zero()).then(|| LeaseTimes::of(self.declared.grace))
    }

    /// Its state now.
    pub fn state(&self) -> HostState {
        HostState::of(self.mode, self.age, self.times())
    }

    /// Whether its daemon is at work.
    pub fn has_daemon(&self) -> bool {
        let lease = LeaseTimes::of(self.declared.grace).lease();
        self.state().is_present() && self.daemon_age.is_some_and(|age| age < lease)
    }

    fn read(row: &dyn Row) -> Result<Self, StoreError> {
        let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
        let list = |column| -> Result<Vec<String>, StoreError> {
            let names = row.text(column)?.split(',').filter(|name| !name.is_empty());
            Ok(names.map(ToOwned::to_owned).collect())
        };
        let number = |column| -> Result<u64, StoreError> {
            Ok(u64::try_from(row.int(column)?).unwrap_or(0))
        };
        let mode = row.text(18)?;
        // A clock that was set back makes no age negative.
        let daemon_age = row.int(17)?;
        Ok(Self {
            host: HostRow {
                id: text(0)?,
                name: text(1)?,
                machine: text(2)?,
                path: text(3)?,
                incarnation: text(4)?,
            },
            age: Duration::from_secs(number(5)?),
            declared: HostDeclaration {
                address: text(6)?,
                version: text(7)?,
                labels: list(8)?,
                max_runs: u32::try_from(row.int(9)?).unwrap_or(0),
                rigs: list(10)?,
                runtimes: list(11)?,
                memory_mb: number(12)?,
                memory_free_mb: number(13)?,
                load_hundredths: number(14)?,
                cores: u32::try_from(row.int(15)?).unwrap_or(0),
                grace: Duration::from_millis(number(16)?),
            },
            daemon_age: (daemon_age < NO_DAEMON_S)
                .then(|| Duration::from_secs(u64::try_from(daemon_age).unwrap_or(0))),
            // A newer program may know other modes; none of them takes work.
            mode: HostMode::parse(mode).unwrap_or(HostMode::Draining),
            is_declared_gone: row.int(19)? != 0,
            seen_at_s: row.int(20)?,
        })
    }
}

/// The lists of a declaration, as they are stored.
struct JoinedLists {
    labels: String,
    rigs: String,
    runtimes: String,
}

impl JoinedLists {
    fn of(declared: &HostDeclaration) -> Self {
        Self {
            labels: declared.labels.join(","),
            rigs: declared.rigs.join(","),
            runtimes: declared.runtimes.join(","),
        }
    }
}

/// The values of a declaration, in the order of its columns.
fn declared_params<'a>(declared: &'a HostDeclaration, lists: &'a JoinedLists) -> [Param<'a>; 11] {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX).into();
    [
        (&declared.address).into(),
        (&declared.version).into(),
        (&lists.labels).into(),
        i64::from(declared.max_runs).into(),
        (&lists.rigs).into(),
        (&lists.runtimes).into(),
        number(declared.memory_mb),
        number(declared.memory_free_mb),
        number(declared.load_hundredths),
        i64::from(declared.cores).into(),
        i64::try_from(declared.grace.as_millis()).unwrap_or(i64::MAX).into(),
    ]
}

/// Renews the lease of a host as its daemon, with one statement. Says the number of the last event; nothing if the host is not
/// listed.
pub(crate) fn renew_known_host(
    reader: &Reader<'_>,
    host: &HostRow,
    declared: &HostDeclaration,
) -> Result<Option<u64>, StoreError> {
    let HostRow { id, name, machine, path, incarnation } = host;
    let lists = JoinedLists::of(declared);
    let row = [id, name, machine, path, incarnation].map(Into::into);
    let params =
        [&row[..], &declared_params(declared, &lists), &[reader.began_s().into()]].concat();
    let last_event = |row: &dyn Row| Ok(u64::try_from(row.int(0)?).unwrap_or(0));
    reader.first(RENEW_KNOWN, &params, last_event)
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// A daemon that was seen so many seconds ago was never seen: its time is zero, in 1970.
const NO_DAEMON_S: i64 = 1_000_000_000;

impl Reader<'_> {
    /// Every host, with how many seconds ago it was seen by the store's clock.
    pub fn hosts(&self) -> Result<Vec<(HostRow, i64)>, StoreError> {
        let seconds = |age: Duration| i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
        Ok(self.fleet()?.into_iter().map(|one| (one.host, seconds(one.age))).collect())
    }

    /// Every host with its lease and its declarations, by name.
    pub fn fleet(&self) -> Result<Vec<HostRecord>, StoreError> {
        self.rows(ALL, &[self.began_s().into()], HostRecord::read)
    }

    /// When this transaction began by the store's clock, in seconds since 1970, if the store says that.
    fn began_s(&self) -> Option<i64> {
        self.store_clock().map(|began| began.as_nanos().div_euclid(NANOS_PER_SECOND))
    }

    /// The store's clock, in seconds since 1970: when this transaction began, if the store says that, else now.
    pub fn store_clock_s(&self) -> Result<i64, StoreError> {
        self.began_s().map_or_else(|| self.number(STORE_CLOCK, &[]), Ok)
    }

    /// The beads of which a host may have processes of a run that is over, with the identity of that host.
    pub fn beads_with_left_runs(&self) -> Result<Vec<(BeadId, String)>, StoreError> {
        self.rows(ALL_LEFT, &[], |row| Ok((id_from(row, 0)?, row.text(1)?.to_owned())))
    }

    /// The runs of this host that were ended by others, and that it has not cleared away yet: they were declared lost while it
    /// was gone, or cancelled in the store alone.
    pub fn left_runs(&self, host: &str) -> Result<Vec<RunId>, StoreError> {
        self.rows(LEFT_RUNS, &[host.into()], |row| {
            Ok(RunId { bead: id_from(row, 0)?, epoch: u32::try_from(row.int(1)?).unwrap_or(0) })
        })
    }
}

impl Writer<'_> {
    /// Notes that a host is there now.
    pub fn host_seen(&mut self, host: &HostRow) -> Result<(), StoreError> {
        let HostRow { id, name, machine, path, incarnation } = host;
        let now_s = self.store_clock_s()?;
        let params = [id, name, machine, path, incarnation].map(Into::into);
        self.apply(SEEN, &[&params[..], &[now_s.into()]].concat())
    }

    /// Renews the lease of a host, with its declarations; `by_daemon` says that its daemon does so.
    pub fn renew_host(
        &mut self,
        host: &HostRow,
        declared: &HostDeclaration,
        by_daemon: bool,
    ) -> Result<(), StoreError> {
        self.host_seen(host)?;
        let lists = JoinedLists::of(declared);
        let params = declared_params(declared, &lists);
        self.apply(DECLARE, &[&[(&host.id).into()], &params[..]].concat())?;
        if !by_daemon {
            return Ok(());
        }
        let now_s = self.store_clock_s()?;
        self.apply(DAEMON_SEEN, &[(&host.id).into(), now_s.into()])
    }

    /// Notes that the daemon of a host has stopped.
    pub fn host_daemon_left(&mut self, host: &str) -> Result<(), StoreError> {
        self.apply(DAEMON_LEFT, &[host.into()])
    }

    /// Changes the mode of a host. `false` if it has that mode already.
    pub fn set_host_mode(&mut self, host: &HostRow, mode: HostMode) -> Result<bool, StoreError> {
        let is_changed = self.execute(SET_MODE, &[(&host.id).into(), mode.as_str().into()])? > 0;
        if is_changed {
            self.record_host(host, mode.as_str(), Vec::new(), Vec::new());
        }
        Ok(is_changed)
    }

    /// Notes once that a host is gone, with all runs that it left behind. `false` if that is known.
    pub fn set_host_gone(&mut self, host: &HostRow) -> Result<bool, StoreError> {
        if self.execute(SET_GONE, &[(&host.id).into()])? == 0 {
            return Ok(false);
        }
        let mut left = Vec::new();
        for id in self.left_runs(&host.id)? {
            // A person knows of those that were cancelled.
            if self.run(&id)?.is_none_or(|run| run.state != RunState::Cancelled) {
                left.push(id.to_string());
            }
        }
        self.record_host(host, HostState::Gone.as_str(), left, Vec::new());
        Ok(true)
    }

    /// Notes that a run was declared lost while its host was gone: that host clears it away when it comes back.
    pub fn leave_run(&mut self, run: &Run, host: &str) -> Result<(), StoreError> {
        let id = &run.id;
        self.apply(LEAVE_RUN, &[(&id.bead).into(), i64::from(id.epoch).into(), host.into()])
    }

    /// Leaves a run that is over in the store to its host, which ends its processes. Without effect if that has no lease.
    pub fn leave_run_to_its_host(&mut self, run: &Run) -> Result<(), StoreError> {
        let host = host_identity(&run.host);
        let fleet = self.fleet()?;
        let is_leased = fleet.iter().any(|it| it.host.id == host && it.times().is_some());
        if is_leased { self.leave_run(run, host) } else { Ok(()) }
    }

    /// Notes that no process is left of these runs.
    pub fn forget_left_runs(&mut self, runs: &[RunId]) -> Result<(), StoreError> {
        for id in runs {
            self.apply(CLEAR_LEFT, &[(&id.bead).into(), i64::from(id.epoch).into()])?;
        }
        Ok(())
    }

    /// Notes that a host that came back has ended and saved these runs; those in `saved` had work in their trees.
    pub fn clear_left_runs(
        &mut self,
        host: &HostRow,
        runs: &[RunId],
        saved: &[RunId],
    ) -> Result<(), StoreError> {
        let mut cleared = Vec::new();
        for id in runs {
            let params = [(&id.bead).into(), i64::from(id.epoch).into()];
            if self.execute(CLEAR_LEFT, &params)? > 0 {
                cleared.push(id.to_string());
            }
        }
        if !cleared.is_empty() {
            let saved = saved.iter().map(ToString::to_string).collect();
            self.record_host(host, "back", cleared, saved);
        }
        Ok(())
    }

    fn record_host(&mut self, host: &HostRow, new: &str, runs: Vec<String>, saved: Vec<String>) {
        let change = HostChange {
            host: host.id.clone(),
            name: host.name.clone(),
            new: new.to_owned(),
            runs,
            saved,
        };
        self.record_of_town(EventPayload::HostChanged(change));
    }

    /// Gives the live runs, polecats and saved trees of one identity to the host of another. Says how many runs.
    pub fn adopt_host(&mut self, former: &str, host: &str) -> Result<u64, StoreError> {
        let of_former = format!("%/{former}");
        let params = [(&of_former).into(), host.into()];
        let runs = self.execute(ADOPT_RUNS, &params)?;
        for table in [ADOPT_POLECATS, ADOPT_TRASH, ADOPT_RESCUES] {
            self.execute(table, &params)?;
        }
        let identity = host.rsplit_once('/').map_or(host, |(_, identity)| identity);
        self.execute(ADOPT_LEFT, &[former.into(), identity.into()])?;
        self.execute(FORGET, &[former.into()])?;
        Ok(runs)
    }
}
