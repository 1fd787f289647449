//! The bead record as JSON, contexts shown as such records, and formula files: read and written without losing anything.
//!
//! # Architecture invariants
//!
//! - Nothing here reads a file or a clock: the caller brings one line and the time of the import.
//! - What a record says is kept. A field that means nothing to us is carried along as it was spelled;
//!   a value that cannot be kept either refuses the record or is reported in [`IssueRecord::repairs`].
//! - JSON that is only passed on is never parsed into a tree, because a tree forgets the order of keys
//!   and the spelling of numbers.
//! - The order of the fields is the one of the tools that read our files; [`write_bead`] is the only
//!   place that knows it.
//! - No input makes anything here panic. Nothing recurses over a record, however deeply it is nested; formulas
//!   nest to a fixed depth at most.

mod context;
mod error;
mod formula;
mod gas_town;
mod places;
mod read;
mod runtime;
mod settings;
mod tables;
mod tokens;
mod write;

pub use context::{ContextRecord, context_bead, context_json, parse_context};
pub use error::RecordError;
pub use formula::{FormulaFormat, ReadFormula, cooked_json, formula_json, read_formula, run_steps};
pub use gas_town::{RigEntry, pause_of, pause_remark, rig_entries};
pub use places::{Route, flat_settings, parse_route, redirect_target};
pub use read::{
    DependencyLine, IssueRecord, RecordLine, TombstoneRecord, parse_dependency_lines, parse_line,
    parse_line_bytes, parse_plan_graph, parse_plan_lines,
};
pub use runtime::{ReadRuntime, read_runtime, set_runtime_key};
pub use settings::{JsonSettings, json_settings};
pub use tables::{
    RowParts, comment_row, config_row, dependency_row, issue_row, label_row, row_id, table_rows,
};
pub use tokens::contains_nul;
pub use write::{
    ArrayWriter, BeadView, Counts, ObjectWriter, escape_html, export_line, export_memory_line,
    export_tombstone_line, pretty, sorted_object, write_bead, write_comment, write_dependency,
};
