//! `bd swarm`.

use clap::{Args, Subcommand};
use gt_api::{RawJson, SwarmDocument};
use gt_beads::molecules::{MoleculeProgress, MoleculeStepState, molecule};

use super::bead_output;
use crate::context::CommandContext;
use crate::error::CliError;

/// Show which parts of an epic can be worked on at once; gt convoy runs them
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bd swarm status gt-epic\n  gt convoy create \"Release\" --from-epic gt-epic"
)]
pub(super) struct SwarmArgs {
    #[command(subcommand)]
    verb: SwarmVerb,
}

#[derive(Debug, Subcommand)]
enum SwarmVerb {
    /// Show the parts of an epic by how they stand
    #[command(visible_alias = "validate")]
    Status {
        /// The epic
        #[arg(value_name = "ID")]
        id: String,
    },
}

pub(super) fn run(context: &CommandContext<'_>, args: &SwarmArgs) -> Result<(), CliError> {
    let SwarmVerb::Status { id } = &args.verb;
    let progress = molecule(&context.store_town()?, id)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&document(&progress));
    }
    let root = &progress.root;
    printer.heading(root.id.as_str(), &format!("  {}", root.title))?;
    let rows = progress.steps.iter().map(|(row, state)| (row, state.as_str().to_owned()));
    bead_output::print_rows(printer, rows)
}

fn document(progress: &MoleculeProgress) -> SwarmDocument {
    let records = |state: MoleculeStepState| -> Vec<RawJson> {
        let rows = progress.in_state(state);
        rows.map(|row| RawJson::record(bead_output::listed(row, |_| {}))).collect()
    };
    SwarmDocument {
        epic_id: progress.root.id.to_string(),
        epic_title: progress.root.title.to_string(),
        total_issues: progress.steps.len() as u64,
        completed: records(MoleculeStepState::Done),
        active: records(MoleculeStepState::Current),
        ready: records(MoleculeStepState::Ready),
        blocked: records(MoleculeStepState::Blocked),
    }
}
