//! Sentences name their subject: words that stand for a missing noun are kept out.

use gt_tidy::assert_none;
use gt_tidy::workspace::{SourceFile, files};

/// The words, put together from parts because this file is searched too.
const WORDS: [&str; 7] = [
    concat!("who", "ever"),
    concat!("some", "body"),
    concat!("some", "one"),
    concat!("no", "body"),
    concat!("no", " one"),
    concat!("any", "body"),
    concat!("every", "body"),
];

/// A line with this mark quotes another program.
const QUOTED: &str = concat!("tidy: ", "quoted");

/// Source that ships or checks, and the pages that people read. Generated pages, fixtures and licences are not ours.
fn is_searched(file: &SourceFile) -> bool {
    let is_source = file.path.starts_with("crates/") && file.path.contains("/src/");
    let is_page = file.is_page();
    (is_source || is_page) && !file.is_data() && !file.is_foreign()
}

/// The line without its code spans, if it is one of a page.
fn prose(file: &SourceFile, line: &str) -> String {
    if !file.is_page() {
        return line.to_owned();
    }
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The first of the words in a line. Words may be parts of identifiers, but not of longer words.
fn word_in(line: &str) -> Option<&'static str> {
    let line = line.to_lowercase();
    WORDS.into_iter().find(|word| {
        line.match_indices(word).any(|(at, found)| {
            let before = line[..at].chars().next_back();
            let after = line[at + found.len()..].chars().next();
            let ends = |c: Option<char>| c.is_none_or(|c| !c.is_alphabetic());
            ends(before) && ends(after)
        })
    })
}

#[test]
fn sentences_name_their_subject() {
    let mut findings = Vec::new();
    for file in files().into_iter().filter(is_searched) {
        let mut is_code = false;
        for (number, line) in file.text.lines().enumerate() {
            if file.is_page() && line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            if is_code || line.contains(QUOTED) {
                continue;
            }
            if let Some(word) = word_in(&prose(&file, line)) {
                findings.push(format!("{}:{}: {word}", file.path, number + 1));
            }
        }
    }
    assert_none("write the noun that this word stands for:", &findings);
}

#[test]
fn words_are_found_in_text_and_identifiers() {
    let line = format!("fn {}_is_there()", WORDS[1]);
    assert_eq!(word_in(&line), Some(WORDS[1]));
    assert_eq!(word_in("noone's somebodys"), None);
}
