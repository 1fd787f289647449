//! Runs, from the moment they have a slot.

mod cancel;
mod conclude;
mod end_dead_run;
mod kept_output;
mod keyboard;
mod launch_spec;
mod lease_watch;
mod left_runs;
mod limits;
pub mod message_delivery;
mod output;
mod prompt;
mod recover;
mod retry_while_unreachable;
mod run_cleanup;
mod screen;
mod service_limit;
mod session_reports;
mod sessions;
mod show;
mod spawner;
pub mod stalls;
mod supervise;
mod telemetry;
mod transcript;
mod typing;
mod unsling;
mod usage;
mod wait;
mod worker_calls;

pub use crate::run_processes::end_processes_of;
pub use cancel::{CancelResult, cancel, cancel_by_force, cancel_with_processes};
pub use gt_executors::calls::{
    CallRequest, CallRunner, CallServer, CallStreams, CallerFile, CallerFiles, CallerOutput,
    OutputStream, WholeFile,
};
pub use gt_executors::git::fence::call_worker_git;
pub use gt_executors::runs::{ARRIVED, speak_into, wait_until_unlocked};
pub use gt_executors::terminal::{BECOME, KeyInput, become_agent};

pub use keyboard::{KeyStrokes, KeysTyped, NamedKey, TYPED_BYTES_MAX, type_keys};
pub use left_runs::clear_left_runs;
pub use output::{KEPT_OUTPUT_WAIT_MAX, OutputElsewhere, RunOutput};
pub use recover::{Recovered, recover};
pub use screen::{RunScreen, ScreenSource};
pub(crate) use screen::{has_screen, session_of_run};
pub(crate) use sessions::head_of;
pub use show::{ListedRun, RunFilter, ShownRun, list, show};
pub use spawner::RunSpawner;
pub(crate) use spawner::session_server;
pub use supervise::{say_away, say_failed, supervise};
pub use transcript::{RunTranscript, has_plain_output};
pub use typing::{TypedPrompt, type_prompt};
pub use unsling::{Unslung, unsling};
pub use usage::book_live_usage;
pub use wait::{BeadProgress, WaitRequest, WaitResult, WaitUpdate, WatchedBead, wait};
pub use worker_calls::{admit_call, call_from_worker};
