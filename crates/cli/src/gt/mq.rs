//! `gt mq`: the merge queue.

use clap::{Args, Subcommand};
use gt_api::{
    FailedCheckDocument, FlakyCheckDocument, MergeRequestDocument, MergeRequestStoryDocument,
    QueuePauseDocument,
};
use gt_core::hosting::{FeedbackTrust, ShownFeedback};
use gt_core::merging::{MergeMethod, MergeRequest, PullRequestName, RequestPurpose, RequestState};
use gt_daemon::daemon::{self, DaemonAbsence};
use gt_daemon::views::{self, absence_document};
use gt_execution::merge_queue::{self, LineEntry, PassReport, QueueName, RequestStory};
use gt_town::Town;
use gt_town::rigs::branch_name;

use super::daemon::{note_daemon_absence, print_daemon_absence};
use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, local_times, moment, short_commit};

/// See and steer the merge queue: finished work on its way to the target branch
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt mq list
  gt mq show gt-abc
  gt mq retry gt-abc@1")]
pub(super) struct MqArgs {
    #[command(subcommand)]
    verb: MqVerb,
}

#[derive(Debug, Subcommand)]
enum MqVerb {
    /// List what has not landed yet, in the order of its turn
    #[command(after_help = "Examples:\n  gt mq list\n  gt mq list --rig web --json")]
    List(ListArgs),
    /// Show how a merge request, a bead's work or a landed commit got where it is
    #[command(
        after_help = "Examples:\n  gt mq show gt-abc\n  gt mq show gt-abc@2\n  gt mq show 3f9c2d1"
    )]
    Show(RequestArgs),
    /// Show the output of the check that failed with a merge request, or with the branch that it waits for
    #[command(after_help = "Examples:\n  gt mq log gt-abc@1")]
    Log(RequestArgs),
    /// List checks that passed after they had failed on the same tree
    #[command(after_help = "Examples:\n  gt mq flaky")]
    Flaky,
    /// Look at the open pull requests, and at work that people merge, now
    #[command(after_help = "Examples:\n  gt mq sync\n  gt mq sync web")]
    Sync(SyncArgs),
    /// Build, check and land what can land now
    #[command(after_help = "Examples:\n  gt mq run")]
    Run,
    /// Let nothing land on a branch until it is resumed
    #[command(after_help = "Examples:\n  gt mq pause web\n  gt mq pause web --branch release")]
    Pause(QueueArgs),
    /// Let work land on a branch again
    #[command(after_help = "Examples:\n  gt mq resume web")]
    Resume(QueueArgs),
    /// Try a merge request again now
    #[command(after_help = "Examples:\n  gt mq retry gt-abc@1")]
    Retry(RequestArgs),
    /// Give a merge request up; its bead is open again, and its branch stays
    #[command(after_help = "Examples:\n  gt mq cancel gt-abc@1")]
    Cancel(RequestArgs),
    /// Put a merge request before all others
    #[command(after_help = "Examples:\n  gt mq top gt-abc@1\n  gt mq top gt-abc@1 --fix")]
    Top(TopArgs),
    /// Close the bead of work that people have merged, or do not want merged
    #[command(after_help = "Examples:\n  gt mq close gt-abc@1 -m \"merged by hand\"")]
    Close(CloseArgs),
    /// Undo work that has landed, by a commit that passes the same checks; its bead is open again
    #[command(
        after_help = "Examples:\n  gt mq revert gt-abc -m \"it breaks the login\"\n  gt mq revert 3f9c2d1 -m \"too slow\""
    )]
    Revert(RevertArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only those of this rig
    #[arg(long)]
    rig: Option<String>,
}

#[derive(Debug, Args)]
struct RequestArgs {
    /// A merge request such as gt-abc@1, or a bead for its last one
    request: String,
}

#[derive(Debug, Args)]
struct SyncArgs {
    /// Only those of this rig
    rig: Option<String>,
}

#[derive(Debug, Args)]
struct QueueArgs {
    /// The rig
    rig: String,
    /// The target branch; by default the rig's own
    #[arg(long, value_parser = branch_name)]
    branch: Option<String>,
}

#[derive(Debug, Args)]
struct TopArgs {
    /// A merge request such as gt-abc@1, or a bead for its last one
    request: String,
    /// Let it land even while a check fails on the target, if they pass with it
    #[arg(long)]
    fix: bool,
}

#[derive(Debug, Args)]
struct CloseArgs {
    /// A merge request such as gt-abc@1, or a bead for its last one
    request: String,
    /// Why
    #[arg(short, long)]
    message: String,
}

#[derive(Debug, Args)]
struct RevertArgs {
    /// A merge request such as gt-abc@1, a bead, or the commit that it landed as
    work: String,
    /// Why
    #[arg(short, long)]
    message: String,
}

pub(super) fn run(context: &CommandContext<'_>, args: &MqArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let town = context.town()?;
    match &args.verb {
        MqVerb::List(args) => list(context, &town, args),
        MqVerb::Show(args) => show(context, &town, &args.request),
        MqVerb::Log(args) => log(context, &town, &args.request),
        MqVerb::Flaky => flaky(context, &town),
        MqVerb::Run => {
            let report = merge_queue::pass(&town, &this_program()?)?;
            print_pass(printer, &town, &report)
        }
        MqVerb::Sync(args) => {
            let rig = args.rig.as_deref();
            let rig = rig.map(|name| town.read(|reader| gt_town::rig_names::require(reader, name)));
            let rig = rig.transpose()?.map(|rig| rig.slug);
            let report = merge_queue::sync(&town, &this_program()?, rig.as_ref())?;
            print_changes(
                printer,
                &town,
                &report,
                "No news about pull requests or about work that people merge",
            )
        }
        MqVerb::Pause(args) => pause(context, &town, args, true),
        MqVerb::Resume(args) => resume(context, &town, args),
        MqVerb::Retry(args) => {
            let request = merge_queue::retry(&town, &args.request)?;
            changed(printer, &town, &request, "is in line again")
        }
        MqVerb::Cancel(args) => {
            let request = merge_queue::cancel_request(&town, &args.request)?;
            let mut words = match request.purpose {
                RequestPurpose::Work | RequestPurpose::Integration => {
                    format!("is cancelled; {} keeps its commits", request.branch)
                }
                RequestPurpose::Revert => {
                    format!("is cancelled, and {} is closed again", request.id.bead)
                }
            };
            if request.pull_request.number.is_some() {
                words = format!("{words}, and {} stays open", request.pull_request);
            }
            changed(printer, &town, &request, &words)
        }
        MqVerb::Top(args) => {
            let request = merge_queue::put_on_top(&town, &args.request, args.fix)?;
            changed(printer, &town, &request, "goes before all others")
        }
        MqVerb::Close(args) => {
            let request = merge_queue::close_unmerged(&town, &args.request, &args.message)?;
            let words = format!("is over, and {} is closed", request.id.bead);
            changed(printer, &town, &request, &words)
        }
        MqVerb::Revert(args) => {
            let request = merge_queue::revert(&town, &this_program()?, &args.work, &args.message)?;
            let request = daemon::land_without_daemon(&town, &this_program()?, request)?;
            if printer.json() {
                return printer.object(&document(&town, &request, None)?);
            }
            if request.state == RequestState::Landed {
                return printer.done(format!(
                    "✓ Reverted {} on {} as {}; it is open again",
                    request.id.bead,
                    request.target,
                    short_commit(&request.landed)
                ));
            }
            let reason = local_times(&request.state_reason());
            printer.done(format!("✓ {reason}; {}", request.next_step()))
        }
    }
}

/// Prints what a pass has changed.
fn print_pass(printer: &Printer, town: &Town, report: &PassReport) -> Result<(), CliError> {
    print_changes(printer, town, report, "Nothing to land now")
}

fn print_changes(
    printer: &Printer,
    town: &Town,
    report: &PassReport,
    nothing: &str,
) -> Result<(), CliError> {
    for (QueueName { rig, target }, why) in &report.problems {
        printer.note(match target.as_str() {
            "" => format!("note: nothing is known about the pull requests of {rig}: {why}"),
            target => format!("note: nothing lands on {target} of {rig}: {why}"),
        });
    }
    for QueueName { rig, target } in &report.elsewhere {
        printer.note(format!("note: another host works on the queue of {target} of {rig}"));
    }
    if printer.json() {
        let mut list = printer.list();
        for request in &report.changed {
            list.push(&document(town, request, None)?)?;
        }
        return list.finish();
    }
    if report.changed.is_empty() {
        return printer.done(nothing);
    }
    for request in &report.changed {
        printer.line(state_line(request))?;
    }
    Ok(())
}

/// A request in one line.
pub(super) fn state_line(request: &MergeRequest) -> String {
    match request.state {
        RequestState::Landed => format!(
            "✓ {} landed on {} as {}",
            request.id,
            request.target,
            short_commit(&request.landed)
        ),
        _ => format!("  {}", local_times(&request.state_reason())),
    }
}

fn changed(
    printer: &Printer,
    town: &Town,
    request: &MergeRequest,
    words: &str,
) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&document(town, request, None)?);
    }
    printer.done(format!("✓ {} {words}", request.id))
}

pub(super) fn document(
    town: &Town,
    request: &MergeRequest,
    position: Option<u64>,
) -> Result<MergeRequestDocument, CliError> {
    let title = town.read(|reader| Ok(reader.bead(&request.id.bead)?))?;
    let title = title.map(|bead| bead.title.to_string()).unwrap_or_default();
    Ok(MergeRequestDocument::new(request, &title, position))
}

/// Whether merge requests or pull requests wait for a daemon that does not run.
fn daemon_absence(town: &Town) -> Result<Option<DaemonAbsence>, CliError> {
    let absence = daemon::absence(town, &gt_scheduling::queue::status(town)?)?;
    Ok(absence.filter(|absence| absence.has_merging() || absence.pull_requests > 0))
}

/// The document of a request, which says if it waits for a daemon that does not run.
fn with_absence(
    request: &MergeRequest,
    title: &str,
    position: Option<u64>,
    absence: Option<DaemonAbsence>,
) -> MergeRequestDocument {
    let absence = absence.filter(|absence| absence.concerns(request));
    MergeRequestDocument {
        daemon_absence: absence_document(absence),
        ..MergeRequestDocument::new(request, title, position)
    }
}

fn list(context: &CommandContext<'_>, town: &Town, args: &ListArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let rig = args
        .rig
        .as_deref()
        .map(|name| town.read(|reader| gt_town::rig_names::require(reader, name)));
    let rig = rig.transpose()?.map(|rig| rig.slug);
    let (entries, queues) = merge_queue::line(town)?;
    let is_meant = |entry: &&LineEntry| rig.as_ref().is_none_or(|rig| entry.request.rig == *rig);
    let entries: Vec<&LineEntry> = entries.iter().filter(is_meant).collect();
    let absence = daemon_absence(town)?;
    if printer.json() {
        let mut list = printer.list();
        for LineEntry { request, title, position } in &entries {
            list.push(&with_absence(request, title, *position, absence))?;
        }
        return list.finish();
    }
    print_daemon_absence(printer, absence)?;
    for queue in queues.iter().filter(|queue| rig.as_ref().is_none_or(|rig| queue.rig == *rig)) {
        if let Some((at, by)) = &queue.paused {
            printer.line(format!(
                "{target} of {rig} is paused by {by} since {}: gt mq resume {rig} --branch {target}",
                moment(*at),
                target = queue.target,
                rig = queue.rig
            ))?;
        }
        if let Some(red) = &queue.red {
            printer.line(format!(
                "{} of {} is red: {} fails at {} since {}",
                queue.target,
                queue.rig,
                red.check,
                short_commit(&red.commit),
                moment(red.since)
            ))?;
        }
    }
    let has_pull_requests = entries.iter().any(|it| it.request.pull_request.number.is_some());
    let mut header = vec!["REQUEST", "TARGET", "STATE", "SINCE", "TITLE"];
    header.extend(has_pull_requests.then_some("PULL REQUEST"));
    let mut table = Table::with_header(&header).droppable(&["SINCE", "TARGET"]);
    for LineEntry { request, title, position } in &entries {
        let state = match position {
            Some(position) => format!("queued, {position}"),
            None => request.state.to_string(),
        };
        let mut row = vec![
            Cell::new(request.id.to_string()),
            Cell::new(format!("{}/{}", request.rig, request.target)),
            Cell::new(state),
            Cell::new(ago(request.changed_at, town.now())),
            Cell::new(title.as_str()),
        ];
        if has_pull_requests {
            let PullRequestName { number, address, .. } = &request.pull_request;
            let number = number.map(|number| format!("{number} {address}"));
            row.push(Cell::new(number.unwrap_or_default()));
        }
        table.row(row);
    }
    if entries.is_empty() {
        return printer.done("The merge queue is empty");
    }
    printer.table(table)
}

fn show(context: &CommandContext<'_>, town: &Town, input: &str) -> Result<(), CliError> {
    let printer = context.printer;
    let story = merge_queue::story(town, input)?;
    let absence = daemon::absence_for_request(town, &story.request)?;
    if printer.json() {
        let document = views::story_document(&story);
        let daemon_absence = absence_document(absence);
        return printer.object(&MergeRequestStoryDocument {
            request: MergeRequestDocument { daemon_absence, ..document.request },
            ..document
        });
    }
    let next = story.next_step();
    let RequestStory {
        request,
        title,
        candidate,
        checks,
        reviews,
        pull_request_waits_for,
        pull_request_texts,
        spent,
        ..
    } = story;
    print_daemon_absence(printer, absence)?;
    printer.heading(&request.id.to_string(), &format!("  {title}"))?;
    let mut table = Table::wrapped();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![Cell::bold(name), Cell::new(value)]);
        }
    };
    row("state", request.state.to_string());
    row("why", request.detail.clone());
    row("queue", queue_stop(&request));
    row("target", format!("{} of {}", request.target, request.rig));
    row("branch", request.branch.clone());
    if request.pull_request.number.is_some() {
        row("pull request", request.pull_request.to_string());
    }
    row("pushed as", request.pull_request.branch.clone());
    row("waits for", pull_request_waits_for);
    row("accepted", short_commit(&request.accepted).to_owned());
    row("landed", short_commit(&request.landed).to_owned());
    row("run", request.run().map(|run| run.to_string()).unwrap_or_default());
    row("cost", if spent.is_nothing() { String::new() } else { spent.to_string() });
    row("made", moment(request.created_at));
    row("since", moment(request.changed_at));
    if let Some(candidate) = &candidate {
        let others = candidate.parts.iter().filter(|part| part.request != request.id);
        let others: Vec<String> = others.map(|part| part.request.to_string()).collect();
        let tip = short_commit(&candidate.tip);
        match request.method {
            MergeMethod::Direct => row("checked", "no: direct work lands unchecked".to_owned()),
            _ if checks.is_empty() => row("checked", "no: its rig had no checks".to_owned()),
            _ => row("checked as", tip.to_owned()),
        }
        row("together with", others.join(", "));
        for (check, run) in &checks {
            let how = if check.cached { "passed before on the same content" } else { "passed" };
            let flaky = run.as_ref().filter(|run| run.flaky);
            let flaky = flaky.map(|run| format!(", flaky: it passed on try {}", run.attempt));
            row("check", format!("{}: {how}{}", check.name, flaky.unwrap_or_default()));
        }
    }
    for review in &reviews {
        let words = format!("{} by {}  {}", review.decision.as_str(), review.actor, review.body);
        row("review", words.trim_end().to_owned());
    }
    row("next", next);
    printer.table(table)?;
    let (to_answer, shown): (Vec<&ShownFeedback>, Vec<&ShownFeedback>) =
        pull_request_texts.iter().partition(|text| text.trust == FeedbackTrust::StartsRepair);
    for (what, texts) in [("are to be answered", to_answer), ("start no repair", shown)] {
        if texts.is_empty() {
            continue;
        }
        printer.line(format!(
            "\nComments on the pull request that {what}, as they were written there:"
        ))?;
        for text in texts {
            text.quoted().lines().try_for_each(|line| printer.line(line))?;
        }
    }
    Ok(())
}

/// The stop of the queue of a request that waits for it; empty if there is none.
fn queue_stop(request: &MergeRequest) -> String {
    if let Some((since, by)) = request.waits_for_resume() {
        return format!("paused by {by} since {}", moment(*since));
    }
    if let Some(check) = request.waits_for_target() {
        return format!("{check} fails on {} itself", request.target);
    }
    let blocker = request.queue_stop.blocker.as_ref();
    blocker
        .map(|blocker| format!("{blocker}, which it is built on, lands first"))
        .unwrap_or_default()
}

fn log(context: &CommandContext<'_>, town: &Town, input: &str) -> Result<(), CliError> {
    let printer = context.printer;
    let found = merge_queue::failed_check(town, input)?;
    let (run, output) =
        found.ok_or_else(|| CliError::request(format!("no check has failed with {input}")))?;
    if printer.json() {
        return printer.object(&FailedCheckDocument {
            check: run.name,
            commit: run.commit,
            exit_code: run.exit_code.map(i64::from),
            log: run.log,
            output,
        });
    }
    if output.trim().is_empty() {
        let end = run.exit_code.map(|code| format!(" and ended with exit status {code}"));
        let end = end.unwrap_or_default();
        return printer.done(format!("The check {} printed nothing{end}", run.name));
    }
    output.lines().try_for_each(|line| printer.line(line))
}

fn flaky(context: &CommandContext<'_>, town: &Town) -> Result<(), CliError> {
    let printer = context.printer;
    let runs = merge_queue::flaky_checks(town)?;
    if printer.json() {
        let mut list = printer.list();
        for run in &runs {
            list.push(&FlakyCheckDocument {
                rig: run.rig.to_string(),
                check: run.name.clone(),
                commit: run.commit.clone(),
                tree: run.tree.clone(),
                attempt: run.attempt,
                started_at: run.started_at.into(),
            })?;
        }
        return list.finish();
    }
    if runs.is_empty() {
        return printer.done("No check has passed after it had failed on the same tree");
    }
    let mut table = Table::with_header(&["RIG", "CHECK", "COMMIT", "TRY", "WHEN"]);
    for run in &runs {
        table.row(vec![
            Cell::new(run.rig.as_str()),
            Cell::new(run.name.as_str()),
            Cell::new(short_commit(&run.commit)),
            Cell::new(run.attempt.to_string()),
            Cell::new(ago(run.started_at, town.now())),
        ]);
    }
    printer.table(table)
}

fn pause(
    context: &CommandContext<'_>,
    town: &Town,
    args: &QueueArgs,
    paused: bool,
) -> Result<(), CliError> {
    let printer = context.printer;
    let rig = town.read(|reader| gt_town::rig_names::require(reader, &args.rig))?;
    let target = args.branch.clone().unwrap_or_else(|| rig.default_branch.clone());
    let changed = merge_queue::pause(town, &rig.slug, &target, paused)?;
    if printer.json() {
        let rig = rig.slug.to_string();
        return printer.object(&QueuePauseDocument { rig, target, paused, changed });
    }
    let (slug, is_own) = (&rig.slug, target == rig.default_branch);
    let words = match (paused, changed) {
        (true, true) if is_own => format!("is paused; gt mq resume {slug} lets work land again"),
        (true, true) => {
            format!("is paused; gt mq resume {slug} --branch {target} lets work land again")
        }
        (true, false) => "was paused already".to_owned(),
        (false, true) => "goes on".to_owned(),
        (false, false) => "was not paused".to_owned(),
    };
    printer.done(format!("✓ {target} of {slug} {words}"))
}

fn resume(context: &CommandContext<'_>, town: &Town, args: &QueueArgs) -> Result<(), CliError> {
    pause(context, town, args, false)?;
    note_daemon_absence(context.printer, town);
    Ok(())
}
