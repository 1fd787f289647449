//! The graph of work that a formula becomes.

use std::collections::{HashMap, HashSet};

use super::model::gate_name;
use super::problem::shown;
use super::validate::is_word;
use super::{Formula, FormulaProblem, OnComplete, Phase, Step, StepGate, VariableCondition};
use crate::bead::{Gate, check_label};
use crate::decide::{cycles, waves};
use crate::{DependencyType, Invalid, IssueType, Json, Priority, Title, limits};

/// A cooked formula: a root, and steps that refer to their parents and needs by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cooked {
    /// The formula it was made of, with everything inherited, unrolled and filled in.
    pub formula: Formula,
    /// The molecule that holds the steps.
    pub root: CookedRoot,
    /// The steps; gates stand before the step they hold up, parts after the step they belong to.
    pub steps: Vec<CookedStep>,
    /// The parts that are odd but do no harm.
    pub warnings: Vec<String>,
}

/// The molecule that holds the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookedRoot {
    /// Its name, which the ids of the steps begin with.
    pub id: String,
    /// One line.
    pub title: Title,
    /// Its purpose.
    pub description: String,
    /// How lasting it should be.
    pub phase: Option<Phase>,
    /// Whether every step should become a bead of its own.
    pub pour: bool,
}

/// A step that is to become a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookedStep {
    /// `root.step`, or `root.step.part`.
    pub id: String,
    /// The id in the formula.
    pub step: String,
    /// One line.
    pub title: Title,
    /// The task, in full.
    pub description: String,
    /// Remarks.
    pub notes: String,
    /// The criteria by which the work is accepted.
    pub acceptance: String,
    /// The type of bead.
    pub issue_type: IssueType,
    /// How urgent it is, where the formula says so.
    pub priority: Option<Priority>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Anything, as JSON.
    pub metadata: Option<Json>,
    /// The assignee; empty if there is none.
    pub assignee: String,
    /// The step it is a part of; none for a part of the root.
    pub parent: Option<usize>,
    /// The steps that must be done first.
    pub needs: Vec<usize>,
    /// The step whose children must be done first; never also one of `needs`.
    pub wait: Option<Wait>,
    /// Its purpose in the graph.
    pub role: Role,
}

/// A step whose children must be done first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The step.
    pub spawner: usize,
    /// How many of the children must be done.
    pub gate: Gate,
}

/// The purpose of a cooked step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// To be done.
    Work {
        /// When it is to be done at all; only where placeholders were kept.
        condition: Option<VariableCondition>,
        /// The formulas that follow when it is done.
        on_complete: Option<OnComplete>,
    },
    /// To hold up another step until something happens outside.
    Gate(StepGate),
}

/// One edge of a cooked formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The step that depends.
    pub step: usize,
    /// The step it depends on; none is the root.
    pub target: Option<usize>,
    /// The type of the dependency.
    pub kind: DependencyType,
    /// Text that holds JSON; empty for none.
    pub metadata: String,
}

impl Cooked {
    /// Every edge, at most one for a pair.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (step, cooked) in self.steps.iter().enumerate() {
            let plain = |target, kind| Edge { step, target, kind, metadata: String::new() };
            edges.push(plain(cooked.parent, DependencyType::ParentChild));
            for need in &cooked.needs {
                edges.push(plain(Some(*need), DependencyType::Blocks));
            }
            if let Some(wait) = &cooked.wait {
                let gate = Json::string(gate_name(wait.gate));
                let metadata = Json::object(&[("gate".to_owned(), gate)]).as_str().to_owned();
                let kind = DependencyType::WaitsFor;
                edges.push(Edge { step, target: Some(wait.spawner), kind, metadata });
            }
        }
        edges
    }

    /// The steps in the order in which they can be done: the steps of one wave can be done at once.
    pub fn waves(&self) -> Vec<Vec<usize>> {
        waves(&self.blockers())
    }

    fn blockers(&self) -> Vec<Vec<usize>> {
        let blockers = |step: &CookedStep| {
            let spawner = step.wait.as_ref().map(|wait| wait.spawner);
            step.needs.iter().copied().chain(spawner).collect()
        };
        self.steps.iter().map(blockers).collect()
    }
}

/// Makes the graph of a formula without loops, expansions and failed conditions.
pub(super) fn plan(formula: Formula, root: String) -> Result<Cooked, Vec<FormulaProblem>> {
    let mut planner = Planner::default();
    let whole = |message: String| FormulaProblem::new(&formula.source, "", message);
    let title = Title::parse(&formula.name).map_err(|Invalid(message)| vec![whole(message)])?;
    planner.place(&formula.steps, &root, None);
    planner.connect();
    if planner.steps.is_empty() {
        planner
            .problems
            .push(whole("no step is left to be done; every condition fails".to_owned()));
    }
    let root = CookedRoot {
        id: root,
        title,
        description: formula.description.clone(),
        phase: formula.phase,
        pour: formula.pour.unwrap_or(false),
    };
    let Planner { steps, mut problems, .. } = planner;
    let cooked = Cooked { formula, root, steps, warnings: Vec::new() };
    for cycle in cycles(&cooked.blockers()) {
        let path = cycle.iter().chain(cycle.first()).map(|step| cooked.steps[*step].step.as_str());
        let path = path.collect::<Vec<_>>().join(" → ");
        let message = format!("the steps wait for each other: {path}");
        problems.push(FormulaProblem::new(&cooked.formula.source, "", message));
    }
    if problems.is_empty() { Ok(cooked) } else { Err(problems) }
}

#[derive(Default)]
struct Planner<'a> {
    steps: Vec<CookedStep>,
    /// Which number a step of the formula has.
    numbers: HashMap<&'a str, usize>,
    /// The steps of the formula behind the cooked ones; none for gates.
    origins: Vec<Option<&'a Step>>,
    ids: HashSet<String>,
    problems: Vec<FormulaProblem>,
}

impl<'a> Planner<'a> {
    fn problem(&mut self, step: &Step, message: impl Into<String>) {
        self.problems.push(FormulaProblem::new(&step.source, step.subject(), message));
    }

    fn place(&mut self, steps: &'a [Step], above: &str, parent: Option<usize>) {
        for step in steps {
            if let Some(gate) = &step.gate {
                self.push(gate_step(step, gate, above, parent), None, step);
            }
            let id = format!("{above}.{}", step.id);
            let cooked = self.cooked(step, id.clone(), parent);
            let number = self.push(cooked, Some(step), step);
            // Steps in different places can have different ids in the end and still be one name.
            if let Some(other) = self.numbers.insert(&step.id, number)
                && self.steps[other].id != id
            {
                self.problem(step, "another step has the same id; rename one");
            }
            self.place(&step.children, &id, Some(number));
        }
    }

    fn push(&mut self, cooked: CookedStep, origin: Option<&'a Step>, step: &Step) -> usize {
        let number = self.steps.len();
        if !is_word(&cooked.id) {
            let message = format!("its id would be {}, which is none", shown(&cooked.id));
            self.problem(step, message);
        }
        if !self.ids.insert(cooked.id.clone()) {
            let message =
                format!("its id would be {}, which is taken; rename it", shown(&cooked.id));
            self.problem(step, message);
        }
        self.steps.push(cooked);
        self.origins.push(origin);
        number
    }

    fn cooked(&mut self, step: &Step, id: String, parent: Option<usize>) -> CookedStep {
        let title = Title::parse(&step.title).unwrap_or_else(|Invalid(message)| {
            self.problem(step, message);
            Title::trusted(step.title.clone())
        });
        let usual = if step.children.is_empty() { "task" } else { "epic" };
        let issue_type = step.issue_type.as_deref().unwrap_or(usual);
        let issue_type = IssueType::parse(issue_type).unwrap_or_else(|Invalid(message)| {
            self.problem(step, message);
            IssueType::default()
        });
        let mut labels = step.labels.clone();
        if let Some(wait) = &step.waits_for {
            labels.push(format!("gate:{}", gate_name(wait.gate)));
        }
        let assignee = (!step.assignee.is_empty()).then_some(("assignee", &step.assignee));
        for (what, text) in labels.iter().map(|label| ("label", label)).chain(assignee) {
            if let Err(Invalid(message)) = check_label(what, text) {
                self.problem(step, message);
            }
        }
        CookedStep {
            id,
            step: step.id.clone(),
            title,
            description: step.description.clone(),
            notes: step.notes.clone(),
            acceptance: step.acceptance.clone(),
            issue_type,
            priority: step.priority,
            labels,
            metadata: step.metadata.clone(),
            assignee: step.assignee.clone(),
            parent,
            needs: Vec::new(),
            wait: None,
            role: Role::Work {
                condition: step.condition.clone(),
                on_complete: step.on_complete.clone(),
            },
        }
    }

    fn connect(&mut self) {
        for number in 0..self.steps.len() {
            let Some(step) = self.origins[number] else { continue };
            let (mut needs, mut wait) = (Vec::new(), None);
            // Its gate stands right before it.
            if step.gate.is_some() {
                needs.push(number - 1);
            }
            for need in &step.needs {
                match self.numbers.get(need.as_str()) {
                    Some(target) if !needs.contains(target) => needs.push(*target),
                    Some(_) => {}
                    None => self.problem(step, format!("needs {}, which is no step", shown(need))),
                }
            }
            if let Some(waits_for) = &step.waits_for {
                let spawner = waits_for.spawner.as_ref().or_else(|| step.needs.first());
                match spawner.and_then(|spawner| self.numbers.get(spawner.as_str())) {
                    Some(spawner) => wait = Some(Wait { spawner: *spawner, gate: waits_for.gate }),
                    None => self.problem(step, "waits_for does not say whose children"),
                }
            }
            // Waiting for the children of a step includes waiting for the step.
            needs.retain(|need| wait.is_none_or(|wait| wait.spawner != *need));
            (self.steps[number].needs, self.steps[number].wait) = (needs, wait);
        }
    }
}

fn gate_step(step: &Step, gate: &StepGate, above: &str, parent: Option<usize>) -> CookedStep {
    let what = [gate.kind.as_str(), gate.id.as_str()].join(" ");
    let id = format!("gate-{}", step.id);
    let end = step.title.floor_char_boundary(limits::TITLE_BYTES_MAX / 2);
    let title = format!("Gate before {}: {}", &step.title[..end].trim(), what.trim());
    let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let end = title.floor_char_boundary(limits::TITLE_BYTES_MAX);
    CookedStep {
        id: format!("{above}.{id}"),
        step: id,
        title: Title::trusted(title[..end].trim_end().to_owned()),
        description: String::new(),
        notes: String::new(),
        acceptance: String::new(),
        issue_type: IssueType::trusted("gate".to_owned()),
        priority: step.priority,
        labels: Vec::new(),
        metadata: None,
        assignee: String::new(),
        parent,
        needs: Vec::new(),
        wait: None,
        role: Role::Gate(gate.clone()),
    }
}
