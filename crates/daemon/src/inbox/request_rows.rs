//! Merge requests and queues that need a person.

use std::collections::BTreeMap;

use gt_core::inbox::{
    InboxContext, InboxItem, InboxKind, InboxObject, RequestSurroundings, inbox_kind_of,
};
use gt_core::merging::MergeRequest;
use gt_core::{RigSlug, Timestamp};
use gt_store::{MergeQueueRow, Reader};

use super::{BeadTitles, plain};
use gt_execution::merge_queue::has_repair;
use gt_town::Result;

/// How many requests that may mend a target are named.
const FIXES_NAMED_MAX: usize = 5;

/// The rows of requests, and one row for each queue that stands still as a whole.
pub(super) fn request_rows(
    reader: &Reader<'_>,
    titles: &mut BeadTitles,
    now: Timestamp,
) -> Result<Vec<InboxItem>> {
    let queues = reader.merge_queues()?;
    let queue_of = |request: &MergeRequest| {
        queues.iter().find(|queue| queue.rig == request.rig && queue.target == request.target)
    };
    let mut rows = Vec::new();
    let mut stopped: BTreeMap<(RigSlug, String, &'static str), StoppedQueue> = BTreeMap::new();
    for request in reader.open_merge_requests()? {
        let queue = queue_of(&request);
        let around = RequestSurroundings { has_repair: has_repair(reader, &request)?, now };
        let Some(kind) = inbox_kind_of(&request, &around) else { continue };
        if !is_of_queue(kind) {
            let (title, _) = titles.of(reader, &request.id.bead)?;
            let mut row = InboxItem::of_request(&request, kind, title);
            row.context.check = match request.check_run {
                Some(run) => reader.check_run(run)?.map(|run| run.name),
                None => None,
            };
            rows.push(row);
            continue;
        }
        let key = (request.rig.clone(), request.target.clone(), kind.as_str());
        let found = stopped.entry(key).or_insert_with(|| StoppedQueue::new(kind, &request, queue));
        found.add(&request);
    }
    rows.extend(stopped.into_values().map(StoppedQueue::row));
    Ok(rows)
}

/// Whether all requests of a queue wait for the same thing, so that one row says it.
fn is_of_queue(kind: InboxKind) -> bool {
    matches!(
        kind,
        InboxKind::QueuePaused
            | InboxKind::TargetRed
            | InboxKind::TargetGone
            | InboxKind::OriginAway
            | InboxKind::QueueError
    )
}

/// A queue in which nothing lands.
struct StoppedQueue {
    kind: InboxKind,
    rig: RigSlug,
    target: String,
    since: Timestamp,
    /// The words of git or of the origin.
    detail: String,
    /// The check that fails on the target, and the commit.
    red: Option<(String, String)>,
    paused_by: String,
    waiting: Vec<MergeRequest>,
}

impl StoppedQueue {
    fn new(kind: InboxKind, request: &MergeRequest, queue: Option<&MergeQueueRow>) -> Self {
        let paused = queue.and_then(|queue| queue.paused.clone());
        let red = queue.and_then(|queue| queue.red.clone());
        let since = match kind {
            InboxKind::QueuePaused => paused.as_ref().map(|(at, _)| *at),
            InboxKind::TargetRed => red.as_ref().map(|red| red.since),
            _ => None,
        };
        Self {
            kind,
            rig: request.rig.clone(),
            target: request.target.clone(),
            since: since.unwrap_or(request.changed_at),
            detail: String::new(),
            red: red.map(|red| (red.check, red.commit)),
            paused_by: paused.map(|(_, by)| by).unwrap_or_default(),
            waiting: Vec::new(),
        }
    }

    fn add(&mut self, request: &MergeRequest) {
        if !matches!(self.kind, InboxKind::QueuePaused | InboxKind::TargetRed) {
            self.detail.clone_from(&request.detail);
            self.since = self.since.min(request.changed_at);
        }
        self.waiting.push(request.clone());
    }

    fn row(self) -> InboxItem {
        let Self { kind, rig, target, since, detail, red, paused_by, waiting } = self;
        let count = match waiting.len() {
            1 => "1 merge request waits".to_owned(),
            count => format!("{count} merge requests wait"),
        };
        let first = waiting.first().map(|request| request.id.to_string()).unwrap_or_default();
        let place = format!("{target} of {rig}");
        let words = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let list = format!("gt mq list --rig {rig}");
        // Only a person knows which of them mends the target.
        let named = waiting.iter().take(FIXES_NAMED_MAX);
        let fixes: Vec<String> =
            named.map(|request| format!("gt mq top {} --fix", request.id)).collect();
        let (what, commands) = match kind {
            InboxKind::QueuePaused => (
                format!("paused: nothing lands on {place}, {count} (by {paused_by})"),
                vec![format!("gt mq resume {rig} --branch {target}"), list.clone()],
            ),
            InboxKind::TargetRed => {
                let check = red.as_ref().map(|(check, _)| check.as_str()).unwrap_or_default();
                (
                    format!("target red: {check} fails on {place} itself, {count}"),
                    [list.clone(), format!("gt mq log {first}")]
                        .into_iter()
                        .chain(fixes.iter().cloned())
                        .chain([format!("gt mq retry {first}")])
                        .collect(),
                )
            }
            InboxKind::TargetGone => (
                format!("target gone: {place} is not at the origin, {count}{words}"),
                vec![
                    format!("gt rig set {rig} branch <branch>"),
                    list.clone(),
                    format!("gt mq retry {first}"),
                ],
            ),
            InboxKind::QueueError => (
                format!("queue error: {place} cannot be worked on, {count}{words}"),
                vec![list.clone(), format!("gt mq retry {first}"), "gt doctor".to_owned()],
            ),
            _ => (
                format!("origin away: {place} is not reached, {count}{words}"),
                vec![list.clone(), format!("gt mq retry {first}")],
            ),
        };
        let remedy = match kind {
            InboxKind::QueuePaused => commands.first().cloned().unwrap_or_default(),
            InboxKind::TargetRed => format!(
                "mend {target} and push, or let the one request land that mends it: {}; gt mq retry {first} checks {target} \
                 once more",
                if waiting.len() == 1 {
                    fixes.join(" ")
                } else {
                    format!("gt mq top <merge request> --fix, of those that {list} shows")
                }
            ),
            InboxKind::TargetGone => format!(
                "it is tried again by itself; gt mq retry {first} tries now; if {target} was renamed, gt rig set {rig} branch \
                 <branch>"
            ),
            _ => format!("it is tried again by itself; gt mq retry {first} tries now"),
        };
        InboxItem {
            rig: Some(rig.clone()),
            what,
            remedy,
            commands,
            since: Some(since),
            context: InboxContext {
                detail,
                check: red.map(|(check, _)| check),
                ..InboxContext::default()
            },
            ..plain(kind, InboxObject::Queue(rig, target))
        }
    }
}
