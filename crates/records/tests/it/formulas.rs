//! The meaning of a formula file, and the reasons for refusals.

use gt_core::formula::{Formula, FormulaKind, Repetition, validate};
use gt_records::{FormulaFormat, ReadFormula, formula_json, read_formula};
use proptest::prelude::*;

/// Every key there is.
const EVERYTHING: &str = r#"
formula = "everything"
description = "All of it"
version = 3
type = "workflow"
extends = ["base"]
phase = "vapor"
pour = true
owner = "ann"

[vars]
simple = "x"
number = 5

[vars.full]
description = "Which"
required = true
enum = ["a", "b"]
pattern = "^[ab]$"
type = "string"
colour = "red"

[[steps]]
id = "one"
title = "One"
description = "First"
notes = "n"
acceptance = "It is done"
type = "bug"
priority = 1
labels = ["l"]
metadata = { deep = [1, 2.5, true] }
assignee = "ann"
condition = "{{simple}} == x"
timeout_ms = 5

[steps.gate]
type = "human"
await_id = "approval"
timeout = "1h"

[[steps.children]]
id = "part"
title = "Part"

[[steps]]
id = "two"
title = "Two"
needs = ["one"]
depends_on = ["part", "one"]
waits_for = "children-of(one)"
expand = "exp"
expand_vars = { a = "1" }

[steps.on_complete]
for_each = "output.things"
bond = "other"
vars = { thing = "{item}" }
sequential = true

[[steps]]
id = "three"

[steps.loop]
range = "1..3"
var = "n"

[[steps.loop.body]]
id = "inner"
title = "Inner {n}"

[compose]
aspects = ["secure"]
bond_points = [{ id = "end", after_step = "two" }]
hooks = [{ trigger = "label:x", attach = "y" }]
gate = [{ before = "two", condition = "x" }]
[[compose.expand]]
target = "one"
with = "exp"
vars = { k = "v" }
[[compose.map]]
select = "*"
with = "exp"
[[compose.branch]]
from = "one"
steps = ["two"]
join = "three"

[[advice]]
target = "one"

[[pointcuts]]
glob = "one"

[[legs]]
id = "leg"
when = 2026-01-02T03:04:05Z
"#;

fn toml(text: &str) -> ReadFormula {
    read_formula(text, FormulaFormat::Toml, "tea.formula.toml")
}

fn json(text: &str) -> ReadFormula {
    read_formula(text, FormulaFormat::Json, "tea.formula.json")
}

fn fine(read: ReadFormula) -> Formula {
    assert_eq!(read.problems, [], "no problems");
    read.formula
}

fn problems(read: &ReadFormula) -> Vec<String> {
    read.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn every_key_is_understood_or_carried() {
    let read = toml(EVERYTHING);
    let warnings: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
    let formula = fine(read);

    assert_eq!((formula.name.as_str(), formula.version), ("everything", 3));
    let names: Vec<&str> = formula.variables.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["simple", "number", "full"], "in the order of the file");
    assert_eq!(formula.variables[1].default.as_deref(), Some("5"));
    assert_eq!(formula.steps[1].needs, ["one", "part"]);
    let gate = formula.steps[0].gate.as_ref().unwrap();
    assert_eq!((gate.id.as_str(), gate.timeout.as_str()), ("approval", "1h"));
    let repeat = formula.steps[2].repeat.as_ref().unwrap();
    assert_eq!(repeat.repetition, Repetition::Range("1..3".to_owned()));
    assert_eq!(formula.steps[2].source.line, Some(61));
    assert_eq!(formula.step_count(), 5);
    for key in ["owner", "colour", "timeout_ms", "legs"] {
        assert!(warnings.iter().any(|warning| warning.contains(key)), "{key} in {warnings:?}");
    }
    assert!(warnings[0].starts_with("tea.formula.toml:"), "{warnings:?}");
}

#[test]
fn nothing_is_lost_on_the_way_to_json_and_back() {
    let formula = fine(toml(EVERYTHING));
    let written = formula_json(&formula);
    assert!(
        written.contains(r#""legs":[{"id":"leg","when":"2026-01-02T03:04:05Z"}]"#),
        "{written}"
    );
    assert_eq!(fine(json(&written)), formula);
}

#[test]
fn the_least_formula_gets_the_defaults() {
    let formula = fine(toml("formula = \"tea\"\n[[steps]]\nid = \"a\"\ntitle = \"A\"\n"));
    assert_eq!((formula.version, formula.kind), (1, FormulaKind::Workflow));
    assert_eq!(validate(&formula), []);
    let text = r#"{"formula":"tea","steps":[{"id":"a","title":"A","notes":null}]}"#;
    assert_eq!(validate(&fine(json(text))), []);
    assert_eq!(fine(json(&format!("\u{feff}{text}"))), fine(json(text)), "a byte order mark");
}

#[test]
fn wrong_values_are_told_with_their_line() {
    let read = toml(
        "formula = 5\ntype = \"dance\"\nversion = \"one\"\nvars = 3\n[[steps]]\nid = \"a\"\n\
         title = [\"x\"]\nneeds = \"b\"\npriority = 9\ncondition = \"maybe\"\nwaits_for = \"luck\"\n\
         [steps.loop]\ncount = 1\nrange = \"1..2\"\n",
    );
    let said = problems(&read);
    for expected in [
        "tea.formula.toml:1: formula: expected a text, found 5",
        "tea.formula.toml:2: type: \"dance\" is not a type of formula; known: workflow,",
        "tea.formula.toml:3: version: expected a whole number",
        "tea.formula.toml:4: vars: expected a table, found 3",
        "tea.formula.toml:7: step \"a\": title: expected a text, found a list",
        "tea.formula.toml:8: step \"a\": needs: expected a list, found \"b\"",
        "tea.formula.toml:9: step \"a\": priority: priority 9 is not between",
        "tea.formula.toml:10: step \"a\": condition: the condition \"maybe\" is not understood",
        "tea.formula.toml:11: step \"a\": waits_for: waits_for is \"luck\"; write all-children,",
        "tea.formula.toml:12: step \"a\": loop: give one of count, range and until",
    ] {
        assert!(said.iter().any(|line| line.starts_with(expected)), "{expected} in {said:#?}");
    }
    assert_eq!(said.len(), 10, "{said:#?}");
}

#[test]
fn broken_syntax_is_told_with_line_and_column() {
    let said = problems(&toml("formula = \"tea\"\nversion = = 1\n"));
    assert!(said[0].starts_with("tea.formula.toml:2: not valid TOML at column 1"), "{said:?}");
    let said = problems(&json("{\n  \"formula\": tea\n}"));
    assert!(said[0].starts_with("tea.formula.json:2: not valid JSON at column"), "{said:?}");
    let said = problems(&json("[1]"));
    assert!(said[0].contains("expected an object, found a list"), "{said:?}");
    let said = problems(&json("{\"formula\":\"t\",\n\"steps\":[{\"id\":1}]}"));
    assert_eq!(said, ["tea.formula.json:2: step: id: expected a text, found 1"]);
}

#[test]
fn deep_nesting_is_refused() {
    for text in [
        format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("a = {}1{}", "[".repeat(70), "]".repeat(70)),
        format!("{}a = 1", "a.".repeat(70)),
        format!("[{}a]", "a.".repeat(70)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
    ] {
        assert!(!toml(&text).problems.is_empty(), "{}…", &text[..20]);
    }
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(problems(&json(&deep))[0].contains("levels deep"));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        for format in [FormulaFormat::Toml, FormulaFormat::Json] {
            let _ = validate(&read_formula(&text, format, "x").formula);
        }
    }

    #[test]
    fn no_value_in_any_place_makes_the_reader_panic(
        keys in prop::collection::vec(
            "(formula|type|version|vars|steps|template|compose|extends|phase|pour|advice|other)", 0..6),
        values in prop::collection::vec(
            r#"(1|-1|2\.5|true|""|"x"|\[\]|\[1\]|\{\}|\[\{id="a",title="b",needs=["a"]\}\]|\{a=1\}|\[\{loop=\{count=3,body=\[\{\}\]\}\}\])"#, 6),
    ) {
        let lines = keys.iter().zip(&values).map(|(key, value)| format!("{key} = {value}\n"));
        let text: String = lines.collect();
        let read = read_formula(&text, FormulaFormat::Toml, "x");
        let _ = validate(&read.formula);
        if read.problems.is_empty() {
            let again = read_formula(&formula_json(&read.formula), FormulaFormat::Json, "x");
            prop_assert_eq!(again.formula, read.formula);
        }
    }
}
