//! The steps of a run, read from its cooked formula.

use std::collections::HashMap;

use gt_core::schedule::{RunStep, RunSteps};
use gt_core::{DependencyType, Json};
use serde::Deserialize;

/// The part of a cooked formula that is read here. Any field may be missing: runs of older versions are shown too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CookedSteps {
    steps: Vec<CookedStepFields>,
    dependencies: Vec<CookedEdge>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CookedStepFields {
    id: String,
    step: String,
    title: String,
    description: String,
    acceptance_criteria: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CookedEdge {
    issue_id: String,
    depends_on_id: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The steps in the text of [`cooked_json`](crate::cooked_json); none if it is something else. A step needs what
/// blocks it, and its parts.
pub fn run_steps(cooked: &Json) -> RunSteps {
    let CookedSteps { steps, dependencies } =
        serde_json::from_str(cooked.as_str()).unwrap_or_default();
    let places: HashMap<&str, usize> =
        steps.iter().enumerate().map(|(at, step)| (step.id.as_str(), at)).collect();
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for edge in &dependencies {
        let place = |id: &str| places.get(id).copied();
        let (Some(step), Some(target)) = (place(&edge.issue_id), place(&edge.depends_on_id)) else {
            continue;
        };
        let (step, need) = match DependencyType::parse(&edge.kind) {
            Ok(DependencyType::ParentChild) => (target, step),
            Ok(kind) if kind.can_block() => (step, target),
            _ => continue,
        };
        if !needs[step].contains(&need) {
            needs[step].push(need);
        }
    }
    let with_needs = |(step, needs): (CookedStepFields, Vec<usize>)| RunStep {
        id: step.id,
        name: step.step,
        title: step.title,
        description: step.description,
        acceptance: step.acceptance_criteria,
        needs,
    };
    RunSteps::new(steps.into_iter().zip(needs).map(with_needs).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn needs(cooked: &str) -> Vec<(String, Vec<usize>)> {
        let steps = run_steps(&Json::parse(cooked).unwrap());
        steps.as_slice().iter().map(|step| (step.id.clone(), step.needs.clone())).collect()
    }

    #[test]
    fn a_step_needs_what_blocks_it_and_its_parts() {
        let cooked = r#"{"formula":"f","steps":[
            {"id":"m.a","step":"a","title":"A","acceptance_criteria":"it is there"},
            {"id":"m.b","step":"b","title":"B"},{"id":"m.b.c","step":"c","title":"C"}],
            "dependencies":[
            {"issue_id":"m.a","depends_on_id":"m","type":"parent-child"},
            {"issue_id":"m.b","depends_on_id":"m.a","type":"blocks"},
            {"issue_id":"m.b.c","depends_on_id":"m.b","type":"parent-child"},
            {"issue_id":"m.b.c","depends_on_id":"m.a","type":"related"},
            {"issue_id":"m.b.c","depends_on_id":"gone","type":"blocks"}]}"#;
        let expected = [("m.a", vec![]), ("m.b", vec![0, 2]), ("m.b.c", vec![])];
        assert_eq!(needs(cooked), expected.map(|(id, needs)| (id.to_owned(), needs)));
        let steps = run_steps(&Json::parse(cooked).unwrap());
        let first = steps.as_slice().first().unwrap();
        assert_eq!((first.name.as_str(), first.acceptance.as_str()), ("a", "it is there"));
    }

    #[test]
    fn an_uncooked_object_has_no_steps() {
        for other in ["{}", "[]", "null", r#"{"steps":7}"#, r#"[{"id":"a"}]"#] {
            assert_eq!(needs(other), [], "{other}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_the_reader_panic(text in ".{0,200}") {
            let _ = run_steps(&Json::trusted(text));
        }
    }
}
