//! Formula files, and the results of cooking them.

use std::collections::BTreeMap;

use gt_core::formula::{
    CookOptions, Formula, FormulaProblem, PlaceholderMode, SourceLocation, VariableCondition, cook,
    validate,
};
use gt_core::limits;
use gt_records::{FormulaFormat, cooked_json, formula_json, read_formula};

use crate::promise::{accepted, is_json_line, reads_back, tells_on_one_line, text};

pub(super) const KEYS: &[&str] = &[
    "formula = \"f\"\n",
    "[[steps]]\nid = \"s\"\ntitle = \"S\"\n",
    "needs = [\"s\"]\n",
    "condition = \"{{v}}\"\n",
    "[vars]\nv = \"1\"\n",
    "[steps.loop]\nrange = \"1..3\"\nvar = \"n\"\n",
    "count = 2\n",
    "until = \"x\"\nmax = 3\n",
    "[[steps.loop.body]]\n",
    "[steps.gate]\ntype = \"human\"\n",
    "waits_for = \"children-of(s)\"\n",
    "extends = [\"fuzz\"]\n",
    "expand = \"expansion\"\n",
    "[[compose.expand]]\ntarget = \"s\"\nwith = \"expansion\"\n",
    "[[compose.map]]\nselect = \"*\"\n",
    "[compose]\n",
    "type = \"expansion\"\n",
    "{{v}}",
    "{n}",
    "{target}",
    "1..2^3",
    "pattern = \"^(a|b)*$\"\n",
    "\"steps\":[",
    "\"id\":\"s\"",
    "\"title\":\"S\"",
    "\"needs\":[\"s\"]",
    "\"vars\":{",
    "\"loop\":{",
    "\"range\":\"1..3\"",
    "\"var\":\"n\"",
    "\"body\":[",
    "\"formula\":\"f\"",
    "metadata = {a = 1}\n",
];

/// Whether a step is to be done.
pub(super) fn condition(input: &[u8]) {
    let Some(given) = text(input) else { return };
    let Some(condition) = accepted(VariableCondition::parse(given)) else { return };
    reads_back(&condition, &condition.to_string(), VariableCondition::parse);
    let variable = condition.variable().expect("nothing is settled yet").to_owned();
    for value in ["", "no", "yes", given] {
        let settled = condition.with_value(&variable, value);
        assert_eq!(settled.holds(|_| None), condition.holds(|_| Some(value)));
    }
}

/// A formula in TOML.
pub(super) fn toml(input: &[u8]) {
    check(input, FormulaFormat::Toml);
}

/// A formula in JSON.
pub(super) fn json(input: &[u8]) {
    check(input, FormulaFormat::Json);
}

/// An expansion that the formulas of inputs may use.
const EXPANSION: &str = "formula = \"expansion\"\ntype = \"expansion\"\n\
    [[template]]\nid = \"{target}.draft\"\ntitle = \"Draft {target.title}\"\n\
    [[template]]\nid = \"{target}.check\"\ntitle = \"Check\"\nneeds = [\"{target}.draft\"]\n";

fn check(input: &[u8], format: FormulaFormat) {
    let Some(file) = text(input) else { return };
    let read = read_formula(file, format, "fuzz.formula");
    read.problems.iter().chain(&read.warnings).for_each(tells_on_one_line);
    if !read.problems.is_empty() {
        return;
    }
    let formula = read.formula;
    let written = formula_json(&formula);
    is_json_line(&written);
    let again = read_formula(&written, FormulaFormat::Json, "fuzz.formula");
    assert_eq!(again.problems, [], "{written}");
    assert_eq!(again.formula, formula, "{written}");
    validate(&formula).iter().for_each(tells_on_one_line);
    for mode in [PlaceholderMode::Compile, PlaceholderMode::Runtime] {
        check_cooked(&formula, mode);
    }
}

fn check_cooked(formula: &Formula, mode: PlaceholderMode) {
    let lookup = |name: &str| {
        let missing =
            || FormulaProblem::new(&SourceLocation::default(), "", format!("no formula {name:?}"));
        match name {
            "expansion" => Ok(read_formula(EXPANSION, FormulaFormat::Toml, "").formula),
            name if name == formula.name => Ok(formula.clone()),
            _ => Err(vec![missing()]),
        }
    };
    let given: BTreeMap<String, String> =
        formula.variables.iter().map(|variable| (variable.name.clone(), "1".to_owned())).collect();
    for given in [&BTreeMap::new(), &given] {
        match cook(formula, CookOptions { given, mode, prefix: Some("gt") }, &lookup) {
            Ok(cooked) => {
                assert!(cooked.steps.len() <= 2 * limits::FORMULA_STEPS_MAX);
                cooked.warnings.iter().for_each(tells_on_one_line);
                is_json_line(&cooked_json(&cooked));
                // Every step only knows others that are there.
                let is_known = |step: &usize| *step < cooked.steps.len();
                for step in &cooked.steps {
                    assert!(step.needs.iter().chain(&step.parent).all(is_known));
                }
            }
            Err(problems) => {
                assert!(!problems.is_empty());
                problems.iter().for_each(tells_on_one_line);
            }
        }
    }
}
