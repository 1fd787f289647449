//! The list of ready beads, in towns of very different sizes, on both engines.

use std::time::{Duration, Instant};

use gt_core::{BeadId, Clock};
use gt_store::{BeadFilter, Options, PostgresAddress, Readiness, Store, StoreAddress, StoreError};
use gt_testkit::Cluster;
use gt_town::SystemClock;

use super::server::DURABLE;
use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;
use crate::transfer;

const SHOWN: usize = 20;
const ARGUMENTS: [&str; 4] = ["ready", "--json", "--limit", "20"];
const RATIO_MAX: f64 = 3.0;

/// The first twenty ready beads of a huge town against those of a small one: the question alone, and
/// the command as a person runs it.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let (huge, middle) = (lab.scale.huge, lab.scale.middle);
    let towns = [lab.filled_town("huge", huge)?, lab.filled_town("middle", middle)?];
    let mut rows = compare(lab, "SQLite", &towns, &towns.each_ref().map(file_of))?;

    let cluster = Cluster::start(DURABLE);
    let mut servers = Vec::new();
    for (town, name) in towns.iter().zip(["huge-server", "middle-server"]) {
        let url = cluster.fresh_database();
        let address = StoreAddress::Server(Box::new(PostgresAddress::parse(&url, None)?));
        drop(Store::create(&address, SystemClock.now(), Options::default())?);
        transfer::copy_to_server(&town.database(), &url)?;
        servers.push((lab.town_on(name, &url)?, address));
    }
    let [huge_server, middle_server] =
        <[(BenchmarkTown, StoreAddress); 2]>::try_from(servers).map_err(|_| "two servers")?;
    let addresses = [huge_server.1, middle_server.1];
    rows.extend(compare(lab, "PostgreSQL", &[huge_server.0, middle_server.0], &addresses)?);
    for town in towns {
        std::fs::remove_dir_all(town.path)?;
    }
    Ok(rows)
}

fn file_of(town: &BenchmarkTown) -> StoreAddress {
    StoreAddress::File(town.database())
}

fn compare(
    lab: &Lab,
    engine: &str,
    towns: &[BenchmarkTown; 2],
    addresses: &[StoreAddress; 2],
) -> BenchmarkResult<Vec<ReportRow>> {
    let rounds = lab.scale.short_rounds;
    let sizes = format!("{} beads against {}", lab.scale.huge, lab.scale.middle);
    let [huge, middle] = addresses.each_ref().map(open);
    let (huge, middle) = (huge?, middle?);
    let asked = alternate(rounds, [question(&huge), question(&middle)])?;
    let command = |town| -> Arm<'_> { Box::new(move || lab.time(&mut lab.bd(town, ARGUMENTS)?)) };
    let run = alternate(rounds, [command(&towns[0]), command(&towns[1])])?;
    let row = |what: &str, times: &[Vec<Duration>; 2]| {
        let name = format!("million: {what} on {engine}, {sizes}");
        ReportRow::times(name, median(&times[0]), median(&times[1]), Some(RATIO_MAX))
    };
    Ok(vec![
        row("the first 20 ready beads, asked again and again", &asked),
        row("`bd ready --json --limit 20`", &run),
    ])
}

fn open(address: &StoreAddress) -> BenchmarkResult<Store> {
    Ok(Store::open(address, SystemClock.now(), Options::default())?)
}

fn question(store: &Store) -> Arm<'_> {
    Box::new(move || {
        let ready = Some(Readiness { now: SystemClock.now(), include_deferred: false });
        let filter = BeadFilter {
            ready,
            limit: Some(SHOWN),
            include_templates: true,
            ..BeadFilter::default()
        };
        let start = Instant::now();
        let found = store.read(|reader| {
            let ids: Vec<BeadId> = reader.find(&filter)?;
            reader.bead_rows(&ids)
        });
        let took = start.elapsed();
        let found = found.map_err(|error: StoreError| error.to_string())?;
        if found.len() == SHOWN { Ok(took) } else { Err("too few beads are ready".into()) }
    })
}
