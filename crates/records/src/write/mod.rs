//! From beads to text.

mod bead;
mod event;
mod layout;
mod object;
mod view;
mod work;

pub use bead::{export_line, export_memory_line, write_bead, write_comment, write_dependency};
pub use event::event_json;
pub use layout::{escape_html, pretty, sorted_object};
pub use object::{ArrayWriter, ObjectWriter};
pub use view::{BeadView, Counts};
pub use work::{
    lease_json, new_token_json, no_work_json, overdue_json, project_json, taken_json, token_json,
    work_details_json, work_item_json,
};
