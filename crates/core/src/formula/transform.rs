//! Loops unrolled and expansions put in place.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::problem::shown;
use super::rewrite::{bind, fill_template, fits, ids_of, needs_of, rename};
use super::template::fill;
use super::{
    Compose, Formula, FormulaKind, FormulaLookup, FormulaProblem, Repetition, Step, VariableValues,
    WordSet, extend, range, validate,
};
use crate::limits;

/// The steps of a valid formula without loops and expansions.
pub(super) fn transform(
    formula: &Formula,
    values: &VariableValues,
    lookup: &FormulaLookup<'_>,
) -> Result<Vec<Step>, Vec<FormulaProblem>> {
    let mut transformer = Transformer {
        lookup,
        compose: &formula.compose,
        values,
        steps_left: limits::FORMULA_STEPS_MAX,
        bytes_left: limits::FORMULA_BYTES_MAX,
        edges_left: limits::FORMULA_EDGES_MAX,
        is_full: false,
        sinks: HashMap::new(),
        expanding: Vec::new(),
        problems: Vec::new(),
    };
    let mut steps = formula.steps.clone();
    fork_and_join(&mut steps, &formula.compose);
    let mut steps = transformer.all(steps);
    transformer.redirect(&mut steps);
    if transformer.problems.is_empty() { Ok(steps) } else { Err(transformer.problems) }
}

/// `compose.branch` is only another way to write `needs`.
fn fork_and_join(steps: &mut [Step], compose: &Compose) {
    for step in steps {
        for branch in &compose.branch {
            if branch.steps.contains(&step.id) {
                add_needs(step, std::slice::from_ref(&branch.from));
            }
            if branch.join == step.id {
                add_needs(step, &branch.steps);
            }
        }
        fork_and_join(&mut step.children, compose);
    }
}

fn add_needs(step: &mut Step, ids: &[String]) {
    for id in ids {
        if !step.needs.contains(id) {
            step.needs.push(id.clone());
        }
    }
}

struct Transformer<'a> {
    lookup: &'a FormulaLookup<'a>,
    compose: &'a Compose,
    values: &'a VariableValues,
    /// A loop in a loop in a loop could fill any memory.
    steps_left: usize,
    bytes_left: usize,
    edges_left: usize,
    /// There was no room for something, which has been told.
    is_full: bool,
    /// The last steps of each expansion, by the step it replaced: a step that needed that one needs them.
    sinks: HashMap<String, Vec<String>>,
    /// The expansions around the steps at hand.
    expanding: Vec<String>,
    problems: Vec<FormulaProblem>,
}

/// An expansion that takes the place of a step.
struct ExpansionCall {
    with: String,
    variables: Vec<(String, String)>,
}

impl Transformer<'_> {
    fn problem(&mut self, step: &Step, message: impl Into<String>) {
        self.problems.push(FormulaProblem::new(&step.source, step.subject(), message));
    }

    /// Whether there is room for another step; the first time there is none is a problem.
    fn charge(&mut self, step: &Step) -> bool {
        let bytes =
            step.title.len() + step.description.len() + step.notes.len() + step.acceptance.len();
        if self.is_full {
            return false;
        }
        if self.steps_left == 0 || self.bytes_left < bytes {
            self.is_full = true;
            let megabytes = limits::FORMULA_BYTES_MAX / (1024 * 1024);
            let message = format!(
                "with it the formula has more than {} steps or {megabytes} MiB of text; repeat less",
                limits::FORMULA_STEPS_MAX
            );
            self.problem(step, message);
            return false;
        }
        self.steps_left -= 1;
        self.bytes_left -= bytes;
        true
    }

    /// Whether the step may need so many more; the first time it may not is a problem.
    fn has_room_for_edges(&mut self, step: &Step, edges: usize) -> bool {
        if self.is_full {
            return false;
        }
        if self.edges_left < edges {
            self.is_full = true;
            let most = limits::FORMULA_EDGES_MAX;
            self.problem(step, format!("with it the steps need each other more than {most} times"));
            return false;
        }
        self.edges_left -= edges;
        true
    }

    fn all(&mut self, steps: Vec<Step>) -> Vec<Step> {
        let mut done = Vec::with_capacity(steps.len());
        for mut step in steps {
            if !self.charge(&step) {
                break;
            }
            if step.repeat.is_some() {
                done.append(&mut self.unroll(step));
            } else if let Some(call) = self.call(&step) {
                done.append(&mut self.expand(step, call));
            } else {
                step.children = self.all(step.children);
                done.push(step);
            }
        }
        done
    }

    /// The expansion that the step itself names, else the one that `compose` names for it. `compose` does not
    /// apply to the steps inside an expansion.
    fn call(&self, step: &Step) -> Option<ExpansionCall> {
        if let Some(with) = &step.expand {
            return Some(ExpansionCall {
                with: with.clone(),
                variables: step.expand_variables.clone(),
            });
        }
        if !self.expanding.is_empty() {
            return None;
        }
        let rule = self.compose.expand.iter().find(|rule| rule.target == step.id);
        let rule = rule.map(|rule| (&rule.with, &rule.variables));
        let rule = rule.or_else(|| {
            let map = self.compose.map.iter().find(|rule| fits(&rule.select, &step.id));
            map.map(|rule| (&rule.with, &rule.variables))
        });
        rule.map(|(with, variables)| ExpansionCall {
            with: with.clone(),
            variables: variables.clone(),
        })
    }

    /// Refuses a property of a step that an expansion replaces.
    fn refuse_on_replaced(&mut self, step: &Step, what: &str) {
        for (present, key) in [
            (!step.children.is_empty(), "children"),
            (step.gate.is_some(), "gate"),
            (step.waits_for.is_some(), "waits_for"),
            (step.on_complete.is_some(), "on_complete"),
        ] {
            if present {
                self.problem(
                    step,
                    format!(
                        "{key} is not supported on a step with {what}; put it on a step inside"
                    ),
                );
            }
        }
    }

    fn unroll(&mut self, mut step: Step) -> Vec<Step> {
        let Some(repeat) = step.repeat.take() else { return Vec::new() };
        self.refuse_on_replaced(&step, "a loop");
        if step.expand.is_some() {
            self.problem(
                &step,
                "expand is not supported on a step with a loop; put it in the body",
            );
        }
        let (from, to) = match self.numbers(&repeat.repetition) {
            Ok(numbers) => numbers,
            Err(message) => {
                self.problem(&step, message);
                return Vec::new();
            }
        };
        let mut names = HashSet::new();
        ids_of(&repeat.body, &mut names);
        let (mut all, mut before) = (Vec::new(), step.needs.clone());
        for (round, number) in (from..=to).enumerate() {
            if self.is_full {
                break;
            }
            let prefix = format!("{}.iter{}.", step.id, round + 1);
            let mut body = repeat.body.clone();
            for inside in &mut body {
                rename(inside, &names, &prefix);
                if let Some(variable) = &repeat.variable {
                    bind(inside, variable, &number.to_string());
                }
                self.copy_properties(&step, inside);
            }
            let mut body = self.all(body);
            before = self.join(&mut body, &before);
            all.append(&mut body);
        }
        self.sinks.insert(step.id, before);
        all
    }

    /// The first and the last number of a loop.
    fn numbers(&self, repetition: &Repetition) -> Result<(i64, i64), String> {
        let (from, to) = match repetition {
            Repetition::Count(count) => (1, *count),
            Repetition::Range(text) => {
                let text = fill(text, |name| self.values.get(name).map(Cow::Borrowed));
                range::parse(&text).map_err(|invalid| {
                    let hint = if text.contains('{') {
                        "; give the variables in it a value with --var"
                    } else {
                        ""
                    };
                    format!("{invalid}{hint}")
                })?
            }
            Repetition::Until { .. } => {
                return Err(
                    "a loop with until is not supported: whether it holds shows only while \
                            the work is done; use count or range"
                        .to_owned(),
                );
            }
        };
        let rounds = i128::from(to) - i128::from(from) + 1;
        if rounds > limits::FORMULA_STEPS_MAX as i128 {
            return Err(format!(
                "its loop goes round {rounds} times, which is more than {}",
                limits::FORMULA_STEPS_MAX
            ));
        }
        Ok((from, to))
    }

    /// Copies the properties of a replaced step to a step that takes its place.
    fn copy_properties(&mut self, from: &Step, to: &mut Step) {
        to.priority = to.priority.or(from.priority);
        if to.assignee.is_empty() {
            to.assignee.clone_from(&from.assignee);
        }
        for label in &from.labels {
            if !to.labels.contains(label) {
                to.labels.push(label.clone());
            }
        }
        match (&from.condition, &to.condition) {
            (Some(condition), None) => to.condition = Some(condition.clone()),
            (Some(outer), Some(inner)) if outer != inner => {
                self.problem(
                    to,
                    format!(
                        "it has a condition inside {}, which has another; only one is supported",
                        from.subject()
                    ),
                );
            }
            _ => {}
        }
    }

    fn expand(&mut self, step: Step, call: ExpansionCall) -> Vec<Step> {
        self.refuse_on_replaced(&step, "an expansion");
        if self.expanding.contains(&call.with) {
            let path = format!("{} → {}", self.expanding.join(" → "), call.with);
            self.problem(&step, format!("the expansions contain each other: {path}"));
            return Vec::new();
        }
        let Some(expansion) = self.expansion(&step, &call.with) else { return Vec::new() };
        let mut variables: HashMap<&str, &str> = HashMap::new();
        for variable in &expansion.variables {
            let given = call.variables.iter().find(|(name, _)| *name == variable.name);
            match given.map(|(_, value)| value).or(variable.default.as_ref()) {
                Some(value) => {
                    variables.insert(&variable.name, value);
                }
                None if variable.required => {
                    let name = &variable.name;
                    self.problem(&step, format!(
                        "the expansion {} requires {name}; add it to the variables of the expansion",
                        call.with
                    ));
                }
                None => {}
            }
        }
        let mut template = expansion.template.clone();
        for inside in &mut template {
            fill_template(inside, &step, &variables);
            self.copy_properties(&step, inside);
        }
        self.expanding.push(call.with);
        let mut template = self.all(template);
        self.expanding.pop();
        let last = self.join(&mut template, &step.needs);
        self.sinks.insert(step.id, last);
        template
    }

    fn expansion(&mut self, step: &Step, name: &str) -> Option<Formula> {
        let found = (self.lookup)(name).and_then(|found| extend::resolve(&found, self.lookup));
        let found = found.and_then(|found| match validate(&found) {
            problems if problems.is_empty() => Ok(found),
            problems => Err(problems),
        });
        match found {
            Ok(found) if found.kind == FormulaKind::Expansion => Some(found),
            Ok(found) => {
                self.problem(step, format!(
                    "it expands to {}, which is of type {}; only an expansion can take the place of \
                     a step",
                    shown(name),
                    found.kind.as_str()
                ));
                None
            }
            Err(problems) => {
                self.problem(step, format!("the expansion {} cannot be used", shown(name)));
                self.problems.extend(problems);
                None
            }
        }
    }

    /// Lets the first steps of a group wait for `before`; gives the last ones.
    fn join(&mut self, group: &mut [Step], before: &[String]) -> Vec<String> {
        self.redirect(group);
        let mut owner = HashMap::new();
        for (number, step) in group.iter().enumerate() {
            let mut ids = HashSet::new();
            ids_of(std::slice::from_ref(step), &mut ids);
            owner.extend(ids.into_iter().map(|id| (id, number)));
        }
        let mut needed = vec![false; group.len()];
        for (number, step) in group.iter_mut().enumerate() {
            let mut needs = Vec::new();
            needs_of(step, &mut needs);
            let inside: Vec<usize> = needs
                .iter()
                .filter_map(|need| owner.get(need).copied())
                .filter(|target| *target != number)
                .collect();
            if inside.is_empty() && self.has_room_for_edges(step, before.len()) {
                add_needs(step, before);
            }
            for target in inside {
                needed[target] = true;
            }
        }
        let last = group.iter().zip(needed).filter(|(_, needed)| !needed);
        last.map(|(step, _)| step.id.clone()).collect()
    }

    /// A step that needs a replaced step now needs the last of the steps that took its place.
    fn redirect(&mut self, steps: &mut [Step]) {
        for step in steps {
            let spawner = step.waits_for.as_ref().map(|wait| wait.spawner.as_ref());
            let spawner = spawner.and_then(|named| named.or_else(|| step.needs.first()));
            if spawner.is_some_and(|spawner| self.sinks.contains_key(spawner)) {
                self.problem(
                    step,
                    "waits_for means a step that others take the place of; that is \
                                    not supported: name one of those",
                );
                step.waits_for = None;
            }
            if step.needs.iter().any(|need| self.sinks.contains_key(need)) {
                for need in std::mem::take(&mut step.needs) {
                    let ids = self.sinks.get(&need).cloned().unwrap_or_else(|| vec![need]);
                    if self.has_room_for_edges(step, ids.len()) {
                        add_needs(step, &ids);
                    }
                }
            }
            self.redirect(&mut step.children);
        }
    }
}
