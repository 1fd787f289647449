//! The formulas that come with the program.

/// Name and text of each.
pub(super) const BUILT_IN: &[(&str, &str)] = &[
    ("exp-refine", include_str!("built_in/exp-refine.formula.toml")),
    ("mol-polecat-work", include_str!("built_in/mol-polecat-work.formula.toml")),
    ("mol-release", include_str!("built_in/mol-release.formula.toml")),
    ("mol-review", include_str!("built_in/mol-review.formula.toml")),
];
