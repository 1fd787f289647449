//! From text to records.

mod comments;
mod dependencies;
mod fields;
mod issue;
mod line;
mod plan;
pub(crate) mod values;

pub(crate) use fields::RecordFields;
pub use issue::IssueRecord;
pub use line::{RecordLine, TombstoneRecord, parse_line, parse_line_bytes};
pub use plan::{DependencyLine, parse_dependency_lines, parse_plan_graph, parse_plan_lines};
pub(crate) use values::{list, shown, text};
