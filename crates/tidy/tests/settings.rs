//! The rules for settings: each is used, and none is read past its layers.

use gt_core::settings::{ACCESSORS, KEYS};
use gt_tidy::assert_none;
use gt_tidy::workspace::{SourceFile, files};

/// Accessors that no code calls yet, with the reason.
const UNUSED: &[(&str, &str)] = &[];

/// The module that reads settings from the store, and the one that puts the layers together.
const MODULES: [&str; 2] = ["crates/store/src/verbs/settings.rs", "crates/town/src/settings/"];

/// The program: without tests, and without the cases that engines are tested with.
fn is_program(file: &SourceFile) -> bool {
    let is_case = file.path.starts_with("crates/conformance/src/");
    file.is_rust() && file.path.contains("/src/") && !file.is_test() && !is_case
}

fn is_module(file: &SourceFile) -> bool {
    MODULES.iter().any(|module| file.path.starts_with(module))
}

/// `path:line` of each line of the program, these modules aside, in which one of the words is.
fn lines_with(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files().iter().filter(|file| is_program(file) && !is_module(file)) {
        for (number, line) in file.text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    found
}

#[test]
fn every_setting_is_used_by_some_code() {
    let files = files();
    let is_called = |method: &str| {
        let call = format!(".{method}(");
        files.iter().any(|file| is_program(file) && file.text.contains(&call))
    };
    for accessor in ACCESSORS {
        let is_unused = UNUSED.iter().any(|(method, _)| *method == accessor.method);
        let is_used = is_called(accessor.method);
        assert!(is_used != is_unused, "{}: used: {is_used}", accessor.setting);
    }
}

#[test]
fn settings_are_read_through_their_layers() {
    let by_key = lines_with(&["Scope::Town".to_owned(), "FROM settings".to_owned()]);
    assert_none("ask gt_town::settings for the value in force:", &by_key);
    let names = KEYS.iter().map(|setting| format!(".get(\"{}\")", setting.name));
    let by_name = lines_with(&names.collect::<Vec<_>>());
    assert_none("call the accessor of the setting:", &by_name);
}
