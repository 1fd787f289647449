//! `bd setup`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gt_api::SetupDocument;
use gt_beads::agent_setup::{SetupAgent, check, install, remove};

use crate::context::CommandContext;
use crate::error::CliError;

/// Write the hooks and instructions with which an agent starts with bd prime
#[derive(Debug, Args)]
#[command(after_help = "The files are written into this directory; what else is in them stays.

Examples:
  bd setup claude
  bd setup codex --check
  bd setup cursor --remove
  bd setup claude --global")]
pub(super) struct SetupArgs {
    /// Which agent
    agent: Option<AgentName>,
    /// List the agents
    #[arg(long)]
    list: bool,
    /// Only say whether it is set up; exits with 1 if not
    #[arg(long, conflicts_with = "remove")]
    check: bool,
    /// Take the hooks and instructions out again
    #[arg(long)]
    remove: bool,
    /// In your home directory instead of this one
    #[arg(long)]
    global: bool,
    #[arg(long, hide = true, conflicts_with = "global")]
    project: bool,
    #[arg(long, hide = true)]
    stealth: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AgentName {
    Claude,
    Codex,
    Cursor,
}

impl AgentName {
    fn agent(self) -> SetupAgent {
        match self {
            Self::Claude => SetupAgent::Claude,
            Self::Codex => SetupAgent::Codex,
            Self::Cursor => SetupAgent::Cursor,
        }
    }
}

pub(super) fn run(context: &CommandContext<'_>, args: &SetupArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let Some(name) = args.agent.filter(|_| !args.list) else {
        let names = AgentName::value_variants().iter().map(|name| name.agent().name());
        return names.into_iter().try_for_each(|name| printer.line(format!("bd setup {name}")));
    };
    let agent = name.agent();
    let directory = if args.global {
        let home = context.environment.path("HOME");
        home.ok_or_else(|| CliError::request("HOME is not set, so there is no home directory"))?
    } else {
        context.directory.clone()
    };
    let (installed, files) = if args.check {
        check(&directory, agent)?
    } else if args.remove {
        (false, remove(&directory, agent)?)
    } else {
        (true, install(&directory, agent)?)
    };
    if printer.json() {
        printer.object(&SetupDocument {
            agent: agent.name().to_owned(),
            installed,
            files: files.iter().map(|file| file.display().to_string()).collect(),
        })?;
    }
    let name = agent.name();
    if args.check && !installed {
        return Err(CliError::request(format!(
            "{name} is not set up here; bd setup {name} does it"
        )));
    }
    let verb = match (args.check, args.remove) {
        (true, _) => "✓ Set up",
        (_, true) => "✓ Removed from",
        _ => "✓ Wrote",
    };
    files.iter().try_for_each(|file: &PathBuf| printer.done(format!("{verb} {}", file.display())))
}
