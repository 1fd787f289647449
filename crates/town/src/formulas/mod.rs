//! Formulas: finding, reading and cooking them. Nothing here writes.

mod built_in;
mod formula_catalog;

pub use formula_catalog::{
    Cooking, FormulaCatalog, FormulaDirectory, FormulaTier, ListedFormula, LoadedFormula,
};
