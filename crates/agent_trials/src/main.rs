//! Real agents against a fake model API, in a town of their own.
//!
//! # Architecture invariants
//!
//! - It knows the product from outside alone: its commands and its files.
//! - An agent that is not installed is skipped by name. It never counts as passed.
//! - Each process that it ends belongs to a run of its own sandbox.

mod agents;
mod cases;
mod convoy;
mod table;
mod town;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use gt_testkit::FakeModel;

use agents::{PinnedAgent, pinned};
use cases::{CASES, TrialCase};
use convoy::convoy_of_ten;
use table::{AgentVerdicts, Verdict, page};
use town::TrialTown;

/// Tries real agents against a fake model API.
///
/// Exit code 1 says that a case failed. Agents that are not installed are skipped by name.
#[derive(Debug, Parser)]
#[command(name = "scripts/agents", bin_name = "scripts/agents")]
struct TrialOptions {
    /// Where the agents are installed
    #[arg(long, value_name = "DIR", default_value = "target/agents")]
    cache: PathBuf,
    /// This agent alone; may be repeated
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// This case alone; may be repeated
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Write the table of results to this file
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Keep the town of an agent that failed
    #[arg(long)]
    keep: bool,
    /// Only let Claude Code and Codex work on a convoy of ten beads, and show it
    #[arg(long, conflicts_with_all = ["agents", "cases", "table"])]
    convoy: bool,
    /// Only start the fake model, with its requests in this file, until interrupted
    #[arg(long, value_name = "FILE", conflicts_with_all = ["agents", "cases", "table"])]
    serve: Option<PathBuf>,
}

fn main() -> ExitCode {
    let mut options = TrialOptions::parse();
    // Towns link to the programs from elsewhere. A directory that does not exist has no agents.
    options.cache = options.cache.canonicalize().unwrap_or(options.cache);
    run(&options, &mut io::stdout().lock()).unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "error: {error}");
        ExitCode::FAILURE
    })
}

fn run(options: &TrialOptions, out: &mut impl Write) -> io::Result<ExitCode> {
    if let Some(record) = &options.serve {
        let model = FakeModel::start(record);
        writeln!(out, "{}", model.url())?;
        out.flush()?;
        loop {
            std::thread::park();
        }
    }
    let gt = std::env::current_exe()?.with_file_name("gt");
    if options.convoy {
        return show_convoy(options, &gt, out);
    }
    let agents = choose(pinned(), &options.agents, |agent| agent.name)?;
    let cases = choose(CASES.to_vec(), &options.cases, |case| case.name)?;
    let mut results = Vec::new();
    for agent in agents {
        results.push(try_agent(options, &gt, agent, &cases, out)?);
    }
    if let Some(path) = &options.table {
        std::fs::write(path, page(&cases, &results))?;
    }
    let failed = results
        .iter()
        .flat_map(|result| &result.verdicts)
        .filter(|one| matches!(one, Verdict::Failed(_)));
    let (failed, skipped) =
        (failed.count(), results.iter().filter(|result| result.skipped.is_some()).count());
    writeln!(out, "{failed} failed, {skipped} of {} agents skipped", results.len())?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show_convoy(options: &TrialOptions, gt: &Path, out: &mut impl Write) -> io::Result<ExitCode> {
    let installed = |name: &str| {
        let agent = pinned().into_iter().find(|agent| agent.name == name);
        agent.and_then(|agent| agent.installed(&options.cache).map(|program| (agent, program)))
    };
    let Some((claude, codex)) = installed("claude").zip(installed("codex")) else {
        return Err(io::Error::other("claude and codex must be installed for the convoy"));
    };
    match convoy_of_ten(gt, (&claude.0, &claude.1), (&codex.0, &codex.1), out) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(why) => {
            writeln!(out, "failed: {why}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Those that are named, or all.
fn choose<T>(
    all: Vec<T>,
    names: &[String],
    name_of: impl Fn(&T) -> &'static str,
) -> io::Result<Vec<T>> {
    for name in names {
        if !all.iter().any(|one| name_of(one) == name) {
            let known: Vec<&str> = all.iter().map(&name_of).collect();
            return Err(io::Error::other(format!("{name} is none of: {}", known.join(", "))));
        }
    }
    let is_asked = |one: &T| names.is_empty() || names.iter().any(|name| name_of(one) == name);
    Ok(all.into_iter().filter(is_asked).collect())
}

fn try_agent(
    options: &TrialOptions,
    gt: &Path,
    agent: PinnedAgent,
    cases: &[TrialCase],
    out: &mut impl Write,
) -> io::Result<AgentVerdicts> {
    let Some(program) = agent.installed(&options.cache) else {
        let why = format!("{} {} could not be installed", agent.package, agent.version);
        writeln!(out, "{}: skipped: {why}", agent.name)?;
        let verdicts = vec![Verdict::Skipped; cases.len()];
        return Ok(AgentVerdicts { agent, skipped: Some(why), verdicts });
    };
    let mut verdicts = Vec::new();
    for case in cases {
        let began = Instant::now();
        let verdict = if agent.has(case.needs) {
            // Each case has a town of its own: a park of one must not hold up the next.
            try_case(options, gt, &agent, &program, case)
        } else {
            Verdict::NotSupported
        };
        let why =
            if let Verdict::Failed(why) = &verdict { format!(": {why}") } else { String::new() };
        let took = rounded(began.elapsed());
        writeln!(out, "{}, {}: {} after {took} s{why}", agent.name, case.title, verdict.as_str())?;
        out.flush()?;
        verdicts.push(verdict);
    }
    Ok(AgentVerdicts { agent, skipped: None, verdicts })
}

fn rounded(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
}

fn try_case(
    options: &TrialOptions,
    gt: &Path,
    agent: &PinnedAgent,
    program: &Path,
    case: &TrialCase,
) -> Verdict {
    // A command that fails where it must not is told by a panic with all that it said.
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let town = TrialTown::make(gt, agent, program);
        let result = (case.run)(&town);
        if result.is_err() && options.keep {
            town.sandbox.keep();
        }
        result
    }));
    match tried {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(why)) => Verdict::Failed(why),
        Err(panic) => {
            let told = panic.downcast_ref::<String>().cloned();
            let told = told.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let told = told.unwrap_or_default();
            Verdict::Failed(told.lines().next().unwrap_or_default().to_owned())
        }
    }
}
