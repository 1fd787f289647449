//! The daemon's use of the system: its lock, its wake-up socket, signals, its log, the service
//! manager that keeps it running, and the clocks that say whether the machine slept.

mod bell;
mod clocks;
mod launch;
mod lock;
mod log;
mod notify;
mod signals;
mod waiting;

pub use bell::{BellSocket, bell_path, calls_path, ring};
pub use clocks::{ClockJump, ClockWatch};
pub use launch::{LaunchResult, launch, make_room_for_files, open_files_max};
pub use lock::{DaemonLock, LockAttempt, LockHolder, ask_to_end, holder, is_held, wait_until_free};
pub use log::RotatingLog;
pub use notify::{ServiceManager, watchdog_interval};
pub use signals::Signals;
pub use waiting::wait_for_any;
