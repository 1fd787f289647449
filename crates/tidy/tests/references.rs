//! Generated references are up to date with the program.

mod support;

use std::env;
use std::fs;

use gt_tidy::workspace::{files, root};

use support::tests_of;

/// The command to run after a setting or a command has changed.
const UPDATE: &str = "UPDATE_REFERENCES=1 cargo test -p gt-tidy --test references";

#[track_caller]
fn check(path: &str, generated: &str) {
    let file = root().join(path);
    if env::var_os("UPDATE_REFERENCES").is_some_and(|value| value == "1") {
        let directory = file.parent().expect("a file lies in a directory");
        fs::create_dir_all(directory).expect("make the directory of the references");
        fs::write(&file, generated).expect("write a reference");
        return;
    }
    let written = fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("cannot read {path}: {error}; make it with: {UPDATE}"));
    assert!(
        written == generated,
        "{path} is out of date{}; run: {UPDATE}",
        first_difference(&written, generated)
    );
}

/// One line is enough to find the difference; the whole text would hide it.
fn first_difference(written: &str, generated: &str) -> String {
    let mut generated_lines = generated.lines();
    let mut written_lines = written.lines();
    let mut line = 1;
    loop {
        match (written_lines.next(), generated_lines.next()) {
            // They differ only in how lines end.
            (None, None) => return String::new(),
            (old, new) if old == new => line += 1,
            (old, new) => {
                let old = old.unwrap_or("(the end)");
                let new = new.unwrap_or("(the end)");
                return format!(" in line {line}\n  it says   {old}\n  should be {new}\n");
            }
        }
    }
}

#[test]
fn the_reference_of_settings_is_current() {
    check("docs/reference/settings.md", &gt_cli::reference::settings_markdown());
}

#[test]
fn the_reference_of_commands_is_current() {
    check("docs/reference/commands.md", &gt_cli::reference::commands_markdown());
}

#[test]
fn the_reference_of_events_is_current() {
    check("docs/reference/events.md", &gt_cli::reference::events_markdown());
}

#[test]
fn the_description_of_the_http_service_is_current() {
    check("docs/reference/openapi.json", &gt_server::openapi_json());
}

/// The tests of the store that only one engine has, by where they are.
const ONLY_ON: [(&str, &[&str]); 2] = [
    ("SQLite", &["crates/store/tests/it/sqlite/"]),
    ("PostgreSQL", &["crates/store/tests/it/postgres/", "crates/store/tests/it/deferred.rs"]),
];

fn conformance_markdown() -> String {
    let mut lines = vec![gt_conformance::reference()];
    let mut sources = files();
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    for (engine, places) in ONLY_ON {
        lines.push(format!("## Only on {engine}\n"));
        for file in &sources {
            let tests = tests_of(&file.text);
            if places.iter().any(|place| file.path.starts_with(place)) && !tests.is_empty() {
                let name = file.path.rsplit('/').next().unwrap_or_default();
                lines.push(format!("{}:\n", name.trim_end_matches(".rs")));
                lines.extend(tests.iter().map(|test| format!("- {test}")));
                lines.push(String::new());
            }
        }
    }
    lines.join("\n")
}

#[test]
fn the_reference_of_conformance_is_current() {
    check("docs/reference/conformance.md", &conformance_markdown());
}

#[test]
fn the_questions_name_tests_that_are_there() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("read a file of ours");
    let page = read("docs/questions.md");
    // Behind every other one of these marks stands a word of code.
    let named = page.split('`').skip(1).step_by(2).filter_map(|word| match word.split_once("::") {
        Some((file, name)) => Some((format!("crates/cli/tests/it/{file}"), name)),
        None if word.starts_with("a_") => {
            Some(("crates/simulator/tests/it/planted.rs".to_owned(), word))
        }
        None => None,
    });
    let mut count = 0;
    for (file, name) in named {
        let is_there = tests_of(&read(&file)).contains(&name.replace('_', " "));
        assert!(is_there, "docs/questions.md names {name}, which is no test of {file}");
        count += 1;
    }
    assert!(count > 25, "only {count} are named");
}

#[test]
fn the_tests_of_a_file_are_found() {
    let source =
        "#[test]\nfn a_b() {\n}\n\nfn helper() {}\n\n    #[test]\n    #[should_panic]\n    fn c(";
    assert_eq!(tests_of(source), ["a b", "c"]);
}

#[test]
fn a_difference_is_shown_by_its_line() {
    assert!(first_difference("a\nb\n", "a\nc\n").starts_with(" in line 2\n  it says   b\n"));
    assert!(first_difference("a\n", "a\nc\n").contains("it says   (the end)"));
    assert_eq!(first_difference("a", "a\n"), "");
}
