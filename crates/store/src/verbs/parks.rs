//! Parks of runtimes and accounts.

use gt_core::event::{ParkBegun, ParkEnded};
use gt_core::schedule::{ClosedPeriod, Park, ParkSubject, ParkSubjectKind, Run, RunId};
use gt_core::{BeadId, EventPayload, NewEvent, Timestamp};

use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The columns of a park, in the order [`park_from`] reads them.
macro_rules! park_columns {
    () => {
        "kind, name, beads, since, until, reason, trial, ramp_since"
    };
}

statements! {
    ALL = concat!("SELECT ", park_columns!(), " FROM parks ORDER BY kind, name");
    OF_RUN = concat!("SELECT ", park_columns!(), " FROM parks WHERE (kind = 'account' AND name = ?1) \
        OR (kind = 'runtime' AND name = ?2) ORDER BY kind, name");
    PUT = concat!("INSERT INTO parks (", park_columns!(), ", strikes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
        ON CONFLICT (kind, name) DO UPDATE SET beads = excluded.beads, since = excluded.since, \
        until = excluded.until, reason = excluded.reason, trial = excluded.trial, ramp_since = excluded.ramp_since, \
        strikes = excluded.strikes");
    SET_TRIAL = "UPDATE parks SET trial = ?3 WHERE kind = ?1 AND name = ?2";
    SET_RAMP = "UPDATE parks SET ramp_since = ?3 WHERE kind = ?1 AND name = ?2";
    DELETE = "DELETE FROM parks WHERE kind = ?1 AND name = ?2";
}

impl Reader<'_> {
    /// All parks.
    pub fn parks(&self) -> Result<Vec<Park>, StoreError> {
        self.rows(ALL, &[], park_from)
    }

    /// The parks of the runtime and account of a run.
    pub fn parks_of(&self, run: &Run) -> Result<Vec<Park>, StoreError> {
        let runtime = ParkSubject::runtime(&run.runtime, &run.rig);
        self.rows(OF_RUN, &[(&run.account).into(), (&runtime.name).into()], park_from)
    }
}

impl Writer<'_> {
    /// Writes down a suspicion, without an event: the runtime or account is not parked.
    pub fn suspect(&mut self, park: &Park) -> Result<(), StoreError> {
        self.put_park(park)
    }

    /// Parks something because of this run; `again` if it was tried and does not work yet.
    pub fn park(&mut self, park: &Park, run: &Run, again: bool) -> Result<(), StoreError> {
        self.put_park(park)?;
        let begun = ParkBegun {
            kind: park.means.kind.as_str().to_owned(),
            name: park.means.name.clone(),
            reason: park.reason.clone(),
            until: park.closed.map(|closed| closed.until),
            again,
        };
        let payload = if park.is_limit() {
            EventPayload::Limited(begun)
        } else {
            EventPayload::Parked(begun)
        };
        self.record_park(Some(run), payload);
        Ok(())
    }

    /// Writes down which run tries whether something works again.
    pub fn set_trial(&mut self, means: &ParkSubject, run: &RunId) -> Result<(), StoreError> {
        let trial = run.to_string();
        let params = [means.kind.as_str().into(), (&means.name).into(), (&trial).into()];
        self.apply(SET_TRIAL, &params)
    }

    /// Writes down that the usage limit of something has passed, and since when more and more is started with it. That it
    /// is over is told now, and by which run that was found out, if by one.
    pub fn set_ramp(
        &mut self,
        park: &Park,
        since: Timestamp,
        run: Option<&Run>,
    ) -> Result<(), StoreError> {
        let means = &park.means;
        let params = [means.kind.as_str().into(), (&means.name).into(), since.into()];
        self.apply(SET_RAMP, &params)?;
        self.record_over(park, run);
        Ok(())
    }

    /// Removes a park. A mere suspicion is removed without an event; the end of a
    /// park is recorded with the run that found it out, if there is one, unless that was recorded already.
    pub fn clear_park(&mut self, park: &Park, run: Option<&Run>) -> Result<(), StoreError> {
        let means = &park.means;
        self.apply(DELETE, &[means.kind.as_str().into(), (&means.name).into()])?;
        if park.closed.is_some() && park.ramp_since.is_none() {
            self.record_over(park, run);
        }
        Ok(())
    }

    fn record_over(&mut self, park: &Park, run: Option<&Run>) {
        let (kind, name) = (park.means.kind.as_str().to_owned(), park.means.name.clone());
        let ended = ParkEnded { kind, name, limit: park.is_limit() };
        self.record_park(run, EventPayload::Unparked(ended));
    }

    fn put_park(&mut self, park: &Park) -> Result<(), StoreError> {
        let beads: Vec<&str> = park.strikes.iter().map(BeadId::as_str).collect();
        let beads = beads.join(" ");
        let trial = park.trial.as_ref().map(ToString::to_string).unwrap_or_default();
        let params: [Param<'_>; 9] = [
            park.means.kind.as_str().into(),
            (&park.means.name).into(),
            (&beads).into(),
            park.closed.map(|closed| closed.since).into(),
            park.closed.map(|closed| closed.until).into(),
            (&park.reason).into(),
            (&trial).into(),
            park.ramp_since.into(),
            i64::try_from(park.strikes.len()).unwrap_or(i64::MAX).into(),
        ];
        self.apply(PUT, &params)
    }

    fn record_park(&mut self, run: Option<&Run>, payload: EventPayload) {
        self.record(NewEvent {
            bead: run.map(|run| run.id.bead.clone()),
            rig: run.map(|run| run.rig.clone()),
            run: run.map(|run| run.id.clone()),
            payload,
        });
    }
}

fn park_from(row: &dyn Row) -> Result<Park, StoreError> {
    let instant = |column| -> Result<Option<Timestamp>, StoreError> {
        Ok(row.int_or_null(column)?.map(Timestamp::from_nanos))
    };
    let beads = row.text(2)?.split_ascii_whitespace();
    let trial = Some(row.text(6)?).filter(|trial| !trial.is_empty());
    Ok(Park {
        means: ParkSubject {
            kind: ParkSubjectKind::parse(row.text(0)?)?,
            name: row.text(1)?.to_owned(),
        },
        strikes: beads.map(|bead| BeadId::trusted(bead.to_owned())).collect(),
        closed: instant(3)?.zip(instant(4)?).map(|(since, until)| ClosedPeriod { since, until }),
        reason: row.text(5)?.to_owned(),
        trial: trial.map(RunId::parse).transpose()?,
        ramp_since: instant(7)?,
    })
}
