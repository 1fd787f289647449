//! The steps of a run: their state, the next one, and marking them as done.

use std::collections::{BTreeSet, HashMap};

use gt_core::decide::needs_fresh_session;
use gt_core::schedule::{Run, RunId, RunStep, StepProgress};
use gt_records::run_steps;
use gt_store::{DoneStep, Reader};

use crate::acting::chosen_run;
use gt_town::{OperationError, Result, Town};

/// A step with its state.
#[derive(Debug, Clone)]
pub struct StepView {
    /// The step.
    pub step: RunStep,
    /// Its name, unique within the run.
    pub name: String,
    /// When it was done, and by which actor.
    pub done: Option<DoneStep>,
    /// The names of the steps that have to be done before it and are not.
    pub waits_for: Vec<String>,
}

/// The steps of a run with their state.
#[derive(Debug, Clone)]
pub struct StepsOfRun {
    /// The run.
    pub run: Run,
    /// Its steps, in the order of its recipe.
    pub steps: Vec<StepView>,
    /// How many of them are done.
    pub progress: StepProgress,
}

impl StepsOfRun {
    /// The step that comes next.
    pub fn next(&self) -> Option<&StepView> {
        self.steps.iter().find(|view| view.done.is_none() && view.waits_for.is_empty())
    }
}

/// The outcome of saying that steps are done.
#[derive(Debug, Clone)]
pub struct StepsDone {
    /// The run.
    pub run: RunId,
    /// The steps that are done now, and were not before: their names and titles.
    pub newly_done: Vec<(String, String)>,
    /// The names of those that were done before.
    pub already: Vec<String>,
    /// How many steps are done.
    pub progress: StepProgress,
    /// The step that comes next: its name and title.
    pub next: Option<(String, String)>,
    /// The worker has a fresh session for each step, and the next one is due.
    pub fresh_session_due: bool,
}

/// The steps of a worker's own run, or of the run that was asked for.
pub fn steps(town: &Town, asked: Option<&str>) -> Result<StepsOfRun> {
    town.read(|reader| {
        let run = chosen_run(town, reader, asked)?;
        steps_in(reader, run)
    })
}

/// The steps of this run with their state.
pub fn steps_in(reader: &Reader<'_>, run: Run) -> Result<StepsOfRun> {
    let plan = run_steps(&run.steps);
    let done = reader.steps_done(&run.id)?;
    let ids: BTreeSet<String> = done.iter().map(|done| done.step.clone()).collect();
    let progress = plan.progress(&ids);
    let view = |step: &RunStep| StepView {
        name: plan.shortest(step),
        done: done.iter().find(|done| done.step == step.id).cloned(),
        waits_for: plan.waits_for(step, &ids),
        step: step.clone(),
    };
    let steps = plan.as_slice().iter().map(view).collect();
    Ok(StepsOfRun { run, steps, progress })
}

/// Marks steps of a worker's own run, or of the run that was asked for, as done: all of them, or none.
pub fn finish_steps(
    town: &Town,
    asked: Option<&str>,
    said: &[String],
    force: bool,
) -> Result<StepsDone> {
    town.write(|writer| {
        let run = chosen_run(town, writer, asked)?;
        if !run.state.is_live() {
            return Err(OperationError::rejected(format!(
                "{} is {}; only the steps of a live run can be marked as done",
                run.id,
                run.state.as_str()
            )));
        }
        let plan = run_steps(&run.steps);
        let mut done = ids_done(writer, &run.id)?;
        let before = plan.progress(&done);
        let newly_done = plan.newly_done(&done, said, force).map_err(|refusal| {
            OperationError::rejected(format!("cannot mark a step of {} as done: {refusal}", run.id))
        })?;
        let named = |step: &RunStep| (plan.shortest(step), step.title.clone());
        let mut already = Vec::new();
        for input in said {
            if let Ok(step) = plan.find(input)
                && done.contains(&step.id)
                && !already.contains(&plan.shortest(step))
            {
                already.push(plan.shortest(step));
            }
        }
        for step in &newly_done {
            writer.finish_step(&run, step)?;
            done.insert(step.id.clone());
        }
        // A person who marks a step as done does not end the session of a worker.
        let is_own = town.acting_run() == Some(&run.id) && run.executor.takes_slot();
        let context = if is_own { writer.context_by_number(run.context)? } else { None };
        let step_by_step = context.is_some_and(|context| context.parameters.ralph);
        let progress = plan.progress(&done);
        Ok(StepsDone {
            fresh_session_due: needs_fresh_session(step_by_step, before, progress),
            newly_done: newly_done.into_iter().map(named).collect(),
            already,
            progress,
            next: plan.next(&done).map(named),
            run: run.id,
        })
    })
}

fn ids_done(reader: &Reader<'_>, run: &RunId) -> Result<BTreeSet<String>> {
    Ok(reader.steps_done(run)?.into_iter().map(|done| done.step).collect())
}

/// How many steps of a run are done; nothing if it follows no recipe.
pub fn progress_in(reader: &Reader<'_>, run: &Run) -> Result<Option<StepProgress>> {
    let plan = run_steps(&run.steps);
    if plan.is_empty() {
        return Ok(None);
    }
    Ok(Some(plan.progress(&ids_done(reader, &run.id)?)))
}

/// The progress of every live run at once; the runs are read without their steps.
pub fn progress_of_live(reader: &Reader<'_>) -> Result<HashMap<RunId, StepProgress>> {
    let live = reader.steps_of_live_runs()?.into_iter().filter_map(|live| {
        let total = run_steps(&live.steps).as_slice().len();
        let done = usize::try_from(live.done).unwrap_or(usize::MAX).min(total);
        (total > 0).then_some((live.run, StepProgress { done, total }))
    });
    Ok(live.collect())
}
