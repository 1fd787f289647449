//! A whole town under random kills, and an outside checker of its work.
//!
//! # Architecture invariants
//!
//! - It knows the product from outside alone: its commands, its files, git, and the process table. No library of ours but
//!   the sandbox is used, so that a fault in one cannot hide itself.
//! - The beads, and the order of faults and their targets, follow from the seed.
//! - Every process that gets a signal belongs to the sandbox, by its environment, and is held by a descriptor: no other
//!   process can be hit.

mod arguments;
mod check;
mod faults;
mod landing;
mod processes;
mod quiet_phase;
mod sampler;
mod town;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser as _;
use gt_testkit::Random;

use arguments::ChaosOptions;
use faults::Happened;
use landing::LandingWatch;
use sampler::{SampleResult, Sampler};
use town::ChaosTown;

/// The most violations that are shown.
const SHOWN_MAX: usize = 20;

fn main() -> ExitCode {
    let request = ChaosOptions::parse();
    run(&request, &mut io::stdout().lock()).unwrap_or(ExitCode::FAILURE)
}

/// One town after the other, until one is not as it should be.
fn run(request: &ChaosOptions, out: &mut impl Write) -> io::Result<ExitCode> {
    let gt = gt_beside_us()?;
    let began = Instant::now();
    let mut seed = request.seed;
    loop {
        let is_well = live(&ChaosOptions { seed, ..*request }, &gt, out)?;
        if !is_well {
            return Ok(ExitCode::FAILURE);
        }
        if request.time.is_none_or(|time| began.elapsed() >= time) {
            return Ok(ExitCode::SUCCESS);
        }
        seed += 1;
    }
}

/// The `gt` that was built with this program.
fn gt_beside_us() -> io::Result<PathBuf> {
    let gt = std::env::current_exe()?.with_file_name("gt");
    if gt.is_file() {
        return Ok(gt);
    }
    let told = format!("there is no {}; cargo build -p gt-cli makes it", gt.display());
    Err(io::Error::new(io::ErrorKind::NotFound, told))
}

/// The results of a town.
struct TownResult {
    happened: Happened,
    counted: SampleResult,
    runs: check::Runs,
    retried: usize,
    unlocked: usize,
    watch: LandingWatch,
    violations: Vec<String>,
}

/// The whole life of one town; whether everything was as it should be.
fn live(request: &ChaosOptions, gt: &Path, out: &mut impl Write) -> io::Result<bool> {
    let began = Instant::now();
    writeln!(out, "seed {}: {} beads, cap {}", request.seed, request.beads, request.cap)?;
    out.flush()?;
    let mut random = Random::new(request.seed);
    let town = ChaosTown::make(request, gt, &mut random);
    // A command that hangs, or fails where it must not, is told by a panic with all that it said.
    let told = catch_unwind(AssertUnwindSafe(|| go_through(request, &town, &mut random)));
    let took = began.elapsed().as_secs();
    let is_well = told.as_ref().is_ok_and(|told| told.violations.is_empty());
    if let Ok(told) = &told {
        report(told, request, took, out)?;
    }
    if !is_well || request.keep {
        // It may be down already.
        let _ = town.gt(&["down"]);
        town.sandbox.keep();
        writeln!(out, "  the town is kept: {}", town.sandbox.cwd().display())?;
    }
    if !is_well {
        writeln!(out, "  again: scripts/chaos {}", request.again())?;
    }
    Ok(is_well)
}

fn go_through(request: &ChaosOptions, town: &ChaosTown, random: &mut Random) -> TownResult {
    let sampler = Sampler::start(town.sandbox.root(), request.cap);
    town.gt(&["up"]).ok();
    let mut watch = LandingWatch::default();
    let happened = faults::inject_faults(town, random, request, &mut watch);
    let ended = quiet_phase::run_to_completion(town);
    let counted = sampler.stop();
    let (help, mut violations) = match ended {
        Ok(help) => (help, Vec::new()),
        Err(found) => (quiet_phase::Help::default(), found),
    };
    violations.extend(counted.violations.iter().cloned());
    violations.extend(quiet_phase::go_down(town));
    let (runs, found) = check::check(town);
    violations.extend(found);
    violations.extend(watch.look(town).err());
    violations.extend(watch.violations.iter().cloned());
    let quiet_phase::Help { retried, unlocked } = help;
    TownResult { happened, counted, runs, retried, unlocked, watch, violations }
}

fn report(
    told: &TownResult,
    request: &ChaosOptions,
    took: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let list = |parts: Vec<String>| parts.join(", ");
    let faults = told.happened.iter().map(|(fault, times)| format!("{fault} {times}"));
    writeln!(out, "  {}", list(faults.collect()))?;
    let runs = told.runs.by_state.iter().map(|(state, count)| format!("{count} {state}"));
    writeln!(
        out,
        "  runs: {}; {} tips of targets, {} repairs; {} beads given new attempts and {} locks of origins removed by hand; never more than {} of {} agents in {} looks; {took} s",
        list(runs.collect()),
        told.watch.tips(),
        told.runs.repairs,
        told.retried,
        told.unlocked,
        told.counted.most,
        request.cap,
        told.counted.looks,
    )?;
    for violation in told.violations.iter().take(SHOWN_MAX) {
        writeln!(out, "  NOT TRUE: {violation}")?;
    }
    if told.violations.len() > SHOWN_MAX {
        writeln!(out, "  … and {} more", told.violations.len() - SHOWN_MAX)?;
    }
    Ok(())
}
