//! The lock of a process that starts runs. A run that is not claimed yet names it, so that a start
//! whose starter is dead can be told from one that takes its time.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use super::host::boot_identity;

/// A starter's lock, held until this value is dropped or the process ends.
#[derive(Debug)]
pub struct StarterLock {
    name: String,
    path: PathBuf,
    // Closing it gives the lock back.
    _file: File,
}

impl StarterLock {
    /// Makes a file with a name that was never used before and locks it.
    pub fn take(directory: &Path) -> io::Result<Self> {
        crate::private::create_dir_all(directory)?;
        loop {
            let process = std::process::id();
            // Process numbers come back; the lock of one that is dead must not seem to be held by another.
            let mut name = format!("{process}-{:016x}", RandomState::new().hash_one(process));
            // Its processes cannot outlive this boot of the machine, and that must be known after
            // the next one.
            if let Some(boot) = boot_identity() {
                name = format!("{name}-{boot}");
            }
            let path = directory.join(&name);
            match crate::private::options().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    // No other process knows the name yet, so the lock is free.
                    file.lock()?;
                    return Ok(Self { name, path, _file: file });
                }
            }
        }
    }

    /// The name that a run records for its starter.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for StarterLock {
    fn drop(&mut self) {
        // A file that stays is removed by the next process that asks for it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether a name is that of a starter in this process.
pub fn is_of_this_process(name: &str) -> bool {
    name.split('-').next() == Some(&std::process::id().to_string()) && !rebooted_since(name)
}

/// Waits until the starter of this name is gone.
pub fn wait_for_end_of_starter(directory: &Path, name: &str) -> io::Result<()> {
    if !is_name(name) {
        return Ok(());
    }
    // Shared, and given back at once, so that it does not block other processes that ask.
    let file = File::open(directory.join(name))?;
    file.lock_shared()?;
    file.unlock()
}

/// Whether a name can be that of a starter. Any other name must not lead to another file.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Whether the starter of this name is alive. The file of a dead one is removed.
pub fn starter_is_alive(directory: &Path, name: &str) -> io::Result<bool> {
    if !is_name(name) {
        return Ok(false);
    }
    let path = directory.join(name);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    // Shared, so that two processes that ask at once do not take each other for the starter.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(false),
        },
    }
}

/// Whether the machine was started anew since the starter of this name began; no where the system
/// does not tell.
pub fn rebooted_since(name: &str) -> bool {
    is_of_another_boot(name, boot_identity().as_deref())
}

fn is_of_another_boot(name: &str, boot: Option<&str>) -> bool {
    match (name.split('-').nth(2), boot) {
        (Some(then), Some(now)) => then != now,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starter_is_alive_while_it_holds_its_lock() {
        let town = tempfile::tempdir().unwrap();
        let starters = town.path().join("starters");
        let [one, two] = [(), ()].map(|()| StarterLock::take(&starters).unwrap());
        assert_ne!(one.name(), two.name());
        let name = one.name().to_owned();
        assert!(starter_is_alive(&starters, &name).unwrap());

        drop(one);

        assert!(!starter_is_alive(&starters, &name).unwrap());
        assert!(starter_is_alive(&starters, two.name()).unwrap());
        drop(two);
        assert_eq!(std::fs::read_dir(&starters).unwrap().count(), 0);
    }

    #[test]
    fn a_starter_says_in_which_start_of_the_machine_it_began() {
        let town = tempfile::tempdir().unwrap();
        let starter = StarterLock::take(town.path()).unwrap();
        assert!(!rebooted_since(starter.name()));
        for (name, boot, another) in [
            ("12-ab-0f", Some("0f"), false),
            ("12-ab-0f", Some("0e"), true),
            ("12-ab-0f", None, false),
            ("12-ab", Some("0f"), false),
            ("", Some("0f"), false),
        ] {
            assert_eq!(is_of_another_boot(name, boot), another, "{name} {boot:?}");
        }
    }

    #[test]
    fn the_file_of_a_dead_starter_is_removed() {
        let starters = tempfile::tempdir().unwrap();
        let left = starters.path().join("12-0123456789abcdef");
        std::fs::write(&left, "").unwrap();

        assert!(!starter_is_alive(starters.path(), "12-0123456789abcdef").unwrap());

        assert!(!left.exists());
    }

    #[test]
    fn a_name_that_leads_to_another_file_is_refused() {
        let town = tempfile::tempdir().unwrap();
        let starters = town.path().join("starters");
        std::fs::create_dir(&starters).unwrap();
        std::fs::write(town.path().join("abc"), "").unwrap();
        std::fs::write(starters.join(".keep"), "").unwrap();
        for name in ["../abc", "", ".", "..", ".keep"] {
            assert!(!starter_is_alive(&starters, name).unwrap(), "{name}");
        }
        assert!(town.path().join("abc").exists() && starters.join(".keep").exists());
    }
}
