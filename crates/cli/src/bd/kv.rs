//! `bd kv`: what scripts keep here.

use clap::{Args, Subcommand};
use gt_operations::Scope;
use gt_operations::settings::{get_free, list_free, put_free};
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;

const SCOPE: Scope = Scope::Values;

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

pub(super) fn run(context: &Context<'_>, args: &KvArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let print = |write: &dyn Fn(&mut ObjectWriter<'_>)| {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        write(&mut object);
        object.finish();
        printer.object(&out)
    };
    match &args.verb {
        KvVerb::Set { key, value } => {
            put_free(&town, SCOPE, key, Some(value))?;
            if printer.json() {
                return print(&|object| {
                    object.text("key", key);
                    object.text("value", value);
                });
            }
            printer.done(format!("Set {key} = {value}"))
        }
        KvVerb::Get { key } => {
            let value = get_free(&town, SCOPE, key)?;
            if printer.json() {
                print(&|object| {
                    object.text("key", key);
                    object.flag("found", value.is_some());
                    object.text("value", value.as_deref().unwrap_or_default());
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
                return print(&|object| {
                    object.text("key", key);
                    object.flag("deleted", cleared);
                });
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
                return print(&|object| {
                    for (key, value) in &values {
                        object.text(key, value);
                    }
                });
            }
            values.iter().try_for_each(|(key, value)| printer.line(format!("{key} = {value}")))
        }
    }
}
