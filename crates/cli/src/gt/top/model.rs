//! The contents of `gt top` and the meaning of its keys: values only, without a terminal and without a store.

use gt_core::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::answers::{RowAnswer, shell_line};
use crate::output::{LineStyle, StyledLine};

/// How many lines of a page are kept; the oldest go first.
const PAGE_LINES_MAX: usize = 10_000;
/// How far a page key moves in a list.
const LIST_PAGE: usize = 10;
/// How many columns a page moves sideways.
const SIDE_STEP: u16 = 20;

/// A list that can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gt) enum TopView {
    NeedsYou,
    Board,
    Runs,
    Queue,
    Convoys,
    Feed,
}

impl TopView {
    pub(super) const ALL: [Self; 6] =
        [Self::NeedsYou, Self::Board, Self::Runs, Self::Queue, Self::Convoys, Self::Feed];

    /// The key that goes there, after `g`.
    pub(super) fn key(self) -> char {
        match self {
            Self::NeedsYou => 'n',
            Self::Board => 'b',
            Self::Runs => 'r',
            Self::Queue => 'q',
            Self::Convoys => 'c',
            Self::Feed => 'f',
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::NeedsYou => "Needs you",
            Self::Board => "Board",
            Self::Runs => "Runs",
            Self::Queue => "Queue",
            Self::Convoys => "Convoys",
            Self::Feed => "Feed",
        }
    }

    /// The command that prints the same.
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::NeedsYou => "gt inbox",
            Self::Board => "gt status",
            Self::Runs => "gt run list",
            Self::Queue => "gt mq list",
            Self::Convoys => "gt convoy list",
            Self::Feed => "gt feed",
        }
    }

    fn beside(self, step: usize) -> Self {
        let at = Self::ALL.iter().position(|view| *view == self).unwrap_or(0);
        Self::ALL[(at + step) % Self::ALL.len()]
    }
}

/// One value in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TopCell {
    Text(String),
    /// Text whose colour repeats what it says.
    Toned(String, Tone),
    /// The time since then, which grows while it is looked at.
    Since(Timestamp),
    /// The state of a worker that prints nothing since then.
    SilentSince(Timestamp),
}

impl From<String> for TopCell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The colour of a word. The word alone says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Busy,
    Bad,
    Quiet,
}

/// The page that Enter opens for a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PageSource {
    /// The output of a command; read again after each event if it may change.
    Command { words: Vec<String>, is_live: bool },
    /// The transcript of the worker of a run.
    Transcript(String),
}

impl PageSource {
    pub(super) fn command(words: &[&str], is_live: bool) -> Self {
        Self::Command { words: words.iter().map(|word| (*word).to_owned()).collect(), is_live }
    }

    /// The command that prints the same.
    pub(super) fn command_line(&self) -> String {
        match self {
            Self::Command { words, .. } => shell_line(words),
            Self::Transcript(run) => format!("gt run log {run} --follow"),
        }
    }
}

/// One row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TopRow {
    /// The same for as long as it is the same thing.
    pub(super) key: String,
    /// The bead that it is about.
    pub(super) bead: Option<String>,
    pub(super) cells: Vec<TopCell>,
    /// Facts that help to decide, shown below the list.
    pub(super) detail: Vec<String>,
    pub(super) answers: Vec<RowAnswer>,
    pub(super) opens: Option<PageSource>,
}

impl TopRow {
    fn fits(&self, search: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(search);
        search.is_empty()
            || has(&self.key)
            || self.detail.iter().any(|line| has(line))
            || self.cells.iter().any(|cell| match cell {
                TopCell::Text(text) | TopCell::Toned(text, _) => has(text),
                TopCell::SilentSince(_) => has("silent"),
                TopCell::Since(_) => false,
            })
    }
}

/// A column of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TopColumn {
    pub(super) title: &'static str,
    /// The widest that it gets, unless it is the last one.
    pub(super) width_max: u16,
    /// It is left out of screens that are narrower than this.
    pub(super) screen_min: u16,
}

/// The facts of a town for one view, read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TopSnapshot {
    pub(super) view: TopView,
    /// The town in a line.
    pub(super) headline: String,
    /// The reason why the town as a whole is stopped.
    pub(super) warning: Option<String>,
    /// How many things need a person.
    pub(super) needs: usize,
    pub(super) columns: Vec<TopColumn>,
    pub(super) rows: Vec<TopRow>,
    pub(super) at: Timestamp,
}

/// A text that fills the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TopPage {
    pub(super) source: PageSource,
    pub(super) lines: Vec<StyledLine>,
    /// The first line that is shown.
    pub(super) top: usize,
    /// The first column that is shown.
    pub(super) left: u16,
    /// It shows its end, and what comes after it.
    pub(super) follows: bool,
}

/// The meaning of a key at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TopMode {
    Browse,
    /// After `g`.
    Go,
    Search,
    /// A text is typed for an answer.
    Prompt {
        answer: RowAnswer,
        text: String,
    },
    /// An answer waits for `y` or Enter. The key of the answer does not confirm it: a terminal sends a key that is held down again
    /// and again, and cannot tell that from a second press.
    Confirm {
        answer: RowAnswer,
        words: Vec<String>,
    },
    Page,
    Help,
}

/// The line with the result of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResultLine {
    pub(super) is_done: bool,
    pub(super) text: String,
}

/// Everything that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TopModel {
    pub(super) view: TopView,
    pub(super) mode: TopMode,
    pub(super) snapshot: Option<TopSnapshot>,
    /// Since when nothing could be read, and why.
    pub(super) stale: Option<(Timestamp, String)>,
    pub(super) now: Timestamp,
    pub(super) search: String,
    /// The key of the chosen row. If the row is gone, no row is chosen until a person moves, or it comes back.
    chosen: Option<String>,
    /// Where the chosen row was, for the next move.
    chosen_at: usize,
    /// The key of the row that was answered last: its end is not announced.
    answered: Option<String>,
    pub(super) page: Option<TopPage>,
    pub(super) result: Option<ResultLine>,
    /// How many lines of a page are on the screen.
    pub(super) page_height: usize,
}

/// An event that may change the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TopEvent {
    Key(KeyEvent),
    /// Text that was pasted; its letters are no keys.
    Paste(String),
    /// The time, and how many lines of a page fit the screen.
    Tick(Timestamp, usize),
    Loaded(TopSnapshot),
    /// The town could not be read.
    Unread(Timestamp, String),
    /// A command has ended.
    Ran {
        words: Vec<String>,
        is_done: bool,
        output: Vec<String>,
    },
    /// The end of the chosen row, which is gone.
    Explained(String),
    /// The page as a whole.
    PageRead(Vec<StyledLine>),
    /// More of the page.
    PageGrew(Vec<StyledLine>),
}

/// An action that follows from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TopEffect {
    Load(TopView),
    Run(Vec<String>),
    Open(PageSource),
    /// Find out how a row ended that is gone, and by which actor.
    Explain {
        key: String,
        bead: Option<String>,
        seen_at: Timestamp,
    },
    ClosePage,
    Redraw,
    Quit,
}

impl TopModel {
    pub(super) fn new(view: TopView, now: Timestamp) -> Self {
        Self {
            view,
            mode: TopMode::Browse,
            snapshot: None,
            stale: None,
            now,
            search: String::new(),
            chosen: None,
            chosen_at: 0,
            answered: None,
            page: None,
            result: None,
            page_height: 20,
        }
    }

    /// The rows that the search admits.
    pub(super) fn rows(&self) -> Vec<&TopRow> {
        let search = self.search.to_lowercase();
        let rows = self.snapshot.iter().flat_map(|snapshot| &snapshot.rows);
        rows.filter(|row| row.fits(&search)).collect()
    }

    /// Where the chosen row is; nothing if it is gone.
    pub(super) fn chosen_at(&self) -> Option<usize> {
        let key = self.chosen.as_ref()?;
        self.rows().iter().position(|row| row.key == *key)
    }

    pub(super) fn chosen_row(&self) -> Option<&TopRow> {
        self.rows().get(self.chosen_at()?).copied()
    }

    fn choose(&mut self, at: usize) {
        let at = at.min(self.rows().len().saturating_sub(1));
        if let Some(key) = self.rows().get(at).map(|row| row.key.clone()) {
            self.chosen = Some(key);
        }
        self.chosen_at = at;
    }

    fn move_by(&mut self, step: isize) {
        let at = match self.chosen_at() {
            Some(at) => at.saturating_add_signed(step),
            // The row that took the place of the one that is gone is the next one.
            None if step > 0 => self.chosen_at,
            None => self.chosen_at.saturating_sub(1),
        };
        self.choose(at);
    }

    fn show_result(&mut self, is_done: bool, text: impl Into<String>) {
        self.result = Some(ResultLine { is_done, text: text.into() });
    }
}

/// Applies an event to the model; returns the actions that follow.
pub(super) fn update(model: &mut TopModel, event: TopEvent) -> Vec<TopEffect> {
    match event {
        TopEvent::Key(key) => return press(model, key),
        TopEvent::Paste(text) => {
            let line = text.replace(char::is_control, " ");
            match &mut model.mode {
                TopMode::Prompt { text, .. } => text.push_str(&line),
                TopMode::Search => model.search.push_str(&line),
                _ => {}
            }
        }
        TopEvent::Tick(now, page_height) => {
            model.now = now;
            model.page_height = page_height;
            keep_page_in_place(model);
        }
        TopEvent::Loaded(snapshot) if snapshot.view == model.view => {
            let seen_at = model.snapshot.as_ref().map_or(snapshot.at, |seen| seen.at);
            let before = model.chosen_row().map(|row| (row.key.clone(), row.bead.clone()));
            model.stale = None;
            model.now = snapshot.at;
            model.snapshot = Some(snapshot);
            match (model.chosen_at(), before) {
                (Some(at), _) => model.choose(at),
                (None, Some((key, bead))) if model.answered.as_ref() != Some(&key) => {
                    return vec![TopEffect::Explain { key, bead, seen_at }];
                }
                (None, None) if model.chosen.is_none() => model.choose(0),
                (None, _) => {}
            }
        }
        TopEvent::Explained(text) => model.show_result(true, text),
        // It was asked for before the view was changed.
        TopEvent::Loaded(_) => {}
        TopEvent::Unread(at, why) => {
            let since = model.stale.take().map_or(at, |(since, _)| since);
            model.stale = Some((since, why));
        }
        TopEvent::Ran { words, is_done, output } => {
            let said: Vec<&str> =
                output.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
            let said = match said.as_slice() {
                [] if is_done => "✓ done".to_owned(),
                [] => "it failed".to_owned(),
                lines => lines.join("; "),
            };
            model.show_result(is_done, format!("{said}  [{}]", shell_line(&words)));
            return vec![TopEffect::Load(model.view)];
        }
        TopEvent::PageRead(lines) => {
            if let Some(page) = &mut model.page {
                page.lines = lines;
            }
            keep_page_in_place(model);
        }
        TopEvent::PageGrew(lines) => {
            if let Some(page) = &mut model.page {
                page.lines.extend(lines);
                let excess = page.lines.len().saturating_sub(PAGE_LINES_MAX);
                page.lines.drain(..excess);
                page.top = page.top.saturating_sub(excess);
            }
            keep_page_in_place(model);
        }
    }
    Vec::new()
}

fn keep_page_in_place(model: &mut TopModel) {
    let height = model.page_height;
    if let Some(page) = &mut model.page {
        let last = page.lines.len().saturating_sub(height);
        page.top = if page.follows { last } else { page.top.min(last) };
    }
}

fn press(model: &mut TopModel, key: KeyEvent) -> Vec<TopEffect> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => return vec![TopEffect::Quit],
            KeyCode::Char('l') => return vec![TopEffect::Redraw, TopEffect::Load(model.view)],
            _ => {}
        }
    }
    match std::mem::replace(&mut model.mode, TopMode::Browse) {
        TopMode::Browse => browse(model, key),
        TopMode::Go => match key.code {
            KeyCode::Char(c) => match TopView::ALL.into_iter().find(|view| view.key() == c) {
                Some(view) => go(model, view),
                None => Vec::new(),
            },
            _ => Vec::new(),
        },
        TopMode::Search => search(model, key),
        TopMode::Prompt { answer, text } => prompt(model, key, answer, text),
        TopMode::Confirm { answer, words } => {
            // Enter has just ended the text of an answer that asks for one.
            let is_meant = matches!(key.code, KeyCode::Char('y' | 'Y'))
                || (key.code == KeyCode::Enter && answer.asks.is_none());
            if is_meant {
                return run(model, words);
            }
            model.show_result(true, format!("nothing was done: {}", answer.name));
            Vec::new()
        }
        TopMode::Page => read_page(model, key),
        TopMode::Help => Vec::new(),
    }
}

fn go(model: &mut TopModel, view: TopView) -> Vec<TopEffect> {
    model.view = view;
    model.snapshot = None;
    model.search.clear();
    model.chosen = None;
    model.chosen_at = 0;
    vec![TopEffect::Load(view)]
}

fn browse(model: &mut TopModel, key: KeyEvent) -> Vec<TopEffect> {
    match key.code {
        KeyCode::Char('q') => return vec![TopEffect::Quit],
        KeyCode::Esc if !model.search.is_empty() => model.search.clear(),
        KeyCode::Esc => model.result = None,
        KeyCode::Char('?') => model.mode = TopMode::Help,
        KeyCode::Char('/') => model.mode = TopMode::Search,
        KeyCode::Char('g') => model.mode = TopMode::Go,
        KeyCode::Tab | KeyCode::Right => return go(model, model.view.beside(1)),
        KeyCode::BackTab | KeyCode::Left => {
            return go(model, model.view.beside(TopView::ALL.len() - 1));
        }
        KeyCode::Down | KeyCode::Char('j') => model.move_by(1),
        KeyCode::Up | KeyCode::Char('k') => model.move_by(-1),
        KeyCode::PageDown => model.move_by(LIST_PAGE.cast_signed()),
        KeyCode::PageUp => model.move_by(-LIST_PAGE.cast_signed()),
        KeyCode::Home => model.choose(0),
        KeyCode::End => model.choose(usize::MAX),
        KeyCode::Enter => {
            let opens = model.chosen_row().and_then(|row| row.opens.clone());
            return opens.map(|source| open(model, source)).unwrap_or_default();
        }
        KeyCode::Char(c) => return answer(model, c),
        _ => {}
    }
    Vec::new()
}

fn open(model: &mut TopModel, source: PageSource) -> Vec<TopEffect> {
    let follows = matches!(source, PageSource::Transcript(_));
    model.mode = TopMode::Page;
    model.page =
        Some(TopPage { source: source.clone(), lines: Vec::new(), top: 0, left: 0, follows });
    vec![TopEffect::Open(source)]
}

/// Begins the answer to the chosen row that this key stands for.
fn answer(model: &mut TopModel, key: char) -> Vec<TopEffect> {
    let Some(row) = model.chosen_row() else {
        model.show_result(false, "nothing is selected; j and k choose a row");
        return Vec::new();
    };
    let Some(answer) = row.answers.iter().find(|answer| answer.key == key).cloned() else {
        let keys: Vec<String> = row.answers.iter().map(|answer| answer.key.to_string()).collect();
        let known = if keys.is_empty() {
            "this row has no answers".to_owned()
        } else {
            format!("this row has the answers {}", keys.join(" "))
        };
        model.show_result(false, format!("{key}: {known}; ? lists all keys"));
        return Vec::new();
    };
    if let Some(source) = answer.opens.clone() {
        return open(model, source);
    }
    if answer.asks.is_some() {
        let text = answer.begins_with.clone();
        model.mode = TopMode::Prompt { answer, text };
        return Vec::new();
    }
    decide(model, answer, "")
}

/// Asks whether an answer is meant. A text that was typed for it says so already, unless the answer throws something away.
fn decide(model: &mut TopModel, answer: RowAnswer, text: &str) -> Vec<TopEffect> {
    let words = answer.words_with(text);
    if answer.asks.is_none() || answer.is_destructive {
        model.mode = TopMode::Confirm { answer, words };
        return Vec::new();
    }
    run(model, words)
}

fn run(model: &mut TopModel, words: Vec<String>) -> Vec<TopEffect> {
    model.answered.clone_from(&model.chosen);
    vec![TopEffect::Run(words)]
}

fn search(model: &mut TopModel, key: KeyEvent) -> Vec<TopEffect> {
    match key.code {
        KeyCode::Esc => {
            model.search.clear();
            return Vec::new();
        }
        KeyCode::Enter => return Vec::new(),
        KeyCode::Backspace => drop(model.search.pop()),
        KeyCode::Char(c) => model.search.push(c),
        KeyCode::Down => model.move_by(1),
        KeyCode::Up => model.move_by(-1),
        _ => {}
    }
    if model.chosen_at().is_none() {
        model.choose(0);
    }
    model.mode = TopMode::Search;
    Vec::new()
}

fn prompt(
    model: &mut TopModel,
    key: KeyEvent,
    answer: RowAnswer,
    mut text: String,
) -> Vec<TopEffect> {
    match key.code {
        KeyCode::Esc => {
            model.show_result(true, format!("nothing was done: {}", answer.name));
            return Vec::new();
        }
        KeyCode::Enter => {
            let typed = text.trim();
            // A lone hyphen stands for standard input, which a view does not have.
            if typed.is_empty() || typed == "-" {
                model.show_result(false, "type a text, or Esc to leave it");
            } else {
                return decide(model, answer, typed);
            }
        }
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
        KeyCode::Char(c) if !c.is_control() => text.push(c),
        _ => {}
    }
    model.mode = TopMode::Prompt { answer, text };
    Vec::new()
}

fn read_page(model: &mut TopModel, key: KeyEvent) -> Vec<TopEffect> {
    let height = model.page_height;
    let Some(page) = &mut model.page else { return Vec::new() };
    let last = page.lines.len().saturating_sub(height);
    let top = match key.code {
        KeyCode::Esc | KeyCode::Char('q') => {
            model.page = None;
            return vec![TopEffect::ClosePage];
        }
        KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => page.top + 1,
        KeyCode::Up | KeyCode::Char('k') => page.top.saturating_sub(1),
        KeyCode::PageDown | KeyCode::Char(' ') => page.top + height,
        KeyCode::PageUp | KeyCode::Char('b') => page.top.saturating_sub(height),
        KeyCode::Right | KeyCode::Char('l') => {
            page.left = page.left.saturating_add(SIDE_STEP).min(last_column(&page.lines));
            page.top
        }
        KeyCode::Left | KeyCode::Char('h') => {
            page.left = page.left.saturating_sub(SIDE_STEP);
            page.top
        }
        KeyCode::Home => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        // The next or last file of a change.
        KeyCode::Char(']') => next_file(&page.lines, page.top).unwrap_or(page.top),
        KeyCode::Char('[') => last_file(&page.lines, page.top).unwrap_or(0),
        KeyCode::Char(c @ ('a' | 'd' | 'r' | 't' | 'x' | 'e')) => {
            // The row is still chosen behind its page, which is closed to show what becomes of it.
            model.page = None;
            let mut effects = vec![TopEffect::ClosePage];
            effects.extend(answer(model, c));
            return effects;
        }
        _ => page.top,
    };
    page.top = top.min(last);
    if matches!(page.source, PageSource::Transcript(_)) {
        page.follows = page.top == last;
    }
    model.mode = TopMode::Page;
    Vec::new()
}

/// The column at which the longest line ends.
fn last_column(lines: &[StyledLine]) -> u16 {
    let longest = lines.iter().map(|line| line.text.chars().count()).max().unwrap_or(0);
    u16::try_from(longest).unwrap_or(u16::MAX)
}

fn begins_file(line: &StyledLine) -> bool {
    line.text.starts_with("diff --git ")
}

fn next_file(lines: &[StyledLine], top: usize) -> Option<usize> {
    (top + 1..lines.len()).find(|at| begins_file(&lines[*at]))
}

fn last_file(lines: &[StyledLine], top: usize) -> Option<usize> {
    (0..top.min(lines.len())).rev().find(|at| begins_file(&lines[*at]))
}

/// Lines of text as they are shown on a page; those of a change by what they do.
pub(super) fn page_lines(words: &[String], output: &[u8]) -> Vec<StyledLine> {
    let is_change = words.iter().any(|word| word == "diff");
    let text = String::from_utf8_lossy(output);
    let line = |text: &str| {
        let style = match text.as_bytes() {
            _ if !is_change => LineStyle::Plain,
            [b'd', b'i', b'f', b'f', ..] => LineStyle::Strong,
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'@', ..] => LineStyle::Faint,
            [b'+', ..] => LineStyle::Added,
            [b'-', ..] => LineStyle::Removed,
            _ => LineStyle::Plain,
        };
        StyledLine { style, text: text.to_owned() }
    };
    text.lines().map(line).collect()
}
