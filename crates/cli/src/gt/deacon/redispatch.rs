//! `gt deacon redispatch`.

use clap::Args;
use gt_api::RedispatchDocument;
use gt_core::BeadId;
use gt_core::schedule::RunId;
use gt_core::time::parse_duration;
use gt_daemon::{daemon, reconcile};
use gt_scheduling::dispatch::NotStarted;
use gt_scheduling::queue;
use gt_scheduling::recovery::{self, Redispatch, Redispatched};
use gt_town::Town;

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::gt::sling::refuse_workers;
use crate::output::local_times;

/// Give an open bead that has no run another one
///
/// Uses the same checks and the same queue as gt sling, and is never forced. Beads that a person took out of the queue,
/// and beads that were given up, are left to people.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 if it is scheduled or started, 1 if that failed or its attempts are used up, 2 if the \
previous redispatch was too short a while ago, 3 if it is not open, or people have to decide.

Examples:
  gt deacon redispatch gt-abc
  gt deacon redispatch gt-abc --rig gastown --cooldown 0s
  gt deacon redispatch gt-abc --max-attempts 5"
)]
pub(super) struct RedispatchArgs {
    /// The bead
    bead: String,
    /// The rig it goes to, if not where it was
    #[arg(long)]
    rig: Option<String>,
    #[arg(
        long,
        value_name = "N",
        help = "How many attempts it has in all [default: recovery.max_attempts, which is 3]"
    )]
    max_attempts: Option<u32>,
    #[arg(
        long,
        value_name = "TIME",
        help = "How long after the previous redispatch [default: recovery.cooldown, which is 5m]"
    )]
    cooldown: Option<String>,
}

/// The exit codes that scripts rely on.
const FAILED: u8 = 1;
const COOLING_DOWN: u8 = 2;
const SKIPPED: u8 = 3;

pub(super) fn run(context: &CommandContext<'_>, args: &RedispatchArgs) -> Result<(), CliError> {
    refuse_workers(&context.environment)?;
    let wish = Redispatch {
        bead: args.bead.clone(),
        rig: args.rig.clone(),
        max_attempts: args.max_attempts,
        cooldown: args.cooldown.as_deref().map(parse_duration).transpose()?,
    };
    let town = context.town()?;
    let done = recovery::redispatch(&town, &wish)?;
    let told = match &done {
        Redispatched::Scheduled(bead, made) => match start(&town, made.number)? {
            RedispatchStart::Run(run) => {
                RedispatchResult::new(bead, "started", format!("✓ {bead} is started as {run}"))
            }
            RedispatchStart::Failed(why) => {
                let why = format!("{bead} is scheduled, and its start failed: {why}");
                RedispatchResult { code: FAILED, ..RedispatchResult::new(bead, "failed", why) }
            }
            RedispatchStart::Waits => {
                let id = &made.id;
                RedispatchResult::new(
                    bead,
                    "scheduled",
                    format!("✓ {bead} is scheduled again ({id})"),
                )
            }
        },
        Redispatched::Already(bead, id) => {
            let said = format!("{bead} is scheduled already ({id}); nothing to do");
            RedispatchResult::new(bead, "scheduled", said)
        }
        Redispatched::CoolingDown(bead, until) => {
            let said = format!("{bead} is in cooldown until {until}");
            RedispatchResult { code: COOLING_DOWN, ..RedispatchResult::new(bead, "cooldown", said) }
        }
        Redispatched::Skipped(bead, why) => RedispatchResult {
            code: SKIPPED,
            ..RedispatchResult::new(bead, "skipped", format!("{bead} is left alone: {why}"))
        },
        Redispatched::UsedUp(bead, used) => {
            let said = format!(
                "{bead} has used up its attempts ({used}), and people are told; gt scheduler retry {bead} \
                 lets it begin anew"
            );
            RedispatchResult { code: FAILED, ..RedispatchResult::new(bead, "used-up", said) }
        }
    };
    told.print(context)?;
    if told.action == "scheduled"
        && let Some(warning) = daemon::absence_warning(&town)
    {
        context.printer.note(warning);
    }
    if told.code == 0 { Ok(()) } else { Err(CliError::Said(told.code)) }
}

/// The result of starting the scheduled bead.
enum RedispatchStart {
    Run(RunId),
    Failed(String),
    /// It waits for its turn.
    Waits,
}

/// Starts the bead that was scheduled just now, if the town starts work at once.
fn start(town: &Town, context: u64) -> Result<RedispatchStart, CliError> {
    if queue::status(town)?.settings.is_deferred() {
        return Ok(RedispatchStart::Waits);
    }
    let done = reconcile::start_contexts(town, vec![context], &this_program()?)?;
    let run = done.dispatched.into_iter().find_map(|started| started.run);
    Ok(match (run, done.errors.into_iter().next()) {
        (Some(run), _) => RedispatchStart::Run(run.id),
        // The obstacle is temporary.
        (None, Some((_, NotStarted::Changed(_))) | None) => RedispatchStart::Waits,
        (None, Some((_, error))) => RedispatchStart::Failed(error.to_string()),
    })
}

/// The result of the command, for people and for programs.
struct RedispatchResult {
    bead: BeadId,
    action: &'static str,
    said: String,
    code: u8,
}

impl RedispatchResult {
    fn new(bead: &BeadId, action: &'static str, said: String) -> Self {
        Self { bead: bead.clone(), action, said, code: 0 }
    }

    fn print(&self, context: &CommandContext<'_>) -> Result<(), CliError> {
        let printer = context.printer;
        if !printer.json() {
            return printer.line(local_times(&self.said));
        }
        printer.object(&RedispatchDocument {
            bead: self.bead.to_string(),
            action: self.action.to_owned(),
            message: self.said.clone(),
        })
    }
}
