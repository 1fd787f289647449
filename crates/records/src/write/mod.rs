//! From beads to text.

mod bead;
mod layout;
mod object;
mod view;

pub use bead::{
    export_line, export_memory_line, export_tombstone_line, write_bead, write_comment,
    write_dependency,
};
pub use layout::{escape_html, pretty, sorted_object};
pub use object::{ArrayWriter, ObjectWriter};
pub use view::{BeadView, Counts};
