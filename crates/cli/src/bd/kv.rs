//! `bd kv`: values that scripts keep in the store.

use clap::{Args, Subcommand};
use gt_api::{DeletedPairDocument, FoundPairDocument, OrderedMap, PairDocument};
use gt_town::SettingScope;
use gt_town::settings::{get_free, list_free, put_free};

use crate::context::CommandContext;
use crate::error::CliError;

const SCOPE: SettingScope = SettingScope::Values;

/// Keep values for scripts, by name
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd kv set last-deploy 2026-05-31
  bd kv get last-deploy
  bd kv clear last-deploy")]
pub(super) struct KvArgs {
    #[command(subcommand)]
    verb: KvVerb,
}

#[derive(Debug, Subcommand)]
enum KvVerb {
    /// Keep a value
    Set {
        /// Its name
        key: String,
        /// The value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Print a value; exits with 1 if there is none
    Get {
        /// Its name
        key: String,
    },
    /// Forget a value
    Clear {
        /// Its name
        key: String,
    },
    /// Print every value
    List,
}

pub(super) fn run(context: &CommandContext<'_>, args: &KvArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    match &args.verb {
        KvVerb::Set { key, value } => {
            put_free(&town, SCOPE, key, Some(value))?;
            if printer.json() {
                let (key, value) = (key.clone(), value.clone());
                return printer.object(&PairDocument { key, value });
            }
            printer.done(format!("Set {key} = {value}"))
        }
        KvVerb::Get { key } => {
            let value = get_free(&town, SCOPE, key)?;
            if printer.json() {
                printer.object(&FoundPairDocument {
                    key: key.clone(),
                    found: value.is_some(),
                    value: value.clone().unwrap_or_default(),
                })?;
            }
            match value {
                None => Err(CliError::request(format!("{key} is not set"))),
                Some(_) if printer.json() => Ok(()),
                Some(value) => printer.data(value),
            }
        }
        KvVerb::Clear { key } => {
            let cleared = put_free(&town, SCOPE, key, None)?;
            if printer.json() {
                let key = key.clone();
                return printer.object(&DeletedPairDocument { key, deleted: cleared });
            }
            printer.done(if cleared {
                format!("Cleared {key}")
            } else {
                format!("{key} was not set")
            })
        }
        KvVerb::List => {
            let values = list_free(&town, SCOPE)?;
            if printer.json() {
                return printer.object(&values.into_iter().collect::<OrderedMap<String>>());
            }
            values.iter().try_for_each(|(key, value)| printer.line(format!("{key} = {value}")))
        }
    }
}
