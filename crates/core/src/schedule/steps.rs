//! The steps of a run, and which of them may be marked as done.

use std::collections::BTreeSet;
use std::fmt;

/// A step of the recipe that a run follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStep {
    /// Its whole id.
    pub id: String,
    /// The short name that the recipe gives it.
    pub name: String,
    /// The task, in a line.
    pub title: String,
    /// The same at length.
    pub description: String,
    /// The criteria by which the work is accepted.
    pub acceptance: String,
    /// The places in the list of the steps that have to be done before.
    pub needs: Vec<usize>,
}

/// The steps of a run in the order of its recipe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSteps(Vec<RunStep>);

/// How many steps of a run are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepProgress {
    /// The number of done steps.
    pub done: usize,
    /// The number of all steps.
    pub total: usize,
}

impl fmt::Display for StepProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.done, self.total)
    }
}

/// Why steps are not marked as done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepRefusal {
    /// The recipe has no step of this name, but these.
    Unknown(String, Vec<String>),
    /// Several steps go by this short name; these are their ids.
    Ambiguous(String, Vec<String>),
    /// This step needs those others first.
    TooEarly(String, Vec<String>),
}

impl fmt::Display for StepRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(input, known) if known.is_empty() => {
                write!(
                    f,
                    "there is no step \"{}\": the run follows no recipe",
                    input.escape_debug()
                )
            }
            Self::Unknown(input, known) => {
                let known = known.join(", ");
                write!(f, "there is no step \"{}\"; the steps are: {known}", input.escape_debug())
            }
            Self::Ambiguous(input, ids) => write!(
                f,
                "several steps are called \"{}\"; write the whole id of one: {}",
                input.escape_debug(),
                ids.join(", ")
            ),
            Self::TooEarly(step, missing) => {
                let (names, them) = (missing.join(", "), missing.join(" "));
                let (is, it) = if missing.len() == 1 { ("is", "it") } else { ("are", "they") };
                write!(
                    f,
                    "{step} comes after {names}, which {is} not done; do {} first (gt step done {them}), or \
                     --force if {it} {is} not needed",
                    if missing.len() == 1 { "it" } else { "them" }
                )
            }
        }
    }
}

impl RunSteps {
    /// The steps. A step that needs one that is not there needs nothing of it.
    pub fn new(mut steps: Vec<RunStep>) -> Self {
        let count = steps.len();
        for step in &mut steps {
            step.needs.retain(|need| *need < count);
        }
        Self(steps)
    }

    /// Every step, in order.
    pub fn as_slice(&self) -> &[RunStep] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of them are done.
    pub fn progress(&self, done: &BTreeSet<String>) -> StepProgress {
        let done = self.0.iter().filter(|step| done.contains(&step.id)).count();
        StepProgress { done, total: self.0.len() }
    }

    /// The names of the steps that this one waits for.
    pub fn waits_for(&self, step: &RunStep, done: &BTreeSet<String>) -> Vec<String> {
        let open = step.needs.iter().filter_map(|need| self.0.get(*need));
        open.filter(|need| !done.contains(&need.id)).map(|need| self.shortest(need)).collect()
    }

    /// The next step that waits for nothing.
    pub fn next(&self, done: &BTreeSet<String>) -> Option<&RunStep> {
        let is_next =
            |step: &&RunStep| !done.contains(&step.id) && self.waits_for(step, done).is_empty();
        self.0.iter().find(is_next)
    }

    /// The shortest unambiguous name of a step: its short name, else its id.
    pub fn shortest(&self, step: &RunStep) -> String {
        let namesakes = self.0.iter().filter(|other| other.name == step.name).count();
        let is_plain = !step.name.is_empty() && namesakes == 1;
        if is_plain { step.name.clone() } else { step.id.clone() }
    }

    /// The step that `input` means: its id, or its short name.
    pub fn find(&self, input: &str) -> Result<&RunStep, StepRefusal> {
        let input = input.trim();
        if let Some(step) = self.0.iter().find(|step| step.id == input) {
            return Ok(step);
        }
        let named: Vec<&RunStep> = self.0.iter().filter(|step| step.name == input).collect();
        match named.as_slice() {
            [step] => Ok(step),
            [] => {
                let known = self.0.iter().map(|step| self.shortest(step)).collect();
                Err(StepRefusal::Unknown(input.to_owned(), known))
            }
            several => {
                let ids = several.iter().map(|step| step.id.clone()).collect();
                Err(StepRefusal::Ambiguous(input.to_owned(), ids))
            }
        }
    }

    /// The steps that become done when a worker says that these are done: without those that are done
    /// already, and each once. Unless it is forced, every step that one needs must be done, or be said to be.
    pub fn newly_done<'a>(
        &'a self,
        done: &BTreeSet<String>,
        said: &[String],
        force: bool,
    ) -> Result<Vec<&'a RunStep>, StepRefusal> {
        let mut newly_done: Vec<&RunStep> = Vec::new();
        for input in said {
            let step = self.find(input)?;
            if !done.contains(&step.id) && !newly_done.contains(&step) {
                newly_done.push(step);
            }
        }
        if force {
            return Ok(newly_done);
        }
        let mut after = done.clone();
        after.extend(newly_done.iter().map(|step| step.id.clone()));
        for step in &newly_done {
            let missing = self.waits_for(step, &after);
            if !missing.is_empty() {
                return Err(StepRefusal::TooEarly(self.shortest(step), missing));
            }
        }
        Ok(newly_done)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step(id: &str, name: &str, needs: &[usize]) -> RunStep {
        RunStep {
            id: id.to_owned(),
            name: name.to_owned(),
            title: String::new(),
            description: String::new(),
            acceptance: String::new(),
            needs: needs.to_vec(),
        }
    }

    /// design → build → test, and two steps called `note`.
    fn steps() -> RunSteps {
        RunSteps::new(vec![
            step("m.design", "design", &[]),
            step("m.build", "build", &[0]),
            step("m.test", "test", &[1]),
            step("m.a.note", "note", &[]),
            step("m.b.note", "note", &[]),
        ])
    }

    fn set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn newly_done(done: &[&str], said: &[&str], force: bool) -> Result<Vec<String>, String> {
        let said: Vec<String> = said.iter().map(|name| (*name).to_owned()).collect();
        let steps = steps();
        let newly_done = steps.newly_done(&set(done), &said, force);
        newly_done
            .map(|newly_done| newly_done.into_iter().map(|step| step.id.clone()).collect())
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn steps_are_done_in_the_order_of_the_recipe() {
        assert_eq!(newly_done(&[], &["design"], false).unwrap(), ["m.design"]);
        assert_eq!(newly_done(&["m.design"], &["m.build"], false).unwrap(), ["m.build"]);
        // Steps that are said together count together, in any order.
        let all = newly_done(&[], &["test", "build", "design", "build"], false).unwrap();
        assert_eq!(all, ["m.test", "m.build", "m.design"]);
        assert_eq!(
            newly_done(&[], &["test"], false).unwrap_err(),
            "test comes after build, which is not done; do it first (gt step done build), or --force if it is \
             not needed"
        );
        assert_eq!(newly_done(&[], &["test"], true).unwrap(), ["m.test"]);
    }

    #[test]
    fn a_step_that_is_done_is_not_newly_done() {
        assert_eq!(newly_done(&["m.design"], &["design"], false).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_right_ones() {
        let unknown = newly_done(&[], &["paint"], true).unwrap_err();
        assert_eq!(
            unknown,
            "there is no step \"paint\"; the steps are: design, build, test, m.a.note, m.b.note"
        );
        let ambiguous = newly_done(&[], &["note"], false).unwrap_err();
        assert!(ambiguous.contains("m.a.note, m.b.note"), "{ambiguous}");
        let none = RunSteps::default().find("design").unwrap_err();
        assert!(none.to_string().contains("follows no recipe"));
    }

    #[test]
    fn the_next_step_waits_for_nothing() {
        let steps = steps();
        let next = |done: &[&str]| steps.next(&set(done)).map(|step| step.id.clone());
        assert_eq!(next(&[]).as_deref(), Some("m.design"));
        assert_eq!(next(&["m.design"]).as_deref(), Some("m.build"));
        assert_eq!(next(&["m.design", "m.build", "m.test"]).as_deref(), Some("m.a.note"));
        assert_eq!(steps.progress(&set(&["m.design", "gone"])).to_string(), "1/5");
    }

    proptest! {
        /// Following the next step again and again does everything, if nothing needs itself.
        #[test]
        fn a_recipe_without_circles_can_be_followed_to_its_end(
            needs in prop::collection::vec(prop::collection::vec(0usize..9, 0..4), 1..9),
        ) {
            let list = needs.iter().enumerate().map(|(at, needs)| {
                let before: Vec<usize> = needs.iter().copied().filter(|need| *need < at).collect();
                step(&format!("m.{at}"), &format!("s{at}"), &before)
            });
            let steps = RunSteps::new(list.collect());
            let mut done = BTreeSet::new();
            while let Some(next) = steps.next(&done) {
                let name = steps.shortest(next);
                let newly_done = steps.newly_done(&done, &[name], false).unwrap();
                prop_assert_eq!(newly_done, vec![next]);
                done.insert(next.id.clone());
            }
            let progress = steps.progress(&done);
            prop_assert_eq!(progress.done, progress.total);
        }
    }
}
