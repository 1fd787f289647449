//! `gt man`: the manual pages.

use std::fs;

use crate::support::{Steps as _, assert_says, files_in, nowhere, refusal};

/// The names of the pages that the commands of the reference should have.
fn expected() -> Vec<String> {
    let reference = gt_cli::reference::commands_markdown();
    let commands = reference.lines().filter_map(|line| line.strip_prefix("## `"));
    let mut names: Vec<String> = commands
        .map(|command| command.trim_end_matches('`').replace(' ', "-"))
        .map(|name| name.strip_prefix("gt-bd").map_or(name.clone(), |rest| format!("bd{rest}")))
        .collect();
    names.sort();
    names
}

#[test]
fn every_command_that_people_see_has_a_page() {
    let sandbox = nowhere();

    let ran = sandbox.gt(["man", "--dir", "share/man1"]).ok();

    let directory = sandbox.cwd().join("share/man1");
    let mut files: Vec<String> = expected().iter().map(|name| format!("{name}.1")).collect();
    files.sort();
    assert_eq!(files_in(&directory), files);
    assert_says(&ran.stdout, &[&format!("✓ Wrote {} pages", files.len())]);
    for name in expected() {
        let file = format!("{name}.1");
        let page = fs::read_to_string(directory.join(&file)).unwrap();
        let title = format!(".TH {name} 1 ");
        let first = page.lines().find(|line| line.starts_with(".TH"));
        assert!(first.is_some_and(|line| line.starts_with(&title)), "{file}: {first:?}");
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION"] {
            assert!(page.lines().any(|line| line == section), "{section} of {file}");
        }
        let escaped = name.replace('-', "\\-");
        assert!(page.contains(&format!("\n{escaped} \\- ")), "{file} says what it is about");
        // A line of text that begins with a full stop would be taken for a request.
        let requests = [".TH", ".SH", ".TP", ".br", ".ie", ".el", ".RS", ".RE", ".IP", ".PP"];
        for line in page.lines().filter(|line| line.starts_with('.')) {
            let request = line.split(' ').next().unwrap_or_default();
            assert!(requests.contains(&request), "{line:?} in {file}");
        }
    }
}

#[test]
fn one_page_is_printed() {
    let sandbox = nowhere();
    let page = sandbox.gt(["man", "bd-create"]).ok();
    assert_says(&page.stdout, &[".TH bd-create 1", "\\-\\-silent", "Examples:"]);
    assert_eq!(sandbox.gt(["man", "bd-create.1"]).ok().stdout, page.stdout);
    assert_eq!(sandbox.gt(["man", "bd create"]).ok().stdout, page.stdout);
    assert_eq!(sandbox.gt(["man", "bd", "create"]).ok().stdout, page.stdout);
    assert_eq!(sandbox.gt(["man", "create"]).ok().stdout, page.stdout);
    assert_says(&sandbox.gt(["man", "sling"]).ok().stdout, &[".TH gt-sling 1"]);
    let error = refusal(&sandbox.gt(["man", "bd-nope"]));
    assert_says(&error, &["there is no page \"bd-nope\"", "gt man"]);
}

#[test]
fn the_pages_are_listed() {
    let sandbox = nowhere();
    let said = sandbox.gt(["man"]).ok();
    assert_eq!(said.stdout.lines().collect::<Vec<_>>(), expected());
    assert_eq!(sandbox.gt_json(&["man"]), serde_json::json!(expected()));
}

#[test]
fn a_directory_that_cannot_be_written_is_said() {
    let sandbox = nowhere();
    sandbox.write("file", "");
    let error = refusal(&sandbox.gt(["man", "--dir", "file"]));
    assert_says(&error, &["cannot write", "file"]);
}
