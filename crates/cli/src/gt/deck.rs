//! `gt deck`.

use clap::Args;
use gt_api::{DeckDocument, DeckLoginDocument};
use gt_core::WebAddress;
use gt_core::work::Scopes;
use gt_daemon::daemon;
use gt_town::deck::{DeckRecord, DeckSettings, open_in_browser};
use gt_town::identity::CHECK;
use gt_town::{OperationError, Town};
use gt_workqueue::tokens;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::served;

/// The rights of a person who opens the deck.
const DEFAULT_SCOPES: &str = "view,operate,review,type";

/// Open the flight deck, the page that shows the town and takes decisions
///
/// Makes a login link that works once, within a minute, and opens it in a browser if there is a display. Decisions on the page carry
/// the name of the person who made the link. The daemon serves the page; gt serve does, too. gt token list shows who is logged in, and
/// gt token revoke logs a browser out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt deck
  gt deck --no-open                     # prints the link only
  gt deck --scopes view                 # to look, and not to touch
  gt deck --url https://town.example/gt/deck/")]
pub(super) struct DeckArgs {
    /// Only print the link
    #[arg(long)]
    no_open: bool,
    /// The rights of the page: view, operate, review and type; several are separated by commas
    #[arg(long, value_name = "SCOPES", default_value = DEFAULT_SCOPES, value_parser = Scopes::parse)]
    scopes: Scopes,
    /// The address of the page, if it is not the daemon's or that of deck.url
    #[arg(long, value_name = "URL", value_parser = WebAddress::parse)]
    url: Option<WebAddress>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &DeckArgs) -> Result<(), CliError> {
    let town = context.town()?;
    refuse_to_workers(context, &town)?;
    let address = match &args.url {
        Some(url) => url.clone(),
        None => WebAddress::parse(&address(&town)?)?,
    };
    let (login, secret) = tokens::create_login(&town, args.scopes.clone())?;
    let link = address.below(&format!("/login?code={}", secret.reveal()))?.to_string();
    let opened = !args.no_open && open_in_browser(&context.environment, town.root(), &link);
    let printer = context.printer;
    if printer.json() {
        return printer.object(&DeckLoginDocument {
            url: link,
            opened,
            actor: login.name.clone(),
            scopes: login.scopes.each().map(|scope| scope.as_str().to_owned()).collect(),
            expires_at: login.expires_at.unwrap_or(login.created_at).into(),
        });
    }
    printer.data(&link)?;
    let what = if opened { "Opened in a browser; the" } else { "Open this in a browser; the" };
    printer.note(format!(
        "note: {what} link works once, within a minute, and logs in {} ({})",
        login.name, login.scopes
    ));
    Ok(())
}

/// A worker gets no login, with any rights: decisions on the page are those of a person. A process that has taken its
/// run out of its environment is known by its parents.
fn refuse_to_workers(context: &CommandContext<'_>, town: &Town) -> Result<(), CliError> {
    let environment = &context.environment;
    let is_worker = environment.may_be_worker() || environment.get(CHECK).is_some();
    if is_worker || town.worker().is_some() || served::process_owner(town).is_some() {
        return Err(CliError::request(
            "a worker or a check gets no login: decisions in the flight deck are those of a person",
        ));
    }
    Ok(())
}

/// The address of the deck that the daemon serves.
fn address(town: &Town) -> Result<String, CliError> {
    let settings = DeckSettings::of(town)?;
    if let Some(url) = &settings.url {
        return Ok(url.to_string());
    }
    if !settings.enabled {
        return Err(CliError::request(
            "the daemon does not serve the flight deck: deck.enabled is false; gt config set deck.enabled true changes that, \
             and --url names the page of a gt serve",
        ));
    }
    if !daemon::is_running(town) {
        return Err(CliError::request(
            "no daemon runs that could serve the flight deck; start it with gt up, or name the page of a gt serve with --url",
        ));
    }
    match DeckRecord::read(town.root()) {
        Some(record) if record.problem.is_empty() => Ok(record.address()),
        Some(record) => Err(CliError::request(format!(
            "the daemon cannot serve the flight deck: {}; gt config set deck.port <port> moves it",
            record.problem
        ))),
        None => Err(CliError::request(
            "the daemon does not serve the flight deck yet; try again in a moment, gt daemon logs says more",
        )),
    }
}

/// Where the deck is, for `gt status`.
#[derive(Debug)]
pub(super) struct DeckStatus {
    settings: DeckSettings,
    record: Option<DeckRecord>,
    is_served: bool,
}

impl DeckStatus {
    pub(super) fn of(town: &Town) -> Result<Self, OperationError> {
        let settings = DeckSettings::of(town)?;
        let record = DeckRecord::read(town.root());
        let is_served = settings.enabled && record.is_some() && daemon::is_running(town);
        Ok(Self { settings, record, is_served })
    }

    fn problem(&self) -> Option<&str> {
        let problem = self.record.as_ref().filter(|_| self.is_served)?.problem.as_str();
        (!problem.is_empty()).then_some(problem)
    }

    /// The line for people, if there is something to say.
    pub(super) fn line(&self) -> Option<String> {
        if let Some(problem) = self.problem() {
            return Some(format!("Deck: not served: {problem}"));
        }
        self.address().map(|address| format!("Deck: {address} (gt deck opens it)"))
    }

    /// The address at which people find it now.
    fn address(&self) -> Option<String> {
        self.settings.address(self.record.as_ref().filter(|_| self.is_served))
    }

    pub(super) fn document(&self) -> DeckDocument {
        DeckDocument {
            enabled: self.settings.enabled,
            url: self.address(),
            serving: self.is_served && self.problem().is_none(),
            problem: self.problem().map(str::to_owned),
        }
    }
}
