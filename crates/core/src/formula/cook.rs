//! From a formula to a graph of work.

use std::collections::BTreeMap;

use super::plan::{Cooked, plan};
use super::problem::listed;
use super::{
    Compose, Formula, FormulaKind, FormulaProblem, VariableValues, extend, substitute, transform,
    validate,
};

/// Finds a formula by its name.
pub type FormulaLookup<'a> = dyn Fn(&str) -> Result<Formula, Vec<FormulaProblem>> + 'a;

/// Whether placeholders are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderMode {
    /// They are kept, to be filled in later.
    Compile,
    /// Every one gets its value.
    Runtime,
}

/// The options of cooking.
#[derive(Debug, Clone, Copy)]
pub struct CookOptions<'a> {
    /// The values of its variables.
    pub given: &'a BTreeMap<String, String>,
    /// Whether placeholders are kept.
    pub mode: PlaceholderMode,
    /// The prefix of the ids, before the name of the formula.
    pub prefix: Option<&'a str>,
}

/// Cooks a formula: inherits, checks, unrolls, fills in, and makes the graph. Changes nothing anywhere.
pub fn cook(
    formula: &Formula,
    order: CookOptions<'_>,
    lookup: &FormulaLookup<'_>,
) -> Result<Cooked, Vec<FormulaProblem>> {
    let mut formula = extend::resolve(formula, lookup)?;
    let mut problems = validate(&formula);
    problems.extend(unsupported(&formula));
    let (values, found) = VariableValues::of(&formula, order.given);
    problems.extend(found);
    if !problems.is_empty() {
        return Err(problems);
    }
    let steps = transform::transform(&formula, &values, lookup)?;
    formula.steps = substitute::choose(steps, &values, order.mode);
    let mentions = substitute::mentions(&formula);
    let mut problems = substitute::undeclared_mentions(&formula, &mentions);
    if order.mode == PlaceholderMode::Runtime {
        problems.extend(substitute::replace(&mut formula, &values, &mentions));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    // These parts have been applied and must not be applied again.
    let Compose { bond_points, carried, .. } = std::mem::take(&mut formula.compose);
    formula.compose = Compose { bond_points, carried, ..Compose::default() };
    let root = match order.prefix {
        Some(prefix) => format!("{}-{}", prefix.trim_end_matches('-'), formula.name),
        None => formula.name.clone(),
    };
    let declared: Vec<&str> = formula.variables.iter().map(|v| v.name.as_str()).collect();
    let unknown = order.given.keys().filter(|name| !declared.contains(&name.as_str()));
    let warning = |name: &String| {
        format!("the formula has no variable {name}; it has: {}", listed(declared.clone()))
    };
    let warnings = unknown.map(warning).collect();
    Ok(Cooked { warnings, ..plan(formula, root)? })
}

/// The parts of a formula that cooking does not support.
fn unsupported(formula: &Formula) -> Vec<FormulaProblem> {
    let compose = &formula.compose;
    let refused = |message: &str| FormulaProblem::new(&formula.source, "", message);
    let mut problems = Vec::new();
    match formula.kind {
        FormulaKind::Expansion => problems.push(refused(
            "it is an expansion: it is not cooked itself, but used by other formulas with expand",
        )),
        FormulaKind::Aspect => problems.push(refused(
            "it is an aspect: it is not cooked itself, but meant for other formulas",
        )),
        FormulaKind::Convoy if formula.steps.is_empty() => problems.push(refused(
            "it is a convoy without steps; legs and synthesis are kept and shown, but not \
             supported: write them as [[steps]] with needs",
        )),
        FormulaKind::Workflow | FormulaKind::Convoy => {}
    }
    for (present, what) in [
        (!formula.advice.is_empty() && formula.kind != FormulaKind::Aspect, "advice"),
        (!compose.aspects.is_empty(), "compose.aspects"),
        (!compose.hooks.is_empty(), "compose.hooks"),
        (!compose.gate.is_empty(), "compose.gate"),
    ] {
        if present {
            problems.push(refused(&format!(
                "{what} is not supported; write the steps it would add as [[steps]], and what must \
                 happen outside as a gate of a step"
            )));
        }
    }
    problems
}
