//! Putting a damaged repository right without losing anything: parts of it are moved aside, never deleted.

use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::call::GitCall;
use super::commit::Commit;
use super::error::GitError;
use super::links::replace;
use super::own_repository;
use super::repository::{BRANCHES_HERE, HEAD_OF_ORIGIN, Repository};
use super::repository_view::CommonDirectoryView;
use super::scratch::{maker_is_alive, unique_name};

/// The directories that git and a view expect in the shared repository.
const DIRECTORIES: [&str; 6] = ["objects/info", "refs", "info", "worktrees", "logs", "lfs"];

/// The index files of trees that were left by a killed process are removed after this many seconds.
const STALE_INDEX_SECONDS: u64 = 24 * 60 * 60;

/// How long git may take to open a repository and list its references.
const CHECK_TIME_MAX: Duration = Duration::from_secs(20);

impl Repository {
    /// Names the missing part of the repository, without asking git. A repository that was not made
    /// yet, or is being made or repaired by a process, has no problem.
    pub fn visible_problem(&self) -> Option<String> {
        self.visible_damage()?;
        // While this lock is held, no process is in the middle of making the repository.
        let directory = self.directory().ok();
        match directory.as_ref().map(File::try_lock_shared) {
            Some(Err(TryLockError::WouldBlock)) => None,
            _ => self.visible_damage(),
        }
    }

    fn visible_damage(&self) -> Option<String> {
        let (shared, own) = (self.path().to_owned(), self.own_path());
        // The one of ours is made with the next fetch.
        let made = [&shared, &own].into_iter().filter(|at| at.symlink_metadata().is_ok());
        let made: Vec<&PathBuf> = match made.collect::<Vec<_>>().as_slice() {
            [] => return None,
            [only] if *only == &shared => vec![&shared],
            _ => vec![&shared, &own],
        };
        let parts = ["HEAD", "config"];
        let files = made.into_iter().flat_map(|at| parts.map(|part| at.join(part)));
        let mut damaged = files.filter(|file| is_empty(file));
        damaged.next().map(|file| format!("{} is missing or empty", file.display()))
    }

    /// Names the problem of the repository, if there is one. Nothing is changed.
    pub fn problem(&self) -> Option<String> {
        let shown = self.path().display();
        if let Some(problem) = self.visible_problem() {
            return Some(problem);
        }
        if !self.exists() {
            return None;
        }
        if let Err(error) = is_readable(&self.own_path()) {
            return Some(format!("{}: {error}", self.own_path().display()));
        }
        let error = is_readable(self.path()).err();
        let error = error.map(|error| format!("{shown}: {error}"));
        error.or_else(|| self.damaged_objects()).or_else(|| self.missing_objects())
    }

    fn damaged_objects(&self) -> Option<String> {
        let damaged = self.unreadable_objects();
        let first = damaged.first()?;
        Some(format!(
            "{} object files cannot be read, for example {}",
            damaged.len(),
            first.display()
        ))
    }

    /// Files of objects, here and in our own repository, that begin as no such file does. A power failure leaves files that are
    /// empty or full of zeros.
    fn unreadable_objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for repository in [self.path(), &self.own_path()] {
            for directory in children(&repository.join("objects")) {
                found.extend(children(&directory).into_iter().filter(|file| !is_object_file(file)));
            }
        }
        found
    }

    /// Does something that reads objects, and does it once more if some of them had to be repaired.
    pub(super) fn with_readable_objects<T>(
        &self,
        work: impl Fn() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        match work() {
            Err(GitError::Failed { .. }) if self.repair_objects()? => work(),
            done => done,
        }
    }

    /// Moves the files of unreadable objects aside, and brings the objects of the origin once more. Says whether there were
    /// such files.
    fn repair_objects(&self) -> Result<bool, GitError> {
        let _turn = self.repairing()?;
        let damaged = self.unreadable_objects();
        if damaged.is_empty() {
            return Ok(false);
        }
        // A fetch leaves out what the references of a repository claim to be there, so that a new one is needed.
        let half = self.beside("own.objects");
        own_repository::discard(&half)?;
        own_repository::init(&half, &self.object_format()?)?;
        own_repository::fetch(&half, &self.origin()?)?;
        for file in &damaged {
            move_aside(file)?;
        }
        let objects = self.own_path().join("objects");
        for directory in children(&half.join("objects")) {
            let target = objects.join(directory.file_name().unwrap_or_default());
            fs::create_dir_all(&target).map_err(GitError::file("make", &target))?;
            for file in children(&directory) {
                let target = target.join(file.file_name().unwrap_or_default());
                fs::rename(&file, &target).map_err(GitError::file("move", &file))?;
            }
        }
        own_repository::discard(&half)?;
        Ok(true)
    }

    /// Lets one process at a time repair the repository.
    fn repairing(&self) -> Result<File, GitError> {
        let parent = self.parent();
        fs::create_dir_all(parent).map_err(GitError::file("make", parent))?;
        let turn = self.directory()?;
        turn.lock().map_err(GitError::file("lock", parent))?;
        Ok(turn)
    }

    fn parent(&self) -> &Path {
        self.path().parent().unwrap_or(Path::new("/"))
    }

    fn directory(&self) -> Result<File, GitError> {
        File::open(self.parent()).map_err(GitError::file("open", self.parent()))
    }

    /// A branch of a worker whose commit is not there.
    fn missing_objects(&self) -> Option<String> {
        let branches = self.references("refs/heads/").ok()?;
        let input: String = branches.iter().fold(String::new(), |mut text, (_, commit)| {
            let _ = writeln!(text, "{commit}");
            text
        });
        let call = self.call("look for commits").ok()?;
        let output = call.args(["cat-file", "--batch-check"]).input(input).done().ok()?;
        let text = String::from_utf8_lossy(&output).into_owned();
        let lost = text.lines().find_map(|line| line.strip_suffix(" missing"))?;
        let (name, _) = branches.iter().find(|(_, commit)| commit.as_str() == lost)?;
        Some(format!("{name} names {lost}, which is not there"))
    }

    /// Makes the repository, and the one of ours, as far as they are missing or git cannot read
    /// them. Branches, trees and objects that can be read stay; the rest comes from the origin.
    /// Damaged files are moved aside.
    pub fn repair(&self) -> Result<(), GitError> {
        if self.is_whole() {
            return self.complete();
        }
        // A process that was killed may have left it half made.
        let _turn = self.repairing()?;
        self.make_own()?;
        self.make_shared()?;
        self.complete()?;
        self.make_readable()
    }

    fn is_whole(&self) -> bool {
        self.exists()
            && self.visible_damage().is_none()
            && is_readable(&self.own_path()).is_ok()
            && is_readable(self.path()).is_ok()
    }

    fn make_own(&self) -> Result<(), GitError> {
        let path = self.own_path();
        if path.join("HEAD").is_file() && is_readable(&path).is_ok() {
            return Ok(());
        }
        move_aside(&path)?;
        let half = self.beside("own.cloning");
        own_repository::discard(&half)?;
        let made = own_repository::fill(&half, &self.origin()?, self)
            .and_then(|()| fs::rename(&half, &path).map_err(GitError::file("make", &path)));
        if made.is_err() {
            own_repository::discard(&half)?;
        }
        made
    }

    fn make_shared(&self) -> Result<(), GitError> {
        let path = self.path();
        if path.is_dir() {
            return Ok(());
        }
        move_aside(path)?;
        let half = self.beside("cloning");
        own_repository::discard(&half)?;
        let made = own_repository::init(&half, &self.object_format()?)
            .and_then(|()| fs::rename(&half, path).map_err(GitError::file("make", path)));
        if made.is_err() {
            own_repository::discard(&half)?;
        }
        made?;
        self.complete()?;
        self.keep_remote()?;
        self.show_origin()?;
        // The saved commits of runs get their references again.
        let saved = self.own_call("list what was saved").args(["for-each-ref"]);
        let saved = saved.args(["--format=create %(refname) %(objectname)", "refs/gt/"]).done()?;
        if !saved.is_empty() {
            self.call("show what was saved")?
                .args(["update-ref", "--stdin"])
                .input(saved)
                .done()?;
        }
        let mut head = self.own_call("find the usual branch").args(["symbolic-ref", "--quiet"]);
        head = head.arg(HEAD_OF_ORIGIN);
        let head = String::from_utf8_lossy(&head.answer()?.output).trim().to_owned();
        if head.starts_with(BRANCHES_HERE) {
            self.call("note the usual branch")?
                .args(["symbolic-ref", HEAD_OF_ORIGIN, &head])
                .done()?;
        }
        Ok(())
    }

    /// Sees to the parts that cost nothing to look at: directories, the view, borrowed objects.
    fn complete(&self) -> Result<(), GitError> {
        for name in DIRECTORIES {
            let directory = self.path().join(name);
            if !directory.is_dir() {
                fs::create_dir_all(&directory).map_err(GitError::file("make", &directory))?;
            }
        }
        self.keep_objects()?;
        let own = self.own_path();
        let configuration = own.join("config");
        let mut configuration =
            fs::read(&configuration).map_err(GitError::file("read", &configuration))?;
        // git-lfs gets the contents of files from there.
        configuration.extend_from_slice(remote_section(&self.origin()?).as_bytes());
        CommonDirectoryView::keep(&self.view_path(), self.path(), &configuration)?;
        // The contents of large files are kept once.
        let large = own.join("lfs");
        if large.symlink_metadata().is_err() {
            let target = self.path().join("lfs");
            std::os::unix::fs::symlink(&target, &large).map_err(GitError::file("make", &large))?;
        }
        let indexes = self.indexes_path();
        fs::create_dir_all(&indexes).map_err(GitError::file("make", &indexes))?;
        forget_left_indexes(&indexes);
        Ok(())
    }

    /// Lets the shared repository borrow objects from ours, and from no other.
    pub(super) fn keep_objects(&self) -> Result<(), GitError> {
        use std::os::unix::ffi::OsStrExt as _;
        let objects = self.own_path().join("objects");
        let wanted = [objects.as_os_str().as_bytes(), b"\n"].concat();
        let file = self.path().join("objects/info/alternates");
        if fs::read(&file).is_ok_and(|present| present == wanted) {
            return Ok(());
        }
        replace(&file, &wanted)
    }

    /// Puts the parts of the shared repository right that git cannot read, as workers call it.
    fn make_readable(&self) -> Result<(), GitError> {
        let head = self.path().join("HEAD");
        let text = fs::read_to_string(&head).unwrap_or_default();
        if !text.starts_with("ref: refs/") && Commit::parse(text.trim()).is_none() {
            move_aside(&head)?;
            replace(&head, b"ref: refs/heads/main\n")?;
        }
        // Through the view, only references can be wrong.
        if self.references("refs/").is_err() {
            let packed = self.path().join("packed-refs");
            let list = fs::read(&packed).unwrap_or_default();
            move_aside(&packed)?;
            self.restore_packed(&list)?;
        }
        let config = self.path().join("config");
        if is_empty(&config) || is_readable(self.path()).is_err() {
            move_aside(&config)?;
            fs::copy(self.own_path().join("config"), &config)
                .map_err(GitError::file("write", &config))?;
            self.keep_remote()?;
        }
        is_readable(self.path())
    }

    /// Writes the references again that a damaged list names, as far as their commits are there.
    fn restore_packed(&self, list: &[u8]) -> Result<(), GitError> {
        let text = String::from_utf8_lossy(list);
        for line in text.lines() {
            let Some((hash, name)) = line.split_once(' ') else { continue };
            let Some(commit) = Commit::parse(hash).filter(|_| name.starts_with("refs/")) else {
                continue;
            };
            let mut call = self.call(format!("write {name} again"))?;
            // One that stands alone is newer than the list.
            call = call.args(["update-ref", "-m", "gt"]).arg(name).arg(commit.as_str()).arg("");
            call.answer_once()?;
        }
        Ok(())
    }

    fn object_format(&self) -> Result<String, GitError> {
        let call = self.own_call("read the format").args(["rev-parse", "--show-object-format"]);
        Ok(String::from_utf8_lossy(&call.done()?).trim().to_owned())
    }
}

/// Whether git, called with the repository's own configuration, opens a repository and reads its references.
fn is_readable(repository: &Path) -> Result<(), GitError> {
    GitCall::on(repository, "read it")
        .args(["for-each-ref", "--format=%(refname)"])
        // A configuration may include a pipe.
        .limited(CHECK_TIME_MAX)
        .done()
        .map(drop)
}

/// The remote `origin` as a section of a configuration.
fn remote_section(origin: &str) -> String {
    let value = origin.replace('\\', "\\\\").replace('"', "\\\"");
    format!("[remote \"origin\"]\n\turl = \"{value}\"\n")
}

fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Whether a file begins as its kind does: a loose object is a zlib stream, a pack and its index have a signature. Other files
/// are not judged.
fn is_object_file(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_loose = name.len() >= 38 && name.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_pack = name.starts_with("pack-") && name.ends_with(".pack");
    let is_index = name.starts_with("pack-") && name.ends_with(".idx");
    if !is_loose && !is_pack && !is_index {
        return true;
    }
    let mut start = [0; 4];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut start));
    if let Err(error) = read {
        // One that has just gone is not damaged.
        return error.kind() == ErrorKind::NotFound;
    }
    if is_loose {
        let [first, second, ..] = start;
        return first & 0x0f == 8 && u16::from_be_bytes([first, second]) % 31 == 0;
    }
    &start == if is_pack { b"PACK" } else { b"\xfftOc" }
}

/// Whether a file is missing or has nothing in it.
fn is_empty(file: &Path) -> bool {
    fs::metadata(file).map_or(0, |file| file.len()) == 0
}

/// Gives something another name beside itself, if it is there.
fn move_aside(path: &Path) -> Result<(), GitError> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = path.with_file_name(unique_name(&format!("{name}.damaged")));
    fs::rename(path, &aside).map_err(GitError::file("move", path))
}

/// Removes the index files of killed processes. The age alone does not tell: a clock that jumps makes every file old.
fn forget_left_indexes(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|file| file.modified()).ok();
        let age = age.and_then(|modified| modified.elapsed().ok());
        let is_old = age.is_some_and(|age| age.as_secs() > STALE_INDEX_SECONDS);
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("use-") && is_old && !maker_is_alive(&name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_of_dead_processes_alone_are_forgotten_whatever_the_clock_says() {
        let directory = tempfile::tempdir().unwrap();
        let make = |name: String| {
            let path = directory.path().join(name);
            let file = File::create(&path).unwrap();
            let made = file.metadata().unwrap().modified().unwrap();
            file.set_modified(made - Duration::from_secs(2 * STALE_INDEX_SECONDS)).unwrap();
            path
        };
        let used = make(unique_name("use-index"));
        // No process has a number this large.
        let left = make("use-index-7fffffff-0badcafe-0".to_owned());
        let kept = make("nux-1a2b-0badcafe-0".to_owned());

        forget_left_indexes(directory.path());

        assert!(used.exists() && kept.exists() && !left.exists());
    }
}
