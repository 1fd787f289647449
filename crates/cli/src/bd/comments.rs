//! `bd comments`.

use clap::{Args, Subcommand};
use gt_beads::notes::{comment, comments};
use gt_records::write_comment;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::ago;
use crate::values::text_of;

/// Read and write comments
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  bd comments gt-abc\n  bd comments add gt-abc \"the cause is upstream\""
)]
pub(super) struct CommentsArgs {
    #[command(subcommand)]
    verb: Option<CommentsVerb>,
    /// An id, or a part of it
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// The text of a new comment; without it the comments are listed
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
    #[command(flatten)]
    source: CommentSource,
}

/// Where a comment comes from, and its author.
#[derive(Debug, Args)]
struct CommentSource {
    /// Take the text from this file (- is standard input)
    #[arg(short, long, value_name = "FILE", conflicts_with = "words")]
    file: Option<String>,
    /// Take the text from standard input
    #[arg(long, conflicts_with_all = ["words", "file"])]
    stdin: bool,
    /// The author
    #[arg(short, long, value_name = "NAME")]
    author: Option<String>,
}

impl CommentSource {
    /// The text, of the words or of a file; nothing if there is neither.
    fn text(&self, words: &[String]) -> Result<Option<String>, CliError> {
        match (&self.file, self.stdin) {
            (Some(path), _) => text_of(path).map(Some),
            (None, true) => text_of("-").map(Some),
            (None, false) => Ok((!words.is_empty()).then(|| words.join(" "))),
        }
    }
}

#[derive(Debug, Subcommand)]
enum CommentsVerb {
    /// Say something about a bead
    Add(AddArgs),
    /// List the comments on a bead
    List {
        /// An id, or a part of it
        id: String,
    },
}

#[derive(Debug, Args)]
struct AddArgs {
    /// An id, or a part of it
    id: String,
    /// The text
    #[arg(value_name = "TEXT", required_unless_present_any = ["file", "stdin"])]
    words: Vec<String>,
    #[command(flatten)]
    source: CommentSource,
}

pub(super) fn run(context: &CommandContext<'_>, args: &CommentsArgs) -> Result<(), CliError> {
    match (&args.verb, &args.id) {
        (Some(CommentsVerb::Add(add)), _) => {
            let text = add.source.text(&add.words)?.unwrap_or_default();
            say(context, &add.id, &text, add.source.author.as_deref())
        }
        (Some(CommentsVerb::List { id }), _) => list(context, id),
        (None, Some(id)) => match args.source.text(&args.words)? {
            Some(text) => say(context, id, &text, args.source.author.as_deref()),
            None => list(context, id),
        },
        (None, None) => Err(CliError::request("which bead? bd comments <id>")),
    }
}

fn say(
    context: &CommandContext<'_>,
    id: &str,
    text: &str,
    author: Option<&str>,
) -> Result<(), CliError> {
    let said = comment(&context.store_town()?, id, text, author)?;
    let printer = context.printer;
    if printer.json() {
        let mut out = String::new();
        write_comment(&mut out, &said);
        return printer.record(&out);
    }
    printer.done(format!("✓ Comment added to {}", said.bead))
}

fn list(context: &CommandContext<'_>, id: &str) -> Result<(), CliError> {
    let town = context.store_town()?;
    let (id, found) = comments(&town, id)?;
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        for comment in &found {
            let mut out = String::new();
            write_comment(&mut out, comment);
            list.push_record(&out)?;
        }
        return list.finish();
    }
    if found.is_empty() {
        return printer.done(format!("{id} has no comments"));
    }
    for comment in &found {
        let when = ago(comment.created_at, town.now());
        let said = comment.text.trim_end();
        printer.text(&format!("{} ({when}): {said}", comment.author))?;
    }
    Ok(())
}
