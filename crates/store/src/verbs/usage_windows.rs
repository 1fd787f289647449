//! The windows of subscriptions.

use std::time::Duration;

use gt_core::Timestamp;
use gt_core::cost::{SeenWindow, UsageWindow};
use gt_core::schedule::{ParkSubject, ParkSubjectKind};

use super::contexts::{as_int, count};
use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError, Writer};

statements! {
    ALL = "SELECT kind, name, window_name, used_percent, length_s, resets_at, seen_at FROM usage_windows \
        ORDER BY kind, name, window_name";
    PUT = "INSERT INTO usage_windows (kind, name, window_name, used_percent, length_s, resets_at, seen_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (kind, name, window_name) DO UPDATE SET \
        used_percent = excluded.used_percent, length_s = excluded.length_s, resets_at = excluded.resets_at, \
        seen_at = excluded.seen_at WHERE excluded.seen_at >= usage_windows.seen_at";
    DELETE = "DELETE FROM usage_windows WHERE kind = ?1 AND name = ?2";
}

impl Reader<'_> {
    /// All windows, each with the account or runtime whose runs use it.
    pub fn usage_windows(&self) -> Result<Vec<(ParkSubject, SeenWindow)>, StoreError> {
        self.rows(ALL, &[], window_from)
    }
}

impl Writer<'_> {
    /// Keeps what a service told of a window, unless something later is known. It is no event: it changes with each request.
    pub fn keep_usage_window(
        &mut self,
        means: &ParkSubject,
        seen: &SeenWindow,
    ) -> Result<(), StoreError> {
        let SeenWindow { window, seen_at } = seen;
        let length = window.length.map(|length| as_int(length.as_secs()));
        let params = [
            means.kind.as_str().into(),
            (&means.name).into(),
            (&window.name).into(),
            window.used_percent.map(i64::from).into(),
            length.into(),
            window.resets_at.into(),
            (*seen_at).into(),
        ];
        self.apply(PUT, &params)
    }

    /// Forgets the windows of an account or runtime.
    pub fn forget_usage_windows(&mut self, means: &ParkSubject) -> Result<(), StoreError> {
        self.apply(DELETE, &[means.kind.as_str().into(), (&means.name).into()])
    }
}

fn window_from(row: &dyn Row) -> Result<(ParkSubject, SeenWindow), StoreError> {
    let means =
        ParkSubject { kind: ParkSubjectKind::parse(row.text(0)?)?, name: row.text(1)?.to_owned() };
    let used = row.int_or_null(3)?.map(|used| u32::try_from(used).unwrap_or(u32::MAX));
    let window = UsageWindow {
        name: row.text(2)?.to_owned(),
        used_percent: used,
        length: row.int_or_null(4)?.map(|seconds| Duration::from_secs(count(seconds))),
        resets_at: row.int_or_null(5)?.map(Timestamp::from_nanos),
    };
    Ok((means, SeenWindow { window, seen_at: Timestamp::from_nanos(row.int(6)?) }))
}
