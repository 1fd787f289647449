//! A dump of database tables: a file per table, joined into records.
//!
//! Labels, edges and comments are held in memory until their issue comes by; issues are not. The records
//! go into a file without a name, a row a line, and from there the way of every import.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use gt_core::Json;
use gt_records::{
    RecordError, RowParts, comment_row, config_row, dependency_row, export_memory_line, issue_row,
    label_row, row_id, table_rows,
};

use super::beads_directory::{self, is_prefix_key};
use super::import_contents::{ArrivingSetting, ImportContents, SourceKind};
use super::lines::LineFile;
use super::{ImportOptions, files};
use gt_town::{OperationError, Result};

/// The tables of issues, with what the names of their other tables begin with.
const ISSUES: [(&str, &str); 2] = [("issues", ""), ("wisps", "wisp_")];
/// The tables that belong to each of them.
const PARTS: [&str; 3] = ["labels", "dependencies", "comments"];

/// The prefix of keys of the config table that hold memories.
const MEMORY: &str = "kv.memory.";

/// Whether there is such a dump in `directory`.
pub(super) fn is_one(directory: &Path) -> bool {
    let has =
        |table: &str| ENDINGS.iter().any(|end| directory.join(format!("{table}.{end}")).is_file());
    // A `.beads` directory may have a log of its own beside its issues.
    let is_named = directory.file_name().is_some_and(|name| name == beads_directory::NAME);
    has("issues") && (PARTS.into_iter().any(has) || (has("events") && !is_named))
}

/// Everything that the dump in `directory` brings.
pub(super) fn arrival(directory: &Path, options: ImportOptions) -> Result<ImportContents> {
    let mut arrival = ImportContents { kind: SourceKind::TableDump, ..ImportContents::default() };
    let mut known = Vec::new();
    for (issues, beginning) in ISSUES {
        let mut parts = IssueParts::default();
        for part in PARTS {
            let Some(table) = TableFile::find(directory, &format!("{beginning}{part}"))? else {
                continue;
            };
            known.push(table.path.clone());
            parts.read(&table, part, options, &mut arrival.left_out)?;
        }
        if let Some(table) = TableFile::find(directory, issues)? {
            known.push(table.path.clone());
            arrival.sources.push(parts.join(&table)?);
        }
        parts.report_orphans(&mut arrival.left_out);
        if let Some(events) = TableFile::find(directory, &format!("{beginning}events"))? {
            let mut count = 0_u64;
            events.for_each_row(|_, _| {
                count += 1;
                Ok(())
            })?;
            arrival.left_out.push(format!(
                "{}: {count} events of the old history are not replayed; the log here begins with \
                 the import",
                events.path.display()
            ));
            known.push(events.path);
        }
    }
    if let Some(config) = TableFile::find(directory, "config")? {
        read_config(&config, options, &mut arrival)?;
        known.push(config.path);
    }
    for entry in files::entries(directory)? {
        let is_table = ENDINGS.iter().any(|end| entry.extension().is_some_and(|e| e == *end));
        if is_table && !known.contains(&entry) {
            arrival.left_out.push(format!("{}: not a table of beads", entry.display()));
        }
    }
    Ok(arrival)
}

fn read_config(
    table: &TableFile,
    options: ImportOptions,
    arrival: &mut ImportContents,
) -> Result<()> {
    let file = table.path.display().to_string();
    let mut memories = String::new();
    table.for_each_row(|number, row| {
        match config_row(row) {
            Ok((key, value)) if key.len() > MEMORY.len() && key.starts_with(MEMORY) => {
                let value = Json::string(&value);
                memories.push_str(&export_memory_line(&key[MEMORY.len()..], &value));
                memories.push('\n');
            }
            Ok((key, value)) if is_prefix_key(&key) => {
                arrival.prefixes.push((value, file.clone()));
            }
            Ok((name, value)) => {
                arrival.free_settings.push(ArrivingSetting { name, value, file: file.clone() });
            }
            Err(error) => arrival.left_out.push(table.wrong(number, &error, options)?),
        }
        Ok(())
    })?;
    if !memories.is_empty() {
        let directory = std::env::temp_dir();
        arrival.sources.push(LineFile::spool(memories.as_bytes(), file, &directory)?);
    }
    Ok(())
}

/// The rows of the other tables, by issue.
#[derive(Default)]
struct IssueParts(HashMap<String, RowParts>);

impl IssueParts {
    fn read(
        &mut self,
        table: &TableFile,
        part: &str,
        options: ImportOptions,
        left_out: &mut Vec<String>,
    ) -> Result<()> {
        table.for_each_row(|number, row| {
            let parsed = match part {
                "labels" => label_row(row),
                "dependencies" => dependency_row(row),
                _ => comment_row(row),
            };
            match parsed {
                Ok((issue, json)) => {
                    let parts = self.0.entry(issue).or_default();
                    match part {
                        "labels" => parts.labels.push(json),
                        "dependencies" => parts.dependencies.push(json),
                        _ => parts.comments.push(json),
                    }
                }
                Err(error) => left_out.push(table.wrong(number, &error, options)?),
            }
            Ok(())
        })
    }

    /// The rows of a table of issues as records, a line for each row.
    fn join(&mut self, table: &TableFile) -> Result<LineFile> {
        let name = table.path.display().to_string();
        LineFile::written(name, &std::env::temp_dir(), |out, failed| {
            let mut written = 0;
            table.for_each_row(|number, row| {
                let parts = row_id(row).and_then(|id| self.0.remove(&id)).unwrap_or_default();
                // Blank lines keep the numbers the same, so that what is wrong can be found.
                let blank = usize::try_from(number - written - 1).unwrap_or(0);
                written = number;
                writeln!(out, "{}{}", "\n".repeat(blank), issue_row(row, &parts)).map_err(failed)
            })
        })
    }

    fn report_orphans(self, left_out: &mut Vec<String>) {
        let mut orphans: Vec<(String, RowParts)> = self.0.into_iter().collect();
        orphans.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(more) = orphans.len().checked_sub(ORPHANS_NAMED_MAX).filter(|more| *more > 0) {
            left_out.push(format!("{more} more issues that are not in the dump"));
        }
        for (issue, parts) in orphans.into_iter().take(ORPHANS_NAMED_MAX) {
            left_out.push(format!(
                "{issue}: it is not in the dump, but {} labels, {} dependencies and {} comments of \
                 it are",
                parts.labels.len(),
                parts.dependencies.len(),
                parts.comments.len()
            ));
        }
    }
}

/// How many issues are named of those that only other tables know.
const ORPHANS_NAMED_MAX: usize = 100;

/// How files of tables end.
const ENDINGS: [&str; 2] = ["jsonl", "json"];

/// A file with the rows of a table.
struct TableFile {
    path: PathBuf,
}

impl TableFile {
    fn find(directory: &Path, name: &str) -> Result<Option<Self>> {
        let paths = ENDINGS.map(|end| directory.join(format!("{name}.{end}")));
        let mut found = paths.into_iter().filter(|path| path.is_file());
        match (found.next(), found.next()) {
            (Some(first), Some(second)) => Err(OperationError::rejected(format!(
                "{} and {} are the same table; remove the one that does not count",
                first.display(),
                second.display()
            ))),
            (path, _) => Ok(path.map(|path| Self { path })),
        }
    }

    /// Hands every row to `each` with its number: of its line, or in the array.
    fn for_each_row(&self, mut each: impl FnMut(u64, &str) -> Result<()>) -> Result<()> {
        let source = LineFile::open(&self.path)?;
        if self.path.extension().is_some_and(|extension| extension == "json") {
            let text = source.text()?;
            let rows = table_rows(&text).map_err(|error| {
                let line = error.line();
                OperationError::rejected(format!(
                    "{}:{line}: not valid JSON: {error}; nothing was imported",
                    self.path.display()
                ))
            })?;
            if let Some(rows) = rows {
                return rows.iter().zip(1..).try_for_each(|(row, number)| each(number, row));
            }
        }
        source.for_each_line(|number, _, bytes| {
            let text = bytes
                .and_then(|bytes| std::str::from_utf8(bytes).map_err(|_| "the line is not UTF-8"));
            let text = text.map_err(|why| {
                OperationError::rejected(format!(
                    "{}:{number}: {why}; nothing was imported",
                    self.path.display()
                ))
            })?;
            each(number, text)
        })
    }

    /// A row that cannot be used: an error, or what is told if such rows are left out.
    fn wrong(&self, number: u64, error: &RecordError, options: ImportOptions) -> Result<String> {
        let what = format!("{}:{number}: {error}", self.path.display());
        if options.skip_invalid {
            return Ok(what);
        }
        Err(OperationError::rejected(format!(
            "{what} (nothing was imported; --skip-invalid leaves such rows out)"
        )))
    }
}
