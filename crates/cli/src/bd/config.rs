//! `bd config`: values of scripts. The settings of the town are `gt config`.

use clap::{Args, Subcommand};
use gt_api::{OrderedMap, PairDocument};
use gt_beads::interchange::{AUTOMATIC_EXPORT, EXPORT_PATH, jsonl_in_own_repository};
use gt_core::settings::SettingKind;
use gt_town::SettingScope;
use gt_town::settings::{get_free, list_free, put_free};

use super::sync;
use crate::context::CommandContext;
use crate::error::CliError;

/// Remember values for scripts; see gt config for the settings of the town
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd config set status.custom review:active
  bd config get status.custom")]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Remember a value
    Set {
        /// Its name
        key: String,
        /// The value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Print a value
    Get {
        /// Its name
        key: String,
    },
    /// Print every value
    List,
    /// Forget a value
    Unset {
        /// Its name
        key: String,
    },
}

pub(super) fn run(context: &CommandContext<'_>, args: &ConfigArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let pair =
        |key: &str, value: &str| PairDocument { key: key.to_owned(), value: value.to_owned() };
    match &args.verb {
        ConfigVerb::Set { key, value } => {
            let is_export = key == AUTOMATIC_EXPORT;
            let is_on = is_export
                && SettingKind::Bool.canonical(value).map_err(|invalid| {
                    CliError::request(format!("{AUTOMATIC_EXPORT}: {invalid}"))
                })? == "true";
            if is_on
                && get_free(&town, SettingScope::Beads, EXPORT_PATH)?.is_none()
                && let Some(path) = jsonl_in_own_repository(&town, &context.directory)?
            {
                let path = path.display().to_string();
                put_free(&town, SettingScope::Beads, EXPORT_PATH, Some(&path))?;
                printer.note(format!("{EXPORT_PATH} = {path}, with the beads of the whole town"));
            }
            put_free(&town, SettingScope::Beads, key, Some(value))?;
            if is_export || key == EXPORT_PATH {
                sync::begin(context, &town);
            }
            if printer.json() {
                return printer.object(&pair(key, value));
            }
            printer.done(format!("Set {key} = {value}"))
        }
        ConfigVerb::Get { key } => {
            let value = get_free(&town, SettingScope::Beads, key)?;
            if printer.json() {
                return printer.object(&pair(key, &value.unwrap_or_default()));
            }
            printer.data(value.unwrap_or_else(|| format!("{key} (not set)")))
        }
        ConfigVerb::List => {
            let values = list_free(&town, SettingScope::Beads)?;
            if printer.json() {
                return printer.object(&values.into_iter().collect::<OrderedMap<String>>());
            }
            values.iter().try_for_each(|(key, value)| printer.line(format!("{key} = {value}")))
        }
        ConfigVerb::Unset { key } => {
            put_free(&town, SettingScope::Beads, key, None)?;
            if printer.json() {
                return printer.object(&pair(key, ""));
            }
            printer.done(format!("Unset {key}"))
        }
    }
}
