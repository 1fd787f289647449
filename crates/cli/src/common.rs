//! Flags that every command of both programs takes.

use std::path::PathBuf;

use clap::Args;

/// How a command prints, where it runs, and for whom.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Print JSON
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Act as this person or agent
    #[arg(long, global = true, value_name = "NAME", help_heading = "Global options")]
    pub(crate) actor: Option<String>,
    /// Work in this directory
    #[arg(short = 'C', long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) directory: Option<PathBuf>,
    /// Print only what was asked for
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
}
