//! Writing every bead, one per line.

use std::collections::BTreeMap;

use gt_core::Json;
use gt_core::limits::PAGE_BEADS;
use gt_records::{BeadView, export_line, export_memory_line};
use gt_store::{BeadFilter, BeadOrder, SettingScope};

use crate::beads::listed;
use crate::tombstones::tombstones;
use gt_town::{OperationError, Result, Town};

/// Records that an export leaves out or adds; every bead and nothing else by default.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExportOptions {
    /// No memories.
    pub no_memories: bool,
    /// No ephemeral beads and none of the types that lists hide.
    pub scrub: bool,
    /// With a record for each bead that was deleted lately.
    pub tombstones: bool,
    /// Labels by their names instead of in the order in which they were added, which differs between clones.
    pub sorted_labels: bool,
}

/// Hands every bead (and every memory) to `each` as one line of JSON, without its newline, all from
/// one state of the town. Returns how many beads there were.
pub fn export<E: From<OperationError>>(
    town: &Town,
    each: impl FnMut(&str) -> Result<(), E>,
) -> Result<u64, E> {
    export_some(town, ExportOptions::default(), each)
}

/// Like [`export`], without what the options leave out.
pub fn export_some<E: From<OperationError>>(
    town: &Town,
    options: ExportOptions,
    mut each: impl FnMut(&str) -> Result<(), E>,
) -> Result<u64, E> {
    let everything = BeadFilter {
        order: BeadOrder::Id,
        include_ephemeral: !options.scrub,
        include_hidden: !options.scrub,
        ..BeadFilter::everything()
    };
    let mut outcome = Ok(());
    let mut count = 0;
    town.read(|reader| {
        let deleted =
            if options.tombstones { tombstones(reader, town.now())? } else { BTreeMap::new() };
        let mut deleted = deleted.into_iter().peekable();
        for page in reader.find(&everything)?.chunks(PAGE_BEADS) {
            for row in reader.bead_rows(page)? {
                while let Some((_, (_, line))) = deleted.next_if(|(id, _)| *id < row.bead.id) {
                    outcome = each(&line);
                    if outcome.is_err() {
                        return Ok(());
                    }
                }
                let labels = match row.labels.len() {
                    0 => Vec::new(),
                    _ if options.sorted_labels => row.labels.clone(),
                    _ => reader.labels_in_order(&row.bead)?,
                };
                let comments = match row.comments {
                    0 => Vec::new(),
                    _ => reader.comments(&row.bead.id)?,
                };
                outcome = each(&export_line(&BeadView {
                    labels: &labels,
                    comments: &comments,
                    parent: None,
                    ..listed(&row)
                }));
                if outcome.is_err() {
                    return Ok(());
                }
                count += 1;
            }
        }
        for (_, (_, line)) in deleted {
            outcome = each(&line);
            if outcome.is_err() {
                return Ok(());
            }
        }
        let memories =
            if options.no_memories { Vec::new() } else { reader.settings(SettingScope::Memory)? };
        for (key, value) in memories {
            outcome = each(&export_memory_line(&key, &Json::trusted(value)));
            if outcome.is_err() {
                return Ok(());
            }
        }
        Ok(())
    })?;
    outcome.map(|()| count)
}
