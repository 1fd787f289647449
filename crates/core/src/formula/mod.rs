//! Formulas: recipes of steps that are cooked into a graph of work.
//!
//! # Architecture invariants
//!
//! - Text is not known here: whoever reads a file brings a [`Formula`], whoever needs another one is
//!   given it by a lookup. So the same formula and the same values always give the same [`Cooked`].
//! - Nothing is passed over in silence. What a formula may say but cooking cannot do is a [`Problem`].
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

pub use condition::Condition;
pub use cook::{Lookup, Mode, Order, cook};
pub use extend::resolve;
pub use model::{
    Branch, Compose, Expansion, Formula, FormulaKind, Loop, MapRule, Naming, OnComplete, Phase,
    Repetition, Step, StepGate, Variable, VariableKind, WaitsFor,
};
pub use plan::{Cooked, CookedRoot, CookedStep, Edge, Role, Wait};
pub use problem::{Problem, Source};
pub use template::{is_variable_name, variables_in};
pub use validate::validate;
pub use values::Values;

#[cfg(test)]
mod tests;
