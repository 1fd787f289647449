//! Counts what one run costs its store, on both engines, from outside: the real program, its daemon and its supervisors.
//!
//! ```text
//! run_cost <gt> [--runs 40]
//! ```
//!
//! Two towns do the same work with few and with many runs. The difference, without what the daemon does when it is idle for
//! the same time, is the cost of the further runs. Counts do not depend on the speed of the machine; only the part of the
//! idle daemon does.
//!
//! On PostgreSQL the server counts (`pg_stat_statements`, `pg_stat_database`, the position of its log). On SQLite a reader
//! holds the log, which then keeps every page and every commit.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gt_testkit::{Cluster, Sandbox, wait_until, write_program};

/// How many runs the smaller town does.
const FEW_RUNS: u32 = 10;
/// For how long an idle daemon is counted.
const IDLE_TIME: Duration = Duration::from_secs(20);

/// Statements of this program, which are not counted.
const OWN: &str = "/* run_cost */";

type CountResult<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let many = match arguments.as_slice() {
        [_] => Some(40),
        [_, flag, number] if flag == "--runs" => number.parse().ok(),
        _ => None,
    };
    let (Some(gt), Some(many)) = (arguments.first(), many.filter(|many| *many > FEW_RUNS)) else {
        let _ = writeln!(io::stderr(), "usage: run_cost <gt> [--runs <more than {FEW_RUNS}>]");
        return ExitCode::from(2);
    };
    match measure_all(Path::new(gt), many, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The kind of work that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// A command without a repository.
    Plain,
    /// A commit in a worktree, which is checked and lands.
    Landed,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "a command",
            Self::Landed => "a commit that lands",
        }
    }
}

/// The counters of the store.
#[derive(Debug, Clone, Copy, Default)]
struct StoreCounts {
    /// Statements of verbs: those that read or change rows.
    rows_statements: f64,
    /// All others: begin, settings, lock, commit.
    other_statements: f64,
    commits: f64,
    log_bytes: f64,
    events: f64,
    table_bytes: f64,
}

impl StoreCounts {
    fn minus(self, other: Self) -> Self {
        self.combine(other, |one, two| one - two)
    }

    fn times(self, factor: f64) -> Self {
        self.combine(self, |one, _| one * factor)
    }

    fn combine(self, other: Self, with: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            rows_statements: with(self.rows_statements, other.rows_statements),
            other_statements: with(self.other_statements, other.other_statements),
            commits: with(self.commits, other.commits),
            log_bytes: with(self.log_bytes, other.log_bytes),
            events: with(self.events, other.events),
            table_bytes: with(self.table_bytes, other.table_bytes),
        }
    }
}

/// A store that can be asked what it has done.
trait CountedStore {
    fn counts(&mut self) -> CountResult<StoreCounts>;
    fn closed(&mut self) -> CountResult<u32>;
}

/// PostgreSQL counts by itself.
struct CountedServer<'c> {
    cluster: &'c Cluster,
    database: String,
}

impl CountedServer<'_> {
    fn number(&self, sql: &str) -> CountResult<f64> {
        Ok(self.cluster.sql(&self.database, &format!("{OWN} {sql}")).parse()?)
    }
}

impl CountedStore for CountedServer<'_> {
    fn counts(&mut self) -> CountResult<StoreCounts> {
        let calls = "SELECT COALESCE(SUM(calls), 0) FROM pg_stat_statements s \
            JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database() \
            WHERE query NOT LIKE '/* run_cost */%'";
        // A verb names a table; the lock, the clock and the notice do not.
        let of_rows = "query ~* '^ *(SELECT|INSERT|UPDATE|DELETE|WITH|DECLARE).* (FROM|INTO|UPDATE) ' \
            OR query ~* '^ *UPDATE '";
        Ok(StoreCounts {
            rows_statements: self.number(&format!("{calls} AND ({of_rows})"))?,
            other_statements: self.number(&format!("{calls} AND NOT ({of_rows})"))?,
            // The server counts only some of the COMMITs that travel with other statements. Each transaction that writes begins with this.
            commits: self.number(&format!("{calls} AND query ILIKE 'BEGIN ISOLATION LEVEL READ COMMITTED%'"))?,
            log_bytes: self.number("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")?,
            events: self.number("SELECT COUNT(*) FROM gt.events")?,
            table_bytes: self.number(
                "SELECT SUM(pg_total_relation_size(c.oid)) FROM pg_class c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'gt' AND c.relkind = 'r'",
            )?,
        })
    }

    fn closed(&mut self) -> CountResult<u32> {
        let sql = "SELECT COUNT(*) FROM gt.beads WHERE status = 'closed'";
        Ok(self.cluster.sql(&self.database, &format!("{OWN} {sql}")).parse()?)
    }
}

/// A file, whose log a reader holds.
struct CountedFile {
    path: PathBuf,
    holder: Option<rusqlite::Connection>,
}

impl CountedFile {
    fn at(path: PathBuf) -> CountResult<Self> {
        // An empty log first, so that everything in it later is counted.
        let folding = rusqlite::Connection::open(&path)?;
        folding.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        let holder = rusqlite::Connection::open(&path)?;
        holder.execute_batch("BEGIN; SELECT COUNT(*) FROM beads;")?;
        Ok(Self { path, holder: Some(holder) })
    }

    fn number(&self, sql: &str) -> CountResult<f64> {
        let other = rusqlite::Connection::open(&self.path)?;
        Ok(other.query_row(sql, [], |row| row.get(0))?)
    }
}

/// The header of the log, and of each frame in it.
const LOG_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The commits in a log: the frames that say how large the file is after them.
fn commits_in(log: &[u8]) -> u32 {
    let word = |at: usize| {
        let bytes = log.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_be_bytes(bytes.unwrap_or_default())
    };
    let page = usize::try_from(word(8)).unwrap_or(0);
    if page == 0 {
        return 0;
    }
    let frames = log.len().saturating_sub(LOG_HEADER_BYTES) / (FRAME_HEADER_BYTES + page);
    let is_commit =
        |frame: &usize| word(LOG_HEADER_BYTES + frame * (FRAME_HEADER_BYTES + page) + 4) != 0;
    u32::try_from((0..frames).filter(is_commit).count()).unwrap_or(u32::MAX)
}

impl CountedStore for CountedFile {
    fn counts(&mut self) -> CountResult<StoreCounts> {
        assert!(self.holder.is_some(), "the log is held");
        let log = std::fs::read(self.path.with_extension("db-wal"))?;
        let pages = "SELECT (SELECT CAST(page_count AS REAL) FROM pragma_page_count) * \
            (SELECT page_size FROM pragma_page_size)";
        Ok(StoreCounts {
            commits: f64::from(commits_in(&log)),
            log_bytes: f64::from(u32::try_from(log.len())?),
            events: self.number("SELECT CAST(COUNT(*) AS REAL) FROM events")?,
            table_bytes: self.number(pages)?,
            ..StoreCounts::default()
        })
    }

    fn closed(&mut self) -> CountResult<u32> {
        let other = rusqlite::Connection::open(&self.path)?;
        let sql = "SELECT COUNT(*) FROM beads WHERE status = 'closed'";
        Ok(other.query_row(sql, [], |row| row.get(0))?)
    }
}

fn measure_all(gt: &Path, many: u32, out: &mut impl Write) -> CountResult<()> {
    let settings =
        "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.max = 10000\n";
    let cluster = Cluster::start(settings);
    writeln!(
        out,
        "per run: statements on rows + others, commits, log bytes, events, table bytes; idle daemon per second"
    )?;
    for work in [Work::Plain, Work::Landed] {
        for engine in ["PostgreSQL", "SQLite"] {
            let url = (engine == "PostgreSQL").then(|| cluster.fresh_database());
            let sandbox = town_for(gt, work, url.as_deref());
            let mut store: Box<dyn CountedStore + '_> = match &url {
                Some(url) => {
                    let database = url.rsplit('/').next().unwrap_or_default().to_owned();
                    cluster.sql(&database, "CREATE EXTENSION pg_stat_statements");
                    Box::new(CountedServer { cluster: &cluster, database })
                }
                None => Box::new(CountedFile::at(sandbox.cwd().join(".gt/gt.db"))?),
            };
            let idle = idle_per_second(&sandbox, store.as_mut())?;
            let few = cost_of(&sandbox, store.as_mut(), 0, FEW_RUNS, idle)?;
            let more = cost_of(&sandbox, store.as_mut(), FEW_RUNS, many, idle)?;
            let one = more.minus(few).times(1.0 / f64::from(many - FEW_RUNS));
            writeln!(
                out,
                "{engine:<10} {:<20} {:.1} + {:.1} statements, {:.1} commits, {:.0} log bytes, {:.1} events, {:.0} table bytes; \
                 idle {:.2} + {:.2} statements, {:.2} commits",
                work.name(),
                one.rows_statements,
                one.other_statements,
                one.commits,
                one.log_bytes,
                one.events,
                one.table_bytes,
                idle.rows_statements,
                idle.other_statements,
                idle.commits,
            )?;
            out.flush()?;
        }
    }
    Ok(())
}

/// A town with a rig for this work, two slots, and no deck that would ask the store as well.
fn town_for(gt: &Path, work: Work, url: Option<&str>) -> Sandbox {
    let sandbox = match url {
        Some(url) => Sandbox::town_on(gt, url),
        None => Sandbox::town(gt),
    };
    match work {
        Work::Plain => {
            let script = sandbox.root().join("work.sh");
            write_program(&script, "#!/bin/sh\nexit 0\n");
            sandbox.gt(["rig", "add", "work", "--prefix", "wk", "--executor", "process"]).ok();
            sandbox.gt(["config", "set", "rig.work.command", &script.display().to_string()]).ok();
        }
        Work::Landed => {
            let seed = sandbox.git_repository("seed");
            let origin = sandbox.root().join("origin.git");
            let clone = sandbox.command("git").args(["clone", "--quiet", "--bare"]);
            clone.arg(&seed).arg(&origin).run().ok();
            let add = sandbox.command(sandbox.gt_path()).args(["rig", "add", "work"]);
            add.arg(&origin).args(["--prefix", "wk", "--executor", "process"]).run().ok();
            sandbox.gt(["config", "set", "worker.runtime", "scripted"]).ok();
            sandbox.gt(["rig", "check", "add", "work", "whole", "true"]).ok();
        }
    }
    sandbox.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    sandbox.gt(["config", "set", "deck.enabled", "false"]).ok();
    sandbox
}

/// The cost of an idle daemon in a second.
fn idle_per_second(sandbox: &Sandbox, store: &mut dyn CountedStore) -> CountResult<StoreCounts> {
    sandbox.gt(["up"]).ok();
    let (began, before) = (Instant::now(), store.counts()?);
    wait_until("the daemon was idle for a while", || began.elapsed() >= IDLE_TIME);
    let cost = store.counts()?.minus(before).times(1.0 / began.elapsed().as_secs_f64());
    sandbox.gt(["down"]).ok();
    Ok(cost)
}

/// The cost of the daemon and the workers for so many runs, without the idle part.
fn cost_of(
    sandbox: &Sandbox,
    store: &mut dyn CountedStore,
    done_before: u32,
    runs: u32,
    idle: StoreCounts,
) -> CountResult<StoreCounts> {
    let ids: Vec<String> = (0..runs).map(|number| format!("wk-{done_before}x{number}")).collect();
    // The scripted agent of the town whose work lands; the command of the other does not read it.
    let script = "```gt-script\\nedit {bead}.txt {bead}\\ncommit Work\\ndone\\n```";
    let record =
        |id| format!("{{\"id\":\"{id}\",\"title\":\"Work\",\"description\":\"{script}\"}}\n");
    let lines: String = ids.iter().map(record).collect();
    sandbox.command(sandbox.gt_path()).args(["bd", "import", "-"]).stdin(lines).run().ok();
    sandbox.gt(["up"]).ok();
    let (began, before) = (Instant::now(), store.counts()?);
    let mut sling = sandbox.command(sandbox.gt_path()).args(["sling", "--no-convoy"]);
    sling = sling.args(&ids).arg("work");
    sling.run().ok();
    let wanted = done_before + runs;
    let mut failed = None;
    wait_until("every bead is closed", || match store.closed() {
        Ok(closed) => closed == wanted,
        Err(error) => {
            failed = Some(error);
            true
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let idle = idle.times(began.elapsed().as_secs_f64());
    let cost = store.counts()?.minus(before).minus(idle);
    sandbox.gt(["down"]).ok();
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_of_a_log_are_its_last_frames() {
        let mut log = vec![0; LOG_HEADER_BYTES];
        log[8..12].copy_from_slice(&512_u32.to_be_bytes());
        for pages_after in [0_u32, 3, 0, 0, 4] {
            let mut frame = vec![0; FRAME_HEADER_BYTES + 512];
            frame[4..8].copy_from_slice(&pages_after.to_be_bytes());
            log.extend(frame);
        }
        assert_eq!(commits_in(&log), 2);
        assert_eq!(commits_in(&[]), 0);
    }
}
