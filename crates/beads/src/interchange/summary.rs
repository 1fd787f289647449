//! The report of an import.

use gt_core::{BeadId, RigSlug, RunId, Status};

use super::SourceKind;

/// Something that was left out, or mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file it stands in, if beads come from several.
    pub file: Option<String>,
    /// The line it stands in; 0 if it is about several.
    pub line: u64,
    /// The bead, if it is known.
    pub id: Option<BeadId>,
    /// The reason.
    pub reason: String,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// The kind of source that was read.
    pub kind: SourceKind,
    /// The files that beads were read from.
    pub files: Vec<String>,
    /// Beads that are new.
    pub created: u64,
    /// Beads that changed.
    pub updated: u64,
    /// Beads that were there just like this.
    pub unchanged: u64,
    /// Beads that were deleted because the file says so.
    pub deleted: u64,
    /// How many beads and edges were left out.
    pub skipped: u64,
    /// Which, and why; the first thousand.
    pub skipped_details: Vec<Skipped>,
    /// How much was mended on the way in.
    pub mended: u64,
    /// The repairs; the first thousand.
    pub repaired: Vec<Skipped>,
    /// Beads that carry the state of an older queue.
    pub old_queue_state: u64,
    /// How many beads with a live run here kept their status and assignee.
    pub kept_running: u64,
    /// Which; the first thousand.
    pub kept_running_details: Vec<String>,
    /// Things to remember.
    pub memories: u64,
    /// Rigs that are new.
    pub rigs: Vec<RigSlug>,
    /// Rigs that were there just like this.
    pub rigs_unchanged: u64,
    /// Settings that were taken over, with their values.
    pub settings: Vec<(String, String)>,
    /// Settings that had this value already.
    pub settings_unchanged: u64,
    /// The records that are kept for later, by key, with their meaning.
    pub kept: Vec<(String, String)>,
    /// Where the town says something else; it is left as it is.
    pub conflicts: Vec<String>,
    /// The records that are there but are not imported, and why.
    pub left_out: Vec<String>,
    /// Further remarks.
    pub remarks: Vec<String>,
}

const DETAILS_MAX: usize = 1000;

impl ImportSummary {
    pub(super) fn skip(
        &mut self,
        file: Option<&str>,
        line: u64,
        id: Option<BeadId>,
        reason: impl Into<String>,
    ) {
        self.skipped += 1;
        if self.skipped_details.len() < DETAILS_MAX {
            let file = file.map(str::to_owned);
            self.skipped_details.push(Skipped { file, line, id, reason: reason.into() });
        }
    }

    pub(super) fn keep_running(&mut self, id: &BeadId, run: &RunId, came: &Status, kept: &Status) {
        self.kept_running += 1;
        if self.kept_running_details.len() < DETAILS_MAX {
            self.kept_running_details
                .push(format!("{id} stays {kept}, although it comes as {came}: {run} works on it"));
        }
    }

    pub(super) fn conflict(&mut self, file: Option<&str>, line: u64, what: &str) {
        if self.conflicts.len() < DETAILS_MAX {
            let place =
                file.map_or_else(|| format!("line {line}"), |file| format!("{file}:{line}"));
            self.conflicts.push(format!("{place}: {what}"));
        }
    }

    pub(super) fn repair(&mut self, file: Option<&str>, line: u64, id: &BeadId, reason: String) {
        self.mended += 1;
        if self.repaired.len() < DETAILS_MAX {
            let (file, id) = (file.map(str::to_owned), Some(id.clone()));
            self.repaired.push(Skipped { file, line, id, reason });
        }
    }
}
