//! The repository stands alone: comments and pages refer to nothing that a reader does not have.

use gt_tidy::assert_none;
use gt_tidy::workspace::{SourceFile, files};

/// Words that, before a number, name a part of a paper, put together from parts because this file is searched too.
const NUMBERED: [&str; 6] = [
    concat!("ru", "le"),
    concat!("ru", "les"),
    concat!("hou", "se"),
    concat!("design sec", "tion"),
    concat!("item ", "of issue"),
    concat!("requi", "rement"),
];

/// A seed of a random history is a plain number; a paper has three digits.
const SEED: &str = concat!("se", "ed 0");

/// The sign of a section in a paper.
const SECTION: char = '\u{a7}';

/// A comment with these words gives an example of a name.
const EXAMPLE: &str = "such as";

/// Text that people of this project have written.
fn is_searched(file: &SourceFile) -> bool {
    !file.is_data() && !file.is_foreign()
}

/// The words of a line that refer to a numbered part of a paper.
fn numbered_reference(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    let starts_word =
        |at: usize| !lower[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    for word in NUMBERED {
        for (at, _) in lower.match_indices(&format!("{word} ")) {
            let rest = &lower[at + word.len() + 1..];
            if starts_word(at) && rest.starts_with(|c: char| c.is_ascii_digit()) {
                return Some(excerpt(&lower[at..]));
            }
        }
    }
    for (at, _) in lower.match_indices(SEED) {
        if starts_word(at) {
            return Some(excerpt(&lower[at..]));
        }
    }
    line.find(SECTION).map(|at| excerpt(&line[at..]))
}

fn excerpt(text: &str) -> String {
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// The prose of a line: a comment of source, or a line of a page without its code spans.
fn prose(file: &SourceFile, line: &str) -> Option<String> {
    if file.is_page() {
        return Some(line.split('`').step_by(2).collect::<Vec<_>>().join(" "));
    }
    let line = line.trim_start();
    (file.is_rust() && line.starts_with("//")).then(|| line.to_owned())
}

/// The names of pages in a text, without what leads to them from elsewhere.
fn pages_named(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let names = text.split(|c: char| !is_name(c)).map(|name| name.trim_end_matches('.'));
    let names = names.filter(|name| name.strip_suffix(".md").is_some_and(|stem| !stem.is_empty()));
    names.map(|name| name.trim_start_matches(['.', '/'])).collect()
}

fn exists(page: &str, all: &[SourceFile]) -> bool {
    all.iter().any(|file| {
        file.path
            .strip_suffix(page)
            .is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

#[test]
fn no_text_refers_to_a_numbered_paper() {
    let mut findings = Vec::new();
    for file in files().iter().filter(|file| is_searched(file)) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(reference) = numbered_reference(line) {
                findings.push(format!("{}:{}: {reference}", file.path, number + 1));
            }
        }
    }
    assert_none("say the rule itself, or link a page in docs/:", &findings);
}

#[test]
fn named_pages_exist() {
    let all = files();
    let (mut findings, mut count) = (Vec::new(), 0);
    for file in all.iter().filter(|file| is_searched(file)) {
        let mut is_code = false;
        for (number, line) in file.text.lines().enumerate() {
            if file.is_page() && line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            if is_code || line.contains(EXAMPLE) {
                continue;
            }
            let Some(prose) = prose(file, line) else { continue };
            for page in pages_named(&prose) {
                count += 1;
                if !exists(page, &all) {
                    findings.push(format!("{}:{}: {page}", file.path, number + 1));
                }
            }
        }
    }
    assert!(count > 50, "only {count} pages are named");
    assert_none("name a page that is in the repository, or say what it says:", &findings);
}

#[test]
fn references_are_found() {
    for word in NUMBERED {
        assert!(numbered_reference(&format!("// See {word} 44.")).is_some(), "{word}");
    }
    assert!(numbered_reference(&format!("{SEED}02 says so")).is_some());
    assert!(numbered_reference(&format!("by {SECTION}6")).is_some());
    let harmless =
        format!("{}s that follow; the {} of 12; {}1", NUMBERED[0], NUMBERED[2], &SEED[..5]);
    assert_eq!(numbered_reference(&harmless), None);
}

#[test]
fn names_of_pages_are_found() {
    let text = "see docs/a.md, [b](../b-c.md#d) and `e.md`. Not .md or a.mdx";
    assert_eq!(pages_named(text), ["docs/a.md", "b-c.md", "e.md"]);
    let file = |path: &str| SourceFile { path: path.to_owned(), text: String::new() };
    let all = [file("docs/guides/landing.md")];
    assert!(exists("landing.md", &all) && exists("guides/landing.md", &all));
    assert!(!exists("ding.md", &all) && !exists("design.md", &all));
}
