//! What runs have cost.

use gt_core::cost::CostLine;
use gt_core::schedule::Money;
use serde::Serialize;

/// What was spent, by whatever was asked for.
#[derive(Debug, Clone, Serialize)]
pub struct CostDocument {
    pub by: String,
    pub lines: Vec<CostLineDocument>,
    pub total: CostLineDocument,
    /// Models without a price, with their tokens.
    pub unpriced: Vec<UnpricedDocument>,
    /// When the built-in prices were looked up.
    pub prices_as_of: String,
}

/// A line of such a list. Amounts are dollars, as text, so that no digit is lost.
#[derive(Debug, Clone, Serialize)]
pub struct CostLineDocument {
    /// What the line is about; empty for everything that belongs to none.
    pub name: String,
    pub runs: u64,
    pub beads: u64,
    pub done_beads: u64,
    pub tokens: u64,
    pub input: i64,
    pub output: i64,
    pub cache_read: i64,
    pub cache_write: i64,
    pub reasoning: i64,
    pub cost: String,
    /// The part of the cost that is by the table of prices.
    pub priced: String,
    /// The tokens whose cost is unknown.
    pub unpriced: i64,
    /// The cost of each bead that is done, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_done_bead: Option<String>,
}

/// The tokens of a model without a price.
#[derive(Debug, Clone, Serialize)]
pub struct UnpricedDocument {
    pub model: String,
    pub tokens: u64,
}

impl From<&CostLine> for CostLineDocument {
    fn from(line: &CostLine) -> Self {
        let money = |amount: i64| Money(u64::try_from(amount).unwrap_or(0)).to_string();
        let spent = &line.spent;
        Self {
            name: line.name.clone(),
            runs: line.runs,
            beads: line.beads,
            done_beads: line.done_beads,
            tokens: line.tokens(),
            input: spent.input,
            output: spent.output,
            cache_read: spent.cache_read,
            cache_write: spent.cache_write,
            reasoning: spent.reasoning,
            cost: money(spent.cost),
            priced: money(spent.priced),
            unpriced: spent.unpriced,
            cost_per_done_bead: line.cost_of_done_bead().map(|cost| Money(cost).to_string()),
        }
    }
}
