//! Beads that a run has: what its worker, a person and a stranger may do to them.

use gt_beads::batch::{self, BatchLine, BatchStep};
use gt_beads::beads::{self, BeadChanges, Close, ClosedBead, FieldEdit, NewBead};
use gt_core::decide::VerbRefusal;
use gt_core::schedule::{CloseReason, RunEnd, RunId, RunState, Workplace};
use gt_core::{Bead, IssueType, Outcome, Status, Timestamp};
use gt_execution::runs;
use gt_scheduling::dispatch::{Dispatcher, MemorySpawner};
use gt_scheduling::queue;
use gt_scheduling::schedule::{SlingOutcome, SlingRequest, sling};
use gt_town::{Actor, BeadFilter, OperationError, Readiness, Town};

use crate::scheduling::{bead, shown, sling_all, town_with_rig};

const BEAD: &str = "web-1";
const MAX: &str = "web/crew/max";

fn ids(id: &str) -> Vec<String> {
    vec![id.to_owned()]
}

fn run_id(epoch: u32) -> RunId {
    RunId::parse(&format!("{BEAD}#{epoch}")).unwrap()
}

/// The same town for another actor.
fn acting(town: Town, name: &str, run: Option<RunId>) -> Town {
    let actor = Actor { name: name.to_owned(), owner: String::new() };
    town.acting_as(actor, run)
}

fn stranger(town: Town) -> Town {
    acting(town, "ann", None)
}

/// The worker of the run with this number.
fn worker(town: Town, epoch: u32) -> Town {
    acting(town, "web/process", Some(run_id(epoch)))
}

fn dispatch(town: &Town) {
    Dispatcher::new(town, &MemorySpawner::default()).dispatch().unwrap();
}

/// A town in which a process works on `web-1` in `web-1#1`.
fn working() -> Town {
    let town = town_with_rig(None);
    bead(&town, BEAD);
    sling_all(&town, &[BEAD]);
    dispatch(&town);
    assert!(matches!(
        gt_scheduling::run_transitions::claim(&town, &run_id(1), &Workplace::default(), None)
            .unwrap(),
        gt_scheduling::run_transitions::Claim::Granted(_)
    ));
    town
}

/// A town in which `web-1` is on the hook of a person.
fn hooked_by_max() -> Town {
    let town = town_with_rig(None);
    bead(&town, BEAD);
    let arguments = vec![BEAD.to_owned(), MAX.to_owned()];
    let report = sling(&town, &SlingRequest { arguments, ..SlingRequest::default() }).unwrap();
    assert!(matches!(report.entries[0].outcome, SlingOutcome::Scheduled(..)));
    dispatch(&town);
    town
}

fn stored(town: &Town) -> Bead {
    shown(town, BEAD).row.bead
}

fn state(town: &Town) -> RunState {
    gt_beads::run_records::resolve(town, BEAD).unwrap().state
}

fn close(town: &Town, how: &Close) -> Result<ClosedBead, OperationError> {
    beads::close(town, &ids(BEAD), how).unwrap().remove(0)
}

fn forced() -> Close {
    Close { force: true, ..Close::default() }
}

fn update(town: &Town, changes: &BeadChanges) -> Result<(), OperationError> {
    beads::update(town, &ids(BEAD), changes).unwrap().remove(0).map(|_| ())
}

fn to_status(status: Status) -> BeadChanges {
    BeadChanges { status: Some(status), ..BeadChanges::default() }
}

fn claim() -> BeadChanges {
    BeadChanges { claim: true, ..BeadChanges::default() }
}

/// Every way to change the status of a bead, without force.
fn every_verb(town: &Town) -> Vec<(&'static str, Result<(), OperationError>)> {
    let tomorrow = town.now().plus(std::time::Duration::from_hours(24));
    let assign = BeadChanges { assignee: Some("you".to_owned()), ..BeadChanges::default() };
    let put_off = BeadChanges { defer_until: FieldEdit::Set(tomorrow), ..BeadChanges::default() };
    let batch = |step| {
        let line = BatchLine { number: 1, place: "line 1".to_owned(), step };
        batch::run(town, &[line], false).map(|_| ())
    };
    let first = |results: Vec<Result<_, OperationError>>| results.into_iter().next().unwrap();
    vec![
        ("close", close(town, &Close::default()).map(|_| ())),
        ("reopen", beads::reopen(town, &ids(BEAD), None).unwrap().remove(0).map(|_| ())),
        ("defer", first(beads::defer(town, &ids(BEAD), None, None).unwrap()).map(|_| ())),
        ("open", update(town, &to_status(Status::Open))),
        ("blocked", update(town, &to_status(Status::Blocked))),
        ("closed", update(town, &to_status(Status::Closed))),
        ("assign", update(town, &assign)),
        ("put off", update(town, &put_off)),
        ("batch close", batch(BatchStep::Close { words: ids(BEAD), how: Close::default() })),
        ("batch reopen", batch(BatchStep::Reopen { beads: ids(BEAD), reason: None })),
    ]
}

fn refusal(error: OperationError) -> VerbRefusal {
    match error {
        OperationError::Refused { refusal, .. } | OperationError::NotClaimed { refusal, .. } => {
            refusal
        }
        OperationError::At { error, .. } => refusal(*error),
        other => panic!("{other}"),
    }
}

#[test]
fn a_stranger_changes_nothing_of_a_running_bead() {
    let town = stranger(working());
    let before = stored(&town);
    for (verb, answer) in every_verb(&town).into_iter().chain([("claim", update(&town, &claim()))])
    {
        let text = answer.expect_err(verb).to_string();
        assert!(text.contains("web-1#1") && text.contains("gt run cancel web-1#1"), "{text}");
    }
    assert_eq!(stored(&town), before);
    assert_eq!(state(&town), RunState::Running);
}

#[test]
fn the_other_fields_of_a_running_bead_stay_open_to_every_actor() {
    let town = stranger(working());
    let changes = BeadChanges {
        title: Some("better".to_owned()),
        append_notes: Some("look here".to_owned()),
        add_labels: vec!["soon".to_owned()],
        assignee: Some("web/process".to_owned()),
        ..to_status(Status::InProgress)
    };
    update(&town, &changes).unwrap();
    let bead = stored(&town);
    assert_eq!((bead.title.as_str(), bead.notes.as_str()), ("better", "look here"));
    assert_eq!((bead.status, state(&town)), (Status::InProgress, RunState::Running));
}

#[test]
fn a_worker_acknowledges_and_is_told_how_to_finish() {
    let town = worker(working(), 1);
    update(&town, &claim()).unwrap();
    update(&town, &to_status(Status::InProgress)).unwrap();
    for (verb, answer) in every_verb(&town) {
        let refusal = refusal(answer.expect_err(verb));
        assert!(refusal.to_string().contains("gt done"), "{verb}: {refusal}");
    }
    for answer in [close(&town, &forced()).map(|_| ()), close(&town, &Close::default()).map(|_| ())]
    {
        assert_eq!(refusal(answer.unwrap_err()), VerbRefusal::FinishWithDone(run_id(1)));
    }
    assert!(gt_beads::deletion::delete(&town, &ids(BEAD), false).is_err());
    assert_eq!((stored(&town).status, state(&town)), (Status::InProgress, RunState::Running));
    let end = RunEnd::without_status(RunState::Done, "done");
    gt_scheduling::run_transitions::finish(&town, &run_id(1), &end).unwrap();
    assert_eq!((stored(&town).status, state(&town)), (Status::Closed, RunState::Done));
}

#[test]
fn a_worker_of_an_earlier_run_is_fenced_off() {
    let town = working();
    gt_scheduling::run_transitions::finish(
        &town,
        &run_id(1),
        &RunEnd::without_status(RunState::Lost, "gone"),
    )
    .unwrap();
    dispatch(&town);
    assert!(matches!(
        gt_scheduling::run_transitions::claim(&town, &run_id(2), &Workplace::default(), None)
            .unwrap(),
        gt_scheduling::run_transitions::Claim::Granted(_)
    ));
    let town = worker(town, 1);
    let close_by_force = ("force", close(&town, &forced()).map(|_| ()));
    for (verb, answer) in every_verb(&town).into_iter().chain([close_by_force]) {
        let refused = answer.expect_err(verb).to_string();
        assert!(refused.contains("web-1#1 is over"), "{verb}: {refused}");
        assert!(refused.contains("as web-1#2"), "{verb}: {refused}");
    }
    assert!(gt_beads::deletion::delete(&town, &ids(BEAD), false).is_err());
    assert_eq!((stored(&town).status, state(&town)), (Status::InProgress, RunState::Running));
    close(&stranger(town), &forced()).unwrap();
}

#[test]
fn a_forced_close_cancels_the_run_with_it() {
    let town = stranger(working());
    let closed = close(&town, &forced()).unwrap();
    assert_eq!(closed.cancelled.map(|run| run.id), Some(run_id(1)));
    let run = gt_beads::run_records::resolve(&town, BEAD).unwrap();
    assert_eq!((run.state, run.ended_by.as_str()), (RunState::Cancelled, "ann"));
    let bead = stored(&town);
    assert_eq!((bead.status, bead.assignee.as_str()), (Status::Closed, ""));
    // A later end of the run is refused.
    let end = RunEnd::without_status(RunState::Failed, "killed");
    assert_eq!(
        gt_scheduling::run_transitions::finish(&town, &run_id(1), &end).unwrap(),
        gt_scheduling::run_transitions::FinishEffect::Already
    );
    assert_eq!(stored(&town).outcome, None);
}

#[test]
fn a_forced_close_fences_off_a_start_that_is_under_way() {
    let town = town_with_rig(None);
    bead(&town, BEAD);
    sling_all(&town, &[BEAD]);
    dispatch(&town);
    let line = BatchLine {
        number: 1,
        place: "line 1".to_owned(),
        step: BatchStep::Close { words: ids(BEAD), how: forced() },
    };
    batch::run(&town, std::slice::from_ref(&line), true).unwrap();
    assert_eq!(state(&town), RunState::Starting, "a rehearsal cancels nothing");
    batch::run(&town, &[line], false).unwrap();
    assert_eq!((stored(&town).status, state(&town)), (Status::Closed, RunState::Cancelled));
    assert!(matches!(
        gt_scheduling::run_transitions::claim(&town, &run_id(1), &Workplace::default(), None)
            .unwrap(),
        gt_scheduling::run_transitions::Claim::Refused(_)
    ));
    assert!(queue::why(&town, BEAD).unwrap().context.unwrap().closed.is_some());
}

#[test]
fn a_deletion_cancels_the_run_and_takes_everything_along() {
    let town = stranger(working());
    let preview = gt_beads::deletion::preview_delete(&town, &ids(BEAD), false).unwrap();
    assert_eq!(preview.runs.len(), 1);
    assert_eq!(state(&town), RunState::Running);
    let deleted = gt_beads::deletion::delete(&town, &ids(BEAD), false).unwrap();
    assert_eq!(deleted.runs[0].id, run_id(1));
    assert!(gt_beads::run_records::resolve(&town, BEAD).is_err());
    assert!(matches!(
        gt_scheduling::run_transitions::claim(&town, &run_id(1), &Workplace::default(), None)
            .unwrap(),
        gt_scheduling::run_transitions::Claim::Refused(_)
    ));
    let end = RunEnd::without_status(RunState::Done, "done");
    assert_eq!(
        gt_scheduling::run_transitions::finish(&town, &run_id(1), &end).unwrap(),
        gt_scheduling::run_transitions::FinishEffect::Already
    );
}

#[test]
fn a_person_acknowledges_by_claiming_and_ends_the_run_by_closing() {
    let town = hooked_by_max();
    let run = gt_beads::run_records::resolve(&town, BEAD).unwrap();
    assert_eq!((run.executor.as_str(), run.state), ("none", RunState::Starting));
    let context = queue::why(&town, BEAD).unwrap().context.unwrap();
    assert_eq!(context.closed.map(|closed| closed.reason), Some(CloseReason::Dispatched));
    assert_eq!((stored(&town).status, stored(&town).assignee.as_str()), (Status::Hooked, MAX));

    let town = stranger(town);
    for (verb, answer) in every_verb(&town) {
        assert!(refusal(answer.expect_err(verb)).to_string().contains("web-1#1"));
    }

    let town = acting(town, MAX, None);
    update(&town, &claim()).unwrap();
    update(&town, &claim()).unwrap();
    assert_eq!((stored(&town).status, state(&town)), (Status::InProgress, RunState::Running));
    assert!(stored(&town).started_at.is_some());
    let blocked = refusal(update(&town, &to_status(Status::Blocked)).unwrap_err());
    assert_eq!(blocked, VerbRefusal::StatusOfRun { run: run_id(1), closes: true });

    close(&town, &Close { reasons: vec!["merged".to_owned()], ..Close::default() }).unwrap();
    let bead = stored(&town);
    assert_eq!((bead.status, bead.outcome), (Status::Closed, Some(Outcome::Success)));
    let run = gt_beads::run_records::resolve(&town, BEAD).unwrap();
    assert_eq!(
        (run.state, run.reason.as_str(), run.ended_by.as_str()),
        (RunState::Done, "merged", "")
    );
}

#[test]
fn a_person_who_closes_as_failed_ends_the_run_as_failed() {
    for (outcome, ended) in
        [(Outcome::Failed, RunState::Failed), (Outcome::Cancelled, RunState::Cancelled)]
    {
        let town = acting(hooked_by_max(), MAX, None);
        close(&town, &Close { outcome: Some(outcome), ..Close::default() }).unwrap();
        assert_eq!(stored(&town).outcome, Some(outcome));
        assert_eq!(state(&town), ended);
    }
}

#[test]
fn a_bead_that_a_run_closed_has_no_assignee_when_reopened() {
    let town = acting(hooked_by_max(), MAX, None);
    close(&town, &Close::default()).unwrap();
    assert_eq!(stored(&town).assignee, MAX);
    let town = stranger(town);
    beads::reopen(&town, &ids(BEAD), None).unwrap().remove(0).unwrap();
    assert_eq!((stored(&town).status, stored(&town).assignee.as_str()), (Status::Open, ""));
}

#[test]
fn a_person_may_say_the_same_with_update() {
    let town = acting(hooked_by_max(), MAX, None);
    update(&town, &to_status(Status::InProgress)).unwrap();
    assert_eq!((stored(&town).status, state(&town)), (Status::InProgress, RunState::Running));
    update(&town, &to_status(Status::Closed)).unwrap();
    assert_eq!((stored(&town).status, state(&town)), (Status::Closed, RunState::Done));
}

#[test]
fn a_run_of_a_person_is_given_back_by_cancelling_it() {
    let town = acting(hooked_by_max(), MAX, None);
    update(&town, &claim()).unwrap();
    runs::cancel(&town, BEAD).unwrap();
    assert_eq!((stored(&town).status, state(&town)), (Status::Open, RunState::Cancelled));
    assert_eq!(stored(&town).assignee, "");
}

#[test]
fn a_bead_closed_before_its_turn_leaves_the_line() {
    for by_name in [true, false] {
        let town = stranger(town_with_rig(None));
        bead(&town, BEAD);
        sling_all(&town, &[BEAD]);
        if by_name {
            close(&town, &Close::default()).unwrap();
        } else {
            update(&town, &to_status(Status::Closed)).unwrap();
        }
        assert_eq!(queue::status(&town).unwrap().queued, 0);
        let context = queue::why(&town, BEAD).unwrap().context.unwrap();
        assert_eq!(context.closed.map(|closed| closed.reason), Some(CloseReason::StaleWorkBead));

        beads::reopen(&town, &ids(BEAD), None).unwrap().remove(0).unwrap();
        assert_eq!(queue::status(&town).unwrap().queued, 0, "its convoy was made by the sling");
    }
}

#[test]
fn a_bead_deleted_before_its_turn_leaves_the_line() {
    let town = stranger(town_with_rig(None));
    bead(&town, BEAD);
    sling_all(&town, &[BEAD]);
    assert_eq!(queue::status(&town).unwrap().queued, 1);
    gt_beads::deletion::delete(&town, &ids(BEAD), false).unwrap();
    assert_eq!(queue::status(&town).unwrap().queued, 0);
    dispatch(&town);
}

#[test]
fn a_bead_claimed_by_hand_waits_in_line() {
    let town = stranger(town_with_rig(None));
    bead(&town, BEAD);
    sling_all(&town, &[BEAD]);
    update(&town, &claim()).unwrap();
    dispatch(&town);
    let why = queue::why(&town, BEAD).unwrap();
    assert!(why.run.is_none() && why.context.unwrap().closed.is_none());
    assert_eq!(why.reasons[0].to_string(), "claimed by ann by hand");
    // It is theirs, by the old table.
    update(&town, &to_status(Status::Open)).unwrap();
    update(&town, &BeadChanges { assignee: Some(String::new()), ..BeadChanges::default() })
        .unwrap();
    dispatch(&town);
    assert_eq!(state(&town), RunState::Starting);
}

#[test]
fn the_first_ready_bead_is_never_one_that_a_run_has() {
    let town = stranger(working());
    let now = Timestamp::from_nanos(i64::MAX);
    let ready = Some(Readiness { now, include_deferred: false });
    let none = beads::claim_first(&town, &BeadFilter { ready, ..BeadFilter::default() }, None);
    assert!(none.unwrap().is_none_or(|row| row.bead.id.as_str() != BEAD));
}

#[test]
fn a_molecule_ends_when_a_run_finishes_its_last_step() {
    let town = town_with_rig(None);
    let molecule = NewBead {
        title: "all of it".to_owned(),
        id: Some("web-mol".to_owned()),
        issue_type: Some(IssueType::parse("molecule").unwrap()),
        ..NewBead::default()
    };
    beads::create(&town, &molecule, false).unwrap();
    bead(&town, BEAD);
    let parent = FieldEdit::Set("web-mol".to_owned());
    update(&town, &BeadChanges { parent, ..BeadChanges::default() }).unwrap();
    sling_all(&town, &[BEAD]);
    dispatch(&town);
    assert!(matches!(
        gt_scheduling::run_transitions::claim(&town, &run_id(1), &Workplace::default(), None)
            .unwrap(),
        gt_scheduling::run_transitions::Claim::Granted(_)
    ));
    gt_scheduling::run_transitions::finish(
        &town,
        &run_id(1),
        &RunEnd::without_status(RunState::Done, "done"),
    )
    .unwrap();
    assert_eq!(shown(&town, "web-mol").row.bead.status, Status::Closed);
}
