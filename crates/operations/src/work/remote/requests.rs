//! What is asked of a server of the work queue, as it wants to be asked.

use form_urlencoded::Serializer;
use gt_core::work::{Cursor, Lease, RunRef, WorkFilter, WorkStatus};
use gt_core::{ExecutorKind, IssueType, Json, Outcome, RigSlug};
use gt_records::ObjectWriter;

use crate::beads::Edit;
use crate::work::requests::{ItemChange, NewItem, NextRequest};

/// An item to be submitted; in the name of `actor` if it does not say itself who submits it.
pub(super) fn new_item_json(item: &NewItem, actor: Option<&str>) -> String {
    let NewItem {
        project,
        kind,
        description,
        payload,
        priority,
        agent,
        created_by,
        notes,
        depends_on,
    } = item;
    written(|object| {
        object.text("type", kind);
        object.text("description", description);
        object.number("priority", priority.number());
        if let Some(project) = project {
            object.text("project_id", &project.to_string());
        }
        if let Some(payload) = payload {
            object.raw("payload", payload.as_str());
        }
        if let Some(agent) = agent {
            object.text("assigned_agent", agent);
        }
        if let Some(creator) = created_by.as_deref().or(actor) {
            object.text("created_by", creator);
        }
        object.text_unless_empty("notes", notes);
        if !depends_on.is_empty() {
            object.array("depends_on", |array| {
                for target in depends_on {
                    array.text(&target.to_string());
                }
            });
        }
    })
}

/// What is to change about an item. Its version is not in here.
pub(super) fn change_json(change: &ItemChange) -> String {
    let ItemChange {
        status,
        outcome,
        notes,
        agent,
        priority,
        kind,
        description,
        payload,
        project,
        precondition,
    } = change;
    written(|object| {
        let fixed = [
            ("status", status.map(WorkStatus::as_str)),
            ("outcome", outcome.map(Outcome::as_str)),
            ("notes", notes.as_deref()),
            ("type", kind.as_deref()),
            ("description", description.as_deref()),
        ];
        for (name, text) in fixed {
            if let Some(text) = text {
                object.text(name, text);
            }
        }
        if let Some(priority) = priority {
            object.number("priority", priority.number());
        }
        let project = match project {
            Edit::Keep => Edit::Keep,
            Edit::Clear => Edit::Clear,
            Edit::Set(project) => Edit::Set(project.to_string()),
        };
        for (name, text) in [("assigned_agent", agent), ("project_id", &project)] {
            match text {
                Edit::Keep => {}
                Edit::Clear => object.raw(name, "null"),
                Edit::Set(text) => object.text(name, text),
            }
        }
        match payload {
            Edit::Keep => {}
            Edit::Clear => object.raw("payload", "null"),
            Edit::Set(json) => object.raw("payload", Json::as_str(json)),
        }
        if let Some(run) = &precondition.run {
            object.text("run_id", &run.to_string());
        }
    })
}

/// An agent that asks for work.
pub(super) fn next_json(request: &NextRequest, wait_s: u64) -> String {
    let NextRequest { agent, kinds, project, lease, dispatched: _ } = request;
    written(|object| {
        object.text("agent", agent);
        if !kinds.is_empty() {
            object.array("types", |array| kinds.iter().for_each(|kind| array.text(kind.as_str())));
        }
        if let Some(project) = project {
            object.text("project_id", &project.to_string());
        }
        object.count("wait_s", wait_s);
        object.number("lease_s", lease.seconds());
    })
}

/// An agent that speaks for its work.
pub(super) fn heartbeat_json(run: &RunRef, lease: Option<Lease>, adopts: bool) -> String {
    written(|object| {
        object.text("run_id", &run.to_string());
        if let Some(lease) = lease {
            object.number("lease_s", lease.seconds());
        }
        object.flag_if_set("adopt", adopts);
    })
}

/// Which items.
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

fn written(write: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    write(&mut object);
    object.finish();
    out
}

#[cfg(test)]
mod tests {
    use gt_core::Timestamp;
    use gt_core::work::WorkItem;

    use super::*;

    #[test]
    fn what_is_not_to_change_is_not_mentioned() {
        assert_eq!(change_json(&ItemChange::default()), "{}");
        let change = ItemChange {
            status: Some(WorkStatus::Blocked),
            notes: Some(String::new()),
            agent: Edit::Clear,
            payload: Edit::Set(Json::parse("{\"a\": 1}").unwrap()),
            ..ItemChange::default()
        };
        let expected = r#"{"status":"blocked","notes":"","assigned_agent":null,"payload":{"a":1}}"#;
        assert_eq!(change_json(&change), expected);
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
        let item = gt_records::read_work_item(
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
