//! A `.beads` directory of another tool: found, looked through, never written to.

use std::path::{Path, PathBuf};

use gt_records::{Route, flat_settings, parse_route, redirect_target};

use super::import_contents::{ArrivingSetting, ImportContents, SourceKind};
use super::lines::LineFile;
use super::{ImportOptions, dump, files};
use gt_town::{OperationError, Result};

/// The name of such a directory.
pub(super) const NAME: &str = ".beads";

/// One of these makes a directory of another name such a directory.
const MARKS: [&str; 5] =
    ["issues.jsonl", "beads.jsonl", "metadata.json", "config.yaml", "redirect"];

/// How often one directory may send to the next.
const HOPS_MAX: usize = 3;

/// Which prefix belongs where, in towns of several projects.
const ROUTES: &str = "routes.jsonl";

/// Where the tables are written out from time to time.
const BACKUP: &str = "backup";

/// Other files of lines that are no beads, and what they are.
const OTHER_LINES: [(&str, &str); 5] = [
    ("sync_base.jsonl", "the last state that was synchronised"),
    ("deletions.jsonl", "what was deleted there is not deleted here"),
    ("interactions.jsonl", "the log of other tools is not replayed"),
    ("events.jsonl", "the log of other tools is not replayed"),
    (
        "molecules.jsonl",
        "a catalogue of templates; import it by its name if you want them as beads",
    ),
];

/// The files that merge tools leave behind.
const MERGE_LEFTOVERS: [&str; 3] = [".base.jsonl", ".left.jsonl", ".right.jsonl"];

/// The keys under which a store says what its ids begin with.
const PREFIX_KEYS: [&str; 2] = ["issue-prefix", "issue_prefix"];

/// Whether a setting says what the ids of a store begin with.
pub(super) fn is_prefix_key(key: &str) -> bool {
    PREFIX_KEYS.contains(&key)
}

/// The contents of a `.beads` directory.
#[derive(Debug, Default)]
pub(super) struct BeadsDirectory {
    /// Where it really is.
    pub(super) directory: PathBuf,
    /// The file of its beads.
    lines: Option<PathBuf>,
    /// A dump of its tables, made as a backup.
    backup: Option<PathBuf>,
    /// Whether there is a database that we do not read.
    has_database: bool,
    /// The prefix of its ids, and the file that names it.
    prefix: Option<(String, String)>,
    settings: Vec<ArrivingSetting<String>>,
    left_out: Vec<String>,
}

/// The `.beads` directory that `path` is or holds.
pub(super) fn at(path: &Path) -> Option<PathBuf> {
    let inside = path.join(NAME);
    if inside.is_dir() {
        return Some(inside);
    }
    let is_one = files::name(&path.canonicalize().ok()?) == NAME
        || MARKS.iter().any(|mark| path.join(mark).is_file());
    is_one.then(|| path.to_owned())
}

/// Everything that the `.beads` directory at `path` brings.
pub(super) fn arrival(path: &Path, options: ImportOptions) -> Result<ImportContents> {
    let directory = at(path).unwrap_or_else(|| path.to_owned());
    let contents = read(&directory)?;
    let (routes, wrong) = routes(&contents.directory)?;
    let mut arrival = contents.bring(options)?;
    arrival.left_out.extend(routes.iter().map(|route| {
        format!(
            "the route of {}- to {}: rigs find their beads by prefix here; gt import of the whole town \
             brings rigs",
            route.prefix, route.path
        )
    }));
    arrival.left_out.extend(wrong);
    Ok(ImportContents { kind: SourceKind::BeadsDirectory, ..arrival })
}

/// Why there is nothing to read, and what to do about it.
fn without_lines(contents: &BeadsDirectory) -> OperationError {
    let directory = contents.directory.display();
    OperationError::rejected(if contents.has_database {
        format!(
            "{directory} keeps its beads in a database and not in a JSONL file; write them out with \
             the bd it was made with (bd export -o {directory}/issues.jsonl), then import again"
        )
    } else {
        format!("there is no JSONL file of beads in {directory}; give the file itself")
    })
}

/// Looks through the directory, or the one it sends to.
pub(super) fn read(directory: &Path) -> Result<BeadsDirectory> {
    let directory = follow(directory)?;
    let mut contents = BeadsDirectory { directory: directory.clone(), ..BeadsDirectory::default() };
    let metadata = files::json(&directory.join("metadata.json"))?.map(|(value, _)| value);
    let word = |key: &str| metadata.as_ref()?.get(key)?.as_str();
    let entries = files::entries(&directory)?;
    contents.has_database = word("backend") == Some("dolt")
        || word("dolt_database").is_some()
        || entries.iter().any(|entry| is_database(entry));
    contents.backup = Some(directory.join(BACKUP)).filter(|backup| dump::is_one(backup));
    contents.lines = choose_lines(&directory, &entries, word("jsonl_export"))?;
    contents.read_settings()?;
    contents.report_left_out(&entries);
    Ok(contents)
}

/// Follows `redirect` files to the directory that is meant.
fn follow(directory: &Path) -> Result<PathBuf> {
    let find = |path: &Path| {
        path.canonicalize().map_err(|source| OperationError::File {
            action: "find",
            path: path.to_owned(),
            source,
        })
    };
    let mut path = vec![find(directory)?];
    loop {
        let here = path[path.len() - 1].clone();
        let redirect = here.join("redirect");
        let text = files::text(&redirect)?;
        let Some(target) = text.as_deref().and_then(redirect_target) else {
            return Ok(here);
        };
        // Relative to the project, which is the directory around this one.
        let target = here.parent().unwrap_or(&here).join(target);
        let next = match target.canonicalize() {
            Ok(next) if next.is_dir() => next,
            _ => {
                let why = format!("it points to {}, which is no directory", target.display());
                return Err(files::wrong(&redirect, why));
            }
        };
        let inside = next.join(NAME);
        let next = if files::name(&next) != NAME && inside.is_dir() { inside } else { next };
        if path.contains(&next) {
            return Err(files::wrong(&redirect, "it leads back to where it began"));
        }
        if path.len() > HOPS_MAX {
            let why = format!("it is one redirect too many; at most {HOPS_MAX} are followed");
            return Err(files::wrong(&redirect, why));
        }
        path.push(next);
    }
}

fn is_database(entry: &Path) -> bool {
    let name = files::name(entry);
    let is_file = entry.extension().is_some_and(|extension| extension == "db") && entry.is_file();
    is_file || (["dolt", "embeddeddolt"].contains(&name.as_str()) && entry.is_dir())
}

/// The file of beads: the one the directory names, else one of the usual names, else the only one.
fn choose_lines(
    directory: &Path,
    entries: &[PathBuf],
    named: Option<&str>,
) -> Result<Option<PathBuf>> {
    let named = named.filter(|name| !name.contains('/')).map(|name| directory.join(name));
    if let Some(named) = named.filter(|path| path.is_file()) {
        return Ok(Some(named));
    }
    let is_empty = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.len() == 0);
    let candidates: Vec<&PathBuf> = entries
        .iter()
        .filter(|entry| entry.extension().is_some_and(|extension| extension == "jsonl"))
        .filter(|entry| entry.is_file() && !is_other(&files::name(entry)))
        .collect();
    let usual = |entry: &&PathBuf| MARKS[..2].contains(&files::name(entry).as_str());
    let mut likely: Vec<&PathBuf> = candidates.iter().copied().filter(usual).collect();
    if likely.is_empty() {
        likely = candidates;
    }
    if likely.len() > 1 {
        let filled: Vec<&PathBuf> = likely.iter().copied().filter(|path| !is_empty(path)).collect();
        likely.truncate(1);
        likely = if filled.is_empty() { likely } else { filled };
    }
    match likely.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).clone())),
        several => {
            let names: Vec<String> = several.iter().map(|path| files::name(path)).collect();
            Err(OperationError::rejected(format!(
                "there are several files of beads in {} ({}), and it is not plain which one counts; \
                 give the file itself",
                directory.display(),
                names.join(", ")
            )))
        }
    }
}

fn is_other(name: &str) -> bool {
    name == ROUTES || OTHER_LINES.iter().any(|(other, _)| *other == name) || is_leftover(name)
}

fn is_leftover(name: &str) -> bool {
    MERGE_LEFTOVERS.iter().any(|ending| name.ends_with(ending))
}

impl BeadsDirectory {
    /// Whether there is nothing that could be beads.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_none() && self.backup.is_none() && !self.has_database
    }

    /// The import of its contents: the beads in its file of lines, or else those in its backup.
    pub(super) fn bring(self, options: ImportOptions) -> Result<ImportContents> {
        let directory = self.directory.display();
        let mut arrival = match (&self.lines, &self.backup) {
            (Some(lines), backup) => {
                let mut arrival = ImportContents::lines(LineFile::open(lines)?);
                let unread = match backup {
                    Some(_) => Some("the backup"),
                    None => self.has_database.then_some("the database"),
                };
                arrival.remarks.extend(unread.map(|unread| {
                    format!(
                        "{unread} in {directory} was not read; if it knows more than {}, import that \
                         too (bd import {directory}/{BACKUP}, or bd export -o by the bd it was made \
                         with)",
                        files::name(lines)
                    )
                }));
                arrival
            }
            (None, Some(backup)) => {
                let mut arrival = dump::arrival(backup, options)?;
                arrival.remarks.push(format!(
                    "the beads of {directory} come from its backup; what changed since is in its \
                     database (bd export -o by the bd it was made with)"
                ));
                arrival
            }
            (None, None) => return Err(without_lines(&self)),
        };
        arrival.free_settings.extend(self.settings);
        arrival.prefixes.extend(self.prefix);
        arrival.left_out.extend(self.left_out);
        Ok(arrival)
    }

    fn read_settings(&mut self) -> Result<()> {
        let path = self.directory.join("config.yaml");
        let Some(text) = files::text(&path)? else { return Ok(()) };
        let file = path.display().to_string();
        let (found, others) = flat_settings(&text);
        for (name, value) in found {
            if is_prefix_key(&name) {
                self.prefix = Some((value, file.clone()));
            } else {
                self.settings.push(ArrivingSetting { name, value, file: file.clone() });
            }
        }
        if !others.is_empty() {
            let lines: Vec<String> = others.iter().map(ToString::to_string).collect();
            self.left_out
                .push(format!("{file}, line {}: not of the form key: value", lines.join(", ")));
        }
        Ok(())
    }

    fn report_left_out(&mut self, entries: &[PathBuf]) {
        for entry in entries {
            let (name, shown) = (files::name(entry), entry.display());
            let size = entry.metadata().map_or(0, |metadata| metadata.len());
            let other = OTHER_LINES.iter().find(|(other, _)| *other == name);
            if let Some((_, why)) = other.filter(|_| size > 0) {
                self.left_out.push(format!("{shown}: {why}"));
            } else if is_leftover(&name) {
                self.left_out.push(format!("{shown}: left behind by a merge, not read"));
            } else if ["formulas", "hooks"].contains(&name.as_str()) && entry.is_dir() {
                self.left_out.push(format!("{shown}: stays where it is"));
            }
        }
    }
}

/// The routes in a `.beads` directory, with what is wrong with the others.
pub(super) fn routes(directory: &Path) -> Result<(Vec<Route>, Vec<String>)> {
    let path = directory.join(ROUTES);
    let Some(text) = files::text(&path)? else { return Ok((Vec::new(), Vec::new())) };
    let (mut routes, mut wrong) = (Vec::new(), Vec::new());
    let mut more_wrong = 0_usize;
    for (number, line) in text.lines().enumerate() {
        match parse_route(line) {
            Ok(route) => routes.extend(route),
            Err(error) if wrong.len() < WRONG_ROUTES_MAX => {
                wrong.push(format!("{}:{}: {error}", path.display(), number + 1));
            }
            Err(_) => more_wrong += 1,
        }
    }
    if more_wrong > 0 {
        wrong.push(format!("{}: {more_wrong} more lines that are no routes", path.display()));
    }
    Ok((routes, wrong))
}

/// How many lines of a file that are no routes are told one by one.
const WRONG_ROUTES_MAX: usize = 5;
