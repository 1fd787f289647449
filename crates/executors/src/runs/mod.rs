//! Runs in the world: the files and the lock of each, the supervisor around an agent, and how a
//! run is ended.
//!
//! # Invariants
//!
//! - A supervisor enters a control group of its own where it can, so that no process of a run escapes it.
//! - A run is alive while its lock is held. The supervisor takes it, the agent and everything that the
//!   agent starts inherit it, and the kernel frees it when the last of them has ended. No process number
//!   and no clock decides.
//! - Nothing of a run outlives its supervisor's answer, unless it belongs to another user: when the agent
//!   ends, processes that it left running are ended first.
//! - The end of an agent, once its supervisor has seen it, is kept in the file of the lock and outlives the supervisor.
//! - A supervisor whose files were deleted, as with the directory of their town, ends its agent and itself.
//! - A run has one agent at a time, also when it is handed over: the next is begun by the same supervisor under the
//!   same lock, when nothing of the one before is left.
//! - Only a process that is known to belong to a run gets a signal: it holds the lock, is written down, is in the
//!   control group of the run, has the name of the run of this town in its environment, or is both in the session of the
//!   agent and in the tree of the run. A process that is only seen there keeps the run from being started again.

mod agent;
mod agent_watch;
mod bound_command;
mod caller;
mod cgroup;
mod control;
mod end;
mod ended_orphans;
mod files;
mod host;
mod lease;
mod leftovers;
mod marks;
mod orphan;
mod process_ending;
mod processes;
mod prompter;
mod sleep_detection;
mod starter;
mod strays;
mod supervisor;

pub use agent::{Agent, OpenedSession, Reopen, SessionEnd, Supervision};
pub use bound_command::{ATTEND, BoundCommand, CommandOrder, attend_command};
pub use caller::{ProcessOwner, owner_of_peer, owner_of_this_process};
pub(crate) use cgroup::outside_control_group;
pub use cgroup::{control_groups_missing, enter_control_group, sweep_control_groups};
pub use control::{AskResult, ask_to_cancel, ask_to_hand_over, has_listener, tell_done};
pub use end::AgentEnd;
pub use files::{Keyboard, Liveness, RunFiles, RunLock, runs_with_files, wait_until_unlocked};
pub use host::{
    FormerHost, HostIdentity, boot_identity, forget_former_host, host_identity, incarnation,
};
pub use lease::{LeaseFile, since_boot};
pub use leftovers::Leftovers;
pub use marks::ProcessMark;
pub use orphan::{
    RunSignal, UnattendedRun, end_orphan, holders, lost_its_session, signal_run,
    supervisor_at_work, unattended,
};
pub(crate) use processes::{parent_of, start_of};
pub use prompter::{ARRIVED, Prompter};
pub use sleep_detection::awake_since;
pub use starter::{
    StarterLock, is_of_this_process, rebooted_since, starter_is_alive, wait_for_end_of_starter,
};
pub use strays::{Strays, Suspect, end_strays, strays_of};
pub use supervisor::{
    OnEnd, SupervisorAnswer, SupervisorCommand, SupervisorListener, become_detached, is_there, say,
    speak_into,
};
