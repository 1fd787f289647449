//! `bd gate`.

use std::time::Duration;

use clap::{Args, Subcommand};
use gt_api::{CheckedGateDocument, DiscoveredRunDocument, GateCheckDocument};
use gt_beads::beads::{Close, NewBead, create, show};
use gt_beads::gates::{
    CheckedGate, GateCheck, GateDiscovery, add_waiter, check_gates, discover_runs, gate_fields,
    gates_filter, resolve_gates,
};
use gt_core::bead::{Direction, NewDependency};
use gt_core::decide::GateVerdict;
use gt_core::time::parse_duration;
use gt_core::{DependencyType, IssueType};
use gt_town::Town;

use super::{bead_output, list};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;

/// Hold beads up until something happens outside
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd gate create --blocks gt-abc --type human --reason \"the key is ordered\"
  bd gate create --blocks gt-abc --type gh:pr:42
  bd gate check
  bd gate resolve gt-gate --reason \"it has come\"")]
pub(super) struct GateArgs {
    #[command(subcommand)]
    verb: GateVerb,
}

#[derive(Debug, Subcommand)]
enum GateVerb {
    /// Make a gate
    Create(CreateArgs),
    /// List gates
    List {
        /// Also closed ones
        #[arg(short, long)]
        all: bool,
    },
    /// Show a gate
    Show {
        /// An id, or a part of it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Open the way: close a gate
    #[command(visible_alias = "close")]
    Resolve {
        /// Ids, or parts of them
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Why
        #[arg(short, long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Close the gates whose wait is over, and say how the others stand
    Check(CheckArgs),
    /// Enter an address in the field waiters of a gate
    AddWaiter {
        /// The gate
        #[arg(value_name = "ID")]
        id: String,
        /// The address, such as web/polecats/furiosa
        #[arg(value_name = "ADDRESS")]
        waiter: String,
    },
    /// Find the workflow runs of GitHub that gates wait for without a number
    Discover(DiscoverArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Only gates of this type: timer, bead, gh:run, gh:pr, or gh for both of GitHub
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only say how they stand
    #[arg(long)]
    dry_run: bool,
    /// Ask for a person about a gate that cannot open by itself
    #[arg(short, long)]
    escalate: bool,
    /// At most this many
    #[arg(short = 'l', long, default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, Args)]
struct DiscoverArgs {
    /// Only say which runs they are
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Only runs of this branch
    #[arg(short, long, value_name = "NAME")]
    branch: Option<String>,
    /// At most this many runs are looked at
    #[arg(short = 'l', long, default_value_t = 10)]
    limit: usize,
    /// Only runs that started in this time before now
    #[arg(short = 'a', long, value_name = "DURATION", value_parser = parse_duration, default_value = "30m")]
    max_age: Duration,
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// Its title
    #[arg(value_name = "TITLE")]
    title: Option<String>,
    #[arg(long = "title", value_name = "TITLE", hide = true, conflicts_with = "title")]
    title_flag: Option<String>,
    /// The bead that waits for it
    #[arg(long, value_name = "ID")]
    blocks: Option<String>,
    /// The condition that it waits for: human, timer, bead, gh:run, gh:pr, mail, …; timer:30m and gh:pr:42 also name it
    #[arg(short = 't', long = "type", visible_alias = "await", default_value = "human")]
    kind: String,
    /// The name of that
    #[arg(long, value_name = "ID")]
    await_id: Option<String>,
    /// How long a timer waits
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Why
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &GateArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    match &args.verb {
        GateVerb::Create(args) => make(context, &town, args),
        GateVerb::List { all } => {
            list::print(printer, &town, &gates_filter(*all), |_| String::new())
        }
        GateVerb::Check(args) => check(context, &town, args),
        GateVerb::Discover(args) => discover(context, &town, args),
        GateVerb::AddWaiter { id, waiter } => {
            let (gate, is_new) = add_waiter(&town, id, waiter)?;
            if printer.json() {
                return bead_output::print_json(printer, &town, &[gate.to_string()]);
            }
            printer.done(if is_new {
                format!("✓ Added waiter to gate {gate}: {waiter}")
            } else {
                format!("{waiter} waits for gate {gate} already")
            })
        }
        GateVerb::Show { id } => {
            for shown in show(&town, std::slice::from_ref(id))? {
                let row = shown?.row;
                if printer.json() {
                    return printer.record(&bead_output::listed(&row, |_| {}));
                }
                bead_output::print_rows(printer, [(&row, String::new())])?;
            }
            Ok(())
        }
        GateVerb::Resolve { ids, reason } => {
            let reasons = vec![reason.clone().unwrap_or_else(|| "Gate resolved".to_owned())];
            let resolved = resolve_gates(&town, ids, &Close { reasons, ..Close::default() })?;
            bead_output::print_closed(printer, &town, resolved, "Resolved gate:")
        }
    }
}

fn check(context: &CommandContext<'_>, town: &Town, args: &CheckArgs) -> Result<(), CliError> {
    let wanted = GateCheck {
        kind: args.kind.clone(),
        limit: args.limit,
        dry_run: args.dry_run,
        escalate: args.escalate,
        checkout: context.directory.clone(),
    };
    let checked = check_gates(town, &wanted)?;
    let gates: Vec<CheckedGateDocument> = checked.iter().map(document).collect();
    let count = |state: &str| gates.iter().filter(|gate| gate.state == state).count() as u64;
    let (resolved, escalated, errors) = (count("resolved"), count("escalated"), count("error"));
    let printer = context.printer;
    if printer.json() {
        let (checked, dry_run) = (gates.len() as u64, args.dry_run);
        let document = GateCheckDocument { checked, resolved, escalated, errors, dry_run, gates };
        return printer.object(&document);
    }
    if gates.is_empty() {
        return printer.done(
            "No open gates found that are checked; bd gate list shows those that a person resolves",
        );
    }
    for CheckedGateDocument { id, state, reason } in &gates {
        printer.line(format!("{id}: {state}, {reason}"))?;
    }
    let (count, would) =
        (plural(gates.len() as u64, "gate"), if args.dry_run { "would be " } else { "" });
    printer.done(format!(
        "Checked {count}: {resolved} {would}resolved, {escalated} escalated, {errors} errors"
    ))
}

fn discover(
    context: &CommandContext<'_>,
    town: &Town,
    args: &DiscoverArgs,
) -> Result<(), CliError> {
    let wanted = GateDiscovery {
        branch: args.branch.clone(),
        limit: args.limit,
        age_max: args.max_age,
        dry_run: args.dry_run,
        checkout: context.directory.clone(),
    };
    let found = discover_runs(town, &wanted)?;
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        for (gate, run) in found {
            let (gate_id, run_id) = (gate.to_string(), run.map(|run| run.number));
            list.push(&DiscoveredRunDocument { gate_id, run_id, dry_run: args.dry_run })?;
        }
        return list.finish();
    }
    if found.is_empty() {
        return printer.done("No pending gh:run gates found");
    }
    let would = if args.dry_run { "would wait" } else { "waits" };
    found.iter().try_for_each(|(gate, run)| match run {
        Some(run) => {
            printer.line(format!("{gate}: {would} for run {} ({})", run.number, run.workflow))
        }
        None => printer.line(format!("{gate}: no run found")),
    })
}

fn document(checked: &CheckedGate) -> CheckedGateDocument {
    let (state, reason) = match &checked.verdict {
        GateVerdict::Resolved(reason) => ("resolved", reason),
        GateVerdict::Escalated(reason) => ("escalated", reason),
        GateVerdict::Pending(reason) => ("pending", reason),
        GateVerdict::Failed(reason) => ("error", reason),
    };
    let (id, state, reason) = (checked.gate.id.to_string(), state.to_owned(), reason.clone());
    CheckedGateDocument { id, state, reason }
}

/// The type of a gate, and the name behind it, such as 42 in gh:pr:42.
fn type_and_name(text: &str) -> (&str, &str) {
    let start = if text.starts_with("gh:") { 3 } else { 0 };
    match text[start..].split_once(':') {
        Some((kind, name)) => (&text[..start + kind.len()], name),
        None => (text, ""),
    }
}

fn make(context: &CommandContext<'_>, town: &Town, args: &CreateArgs) -> Result<(), CliError> {
    let links = args.blocks.iter().map(|blocked| NewDependency {
        kind: DependencyType::Blocks,
        direction: Direction::DependedOnBy,
        other: blocked.clone(),
        metadata: String::new(),
    });
    let (kind, name) = type_and_name(&args.kind);
    if kind.is_empty() {
        return Err(CliError::request("the type of a gate cannot be empty"));
    }
    let name = args.await_id.as_deref().unwrap_or(name);
    let length = match (args.timeout, kind) {
        (Some(length), _) => Some(length),
        (None, "timer") => Some(parse_duration(name).map_err(|invalid| {
            CliError::request(format!("how long does it wait? --timeout 30m says so: {invalid}"))
        })?),
        (None, _) => None,
    };
    let carried = gate_fields(kind, name, length);
    let title = args.title.as_ref().or(args.title_flag.as_ref());
    let new = NewBead {
        title: title.cloned().unwrap_or_else(|| format!("Gate: {}", args.kind)),
        description: args.reason.clone().unwrap_or_default(),
        issue_type: Some(IssueType::trusted("gate".to_owned())),
        links: links.collect(),
        carried,
        ..NewBead::default()
    };
    let made = create(town, &new, false)?;
    let printer = context.printer;
    if printer.json() {
        return printer.record(&bead_output::bare(&made.bead, &made.labels));
    }
    printer.done(format!("✓ Created gate: {} — {}", made.bead.id, made.bead.title))
}
