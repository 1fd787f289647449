//! Lists of work items, part by part.

use gt_core::work::{Cursor, WorkFilter};

use super::error::{WorkError, WorkResult};
use super::requests::ItemPage;
use gt_town::Town;

/// At most `limit` items that the filter admits, from a place in its list on.
pub fn list(
    town: &Town,
    filter: &WorkFilter,
    after: Option<&Cursor>,
    limit: usize,
) -> WorkResult<ItemPage> {
    let after = after.map(|cursor| cursor.position_in(filter)).transpose();
    let after = after.map_err(|error| WorkError::invalid("cursor", &error))?;
    // One more than is shown says whether there are more.
    let mut items = town.read_for(|reader| {
        Ok::<_, WorkError>(reader.work_items(filter, after, limit.saturating_add(1))?)
    })?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| Cursor::after(filter, last));
    Ok(ItemPage { items, next })
}
