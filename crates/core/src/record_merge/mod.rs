//! Merging files of bead records, field by field: two clones of a repository, and the state that both began from.
//!
//! A field that one side changed has its value. Labels, dependencies and comments are merged as sets, metadata by its keys.
//! Where both sides changed one field, the record that was updated later wins, and between equal times the greater value; the
//! value that lost is kept as a comment. A bead that one side deleted and the other changed is as the later of the two left it. Status and everything that belongs to it win or lose together. The order of the sides
//! does not matter.

mod file;
mod record;
#[cfg(test)]
mod tests;

pub use file::MergeProblem;

use std::collections::BTreeSet;

use file::{RecordFile, RecordKey};
use record::FieldMap;

/// The merged file. Problems name the side and the line; then nothing is merged.
pub fn merge_records(base: &str, ours: &str, theirs: &str) -> Result<String, MergeProblem> {
    let base = RecordFile::read("the common ancestor", base)?;
    let ours = RecordFile::read("our side", ours)?;
    let theirs = RecordFile::read("their side", theirs)?;
    let mut merged = RecordFile::default();
    let keys: BTreeSet<&RecordKey> = ours.keys().chain(theirs.keys()).collect();
    for key in keys {
        let before = base.get(key);
        match (ours.get(key), theirs.get(key)) {
            (Some(one), Some(other)) => merge_both(&mut merged, key, before, one, other),
            (Some(kept), None) | (None, Some(kept)) => {
                // Deleted on the other side; a change on this one keeps it.
                if !before.is_some_and(|before| before.is_same(kept)) {
                    merged.put(key.clone(), kept.clone());
                }
            }
            (None, None) => {}
        }
    }
    Ok(merged.text())
}

fn merge_both(
    merged: &mut RecordFile,
    key: &RecordKey,
    before: Option<&FieldMap>,
    one: &FieldMap,
    other: &FieldMap,
) {
    let nothing = FieldMap::default();
    let (record, lost) = record::merge(before.unwrap_or(&nothing), one, other);
    if let (RecordKey::Memory(name), Some(value)) = (key, lost) {
        // A memory has no comments, so that its other value becomes a memory of its own.
        merged.put_spare_memory(name, one, &value);
    }
    merged.put(key.clone(), record);
}
