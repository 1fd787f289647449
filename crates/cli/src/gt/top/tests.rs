//! Tests of `gt top` without a terminal: keys and what they do, and screens as they are drawn.

use gt_core::Timestamp;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::answers::{answers_of_commands, edit_answer, screen_answer};
use super::draw::{draw, page_height};
use super::model::{
    PageSource, Tone, TopCell, TopColumn, TopEffect, TopEvent, TopMode, TopModel, TopRow,
    TopSnapshot, TopView, page_lines, update,
};
use crate::output::{LineStyle, StyledLine};

const NOW: i64 = 1_800_000_000_000_000_000;

fn at(seconds_ago: i64) -> Timestamp {
    Timestamp::from_nanos(NOW - seconds_ago * 1_000_000_000)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn need(kind: &str, about: &str, what: &str, commands: &[&str], opens: &str) -> TopRow {
    let commands: Vec<String> = commands.iter().map(|command| (*command).to_owned()).collect();
    let mut answers = answers_of_commands(&commands);
    answers.push(edit_answer("we-a", "Add the login"));
    TopRow {
        key: format!("{kind}:{about}"),
        bead: Some("we-a".to_owned()),
        cells: vec![
            TopCell::Toned(kind.to_owned(), Tone::Busy),
            TopCell::Text(about.to_owned()),
            TopCell::Since(at(125)),
            TopCell::Text(what.to_owned()),
        ],
        detail: vec![format!("why     {what}")]
            .into_iter()
            .chain(commands.iter().map(|command| format!("$ {command}")))
            .collect(),
        answers,
        opens: Some(PageSource::Command { words: words(opens), is_live: false }),
    }
}

fn column(title: &'static str, width_max: u16, screen_min: u16) -> TopColumn {
    TopColumn { title, width_max, screen_min }
}

fn needs() -> TopSnapshot {
    let review = [
        "gt review show we-a@1",
        "gt review diff we-a@1",
        "gt review approve we-a@1",
        "gt review reject we-a@1 -m <why>",
    ];
    let rows = vec![
        need(
            "help-wanted",
            "msg-17",
            "[high] Which key may I use for the payment sandbox? Neither of the two in the vault works any more",
            &["gt mail read msg-17", "gt mail reply msg-17 -m <text>"],
            "gt mail show msg-17",
        ),
        need("review", "we-a@1", "we-a@1 waits for a review", &review, "gt review diff we-a@1"),
        need(
            "conflict",
            "we-b@2",
            "we-b@2 does not apply to main: src/\u{1b}[31mlogin.rs\u{202e}\u{200b} 日本語 conflicts",
            &["gt mq show we-b@2", "gt mq retry we-b@2", "gt mq cancel we-b@2"],
            "gt mq show we-b@2",
        ),
    ];
    TopSnapshot {
        view: TopView::NeedsYou,
        headline: "town: 2/4 running, 3 ready, 9 queued".to_owned(),
        warning: None,
        needs: rows.len(),
        columns: vec![
            column("KIND", 16, 0),
            column("ABOUT", 20, 0),
            column("SINCE", 6, 0),
            column("WHAT", 0, 0),
        ],
        rows,
        at: at(0),
    }
}

fn runs() -> TopSnapshot {
    let row = |run: &str, title: &str| {
        let bead = run.split('#').next().unwrap();
        let mut answers = answers_of_commands(&[
            format!("gt nudge {run} <text>"),
            format!("gt run cancel {run}"),
        ]);
        answers.push(screen_answer(bead));
        TopRow {
            key: run.to_owned(),
            bead: Some(bead.to_owned()),
            cells: vec![
                TopCell::Text(run.to_owned()),
                TopCell::Toned("running".to_owned(), Tone::Busy),
                TopCell::Since(at(4_000)),
                TopCell::Text("2/5".to_owned()),
                TopCell::Text("furiosa".to_owned()),
                TopCell::Text("$1.25".to_owned()),
                TopCell::Text(title.to_owned()),
            ],
            detail: vec![format!("bead    {title}"), "agent   furiosa in web".to_owned()],
            answers,
            opens: Some(PageSource::Transcript(run.to_owned())),
        }
    };
    TopSnapshot {
        view: TopView::Runs,
        columns: vec![
            column("RUN", 18, 0),
            column("STATE", 8, 0),
            column("FOR", 6, 0),
            column("STEPS", 5, 90),
            column("AGENT", 12, 0),
            column("COST", 8, 100),
            column("TITLE", 0, 0),
        ],
        rows: vec![
            row("web-7f3k2#1", "Let people log in with the account of their company"),
            row("web-9zz1p#12", "Send a receipt by mail"),
        ],
        ..needs()
    }
}

fn model(snapshot: TopSnapshot) -> TopModel {
    let mut model = TopModel::new(snapshot.view, at(0));
    assert_eq!(update(&mut model, TopEvent::Loaded(snapshot)), []);
    model
}

fn press(model: &mut TopModel, code: KeyCode) -> Vec<TopEffect> {
    update(model, TopEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn type_keys(model: &mut TopModel, keys: &str) -> Vec<TopEffect> {
    keys.chars().flat_map(|key| press(model, KeyCode::Char(key))).collect()
}

fn screen(model: &TopModel, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, true)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| {
        let mut text = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            text.push_str(symbol);
            x += u16::try_from(ratatui::text::Span::raw(symbol).width().max(1)).unwrap();
        }
        text.trim_end().to_owned()
    };
    (0..height).map(|y| line(y) + "\n").collect()
}

/// Compares with a kept screen; a difference is shown whole, to be copied if it is meant.
#[track_caller]
fn assert_screen(shown: &str, kept: &str) {
    assert!(shown == kept, "the screen is now:\n{shown}");
}

#[test]
fn the_list_fits_a_screen_of_80_columns() {
    let mut model = model(needs());
    press(&mut model, KeyCode::Down);
    assert_screen(&screen(&model, 80, 24), include_str!("screens/needs_80x24.txt"));
}

#[test]
fn a_large_screen_shows_more() {
    let model = model(runs());
    assert_screen(&screen(&model, 120, 40), include_str!("screens/runs_120x40.txt"));
    let small = screen(&model, 80, 24);
    assert!(!small.contains("COST") && !small.contains("STEPS"), "{small}");
    assert!(small.contains("Send a receipt by mail"), "{small}");
}

#[test]
fn a_column_is_cut_only_if_another_one_needs_the_room() {
    let title = "Let people log in with the account of their company";
    let stands = "blocked by we-account, which is not begun";
    let mut snapshot = needs();
    snapshot.columns = vec![column("TITLE", 30, 0), column("HOW IT STANDS", 0, 0)];
    snapshot.rows.truncate(1);
    snapshot.rows[0].cells = [title, stands].map(|text| TopCell::Text(text.to_owned())).into();
    snapshot.rows[0].detail.clear();
    let model = model(snapshot);

    let wide = screen(&model, 120, 24);
    assert!(wide.contains(&format!("{title}  {stands}")), "{wide}");
    let narrow = screen(&model, 60, 24);
    assert!(narrow.contains("Let people log in with the ac…  blocked by"), "{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
}

#[test]
fn hostile_text_is_shown_as_text() {
    let mut model = model(needs());
    press(&mut model, KeyCode::End);
    let shown = screen(&model, 100, 30);
    assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{shown}");
    assert!(shown.contains("日本語 conflicts"), "{shown}");
}

#[test]
fn every_screen_size_can_be_drawn() {
    for mode in 0..4 {
        let mut model = model(needs());
        match mode {
            1 => drop(press(&mut model, KeyCode::Char('?'))),
            2 => drop(type_keys(&mut model, "r")),
            3 => drop(press(&mut model, KeyCode::Enter)),
            _ => {}
        }
        for (width, height) in [(1, 1), (2, 3), (10, 5), (79, 15), (80, 24), (300, 100)] {
            screen(&model, width, height);
        }
    }
}

#[test]
fn approval_takes_two_keys_and_runs_the_command() {
    let mut model = model(needs());
    press(&mut model, KeyCode::Down);
    assert_eq!(type_keys(&mut model, "a"), []);
    assert!(screen(&model, 100, 24).contains("approve? y or Enter runs  gt review approve we-a@1"));

    let effects = press(&mut model, KeyCode::Enter);

    let approve = words("gt review approve we-a@1");
    assert_eq!(effects, [TopEffect::Run(approve.clone())]);
    let output = vec!["✓ we-a@1 is approved and in line to land".to_owned()];
    let effects = update(&mut model, TopEvent::Ran { words: approve, is_done: true, output });
    assert_eq!(effects, [TopEffect::Load(TopView::NeedsYou)]);
    let shown = screen(&model, 100, 24);
    assert!(
        shown.contains("✓ we-a@1 is approved and in line to land  [gt review approve we-a@1]"),
        "{shown}"
    );
}

#[test]
fn a_refused_answer_says_what_happened_meanwhile() {
    let mut model = model(needs());
    let output = vec!["Error: we-a@1 is landed: nothing to approve".to_owned()];
    update(
        &mut model,
        TopEvent::Ran { words: words("gt review approve we-a@1"), is_done: false, output },
    );
    assert!(screen(&model, 80, 24).contains("! Error: we-a@1 is landed"));
}

#[test]
fn a_rejection_asks_for_its_reason() {
    let mut model = model(needs());
    press(&mut model, KeyCode::Down);
    assert_eq!(type_keys(&mut model, "d"), []);
    // Nothing was typed yet.
    assert_eq!(press(&mut model, KeyCode::Enter), []);
    assert!(matches!(model.mode, TopMode::Prompt { .. }));
    type_keys(&mut model, "no testsx");
    update(&mut model, TopEvent::Paste("\nq".to_owned()));
    for _ in 0..3 {
        press(&mut model, KeyCode::Backspace);
    }
    assert!(screen(&model, 80, 24).contains("gt review reject we-a@1 --message='no tests'"));
    let effects = press(&mut model, KeyCode::Enter);
    let expected = ["gt", "review", "reject", "we-a@1", "--message=no tests"];
    assert_eq!(effects, [TopEffect::Run(expected.map(str::to_owned).to_vec())]);
    // Leaving it does nothing.
    type_keys(&mut model, "dq");
    assert_eq!(press(&mut model, KeyCode::Esc), []);
    assert_eq!(model.mode, TopMode::Browse);
}

#[test]
fn cancelling_is_confirmed_first() {
    let mut model = model(needs());
    press(&mut model, KeyCode::End);
    assert_eq!(type_keys(&mut model, "x"), []);
    assert!(screen(&model, 100, 24).contains("cancel? y or Enter runs  gt mq cancel we-b@2"));
    // A key that is held down comes again; it confirms nothing.
    assert_eq!(type_keys(&mut model, "x"), []);
    assert_eq!(model.mode, TopMode::Browse);
    assert_eq!(type_keys(&mut model, "x"), []);
    assert_eq!(type_keys(&mut model, "n"), []);
    assert_eq!(type_keys(&mut model, "x"), []);
    assert_eq!(type_keys(&mut model, "y"), [TopEffect::Run(words("gt mq cancel we-b@2"))]);
}

#[test]
fn a_key_without_an_answer_says_which_there_are() {
    let mut model = model(needs());
    assert_eq!(type_keys(&mut model, "a"), []);
    assert!(screen(&model, 80, 24).contains("a: this row has the answers r e"));
}

#[test]
fn a_bead_is_edited_from_its_present_title() {
    let mut model = model(needs());
    type_keys(&mut model, "e!");
    let effects = press(&mut model, KeyCode::Enter);
    let expected = ["bd", "update", "we-a", "--title=Add the login!"];
    assert_eq!(effects, [TopEffect::Run(expected.map(str::to_owned).to_vec())]);
}

#[test]
fn g_and_a_letter_go_to_each_view() {
    let mut model = model(needs());
    for view in TopView::ALL {
        press(&mut model, KeyCode::Char('g'));
        assert_eq!(press(&mut model, KeyCode::Char(view.key())), [TopEffect::Load(view)]);
        assert_eq!(model.view, view);
    }
    assert_eq!(press(&mut model, KeyCode::Tab), [TopEffect::Load(TopView::NeedsYou)]);
    assert_eq!(press(&mut model, KeyCode::BackTab), [TopEffect::Load(TopView::Feed)]);
    // An answer to an earlier request comes too late.
    update(&mut model, TopEvent::Loaded(needs()));
    assert_eq!(model.snapshot, None);
}

#[test]
fn the_search_narrows_the_list_until_it_is_ended() {
    let mut model = model(needs());
    press(&mut model, KeyCode::Char('/'));
    assert_eq!(type_keys(&mut model, "APPLY q"), []);
    press(&mut model, KeyCode::Backspace);
    press(&mut model, KeyCode::Backspace);
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.rows().len(), 1);
    assert_eq!(model.chosen_row().unwrap().key, "conflict:we-b@2");
    press(&mut model, KeyCode::Esc);
    assert_eq!(model.rows().len(), 3);
}

#[test]
fn the_chosen_row_stays_chosen_when_others_come_and_go() {
    let mut model = model(needs());
    press(&mut model, KeyCode::Down);
    let mut fewer = needs();
    fewer.rows.remove(0);
    update(&mut model, TopEvent::Loaded(fewer.clone()));
    assert_eq!(model.chosen_row().unwrap().key, "review:we-a@1");
    // No other row takes its place when it is gone.
    let gone = fewer.rows.remove(0);
    let effects = update(&mut model, TopEvent::Loaded(fewer.clone()));
    let (key, bead) = (gone.key.clone(), gone.bead.clone());
    assert_eq!(effects, [TopEffect::Explain { key, bead, seen_at: at(0) }]);
    update(&mut model, TopEvent::Explained("review:we-a@1 is gone: reviewed by ann".to_owned()));
    assert!(screen(&model, 80, 24).contains("is gone: reviewed by ann"));
    assert_eq!(type_keys(&mut model, "a"), []);
    assert!(screen(&model, 80, 24).contains("nothing is selected"));
    assert_eq!(model.mode, TopMode::Browse);
    // It is chosen again if it comes back, else the next one after a move.
    let mut back = fewer.clone();
    back.rows.insert(0, gone);
    update(&mut model, TopEvent::Loaded(back));
    assert_eq!(model.chosen_row().unwrap().key, "review:we-a@1");
    update(&mut model, TopEvent::Loaded(fewer.clone()));
    press(&mut model, KeyCode::Down);
    assert_eq!(model.chosen_row().unwrap().key, "conflict:we-b@2");
    fewer.rows.clear();
    update(&mut model, TopEvent::Loaded(fewer));
    assert_eq!(model.chosen_row(), None);
    assert_eq!(type_keys(&mut model, "adrtxej"), []);
    assert!(screen(&model, 80, 24).contains("Nothing needs you."));
}

#[test]
fn the_end_of_an_answered_row_needs_no_words() {
    let mut model = model(needs());
    press(&mut model, KeyCode::Down);
    type_keys(&mut model, "ay");
    let mut fewer = needs();
    fewer.rows.remove(1);
    assert_eq!(update(&mut model, TopEvent::Loaded(fewer)), []);
    assert_eq!(model.chosen_row(), None);
}

#[test]
fn a_wide_page_is_read_sideways() {
    let mut model = model(needs());
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Enter);
    let line = format!("+{}END", "x".repeat(90));
    update(&mut model, TopEvent::PageRead(page_lines(&words("gt review diff"), line.as_bytes())));
    let shown = screen(&model, 80, 24);
    assert!(!shown.contains("END") && shown.contains("sideways"), "{shown}");
    press(&mut model, KeyCode::Right);
    assert!(screen(&model, 80, 24).contains("xEND"));
    press(&mut model, KeyCode::Left);
    assert!(screen(&model, 80, 24).contains("+xx"));
}

#[test]
fn a_change_is_read_file_by_file_and_answered_from_its_page() {
    let mut model = model(needs());
    press(&mut model, KeyCode::Down);
    let source = PageSource::Command { words: words("gt review diff we-a@1"), is_live: false };
    assert_eq!(press(&mut model, KeyCode::Enter), [TopEffect::Open(source)]);
    let diff: String = (0..3)
        .map(|file| format!("diff --git a/{file} b/{file}\n") + &"+new\n-old\n same\n".repeat(20))
        .collect();
    let lines = page_lines(&words("gt review diff we-a@1"), diff.as_bytes());
    assert_eq!(lines[1].style, LineStyle::Added);
    assert_eq!(lines[2].style, LineStyle::Removed);
    update(&mut model, TopEvent::Tick(at(0), page_height(24)));
    update(&mut model, TopEvent::PageRead(lines));
    type_keys(&mut model, "]]");
    assert!(screen(&model, 80, 24).contains("diff --git a/2 b/2"));
    type_keys(&mut model, "[");
    assert!(screen(&model, 80, 24).lines().nth(1).unwrap().contains("diff --git a/1"));
    assert_eq!(type_keys(&mut model, "a"), [TopEffect::ClosePage]);
    let approve = TopEffect::Run(words("gt review approve we-a@1"));
    assert_eq!(type_keys(&mut model, "y"), [approve]);
}

#[test]
fn a_transcript_follows_until_it_is_scrolled() {
    let line =
        |number: usize| StyledLine { style: LineStyle::Plain, text: format!("line {number}.") };
    let mut model = model(runs());
    press(&mut model, KeyCode::Enter);
    update(&mut model, TopEvent::Tick(at(0), page_height(24)));
    update(&mut model, TopEvent::PageGrew((0..100).map(line).collect()));
    assert!(screen(&model, 80, 24).contains("line 99."));
    press(&mut model, KeyCode::Up);
    update(&mut model, TopEvent::PageGrew((100..200).map(line).collect()));
    assert!(!screen(&model, 80, 24).contains("line 199."));
    press(&mut model, KeyCode::End);
    update(&mut model, TopEvent::PageGrew(vec![line(200)]));
    assert!(screen(&model, 80, 24).contains("line 200."));
    // A page does not grow without end.
    update(&mut model, TopEvent::PageGrew((0..20_000).map(line).collect()));
    assert_eq!(model.page.as_ref().unwrap().lines.len(), 10_000);
    assert_eq!(press(&mut model, KeyCode::Esc), [TopEffect::ClosePage]);
}

#[test]
fn a_town_that_cannot_be_read_does_not_look_healthy() {
    let mut model = model(needs());
    update(&mut model, TopEvent::Unread(at(60), "the store is locked".to_owned()));
    update(&mut model, TopEvent::Unread(at(1), "the store is locked".to_owned()));
    let since = crate::output::moment(at(60));
    assert!(screen(&model, 80, 24).starts_with(&format!("STALE since {since}: the store is")));
    update(&mut model, TopEvent::Loaded(needs()));
    assert!(!screen(&model, 80, 24).contains("STALE"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_keys_make_it_panic(keys in "[adrtxegnbqcfjk/?y \\]\\[\\PC]{0,40}", breaks in proptest::collection::vec(0_usize..40, 0..4)) {
        let mut model = model(needs());
        for (number, key) in keys.chars().enumerate() {
            press(&mut model, KeyCode::Char(key));
            if breaks.contains(&number) {
                press(&mut model, KeyCode::Enter);
                update(&mut model, TopEvent::Loaded(runs()));
                press(&mut model, KeyCode::Esc);
            }
        }
        screen(&model, 80, 24);
    }
}
