//! `gt man`.

use std::path::PathBuf;

use clap::Args;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::manual::{ManualPage, pages};
use crate::output::plural;

/// The program that opens a manual page from its standard input.
const READER: &str = "man -l -";

/// Open a manual page, write them all, or list them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt man --dir ~/.local/share/man/man1
  gt man sling
  gt man rig add
  gt man")]
pub(super) struct ManArgs {
    /// Open the page of this command, such as sling, rig add or bd-create; without a terminal it is printed for troff
    #[arg(value_name = "PAGE")]
    page: Vec<String>,
    /// Write every page into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    dir: Option<PathBuf>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ManArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let pages = pages()?;
    if let Some(directory) = &args.dir {
        return write_all(context, &pages, directory);
    }
    if !args.page.is_empty() {
        let name = args.page.join("-").replace(' ', "-");
        let name = name.strip_suffix(".1").unwrap_or(&name).to_owned();
        // `sling` is short for `gt-sling`, and `create` for `bd-create`.
        let names = [name.clone(), format!("gt-{name}"), format!("bd-{name}")];
        let page = names.iter().find_map(|name| pages.iter().find(|page| page.name == *name));
        let page = page.ok_or_else(|| {
            CliError::request(format!("there is no page \"{name}\"; gt man lists them"))
        })?;
        return printer.page_in(READER, &page.roff);
    }
    if printer.json() {
        let mut list = printer.list();
        for page in &pages {
            list.push_record(gt_core::Json::string(&page.name).as_str())?;
        }
        return list.finish();
    }
    pages.iter().try_for_each(|page| printer.line(&page.name))
}

fn write_all(
    context: &CommandContext<'_>,
    pages: &[ManualPage],
    directory: &std::path::Path,
) -> Result<(), CliError> {
    let directory = context.directory.join(directory);
    let cannot = |error: std::io::Error, path: &std::path::Path| {
        CliError::request(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(&directory).map_err(|error| cannot(error, &directory))?;
    for page in pages {
        let path = directory.join(format!("{}.1", page.name));
        std::fs::write(&path, &page.roff).map_err(|error| cannot(error, &path))?;
    }
    let count = plural(pages.len() as u64, "page");
    context.printer.done(format!("✓ Wrote {count} to {}", directory.display()))
}
