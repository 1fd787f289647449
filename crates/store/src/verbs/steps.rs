//! Steps of runs that are done.

use gt_core::schedule::{Run, RunId, RunStep};
use gt_core::{EventKind, Json, Timestamp};

use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    OF_RUN = "SELECT step, done_at, done_by FROM run_steps WHERE bead = ?1 AND epoch = ?2 \
        ORDER BY done_at, step";
    PUT = "INSERT INTO run_steps (bead, epoch, step, done_at, done_by) VALUES (?1, ?2, ?3, ?4, ?5) \
        ON CONFLICT (bead, epoch, step) DO NOTHING";
}

/// A step that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneStep {
    /// The id of the step.
    pub step: String,
    /// Since when.
    pub at: Timestamp,
    /// Who said so.
    pub by: String,
}

impl Reader<'_> {
    /// The steps of a run that are done, in the order in which they were.
    pub fn steps_done(&self, run: &RunId) -> Result<Vec<DoneStep>, StoreError> {
        self.rows(OF_RUN, &[(&run.bead).into(), i64::from(run.epoch).into()], |row| {
            Ok(DoneStep {
                step: row.text(0)?.to_owned(),
                at: Timestamp::from_nanos(row.int(1)?),
                by: row.text(2)?.to_owned(),
            })
        })
    }
}

impl Writer<'_> {
    /// A step of a run is done; `false` if it was before.
    pub fn finish_step(&mut self, run: &Run, step: &RunStep) -> Result<bool, StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            (&step.id).into(),
            self.now().into(),
            self.actor().into(),
        ];
        if self.execute(PUT, &params)? == 0 {
            return Ok(false);
        }
        let fields = [("step", Json::string(&step.id)), ("title", Json::string(&step.title))];
        self.record_run(run, EventKind::StepDone, &fields);
        Ok(true)
    }
}
