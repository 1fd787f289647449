//! The file `.beads/issues.jsonl` beside the code: kept current, and taken over when git has changed it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use gt_core::Json;
use gt_core::hexadecimal::digits_of;
use gt_core::record_merge::merge_records;
use gt_core::settings::SettingKind;
use gt_executors::git;
use gt_store::{Reader, SettingScope};
use gt_town::settings::BEADS_FILE;
pub use gt_town::settings::EXPORT_PATH;
use gt_town::town::DIRECTORY;
use gt_town::{OperationError, Result, Town, with_causes};
use sha2::{Digest as _, Sha256};

use super::merged_lines::as_exported;
use super::{
    ExportOptions, ImportContents, ImportOptions, ImportSummary, LineFile, export_some, import,
};

/// The value that keeps the file current (`bd config set export.auto true`).
pub const AUTOMATIC_EXPORT: &str = "export.auto";
/// The state of the last write, in the directory of the town.
const STATE: &str = "export.json";
/// Held while the file is compared and replaced, in the directory of the town.
const LOCK: &str = "export.lock";
/// The name of the merge driver in the configuration and the attributes of git.
const DRIVER: &str = "beads";
/// The command that git calls for a merge.
const DRIVER_COMMAND: &str = "bd merge-driver %O %A %B %P";
/// The line of `.gitattributes` beside `.beads`.
const ATTRIBUTE: &str = ".beads/issues.jsonl merge=beads";

/// Whether the file is to be kept current.
pub fn is_automatic(reader: &Reader<'_>) -> Result<bool> {
    let value = reader.setting(SettingScope::Beads, AUTOMATIC_EXPORT)?;
    // Values of older towns and of imports were not checked.
    Ok(value
        .is_some_and(|value| SettingKind::Bool.canonical(&value).is_ok_and(|yes| yes == "true")))
}

/// The file of a town.
pub fn jsonl_path(town: &Town) -> Result<PathBuf> {
    let named = town.read(|reader| Ok(reader.setting(SettingScope::Beads, EXPORT_PATH)?))?;
    Ok(town.root().join(named.as_deref().filter(|path| !path.is_empty()).unwrap_or(BEADS_FILE)))
}

/// The file in the repository around a directory outside of the town, if a rig has its work from there.
pub fn jsonl_in_own_repository(town: &Town, directory: &Path) -> Result<Option<PathBuf>> {
    if directory.starts_with(town.root()) {
        return Ok(None);
    }
    let rigs = town.read(|reader| Ok(reader.rigs()?))?;
    let rig = town.rig_at(&rigs, directory).filter(|rig| rig.repo.starts_with('/'));
    Ok(rig.map(|rig| Path::new(&rig.repo).join(BEADS_FILE)).filter(|path| has_directory(path)))
}

/// Whether the directory of the file exists, or could be made: a path may be one of another machine.
fn has_directory(path: &Path) -> bool {
    let exists = |directory: Option<&Path>| directory.is_some_and(Path::is_dir);
    exists(path.parent()) || exists(path.parent().and_then(Path::parent))
}

/// The result of bringing the file up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonlWrite {
    /// It was replaced, with so many beads.
    Written(u64),
    /// It says all of it already.
    Unchanged,
}

/// Brings a file of beads up to date, in one step. Where nothing has happened since it was written, no bead is read. A file
/// that another program has changed is left as it is.
pub fn write_jsonl(town: &Town, path: &Path) -> Result<JsonlWrite> {
    let _lock = lock(town)?;
    let last = read_state(town, path);
    let event = town.read(|reader| Ok(reader.last_event_number()?))?;
    let found = fingerprint(path)?;
    match (&found, &last) {
        (None, _) => {}
        (Some(found), Some(last)) if *found == last.fingerprint => {
            if last.event == event {
                return Ok(JsonlWrite::Unchanged);
            }
        }
        (Some(_), _) => return Err(changed_elsewhere(path)),
    }
    replace(town, path, found.as_deref())
}

/// Whether the file waits for [`sync_jsonl`], because git or another program has changed it.
pub fn is_changed_elsewhere(town: &Town) -> Result<bool> {
    let path = jsonl_path(town)?;
    let known = read_state(town, &path).map(|last| last.fingerprint);
    Ok(fingerprint(&path)?.is_some_and(|found| Some(found) != known))
}

fn changed_elsewhere(path: &Path) -> OperationError {
    OperationError::rejected(format!(
        "{} was changed by git or another program, and is not overwritten; bd sync takes it over and writes it again",
        path.display()
    ))
}

/// Takes over what git or another program has changed in the file, and brings it up to date. Of each bead the newer version
/// counts, that of the file or that of the store; a deletion counts as a version. Returns what came in, if the file was changed.
pub fn sync_jsonl(town: &Town, path: &Path) -> Result<(Option<ImportSummary>, JsonlWrite)> {
    let lock = lock(town)?;
    let last = read_state(town, path);
    let found = fingerprint(path)?;
    let is_ours = found.is_none() || last.is_some_and(|last| Some(last.fingerprint) == found);
    if is_ours {
        drop(lock);
        return Ok((None, write_jsonl(town, path)?));
    }
    refuse_markers(path)?;
    let file = File::open(path).map_err(|source| failed("read", path, source))?;
    let source = LineFile::spool(file, path.display().to_string(), &town.root().join(DIRECTORY))?;
    // A worker must not delete beads by a file that it writes.
    let follows_deletions = town.acting_run().is_none();
    let options = ImportOptions { follows_deletions, ..ImportOptions::default() };
    let summary = import(town, &ImportContents::lines(source), options, |_| {})?;
    let written = replace(town, path, found.as_deref())?;
    Ok((Some(summary), written))
}

/// Refuses a file that git could not merge, before anything of it is taken over.
fn refuse_markers(path: &Path) -> Result<()> {
    let text = fs::read(path).map_err(|source| failed("read", path, source))?;
    let is_marker = |line: &&[u8]| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> ");
    match text.split(|byte| *byte == b'\n').position(|line| is_marker(&line)) {
        None => Ok(()),
        Some(index) => Err(OperationError::rejected(format!(
            "{}, line {} is a conflict marker of git, so nothing is taken over; git checkout --merge -- {} merges it again \
             with bd merge-driver, if bd merge-driver --install was called in this clone",
            path.display(),
            index + 1,
            path.display(),
        ))),
    }
}

/// Writes the file if it would say something else, and remembers what it says.
fn replace(town: &Town, path: &Path, found: Option<&str>) -> Result<JsonlWrite> {
    // Before the beads are read: a change in between is written the next time.
    let event = town.read(|reader| Ok(reader.last_event_number()?))?;
    let temporary = path.with_file_name(format!("issues.jsonl.{}.new", std::process::id()));
    let options =
        ExportOptions { no_memories: false, scrub: true, tombstones: true, sorted_labels: true };
    let written = write_beads(town, path, &temporary, options);
    let (count, fingerprint) = written.inspect_err(|_| {
        // Leave no half of a file behind; the old file is untouched.
        let _ = fs::remove_file(&temporary);
    })?;
    let outcome = if found == Some(fingerprint.as_str()) {
        // A tool that watches the file would look for a change in vain.
        fs::remove_file(&temporary).map_err(|source| failed("remove", &temporary, source))?;
        JsonlWrite::Unchanged
    } else {
        fs::rename(&temporary, path).map_err(|source| failed("write", path, source))?;
        JsonlWrite::Written(count)
    };
    save_state(town, path, &WrittenState { event, fingerprint })?;
    Ok(outcome)
}

fn write_beads(
    town: &Town,
    path: &Path,
    temporary: &Path,
    options: ExportOptions,
) -> Result<(u64, String)> {
    if !has_directory(path) {
        return Err(OperationError::rejected(format!(
            "{} cannot be written here: its directory does not exist on this machine; bd config set export.path names another file",
            path.display()
        )));
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|source| failed("create", directory, source))?;
    }
    let write_failed = |source| failed("write", temporary, source);
    let mut file = BufWriter::new(File::create(temporary).map_err(write_failed)?);
    let mut hash = Sha256::new();
    let count = export_some(town, options, |line| {
        hash.update(line.as_bytes());
        hash.update(b"\n");
        let written = file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n"));
        written.map_err(write_failed)
    })?;
    file.flush().map_err(write_failed)?;
    file.get_ref().sync_all().map_err(write_failed)?;
    Ok((count, digits_of(&hash.finalize())))
}

/// The state of the last write.
struct WrittenState {
    /// The last event that it has.
    event: u64,
    /// The hash of the file.
    fingerprint: String,
}

fn state_path(town: &Town) -> PathBuf {
    town.root().join(DIRECTORY).join(STATE)
}

fn read_state(town: &Town, path: &Path) -> Option<WrittenState> {
    let text = fs::read_to_string(state_path(town)).ok()?;
    let json = Json::parse(&text).ok()?;
    // Another file was written last; about this one nothing is known.
    if json.string_field("path")? != path.display().to_string() {
        return None;
    }
    let event = json.string_field("event")?.parse().ok()?;
    Some(WrittenState { event, fingerprint: json.string_field("sha256")? })
}

fn save_state(town: &Town, path: &Path, state: &WrittenState) -> Result<()> {
    let text = |text: &str| Json::string(text);
    let json = Json::object(&[
        ("path".to_owned(), text(&path.display().to_string())),
        ("event".to_owned(), text(&state.event.to_string())),
        ("sha256".to_owned(), text(&state.fingerprint)),
    ]);
    let path = state_path(town);
    fs::write(&path, json.as_str()).map_err(|source| failed("write", &path, source))
}

/// The hash of a file; nothing if there is none.
fn fingerprint(path: &Path) -> Result<Option<String>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed("read", path, source)),
    };
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).map_err(|source| failed("read", path, source))? {
            0 => return Ok(Some(digits_of(&hash.finalize()))),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// Two processes must not compare and replace the file at once.
fn lock(town: &Town) -> Result<File> {
    let path = town.root().join(DIRECTORY).join(LOCK);
    let open = File::options().create(true).append(true).open(&path);
    let file = open.map_err(|source| failed("open", &path, source))?;
    file.lock().map_err(|source| failed("lock", &path, source))?;
    Ok(file)
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> OperationError {
    OperationError::File { action, path: path.to_owned(), source }
}

/// Merges three versions of a file for git: the common ancestor, ours, which is replaced by the result, and theirs. If that
/// cannot be done, ours stays as it is. `name` is the file for messages.
pub fn merge_jsonl(base: &Path, ours: &Path, theirs: &Path, name: &str) -> Result<()> {
    let read = |path: &Path| {
        let bytes = fs::read(path).map_err(|source| failed("read", path, source))?;
        String::from_utf8(bytes).map_err(|_| {
            OperationError::rejected(format!("{name} is not merged: a version of it is not UTF-8"))
        })
    };
    let (one, other) = (read(ours)?, read(theirs)?);
    let merged = merge_records(&read(base)?, &one, &other);
    let merged = merged.map_err(|problem| {
        OperationError::rejected(format!("{name} is not merged, and our side stays: {problem}"))
    })?;
    // Git passes ordinary files. To rename over a device, such as /dev/null, would remove it.
    let kind = fs::symlink_metadata(ours).map_err(|source| failed("read", ours, source))?;
    if !kind.is_file() {
        return Err(OperationError::rejected(format!("{} is no ordinary file", ours.display())));
    }
    let temporary = ours.with_extension("merged");
    let merged = as_exported(&merged, &one, &other);
    fs::write(&temporary, merged).map_err(|source| failed("write", &temporary, source))?;
    fs::rename(&temporary, ours).map_err(|source| failed("write", ours, source))
}

/// Has git merge the file of a checkout by [`merge_jsonl`]: the attribute goes with the repository, the command is set in this
/// clone. Returns the file of attributes, and whether it was changed.
pub fn install_merge_driver(directory: &Path) -> Result<(PathBuf, bool)> {
    let failed_git = |error: git::GitError| OperationError::rejected(with_causes(&error));
    let Some(checkout) = git::checkout_around(directory).map_err(failed_git)? else {
        return Err(OperationError::rejected(format!(
            "{} is in no git repository; call this in the one that has .beads/issues.jsonl",
            directory.display()
        )));
    };
    git::set_merge_driver(&checkout, DRIVER, "beads, field by field", DRIVER_COMMAND)
        .map_err(failed_git)?;
    // The attribute stands beside `.beads`, which need not be at the top of the repository.
    let beside = directory.ancestors().take_while(|parent| parent.starts_with(&checkout));
    let root = beside.into_iter().find(|parent| parent.join(".beads").is_dir());
    let path = root.unwrap_or(&checkout).join(".gitattributes");
    let known = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(failed("read", &path, source)),
    };
    if known.lines().any(|line| line.trim() == ATTRIBUTE) {
        return Ok((path, false));
    }
    let gap = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
    let text = format!("{known}{gap}{ATTRIBUTE}\n");
    fs::write(&path, text).map_err(|source| failed("write", &path, source))?;
    Ok((path, true))
}
