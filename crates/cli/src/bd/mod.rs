//! `bd`: beads, as scripts and agents know them. One file per verb.

mod activity;
mod batch;
mod bead_output;
mod blocked;
mod children;
mod close;
mod comments;
mod config;
mod cook;
mod count;
mod create;
mod create_many;
mod defer;
mod delete;
mod dep;
mod doctor;
mod drawing;
mod export;
mod filters;
mod formula;
mod import;
mod info;
mod init;
mod kv;
mod label;
mod lint;
mod list;
mod no_op;
mod prime;
mod query;
mod ready;
mod reopen;
mod search;
mod show;
mod stale;
mod stats;
mod update;
mod version;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use gt_town::Environment;

use crate::common::Common;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;

use drawing::Drawing;

pub(crate) use activity::{ActivityArgs, event_line, run as run_activity};
pub(crate) use batch::check_line as check_batch_line;
pub(crate) use formula::{FormulaArgs, run as run_formula};
pub(crate) use import::{ImportFlags, bring};

/// Track work as beads: tasks, bugs, epics and how they depend on each other
#[derive(Debug, Parser)]
#[command(name = "bd", version = version::WITH_OURS, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Bd {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Flags that every verb takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    #[command(flatten)]
    pub(crate) common: Common,
    #[arg(long, global = true, value_name = "FORMAT", hide = true, value_parser = ["json", "text", "mermaid", "dot", "digraph"])]
    format: Option<String>,
    /// Use the store this file belongs to
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "directory", hide = true)]
    db: Option<PathBuf>,
    #[command(flatten)]
    ignored: Ignored,
}

/// Flags of other implementations that mean nothing here; scripts pass them.
#[derive(Debug, Args)]
struct Ignored {
    #[arg(long, global = true, hide = true)]
    sandbox: bool,
    #[arg(long, global = true, hide = true)]
    readonly: bool,
    #[arg(long, global = true, hide = true)]
    global: bool,
    #[arg(long, global = true, hide = true, value_name = "MODE")]
    dolt_auto_commit: Option<String>,
    #[arg(long, global = true, hide = true)]
    profile: bool,
    #[arg(short, long, global = true, hide = true)]
    verbose: bool,
    #[arg(long, global = true, hide = true)]
    ignore_schema_skew: bool,
    #[arg(long, global = true, hide = true)]
    allow_stale: bool,
    #[arg(long, global = true, hide = true)]
    no_daemon: bool,
}

impl Global {
    pub(crate) fn json(&self) -> bool {
        self.common.json || self.format.as_deref() == Some("json")
    }
}

#[derive(Debug, Subcommand)]
enum Verb {
    Init(init::InitArgs),
    Create(create::CreateArgs),
    Show(show::ShowArgs),
    Update(update::UpdateArgs),
    #[command(alias = "done")]
    Close(close::CloseArgs),
    Reopen(reopen::ReopenArgs),
    Defer(defer::DeferArgs),
    Undefer(defer::UndeferArgs),
    Delete(delete::DeleteArgs),
    List(list::ListArgs),
    Ready(ready::ReadyArgs),
    Blocked(blocked::BlockedArgs),
    Children(children::ChildrenArgs),
    Query(query::QueryArgs),
    Stale(stale::StaleArgs),
    Lint(lint::LintArgs),
    Dep(dep::DepArgs),
    Label(label::LabelArgs),
    #[command(alias = "comment")]
    Comments(comments::CommentsArgs),
    Search(search::SearchArgs),
    #[command(alias = "status")]
    Stats(stats::StatsArgs),
    Count(count::CountArgs),
    Batch(batch::BatchArgs),
    Activity(activity::ActivityArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Config(config::ConfigArgs),
    Kv(kv::KvArgs),
    Prime(prime::PrimeArgs),
    Doctor(doctor::DoctorArgs),
    Info(info::InfoArgs),
    Version(version::VersionArgs),
    Formula(formula::FormulaArgs),
    Cook(cook::CookArgs),
    Hooks(no_op::HooksArgs),
    #[command(hide = true)]
    Hook(no_op::HookArgs),
    Sync(no_op::SyncArgs),
    Dolt(no_op::DoltArgs),
    Migrate(no_op::MigrateArgs),
}

/// Runs a parsed command.
pub(crate) fn run(bd: Bd, printer: &Printer, environment: Environment) -> Result<(), CliError> {
    let Global { common, db, format, .. } = bd.global;
    let context = CommandContext::new(printer, environment, common)?;
    let context = context.with_store(db.as_deref());
    let diagram = format.as_deref() == Some("mermaid");
    if diagram && !matches!(&bd.verb, Verb::Dep(args) if args.is_tree()) {
        return Err(CliError::request("only bd dep tree prints --format mermaid"));
    }
    let drawing = Drawing::of_format(format.as_deref());
    if drawing.is_some() && !matches!(&bd.verb, Verb::List(_)) {
        return Err(CliError::request("only bd list prints --format dot and --format digraph"));
    }
    match bd.verb {
        Verb::Init(args) => init::run(&context, &args),
        Verb::Create(args) => create::run(&context, args),
        Verb::Show(args) => show::run(&context, &args),
        Verb::Update(args) => update::run(&context, &args),
        Verb::Close(args) => close::run(&context, &args),
        Verb::Reopen(args) => reopen::run(&context, &args),
        Verb::Defer(args) => defer::run(&context, &args),
        Verb::Undefer(args) => defer::run_undefer(&context, &args),
        Verb::Delete(args) => delete::run(&context, &args),
        Verb::List(args) => list::run(&context, &args, drawing),
        Verb::Ready(args) => ready::run(&context, &args),
        Verb::Blocked(args) => blocked::run(&context, &args),
        Verb::Children(args) => children::run(&context, &args),
        Verb::Query(args) => query::run(&context, &args),
        Verb::Stale(args) => stale::run(&context, &args),
        Verb::Lint(args) => lint::run(&context, &args),
        Verb::Dep(args) => dep::run(&context, args, diagram),
        Verb::Label(args) => label::run(&context, &args),
        Verb::Comments(args) => comments::run(&context, &args),
        Verb::Search(args) => search::run(&context, &args),
        Verb::Stats(_) => stats::run(&context),
        Verb::Count(args) => count::run(&context, &args),
        Verb::Batch(args) => batch::run(&context, &args),
        Verb::Activity(args) => activity::run(&context, &args),
        Verb::Import(args) => import::run(&context, &args),
        Verb::Export(args) => export::run(&context, &args),
        Verb::Config(args) => config::run(&context, &args),
        Verb::Kv(args) => kv::run(&context, &args),
        Verb::Prime(args) => prime::run(&context, &args),
        Verb::Doctor(_) => doctor::run(&context),
        Verb::Info(_) => info::run(&context),
        Verb::Version(_) => version::run(&context),
        Verb::Formula(args) => formula::run(&context, &args),
        Verb::Cook(args) => cook::run(&context, &args),
        Verb::Hooks(args) => no_op::hooks(&context, &args),
        Verb::Hook(args) => {
            no_op::hook(&args);
            Ok(())
        }
        Verb::Sync(args) => no_op::sync(&context, &args),
        Verb::Dolt(args) => no_op::dolt(&context, &args),
        Verb::Migrate(args) => no_op::migrate(&context, &args),
    }
}
