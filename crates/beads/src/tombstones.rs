//! Records of deleted beads. A clone of the repository that still has such a bead would bring it back otherwise.

use std::collections::BTreeMap;
use std::time::Duration;

use gt_core::{Bead, BeadId, Timestamp};
use gt_records::{RecordLine, TombstoneRecord, export_tombstone_line, parse_line};
use gt_store::{Reader, SettingScope, Writer};

use gt_town::Result;

/// How long a deletion is remembered. A clone that has not been brought up to date for longer may bring the bead back.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// Remembers that a bead is deleted now. Machinery is in no file that clones share.
pub(crate) fn remember_deletion(writer: &mut Writer<'_>, bead: &Bead) -> Result<()> {
    if bead.ephemeral {
        return Ok(());
    }
    let line = export_tombstone_line(bead, writer.now(), writer.actor());
    // A worker may delete its own beads, but change no other row of this table.
    writer.as_consequence(|writer| {
        writer.put_setting(SettingScope::Tombstone, bead.id.as_str(), Some(&line)).map(drop)
    })?;
    Ok(())
}

/// Remembers a deletion that another clone made. The later of two counts.
pub(crate) fn keep_tombstone(writer: &mut Writer<'_>, tombstone: &TombstoneRecord) -> Result<()> {
    let known = writer.setting(SettingScope::Tombstone, tombstone.id.as_str())?;
    let known = known.and_then(|text| read(&text, writer.now()));
    if known.is_none_or(|known| known.deleted_at < tombstone.deleted_at) {
        let record = tombstone.record.as_str();
        writer.put_setting(SettingScope::Tombstone, tombstone.id.as_str(), Some(record))?;
    }
    Ok(())
}

/// The deletions that are remembered, of beads that have not come back.
pub(crate) fn tombstones(
    reader: &Reader<'_>,
    now: Timestamp,
) -> Result<BTreeMap<BeadId, (Timestamp, String)>> {
    let mut found = BTreeMap::new();
    for (_, text) in reader.settings(SettingScope::Tombstone)? {
        if let Some(TombstoneRecord { id, deleted_at: Some(at), .. }) = read(&text, now)
            && at >= now.minus(KEPT)
        {
            found.insert(id, (at, text));
        }
    }
    let there = reader.existing(found.keys())?;
    found.retain(|id, _| !there.contains(id));
    Ok(found)
}

/// Forgets the deletions that are too old to be remembered.
pub fn forget_old_tombstones(writer: &mut Writer<'_>) -> Result<()> {
    let now = writer.now();
    for (key, text) in writer.settings(SettingScope::Tombstone)? {
        let deleted_at = read(&text, now).and_then(|tombstone| tombstone.deleted_at);
        if deleted_at.is_none_or(|at| at < now.minus(KEPT)) {
            writer.put_setting(SettingScope::Tombstone, &key, None)?;
        }
    }
    Ok(())
}

fn read(text: &str, now: Timestamp) -> Option<TombstoneRecord> {
    match parse_line(text, now) {
        Ok(RecordLine::Tombstone(tombstone)) => Some(tombstone),
        _ => None,
    }
}
