//! Formulas and cooked formulas, as JSON.

use gt_core::Json;
use gt_core::bead::Carried;
use gt_core::formula::{
    Compose, Cooked, CookedStep, Formula, Loop, OnComplete, Repetition, Role, Step, StepGate,
    Variable, WordSet,
};

use crate::{ArrayWriter, ObjectWriter};

/// The formula as a formula file in JSON; reading it gives the same formula.
pub fn formula_json(formula: &Formula) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("formula", &formula.name);
    object.text_unless_empty("description", &formula.description);
    object.number("version", formula.version);
    object.text("type", formula.kind.as_str());
    texts(&mut object, "extends", &formula.extends);
    if !formula.variables.is_empty() {
        object.object("vars", |object| {
            for variable in &formula.variables {
                object.object(&variable.name, |object| write_variable(object, variable));
            }
        });
    }
    // An empty list of steps says that there are none, rather than nothing.
    if !formula.steps.is_empty() || formula.template.is_empty() {
        steps(&mut object, "steps", &formula.steps);
    }
    if !formula.template.is_empty() {
        steps(&mut object, "template", &formula.template);
    }
    if formula.compose != Compose::default() {
        object.object("compose", |object| write_compose(object, &formula.compose));
    }
    values(&mut object, "advice", &formula.advice);
    values(&mut object, "pointcuts", &formula.pointcuts);
    if let Some(phase) = formula.phase {
        object.text("phase", phase.as_str());
    }
    if let Some(pour) = formula.pour {
        object.flag("pour", pour);
    }
    carried(&mut object, &formula.carried);
    object.finish();
    out
}

fn carried(object: &mut ObjectWriter<'_>, carried: &Carried) {
    for (key, value) in carried {
        object.raw(key, value.as_str());
    }
}

fn texts(object: &mut ObjectWriter<'_>, key: &str, texts: &[String]) {
    if !texts.is_empty() {
        object.array(key, |array| texts.iter().for_each(|text| array.text(text)));
    }
}

fn values(object: &mut ObjectWriter<'_>, key: &str, values: &[Json]) {
    if !values.is_empty() {
        object.array(key, |array| values.iter().for_each(|value| array.raw(value.as_str())));
    }
}

fn bindings(object: &mut ObjectWriter<'_>, key: &str, bindings: &[(String, String)]) {
    if !bindings.is_empty() {
        object.object(key, |object| {
            for (name, value) in bindings {
                object.text(name, value);
            }
        });
    }
}

fn write_variable(object: &mut ObjectWriter<'_>, variable: &Variable) {
    object.text_unless_empty("description", &variable.description);
    if let Some(default) = &variable.default {
        object.text("default", default);
    }
    object.flag_if_set("required", variable.required);
    texts(object, "enum", &variable.allowed);
    if let Some(pattern) = &variable.pattern {
        object.text("pattern", pattern);
    }
    if let Some(kind) = variable.kind {
        object.text("type", kind.as_str());
    }
    carried(object, &variable.carried);
}

fn steps(object: &mut ObjectWriter<'_>, key: &str, steps: &[Step]) {
    object.array(key, |array| {
        for step in steps {
            array.object(|object| write_step(object, step));
        }
    });
}

fn write_step(object: &mut ObjectWriter<'_>, step: &Step) {
    object.text("id", &step.id);
    object.text("title", &step.title);
    object.text_unless_empty("description", &step.description);
    object.text_unless_empty("notes", &step.notes);
    object.text_unless_empty("acceptance", &step.acceptance);
    object.text_unless_empty("type", step.issue_type.as_deref().unwrap_or_default());
    if let Some(priority) = step.priority {
        object.number("priority", priority.number());
    }
    texts(object, "labels", &step.labels);
    if let Some(metadata) = &step.metadata {
        object.raw("metadata", metadata.as_str());
    }
    texts(object, "needs", &step.needs);
    if let Some(waits_for) = &step.waits_for {
        object.text("waits_for", &waits_for.text());
    }
    object.text_unless_empty("assignee", &step.assignee);
    object.text_unless_empty("expand", step.expand.as_deref().unwrap_or_default());
    bindings(object, "expand_vars", &step.expand_variables);
    if let Some(condition) = &step.condition {
        object.text("condition", &condition.to_string());
    }
    if !step.children.is_empty() {
        steps(object, "children", &step.children);
    }
    if let Some(gate) = &step.gate {
        object.object("gate", |object| write_gate(object, gate));
    }
    if let Some(repeat) = &step.repeat {
        object.object("loop", |object| write_loop(object, repeat));
    }
    if let Some(then) = &step.on_complete {
        object.object("on_complete", |object| write_on_complete(object, then));
    }
    carried(object, &step.carried);
}

fn write_gate(object: &mut ObjectWriter<'_>, gate: &StepGate) {
    object.text("type", &gate.kind);
    object.text_unless_empty("id", &gate.id);
    object.text_unless_empty("timeout", &gate.timeout);
    carried(object, &gate.carried);
}

fn write_loop(object: &mut ObjectWriter<'_>, repeat: &Loop) {
    match &repeat.repetition {
        Repetition::Count(count) => object.number("count", *count),
        Repetition::Range(range) => object.text("range", range),
        Repetition::Until { condition, max } => {
            object.text("until", condition);
            if let Some(max) = max {
                object.number("max", *max);
            }
        }
    }
    object.text_unless_empty("var", repeat.variable.as_deref().unwrap_or_default());
    steps(object, "body", &repeat.body);
    carried(object, &repeat.carried);
}

fn write_on_complete(object: &mut ObjectWriter<'_>, then: &OnComplete) {
    object.text("for_each", &then.for_each);
    object.text("bond", &then.bond);
    bindings(object, "vars", &then.variables);
    object.flag_if_set("parallel", then.parallel);
    object.flag_if_set("sequential", then.sequential);
    carried(object, &then.carried);
}

fn write_compose(object: &mut ObjectWriter<'_>, compose: &Compose) {
    if !compose.expand.is_empty() {
        object.array("expand", |array| {
            for rule in &compose.expand {
                array.object(|object| {
                    object.text("target", &rule.target);
                    object.text("with", &rule.with);
                    bindings(object, "vars", &rule.variables);
                });
            }
        });
    }
    if !compose.map.is_empty() {
        object.array("map", |array| {
            for rule in &compose.map {
                array.object(|object| {
                    object.text("select", &rule.select);
                    object.text("with", &rule.with);
                    bindings(object, "vars", &rule.variables);
                });
            }
        });
    }
    if !compose.branch.is_empty() {
        object.array("branch", |array| {
            for branch in &compose.branch {
                array.object(|object| {
                    object.text("from", &branch.from);
                    texts(object, "steps", &branch.steps);
                    object.text("join", &branch.join);
                });
            }
        });
    }
    texts(object, "aspects", &compose.aspects);
    values(object, "bond_points", &compose.bond_points);
    values(object, "hooks", &compose.hooks);
    values(object, "gate", &compose.gate);
    carried(object, &compose.carried);
}

/// The result of cooking a formula: the root, the steps, every edge, and the order they can be done in.
pub fn cooked_json(cooked: &Cooked) -> String {
    let id = |step: &usize| cooked.steps[*step].id.as_str();
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("formula", &cooked.formula.name);
    object.object("root", |object| {
        object.text("id", &cooked.root.id);
        object.text("title", cooked.root.title.as_str());
        object.text("issue_type", "molecule");
        object.text_unless_empty("description", &cooked.root.description);
        if let Some(phase) = cooked.root.phase {
            object.text("phase", phase.as_str());
        }
        object.flag_if_set("pour", cooked.root.pour);
    });
    object.array("steps", |array| {
        for step in &cooked.steps {
            array.object(|object| write_cooked_step(object, step));
        }
    });
    object.array("dependencies", |array| {
        for edge in cooked.edges() {
            array.object(|object| {
                let target = edge.target.as_ref().map_or(cooked.root.id.as_str(), id);
                object.text("issue_id", id(&edge.step));
                object.text("depends_on_id", target);
                object.text("type", edge.kind.as_str());
                object.text_unless_empty("metadata", &edge.metadata);
            });
        }
    });
    object.array("waves", |array| {
        for wave in cooked.waves() {
            let mut inner = ArrayWriter::new(array.element());
            for step in &wave {
                inner.text(id(step));
            }
            inner.finish();
        }
    });
    object.finish();
    out
}

fn write_cooked_step(object: &mut ObjectWriter<'_>, step: &CookedStep) {
    object.text("id", &step.id);
    object.text("step", &step.step);
    object.text("title", step.title.as_str());
    object.text_unless_empty("description", &step.description);
    object.text_unless_empty("notes", &step.notes);
    object.text_unless_empty("acceptance_criteria", &step.acceptance);
    object.text("issue_type", step.issue_type.as_str());
    if let Some(priority) = step.priority {
        object.number("priority", priority.number());
    }
    texts(object, "labels", &step.labels);
    if let Some(metadata) = &step.metadata {
        object.raw("metadata", metadata.as_str());
    }
    object.text_unless_empty("assignee", &step.assignee);
    match &step.role {
        Role::Work { condition, on_complete } => {
            if let Some(condition) = condition {
                object.text("condition", &condition.to_string());
            }
            if let Some(then) = on_complete {
                object.object("on_complete", |object| write_on_complete(object, then));
            }
        }
        Role::Gate(gate) => object.object("gate", |object| write_gate(object, gate)),
    }
}
