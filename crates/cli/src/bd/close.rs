//! `bd close`.

use clap::Args;
use gt_api::{Clearable, ClosedDocument, MoleculeAdvanceDocument, RawJson};
use gt_beads::batch::{BatchStep, split_reason};
use gt_beads::beads::{Close, ClosedBead, claim_first, close};
use gt_beads::molecules::{MoleculeAdvance, continue_molecule};
use gt_core::{Bead, Outcome};
use gt_execution::runs::end_processes_of;
use gt_town::{BeadFilter, Environment, Readiness};

use super::bead_output;
use super::update::named_or_last_touched;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;
use crate::values::{text_of, texts};

/// Close beads
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd close gt-abc --reason \"merged\"
  bd close gt-abc --outcome failed
  bd close gt-abc --suggest-next")]
pub(super) struct CloseArgs {
    /// Ids, or parts of them; without one, the bead that you changed last
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Why (repeat for one reason per bead)
    #[arg(short, long, visible_aliases = ["resolution", "comment"], short_alias = 'm', value_name = "TEXT")]
    reason: Vec<String>,
    /// Take the reason from this file (- is standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "reason")]
    reason_file: Option<String>,
    /// How it ended; dependents of a failed bead keep waiting
    #[arg(long, value_parser = ["success", "failed", "cancelled"])]
    outcome: Option<String>,
    /// Close it past every guard, and cancel the run that has it
    #[arg(short, long)]
    force: bool,
    /// The session of the agent that closes it
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Say what became ready by it
    #[arg(long)]
    suggest_next: bool,
    /// Take the next bead that is ready
    #[arg(long)]
    claim_next: bool,
    /// Take the next step of the molecule that it is a part of
    #[arg(long = "continue", conflicts_with = "claim_next")]
    continue_molecule: bool,
    /// With --continue: only show the next step
    #[arg(long)]
    no_auto: bool,
}

/// The close that a line of a batch asks for.
pub(super) fn step(args: &CloseArgs, environment: &Environment) -> Result<BatchStep, CliError> {
    if args.suggest_next || args.claim_next || args.continue_molecule {
        return Err(CliError::request(
            "--suggest-next, --claim-next and --continue are not for a batch",
        ));
    }
    if args.ids.is_empty() {
        return Err(CliError::request("which bead? close <id>"));
    }
    Ok(BatchStep::Close { words: args.ids.clone(), how: how(args, environment)? })
}

/// Closes beads; words behind their ids give the reason.
pub(super) fn run_done(context: &CommandContext<'_>, mut args: CloseArgs) -> Result<(), CliError> {
    if args.reason.is_empty() && args.reason_file.is_none() && args.ids.len() > 1 {
        let (ids, reason) = split_reason(&context.store_town()?, &args.ids)?;
        args.ids = ids;
        args.reason.extend(reason);
    }
    run(context, &args)
}

fn how(args: &CloseArgs, environment: &Environment) -> Result<Close, CliError> {
    let mut reasons = args.reason.clone();
    if let Some(path) = &args.reason_file {
        reasons.push(text_of(path)?.trim_end().to_owned());
    }
    let session = args.session.clone();
    Ok(Close {
        reasons,
        outcome: args.outcome.as_deref().map(Outcome::parse).transpose()?,
        force: args.force,
        session: session.or_else(|| environment.get("CLAUDE_SESSION_ID").map(str::to_owned)),
    })
}

pub(super) fn run(context: &CommandContext<'_>, args: &CloseArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let how = how(args, &context.environment)?;
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    let ids = named_or_last_touched(printer, &town, &args.ids)?;
    for result in close(&town, &ids, &how)? {
        match result {
            Ok(closed) => done.push(closed),
            Err(error) => refused.push(printer.part_failed(&error.into())),
        }
    }
    end_processes_of(
        &town,
        done.iter().filter_map(|closed: &ClosedBead| closed.cancelled.as_ref()),
    );
    if done.is_empty() {
        return Err(CliError::AlreadyTold(refused.join("; ")));
    }
    let mut claimed = None;
    if args.claim_next {
        let ready = Some(Readiness { now: town.now(), include_deferred: false });
        claimed = claim_first(&town, &BeadFilter { ready, ..BeadFilter::default() }, None)?;
    }
    let next_step = match done.first() {
        Some(closed) if args.continue_molecule => {
            Some(continue_molecule(&town, &closed.bead.id, !args.no_auto)?)
        }
        _ => None,
    };
    if !printer.json() {
        for closed in &done {
            let (id, reason) = (&closed.bead.id, &closed.bead.close_reason);
            if let Some(run) = &closed.cancelled {
                printer.done(format!("✓ Cancelled {} of {}", run.id, run.agent))?;
            }
            printer.done(match closed.bead.outcome {
                Some(Outcome::Failed) => {
                    format!("✓ Closed {id} as failed: {reason} (what depends on it keeps waiting)")
                }
                _ => format!("✓ Closed {id}: {reason}"),
            })?;
            for id in &closed.also_closed {
                printer.done(format!("✓ Closed {id}: all steps complete"))?;
            }
            if args.suggest_next {
                for id in &closed.unblocked {
                    printer.done(format!("  ready now: {id}"))?;
                }
            }
        }
        if let Some(row) = claimed {
            printer.done(format!("✓ Claimed {}: {}", row.bead.id, row.bead.title))?;
        }
        return next_step.map_or(Ok(()), |next| say_next_step(printer, &next));
    }
    let has_next = done.iter().any(|closed| !closed.unblocked.is_empty()) || claimed.is_some();
    // Where nothing is next, scripts expect the plain list.
    if next_step.is_none() && !has_next
        || !args.suggest_next && !args.claim_next && !args.continue_molecule
    {
        let ids: Vec<String> = done.iter().map(|closed| closed.bead.id.to_string()).collect();
        return bead_output::print_json(printer, &town, &ids);
    }
    let closed = done.iter().map(|closed| RawJson::record(bead_output::bare(&closed.bead, &[])));
    let claimed = match &claimed {
        _ if !args.claim_next => Clearable::Keep,
        Some(row) => Clearable::Set(RawJson::record(bead_output::listed(row, |_| {}))),
        None => Clearable::Clear,
    };
    let unblocked = done.iter().flat_map(|closed| &closed.unblocked);
    printer.object(&ClosedDocument {
        closed: closed.collect(),
        unblocked: args.suggest_next.then(|| texts(unblocked)),
        claimed,
        r#continue: next_step.as_ref().map(next_step_document),
    })
}

fn say_next_step(printer: &Printer, next: &MoleculeAdvance) -> Result<(), CliError> {
    match &next.next {
        Some(step) if next.claimed => {
            printer.done(format!("✓ Claimed {}: {}", step.id, step.title))
        }
        Some(step) => printer.done(format!("  next step: {} {}", step.id, step.title)),
        None if next.is_complete => printer.done("  every step is done"),
        None => printer.done("  no step is ready"),
    }
}

fn next_step_document(next: &MoleculeAdvance) -> MoleculeAdvanceDocument {
    let record = |bead: &Bead| RawJson::record(bead_output::bare(bead, &[]));
    MoleculeAdvanceDocument {
        molecule_id: next.molecule.as_ref().map(ToString::to_string),
        next_step: next.next.as_ref().map(record),
        auto_advanced: next.claimed,
        molecule_complete: next.is_complete,
    }
}
