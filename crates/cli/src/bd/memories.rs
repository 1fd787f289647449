//! `bd remember`, `bd memories`, `bd recall` and `bd forget`.

use clap::Args;
use gt_api::{DeletedPairDocument, FoundPairDocument, KeptMemoryDocument, OrderedMap};
use gt_beads::memories::{forget, memories, recall, remember};

use crate::context::CommandContext;
use crate::error::CliError;

/// A longer memory is cut in a list.
const SHOWN_CHARS: usize = 120;

/// Keep a fact for every later session
#[derive(Debug, Args)]
#[command(after_help = "bd prime shows every memory to an agent that starts.

Examples:
  bd remember \"always run the tests with --locked\"
  bd remember \"auth uses tokens, not sessions\" --key auth")]
pub(super) struct RememberArgs {
    /// The text
    #[arg(value_name = "TEXT")]
    text: String,
    /// Its name [default: its first words]
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
}

/// List the facts that are kept
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd memories\n  bd memories auth --json")]
pub(super) struct MemoriesArgs {
    /// Only those with this in their name or text
    #[arg(value_name = "TEXT")]
    search: Option<String>,
}

/// Print a fact that is kept; exits with 1 if there is none
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd recall auth")]
pub(super) struct RecallArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    key: String,
}

/// Remove a fact that is kept
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd forget auth")]
pub(super) struct ForgetArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    key: String,
}

pub(super) fn run_remember(
    context: &CommandContext<'_>,
    args: &RememberArgs,
) -> Result<(), CliError> {
    let kept = remember(&context.store_town()?, &args.text, args.key.as_deref())?;
    let printer = context.printer;
    let action = if kept.replaced { "Updated" } else { "Remembered" };
    let (key, value) = (kept.memory.key, kept.memory.text);
    if printer.json() {
        return printer.object(&KeptMemoryDocument { key, value, action: action.to_lowercase() });
    }
    printer.done(format!("{action} [{key}]: {}", one_line(&value)))
}

pub(super) fn run_memories(
    context: &CommandContext<'_>,
    args: &MemoriesArgs,
) -> Result<(), CliError> {
    let found = memories(&context.store_town()?, args.search.as_deref())?;
    let printer = context.printer;
    if printer.json() {
        let pairs = found.into_iter().map(|memory| (memory.key, memory.text));
        return printer.object(&pairs.collect::<OrderedMap<String>>());
    }
    if found.is_empty() {
        return printer.done(match &args.search {
            Some(search) => format!("No memory has \"{search}\" in it"),
            None => "No memories yet; bd remember \"…\" keeps one".to_owned(),
        });
    }
    found.iter().try_for_each(|memory| {
        printer.heading(&memory.key, "")?;
        printer.line(format!("  {}", one_line(&memory.text)))
    })
}

pub(super) fn run_recall(context: &CommandContext<'_>, args: &RecallArgs) -> Result<(), CliError> {
    let found = recall(&context.store_town()?, &args.key)?;
    let printer = context.printer;
    if printer.json() {
        printer.object(&FoundPairDocument {
            key: args.key.clone(),
            found: found.is_some(),
            value: found.as_ref().map(|memory| memory.text.clone()).unwrap_or_default(),
        })?;
    }
    match found {
        None => Err(unknown(&args.key)),
        Some(_) if printer.json() => Ok(()),
        Some(memory) => printer.text(&memory.text),
    }
}

pub(super) fn run_forget(context: &CommandContext<'_>, args: &ForgetArgs) -> Result<(), CliError> {
    let forgotten = forget(&context.store_town()?, &args.key)?;
    let printer = context.printer;
    if printer.json() {
        let deleted = forgotten.is_some();
        printer.object(&DeletedPairDocument { key: args.key.clone(), deleted })?;
    }
    let memory = forgotten.ok_or_else(|| unknown(&args.key))?;
    printer.done(format!("Forgot [{}]: {}", memory.key, one_line(&memory.text)))
}

fn unknown(key: &str) -> CliError {
    CliError::request(format!("there is no memory \"{key}\"; bd memories lists them"))
}

/// The beginning of a text, on one line.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = words.chars().take(SHOWN_CHARS).collect();
    if shown.len() < words.len() {
        shown.push('…');
    }
    shown
}
