//! `bd dep`.

use clap::{Args, Subcommand, ValueEnum};
use gt_api::{BlockingEdgeDocument, EdgeDocument, RelationDocument};
use gt_beads::batch::BatchStep;
use gt_beads::dependencies::{
    Added, EdgeDirection, TreeNode, WantedDependency, add, add_all, cycles, forest, neighbours,
    relate, remove, tree,
};
use gt_core::{Bead, DependencyType};
use gt_records::{BeadView, DependencyLine, parse_dependency_lines, write_bead, write_dependency};
use gt_town::Town;

use super::bead_output;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;
use crate::values::{source_name, text_of};

/// How deep a tree goes unless said otherwise.
const TREE_DEPTH: usize = 50;

/// Relate beads to each other
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  bd dep add gt-b gt-a             # gt-b waits for gt-a
  bd dep gt-a --blocks gt-b        # the same
  bd dep add --file edges.jsonl    # lines of {\"from\":\"gt-b\",\"to\":\"gt-a\"}
  bd dep tree gt-b --format mermaid
  bd dep list gt-cv --type tracks --json"
)]
pub(super) struct DepArgs {
    #[command(subcommand)]
    verb: Option<DepVerb>,
    /// The bead that blocks
    #[arg(value_name = "ID", requires = "blocks")]
    blocker: Option<String>,
    /// The bead that waits for it
    #[arg(long, value_name = "ID")]
    blocks: Option<String>,
}

impl DepArgs {
    /// Asks for the tree of a bead.
    pub(super) fn tree_of(id: String) -> Self {
        let (direction, max_depth) = (Direction::Down, TREE_DEPTH);
        let (diagram, reverse, status) = (None, false, None);
        let tree = TreeArgs { id, direction, max_depth, diagram, reverse, status };
        Self { verb: Some(DepVerb::Tree(tree)), blocker: None, blocks: None }
    }

    /// Whether this asks for a tree, which can be a diagram.
    pub(super) fn is_tree(&self) -> bool {
        matches!(self.verb, Some(DepVerb::Tree(_)))
    }
}

#[derive(Debug, Subcommand)]
enum DepVerb {
    /// Make one bead depend on another
    Add(AddArgs),
    /// Remove a dependency
    #[command(visible_alias = "rm")]
    Remove(RemoveArgs),
    /// List what beads depend on, or what depends on them
    List(ListArgs),
    /// Show everything a bead depends on
    Tree(TreeArgs),
    /// Look for circles
    Cycles,
    /// Relate two beads to each other; neither waits for the other
    Relate(RelateArgs),
    /// End such a relation
    Unrelate(RelateArgs),
}

#[derive(Debug, Args)]
struct RelateArgs {
    /// One bead
    #[arg(value_name = "ID")]
    one: String,
    /// The other
    #[arg(value_name = "ID")]
    other: String,
}

/// Make one bead depend on another
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd link gt-b gt-a --type related")]
pub(super) struct AddArgs {
    /// The bead that depends
    #[arg(value_name = "ISSUE", required_unless_present = "file")]
    issue: Option<String>,
    /// The bead it depends on
    #[arg(value_name = "DEPENDS-ON")]
    target: Option<String>,
    #[arg(long, visible_alias = "depends-on", value_name = "ID", conflicts_with = "target")]
    blocked_by: Option<String>,
    /// How: blocks, waits-for, parent-child, tracks, related, … or any other word
    #[arg(short = 't', long = "type", default_value = "blocks", value_name = "TYPE")]
    kind: String,
    /// Change the type of a dependency that is there
    #[arg(long)]
    retype: bool,
    /// Add every dependency of this JSONL file, lines of {from, to, type}, all or none (- is standard input)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["issue", "target", "blocked_by", "kind"])]
    file: Option<String>,
    #[arg(long, hide = true)]
    no_cycle_check: bool,
}

#[derive(Debug, Args)]
struct RemoveArgs {
    /// The bead that depends
    #[arg(value_name = "ISSUE")]
    issue: String,
    /// The bead it depends on
    #[arg(value_name = "DEPENDS-ON")]
    target: String,
    /// Only if it is of this type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    kind: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Direction {
    /// The beads it depends on
    Down,
    /// The beads that depend on it
    Up,
    /// Both
    Both,
}

impl Direction {
    fn looks(self) -> &'static [EdgeDirection] {
        match self {
            Self::Down => &[EdgeDirection::Down],
            Self::Up => &[EdgeDirection::Up],
            Self::Both => &[EdgeDirection::Down, EdgeDirection::Up],
        }
    }
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Ids, or parts of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Which way to look
    #[arg(long, default_value = "down")]
    direction: Direction,
    /// Only dependencies of this type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    kind: Option<String>,
}

#[derive(Debug, Args)]
struct TreeArgs {
    /// The bead at the root
    #[arg(value_name = "ID")]
    id: String,
    /// Which way to look
    #[arg(long, default_value = "down")]
    direction: Direction,
    /// How deep
    #[arg(short = 'd', long, default_value_t = TREE_DEPTH)]
    max_depth: usize,
    /// Print a diagram
    #[arg(long = "diagram", value_parser = ["mermaid"], value_name = "KIND")]
    diagram: Option<String>,
    /// The beads that depend on it; the same as --direction up
    #[arg(long, conflicts_with = "direction")]
    reverse: bool,
    /// Only beads with this status
    #[arg(long)]
    status: Option<String>,
}

pub(super) fn run(
    context: &CommandContext<'_>,
    args: DepArgs,
    diagram: bool,
) -> Result<(), CliError> {
    let printer = context.printer;
    match (args.verb, args.blocker, args.blocks) {
        (Some(DepVerb::Add(args)), ..) => run_add(context, args),
        (Some(DepVerb::Remove(args)), ..) => run_remove(context, &args),
        (Some(DepVerb::List(args)), ..) => run_list(context, &args),
        (Some(DepVerb::Tree(args)), ..) => run_tree(context, &args, diagram),
        (Some(DepVerb::Cycles), ..) => run_cycles(context),
        (Some(DepVerb::Relate(args)), ..) => run_relate(context, &args, true),
        (Some(DepVerb::Unrelate(args)), ..) => run_relate(context, &args, false),
        (None, Some(blocker), Some(blocked)) => {
            let town = context.store_town()?;
            let added = add(&town, &blocked, &blocker, &DependencyType::Blocks, false)?;
            if printer.json() {
                return printer.object(&BlockingEdgeDocument {
                    status: "added".to_owned(),
                    blocker_id: added.target.to_string(),
                    blocked_id: added.issue.to_string(),
                    r#type: "blocks".to_owned(),
                });
            }
            printer.done(format!("✓ Added dependency: {} blocks {}", added.target, added.issue))
        }
        _ => Err(CliError::request("what about it? bd dep add|remove|list|tree|cycles")),
    }
}

impl AddArgs {
    /// The two beads: which depends, and on which.
    fn ends(self) -> Result<(String, String), CliError> {
        match (self.issue, self.target.or(self.blocked_by)) {
            (Some(issue), Some(target)) => Ok((issue, target)),
            _ => Err(CliError::request("on which bead? bd dep add <issue> <depends-on>")),
        }
    }
}

/// The change that a line of a batch asks for.
pub(super) fn step(args: DepArgs) -> Result<BatchStep, CliError> {
    match args.verb {
        Some(DepVerb::Add(args)) if args.file.is_none() => {
            let kind = DependencyType::parse(&args.kind)?;
            let retype = args.retype;
            let (issue, target) = args.ends()?;
            Ok(BatchStep::AddDependency { issue, target, kind, retype })
        }
        Some(DepVerb::Remove(RemoveArgs { issue, target, kind })) => {
            let kind = kind.as_deref().map(DependencyType::parse).transpose()?;
            Ok(BatchStep::RemoveDependency { issue, target, kind })
        }
        _ => Err(CliError::request("a batch takes dep add <a> <b> [type] and dep remove <a> <b>")),
    }
}

pub(super) fn run_add(context: &CommandContext<'_>, args: AddArgs) -> Result<(), CliError> {
    if let Some(path) = &args.file {
        return run_add_file(context, path, args.retype);
    }
    let kind = DependencyType::parse(&args.kind)?;
    let retype = args.retype;
    let (issue, target) = args.ends()?;
    let town = context.store_town()?;
    let added = add(&town, &issue, &target, &kind, retype)?;
    let printer = context.printer;
    note_missing(printer, &added);
    if printer.json() {
        return printer.object(&added_document(&added));
    }
    print_added(printer, &added)
}

fn run_add_file(context: &CommandContext<'_>, path: &str, retype: bool) -> Result<(), CliError> {
    let lines = parse_dependency_lines(source_name(path), &text_of(path)?)?;
    let town = context.store_town()?;
    let wanted: Vec<WantedDependency> = lines
        .into_iter()
        .map(|DependencyLine { place, issue, target, kind }| WantedDependency {
            place,
            issue,
            target,
            kind,
        })
        .collect();
    let added = add_all(&town, &wanted, retype)?;
    let printer = context.printer;
    for added in &added {
        note_missing(printer, added);
    }
    if printer.json() {
        let mut list = printer.list();
        for added in &added {
            list.push(&added_document(added))?;
        }
        return list.finish();
    }
    added.iter().try_for_each(|added| print_added(printer, added))
}

fn added_document(added: &Added) -> EdgeDocument {
    EdgeDocument {
        status: "added".to_owned(),
        issue_id: added.issue.to_string(),
        depends_on_id: added.target.to_string(),
        r#type: Some(added.kind.to_string()),
    }
}

fn print_added(printer: &Printer, added: &Added) -> Result<(), CliError> {
    let Added { issue, target, kind, already, .. } = added;
    printer.done(if *already {
        format!("✓ {issue} already depends on {target} ({kind})")
    } else {
        format!("✓ Added dependency: {issue} depends on {target} ({kind})")
    })
}

/// Notes a dependency on a bead that does not exist here, which need not be a mistake.
pub(super) fn note_missing(printer: &Printer, added: &Added) {
    if !added.target_exists {
        bead_output::note_absent(printer, &added.target);
    }
}

fn run_remove(context: &CommandContext<'_>, args: &RemoveArgs) -> Result<(), CliError> {
    let kind = args.kind.as_deref().map(DependencyType::parse).transpose()?;
    let town = context.store_town()?;
    let (issue, target, removed) = remove(&town, &args.issue, &args.target, kind.as_ref())?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&EdgeDocument {
            status: "removed".to_owned(),
            issue_id: issue.to_string(),
            depends_on_id: target.to_string(),
            r#type: None,
        });
    }
    printer.done(if removed {
        format!("✓ Removed dependency: {issue} no longer depends on {target}")
    } else {
        format!("{issue} does not depend on {target}; nothing to do")
    })
}

fn run_relate(
    context: &CommandContext<'_>,
    args: &RelateArgs,
    related: bool,
) -> Result<(), CliError> {
    let (one, other) = relate(&context.store_town()?, &args.one, &args.other, related)?;
    let printer = context.printer;
    if printer.json() {
        let (id1, id2) = (one.to_string(), other.to_string());
        return printer.object(&RelationDocument { id1, id2, related });
    }
    printer.done(if related {
        format!("✓ {one} and {other} are related")
    } else {
        format!("✓ {one} and {other} are not related")
    })
}

fn run_list(context: &CommandContext<'_>, args: &ListArgs) -> Result<(), CliError> {
    let kind = args.kind.as_deref().map(DependencyType::parse).transpose()?;
    let town = context.store_town()?;
    let printer = context.printer;
    let several = args.ids.len() > 1;
    let mut found = Vec::new();
    for id in &args.ids {
        for look in args.direction.looks() {
            match neighbours(&town, id, *look, kind.as_ref()) {
                Ok((id, edges)) => found.push((id, *look, edges)),
                Err(error) if several => printer.note(format!("warning: {error}")),
                Err(error) => return Err(error.into()),
            }
        }
    }
    if printer.json() {
        let edges = || found.iter().flat_map(|(_, _, edges)| edges);
        let beads = edges().filter_map(|(_, bead)| bead.as_ref());
        let labels = bead_output::LabelsOf::read(&town, beads)?;
        let mut list = printer.list();
        for (edge, bead) in edges() {
            if several && args.direction == Direction::Down {
                let mut out = String::new();
                write_dependency(&mut out, edge);
                list.push_record(&out)?;
            } else if let Some(bead) = bead {
                list.push_record(&bead_output::linked(bead, labels.of(bead), &edge.kind))?;
            }
        }
        return list.finish();
    }
    for (id, look, edges) in &found {
        if edges.is_empty() {
            let nothing = if *look == EdgeDirection::Down {
                "depends on nothing"
            } else {
                "is needed by nothing"
            };
            printer.done(format!("{id} {nothing}"))?;
        }
        for (edge, bead) in edges {
            let (other, relation) = match look {
                EdgeDirection::Down => (&edge.target, "depends on"),
                EdgeDirection::Up => (&edge.issue, "is needed by"),
            };
            let what = bead.as_ref().map_or_else(|| "not here".to_owned(), describe);
            printer.line(format!("{id} {relation} {other} ({}) {what}", edge.kind))?;
        }
    }
    Ok(())
}

fn describe(bead: &Bead) -> String {
    format!("{} · {}", bead.status, bead.title)
}

fn run_tree(context: &CommandContext<'_>, args: &TreeArgs, diagram: bool) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let mut nodes = Vec::new();
    let direction = if args.reverse { Direction::Up } else { args.direction };
    for look in direction.looks() {
        let found = tree(&town, &args.id, *look, args.max_depth)?;
        // The root belongs to both directions but is shown once.
        nodes.extend(found.into_iter().skip(usize::from(!nodes.is_empty())));
    }
    if let Some(status) = &args.status {
        nodes.retain(|node| node.depth == 0 || node.bead.status.as_str() == status);
    }
    print_tree(printer, &town, &nodes, diagram)
}

/// Prints the trees of all beads that are not closed.
pub(super) fn run_forest(context: &CommandContext<'_>, diagram: bool) -> Result<(), CliError> {
    let town = context.store_town()?;
    print_tree(context.printer, &town, &forest(&town, TREE_DEPTH)?, diagram)
}

fn print_tree(
    printer: &Printer,
    town: &Town,
    nodes: &[TreeNode],
    diagram: bool,
) -> Result<(), CliError> {
    if diagram {
        return print_mermaid(printer, nodes);
    }
    if printer.json() {
        let labels = bead_output::LabelsOf::read(town, nodes.iter().map(|node| &node.bead))?;
        let mut list = printer.list();
        for node in nodes {
            list.push_record(&node_json(node, labels.of(&node.bead)))?;
        }
        return list.finish();
    }
    for node in nodes {
        let kind = node.kind.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        let more = if node.truncated { " …" } else { "" };
        printer.line(format!(
            "{}{}{kind} {}{more}",
            "  ".repeat(node.depth),
            node.bead.id,
            describe(&node.bead)
        ))?;
    }
    Ok(())
}

fn node_json(node: &TreeNode, labels: &[String]) -> String {
    let mut out = String::new();
    let view = BeadView { labels, ..BeadView::bare(&node.bead) };
    write_bead(&mut out, &view, |object| {
        object.count("depth", node.depth as u64);
        let above = node.above.as_ref().map_or("", |id| id.as_str());
        object.text("parent_id", above);
        if let Some(kind) = &node.kind {
            object.text("edge_from_parent", kind.as_str());
        }
        object.flag("truncated", node.truncated);
    });
    out
}

fn print_mermaid(printer: &Printer, nodes: &[TreeNode]) -> Result<(), CliError> {
    let name = |id: &str| id.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    printer.line("flowchart TD")?;
    for node in nodes {
        let (id, title) = (node.bead.id.as_str(), node.bead.title.as_str().replace('"', "'"));
        printer.line(format!("  {}[\"{id}: {title}\"]", name(id)))?;
        if let (Some(above), Some(kind)) = (&node.above, &node.kind) {
            printer.line(format!("  {} -->|{kind}| {}", name(above.as_str()), name(id)))?;
        }
    }
    Ok(())
}

fn run_cycles(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let found = cycles(&town)?;
    if printer.json() {
        let mut list = printer.list();
        for cycle in &found {
            let beads: Vec<String> =
                cycle.iter().map(|bead| bead_output::bare(bead, &[])).collect();
            list.push_record(&format!("[{}]", beads.join(",")))?;
        }
        return list.finish();
    }
    if found.is_empty() {
        return printer.done("No cycles");
    }
    for cycle in &found {
        let path: Vec<&str> = cycle.iter().map(|bead| bead.id.as_str()).collect();
        printer.line(format!("{} → {}", path.join(" → "), path[0]))?;
    }
    Ok(())
}
