//! The manual pages, made from the definitions of the commands.

use clap::Command;
use clap_mangen::Man;

use crate::error::CliError;

/// One manual page of section 1.
pub(crate) struct ManualPage {
    /// The name for `man`: `bd-create`.
    pub(crate) name: String,
    /// The page, for `troff`.
    pub(crate) roff: String,
}

/// A page for each command that people see, of both programs. `gt bd` is `bd` and has no pages of its
/// own.
pub(crate) fn pages() -> Result<Vec<ManualPage>, CliError> {
    let mut pages = Vec::new();
    for command in [crate::gt_command_alone(), crate::bd_command()] {
        let mut command = without_help(command);
        command.build();
        let name = command.get_name().to_owned();
        add(&command, &name, &mut pages)?;
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pages)
}

/// A manual needs no command that prints a shorter one.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn add(command: &Command, name: &str, pages: &mut Vec<ManualPage>) -> Result<(), CliError> {
    let mut roff = Vec::new();
    let source = format!("gt {}", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).source(source).manual("gt manual").render(&mut roff)?;
    let roff = String::from_utf8_lossy(&roff).into_owned();
    pages.push(ManualPage { name: name.to_owned(), roff });
    let below = command.get_subcommands();
    let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    for command in below.filter(is_shown) {
        add(command, &format!("{name}-{}", command.get_name()), pages)?;
    }
    Ok(())
}
