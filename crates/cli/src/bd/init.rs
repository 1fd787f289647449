//! `bd init`.

use clap::Args;
use gt_api::InstalledDocument;
use gt_town::{SystemClock, start_store};

use crate::context::CommandContext;
use crate::error::CliError;

/// Make a store in this directory, unless it is inside a town already
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd init\n  bd init --prefix app")]
pub(super) struct InitArgs {
    /// The prefix of the ids of its beads
    #[arg(short, long)]
    prefix: Option<String>,
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    server: bool,
    #[arg(long, hide = true)]
    server_port: Option<u16>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &InitArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let (root, made) = if let Ok(root) = context.root() {
        (root, None)
    } else {
        let actor = context.actor()?;
        let prefix = args.prefix.as_deref();
        let environment = &context.environment;
        let made = start_store(&context.directory, prefix, environment, &actor, &SystemClock)?;
        (context.directory.clone(), Some(made))
    };
    if printer.json() {
        let prefix = made.as_ref().map(|(prefix, _)| prefix.to_string());
        return printer.object(&InstalledDocument {
            root: root.display().to_string(),
            created: made.is_some(),
            prefix,
            server: made.and_then(|(_, server)| server),
            joined: None,
        });
    }
    match made {
        Some((prefix, server)) => {
            let place = server.map(|server| format!(", on {server}")).unwrap_or_default();
            printer.done(format!("✓ Made a store in {}{place} (prefix {prefix})", root.display()))
        }
        None => printer.done(format!("Already inside the town {}; nothing to do", root.display())),
    }
}
