//! `gt rig`.

mod check;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gt_api::RigDocument;
use gt_core::settings::rig_settings;
use gt_core::{ExecutorKind, Rig, RigState};
use gt_execution::landing::landing_checkout;
use gt_execution::merge_queue::remove_rig;
use gt_scheduling::queue;
use gt_town::rigs::{self, MayFetch, NewRig, RigChange};
use gt_town::settings::{self, layers_in};
use gt_town::town::known_repositories;
use gt_town::with_causes;

use super::config;
use super::daemon::note_daemon_absence;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, short_commit};

/// Add, list and look after the projects of the town
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt rig add web ~/src/web
  gt rig add api <git-url> --prefix api
  gt rig add nightly --executor process
  gt rig set web executor process
  gt rig check add web test \"npm test\"
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
    /// Change how a project is called, carried out or landed
    Set(SetArgs),
    /// Start nothing new in a project; scheduling stays possible
    Park(NameArgs),
    /// Let a parked project start work again
    Unpark(NameArgs),
    /// Take a project out of service
    Dock(NameArgs),
    /// Take a docked project back into service
    Undock(NameArgs),
    /// Add, list, remove and run the commands that work must pass before it lands
    Check(check::CheckArgs),
    /// Remove a project that has no open work; its beads and its directory stay
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Its name
    name: String,
    /// Its git repository: a URL or a path; none for work without code
    #[arg(value_name = "GIT-URL-OR-PATH")]
    repository: Option<String>,
    /// The prefix of the ids of its beads; by default derived from the name
    #[arg(short, long)]
    prefix: Option<String>,
    /// The branch that work lands on; asked from the repository if nothing is said
    #[arg(short, long)]
    branch: Option<String>,
    /// How its work is carried out: in a tmux session (the default for a repository, where tmux is there), as a plain
    /// process, or by agents that ask for it (pull)
    #[arg(long, value_name = "tmux|process|pull", value_parser = ExecutorKind::parse)]
    executor: Option<ExecutorKind>,
    /// The machine for --executor ssh, which is gone: the refusal names the commands that replace it
    #[arg(long, hide = true)]
    host: Option<String>,
    /// Print the checks that its files suggest, or add them
    #[arg(long, value_enum, default_value_t = SuggestedChecks::Print, value_name = "print|auto")]
    checks: SuggestedChecks,
}

/// The use of suggested checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SuggestedChecks {
    /// The commands that add them are printed
    Print,
    /// They are added
    Auto,
}

#[derive(Debug, Args)]
#[command(after_help = "What can be changed:
  executor  how its work is carried out: tmux or process; not while something of it runs
  title     what it is called; its name and its prefix stay
  branch    the branch that work begins from and lands on; what runs already lands where it began. If the
            origin has renamed it, finished work that has not landed yet lands on the new one
  merge, review, land, command and every other setting of the rig, as gt config set rig.<rig>.<setting>
            changes it; without a key, all of them are listed with their values

Examples:
  gt rig set web
  gt rig set web merge pr
  gt rig set web executor process
  gt rig set web branch trunk
  gt rig set web title \"The web shop\"")]
struct SetArgs {
    /// Its name
    #[arg(id = "rig", value_name = "NAME")]
    name: String,
    /// The key to change: executor, title, branch or a setting of the rig; nothing lists the settings
    #[arg(requires = "value")]
    key: Option<String>,
    /// The new value
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// The machine for executor ssh, which is gone: the refusal names the commands that replace it
    #[arg(long, hide = true)]
    host: Option<String>,
}

#[derive(Debug, Args)]
struct NameArgs {
    /// Its name
    #[arg(id = "rig", value_name = "NAME")]
    name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt rig remove web\n  gt rig remove web --force")]
struct RemoveArgs {
    /// Its name
    #[arg(id = "rig", value_name = "NAME")]
    name: String,
    /// Cancel its open merge requests, and save their commits for gt rescue; their beads stay open, without a project
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &RigArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let change = |args: &NameArgs, from: &[RigState], to: RigState, done: &str| {
        let (rig, changed) = rigs::set_state(&town, &args.name, from, to)?;
        if printer.json() {
            return printer.object(&RigDocument::from(&rig));
        }
        let name = &rig.slug;
        printer.done(if changed {
            format!("✓ The rig {name} is {done}")
        } else {
            format!("The rig {name} is {done} already; nothing to do")
        })
    };
    let serve_again = |args: &NameArgs, from: RigState| -> Result<(), CliError> {
        change(args, &[from], RigState::Active, "active")?;
        note_daemon_absence(printer, &town);
        Ok(())
    };
    match &args.verb {
        RigVerb::Add(args) => add(context, &town, args),
        RigVerb::List => list(printer, &town),
        RigVerb::Status(args) => status(printer, &town, &args.name),
        RigVerb::Set(args) => set(printer, &town, args),
        RigVerb::Park(args) => change(args, &[RigState::Active], RigState::Parked, "parked"),
        RigVerb::Unpark(args) => serve_again(args, RigState::Parked),
        RigVerb::Dock(args) => {
            change(args, &[RigState::Active, RigState::Parked], RigState::Docked, "docked")
        }
        RigVerb::Undock(args) => serve_again(args, RigState::Docked),
        RigVerb::Check(args) => check::run(context, args),
        RigVerb::Remove(args) => {
            let (rig, rescued) = remove_rig(&town, &args.name, args.force)?;
            // Files that stay there are ignored: the town has no such rig any more.
            let _ = known_repositories::forget(&context.environment, &rig.repo, town.root());
            if printer.json() {
                return printer.object(&RigDocument::from(&rig));
            }
            for one in &rescued {
                let commit = short_commit(&one.commit);
                printer.done(format!("Saved {commit} of {0}: gt rescue show {0}", one.run))?;
            }
            printer
                .done(format!("✓ Removed the rig {}; its beads and its directory stay", rig.slug))
        }
    }
}

fn add(context: &CommandContext<'_>, town: &gt_town::Town, args: &AddArgs) -> Result<(), CliError> {
    if args.host.is_some() {
        ExecutorKind::Ssh.refuse_removed()?;
    }
    let local = args.repository.as_ref().map(|given| context.directory.join(given));
    let local = local.filter(|path| path.exists()).map(|path| path.to_string_lossy().into_owned());
    let new = NewRig {
        name: &args.name,
        repository: local.as_deref().or(args.repository.as_deref()),
        prefix: args.prefix.as_deref(),
        branch: args.branch.as_deref(),
        executor: args.executor.unwrap_or_else(|| rigs::usual_executor(args.repository.is_some())),
    };
    let rig = rigs::add(town, &new)?;
    let printer = context.printer;
    let earlier = remember_repository(context, town, &rig);
    let is_accepted = args.checks == SuggestedChecks::Auto;
    let may_fetch = if is_accepted { MayFetch::Yes } else { MayFetch::No };
    let suggestions = match rigs::suggested_checks(town, &rig, may_fetch) {
        Err(_) if !is_accepted => Vec::new(),
        suggestions => suggestions?,
    };
    if printer.json() {
        if is_accepted {
            for check in &suggestions {
                rigs::add_check(town, rig.slug.as_str(), check)?;
            }
        }
        return printer.object(&RigDocument::from(&rig));
    }
    print_added(printer, town, &rig, earlier.as_deref())?;
    check::suggest(printer, town, &rig, &suggestions, is_accepted)?;
    printer.done(format!("Next: gt bd create \"What is to be done\" --rig {}", rig.slug))?;
    if rig.executor == ExecutorKind::Process {
        let hint = format!("Then: gt config set rig.{}.command '<program> {{bead}}'", rig.slug);
        printer.done(hint)?;
    }
    Ok(())
}

/// From now on commands in the repository of a rig mean its town. Gives the town that they meant before. The rig is there
/// also if that cannot be written down.
pub(super) fn remember_repository(
    context: &CommandContext<'_>,
    town: &gt_town::Town,
    rig: &Rig,
) -> Option<PathBuf> {
    if !rig.repo.starts_with('/') {
        return None;
    }
    let remembered = known_repositories::remember(&context.environment, &rig.repo, town.root());
    remembered.unwrap_or_else(|error| {
        let why = with_causes(&error);
        context
            .printer
            .note(format!("gt finds the town only from inside {}: {why}", town.root().display()));
        None
    })
}

/// Says that a rig was added, and what that means for the checkout of its user.
pub(super) fn print_added(
    printer: &Printer,
    town: &gt_town::Town,
    rig: &Rig,
    earlier: Option<&Path>,
) -> Result<(), CliError> {
    printer.done(format!("✓ Added the rig {} (prefix {})", rig.slug, rig.prefix))?;
    if let Some(earlier) = earlier {
        printer.done(format!(
            "Commands in {} mean this town from now on; before, {}",
            rig.repo,
            earlier.display()
        ))?;
    }
    let host = settings::get(town, &format!("rig.{}.host", rig.slug))?;
    if !host.value.is_empty() {
        printer.done(format!(
            "Its repository is a directory of this host, so only this host works on it (rig.{}.host)",
            rig.slug
        ))?;
    }
    if let Some(checkout) = landing_checkout(rig) {
        printer.done(format!(
            "Work lands in your checkout {}: {} is checked out there, so gt runs git merge --ff-only in it. Your \
             uncommitted changes stay; where a landing would touch them, it waits",
            checkout.display(),
            rig.default_branch
        ))?;
    }
    Ok(())
}

fn set(printer: &Printer, town: &gt_town::Town, args: &SetArgs) -> Result<(), CliError> {
    let rig = town.read(|reader| gt_town::rig_names::require(reader, &args.name))?;
    let setting_name = |key: &str| format!("rig.{}.{key}", rig.slug);
    let (Some(key), Some(value)) = (&args.key, &args.value) else {
        let all = rig_settings().map(|key| settings::get(town, &setting_name(key)));
        return config::print_settings(printer, &all.collect::<gt_town::Result<Vec<_>>>()?);
    };
    if args.host.is_some() {
        ExecutorKind::Ssh.refuse_removed()?;
    }
    if rig_settings().any(|name| name == key) {
        return config::set(printer, town, &setting_name(key), value);
    }
    let change = RigChange::parse(key, value).map_err(gt_town::OperationError::from)?;
    let (rig, changed) = rigs::change(town, &args.name, &change)?;
    if printer.json() {
        return printer.object(&RigDocument::from(&rig));
    }
    let (key, value) = match &change {
        RigChange::Executor(executor) => ("executor", executor.as_str()),
        RigChange::Title(title) => ("title", title.as_str()),
        RigChange::Branch(branch) => ("branch", branch.as_str()),
    };
    let name = &rig.slug;
    printer.done(if changed {
        format!("✓ The {key} of the rig {name} is {value}")
    } else {
        format!("The {key} of the rig {name} is {value} already; nothing to do")
    })
}

fn list(printer: &Printer, town: &gt_town::Town) -> Result<(), CliError> {
    let rigs = rigs::list(town)?;
    if printer.json() {
        let mut list = printer.list();
        for (rig, counts) in &rigs {
            list.push(&counted(rig, counts))?;
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

fn status(printer: &Printer, town: &gt_town::Town, name: &str) -> Result<(), CliError> {
    let (rig, counts) = rigs::status(town, name)?;
    let scheduled = queue::status(town)?.rigs.remove(rig.slug.as_str()).unwrap_or_default();
    if printer.json() {
        return printer.object(&RigDocument {
            queued: Some(scheduled.queued),
            ready: Some(scheduled.ready),
            running: Some(scheduled.running.into()),
            ..counted(&rig, &counts)
        });
    }
    let mut table = Table::wrapped();
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
    if let Some(words) = review_rule(town, &rig)? {
        table.row(vec![Cell::bold("review"), Cell::new(words)]);
    }
    table.row(vec![Cell::bold("queued"), Cell::new(scheduled.queued.to_string())]);
    table.row(vec![Cell::bold("running"), Cell::new(scheduled.running.to_string())]);
    printer.table(table)
}

/// The reviewer of the work of a rig, if it requires one.
fn review_rule(town: &gt_town::Town, rig: &Rig) -> Result<Option<&'static str>, CliError> {
    let settings = town.read(|reader| layers_in(town.root(), reader))?;
    let is_required = settings.rig_review(&rig.slug)? == "required";
    let is_protected = !settings.rig_protect(&rig.slug)?.is_empty();
    let by_pull_request = settings.rig_merge(&rig.slug)? == "pr";
    Ok(match (is_required, is_protected, by_pull_request) {
        (true, _, true) => Some("required, by the people who merge its pull requests"),
        (true, _, false) => Some("required (gt review)"),
        (false, true, true) => {
            Some("required for protected paths, by the people who merge its pull requests")
        }
        (false, true, false) => Some("required for protected paths (gt review)"),
        (false, false, _) => None,
    })
}

fn counted(rig: &Rig, counts: &[(String, i64)]) -> RigDocument {
    RigDocument { beads: Some(counts.iter().cloned().collect()), ..rig.into() }
}
