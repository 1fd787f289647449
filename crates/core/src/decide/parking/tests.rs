use proptest::prelude::*;

use super::*;
use crate::schedule::ParkSubjectKind;
use crate::{ExecutorKind, RigSlug, Uid};

const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);
const SECOND: Duration = Duration::from_secs(1);

fn id(bead: &str) -> RunId {
    RunId { bead: BeadId::parse(bead).unwrap(), epoch: 1 }
}

/// A run that its worker took so long ago.
fn run(bead: &str, age: Duration) -> Run {
    Run {
        runtime: "claude".to_owned(),
        agent: "web/process".to_owned(),
        state: RunState::Running,
        running_at: Some(NOW.minus(age)),
        ..Run::begun(
            id(bead),
            Uid::from_bytes([0; 16]),
            1,
            RigSlug::parse("web").unwrap(),
            ExecutorKind::Process,
            NOW.minus(age),
        )
    }
}

fn end(state: RunState) -> RunEnd {
    RunEnd::without_status(state, "")
}

fn claude() -> ParkSubject {
    ParkSubject { kind: ParkSubjectKind::Runtime, name: "claude".to_owned() }
}

/// The park after runs of these beads ended like this, and the cause of the last failure.
fn after(mut park: Option<Park>, story: &[(&str, RunEvidence)]) -> (Option<Park>, FailureCause) {
    let mut blame = FailureCause::Bead;
    for (bead, testimony) in story {
        let (change, found) =
            after_run(park.as_ref(), &claude(), &id(bead), *testimony, true, "exit status 1", NOW);
        blame = found;
        match change {
            ParkChange::Keep => {}
            ParkChange::Clear => park = None,
            ParkChange::Ramp => {
                park = park.map(|park| Park { ramp_since: Some(NOW), ..park });
            }
            ParkChange::Suspect(next) | ParkChange::Close { park: next, .. } => park = Some(next),
        }
    }
    (park, blame)
}

const STRIKE: RunEvidence = RunEvidence::Strike;
const THREE: [(&str, RunEvidence); 3] = [("w-1", STRIKE), ("w-2", STRIKE), ("w-3", STRIKE)];

fn is_closed(park: Option<&Park>) -> bool {
    park.is_some_and(|park| park.closed.is_some())
}

#[test]
fn only_a_run_that_comes_to_nothing_at_once_counts() {
    let quick = run("w-1", SECOND * 59);
    let long = run("w-1", SECOND * 60);
    for state in [RunState::Failed, RunState::Lost] {
        assert_eq!(run_evidence(&quick, &end(state), NOW), RunEvidence::Strike);
        assert_eq!(run_evidence(&long, &end(state), NOW), RunEvidence::Works);
        let committed = RunEnd { committed: true, ..end(state) };
        assert_eq!(run_evidence(&quick, &committed, NOW), RunEvidence::Works);
    }
    assert_eq!(run_evidence(&quick, &end(RunState::Done), NOW), RunEvidence::Works);
    assert_eq!(run_evidence(&quick, &end(RunState::Cancelled), NOW), RunEvidence::Nothing);
    for loss in [RunLoss::Host, RunLoss::Session, RunLoss::Limit, RunLoss::Budget] {
        let lost = RunEnd { loss, ..end(RunState::Lost) };
        assert_eq!(run_evidence(&quick, &lost, NOW), RunEvidence::Nothing, "{loss:?}");
    }
}

#[test]
fn people_and_clocks_that_jump_say_nothing() {
    let lost = end(RunState::Lost);
    for executor in [ExecutorKind::Pull, ExecutorKind::None] {
        let run = Run { executor, ..run("w-1", SECOND) };
        assert_eq!(run_evidence(&run, &lost, NOW), RunEvidence::Nothing);
    }
    let early = Run { running_at: Some(NOW.plus(SECOND)), ..run("w-1", SECOND) };
    assert_eq!(run_evidence(&early, &lost, NOW), RunEvidence::Nothing);
    let untaken = Run { running_at: None, ..run("w-1", SECOND) };
    assert_eq!(run_evidence(&untaken, &lost, NOW), RunEvidence::Nothing);
}

#[test]
fn three_beads_in_a_row_park_it_for_ten_minutes() {
    let (park, blame) = after(None, &THREE[..2]);
    assert!(!is_closed(park.as_ref()) && blame == FailureCause::Bead);
    let (park, blame) = after(None, &THREE);
    let closed = park.unwrap().closed.unwrap();
    assert_eq!((closed.since, closed.until), (NOW, NOW.plus(PARK_TIME)));
    assert_eq!(blame, FailureCause::Established);
}

#[test]
fn one_bead_is_one_bead_however_often_it_fails() {
    let (park, _) = after(None, &[("w-1", STRIKE), ("w-2", STRIKE), ("w-1", STRIKE)]);
    assert!(!is_closed(park.as_ref()));
    assert_eq!(park.unwrap().strikes.len(), 2);
}

#[test]
fn a_run_that_works_breaks_the_row() {
    let story = [("w-1", STRIKE), ("w-2", STRIKE), ("w-4", RunEvidence::Works), ("w-3", STRIKE)];
    let (park, _) = after(None, &story);
    assert_eq!(park.unwrap().strikes, [BeadId::parse("w-3").unwrap()]);
}

#[test]
fn a_loss_that_says_nothing_does_not_break_the_row() {
    let story = [("w-1", STRIKE), ("w-2", STRIKE), ("w-4", RunEvidence::Nothing), ("w-3", STRIKE)];
    assert!(is_closed(after(None, &story).0.as_ref()));
}

#[test]
fn while_it_is_parked_only_the_trial_decides() {
    let (parked, _) = after(None, &THREE);
    let (park, blame) = after(parked.clone(), &[("w-4", STRIKE)]);
    assert_eq!((park, blame), (parked.clone(), FailureCause::Known));
    let (park, _) = after(parked.clone(), &[("w-5", RunEvidence::Works)]);
    assert_eq!(park, parked);

    let tried = Park { trial: Some(id("w-6")), ..parked.unwrap() };
    assert_eq!(after(Some(tried.clone()), &[("w-6", RunEvidence::Works)]).0, None);
    let (park, blame) = after(Some(tried), &[("w-6", STRIKE)]);
    let park = park.unwrap();
    assert_eq!((park.closed.unwrap().since, park.trial, blame), (NOW, None, FailureCause::Known));
}

#[test]
fn the_narrower_means_is_parked_first() {
    let (suspected, _) = after(None, &THREE[..2]);
    let (change, blame) =
        after_run(suspected.as_ref(), &claude(), &id("w-3"), STRIKE, false, "", NOW);
    let ParkChange::Suspect(park) = change else { panic!("{change:?}") };
    assert_eq!((park.strikes.len(), blame), (STRIKES_MAX, FailureCause::Bead));
    // If it goes on without the narrower one, that was not it.
    assert!(is_closed(after(Some(park), &[("w-4", STRIKE)]).0.as_ref()));
}

#[test]
fn a_trial_goes_alone_until_it_has_shown_that_it_works() {
    let park = after(None, &THREE).0.unwrap();
    let until = NOW.plus(PARK_TIME);
    assert_eq!(hold(&park, None, NOW), Some(ParkHold::Until(until)));
    assert_eq!(hold(&park, None, until), Some(ParkHold::Once));
    let mut trial = Run { running_at: None, ..run("w-9", Duration::ZERO) };
    assert_eq!(hold(&park, Some(&trial), until), Some(ParkHold::Trial(trial.id.clone())));
    trial.running_at = Some(until);
    assert_eq!(hold(&park, Some(&trial), until), Some(ParkHold::Trial(trial.id.clone())));
    assert_eq!(hold(&park, Some(&trial), until.plus(STRIKE_WITHIN)), None);
    // A runtime that is only suspected is not held.
    let suspected = after(None, &THREE[..1]).0.unwrap();
    assert_eq!(hold(&suspected, None, NOW), None);
}

#[test]
fn a_limit_lasts_as_long_as_it_was_said_within_reason() {
    let hour = Duration::from_hours(1);
    for (said, lasts) in [
        (NOW.plus(hour), hour),
        (NOW.minus(hour), USAGE_LIMIT_MIN),
        (NOW.plus(hour * 24 * 365), LIMIT_MAX),
    ] {
        let park = limited(claude(), said, "limit", false, NOW);
        assert_eq!(park.closed.unwrap().until, NOW.plus(lasts));
        assert!(park.is_limit());
    }
}

fn testimonies() -> impl Strategy<Value = RunEvidence> {
    prop_oneof![Just(RunEvidence::Works), Just(RunEvidence::Strike), Just(RunEvidence::Nothing)]
}

#[test]
fn after_a_limit_one_goes_then_two_then_twice_as_many_each_minute() {
    let until = NOW.minus(SECOND * 600);
    let closed = Some(ClosedPeriod { since: until.minus(SECOND), until });
    let park = Park { closed, ..limited(claude(), NOW, "limit", false, NOW) };
    assert_eq!(hold(&park, None, NOW), Some(ParkHold::Once));
    // The run that tries it has not lasted long enough,
    let trial = Run { running_at: Some(NOW.minus(SECOND * 59)), ..run("w-1", SECOND * 59) };
    assert_eq!(hold(&park, Some(&trial), NOW), Some(ParkHold::Trial(trial.id.clone())));
    // it has,
    let later = NOW.plus(SECOND);
    assert_eq!(hold(&park, Some(&trial), later), Some(ParkHold::Ramp(2, later.plus(SECOND * 60))));
    // or it ended well, which is written down.
    let tried = Park { trial: Some(trial.id.clone()), ..park };
    let (ramping, blame) = after(Some(tried), &[("w-1", RunEvidence::Works)]);
    let ramping = ramping.unwrap();
    assert_eq!((ramping.ramp_since, blame), (Some(NOW), FailureCause::Bead));
    for (seconds, most) in [(0, 2), (59, 2), (60, 4), (120, 8), (180, 16), (299, 32)] {
        let now = NOW.plus(SECOND * seconds);
        let held = hold(&ramping, None, now);
        assert!(
            matches!(held, Some(ParkHold::Ramp(now_most, next)) if now_most == most && next > now),
            "{held:?}"
        );
    }
    assert_eq!(hold(&ramping, None, NOW.plus(SECOND * 300)), None);
    // Others that end meanwhile change nothing.
    let (after_others, _) = after(Some(ramping.clone()), &THREE);
    assert_eq!(after_others, Some(ramping));
}

#[test]
fn a_limit_that_was_tried_and_met_again_lasts_at_least_a_minute() {
    let until = |again| limited(claude(), NOW, "limit", again, NOW).closed.unwrap().until;
    assert_eq!((until(false), until(true)), (NOW.plus(USAGE_LIMIT_MIN), NOW.plus(LIMIT_AGAIN_MIN)));
}

proptest! {
    #[test]
    fn a_ramp_only_ever_lets_more_go_and_has_an_end(since: i64, passed in proptest::collection::vec(0_u32..400, 1..8)) {
        let since = Timestamp::from_nanos(since / 2);
        let closed = Some(ClosedPeriod { since: since.minus(SECOND * 2), until: since.minus(SECOND) });
        let park = Park { closed, ramp_since: Some(since), ..limited(claude(), since, "", false, since) };
        let mut passed = passed;
        passed.sort_unstable();
        let most = |seconds: u32| match hold(&park, None, since.plus(SECOND * seconds)) {
            Some(ParkHold::Ramp(most, _)) => most,
            held => { assert_eq!(held, None); u32::MAX }
        };
        prop_assert!(passed.iter().map(|seconds| most(*seconds)).is_sorted());
        prop_assert_eq!((most(0), most(400)), (2, u32::MAX));
    }

    #[test]
    fn it_is_parked_only_by_three_different_beads_with_nothing_that_works_between(
        story in prop::collection::vec((0_u8..6, testimonies()), 0..40),
    ) {
        let mut park: Option<Park> = None;
        let mut row: Vec<u8> = Vec::new();
        for (bead, testimony) in story {
            let was_closed = is_closed(park.as_ref());
            match testimony {
                RunEvidence::Works if !was_closed => row.clear(),
                RunEvidence::Strike if !was_closed && !row.contains(&bead) => row.push(bead),
                _ => {}
            }
            let (next, blame) = after(park, &[(&format!("w-{bead}"), testimony)]);
            park = next;
            prop_assert_eq!(is_closed(park.as_ref()), row.len() >= STRIKES_MAX);
            // A run that ends well blames nothing, and the bead is blamed until the fault of the runtime is certain.
            if testimony != RunEvidence::Strike || !is_closed(park.as_ref()) {
                prop_assert_eq!(blame, FailureCause::Bead);
            }
        }
    }

    #[test]
    fn no_run_waits_longer_than_was_said_with_any_clock(
        since: i64, lasts in 0_u32..1_000_000, now: i64,
    ) {
        let (since, now) = (Timestamp::from_nanos(since), Timestamp::from_nanos(now));
        let lasts = Duration::from_secs(lasts.into());
        let closed = Some(ClosedPeriod { since, until: since.plus(lasts) });
        let (strikes, reason) = (Vec::new(), String::new());
        let park = Park { means: claude(), strikes, closed, reason, trial: None, ramp_since: None };
        match hold(&park, None, now) {
            Some(ParkHold::Until(until)) => prop_assert!(until > now && until.since(now) <= lasts),
            held => prop_assert_eq!(held, Some(ParkHold::Once)),
        }
    }
}
