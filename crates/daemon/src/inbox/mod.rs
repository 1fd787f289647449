//! The inbox: everything in a town that needs a person, from one query.
//!
//! Every view of it (`gt inbox`, the top of `gt status`, HTTP) shows these rows in this order. The kinds, the order and the
//! question which waits need a person are decided in `gt_core::inbox`; here the facts are read.

mod bead_rows;
mod need_rows;
mod request_rows;

use std::collections::HashMap;

use gt_core::decide::{Budget, BudgetEnd, BudgetScope, WaitReason};
use gt_core::inbox::{
    ChangeSize, InboxContext, InboxItem, InboxKind, InboxObject, arrange_inbox, last_words,
};
use gt_core::{BeadId, MessageAddress, RigSlug, Sender, Status};
use gt_store::Reader;

use crate::daemon::{self, DaemonAbsence};
use gt_beads::messages::needs_you_in;
use gt_execution::merge_queue::change_size;
use gt_execution::polecats::peek;
use gt_scheduling::needs::needs_you;
use gt_scheduling::queue::{self, QueueStatus};
use gt_town::{Result, Town};

/// How many rows of each kind are listed.
const EACH_MAX: usize = 100;
/// How many lines of the output of a silent run are read; some may be empty.
const LAST_LINES: u32 = 40;
/// How many changes are measured, and outputs read; each costs calls of git or tmux.
const MEASURED_MAX: usize = 20;

/// Everything that needs a person, in the order of all views.
pub fn inbox(town: &Town) -> Result<Vec<InboxItem>> {
    inbox_with(town, &queue::status(town)?)
}

/// The same for a caller that knows the state of the queue.
pub fn inbox_with(town: &Town, status: &QueueStatus) -> Result<Vec<InboxItem>> {
    let mut items = town.read(|reader| {
        let mut titles = BeadTitles::default();
        let mut items = question_rows(reader, &mut titles)?;
        items.extend(request_rows::request_rows(reader, &mut titles, town.now())?);
        items.extend(bead_rows::bead_rows(reader, town.now())?);
        Ok(items)
    })?;
    // Files are read after the transaction, so that it stays short.
    request_rows::name_logins(town, &mut items)?;
    let needs = needs_you(town)?;
    items.extend(town.read(|reader| {
        let mut titles = BeadTitles::default();
        need_rows::need_rows(reader, &mut titles, needs.clone())
    })?);
    items.extend(budget_rows(status));
    items.extend(rig_rows(status));
    items.extend(disk_row(status));
    items.extend(daemon::absence(town, status)?.as_ref().map(absent_daemon));
    Ok(arrange_inbox(items))
}

/// Adds what takes longer to find: the size of the change to the first rows that wait for a review, and the last words of
/// the first runs that are silent.
pub fn add_details(town: &Town, items: &mut [InboxItem]) -> Result<()> {
    for item in items.iter_mut().filter(|item| item.kind == InboxKind::Stalled).take(MEASURED_MAX) {
        let Some(bead) = &item.bead else { continue };
        // Without its output here the row is still right.
        if let Ok(output) = peek(town, bead.as_str(), LAST_LINES) {
            let words = gt_transcripts::last_words(output.format, &output.text);
            item.context.detail = last_words(&words);
        }
    }
    for item in items.iter_mut().filter(|item| item.kind == InboxKind::Review).take(MEASURED_MAX) {
        let InboxObject::Request(id) = &item.object else { continue };
        let Some(request) = town.read(|reader| Ok(reader.merge_request(id)?))? else { continue };
        // Without its commits here the row is still right.
        item.context.change = change_size(town, &request).ok().map(|size| ChangeSize {
            files: size.files,
            insertions: size.insertions,
            deletions: size.deletions,
        });
    }
    Ok(())
}

/// Titles and rigs of beads, each read once.
#[derive(Debug, Default)]
struct BeadTitles(HashMap<BeadId, (String, Option<RigSlug>)>);

impl BeadTitles {
    /// The title and the rig of a bead; both empty if it is gone.
    fn of(&mut self, reader: &Reader<'_>, id: &BeadId) -> Result<(String, Option<RigSlug>)> {
        if let Some(known) = self.0.get(id) {
            return Ok(known.clone());
        }
        let bead = reader.bead(id)?;
        let found = bead.map(|bead| (bead.title.to_string(), bead.rig)).unwrap_or_default();
        self.0.insert(id.clone(), found.clone());
        Ok(found)
    }
}

fn question_rows(reader: &Reader<'_>, titles: &mut BeadTitles) -> Result<Vec<InboxItem>> {
    let mut rows = Vec::new();
    for message in needs_you_in(reader, None)?.into_iter().take(EACH_MAX) {
        let (title, rig) = match &message.bead {
            Some(bead) => titles.of(reader, bead)?,
            None => (String::new(), rig_of(&message.from)),
        };
        let has_reader = match message.from.answers_go_to() {
            MessageAddress::Work(bead) => !is_left(reader, &bead)?,
            _ => true,
        };
        rows.push(InboxItem::of_question(message, title, rig, has_reader));
    }
    Ok(rows)
}

/// Whether a bead was worked on, is not closed, and has neither a worker nor a turn to get one.
fn is_left(reader: &Reader<'_>, bead: &BeadId) -> Result<bool> {
    let is_open = reader.bead(bead)?.is_some_and(|bead| bead.status != Status::Closed);
    Ok(is_open
        && reader.live_run(bead)?.is_none()
        && reader.latest_context(bead)?.is_some_and(|context| context.closed.is_some())
        && reader.open_merge_request(bead)?.is_none())
}

/// The rig that a standing agent looks after.
fn rig_of(sender: &Sender) -> Option<RigSlug> {
    match sender {
        Sender::Standing(MessageAddress::Refinery(rig) | MessageAddress::Witness(rig)) => {
            Some(rig.clone())
        }
        Sender::Standing(_) | Sender::Worker(_) | Sender::Person(_) => None,
    }
}

/// Spent budgets that work waits for.
fn budget_rows(status: &QueueStatus) -> Vec<InboxItem> {
    let queued = |budget: &Budget| match &budget.set.scope {
        BudgetScope::All | BudgetScope::Account(_) => status.queued,
        BudgetScope::Rig(rig) => status.rigs.get(rig.as_str()).map_or(0, |rig| rig.queued),
        // They are read for scheduled beads only.
        BudgetScope::Bead(_) | BudgetScope::Convoy(_) => 1.min(status.queued),
    };
    let spent = status.budgets.iter().filter(|budget| budget.is_spent() && queued(budget) > 0);
    let row = |budget: &Budget| {
        let (rig, bead) = match &budget.set.scope {
            BudgetScope::All | BudgetScope::Account(_) => (None, None),
            BudgetScope::Rig(rig) => (Some(rig.clone()), None),
            BudgetScope::Bead(bead) | BudgetScope::Convoy(bead) => (None, Some(bead.clone())),
        };
        let setting = budget.set.setting();
        let waiting = match (&budget.set.scope, queued(budget)) {
            (BudgetScope::Bead(_), _) => "it waits".to_owned(),
            (BudgetScope::Convoy(_), _) => "its beads wait".to_owned(),
            (_, 1) => "1 bead waits".to_owned(),
            (_, several) => format!("{several} beads wait"),
        };
        let until = match budget.end() {
            BudgetEnd::At(until) => until.to_string(),
            BudgetEnd::LiveRun => "a live run ends".to_owned(),
            BudgetEnd::Raised => "it is raised".to_owned(),
        };
        let raise = format!("gt config set {setting} <n>");
        let object = InboxObject::Budget(setting, budget.set.scope.one_of_many());
        InboxItem {
            what: format!("the budget is reached: {budget}; {waiting} until {until}"),
            bead,
            remedy: format!("{raise} raises it"),
            commands: vec![raise, "gt scheduler status".to_owned()],
            rig,
            ..plain(InboxKind::Budget, object)
        }
    };
    spent.map(row).collect()
}

/// Rigs in which work is scheduled that no program does.
fn rig_rows(status: &QueueStatus) -> Vec<InboxItem> {
    let idle = status.rigs.iter().filter(|(_, rig)| rig.cannot_run && rig.queued > 0);
    let row = |(slug, rig): (&String, &queue::RigStatus)| {
        let slug = RigSlug::parse(slug).ok()?;
        let beads = if rig.queued == 1 { "bead waits" } else { "beads wait" };
        let set = format!("gt config set rig.{slug}.command '<program> {{bead}}'");
        Some(InboxItem {
            what: format!("the rig {slug} has no command, and {} {beads} for one", rig.queued),
            remedy: set.clone(),
            commands: vec![set],
            rig: Some(slug.clone()),
            ..plain(InboxKind::RigCannotRun, InboxObject::Rig(slug))
        })
    };
    idle.filter_map(row).collect()
}

/// A disk without room for one more run.
fn disk_row(status: &QueueStatus) -> Option<InboxItem> {
    let reason = status.short.iter().find(|reason| matches!(reason, WaitReason::Disk { .. }))?;
    Some(InboxItem {
        what: format!("{reason}; nothing starts until there is room"),
        remedy: "gt polecat purge makes room, or remove other files of this disk".to_owned(),
        commands: vec!["gt polecat purge".to_owned(), "gt doctor".to_owned()],
        ..plain(InboxKind::DiskFull, InboxObject::Town)
    })
}

/// Work that a daemon would start or land, while none runs.
fn absent_daemon(absence: &DaemonAbsence) -> InboxItem {
    let mut commands = vec![absence.remedy()];
    commands.extend(absence.has_merging().then(|| "gt mq run".to_owned()));
    commands.extend((absence.pull_requests > 0).then(|| "gt mq sync".to_owned()));
    InboxItem {
        what: absence.to_string(),
        remedy: absence.remedy(),
        commands,
        ..plain(InboxKind::DaemonAway, InboxObject::Town)
    }
}

/// A row of which only the kind and the object are known.
fn plain(kind: InboxKind, object: InboxObject) -> InboxItem {
    InboxItem {
        kind,
        object,
        bead: None,
        rig: None,
        title: String::new(),
        what: String::new(),
        remedy: String::new(),
        commands: Vec::new(),
        since: None,
        context: InboxContext::default(),
    }
}
