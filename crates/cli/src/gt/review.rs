//! `gt review`: finished work that waits for a person.

use clap::{Args, Subcommand};
use gt_api::{DiffStatDocument, MergeRequestDocument, MergeRequestStoryDocument, ReviewDocument};
use gt_core::merging::{MergeRequest, RequestState, ReviewDecision};
use gt_daemon::{daemon, views};
use gt_execution::merge_queue::{self, LineEntry, RequestChangeSize, RequestReview, RequestStory};
use gt_town::Town;

use super::mq::document;
use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{Cell, Table, ago, local_times, plural, short_commit};
use crate::served;

/// See, comment, approve or reject finished work before it lands
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt review
  gt review show gt-abc@1
  gt review approve gt-abc@1")]
pub(super) struct ReviewArgs {
    #[command(subcommand)]
    verb: Option<ReviewVerb>,
}

#[derive(Debug, Subcommand)]
enum ReviewVerb {
    /// List what waits for a review, the oldest first
    List,
    /// Show a merge request: its commits, the size of its change, and what was said about it
    #[command(after_help = "Examples:\n  gt review show gt-abc@1")]
    Show(RequestArgs),
    /// Show the change
    #[command(
        after_help = "Examples:\n  gt review diff gt-abc@1\n  gt review diff gt-abc@1 --stat"
    )]
    Diff(DiffArgs),
    /// Comment on the change; its worker reads it if it is rejected
    #[command(
        after_help = "Examples:\n  gt review comment gt-abc@1 --file src/a.rs --line 12 -m \"why twice?\""
    )]
    Comment(CommentArgs),
    /// Let it land
    #[command(after_help = "Examples:\n  gt review approve gt-abc@1")]
    Approve(ApproveArgs),
    /// Send it back to a worker, with all comments
    #[command(after_help = "Examples:\n  gt review reject gt-abc@1 -m \"the error is lost\"")]
    Reject(RejectArgs),
}

#[derive(Debug, Args)]
struct RequestArgs {
    /// A merge request such as gt-abc@1, or a bead for its last one
    request: String,
}

#[derive(Debug, Args)]
struct DiffArgs {
    /// A merge request such as gt-abc@1, or a bead for its last one
    request: String,
    /// Only the files and how much changed
    #[arg(long)]
    stat: bool,
}

#[derive(Debug, Args)]
struct CommentArgs {
    /// A merge request such as gt-abc@1, or a bead for its last one
    request: String,
    /// The file that it is about
    #[arg(long)]
    file: Option<String>,
    /// The line of the file
    #[arg(long, requires = "file")]
    line: Option<u32>,
    /// The message
    #[arg(short, long)]
    message: String,
}

#[derive(Debug, Args)]
struct ApproveArgs {
    /// A merge request such as gt-abc@1, or a bead for its last one
    request: String,
    /// The message
    #[arg(short, long)]
    message: Option<String>,
}

#[derive(Debug, Args)]
struct RejectArgs {
    /// A merge request such as gt-abc@1, or a bead for its last one
    request: String,
    /// The changes that you ask for
    #[arg(short, long)]
    message: String,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ReviewArgs) -> Result<(), CliError> {
    let town = context.town()?;
    match args.verb.as_ref().unwrap_or(&ReviewVerb::List) {
        ReviewVerb::List => list(context, &town),
        ReviewVerb::Show(args) => show(context, &town, &args.request),
        ReviewVerb::Diff(args) => diff(context, &town, args),
        ReviewVerb::Comment(args) => {
            let owner = served::process_owner(&town);
            let review = RequestReview {
                decision: ReviewDecision::Comment,
                file: args.file.as_deref().unwrap_or_default(),
                line: args.line,
                body: &args.message,
                process: owner.as_ref(),
            };
            let made = merge_queue::comment(&town, &args.request, &review)?;
            if context.printer.json() {
                return context.printer.object(&ReviewDocument::from(&made));
            }
            context.printer.done(format!("✓ Comment {} on {}", made.number, made.request))
        }
        ReviewVerb::Approve(args) => {
            let body = args.message.as_deref().unwrap_or_default();
            let request = decide(&town, &args.request, ReviewDecision::Approved, body)?;
            let request = daemon::land_without_daemon(&town, &this_program()?, request)?;
            let words = match request.state {
                RequestState::Landed => {
                    let commit = short_commit(&request.landed);
                    format!("is approved and has landed on {} as {commit}", request.target)
                }
                state if state.moves_by_itself() => "is approved and in line to land".to_owned(),
                _ => format!("is approved; {}", local_times(&request.state_reason())),
            };
            decided(context, &town, &request, &words)
        }
        ReviewVerb::Reject(args) => {
            let request = decide(&town, &args.request, ReviewDecision::Rejected, &args.message)?;
            let words = if merge_queue::is_repaired(&town, &request)? {
                "is rejected and goes back to a worker".to_owned()
            } else {
                format!("is rejected, and no repair is scheduled; {}", request.next_step())
            };
            decided(context, &town, &request, &words)
        }
    }
}

fn decide(
    town: &Town,
    request: &str,
    decision: ReviewDecision,
    body: &str,
) -> Result<MergeRequest, CliError> {
    let owner = served::process_owner(town);
    let process = owner.as_ref();
    let review = RequestReview { decision, file: "", line: None, body, process };
    Ok(merge_queue::review(town, request, &review)?)
}

fn decided(
    context: &CommandContext<'_>,
    town: &Town,
    request: &MergeRequest,
    words: &str,
) -> Result<(), CliError> {
    if context.printer.json() {
        return context.printer.object(&document(town, request, None)?);
    }
    context.printer.done(format!("✓ {} {words}", request.id))
}

fn list(context: &CommandContext<'_>, town: &Town) -> Result<(), CliError> {
    let printer = context.printer;
    let (mut waiting, _) = merge_queue::line(town)?;
    waiting.retain(|entry| entry.request.state == RequestState::Review);
    waiting.sort_by_key(|entry| entry.request.changed_at);
    if printer.json() {
        let mut list = printer.list();
        for LineEntry { request, title, .. } in &waiting {
            list.push(&MergeRequestDocument::new(request, title, None))?;
        }
        return list.finish();
    }
    if waiting.is_empty() {
        return printer.done("Nothing waits for a review");
    }
    let mut table = Table::with_header(&["REQUEST", "RIG", "WAITS", "CHANGE", "TITLE"])
        .droppable(&["RIG", "WAITS"]);
    for LineEntry { request, title, .. } in &waiting {
        let size = merge_queue::change_size(town, request)
            .map_or_else(|_| String::new(), |change| size_of(&change));
        table.row(vec![
            Cell::new(request.id.to_string()),
            Cell::new(request.rig.as_str()),
            Cell::new(ago(request.changed_at, town.now())),
            Cell::new(size),
            Cell::new(title.as_str()),
        ]);
    }
    printer.table(table)
}

fn size_of(change: &RequestChangeSize) -> String {
    let RequestChangeSize { files, insertions, deletions, .. } = change;
    format!("{} +{insertions} -{deletions}", plural(*files, "file"))
}

fn show(context: &CommandContext<'_>, town: &Town, input: &str) -> Result<(), CliError> {
    let printer = context.printer;
    let story = merge_queue::story(town, input)?;
    let reviews = merge_queue::reviews_of_work(town, &story.request)?;
    if printer.json() {
        return printer.object(&MergeRequestStoryDocument {
            candidate: None,
            reviews: reviews.iter().map(ReviewDocument::from).collect(),
            waits_for: String::new(),
            ..views::story_document(&story)
        });
    }
    let next = story.next_step();
    let RequestStory { request, title, .. } = story;
    let change = merge_queue::change_size(town, &request)?;
    printer.heading(&request.id.to_string(), &format!("  {title}"))?;
    let mut table = Table::wrapped();
    for (name, value) in [
        ("state", request.state.to_string()),
        ("needs a review", merge_queue::review_reason(town, &request)?),
        ("commit", short_commit(&request.accepted).to_owned()),
        ("target", format!("{} of {}", request.target, request.rig)),
        ("change", size_of(&change)),
        ("files", change.paths.join(" ")),
        ("look at it", format!("gt review diff {}", request.id)),
        ("next", next),
    ] {
        if !value.is_empty() {
            table.row(vec![Cell::bold(name), Cell::new(value)]);
        }
    }
    printer.table(table)?;
    for review in &reviews {
        let of = if review.request == request.id {
            String::new()
        } else {
            format!("{}: ", review.request)
        };
        let place = match (review.file.as_str(), review.line) {
            ("", _) => String::new(),
            (file, Some(line)) => format!(" {file}:{line}"),
            (file, None) => format!(" {file}"),
        };
        printer.line(format!(
            "{of}{} {}{place}  {}",
            review.actor,
            review.decision.as_str(),
            review.body
        ))?;
    }
    Ok(())
}

fn diff(context: &CommandContext<'_>, town: &Town, args: &DiffArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let request = merge_queue::story(town, &args.request)?.request;
    if printer.json() || args.stat {
        let change = merge_queue::change_size(town, &request)?;
        if printer.json() {
            let RequestChangeSize { files, insertions, deletions, paths } = change;
            let request = request.id.to_string();
            return printer.object(&DiffStatDocument {
                request,
                files,
                insertions,
                deletions,
                paths,
            });
        }
        for path in &change.paths {
            printer.line(format!("  {path}"))?;
        }
        return printer.line(size_of(&change));
    }
    let diff = merge_queue::change(town, &request)?;
    if printer.is_terminal() {
        // A change may have control characters that would do something to the terminal.
        let text = String::from_utf8_lossy(&diff);
        return printer.page(&text, context.environment.pager());
    }
    printer.bytes(&diff)
}
