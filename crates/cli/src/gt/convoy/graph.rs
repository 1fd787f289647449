//! `gt convoy graph`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use gt_api::ConvoyGraphDocument;
use gt_core::convoy_graph::svg;
use gt_scheduling::convoy_planning;
use gt_town::OperationError;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::served::GivenFile;

/// Draw the beads of a convoy and what each waits for, as an SVG picture
///
/// Each column is a wave: what stands in it can be worked on at once, when what stands to its left is done. The longest chain
/// of what is left is bold. Marks and shapes say where each bead stands, without colours too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy graph hq-cv-x7k2p --output convoy.svg
  gt convoy graph hq-cv-x7k2p > convoy.svg
  gt convoy graph hq-cv-x7k2p --json")]
pub(super) struct GraphArgs {
    /// The convoy
    id: String,
    /// Write the picture to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &GraphArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let (status, graph) = convoy_planning::graph(&town, &args.id)?;
    let convoy = &status.convoy.bead;
    if printer.json() {
        let (id, title) = (convoy.id.to_string(), convoy.title.to_string());
        return printer.object(&ConvoyGraphDocument::of(id, title, &graph));
    }
    let drawing = svg(&format!("{}: {}", convoy.id, convoy.title), &graph);
    let Some(output) = &args.output else { return printer.text(&drawing) };
    let path = context.directory.join(output);
    let written = GivenFile::create(&path)
        .and_then(|mut file| file.write_all(drawing.as_bytes()).and_then(|()| file.finish()));
    written.map_err(|source| OperationError::File {
        action: "write",
        path: path.clone(),
        source,
    })?;
    printer.done(format!("✓ Drew {} in {}", convoy.id, path.display()))
}
