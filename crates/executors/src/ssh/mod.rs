//! Runs on another machine, over `ssh`.
//!
//! # The processes
//!
//! Over there a *supervisor* holds the run's lock and stays with the agent, as a supervisor does here: it goes on when the line
//! breaks, and needs no store. An *attendant* stands at the other end of each line: it has a supervisor take the lock, passes
//! the order on, and then only tells what it sees, which is the same whether the line is the first or the tenth.
//! At home a supervisor has the home lock and the line ([`RemoteRun`]); it alone knows the store.
//!
//! # Invariants
//!
//! - An order is given once, by the supervisor that was granted the run, over the line that took the lock before. So
//!   there is at most one agent, even if a line or a machine breaks.
//! - A machine that cannot be reached says nothing about a run. It is asked again; nothing is started elsewhere meanwhile.
//! - Nothing of the store goes over the line. The agent's `gt` and `bd` commands are executed at home.

mod attendant;
mod calls;
mod connection;
mod exchange;
mod follow;
mod protocol;
mod remote_run;
mod remote_supervisor;
mod site;

pub use attendant::{RemoteMachine, attend};
pub use calls::HomeCommands;
pub use connection::{SshConnection, SshConnectionError};
pub use protocol::{FromHome, FromThere, Hello, RemoteOrder, RemoteReady, RemoteRunEnd, RunPlace};
pub use remote_run::{RemoteRun, RemoteRunOutcome, RemoteRunReply, begin, order};
pub use remote_supervisor::keep;
pub use site::{RemoteRunRecord, RemoteSite};
