//! The end of what a run has printed, for hosts that do not have its files.

use gt_core::Timestamp;
use gt_core::schedule::RunId;

use super::statements;
use crate::engine::Param;
use crate::{Reader, StoreError, Writer};

statements! {
    ONE = "SELECT bytes, tail FROM run_outputs WHERE bead = ?1 AND epoch = ?2";
    KEEP = "INSERT INTO run_outputs (bead, epoch, bytes, tail, kept_at) VALUES (?1, ?2, ?3, ?4, ?5) \
        ON CONFLICT (bead, epoch) DO UPDATE SET bytes = excluded.bytes, tail = excluded.tail, kept_at = excluded.kept_at";
    FORGET = "DELETE FROM run_outputs WHERE kept_at < ?1";
}

/// The end of the output of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutputTail {
    /// How many bytes the whole output has.
    pub bytes: u64,
    /// The last bytes of it.
    pub tail: Vec<u8>,
}

impl Reader<'_> {
    /// The end of the output of a run, if it is kept.
    pub fn run_output(&self, run: &RunId) -> Result<Option<RunOutputTail>, StoreError> {
        self.first(ONE, &[(&run.bead).into(), i64::from(run.epoch).into()], |row| {
            let bytes = u64::try_from(row.int(0)?).unwrap_or(0);
            Ok(RunOutputTail { bytes, tail: row.blob(1)?.to_owned() })
        })
    }
}

impl Writer<'_> {
    /// Keeps the end of the output of a run, in place of what was kept before.
    pub fn keep_run_output(
        &mut self,
        run: &RunId,
        output: &RunOutputTail,
    ) -> Result<(), StoreError> {
        let bytes = i64::try_from(output.bytes).unwrap_or(i64::MAX);
        let (epoch, now) = (i64::from(run.epoch), self.now());
        let params =
            [(&run.bead).into(), epoch.into(), bytes.into(), Param::Blob(&output.tail), now.into()];
        self.apply(KEEP, &params)
    }

    /// Removes the outputs that were kept before this moment; says how many.
    pub fn forget_run_outputs(&mut self, before: Timestamp) -> Result<u64, StoreError> {
        self.execute(FORGET, &[before.into()])
    }
}
