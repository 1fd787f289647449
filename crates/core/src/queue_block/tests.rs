use proptest::prelude::*;

use super::*;

const FULL: &str = "---gt:queue:v1---
target_rig: web
formula: mol-polecat-work
args: say \"yes: of course\" to all
var: branch=main
var: note=a, b: c
enqueued_at: 2026-01-15T10:00:00Z
merge: direct
convoy: hq-cv-test
base_branch: develop
no_merge: true
review_only: true
account: acme
agent: gemini
hook_raw_bead: true
owned: true
mode: ralph
dispatch_failures: 2
last_failure: sling failed: timeout";

fn full() -> QueueFields {
    let some = |text: &str| Some(text.to_owned());
    QueueFields {
        target_rig: "web".to_owned(),
        formula: some("mol-polecat-work"),
        args: some("say \"yes: of course\" to all"),
        vars: vec!["branch=main".to_owned(), "note=a, b: c".to_owned()],
        enqueued_at: Some(Timestamp::parse("2026-01-15T10:00:00Z").unwrap()),
        merge: some("direct"),
        convoy: some("hq-cv-test"),
        base_branch: some("develop"),
        no_merge: true,
        review_only: true,
        account: some("acme"),
        agent: some("gemini"),
        hook_raw_bead: true,
        owned: true,
        mode: some("ralph"),
        dispatch_failures: 2,
        last_failure: some("sling failed: timeout"),
    }
}

/// A block as the first queue wrote it: fields that are empty, false or zero are left out.
fn format(fields: &QueueFields, unknown: &[(String, String)]) -> String {
    let mut lines = vec![DELIMITER.to_owned(), format!("target_rig: {}", fields.target_rig)];
    let mut add = |key: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("{key}: {value}")));
    };
    let flag = |set: bool| set.then(|| "true".to_owned());
    add("formula", fields.formula.clone());
    add("args", fields.args.clone());
    for value in &fields.vars {
        add("var", Some(value.clone()));
    }
    add("enqueued_at", fields.enqueued_at.map(|at| at.to_string()));
    add("merge", fields.merge.clone());
    add("convoy", fields.convoy.clone());
    add("base_branch", fields.base_branch.clone());
    add("no_merge", flag(fields.no_merge));
    add("review_only", flag(fields.review_only));
    add("account", fields.account.clone());
    add("agent", fields.agent.clone());
    add("hook_raw_bead", flag(fields.hook_raw_bead));
    add("owned", flag(fields.owned));
    add("mode", fields.mode.clone());
    let failures = fields.dispatch_failures;
    add("dispatch_failures", (failures > 0).then(|| failures.to_string()));
    add("last_failure", fields.last_failure.clone());
    for (key, value) in unknown {
        add(key, Some(value.clone()));
    }
    lines.join("\n")
}

/// The block as the first queue appended it.
fn appended(user: &str, block: &str) -> String {
    if user.is_empty() { block.to_owned() } else { format!("{user}\n{block}") }
}

#[track_caller]
fn block(description: &str) -> QueueBlock {
    match parse(description) {
        FoundBlock::Block(block) => *block,
        other => panic!("{other:?} in {description:?}"),
    }
}

#[track_caller]
fn damaged(description: &str) -> (String, String) {
    match parse(description) {
        FoundBlock::Damaged { text, remaining } => (text, remaining),
        other => panic!("{other:?} in {description:?}"),
    }
}

#[test]
fn every_field_is_read() {
    let found = block(&appended("Fix it.\n\nSoon.", FULL));
    assert_eq!(found.fields, full());
    assert_eq!(found.unknown, []);
    assert_eq!(found.remaining, "Fix it.\n\nSoon.");
    assert_eq!(found.text, FULL);
    assert_eq!(format(&full(), &[]), FULL);
}

#[test]
fn a_block_may_be_all_there_is() {
    let found = block("---gt:queue:v1---\ntarget_rig: web");
    assert_eq!(found.fields, QueueFields { target_rig: "web".to_owned(), ..Default::default() });
    assert_eq!(found.remaining, "");
}

#[test]
fn unknown_keys_are_kept() {
    let found = block("---gt:queue:v1---\nfuture: xyz\ntarget_rig: web\nempty:");
    assert_eq!(found.unknown, [("future".into(), "xyz".into()), ("empty".into(), String::new())]);
}

#[test]
fn an_unreadable_value_is_the_default() {
    let found = block(
        "---gt:queue:v1---\ntarget_rig: web\ndispatch_failures: many\nenqueued_at: soon\n\
         no_merge: maybe\nagent: ",
    );
    assert_eq!(found.fields, QueueFields { target_rig: "web".to_owned(), ..Default::default() });
}

#[test]
fn text_of_the_user_that_mentions_the_delimiter_survives() {
    for text in [
        "",
        "Plain.",
        "The marker ---gt:queue:v1--- begins a block.",
        "  ---gt:queue:v1---\ntarget_rig: web",
        "> ---gt:queue:v1---\n> target_rig: web",
        "---gt:queue:v1--- \ntarget_rig: web",
        "---gt:queue:v1---\nis how a block begins.",
        "---gt:queue:v1---\n\ntarget_rig: web",
        "---gt:queue:v1---\nmode: ralph\nand so on",
        "---gt:queue:v1---\ncolour: red",
        "---gt:queue:v1---\nhttp://example.org",
        "---gt:queue:v1---\ntarget_rig:\nis the first key",
    ] {
        assert_eq!(parse(text), FoundBlock::Nothing, "{text:?}");
        let found = block(&appended(text, FULL));
        assert_eq!((found.remaining.as_str(), &found.fields), (text, &full()), "{text:?}");
    }
}

#[test]
fn text_behind_a_block_survives() {
    let found =
        block("Before.\n---gt:queue:v1---\ntarget_rig: web\n\nmode: of transport\nAfter.\n");
    assert_eq!(found.remaining, "Before.\n\nmode: of transport\nAfter.\n");
    assert_eq!(found.text, "---gt:queue:v1---\ntarget_rig: web");
    assert_eq!(found.fields.mode, None);
    let found = block("---gt:queue:v1---\ntarget_rig: web\n---gt:queue:v1---\nmore of mine");
    assert_eq!(found.remaining, "---gt:queue:v1---\nmore of mine");
}

#[test]
fn instructions_of_several_lines_go_on_to_the_time() {
    let found = block(
        "---gt:queue:v1---\ntarget_rig: web\nargs: first\n\nSecond.\n\
         enqueued_at: 2026-01-15T10:00:00Z\nmode: ralph\nMine.",
    );
    assert_eq!(found.fields.args.as_deref(), Some("first\n\nSecond."));
    assert_eq!(found.fields.mode.as_deref(), Some("ralph"));
    assert_eq!(found.remaining, "Mine.");
}

#[test]
fn instructions_may_say_what_looks_like_the_beginning_of_instructions() {
    let told = |args: &str| {
        let time = "enqueued_at: 2026-01-15T10:00:00Z";
        block(&format!("{DELIMITER}\ntarget_rig: web\nargs: {args}\n{time}\nMine."))
    };
    for args in ["one\ntwo\nargs:\nthree", "one\nargs: two", "\nargs: two", "\n\nthree"] {
        let found = told(args);
        assert_eq!(found.fields.args.as_deref(), Some(args));
        assert_eq!(found.remaining, "Mine.");
    }
    assert_eq!(told("").fields.args, None);
    // Without the time it is unknown where they end.
    let found = block(&format!("{DELIMITER}\ntarget_rig: web\nargs: one\nargs: two\nMine."));
    assert_eq!(found.fields.args.as_deref(), Some("two"));
    assert_eq!(found.remaining, "Mine.");
}

#[test]
fn older_versions_beside_a_block_go_with_it() {
    let found = block(
        "Task.\n---gt:queue:v1---\ntarget_rig: one\nmode: ralph\n---gt:queue:v1---\ntarget_rig: two",
    );
    assert_eq!((found.fields.target_rig.as_str(), found.fields.mode), ("two", None));
    assert_eq!(found.remaining, "Task.");
    let found = block("---gt:queue:v1---\ntarget_rig: one\n---gt:queue:v1---\nmode: ralph");
    assert_eq!((found.fields.target_rig.as_str(), found.remaining.as_str()), ("one", ""));
}

#[test]
fn a_quoted_block_stays() {
    let user = "So it looks:\n---gt:queue:v1---\ntarget_rig: example\n\n\
                And so if damaged:\n---gt:queue:v1---\nmode: ralph";
    let found = block(&format!("{user}\n.\n{FULL}"));
    assert_eq!((found.fields, found.remaining), (full(), format!("{user}\n.")));
    let found = block(user);
    assert_eq!(found.fields.target_rig, "example", "damage behind it does not hide a block");
}

#[test]
fn a_block_without_a_rig_is_damaged() {
    for text in [
        "---gt:queue:v1---",
        "---gt:queue:v1---\nmode: ralph",
        "---gt:queue:v1---\ntarget_rig:",
        "---gt:queue:v1---\ntarget_rig: \nextra: 1",
        "---gt:queue:v1---\ndispatch_failures: 3\nlast_failure: no such rig: web",
    ] {
        let expected = |remaining: &str| (text.to_owned(), remaining.to_owned());
        assert_eq!(damaged(text), expected(""));
        assert_eq!(damaged(&format!("Mine.\n{text}")), expected("Mine."));
        assert_eq!(damaged(&format!("Mine.\n{text}\n\n")), expected("Mine.\n\n"));
    }
}

#[test]
fn line_endings_of_another_system_are_understood() {
    let found = block(&format!("Mine.\r\n{}\r\n", FULL.replace('\n', "\r\n")));
    assert_eq!(found.fields, full());
    assert_eq!(found.remaining, "Mine.\r\n");
}

fn any_value() -> impl Strategy<Value = String> {
    let text = prop_oneof![any::<String>(), Just(format!("see {DELIMITER} there"))];
    text.prop_map(|text| text.replace('\n', " ").trim().to_owned())
        .prop_filter("an empty value is none", |text| !text.is_empty())
}

prop_compose! {
    fn any_fields()(
        target_rig in any_value(),
        texts in prop::array::uniform9(prop::option::of(any_value())),
        vars in prop::collection::vec(any_value(), 0..3),
        enqueued_at in prop::option::of(any::<i64>().prop_map(Timestamp::from_nanos)),
        flags: [bool; 4],
        dispatch_failures: u32,
    ) -> QueueFields {
        let [formula, args, merge, convoy, base_branch, account, agent, mode, last_failure] = texts;
        let [no_merge, review_only, hook_raw_bead, owned] = flags;
        QueueFields {
            target_rig, formula, args, vars, enqueued_at, merge, convoy, base_branch, no_merge,
            review_only, account, agent, hook_raw_bead, owned, mode, dispatch_failures, last_failure,
        }
    }
}

/// Lines as they might stand around a block, and parts of one.
fn any_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        3 => Just(DELIMITER.to_owned()),
        1 => Just("target_rig: web".to_owned()),
        1 => Just("args: a".to_owned()),
        1 => Just("args:".to_owned()),
        1 => Just("enqueued_at: 2026-01-15T10:00:00Z".to_owned()),
        1 => Just("colour: red".to_owned()),
        1 => Just(String::new()),
        1 => Just("Mine.\r".to_owned()),
        1 => any::<String>(),
    ];
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

/// Whether all lines of `part` stand in `whole`, in their order.
fn is_within(part: &str, whole: &str) -> bool {
    let mut lines = whole.split('\n');
    part.split('\n').all(|wanted| lines.any(|line| line == wanted))
}

proptest! {
    #[test]
    fn an_appended_block_is_read_and_taken_out(
        user in any_text(),
        fields in any_fields(),
        unknown in prop::collection::vec(("x_[a-z0-9_]{0,5}", any_value()), 0..3),
    ) {
        // Quoted blocks are told from ours by words behind them.
        let user = if parse(&user) == FoundBlock::Nothing { user } else { format!("{user}\n.") };
        let text = format(&fields, &unknown);
        let expected = QueueBlock { fields, unknown, remaining: user.clone(), text: text.clone() };
        prop_assert_eq!(parse(&appended(&user, &text)), FoundBlock::Block(Box::new(expected)));
    }

    #[test]
    fn a_block_that_was_taken_out_reads_the_same_alone(description in any_text()) {
        match parse(&description) {
            FoundBlock::Nothing => {}
            FoundBlock::Block(block) => {
                let FoundBlock::Block(again) = parse(&block.text) else { panic!("{:?}", block.text) };
                prop_assert_eq!((again.fields, again.unknown), (block.fields, block.unknown));
            }
            FoundBlock::Damaged { text, .. } => {
                let is_damaged = matches!(parse(&text), FoundBlock::Damaged { .. });
                prop_assert!(is_damaged);
            }
        }
    }

    #[test]
    fn no_line_is_lost(description in any_text()) {
        let (text, remaining) = match parse(&description) {
            FoundBlock::Nothing => return Ok(()),
            FoundBlock::Block(block) => (block.text, block.remaining),
            FoundBlock::Damaged { text, remaining } => (text, remaining),
        };
        prop_assert!(is_within(&text, &description));
        let mut parts: Vec<&str> = text.split('\n').collect();
        let mut lines: Vec<&str> = description.split('\n').collect();
        if parts.len() < lines.len() {
            prop_assert!(is_within(&remaining, &description));
            parts.extend(remaining.split('\n'));
        } else {
            prop_assert_eq!(&remaining, "");
        }
        parts.sort_unstable();
        lines.sort_unstable();
        prop_assert_eq!(parts, lines);
    }
}
