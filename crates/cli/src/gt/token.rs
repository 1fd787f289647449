//! `gt token`.

use clap::{Args, Subcommand};
use gt_api::{NewTokenDocument, TokenDocument};
use gt_core::time::parse_duration;
use gt_core::work::{Scopes, Token, TokenUse};
use gt_town::IfAbsent;
use gt_workqueue::tokens::{self, NewToken};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, ago, moment};

/// Tokens for those who speak to the server
#[derive(Debug, Args)]
#[command(after_help = "Scopes:
  read     look at work items
  submit   submit work, change and cancel it, and dispatch it; and look at work items
  work     take work and report on it, for one agent; and look at work items
  view     look at merge requests, reviews and the inbox, with the changes
  operate  steer the merge queues; and view
  review   comment, approve and reject finished work; and view
  type     type into the sessions of workers; and view
  admin    everything

Examples:
  gt token create steve-w --scope work
  gt token create build-host --scope work --agent steve-w
  gt token create ann --scope view,review
  gt token create gitea-watcher --scope submit --expires 90d
  gt token list
  gt token revoke 3f9a1c0b77de")]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
enum TokenVerb {
    /// Make a token; its secret is shown once
    Create(CreateArgs),
    /// List the tokens and the sessions of the flight deck, without their secrets
    List,
    /// End a token, or log a browser out
    Revoke {
        /// Its id, or the name of its holder
        token: String,
    },
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// The name of its holder; events of its requests carry this name
    name: String,
    /// The rights of its holder: read, submit, work, view, operate, review, type or admin; several are separated by commas
    #[arg(long, value_name = "SCOPES", default_value = "read", value_parser = Scopes::parse)]
    scope: Scopes,
    /// The one agent that a token with the scope work takes work for and reports as; its own name unless said
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// How long it is valid, such as 12h or 90d; for good unless said
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &TokenArgs) -> Result<(), CliError> {
    match &args.verb {
        TokenVerb::Create(args) => create(context, args),
        TokenVerb::List => list(context),
        TokenVerb::Revoke { token } => revoke(context, token),
    }
}

fn create(context: &CommandContext<'_>, args: &CreateArgs) -> Result<(), CliError> {
    let town = context.town_or_database(IfAbsent::Make)?;
    let printer = context.printer;
    let lasts = args.expires.as_deref().map(parse_duration).transpose()?;
    let new = NewToken {
        name: args.name.clone(),
        scopes: args.scope.clone(),
        agent: args.agent.clone(),
        expires_at: lasts.map(|lasts| town.now().plus(lasts)),
    };
    let (token, secret) = tokens::create(&town, new)?;
    if printer.json() {
        return printer.object(&NewTokenDocument {
            token: TokenDocument::at(&token, town.now()),
            secret: secret.reveal(),
        });
    }
    let agent = match &token.agent {
        Some(agent) => format!(", agent {agent}"),
        None => String::new(),
    };
    printer.done(format!(
        "✓ Made the token {} for {} ({}{agent})",
        token.id, token.name, token.scopes
    ))?;
    printer.data(secret.reveal())?;
    printer.note(
        "note: this is the only time it is shown; every client that has it may do what its scopes allow",
    );
    Ok(())
}

fn list(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town_or_database(IfAbsent::Refuse)?;
    let (printer, now) = (context.printer, town.now());
    let tokens = tokens::list(&town)?;
    if printer.json() {
        let mut list = printer.list();
        for token in &tokens {
            list.push(&TokenDocument::at(token, now))?;
        }
        return list.finish();
    }
    if tokens.is_empty() {
        return printer.done("No tokens yet; make one with gt token create <name>");
    }
    let mut table = Table::with_header(&["TOKEN", "NAME", "SCOPES", "AGENT", "MADE", "STATE"]);
    // A link that was used, or was not used in time, is of no interest to a person.
    let is_shown = |token: &&Token| token.shown_as != TokenUse::Login || token.is_valid(now);
    for token in tokens.iter().filter(is_shown) {
        let state = match (token.revoked_at, token.ends_at()) {
            (Some(at), _) => format!("revoked {}", ago(at, now)),
            (None, Some(until)) if until <= now => format!("expired {}", ago(until, now)),
            (None, Some(until)) => format!("valid until {}", moment(until)),
            (None, None) => "valid".to_owned(),
        };
        table.row(vec![
            Cell::bold(token.id.as_str()),
            Cell::new(token.name.as_str()),
            Cell::new(token.scopes.to_string()),
            Cell::new(match token.shown_as {
                TokenUse::Bearer => token.agent.as_deref().unwrap_or("any"),
                TokenUse::Login => "login link",
                TokenUse::Session => "browser",
            }),
            Cell::new(ago(token.created_at, now)),
            Cell::new(state),
        ]);
    }
    printer.table(table)
}

fn revoke(context: &CommandContext<'_>, token: &str) -> Result<(), CliError> {
    let town = context.town_or_database(IfAbsent::Refuse)?;
    let id = tokens::find(&town, token)?;
    let printer = context.printer;
    let (token, ended) = tokens::revoke(&town, &id)?;
    if printer.json() {
        return printer.object(&TokenDocument::at(&token, town.now()));
    }
    printer.done(if ended {
        format!("✓ Revoked the token {id} of {}", token.name)
    } else {
        format!("The token {id} of {} was revoked already; nothing to do", token.name)
    })
}
