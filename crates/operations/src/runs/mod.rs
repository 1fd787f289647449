//! Runs: what becomes of them after they have their slot.

mod cancel;
mod claim;
mod conclude;
mod finish;
mod insist;
mod left_over;
mod output;
mod prompt;
mod recover;
mod release;
mod remote;
mod sessions;
mod settle;
mod show;
mod spawner;
mod supervise;
mod typing;
mod unsling;
mod usage;
mod wait;
mod workbench;
mod world;

pub use cancel::{Cancelled, cancel, cancel_by_force, cancel_in_world};
pub(crate) use cancel::{cancel_in, end_in_world};
pub use gt_executors::runs::{ARRIVED, speak_into};
pub use gt_executors::terminal::become_agent;

pub use claim::{Claim, WorkOrder, claim};
pub(crate) use finish::finish_in;
pub use finish::{Finished, exec_failed, finish};
pub use output::RunOutput;
pub use recover::{Recovered, recover};
pub(crate) use release::{release_as, release_in};
pub use remote::{attend_line, called_from, keep_run};
pub(crate) use remote::{check_host, check_rig};
pub(crate) use show::resolve_run;
pub use show::{Elsewhere, ListedRun, RunFilter, ShownRun, list, log_path, resolve, show};
pub use spawner::RunSpawner;
pub(crate) use spawner::session_server;
pub use supervise::{say_failed, supervise, supervise_all};
pub use typing::{TypedPrompt, type_prompt};
pub use unsling::{Unslung, unsling};
pub use usage::note_usage;
pub use wait::{Notice, Progress, WaitRequest, Waited, Watched, wait};
pub use world::{Alive, RealWorld, World};
pub(crate) use world::{STRAY_GRACE, host_of};
