//! The processes of git that are at work on this machine.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::links::{canonical, repository_around};

/// Whether a git of this user works on a repository or one of its trees: it stands there, or its command or environment names the
/// directory around the repository. Where the kernel tells of no processes, none does.
pub(super) fn is_git_at_work(repository: &Path) -> bool {
    let repository = canonical(repository);
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    processes.flatten().any(|process| is_git_on(&process.path(), &repository))
}

fn is_git_on(process: &Path, repository: &Path) -> bool {
    let read = |file: &str| fs::read(process.join(file)).unwrap_or_default();
    if !read("comm").starts_with(b"git") {
        return false;
    }
    // A process that has ended stands nowhere.
    let Ok(place) = fs::read_link(process.join("cwd")) else { return false };
    let around = repository.parent().unwrap_or(repository);
    let names = |text: &[u8]| {
        let name = around.as_os_str().as_bytes();
        text.windows(name.len()).any(|window| window == name)
    };
    place.starts_with(around)
        || repository_around(&place).is_some_and(|found| canonical(&found) == repository)
        || names(&read("cmdline"))
        || names(&read("environ"))
}
