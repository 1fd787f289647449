//! Where formulas are looked for, and what is there.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use gt_core::formula::{
    self, CookOptions, Cooked, Formula, FormulaProblem, PlaceholderMode, SourceLocation, resolve,
    validate,
};
use gt_core::{Prefix, Rig, limits};
use gt_executors::calls::CallerFiles;
use gt_records::{FormulaFormat, read_formula};

use super::built_in::BUILT_IN;
use crate::named_cache::NamedCache;
use crate::town::DIRECTORY;
use crate::{Environment, OperationError, Result, Town};

/// The endings of formula files; TOML is looked for first.
const ENDINGS: [(&str, FormulaFormat); 2] =
    [(".formula.toml", FormulaFormat::Toml), (".formula.json", FormulaFormat::Json)];

/// How near a place is to the caller; the nearest formula of a name counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormulaTier {
    /// Named by the caller.
    Asked,
    /// The rig, or the checkout the caller stands in.
    Rig,
    /// The town.
    Town,
    /// The person.
    User,
    /// The program itself.
    BuiltIn,
}

impl FormulaTier {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "search path",
            Self::Rig => "rig",
            Self::Town => "town",
            Self::User => "user",
            Self::BuiltIn => "built in",
        }
    }
}

/// A directory in which formulas are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormulaDirectory {
    /// The directory; it need not exist.
    pub directory: PathBuf,
    /// How near it is.
    pub tier: FormulaTier,
    /// Whether the caller named it, or stands in it.
    is_of_caller: bool,
}

/// The places where formulas are looked for, the nearest first.
#[derive(Debug, Clone)]
pub struct FormulaCatalog {
    places: Vec<FormulaDirectory>,
    /// Opens the places of the caller, if they are not for this process to open.
    caller: Option<CallerFiles>,
}

/// A formula that was read.
#[derive(Debug, Clone)]
pub struct LoadedFormula {
    /// Its contents.
    pub formula: Formula,
    /// The file as it is.
    pub text: String,
    /// Where it is, for people: a path, or `NAME (built in)`.
    pub location: String,
    /// The file, unless it is built in.
    pub path: Option<PathBuf>,
    /// How near.
    pub tier: FormulaTier,
    /// The entries that mean nothing to us.
    pub warnings: Vec<FormulaProblem>,
}

/// One formula file that was found.
#[derive(Debug)]
pub struct ListedFormula {
    /// Its name, by its file.
    pub name: String,
    /// Where it is: a path, or `NAME (built in)`.
    pub location: String,
    /// How near.
    pub tier: FormulaTier,
    /// Whether a nearer one of the same name counts instead.
    pub shadowed: bool,
    /// The formula, or why it cannot be read.
    pub formula: Result<LoadedFormula>,
}

/// How a formula is to be cooked.
#[derive(Debug, Clone)]
pub struct Cooking<'a> {
    /// The values of its variables.
    pub given: &'a BTreeMap<String, String>,
    /// Whether placeholders are kept.
    pub mode: PlaceholderMode,
    /// The prefix of the ids.
    pub prefix: Option<&'a Prefix>,
}

impl FormulaCatalog {
    /// Every place that counts for a caller in `directory`: those asked for, the rig, the town, the
    /// person. Without a town there is only what the caller stands in and the person. A worker opens the places that it named and
    /// those that it stands in itself.
    pub fn of(
        town: Option<&Town>,
        directory: &Path,
        environment: &Environment,
        asked: &[PathBuf],
        caller: Option<CallerFiles>,
    ) -> Result<Self> {
        let mut catalog = Self { caller, ..Self::empty() };
        for asked in asked {
            catalog.add(directory.join(asked), FormulaTier::Asked);
        }
        if let Some(beads) = environment.path("BEADS_DIR") {
            catalog.add(directory.join(beads).join("formulas"), FormulaTier::Rig);
        }
        for at in project(directory, town.map(Town::root)) {
            catalog.add_both(at, FormulaTier::Rig);
        }
        for place in &mut catalog.places {
            place.is_of_caller = true;
        }
        if let Some(town) = town {
            let rig = town.read(|reader| Ok(town.rig_here(&reader.rigs()?)))?;
            if let Some(rig) = rig {
                catalog.add_rig(town, &rig);
            }
            catalog.add_both(town.root(), FormulaTier::Town);
        }
        for root in ["GT_TOWN_ROOT", "GT_ROOT"].iter().filter_map(|name| environment.path(name)) {
            catalog.add(root.join(".beads").join("formulas"), FormulaTier::Town);
        }
        if let Some(home) = environment.path("HOME") {
            catalog.add(home.join(".beads").join("formulas"), FormulaTier::User);
        }
        Ok(catalog)
    }

    /// Every place that counts for work in `rig`, for every caller and working directory.
    pub fn of_rig(town: &Town, rig: &Rig) -> Self {
        let mut catalog = Self::empty();
        catalog.add_rig(town, rig);
        catalog.add_both(town.root(), FormulaTier::Town);
        catalog
    }

    /// The places of the town alone.
    pub fn of_town(town: &Town) -> Self {
        let mut catalog = Self::empty();
        catalog.add_both(town.root(), FormulaTier::Town);
        catalog
    }

    fn empty() -> Self {
        Self { places: Vec::new(), caller: None }
    }

    fn add_rig(&mut self, town: &Town, rig: &Rig) {
        if rig.path == "." {
            return;
        }
        self.add_both(&town.root().join(&rig.path), FormulaTier::Rig);
        if rig.repo.starts_with('/') {
            self.add_both(Path::new(&rig.repo), FormulaTier::Rig);
        }
    }

    /// Adds a place, unless it is there already and nearer.
    fn add(&mut self, directory: PathBuf, tier: FormulaTier) {
        if !self.places.iter().any(|place| place.directory == directory) {
            self.places.push(FormulaDirectory { directory, tier, is_of_caller: false });
        }
    }

    /// Adds the two places that a directory can have formulas in.
    fn add_both(&mut self, root: &Path, tier: FormulaTier) {
        self.add(root.join(DIRECTORY).join("formulas"), tier);
        self.add(root.join(".beads").join("formulas"), tier);
    }

    /// The same with one more place, the nearest of all.
    fn with_first(&self, directory: &Path) -> Self {
        let (directory, tier) = (directory.to_owned(), FormulaTier::Asked);
        let first = FormulaDirectory { directory, tier, is_of_caller: true };
        let places = std::iter::once(first).chain(self.places.iter().cloned()).collect();
        Self { places, caller: self.caller.clone() }
    }

    /// The process that opens a place, if it is not this one.
    fn caller_for(&self, is_of_caller: bool) -> Option<&CallerFiles> {
        self.caller.as_ref().filter(|_| is_of_caller)
    }

    fn names_in(&self, place: &FormulaDirectory) -> std::io::Result<Vec<OsString>> {
        if let Some(caller) = self.caller_for(place.is_of_caller) {
            return caller.list(&place.directory);
        }
        let entries = std::fs::read_dir(&place.directory)?;
        Ok(entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect())
    }

    /// The first bytes of a file, one more than a formula may have.
    fn read(&self, path: &Path, is_of_caller: bool) -> std::io::Result<Vec<u8>> {
        if let Some(caller) = self.caller_for(is_of_caller) {
            return caller.read(path);
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path)?;
        file.take(limits::FORMULA_FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Every formula there is, in the order of names; of those with the same name the nearest first.
    pub fn list(&self) -> Result<Vec<ListedFormula>> {
        let mut listed: Vec<ListedFormula> = Vec::new();
        for place in &self.places {
            let FormulaDirectory { directory, tier, .. } = place;
            let mut names = Vec::new();
            let entries = match self.names_in(place) {
                Ok(entries) => entries,
                Err(error) if is_absent(&error) => continue,
                Err(source) => {
                    let path = directory.clone();
                    return Err(OperationError::File { action: "read", path, source });
                }
            };
            for name in entries.into_iter().filter_map(|entry| entry.into_string().ok()) {
                let ending = ENDINGS.iter().find_map(|(ending, _)| name.strip_suffix(ending));
                if let Some(formula) = ending.filter(|formula| !formula.is_empty()) {
                    names.push((formula.to_owned(), name.clone()));
                }
            }
            // TOML before JSON, as they are looked for.
            names.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
            for (name, file) in names {
                let path = directory.join(file);
                let location = path.display().to_string();
                let read = self.read(&path, place.is_of_caller);
                let formula = load_file(&path, read, &location, *tier);
                listed.push(ListedFormula {
                    name,
                    location,
                    tier: *tier,
                    shadowed: false,
                    formula,
                });
            }
        }
        for (name, text) in BUILT_IN {
            let (location, tier) = (format!("{name} (built in)"), FormulaTier::BuiltIn);
            let formula = load_built_in(name, text);
            listed.push(ListedFormula {
                name: (*name).to_owned(),
                location,
                tier,
                shadowed: false,
                formula,
            });
        }
        let mut seen = HashSet::new();
        for formula in &mut listed {
            formula.shadowed = !seen.insert(formula.name.clone());
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// The formula of this name, or in this file.
    pub fn find(&self, name_or_file: &str, directory: &Path) -> Result<LoadedFormula> {
        if is_file_name(name_or_file) {
            let path = directory.join(name_or_file);
            let read = self.read(&path, true);
            return load_file(&path, read, name_or_file, FormulaTier::Asked);
        }
        self.find_named(name_or_file)
    }

    fn find_named(&self, name: &str) -> Result<LoadedFormula> {
        // A name is a part of a path here, and must not lead elsewhere.
        let is_name =
            !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
        for place in self.places.iter().filter(|_| is_name) {
            for (ending, _) in ENDINGS {
                let path = place.directory.join(format!("{name}{ending}"));
                match self.read(&path, place.is_of_caller) {
                    Err(error) if is_absent(&error) => {}
                    read => {
                        return load_file(&path, read, &path.display().to_string(), place.tier);
                    }
                }
            }
        }
        match BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            Some((name, text)) => load_built_in(name, text),
            None => Err(OperationError::NoFormula(name.to_owned())),
        }
    }

    /// Cooks a formula; the formulas that it builds upon are found here, or beside it.
    pub fn cook(&self, loaded: &LoadedFormula, cooking: &Cooking<'_>) -> Result<Cooked> {
        let catalog = self.beside(loaded);
        let order = CookOptions {
            given: cooking.given,
            mode: cooking.mode,
            prefix: cooking.prefix.map(Prefix::as_str),
        };
        formula::cook(&loaded.formula, order, &|name| catalog.lookup(name))
            .map_err(|problems| loaded.refused(problems))
    }

    /// The formula with everything it inherits.
    pub fn resolved(&self, loaded: &LoadedFormula) -> Result<Formula> {
        let catalog = self.beside(loaded);
        resolve(&loaded.formula, &|name| catalog.lookup(name))
            .map_err(|problems| loaded.refused(problems))
    }

    /// Everything that is wrong with a formula as it is written.
    pub fn problems(&self, loaded: &LoadedFormula) -> Vec<FormulaProblem> {
        match self.resolved(loaded) {
            Ok(formula) => validate(&formula),
            Err(OperationError::Formula { problems, .. }) => problems,
            Err(error) => vec![FormulaProblem::new(&loaded.formula.source, "", error.to_string())],
        }
    }

    fn beside(&self, loaded: &LoadedFormula) -> Self {
        let path = loaded.path.as_deref().filter(|_| loaded.tier == FormulaTier::Asked);
        match path.and_then(Path::parent) {
            Some(directory) => self.with_first(directory),
            None => self.clone(),
        }
    }

    fn lookup(&self, name: &str) -> Result<Formula, Vec<FormulaProblem>> {
        match self.find_named(name) {
            Ok(loaded) => Ok(loaded.formula),
            Err(OperationError::Formula { problems, .. }) => Err(problems),
            Err(error) => {
                Err(vec![FormulaProblem::new(&SourceLocation::default(), "", error.to_string())])
            }
        }
    }
}

impl LoadedFormula {
    fn refused(&self, problems: Vec<FormulaProblem>) -> OperationError {
        OperationError::Formula { name: self.name().to_owned(), problems }
    }

    /// The name by which messages call it.
    pub fn name(&self) -> &str {
        if self.formula.name.is_empty() { &self.location } else { &self.formula.name }
    }
}

/// The directories of the project that `directory` is in, the nearest first: up to the root of its repository or to
/// the town, and without either only the directory itself. Files further up do not belong to the project.
fn project<'a>(directory: &'a Path, town: Option<&Path>) -> Vec<&'a Path> {
    let mut inside: Vec<&Path> = directory.ancestors().take_while(|at| Some(*at) != town).collect();
    let repository = inside.iter().position(|at| at.join(".git").exists());
    let is_in_town = town.is_some_and(|town| directory.starts_with(town));
    match (repository, is_in_town) {
        (Some(root), _) => inside.truncate(root + 1),
        (None, true) => {}
        (None, false) => inside.truncate(1),
    }
    inside
}

/// Whether a person means a file rather than a name.
fn is_file_name(text: &str) -> bool {
    let path = Path::new(text);
    text.contains('/')
        || path.extension().is_some_and(|ending| {
            ending.eq_ignore_ascii_case("toml") || ending.eq_ignore_ascii_case("json")
        })
}

/// A path that leads nowhere, on the way or at its end.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The formula in a file that was read, which messages call `shown`.
fn load_file(
    path: &Path,
    read: std::io::Result<Vec<u8>>,
    shown: &str,
    tier: FormulaTier,
) -> Result<LoadedFormula> {
    let failed = |source| OperationError::File { action: "read", path: path.to_owned(), source };
    let bytes = read.map_err(failed)?;
    if bytes.len() as u64 > limits::FORMULA_FILE_BYTES_MAX {
        let megabytes = limits::FORMULA_FILE_BYTES_MAX / (1024 * 1024);
        return Err(OperationError::rejected(format!(
            "{} is longer than {megabytes} MiB, which no formula is",
            path.display()
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| OperationError::rejected(format!("{} is not UTF-8 text", path.display())))?;
    if text.trim().is_empty() {
        return Err(OperationError::rejected(format!(
            "{} is empty; write the formula into it, or remove the file",
            path.display()
        )));
    }
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let format = if is_json { FormulaFormat::Json } else { FormulaFormat::Toml };
    let named = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|file| ENDINGS.iter().find_map(|(ending, _)| file.strip_suffix(ending)));
    let loaded = load(text, format, shown.to_owned(), named, tier)?;
    Ok(LoadedFormula { path: Some(path.to_owned()), ..loaded })
}

fn load_built_in(name: &str, text: &str) -> Result<LoadedFormula> {
    static FORMULAS: NamedCache<LoadedFormula> = NamedCache::new();
    FORMULAS.get(name, || {
        let location = format!("{name} (built in)");
        load(text.to_owned(), FormulaFormat::Toml, location, Some(name), FormulaTier::BuiltIn)
    })
}

fn load(
    text: String,
    format: FormulaFormat,
    location: String,
    named: Option<&str>,
    tier: FormulaTier,
) -> Result<LoadedFormula> {
    let read = read_formula(&text, format, &location);
    let formula = read.formula;
    let mut warnings = read.warnings;
    if !read.problems.is_empty() {
        let name = if formula.name.is_empty() { named.unwrap_or(&location) } else { &formula.name };
        // A problem that validation finds as well is told once, as reading put it.
        let told = |found: &FormulaProblem| {
            let same = |read: &FormulaProblem| read.source.line == found.source.line;
            read.problems.iter().any(same)
        };
        let mut problems = read.problems.clone();
        let steps_were_read = !formula.steps.is_empty() || !formula.template.is_empty();
        let more = validate(&formula).into_iter().filter(|found| !told(found));
        problems.extend(more.filter(|found| steps_were_read && found.source.line.is_some()));
        return Err(OperationError::Formula { name: name.to_owned(), problems });
    }
    if let Some(named) = named.filter(|named| *named != formula.name && !formula.name.is_empty()) {
        let message = format!(
            "the file is called {named}, but the formula in it {}; it is found by the name of the file",
            formula.name
        );
        warnings.push(FormulaProblem::new(&formula.source, "", message));
    }
    Ok(LoadedFormula { formula, text, location, path: None, tier, warnings })
}
