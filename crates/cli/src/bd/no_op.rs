//! Verbs of the original that look after its files and its git hooks. Scripts, git hooks and agents call them; there is
//! nothing to do here, because the beads are in the town's store.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};

use clap::Args;

use super::{merge_driver, sync};
use crate::context::CommandContext;
use crate::error::CliError;
use gt_api::SentenceDocument;

/// Git hooks that are told something on standard input.
const HOOKS_WITH_INPUT: [&str; 5] =
    ["pre-push", "post-rewrite", "pre-receive", "post-receive", "reference-transaction"];

/// Accept what git hooks of the original call; install the merge driver
///
/// Where export.auto is on, run writes .beads/issues.jsonl before a commit, and takes over what git has changed in it after a
/// merge or a checkout.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd hooks install\n  bd hooks run post-merge")]
pub(super) struct HooksArgs {
    /// The arguments that the hook passes on
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Accept what git hooks of the original call, and do nothing
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd hook pre-commit")]
pub(super) struct HookArgs {
    /// The git hook, and the arguments that it passes on
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Say that there is no Dolt: the beads are in the town's store
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd dolt push")]
pub(super) struct DoltArgs {
    /// Commands and flags of the original
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Say that there is nothing to migrate: the store is brought up to date when it is opened
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd migrate")]
pub(super) struct MigrateArgs {
    /// Commands and flags of the original
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Say that there is nothing to repair: a dependency on a bead that does not exist holds nothing up
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd repair-deps --json")]
pub(super) struct RepairDepsArgs {
    /// Flags of the original
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

pub(super) fn repair_deps(
    context: &CommandContext<'_>,
    args: &RepairDepsArgs,
) -> Result<(), CliError> {
    let told = "Nothing to repair: a dependency on a bead that does not exist holds nothing up; bd dep cycles looks for circles";
    say(context, &args.rest, told)
}

pub(super) fn hooks(context: &CommandContext<'_>, args: &HooksArgs) -> Result<(), CliError> {
    match args.rest.first().and_then(|verb| verb.to_str()) {
        Some("run") => {
            called_by_git(context, &args.rest[1..]);
            Ok(())
        }
        Some("install") if sync::keeps_file(context) => merge_driver::install(context),
        _ => say(
            context,
            &args.rest,
            "No git hooks are needed: every change is in the town's store at once; those of the original do no harm",
        ),
    }
}

pub(super) fn hook(context: &CommandContext<'_>, args: &HookArgs) {
    called_by_git(context, &args.rest);
}

/// A git hook: takes what git tells it, and brings the JSONL file and the store together where that is wanted.
fn called_by_git(context: &CommandContext<'_>, rest: &[OsString]) {
    take_input(rest);
    if let Some(name) = rest.first().and_then(|name| name.to_str()) {
        sync::called_by_git(context, name);
    }
}

pub(super) fn dolt(context: &CommandContext<'_>, args: &DoltArgs) -> Result<(), CliError> {
    let told = "Nothing to do: the beads are in the town's store, and there is no Dolt; gt store info shows where";
    say(context, &args.rest, told)
}

pub(super) fn migrate(context: &CommandContext<'_>, args: &MigrateArgs) -> Result<(), CliError> {
    let told = "Nothing to migrate: gt brings its store up to date by itself; bd import takes over beads of the original";
    say(context, &args.rest, told)
}

/// Tells a person or a program that nothing was done. Behind an argument of the original `--json` stands among the rest.
pub(super) fn say(
    context: &CommandContext<'_>,
    rest: &[OsString],
    told: &str,
) -> Result<(), CliError> {
    let printer = context.printer;
    if !printer.json() && !rest.iter().any(|argument| argument == "--json") {
        return printer.done(told);
    }
    printer.object(&SentenceDocument { message: told.to_owned() })
}

/// Drains the input of a hook, so that git does not wait for a reader.
fn take_input(rest: &[OsString]) {
    let hook = rest.first().and_then(|hook| hook.to_str()).unwrap_or_default();
    if HOOKS_WITH_INPUT.contains(&hook) && !io::stdin().is_terminal() {
        // The input is only drained, so that git gets no broken pipe; an error does no harm.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    }
}
