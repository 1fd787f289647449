//! `bd create`.

use clap::Args;
use gt_beads::batch::BatchStep;
use gt_beads::beads::{CreateResult, Created, NewBead, PlanOptions, create, create_once};
use gt_core::bead::{Direction, NewDependency, RequestKey};
use gt_core::{DependencyType, IssueType, Json, Priority};
use gt_town::rigs;

use super::bead_output;
use super::create_many::{self, PlanSource};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::values::{
    DescriptionArgs, comma_separated, instant, json_argument, note_past_due, text_of,
};

/// Flags that describe one bead, and conflict with a file of beads.
const FLAGS_FOR_ONE_BEAD: [&str; 25] = [
    "title",
    "title_flag",
    "issue_type",
    "priority",
    "description",
    "body_file",
    "stdin",
    "design",
    "design_file",
    "acceptance",
    "notes",
    "assignee",
    "labels",
    "id",
    "idempotency_key",
    "parent",
    "deps",
    "waits_for",
    "external_ref",
    "spec_id",
    "estimate",
    "due",
    "defer",
    "metadata",
    "no_history",
];

/// Make a bead, or many
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd create \"Fix the login\" -t bug -p 1
  bd create \"Write the docs\" --deps gt-abc --labels docs,soon
  bd create \"Part one\" --parent gt-epic --silent
  bd create \"Nightly build is red\" --idempotency-key build-4711
  bd create --file plan.md --dry-run
  bd create --graph plan.json --json")]
pub(super) struct CreateArgs {
    /// The title, in one line
    #[arg(value_name = "TITLE")]
    title: Option<String>,
    #[arg(long = "title", value_name = "TITLE", hide = true, conflicts_with = "title")]
    title_flag: Option<String>,
    /// Its type: task, bug, feature, chore, epic, …
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    issue_type: Option<String>,
    /// How urgent it is: 0 (highest) to 4
    #[arg(short, long, allow_hyphen_values = true)]
    priority: Option<String>,
    #[command(flatten)]
    description: DescriptionArgs,
    /// How it is to be done
    #[arg(long, value_name = "TEXT")]
    design: Option<String>,
    /// Take the design from this file
    #[arg(long, value_name = "FILE", conflicts_with = "design")]
    design_file: Option<String>,
    /// How to see that it is done
    #[arg(long, visible_alias = "acceptance-criteria", value_name = "TEXT")]
    acceptance: Option<String>,
    /// Anything else
    #[arg(long, visible_alias = "append-notes", value_name = "TEXT")]
    notes: Option<String>,
    /// The assignee
    #[arg(short, long, value_name = "NAME")]
    assignee: Option<String>,
    /// Labels, separated by commas (can be repeated)
    #[arg(short, long, visible_alias = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Use this id
    #[arg(long)]
    id: Option<String>,
    /// Name this request: a repeat with the same key returns the bead of the first time
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Make it a part of this bead
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Do not take over the parent's labels
    #[arg(long)]
    no_inherit_labels: bool,
    /// A bead that it depends on: an id, or type:id (can be repeated; blocks:X makes X depend on it)
    #[arg(long, value_name = "TYPE:ID")]
    deps: Vec<String>,
    /// Wait for this bead and its children
    #[arg(long, value_name = "ID")]
    waits_for: Option<String>,
    /// Whether to wait for all of them or for the first
    #[arg(long, value_name = "GATE", requires = "waits_for", value_parser = ["all-children", "any-children"])]
    waits_for_gate: Option<String>,
    /// The rig it belongs to [default: its parent's, that of the working directory, or the only one]
    #[arg(long, visible_alias = "repo", value_name = "RIG")]
    rig: Option<String>,
    /// Accept an id with an unknown prefix
    #[arg(long)]
    force: bool,
    /// Its name in another system
    #[arg(long, value_name = "REF")]
    external_ref: Option<String>,
    /// The specification it comes from
    #[arg(long, value_name = "ID")]
    spec_id: Option<String>,
    /// How long it should take, in minutes
    #[arg(short, long, value_name = "MINUTES")]
    estimate: Option<u32>,
    /// When it should be finished: a date, +2d, tomorrow
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    due: Option<String>,
    /// Do not work on it before this: a date, +2d, tomorrow
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    defer: Option<String>,
    /// Anything, as JSON, or @file
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Machinery that may be purged
    #[arg(long)]
    ephemeral: bool,
    /// Keep it without history
    #[arg(long)]
    no_history: bool,
    #[arg(long, hide = true)]
    wisp_type: Option<String>,
    #[arg(long, hide = true)]
    mol_type: Option<String>,
    /// Make every bead of this file, Markdown or JSONL, all or none (- is standard input)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = FLAGS_FOR_ONE_BEAD, conflicts_with = "graph")]
    file: Option<String>,
    /// Make every node of this JSON file, all or none (- is standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = FLAGS_FOR_ONE_BEAD)]
    graph: Option<String>,
    /// Show what would be made
    #[arg(long)]
    dry_run: bool,
    /// Print only the id
    #[arg(long)]
    silent: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: CreateArgs) -> Result<(), CliError> {
    let source = match (&args.file, &args.graph) {
        (Some(path), _) => Some(PlanSource::File(path.clone())),
        (None, Some(path)) => Some(PlanSource::Graph(path.clone())),
        (None, None) => None,
    };
    if let Some(source) = source {
        let options = PlanOptions {
            rig: args.rig,
            force: args.force,
            no_inherit_labels: args.no_inherit_labels,
            ephemeral: args.ephemeral,
            dry_run: args.dry_run,
        };
        return create_many::run(context, &source, &options, args.silent);
    }
    let (silent, dry_run) = (args.silent, args.dry_run);
    let key = args.idempotency_key.as_deref().map(RequestKey::parse).transpose()?;
    let town = context.store_town()?;
    let new = new_bead(args, town.now())?;
    note_past_due(context.printer, new.due_at, town.now());
    let outcome = match &key {
        Some(key) => create_once(&town, key, &new, dry_run)?,
        None => CreateResult::Made(create(&town, &new, dry_run)?),
    };
    let printer = context.printer;
    let verb = match (&outcome, dry_run) {
        (CreateResult::Made(_), true) => "Would create issue:",
        // Scripts cut the id from this line.
        (CreateResult::Made(_), false) => "✓ Created issue:",
        (CreateResult::MadeBefore(_), _) => "✓ Already created issue:",
    };
    let Created { bead, labels, missing } = match outcome {
        CreateResult::Made(created) => created,
        CreateResult::MadeBefore(created) => {
            if created.bead.title.as_str() != new.title.trim() {
                let (id, title) = (&created.bead.id, &created.bead.title);
                printer.note(format!(
                    "note: this key has made {id} ({title}) before; nothing new was made. Use another \
                     key for another bead"
                ));
            }
            created
        }
    };
    for id in &missing {
        bead_output::note_absent(printer, id);
    }
    let chosen = new.rig.is_some() || new.id.is_some() || new.parent.is_some() || bead.ephemeral;
    // The bead is made, so a store that cannot be read now does not make this a failure.
    let has_rigs = || rigs::list(&town).is_ok_and(|rigs| !rigs.is_empty());
    if bead.rig.is_none() && !chosen && has_rigs() {
        let id = &bead.id;
        printer.note(format!(
            "note: {id} was made in hq, which is not dispatched; bd update {id} --rig <rig> moves it"
        ));
    }
    if printer.json() {
        return printer.record(&bead_output::bare(&bead, &labels));
    }
    if silent || printer.quiet() {
        return printer.line(bead.id.as_str());
    }
    printer.done(format!("{verb} {} — {}", bead.id, bead.title))
}

/// Makes one bead and prints its id alone.
pub(super) fn run_quick(context: &CommandContext<'_>, args: CreateArgs) -> Result<(), CliError> {
    run(context, CreateArgs { silent: true, ..args })
}

/// The bead that a line of a batch asks for.
pub(super) fn step(args: CreateArgs, now: gt_core::Timestamp) -> Result<BatchStep, CliError> {
    let of_a_command = args.file.is_some()
        || args.graph.is_some()
        || args.idempotency_key.is_some()
        || args.dry_run
        || args.silent;
    if of_a_command {
        return Err(CliError::request(
            "--file, --graph, --idempotency-key, --dry-run and --silent are not for one line of a \
             batch",
        ));
    }
    Ok(BatchStep::Create(Box::new(new_bead(args, now)?)))
}

fn new_bead(args: CreateArgs, now: gt_core::Timestamp) -> Result<NewBead, CliError> {
    let title = args
        .title
        .or(args.title_flag)
        .ok_or_else(|| CliError::request("give a title: bd create \"What is to be done\""))?;
    let description = args.description.read()?.unwrap_or_default();
    let design = match (args.design, args.design_file) {
        (Some(text), _) => text,
        (None, Some(path)) => text_of(&path)?,
        (None, None) => String::new(),
    };
    let mut links = args.deps.iter().flat_map(|value| value.split(',')).map(str::trim);
    let mut links: Vec<NewDependency> = links
        .by_ref()
        .filter(|link| !link.is_empty())
        .map(NewDependency::parse)
        .collect::<Result<_, _>>()?;
    if let Some(other) = args.waits_for {
        let metadata =
            args.waits_for_gate.map(|gate| format!("{{\"gate\":{}}}", Json::string(&gate)));
        links.push(NewDependency {
            kind: DependencyType::WaitsFor,
            direction: Direction::DependsOn,
            other,
            metadata: metadata.unwrap_or_default(),
        });
    }
    let carried =
        [("spec_id", args.spec_id), ("wisp_type", args.wisp_type), ("mol_type", args.mol_type)];
    let carried = carried
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| (name.to_owned(), Json::string(&value))));
    Ok(NewBead {
        title,
        description,
        design,
        acceptance_criteria: args.acceptance.unwrap_or_default(),
        notes: args.notes.unwrap_or_default(),
        issue_type: args.issue_type.as_deref().map(IssueType::parse).transpose()?,
        check_type: true,
        priority: args.priority.as_deref().map(Priority::parse).transpose()?.unwrap_or_default(),
        assignee: args.assignee.unwrap_or_default(),
        labels: comma_separated(&args.labels),
        id: args.id,
        force: args.force,
        parent: args.parent,
        no_inherit_labels: args.no_inherit_labels,
        links,
        rig: args.rig,
        ephemeral: args.ephemeral,
        no_history: args.no_history,
        external_ref: args.external_ref,
        estimated_minutes: args.estimate,
        due_at: args.due.as_deref().map(|text| instant(text, now)).transpose()?,
        defer_until: args.defer.as_deref().map(|text| instant(text, now)).transpose()?,
        metadata: args.metadata.as_deref().map(json_argument).transpose()?,
        carried: carried.collect(),
    })
}
