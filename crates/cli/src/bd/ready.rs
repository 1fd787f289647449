//! `bd ready`.

use clap::Args;
use gt_api::{GatedStepDocument, GatedStepsDocument, RawJson, ReadySummaryDocument};
use gt_beads::beads::{ReadyExplanation, claim_first, explain, ready};
use gt_beads::molecules::freed_by_gates;
use gt_core::decide::WaitReason;
use gt_core::{Bead, BeadId, Priority};
use gt_town::{BeadFilter, BeadRow, Readiness, Town};

use super::bead_output;
use super::filters::{TraitArgs, limit, order};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, local_times, plural};
use crate::values::texts;

const LIMIT: usize = 100;

/// List what can be worked on now
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd ready
  bd ready --label backend --limit 5 --json
  bd ready --claim
  bd ready --explain")]
pub(super) struct ReadyArgs {
    /// At most this many (100 unless said); 0 for all
    #[arg(short = 'n', long)]
    limit: Option<usize>,
    /// Only this priority
    #[arg(short, long, allow_hyphen_values = true)]
    priority: Option<String>,
    /// Only this assignee
    #[arg(short, long, value_name = "NAME")]
    assignee: Option<String>,
    /// Only beads without an assignee
    #[arg(short, long, conflicts_with = "assignee")]
    unassigned: bool,
    /// In this order
    #[arg(short, long, default_value = "priority", value_parser = ["priority", "oldest", "hybrid"])]
    sort: String,
    #[command(flatten)]
    traits: TraitArgs,
    /// Only parts of this bead, at any depth
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Only steps of this molecule, ephemeral ones included
    #[arg(long, value_name = "ID", conflicts_with = "parent")]
    mol: Option<String>,
    /// Only steps that a closed gate has set free, with that gate
    #[arg(long, conflicts_with_all = ["claim", "explain"])]
    gated: bool,
    /// Also beads that were put off
    #[arg(long)]
    include_deferred: bool,
    /// Also ephemeral beads
    #[arg(long)]
    include_ephemeral: bool,
    /// Say why each bead is, or is not, ready
    #[arg(long, conflicts_with = "claim")]
    explain: bool,
    /// Take the first one
    #[arg(long)]
    claim: bool,
    #[arg(long, hide = true)]
    mol_type: Option<String>,
    #[arg(long, hide = true)]
    pretty: bool,
    #[arg(long, hide = true)]
    plain: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ReadyArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let filter = filter(&town, args)?;
    let below = args.parent.as_deref().or(args.mol.as_deref());
    if args.gated {
        return print_gated(printer, &town);
    }
    if args.explain {
        return explain_all(printer, &town, &filter, below);
    }
    if args.claim {
        let claimed = claim_first(&town, &filter, below)?;
        return print_claimed(printer, claimed.as_ref());
    }
    let (rows, more) = ready(&town, &filter, below)?;
    if printer.json() {
        let mut list = printer.list();
        for row in &rows {
            list.push_record(&bead_output::listed(row, |_| {}))?;
        }
        list.finish()?;
    } else if rows.is_empty() {
        printer.done("Nothing is ready. bd blocked and bd ready --explain say why.")?;
    } else {
        bead_output::print_rows(printer, rows.iter().map(|row| (row, String::new())))?;
    }
    if more {
        let shown = rows.len();
        printer.note(format!("Showing the first {shown}; there are more, use --limit 0 for all"));
    }
    Ok(())
}

fn filter(town: &Town, args: &ReadyArgs) -> Result<BeadFilter, CliError> {
    let priority = args.priority.as_deref().map(Priority::parse).transpose()?;
    let carried = args.mol_type.iter().map(|value| ("mol_type", value.clone()));
    Ok(BeadFilter {
        ready: Some(Readiness { now: town.now(), include_deferred: args.include_deferred }),
        priority_from: priority,
        priority_to: priority,
        assignee: args.assignee.clone(),
        unassigned: args.unassigned,
        include_templates: true,
        include_ephemeral: args.include_ephemeral || args.mol.is_some(),
        carried: carried.collect(),
        order: order(&args.sort),
        limit: limit(args.limit, Some(LIMIT)),
        ..args.traits.filter(town)?
    })
}

/// Prints the steps that a closed gate has set free, as `bd ready --gated` does.
pub(super) fn run_gated(context: &CommandContext<'_>) -> Result<(), CliError> {
    print_gated(context.printer, &context.store_town()?)
}

fn print_gated(printer: &Printer, town: &Town) -> Result<(), CliError> {
    let freed = freed_by_gates(town)?;
    if printer.json() {
        let step = |(row, gate, root): &(BeadRow, BeadId, Option<BeadId>)| GatedStepDocument {
            molecule_id: root.as_ref().map(ToString::to_string),
            closed_gate: gate.to_string(),
            ready_step: RawJson::record(bead_output::listed(row, |_| {})),
        };
        let molecules: Vec<GatedStepDocument> = freed.iter().map(step).collect();
        return printer.object(&GatedStepsDocument { count: molecules.len() as u64, molecules });
    }
    if freed.is_empty() {
        return printer.done("No step waits behind a gate that was closed");
    }
    let rows = freed.iter().map(|(row, gate, _)| (row, format!("after {gate}")));
    bead_output::print_rows(printer, rows)
}

fn print_claimed(printer: &Printer, claimed: Option<&BeadRow>) -> Result<(), CliError> {
    if printer.json() {
        let mut list = printer.list();
        if let Some(row) = claimed {
            list.push_record(&bead_output::listed(row, |_| {}))?;
        }
        return list.finish();
    }
    match claimed {
        Some(row) => printer.done(format!("✓ Claimed {}: {}", row.bead.id, row.bead.title)),
        None => printer.done("Nothing is ready that is not assigned"),
    }
}

fn explain_all(
    printer: &Printer,
    town: &Town,
    filter: &BeadFilter,
    below: Option<&str>,
) -> Result<(), CliError> {
    if printer.json() {
        return explain_json(printer, town, filter, below);
    }
    let summary = explain(town, filter, below, |explained| match explained {
        ReadyExplanation::Ready(row, _) => {
            bead_output::print_rows(printer, [(&row, "ready".to_owned())])
        }
        ReadyExplanation::Waiting(row, reasons, _) => {
            let reasons: Vec<String> =
                reasons.iter().map(|reason| local_times(&reason.to_string())).collect();
            bead_output::print_rows(printer, [(&row, reasons.join("; "))])
        }
    })?;
    for cycle in &summary.cycles {
        let path: Vec<String> = cycle.iter().map(ToString::to_string).collect();
        printer.line(format!("cycle: {} → {}", path.join(" → "), path[0]))?;
    }
    printer.done(format!("{} ready, {} waiting", summary.ready, summary.waiting))
}

/// `{"ready": […], "blocked": […], "cycles"?, "summary"}`, printed while it is found out.
fn explain_json(
    printer: &Printer,
    town: &Town,
    filter: &BeadFilter,
    below: Option<&str>,
) -> Result<(), CliError> {
    let mut sections = printer.sections();
    sections.array("ready")?;
    let mut in_ready = true;
    let summary = explain(town, filter, below, |explained| match &explained {
        ReadyExplanation::Ready(row, resolved) => sections.push_record(&ready_json(row, resolved)),
        ReadyExplanation::Waiting(row, reasons, in_the_way) => {
            if std::mem::take(&mut in_ready) {
                sections.array("blocked")?;
            }
            sections.push_record(&waiting_json(row, reasons, in_the_way))
        }
    })?;
    if in_ready {
        sections.array("blocked")?;
    }
    if !summary.cycles.is_empty() {
        sections.array("cycles")?;
        for cycle in &summary.cycles {
            sections.push(&texts(cycle))?;
        }
    }
    let counts = ReadySummaryDocument {
        total_ready: summary.ready,
        total_blocked: summary.waiting,
        cycle_count: summary.cycles.len() as u64,
    };
    sections.field("summary", &counts)?;
    sections.finish()
}

fn ready_json(row: &BeadRow, resolved: &[BeadId]) -> String {
    bead_output::listed(row, |object| {
        let reason = match resolved.len() {
            0 => "no blocking dependencies".to_owned(),
            many => format!("{} out of the way", plural(many as u64, "blocker")),
        };
        object.text("reason", &reason);
        object.array("resolved_blockers", |array| {
            for id in resolved {
                array.text(id.as_str());
            }
        });
    })
}

fn waiting_json(row: &BeadRow, reasons: &[WaitReason], in_the_way: &[Bead]) -> String {
    bead_output::listed(row, |object| {
        object.array("reasons", |array| {
            for reason in reasons {
                array.text(&reason.to_string());
            }
        });
        object.count("blocked_by_count", in_the_way.len() as u64);
        object.array("blocked_by", |array| {
            for bead in in_the_way {
                array.object(|object| {
                    object.text("id", bead.id.as_str());
                    object.text("title", bead.title.as_str());
                    object.text("status", bead.status.as_str());
                    object.number("priority", bead.priority.number());
                });
            }
        });
    })
}
