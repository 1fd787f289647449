//! `gt install`.

use std::path::PathBuf;

use clap::Args;
use gt_operations::{Installed, SystemClock, install};
use gt_records::ObjectWriter;

use crate::context::Context;
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

pub(super) fn run(context: &Context<'_>, args: &InstallArgs) -> Result<(), CliError> {
    let place = context.directory.join(&args.place);
    let actor = context.actor()?;
    let Installed { root, is_new, server, joined } =
        install(&place, &context.environment, &actor, &SystemClock)?;
    let printer = context.printer;
    if printer.json() {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("root", &root.display().to_string());
        object.flag("created", is_new);
        if let Some(server) = &server {
            object.text("server", server);
            object.flag("joined", joined);
        }
        object.finish();
        return printer.object(&out);
    }
    let root = root.display();
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
