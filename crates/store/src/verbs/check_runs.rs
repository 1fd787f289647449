//! Runs of checks.

use gt_core::checks::{CheckError, CheckPurpose, CheckResult, CheckRun};
use gt_core::{RigSlug, Timestamp};

use super::contexts::{as_int, count};
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The columns of a run, in the order [`run_from`] reads them.
macro_rules! columns {
    () => {
        "id, rig, name, definition, cache_key, commit_id, tree, purpose, result, error, exit_code, attempt, flaky, \
         started_at, duration_ms, host, log"
    };
}

statements! {
    ONE = concat!("SELECT ", columns!(), " FROM check_runs WHERE id = ?1");
    PASSED = concat!("SELECT ", columns!(), " FROM check_runs WHERE rig = ?1 AND name = ?2 AND cache_key = ?3 \
        AND result = 'passed' ORDER BY id DESC LIMIT 1");
    OF_COMMIT = concat!("SELECT ", columns!(), " FROM check_runs WHERE commit_id = ?1 ORDER BY id");
    FLAKY = concat!("SELECT ", columns!(), " FROM check_runs WHERE flaky = 1 ORDER BY id DESC LIMIT ?1");
    INSERT = concat!("INSERT INTO check_runs (", columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
        ?12, ?13, ?14, ?15, ?16, ?17)");
}

impl Reader<'_> {
    /// The run of this number.
    pub fn check_run(&self, id: u64) -> Result<Option<CheckRun>, StoreError> {
        self.first(ONE, &[as_int(id).into()], run_from)
    }

    /// The last pass of a check under this key.
    pub fn passed_check(
        &self,
        rig: &RigSlug,
        name: &str,
        cache_key: &str,
    ) -> Result<Option<CheckRun>, StoreError> {
        self.first(PASSED, &[rig.as_str().into(), name.into(), cache_key.into()], run_from)
    }

    /// Every run on a commit, the oldest first.
    pub fn check_runs_on(&self, commit: &str) -> Result<Vec<CheckRun>, StoreError> {
        self.rows(OF_COMMIT, &[commit.into()], run_from)
    }

    /// The last passes on a tree on which the same check had failed, the newest first.
    pub fn flaky_check_runs(&self, limit: u32) -> Result<Vec<CheckRun>, StoreError> {
        self.rows(FLAKY, &[i64::from(limit).into()], run_from)
    }
}

impl Writer<'_> {
    /// Keeps a run, and gives it its number.
    pub fn insert_check_run(&mut self, run: &CheckRun) -> Result<CheckRun, StoreError> {
        let run = CheckRun { id: self.next_number("check_runs")?, ..run.clone() };
        let params: [Param<'_>; 17] = [
            as_int(run.id).into(),
            run.rig.as_str().into(),
            run.name.as_str().into(),
            run.definition.as_str().into(),
            run.cache_key.as_str().into(),
            run.commit.as_str().into(),
            run.tree.as_str().into(),
            run.purpose.as_str().into(),
            run.result.as_str().into(),
            run.error.map_or("", CheckError::as_str).into(),
            run.exit_code.map(i64::from).into(),
            i64::from(run.attempt).into(),
            i64::from(run.flaky).into(),
            run.started_at.as_nanos().into(),
            as_int(run.duration_ms).into(),
            run.host.as_str().into(),
            run.log.as_str().into(),
        ];
        self.apply(INSERT, &params)?;
        Ok(run)
    }
}

fn run_from(row: &dyn Row) -> Result<CheckRun, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    let corrupt = || StoreError::Corrupt("a number of a check that is too large".to_owned());
    let error = row.text(9)?;
    let exit_code = row.int_or_null(10)?;
    Ok(CheckRun {
        id: count(row.int(0)?),
        rig: RigSlug::trusted(text(1)?),
        name: text(2)?,
        definition: text(3)?,
        cache_key: text(4)?,
        commit: text(5)?,
        tree: text(6)?,
        purpose: CheckPurpose::parse(row.text(7)?)?,
        result: CheckResult::parse(row.text(8)?)?,
        error: if error.is_empty() { None } else { Some(CheckError::parse(error)?) },
        exit_code: exit_code.map(i32::try_from).transpose().map_err(|_| corrupt())?,
        attempt: u32::try_from(row.int(11)?).map_err(|_| corrupt())?,
        flaky: row.flag(12)?,
        started_at: Timestamp::from_nanos(row.int(13)?),
        duration_ms: count(row.int(14)?),
        host: text(15)?,
        log: text(16)?,
    })
}
