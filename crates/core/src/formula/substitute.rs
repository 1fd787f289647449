//! Variables replaced by their values, and steps left out whose condition fails.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::rewrite::fill_json;
use super::template::{substitute, variables_in};
use super::validate::{mentioned, undeclared};
use super::{
    Formula, FormulaProblem, PlaceholderMode, SourceLocation, Step, VariableCondition,
    VariableValues,
};
use crate::limits;

/// Leaves out the steps whose condition is false. A step that needs one of them then needs its needs instead.
///
/// Where placeholders are kept, only conditions that no longer depend on a variable are decided.
pub(super) fn choose(
    steps: Vec<Step>,
    values: &VariableValues,
    mode: PlaceholderMode,
) -> Vec<Step> {
    let mut left_out = HashMap::new();
    let mut chosen = keep_included_steps(steps, values, mode, &mut left_out);
    if !left_out.is_empty() {
        bridge(&mut chosen, &left_out);
    }
    chosen
}

type LeftOutSteps = HashMap<String, Vec<String>>;

fn keep_included_steps(
    steps: Vec<Step>,
    values: &VariableValues,
    mode: PlaceholderMode,
    left_out: &mut LeftOutSteps,
) -> Vec<Step> {
    let mut kept = Vec::with_capacity(steps.len());
    for mut step in steps {
        let is_decided = |condition: &VariableCondition| {
            mode == PlaceholderMode::Runtime || condition.variable().is_none()
        };
        if let Some(condition) = step.condition.take_if(|condition| is_decided(condition))
            && !condition.holds(|name| values.get(name))
        {
            leave_out(&step, left_out);
            continue;
        }
        step.children = keep_included_steps(step.children, values, mode, left_out);
        kept.push(step);
    }
    kept
}

fn leave_out(step: &Step, left_out: &mut LeftOutSteps) {
    left_out.insert(step.id.clone(), step.needs.clone());
    step.children.iter().for_each(|child| leave_out(child, left_out));
}

fn bridge(steps: &mut [Step], left_out: &LeftOutSteps) {
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

/// The variables that the formula mentions, each with the first place where it does.
pub(super) type Mentions = BTreeMap<String, (SourceLocation, String)>;

/// Every variable that is mentioned once loops are unrolled and expansions are in place.
pub(super) fn mentions(formula: &Formula) -> Mentions {
    let mut mentions = Mentions::new();
    for name in variables_in(&formula.description) {
        let place = (formula.source.clone(), "description".to_owned());
        mentions.entry(name.to_owned()).or_insert(place);
    }
    collect(&formula.steps, &mut mentions);
    mentions
}

fn collect(steps: &[Step], mentions: &mut Mentions) {
    for step in steps {
        for name in mentioned(step) {
            mentions.entry(name).or_insert_with(|| (step.source.clone(), step.subject()));
        }
        collect(&step.children, mentions);
    }
}

/// The variables that are mentioned but not declared. Only an expansion can still bring one.
pub(super) fn undeclared_mentions(formula: &Formula, mentions: &Mentions) -> Vec<FormulaProblem> {
    let declared: HashSet<&str> =
        formula.variables.iter().map(|variable| variable.name.as_str()).collect();
    let unknown = mentions.iter().filter(|(name, _)| !declared.contains(name.as_str()));
    let problem = |(name, (source, subject)): (&String, &(SourceLocation, String))| {
        FormulaProblem::new(source, subject, undeclared(name, &formula.variables))
    };
    unknown.map(problem).collect()
}

/// Replaces every placeholder in the formula. A placeholder without a value is a problem.
pub(super) fn replace(
    formula: &mut Formula,
    values: &VariableValues,
    mentions: &Mentions,
) -> Vec<FormulaProblem> {
    let mut problems = Vec::new();
    for variable in &formula.variables {
        let needed = variable.required || mentions.contains_key(&variable.name);
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
        problems.push(FormulaProblem::new(&formula.source, "", message));
    }
    problems
}

fn fill_in(step: &mut Step, values: &VariableValues, bytes: &mut usize) {
    if *bytes > limits::FORMULA_BYTES_MAX {
        return;
    }
    step.map_texts(&mut |text| {
        let text = substitute(text, |name| values.get(name));
        *bytes += text.len();
        text
    });
    step.metadata = step.metadata.take().map(|metadata| {
        // Only a name in two braces is a variable here.
        let known: HashSet<&str> = variables_in(metadata.as_str()).collect();
        fill_json(&metadata, |name| {
            known.contains(name).then(|| values.get(name)).flatten().map(Into::into)
        })
    });
    step.children.iter_mut().for_each(|child| fill_in(child, values, bytes));
}
