//! Parks of runtimes and accounts.

use gt_core::schedule::{ClosedPeriod, Park, ParkSubject, Run, RunId};

use super::EngineUnderTest;
use super::contexts::{new, schedule};
use super::kit::{CheckedStore, at, id, slug};
use super::runs::begin;
use gt_store::NewContext;

fn claude() -> ParkSubject {
    ParkSubject::runtime("claude", &slug("gear"))
}

fn suspected(means: ParkSubject) -> Park {
    let strikes = vec![id("gt-a"), id("gt-b")];
    Park {
        means,
        strikes,
        closed: None,
        reason: "exit \"1\"".to_owned(),
        trial: None,
        ramp_since: None,
    }
}

fn closed(means: ParkSubject) -> Park {
    let closed = Some(ClosedPeriod { since: at(100), until: at(700) });
    Park { closed, trial: RunId::parse("gt-c#2").ok(), ..suspected(means) }
}

/// A run on an account.
fn run(town: &CheckedStore) -> Run {
    town.add_open(&["gt-a"]);
    begin(town, "gt-a", |run| "work".clone_into(&mut run.account))
}

pub(super) fn a_park_reads_back_exactly_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let run = run(&town);
    assert_eq!(town.read(|reader| reader.parks()), []);
    let limit = Park { strikes: Vec::new(), ..closed(ParkSubject::account("work")) };
    town.write(|writer| writer.suspect(&suspected(claude())));
    town.write(|writer| writer.park(&limit, &run, false));
    assert_eq!(town.read(|reader| reader.parks()), [limit.clone(), suspected(claude())]);

    town.write(|writer| writer.park(&closed(claude()), &run, true));

    assert_eq!(town.read(|reader| reader.parks()), [limit, closed(claude())]);
}

pub(super) fn a_run_finds_the_parks_of_its_own_means(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let run = run(&town);
    for means in [
        claude(),
        ParkSubject::runtime("", &slug("gear")),
        ParkSubject::runtime("work", &slug("gear")),
        ParkSubject::account("work"),
        ParkSubject::account("lab"),
        ParkSubject::account("claude"),
    ] {
        town.write(|writer| writer.suspect(&suspected(means.clone())));
    }
    let found = |run: &Run| -> Vec<ParkSubject> {
        let parks = town.read(|reader| reader.parks_of(run));
        parks.into_iter().map(|park| park.means).collect()
    };
    assert_eq!(found(&run), [ParkSubject::account("work"), claude()]);
    let plain = Run { account: String::new(), runtime: String::new(), ..run };
    assert_eq!(found(&plain), [ParkSubject::runtime("", &slug("gear"))]);
}

pub(super) fn a_trial_is_written_down_beside_the_rest(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let run = run(&town);
    town.write(|writer| writer.park(&closed(claude()), &run, false));
    town.write(|writer| writer.set_trial(&claude(), &run.id));
    let tried = Park { trial: Some(run.id), ..closed(claude()) };
    assert_eq!(town.read(|reader| reader.parks()), [tried]);
}

pub(super) fn a_ramp_is_told_as_the_end_of_a_limit_and_its_own_end_is_not(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let run = run(&town);
    let limit = Park { strikes: Vec::new(), ..closed(ParkSubject::account("work")) };
    town.write(|writer| writer.park(&limit, &run, false));
    let before = town.last_event();
    town.write(|writer| writer.set_ramp(&limit, at(800), Some(&run)));
    let ramping = Park { ramp_since: Some(at(800)), ..limit.clone() };
    assert_eq!(town.read(|reader| reader.parks()), std::slice::from_ref(&ramping));
    town.write(|writer| writer.clear_park(&ramping, None));
    let told: Vec<String> =
        town.events_since(before).iter().map(|event| event.kind.to_string()).collect();
    assert_eq!(told, ["unparked"]);

    // Another limit begins anew.
    town.write(|writer| writer.suspect(&ramping));
    town.write(|writer| writer.park(&limit, &run, false));
    assert_eq!(town.read(|reader| reader.parks()), [limit]);
}

pub(super) fn parking_and_its_end_are_told_and_suspicion_is_not(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let run = run(&town);
    let before = town.last_event();
    town.write(|writer| writer.suspect(&suspected(claude())));
    town.write(|writer| writer.clear_park(&suspected(claude()), None));
    town.write(|writer| writer.park(&closed(claude()), &run, true));
    town.write(|writer| writer.clear_park(&closed(claude()), Some(&run)));
    let limit = Park { strikes: Vec::new(), ..closed(ParkSubject::account("work")) };
    town.write(|writer| writer.park(&limit, &run, false));
    town.write(|writer| writer.clear_park(&limit, None));
    let told: Vec<(String, String)> = town
        .events_since(before)
        .iter()
        .map(|event| (event.kind.to_string(), event.payload.to_string()))
        .collect();
    let until = at(700);
    let expected = [
        (
            "parked",
            format!(
                r#"{{"kind":"runtime","name":"claude","reason":"exit \"1\"","until":"{until}","again":true}}"#
            ),
        ),
        ("unparked", r#"{"kind":"runtime","name":"claude"}"#.to_owned()),
        (
            "limited",
            format!(
                r#"{{"kind":"account","name":"work","reason":"exit \"1\"","until":"{until}"}}"#
            ),
        ),
        ("unparked", r#"{"kind":"account","name":"work","limit":true}"#.to_owned()),
    ];
    assert_eq!(told, expected.map(|(kind, payload)| (kind.to_owned(), payload)));
    assert_eq!(town.read(|reader| reader.parks()), []);
}

pub(super) fn a_forgiven_attempt_wakes_its_context(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let later = Some(at(900_000));
    let context =
        schedule(&town, NewContext { attempts: 2, next_attempt_at: later, ..new("gt-a") });
    assert_eq!(town.read(|reader| reader.lanes()), []);

    town.write(|writer| writer.forgive_attempt(&context));

    let forgiven = town.read(|reader| reader.context_by_number(context.number));
    let forgiven = forgiven.expect("the context is there");
    assert_eq!((forgiven.attempts, forgiven.next_attempt_at), (1, None));
    assert_eq!(town.read(|reader| reader.lanes()).len(), 1);
}
