//! `gt mail`.

use clap::{Args, Subcommand};
use gt_api::MessageDocument;
use gt_beads::messages::{self, MessageToSend};
use gt_core::Message;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, moment};
use crate::values::text_of;

/// How many messages `--all` lists unless said otherwise.
const LIMIT: usize = 50;

/// Write to people and workers, and read what they write
#[derive(Debug, Args)]
#[command(
    after_help = "An address is mayor, deacon, <rig>/witness, <rig>/refinery, <rig>/crew/<name>, <rig>/polecats/<name>
(or <rig>/<name>), or a bead or run for its worker. People without an address of their own read what
the mayor gets.

Examples:
  gt mail send gt-abc -s \"The API has changed\" -m \"See docs/api.md\"
  gt mail inbox
  gt mail read msg-17
  gt mail reply msg-17 -m \"Use the new one\""
)]
pub(super) struct MailArgs {
    #[command(subcommand)]
    verb: MailVerb,
}

#[derive(Debug, Subcommand)]
enum MailVerb {
    Send(SendArgs),
    Inbox(InboxArgs),
    Read(ReadArgs),
    Show(ShowArgs),
    Reply(ReplyArgs),
}

/// Send a message: it is kept until its recipient reads it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt mail send mayor -s \"The tests need a key\" -m \"Which one may I use?\"
  gt mail send gastown/crew/ann -s Report -m - < report.md")]
struct SendArgs {
    /// The recipient: an address, or a bead or run for its worker
    #[arg(value_name = "ADDRESS")]
    to: String,
    /// The subject, in one line
    #[arg(short, long)]
    subject: String,
    /// The text (- is standard input)
    #[arg(short, long, visible_alias = "body", value_name = "TEXT")]
    message: Option<String>,
}

/// List what you have not read
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt mail inbox
  gt mail inbox --mark --json
  gt mail inbox gastown/crew/ann --all")]
struct InboxArgs {
    /// Read the inbox of this address instead, and leave its messages unread
    #[arg(value_name = "ADDRESS")]
    of: Option<String>,
    /// Also messages that were read before
    #[arg(short, long)]
    all: bool,
    /// With --all, at most this many; 0 for all
    #[arg(short = 'n', long, default_value_t = LIMIT, requires = "all")]
    limit: usize,
    /// Print what they say, and mark them as seen
    #[arg(long, conflicts_with = "of")]
    mark: bool,
}

/// Read a message; if it is for you, it is marked as seen
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt mail read msg-17")]
struct ReadArgs {
    /// A message
    message: String,
}

/// Show a message with its receipts, and mark nothing
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt mail show msg-17 --json")]
struct ShowArgs {
    /// A message
    message: String,
}

/// Answer a message
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt mail reply msg-17 -m \"Use the second one\"")]
struct ReplyArgs {
    /// The message that is answered
    #[arg(value_name = "MESSAGE")]
    to: String,
    /// The text of the answer (- is standard input)
    #[arg(short, long, visible_alias = "body", value_name = "TEXT")]
    message: String,
    /// Another subject than that of the message
    #[arg(short, long)]
    subject: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &MailArgs) -> Result<(), CliError> {
    match &args.verb {
        MailVerb::Send(args) => send(context, args),
        MailVerb::Inbox(args) => inbox(context, args),
        MailVerb::Read(args) => read(context, args),
        MailVerb::Show(args) => show(context, args),
        MailVerb::Reply(args) => reply(context, args),
    }
}

fn send(context: &CommandContext<'_>, args: &SendArgs) -> Result<(), CliError> {
    let body = args.message.as_deref().map(words).transpose()?.unwrap_or_default();
    let town = context.town()?;
    let letter = MessageToSend { subject: Some(args.subject.clone()), body, nudge: false };
    let sent = messages::send(&town, role(context), &args.to, &letter)?;
    print_sent(context.printer, &sent)
}

fn reply(context: &CommandContext<'_>, args: &ReplyArgs) -> Result<(), CliError> {
    let body = words(&args.message)?;
    let town = context.town()?;
    let letter = MessageToSend { subject: args.subject.clone(), body, nudge: false };
    let sent = messages::reply(&town, role(context), &args.to, &letter)?;
    print_sent(context.printer, &sent)
}

fn inbox(context: &CommandContext<'_>, args: &InboxArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let all = args.all.then_some(if args.limit == 0 { usize::MAX } else { args.limit });
    let inbox = messages::inbox(&town, role(context), args.of.as_deref(), all)?;
    if printer.json() {
        let mut list = printer.list();
        for message in &inbox.messages {
            list.push(&MessageDocument::from(message))?;
        }
        list.finish()?;
    } else if inbox.messages.is_empty() {
        let whose: Vec<String> = inbox.addresses.iter().map(ToString::to_string).collect();
        let what = if args.all { "No messages" } else { "Nothing unread" };
        printer.done(format!("{what} for {}", whose.join(", ")))?;
    } else if args.mark {
        for message in &inbox.messages {
            print_message(printer, message)?;
        }
    } else {
        let now = town.now();
        let mut table =
            Table::with_header(&["MESSAGE", "FROM", "ABOUT", "SENT", "STATE", "SUBJECT"])
                .droppable(&["STATE", "SENT"]);
        for message in &inbox.messages {
            table.row(vec![
                Cell::bold(message.id.to_string()),
                Cell::new(message.from.to_string()),
                Cell::new(message.bead.as_ref().map(ToString::to_string).unwrap_or_default()),
                Cell::new(ago(message.created_at, now)),
                Cell::new(message.receipt().as_str()),
                Cell::new(message_headline(message)),
            ]);
        }
        printer.table(table)?;
    }
    if args.mark {
        printer.flush()?;
        messages::mark_seen(&town, role(context), &inbox.messages)?;
    }
    Ok(())
}

fn read(context: &CommandContext<'_>, args: &ReadArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let message = messages::read(&town, role(context), &args.message)?;
    if printer.json() {
        printer.object(&MessageDocument::from(&message))?;
    } else {
        print_message(printer, &message)?;
    }
    // Only a message that was written out counts as read.
    printer.flush()?;
    Ok(messages::mark_seen(&town, role(context), &[message])?)
}

fn show(context: &CommandContext<'_>, args: &ShowArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let message = messages::show(&town, &args.message)?;
    if printer.json() {
        return printer.object(&MessageDocument::from(&message));
    }
    print_message(printer, &message)?;
    let mut table = Table::new();
    let receipts = [
        ("queued", Some(message.created_at)),
        ("delivered", message.delivered_at),
        ("seen", message.seen_at),
    ];
    for (name, at) in receipts {
        let at = at.map_or_else(|| "not yet".to_owned(), moment);
        table.row(vec![Cell::bold(name), Cell::new(at)]);
    }
    printer.table(table)
}

/// The address that the caller has, if the environment says so.
pub(super) fn role<'a>(context: &'a CommandContext<'_>) -> Option<&'a str> {
    context.environment.get("GT_ROLE")
}

/// The text of an argument, or of standard input for `-`.
pub(super) fn words(text: &str) -> Result<String, CliError> {
    if text == "-" { text_of("-") } else { Ok(text.to_owned()) }
}

/// The headline of a message, with its severity.
pub(super) fn message_headline(message: &Message) -> String {
    match message.kind.severity() {
        Some(severity) => format!("[{}] {}", severity.as_str(), message.headline()),
        None => message.headline().to_owned(),
    }
}

/// A line for each who asks for a person, with what to do.
pub(super) fn print_needs_you(printer: &Printer, asking: &[Message]) -> Result<(), CliError> {
    if asking.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.heading("Needs you", "")?;
    print_asking(printer, asking)
}

/// Prints the messages that ask for a person, a line each.
pub(super) fn print_asking(printer: &Printer, asking: &[Message]) -> Result<(), CliError> {
    for message in asking {
        let about =
            message.bead.as_ref().map_or_else(|| message.from.to_string(), ToString::to_string);
        printer.line(format!(
            "  ! {about} {} (gt mail read {})",
            message_headline(message),
            message.id
        ))?;
    }
    Ok(())
}

fn print_sent(printer: &Printer, sent: &Message) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&MessageDocument::from(sent));
    }
    printer.done(format!(
        "✓ Sent {} to {}; gt mail show {} says when it is seen",
        sent.id, sent.to, sent.id
    ))
}

/// A message for people: sender, recipient, subject and text.
pub(super) fn print_message(printer: &Printer, message: &Message) -> Result<(), CliError> {
    printer.heading(&message.id.to_string(), &format!("  {}", message_headline(message)))?;
    let about = message.bead.as_ref().map(|bead| format!(" about {bead}")).unwrap_or_default();
    let answers = message.reply_to.map(|id| format!(", answers {id}")).unwrap_or_default();
    printer.line(format!(
        "{} from {} to {}{about}, {}{answers}",
        message.kind.as_str(),
        message.from,
        message.to,
        moment(message.created_at)
    ))?;
    if !message.body.is_empty() {
        printer.line("")?;
        printer.text(&message.body)?;
    }
    printer.line("")
}
