//! Every type name exists once in the workspace, so that a search for it finds one thing.

use std::collections::BTreeMap;

use gt_tidy::assert_none;
use gt_tidy::workspace::{SourceFile, files};

/// The words that begin a definition.
const KEYWORDS: [&str; 5] = ["struct ", "enum ", "trait ", "type ", "union "];

/// The traits of types that describe a command line. They have the name of their command.
const COMMAND_LINE: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Each crate may have a type of this name.
const SHARED_NAME: &str = "Error";

/// A macro whose invocation defines an enum: `names! { Name, "…" { … } }`.
const DEFINING_MACRO: &str = "names! {";

/// Source that is not only compiled for tests. Types of tests may repeat.
fn is_searched(file: &SourceFile) -> bool {
    let is_source = file.path.starts_with("crates/") && file.path.contains("/src/");
    let is_of_tests = file.is_test() || file.path.ends_with("_tests.rs");
    file.is_rust() && is_source && !is_of_tests
}

/// The name of the type that a line defines, if it does. Indented aliases are types of traits.
fn defined(line: &str) -> Option<&str> {
    let is_indented = line.starts_with(' ');
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        rest = match public.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1.trim_start(),
            None => public.strip_prefix(' ')?,
        };
    }
    let keyword = KEYWORDS.into_iter().find(|keyword| rest.starts_with(keyword))?;
    if is_indented && keyword == "type " {
        return None;
    }
    let rest = &rest[keyword.len()..];
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest.starts_with(|first: char| first.is_uppercase()).then_some(&rest[..end])
}

/// Whether an attribute derives a trait of the command line.
fn describes_command_line(attribute: &str) -> bool {
    let traits = attribute.trim_start().strip_prefix("#[derive(");
    let traits = traits.and_then(|rest| rest.split(')').next()).unwrap_or_default();
    traits.split(',').any(|name| COMMAND_LINE.contains(&name.trim()))
}

/// The types that a source file defines outside its tests, each with its line from 1.
fn types_of(source: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let (mut is_of_test, mut is_command_line, mut is_named_by_macro) = (false, false, false);
    let mut test_indent: Option<usize> = None;
    let mut attribute = String::new();
    for (at, line) in source.lines().enumerate() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(begin) = test_indent {
            // The item under `#[cfg(test)]` ends with a brace as far left as it begins.
            if indent == begin && text.starts_with('}') {
                test_indent = None;
            }
            continue;
        }
        if text.starts_with("#[") || !attribute.is_empty() {
            attribute += text;
            if text.ends_with(']') {
                is_of_test |= attribute.starts_with("#[cfg(test)]");
                is_command_line |= describes_command_line(&attribute);
                attribute.clear();
            }
            continue;
        }
        if text.starts_with("//") || text.is_empty() {
            continue;
        }
        if is_of_test && text.ends_with('{') {
            test_indent = Some(indent);
        }
        let name = if is_named_by_macro {
            text.split_once(',').map(|(name, _)| name)
        } else {
            defined(line)
        };
        if let (Some(name), false, false) = (name, is_of_test, is_command_line) {
            found.push((name, at + 1));
        }
        is_named_by_macro = text == DEFINING_MACRO;
        (is_of_test, is_command_line) = (false, false);
    }
    found
}

#[test]
fn each_type_name_exists_once() {
    let all: Vec<SourceFile> = files().into_iter().filter(is_searched).collect();
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in &all {
        for (name, line) in
            types_of(&file.text).into_iter().filter(|(name, _)| *name != SHARED_NAME)
        {
            places.entry(name).or_default().push(format!("{}:{line}", file.path));
        }
    }
    assert!(places.len() > 500, "only {} types are found", places.len());
    let repeated = places.iter().filter(|(_, places)| places.len() > 1);
    let findings: Vec<String> =
        repeated.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect();
    assert_none("name each of these types for what it is:", &findings);
}

#[test]
fn definitions_are_found() {
    let source = "\
pub struct One;
pub(crate) enum Two<T> {
    Three(T),
}
type Four = u8;
impl Iterator for One {
    type Item = u8;
}
fn local() {
    struct Five;
}
names! {
    /// A word.
    Six, \"a word\" {
        Seven = \"seven\",
    }
}
pub(in crate::a) trait Eight {}
";
    let names: Vec<&str> = types_of(source).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["One", "Two", "Four", "Five", "Six", "Eight"]);
}

#[test]
fn types_of_tests_and_command_lines_may_repeat() {
    let source = "\
#[derive(Debug, Args)]
#[command(after_help = \"Examples:
  gt list\")]
struct ListArgs {
    a: u8,
}
#[cfg(test)]
struct OfTest;
struct Kept;
#[cfg(test)]
mod tests {
    struct Inner {
        a: u8,
    }
}
struct Last;
";
    assert_eq!(types_of(source), [("Kept", 9), ("Last", 16)]);
}
