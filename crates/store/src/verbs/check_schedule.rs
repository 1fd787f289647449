//! Recomputing the evaluated columns of contexts, and the values that runs and contexts repeat.

use std::ops::ControlFlow;

use gt_core::schedule::{Context, RunState};
use gt_core::{BeadId, Timestamp};

use super::check::{OnDifference, report_difference};
use super::contexts::{as_int, context_columns, convoys_text};
use super::hydrate::IDS_PER_STATEMENT;
use super::statements;
use super::waits::{EvaluatedContext, stored_from};
use crate::{Reader, StoreError};

statements! {
    WAITING_AFTER = concat!("SELECT ", context_columns!(), ", waits, due_at FROM contexts WHERE closed_at IS NULL \
        AND starting = 0 AND number > ?1 ORDER BY number LIMIT ?2");
    LATEST = "SELECT bead, COALESCE(MAX(CASE WHEN latest = 1 THEN number END), 0), MAX(number) \
        FROM contexts GROUP BY bead HAVING COUNT(CASE WHEN latest = 1 THEN 1 END) <> 1 \
        OR MAX(CASE WHEN latest = 1 THEN number END) <> MAX(number) ORDER BY bead";
    LAST_NUMBER = "SELECT (SELECT COALESCE(MAX(number), 0) FROM contexts), value FROM counters \
        WHERE name = 'context'";
    LIVE = "SELECT r.bead, r.epoch, r.state, b.status FROM runs r JOIN beads b ON b.id = r.bead \
        WHERE r.state IN ('starting', 'running', 'blocked') ORDER BY r.bead";
}

/// Before every instant, so that no date has passed.
const NEVER: Timestamp = Timestamp::from_nanos(i64::MIN);

impl Reader<'_> {
    /// Whether contexts and runs agree with their beads.
    pub(super) fn check_schedule(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        self.check_waits(found)?;
        self.check_latest(found)?;
        self.check_runs(found)
    }

    /// Whether the evaluated columns of each open context agree with the evaluator.
    fn check_waits(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        let executors = self.executors()?;
        let mut reached = 0;
        loop {
            let size = i64::try_from(IDS_PER_STATEMENT).unwrap_or(i64::MAX);
            let params = [as_int(reached).into(), size.into()];
            let page = self.rows(WAITING_AFTER, &params, stored_from())?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            reached = last.number;
            let beads: Vec<BeadId> = page.iter().map(|(one, _)| one.bead.clone()).collect();
            let facts = self.wait_facts(&beads)?;
            for (context, stored) in &page {
                if let Some(facts) = facts.get(&context.bead) {
                    compare(found, context, stored, &facts.evaluate(context, &executors, NEVER));
                }
            }
        }
    }

    fn check_latest(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        self.scan(LATEST, &[], |row| {
            let (stored, computed) = (row.int(1)?, row.int(2)?);
            report_difference(
                found,
                row.text(0)?,
                "the number of its latest context",
                stored,
                computed,
            );
            Ok(ControlFlow::Continue(()))
        })?;
        let numbers = self.first(LAST_NUMBER, &[], |row| Ok((row.int(0)?, row.int(1)?)))?;
        if let Some((last, counter)) = numbers
            && counter < last
        {
            let value = "the number of the last context";
            report_difference(
                found,
                "counter context",
                value,
                counter,
                format_args!("at least {last}"),
            );
        }
        Ok(())
    }

    /// While a run is live, the status of its bead follows from it.
    fn check_runs(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        self.scan(LIVE, &[], |row| {
            let (bead, epoch, state) = (row.text(0)?, row.int(1)?, row.text(2)?);
            let expected = match RunState::parse(state)? {
                RunState::Starting => "hooked",
                RunState::Running => "in_progress",
                RunState::Blocked => "blocked",
                RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => {
                    return Ok(ControlFlow::Continue(()));
                }
            };
            let status = row.text(3)?;
            if status != expected {
                let value = format!("status while its run {bead}#{epoch} is {state}");
                report_difference(found, bead, value, status, expected);
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}

fn compare(
    found: OnDifference<'_>,
    context: &Context,
    stored: &EvaluatedContext,
    computed: &EvaluatedContext,
) {
    let id = &context.id;
    if stored.class != computed.class {
        report_difference(found, id, "waits", stored.class.as_str(), computed.class.as_str());
    }
    if stored.priority != computed.priority {
        report_difference(
            found,
            id,
            "priority",
            stored.priority.number(),
            computed.priority.number(),
        );
    }
    if stored.convoys != computed.convoys {
        let [stored, computed] = [stored, computed].map(|one| convoys_text(&one.convoys));
        report_difference(found, id, "convoys", stored, computed);
    }
    // A date that has passed is dropped by a cycle, which looks at the clock.
    if stored.due_at.is_some() && stored.due_at != computed.due_at {
        let shown = |at: Option<Timestamp>| at.map_or("empty".to_owned(), |at| at.to_string());
        report_difference(found, id, "due_at", shown(stored.due_at), shown(computed.due_at));
    }
}
