//! `bd show`.

use clap::Args;
use gt_api::{OrderedMap, PastBeadDocument, RawJson};
use gt_beads::beads::{
    BeadDetails, Mention, PastBead, References, bead_as_of, current_bead, references, show, thread,
};
use gt_core::{Bead, DependencyType, Outcome, Timestamp};
use gt_town::{OperationError, Town};

use super::activity::redraw_on_change;
use super::bead_output::{self, LabelsOf, ShownBeadParts};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, moment, short_commit};
use crate::values::instant_or_ago;

/// Show beads
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bd show gt-abc\n  bd show gt-abc gt-def --json\n  bd show gt-abc --refs"
)]
pub(super) struct ShowArgs {
    /// Ids, or parts of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[arg(long = "id", value_name = "ID", hide = true)]
    id_flags: Vec<String>,
    /// One line per bead
    #[arg(long)]
    short: bool,
    /// Also name what depends on it if nothing does
    #[arg(long, hide = true)]
    include_dependents: bool,
    /// Also name the comments if there are none
    #[arg(long, hide = true)]
    include_comments: bool,
    /// Your bead in progress or, if you have none, the one that you changed last
    #[arg(long, conflicts_with_all = ["ids", "id_flags"])]
    current: bool,
    /// Show it again after each change
    #[arg(short, long)]
    watch: bool,
    /// As it was then: a time, or how long ago (1h, "2 days ago")
    #[arg(long, value_name = "WHEN", conflicts_with = "watch", group = "view")]
    as_of: Option<String>,
    /// The whole conversation that it belongs to
    #[arg(long, group = "view")]
    thread: bool,
    /// Every field, also those that mean nothing to us
    #[arg(long, group = "view")]
    long: bool,
    /// Its direct parts instead of itself
    #[arg(long, group = "view")]
    children: bool,
    /// The beads that depend on it or mention it, instead of itself
    #[arg(long, group = "view")]
    refs: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ShowArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let inputs = if args.current {
        vec![current_bead(&town)?.to_string()]
    } else {
        [args.ids.as_slice(), args.id_flags.as_slice()].concat()
    };
    if inputs.is_empty() {
        return Err(CliError::request("which bead? bd show <id>"));
    }
    if args.watch {
        return redraw_on_change(context, &town, || print_all(context, &town, &inputs, args));
    }
    print_all(context, &town, &inputs, args)
}

fn print_all(
    context: &CommandContext<'_>,
    town: &Town,
    inputs: &[String],
    args: &ShowArgs,
) -> Result<(), CliError> {
    let printer = context.printer;
    if let Some(text) = &args.as_of {
        let at = instant_or_ago(text, town.now())?;
        return print_past(printer, town, inputs, at);
    }
    let conversation = if args.thread { thread(town, inputs)? } else { Vec::new() };
    let inputs = if args.thread { &conversation } else { inputs };
    if args.refs {
        return print_references(printer, &found(printer, references(town, inputs)?)?);
    }
    let found = found(printer, show(town, inputs)?)?;
    if args.children {
        return print_children(printer, town, &found);
    }
    if printer.json() {
        let targets = found.iter().flat_map(|shown| &shown.dependencies);
        let targets = targets.filter_map(|(_, bead)| bead.as_ref());
        let dependents = found.iter().flat_map(|shown| &shown.dependents).map(|(_, bead)| bead);
        let labels = &LabelsOf::read(town, targets.chain(dependents))?;
        let mut list = printer.list();
        for about in &found {
            let (dependents, comments) = (args.include_dependents, args.include_comments);
            let long = args.long;
            let parts = ShownBeadParts { about, labels, dependents, comments, long };
            list.push_record(&parts.json())?;
        }
        return list.finish();
    }
    if args.short {
        return bead_output::print_rows(
            printer,
            found.iter().map(|shown| (&shown.row, String::new())),
        );
    }
    for (at, shown) in found.iter().enumerate() {
        if at > 0 {
            printer.line("")?;
        }
        print(printer, shown, town.now())?;
        if args.long {
            print_rest(printer, shown)?;
        }
    }
    Ok(())
}

/// The beads that were found. Prints an error for each other one; it is a failure if none was found.
fn found<T>(
    printer: &Printer,
    results: Vec<Result<T, OperationError>>,
) -> Result<Vec<T>, CliError> {
    let mut found = Vec::new();
    for result in results {
        match result {
            Ok(one) => found.push(one),
            Err(error) => {
                printer.part_failed(&error.into());
            }
        }
    }
    if found.is_empty() {
        return Err(CliError::AlreadyTold("no issues found matching the provided IDs".to_owned()));
    }
    Ok(found)
}

fn print_children(printer: &Printer, town: &Town, found: &[BeadDetails]) -> Result<(), CliError> {
    if printer.json() {
        let all = found.iter().flat_map(BeadDetails::children).map(|(_, bead)| bead);
        let labels = &LabelsOf::read(town, all)?;
        let children = |shown: &BeadDetails| -> Vec<RawJson> {
            let children = shown.children();
            children
                .map(|(edge, bead)| {
                    RawJson::record(bead_output::linked(bead, labels.of(bead), &edge.kind))
                })
                .collect()
        };
        let by_id = found.iter().map(|shown| (shown.row.bead.id.to_string(), children(shown)));
        return printer.object(&by_id.collect::<OrderedMap<_>>());
    }
    for shown in found {
        let (total, closed) = shown.children_counts();
        let count = match total {
            0 => "no children".to_owned(),
            1 => format!("1 child, {closed} closed"),
            many => format!("{many} children, {closed} closed"),
        };
        let bead = &shown.row.bead;
        printer.heading(bead.id.as_str(), &format!("  {} ({count})", bead.title))?;
        let mut table = Table::new();
        for (_, child) in shown.children() {
            table.row(bead_output::cells(child, &[], ""));
        }
        printer.table(table)?;
    }
    Ok(())
}

/// Prints the main fields of beads at some time.
fn print_past(
    printer: &Printer,
    town: &Town,
    inputs: &[String],
    at: Timestamp,
) -> Result<(), CliError> {
    let past = inputs.iter().map(|input| bead_as_of(town, input, at)).collect();
    let past: Vec<PastBead> = found(printer, past)?;
    if printer.json() {
        let mut list = printer.list();
        for PastBead { id, state } in &past {
            list.push(&PastBeadDocument {
                id: id.to_string(),
                title: state.title.clone(),
                status: state.status.to_string(),
                priority: state.priority.number(),
                issue_type: state.issue_type.to_string(),
                assignee: state.assignee.clone(),
                as_of: at.to_string(),
            })?;
        }
        return list.finish();
    }
    past.iter().try_for_each(|PastBead { id, state }| {
        printer.heading(id.as_str(), &format!("  {} (as of {})", state.title, moment(at)))?;
        let assignee = match state.assignee.as_str() {
            "" => String::new(),
            name => format!(" · @{name}"),
        };
        let (priority, kind, status) = (state.priority, &state.issue_type, &state.status);
        printer.line(format!("{priority} · {kind} · {status}{assignee}"))
    })
}

fn print_references(printer: &Printer, found: &[References]) -> Result<(), CliError> {
    if printer.json() {
        let references = |found: &References| -> Vec<RawJson> {
            let linked = found.dependents.iter();
            let linked = linked.map(|(edge, bead)| bead_output::linked(bead, &[], &edge.kind));
            let mentioning = found.mentions.iter().map(bead_output::mentioning);
            linked.chain(mentioning).map(RawJson::record).collect()
        };
        let by_id = found.iter().map(|found| (found.bead.id.to_string(), references(found)));
        return printer.object(&by_id.collect::<OrderedMap<_>>());
    }
    for References { bead, dependents, mentions } in found {
        printer.heading(bead.id.as_str(), &format!("  {}", bead.title))?;
        if dependents.is_empty() && mentions.is_empty() {
            printer.line("  no bead refers to it")?;
        }
        let mut kinds: Vec<&DependencyType> =
            dependents.iter().map(|(edge, _)| &edge.kind).collect();
        kinds.sort_by_key(|kind| kind.as_str().to_owned());
        kinds.dedup();
        for kind in kinds {
            printer.line(format!("  {kind}"))?;
            for (_, other) in dependents.iter().filter(|(edge, _)| edge.kind == *kind) {
                printer.line(format!("    {} {} · {}", other.id, other.status, other.title))?;
            }
        }
        if !mentions.is_empty() {
            printer.line("  mentions")?;
        }
        for Mention { bead: other, fields } in mentions {
            let fields = fields.join(", ");
            printer.line(format!(
                "    {} {} · {} (in {fields})",
                other.id, other.status, other.title
            ))?;
        }
    }
    Ok(())
}

/// Prints the fields that a reader rarely needs.
fn print_rest(printer: &Printer, shown: &BeadDetails) -> Result<(), CliError> {
    let bead = &shown.row.bead;
    let flags = [
        ("ephemeral", bead.ephemeral),
        ("no_history", bead.no_history),
        ("pinned", bead.pinned),
        ("is_template", bead.is_template),
    ];
    let flags: Vec<&str> =
        flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    let time = |at: Option<Timestamp>| at.map(moment).unwrap_or_default();
    let mut facts = vec![
        ("uid", bead.uid.to_string()),
        ("owner", bead.owner.clone()),
        ("created_at", moment(bead.created_at)),
        ("updated_at", moment(bead.updated_at)),
        ("started_at", time(bead.started_at)),
        ("closed_at", time(bead.closed_at)),
        ("estimated_minutes", bead.estimated_minutes.map(|n| n.to_string()).unwrap_or_default()),
        ("external_ref", bead.external_ref.clone().unwrap_or_default()),
        ("flags", flags.join(", ")),
        ("open_blockers", bead.open_blockers.to_string()),
        ("events", shown.events.to_string()),
    ];
    facts.extend(bead.carried.iter().map(|(name, value)| (name.as_str(), value.to_string())));
    printer.line("")?;
    printer.heading("All fields", "")?;
    let mut table = Table::new();
    for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        table.row(vec![Cell::new(format!("  {name}")), Cell::new(value)]);
    }
    printer.table(table)
}

fn print(printer: &Printer, shown: &BeadDetails, now: Timestamp) -> Result<(), CliError> {
    let bead = &shown.row.bead;
    let section = |name: &str| {
        printer.line("")?;
        printer.heading(name, "")
    };
    printer.heading(bead.id.as_str(), &format!("  {}", bead.title))?;
    let mut facts =
        vec![bead.priority.to_string(), bead.issue_type.to_string(), bead.status.to_string()];
    if let Some(outcome) = bead.outcome {
        facts.push(outcome.as_str().to_owned());
    }
    if !bead.assignee.is_empty() {
        facts.push(format!("@{}", bead.assignee));
    }
    if let Some(rig) = &bead.rig {
        facts.push(format!("rig {rig}"));
    }
    printer.line(facts.join(" · "))?;
    let creator =
        if bead.created_by.is_empty() { String::new() } else { format!(" by {}", bead.created_by) };
    printer.line(format!(
        "created {}{creator}, changed {}",
        ago(bead.created_at, now),
        ago(bead.updated_at, now)
    ))?;
    if let Some(closed_at) = bead.closed_at {
        printer.line(format!("closed {}: {}", ago(closed_at, now), bead.close_reason))?;
    }
    if let Some(request) = &shown.landed {
        let commit = short_commit(&request.landed);
        printer.line(format!("landed on {} as {commit} ({})", request.target, request.id))?;
    }
    for (name, at) in [("due", bead.due_at), ("deferred until", bead.defer_until)] {
        if let Some(at) = at {
            printer.line(format!("{name} {}", moment(at)))?;
        }
    }
    if bead.issue_type.is_epic() {
        let (total, closed) = shown.children_counts();
        let has_failed = |(_, part): &&(_, Bead)| part.outcome == Some(Outcome::Failed);
        let failed = shown.children().filter(has_failed).count();
        let but = if failed == 0 { String::new() } else { format!(", failed: {failed}") };
        printer.line(format!("parts: {}/{total} done{but}", closed.saturating_sub(failed)))?;
    }
    if !shown.row.labels.is_empty() {
        printer.line(format!("labels: {}", shown.row.labels.join(", ")))?;
    }
    for (name, text) in [
        ("Description", &bead.description),
        ("Design", &bead.design),
        ("Acceptance criteria", &bead.acceptance_criteria),
        ("Notes", &bead.notes),
    ] {
        if !text.is_empty() {
            section(name)?;
            printer.text(text.trim_end())?;
        }
    }
    if let Some(metadata) = &bead.metadata {
        section("Metadata")?;
        printer.line(metadata.as_str())?;
    }
    if !shown.dependencies.is_empty() {
        section("Depends on")?;
        for (edge, target) in &shown.dependencies {
            let state = target.as_ref().map_or_else(
                || "not here".to_owned(),
                |bead| format!("{} · {}", bead.status, bead.title),
            );
            printer.line(format!("  {} ({}) {state}", edge.target, edge.kind))?;
        }
    }
    if !shown.dependents.is_empty() {
        section("Needed by")?;
        for (edge, bead) in &shown.dependents {
            printer
                .line(format!("  {} ({}) {} · {}", bead.id, edge.kind, bead.status, bead.title))?;
        }
    }
    if !shown.comments.is_empty() {
        section("Comments")?;
        for comment in &shown.comments {
            let when = ago(comment.created_at, now);
            let said = comment.text.trim_end();
            printer.text(&format!("  {} ({when}): {said}", comment.author))?;
        }
    }
    Ok(())
}
