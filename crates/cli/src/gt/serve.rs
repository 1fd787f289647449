//! `gt serve`.

use std::io::{IsTerminal as _, Write as _};

use clap::{Args, ValueEnum};
use gt_api::ListeningDocument;
use gt_daemon::daemon::make_room_for_files;
use gt_server::{AllowedOrigin, Bind, DEFAULT_PORT, LogSink, ServeError, Server, ServerConfig};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::served;

/// Serve the work queue over HTTP
///
/// Answers under /work, /projects and /events until it is stopped; /docs is a page to try it. It needs no daemon. Only this
/// machine is served unless --bind says otherwise; a client on another machine needs a token (gt token create).
///
/// The database of a town is the one that `database_url` in its .gt/town.toml names, else the one that `DATABASE_URL` names,
/// else its file .gt/gt.db. Without a town `DATABASE_URL` alone counts, and the database is made if it is not there. It can be
/// a path, sqlite:<path> or `postgres://user@host/database`. No option names a database.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt serve                              # http://127.0.0.1:8080, or PORT
  gt serve --bind 0.0.0.0:9000          # others too, with a token
  DATABASE_URL=/data/work_queue.db PORT=8080 gt serve
  gt serve --cors https://board.example --log json")]
pub(super) struct ServeArgs {
    /// Listen there: an address, a port (:9000) or both; loopback and PORT, or 8080, where nothing is said (can be repeated)
    #[arg(long, value_name = "ADDRESS")]
    bind: Vec<String>,
    /// Answer every client without a token, also from other machines; the same as `GT_INSECURE=1`
    #[arg(long)]
    insecure: bool,
    /// Want a token of this machine's own users, too
    #[arg(long, conflicts_with = "insecure")]
    require_token: bool,
    /// Let pages from there ask in a browser, such as `https://board.example`; * for all (can be repeated)
    #[arg(long, value_name = "ORIGIN")]
    cors: Vec<String>,
    /// How requests are logged to standard error
    #[arg(long, value_enum, default_value_t = LogChoice::Auto)]
    log: LogChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogChoice {
    /// Nothing on a terminal, else a line of JSON for each
    Auto,
    /// A line of JSON for each
    Json,
    /// Nothing
    Off,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ServeArgs) -> Result<(), CliError> {
    let serving = serving(context, args)?;
    let (is_exposed, insecure) = (serving.is_exposed(), serving.insecure);
    let town = context.town_to_serve()?;
    if served::process_owner(&town).is_some() {
        return Err(CliError::request(
            "a worker or a check does not serve its own town: a server's callers make decisions of people",
        ));
    }
    let place = town.store_place();
    make_room_for_files();
    let server = Server::bind(town, serving)?;
    let printer = context.printer;
    let addresses: Vec<String> =
        server.addresses().iter().map(|address| format!("http://{address}")).collect();
    if insecure && is_exposed {
        printer.note(
            "warning: every client that can reach this server can read and change everything; --bind 127.0.0.1 or tokens keep \
             others out",
        );
    }
    if printer.json() {
        printer.object(&ListeningDocument {
            addresses: addresses.clone(),
            store: place.clone(),
            pid: std::process::id(),
        })?;
    } else {
        for address in &addresses {
            printer.done(format!("Listening on {address}"))?;
        }
        printer.done(format!("The work is in {place}; Ctrl-C ends this"))?;
    }
    printer.flush()?;
    server.run_until_stopped()?;
    printer.done("Stopped")
}

/// How to serve, from what was said and from the environment.
fn serving(context: &CommandContext<'_>, args: &ServeArgs) -> Result<ServerConfig, CliError> {
    let environment = &context.environment;
    let port = match environment.get("PORT") {
        None => DEFAULT_PORT,
        Some(port) => port.parse().map_err(|_| {
            CliError::request(format!(
                "PORT is \"{port}\", which is no port; it is a number up to 65535"
            ))
        })?,
    };
    let bind = if args.bind.is_empty() {
        vec![Bind::loopback(port)]
    } else {
        args.bind.iter().map(|text| Bind::parse(text, port)).collect::<Result<_, _>>()?
    };
    let insecure =
        environment.get("GT_INSECURE").is_some_and(|value| !matches!(value, "0" | "false"));
    let cors = args.cors.iter().map(|text| AllowedOrigin::parse(text)).collect::<Result<_, _>>()?;
    let wants_log = match args.log {
        LogChoice::Auto => !std::io::stderr().is_terminal(),
        LogChoice::Json => true,
        LogChoice::Off => false,
    };
    Ok(ServerConfig {
        insecure: args.insecure || (insecure && !args.require_token),
        require_token: args.require_token,
        cors,
        log: wants_log.then(log_to_standard_error),
        ..ServerConfig::on(bind)
    })
}

/// Lines that standard error does not take are dropped; the server goes on.
fn log_to_standard_error() -> LogSink {
    Box::new(|lines| {
        let _ = std::io::stderr().write_all(lines.as_bytes());
    })
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Operation(error) => error.into(),
            other => Self::request(gt_town::with_causes(&other)),
        }
    }
}
