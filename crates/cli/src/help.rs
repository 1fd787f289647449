//! The first page of help: the commands in groups, by the task that a person has.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;

/// The widest line of help.
const COLUMNS: usize = 80;
/// Where the text of a command begins.
const TEXT_COLUMN: usize = 16;

/// A task, and the names of the commands for it.
struct CommandGroup {
    heading: &'static str,
    names: &'static str,
}

impl CommandGroup {
    fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.names.split_whitespace()
    }
}

const fn group(heading: &'static str, names: &'static str) -> CommandGroup {
    CommandGroup { heading, names }
}

/// The commands of `gt`.
const GT: &[CommandGroup] = &[
    group("Every day", "init bd sling convoy status inbox review why"),
    group("Start", "demo install rig config import completions man"),
    group("Plan", "queue scheduler formula unsling"),
    group("Watch", "deck top feed run peek attach polecat wait cost"),
    group("Decide", "mail nudge escalate"),
    group("Land", "mq rescue"),
    group("Operate", "up down daemon doctor store host deacon outbox serve token"),
    group("For agents", "prime hook step done handoff work mcp"),
];

/// The commands of `bd`.
const BD: &[CommandGroup] = &[
    group("Every day", "create ready show update close list search dep"),
    group("Start", "init import export sync merge-driver config setup onboard quickstart"),
    group(
        "Change",
        "q edit note tag assign priority label comments state set-state done reopen defer undefer \
         link duplicate supersede promote rename rename-prefix delete batch",
    ),
    group(
        "Find",
        "blocked children epic query sql stale lint orphans duplicates stats count activity history graph \
         todo human",
    ),
    group("Formulas", "formula cook mol gate swarm merge-slot"),
    group(
        "For agents and scripts",
        "prime codex-hook remember memories recall forget kv types statuses where context \
         info ping version doctor completion help",
    ),
    group("From the original", "hooks dolt migrate purge prune"),
];

/// Gives `gt` its first page.
pub(crate) fn grouped_gt(command: Command) -> Command {
    grouped(command, GT)
}

/// Gives `bd` its first page.
pub(crate) fn grouped_bd(command: Command) -> Command {
    grouped(command, BD)
}

fn grouped(command: Command, groups: &[CommandGroup]) -> Command {
    let page = page(&command, groups);
    command.help_template(page)
}

fn page(command: &Command, groups: &[CommandGroup]) -> StyledStr {
    let styles = command.get_styles().clone();
    let (heading, literal) = (styles.get_header(), styles.get_literal());
    let mut page = StyledStr::new();
    let _ = write!(page, "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n");
    for group in groups {
        let _ = write!(page, "\n{heading}{}:{heading:#}\n", group.heading);
        for name in group.commands() {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let mut lines = wrapped(&about).into_iter();
            let first = lines.next().unwrap_or_default();
            let gap = " ".repeat((TEXT_COLUMN - 2).saturating_sub(name.len()));
            let _ = writeln!(page, "  {literal}{name}{literal:#}{gap}{first}");
            for line in lines {
                let _ = writeln!(page, "{}{line}", " ".repeat(TEXT_COLUMN));
            }
        }
    }
    let _ = write!(page, "\n{{options}}{{after-help}}\n");
    page
}

/// The words in lines that fit beside the names.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if TEXT_COLUMN + line.len() + 1 + word.len() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Checks that each command that people see is in one group, and that each line fits a terminal.
    fn check(mut command: Command, groups: &[CommandGroup]) {
        let named: Vec<&str> = groups.iter().flat_map(CommandGroup::commands).collect();
        let unique: BTreeSet<&str> = named.iter().copied().collect();
        assert_eq!(unique.len(), named.len(), "a command is in two groups");
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let visible: BTreeSet<&str> = visible.map(Command::get_name).collect();
        assert_eq!(unique, visible, "the groups in help.rs and the commands differ");
        let help = command.render_help().to_string();
        let long = help.lines().find(|line| line.chars().count() > COLUMNS);
        assert_eq!(long, None);
        for name in named {
            assert!(help.contains(&format!("\n  {name} ")), "{name} is missing in:\n{help}");
        }
    }

    #[test]
    fn each_command_of_gt_is_in_one_group_of_its_help() {
        check(crate::gt_command(), GT);
    }

    #[test]
    fn each_command_of_bd_is_in_one_group_of_its_help() {
        check(crate::bd_command(), BD);
    }
}
