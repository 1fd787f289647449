//! Everything that is wrong with a formula as it is written.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::problem::{listed, shown};
use super::template::{is_variable_name, variables_in};
use super::{Formula, FormulaKind, FormulaProblem, Repetition, Step, Variable};
use crate::decide::cycles;
use crate::limits;

/// Every problem of a formula whose `extends` are resolved; none means that it can be used.
pub fn validate(formula: &Formula) -> Vec<FormulaProblem> {
    let mut problems = Vec::new();
    let whole = |message: String| FormulaProblem::new(&formula.source, "", message);
    if formula.name.trim().is_empty() {
        problems.push(whole("it has no name; add formula = \"…\"".to_owned()));
    } else if !is_word(&formula.name) {
        problems.push(whole(format!(
            "{} is not a name for a formula; use letters, digits, - _ and .",
            shown(&formula.name)
        )));
    }
    if formula.version < 1 {
        problems.push(whole(format!("version is {}; versions begin with 1", formula.version)));
    }
    match formula.kind {
        FormulaKind::Workflow if formula.steps.is_empty() => {
            problems.push(whole("it has no step; add [[steps]] with id and title".to_owned()));
        }
        FormulaKind::Expansion if formula.template.is_empty() => problems.push(whole(
            "it is an expansion without template; add [[template]] with id and title".to_owned(),
        )),
        _ => {}
    }
    validate_variables(formula, &mut problems);
    let mut graph = StepGraph::new(formula);
    graph.scope(formula.own_steps());
    problems.append(&mut graph.problems);
    problems.extend(graph.cycles());
    problems.extend(compose_problems(formula, &graph));
    problems
}

/// Whether this can be a part of an id.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= limits::ID_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`,<>\\{}()".contains(&byte))
}

fn validate_variables(formula: &Formula, problems: &mut Vec<FormulaProblem>) {
    for variable in &formula.variables {
        let mut found = |message: String| {
            problems.push(FormulaProblem::new(&variable.source, variable.subject(), message));
        };
        if !is_variable_name(&variable.name) {
            found("is not a name; use letters, digits and _".to_owned());
        }
        if variable.required && variable.default.is_some() {
            found("is required and has a default; keep one of the two".to_owned());
        }
        if let Some(pattern) = &variable.pattern
            && let Err(error) = regex_lite::Regex::new(pattern)
        {
            found(format!("the pattern {} is no regular expression: {error}", shown(pattern)));
        }
        if let Some(default) = variable.default.as_deref().filter(|default| !default.is_empty())
            && let Err(message) = variable.check(default)
        {
            found(format!("its default {message}"));
        }
    }
}

/// The steps of a formula, those inside others and inside loops included, and the edges between them.
struct StepGraph<'a> {
    formula: &'a Formula,
    steps: Vec<&'a Step>,
    /// `edges[n]`: the steps that must be over before step `n` is.
    edges: Vec<Vec<usize>>,
    /// The step of each name, the innermost scope last. A loop's body is a scope of its own.
    scopes: Vec<HashMap<&'a str, usize>>,
    declared: HashSet<&'a str>,
    /// The variables of the loops around.
    loop_variables: Vec<&'a str>,
    problems: Vec<FormulaProblem>,
}

impl<'a> StepGraph<'a> {
    fn new(formula: &'a Formula) -> Self {
        Self {
            formula,
            steps: Vec::new(),
            edges: Vec::new(),
            scopes: Vec::new(),
            declared: formula.variables.iter().map(|variable| variable.name.as_str()).collect(),
            loop_variables: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.scopes.iter().rev().find_map(|scope| scope.get(id).copied())
    }

    fn problem(&mut self, step: &Step, message: String) {
        self.problems.push(FormulaProblem::new(&step.source, step.subject(), message));
    }

    /// Takes in steps that see each other; a step that they need may also be further out. Gives their numbers.
    fn scope(&mut self, steps: &'a [Step]) -> Vec<usize> {
        self.scopes.push(HashMap::new());
        let first = self.steps.len();
        let top = self.register(steps);
        for number in first..self.steps.len() {
            self.check_step(number);
        }
        // The outermost scope stays, for later lookups.
        if self.scopes.len() > 1 {
            self.scopes.pop();
        }
        top
    }

    fn register(&mut self, steps: &'a [Step]) -> Vec<usize> {
        let mut numbers = Vec::new();
        for step in steps {
            let number = self.steps.len();
            self.steps.push(step);
            self.edges.push(Vec::new());
            numbers.push(number);
            if step.id.is_empty() {
                self.problem(step, "it has no id; add id = \"…\"".to_owned());
            } else if let Some(first) = self.find(&step.id) {
                let place = match self.steps[first].source.line {
                    Some(line) => format!(" on line {line}"),
                    None => String::new(),
                };
                self.problem(step, format!("the id is taken by another step{place}; rename one"));
            } else if let Some(scope) = self.scopes.last_mut() {
                scope.insert(&step.id, number);
            }
            let children = self.register(&step.children);
            self.edges[number].extend(children);
        }
        numbers
    }

    fn check_step(&mut self, number: usize) {
        let step = self.steps[number];
        let in_template = self.formula.kind == FormulaKind::Expansion;
        let plain = step.id.replace("{target}", "target").replace("{target.id}", "target");
        if !step.id.is_empty() && !is_word(if in_template { &plain } else { &step.id }) {
            self.problem(
                step,
                "the id becomes a part of bead ids; use letters, digits, - _ and .".to_owned(),
            );
        }
        if step.title.trim().is_empty() && step.expand.is_none() && step.repeat.is_none() {
            self.problem(step, "it has no title; add title = \"…\"".to_owned());
        }
        for need in &step.needs {
            match self.find(need) {
                Some(target) => self.edges[number].push(target),
                None => self.unknown_step(step, "needs", need),
            }
        }
        self.check_wait(number);
        if let Some(then) = &step.on_complete {
            let message = match (then.for_each.as_str(), then.bond.as_str()) {
                ("", _) => Some("on_complete has no for_each; add for_each = \"output.…\""),
                (_, "") => Some("on_complete has no bond; name the formula with bond = \"…\""),
                (path, _) if !path.starts_with("output.") => {
                    Some("on_complete: for_each must begin with output.")
                }
                _ if then.parallel && then.sequential => {
                    Some("on_complete is parallel and sequential; keep one of the two")
                }
                _ => None,
            };
            if let Some(message) = message {
                self.problem(step, message.to_owned());
            }
        }
        if step.gate.as_ref().is_some_and(|gate| gate.kind.trim().is_empty()) {
            self.problem(step, "its gate has no type; add type = \"human\" or another".to_owned());
        }
        self.check_variables(step);
        self.check_loop(number);
    }

    fn unknown_step(&mut self, step: &Step, key: &str, name: &str) {
        let visible = |(number, other): &(usize, &&Step)| self.find(&other.id) == Some(*number);
        let known =
            self.steps.iter().enumerate().filter(visible).map(|(_, other)| other.id.as_str());
        let message =
            format!("{key} {}, which is not a step; steps: {}", shown(name), listed(known));
        self.problem(step, message);
    }

    fn check_wait(&mut self, number: usize) {
        let step = self.steps[number];
        let Some(wait) = &step.waits_for else { return };
        match wait.spawner.as_ref().or_else(|| step.needs.first()) {
            None => self.problem(
                step,
                "waits_for does not say whose children; name the step with needs, or write \
                 children-of(step)"
                    .to_owned(),
            ),
            Some(spawner) => match self.find(spawner) {
                Some(target) => self.edges[number].push(target),
                // A wrong name in `needs` is reported already.
                None if wait.spawner.is_none() => {}
                None => self.unknown_step(step, "waits_for names", spawner),
            },
        }
    }

    fn check_loop(&mut self, number: usize) {
        let step = self.steps[number];
        let Some(repeat) = step.repeat.as_deref() else { return };
        match &repeat.repetition {
            Repetition::Count(count) if *count < 1 => {
                self.problem(step, format!("its loop has a count of {count}; use 1 or more"));
            }
            Repetition::Until { max: None, .. } => {
                self.problem(step, "its loop has until but no max; add max = …".to_owned());
            }
            _ => {}
        }
        if repeat.body.is_empty() {
            self.problem(step, "its loop has no body; add the steps to repeat".to_owned());
        }
        if let Some(variable) = &repeat.variable
            && !is_variable_name(variable)
        {
            let message = format!("its loop counts in {}, which is no name", shown(variable));
            self.problem(step, message);
        }
        self.loop_variables.extend(repeat.variable.as_deref());
        let body = self.scope(&repeat.body);
        self.edges[number].extend(body);
        if repeat.variable.is_some() {
            self.loop_variables.pop();
        }
    }

    /// The templates of an expansion may also mention the variables of the formula that uses it.
    fn check_variables(&mut self, step: &Step) {
        if self.formula.kind == FormulaKind::Expansion {
            return;
        }
        for name in mentioned(step) {
            if !self.declared.contains(name.as_str())
                && !self.loop_variables.contains(&name.as_str())
            {
                let message = undeclared(&name, &self.formula.variables);
                self.problem(step, message);
            }
        }
    }

    fn cycles(&self) -> Vec<FormulaProblem> {
        let path = |cycle: Vec<usize>| {
            let first = self.steps[cycle[0]];
            let ids: Vec<&str> =
                cycle.iter().chain(cycle.first()).map(|n| self.steps[*n].id.as_str()).collect();
            let message = format!("the steps wait for each other: {}", ids.join(" → "));
            FormulaProblem::new(&first.source, first.subject(), message)
        };
        cycles(&self.edges).into_iter().map(path).collect()
    }
}

/// The variables a step mentions, each once. Steps inside it are not looked at.
pub(super) fn mentioned(step: &Step) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    step.clone().map_texts(&mut |text| {
        names.extend(variables_in(text).map(str::to_owned));
        String::new()
    });
    let metadata = step.metadata.iter().flat_map(|metadata| variables_in(metadata.as_str()));
    let condition = step.condition.as_ref().and_then(super::VariableCondition::variable);
    names.extend(metadata.chain(condition).map(str::to_owned));
    names
}

/// Why a mentioned variable is none.
pub(super) fn undeclared(name: &str, variables: &[Variable]) -> String {
    let known = listed(variables.iter().map(|variable| variable.name.as_str()));
    format!(
        "it mentions {{{{{name}}}}}, which is not declared; add [vars.{name}], or write one of: \
         {known}"
    )
}

fn compose_problems(formula: &Formula, graph: &StepGraph<'_>) -> Vec<FormulaProblem> {
    let mut problems = Vec::new();
    for name in variables_in(&formula.description).collect::<BTreeSet<_>>() {
        if formula.kind != FormulaKind::Expansion
            && !formula.variables.iter().any(|variable| variable.name == name)
        {
            let message = undeclared(name, &formula.variables);
            problems.push(FormulaProblem::new(&formula.source, "description", message));
        }
    }
    let compose = &formula.compose;
    for rule in &compose.expand {
        if graph.find(&rule.target).is_none() {
            let message = format!("its target {} is not a step", shown(&rule.target));
            problems.push(FormulaProblem::new(&rule.source, "compose.expand", message));
        }
    }
    for branch in &compose.branch {
        let unknown = std::iter::once(&branch.from).chain(&branch.steps).chain([&branch.join]);
        for name in unknown.filter(|name| graph.find(name).is_none()) {
            let message = format!("it names {}, which is not a step", shown(name));
            problems.push(FormulaProblem::new(&branch.source, "compose.branch", message));
        }
    }
    problems
}
