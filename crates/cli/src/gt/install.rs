//! `gt install`.

use std::path::PathBuf;

use clap::Args;
use gt_api::InstalledDocument;
use gt_town::{Installed, SystemClock, install};

use crate::context::CommandContext;
use crate::error::CliError;

/// Make a town
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gt install ~/town\n  DATABASE_URL=postgres://me@db.example/town gt install ~/town"
)]
pub(super) struct InstallArgs {
    /// Its directory; made if it is not there
    #[arg(value_name = "DIR")]
    place: PathBuf,
}

pub(super) fn run(context: &CommandContext<'_>, args: &InstallArgs) -> Result<(), CliError> {
    let place = context.directory.join(&args.place);
    let actor = context.actor()?;
    let Installed { root, is_new, server, joined, not_on } =
        install(&place, &context.environment, &actor, &SystemClock)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&InstalledDocument {
            root: root.display().to_string(),
            created: is_new,
            prefix: None,
            joined: server.is_some().then_some(joined),
            server,
        });
    }
    let root = root.display();
    if let Some((own, named)) = not_on {
        printer.note(format!(
            "this town is on {own}, and DATABASE_URL names {named}: gt store migrate moves this town there; gt install \
             with another directory joins the town that is there"
        ));
    }
    if !is_new {
        return printer.done(format!("{root} is a town already; nothing to do"));
    }
    match server {
        Some(server) if joined => {
            return printer.done(format!("✓ Joined the town on {server}, from {root}"));
        }
        Some(server) => printer.done(format!("✓ Made a town in {root}, on {server}"))?,
        None => printer.done(format!("✓ Made a town in {root}"))?,
    }
    printer.done(format!("Next: cd {root} && gt rig add <name> <git-url-or-path>"))
}
