//! Beads as clients of the work queue see them: a work item, its status and transitions, and the tokens of clients.

mod cursor;
mod filter;
mod item;
mod lease;
mod reference;
mod status;
mod token;
mod transition;

pub use cursor::{Cursor, Position};
pub use filter::{WorkFilter, WorkOrder};
pub use item::{
    DispatchLogEntry, HoldReason, NewWork, Project, Version, WorkItem, WorkPriority, check_agent,
    work_title, work_type,
};
pub use lease::Lease;
pub use reference::{ItemRef, ProjectRef, RunRef};
pub use status::WorkStatus;
pub use token::{
    LOGIN_AGE_MAX, PageProof, RunToken, SESSION_AGE_MAX, SESSION_IDLE_MAX, Scopes, Token,
    TokenHash, TokenId, TokenScope, TokenSecret, TokenUse,
};
pub use transition::{
    AgentChange, ItemHolder, WorkChange, WorkFacts, WorkRefusal, WorkStep, allowed_from, decide,
};
