//! Filters that look into texts and JSON.

use gt_core::limits::QUERY_BYTES_MAX;
use gt_core::{Bead, Title};

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, json, texts};
use gt_store::{BeadFilter, StoreError};

fn any() -> BeadFilter {
    BeadFilter::default()
}

fn titled(text: &str, title: &str) -> Bead {
    Bead { title: Title::trusted(title.to_owned()), ..bead(text) }
}

fn text(text: &str) -> BeadFilter {
    BeadFilter { text: Some(text.to_owned()), ..any() }
}

pub(super) fn a_search_looks_into_title_and_id(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add(titled("gt-login", "Something else"));
    town.add(titled("gt-a", "Fix Login page"));
    town.add(Bead { description: "login".to_owned(), ..titled("gt-b", "Other") });
    for spelling in ["login", "LOGIN", "Login"] {
        town.finds(text(spelling), &["gt-a", "gt-login"]);
    }
    town.finds(text("nothing like it"), &[]);
}

pub(super) fn a_search_takes_every_character_literally(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add(titled("gt-a", "100% of it"));
    town.add(titled("gt-b", "1000 of_it"));
    town.add(titled("gt-c", r"back\slash 'quoted'"));
    town.finds(text("100%"), &["gt-a"]);
    town.finds(text("of_"), &["gt-b"]);
    town.finds(text(r"k\s"), &["gt-c"]);
    town.finds(text("'quoted'"), &["gt-c"]);
}

pub(super) fn a_search_refuses_a_text_that_is_too_long(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let long = |bytes: usize| Some("%".repeat(bytes));
    town.finds(BeadFilter { text: long(QUERY_BYTES_MAX), ..any() }, &[]);
    for too_long in [QUERY_BYTES_MAX + 1, 1_000_000] {
        for filter in [
            BeadFilter { text: long(too_long), ..any() },
            BeadFilter { description_contains: long(too_long), ..any() },
        ] {
            let refused = town.refuse_reading(|reader| reader.find(&filter));
            assert!(matches!(refused, StoreError::Query(_)), "{refused:?}");
        }
    }
}

pub(super) fn a_search_finds_text_in_any_script_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add(titled("gt-a", "Äpfel ERNTEN"));
    town.add(titled("gt-b", "Διόρθωση"));
    town.add(titled("gt-c", "修复 🔧"));
    town.finds(text("Äpfel"), &["gt-a"]);
    town.finds(text("Äpfel ernten"), &["gt-a"]);
    town.finds(text("Διό"), &["gt-b"]);
    town.finds(text("复 🔧"), &["gt-c"]);
}

pub(super) fn each_text_has_a_filter_of_its_own(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add(titled("gt-word", "nothing"));
    town.add(titled("gt-title", "The Word"));
    town.add(Bead { description: "a\nWORD\nin it".to_owned(), ..bead("gt-description") });
    town.add(Bead { notes: "wording".to_owned(), ..bead("gt-notes") });
    let word = || Some("word".to_owned());

    let cases = [
        (BeadFilter { title_contains: word(), ..any() }, "gt-title"),
        (BeadFilter { description_contains: word(), ..any() }, "gt-description"),
        (BeadFilter { notes_contain: word(), ..any() }, "gt-notes"),
    ];
    for (filter, expected) in cases {
        town.finds(filter, &[expected]);
    }
    let empty = BeadFilter { empty_description: true, ..any() };
    town.finds(empty, &["gt-notes", "gt-title", "gt-word"]);
}

pub(super) fn metadata_fields_are_compared_by_value(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (text, metadata) in [
        ("gt-text", r#"{"k":"v","n":"5"}"#),
        ("gt-number", r#"{"k":5,"n":5}"#),
        ("gt-flag", r#"{"k":true}"#),
        ("gt-spelled", r#"{"k":1.50,"odd key":"x"}"#),
        ("gt-deep", r#"{"a":{"k":"v"}}"#),
        ("gt-list", r#"["k"]"#),
        ("gt-null", r#"{"k":null}"#),
        ("gt-escaped", r#"{"k":"\u00e4 \"q\""}"#),
    ] {
        town.add(Bead { metadata: Some(json(metadata)), ..bead(text) });
    }
    town.add_open(&["gt-without"]);
    let field = |key: &str, value: &str| BeadFilter {
        metadata: vec![(key.to_owned(), value.to_owned())],
        ..any()
    };

    town.finds(field("k", "v"), &["gt-text"]);
    town.finds(field("k", "5"), &["gt-number"]);
    town.finds(field("n", "5"), &["gt-number", "gt-text"]);
    town.finds(field("k", "true"), &["gt-flag"]);
    town.finds(field("k", "1"), &[]);
    town.finds(field("k", "1.50"), &["gt-spelled"]);
    town.finds(field("odd key", "x"), &["gt-spelled"]);
    town.finds(field("k", "ä \"q\""), &["gt-escaped"]);
    town.finds(field("absent", "v"), &[]);
    let both = BeadFilter {
        metadata: vec![("k".to_owned(), "5".to_owned()), ("n".to_owned(), "5".to_owned())],
        ..any()
    };
    town.finds(both, &["gt-number"]);
}

pub(super) fn metadata_fields_can_be_asked_for_by_name(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (text, metadata) in
        [("gt-both", r#"{"a":1,"b":2}"#), ("gt-a", r#"{"a":0}"#), ("gt-none", "{}")]
    {
        town.add(Bead { metadata: Some(json(metadata)), ..bead(text) });
    }
    let keys = |keys: Vec<String>| BeadFilter { metadata_keys: keys, ..any() };
    town.finds(keys(texts(["a"])), &["gt-a", "gt-both"]);
    town.finds(keys(texts(["a", "b"])), &["gt-both"]);
    town.finds(keys(texts(["c"])), &[]);
}

pub(super) fn carried_fields_are_compared_by_value(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (text, value) in [("gt-a", "\"spec\""), ("gt-b", "7"), ("gt-c", "\"7\"")] {
        town.add(Bead { carried: vec![("spec_id".to_owned(), json(value))], ..bead(text) });
    }
    let carried =
        |value: &str| BeadFilter { carried: vec![("spec_id", value.to_owned())], ..any() };
    town.finds(carried("spec"), &["gt-a"]);
    town.finds(carried("7"), &["gt-b", "gt-c"]);
    town.finds(carried("x"), &[]);
}

pub(super) fn metadata_that_is_no_object_has_no_fields(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (text, metadata) in [
        ("gt-list", r#"["k",{"k":"v"}]"#),
        ("gt-text", r#""k""#),
        ("gt-number", "5"),
        ("gt-null", "null"),
        ("gt-empty", "{}"),
    ] {
        town.add(Bead { metadata: Some(json(metadata)), ..bead(text) });
    }
    town.add_open(&["gt-none"]);
    for key in ["k", "0", "length"] {
        let named = BeadFilter { metadata_keys: texts([key]), ..any() };
        town.finds(named, &[]);
        let valued = BeadFilter { metadata: vec![(key.to_owned(), "k".to_owned())], ..any() };
        town.finds(valued, &[]);
    }
}

pub(super) fn names_of_fields_are_taken_literally(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let flat = r#"{"a.b":"x","with space":"x","ä":"x","0":"x","it's":"x"}"#;
    town.add(Bead { metadata: Some(json(flat)), ..bead("gt-flat") });
    let deep = r#"{"a":{"b":"x"},"with":"x"}"#;
    town.add(Bead { metadata: Some(json(deep)), ..bead("gt-deep") });
    for key in ["a.b", "with space", "ä", "0", "it's"] {
        town.finds(BeadFilter { metadata_keys: texts([key]), ..any() }, &["gt-flat"]);
        let valued = BeadFilter { metadata: vec![(key.to_owned(), "x".to_owned())], ..any() };
        town.finds(valued, &["gt-flat"]);
    }
}

pub(super) fn long_and_strange_texts_read_back_exactly(subject: &dyn EngineUnderTest) {
    use gt_core::limits::{ID_BYTES_MAX, LABEL_BYTES_MAX, TITLE_BYTES_MAX};
    let strange =
        "tab\t line\r\n quote \" ' \\ \u{1}\u{7f} e\u{301} \u{200f}\u{feff} 🔧\u{10ffff} ?1 $1 %";
    let long = strange.repeat(20_000);
    let name = format!("gt-{}", "a".repeat(ID_BYTES_MAX - 3));
    let label = "ä".repeat(LABEL_BYTES_MAX / 2);
    let town = CheckedStore::new(subject);
    let written = town.add(Bead {
        title: Title::trusted("t".repeat(TITLE_BYTES_MAX)),
        description: long.clone(),
        design: strange.to_owned(),
        acceptance_criteria: strange.to_owned(),
        notes: long.clone(),
        assignee: "ö".repeat(LABEL_BYTES_MAX / 2),
        external_ref: Some(strange.to_owned()),
        metadata: Some(gt_core::Json::string(&long)),
        ..bead(&name)
    });
    town.label(&name, &label);
    town.write(|writer| {
        writer.put_setting(gt_store::SettingScope::Beads, strange, Some(&long))?;
        writer.add_comment(&written, &super::kit::comment(&name, "c", &long, 1), true)
    });

    assert_eq!(town.get(&name), written);
    town.read(|reader| {
        assert_eq!(reader.labels(&written)?, [label.as_str()]);
        assert_eq!(reader.setting(gt_store::SettingScope::Beads, strange)?.as_ref(), Some(&long));
        assert_eq!(reader.comments(&written.id)?[0].text, long);
        Ok(())
    });
    let by_label = BeadFilter { labels: vec![label], ..any() };
    town.finds(by_label, &[&name]);
    let needle = strange[..30].to_owned();
    town.finds(BeadFilter { description_contains: Some(needle), ..any() }, &[&name]);
    let events = town.events_since(0);
    assert!(events.iter().any(|event| event.payload.as_str().len() > long.len()));
}
