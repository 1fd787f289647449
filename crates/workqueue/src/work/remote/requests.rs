//! Requests to a server of the work queue, in its own format.

use form_urlencoded::Serializer;
use gt_api::{
    Clearable, HeartbeatDocument, NewWorkDocument, NextDocument, RawJson, WorkChangeDocument,
    WorkOutcome, WorkStatusName,
};
use gt_core::work::{Cursor, Lease, WorkFilter, WorkPriority};
use gt_core::{ExecutorKind, IssueType, RigSlug};

use crate::work::requests::{Heartbeat, ItemChange, NewItem, NextRequest};
use gt_beads::beads::FieldEdit;

/// An item to be submitted; in the name of `actor` if it does not say itself who submits it.
pub(super) fn new_item(item: &NewItem, actor: Option<&str>) -> NewWorkDocument {
    let depends_on = item.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>();
    NewWorkDocument {
        r#type: item.kind.clone(),
        description: item.description.clone(),
        priority: Some(item.priority.number()),
        project_id: item.project.as_ref().map(ToString::to_string),
        payload: item.payload.as_ref().map(RawJson::from),
        assigned_agent: item.agent.clone(),
        created_by: item.created_by.clone().or_else(|| actor.map(str::to_owned)),
        notes: Some(item.notes.clone()).filter(|notes| !notes.is_empty()),
        depends_on: Some(depends_on).filter(|ids| !ids.is_empty()),
    }
}

/// The body of a change to an item. Its version is not in here.
pub(super) fn item_change(change: &ItemChange) -> WorkChangeDocument {
    WorkChangeDocument {
        status: change.status.map(WorkStatusName::from),
        outcome: change.outcome.map(WorkOutcome::from),
        notes: change.notes.clone(),
        r#type: change.kind.clone(),
        description: change.description.clone(),
        priority: change.priority.map(WorkPriority::number),
        assigned_agent: clearable(&change.agent, Clone::clone),
        project_id: clearable(&change.project, ToString::to_string),
        payload: clearable(&change.payload, |json| RawJson::from(json)),
        run_id: change.precondition.run.as_ref().map(ToString::to_string),
    }
}

fn clearable<T, U>(edit: &FieldEdit<T>, write: impl FnOnce(&T) -> U) -> Clearable<U> {
    match edit {
        FieldEdit::Keep => Clearable::Keep,
        FieldEdit::Clear => Clearable::Clear,
        FieldEdit::Set(value) => Clearable::Set(write(value)),
    }
}

/// An agent that asks for work.
pub(super) fn next(request: &NextRequest, wait_s: u64) -> NextDocument {
    let kinds: Vec<String> = request.kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
    NextDocument {
        agent: request.agent.clone(),
        types: Some(kinds).filter(|kinds| !kinds.is_empty()),
        project_id: request.project.as_ref().map(ToString::to_string),
        wait_s: i64::try_from(wait_s).ok(),
        lease_s: Some(request.lease.seconds()),
    }
}

/// A heartbeat of an agent.
pub(super) fn heartbeat(heartbeat: &Heartbeat) -> HeartbeatDocument {
    HeartbeatDocument {
        run_id: heartbeat.run.to_string(),
        lease_s: heartbeat.lease.map(Lease::seconds),
        adopt: heartbeat.adopts.then_some(true),
    }
}

/// Adds a filter of items to a query.
pub(super) fn filter_query(query: &mut Serializer<'_, String>, filter: &WorkFilter) {
    let WorkFilter { statuses, agent, project, since, kind, created_by, text, executor } = filter;
    if !statuses.is_empty() {
        let names: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
        query.append_pair("status", &names.join(","));
    }
    let since = since.map(|since| since.to_string());
    for (name, value) in [
        ("agent", agent.as_deref()),
        ("project_id", project.as_ref().map(RigSlug::as_str)),
        ("since", since.as_deref()),
        ("type", kind.as_ref().map(IssueType::as_str)),
        ("created_by", created_by.as_deref()),
        ("q", text.as_deref()),
        ("executor", executor.map(ExecutorKind::as_str)),
    ] {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
}

/// Where a list goes on, out of `</work?limit=1&cursor=ab>; rel="next"`.
pub(super) fn next_cursor(link: &str) -> Option<Cursor> {
    let (address, rest) = link.strip_prefix('<')?.split_once('>')?;
    if !rest.contains("rel=\"next\"") {
        return None;
    }
    let (_, query) = address.split_once('?')?;
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let (_, cursor) = pairs.find(|(name, _)| name == "cursor")?;
    Cursor::parse(&cursor).ok()
}

#[cfg(test)]
mod tests {
    use gt_api::to_json;
    use gt_core::work::{WorkItem, WorkStatus};
    use gt_core::{Json, Timestamp};

    use super::*;

    #[test]
    fn unchanged_fields_are_left_out() {
        assert_eq!(to_json(&item_change(&ItemChange::default())), "{}");
        let change = ItemChange {
            status: Some(WorkStatus::Blocked),
            notes: Some(String::new()),
            agent: FieldEdit::Clear,
            payload: FieldEdit::Set(Json::parse("{\"a\": 1}").unwrap()),
            ..ItemChange::default()
        };
        let expected = r#"{"status":"blocked","notes":"","assigned_agent":null,"payload":{"a":1}}"#;
        assert_eq!(to_json(&item_change(&change)), expected);
    }

    #[test]
    fn a_filter_survives_the_address() {
        let filter = WorkFilter {
            statuses: vec![WorkStatus::Blocked, WorkStatus::Failed],
            agent: Some("steve & co".to_owned()),
            since: Some(Timestamp::from_nanos(0)),
            ..WorkFilter::default()
        };
        let mut query = Serializer::new(String::new());
        filter_query(&mut query, &filter);
        let text = query.finish();
        assert_eq!(
            text,
            "status=blocked%2Cfailed&agent=steve+%26+co&since=1970-01-01T00%3A00%3A00Z"
        );
    }

    #[test]
    fn a_list_goes_on_where_the_link_says() {
        let item = super::super::read_item(
            r#"{"id":"0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b","bead":"wq-a","type":"task","status":"queued",
                "created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}"#,
        );
        let item: WorkItem = item.unwrap();
        let cursor = Cursor::after(&WorkFilter::default(), &item);
        let link = format!("</work?limit=1&cursor={cursor}>; rel=\"next\"");
        assert_eq!(next_cursor(&link).map(|found| found.to_string()), Some(cursor.to_string()));
        for other in [
            "",
            "<>",
            "</work?cursor=ab>; rel=\"last\"",
            "</work>; rel=\"next\"",
            "</x?cursor=?>; rel=\"next\"",
        ] {
            assert!(next_cursor(other).is_none(), "{other}");
        }
    }
}
