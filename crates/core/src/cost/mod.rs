//! The usage of models by runs, and its cost.

mod booking;
mod counted;
mod prices;
mod record;
mod report;
mod spent;
mod telemetry;
mod window;

pub use booking::{Booking, SpendingChange, book};
pub use counted::{CostSource, CountedUsage, UsageTotals, counted, totals};
pub use prices::{Price, PriceTable};
pub use record::{TokenCounts, UsageRecord, UsageSource};
pub use report::{CostGrouping, CostLine, SpentItem, cost_report};
pub use spent::Spent;
pub use telemetry::{RUN_ATTRIBUTE, RequestUsage, TelemetryUsage, usage_in_logs};
pub use window::{SeenWindow, UsageWindow};
