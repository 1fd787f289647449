//! Writing every bead, one per line.

use gt_core::Json;
use gt_core::limits::PAGE_BEADS;
use gt_records::{BeadView, export_line, export_memory_line};
use gt_store::{BeadFilter, BeadOrder, SettingScope};

use crate::beads::{everything, listed};
use gt_town::{OperationError, Result, Town};

/// Hands every bead (and every memory that was imported) to `each` as one line of JSON, without its newline, all from
/// one state of the town. Returns how many beads there were.
pub fn export<E: From<OperationError>>(
    town: &Town,
    mut each: impl FnMut(&str) -> Result<(), E>,
) -> Result<u64, E> {
    let everything = BeadFilter { order: BeadOrder::Id, ..everything() };
    let mut outcome = Ok(());
    let mut count = 0;
    town.read(|reader| {
        for page in reader.find(&everything)?.chunks(PAGE_BEADS) {
            for row in reader.bead_rows(page)? {
                let labels = match row.labels.len() {
                    0 => Vec::new(),
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
        for (key, value) in reader.settings(SettingScope::Memory)? {
            outcome = each(&export_memory_line(&key, &Json::trusted(value)));
            if outcome.is_err() {
                return Ok(());
            }
        }
        Ok(())
    })?;
    outcome.map(|()| count)
}
