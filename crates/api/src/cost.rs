//! The cost of runs.

use gt_core::cost::{CostLine, CountedUsage};
use gt_core::schedule::Money;
use serde::Serialize;
use utoipa::ToSchema;

/// Spending, grouped as the request asks.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CostDocument {
    pub by: String,
    pub lines: Vec<CostLineDocument>,
    pub total: CostLineDocument,
    /// Models without a price, with their tokens.
    pub unpriced: Vec<UnpricedDocument>,
    /// How many beads were done in that time whose agents reported no usage.
    pub done_without_usage: u64,
    /// When the built-in prices were looked up.
    pub prices_as_of: String,
}

/// A line of such a list. Amounts are dollars, as text, so that no digit is lost.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CostLineDocument {
    /// The group of the line; empty for everything that belongs to none.
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
    /// The cost of the beads that are done by their number, if one is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_done_bead: Option<String>,
}

/// The tokens of a model without a price.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct UnpricedDocument {
    pub model: String,
    pub tokens: u64,
}

/// The usage of one model in one session of a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CountedUsageDocument {
    pub session: u64,
    /// The model; empty if no source names it.
    pub model: String,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub reasoning: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// `reported`, `priced` or `unknown`.
    pub cost_source: String,
    /// How many tokens a source has less than the one that counts.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    pub disagreement: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<&CountedUsage> for CountedUsageDocument {
    fn from(usage: &CountedUsage) -> Self {
        Self {
            session: usage.session.into(),
            model: usage.model.clone(),
            input: usage.tokens.input,
            output: usage.tokens.output,
            cache_read: usage.tokens.cache_read,
            cache_write: usage.tokens.cache_write,
            reasoning: usage.tokens.reasoning,
            cost: usage.cost.map(|cost| cost.to_string()),
            cost_source: usage.cost_source.as_str().to_owned(),
            disagreement: usage.disagreement,
        }
    }
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
