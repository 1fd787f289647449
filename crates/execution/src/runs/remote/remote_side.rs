//! The other machine's side: no town, no store.

use std::io;
use std::path::{Path, PathBuf};

use gt_executors::ssh::{self, RemoteMachine};

use crate::trees::path_through;

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
