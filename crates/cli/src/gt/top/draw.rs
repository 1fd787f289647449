//! Draws the model. It decides nothing and changes nothing.

use gt_core::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Row, Table, TableState, Wrap};

use super::model::{
    PageSource, Tone, TopCell, TopColumn, TopMode, TopModel, TopPage, TopRow, TopView,
};
use crate::output::{LineStyle, StyledLine, moment, visible};

/// How many lines stand around a page: its title and its keys.
const PAGE_SURROUNDINGS: u16 = 2;
/// How many lines the facts about the chosen row take, at most.
const DETAIL_LINES_MAX: u16 = 9;
/// The room between two columns.
const COLUMN_GAP: u16 = 2;
/// The width of the sign before the chosen row.
const CHOSEN_WIDTH: u16 = 2;
/// Screens that are lower than this show no facts about the chosen row.
const DETAIL_SCREEN_MIN: u16 = 16;

/// How many lines of a page fit a screen of this height.
pub(super) fn page_height(screen: u16) -> usize {
    screen.saturating_sub(PAGE_SURROUNDINGS).into()
}

pub(super) fn draw(frame: &mut Frame<'_>, model: &TopModel, colours: bool) {
    let drawing = DrawStyle { colours };
    match (&model.page, &model.mode) {
        (Some(page), _) => draw_page(frame, model, page, drawing),
        (None, _) => draw_list(frame, model, drawing),
    }
    if model.mode == TopMode::Help {
        draw_help(frame, model);
    }
}

/// Whether colours are wanted. Words say everything without them.
#[derive(Debug, Clone, Copy)]
struct DrawStyle {
    colours: bool,
}

impl DrawStyle {
    fn of_tone(self, tone: Tone) -> Style {
        let colour = match tone {
            _ if !self.colours => return Style::new(),
            Tone::Plain => return Style::new(),
            Tone::Good => Color::Green,
            Tone::Busy => Color::Yellow,
            Tone::Bad => Color::Red,
            Tone::Quiet => Color::DarkGray,
        };
        Style::new().fg(colour)
    }

    fn of_line(self, style: LineStyle) -> Style {
        match style {
            LineStyle::Plain => Style::new(),
            LineStyle::Strong => Style::new().add_modifier(Modifier::BOLD),
            LineStyle::Faint => Style::new().add_modifier(Modifier::DIM),
            LineStyle::Added => self.of_tone(Tone::Good),
            LineStyle::Removed | LineStyle::Failed => self.of_tone(Tone::Bad),
        }
    }
}

fn draw_list(frame: &mut Frame<'_>, model: &TopModel, drawing: DrawStyle) {
    let area = frame.area();
    let chosen = model.chosen_row();
    let detail_height = match chosen {
        Some(_) if area.height >= DETAIL_SCREEN_MIN => (area.height / 3).clamp(4, DETAIL_LINES_MAX),
        _ => 0,
    };
    let [head, tabs, list, detail, result, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(detail_height),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head_line(model, drawing)), head);
    frame.render_widget(Paragraph::new(tab_line(model)), tabs);
    draw_rows(frame, model, list, drawing);
    if let Some(row) = chosen.filter(|_| detail_height > 0) {
        draw_detail(frame, row, detail);
    }
    frame.render_widget(Paragraph::new(result_line(model, drawing)), result);
    frame.render_widget(Paragraph::new(key_line(model, chosen, area.width)), keys);
}

fn head_line(model: &TopModel, drawing: DrawStyle) -> Line<'static> {
    let bad = drawing.of_tone(Tone::Bad).add_modifier(Modifier::BOLD);
    if let Some((since, why)) = &model.stale {
        let text = format!("STALE since {}: {why}", moment(*since));
        return Line::styled(visible(&text).into_owned(), bad);
    }
    let Some(snapshot) = &model.snapshot else { return Line::raw("reading …") };
    let mut spans = vec![Span::raw(visible(&snapshot.headline).into_owned())];
    if let Some(warning) = &snapshot.warning {
        spans.push(Span::styled(format!("  ! {}", visible(warning)), bad));
    }
    Line::from(spans)
}

fn tab_line(model: &TopModel) -> Line<'static> {
    let needs = model.snapshot.as_ref().map_or(0, |snapshot| snapshot.needs);
    let mut spans = Vec::new();
    for view in TopView::ALL {
        let count = match view {
            TopView::NeedsYou if needs > 0 => format!(" {needs}"),
            _ => String::new(),
        };
        let text = format!("g{} {}{count}", view.key(), view.title());
        // Brackets say the same as the inverse video.
        let (text, style) = if view == model.view {
            (format!("[{text}]"), Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED))
        } else {
            (format!(" {text} "), Style::new())
        };
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}

fn draw_rows(frame: &mut Frame<'_>, model: &TopModel, area: Rect, drawing: DrawStyle) {
    let Some(snapshot) = &model.snapshot else { return };
    let rows = model.rows();
    if rows.is_empty() {
        let text = match (model.search.is_empty(), model.view) {
            (false, _) => format!("Nothing here has \"{}\"; Esc ends the search", model.search),
            (true, TopView::NeedsYou) => "Nothing needs you.".to_owned(),
            (true, TopView::Runs) => "Nothing is running.".to_owned(),
            (true, TopView::Queue) => "The merge queue is empty.".to_owned(),
            (true, TopView::Convoys) => "No convoys under way.".to_owned(),
            (true, TopView::Board | TopView::Feed) => "Nothing to show.".to_owned(),
        };
        frame.render_widget(Paragraph::new(visible(&text).into_owned()), area);
        return;
    }
    let shown: Vec<usize> = (0..snapshot.columns.len())
        .filter(|at| area.width >= snapshot.columns[*at].screen_min)
        .filter(|at| is_used(&rows, *at) || *at + 1 == snapshot.columns.len())
        .collect();
    let widths = column_widths(&snapshot.columns, &shown, &rows, model.now, area.width);
    let header = Row::new(shown.iter().map(|at| snapshot.columns[*at].title))
        .style(Style::new().add_modifier(Modifier::BOLD));
    let lines = rows.iter().map(|row| {
        let cells = shown.iter().filter_map(|at| row.cells.get(*at)).zip(&widths);
        Row::new(cells.map(|(cell, width)| {
            let (text, tone) = cell_text(cell, model.now);
            Text::styled(shortened(text, *width), drawing.of_tone(tone))
        }))
    });
    let table = Table::new(lines, widths.iter().map(|width| Constraint::Length(*width)))
        .header(header)
        .column_spacing(COLUMN_GAP)
        .highlight_symbol("> ")
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(model.chosen_at());
    frame.render_stateful_widget(table, area, &mut state);
}

/// Whether any row has something in this column.
fn is_used(rows: &[&TopRow], at: usize) -> bool {
    let is_full = |cell: &TopCell| match cell {
        TopCell::Text(text) | TopCell::Toned(text, _) => !text.is_empty(),
        TopCell::Since(_) | TopCell::SilentSince(_) => true,
    };
    rows.iter().any(|row| row.cells.get(at).is_some_and(is_full))
}

/// The widths of the columns that are shown. The last one has what is left; a column is cut to its limit only if the last
/// one needs the room.
fn column_widths(
    columns: &[TopColumn],
    shown: &[usize],
    rows: &[&TopRow],
    now: Timestamp,
    screen: u16,
) -> Vec<u16> {
    let Some((last, others)) = shown.split_last() else { return Vec::new() };
    let whole = |at: &usize| whole_width(&columns[*at], rows, *at, now);
    let mut widths: Vec<u16> =
        others.iter().map(|at| whole(at).min(columns[*at].width_max)).collect();
    let gaps = COLUMN_GAP.saturating_mul(u16::try_from(others.len()).unwrap_or(u16::MAX));
    let taken =
        widths.iter().fold(gaps.saturating_add(CHOSEN_WIDTH), |sum, one| sum.saturating_add(*one));
    let left = screen.saturating_sub(taken);
    let mut spare = left.saturating_sub(whole(last));
    for (width, at) in widths.iter_mut().zip(others) {
        let more = whole(at).saturating_sub(*width).min(spare);
        *width += more;
        spare -= more;
    }
    let given: u16 = widths.iter().sum();
    widths.push(screen.saturating_sub(CHOSEN_WIDTH).saturating_sub(gaps).saturating_sub(given));
    widths
}

/// The width of a column with nothing cut.
fn whole_width(column: &TopColumn, rows: &[&TopRow], at: usize, now: Timestamp) -> u16 {
    let cells = rows.iter().filter_map(|row| row.cells.get(at));
    let widths = cells.map(|cell| Span::raw(cell_text(cell, now).0).width());
    let widest = widths.max().unwrap_or(0).max(column.title.len());
    u16::try_from(widest).unwrap_or(u16::MAX)
}

/// The text, cut to a width; a mark says that it was cut.
fn shortened(text: String, width: u16) -> String {
    let width = usize::from(width);
    if Span::raw(text.as_str()).width() <= width {
        return text;
    }
    let mut used = 0;
    let fits = |letter: &char| {
        used += Span::raw(letter.to_string()).width();
        used < width
    };
    let short: String = text.chars().take_while(fits).collect();
    format!("{}…", short.trim_end())
}

fn cell_text(cell: &TopCell, now: Timestamp) -> (String, Tone) {
    match cell {
        TopCell::Text(text) => (visible(text).into_owned(), Tone::Plain),
        TopCell::Toned(text, tone) => (visible(text).into_owned(), *tone),
        TopCell::Since(then) => (age(*then, now), Tone::Plain),
        TopCell::SilentSince(then) => (format!("silent {}", age(*then, now)), Tone::Bad),
    }
}

/// The time since then, in its largest unit.
fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.since(then).as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn draw_detail(frame: &mut Frame<'_>, row: &TopRow, area: Rect) {
    let lines: Vec<Line<'_>> =
        row.detail.iter().map(|line| Line::raw(visible(line).into_owned())).collect();
    let block = Block::new().borders(Borders::TOP);
    frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), area);
}

/// The line above the keys: a question to answer, or what became of the last answer.
fn result_line(model: &TopModel, drawing: DrawStyle) -> Line<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match &model.mode {
        TopMode::Search => Line::styled(format!("/{}_", visible(&model.search)), bold),
        TopMode::Go => Line::styled("g: n b r q c f goes there", bold),
        TopMode::Prompt { answer, text } => {
            let question = answer.asks.unwrap_or_default();
            Line::styled(format!("{question}: {}_", visible(text)), bold)
        }
        TopMode::Confirm { answer, words } => {
            let line = super::answers::shell_line(words);
            let keys = if answer.asks.is_none() { "y or Enter runs" } else { "y runs" };
            let text = format!("{}? {keys}  {line}  any other key: no", answer.name);
            Line::styled(visible(&text).into_owned(), drawing.of_tone(Tone::Bad).patch(bold))
        }
        TopMode::Browse | TopMode::Page | TopMode::Help => match &model.result {
            Some(result) => {
                let tone = if result.is_done { Tone::Good } else { Tone::Bad };
                let mark = if result.is_done { "" } else { "! " };
                let text = format!("{mark}{}", visible(&result.text));
                Line::styled(text, drawing.of_tone(tone))
            }
            None if !model.search.is_empty() => {
                Line::raw(format!("/{}  (Esc ends the search)", visible(&model.search)))
            }
            None => Line::raw(format!("$ {}", model.view.command())),
        },
    }
}

fn key_line(model: &TopModel, chosen: Option<&TopRow>, width: u16) -> Line<'static> {
    let faint = Style::new().add_modifier(Modifier::DIM);
    match &model.mode {
        TopMode::Prompt { answer, text } => {
            let line = super::answers::shell_line(&answer.words_with(text.trim()));
            let line = format!("Enter runs  {}  Esc leaves it", visible(&line));
            return Line::styled(line, faint);
        }
        TopMode::Search => return Line::styled("Enter keeps it  Esc ends it", faint),
        _ => {}
    }
    let mut words: Vec<String> = Vec::new();
    if let Some(row) = chosen {
        words.extend(row.opens.is_some().then(|| "Enter opens".to_owned()));
        words.extend(row.answers.iter().map(|answer| format!("{} {}", answer.key, answer.name)));
    }
    words.extend(["? help", "/ search", "q quit"].map(str::to_owned));
    Line::styled(join_whole(&words, width), faint)
}

/// As many of the words as fit the width whole.
fn join_whole(words: &[String], width: u16) -> String {
    let mut line = String::new();
    for word in words {
        let gap = if line.is_empty() { "" } else { "  " };
        if Span::raw(line.as_str()).width() + gap.len() + Span::raw(word.as_str()).width()
            > usize::from(width)
        {
            break;
        }
        line.push_str(gap);
        line.push_str(word);
    }
    line
}

fn draw_page(frame: &mut Frame<'_>, model: &TopModel, page: &TopPage, drawing: DrawStyle) {
    let [title, body, keys] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    let last = (page.top + model.page_height).min(page.lines.len());
    let place = format!("{}-{} of {}", (page.top + 1).min(last), last, page.lines.len());
    let live = match &page.source {
        PageSource::Transcript(_) if page.follows => "  following",
        PageSource::Transcript(_) => "  End follows",
        PageSource::Command { .. } => "",
    };
    let heading = format!("$ {}  {place}{live}", page.source.command_line());
    let style = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
    frame.render_widget(Paragraph::new(Line::styled(visible(&heading).into_owned(), style)), title);
    let lines: Vec<Line<'_>> = page
        .lines
        .iter()
        .skip(page.top)
        .take(body.height.into())
        .map(|StyledLine { style, text }| {
            // A tab is as wide as the terminal likes, which no screen can know.
            Line::styled(visible(&text.replace('\t', "    ")).into_owned(), drawing.of_line(*style))
        })
        .collect();
    frame.render_widget(Paragraph::new(lines).scroll((0, page.left)), body);
    let mut words = vec!["Esc back".to_owned(), "Space b pages".to_owned()];
    if matches!(&page.source, PageSource::Command { words, .. } if words.contains(&"diff".to_owned()))
    {
        words.push("] [ files".to_owned());
    }
    let is_wide = |line: &StyledLine| line.text.chars().count() > body.width.into();
    if page.left > 0 || page.lines.iter().any(is_wide) {
        words.push("← → sideways".to_owned());
    }
    let row = model.chosen_row();
    let answers = row.into_iter().flat_map(|row| &row.answers);
    words.extend(answers.map(|answer| format!("{} {}", answer.key, answer.name)));
    let faint = Style::new().add_modifier(Modifier::DIM);
    let line = join_whole(&words, keys.width);
    frame.render_widget(Paragraph::new(Line::styled(line, faint)), keys);
}

/// Every key, and the command that does the same.
const HELP: [&str; 20] = [
    "g n  g b  g r  g q  needs you, board, runs, queue",
    "g c  g f            convoys, feed",
    "Tab  Shift-Tab      next view, last view",
    "j k  arrows         next row, last row",
    "Enter               open: diff, log, transcript, why",
    "/                   search in this view; Esc ends it",
    "",
    "a                   approve      gt review approve",
    "d                   reject       gt review reject",
    "r                   reply        gt mail reply, gt nudge",
    "t                   retry now    gt mq retry, gt scheduler retry",
    "                    in runs: terminal    gt peek",
    "x                   cancel       gt run cancel, gt mq cancel",
    "e                   edit bead    bd update --title",
    "",
    "On a page: j k, Space b, Home End, ← → sideways; ] [ files",
    "Ctrl-L draws everything anew, q and Ctrl-C quit",
    "",
    "Each answer runs the command that it shows, after y or Enter.",
    "Any key closes this.",
];

fn draw_help(frame: &mut Frame<'_>, model: &TopModel) {
    let area = frame.area();
    let width = 66.min(area.width);
    let height = u16::try_from(HELP.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let title = format!(" {}: {} ", model.view.title(), model.view.command());
    let block = Block::bordered().title(title);
    frame.render_widget(Clear, place);
    let lines: Vec<Line<'_>> = HELP.iter().map(|line| Line::raw(*line)).collect();
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
