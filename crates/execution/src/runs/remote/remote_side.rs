//! The other machine's side: no town, no store.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use gt_executors::ssh::{self, CallError, RemoteMachine};

use crate::trees::path_through;
use gt_town::Environment;

/// Serves a line from home: the command `gt worker remote`. `program` is this program, `home` the directory below
/// which others begin.
pub fn attend_line(program: PathBuf, home: PathBuf) -> io::Result<()> {
    with_us(program, home, ssh::attend)
}

/// Carries out one run for a line from home, and goes on when that breaks: the command `gt worker remote --keep`.
pub fn keep_run(program: PathBuf, home: PathBuf) -> io::Result<()> {
    with_us(program, home, ssh::keep)
}

fn with_us(
    program: PathBuf,
    home: PathBuf,
    work: impl FnOnce(&RemoteMachine<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let ours = program.clone();
    let path_with_us = |directory: &Path| path_through(directory, &ours);
    work(&RemoteMachine { program, home, path_with_us: &path_with_us })
}

/// If this is an agent on another machine that calls `gt` or `bd`, has it done at home and gives its exit status; nothing
/// if it is to be done here.
pub fn called_from(
    environment: &Environment,
    program: &str,
    arguments: &[OsString],
) -> Option<Result<u8, CallError>> {
    let socket = environment.path("GT_REMOTE")?;
    let words = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Some(ssh::call_home(&socket, program, words))
}
