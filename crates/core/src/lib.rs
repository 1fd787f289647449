//! Domain types and pure decisions.
//!
//! # Architecture invariants
//!
//! - Nothing here reads a file, a clock, the environment or the network. The current time is an
//!   argument; everything a decision needs is an argument.
//! - Everything that needs thought lives in [`decide`]; the rest of the product fetches facts for it
//!   and writes down the answer.
//! - The wire format is not known here. [`Json`] is opaque text that happens to be valid JSON. Only the payloads of
//!   [`event`] know how they stand in the log.

pub mod bead;
pub mod board;
pub mod checks;
pub mod command_template;
pub mod command_wrap;
pub mod convoy_graph;
pub mod cost;
pub mod decide;
pub mod event;
pub mod formula;
pub mod hexadecimal;
pub mod histogram;
pub mod hosting;
pub mod inbox;
mod jitter;
pub mod json;
pub mod latency;
pub mod limits;
pub mod merging;
pub mod message;
pub mod networks;
pub mod plan;
pub mod port_range;
pub mod query;
pub mod queue_block;
pub mod record_merge;
pub mod rig;
pub mod runtime;
pub mod schedule;
pub mod screen;
pub mod secret_mask;
pub mod server_events;
pub mod settings;
pub mod similar_names;
pub mod time;
pub mod web_address;
pub mod words;
pub mod work;

pub use bead::{
    Bead, BeadId, Carried, Comment, Dependency, DependencyType, IssueType, Outcome, Priority,
    Status, Title, Uid,
};
pub use event::{BeadChangeKind, Event, EventKind, EventPayload, NewEvent};
pub use jitter::jitter;
pub use json::Json;
pub use message::{Message, MessageAddress, MessageId, Sender};
pub use networks::Networks;
pub use rig::{ExecutorKind, Prefix, Rig, RigSlug, RigState};
pub use schedule::{Context, Run, RunId, RunState};
pub use time::{Clock, Timestamp};
pub use web_address::WebAddress;

/// A value from outside that does not have the shape its type demands.
///
/// The message is a complete sentence fragment that names the value and a correct one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Invalid {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
