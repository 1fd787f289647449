//! What a server of the work queue answers.

use gt_core::bead::check_text;
use gt_core::work::{Attempt, Held, Project, WorkItem, WorkPriority, WorkStatus, work_type};
use gt_core::{BeadId, ExecutorKind, Invalid, Outcome, RigSlug, RunId, RunState, Timestamp, Uid};
use serde_json::value::RawValue;

use super::fields::Fields;
use super::values;
use crate::RecordError;

/// What an agent that asked for work was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextAnswer {
    /// It has this now.
    Item {
        /// The item.
        item: Box<WorkItem>,
        /// The run in which it has it.
        run: Uid,
        /// Until when.
        lease_expires_at: Timestamp,
    },
    /// There is nothing.
    Nothing {
        /// A short name for why.
        code: String,
        /// Why.
        reason: String,
    },
}

/// What a look at all work that agents have found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OverdueAnswer {
    /// What is blocked now.
    pub stale: Vec<RunId>,
    /// What is queued again.
    pub lost: Vec<RunId>,
    /// When the next is due.
    pub due: Option<Timestamp>,
}

/// Why a server did not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemAnswer {
    /// What happened, and what to do next.
    pub detail: String,
    /// A short name for it.
    pub code: String,
    /// The item that it is about, if it names one.
    pub item: Option<Uid>,
}

/// Reads a work item.
pub fn read_work_item(text: &str) -> Result<WorkItem, RecordError> {
    item(&mut Fields::parse(text)?)
}

/// Reads a list of work items.
pub fn read_work_items(text: &str) -> Result<Vec<WorkItem>, RecordError> {
    let elements: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| RecordError::syntax(&error))?;
    let read = |(index, element): (usize, &RawValue)| {
        read_work_item(element.get()).map_err(|error| error.inside("items", index))
    };
    elements.into_iter().enumerate().map(read).collect()
}

/// Reads a work item with its dispatch log and what it depends on.
pub fn read_work_details(text: &str) -> Result<(WorkItem, Vec<Attempt>, Vec<Uid>), RecordError> {
    let mut fields = Fields::parse(text)?;
    let item = item(&mut fields)?;
    let log = each(&mut fields, "dispatch_log", |raw| attempt(raw.get()))?;
    let depends_on = each(&mut fields, "depends_on", |raw| {
        values::text(raw).and_then(|text| uid(&text)).map_err(|why| RecordError::line(why.0))
    })?;
    Ok((item, log, depends_on))
}

/// Reads a project.
pub fn read_project(text: &str) -> Result<Project, RecordError> {
    let mut fields = Fields::parse(text)?;
    Ok(Project {
        uid: required(&mut fields, "id", uid)?,
        name: fields.text("name")?,
        external_ref: fields.parsed("external_ref", |text| Ok(text.to_owned()))?,
        created_at: instant(&mut fields, "created_at")?,
        updated_at: instant(&mut fields, "updated_at")?,
        rig: required(&mut fields, "rig", RigSlug::parse)?,
        executor: required(&mut fields, "executor", ExecutorKind::parse)?,
    })
}

/// Reads what an agent that asked for work was told.
pub fn read_next_answer(text: &str) -> Result<NextAnswer, RecordError> {
    let mut fields = Fields::parse(text)?;
    let Some(raw) = fields.take("item") else {
        let (code, reason) = (fields.text("code")?, fields.text("reason")?);
        return Ok(NextAnswer::Nothing { code, reason });
    };
    Ok(NextAnswer::Item {
        item: Box::new(read_work_item(raw.get())?),
        run: required(&mut fields, "run_id", uid)?,
        lease_expires_at: instant(&mut fields, "lease_expires_at")?,
    })
}

/// Reads until when an agent has its work.
pub fn read_lease_answer(text: &str) -> Result<Timestamp, RecordError> {
    instant(&mut Fields::parse(text)?, "lease_expires_at")
}

/// Reads what a look at all work that agents have found.
pub fn read_overdue_answer(text: &str) -> Result<OverdueAnswer, RecordError> {
    let mut fields = Fields::parse(text)?;
    let run = |raw: &RawValue| required(&mut Fields::parse(raw.get())?, "run", RunId::parse);
    Ok(OverdueAnswer {
        stale: each(&mut fields, "stale", run)?,
        lost: each(&mut fields, "lost", run)?,
        due: fields.timestamp("due")?,
    })
}

/// Reads why a server did not do something.
pub fn read_problem(text: &str) -> Result<ProblemAnswer, RecordError> {
    let mut fields = Fields::parse(text)?;
    Ok(ProblemAnswer {
        detail: required(&mut fields, "detail", |text| Ok(text.to_owned()))?,
        code: fields.text("code")?,
        item: fields.parsed("item", uid)?,
    })
}

/// Reads the number of the last event that a server has told of.
pub fn read_last_event(text: &str) -> Result<u64, RecordError> {
    let number = Fields::parse(text)?.read("last_event", |raw| {
        raw.get().parse().map_err(|_| Invalid::new("expected a whole number"))
    })?;
    number.ok_or_else(|| RecordError::missing("last_event"))
}

/// Reads which bead an event is about, if it is about one.
pub fn read_event_bead(text: &str) -> Result<Option<BeadId>, RecordError> {
    Fields::parse(text)?.parsed("issue_id", BeadId::parse)
}

fn item(fields: &mut Fields<'_>) -> Result<WorkItem, RecordError> {
    Ok(WorkItem {
        uid: required(fields, "id", uid)?,
        bead: required(fields, "bead", BeadId::parse)?,
        project: fields.parsed("project_id", uid)?,
        kind: required(fields, "type", work_type)?,
        description: fields.text("description")?,
        payload: fields.read("payload", values::json)?,
        priority: fields
            .read("priority", |raw| WorkPriority::new(values::whole_number(raw)?))?
            .unwrap_or_default(),
        status: required(fields, "status", WorkStatus::parse)?,
        agent: fields.parsed("assigned_agent", any_text)?,
        created_by: fields.text("created_by")?,
        created_at: instant(fields, "created_at")?,
        updated_at: instant(fields, "updated_at")?,
        completed_at: fields.timestamp("completed_at")?,
        outcome: fields.parsed("outcome", Outcome::parse)?,
        notes: fields.text("notes")?,
        run: fields.parsed("run_id", uid)?,
        lease_expires_at: fields.timestamp("lease_expires_at")?,
        held: fields.parsed("reason", |text| Ok(Held::parse(text)))?.flatten(),
    })
}

fn attempt(text: &str) -> Result<Attempt, RecordError> {
    let mut fields = Fields::parse(text)?;
    Ok(Attempt {
        uid: required(&mut fields, "id", uid)?,
        run: required(&mut fields, "run", RunId::parse)?,
        item: required(&mut fields, "work_item_id", uid)?,
        dispatched_at: instant(&mut fields, "dispatched_at")?,
        agent: fields.text("agent")?,
        executor: required(&mut fields, "executor", ExecutorKind::parse)?,
        state: required(&mut fields, "state", RunState::parse)?,
        completed_at: fields.timestamp("completed_at")?,
        outcome: fields.parsed("outcome", Outcome::parse)?,
    })
}

fn any_text(text: &str) -> Result<String, Invalid> {
    check_text("text", text)?;
    Ok(text.to_owned())
}

fn uid(text: &str) -> Result<Uid, Invalid> {
    Uid::parse(text).ok_or_else(|| Invalid(format!("\"{}\" is no UUID", values::shown(text))))
}

fn required<T>(
    fields: &mut Fields<'_>,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, Invalid>,
) -> Result<T, RecordError> {
    fields.parsed(name, parse)?.ok_or_else(|| RecordError::missing(name))
}

fn instant(fields: &mut Fields<'_>, name: &str) -> Result<Timestamp, RecordError> {
    fields.timestamp(name)?.ok_or_else(|| RecordError::missing(name))
}

/// The elements of a list; none if it is missing.
fn each<T>(
    fields: &mut Fields<'_>,
    name: &str,
    read: impl Fn(&RawValue) -> Result<T, RecordError>,
) -> Result<Vec<T>, RecordError> {
    let elements = fields.read(name, values::list)?.unwrap_or_default();
    let read =
        |(index, raw): (usize, &RawValue)| read(raw).map_err(|error| error.inside(name, index));
    elements.into_iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use gt_core::Json;
    use proptest::prelude::*;

    use super::*;
    use crate::{overdue_json, project_json, taken_json, work_details_json, work_item_json};

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn some_item() -> WorkItem {
        let bead = BeadId::parse("wq-abc").unwrap();
        WorkItem {
            uid: Uid::of_bead(&bead, at(1)),
            bead,
            project: None,
            kind: work_type("code_review").unwrap(),
            description: "Review it".to_owned(),
            payload: None,
            priority: WorkPriority::default(),
            status: WorkStatus::Queued,
            agent: None,
            created_by: String::new(),
            created_at: at(1),
            updated_at: at(2),
            completed_at: None,
            outcome: None,
            notes: String::new(),
            run: None,
            lease_expires_at: None,
            held: None,
        }
    }

    #[test]
    fn everything_a_server_writes_is_read_back() {
        let item = some_item();
        let run = RunId::parse("wq-abc#2").unwrap();
        let attempt = Attempt {
            uid: Uid::of_run(&run, at(5)),
            run: run.clone(),
            item: item.uid,
            dispatched_at: at(5),
            agent: "steve-w".to_owned(),
            executor: ExecutorKind::Pull,
            state: RunState::Lost,
            completed_at: Some(at(9)),
            outcome: Some(Outcome::Failed),
        };
        let text = work_details_json(&item, std::slice::from_ref(&attempt), &[item.uid]);
        let read = read_work_details(&text).unwrap();
        assert_eq!(read, (item.clone(), vec![attempt.clone()], vec![item.uid]));
        let items = format!("[{},{}]", work_item_json(&item), work_item_json(&item));
        assert_eq!(read_work_items(&items).unwrap(), [item.clone(), item.clone()]);
        let next = read_next_answer(&taken_json(&item, attempt.uid, at(7))).unwrap();
        let expected = NextAnswer::Item {
            item: Box::new(item.clone()),
            run: attempt.uid,
            lease_expires_at: at(7),
        };
        assert_eq!(next, expected);
        let project = Project {
            uid: item.uid,
            name: "Shop \"API\"".to_owned(),
            external_ref: Some("todoist:123".to_owned()),
            created_at: at(1),
            updated_at: at(2),
            rig: RigSlug::parse("shop").unwrap(),
            executor: ExecutorKind::Pull,
        };
        assert_eq!(read_project(&project_json(&project)).unwrap(), project);
        let overdue =
            OverdueAnswer { stale: vec![run.clone()], lost: vec![run.clone()], due: Some(at(3)) };
        let text = overdue_json(&overdue.stale, &overdue.lost, overdue.due);
        assert_eq!(read_overdue_answer(&text).unwrap(), overdue);
    }

    #[test]
    fn an_answer_that_makes_no_sense_names_the_field() {
        let whole = work_item_json(&some_item());
        for (field, right, wrong) in [
            ("id", &*format!("\"id\":\"{}\"", some_item().uid), "\"id\":7"),
            ("status", "\"queued\"", "\"lost\""),
            ("bead", "\"wq-abc\"", "null"),
            ("priority", "\"priority\":3", "\"priority\":9"),
        ] {
            let broken = whole.replacen(right, wrong, 1);
            let error = read_work_item(&broken).unwrap_err().to_string();
            assert!(error.contains(field), "{error} in {broken}");
        }
        assert!(read_work_items("{}").is_err());
        assert!(read_problem("<html>").is_err());
        assert_eq!(read_event_bead("{\"issue_id\":null}").unwrap(), None);
        assert_eq!(read_last_event("{\"last_event\":12}").unwrap(), 12);
    }

    proptest! {
        #[test]
        fn an_item_reads_back_as_it_was_written(
            description in "[^\0]{1,40}",
            notes in "[^\0]{0,40}",
            agent in proptest::option::of("[a-zü -]{1,10}"),
            updated in any::<u32>(),
            status in 0..WorkStatus::ALL.len(),
            lease in proptest::option::of(any::<u32>()),
        ) {
            let status = WorkStatus::ALL[status];
            let item = WorkItem {
                description,
                notes,
                agent,
                status,
                outcome: status.outcome(),
                updated_at: at(updated.into()),
                lease_expires_at: lease.map(|lease| at(lease.into())),
                held: Some(Held::Deferred(Some(at(updated.into())))),
                payload: Some(Json::parse(r#"{"pr":3,"b":1e400,"a":[null]}"#).unwrap()),
                ..some_item()
            };
            let read = read_work_item(&work_item_json(&item)).unwrap();
            prop_assert_eq!(read.version(), item.version());
            prop_assert_eq!(read, item);
        }

        #[test]
        fn nothing_makes_reading_panic(text in r#"\{("[a-z_]{1,12}":("[a-z]{0,4}"|[0-9]|null|\[\]),?){0,4}\}|.{0,30}"#) {
            let _ = (read_work_details(&text), read_next_answer(&text), read_problem(&text));
            let _ = (read_project(&text), read_overdue_answer(&text), read_lease_answer(&text));
            let _ = (read_last_event(&text), read_event_bead(&text));
        }
    }
}
