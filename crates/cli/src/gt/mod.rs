//! `gt`: the town. One file per verb.

mod account;
mod agent;
mod completions;
mod config;
mod convoy;
mod cost;
mod daemon;
mod deacon;
mod deck;
mod demo;
mod doctor;
mod done;
mod escalate;
mod feed;
mod for_each_argument;
mod handoff;
mod hook;
mod host;
mod import;
mod inbox;
mod init;
mod install;
mod mail;
mod man;
mod mcp;
mod mq;
mod nudge;
mod outbox;
mod polecat;
mod prime;
mod queue;
mod rescue;
mod review;
mod rig;
mod run;
mod scheduler;
mod scripted;
mod serve;
mod sling;
mod status;
mod step;
mod store;
mod token;
mod top;
mod unsling;
mod wait;
mod watch;
mod why;
mod work;
mod worker;

pub(crate) use completions::print_completions;

use clap::{Parser, Subcommand};
use gt_town::Environment;

use crate::common::Common;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;

/// Get a pile of work done by a limited number of coding agents
#[derive(Debug, Parser)]
#[command(
    name = "gt",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Beads are handled by gt bd …, also installed as bd. Try gt bd --help."
)]
pub(crate) struct Gt {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Demo(demo::DemoArgs),
    Init(init::InitArgs),
    Install(install::InstallArgs),
    Rig(rig::RigArgs),
    Config(config::ConfigArgs),
    Import(import::ImportArgs),
    Sling(sling::SlingArgs),
    Queue(queue::QueueArgs),
    Scheduler(scheduler::SchedulerArgs),
    Convoy(convoy::ConvoyArgs),
    Cost(cost::CostArgs),
    Done(done::DoneArgs),
    Unsling(unsling::UnslingArgs),
    Run(run::RunArgs),
    Polecat(polecat::PolecatArgs),
    Peek(polecat::PeekArgs),
    Attach(polecat::AttachArgs),
    Mcp(mcp::McpArgs),
    Mq(mq::MqArgs),
    Review(review::ReviewArgs),
    Rescue(rescue::RescueArgs),
    Wait(wait::WaitArgs),
    Prime(prime::PrimeArgs),
    Hook(hook::HookArgs),
    Host(host::HostArgs),
    Step(step::StepArgs),
    Handoff(handoff::HandoffArgs),
    Nudge(nudge::NudgeArgs),
    Mail(mail::MailArgs),
    Escalate(escalate::EscalateArgs),
    Why(why::WhyArgs),
    Work(work::WorkArgs),
    Token(token::TokenArgs),
    Serve(serve::ServeArgs),
    Up(daemon::UpArgs),
    Down(daemon::DownArgs),
    Daemon(daemon::DaemonArgs),
    Deacon(deacon::DeaconArgs),
    Deck(deck::DeckArgs),
    Inbox(inbox::InboxArgs),
    Status(status::StatusArgs),
    Top(top::TopArgs),
    Feed(feed::FeedArgs),
    Formula(crate::bd::FormulaArgs),
    Outbox(outbox::OutboxArgs),
    Doctor(doctor::DoctorArgs),
    Store(store::StoreArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
    #[command(hide = true)]
    Scripted(scripted::ScriptedArgs),
}

/// Runs a parsed command.
pub(crate) fn run(gt: Gt, printer: &Printer, environment: Environment) -> Result<(), CliError> {
    let context = CommandContext::new(printer, environment, gt.common)?;
    match gt.verb {
        Verb::Demo(args) => demo::run(&context, &args),
        Verb::Init(args) => init::run(&context, &args),
        Verb::Install(args) => install::run(&context, &args),
        Verb::Rig(args) => rig::run(&context, &args),
        Verb::Config(args) => config::run(&context, &args),
        Verb::Import(args) => import::run(&context, &args),
        Verb::Sling(args) => sling::run(&context, &args),
        Verb::Queue(args) => queue::run(&context, &args),
        Verb::Scheduler(args) => scheduler::run(&context, &args),
        Verb::Done(args) => done::run(&context, &args),
        Verb::Unsling(args) => unsling::run(&context, &args),
        Verb::Run(args) => run::run(&context, &args),
        Verb::Polecat(args) => polecat::run(&context, &args),
        Verb::Peek(args) => polecat::peek(&context, &args),
        Verb::Attach(args) => polecat::attach(&context, &args),
        Verb::Mcp(args) => mcp::run(&context, &args),
        Verb::Mq(args) => mq::run(&context, &args),
        Verb::Review(args) => review::run(&context, &args),
        Verb::Rescue(args) => rescue::run(&context, &args),
        Verb::Wait(args) => wait::run(&context, &args),
        Verb::Prime(args) => prime::run(&context, &args),
        Verb::Hook(args) => hook::run(&context, &args),
        Verb::Host(args) => host::run(&context, &args),
        Verb::Step(args) => step::run(&context, &args),
        Verb::Handoff(args) => handoff::run(&context, &args),
        Verb::Nudge(args) => nudge::run(&context, &args),
        Verb::Mail(args) => mail::run(&context, &args),
        Verb::Escalate(args) => escalate::run(&context, &args),
        Verb::Why(args) => why::run(&context, &args),
        Verb::Work(args) => work::run(&context, &args),
        Verb::Cost(args) => cost::run(&context, &args),
        Verb::Convoy(args) => convoy::run(&context, &args),
        Verb::Token(args) => token::run(&context, &args),
        Verb::Serve(args) => serve::run(&context, &args),
        Verb::Up(_) => daemon::up(&context),
        Verb::Down(_) => daemon::down(&context),
        Verb::Daemon(args) => daemon::run(&context, &args),
        Verb::Deacon(args) => deacon::run(&context, &args),
        Verb::Deck(args) => deck::run(&context, &args),
        Verb::Inbox(args) => inbox::run(&context, &args),
        Verb::Status(args) => status::run(&context, &args),
        Verb::Top(args) => top::run(&context, &args),
        Verb::Feed(args) => feed::run(&context, &args),
        Verb::Formula(args) => crate::bd::run_formula(&context, &args),
        Verb::Outbox(args) => outbox::run(&context, &args),
        Verb::Doctor(args) => doctor::run(&context, &args),
        Verb::Store(args) => store::run(&context, &args),
        Verb::Completions(args) => completions::run(&context, &args),
        Verb::Man(args) => man::run(&context, &args),
        Verb::Worker(args) => worker::run(&context, &args),
        Verb::Scripted(args) => scripted::run(&context, &args),
    }
}
