//! `gt run`: what workers are at, and what became of it.

mod cancel;
mod list;
mod log;
mod show;

use clap::{Args, Subcommand};
use gt_core::Timestamp;
use gt_core::schedule::{LandingState, OriginDelay, Run, Workplace};
use gt_core::time::format_duration;
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;

pub(super) use log::{LogOptions, plain, print_log};

pub(super) use cancel::{json as cancelled_json, sentence as cancelled_sentence};

/// See, follow and end what workers are doing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt run list
  gt run show gt-abc
  gt run log gt-abc -f
  gt run cancel gt-abc#2")]
pub(super) struct RunArgs {
    #[command(subcommand)]
    verb: RunVerb,
}

#[derive(Debug, Subcommand)]
enum RunVerb {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Log(log::LogArgs),
    Cancel(cancel::CancelArgs),
}

pub(super) fn run(context: &Context<'_>, args: &RunArgs) -> Result<(), CliError> {
    match &args.verb {
        RunVerb::List(args) => list::run(context, args),
        RunVerb::Show(args) => show::run(context, args),
        RunVerb::Log(args) => log::run(context, args),
        RunVerb::Cancel(args) => cancel::run(context, args),
    }
}

/// The fields of a run that every command shows.
pub(super) fn write_run(object: &mut ObjectWriter<'_>, run: &Run) {
    object.text("id", &run.id.to_string());
    object.text("uid", &run.uid.to_string());
    object.text("bead", run.id.bead.as_str());
    object.count("epoch", run.id.epoch.into());
    object.text("state", run.state.as_str());
    object.text("rig", run.rig.as_str());
    object.text("agent", &run.agent);
    object.text("executor", run.executor.as_str());
    object.text_unless_empty("runtime", &run.runtime);
    object.text("host", &run.host);
    object.text_unless_empty("account", &run.account);
    if let Some(mb) = run.usage.peak_memory_mb {
        object.count("peak_memory_mb", mb.into());
    }
    if let Some(tokens) = run.usage.tokens {
        object.count("tokens", tokens);
    }
    if let Some(cost) = run.usage.cost {
        object.text("cost", &cost.to_string());
    }
    object.text_unless_empty("formula", &run.formula);
    object.timestamp("created_at", run.created_at);
    object.text("created_by", &run.created_by);
    if let Some(at) = run.running_at {
        object.timestamp("running_at", at);
    }
    if let Some(at) = run.ended_at {
        object.timestamp("ended_at", at);
    }
    object.text_unless_empty("ended_by", &run.ended_by);
    if let Some(code) = run.exit_code {
        object.number("exit_code", code.into());
    }
    if let Some(signal) = run.exit_signal {
        object.number("exit_signal", signal.into());
    }
    object.text_unless_empty("reason", &run.reason);
    write_awaited_origin(object, run);
    write_workplace(object, run);
}

/// Where the worker of a run works, and what became of it.
fn write_workplace(object: &mut ObjectWriter<'_>, run: &Run) {
    let Workplace { session, tree, branch, base, .. } = &run.workplace;
    object.text_unless_empty("session", session);
    object.text_unless_empty("tree", tree);
    object.text_unless_empty("branch", branch);
    object.text_unless_empty("base_branch", base);
    object.text_unless_empty("accepted_commit", &run.landing.accepted);
    object.text_unless_empty("landed_commit", landed_commit(run).unwrap_or_default());
}

/// The commit that the origin has of the work of a run.
pub(super) fn landed_commit(run: &Run) -> Option<&str> {
    let is_there = run.landing.state == Some(LandingState::Confirmed);
    is_there.then_some(run.landing.commit.as_str())
}

/// What the work of a run waits for, if it does.
pub(super) fn write_awaited_origin(object: &mut ObjectWriter<'_>, run: &Run) {
    if let Some(awaited) = run.awaits_origin() {
        object.object("waits_for_origin", |object| {
            object.timestamp("since", awaited.since);
            object.text("code", awaited.delay.code());
            object.text("why", &awaited.why);
        });
    }
}

/// Where a run stands, in a word or two.
pub(super) fn state_words(run: &Run) -> &'static str {
    match run.awaits_origin().map(|awaited| awaited.delay) {
        Some(OriginDelay::Unreachable) => "waits for the origin",
        Some(OriginDelay::CheckoutInTheWay) => "held: checkout in the way",
        None => run.state.as_str(),
    }
}

/// How long a run has lasted, or did: `4m10s`.
pub(super) fn lasted(run: &Run, now: Timestamp) -> String {
    let from = run.running_at.unwrap_or(run.created_at);
    let time = run.ended_at.unwrap_or(now).since(from);
    format_duration(std::time::Duration::from_secs(time.as_secs()))
}
