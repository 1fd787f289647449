//! `bd init`.

use clap::Args;
use gt_operations::{SystemClock, start_store};

use crate::context::Context;
use crate::error::CliError;

/// Make a store in this directory, unless it is inside a town already
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd init\n  bd init --prefix app")]
pub(super) struct InitArgs {
    /// What the ids of its beads begin with
    #[arg(short, long)]
    prefix: Option<String>,
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    server: bool,
    #[arg(long, hide = true)]
    server_port: Option<u16>,
}

pub(super) fn run(context: &Context<'_>, args: &InitArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let (root, prefix) = if let Ok(root) = context.root() {
        (root, None)
    } else {
        let actor = context.actor()?;
        let prefix = args.prefix.as_deref();
        let environment = &context.environment;
        let prefix = start_store(&context.directory, prefix, environment, &actor, &SystemClock)?;
        (context.directory.clone(), Some(prefix))
    };
    if printer.json() {
        let mut out = String::new();
        let mut object = gt_records::ObjectWriter::new(&mut out);
        object.text("root", &root.display().to_string());
        object.flag("created", prefix.is_some());
        if let Some(prefix) = &prefix {
            object.text("prefix", prefix.as_str());
        }
        object.finish();
        return printer.object(&out);
    }
    match prefix {
        Some(prefix) => {
            printer.done(format!("✓ Made a store in {} (prefix {prefix})", root.display()))
        }
        None => printer.done(format!("Already inside the town {}; nothing to do", root.display())),
    }
}
