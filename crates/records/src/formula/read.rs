//! From the text of a formula file to the model.

use gt_core::formula::{
    Branch, Compose, Expansion, Formula, FormulaProblem, Loop, MapRule, OnComplete, Repetition,
    SourceLocation, Step, StepGate, Variable, VariableCondition, WaitsFor,
};
use gt_core::{Invalid, Priority};

use super::node::{Node, NodeValue};
use super::table::{FieldTable, ReadProblems};
use super::{json, toml};
use crate::read::shown;

/// The format of a formula file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormulaFormat {
    /// `NAME.formula.toml`.
    Toml,
    /// `NAME.formula.json`.
    Json,
}

/// The contents of a formula file, as far as it could be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFormula {
    /// The formula; parts with a problem are left out of it.
    pub formula: Formula,
    /// The parts that cannot be understood.
    pub problems: Vec<FormulaProblem>,
    /// The parts that are kept but not used.
    pub warnings: Vec<FormulaProblem>,
}

/// Reads a formula. `file` is how messages name where it comes from.
pub fn read_formula(text: &str, format: FormulaFormat, file: &str) -> ReadFormula {
    let source = SourceLocation::file(file);
    // Some editors begin every file with a mark that is no text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = match format {
        FormulaFormat::Toml => toml::parse(text),
        FormulaFormat::Json => json::parse(text),
    };
    let mut found = ReadProblems::default();
    let formula = match parsed {
        Ok(root) => formula(root, &source, &mut found),
        Err(errors) => {
            let problems = errors.into_iter();
            found.problems.extend(
                problems.map(|(line, message)| FormulaProblem::new(&source.at(line), "", message)),
            );
            Formula { source, version: 1, ..Formula::default() }
        }
    };
    ReadFormula { formula, problems: found.problems, warnings: found.warnings }
}

fn formula(root: Node, file: &SourceLocation, found: &mut ReadProblems) -> Formula {
    let mut table = FieldTable::of(root, String::new(), file, found);
    Formula {
        name: table.text("formula", found),
        description: table.text("description", found),
        version: table.number("version", found).unwrap_or(1),
        kind: table.word("type", found).unwrap_or_default(),
        extends: table.texts("extends", found),
        variables: variables(&mut table, found),
        steps: steps(table.list("steps", found), file, found),
        template: steps(table.list("template", found), file, found),
        compose: table.take("compose").map(|node| compose(node, file, found)).unwrap_or_default(),
        advice: table.any_list("advice", found),
        pointcuts: table.any_list("pointcuts", found),
        phase: table.word("phase", found),
        pour: table.flag("pour", found),
        carried: table.carried(found),
        source: file.clone(),
    }
}

fn variables(table: &mut FieldTable, found: &mut ReadProblems) -> Vec<Variable> {
    let Some(node) = table.take("vars") else { return Vec::new() };
    let NodeValue::Table(fields) = node.value else {
        table.wrong("vars", &node, &format!("expected a table, found {}", node.shown()), found);
        return Vec::new();
    };
    fields.into_iter().map(|(name, node)| variable(name, node, &table.source, found)).collect()
}

fn variable(name: String, node: Node, file: &SourceLocation, found: &mut ReadProblems) -> Variable {
    let subject = format!("variable \"{}\"", shown(&name));
    if let Some(default) = node.scalar() {
        let source = file.at(Some(node.line));
        return Variable { name, default: Some(default), source, ..Variable::default() };
    }
    let mut table = FieldTable::of(node, subject, file, found);
    let default = table.take("default");
    let text = default.as_ref().and_then(Node::scalar);
    if let (Some(node), None) = (&default, &text) {
        let message = format!("expected a text, found {}", node.shown());
        table.wrong("default", node, &message, found);
    }
    Variable {
        name,
        description: table.text("description", found),
        default: text,
        required: table.flag("required", found).unwrap_or(false),
        allowed: allowed(&mut table, found),
        pattern: table.some_text("pattern", found),
        kind: table.word("type", found),
        source: table.source.clone(),
        carried: table.carried(found),
    }
}

fn allowed(table: &mut FieldTable, found: &mut ReadProblems) -> Vec<String> {
    let mut allowed = Vec::new();
    for node in table.list("enum", found) {
        if let Some(text) = node.scalar() {
            allowed.push(text);
            continue;
        }
        table.wrong("enum", &node, &format!("expected a text, found {}", node.shown()), found);
    }
    allowed
}

fn steps(nodes: Vec<Node>, file: &SourceLocation, found: &mut ReadProblems) -> Vec<Step> {
    nodes.into_iter().map(|node| step(node, file, found)).collect()
}

fn step(node: Node, file: &SourceLocation, found: &mut ReadProblems) -> Step {
    let mut table = FieldTable::of(node, "step".to_owned(), file, found);
    let id = table.text("id", found);
    table.subject = format!("step \"{}\"", shown(&id));
    let mut needs = table.texts("needs", found);
    for need in table.texts("depends_on", found) {
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    let priority = table.take("priority").and_then(|node| {
        let read = match node.scalar() {
            Some(text) => Priority::parse(&text),
            None => Err(Invalid(format!("expected 0 to 4, found {}", node.shown()))),
        };
        let refused = |Invalid(message)| table.wrong("priority", &node, &message, found);
        read.map_err(refused).ok()
    });
    Step {
        id,
        title: table.text("title", found),
        description: table.text("description", found),
        notes: table.text("notes", found),
        acceptance: table.text("acceptance", found),
        issue_type: table.some_text("type", found),
        priority,
        labels: table.texts("labels", found),
        metadata: table.take("metadata").map(|node| node.json()),
        needs,
        waits_for: table.parsed("waits_for", WaitsFor::parse, found),
        assignee: table.text("assignee", found),
        expand: table.some_text("expand", found),
        expand_variables: table.bindings("expand_vars", found),
        condition: table.parsed("condition", VariableCondition::parse, found),
        children: steps(table.list("children", found), file, found),
        gate: table.take("gate").map(|node| gate(node, &table, file, found)),
        repeat: table.take("loop").and_then(|node| repeat(node, &table, file, found)).map(Box::new),
        on_complete: table.take("on_complete").map(|node| on_complete(node, &table, file, found)),
        source: table.source.clone(),
        carried: table.carried(found),
    }
}

fn gate(
    node: Node,
    step: &FieldTable,
    file: &SourceLocation,
    found: &mut ReadProblems,
) -> StepGate {
    let mut table = FieldTable::of(node, format!("{}: gate", step.subject), file, found);
    let id = table.text("id", found);
    let await_id = table.text("await_id", found);
    StepGate {
        kind: table.text("type", found),
        id: if id.is_empty() { await_id } else { id },
        timeout: table.text("timeout", found),
        carried: table.carried(found),
    }
}

fn repeat(
    node: Node,
    step: &FieldTable,
    file: &SourceLocation,
    found: &mut ReadProblems,
) -> Option<Loop> {
    let whole = node.clone();
    let mut table = FieldTable::of(node, format!("{}: loop", step.subject), file, found);
    let count = table.number("count", found).map(Repetition::Count);
    let range = table.some_text("range", found).map(Repetition::Range);
    let max = table.number("max", found);
    let until = table.some_text("until", found);
    let until = until.map(|condition| Repetition::Until { condition, max });
    let mut ways = [count, range, until].into_iter().flatten();
    let (repetition, more) = (ways.next(), ways.next());
    let Some(repetition) = repetition.filter(|_| more.is_none()) else {
        step.wrong("loop", &whole, "give one of count, range and until", found);
        return None;
    };
    Some(Loop {
        repetition,
        variable: table.some_text("var", found),
        body: steps(table.list("body", found), file, found),
        carried: table.carried(found),
    })
}

fn on_complete(
    node: Node,
    step: &FieldTable,
    file: &SourceLocation,
    found: &mut ReadProblems,
) -> OnComplete {
    let mut table = FieldTable::of(node, format!("{}: on_complete", step.subject), file, found);
    OnComplete {
        for_each: table.text("for_each", found),
        bond: table.text("bond", found),
        variables: table.bindings("vars", found),
        parallel: table.flag("parallel", found).unwrap_or(false),
        sequential: table.flag("sequential", found).unwrap_or(false),
        carried: table.carried(found),
    }
}

fn compose(node: Node, file: &SourceLocation, found: &mut ReadProblems) -> Compose {
    let mut table = FieldTable::of(node, "compose".to_owned(), file, found);
    let rules = |table: &mut FieldTable, name: &str, found: &mut ReadProblems| -> Vec<FieldTable> {
        let nodes = table.list(name, found).into_iter();
        nodes.map(|node| FieldTable::of(node, format!("compose.{name}"), file, found)).collect()
    };
    let expand = rules(&mut table, "expand", found).into_iter().map(|mut rule| {
        let expansion = Expansion {
            target: rule.text("target", found),
            with: rule.text("with", found),
            variables: rule.bindings("vars", found),
            source: rule.source.clone(),
        };
        rule.refuse_rest(found);
        expansion
    });
    let expand = expand.collect();
    let map = rules(&mut table, "map", found).into_iter().map(|mut rule| {
        let map = MapRule {
            select: rule.text("select", found),
            with: rule.text("with", found),
            variables: rule.bindings("vars", found),
            source: rule.source.clone(),
        };
        rule.refuse_rest(found);
        map
    });
    let map = map.collect();
    let branch = rules(&mut table, "branch", found).into_iter().map(|mut rule| {
        let branch = Branch {
            from: rule.text("from", found),
            steps: rule.texts("steps", found),
            join: rule.text("join", found),
            source: rule.source.clone(),
        };
        rule.refuse_rest(found);
        branch
    });
    Compose {
        expand,
        map,
        branch: branch.collect(),
        aspects: table.texts("aspects", found),
        bond_points: table.any_list("bond_points", found),
        hooks: table.any_list("hooks", found),
        gate: table.any_list("gate", found),
        carried: table.carried(found),
    }
}
