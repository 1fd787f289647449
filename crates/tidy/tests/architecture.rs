//! The pages about the architecture name files, functions and tests that exist, and their links resolve.

mod support;

use std::path::{Component, Path, PathBuf};

use gt_tidy::assert_none;
use gt_tidy::workspace::{SourceFile, files, root};

use support::tests_of;

/// The directory of the test cases that run on every engine. They are functions of a library.
const CONFORMANCE: &str = "crates/conformance/src/";

/// A name in a code span of a page that has to exist.
#[derive(Debug, PartialEq, Eq)]
enum Named<'a> {
    /// A file or directory of the repository.
    Path(&'a str),
    /// A function, with or without its type.
    Function(&'a str),
    /// A test and the module it is in.
    Test { module: &'a str, name: &'a str },
}

/// Whether a page is one of those that are checked.
fn is_about_architecture(file: &SourceFile) -> bool {
    file.path == "ARCHITECTURE.md"
        || file.path == "GLOSSARY.md"
        || (file.path.starts_with("docs/architecture/") && file.is_page())
}

/// The lines of a page outside its code blocks, from 1.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    page.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_fence && !is_code).then_some((at + 1, line))
    })
}

/// The name that a code span has, if it is one that has to exist. Addresses, files of a town and files of a person are none.
fn named(span: &str) -> Option<Named<'_>> {
    if span.contains(char::is_whitespace) {
        return None;
    }
    if let Some(function) = span.strip_suffix("()") {
        return Some(Named::Function(function.rsplit("::").next().unwrap_or(function)));
    }
    if let Some((module, name)) = span.split_once("::") {
        let is_test = module.starts_with(|first: char| first.is_ascii_lowercase());
        return is_test.then_some(Named::Test { module, name });
    }
    let is_elsewhere = ["/", "~", ".gt/"].iter().any(|start| span.starts_with(start));
    (span.contains('/') && !is_elsewhere).then_some(Named::Path(span))
}

/// The names in the code spans of a line.
fn names(line: &str) -> impl Iterator<Item = Named<'_>> {
    // Behind every other one of these marks stands code.
    line.split('`').skip(1).step_by(2).filter_map(named)
}

/// The targets of the links in a line that lead to files of the repository.
fn links(line: &str) -> Vec<&str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    targets.filter_map(|target| target.split('#').next()).collect()
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// Whether a file is the module of this name.
fn is_module(file: &SourceFile, module: &str) -> bool {
    let path = file.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
    file.is_rust() && path.rsplit('/').next() == Some(module)
}

/// Whether a file has a function of this name.
fn declares(file: &SourceFile, function: &str) -> bool {
    let mut names = file.text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
    file.is_rust() && names.any(|name| name == function)
}

fn exists(name: &Named<'_>, all: &[SourceFile]) -> bool {
    match name {
        Named::Path(path) => root().join(path).exists(),
        Named::Function(function) => all.iter().any(|file| declares(file, function)),
        Named::Test { module, name } => all.iter().any(|file| {
            let is_case = file.path.starts_with(CONFORMANCE) && declares(file, name);
            let is_test = || tests_of(&file.text).contains(&name.replace('_', " "));
            is_module(file, module) && (is_case || is_test())
        }),
    }
}

#[test]
fn named_files_functions_and_tests_exist() {
    let all = files();
    let mut findings = Vec::new();
    let mut count = 0;
    for page in all.iter().filter(|file| is_about_architecture(file)) {
        for (at, line) in prose(&page.text) {
            for name in names(line) {
                count += 1;
                if !exists(&name, &all) {
                    findings.push(format!("{}:{at}: {name:?}", page.path));
                }
            }
        }
    }
    assert!(count > 200, "only {count} names are found");
    assert_none("write the name that it has now:", &findings);
}

#[test]
fn links_between_pages_resolve() {
    let mut findings = Vec::new();
    let mut count = 0;
    for page in files().iter().filter(|file| is_about_architecture(file)) {
        let directory = Path::new(&page.path).parent().unwrap_or(Path::new(""));
        for (at, line) in prose(&page.text) {
            for link in links(line) {
                count += 1;
                if !root().join(normal(&directory.join(link))).exists() {
                    findings.push(format!("{}:{at}: {link}", page.path));
                }
            }
        }
    }
    assert!(count > 20, "only {count} links are found");
    assert_none("link to a page that exists:", &findings);
}

#[test]
fn every_decision_is_listed() {
    let directory = "docs/architecture/decisions/";
    let all = files();
    let list = all.iter().find(|file| file.path == format!("{directory}README.md"));
    let list = &list.expect("the decisions have a list").text;
    let records = all.iter().filter_map(|file| file.path.strip_prefix(directory));
    let records = records.filter(|name| *name != "README.md");
    let findings: Vec<String> = records
        .filter(|name| !list.contains(&format!("({name})")))
        .map(|name| format!("{directory}{name}"))
        .collect();
    assert_none("add it to the list of decisions:", &findings);
}

#[test]
fn kinds_of_names_are_told_apart() {
    let line = "`crates/core`, `/work/next`, `.gt/host`, `start_in()`, `Town::open()`, `races::two_at_once`, \
        `Town::open`, `gt done`, `town.toml`";
    let found: Vec<Named<'_>> = names(line).collect();
    let test = Named::Test { module: "races", name: "two_at_once" };
    let functions = ["start_in", "open"].map(Named::Function);
    let [start, open] = functions;
    assert_eq!(found, [Named::Path("crates/core"), start, open, test]);
}

#[test]
fn names_that_do_not_exist_are_noticed() {
    let file = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
    let all = [
        file("crates/a/tests/it/races.rs", "#[test]\nfn two_at_once() {}\nfn helper() {}\n"),
        file("crates/conformance/src/runs.rs", "pub fn a_case<E>() {}\n"),
    ];
    let test = |module, name| exists(&Named::Test { module, name }, &all);
    assert!(test("races", "two_at_once") && test("runs", "a_case"));
    assert!(!test("races", "helper") && !test("runs", "two_at_once"));
    assert!(exists(&Named::Function("helper"), &all) && !exists(&Named::Function("help"), &all));
    assert!(!exists(&Named::Path("crates/none"), &all));
}

#[test]
fn code_blocks_are_left_out_and_links_are_found() {
    let page = "a [x](y.md#z) and [w](https://example.org)\n```\n[no](no.md)\n```\n[b](../c.md)\n";
    let found: Vec<(usize, Vec<&str>)> = prose(page).map(|(at, line)| (at, links(line))).collect();
    assert_eq!(found, [(1, vec!["y.md"]), (5, vec!["../c.md"])]);
    assert_eq!(
        normal(Path::new("docs/architecture/../questions.md")),
        Path::new("docs/questions.md")
    );
}
