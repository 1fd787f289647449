//! `bd gate`.

use clap::{Args, Subcommand};
use gt_beads::beads::{Close, NewBead, close, create, everything, show};
use gt_core::bead::{Direction, NewDependency};
use gt_core::{DependencyType, IssueType, Json};
use gt_town::{BeadFilter, StatusFilter, Town};

use super::{bead_output, list};
use crate::context::CommandContext;
use crate::error::CliError;

/// Hold beads up until something happens outside
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd gate create --blocks gt-abc --type human --reason \"the key is ordered\"
  bd gate list
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
    /// List the gates that are open; each is closed by bd gate resolve
    Check,
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// Its title
    #[arg(value_name = "TITLE")]
    title: Option<String>,
    /// The bead that waits for it
    #[arg(long, value_name = "ID")]
    blocks: Option<String>,
    /// What it waits for: human, timer, gh:run, gh:pr, mail, …
    #[arg(short = 't', long = "type", visible_alias = "await", default_value = "human")]
    kind: String,
    /// The name of that
    #[arg(long, value_name = "ID")]
    await_id: Option<String>,
    /// Why
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &GateArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    match &args.verb {
        GateVerb::Create(args) => make(context, &town, args),
        GateVerb::List { all } => list::print(printer, &town, &gates(*all), |_| String::new()),
        GateVerb::Check => list::print(printer, &town, &gates(false), |_| String::new()),
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
            let mut resolved = Vec::new();
            for result in close(&town, ids, &Close { reasons, ..Close::default() })? {
                resolved.push(result?.bead.id.to_string());
            }
            if printer.json() {
                return bead_output::print_json(printer, &town, &resolved);
            }
            resolved.iter().try_for_each(|id| printer.done(format!("✓ Resolved gate: {id}")))
        }
    }
}

fn gates(all: bool) -> BeadFilter {
    let status = if all { StatusFilter::All } else { StatusFilter::Current };
    BeadFilter { types: vec![IssueType::trusted("gate".to_owned())], status, ..everything() }
}

fn make(context: &CommandContext<'_>, town: &Town, args: &CreateArgs) -> Result<(), CliError> {
    let links = args.blocks.iter().map(|blocked| NewDependency {
        kind: DependencyType::Blocks,
        direction: Direction::DependedOnBy,
        other: blocked.clone(),
        metadata: String::new(),
    });
    let mut carried = vec![("await_type".to_owned(), Json::string(&args.kind))];
    if let Some(id) = &args.await_id {
        carried.push(("await_id".to_owned(), Json::string(id)));
    }
    let new = NewBead {
        title: args.title.clone().unwrap_or_else(|| format!("Gate: {}", args.kind)),
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
