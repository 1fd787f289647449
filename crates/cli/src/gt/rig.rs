//! `gt rig`.

use clap::{Args, Subcommand};
use gt_core::{Rig, RigState};
use gt_operations::rigs::{self, NewRig};
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table};

/// Add, list and look after the projects of the town
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt rig add web ~/src/web
  gt rig add api <git-url> --prefix api
  gt rig park web")]
pub(super) struct RigArgs {
    #[command(subcommand)]
    verb: RigVerb,
}

#[derive(Debug, Subcommand)]
enum RigVerb {
    /// Add a project
    Add(AddArgs),
    /// List the projects
    List,
    /// Show one project
    Status(NameArgs),
    /// Start nothing new in a project; scheduling stays possible
    Park(NameArgs),
    /// Let a parked project start work again
    Unpark(NameArgs),
    /// Take a project out of service
    Dock(NameArgs),
    /// Take a docked project back into service
    Undock(NameArgs),
    /// Remove a project that has no open work; its beads and its directory stay
    Remove(NameArgs),
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Its name
    name: String,
    /// Its git repository: a URL or a path; none for work without code
    #[arg(value_name = "GIT-URL-OR-PATH")]
    repository: Option<String>,
    /// What the ids of its beads begin with; derived from the name if nothing is said
    #[arg(short, long)]
    prefix: Option<String>,
    /// The branch that work lands on; asked from the repository if nothing is said
    #[arg(short, long)]
    branch: Option<String>,
}

#[derive(Debug, Args)]
struct NameArgs {
    /// Its name
    name: String,
}

pub(super) fn run(context: &Context<'_>, args: &RigArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let change = |args: &NameArgs, from: &[RigState], to: RigState, done: &str| {
        let (rig, changed) = rigs::set_state(&town, &args.name, from, to)?;
        if printer.json() {
            return printer.object(&json(&rig, None));
        }
        let name = &rig.slug;
        printer.done(if changed {
            format!("✓ The rig {name} is {done}")
        } else {
            format!("The rig {name} is {done} already; nothing to do")
        })
    };
    match &args.verb {
        RigVerb::Add(args) => add(context, &town, args),
        RigVerb::List => list(printer, &town),
        RigVerb::Status(args) => status(printer, &town, &args.name),
        RigVerb::Park(args) => change(args, &[RigState::Active], RigState::Parked, "parked"),
        RigVerb::Unpark(args) => change(args, &[RigState::Parked], RigState::Active, "active"),
        RigVerb::Dock(args) => {
            change(args, &[RigState::Active, RigState::Parked], RigState::Docked, "docked")
        }
        RigVerb::Undock(args) => change(args, &[RigState::Docked], RigState::Active, "active"),
        RigVerb::Remove(args) => {
            let rig = rigs::remove(&town, &args.name)?;
            if printer.json() {
                return printer.object(&json(&rig, None));
            }
            printer
                .done(format!("✓ Removed the rig {}; its beads and its directory stay", rig.slug))
        }
    }
}

fn add(context: &Context<'_>, town: &gt_operations::Town, args: &AddArgs) -> Result<(), CliError> {
    let local = args.repository.as_ref().map(|given| context.directory.join(given));
    let local = local.filter(|path| path.exists()).map(|path| path.to_string_lossy().into_owned());
    let new = NewRig {
        name: &args.name,
        repository: local.as_deref().or(args.repository.as_deref()),
        prefix: args.prefix.as_deref(),
        branch: args.branch.as_deref(),
    };
    let rig = rigs::add(town, &new)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&json(&rig, None));
    }
    printer.done(format!("✓ Added the rig {} (prefix {})", rig.slug, rig.prefix))?;
    printer.done(format!("Next: gt bd create \"What is to be done\" --rig {}", rig.slug))
}

fn list(printer: &Printer, town: &gt_operations::Town) -> Result<(), CliError> {
    let rigs = rigs::list(town)?;
    if printer.json() {
        let mut list = printer.list();
        for (rig, counts) in &rigs {
            list.push(&json(rig, Some(counts)))?;
        }
        return list.finish();
    }
    if rigs.is_empty() {
        return printer.done("No rigs yet; add one with gt rig add <name> <git-url-or-path>");
    }
    let mut table =
        Table::with_header(&["RIG", "PREFIX", "STATE", "OPEN", "ACTIVE", "CLOSED", "REPOSITORY"]);
    for (rig, counts) in &rigs {
        let count = |names: &[&str]| {
            let matching = counts.iter().filter(|(status, _)| names.contains(&status.as_str()));
            matching.map(|(_, count)| count).sum::<i64>().to_string()
        };
        table.row(vec![
            Cell::new(rig.slug.as_str()),
            Cell::new(rig.prefix.as_str()),
            Cell::new(rig.state.as_str()),
            Cell::new(count(&["open", "blocked", "deferred"])),
            Cell::new(count(&["in_progress", "hooked"])),
            Cell::new(count(&["closed"])),
            Cell::new(rig.repo.as_str()),
        ]);
    }
    printer.table(table)
}

fn status(printer: &Printer, town: &gt_operations::Town, name: &str) -> Result<(), CliError> {
    let (rig, counts) = rigs::status(town, name)?;
    if printer.json() {
        return printer.object(&json(&rig, Some(&counts)));
    }
    let mut table = Table::new();
    let directory = town.root().join(&rig.path).display().to_string();
    for (name, value) in [
        ("rig", rig.slug.as_str()),
        ("prefix", rig.prefix.as_str()),
        ("state", rig.state.as_str()),
        ("executor", rig.executor.as_str()),
        ("directory", &directory),
        ("repository", &rig.repo),
        ("branch", &rig.default_branch),
    ] {
        table.row(vec![Cell::bold(name), Cell::new(value)]);
    }
    for (status, count) in counts {
        table.row(vec![Cell::bold(format!("beads {status}")), Cell::new(count.to_string())]);
    }
    printer.table(table)
}

fn json(rig: &Rig, counts: Option<&Vec<(String, i64)>>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("name", rig.slug.as_str());
    object.text("uid", &rig.uid.to_string());
    object.text("title", &rig.title);
    object.text("prefix", rig.prefix.as_str());
    object.text("path", &rig.path);
    object.text("repo", &rig.repo);
    object.text("default_branch", &rig.default_branch);
    object.text("executor", rig.executor.as_str());
    object.text("state", rig.state.as_str());
    object.timestamp("created_at", rig.created_at);
    object.timestamp("updated_at", rig.updated_at);
    if let Some(counts) = counts {
        object.object("beads", |object| {
            for (status, count) in counts {
                object.number(status, *count);
            }
        });
    }
    object.finish();
    out
}
