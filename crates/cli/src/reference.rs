//! The reference pages, generated so that they cannot be wrong.

use std::fmt::Write as _;

use clap::{Arg, Command};
use gt_core::EventKind;
use gt_core::settings::KEYS;

const GENERATED: &str = "<!-- Generated from the code; a test keeps it true. \
                         UPDATE_REFERENCES=1 cargo test -p gt-tidy --test references -->\n\n";

/// Every kind of event, with the fields of its payload.
pub fn events_markdown() -> String {
    let mut page = format!("{GENERATED}# Events\n\n");
    page.push_str(
        "The kinds of events in `bd activity --json`, `gt feed --json` and `/events`, each with the fields of its \
         `payload`.\nReaders must expect other kinds and fields.\n\n\
         An entry of `dependencies` is `{\"depends_on_id\": …, \"old\": …, \"new\": …}` with the types before and after, \
         null for none; an entry of\n`dependents` has `issue_id` instead. A convoy has a `tracks` dependency on each \
         member, and a part a `parent-child` dependency on its parent.\n",
    );
    for kind in EventKind::ALL {
        let fields = kind.payload_fields().iter().map(|field| {
            let name = field.name.trim_start_matches("r#");
            let name = if name.is_empty() { String::new() } else { format!("`{name}`: ") };
            format!("- {name}{}\n", field.meaning.trim())
        });
        let fields: String = fields.collect();
        let gap = if fields.is_empty() { "" } else { "\n" };
        let _ = write!(page, "\n## {kind}\n\n{}\n{gap}{fields}", kind.meaning());
    }
    page
}

/// Every setting.
pub fn settings_markdown() -> String {
    let mut page = format!("{GENERATED}# Settings\n\n");
    page.push_str(
        "Set with `gt config set <name> <value>`; `gt config list` shows the value in force and where \
         it comes from.\nIn `rig.*.…` the star stands for the name of a rig.\n\n",
    );
    page.push_str("| setting | default | value | meaning |\n|---|---|---|---|\n");
    for setting in KEYS {
        let also: Vec<String> = setting.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let also =
            if also.is_empty() { String::new() } else { format!(" (also {})", also.join(", ")) };
        let default = if setting.default.is_empty() {
            "none".to_owned()
        } else {
            format!("`{}`", setting.default)
        };
        let kind = setting.kind.describe();
        let _ =
            writeln!(page, "| `{}`{also} | {default} | {kind} | {} |", setting.name, setting.help);
    }
    page
}

/// Every command.
pub fn commands_markdown() -> String {
    let mut page = format!("{GENERATED}# Commands\n");
    let mut gt = crate::gt_command();
    gt.build();
    describe(&gt, "", &mut page);
    page
}

/// The names of all commands that do something by themselves, such as `gt rig add`.
pub fn command_names() -> Vec<String> {
    fn collect(command: &Command, above: &str, names: &mut Vec<String>) {
        let name = format!("{above}{}", command.get_name());
        let below: Vec<&Command> = command
            .get_subcommands()
            .filter(|c| !c.is_hide_set() && c.get_name() != "help")
            .collect();
        if below.is_empty() {
            names.push(name);
            return;
        }
        for command in below {
            collect(command, &format!("{name} "), names);
        }
    }
    let mut names = Vec::new();
    let mut gt = crate::gt_command();
    gt.build();
    collect(&gt, "", &mut names);
    names
}

fn describe(command: &Command, above: &str, page: &mut String) {
    let name = format!("{above}{}", command.get_name());
    let _ = write!(page, "\n## `{name}`\n\n");
    if let Some(about) = command.get_about() {
        let _ = write!(page, "{about}.\n\n");
    }
    let visible =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let is_global = |arg: &Arg| arg.is_global_set() && !above.is_empty() && name != "gt bd";
    let args: Vec<&Arg> =
        command.get_arguments().filter(visible).filter(|arg| !is_global(arg)).collect();
    if !args.is_empty() {
        for arg in args {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(page, "- `{}`: {help}", usage(arg));
        }
        page.push('\n');
    }
    if let Some(examples) = command.get_after_help() {
        let _ = write!(page, "```text\n{}\n```\n", examples.to_string().trim_end());
    }
    let mut below: Vec<&Command> =
        command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help").collect();
    below.sort_by_key(|command| command.get_name().to_owned());
    for command in below {
        describe(command, &format!("{name} "), page);
    }
}

fn usage(arg: &Arg) -> String {
    let value = || {
        let names = arg.get_value_names().unwrap_or_default();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let name = if names.is_empty() {
            arg.get_id().to_string().to_uppercase()
        } else {
            names.join(" ")
        };
        format!("<{name}>")
    };
    if arg.is_positional() {
        return value();
    }
    let mut flags: Vec<String> =
        arg.get_short().map(|short| format!("-{short}")).into_iter().collect();
    flags.extend(arg.get_long().map(|long| format!("--{long}")));
    let flags = flags.join(", ");
    if arg.get_action().takes_values() { format!("{flags} {}", value()) } else { flags }
}
