//! The identity of the machine, and of the directory on it, among all others that may share a
//! store.

use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::SystemTime;

use gt_core::decide::{HostPlace, HostVerdict, OldPlace, judge_host};

/// How many digits an identity has.
const DIGITS: usize = 16;

/// Where Linux says which start of the machine this is.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The identity of this boot of the machine, in digits; nothing where the system does not tell.
pub fn boot_identity() -> Option<String> {
    digits_of(&fs::read_to_string(BOOT).ok()?)
}

/// The digits of an identity that is written with dashes.
fn digits_of(text: &str) -> Option<String> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    let is_whole =
        digits.len() == 2 * DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then_some(digits)
}

/// Where machines keep the id that they got when they were installed.
const MACHINE_IDS: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// The directory of a town on this machine, among all that share its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostIdentity {
    /// Its identity.
    pub id: String,
    /// Where its file is.
    pub place: HostPlace,
    /// The identity that came with the files of this directory, and whose runs it does not judge.
    pub former: Option<FormerHost>,
    /// This call found out that the directory is another one, and gave it a new identity.
    pub is_new: bool,
}

/// The identity that a directory had somewhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerHost {
    /// The identity.
    pub id: String,
    /// Whether it is a copy, or was moved.
    pub verdict: HostVerdict,
    /// Where it was.
    pub path: String,
}

/// The contents of an identity file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RecordedIdentity {
    id: String,
    /// Nothing in a file of an older version.
    place: Option<HostPlace>,
    former: Option<FormerHost>,
}

/// The identity that is kept in the file at `path`; if there is none yet, it is made, once for all
/// callers. A file that was copied or moved here gets a new one.
///
/// A name would not do: containers share one, a second directory on the same machine has locks of its own, and
/// a machine may be renamed while runs are live.
pub fn host_identity(path: &Path) -> io::Result<HostIdentity> {
    match File::open(path) {
        Ok(mut file) => {
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let here = place_of(&file, path)?;
            if let Some(RecordedIdentity { id, place: Some(place), former }) = parse(&text)
                && judge(&place, &here) == HostVerdict::Same
                && (&place.path, place.born_ns) == (&here.path, here.born_ns)
            {
                return Ok(HostIdentity { id, place: here, former, is_new: false });
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut options = crate::private::options();
    let mut file = options.read(true).write(true).create(true).truncate(false).open(path)?;
    // Of several callers that find nothing at once, the others read the identity that the first has
    // written.
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let here = place_of(&file, path)?;
    let (recorded, is_new) = match parse(&text) {
        None => {
            (RecordedIdentity { id: fresh_id(), place: Some(here.clone()), former: None }, false)
        }
        Some(RecordedIdentity { id, place: Some(place), former }) => match judge(&place, &here) {
            HostVerdict::Same => {
                (RecordedIdentity { id, place: Some(here.clone()), former }, false)
            }
            verdict => {
                let former = Some(FormerHost { id, verdict, path: place.path });
                (RecordedIdentity { id: fresh_id(), place: Some(here.clone()), former }, true)
            }
        },
        Some(old) => (RecordedIdentity { place: Some(here.clone()), ..old }, false),
    };
    record(&file, &recorded)?;
    Ok(HostIdentity { id: recorded.id, place: here, former: recorded.former, is_new })
}

/// Forgets the identity that a directory had somewhere else.
pub fn forget_former_host(path: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    match parse(&text) {
        Some(recorded) => record(&file, &RecordedIdentity { former: None, ..recorded }),
        None => Ok(()),
    }
}

/// The identity of this container, or of this boot, among others that were given the same host
/// identity.
pub fn incarnation(directory: &Path) -> String {
    let boot = boot_identity().unwrap_or_default();
    // A container has process numbers of its own.
    let processes = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let inode = fs::metadata(directory).map(|directory| directory.ino()).unwrap_or_default();
    format!("{boot}:{}:{inode}", processes.display())
}

fn fresh_id() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// The file is written where it is, because its inode identifies it. The identity comes first and is complete if anything is.
fn record(file: &File, recorded: &RecordedIdentity) -> io::Result<()> {
    let mut lines = vec![recorded.id.clone()];
    if let Some(HostPlace { machine, inode, device, born_ns, path }) = &recorded.place {
        lines.push(format!("machine {machine}\ninode {inode}\ndevice {device}\npath {path}"));
        lines.extend(born_ns.map(|born_ns| format!("born-ns {born_ns}")));
    }
    if let Some(FormerHost { id, verdict, path }) = &recorded.former {
        let verdict = if *verdict == HostVerdict::Copy { COPIED } else { MOVED };
        lines.push(format!("{verdict} {id} {path}"));
    }
    let text = format!("{}\n{END}", lines.join("\n"));
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

const COPIED: &str = "copied-from";
const MOVED: &str = "moved-from";
/// The last line of a file that was written to its end.
const END: &str = "end\n";

fn place_of(file: &File, path: &Path) -> io::Result<HostPlace> {
    let metadata = file.metadata()?;
    let machine = MACHINE_IDS.iter().find_map(|path| fs::read_to_string(path).ok());
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Ok(HostPlace {
        machine: machine.unwrap_or_default().trim().to_owned(),
        inode: metadata.ino(),
        device: metadata.dev(),
        born_ns: born_ns(&metadata),
        // A path is compared, and shown to people.
        path: path.to_string_lossy().replace('\n', " "),
    })
}

/// When a file was made, in nanoseconds. Not every file system tells.
fn born_ns(metadata: &Metadata) -> Option<u128> {
    let since = metadata.created().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_nanos())
}

fn judge(recorded: &HostPlace, here: &HostPlace) -> HostVerdict {
    let is_recorded = |file: &Metadata| {
        let (inode, born_ns) = (file.ino(), born_ns(file));
        recorded.is_same_file(&HostPlace { inode, born_ns, ..recorded.clone() })
    };
    let old_place = match fs::metadata(&recorded.path) {
        Ok(file) if is_recorded(&file) => OldPlace::Alive,
        Ok(_) => OldPlace::Gone,
        Err(error) if error.kind() == io::ErrorKind::NotFound => OldPlace::Gone,
        Err(_) => OldPlace::Unknown,
    };
    judge_host(recorded, here, old_place)
}

/// Parses an identity file. An identity that was not written completely is none; the rest counts
/// only if all of it is there.
fn parse(text: &str) -> Option<RecordedIdentity> {
    let (id, rest) = text.split_once('\n')?;
    let is_whole = id.len() == DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_whole {
        return None;
    }
    let id = id.to_owned();
    let Some(rest) = rest.strip_suffix(END) else {
        return Some(RecordedIdentity { id, place: None, former: None });
    };
    let field = |name: &str| {
        let mut lines = rest.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned))
    };
    let place = || {
        Some(HostPlace {
            machine: field("machine")?,
            inode: field("inode")?.parse().ok()?,
            device: field("device")?.parse().ok()?,
            born_ns: field("born-ns").and_then(|born_ns| born_ns.parse().ok()),
            path: field("path")?,
        })
    };
    let former = |name, verdict| {
        let text = field(name)?;
        let (id, path) = text.split_once(' ')?;
        Some(FormerHost { id: id.to_owned(), verdict, path: path.to_owned() })
    };
    let former = former(COPIED, HostVerdict::Copy).or_else(|| former(MOVED, HostVerdict::Moved));
    Some(RecordedIdentity { id, place: place(), former })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn id_at(path: &Path) -> String {
        host_identity(path).unwrap().id
    }

    #[test]
    fn every_caller_in_one_directory_gets_the_same_identity() {
        let town = tempfile::tempdir().unwrap();
        let path = town.path().join("host");
        let seen: BTreeSet<String> = std::thread::scope(|scope| {
            let askers: Vec<_> = (0..8).map(|_| scope.spawn(|| id_at(&path))).collect();
            askers.into_iter().map(|asker| asker.join().unwrap()).collect()
        });
        assert_eq!(seen.len(), 1);
        assert_eq!(seen.first(), Some(&id_at(&path)));
        assert!(!seen.contains(&id_at(&town.path().join("other"))));
    }

    #[test]
    fn a_copy_is_another_host_and_says_so_once() {
        let town = tempfile::tempdir().unwrap();
        let (path, copy) = (town.path().join("host"), town.path().join("copy"));
        let original = host_identity(&path).unwrap();
        fs::copy(&path, &copy).unwrap();

        let copied = host_identity(&copy).unwrap();

        assert!(copied.is_new);
        assert_ne!(copied.id, original.id);
        let former = copied.former.clone().unwrap();
        assert_eq!((&former.id, former.verdict), (&original.id, HostVerdict::Copy));
        assert_eq!(former.path, original.place.path);
        assert_eq!(host_identity(&copy).unwrap(), HostIdentity { is_new: false, ..copied });
        assert_eq!(host_identity(&path).unwrap(), original);
    }

    #[test]
    fn a_renamed_directory_is_the_same_host() {
        let place = tempfile::tempdir().unwrap();
        let (before, after) = (place.path().join("before"), place.path().join("after"));
        fs::create_dir(&before).unwrap();
        let id = id_at(&before.join("host"));
        fs::rename(&before, &after).unwrap();
        let renamed = host_identity(&after.join("host")).unwrap();
        assert_eq!((renamed.id, renamed.former, renamed.is_new), (id, None, false));
    }

    #[test]
    fn a_restored_backup_keeps_its_former_identity_until_it_is_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let (path, backup) = (place.path().join("host"), place.path().join("backup"));
        let original = id_at(&path);
        fs::copy(&path, &backup).unwrap();
        fs::remove_file(&path).unwrap();

        let restored = host_identity(&backup).unwrap();

        let former = restored.former.unwrap();
        assert_eq!((former.id, former.verdict), (original, HostVerdict::Moved));
        forget_former_host(&backup).unwrap();
        let after = host_identity(&backup).unwrap();
        assert_eq!((after.id, after.former), (restored.id, None));
    }

    #[test]
    fn a_backup_restored_in_place_is_found_although_its_file_has_the_same_inode() {
        let town = tempfile::tempdir().unwrap();
        let path = town.path().join("host");
        let original = host_identity(&path).unwrap();
        let Some(born_ns) = original.place.born_ns else { return };
        // The record of a file that was made a moment earlier.
        let text = fs::read_to_string(&path).unwrap();
        let earlier = text.replace(&born_ns.to_string(), &(born_ns - 1).to_string());
        assert_ne!(earlier, text);
        fs::write(&path, earlier).unwrap();

        let restored = host_identity(&path).unwrap();

        let former = restored.former.unwrap();
        assert_eq!((former.id, former.verdict), (original.id, HostVerdict::Moved));
        assert_eq!(id_at(&path), restored.id);
    }

    #[test]
    fn an_identity_of_an_older_version_gets_the_birth_of_its_file() {
        let town = tempfile::tempdir().unwrap();
        let path = town.path().join("host");
        let original = host_identity(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let born = format!("born-ns {}\n", original.place.born_ns.unwrap_or_default());
        fs::write(&path, text.replace(&born, "")).unwrap();
        assert_eq!(host_identity(&path).unwrap(), original);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_start_of_the_machine_is_named_by_digits() {
        assert_eq!(boot_identity(), boot_identity());
        let text = "0b7f4c1e-27a4-4d0e-8f1b-2f6f0a3c9d11\n";
        assert_eq!(digits_of(text).unwrap(), "0b7f4c1e27a44d0e8f1b2f6f0a3c9d11");
        for text in ["", "\n", "0b7f4c1e", "not an identity, but it is long enough"] {
            assert_eq!(digits_of(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_incomplete_identity_file_is_made_anew() {
        let town = tempfile::tempdir().unwrap();
        let path = town.path().join("host");
        for left in ["", "0123", "0123456789abcdef", "not an identity, but long\n"] {
            fs::write(&path, left).unwrap();
            let identity = id_at(&path);
            assert!(fs::read_to_string(&path).unwrap().starts_with(&identity), "{left:?}");
        }
        // The file of an older version, and one whose second half was not written, keep their identity.
        for left in ["0123456789abcdef\n", "0123456789abcdef\nmachine x\ninode 1\ndev"] {
            fs::write(&path, left).unwrap();
            assert_eq!(id_at(&path), "0123456789abcdef");
            assert_eq!(host_identity(&path).unwrap().former, None);
        }
    }
}
