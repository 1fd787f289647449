//! The steps that a run follows, cooked from its formula.

use std::collections::BTreeMap;

use gt_core::formula::PlaceholderMode;
use gt_core::schedule::SlingParameters;
use gt_core::{Bead, Json, Rig};
use gt_records::cooked_json;

use gt_town::formulas::{Cooking, FormulaCatalog};
use gt_town::{OperationError, Result, Town};

/// The formula that is applied unless another one is named.
pub const DEFAULT_FORMULA: &str = "mol-polecat-work";

/// The steps of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The name of the formula; empty for none.
    pub formula: String,
    /// The cooked formula, a JSON object; empty for none.
    pub steps: Json,
}

/// Cooks what a run of this bead would follow. Every fault of the formula or its variables shows here,
/// which is why scheduling cooks too.
pub fn cook(town: &Town, rig: &Rig, bead: &Bead, parameters: &SlingParameters) -> Result<Recipe> {
    let Some(name) = &parameters.formula else {
        return Ok(Recipe { formula: String::new(), steps: Json::object(&[]) });
    };
    let shelf = FormulaCatalog::of_rig(town, rig);
    let loaded = shelf.find(name, town.root())?;
    let declared = shelf.resolved(&loaded)?;
    let mut given: BTreeMap<String, String> = parameters.vars.iter().cloned().collect();
    let names = || declared.variables.iter().map(|variable| variable.name.as_str());
    if let Some(unknown) = given.keys().find(|name| !names().any(|known| known == name.as_str())) {
        let known: Vec<&str> = names().collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(OperationError::rejected(format!(
            "the formula {name} has no variable \"{}\"; it has: {known}",
            unknown.escape_debug()
        )));
    }
    // The caller need not pass values that are known here; a formula gets only those that it asks for.
    let known = [
        ("issue", bead.id.as_str()),
        ("bead", bead.id.as_str()),
        ("title", bead.title.as_str()),
        ("rig", rig.slug.as_str()),
        ("base_branch", parameters.base_branch.as_deref().unwrap_or(&rig.default_branch)),
    ];
    for (variable, value) in known {
        let asked_for = declared.variables.iter().any(|declared| declared.name == variable);
        if asked_for && !value.is_empty() && !given.contains_key(variable) {
            given.insert(variable.to_owned(), value.to_owned());
        }
    }
    let cooking = Cooking { given: &given, mode: PlaceholderMode::Runtime, prefix: None };
    let cooked = shelf.cook(&loaded, &cooking)?;
    let steps = Json::trusted(cooked_json(&cooked));
    Ok(Recipe { formula: loaded.name().to_owned(), steps })
}
