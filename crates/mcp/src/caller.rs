//! The client of a session, and what it may do.

use std::path::PathBuf;
use std::sync::Arc;

use gt_execution::merge_queue::ProcessOwner;
use gt_town::Town;

/// The set of tools that a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpRole {
    /// The worker of a run: its own work alone.
    Worker,
    /// A person, or a program that acts for one.
    Operator,
}

impl McpRole {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Operator => "operator",
        }
    }
}

/// The rights of an operator besides reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpRights {
    /// Create, schedule, pause and retry.
    pub operate: bool,
    /// Approve and reject finished work.
    pub review: bool,
}

impl McpRights {
    /// Everything.
    pub const ALL: Self = Self { operate: true, review: true };
}

/// The client behind a request.
#[derive(Clone)]
pub struct McpCaller {
    /// Its set of tools.
    pub role: McpRole,
    /// The town as this client may use it: the actor, and for a worker its run.
    pub town: Arc<Town>,
    /// The rights of an operator.
    pub rights: McpRights,
    /// This program, for a client that starts and lands work itself. Without it the daemon does both.
    pub program: Option<PathBuf>,
    /// The run or check that the client's process comes from; nothing for a client whose token says who it is.
    pub process: Option<ProcessOwner>,
    /// The address of the client, as `GT_ROLE` says it.
    pub address: Option<String>,
}

impl std::fmt::Debug for McpCaller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let actor = &self.town.actor().name;
        let mut shown = f.debug_struct("McpCaller");
        shown.field("role", &self.role).field("actor", actor).finish_non_exhaustive()
    }
}
