//! Single decisions of the table, and properties of all of them.

use proptest::prelude::*;

use super::held::{Relation, WorkerBinding};
use super::*;
use crate::ExecutorKind;
use crate::schedule::RunState;

const ME: VerbActor<'_> = VerbActor { name: "me", run: None };

/// The decision about a bead that no run has.
fn unheld(verb: &Verb, facts: &TransitionFacts<'_>) -> Result<Transition, VerbRefusal> {
    decide(verb, facts, ME).map(|ruling| {
        assert_eq!(ruling.run, RunEffect::Untouched);
        ruling.bead
    })
}

static BEAD: std::sync::LazyLock<BeadId> =
    std::sync::LazyLock::new(|| BeadId::parse("gt-a").unwrap());

fn facts<'a>(status: &'a Status, assignee: &'a str, kind: &'a IssueType) -> TransitionFacts<'a> {
    TransitionFacts {
        id: &BEAD,
        status,
        assignee,
        issue_type: kind,
        pinned: false,
        is_template: false,
        has_open_children: false,
        blockers: &[],
        run: None,
        request: None,
    }
}

#[test]
fn a_claim_is_a_compare_and_swap() {
    let task = IssueType::default();
    let claim =
        |status: &Status, assignee: &str| unheld(&Verb::Claim, &facts(status, assignee, &task));
    assert_eq!(claim(&Status::Open, ""), Ok(Transition::Claimed));
    assert_eq!(claim(&Status::Open, "me"), Ok(Transition::Claimed));
    assert_eq!(claim(&Status::InProgress, "me"), Ok(Transition::Nothing));
    assert_eq!(claim(&Status::Open, "you"), Err(VerbRefusal::ClaimedBy("you".into())));
    assert_eq!(claim(&Status::InProgress, "you"), Err(VerbRefusal::ClaimedBy("you".into())));
    for status in [Status::Closed, Status::Pinned, Status::Blocked, Status::Deferred] {
        assert_eq!(claim(&status, ""), Err(VerbRefusal::NotClaimable(status.clone())));
    }
}

#[test]
fn closing_has_guards_that_force_overrides() {
    let (task, epic) = (IssueType::default(), IssueType::parse("epic").unwrap());
    let blockers = [BeadId::parse("gt-a").unwrap()];
    let guarded = [
        TransitionFacts { pinned: true, ..facts(&Status::Open, "", &task) },
        facts(&Status::Pinned, "", &task),
        TransitionFacts { has_open_children: true, ..facts(&Status::Open, "", &epic) },
        TransitionFacts { blockers: &blockers, ..facts(&Status::Open, "", &task) },
    ];
    for facts in &guarded {
        assert!(unheld(&Verb::Close { force: false }, facts).is_err());
        let forced = unheld(&Verb::Close { force: true }, facts);
        assert_eq!(forced, Ok(Transition::Closed));
    }
    let template = TransitionFacts { is_template: true, ..facts(&Status::Open, "", &task) };
    for verb in [Verb::Close { force: true }, Verb::SetStatus(Status::Closed)] {
        assert_eq!(unheld(&verb, &template), Err(VerbRefusal::Template));
    }
}

#[test]
fn open_children_hold_up_only_epics() {
    let task = IssueType::default();
    let parent = TransitionFacts { has_open_children: true, ..facts(&Status::Open, "", &task) };
    let closed = unheld(&Verb::Close { force: false }, &parent);
    assert_eq!(closed, Ok(Transition::Closed));
}

#[test]
fn only_reopening_leads_out_of_closed() {
    let task = IssueType::default();
    let closed = facts(&Status::Closed, "", &task);
    for wanted in Status::BUILT_IN {
        let answer = unheld(&Verb::SetStatus(wanted.clone()), &closed);
        match wanted {
            Status::Closed => assert_eq!(answer, Ok(Transition::Nothing)),
            Status::Open => assert_eq!(answer, Ok(Transition::Reopened)),
            _ => assert_eq!(answer, Err(VerbRefusal::Closed)),
        }
    }
    assert_eq!(unheld(&Verb::Close { force: false }, &closed), Ok(Transition::Closed));
}

/// A run of the bead that the tests are about.
fn run_id(epoch: u32) -> RunId {
    RunId { bead: BEAD.clone(), epoch }
}

fn held<'a>(
    id: &'a RunId,
    executor: ExecutorKind,
    state: RunState,
    status: &'a Status,
    kind: &'a IssueType,
) -> TransitionFacts<'a> {
    let run = LiveRun::new(id, state, executor, "web/crew/max");
    assert!(run.is_some());
    TransitionFacts { run, ..facts(status, "web/crew/max", kind) }
}

const SUPERVISED: [ExecutorKind; 3] =
    [ExecutorKind::Tmux, ExecutorKind::Process, ExecutorKind::Ssh];

#[test]
fn a_process_acknowledges_and_leaves_the_rest_to_its_run() {
    let (task, id) = (IssueType::default(), run_id(2));
    let me = VerbActor { name: "web/process", run: Some(&id) };
    for executor in SUPERVISED {
        let held = held(&id, executor, RunState::Running, &Status::InProgress, &task);
        let answer = |verb: &Verb| decide(verb, &held, me);
        let nothing = VerbDecision { bead: Transition::Nothing, run: RunEffect::Untouched };
        assert_eq!(answer(&Verb::Claim), Ok(nothing.clone()));
        assert_eq!(answer(&Verb::SetStatus(Status::InProgress)), Ok(nothing));
        let done = Err(VerbRefusal::FinishWithDone(id.clone()));
        for force in [false, true] {
            assert_eq!(answer(&Verb::Close { force }), done);
        }
        assert_eq!(answer(&Verb::SetStatus(Status::Closed)), done);
        let kept = Err(VerbRefusal::StatusOfRun { run: id.clone(), closes: false });
        for verb in [Verb::Reopen, Verb::PutOff, Verb::SetStatus(Status::Blocked)] {
            assert_eq!(answer(&verb), kept);
        }
    }
}

#[test]
fn a_person_takes_and_ends_a_run_through_its_bead() {
    let (task, id) = (IssueType::default(), run_id(1));
    let max = VerbActor { name: "web/crew/max", run: None };
    let hooked = held(&id, ExecutorKind::None, RunState::Starting, &Status::Hooked, &task);
    let taken =
        VerbDecision { bead: Transition::Status(Status::InProgress), run: RunEffect::Taken };
    for verb in [Verb::Claim, Verb::SetStatus(Status::InProgress)] {
        assert_eq!(decide(&verb, &hooked, max), Ok(taken.clone()));
    }
    let ended = VerbDecision { bead: Transition::Closed, run: RunEffect::Ended };
    for verb in [Verb::Close { force: false }, Verb::SetStatus(Status::Closed)] {
        assert_eq!(decide(&verb, &hooked, max), Ok(ended.clone()));
    }
    let blockers = [BeadId::parse("gt-b").unwrap()];
    let blocked = TransitionFacts { blockers: &blockers, ..hooked };
    let refused = decide(&Verb::Close { force: false }, &blocked, max);
    assert_eq!(
        refused,
        Err(VerbRefusal::Blocked(blockers.to_vec())),
        "the guards hold for them, too"
    );
    assert_eq!(decide(&Verb::Close { force: true }, &blocked, max), Ok(ended));
}

#[test]
fn an_agent_that_pulls_takes_its_run_and_finishes_it_with_done() {
    let (task, id) = (IssueType::default(), run_id(1));
    let agent = VerbActor { name: "web/crew/max", run: None };
    let hooked = held(&id, ExecutorKind::Pull, RunState::Starting, &Status::Hooked, &task);
    assert_eq!(decide(&Verb::Claim, &hooked, agent).map(|answer| answer.run), Ok(RunEffect::Taken));
    let close = decide(&Verb::Close { force: false }, &hooked, agent);
    assert_eq!(close, Err(VerbRefusal::FinishWithDone(id.clone())));
}

#[test]
fn a_refusal_says_what_to_do() {
    let (task, id, old) = (IssueType::default(), run_id(2), run_id(1));
    let held = held(&id, ExecutorKind::Process, RunState::Running, &Status::InProgress, &task);
    let says = |verb: &Verb, speaker| decide(verb, &held, speaker).unwrap_err().to_string();
    assert_eq!(
        says(&Verb::Close { force: false }, ME),
        "web/crew/max has it in the run gt-a#2; end that first with gt run cancel gt-a#2, or use --force, \
         which cancels the run"
    );
    assert_eq!(
        says(&Verb::Reopen, ME),
        "web/crew/max has it in the run gt-a#2; end that first with gt run cancel gt-a#2"
    );
    assert_eq!(
        says(&Verb::Claim, ME),
        "issue already claimed by web/crew/max, in the run gt-a#2; end that first with \
         gt run cancel gt-a#2"
    );
    assert_eq!(
        says(&Verb::Close { force: true }, VerbActor { name: "web/process", run: Some(&old) }),
        "you act in the run gt-a#1, but gt-a#2 has it now; stop, your run is over"
    );
    assert_eq!(
        says(&Verb::Close { force: false }, VerbActor { name: "web/process", run: Some(&id) }),
        "you are its worker in the run gt-a#2; finish with gt done"
    );
}

#[test]
fn a_worker_whose_run_is_over_is_told_to_stop() {
    let (task, id) = (IssueType::default(), run_id(1));
    let reopened = facts(&Status::Open, "", &task);
    let zombie = VerbActor { name: "web/process", run: Some(&id) };
    assert_eq!(
        decide(&Verb::Close { force: true }, &reopened, zombie).unwrap_err().to_string(),
        "your run gt-a#1 is over, and nothing that you do counts any more; stop working, leave everything as it \
         is, and end your session"
    );
}

#[test]
fn a_worker_of_another_bead_has_no_special_rights() {
    let task = IssueType::default();
    let open = facts(&Status::Open, "", &task);
    let elsewhere = RunId { bead: BeadId::parse("gt-b").unwrap(), epoch: 2 };
    let worker = VerbActor { name: "me", run: Some(&elsewhere) };
    for verb in [Verb::Claim, Verb::Close { force: false }, Verb::Edit] {
        assert_eq!(decide(&verb, &open, worker), decide(&verb, &open, ME));
    }
}

fn any_status() -> impl Strategy<Value = Status> {
    proptest::sample::select(Status::BUILT_IN.to_vec())
}

fn any_verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        Just(Verb::Claim),
        Just(Verb::Reopen),
        Just(Verb::PutOff),
        Just(Verb::Edit),
        any_status().prop_map(Verb::SetStatus),
        any::<bool>().prop_map(|force| Verb::Close { force }),
        any::<bool>().prop_map(|force| Verb::Delete { force }),
        proptest::sample::select(vec!["", "web/crew/max", "me"])
            .prop_map(|name| Verb::Assign(name.to_owned())),
    ]
}

/// A bead that a run has, and a speaker.
#[derive(Debug, Clone)]
struct Case {
    status: Status,
    executor: ExecutorKind,
    state: RunState,
    name: &'static str,
    acting: Option<RunId>,
    pinned: bool,
    is_template: bool,
    is_epic: bool,
    blockers: Vec<BeadId>,
}

fn any_case() -> impl Strategy<Value = Case> {
    let executors = [ExecutorKind::Pull, ExecutorKind::None];
    let executors = proptest::sample::select([&SUPERVISED[..], &executors].concat());
    let states = vec![RunState::Starting, RunState::Running, RunState::Blocked];
    let elsewhere = RunId { bead: BeadId::parse("gt-b").unwrap(), epoch: 2 };
    let acting = vec![None, Some(run_id(1)), Some(run_id(2)), Some(elsewhere)];
    let names = vec!["web/crew/max", "me", "web/process"];
    let bead = (any_status(), any::<[bool; 4]>());
    let run = (executors, proptest::sample::select(states));
    let who = (proptest::sample::select(names), proptest::sample::select(acting));
    (bead, run, who).prop_map(|((status, flags), (executor, state), (name, acting))| {
        let [pinned, is_template, is_epic, blocked] = flags;
        let blockers = if blocked { vec![BeadId::parse("gt-c").unwrap()] } else { Vec::new() };
        Case { status, executor, state, name, acting, pinned, is_template, is_epic, blockers }
    })
}

impl Case {
    fn decide(&self, verb: &Verb) -> (Relation, Result<VerbDecision, VerbRefusal>) {
        let kind = IssueType::parse(if self.is_epic { "epic" } else { "task" }).unwrap();
        let id = run_id(2);
        let facts = TransitionFacts {
            pinned: self.pinned,
            is_template: self.is_template,
            has_open_children: self.is_epic,
            blockers: &self.blockers,
            ..held(&id, self.executor, self.state, &self.status, &kind)
        };
        let speaker = VerbActor { name: self.name, run: self.acting.as_ref() };
        let relation = facts.run.map(|run| run.relation(speaker)).unwrap();
        (relation, decide(verb, &facts, speaker))
    }
}

proptest! {
    /// Without force, only its worker changes anything of a bead that a run has, and only by taking the
    /// run or by ending one that has no process.
    #[test]
    fn a_run_keeps_its_bead(case in any_case(), verb in any_verb()) {
        let (relation, answer) = case.decide(&verb);
        let Ok(ruling) = answer else { return Ok(()) };
        if verb.is_forced() || ruling.bead == Transition::Nothing {
            return Ok(());
        }
        let Relation::Worker(manner) = relation else {
            return Err(TestCaseError::fail(format!("{ruling:?}")));
        };
        match (ruling.bead, ruling.run) {
            (Transition::Status(Status::InProgress), RunEffect::Taken) => {
                prop_assert!(manner != WorkerBinding::Supervised && case.state == RunState::Starting);
            }
            (Transition::Closed, RunEffect::Ended) => prop_assert_eq!(manner, WorkerBinding::Alone),
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
    }

    /// Nothing happens to a run behind the back of its bead, nor the other way round.
    #[test]
    fn a_bead_and_its_run_change_together(case in any_case(), verb in any_verb()) {
        let (_, Ok(ruling)) = case.decide(&verb) else { return Ok(()) };
        prop_assert_eq!(ruling.bead == Transition::Nothing, ruling.run == RunEffect::Untouched);
    }

    #[test]
    fn a_refusal_names_the_run(case in any_case(), verb in any_verb()) {
        let (relation, Err(refusal)) = case.decide(&verb) else { return Ok(()) };
        let guard = match &refusal {
            VerbRefusal::Template => true,
            VerbRefusal::Pinned | VerbRefusal::OpenChildren | VerbRefusal::Blocked(_) => {
                relation == Relation::Worker(WorkerBinding::Alone)
            }
            _ => false,
        };
        let text = refusal.to_string();
        prop_assert!(guard || text.contains("gt-a#2"), "{}", text);
        if let Relation::Superseded(_) = relation {
            prop_assert!(text.contains("gt-a#1"), "{}", text);
        }
    }

    /// Force is refused to the workers of this and of earlier runs, and for templates; otherwise no run
    /// has the bead afterwards.
    #[test]
    fn force_leaves_no_run(case in any_case(), verb in any_verb()) {
        let (relation, answer) = case.decide(&verb);
        if !verb.is_forced() {
            return Ok(());
        }
        match answer {
            Ok(ruling) => {
                prop_assert!(matches!(ruling.run, RunEffect::Ended | RunEffect::Cancelled));
                prop_assert!(matches!(ruling.bead, Transition::Closed | Transition::Deleted));
            }
            Err(VerbRefusal::Template) => prop_assert!(case.is_template),
            Err(VerbRefusal::FinishWithDone(_)) => {
                prop_assert!(matches!(relation, Relation::Worker(_)));
            }
            Err(VerbRefusal::Superseded { .. }) => {
                prop_assert!(matches!(relation, Relation::Superseded(_)));
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }

    /// Nor does a worker whose run is over while no other has come after it.
    #[test]
    fn a_worker_whose_run_is_over_is_fenced_off(
        (status, verb, epoch) in (any_status(), any_verb(), 1_u32..5),
        assignee in proptest::sample::select(vec!["", "me", "you"]),
    ) {
        let (task, id) = (IssueType::default(), run_id(epoch));
        let zombie = VerbActor { name: "me", run: Some(&id) };
        let answer = decide(&verb, &facts(&status, assignee, &task), zombie);
        prop_assert_eq!(answer, Err(VerbRefusal::Over(id)));
    }

    /// A worker of an earlier run changes nothing with any verb.
    #[test]
    fn a_superseded_worker_is_fenced_off(case in any_case(), verb in any_verb()) {
        let case = Case { acting: Some(run_id(1)), ..case };
        let (_, answer) = case.decide(&verb);
        let refused = VerbRefusal::Superseded { acting: run_id(1), live: run_id(2) };
        prop_assert_eq!(answer, Err(refused));
    }
}
