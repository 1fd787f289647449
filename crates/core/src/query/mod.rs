//! The language of `bd query`: which beads, said in one line.
//!
//! ```text
//! priority<=1 AND (label=backend OR NOT assignee=none) AND updated<7d
//! ```
//!
//! A condition is a field, an operator and a value. `NOT` binds tighter than `AND`, which binds tighter
//! than `OR`. Every condition is either true or false of a bead: a comparison with something the bead does
//! not have is false, and `NOT` turns that into true.

mod error;
mod expression;
mod field;
mod lexer;
mod parser;
mod print;
#[cfg(test)]
mod tests;

pub use error::QueryError;
pub use expression::{Comparison, Expression, FieldCondition, Query, TextTest, TimeTest};
pub use field::{FIELDS, FieldHelp, Flag, NumberField, TextField, TimeField};
