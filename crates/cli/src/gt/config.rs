//! `gt config`.

use clap::{Args, Subcommand};
use gt_api::SettingDocument;
use gt_core::settings::{Resolved, SettingName, SettingOrigin, shown};
use gt_server::{Bind, DEFAULT_PORT};
use gt_town::{Town, hosts, settings};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural};

/// Read and change the settings of the town
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt config set scheduler.max_polecats 5
  gt config get scheduler.max_polecats
  gt config list
  gt config account add work --max-runs 5
  gt config agent list")]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Change a setting
    Set {
        /// Its name
        key: String,
        /// The value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Print the value in force
    Get {
        /// Its name
        key: String,
    },
    /// Print every setting with the value in force and where it comes from
    List,
    /// Go back to the default
    Unset {
        /// Its name
        key: String,
    },
    /// Change settings in your editor
    Edit,
    Account(super::account::AccountArgs),
    Agent(super::agent::AgentArgs),
    /// Take the values of settings/config.json and mayor/town-settings.json into the store
    Import,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ConfigArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    match &args.verb {
        ConfigVerb::Account(args) => super::account::run(context, args),
        ConfigVerb::Agent(args) => super::agent::run(context, args),
        ConfigVerb::Set { key, value } => set(printer, &town, key, value),
        ConfigVerb::Get { key } => {
            let resolved = settings::get(&town, key)?;
            note_unused(printer, &town, Some(resolved.name.as_str()))?;
            if printer.json() {
                return printer.object(&document(&resolved));
            }
            printer.data(resolved.value)
        }
        ConfigVerb::List => {
            list(printer, &town)?;
            note_unused(printer, &town, None)
        }
        ConfigVerb::Unset { key } => {
            let (name, was_set) = settings::unset(&town, key)?;
            if printer.json() {
                return printer
                    .object(&document(&without_secrets(&settings::get(&town, name.as_str())?)));
            }
            printer.done(if was_set {
                format!("Unset {name}")
            } else {
                format!("{name} was not set; nothing to do")
            })
        }
        ConfigVerb::Edit => edit(context, &town),
        ConfigVerb::Import => {
            let changed = settings::import(&town)?;
            if printer.json() {
                let mut list = printer.list();
                for (name, _) in &changed {
                    list.push(&document(&without_secrets(&settings::get(&town, name.as_str())?)))?;
                }
                return list.finish();
            }
            for (name, value) in &changed {
                printer.done(set_line(name, value))?;
            }
            printer.done(format!("✓ {} imported", plural(changed.len() as u64, "setting")))
        }
    }
}

/// Changes a setting and prints it.
pub(super) fn set(printer: &Printer, town: &Town, key: &str, value: &str) -> Result<(), CliError> {
    let (name, value) = settings::set(town, key, value, gt_scheduling::runtimes::check_name)?;
    note_unused(printer, town, Some(name.as_str()))?;
    if let Some(told) = settings::lacks_hosting(town, &name)? {
        printer.note(format!("warning: {told}"));
    }
    if let Some(rig) = name.as_str().strip_prefix("rig.").and_then(|it| it.strip_suffix(".host"))
        && !value.is_empty()
        && !hosts::is_known(town, &value)?
    {
        printer.note(format!(
            "warning: no host of this town is called {value} (gt host list names them), so nothing of {rig} starts"
        ));
    }
    if name.as_str() == "serve.bind"
        && !value.is_empty()
        && let Err(error) = Bind::parse(&value, DEFAULT_PORT)
    {
        printer.note(format!("warning: the daemon cannot serve there: {error}"));
    }
    if printer.json() {
        return printer.object(&document(&without_secrets(&settings::get(town, name.as_str())?)));
    }
    printer.done(set_line(&name, &value))
}

/// Says which command of a rig is not used, because a setting names a runtime that counts before it.
fn note_unused(printer: &Printer, town: &Town, about: Option<&str>) -> Result<(), CliError> {
    for told in settings::unused_commands(town, about)? {
        printer.note(format!("note: {told}"));
    }
    Ok(())
}

fn list(printer: &Printer, town: &Town) -> Result<(), CliError> {
    print_settings(printer, &settings::list(town)?)
}

/// Prints settings with the values in force and where they come from.
pub(super) fn print_settings(printer: &Printer, all: &[Resolved]) -> Result<(), CliError> {
    if printer.json() {
        let mut list = printer.list();
        for resolved in all {
            list.push(&document(&without_secrets(resolved)))?;
        }
        return list.finish();
    }
    let mut table = Table::with_header(&["SETTING", "VALUE", "FROM"]);
    for resolved in all {
        table.row(vec![
            Cell::new(resolved.name.as_str()),
            Cell::new(resolved.setting.kind.shown(&resolved.value)),
            Cell::new(origin(&resolved.origin)),
        ]);
    }
    printer.table(table)
}

fn edit(context: &CommandContext<'_>, town: &Town) -> Result<(), CliError> {
    let printer = context.printer;
    let changed = settings::edit(town, context.editor()?, gt_scheduling::runtimes::check_name)?;
    if printer.json() {
        let mut list = printer.list();
        for (name, _) in &changed {
            list.push(&document(&without_secrets(&settings::get(town, name.as_str())?)))?;
        }
        return list.finish();
    }
    for (name, value) in &changed {
        printer.done(match value {
            Some(value) => set_line(name, value),
            None => format!("Unset {name}"),
        })?;
    }
    printer.done(format!("✓ {} changed", plural(changed.len() as u64, "setting")))
}

/// The line about a changed setting, with secrets masked.
fn set_line(name: &SettingName, value: &str) -> String {
    format!("Set {name} = {}", shown(name.as_str(), value))
}

/// Masks secrets in a list of settings; `gt config get <name>` prints one.
fn without_secrets(resolved: &Resolved) -> Resolved {
    let value = resolved.setting.kind.shown(&resolved.value).into_owned();
    Resolved { value, ..resolved.clone() }
}

fn origin(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Store => "store".to_owned(),
        SettingOrigin::File(file) => file.clone(),
        SettingOrigin::Default => "default".to_owned(),
    }
}

fn document(resolved: &Resolved) -> SettingDocument {
    SettingDocument {
        key: resolved.name.to_string(),
        value: resolved.value.clone(),
        origin: origin(&resolved.origin),
        default: resolved.setting.default.to_owned(),
        help: resolved.setting.help.to_owned(),
    }
}
