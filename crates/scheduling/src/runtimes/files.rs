//! Where runtimes are written down: in this program, and in the town's directory over it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use gt_core::Invalid;
use gt_core::decide::Right;
use gt_core::formula::{FormulaProblem, SourceLocation};
use gt_core::runtime::{Runtime, RuntimeLayer, RuntimeName};
use gt_core::similar_names::closest;
use gt_executors::private;
use gt_records::{ReadRuntime, read_runtime, set_runtime_key};

use gt_town::named_cache::NamedCache;
use gt_town::{OperationError, Result, Town};

/// The runtimes that this program brings.
const PRESETS: [(&str, &str); 15] = [
    ("aider", include_str!("presets/aider.toml")),
    ("amp", include_str!("presets/amp.toml")),
    ("claude", include_str!("presets/claude.toml")),
    ("cline", include_str!("presets/cline.toml")),
    ("codex", include_str!("presets/codex.toml")),
    ("copilot", include_str!("presets/copilot.toml")),
    ("crush", include_str!("presets/crush.toml")),
    ("cursor-agent", include_str!("presets/cursor-agent.toml")),
    ("custom", include_str!("presets/custom.toml")),
    ("gemini", include_str!("presets/gemini.toml")),
    ("goose", include_str!("presets/goose.toml")),
    ("opencode", include_str!("presets/opencode.toml")),
    ("pi", include_str!("presets/pi.toml")),
    ("qwen", include_str!("presets/qwen.toml")),
    ("scripted", include_str!("presets/scripted.toml")),
];

/// Where a town has its own, below its directory.
const DIRECTORY: &str = ".gt/runtimes";

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// How many runtimes may begin from each other.
const EXTENDS_MAX: usize = 8;

/// Where a runtime comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeOrigin {
    /// It came with this program.
    BuiltIn,
    /// It came with this program, and the town has changed it.
    Changed,
    /// It is the town's.
    Town,
}

impl RuntimeOrigin {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::Changed => "changed",
            Self::Town => "town",
        }
    }
}

/// A runtime with where it comes from.
#[derive(Debug, Clone)]
pub struct KnownRuntime {
    /// The runtime itself.
    pub runtime: Runtime,
    /// Where it comes from.
    pub origin: RuntimeOrigin,
    /// The file of the town that says something about it.
    pub file: Option<PathBuf>,
    /// The entries of that file that mean nothing.
    pub warnings: Vec<FormulaProblem>,
}

/// Every runtime there is, in the order of their names. One that cannot be used has the reason instead.
pub fn list(town: &Town) -> Result<Vec<(String, Result<KnownRuntime>)>> {
    let names = names(town)?;
    Ok(names.into_iter().map(|name| (name.clone(), get(town, &name))).collect())
}

/// The runtime of this name.
pub fn get(town: &Town, name: &str) -> Result<KnownRuntime> {
    RuntimeFiles { town, instead: None }.find(&RuntimeName::parse(name)?)
}

/// The numbers that limit how many runs of a runtime there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeNumbers {
    /// How much memory one of it takes, until that is known better.
    pub memory_mb: u32,
    /// Most of it at once; 0 for no limit.
    pub max_runs: u32,
}

/// Those numbers in the town's own files. A runtime that cannot be used limits nothing: nothing can be started with
/// it.
pub(crate) fn own_numbers(town: &Town) -> Result<BTreeMap<String, RuntimeNumbers>> {
    let own = own_names(town)?;
    let numbers = own.into_iter().filter_map(|name| {
        let Runtime { memory_mb, max_runs, .. } = get(town, &name).ok()?.runtime;
        Some((name, RuntimeNumbers { memory_mb, max_runs }))
    });
    Ok(numbers.collect())
}

/// How much memory a runtime takes that came with this program, if one of this name did. Reads no file.
pub(crate) fn memory_of_preset(name: &str) -> Option<u32> {
    let (_, text) = PRESETS.iter().find(|(known, _)| *known == name)?;
    // Every file says it, except those of programs without a model.
    let line = text.lines().find_map(|line| line.strip_prefix("memory_mb = "))?;
    line.trim().parse().ok()
}

/// Changes one key of a runtime in the town's file for it. Nothing is written unless the runtime can be used then.
/// Gives the file and the runtime.
pub fn set(town: &Town, name: &str, key: &str, value: &str) -> Result<(PathBuf, KnownRuntime)> {
    let name = RuntimeName::parse(name)?;
    let path = own_file(town, &name)?;
    let _held = lock(town)?;
    let before = read(&path)?.unwrap_or_default();
    let after = set_runtime_key(&before, key, value)
        .map_err(|why| OperationError::from(why).at(shown(town, &path)))?;
    let known = RuntimeFiles { town, instead: Some((&name, &after)) }.find(&name)?;
    write(&path, &after)?;
    Ok((path, known))
}

/// Removes the town's changes to a runtime that came with this program. Returns the file that held them, if there was
/// one, and the runtime.
pub fn unset(town: &Town, name: &str) -> Result<(Option<PathBuf>, KnownRuntime)> {
    let name = RuntimeName::parse(name)?;
    let path = own_file(town, &name)?;
    if preset(&name).is_none() {
        // An unknown runtime is reported as unknown.
        RuntimeFiles { town, instead: None }.own(&name)?.map_or_else(
            || preset_layer(town, &name).map(drop),
            |_| {
                Err(OperationError::rejected(format!(
                    "{name} did not come with gt, so there is nothing to go back to; remove {} if it is not used",
                    shown(town, &path)
                )))
            },
        )?;
    }
    let _held = lock(town)?;
    let kept = path.with_extension("toml.unset");
    let kept = match std::fs::rename(&path, &kept) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        renamed => {
            let failed = |source| OperationError::File { action: "rename", path, source };
            renamed.map(|()| Some(kept)).map_err(failed)?
        }
    };
    Ok((kept, RuntimeFiles { town, instead: None }.find(&name)?))
}

/// The file in which the town says something about a runtime, which need not be there.
fn own_file(town: &Town, name: &RuntimeName) -> Result<PathBuf> {
    file_of(town, name).ok_or_else(|| {
        OperationError::rejected("a town without a directory has no runtimes of its own")
    })
}

/// Two who change the same file would lose what one of them said.
fn lock(town: &Town) -> Result<std::fs::File> {
    town.require_right(Right::Settings, "a change of a runtime")?;
    let lock = town.root().join(".gt");
    let failed = |source| OperationError::File { action: "lock", path: lock.clone(), source };
    let held = std::fs::File::open(&lock).map_err(failed)?;
    held.lock().map_err(failed)?;
    Ok(held)
}

/// All files about runtimes.
struct RuntimeFiles<'a> {
    town: &'a Town,
    /// The text to use instead of the town's file for a runtime.
    instead: Option<(&'a RuntimeName, &'a str)>,
}

impl RuntimeFiles<'_> {
    fn find(&self, name: &RuntimeName) -> Result<KnownRuntime> {
        let is_built_in = preset(name).is_some();
        let (layer, own) = match self.own(name)? {
            Some((file, read)) => {
                let base = self.base(name, &read.layer, 0)?;
                (read.layer.clone().over(base), Some((file, read)))
            }
            None => (preset_layer(self.town, name)?, None),
        };
        let runtime = layer.finish(name.clone()).map_err(|unfinished| {
            let place = own.as_ref().map(|(file, read)| {
                let file = SourceLocation::file(&shown(self.town, file));
                file.at(read.line_of(unfinished.key)).to_string()
            });
            let error = OperationError::from(Invalid::from(unfinished));
            match place {
                Some(place) => error.at(place),
                None => error,
            }
        })?;
        let (file, warnings) = own.map(|(file, read)| (file, read.warnings)).unzip();
        let warnings = warnings.unwrap_or_default();
        let origin = match (is_built_in, &file) {
            (true, None) => RuntimeOrigin::BuiltIn,
            (true, Some(_)) => RuntimeOrigin::Changed,
            (false, _) => RuntimeOrigin::Town,
        };
        Ok(KnownRuntime { runtime, origin, file, warnings })
    }

    /// The town's own file about a runtime, if there is one.
    fn own(&self, name: &RuntimeName) -> Result<Option<(PathBuf, ReadRuntime)>> {
        let Some(file) = file_of(self.town, name) else { return Ok(None) };
        let text = match self.instead {
            Some((changed, text)) if changed == name => Some(text.to_owned()),
            _ => read(&file)?,
        };
        let Some(text) = text else { return Ok(None) };
        let read = read_runtime(&text, &shown(self.town, &file));
        refuse(&read.problems)?;
        Ok(Some((file, read)))
    }

    /// The layer below a layer of this name: the one it extends, else the built-in one of its name, else nothing.
    fn base(&self, name: &RuntimeName, layer: &RuntimeLayer, depth: usize) -> Result<RuntimeLayer> {
        let Some(below) = layer.extends.as_ref().filter(|below| *below != name) else {
            return match preset(name) {
                Some(_) => preset_layer(self.town, name),
                None => Ok(RuntimeLayer::default()),
            };
        };
        if depth == EXTENDS_MAX {
            return Err(OperationError::rejected(format!(
                "the runtime {name} extends {below}, and that leads to no end; let one of them extend nothing"
            )));
        }
        match self.own(below)? {
            Some((_, read)) => {
                let base = self.base(below, &read.layer, depth + 1)?;
                Ok(read.layer.over(base))
            }
            None => preset_layer(self.town, below),
        }
    }
}

fn refuse(problems: &[FormulaProblem]) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Err(OperationError::rejected(told.join("; ")))
}

fn preset(name: &RuntimeName) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name.as_str()).map(|(_, text)| *text)
}

/// The built-in layer of a runtime.
fn preset_layer(town: &Town, name: &RuntimeName) -> Result<RuntimeLayer> {
    static LAYERS: NamedCache<RuntimeLayer> = NamedCache::new();
    let Some(text) = preset(name) else {
        let known = names(town)?;
        let hint = closest(name.as_str(), known.iter().map(String::as_str));
        let hint = hint.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        return Err(OperationError::rejected(format!(
            "runtime \"{name}\" not found{hint} (known runtimes: {}; a new one belongs in \
             {DIRECTORY}/{name}.toml)",
            known.join(", ")
        )));
    };
    LAYERS.get(name.as_str(), || {
        let read = read_runtime(text, &format!("{name} (built in)"));
        refuse(&read.problems)?;
        Ok(read.layer)
    })
}

/// The names of all runtimes.
fn names(town: &Town) -> Result<BTreeSet<String>> {
    let mut names: BTreeSet<String> = PRESETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.extend(own_names(town)?);
    Ok(names)
}

/// The names of those that the town has files for.
fn own_names(town: &Town) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    if !town.has_directory() {
        return Ok(names);
    }
    let directory = town.root().join(DIRECTORY);
    let failed = |source| OperationError::File { action: "read", path: directory.clone(), source };
    let entries = match std::fs::read_dir(&directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(names),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let file = entry.map_err(failed)?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(".toml"));
        names.extend(name.filter(|name| !name.starts_with('.')).map(str::to_owned));
    }
    Ok(names)
}

fn file_of(town: &Town, name: &RuntimeName) -> Option<PathBuf> {
    let path = town.root().join(DIRECTORY).join(format!("{name}.toml"));
    town.has_directory().then_some(path)
}

/// A file as messages name it.
fn shown(town: &Town, path: &Path) -> String {
    path.strip_prefix(town.root()).unwrap_or(path).display().to_string()
}

fn read(path: &Path) -> Result<Option<String>> {
    let failed = |source| OperationError::File { action: "read", path: path.to_owned(), source };
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(OperationError::rejected(format!(
            "{} is longer than {} KiB, which nothing about a runtime is",
            path.display(),
            FILE_BYTES_MAX / 1024
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| OperationError::rejected(format!("{} is not UTF-8 text", path.display())))?;
    Ok(Some(text))
}

/// Writes a file as a whole: a process that reads it meanwhile sees the old or the new one.
fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |source| OperationError::File { action: "write", path: path.to_owned(), source };
    let temporary = path.with_extension(format!("toml.{}.new", std::process::id()));
    if let Some(directory) = path.parent() {
        private::create_dir_all(directory).map_err(failed)?;
    }
    private::write(&temporary, text).map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
}
