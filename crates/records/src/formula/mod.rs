//! Formula files: TOML or JSON in, the model out, and back as JSON.
//!
//! Reading collects every problem instead of stopping at the first one. Keys that mean nothing to us are
//! carried along and told as warnings.

mod json;
pub(crate) mod node;
mod read;
mod steps;
pub(crate) mod table;
pub(crate) mod toml;
mod write;

pub use read::{FormulaFormat, ReadFormula, read_formula};
pub use steps::run_steps;
pub use write::{cooked_json, formula_json};
