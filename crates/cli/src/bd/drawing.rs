//! A list of beads as text that other programs draw.

use gt_town::BeadRow;

use crate::error::CliError;
use crate::output::Printer;

/// How beads and what connects them are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drawing {
    /// For Graphviz.
    Dot,
    /// One edge per line.
    Digraph,
}

impl Drawing {
    /// The drawing that `--format` asks for, if it asks for one.
    pub(super) fn of_format(format: Option<&str>) -> Option<Self> {
        match format? {
            "dot" => Some(Self::Dot),
            "digraph" => Some(Self::Digraph),
            _ => None,
        }
    }
}

/// Prints the head of the graph.
pub(super) fn begin(printer: &Printer, drawing: Drawing) -> Result<(), CliError> {
    match drawing {
        Drawing::Dot => printer.line("digraph beads {"),
        Drawing::Digraph => Ok(()),
    }
}

/// Beads and what they depend on.
pub(super) fn rows(printer: &Printer, drawing: Drawing, rows: &[BeadRow]) -> Result<(), CliError> {
    for row in rows {
        let id = row.bead.id.as_str();
        if drawing == Drawing::Dot {
            let label = format!("{id}: {} ({})", row.bead.title, row.bead.status);
            printer.line(format!("  {} [label={}]", quoted(id), quoted(&label)))?;
        }
        for edge in &row.dependencies {
            let (target, kind) = (edge.target.as_str(), edge.kind.as_str());
            printer.line(match drawing {
                Drawing::Dot => {
                    format!("  {} -> {} [label={}]", quoted(id), quoted(target), quoted(kind))
                }
                Drawing::Digraph => format!("{id} {target}"),
            })?;
        }
    }
    Ok(())
}

/// Prints the foot of the graph.
pub(super) fn end(printer: &Printer, drawing: Drawing) -> Result<(), CliError> {
    match drawing {
        Drawing::Dot => printer.line("}"),
        Drawing::Digraph => Ok(()),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
