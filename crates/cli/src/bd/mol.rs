//! `bd mol`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gt_api::{
    BondDocument, DistilledFormulaDocument, MoleculeDocument, MoleculeStepDocument, OrderedMap,
    PouredMoleculeDocument, PurgedDocument, RawJson, SquashedMoleculeDocument, WispsDocument,
};
use gt_beads::beads::for_each_page;
use gt_beads::distillation::{DistillOptions, distill, write_formula};
use gt_beads::lookup::resolve;
use gt_beads::molecules::{
    BondKind, MoleculeProgress, MoleculeStepState, PourOptions, PouredMolecule, bond, bond_formula,
    burn, molecule, molecules, pour, squash,
};
use gt_core::formula::{Cooked, PlaceholderMode};
use gt_execution::runs::end_processes_of;
use gt_town::formulas::Cooking;
use gt_town::{BeadFilter, StatusFilter, Town};

use super::formula::{SearchArgs, refused};
use super::purge::{self, PurgeArgs, PurgeScope};
use super::{bead_output, ready};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, Table, plural};
use crate::served;
use crate::values::{binding, text_of, texts};

/// Make molecules of formulas, and follow their steps
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd mol pour mol-polecat-work --var issue=gt-abc
  bd mol wisp mol-polecat-work --var issue=gt-abc --json
  bd mol current gt-mol
  bd mol squash gt-mol --summary \"all steps done\"")]
pub(super) struct MolArgs {
    #[command(subcommand)]
    verb: MolVerb,
}

#[derive(Debug, Subcommand)]
enum MolVerb {
    /// Make the beads of a formula
    Pour(PourArgs),
    /// Make the beads of a formula as machinery that may be purged; `bd mol wisp list` lists such beads, `gc` deletes closed ones
    Wisp(WispArgs),
    /// Check that a formula can be found and cooked
    Seed(SeedArgs),
    /// List molecules whose steps are all closed and that are still open
    Stale,
    /// List steps that can be worked on because a gate was closed
    Ready {
        #[arg(long, hide = true)]
        gated: bool,
    },
    /// Join a molecule with another, or with a formula
    Bond(BondArgs),
    /// Show where a molecule, or your own ones, stand
    Current(CurrentArgs),
    /// Show how far a molecule is
    #[command(visible_alias = "progress")]
    Show(CurrentArgs),
    /// List the molecules that are not closed
    List,
    /// Replace a molecule by a closed bead with a summary
    Squash(SquashArgs),
    /// Delete a molecule with its steps
    Burn(BurnArgs),
    /// Make a formula of a bead and its parts
    Distill(DistillArgs),
}

#[derive(Debug, Args)]
struct PourArgs {
    /// The name of a formula, or a file
    #[arg(value_name = "NAME|FILE")]
    name: String,
    #[command(flatten)]
    flags: PourFlags,
}

#[derive(Debug, Args)]
struct PourFlags {
    /// The value of a variable (can be repeated)
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = binding)]
    variables: Vec<(String, String)>,
    /// Only the bead at the root
    #[arg(long)]
    root_only: bool,
    /// The assignee of the root
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// Only show what would be made
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    search: SearchArgs,
}

#[derive(Debug, Args)]
struct WispArgs {
    /// The name of a formula, or a file; create before it is allowed. Or list, or gc
    #[arg(value_name = "NAME|FILE", required = true, num_args = 1..=2)]
    words: Vec<String>,
    #[command(flatten)]
    flags: PourFlags,
    /// With gc: really delete
    #[arg(long)]
    force: bool,
    /// With gc: only wisps that were closed so long ago
    #[arg(long, value_name = "DURATION")]
    age: Option<String>,
    #[arg(long, hide = true)]
    all: bool,
}

#[derive(Debug, Args)]
struct SeedArgs {
    /// The name of a formula, or a file
    #[arg(value_name = "NAME|FILE")]
    name: Option<String>,
    /// Those of the patrols, which gt has built in
    #[arg(long, hide = true)]
    patrol: bool,
    /// The value of a variable (can be repeated)
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = binding)]
    variables: Vec<(String, String)>,
    #[command(flatten)]
    search: SearchArgs,
}

#[derive(Debug, Args)]
struct BondArgs {
    /// The molecule
    #[arg(value_name = "ID")]
    first: String,
    /// Another molecule, or a formula
    #[arg(value_name = "ID|NAME")]
    second: String,
    /// How
    #[arg(long = "type", default_value = "sequential")]
    kind: BondName,
    /// The value of a variable of the formula (can be repeated)
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = binding)]
    variables: Vec<(String, String)>,
    /// The steps of the formula are machinery that may be purged
    #[arg(long)]
    ephemeral: bool,
    #[arg(long, hide = true, conflicts_with = "ephemeral")]
    pour: bool,
    #[command(flatten)]
    search: SearchArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BondName {
    /// The second begins when the first is done
    Sequential,
    /// Both go on at once
    Parallel,
    /// The second begins when the first is over
    Conditional,
}

#[derive(Debug, Args)]
struct CurrentArgs {
    /// The molecule; without one, those that you work on
    #[arg(value_name = "ID")]
    id: Option<String>,
    #[arg(long = "for", value_name = "NAME", hide = true)]
    assignee: Option<String>,
    #[arg(long, hide = true)]
    limit: Option<usize>,
}

#[derive(Debug, Args)]
struct SquashArgs {
    /// The molecule
    #[arg(value_name = "ID")]
    id: String,
    /// The summary [default: the steps and how they ended]
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// Take the summary from this file (- is standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "summary")]
    summary_file: Option<String>,
}

#[derive(Debug, Args)]
struct BurnArgs {
    /// The molecules
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[arg(short, long, hide = true)]
    force: bool,
}

#[derive(Debug, Args)]
struct DistillArgs {
    /// The bead, such as an epic
    #[arg(value_name = "ID")]
    id: String,
    /// The name of the formula [default: made of the title]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// A variable, and the text in whose place it stands (can be repeated)
    #[arg(long = "var", value_name = "NAME=TEXT", value_parser = binding)]
    variables: Vec<(String, String)>,
    /// Only show the formula
    #[arg(long)]
    dry_run: bool,
    /// Write it into this directory [default: .beads/formulas of the town]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &MolArgs) -> Result<(), CliError> {
    match &args.verb {
        MolVerb::Pour(args) => run_pour(context, &args.name, &args.flags, false),
        MolVerb::Wisp(args) => run_wisp(context, args),
        MolVerb::Seed(args) => run_seed(context, args),
        MolVerb::Stale => {
            let mut found = molecules(&context.store_town()?, None)?;
            found.retain(|progress| {
                !progress.steps.is_empty() && progress.completed() == progress.steps.len() as u64
            });
            print_molecules(context.printer, &found)
        }
        MolVerb::Ready { .. } => ready::run_gated(context),
        MolVerb::Bond(args) => run_bond(context, args),
        MolVerb::Current(args) | MolVerb::Show(args) => {
            let town = context.store_town()?;
            let found = if let Some(id) = &args.id {
                vec![molecule(&town, id)?]
            } else {
                let own = args.assignee.as_deref().unwrap_or(&town.actor().name);
                molecules(&town, Some(own))?
            };
            print_molecules(context.printer, &found)
        }
        MolVerb::List => {
            let found = molecules(&context.store_town()?, None)?;
            print_molecules(context.printer, &found)
        }
        MolVerb::Squash(args) => run_squash(context, args),
        MolVerb::Burn(args) => run_burn(context, args),
        MolVerb::Distill(args) => run_distill(context, args),
    }
}

fn cook(
    context: &CommandContext<'_>,
    search: &SearchArgs,
    name: &str,
    variables: &[(String, String)],
) -> Result<Cooked, CliError> {
    let catalog = search.catalog(context)?;
    let given: BTreeMap<String, String> = variables.iter().cloned().collect();
    let cooking = Cooking { given: &given, mode: PlaceholderMode::Runtime, prefix: None };
    let loaded = catalog.find(name, &context.directory);
    let cooked = loaded.and_then(|loaded| catalog.cook(&loaded, &cooking));
    cooked.map_err(|error| refused(context.printer, error))
}

fn run_seed(context: &CommandContext<'_>, args: &SeedArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let told = match &args.name {
        Some(name) => {
            let cooked = cook(context, &args.search, name, &args.variables)?;
            format!("{name} can be cooked: {}", plural(cooked.steps.len() as u64, "step"))
        }
        None if args.patrol => {
            "Nothing to seed: gt does the rounds of the patrols itself".to_owned()
        }
        None => return Err(CliError::request("which formula? bd formula list shows them")),
    };
    if printer.json() {
        return printer.object(&gt_api::SentenceDocument { message: told });
    }
    printer.done(format!("✓ {told}"))
}

fn run_wisp(context: &CommandContext<'_>, args: &WispArgs) -> Result<(), CliError> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => list_wisps(context),
        ["gc"] => {
            let wanted = PurgeArgs::of(args.force && !args.flags.dry_run, args.age.clone());
            purge::run(context, &wanted, PurgeScope::Ephemeral)
        }
        ["create", name] | [name] => run_pour(context, name, &args.flags, true),
        _ => {
            Err(CliError::request("which formula? bd mol wisp <name>; bd formula list shows them"))
        }
    }
}

fn run_pour(
    context: &CommandContext<'_>,
    name: &str,
    args: &PourFlags,
    ephemeral: bool,
) -> Result<(), CliError> {
    let cooked = cook(context, &args.search, name, &args.variables)?;
    let printer = context.printer;
    if args.dry_run {
        let steps = plural(cooked.steps.len() as u64, "step");
        return printer.done(format!("Would make {} with {steps}", cooked.root.title));
    }
    let options = PourOptions {
        ephemeral,
        root_only: args.root_only,
        assignee: args.assignee.clone().unwrap_or_default(),
        parent: None,
    };
    let PouredMolecule { root, ids } = pour(&context.store_town()?, &cooked, &options)?;
    if printer.json() {
        let phase = if ephemeral { "vapor" } else { "liquid" };
        return printer.object(&PouredMoleculeDocument {
            new_epic_id: root.id.to_string(),
            created: ids.len() as u64,
            id_mapping: mapping(ids),
            phase: phase.to_owned(),
        });
    }
    printer.done(format!("✓ Created molecule: {} — {}", root.id, root.title))?;
    ids.iter().skip(1).try_for_each(|(step, id)| printer.done(format!("  {id} {step}")))
}

fn mapping(ids: Vec<(String, gt_core::BeadId)>) -> OrderedMap<String> {
    ids.into_iter().map(|(name, id)| (name, id.to_string())).collect()
}

fn run_bond(context: &CommandContext<'_>, args: &BondArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let (kind, name) = match args.kind {
        BondName::Sequential => (BondKind::Sequential, "sequential"),
        BondName::Parallel => (BondKind::Parallel, "parallel"),
        BondName::Conditional => (BondKind::Conditional, "conditional"),
    };
    let (result, ids) = if resolve(&town, &args.second).is_ok() {
        let (first, _) = bond(&town, &args.first, &args.second, kind)?;
        (first, Vec::new())
    } else {
        let cooked = cook(context, &args.search, &args.second, &args.variables)?;
        let options = PourOptions { ephemeral: args.ephemeral, ..PourOptions::default() };
        let (first, poured) = bond_formula(&town, &args.first, &cooked, &options)?;
        (first, poured.ids)
    };
    let printer = context.printer;
    if printer.json() {
        return printer.object(&BondDocument {
            result_id: result.to_string(),
            result_type: "compound_molecule".to_owned(),
            bond_type: name.to_owned(),
            spawned: ids.len() as u64,
            id_mapping: mapping(ids),
        });
    }
    printer.done(format!("✓ Joined {} to {result} ({name})", args.second))
}

fn print_molecules(printer: &Printer, found: &[MoleculeProgress]) -> Result<(), CliError> {
    if printer.json() {
        let mut list = printer.list();
        for progress in found {
            list.push(&document(progress))?;
        }
        return list.finish();
    }
    if found.is_empty() {
        return printer.done("No molecules found");
    }
    for progress in found {
        let (done, total) = (progress.completed(), progress.steps.len());
        let root = &progress.root;
        printer.heading(root.id.as_str(), &format!("  {} ({done}/{total} done)", root.title))?;
        let mut table = Table::new();
        for (row, state) in &progress.steps {
            table.row(bead_output::cells(&row.bead, &row.labels, state.as_str()));
        }
        printer.table(table)?;
    }
    Ok(())
}

fn document(progress: &MoleculeProgress) -> MoleculeDocument {
    let record = |row: &gt_town::BeadRow| RawJson::record(bead_output::listed(row, |_| {}));
    let step = |(row, state): &(gt_town::BeadRow, MoleculeStepState)| MoleculeStepDocument {
        issue: record(row),
        status: state.as_str().to_owned(),
        is_current: *state == MoleculeStepState::Current,
    };
    MoleculeDocument {
        molecule_id: progress.root.id.to_string(),
        molecule_title: progress.root.title.to_string(),
        current_step: progress.first(MoleculeStepState::Current).map(record),
        next_step: progress.first(MoleculeStepState::Ready).map(record),
        steps: progress.steps.iter().map(step).collect(),
        completed: progress.completed(),
        total: progress.steps.len() as u64,
    }
}

fn list_wisps(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town: Town = context.store_town()?;
    let filter = BeadFilter {
        ephemeral: Some(true),
        status: StatusFilter::Current,
        ..BeadFilter::everything()
    };
    let printer = context.printer;
    let mut rows = Vec::new();
    for_each_page(&town, &filter, |page| {
        rows.extend(page);
        Ok::<_, CliError>(())
    })?;
    if printer.json() {
        let record = |row| RawJson::record(bead_output::listed(row, |_| {}));
        let wisps: Vec<RawJson> = rows.iter().map(record).collect();
        return printer.object(&WispsDocument { count: wisps.len() as u64, wisps });
    }
    if rows.is_empty() {
        return printer.done("No wisps found");
    }
    bead_output::print_rows(printer, rows.iter().map(|row| (row, String::new())))
}

fn run_squash(context: &CommandContext<'_>, args: &SquashArgs) -> Result<(), CliError> {
    let summary = match (&args.summary, &args.summary_file) {
        (None, Some(path)) => Some(text_of(path)?),
        (summary, _) => summary.clone(),
    };
    let town = context.store_town()?;
    let squashed = squash(&town, &args.id, summary.as_deref())?;
    end_processes_of(&town, &squashed.deleted.runs);
    let deleted = &squashed.deleted.beads;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&SquashedMoleculeDocument {
            molecule_id: squashed.root.to_string(),
            digest_id: squashed.digest.to_string(),
            squashed_count: deleted.len() as u64,
            squashed_ids: texts(deleted.iter().map(|bead| &bead.id)),
        });
    }
    let beads = plural(deleted.len() as u64, "bead");
    printer.done(format!("✓ Squashed {} ({beads}) into {}", squashed.root, squashed.digest))
}

fn run_burn(context: &CommandContext<'_>, args: &BurnArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let burned = burn(&town, &args.ids)?;
    end_processes_of(&town, &burned.runs);
    let deleted = burned.beads;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&PurgedDocument {
            deleted_count: deleted.len() as u64,
            deleted_ids: texts(deleted.iter().map(|bead| &bead.id)),
            dry_run: false,
        });
    }
    printer.done(format!("✓ Burned {}", plural(deleted.len() as u64, "bead")))
}

fn run_distill(context: &CommandContext<'_>, args: &DistillArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let options = DistillOptions { name: args.name.clone(), variables: args.variables.clone() };
    let distilled = distill(&town, &args.id, &options)?;
    let printer = context.printer;
    for gate in &distilled.gates {
        printer.note(format!("note: the gate {gate} is not a step of the formula"));
    }
    let mut path = String::new();
    if !args.dry_run {
        if args.output.is_some() && served::current().is_some() {
            return Err(CliError::request(format!(
                "workers write it with their own shell: bd mol distill {} --dry-run > FILE",
                args.id
            )));
        }
        let directory = match &args.output {
            Some(output) => context.directory.join(output),
            None => town.root().join(".beads").join("formulas"),
        };
        path = write_formula(&distilled, &directory)?.display().to_string();
    }
    let formula = &distilled.formula;
    if printer.json() {
        return printer.object(&DistilledFormulaDocument {
            formula_name: formula.name.clone(),
            formula_path: path,
            steps: formula.step_count() as u64,
            variables: formula.variables.iter().map(|variable| variable.name.clone()).collect(),
        });
    }
    if args.dry_run {
        return printer.text(&distilled.text);
    }
    let steps = plural(formula.step_count() as u64, "step");
    printer.done(format!("✓ Distilled formula: {} ({steps}) in {path}", formula.name))?;
    let variables = formula.variables.iter().map(|variable| format!(" --var {}=…", variable.name));
    printer.done(format!("  bd mol pour {}{}", formula.name, variables.collect::<String>()))
}
