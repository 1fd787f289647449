//! The contents of an import, from any kind of source.

use std::path::Path;

use gt_core::Json;
use gt_core::settings::SettingName;
use gt_records::RigEntry;

use super::lines::LineFile;
use super::{ImportOptions, ImportSummary, beads_directory, dump, gas_town};
use gt_town::{OperationError, Result};

/// The kind of source that an import reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceKind {
    /// One record per line.
    #[default]
    Lines,
    /// A `.beads` directory.
    BeadsDirectory,
    /// A directory with a file per table.
    TableDump,
    /// A Gas Town directory: rigs, settings and the beads of all its stores.
    GasTown,
}

impl SourceKind {
    /// The kind of the source at `path`.
    pub fn of(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            return Ok(Self::Lines);
        }
        if gas_town::is_one(path) {
            Ok(Self::GasTown)
        } else if dump::is_one(path) {
            Ok(Self::TableDump)
        } else if beads_directory::at(path).is_some() {
            Ok(Self::BeadsDirectory)
        } else {
            Err(OperationError::rejected(format!(
                "{} is a directory in which there is nothing to import; give a JSONL file, a \
                 .beads directory, a dump of tables (issues.jsonl beside labels.jsonl, \
                 dependencies.jsonl, comments.jsonl) or a Gas Town directory (mayor/rigs.json)",
                path.display()
            )))
        }
    }

    /// How people and programs call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lines => "jsonl",
            Self::BeadsDirectory => "beads-directory",
            Self::TableDump => "table-dump",
            Self::GasTown => "gas-town",
        }
    }
}

/// A setting that arrives, and the file it stands in.
#[derive(Debug)]
pub(super) struct ArrivingSetting<Name> {
    pub(super) name: Name,
    pub(super) value: String,
    pub(super) file: String,
}

/// A record that is kept for a later version that can read it.
#[derive(Debug)]
pub(super) struct KeptRecord {
    pub(super) key: &'static str,
    pub(super) value: Json,
    /// Its meaning, in words.
    pub(super) remark: String,
}

/// Everything that one import brings.
#[derive(Debug, Default)]
pub struct ImportContents {
    pub(super) kind: SourceKind,
    pub(super) sources: Vec<LineFile>,
    pub(super) rigs: Vec<RigEntry>,
    /// Settings of the town.
    pub(super) settings: Vec<ArrivingSetting<SettingName>>,
    /// Settings of `bd config`.
    pub(super) free_settings: Vec<ArrivingSetting<String>>,
    /// The prefixes of the ids in a store, and the file that names each.
    pub(super) prefixes: Vec<(String, String)>,
    pub(super) kept: Vec<KeptRecord>,
    pub(super) conflicts: Vec<String>,
    pub(super) left_out: Vec<String>,
    pub(super) remarks: Vec<String>,
}

impl ImportContents {
    /// Beads alone, a record per line.
    pub fn lines(source: LineFile) -> Self {
        Self { sources: vec![source], ..Self::default() }
    }

    /// The contents of `path`, read as `kind`. Nothing there is changed.
    pub fn open(path: &Path, kind: SourceKind, options: ImportOptions) -> Result<Self> {
        match kind {
            SourceKind::Lines => Ok(Self::lines(LineFile::open(path)?)),
            SourceKind::BeadsDirectory => beads_directory::arrival(path, options),
            SourceKind::TableDump => dump::arrival(path, options),
            SourceKind::GasTown => gas_town::arrival(path, options),
        }
    }

    /// Takes over the beads that another arrival brings, and what was configured for them.
    pub(super) fn absorb(&mut self, other: Self) {
        self.sources.extend(other.sources);
        self.free_settings.extend(other.free_settings);
        self.prefixes.extend(other.prefixes);
        self.left_out.extend(other.left_out);
        self.remarks.extend(other.remarks);
    }

    /// How large the files of beads are.
    pub fn bytes(&self) -> u64 {
        self.sources.iter().map(LineFile::bytes).sum()
    }

    pub(super) fn sources(&self) -> &[LineFile] {
        &self.sources
    }

    /// The summary before anything is done.
    pub(super) fn announce(&self) -> ImportSummary {
        ImportSummary {
            kind: self.kind,
            files: self.sources.iter().map(|source| source.name().to_owned()).collect(),
            conflicts: self.conflicts.clone(),
            left_out: self.left_out.clone(),
            remarks: self.remarks.clone(),
            ..ImportSummary::default()
        }
    }
}
