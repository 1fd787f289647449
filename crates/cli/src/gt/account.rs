//! `gt config account`.

use clap::{Args, Subcommand};
use gt_api::{AccountDocument, DefaultAccountDocument};
use gt_core::cost::SeenWindow;
use gt_core::schedule::{Account, ParkSubject};
use gt_scheduling::accounts::{self, NewAccount};
use gt_scheduling::dispatch::parked;
use gt_scheduling::usage_windows::current_windows;

use super::deacon::resume_account;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, ago, local_times, moment, plural};

/// Accounts that runs are charged to
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt config account add work --config-dir ~/.claude-work --max-runs 5
  gt config account add lab --env ANTHROPIC_API_KEY=…
  gt config account default work
  gt config account resume work
  gt config account list")]
pub(super) struct AccountArgs {
    #[command(subcommand)]
    verb: AccountVerb,
}

#[derive(Debug, Subcommand)]
enum AccountVerb {
    /// Add an account
    Add(AddArgs),
    /// List the accounts; of variables only their names
    List,
    /// Choose the account of runs that name none
    Default(DefaultArgs),
    /// Remove an account that nothing is scheduled or running for
    Remove {
        /// Its name
        handle: String,
    },
    /// Start work again on an account that is limited or parked
    Resume {
        /// Its name
        handle: String,
    },
    /// Take over the accounts that gt import brought
    Import,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Its name
    handle: String,
    /// Where its agent keeps its configuration
    #[arg(long, value_name = "DIR")]
    config_dir: Option<String>,
    /// A variable that its runs get; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE")]
    environment: Vec<String>,
    /// Most live runs; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_runs: u32,
}

#[derive(Debug, Args)]
struct DefaultArgs {
    /// Its name
    #[arg(required_unless_present = "none", conflicts_with = "none")]
    handle: Option<String>,
    /// Have no default
    #[arg(long)]
    none: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &AccountArgs) -> Result<(), CliError> {
    match &args.verb {
        AccountVerb::Add(args) => add(context, args),
        AccountVerb::List => list(context),
        AccountVerb::Default(args) => set_default(context, args),
        AccountVerb::Remove { handle } => remove(context, handle),
        AccountVerb::Resume { handle } => resume_account(context, handle),
        AccountVerb::Import => import(context),
    }
}

fn add(context: &CommandContext<'_>, args: &AddArgs) -> Result<(), CliError> {
    let variable = |text: &String| match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        // The text may be a secret, so the error does not repeat it.
        None => Err(CliError::request("--env wants NAME=VALUE")),
    };
    // Runs start elsewhere, where a relative path would lead nowhere.
    let config_dir = args.config_dir.as_deref().filter(|directory| !directory.is_empty());
    let config_dir = config_dir.map(|given| context.directory.join(given).display().to_string());
    let new = NewAccount {
        handle: args.handle.clone(),
        config_dir: config_dir.unwrap_or_default(),
        environment: args.environment.iter().map(variable).collect::<Result<_, _>>()?,
        max_runs: args.max_runs,
    };
    let account = accounts::add(&context.town()?, &new)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&AccountDocument::from(&account));
    }
    let handle = &account.handle;
    printer.done(format!("✓ Added the account {handle}"))?;
    printer
        .done(format!("Next: gt config account default {handle}, or gt sling --account {handle}"))
}

fn list(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let accounts = accounts::list(&town)?;
    let windows = current_windows(&town)?;
    let windows_of = |account: &Account| {
        let means = ParkSubject::account(&account.handle);
        windows.iter().filter(move |(of, _)| *of == means).map(|(_, seen)| seen)
    };
    if printer.json() {
        let mut list = printer.list();
        for account in &accounts {
            list.push(&AccountDocument::from(account).with_windows(windows_of(account)))?;
        }
        return list.finish();
    }
    if accounts.is_empty() {
        printer.done("No accounts yet; add one with gt config account add <name>")?;
    } else {
        let mut table = Table::with_header(&[
            "ACCOUNT",
            "DEFAULT",
            "MOST RUNS",
            "CONFIG DIRECTORY",
            "VARIABLES",
        ]);
        for account in &accounts {
            let cap = match account.max_runs {
                0 => "no limit".to_owned(),
                cap => cap.to_string(),
            };
            table.row(vec![
                Cell::new(account.handle.as_str()),
                Cell::new(if account.is_default { "yes" } else { "" }),
                Cell::new(cap),
                Cell::new(account.config_dir.as_str()),
                Cell::new(names(account).join(", ")),
            ]);
        }
        printer.table(table)?;
    }
    let parked = parked(&town)?;
    for account in &accounts {
        let means = ParkSubject::account(&account.handle);
        let park = parked.iter().find(|parked| parked.park.means == means);
        for SeenWindow { window, seen_at } in windows_of(account) {
            // Work goes on when the park ends, which may be long before the moment that the service has told.
            let reset = match park {
                Some(parked) => Some(local_times(&format!(", limited {}", parked.hold))),
                None => window.resets_at.map(|at| format!(", resets {}", moment(at))),
            };
            let seen = ago(*seen_at, town.now());
            printer.line(format!(
                "{}  {window}{}, told {seen}",
                account.handle,
                reset.unwrap_or_default()
            ))?;
        }
    }
    let kept = accounts::kept(&town)?;
    if !kept.is_empty() {
        printer.done(format!(
            "An import brought {}: {}; gt config account import takes them over",
            plural(kept.len() as u64, "more account"),
            kept.join(", ")
        ))?;
    }
    Ok(())
}

fn set_default(context: &CommandContext<'_>, args: &DefaultArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let changed = accounts::set_default(&town, args.handle.as_deref())?;
    if printer.json() {
        let default = args.handle.clone();
        return printer.object(&DefaultAccountDocument { default, changed });
    }
    printer.done(match (&args.handle, changed) {
        (Some(handle), true) => format!("✓ The default account is {handle}"),
        (Some(handle), false) => format!("The default account is {handle} already; nothing to do"),
        (None, true) => "✓ There is no default account".to_owned(),
        (None, false) => "There was no default account; nothing to do".to_owned(),
    })
}

fn remove(context: &CommandContext<'_>, handle: &str) -> Result<(), CliError> {
    let account = accounts::remove(&context.town()?, handle)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&AccountDocument::from(&account));
    }
    printer.done(format!("✓ Removed the account {handle}"))?;
    if account.is_default {
        printer
            .done("There is no default account now; gt config account default <name> sets one")?;
    }
    Ok(())
}

fn import(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let taken = accounts::take_in(&town, context.environment.path("HOME").as_deref())?;
    if printer.json() {
        let mut list = printer.list();
        for account in &taken.added {
            list.push(&AccountDocument::from(account))?;
        }
        return list.finish();
    }
    for account in &taken.added {
        printer.done(format!("✓ Added the account {}", account.handle))?;
    }
    for (handle, why) in &taken.left_out {
        printer.done(format!("Left out {handle}: {why}"))?;
    }
    if let Some(default) = &taken.default {
        printer.done(format!("The default account is {default}"))?;
    }
    Ok(())
}

fn names(account: &Account) -> Vec<&str> {
    account.environment.iter().map(|(name, _)| name.as_str()).collect()
}
