//! Formulas that build upon others.

use std::collections::HashMap;

use super::problem::shown;
use super::{Formula, FormulaLookup, FormulaProblem};

/// How many formulas may build upon each other in a row.
const CHAIN_MAX: usize = 32;

/// The formula with everything it inherits: of variables and steps with the same name the nearer one
/// counts, and takes the place of the other. Of two formulas that it extends the later one is nearer.
pub fn resolve(
    formula: &Formula,
    lookup: &FormulaLookup<'_>,
) -> Result<Formula, Vec<FormulaProblem>> {
    inherit(formula, lookup, &mut vec![formula.name.clone()])
}

fn inherit(
    formula: &Formula,
    lookup: &FormulaLookup<'_>,
    chain: &mut Vec<String>,
) -> Result<Formula, Vec<FormulaProblem>> {
    if formula.extends.is_empty() {
        return Ok(formula.clone());
    }
    let mut problems = Vec::new();
    let mut inherited = Formula::default();
    for name in &formula.extends {
        let refused = |message: String| FormulaProblem::new(&formula.source, "extends", message);
        if chain.contains(name) {
            let path = format!("{} → {name}", chain.join(" → "));
            problems.push(refused(format!("the formulas extend each other: {path}")));
            continue;
        }
        if chain.len() >= CHAIN_MAX {
            problems.push(refused(format!("more than {CHAIN_MAX} formulas extend each other")));
            continue;
        }
        let parent = match lookup(name) {
            Ok(parent) => parent,
            Err(found) => {
                problems.extend(found.into_iter().map(|problem| FormulaProblem {
                    subject: if problem.subject.is_empty() {
                        format!("extends {}", shown(name))
                    } else {
                        problem.subject
                    },
                    ..problem
                }));
                continue;
            }
        };
        chain.push(name.clone());
        match inherit(&parent, lookup, chain) {
            Ok(parent) => inherited = merge(&inherited, &parent),
            Err(found) => problems.extend(found),
        }
        chain.pop();
    }
    if problems.is_empty() { Ok(merge(&inherited, formula)) } else { Err(problems) }
}

/// `upper` laid over `lower`.
fn merge(lower: &Formula, upper: &Formula) -> Formula {
    let mut merged = upper.clone();
    merged.extends = Vec::new();
    merged.variables = overlaid(&lower.variables, &upper.variables, |variable| &variable.name);
    merged.steps = overlaid(&lower.steps, &upper.steps, |step| &step.id);
    merged.template = overlaid(&lower.template, &upper.template, |step| &step.id);
    merged.carried = overlaid(&lower.carried, &upper.carried, |(key, _)| key);
    merged.compose.carried =
        overlaid(&lower.compose.carried, &upper.compose.carried, |(key, _)| key);
    merged.compose.expand =
        overlaid(&lower.compose.expand, &upper.compose.expand, |rule| &rule.target);
    prepend(&mut merged.compose.map, &lower.compose.map);
    prepend(&mut merged.compose.branch, &lower.compose.branch);
    prepend(&mut merged.compose.aspects, &lower.compose.aspects);
    prepend(&mut merged.compose.bond_points, &lower.compose.bond_points);
    prepend(&mut merged.compose.hooks, &lower.compose.hooks);
    prepend(&mut merged.compose.gate, &lower.compose.gate);
    prepend(&mut merged.advice, &lower.advice);
    prepend(&mut merged.pointcuts, &lower.pointcuts);
    if merged.description.is_empty() {
        merged.description.clone_from(&lower.description);
    }
    merged.phase = upper.phase.or(lower.phase);
    merged.pour = upper.pour.or(lower.pour);
    merged
}

fn overlaid<T: Clone>(lower: &[T], upper: &[T], name: impl Fn(&T) -> &str) -> Vec<T> {
    let mut inherited: HashMap<&str, usize> =
        lower.iter().enumerate().map(|(place, item)| (name(item), place)).collect();
    let mut merged = lower.to_vec();
    for item in upper {
        // Each is replaced once: the same name twice in one formula stays a mistake.
        match inherited.remove(name(item)) {
            Some(place) => merged[place] = item.clone(),
            None => merged.push(item.clone()),
        }
    }
    merged
}

fn prepend<T: Clone + PartialEq>(own: &mut Vec<T>, inherited: &[T]) {
    let inherited = inherited.iter().filter(|item| !own.contains(item)).cloned();
    let mut all: Vec<T> = inherited.collect();
    all.append(own);
    *own = all;
}
