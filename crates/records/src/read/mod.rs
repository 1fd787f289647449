//! From text to records.

mod comments;
mod dependencies;
mod fields;
mod issue;
mod line;
mod plan;
pub(crate) mod values;
mod work;

pub(crate) use fields::Fields;
pub use issue::Record;
pub use line::{Line, parse_line};
pub use plan::{DependencyLine, parse_dependency_lines, parse_plan_graph, parse_plan_lines};
pub(crate) use values::{list, shown, text};
pub use work::{
    NextAnswer, OverdueAnswer, ProblemAnswer, read_event_bead, read_last_event, read_lease_answer,
    read_next_answer, read_overdue_answer, read_problem, read_project, read_work_details,
    read_work_item, read_work_items,
};
