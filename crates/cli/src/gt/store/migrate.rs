//! `gt store migrate`.

use clap::Args;
use gt_api::StoreMoveDocument;
use gt_daemon::store_migration;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{plural, progress_bar};

/// Move the town to another store: from a file to PostgreSQL, or back
///
/// Copies every row while no other process can write, compares counts and checksums of each table, and then has the town
/// use the new store. The former store is kept and takes no writes any more. The daemon must be stopped and no run may be
/// live. If the command is killed, the town is on one of the two stores, and the same command finishes the move.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt scheduler drain && gt down
  gt store migrate postgres://gt@db.example/town
  gt store migrate sqlite               # back to .gt/gt.db
  gt up && gt scheduler resume")]
pub(super) struct MigrateArgs {
    /// The URL of a PostgreSQL database, a path, or sqlite for the town's own file
    #[arg(value_name = "STORE")]
    to: String,
}

pub(super) fn run(context: &CommandContext<'_>, args: &MigrateArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let bar = progress_bar("moving", 0);
    let moved =
        store_migration::migrate(&town, &args.to, &context.environment, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        });
    bar.finish_and_clear();
    let moved = moved?;
    if printer.json() {
        return printer.object(&StoreMoveDocument {
            from: moved.from,
            to: moved.to,
            changed: moved.copied.is_some(),
            tables: moved.copied.map_or(0, |copied| copied.tables),
            rows: moved.copied.map_or(0, |copied| copied.rows),
        });
    }
    let Some(copied) = moved.copied else {
        return printer.done(format!("The town is on {} already; nothing to do", moved.to));
    };
    printer.done(format!(
        "✓ Moved {} of {} to {}; counts and checksums agree",
        plural(copied.rows, "row"),
        plural(copied.tables, "table"),
        moved.to
    ))?;
    printer.note(format!(
        "The former store is kept: {}. It takes no writes any more. Restart gt serve, if it runs, and start the daemon \
         with gt up",
        moved.from
    ));
    Ok(())
}
