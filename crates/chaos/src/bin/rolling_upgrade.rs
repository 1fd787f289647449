//! Two versions of the program work on one PostgreSQL store, as a rolling upgrade has it.
//!
//! ```text
//! rolling_upgrade <gt of the earlier version> <gt of this version>
//! ```
//!
//! The earlier program makes a town. This program joins it, which brings the schema up to date. Then both have a daemon, and
//! each bead that either of them schedules must be closed by exactly one run.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gt_testkit::{Cluster, FinishedProgram, Sandbox, wait_until, write_program};
use serde_json::Value;

/// How many beads each program schedules.
const BEADS_EACH: usize = 10;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(earlier), Some(current)) = (arguments.next(), arguments.next()) else {
        let _ = writeln!(io::stderr(), "usage: rolling_upgrade <earlier gt> <this gt>");
        return ExitCode::from(2);
    };
    live(&earlier, &current, &mut io::stdout().lock())
        .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// One version of the program in a directory of its own.
struct VersionedHost<'s> {
    sandbox: &'s Sandbox,
    gt: PathBuf,
    name: &'static str,
}

impl VersionedHost<'_> {
    fn gt(&self, words: &[&str]) -> FinishedProgram {
        self.sandbox.command(&self.gt).dir(self.sandbox.root().join(self.name)).args(words).run()
    }

    fn bd(&self, words: &[&str]) -> FinishedProgram {
        let words: Vec<&str> = ["bd"].iter().chain(words).copied().collect();
        self.gt(&words)
    }

    fn install(&self, url: &str) -> FinishedProgram {
        let command = self.sandbox.command(&self.gt).dir(self.sandbox.root());
        command.env("DATABASE_URL", url).args(["install", self.name]).run()
    }

    fn schema(&self) -> u64 {
        let info = self.gt(&["store", "info", "--json"]).ok().json();
        info["schema"].as_u64().unwrap_or_default()
    }

    /// Makes beads and schedules them.
    fn schedule(&self) {
        for number in 0..BEADS_EACH {
            let id = format!("wk-{}{number}", self.name);
            self.bd(&["create", "Work", "--id", &id, "--rig", "work"]).ok();
            self.gt(&["sling", &id, "work", "--no-convoy"]).ok();
        }
    }
}

fn live(earlier: &Path, current: &Path, out: &mut impl Write) -> io::Result<()> {
    let (sandbox, cluster) = (Sandbox::new(current), Cluster::start(""));
    let url = cluster.fresh_database();
    let host = |gt: &Path, name| VersionedHost { sandbox: &sandbox, gt: gt.to_owned(), name };
    let (old, new) = (host(earlier, "old"), host(current, "new"));

    old.install(&url).ok();
    let script = sandbox.root().join("work.sh");
    write_program(&script, "#!/bin/sh\nexit 0\n");
    old.gt(&["rig", "add", "work", "--prefix", "wk"]).ok();
    let command = script.display().to_string();
    old.gt(&["config", "set", "rig.work.command", &command]).ok();
    old.gt(&["config", "set", "scheduler.max_polecats", "4"]).ok();
    old.bd(&["create", "Before", "--id", "wk-before", "--rig", "work"]).ok();
    let before = old.schema();

    // The program that joins brings the schema up to date, while the earlier one has it open.
    old.gt(&["up"]).ok();
    new.install(&url).ok();
    // The directory of a rig is made on the host that adds it.
    sandbox.make_dir(sandbox.root().join("new/work"));
    let after = new.schema();
    writeln!(out, "the schema went from {before} to {after}")?;

    new.gt(&["up"]).ok();
    old.gt(&["sling", "wk-before", "work", "--no-convoy"]).ok();
    old.schedule();
    new.schedule();
    let closed = || new.bd(&["count", "--status", "closed"]).ok().line().parse().unwrap_or(0);
    wait_until("every bead is closed", || closed() == 2 * BEADS_EACH + 1);

    for host in [&old, &new] {
        host.gt(&["down"]).ok();
        let runs = host.gt(&["run", "list", "--all", "--json"]).ok().json();
        let runs = runs.as_array().map_or(0, |runs| runs.iter().filter(|run| is_done(run)).count());
        assert_eq!(
            runs,
            2 * BEADS_EACH + 1,
            "each bead has one run that is done, says {}",
            host.name
        );
        host.gt(&["store", "check"]).ok();
        writeln!(out, "{}: {runs} runs, and the store is sound", host.name)?;
    }
    new.gt(&["doctor"]).ok();
    Ok(())
}

fn is_done(run: &Value) -> bool {
    run["state"] == "done"
}
