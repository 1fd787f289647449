//! `bd swarm`.

use clap::{Args, Subcommand};
use gt_api::{
    CreatedSwarmDocument, ListedSwarmDocument, RawJson, SwarmDocument, SwarmPlanDocument,
    SwarmWaveDocument, SwarmsDocument,
};
use gt_beads::molecules::{MoleculeProgress, MoleculeStepState, molecule};
use gt_beads::swarms::{CreatedSwarm, ListedSwarm, SwarmPlan, create_swarm, swarm_plan, swarms};
use gt_core::BeadId;

use super::bead_output;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, plural};
use crate::values::texts;

/// Show which parts of an epic can be worked on at once; gt convoy runs them
#[derive(Debug, Args)]
#[command(
    after_help = "A swarm is a bead for the agent that coordinates the work on an epic. It starts nothing.

Examples:
  bd swarm validate gt-epic
  bd swarm create gt-epic --coordinator mayor
  bd swarm status gt-epic
  gt convoy create \"Release\" --from-epic gt-epic"
)]
pub(super) struct SwarmArgs {
    #[command(subcommand)]
    verb: SwarmVerb,
}

#[derive(Debug, Subcommand)]
enum SwarmVerb {
    /// Make a swarm for an epic; any other bead becomes the only part of a new epic
    Create {
        /// The epic
        #[arg(value_name = "ID")]
        id: String,
        /// The agent that coordinates the work
        #[arg(long, value_name = "NAME", default_value = "")]
        coordinator: String,
        /// Also if the epic has an open swarm
        #[arg(long)]
        force: bool,
    },
    /// List the swarms that are not closed
    List,
    /// Show the parts of an epic in the order in which they can be worked on
    Validate {
        /// The epic, or its swarm
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Show the parts of an epic by how they stand
    Status {
        /// The epic, or its swarm
        #[arg(value_name = "ID")]
        id: String,
    },
}

pub(super) fn run(context: &CommandContext<'_>, args: &SwarmArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    match &args.verb {
        SwarmVerb::Create { id, coordinator, force } => {
            print_created(printer, &create_swarm(&town, id, coordinator, *force)?, coordinator)
        }
        SwarmVerb::List => print_list(printer, &swarms(&town)?),
        SwarmVerb::Validate { id } => validate(printer, &swarm_plan(&town, id)?),
        SwarmVerb::Status { id } => {
            let epic = swarm_plan(&town, id)?.epic.id;
            print_status(printer, &molecule(&town, epic.as_str())?)
        }
    }
}

fn print_created(
    printer: &Printer,
    created: &CreatedSwarm,
    coordinator: &str,
) -> Result<(), CliError> {
    let CreatedSwarm { swarm, plan } = created;
    if printer.json() {
        return printer.object(&CreatedSwarmDocument {
            swarm_id: swarm.id.to_string(),
            epic_id: plan.epic.id.to_string(),
            coordinator: coordinator.to_owned(),
            analysis: plan_document(plan),
        });
    }
    let (epic, parts) = (&plan.epic, plural(plan.parts.len() as u64, "part"));
    printer.done(format!("✓ Created swarm: {} — {}", swarm.id, swarm.title))?;
    printer.done(format!("  {} has {parts}, {} at once at most", epic.id, plan.widest()))
}

fn print_list(printer: &Printer, found: &[ListedSwarm]) -> Result<(), CliError> {
    let listed: Vec<ListedSwarmDocument> = found.iter().map(listed).collect();
    if printer.json() {
        return printer.object(&SwarmsDocument { swarms: listed });
    }
    if listed.is_empty() {
        return printer.done("No swarms found");
    }
    for swarm in listed {
        printer.heading(&swarm.id, &format!("  {}", swarm.title))?;
        let (done, total) = (swarm.completed_issues, swarm.total_issues);
        let percent = swarm.progress_percent;
        printer.line(format!("  {}: {done}/{total} parts closed ({percent}%)", swarm.epic_id))?;
    }
    Ok(())
}

fn listed((swarm, plan): &ListedSwarm) -> ListedSwarmDocument {
    let number = |of: fn(&SwarmPlan) -> u64| plan.as_ref().map(of).unwrap_or_default();
    let (total, completed) = (number(|plan| plan.parts.len() as u64), number(SwarmPlan::closed));
    let epic = plan.as_ref().map(|plan| &plan.epic);
    ListedSwarmDocument {
        id: swarm.id.to_string(),
        title: swarm.title.to_string(),
        epic_id: epic.map(|epic| epic.id.to_string()).unwrap_or_default(),
        epic_title: epic.map(|epic| epic.title.to_string()).unwrap_or_default(),
        status: swarm.status.to_string(),
        coordinator: swarm.assignee.clone(),
        total_issues: total,
        completed_issues: completed,
        active_issues: number(SwarmPlan::active),
        progress_percent: completed.saturating_mul(100).checked_div(total).unwrap_or(0),
    }
}

fn validate(printer: &Printer, plan: &SwarmPlan) -> Result<(), CliError> {
    let document = plan_document(plan);
    if printer.json() {
        printer.object(&document)?;
    } else {
        printer.heading(plan.epic.id.as_str(), &format!("  {}", plan.epic.title))?;
        for wave in &document.ready_fronts {
            printer.line(format!("wave {}: {}", wave.wave + 1, wave.issues.join(" ")))?;
        }
        for warning in &document.warnings {
            printer.line(format!("warning: {warning}"))?;
        }
    }
    match document.errors.first() {
        None => Ok(()),
        Some(_) if printer.json() => Err(CliError::AlreadyTold(document.errors.join("; "))),
        Some(_) => Err(CliError::request(document.errors.join("; "))),
    }
}

fn plan_document(plan: &SwarmPlan) -> SwarmPlanDocument {
    let wave = |(wave, issues): (usize, &Vec<BeadId>)| SwarmWaveDocument {
        wave: wave as u64,
        issues: texts(issues),
    };
    let circle = || format!("{} wait for each other", texts(&plan.stuck).join(", "));
    let errors: Vec<String> = (!plan.stuck.is_empty()).then(circle).into_iter().collect();
    SwarmPlanDocument {
        epic_id: plan.epic.id.to_string(),
        epic_title: plan.epic.title.to_string(),
        total_issues: plan.parts.len() as u64,
        closed_issues: plan.closed(),
        ready_fronts: plan.waves.iter().enumerate().map(wave).collect(),
        max_parallelism: plan.widest(),
        estimated_sessions: plan.parts.len() as u64,
        warnings: plan.warnings.clone(),
        swarmable: errors.is_empty(),
        errors,
    }
}

fn print_status(printer: &Printer, progress: &MoleculeProgress) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&document(progress));
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
