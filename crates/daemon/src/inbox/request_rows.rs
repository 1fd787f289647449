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
use gt_town::hosting::hosting_of;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town};

/// How many requests that may mend a target are named.
const FIXES_NAMED_MAX: usize = 5;
/// How many requests that have no pull request yet are named.
const RETRIES_NAMED_MAX: usize = 5;

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
    let mut without_tool: BTreeMap<RigSlug, Vec<MergeRequest>> = BTreeMap::new();
    let mut stopped: BTreeMap<(RigSlug, String, &'static str), StoppedQueue> = BTreeMap::new();
    for request in reader.open_merge_requests()? {
        let queue = queue_of(&request);
        let around = RequestSurroundings { has_repair: has_repair(reader, &request)?, now };
        let Some(kind) = inbox_kind_of(&request, &around) else { continue };
        if kind == InboxKind::HostingTool {
            without_tool.entry(request.rig.clone()).or_default().push(request);
            continue;
        }
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
    rows.extend(without_tool.into_iter().map(|(rig, waiting)| hosting_tool_row(rig, &waiting)));
    Ok(rows)
}

/// The row of a rig whose hosting service cannot be asked: all its requests wait for the same tool.
fn hosting_tool_row(rig: RigSlug, waiting: &[MergeRequest]) -> InboxItem {
    let last = waiting.iter().max_by_key(|request| request.changed_at);
    let detail = last.map(|request| request.detail.clone()).unwrap_or_default();
    let is_followed = waiting.iter().any(|request| request.pull_request.number.is_some());
    let mut commands = Vec::new();
    commands.extend(is_followed.then(|| format!("gt mq sync {rig}")));
    // One that has no pull request yet is not looked at by a sync.
    let unpublished = waiting.iter().filter(|request| request.pull_request.number.is_none());
    let retried = unpublished.take(RETRIES_NAMED_MAX);
    commands.extend(retried.map(|request| format!("gt mq retry {}", request.id)));
    let remedy = format!(
        "it is tried again by itself; {} tries now",
        commands.first().map(String::as_str).unwrap_or_default()
    );
    commands.push(format!("gt mq list --rig {rig}"));
    let words = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    InboxItem {
        what: format!("hosting tool missing: {} in {rig}{words}", count_of(waiting.len())),
        remedy,
        commands,
        rig: Some(rig.clone()),
        since: waiting.iter().map(|request| request.changed_at).min(),
        context: InboxContext { detail, ..InboxContext::default() },
        ..plain(InboxKind::HostingTool, InboxObject::Rig(rig))
    }
}

/// Names the login first in the rows that wait for one.
pub(super) fn name_logins(town: &Town, rows: &mut [InboxItem]) -> Result<()> {
    let mut rows = rows.iter_mut().filter(|row| row.kind == InboxKind::HostingTool).peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let files = file_layers(town)?;
    for row in rows {
        let Some(slug) = &row.rig else { continue };
        let (rig, setting) = town.read(|reader| {
            Ok((reader.rig(slug.as_str())?, layers_over(&files, reader)?.rig_hosting(slug)?))
        })?;
        let Some(Ok((hosted, provider))) = rig.map(|rig| hosting_of(town, &rig, &setting)) else {
            continue;
        };
        let login = provider.login_command(&hosted.host);
        // A tool that is not installed cannot log in.
        if !login.is_empty() && row.context.detail.contains(&login) {
            let next = row.commands.first().map(|next| format!(", then {next}"));
            row.remedy = format!("{login}{}", next.unwrap_or_default());
            row.commands.insert(0, login);
        }
    }
    Ok(())
}

fn count_of(waiting: usize) -> String {
    match waiting {
        1 => "1 merge request waits".to_owned(),
        count => format!("{count} merge requests wait"),
    }
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
        let count = count_of(waiting.len());
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
