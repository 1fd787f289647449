//! The contents of a formula file.

use super::{SourceLocation, VariableCondition};
use crate::bead::{Carried, Gate};
use crate::{Invalid, Json, Priority};

/// A recipe of steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Formula {
    /// Its name; the key `formula`.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The version of the recipe, from 1.
    pub version: i64,
    /// The way it is used.
    pub kind: FormulaKind,
    /// The formulas it builds upon.
    pub extends: Vec<String>,
    /// The variables, in the order of the file.
    pub variables: Vec<Variable>,
    /// The steps of the work.
    pub steps: Vec<Step>,
    /// The steps that an expansion puts in the place of another.
    pub template: Vec<Step>,
    /// How it is put together with other formulas.
    pub compose: Compose,
    /// Steps to be put around those of other formulas. Accepted and shown, not applied.
    pub advice: Vec<Json>,
    /// The steps that an aspect is about. Accepted and shown, not applied.
    pub pointcuts: Vec<Json>,
    /// How lasting its steps should be.
    pub phase: Option<Phase>,
    /// Whether every step should become a bead of its own.
    pub pour: Option<bool>,
    /// Keys that mean nothing to us.
    pub carried: Carried,
    /// Its place in the file.
    pub source: SourceLocation,
}

/// The way a formula is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FormulaKind {
    /// Steps to be worked through.
    #[default]
    Workflow,
    /// Steps that take the place of a step elsewhere.
    Expansion,
    /// Steps to be put around steps elsewhere.
    Aspect,
    /// Work for several workers at once.
    Convoy,
}

/// How lasting the steps of a formula should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Kept.
    Liquid,
    /// Gone when it is over.
    Vapor,
}

/// A closed set of words, each with a meaning.
pub trait WordSet: Copy + PartialEq + 'static {
    /// The noun for these words in messages.
    const WHAT: &str;
    /// Every word; the first one for a meaning is how it is written.
    const NAMES: &[(&str, Self)];

    /// The meaning of a word.
    fn parse(text: &str) -> Result<Self, Invalid> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
            Invalid(format!(
                "{} is not a {}; known: {}",
                super::problem::shown(text),
                Self::WHAT,
                known.join(", ")
            ))
        })
    }

    /// The word for it.
    fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(_, meaning)| *meaning == self).map_or("", |(name, _)| name)
    }
}

impl WordSet for FormulaKind {
    const WHAT: &str = "type of formula";
    const NAMES: &[(&str, Self)] = &[
        ("workflow", Self::Workflow),
        ("expansion", Self::Expansion),
        ("aspect", Self::Aspect),
        ("convoy", Self::Convoy),
    ];
}

impl WordSet for Phase {
    const WHAT: &str = "phase";
    const NAMES: &[(&str, Self)] = &[("liquid", Self::Liquid), ("vapor", Self::Vapor)];
}

/// Something that can be filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variable {
    /// The name that stands between the braces.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// Its value when none is given.
    pub default: Option<String>,
    /// Whether a value must be given.
    pub required: bool,
    /// The only values there are, if any are named; the key `enum`.
    pub allowed: Vec<String>,
    /// A regular expression that the value must match.
    pub pattern: Option<String>,
    /// The form of the value; the key `type`.
    pub kind: Option<VariableKind>,
    /// Keys that mean nothing to us.
    pub carried: Carried,
    /// Its place in the file.
    pub source: SourceLocation,
}

/// The form of the value of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
}

impl WordSet for VariableKind {
    const WHAT: &str = "type of variable";
    const NAMES: &[(&str, Self)] = &[
        ("string", Self::Text),
        ("int", Self::Integer),
        ("bool", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Integer),
        ("boolean", Self::Boolean),
    ];
}

/// One thing to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// Its name within the formula.
    pub id: String,
    /// One line.
    pub title: String,
    /// The task, in full.
    pub description: String,
    /// Remarks.
    pub notes: String,
    /// The criteria by which the work is accepted.
    pub acceptance: String,
    /// The type of bead it becomes; the key `type`.
    pub issue_type: Option<String>,
    /// The priority.
    pub priority: Option<Priority>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Anything, as JSON.
    pub metadata: Option<Json>,
    /// The steps that must be done first; `needs` and `depends_on` together.
    pub needs: Vec<String>,
    /// A step whose children must be done first.
    pub waits_for: Option<WaitsFor>,
    /// The assignee; empty if there is none.
    pub assignee: String,
    /// The expansion that takes its place.
    pub expand: Option<String>,
    /// The values of the variables of that expansion.
    pub expand_variables: Vec<(String, String)>,
    /// The condition under which it is done at all.
    pub condition: Option<VariableCondition>,
    /// Its parts.
    pub children: Vec<Self>,
    /// Something outside that must happen first.
    pub gate: Option<StepGate>,
    /// Steps that are done several times in its place; the key `loop`.
    pub repeat: Option<Box<Loop>>,
    /// The formulas that follow when it is done.
    pub on_complete: Option<OnComplete>,
    /// Keys that mean nothing to us.
    pub carried: Carried,
    /// Its place in the file.
    pub source: SourceLocation,
}

/// A step whose children must be done first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitsFor {
    /// The step; the first of `needs` when none is named.
    pub spawner: Option<String>,
    /// How many of the children must be done.
    pub gate: Gate,
}

impl WaitsFor {
    /// Reads `all-children`, `any-children` or `children-of(step)`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let named = text.strip_prefix("children-of(").and_then(|rest| rest.strip_suffix(')'));
        match (text, named) {
            ("all-children", _) => Ok(Self { spawner: None, gate: Gate::AllChildren }),
            ("any-children", _) => Ok(Self { spawner: None, gate: Gate::AnyChildren }),
            (_, Some(step)) if !step.trim().is_empty() => {
                Ok(Self { spawner: Some(step.trim().to_owned()), gate: Gate::AllChildren })
            }
            _ => Err(Invalid(format!(
                "waits_for is {}; write all-children, any-children or children-of(step)",
                super::problem::shown(text)
            ))),
        }
    }

    /// As it is written.
    pub fn text(&self) -> String {
        match &self.spawner {
            Some(step) => format!("children-of({step})"),
            None => gate_name(self.gate).to_owned(),
        }
    }
}

/// How a gate is called in labels and in the metadata of an edge.
pub(super) fn gate_name(gate: Gate) -> &'static str {
    match gate {
        Gate::AllChildren => "all-children",
        Gate::AnyChildren => "any-children",
    }
}

/// Something outside that must happen before a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepGate {
    /// The type of the gate: `human`, `timer`, `gh:pr`, …
    pub kind: String,
    /// Which one; `id` or `await_id`.
    pub id: String,
    /// How long to wait for it.
    pub timeout: String,
    /// Keys that mean nothing to us.
    pub carried: Carried,
}

/// Steps that are done several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The repetition.
    pub repetition: Repetition,
    /// The variable that counts.
    pub variable: Option<String>,
    /// The steps.
    pub body: Vec<Step>,
    /// Keys that mean nothing to us.
    pub carried: Carried,
}

/// The repetition of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repetition {
    /// So often.
    Count(i64),
    /// Once for each number of `from..to`, where both may be computed.
    Range(String),
    /// Until something holds, which only shows while the work is done.
    Until {
        /// The condition that must hold.
        condition: String,
        /// The maximal number of rounds.
        max: Option<i64>,
    },
}

/// A formula that follows when a step is done, once for each thing that the step found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnComplete {
    /// Where in the step's output the things are: `output.…`.
    pub for_each: String,
    /// The formula.
    pub bond: String,
    /// The values of its variables; `{item…}` and `{index}` are known when the step is done.
    pub variables: Vec<(String, String)>,
    /// Whether all of them go at once, where the file says so.
    pub parallel: bool,
    /// Whether one goes after the other.
    pub sequential: bool,
    /// Keys that mean nothing to us.
    pub carried: Carried,
}

/// How a formula is put together with others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compose {
    /// Expansions that take the place of a step.
    pub expand: Vec<Expansion>,
    /// Expansions that take the place of every step whose id fits.
    pub map: Vec<MapRule>,
    /// Steps that fork and join.
    pub branch: Vec<Branch>,
    /// Aspects to be woven in. Accepted and shown, not applied.
    pub aspects: Vec<String>,
    /// Places where other formulas may be attached by hand.
    pub bond_points: Vec<Json>,
    /// Formulas to be attached by themselves. Accepted and shown, not applied.
    pub hooks: Vec<Json>,
    /// Conditions to be met while the work is done. Accepted and shown, not applied.
    pub gate: Vec<Json>,
    /// Keys that mean nothing to us.
    pub carried: Carried,
}

/// An expansion that takes the place of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expansion {
    /// The step.
    pub target: String,
    /// The expansion.
    pub with: String,
    /// The values of its variables.
    pub variables: Vec<(String, String)>,
    /// Its place in the file.
    pub source: SourceLocation,
}

/// An expansion that takes the place of every step whose id fits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MapRule {
    /// The pattern of the id; `*` stands for anything.
    pub select: String,
    /// The expansion.
    pub with: String,
    /// The values of its variables.
    pub variables: Vec<(String, String)>,
    /// Its place in the file.
    pub source: SourceLocation,
}

/// Steps that begin after one step and end before another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Branch {
    /// The step before.
    pub from: String,
    /// The steps between.
    pub steps: Vec<String>,
    /// The step after.
    pub join: String,
    /// Its place in the file.
    pub source: SourceLocation,
}

impl Formula {
    /// Its steps, for every kind of formula.
    pub fn own_steps(&self) -> &[Step] {
        if self.kind == FormulaKind::Expansion { &self.template } else { &self.steps }
    }

    /// How many steps it has, those inside others included.
    pub fn step_count(&self) -> usize {
        self.own_steps().iter().map(Step::count).sum()
    }
}

impl Step {
    /// This step and everything in it.
    pub fn count(&self) -> usize {
        let body = self.repeat.iter().flat_map(|repeat| &repeat.body);
        1 + self.children.iter().chain(body).map(Self::count).sum::<usize>()
    }

    /// Its name in messages.
    pub(super) fn subject(&self) -> String {
        if self.id.is_empty() {
            format!("step {}", super::problem::shown(&self.title))
        } else {
            format!("step {}", super::problem::shown(&self.id))
        }
    }

    /// Calls `visit` with every text in which variables may stand, and replaces the text with the result. Steps
    /// inside are not visited.
    pub(super) fn map_texts(&mut self, visit: &mut dyn FnMut(&str) -> String) {
        let texts = [
            &mut self.title,
            &mut self.description,
            &mut self.notes,
            &mut self.acceptance,
            &mut self.assignee,
        ];
        for text in texts.into_iter().chain(&mut self.labels) {
            *text = visit(text);
        }
        for (_, value) in &mut self.expand_variables {
            *value = visit(value);
        }
        if let Some(gate) = &mut self.gate {
            gate.id = visit(&gate.id);
            gate.timeout = visit(&gate.timeout);
        }
        for (_, value) in self.on_complete.iter_mut().flat_map(|then| &mut then.variables) {
            *value = visit(value);
        }
        if let Some(Loop { repetition: Repetition::Range(range), .. }) = self.repeat.as_deref_mut()
        {
            *range = visit(range);
        }
    }
}
