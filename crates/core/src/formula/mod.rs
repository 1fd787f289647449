//! Formulas: recipes of steps that are cooked into a graph of work.
//!
//! # Architecture invariants
//!
//! - Text is not known here: a reader of files brings a [`Formula`], and a lookup brings the other
//!   formulas that it needs. So the same formula and the same values always give the same [`Cooked`].
//! - Nothing is passed over in silence. A part of a formula that cooking does not support is a [`FormulaProblem`].
//! - Every problem is found, not only the first.

mod condition;
mod cook;
mod extend;
mod model;
mod plan;
mod problem;
mod range;
mod rewrite;
mod substitute;
mod template;
mod transform;
mod validate;
mod values;

pub use condition::VariableCondition;
pub use cook::{CookOptions, FormulaLookup, PlaceholderMode, cook};
pub use extend::resolve;
pub use model::{
    Branch, Compose, Expansion, Formula, FormulaKind, Loop, MapRule, OnComplete, Phase, Repetition,
    Step, StepGate, Variable, VariableKind, WaitsFor, WordSet,
};
pub use plan::{Cooked, CookedRoot, CookedStep, Edge, Role, Wait};
pub use problem::{FormulaProblem, SourceLocation};
pub use template::{is_variable_name, variables_in};
pub use validate::validate;
pub use values::VariableValues;

#[cfg(test)]
mod tests;
