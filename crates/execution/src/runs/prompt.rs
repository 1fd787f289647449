//! The first prompt of a worker.

use std::fmt::Write as _;

use gt_core::schedule::{Context, Run};
use gt_core::{Bead, Json};

/// The prompt on the standard input of a worker: the task, its acceptance criteria, the instructions from `gt sling`,
/// and the steps.
pub(super) fn prompt(bead: &Bead, run: &Run, context: &Context) -> String {
    let mut text = format!("{}: {}\n", bead.id, bead.title.as_str());
    let mut section = |title: &str, body: &str| {
        if !body.trim().is_empty() {
            let _ = write!(text, "\n{title}\n{}\n", body.trim_end());
        }
    };
    section("What is to be done:", &bead.description);
    section("How it is to be done:", &bead.design);
    section("It is done when:", &bead.acceptance_criteria);
    section("Notes:", &bead.notes);
    section("Instructions:", context.parameters.args.as_deref().unwrap_or_default());
    section("Steps:", &steps(&run.steps));
    let _ = writeln!(text, "\nThis is the run {}.", run.id);
    text
}

/// The steps of a cooked formula as a numbered list.
fn steps(cooked: &Json) -> String {
    let fields = cooked.fields().unwrap_or_default();
    let Some((_, steps)) = fields.into_iter().find(|(name, _)| name == "steps") else {
        return String::new();
    };
    let mut text = String::new();
    for (at, step) in steps.elements().unwrap_or_default().iter().enumerate() {
        let field = |name| step.string_field(name).unwrap_or_default();
        let _ = writeln!(text, "{}. {}", at + 1, field("title"));
        for (name, mark) in [("description", ""), ("acceptance_criteria", "Done when: ")] {
            for line in field(name).trim().lines().filter(|line| !line.trim().is_empty()) {
                let _ = writeln!(text, "   {mark}{line}");
            }
        }
    }
    text
}
