//! Where a run keeps its files, and the lock that says whether it lives.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_core::Timestamp;
use rustix::io::{FdFlags, fcntl_setfd};

use crate::private;

/// The files of one run. Nothing is read or made until it is asked for.
///
/// They stand beside those of other runs: a directory for each would cost more than all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFiles {
    root: PathBuf,
    /// The prefix of their names.
    name: PathBuf,
}

/// Whether something of a run is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// Its lock is held: the supervisor, the agent, or something that the agent started is there.
    Held,
    /// Its lock file exists, and no process holds the lock.
    Free,
    /// No supervisor has come as far as the lock.
    NeverTaken,
}

/// The lock of a run, held. Programs that are started while it is held do not get it; the agent does.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

/// The right to type into the terminal of an agent. One process has it at a time; none while there
/// is no agent or it has not got its prompt.
#[derive(Debug)]
pub struct Keyboard {
    file: File,
}

/// How often, and how long apart, a lock is tried again. A process that asks for the liveness of a
/// run holds its lock for a moment, and that moment must not turn its supervisor away.
const LOCK_TRIES_MAX: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// How often, and how long apart, the right to type is tried to be had: longer than it takes to type anything.
const KEYBOARD_TRIES_MAX: u32 = 1500;
const KEYBOARD_PAUSE: Duration = Duration::from_millis(20);

impl RunFiles {
    /// The files of this run (`gt-abc#3`) among those of a town.
    pub fn of(runs_root: &Path, run: &str) -> Self {
        Self { root: runs_root.to_owned(), name: file_name(run) }
    }

    /// Makes the directory for them, if it is not there yet.
    pub fn create(&self) -> io::Result<()> {
        private::create_dir_all(self.lock_path().parent().unwrap_or(&self.root))
    }

    /// The directory of all runs.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The prefix of the names of the files, unique to the run.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    fn file(&self, ending: &str) -> PathBuf {
        let mut path = self.root.join(&self.name).into_os_string();
        path.push(ending);
        path.into()
    }

    /// The file whose lock is that of the run, and which names the agent while there is one. It stays for
    /// ever.
    pub fn lock_path(&self) -> PathBuf {
        self.file(".lock")
    }

    /// Everything that the agent printed.
    pub fn output_path(&self) -> PathBuf {
        self.file(".log")
    }

    /// The output of the setup command of the tree, if it failed.
    pub fn setup_path(&self) -> PathBuf {
        self.file(".setup")
    }

    /// When the agent printed something last, if it ever did.
    pub fn last_output(&self) -> io::Result<Option<Timestamp>> {
        changed_at(&self.output_path())
    }

    /// Where the complaints of all supervisors go.
    pub fn supervisor_log_path(&self) -> PathBuf {
        self.root.join("supervisors.log")
    }

    /// Where a supervisor writes that has no pipe to the process which started it.
    pub fn voice_path(&self) -> PathBuf {
        self.file(".voice")
    }

    /// The prompt of an agent that reads it from a file.
    pub fn prompt_path(&self) -> PathBuf {
        self.file(".prompt")
    }

    /// The environment of the supervisor, for our git where a worker calls us.
    pub fn environment_path(&self) -> PathBuf {
        self.file(".environment")
    }

    /// The token by which the worker proves its run.
    pub fn token_path(&self) -> PathBuf {
        self.file(".token")
    }

    /// Where a supervisor can be spoken to while its agent runs.
    pub fn control_path(&self) -> PathBuf {
        self.file(".control")
    }

    /// Where the commands of the worker are carried out.
    pub fn socket_path(&self) -> PathBuf {
        self.file(".socket")
    }

    /// Waits until nothing of the run is alive. Only for runs whose lock was taken.
    pub fn wait_until_free(&self) -> io::Result<()> {
        wait_until_unlocked(&self.lock_path())
    }

    /// The file whose lock is the right to type into the terminal of the agent.
    fn typing_path(&self) -> PathBuf {
        self.file(".typing")
    }

    fn typing_file(&self) -> io::Result<File> {
        let path = self.typing_path();
        private::options().write(true).create(true).truncate(false).open(path)
    }

    /// Takes the right to type into the terminal of the agent, after the present holder. Holders
    /// keep it only briefly; one that was stopped in the middle does not keep an agent from its
    /// work.
    pub(super) fn take_keyboard(&self) -> io::Result<Keyboard> {
        let file = self.typing_file()?;
        for _ in 0..KEYBOARD_TRIES_MAX {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => std::thread::sleep(KEYBOARD_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(Keyboard { file })
    }

    /// Takes the right to type into the terminal of the agent, unless another process has it.
    pub fn try_keyboard(&self) -> io::Result<Option<Keyboard>> {
        let file = self.typing_file()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Keyboard { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether something of the run is alive.
    ///
    /// A supervisor makes the file a moment before it takes the lock, so [`Liveness::Free`] says that a run
    /// is over only if it was known to have been claimed.
    pub fn liveness(&self) -> io::Result<Liveness> {
        let file = match File::open(self.lock_path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Liveness::NeverTaken);
            }
            opened => opened?,
        };
        // Shared, so that two processes that ask at once do not take each other for the run.
        match file.try_lock_shared() {
            Ok(()) => Ok(Liveness::Free),
            Err(TryLockError::WouldBlock) => Ok(Liveness::Held),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the lock of the run, unless something of the run is alive already. Makes the files.
    pub fn try_lock(&self) -> io::Result<Option<RunLock>> {
        let open = || {
            private::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(self.lock_path())
        };
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create()?;
                open()?
            }
            opened => opened?,
        };
        for _ in 0..LOCK_TRIES_MAX {
            match file.try_lock() {
                Ok(()) => return Ok(Some(RunLock { file })),
                // If the lock cannot even be shared, its holder is not merely asking.
                Err(TryLockError::WouldBlock) => match file.try_lock_shared() {
                    Err(TryLockError::WouldBlock) => return Ok(None),
                    Err(TryLockError::Error(error)) => return Err(error),
                    Ok(()) => {
                        file.unlock()?;
                        std::thread::sleep(LOCK_PAUSE);
                    }
                },
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Waits until no process holds the lock of this file.
pub fn wait_until_unlocked(lock: &Path) -> io::Result<()> {
    // Shared, and given back at once: a process that asks meanwhile is not kept from anything.
    let file = File::open(lock)?;
    file.lock_shared()?;
    file.unlock()
}

impl Keyboard {
    /// Hands the right over to the process that `start` starts, until that has ended.
    pub(super) fn handed_to<T>(self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        inherited(&self.file, start)
    }
}

/// Lets the process that `start` starts inherit a file.
fn inherited<T>(file: &File, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    fcntl_setfd(file, FdFlags::empty())?;
    let started = start();
    fcntl_setfd(file, FdFlags::CLOEXEC)?;
    started
}

impl RunLock {
    /// Lets the process that `start` starts inherit the lock.
    pub(super) fn inherited<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        inherited(&self.file, start)
    }

    /// Whether the files of the run were deleted, as with the directory of their town. No process can find the run any
    /// more then, or speak to it. Files that were moved are not deleted.
    pub fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
    }

    /// Replaces the contents of the lock file with a text for other processes.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }
}

/// The suffixes of the files of a run; the lock comes last, so that it is removed last.
const ENDINGS: [&str; 12] = [
    ".log",
    ".setup",
    ".voice",
    ".prompt",
    ".environment",
    ".prepared",
    ".control",
    ".remote",
    ".unreachable",
    ".socket",
    ".typing",
    ".lock",
];

/// The runs that have files among those of a town, each with the time at which one of them was last written to.
pub fn runs_with_files(runs_root: &Path) -> io::Result<Vec<(String, Timestamp)>> {
    let mut found = BTreeMap::new();
    collect_runs(runs_root, "", &mut found)?;
    Ok(found.into_iter().collect())
}

fn collect_runs(
    directory: &Path,
    before: &str,
    found: &mut BTreeMap<String, Timestamp>,
) -> io::Result<()> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if let Some(part) = name.strip_suffix('+').filter(|_| entry.path().is_dir()) {
            collect_runs(&entry.path(), &format!("{before}{part}"), found)?;
            continue;
        }
        let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
        let run = stem.and_then(|stem| run_named(&format!("{before}{stem}")));
        if let (Some(run), Some(at)) = (run, changed_at(&entry.path())?) {
            let last = found.entry(run).or_insert(at);
            *last = (*last).max(at);
        }
    }
    Ok(())
}

/// The run whose files have this name: the opposite of [`file_name`]. Nothing that is no name of a run is taken for one.
fn run_named(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'%', [b'.', ..]) => {}
            (b'%', [one, two, after @ ..]) => {
                let digits = [*one, *two];
                bytes.push(u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?);
                rest = after;
            }
            _ => bytes.push(*byte),
        }
    }
    let run = String::from_utf8(bytes).ok()?;
    (file_name(&run).to_str().map(|path| path.replace("+/", "")) == Some(name.to_owned()))
        .then_some(run)
}

impl RunFiles {
    /// Removes all files of a run that is over; `false` if something of it is alive.
    pub fn remove(&self) -> io::Result<bool> {
        // Nothing of a run that has its lock is taken away.
        let Some(_lock) = self.try_lock()? else { return Ok(false) };
        for ending in ENDINGS {
            match std::fs::remove_file(self.file(ending)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(true)
    }
}

/// File names of this many bytes are possible everywhere.
const NAME_BYTES_MAX: usize = 200;

/// The name of a run as a path. Different runs have different names, also where capitals do not
/// count, and none is inside another. A byte that is not a small letter, a digit or harmless
/// becomes `%` and its number; a name that is too long is cut, and each part that is continued ends
/// with `+`.
fn file_name(run: &str) -> PathBuf {
    let mut name = String::with_capacity(run.len());
    for (at, byte) in run.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'#' => name.push(char::from(byte)),
            b'.' if at > 0 => name.push('.'),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(name, "%{byte:02x}");
            }
        }
    }
    if name.is_empty() {
        name.push('%');
    }
    let mut path = PathBuf::new();
    let mut rest = name.as_str();
    while rest.len() > NAME_BYTES_MAX {
        let (part, later) = rest.split_at(NAME_BYTES_MAX);
        path.push(format!("{part}+"));
        rest = later;
    }
    // A part that begins in the middle of a run could be one of the names that mean a files.
    path.push(if rest.starts_with('.') { format!("%{rest}") } else { rest.to_owned() });
    path
}

/// When a file was written to last, if it is there.
fn changed_at(path: &Path) -> io::Result<Option<Timestamp>> {
    let modified = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?.modified()?,
    };
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(Some(Timestamp::from_nanos(0).plus(since)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn name(run: &str) -> String {
        file_name(run).to_str().unwrap().to_owned()
    }

    #[test]
    fn the_usual_run_is_named_as_it_is() {
        assert_eq!(name("gt-abc.3#12"), "gt-abc.3#12");
        assert_eq!(name("my_app-x1#1"), "my_app-x1#1");
    }

    #[test]
    fn unsafe_characters_are_escaped() {
        for (run, expected) in [
            ("gt-a/b#1", "gt-a%2fb#1"),
            ("GT-a#1", "%47%54-a#1"),
            ("gt-a%2fb#1", "gt-a%252fb#1"),
            ("..", "%2e."),
            ("../../x", "%2e.%2f..%2fx"),
            ("", "%"),
            ("gt-ä", "gt-%c3%a4"),
        ] {
            assert_eq!(name(run), expected);
        }
    }

    #[test]
    fn a_name_that_is_too_long_becomes_several() {
        let name = name(&format!("gt-{}#1", "A".repeat(197)));
        assert!(name.split('/').all(|part| part.len() <= NAME_BYTES_MAX + 1), "{name}");
        assert_eq!(name.split('/').count(), 3);
        let dots = file_name(&format!("{}..", "a".repeat(NAME_BYTES_MAX)));
        assert!(dots.ends_with("%.."), "{}", dots.display());
    }

    proptest! {
        #[test]
        fn different_runs_have_different_names(
            runs in prop::collection::hash_set("[aA%./#+2f-]{0,6}|[aA./%]{195,206}", 2..40)
        ) {
            let mut seen: HashMap<String, String> = HashMap::new();
            for run in runs {
                let small = name(&run).to_lowercase();
                if let Some(other) = seen.insert(small.clone(), run.clone()) {
                    prop_assert!(false, "{run} and {other} are both {small}");
                }
            }
            for one in seen.keys() {
                let inside = seen.keys().find(|other| other.starts_with(&format!("{one}/")));
                prop_assert_eq!(inside, None, "inside {}", one);
            }
        }

        #[test]
        fn no_name_leads_out_of_the_directory(run in any::<String>()) {
            for part in file_name(&run).components() {
                prop_assert!(matches!(part, std::path::Component::Normal(_)), "{run}");
            }
        }
    }

    #[test]
    fn a_lock_is_never_taken_then_held_then_free() {
        let town = tempfile::tempdir().unwrap();
        let files = RunFiles::of(&town.path().join(".gt/runs"), "gt-abc#3");
        assert_eq!(files.liveness().unwrap(), Liveness::NeverTaken);

        let lock = files.try_lock().unwrap().expect("the lock is free");
        assert_eq!(files.liveness().unwrap(), Liveness::Held);
        assert!(files.try_lock().unwrap().is_none());

        drop(lock);
        // A test beside this one may be starting a program, which holds all our files until it has begun.
        gt_testkit::wait_until("the lock is free", || files.liveness().unwrap() == Liveness::Free);
        assert!(files.lock_path().exists());
    }

    #[test]
    fn only_one_types_at_a_time() {
        let town = tempfile::tempdir().unwrap();
        let files = RunFiles::of(town.path(), "gt-abc#3");
        let keyboard = files.take_keyboard().unwrap();
        assert!(files.try_keyboard().unwrap().is_none());
        drop(keyboard);
        // A test beside this one may be starting a program, which holds all our files until it has begun.
        gt_testkit::wait_until("the keyboard is free", || files.try_keyboard().unwrap().is_some());
    }

    #[test]
    fn a_liveness_check_does_not_block_a_supervisor() {
        let town = tempfile::tempdir().unwrap();
        let files = RunFiles::of(town.path(), "gt-abc#3");
        drop(files.try_lock().unwrap());
        let asker = File::open(files.lock_path()).unwrap();
        asker.try_lock_shared().unwrap();
        std::thread::scope(|scope| {
            let supervisor = scope.spawn(|| files.try_lock().unwrap().is_some());
            // However long the supervisor has been trying when the one who asks lets go.
            asker.unlock().unwrap();
            assert!(supervisor.join().unwrap());
        });
    }

    #[test]
    fn the_runs_that_have_files_are_found_by_their_names_and_their_files_are_removed() {
        let town = tempfile::tempdir().unwrap();
        let long = format!("we-{}.a#1", "x".repeat(450));
        let names = ["we-a.1#2", "WE-A#1", "we-b#1", long.as_str()];
        for name in names {
            let files = RunFiles::of(town.path(), name);
            drop(files.try_lock().unwrap().unwrap());
            std::fs::write(files.output_path(), "said").unwrap();
        }
        for other in ["supervisors.log", "notes"] {
            std::fs::write(town.path().join(other), "").unwrap();
        }
        let found = || -> Vec<String> {
            let found = runs_with_files(town.path()).unwrap();
            found.into_iter().map(|(run, _)| run).filter(|run| run.contains('#')).collect()
        };
        let mut expected = names.map(str::to_owned);
        expected.sort();
        assert_eq!(found(), expected);

        let held = RunFiles::of(town.path(), "we-b#1");
        let lock = held.try_lock().unwrap();
        for name in names {
            assert_eq!(RunFiles::of(town.path(), name).remove().unwrap(), name != "we-b#1");
        }
        assert_eq!(found(), ["we-b#1"]);
        drop(lock);
        assert!(held.remove().unwrap());
        assert_eq!(found(), [] as [String; 0]);
        assert!(town.path().join("supervisors.log").exists());
    }

    proptest::proptest! {
        #[test]
        fn every_run_is_found_by_the_name_of_its_files(run in "[a-zA-Z0-9._#-]{1,40}|[a-z.]{190,260}|.{1,20}") {
            let name = file_name(&run).to_str().unwrap().replace("+/", "");
            proptest::prop_assert_eq!(run_named(&name), Some(run));
        }
    }
}
