//! Variables replaced by their values, and steps left out whose condition fails.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::template::{substitute, variables_in};
use super::transform::fill_json;
use super::validate::{mentioned, undeclared};
use super::{Condition, Formula, Mode, Problem, Step, Values};
use crate::limits;

/// Leaves out what is not to be done. Whoever needs a step that is left out needs what that one needed.
///
/// Where placeholders are kept, only conditions that no longer depend on a variable are settled.
pub(super) fn choose(steps: Vec<Step>, values: &Values, mode: Mode) -> Vec<Step> {
    let mut left_out = HashMap::new();
    let mut chosen = keep(steps, values, mode, &mut left_out);
    if !left_out.is_empty() {
        bridge(&mut chosen, &left_out);
    }
    chosen
}

type LeftOut = HashMap<String, Vec<String>>;

fn keep(steps: Vec<Step>, values: &Values, mode: Mode, left_out: &mut LeftOut) -> Vec<Step> {
    let mut kept = Vec::with_capacity(steps.len());
    for mut step in steps {
        let settled =
            |condition: &Condition| mode == Mode::Runtime || condition.variable().is_none();
        if let Some(condition) = step.condition.take_if(|condition| settled(condition))
            && !condition.holds(|name| values.get(name))
        {
            leave_out(&step, left_out);
            continue;
        }
        step.children = keep(step.children, values, mode, left_out);
        kept.push(step);
    }
    kept
}

fn leave_out(step: &Step, left_out: &mut LeftOut) {
    left_out.insert(step.id.clone(), step.needs.clone());
    step.children.iter().for_each(|child| leave_out(child, left_out));
}

fn bridge(steps: &mut [Step], left_out: &LeftOut) {
    for step in steps {
        let spawner = step.waits_for.as_ref().map(|wait| wait.spawner.as_ref());
        let spawner = spawner.and_then(|named| named.or_else(|| step.needs.first()));
        if spawner.is_some_and(|spawner| left_out.contains_key(spawner)) {
            // There is nothing to wait for.
            step.waits_for = None;
        }
        let (mut needs, mut seen) = (Vec::new(), HashSet::new());
        let mut open: Vec<&String> = step.needs.iter().rev().collect();
        while let Some(need) = open.pop() {
            if !seen.insert(need) {
                continue;
            }
            match left_out.get(need) {
                Some(further) => open.extend(further.iter().rev()),
                None => needs.push(need.clone()),
            }
        }
        step.needs = needs;
        bridge(&mut step.children, left_out);
    }
}

/// Replaces every placeholder in the formula. What has no value is a problem.
pub(super) fn replace(formula: &mut Formula, values: &Values) -> Vec<Problem> {
    let mut used = BTreeSet::new();
    let mut problems = Vec::new();
    used.extend(variables_in(&formula.description).map(str::to_owned));
    for step in &formula.steps {
        collect(step, formula, &mut used, &mut problems);
    }
    for variable in &formula.variables {
        let needed = variable.required || used.contains(&variable.name);
        if needed && values.get(&variable.name).is_none() {
            problems.push(variable.missing());
        }
    }
    formula.description = substitute(&formula.description, |name| values.get(name));
    let mut bytes = formula.description.len();
    for step in &mut formula.steps {
        fill_in(step, values, &mut bytes);
    }
    if bytes > limits::FORMULA_BYTES_MAX {
        let message = format!(
            "with these values it has more than {} MiB of text",
            limits::FORMULA_BYTES_MAX / (1024 * 1024)
        );
        problems.push(Problem::new(&formula.source, "", message));
    }
    problems
}

/// Expansions may bring variables that nobody has looked at yet.
fn collect(
    step: &Step,
    formula: &Formula,
    used: &mut BTreeSet<String>,
    problems: &mut Vec<Problem>,
) {
    for name in mentioned(step) {
        if !formula.variables.iter().any(|variable| variable.name == name) {
            let message = undeclared(&name, &formula.variables);
            problems.push(Problem::new(&step.source, step.subject(), message));
        }
        used.insert(name);
    }
    step.children.iter().for_each(|child| collect(child, formula, used, problems));
}

fn fill_in(step: &mut Step, values: &Values, bytes: &mut usize) {
    if *bytes > limits::FORMULA_BYTES_MAX {
        return;
    }
    step.map_texts(&mut |text| {
        let text = substitute(text, |name| values.get(name));
        *bytes += text.len();
        text
    });
    step.metadata = step.metadata.take().map(|metadata| {
        // Only what is written with two braces is a variable here.
        let known: HashSet<&str> = variables_in(metadata.as_str()).collect();
        fill_json(&metadata, |name| {
            known.contains(name).then(|| values.get(name)).flatten().map(Into::into)
        })
    });
    step.children.iter_mut().for_each(|child| fill_in(child, values, bytes));
}
