//! Names and texts of steps, rewritten for their new place.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::template::fill;
use super::{Step, VariableCondition};
use crate::Json;

/// Collects the ids of steps and their parts; the bodies of loops are worlds of their own.
pub(super) fn ids_of(steps: &[Step], ids: &mut HashSet<String>) {
    for step in steps {
        ids.insert(step.id.clone());
        ids_of(&step.children, ids);
    }
}

pub(super) fn needs_of(step: &Step, needs: &mut Vec<String>) {
    needs.extend(step.needs.iter().cloned());
    needs.extend(step.waits_for.iter().filter_map(|wait| wait.spawner.clone()));
    step.children.iter().for_each(|child| needs_of(child, needs));
}

/// Renames a step of a loop's body and its parts, and every reference in it to another of them.
pub(super) fn rename(step: &mut Step, names: &HashSet<String>, prefix: &str) {
    step.id = format!("{prefix}{}", step.id);
    rename_needs(step, names, prefix);
    step.children.iter_mut().for_each(|child| rename(child, names, prefix));
    // A loop inside keeps the names in its body until it is unrolled itself.
    for inside in step.repeat.iter_mut().flat_map(|repeat| &mut repeat.body) {
        rename_inner_needs(inside, names, prefix);
    }
}

fn rename_inner_needs(step: &mut Step, names: &HashSet<String>, prefix: &str) {
    rename_needs(step, names, prefix);
    let body = step.repeat.iter_mut().flat_map(|repeat| &mut repeat.body);
    step.children
        .iter_mut()
        .chain(body)
        .for_each(|inside| rename_inner_needs(inside, names, prefix));
}

fn rename_needs(step: &mut Step, names: &HashSet<String>, prefix: &str) {
    let spawner = step.waits_for.iter_mut().filter_map(|wait| wait.spawner.as_mut());
    for name in step.needs.iter_mut().chain(spawner) {
        if names.contains(name.as_str()) {
            *name = format!("{prefix}{name}");
        }
    }
}

/// Puts the value of a loop's variable into a step and everything in it.
pub(super) fn bind(step: &mut Step, variable: &str, value: &str) {
    let known = |name: &str| (name == variable).then_some(Cow::Borrowed(value));
    step.map_texts(&mut |text| fill(text, known));
    step.metadata = step.metadata.take().map(|metadata| fill_json(&metadata, known));
    step.condition = step.condition.take().map(|condition| condition.with_value(variable, value));
    let body = step.repeat.iter_mut().flat_map(|repeat| &mut repeat.body);
    step.children.iter_mut().chain(body).for_each(|inside| bind(inside, variable, value));
}

/// Puts the step that is replaced, and the values of the expansion's variables, into a template.
pub(super) fn fill_template(step: &mut Step, target: &Step, variables: &HashMap<&str, &str>) {
    let known = |name: &str| match name {
        "target" | "target.id" => Some(Cow::Borrowed(target.id.as_str())),
        "target.title" => Some(Cow::Borrowed(target.title.as_str())),
        "target.description" => Some(Cow::Borrowed(target.description.as_str())),
        _ => variables.get(name).map(|value| Cow::Borrowed(*value)),
    };
    step.id = fill(&step.id, known);
    step.map_texts(&mut |text| fill(text, known));
    step.metadata = step.metadata.take().map(|metadata| fill_json(&metadata, known));
    let spawner = step.waits_for.iter_mut().filter_map(|wait| wait.spawner.as_mut());
    for name in step.needs.iter_mut().chain(spawner) {
        *name = fill(name, known);
    }
    let settle = |condition: VariableCondition| {
        let value = condition.variable().and_then(|name| Some((name, *variables.get(name)?)));
        let settled = value.map(|(name, value)| condition.with_value(name, value));
        settled.unwrap_or(condition)
    };
    step.condition = step.condition.take().map(settle);
    let body = step.repeat.iter_mut().flat_map(|repeat| &mut repeat.body);
    let inside = step.children.iter_mut().chain(body);
    inside.for_each(|inside| fill_template(inside, target, variables));
}

/// Placeholders in JSON stand in its strings, so the values that replace them are escaped as JSON strings.
pub(super) fn fill_json<'v>(json: &Json, known: impl Fn(&str) -> Option<Cow<'v, str>>) -> Json {
    Json::trusted(fill(json.as_str(), |name| known(name).map(|value| escaped(&value).into())))
}

fn escaped(value: &str) -> String {
    let quoted = Json::string(value);
    let text = quoted.as_str();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
}

/// Whether `text` looks like `pattern`, in which `*` stands for anything.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = pattern.rsplit_once('*').map(|(_, last)| last) else { return rest.is_empty() };
    let middle: Vec<&str> = parts.collect();
    for part in &middle[..middle.len().saturating_sub(1)] {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, expected) in [
            ("*", "anything", true),
            ("build", "build", true),
            ("build", "builds", false),
            ("*.build", "a.build", true),
            ("*.build", "build", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
