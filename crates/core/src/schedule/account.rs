//! Accounts that runs are charged to.

use crate::Timestamp;

/// An account of an agent's vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its short name.
    pub handle: String,
    /// Where its agent keeps its configuration; empty for nowhere of its own.
    pub config_dir: String,
    /// Variables that its runs get.
    pub environment: Vec<(String, String)>,
    /// Most live runs; 0 for no limit.
    pub max_runs: u32,
    /// Whether runs that name none get this one.
    pub is_default: bool,
    /// When it was added.
    pub created_at: Timestamp,
}
