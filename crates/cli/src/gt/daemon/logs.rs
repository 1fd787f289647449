//! `gt daemon logs`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use gt_daemon::daemon::{self, JournalEntry};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, moment};

/// How often the log is read for new lines.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Show what it did
///
/// With --json, its lines as they are: one object each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt daemon logs -n 20\n  gt daemon logs --follow")]
pub(super) struct LogsArgs {
    /// Go on with new lines
    #[arg(short, long)]
    follow: bool,
    /// Begin with this many past lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    lines: usize,
}

pub(super) fn run(context: &CommandContext<'_>, args: &LogsArgs) -> Result<(), CliError> {
    let root = context.root()?;
    let (printer, path) = (context.printer, daemon::log_path(&root));
    let failed =
        |error| CliError::request(format!("cannot read the log in {}: {error}", root.display()));
    let files = daemon::log_files(&root);
    if files.is_empty() && !args.follow {
        printer.note("There is no log: no daemon has run here; gt up starts one");
        return Ok(());
    }
    // The file that grows is opened before the past is read, so that nothing comes between.
    let mut growing = File::open(&path).ok().map(BufReader::new);
    let mut past = VecDeque::new();
    for file in files.iter().filter(|file| **file != path) {
        let Ok(file) = File::open(file) else { continue };
        for line in BufReader::new(file).lines() {
            push_limited(&mut past, line.map_err(failed)?, args.lines);
        }
    }
    let mut rest = String::new();
    if let Some(growing) = &mut growing {
        while let Some(line) = next_line(growing, &mut rest).map_err(failed)? {
            push_limited(&mut past, line, args.lines);
        }
    }
    past.iter().try_for_each(|line| print(printer, line))?;
    if !args.follow {
        return Ok(());
    }
    loop {
        if let Some(growing) = &mut growing {
            while let Some(line) = next_line(growing, &mut rest).map_err(failed)? {
                print(printer, &line)?;
            }
        }
        // A rotated log is read to its end before the new one is opened.
        if growing.as_ref().is_none_or(|growing| was_moved(growing, &path)) {
            let fresh = File::open(&path).ok().map(BufReader::new);
            if fresh.is_some() {
                (growing, rest) = (fresh, String::new());
                continue;
            }
        }
        printer.wait(LOG_POLL_INTERVAL)?;
    }
}

fn push_limited(past: &mut VecDeque<String>, line: String, most: usize) {
    past.push_back(line);
    if past.len() > most {
        past.pop_front();
    }
}

/// The next whole line; a partial line after it stays in `rest`.
fn next_line(file: &mut BufReader<File>, rest: &mut String) -> std::io::Result<Option<String>> {
    file.read_line(rest)?;
    if !rest.ends_with('\n') {
        return Ok(None);
    }
    let line = std::mem::take(rest);
    Ok(Some(line.trim_end_matches('\n').to_owned()))
}

fn was_moved(file: &BufReader<File>, path: &Path) -> bool {
    let number = |metadata: std::io::Result<std::fs::Metadata>| {
        metadata.map(|metadata| (metadata.dev(), metadata.ino())).ok()
    };
    number(file.get_ref().metadata()) != number(std::fs::metadata(path))
}

fn print(printer: &Printer, line: &str) -> Result<(), CliError> {
    let entry = JournalEntry::parse(line);
    if printer.json() {
        // A line that the daemon did not write is not JSON.
        return if entry.is_some() { printer.record_line(line) } else { Ok(()) };
    }
    let Some(entry) = entry else { return printer.line(line) };
    let level = if entry.level == "info" { String::new() } else { format!("{}: ", entry.level) };
    let more: Vec<String> =
        entry.more.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let text = format!("{}  {level}{}  {}", moment(entry.at), entry.event, more.join(" "));
    printer.line(text.trim_end())
}
