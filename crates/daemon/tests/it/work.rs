//! The work queue, at times that a test sets.

use std::sync::Arc;
use std::time::Duration;

use gt_beads::beads::{self, FieldEdit, NewBead};
use gt_beads::{events, outbox};
use gt_core::bead::RequestKey;
use gt_core::schedule::{RunId, RunState};
use gt_core::work::{
    ItemRef, Lease, ProjectRef, RunRef, Scopes, TokenScope, TokenSecret, TokenUse, WorkFilter,
    WorkItem, WorkPriority, WorkStatus,
};
use gt_core::{Clock, EventKind, IssueType, Json, Outcome, RigState};
use gt_scheduling::{Consequences, queue};
use gt_town::{Actor, EventFilter, Town, rigs, settings};
use gt_workqueue::tokens::{self, NewToken};
use gt_workqueue::work::{
    self, Conflict, Heartbeat, ItemChange, NewItem, NewProject, NextRequest, NextWork, NoWork,
    Precondition, ProjectChange, Submission, TakenItem, WorkError,
};

use crate::still_clock::StillClock;

struct Stage {
    town: Town,
    clock: Arc<StillClock>,
}

const MINUTE: Duration = Duration::from_mins(1);

impl Stage {
    fn new() -> Self {
        let clock = StillClock::at(1_790_000_000_000_000_000);
        let shared: Arc<dyn Clock> = Arc::<StillClock>::clone(&clock);
        let actor = Actor { name: "marcus-a".to_owned(), owner: String::new() };
        Self { town: Town::in_memory(actor, shared, Arc::new(Consequences)).unwrap(), clock }
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn submit(&self, new: NewItem) -> WorkItem {
        // No two are of the same moment.
        self.pass(Duration::from_millis(1));
        let submission = Submission { items: vec![new], ..Submission::default() };
        work::submit(&self.town, submission).unwrap().items.remove(0)
    }

    fn add(&self, description: &str) -> WorkItem {
        self.submit(new(description))
    }

    fn change(&self, item: &WorkItem, change: ItemChange) -> Result<WorkItem, WorkError> {
        work::change(&self.town, &ItemRef::Uid(item.uid), change)
    }

    fn to(&self, item: &WorkItem, status: WorkStatus) -> Result<WorkItem, WorkError> {
        self.change(item, to(status))
    }

    fn dispatch(&self, item: &WorkItem, agent: &str) -> WorkItem {
        let agent = FieldEdit::Set(agent.to_owned());
        self.change(item, ItemChange { agent, ..to(WorkStatus::Dispatched) }).unwrap()
    }

    /// Gives an item to an agent, who begins.
    fn begin(&self, item: &WorkItem, agent: &str) -> WorkItem {
        self.dispatch(item, agent);
        self.to(item, WorkStatus::InProgress).unwrap()
    }

    fn next(&self, agent: &str) -> Result<NextWork, WorkError> {
        work::next(&self.town, ask(agent))
    }

    #[track_caller]
    fn take(&self, agent: &str) -> TakenItem {
        match self.next(agent).unwrap() {
            NextWork::Item(taken) => *taken,
            NextWork::Nothing(why) => panic!("there is nothing: {why}"),
        }
    }

    fn get(&self, item: &WorkItem) -> WorkItem {
        work::item(&self.town, &ItemRef::Uid(item.uid)).unwrap().item
    }

    fn list(&self, filter: &WorkFilter) -> Vec<WorkItem> {
        work::list(&self.town, filter, None, 100).unwrap().items
    }
}

fn new(description: &str) -> NewItem {
    NewItem {
        kind: "code_review".to_owned(),
        description: description.to_owned(),
        ..NewItem::default()
    }
}

/// A change of status, with the outcome that goes with it.
fn to(status: WorkStatus) -> ItemChange {
    ItemChange { status: Some(status), outcome: status.outcome(), ..ItemChange::default() }
}

fn ask(agent: &str) -> NextRequest {
    NextRequest {
        dispatched: false,
        agent: agent.to_owned(),
        kinds: Vec::new(),
        project: None,
        lease: Lease::default(),
    }
}

#[track_caller]
fn conflict<T: std::fmt::Debug>(result: Result<T, WorkError>) -> Conflict {
    match result {
        Err(WorkError::Conflict(conflict)) => *conflict,
        other => panic!("expected a conflict, not {other:?}"),
    }
}

#[track_caller]
fn wrong_field<T: std::fmt::Debug>(result: Result<T, WorkError>) -> &'static str {
    match result {
        Err(WorkError::Invalid { field, .. }) => field,
        other => panic!("expected a field that is wrong, not {other:?}"),
    }
}

fn run_id(taken: &TakenItem) -> RunId {
    match &taken.run {
        RunRef::Id(run) => run.clone(),
        RunRef::Uid(uid) => panic!("{uid} is called by its name here"),
    }
}

#[test]
fn a_submitted_item_is_queued_and_reads_back() {
    let stage = Stage::new();
    let payload = Json::parse(r#"{"pr":3}"#).unwrap();
    let item = stage.submit(NewItem {
        payload: Some(payload.clone()),
        priority: WorkPriority::new(2).unwrap(),
        agent: Some("steve-w".to_owned()),
        notes: "be kind".to_owned(),
        ..new("Review PR #3\nin shopping-list-api")
    });
    assert_eq!(item.status, WorkStatus::Queued);
    assert_eq!(item.agent.as_deref(), Some("steve-w"));
    assert_eq!(item.description, "Review PR #3\nin shopping-list-api");
    assert_eq!((item.payload.as_ref(), item.notes.as_str()), (Some(&payload), "be kind"));
    assert_eq!((item.priority.number(), item.project), (2, None));
    assert_eq!(item.created_by, "marcus-a");
    assert!(item.bead.as_str().starts_with("wq-"), "{}", item.bead);
    assert_eq!(stage.get(&item), item);
    let by_bead = work::item(&stage.town, &ItemRef::Bead(item.bead.clone())).unwrap();
    assert_eq!((by_bead.item, by_bead.dispatch_log.len()), (item.clone(), 0));
    let shown = beads::show(&stage.town, &[item.bead.to_string()]).unwrap().remove(0).unwrap();
    assert_eq!(shown.row.bead.title.as_str(), "Review PR #3");
}

#[test]
fn a_wrong_submission_names_its_fault_and_stores_nothing() {
    let stage = Stage::new();
    let submit = |items, is_list| {
        work::submit(&stage.town, Submission { items, is_list, ..Submission::default() })
    };
    let good = || new("Fix it");
    for (wrong, field) in [
        (NewItem { kind: String::new(), ..good() }, "type"),
        (NewItem { kind: "epic".to_owned(), ..good() }, "type"),
        (NewItem { description: " \n".to_owned(), ..good() }, "description"),
        (NewItem { agent: Some(String::new()), ..good() }, "assigned_agent"),
        (NewItem { created_by: Some("a\nb".to_owned()), ..good() }, "created_by"),
        (NewItem { notes: "\0".to_owned(), ..good() }, "notes"),
        (NewItem { project: ProjectRef::parse("nowhere").ok(), ..good() }, "project_id"),
        (NewItem { depends_on: vec![ItemRef::parse("wq-no").unwrap()], ..good() }, "depends_on"),
    ] {
        assert_eq!(wrong_field(submit(vec![wrong.clone()], false)), field);
        // Of several it is also said which.
        let told = submit(vec![good(), wrong], true).unwrap_err();
        assert!(told.to_string().starts_with(&format!("1.{field}: ")), "{told}");
    }
    assert_eq!(wrong_field(submit(Vec::new(), true)), "items");
    assert!(stage.list(&WorkFilter::default()).is_empty(), "all of it or none");
}

#[test]
fn a_request_that_is_repeated_makes_its_items_once() {
    let stage = Stage::new();
    let key = RequestKey::parse("job-7").unwrap();
    let two = || Submission {
        items: vec![new("The same"), new("The same")],
        key: Some(key.clone()),
        is_list: true,
    };
    let first = work::submit(&stage.town, two()).unwrap();
    let again = work::submit(&stage.town, two()).unwrap();
    assert!(!first.before && again.before);
    assert_eq!(first.items, again.items);
    assert_ne!(first.items[0].uid, first.items[1].uid);
    assert_eq!(stage.list(&WorkFilter::default()).len(), 2);

    let other = Submission { items: vec![new("Something else")], key: Some(key), is_list: false };
    assert_eq!(wrong_field(work::submit(&stage.town, other)), "idempotency_key");
}

#[test]
fn the_flow_of_a_dispatcher_and_an_agent() {
    let stage = Stage::new();
    let item = stage.add("Review PR #3");
    let dispatched = stage.dispatch(&item, "steve-w");
    assert_eq!(dispatched.status, WorkStatus::Dispatched);
    let of_steve = WorkFilter {
        agent: Some("steve-w".to_owned()),
        statuses: vec![WorkStatus::Dispatched],
        ..WorkFilter::default()
    };
    assert_eq!(stage.list(&of_steve), std::slice::from_ref(&dispatched));

    stage.pass(MINUTE);
    assert_eq!(stage.to(&item, WorkStatus::InProgress).unwrap().status, WorkStatus::InProgress);
    stage.pass(MINUTE);
    let notes = Some("merged to main".to_owned());
    let done = stage.change(&item, ItemChange { notes, ..to(WorkStatus::Completed) }).unwrap();
    assert_eq!((done.status, done.outcome), (WorkStatus::Completed, Some(Outcome::Success)));
    assert_eq!(
        (done.notes.as_str(), done.completed_at),
        ("merged to main", Some(stage.clock.now()))
    );

    let details = work::item(&stage.town, &ItemRef::Uid(item.uid)).unwrap();
    let [attempt] = details.dispatch_log.as_slice() else { panic!("{details:?}") };
    assert_eq!((attempt.agent.as_str(), attempt.item), ("steve-w", item.uid));
    assert_eq!((attempt.state, attempt.outcome), (RunState::Done, Some(Outcome::Success)));
    assert_eq!(attempt.completed_at, done.completed_at);
}

#[test]
fn a_refused_status_names_the_allowed_ones() {
    let stage = Stage::new();
    let item = stage.add("Fix it");
    let refused = conflict(stage.to(&item, WorkStatus::InProgress));
    assert_eq!(refused.allowed(), Some(&[WorkStatus::Dispatched, WorkStatus::Cancelled][..]));
    assert_eq!(wrong_field(stage.to(&item, WorkStatus::Dispatched)), "assigned_agent");
    stage.begin(&item, "steve-w");
    let without = ItemChange { outcome: None, ..to(WorkStatus::Completed) };
    assert_eq!(wrong_field(stage.change(&item, without)), "outcome");
    stage.to(&item, WorkStatus::Completed).unwrap();
    for status in WorkStatus::ALL.iter().filter(|status| **status != WorkStatus::Completed) {
        assert_eq!(conflict(stage.to(&item, *status)).allowed(), Some(&[][..]), "{status}");
    }
    let missing = work::item(&stage.town, &ItemRef::parse("wq-none").unwrap());
    assert!(matches!(missing, Err(WorkError::NotFound { .. })), "{missing:?}");
}

#[test]
fn an_agent_has_one_item_in_progress() {
    let stage = Stage::new();
    let (first, second) = (stage.add("One"), stage.add("Two"));
    stage.begin(&first, "steve-w");
    stage.dispatch(&second, "steve-w");
    let busy = conflict(stage.to(&second, WorkStatus::InProgress));
    assert!(matches!(&busy, Conflict::AgentBusy { item, .. } if *item == first.uid), "{busy}");
    assert!(matches!(conflict(stage.next("steve-w")), Conflict::AgentBusy { .. }));

    // One that waits for something frees its agent, and cannot go on while that is at something else.
    stage.to(&first, WorkStatus::Blocked).unwrap();
    stage.to(&second, WorkStatus::InProgress).unwrap();
    assert!(matches!(
        conflict(stage.to(&first, WorkStatus::InProgress)),
        Conflict::AgentBusy { .. }
    ));
    stage.to(&second, WorkStatus::Completed).unwrap();
    stage.to(&first, WorkStatus::InProgress).unwrap();
}

#[test]
fn a_dispatched_item_is_reassigned_requeued_or_cancelled() {
    let stage = Stage::new();
    let item = stage.add("Fix it");
    stage.dispatch(&item, "steve-w");
    let run = stage.get(&item).run;
    assert_eq!(stage.dispatch(&item, "steve-w").run, run, "it has it already");
    let moved = stage.dispatch(&item, "ann");
    assert_eq!((moved.agent.as_deref(), moved.status), (Some("ann"), WorkStatus::Dispatched));
    assert_ne!(moved.run, run);

    let queued = stage.to(&item, WorkStatus::Queued).unwrap();
    assert_eq!((queued.status, queued.agent, queued.run), (WorkStatus::Queued, None, None));
    stage.dispatch(&item, "ann");
    let over = work::cancel(&stage.town, &ItemRef::Uid(item.uid), Precondition::default()).unwrap();
    assert_eq!((over.status, over.outcome), (WorkStatus::Cancelled, Some(Outcome::Cancelled)));
    let log = work::item(&stage.town, &ItemRef::Uid(item.uid)).unwrap().dispatch_log;
    assert!(log.iter().all(|attempt| attempt.outcome == Some(Outcome::Cancelled)), "{log:?}");
    assert_eq!(log.len(), 3);
}

#[test]
fn an_item_waits_for_its_dependencies() {
    let stage = Stage::new();
    let first = stage.add("First");
    let depends_on = vec![ItemRef::Uid(first.uid)];
    let second = stage.submit(NewItem { depends_on, ..new("Second") });
    assert_eq!(second.held.map(|held| held.to_string()).as_deref(), Some("blocked by other items"));
    let details = work::item(&stage.town, &ItemRef::Uid(second.uid)).unwrap();
    assert_eq!(details.depends_on, [first.uid]);
    let agent = FieldEdit::Set("ann".to_owned());
    let early = stage.change(&second, ItemChange { agent, ..to(WorkStatus::Dispatched) });
    let early = conflict(early).to_string();
    assert!(early.contains(first.bead.as_str()), "{early}");
    let why = work::why(&stage.town, &ItemRef::Uid(second.uid)).unwrap();
    assert_eq!(why.reasons[0].code, "blocked");

    assert_eq!(stage.take("ann").item.uid, first.uid);
    assert!(matches!(stage.next("bob").unwrap(), NextWork::Nothing(NoWork::AllWait)));
    stage.to(&first, WorkStatus::Completed).unwrap();
    assert_eq!(stage.take("bob").item.uid, second.uid);
    assert!(matches!(stage.next("carl").unwrap(), NextWork::Nothing(NoWork::Empty)));
}

#[test]
fn agents_get_dispatched_items_first_and_then_the_most_urgent() {
    let stage = Stage::new();
    let usual = stage.add("Usual");
    let urgent = stage.submit(NewItem { priority: WorkPriority::new(1).unwrap(), ..new("Urgent") });
    let bug = stage.submit(NewItem { kind: "bug".to_owned(), ..new("A bug") });
    let given = stage.add("For Ann");
    stage.dispatch(&given, "ann");

    let taken = stage.take("ann");
    assert_eq!(taken.item.uid, given.uid);
    assert_eq!(taken.lease_expires_at, stage.clock.now().plus(5 * MINUTE));
    assert_eq!(taken.item.lease_expires_at, Some(taken.lease_expires_at));
    let kinds = vec![IssueType::trusted("bug".to_owned())];
    let particular = work::next(&stage.town, NextRequest { kinds, ..ask("bob") }).unwrap();
    assert!(matches!(particular, NextWork::Item(taken) if taken.item.uid == bug.uid));
    assert_eq!(stage.take("carl").item.uid, urgent.uid);
    assert_eq!(stage.take("dave").item.uid, usual.uid);
}

#[test]
fn nothing_is_handed_out_while_paused_or_where_nothing_begins() {
    let stage = Stage::new();
    let project = NewProject { name: "Web".to_owned(), external_ref: None };
    let project = work::create_project(&stage.town, project).unwrap();
    let reference = ProjectRef::Uid(project.uid);
    let item = stage.submit(NewItem { project: Some(reference), ..new("Fix it") });
    queue::pause(&stage.town).unwrap();
    let paused = stage.next("ann").unwrap();
    assert!(matches!(&paused, NextWork::Nothing(NoWork::Paused(by, _)) if by == "marcus-a"));
    stage.begin(&item, "bob");
    stage.to(&item, WorkStatus::Blocked).unwrap();
    stage.to(&item, WorkStatus::Queued).unwrap();
    queue::resume(&stage.town).unwrap();

    rigs::set_state(&stage.town, "web", &[RigState::Active], RigState::Parked).unwrap();
    let closed = stage.next("ann").unwrap();
    assert!(
        matches!(&closed, NextWork::Nothing(NoWork::ProjectsClosed(rigs)) if rigs[0] == project.rig)
    );
    let agent = FieldEdit::Set("ann".to_owned());
    let dispatched = stage.change(&item, ItemChange { agent, ..to(WorkStatus::Dispatched) });
    assert!(matches!(conflict(dispatched), Conflict::RigClosed { .. }));
}

#[test]
fn a_lease_is_renewed_or_ends_and_then_another_agent_gets_the_item() {
    let stage = Stage::new();
    let item = stage.add("Fix it");
    let reference = ItemRef::Uid(item.uid);
    let taken = stage.take("ann");
    let run = RunRef::Uid(taken.run_uid);
    let beat = |run: &RunRef, lease| {
        work::heartbeat(
            &stage.town,
            &reference,
            Heartbeat { run: run.clone(), lease, adopts: false },
        )
    };
    stage.pass(4 * MINUTE);
    assert_eq!(beat(&run, None).unwrap(), stage.clock.now().plus(5 * MINUTE));
    stage.pass(4 * MINUTE);
    let idle = work::check_overdue(&stage.town).unwrap();
    assert_eq!((idle.count(), idle.due), (0, Some(stage.clock.now().plus(MINUTE))));

    stage.pass(2 * MINUTE);
    let found = work::check_overdue(&stage.town).unwrap();
    assert_eq!((found.lost.as_slice(), found.due), (&[run_id(&taken)][..], None));
    assert_eq!(stage.get(&item).status, WorkStatus::Queued);
    assert!(matches!(conflict(beat(&run, None)), Conflict::StaleRun { live: None, .. }));
    let again = stage.take("bob");
    assert_eq!((again.item.uid, run_id(&again).epoch), (item.uid, 2));
    let late = ItemChange {
        precondition: Precondition { run: Some(run), version: None },
        ..to(WorkStatus::Completed)
    };
    let late = conflict(stage.change(&item, late));
    assert!(matches!(late, Conflict::StaleRun { live: Some(live), .. } if live == run_id(&again)));
    let name = RunRef::Id(RunId { bead: item.bead.clone(), epoch: 2 });
    let longer = Lease::of_seconds(600).unwrap();
    assert_eq!(beat(&name, Some(longer)).unwrap(), stage.clock.now().plus(10 * MINUTE));
}

#[test]
fn an_item_without_a_lease_is_blocked_after_a_long_silence_and_people_are_told_once() {
    let stage = Stage::new();
    settings::set(&stage.town, "notify.command", "/bin/true", gt_scheduling::runtimes::check_name)
        .unwrap();
    let (item, other) = (stage.add("Fix it"), stage.add("Mend it"));
    let begun = stage.begin(&item, "ann");
    stage.begin(&other, "bob");
    stage.pass(29 * MINUTE);
    let notes = Some("half way".to_owned());
    stage.change(&other, ItemChange { notes, ..ItemChange::default() }).unwrap();
    assert_eq!(work::check_overdue(&stage.town).unwrap().count(), 0);
    stage.pass(2 * MINUTE);

    let found = work::check_overdue(&stage.town).unwrap();
    assert_eq!(found.stale.len(), 1);
    assert_eq!(found.due, Some(stage.clock.now().plus(28 * MINUTE)));
    let stale = stage.get(&item);
    assert_eq!((stale.status, stale.run), (WorkStatus::Blocked, begun.run));
    assert!(stale.notes.contains("ann has said nothing"), "{}", stale.notes);
    assert_eq!(work::check_overdue(&stage.town).unwrap().count(), 0);
    let blocked = outbox::list(&stage.town, 10).unwrap();
    let blocked: Vec<&str> = blocked.iter().map(|notice| notice.key.as_str()).collect();
    assert_eq!(blocked.len(), 1, "{blocked:?}");
    assert!(blocked[0].starts_with(&format!("blocked:{}#1:", item.bead)), "{blocked:?}");

    // And told when it is over, whichever way.
    stage.to(&item, WorkStatus::InProgress).unwrap();
    stage.to(&item, WorkStatus::Completed).unwrap();
    stage.to(&other, WorkStatus::Failed).unwrap();
    let told = outbox::list(&stage.town, 10).unwrap();
    let told: Vec<&str> = told.iter().map(|notice| notice.key.split(':').next().unwrap()).collect();
    assert_eq!(told, ["blocked", "completed", "failed"]);
    let filter = EventFilter { kinds: vec![EventKind::RunBlocked], ..EventFilter::default() };
    assert_eq!(events::latest(&stage.town, &filter, 10).unwrap().len(), 1);
}

#[test]
fn a_sign_of_life_counts_without_a_lease() {
    let stage = Stage::new();
    let item = stage.add("Fix it");
    let run = RunRef::Uid(stage.begin(&item, "ann").run.unwrap());
    stage.pass(29 * MINUTE);
    let beat = Heartbeat { run, lease: None, adopts: false };
    let until = work::heartbeat(&stage.town, &ItemRef::Uid(item.uid), beat.clone()).unwrap();
    assert_eq!(until, stage.clock.now().plus(30 * MINUTE));
    stage.pass(29 * MINUTE);
    assert_eq!(work::check_overdue(&stage.town).unwrap().count(), 0);
    stage.to(&item, WorkStatus::Blocked).unwrap();
    let waits = work::heartbeat(&stage.town, &ItemRef::Uid(item.uid), beat);
    assert!(matches!(conflict(waits), Conflict::NotInProgress { .. }));
}

#[test]
fn of_two_agents_that_find_work_without_a_lease_one_gets_it() {
    let stage = Stage::new();
    let item = stage.add("Fix it");
    let reference = ItemRef::Uid(item.uid);
    let run = RunRef::Uid(stage.begin(&item, "ann").run.unwrap());
    let lease = Some(Lease::default());
    let adopt = || {
        let beat = Heartbeat { run: run.clone(), lease, adopts: true };
        work::heartbeat(&stage.town, &reference, beat)
    };
    assert_eq!(adopt().unwrap(), stage.clock.now().plus(5 * MINUTE));
    assert!(matches!(conflict(adopt()), Conflict::Leased { .. }));
    // From then on it has a lease like any other.
    stage.pass(6 * MINUTE);
    assert_eq!(work::check_overdue(&stage.town).unwrap().lost.len(), 1);
}

#[test]
fn an_agent_can_give_back_what_it_has_and_nothing_else() {
    let stage = Stage::new();
    let item = stage.add("Fix it");
    let reference = ItemRef::Uid(item.uid);
    let taken = stage.take("ann");
    let run = RunRef::Uid(taken.run_uid);
    let given = work::release(&stage.town, &reference, run.clone()).unwrap();
    assert_eq!((given.status, given.agent, given.run), (WorkStatus::Queued, None, None));
    let again = work::release(&stage.town, &reference, run);
    assert!(matches!(conflict(again), Conflict::StaleRun { live: None, .. }));
    let log = work::item(&stage.town, &reference).unwrap().dispatch_log;
    assert_eq!(log.last().map(|attempt| attempt.state), Some(RunState::Cancelled));
    assert_eq!(stage.take("ann").item.uid, item.uid, "at once, and to the same agent as well");
}

#[test]
fn an_item_that_has_changed_since_it_was_read_is_not_changed() {
    let stage = Stage::new();
    let item = stage.add("Fix it");
    let only_if = |version| Precondition { run: None, version: Some(version) };
    let change = |precondition, notes: &str| {
        let notes = Some(notes.to_owned());
        stage.change(&item, ItemChange { notes, precondition, ..ItemChange::default() })
    };
    stage.pass(MINUTE);
    let changed = change(only_if(item.version()), "one").unwrap();
    assert_ne!(changed.version(), item.version());
    let stale = conflict(change(only_if(item.version()), "two"));
    assert!(
        matches!(stale, Conflict::StaleVersion { current, .. } if current == changed.version())
    );
    assert_eq!(stage.get(&item).notes, "one");
}

#[test]
fn every_field_can_be_changed_and_notes_replace() {
    let stage = Stage::new();
    let project = NewProject { name: "Shopping List API".to_owned(), ..NewProject::default() };
    let project = work::create_project(&stage.town, project).unwrap();
    let item = stage.add("Fix it");
    let change = ItemChange {
        priority: Some(WorkPriority::new(5).unwrap()),
        kind: Some("bug_fix".to_owned()),
        description: Some("Fix that\nand this".to_owned()),
        payload: FieldEdit::Set(Json::parse("[1]").unwrap()),
        project: FieldEdit::Set(ProjectRef::Uid(project.uid)),
        agent: FieldEdit::Set("ann".to_owned()),
        notes: Some("new".to_owned()),
        ..ItemChange::default()
    };
    let changed = stage.change(&item, change).unwrap();
    assert_eq!((changed.priority.number(), changed.kind.as_str()), (5, "bug_fix"));
    assert_eq!(
        (changed.description.as_str(), changed.notes.as_str()),
        ("Fix that\nand this", "new")
    );
    assert_eq!((changed.project, changed.agent.as_deref()), (Some(project.uid), Some("ann")));
    assert_eq!(changed.payload.unwrap().as_str(), "[1]");
    stage.to(&item, WorkStatus::Dispatched).unwrap();
    let away = ItemChange { project: FieldEdit::Clear, ..ItemChange::default() };
    assert!(matches!(conflict(stage.change(&item, away.clone())), Conflict::Running { .. }));
    stage.to(&item, WorkStatus::Queued).unwrap();
    let cleared = ItemChange { payload: FieldEdit::Clear, agent: FieldEdit::Clear, ..away };
    let cleared = stage.change(&item, cleared).unwrap();
    assert_eq!((cleared.project, cleared.payload, cleared.agent), (None, None, None));
}

#[test]
fn projects_are_rigs_that_may_be_called_anything() {
    let stage = Stage::new();
    let create = |name: &str| {
        let new = NewProject { name: name.to_owned(), external_ref: Some("todoist:1".to_owned()) };
        work::create_project(&stage.town, new)
    };
    let (one, two) = (create("日本語 & more").unwrap(), create("日本語 & more").unwrap());
    assert_eq!((one.name.as_str(), two.name.as_str()), ("日本語 & more", "日本語 & more"));
    assert_ne!(one.rig, two.rig);
    assert_eq!(wrong_field(create(" ")), "name");
    stage.add("Without a project");
    let all = work::projects(&stage.town).unwrap();
    assert_eq!(all.len(), 2, "the inbox is none");

    stage.pass(MINUTE);
    let change = ProjectChange { name: Some("Shop".to_owned()), external_ref: FieldEdit::Clear };
    let renamed = work::change_project(&stage.town, &ProjectRef::Uid(one.uid), change).unwrap();
    assert_eq!((renamed.name.as_str(), renamed.external_ref.as_deref()), ("Shop", None));
    assert_eq!((&renamed.rig, renamed.uid), (&one.rig, one.uid));
    assert!(renamed.updated_at > one.updated_at);
    let by_rig = work::project(&stage.town, &ProjectRef::Rig(one.rig)).unwrap();
    assert_eq!(by_rig, renamed);
    let missing = work::project(&stage.town, &ProjectRef::parse("inbox-2").unwrap());
    assert!(matches!(missing, Err(WorkError::NotFound { .. })));
}

#[test]
fn lists_come_in_parts_that_go_on_where_the_last_one_ended() {
    let stage = Stage::new();
    let made: Vec<WorkItem> = (0..7).map(|number| stage.add(&format!("Item {number}"))).collect();
    let filter = WorkFilter::default();
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = work::list(&stage.town, &filter, after.as_ref(), 3).unwrap();
        found.extend(page.items);
        let Some(next) = page.next else { break };
        after = Some(gt_core::work::Cursor::parse(&next.to_string()).unwrap());
    }
    assert_eq!(found, made);
    let other = WorkFilter { statuses: vec![WorkStatus::Queued], ..WorkFilter::default() };
    assert_eq!(wrong_field(work::list(&stage.town, &other, after.as_ref(), 3)), "cursor");
    let door = work::WorkClient::Local(Box::new(stage.town.clone()));
    let mut count = 0;
    let counted = |_| {
        count += 1;
        Ok::<_, WorkError>(())
    };
    assert!(door.list(&filter, None, None, counted).unwrap().is_none());
    assert_eq!(count, 7);
}

#[test]
fn a_bead_of_a_rig_that_starts_workers_can_be_given_to_an_agent_too() {
    let stage = Stage::new();
    let rig = rigs::NewRig {
        name: "web",
        repository: None,
        prefix: Some("web"),
        branch: None,
        executor: gt_core::ExecutorKind::Process,
    };
    rigs::add(&stage.town, &rig).unwrap();
    let bead = NewBead {
        title: "Fix it".to_owned(),
        id: Some("web-1".to_owned()),
        rig: Some("web".to_owned()),
        ..NewBead::default()
    };
    beads::create(&stage.town, &bead, false).unwrap();
    let item = work::item(&stage.town, &ItemRef::parse("web-1").unwrap()).unwrap().item;
    assert!(
        matches!(stage.next("ann").unwrap(), NextWork::Nothing(NoWork::Empty)),
        "it is not pulled"
    );
    stage.begin(&item, "ann");
    stage.to(&item, WorkStatus::Completed).unwrap();
    let shown = beads::show(&stage.town, &["web-1".to_owned()]).unwrap().remove(0).unwrap();
    assert_eq!(shown.row.bead.outcome, Some(Outcome::Success));
}

#[test]
fn why_says_that_an_item_waits_for_an_agent() {
    let stage = Stage::new();
    let item = stage.add("Fix it");
    let why = work::why(&stage.town, &ItemRef::Uid(item.uid)).unwrap();
    let codes: Vec<&str> = why.reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(codes, ["waits-for-agent"]);
}

#[test]
fn a_token_is_valid_for_its_holder_until_it_is_revoked() {
    let stage = Stage::new();
    assert!(!tokens::any(&stage.town).unwrap());
    let new = |name: &str| NewToken {
        name: name.to_owned(),
        scopes: Scopes::of(&[TokenScope::Work]).unwrap(),
        agent: None,
        expires_at: Some(stage.clock.now().plus(MINUTE)),
    };
    let (token, secret) = tokens::create(&stage.town, new("steve-w")).unwrap();
    let shown = TokenSecret::parse(&secret.reveal()).unwrap();
    let found = tokens::authenticate(&stage.town, &shown, TokenUse::Bearer).unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.id.clone()), ("steve-w", token.id.clone()));
    let other = TokenSecret::from_random([1; 32]);
    assert!(tokens::authenticate(&stage.town, &other, TokenUse::Bearer).unwrap().is_none());
    assert!(tokens::any(&stage.town).unwrap());
    assert!(tokens::revoke(&stage.town, &token.id).unwrap().1);
    assert!(!tokens::revoke(&stage.town, &token.id).unwrap().1);
    assert!(tokens::authenticate(&stage.town, &shown, TokenUse::Bearer).unwrap().is_none());
    let (_, short) = tokens::create(&stage.town, new("ann")).unwrap();
    stage.pass(MINUTE);
    assert!(
        tokens::authenticate(&stage.town, &short, TokenUse::Bearer).unwrap().is_none(),
        "it has expired"
    );
    assert_eq!(
        wrong_field(tokens::create(&stage.town, NewToken { name: String::new(), ..new("x") })),
        "name"
    );
    assert_eq!(tokens::list(&stage.town).unwrap().len(), 2);
}

#[test]
fn a_token_that_works_is_bound_to_an_agent() {
    let stage = Stage::new();
    let make = |name: &str, scopes: &str, agent: Option<&str>| {
        let new = NewToken {
            name: name.to_owned(),
            scopes: Scopes::parse(scopes).unwrap(),
            agent: agent.map(str::to_owned),
            expires_at: None,
        };
        tokens::create(&stage.town, new).map(|(token, _)| token.agent)
    };
    for (name, scopes, agent, bound) in [
        ("steve-w", "work", None, Some("steve-w")),
        ("build host", "read,work", Some("steve-w"), Some("steve-w")),
        ("both", "submit,work", None, Some("both")),
        ("marcus", "submit", None, None),
        ("root", "admin", None, None),
        ("root", "admin", Some("steve-w"), Some("steve-w")),
    ] {
        assert_eq!(make(name, scopes, agent).unwrap().as_deref(), bound, "{name} {scopes}");
    }
    assert_eq!(wrong_field(make("ci", "submit", Some("steve-w"))), "agent");
    assert_eq!(wrong_field(make("ci", "work", Some(""))), "agent");
}

#[test]
fn an_actor_that_is_bound_to_an_agent_does_only_the_work_of_that_agent() {
    let stage = Stage::new();
    let bound = Stage {
        town: stage.town.clone().only_for(Some("ann".to_owned())),
        clock: Arc::clone(&stage.clock),
    };
    let forbidden = |result: Result<(), WorkError>| {
        assert!(matches!(result, Err(WorkError::NotForAgent { .. })), "{result:?}");
    };
    let (hers, his, free) = (stage.add("Hers"), stage.add("His"), stage.add("Free"));
    stage.begin(&hers, "ann");
    let run = stage.begin(&his, "bob").run.unwrap();
    let notes = |text: &str| ItemChange { notes: Some(text.to_owned()), ..ItemChange::default() };
    let give = |agent: &str| ItemChange {
        agent: FieldEdit::Set(agent.to_owned()),
        ..to(WorkStatus::Dispatched)
    };

    forbidden(bound.next("bob").map(drop));
    let reference = ItemRef::Uid(his.uid);
    let beat = Heartbeat { run: RunRef::Uid(run), lease: None, adopts: false };
    forbidden(work::heartbeat(&bound.town, &reference, beat).map(drop));
    forbidden(work::release(&bound.town, &reference, RunRef::Uid(run)).map(drop));
    for status in [WorkStatus::Completed, WorkStatus::Blocked, WorkStatus::InProgress] {
        forbidden(bound.to(&his, status).map(drop));
    }
    forbidden(bound.change(&his, notes("mine")).map(drop));
    forbidden(bound.change(&free, notes("mine")).map(drop));
    forbidden(bound.change(&free, give("bob")).map(drop));
    let away = ItemChange { agent: FieldEdit::Set("bob".to_owned()), ..ItemChange::default() };
    forbidden(bound.change(&free, away).map(drop));
    assert_eq!(stage.get(&free), free, "nothing has happened");

    bound.change(&hers, notes("half of it")).unwrap();
    bound.to(&hers, WorkStatus::Completed).unwrap();
    bound.change(&free, give("ann")).unwrap();
    assert_eq!(bound.take("ann").item.bead, free.bead);
}

#[test]
fn the_status_that_an_item_has_is_accepted_again_with_its_notes() {
    let stage = Stage::new();
    let noted = |status, notes: &str| ItemChange { notes: Some(notes.to_owned()), ..to(status) };
    let item = stage.add("Fix it");
    let again = |status: WorkStatus| {
        let notes = format!("{status} again");
        let before = stage.get(&item);
        let told = ItemChange { outcome: None, ..noted(status, &notes) };
        let after = stage.change(&item, told).unwrap();
        assert_eq!(after.notes, notes);
        assert_eq!((after.status, after.run, after.agent), (status, before.run, before.agent));
        stage.to(&item, status).unwrap();
    };
    again(WorkStatus::Queued);
    stage.dispatch(&item, "ann");
    again(WorkStatus::Dispatched);
    let run = stage.to(&item, WorkStatus::InProgress).unwrap().run.unwrap();
    again(WorkStatus::InProgress);
    stage.to(&item, WorkStatus::Blocked).unwrap();
    again(WorkStatus::Blocked);
    stage.to(&item, WorkStatus::InProgress).unwrap();
    stage.to(&item, WorkStatus::Completed).unwrap();
    again(WorkStatus::Completed);
    let wrong = ItemChange { outcome: Some(Outcome::Failed), ..to(WorkStatus::Completed) };
    assert_eq!(wrong_field(stage.change(&item, wrong)), "outcome");

    // An agent that never got the answer repeats the request of its run; another run has nothing to say.
    let of = |run| ItemChange {
        precondition: Precondition { run: Some(run), version: None },
        ..to(WorkStatus::Completed)
    };
    stage.change(&item, of(RunRef::Uid(run))).unwrap();
    let other = RunRef::parse(&format!("{}#7", item.bead)).unwrap();
    assert!(matches!(conflict(stage.change(&item, of(other))), Conflict::StaleRun { .. }));
    let open = ItemChange { status: Some(WorkStatus::Failed), ..of(RunRef::Uid(run)) };
    assert!(matches!(conflict(stage.change(&item, open)), Conflict::StaleRun { .. }));
}

#[test]
fn a_cancelled_item_can_be_cancelled_again() {
    let stage = Stage::new();
    let (item, done) = (stage.add("Fix it"), stage.add("Done"));
    let cancel = |item: &WorkItem| {
        work::cancel(&stage.town, &ItemRef::Uid(item.uid), Precondition::default())
    };
    let first = cancel(&item).unwrap();
    assert_eq!(cancel(&item).unwrap(), first);
    stage.begin(&done, "ann");
    stage.to(&done, WorkStatus::Completed).unwrap();
    assert!(matches!(conflict(cancel(&done)), Conflict::Refused { .. }));
}

#[test]
fn agents_get_only_what_was_dispatched_to_them_where_that_is_wanted() {
    let stage = Stage::new();
    let (first, second) = (stage.add("First"), stage.add("Second"));
    let only =
        |agent: &str| work::next(&stage.town, NextRequest { dispatched: true, ..ask(agent) });
    assert!(matches!(only("ann").unwrap(), NextWork::Nothing(NoWork::NotDispatched)));
    stage.dispatch(&second, "ann");
    assert!(matches!(only("bob").unwrap(), NextWork::Nothing(NoWork::NotDispatched)));
    let NextWork::Item(taken) = only("ann").unwrap() else { panic!("ann was given it") };
    assert_eq!(taken.item.bead, second.bead);

    settings::set(&stage.town, "work.claim", "dispatched", gt_scheduling::runtimes::check_name)
        .unwrap();
    assert!(matches!(stage.next("bob").unwrap(), NextWork::Nothing(NoWork::NotDispatched)));
    stage.dispatch(&first, "bob");
    assert_eq!(stage.take("bob").item.bead, first.bead);
    let third = stage.add("Third");
    settings::set(&stage.town, "work.claim", "any", gt_scheduling::runtimes::check_name).unwrap();
    assert_eq!(stage.take("carl").item.bead, third.bead);
}

#[test]
fn concurrent_requests_share_commits_and_no_item_is_given_twice() {
    let clock: Arc<dyn Clock> = Arc::new(gt_town::SystemClock);
    let actor = Actor { name: "api".to_owned(), owner: String::new() };
    let town = Town::in_memory(actor, clock, Arc::new(Consequences)).unwrap().with_shared_commits();
    let items = (0..40).map(|number| new(&format!("Item {number}"))).collect();
    work::submit(&town, Submission { items, ..Submission::default() }).unwrap();
    let taken: Vec<_> = std::thread::scope(|scope| {
        let agents: Vec<_> = (0..8)
            .map(|number| {
                let town = &town;
                scope.spawn(move || {
                    let agent = format!("agent-{number}");
                    let mut got = Vec::new();
                    while let NextWork::Item(taken) = work::next(town, ask(&agent)).unwrap() {
                        let reference = ItemRef::Uid(taken.item.uid);
                        let run = Some(RunRef::Uid(taken.run_uid));
                        let precondition = Precondition { run, version: None };
                        let done = ItemChange { precondition, ..to(WorkStatus::Completed) };
                        work::change(town, &reference, done).unwrap();
                        got.push(taken.item.uid);
                    }
                    got
                })
            })
            .collect();
        agents.into_iter().flat_map(|agent| agent.join().unwrap()).collect()
    });
    let different: std::collections::HashSet<_> = taken.iter().collect();
    assert_eq!((taken.len(), different.len()), (40, 40));
    let completed = WorkFilter { statuses: vec![WorkStatus::Completed], ..WorkFilter::default() };
    assert_eq!(work::list(&town, &completed, None, 100).unwrap().items.len(), 40);
}

#[test]
fn a_payload_is_nested_at_most_128_levels_deep() {
    let stage = Stage::new();
    let nested = |levels: usize| Json::parse(&("[".repeat(levels) + &"]".repeat(levels))).unwrap();
    let submit = |levels: usize| {
        let item = NewItem { payload: Some(nested(levels)), ..new("Nested") };
        let submission = Submission { items: vec![item], ..Submission::default() };
        work::submit(&stage.town, submission).map(|mut made| made.items.remove(0))
    };
    let item = submit(128).unwrap();
    let refused = submit(129).unwrap_err();
    assert!(refused.to_string().contains("128 levels"), "{refused}");

    let change = |levels: usize| {
        let change =
            ItemChange { payload: FieldEdit::Set(nested(levels)), ..ItemChange::default() };
        work::change(&stage.town, &ItemRef::Uid(item.uid), change)
    };
    change(128).unwrap();
    assert!(change(129).unwrap_err().to_string().contains("128 levels"));
}
