//! Steps of runs that are done.

use gt_core::event::StepNamed;
use gt_core::schedule::{Run, RunId, RunStep};
use gt_core::{EventPayload, Json, Timestamp};

use super::beads::id_from;
use super::contexts::count;
use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    OF_RUN = "SELECT step, done_at, done_by FROM run_steps WHERE bead = ?1 AND epoch = ?2 \
        ORDER BY done_at, step";
    OF_LIVE = "SELECT r.bead, r.epoch, r.steps, (SELECT COUNT(*) FROM run_steps s WHERE s.bead = r.bead \
        AND s.epoch = r.epoch) FROM runs r WHERE r.state IN ('starting', 'running', 'blocked') \
        AND r.formula <> ''";
    PUT = "INSERT INTO run_steps (bead, epoch, step, done_at, done_by) VALUES (?1, ?2, ?3, ?4, ?5) \
        ON CONFLICT (bead, epoch, step) DO NOTHING";
}

/// The steps of a live run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSteps {
    /// The run.
    pub run: RunId,
    /// Its cooked recipe.
    pub steps: Json,
    /// The number of done steps.
    pub done: u64,
}

/// A step that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneStep {
    /// The id of the step.
    pub step: String,
    /// When it was done.
    pub at: Timestamp,
    /// The actor that said so.
    pub by: String,
}

impl Reader<'_> {
    /// The steps of every live run that follows a recipe, all at once: a list of runs needs all of them.
    pub fn steps_of_live_runs(&self) -> Result<Vec<LiveSteps>, StoreError> {
        self.rows(OF_LIVE, &[], |row| {
            let epoch = u32::try_from(row.int(1)?)
                .map_err(|_| StoreError::Corrupt("an epoch that is no small number".to_owned()))?;
            Ok(LiveSteps {
                run: RunId { bead: id_from(row, 0)?, epoch },
                steps: Json::trusted(row.text(2)?.to_owned()),
                done: count(row.int(3)?),
            })
        })
    }

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
        let (step, title) = (step.id.clone(), step.title.clone());
        self.record_run(run, EventPayload::StepDone(StepNamed { step, title }));
        Ok(true)
    }
}
