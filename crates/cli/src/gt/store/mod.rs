//! `gt store`: the store as a whole.

mod backup;
mod check;
mod info;
mod migrate;
mod vacuum;

use clap::{Args, Subcommand};

use crate::context::CommandContext;
use crate::error::CliError;

/// Back up, check, move and look after the store
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt store backup
  gt store check
  gt store info --json
  gt store migrate postgres://gt@db.example/town")]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    verb: StoreVerb,
}

#[derive(Debug, Subcommand)]
enum StoreVerb {
    Backup(backup::BackupArgs),
    Check(check::CheckArgs),
    Vacuum(vacuum::VacuumArgs),
    Info(info::InfoArgs),
    Migrate(migrate::MigrateArgs),
}

pub(super) fn run(context: &CommandContext<'_>, args: &StoreArgs) -> Result<(), CliError> {
    match &args.verb {
        StoreVerb::Backup(args) => backup::run(context, args),
        StoreVerb::Check(_) => check::run(context),
        StoreVerb::Vacuum(_) => vacuum::run(context),
        StoreVerb::Info(_) => info::run(context),
        StoreVerb::Migrate(args) => migrate::run(context, args),
    }
}
