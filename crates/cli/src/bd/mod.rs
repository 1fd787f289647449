//! `bd`: beads, as scripts and agents know them. One file per verb.

mod activity;
mod batch;
mod bead_output;
mod blocked;
mod boolean_flags;
mod children;
mod close;
mod codex_hook;
mod comments;
mod completion;
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
mod duplicates;
mod edit;
mod epic;
mod export;
mod filters;
mod formula;
mod gate;
mod help;
mod history;
mod import;
mod info;
mod init;
mod introduction;
mod kv;
mod label;
mod lint;
mod list;
mod location;
mod memories;
mod merge_driver;
mod merge_slot;
mod mol;
mod no_op;
mod orphans;
mod prime;
mod purge;
mod query;
mod ready;
mod rename;
mod reopen;
mod search;
mod setup;
mod shortcuts;
mod show;
mod sql;
mod stale;
mod state;
mod stats;
mod swarm;
mod sync;
mod todo;
mod update;
mod version;
mod vocabulary;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use gt_town::Environment;

use crate::common::Common;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;

use drawing::Drawing;
use purge::PurgeScope;

pub(crate) use activity::{ActivityArgs, event_line, run as run_activity};
pub(crate) use batch::check_line as check_batch_line;
pub(crate) use boolean_flags::without_boolean_values;
pub(crate) use formula::{FormulaArgs, run as run_formula};
pub(crate) use import::{ImportFlags, bring};

/// Track work as beads: tasks, bugs, epics and how they depend on each other
#[derive(Debug, Parser)]
#[command(name = "bd", version = version::WITH_OURS, subcommand_required = true, arg_required_else_help = true, args_override_self = true, disable_help_subcommand = true)]
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
    #[command(visible_alias = "new")]
    Create(create::CreateArgs),
    /// Make a bead and print only its id
    Q(create::CreateArgs),
    #[command(visible_alias = "view")]
    Show(show::ShowArgs),
    Update(update::UpdateArgs),
    Edit(edit::EditArgs),
    Note(shortcuts::NoteArgs),
    Tag(shortcuts::TagArgs),
    Assign(shortcuts::AssignArgs),
    Priority(shortcuts::PriorityArgs),
    Close(close::CloseArgs),
    /// Close beads; words behind the ids are the reason
    Done(close::CloseArgs),
    Duplicate(duplicates::DuplicateArgs),
    Supersede(duplicates::SupersedeArgs),
    Duplicates(duplicates::DuplicatesArgs),
    Epic(epic::EpicArgs),
    Reopen(reopen::ReopenArgs),
    Defer(defer::DeferArgs),
    Undefer(defer::UndeferArgs),
    Delete(delete::DeleteArgs),
    Rename(rename::RenameArgs),
    RenamePrefix(rename::RenamePrefixArgs),
    List(list::ListArgs),
    Ready(ready::ReadyArgs),
    Blocked(blocked::BlockedArgs),
    Children(children::ChildrenArgs),
    Query(query::QueryArgs),
    Sql(sql::SqlArgs),
    Stale(stale::StaleArgs),
    Lint(lint::LintArgs),
    Orphans(orphans::OrphansArgs),
    Dep(dep::DepArgs),
    Link(dep::AddArgs),
    Label(label::LabelArgs),
    #[command(alias = "comment")]
    Comments(comments::CommentsArgs),
    Search(search::SearchArgs),
    #[command(alias = "status")]
    Stats(stats::StatsArgs),
    Count(count::CountArgs),
    Batch(batch::BatchArgs),
    Activity(activity::ActivityArgs),
    History(history::HistoryArgs),
    Graph(history::GraphArgs),
    State(state::StateArgs),
    SetState(state::SetStateArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Config(config::ConfigArgs),
    Kv(kv::KvArgs),
    Remember(memories::RememberArgs),
    Memories(memories::MemoriesArgs),
    Recall(memories::RecallArgs),
    Forget(memories::ForgetArgs),
    Types(vocabulary::TypesArgs),
    Statuses(vocabulary::StatusesArgs),
    Onboard(introduction::OnboardArgs),
    Quickstart(introduction::QuickstartArgs),
    Prime(prime::PrimeArgs),
    CodexHook(codex_hook::CodexHookArgs),
    Setup(setup::SetupArgs),
    Doctor(doctor::DoctorArgs),
    Info(info::InfoArgs),
    Where(location::WhereArgs),
    Context(location::WorkspaceArgs),
    Ping(location::PingArgs),
    Completion(completion::CompletionArgs),
    Help(help::HelpArgs),
    Version(version::VersionArgs),
    Formula(formula::FormulaArgs),
    Cook(cook::CookArgs),
    Mol(mol::MolArgs),
    Gate(gate::GateArgs),
    Swarm(swarm::SwarmArgs),
    MergeSlot(merge_slot::MergeSlotArgs),
    Todo(todo::TodoArgs),
    Human(todo::HumanArgs),
    Promote(shortcuts::PromoteArgs),
    Purge(purge::PurgeArgs),
    /// Delete closed beads
    Prune(purge::PurgeArgs),
    Hooks(no_op::HooksArgs),
    #[command(hide = true)]
    Hook(no_op::HookArgs),
    Sync(sync::SyncArgs),
    MergeDriver(merge_driver::MergeDriverArgs),
    Dolt(no_op::DoltArgs),
    Migrate(no_op::MigrateArgs),
    #[command(hide = true)]
    RepairDeps(no_op::RepairDepsArgs),
}

/// Runs a parsed command.
pub(crate) fn run(bd: Bd, printer: &Printer, environment: Environment) -> Result<(), CliError> {
    let Global { common, db, format, .. } = bd.global;
    let context = CommandContext::new(printer, environment, common)?;
    let context = context.with_store(db.as_deref());
    let diagram = format.as_deref() == Some("mermaid");
    let is_tree = match &bd.verb {
        Verb::Dep(args) => args.is_tree(),
        Verb::Graph(_) => true,
        _ => false,
    };
    if diagram && !is_tree {
        return Err(CliError::request("only bd dep tree prints --format mermaid"));
    }
    let drawing = Drawing::of_format(format.as_deref());
    if drawing.is_some() && !matches!(&bd.verb, Verb::List(_)) {
        return Err(CliError::request("only bd list prints --format dot and --format digraph"));
    }
    match bd.verb {
        Verb::Init(args) => init::run(&context, &args),
        Verb::Create(args) => create::run(&context, args),
        Verb::Q(args) => create::run_quick(&context, args),
        Verb::Show(args) => show::run(&context, &args),
        Verb::Update(args) => update::run(&context, &args),
        Verb::Edit(args) => edit::run(&context, &args),
        Verb::Note(args) => shortcuts::note(&context, &args),
        Verb::Tag(args) => shortcuts::tag(&context, &args),
        Verb::Assign(args) => shortcuts::assign(&context, &args),
        Verb::Priority(args) => shortcuts::priority(&context, &args),
        Verb::Close(args) => close::run(&context, &args),
        Verb::Done(args) => close::run_done(&context, args),
        Verb::Duplicate(args) => duplicates::run_duplicate(&context, &args),
        Verb::Supersede(args) => duplicates::run_supersede(&context, &args),
        Verb::Duplicates(args) => duplicates::run_duplicates(&context, &args),
        Verb::Epic(args) => epic::run(&context, &args),
        Verb::Reopen(args) => reopen::run(&context, &args),
        Verb::Defer(args) => defer::run(&context, &args),
        Verb::Undefer(args) => defer::run_undefer(&context, &args),
        Verb::Delete(args) => delete::run(&context, &args),
        Verb::Rename(args) => rename::run(&context, &args),
        Verb::RenamePrefix(args) => rename::run_prefix(&context, &args),
        Verb::List(args) => list::run(&context, &args, drawing),
        Verb::Ready(args) => ready::run(&context, &args),
        Verb::Blocked(args) => blocked::run(&context, &args),
        Verb::Children(args) => children::run(&context, &args),
        Verb::Query(args) => query::run(&context, &args),
        Verb::Sql(args) => sql::run(&context, &args),
        Verb::Stale(args) => stale::run(&context, &args),
        Verb::Lint(args) => lint::run(&context, &args),
        Verb::Orphans(args) => orphans::run(&context, &args),
        Verb::Dep(args) => dep::run(&context, args, diagram),
        Verb::Link(args) => dep::run_add(&context, args),
        Verb::Label(args) => label::run(&context, &args),
        Verb::Comments(args) => comments::run(&context, &args),
        Verb::Search(args) => search::run(&context, &args),
        Verb::Stats(args) => stats::run(&context, &args),
        Verb::Count(args) => count::run(&context, &args),
        Verb::Batch(args) => batch::run(&context, &args),
        Verb::Activity(args) => activity::run(&context, &args),
        Verb::History(args) => history::run_history(&context, &args),
        Verb::Graph(args) => history::run_graph(&context, &args, diagram),
        Verb::State(args) => state::run(&context, &args),
        Verb::SetState(args) => state::run_set(&context, &args),
        Verb::Import(args) => import::run(&context, &args),
        Verb::Export(args) => export::run(&context, &args),
        Verb::Config(args) => config::run(&context, &args),
        Verb::Kv(args) => kv::run(&context, &args),
        Verb::Remember(args) => memories::run_remember(&context, &args),
        Verb::Memories(args) => memories::run_memories(&context, &args),
        Verb::Recall(args) => memories::run_recall(&context, &args),
        Verb::Forget(args) => memories::run_forget(&context, &args),
        Verb::Types(_) => vocabulary::types(&context),
        Verb::Statuses(_) => vocabulary::statuses(&context),
        Verb::Onboard(_) => introduction::onboard(&context),
        Verb::Quickstart(_) => introduction::quickstart(&context),
        Verb::Prime(args) => prime::run(&context, &args),
        Verb::CodexHook(args) => codex_hook::run(&context, &args),
        Verb::Setup(args) => setup::run(&context, &args),
        Verb::Doctor(args) => doctor::run(&context, &args),
        Verb::Info(args) => info::run(&context, &args),
        Verb::Where(_) => location::run_where(&context),
        Verb::Context(_) => location::run_context(&context),
        Verb::Ping(_) => location::run_ping(&context),
        Verb::Completion(args) => completion::run(&context, &args),
        Verb::Help(args) => help::run(&context, &args),
        Verb::Version(_) => version::run(&context),
        Verb::Formula(args) => formula::run(&context, &args),
        Verb::Cook(args) => cook::run(&context, &args),
        Verb::Mol(args) => mol::run(&context, &args),
        Verb::Gate(args) => gate::run(&context, &args),
        Verb::Swarm(args) => swarm::run(&context, &args),
        Verb::MergeSlot(args) => merge_slot::run(&context, &args),
        Verb::Todo(args) => todo::run(&context, &args),
        Verb::Human(args) => todo::run_human(&context, &args),
        Verb::Promote(args) => shortcuts::promote(&context, &args),
        Verb::Purge(args) => purge::run(&context, &args, PurgeScope::Ephemeral),
        Verb::Prune(args) => purge::run(&context, &args, PurgeScope::AllClosed),
        Verb::Hooks(args) => no_op::hooks(&context, &args),
        Verb::Hook(args) => {
            no_op::hook(&context, &args);
            Ok(())
        }
        Verb::Sync(args) => sync::run(&context, &args),
        Verb::MergeDriver(args) => merge_driver::run(&context, &args),
        Verb::Dolt(args) => no_op::dolt(&context, &args),
        Verb::Migrate(args) => no_op::migrate(&context, &args),
        Verb::RepairDeps(args) => no_op::repair_deps(&context, &args),
    }
}
