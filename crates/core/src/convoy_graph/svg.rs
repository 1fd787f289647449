//! The drawing of a convoy as an SVG document: readable in light and dark, and without colours.

use std::fmt::{self, Write as _};

use super::layout::{GraphLayout, GraphNode, PlacedEdge, PlacedNode};
use super::state::TrackedState;

const BOX_WIDTH: usize = 190;
const BOX_HEIGHT: usize = 46;
const COLUMN_GAP: usize = 60;
const ROW_GAP: usize = 18;
const MARGIN: usize = 16;
/// The height of the line that explains the marks.
const LEGEND_HEIGHT: usize = 30;
/// The width of one entry of that line.
const LEGEND_WIDTH: usize = 92;
/// The widest title and id in a box, in letters of the Latin alphabet.
const TITLE_WIDTH_MAX: usize = 26;
const ID_WIDTH_MAX: usize = 23;
/// From here on are the letters of East Asia and pictures, which are twice as wide.
const FIRST_WIDE: char = '\u{1100}';

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}.t{font-size:12px;fill:#59636e}\
.n{fill:#fff;stroke:#59636e;stroke-width:1.2}.e{fill:none;stroke:#818b98;stroke-width:1.2}.c{stroke-width:3}\
.done{fill:#e6f4ea}.failed{fill:#fde7e9;stroke:#b3261e}.running,.starting,.landing{fill:#fff4d6;stroke:#9a6700}\
.blocked,.waiting{stroke-dasharray:6 4}.idle{stroke-dasharray:2 4}\
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.t{fill:#9198a1}.n{fill:#161b22;stroke:#9198a1}\
.e{stroke:#656c76}.done{fill:#12261e}.failed{fill:#3b1219;stroke:#f47067}.running,.starting,.landing{fill:#2e2111;stroke:#d29922}}";

/// Draws it.
pub fn svg(title: &str, graph: &GraphLayout) -> String {
    let columns = graph.layers.max(1);
    let used = legend(graph);
    let width = (2 * MARGIN + columns * (BOX_WIDTH + COLUMN_GAP) - COLUMN_GAP)
        .max(2 * MARGIN + used.len() * LEGEND_WIDTH);
    let height = 2 * MARGIN + graph.rows.max(1) * (BOX_HEIGHT + ROW_GAP) + LEGEND_HEIGHT;
    let mut drawing = String::new();
    // Writing to a text does not fail.
    let _ = draw(&mut drawing, title, graph, &used, (width, height));
    drawing
}

fn draw(
    out: &mut String,
    title: &str,
    graph: &GraphLayout,
    used: &[(char, &str)],
    (width, height): (usize, usize),
) -> fmt::Result {
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>",
        escaped(title)
    )?;
    for line in &graph.edges {
        draw_line(out, graph, line)?;
    }
    for one in &graph.nodes {
        draw_node(out, one)?;
    }
    let y = height - MARGIN;
    for (number, (mark, word)) in used.iter().enumerate() {
        let x = MARGIN + number * LEGEND_WIDTH;
        let word = escaped(word);
        writeln!(out, "<text class=\"t\" x=\"{x}\" y=\"{y}\">{mark} {word}</text>")?;
    }
    out.push_str("</svg>\n");
    Ok(())
}

/// Draws a line from the right side of a box to the left side of another.
fn draw_line(out: &mut String, graph: &GraphLayout, line: &PlacedEdge) -> fmt::Result {
    let (from, to) = (&graph.nodes[line.edge.from], &graph.nodes[line.edge.to]);
    let is_critical = from.node.is_critical && to.node.is_critical;
    let side = |(x, y): (usize, usize)| (x, y + BOX_HEIGHT / 2);
    let (mut x, mut y) = side(corner(from.layer, from.row));
    x += BOX_WIDTH;
    write!(out, "<path class=\"e{}\" d=\"M{x} {y}", if is_critical { " c" } else { "" })?;
    let stops = (from.layer + 1..).zip(line.via.iter().copied()).chain([(to.layer, to.row)]);
    for (layer, row) in stops {
        let (next_x, next_y) = side(corner(layer, row));
        let middle = usize::midpoint(x, next_x);
        write!(out, "C{middle} {y} {middle} {next_y} {next_x} {next_y}")?;
        (x, y) = (next_x, next_y);
        if (layer, row) != (to.layer, to.row) {
            x += BOX_WIDTH;
            write!(out, "H{x}")?;
        }
    }
    out.push_str("\"/>\n");
    Ok(())
}

fn draw_node(out: &mut String, one: &PlacedNode) -> fmt::Result {
    let (x, y) = corner(one.layer, one.row);
    let state = one.node.state;
    let critical = if one.node.is_critical { " c" } else { "" };
    // Beads that go on are rounder, beads that are over have corners: the shape says it without a colour.
    let radius = match state {
        TrackedState::Done | TrackedState::Failed => 0,
        TrackedState::Running | TrackedState::Starting | TrackedState::Landing => BOX_HEIGHT / 2,
        TrackedState::Queued
        | TrackedState::Blocked
        | TrackedState::Waiting
        | TrackedState::Idle => 6,
    };
    let (middle, first, second) = (x + BOX_WIDTH / 2, y + 19, y + 36);
    let id = escaped(one.node.id.as_str());
    writeln!(
        out,
        "<g><title>{id}: {} ({})</title><rect class=\"n {}{critical}\" x=\"{x}\" y=\"{y}\" \
         width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"{radius}\"/>\
         <text text-anchor=\"middle\" x=\"{middle}\" y=\"{first}\">{} {}</text>\
         <text class=\"t\" text-anchor=\"middle\" x=\"{middle}\" y=\"{second}\">{}</text></g>",
        escaped(&one.node.title),
        escaped(one.node.word()),
        state.as_str(),
        mark(&one.node),
        escaped(&shortened(one.node.id.as_str(), ID_WIDTH_MAX)),
        escaped(&shortened(&one.node.title, TITLE_WIDTH_MAX)),
    )
}

/// The upper left corner of a place.
fn corner(layer: usize, row: usize) -> (usize, usize) {
    (MARGIN + layer * (BOX_WIDTH + COLUMN_GAP), MARGIN + row * (BOX_HEIGHT + ROW_GAP))
}

/// The mark of where a bead stands.
fn mark(node: &GraphNode) -> char {
    match node.state {
        TrackedState::Waiting if node.word() == "review" => '◆',
        TrackedState::Done => '✓',
        TrackedState::Failed => '✗',
        TrackedState::Running => '▶',
        TrackedState::Landing => '⇣',
        TrackedState::Starting => '▷',
        TrackedState::Queued => '○',
        TrackedState::Blocked => '⊘',
        TrackedState::Waiting => '…',
        TrackedState::Idle => '·',
    }
}

/// The marks that are in the drawing and their words, in the order of the states.
fn legend(graph: &GraphLayout) -> Vec<(char, &str)> {
    let mut used: Vec<(char, &str)> = Vec::new();
    for state in TrackedState::ALL {
        for one in graph.nodes.iter().filter(|one| one.node.state == state) {
            let entry = (mark(&one.node), one.node.word());
            if !used.contains(&entry) {
                used.push(entry);
            }
        }
    }
    used
}

/// The text, cut to a width.
fn shortened(text: &str, width_max: usize) -> String {
    let width = |c: char| if c < FIRST_WIDE { 1 } else { 2 };
    if text.chars().map(width).sum::<usize>() <= width_max {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += width(*c);
        used < width_max
    };
    let short: String = text.chars().take_while(fits).collect();
    format!("{}…", short.trim_end())
}

/// The text as it may stand in a document, without characters that no document may have.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::node;
    use super::super::layout::{GraphEdge, GraphNode, layout};
    use super::*;

    #[test]
    fn a_drawing_has_every_bead_with_its_mark_and_no_foreign_markup() {
        let hostile = GraphNode {
            title: "<script>alert(\"1\")</script> & \u{1b}[31m".to_owned(),
            is_critical: true,
            ..node("we-a", TrackedState::Failed)
        };
        let next = GraphNode { is_critical: true, ..node("we-b", TrackedState::Blocked) };
        let graph = layout(vec![hostile, next], &[GraphEdge { from: 0, to: 1 }]);

        let drawn = svg("A <convoy>", &graph);

        for part in
            ["✗ we-a", "⊘ we-b", "class=\"n failed c\"", "class=\"e c\"", "A &lt;convoy&gt;"]
        {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        assert!(!drawn.contains("<script>") && !drawn.contains('\u{1b}'), "{drawn}");
        assert!(drawn.ends_with("</svg>\n"));
    }

    #[test]
    fn a_bead_in_review_is_told_from_one_that_waits() {
        let review = GraphNode {
            merge_state: Some("review".to_owned()),
            ..node("we-a", TrackedState::Waiting)
        };
        let waiting = node("we-b", TrackedState::Waiting);
        let drawn = svg("Review", &layout(vec![review, waiting], &[]));
        for part in ["◆ we-a", "(review)", ">◆ review<", "… we-b", ">… waiting<"] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
    }

    #[test]
    fn long_ids_and_wide_titles_are_cut_to_their_box() {
        let long = GraphNode {
            title: "会".repeat(20),
            ..node("web-a-bead-with-a-rather-long-identifier", TrackedState::Queued)
        };
        let drawn = svg("Cut", &layout(vec![long], &[]));
        assert!(drawn.contains(">○ web-a-bead-with-a-rath…<"), "{drawn}");
        assert!(drawn.contains(&format!(">{}…<", "会".repeat(12))), "{drawn}");
        assert!(drawn.contains("<title>web-a-bead-with-a-rather-long-identifier: "), "{drawn}");
    }

    #[test]
    fn a_convoy_without_beads_is_an_empty_drawing() {
        let drawn = svg("Empty", &layout(Vec::new(), &[]));
        assert!(drawn.contains("<title>Empty</title>") && !drawn.contains("<rect"), "{drawn}");
    }
}
