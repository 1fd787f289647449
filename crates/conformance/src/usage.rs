//! The usage of runs, the estimates for them, and the guards that hold up starts.

use std::time::Duration;

use gt_core::cost::{
    SeenWindow, SpendingChange, Spent, TokenCounts, UsageRecord, UsageSource, UsageWindow,
};
use gt_core::decide::RunLimits;
use gt_core::schedule::{
    Account, Money, ParkSubject, Reserve, Run, RunEnd, RunState, Usage, Workplace,
};
use gt_core::{Bead, BeadChangeKind, BeadId, EventKind, ExecutorKind, Outcome, Status};

use super::EngineUnderTest;
use super::contexts::{new, schedule};
use super::kit::{CheckedStore, at, bead, kind, slug};
use super::runs::{begin, end, set_status};
use gt_store::{Guard, MemoryEstimate, NewContext};

pub(super) fn the_usage_of_a_run_is_kept_and_recorded(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let [a, b] = ["gt-a", "gt-b"].map(|bead| begin(&town, bead, |_| ()));
    let usage =
        Usage { peak_memory_mb: Some(700), tokens: Some(12_345), cost: Some(Money(250_000)) };
    let before = town.last_event();
    town.write(|writer| writer.note_usage(&a, &usage, vec!["odd".to_owned()]));
    town.write(|writer| {
        writer.note_usage(&b, &Usage { peak_memory_mb: Some(9), ..Usage::default() }, Vec::new())
    });

    assert_eq!(town.read(|reader| reader.run(&a.id)).expect("it is there").usage, usage);
    let told: Vec<String> = town
        .events_since(before)
        .iter()
        .map(|event| format!("{} {}", event.kind, event.payload))
        .collect();
    let expected = [
        r#"run_used {"peak_memory_mb":700,"tokens":12345,"cost":"0.25","notes":["odd"]}"#,
        r#"run_used {"peak_memory_mb":9}"#,
    ];
    assert_eq!(told, expected);
}

fn claim(town: &CheckedStore, run: &Run) {
    town.write(|writer| {
        assert!(writer.claim_run(run, &Workplace::default())?);
        set_status(writer, run.id.bead.as_str(), Status::InProgress)
    });
}

pub(super) fn a_run_that_ends_before_its_agent_has_pending_usage(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let beads = ["gt-done", "gt-lost", "gt-start", "gt-free"];
    town.add_open(&beads);
    let reserved = Reserve { tokens: None, cost: Some(Money(5)) };
    let [done, lost, start, free] = beads.map(|bead| {
        begin(&town, bead, |run| {
            run.reserved = if bead == "gt-free" { Reserve::default() } else { reserved };
        })
    });
    for run in [&done, &lost, &free] {
        claim(&town, run);
    }
    let pending = || {
        let runs = town.read(|reader| reader.runs_with_pending_usage());
        runs.into_iter().map(|run| (run.id, run.reserved)).collect::<Vec<_>>()
    };
    assert_eq!(pending(), []);

    // A worker and a person end a run whose agent goes on for a moment; recovery ends one that has no process.
    assert!(end(&town, &done, RunState::Done));
    assert!(end(&town, &lost, RunState::Lost));
    assert!(end(&town, &start, RunState::Cancelled));
    assert!(end(&town, &free, RunState::Cancelled));
    assert_eq!(pending(), [(done.id.clone(), reserved)]);

    assert!(town.write(|writer| writer.finalize_usage(&done.id)));
    assert!(!town.write(|writer| writer.finalize_usage(&done.id)));
    assert_eq!(pending(), []);
}

pub(super) fn spending_is_added_up_and_outlives_its_bead(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let [a, b] = ["gt-a", "gt-b"].map(|bead| begin(&town, bead, |_| ()));
    let change = |model: &str, input, cost| SpendingChange {
        model: model.to_owned(),
        input,
        cost,
        priced: cost,
        ..SpendingChange::default()
    };
    town.write(|writer| {
        writer.add_spending(&a, at(1), &change("", 100, 0))?;
        writer.add_spending(&a, at(2), &change("", -100, 0))?;
        writer.add_spending(&a, at(2), &change("opus", 90, 5))?;
        writer.add_spending(&a, at(2), &change("opus", 40, 2))?;
        writer.add_spending(&b, at(3), &change("opus", 7, 1))
    });

    let spent = |from| town.read(|reader| reader.spent_since(at(from)));
    let amounts: Vec<(u64, Money)> =
        spent(0).iter().map(|spent| (spent.tokens, spent.cost)).collect();
    assert_eq!(amounts, [(100, Money(0)), (30, Money(7)), (7, Money(1))]);
    assert_eq!(spent(2).len(), 1);
    assert_eq!((&spent(2)[0].rig, spent(2)[0].account.as_str()), (&b.rig, ""));
    let spent_from = |from| town.read(|reader| reader.spent_from(at(from)));
    let spent = |tokens, cost| Spent { tokens, cost: Money(cost), unpriced: 0 };
    assert_eq!([0, 3, 4].map(spent_from), [spent(137, 8), spent(7, 1), Spent::default()]);
    let entries = |from, until| town.read(|reader| reader.spending(at(from), at(until)));
    let second = entries(2, 3);
    assert_eq!(
        second.iter().map(|entry| entry.change.clone()).collect::<Vec<_>>(),
        [change("", -100, 0), change("opus", 130, 7),]
    );
    assert_eq!((&second[0].run, &second[0].rig, second[0].at), (&a.id, &a.rig, at(2)));

    let end = RunEnd::without_status(RunState::Lost, "");
    town.write(|writer| writer.end_run(&a, &end, ""));
    town.set_status("gt-a", Status::Open);
    town.write(|writer| {
        let bead = writer.bead(&a.id.bead)?.expect("it is there");
        writer.delete_bead(&bead)
    });
    assert_eq!(entries(0, 9).len(), 4);
}

pub(super) fn runs_that_have_ended_tell_what_the_next_may_use(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let none = RunLimits::default();
    let reserve = |runs| {
        let history = town.read(|reader| reader.usage_history(runs));
        history.reserve("tea", "claude", &slug("gear"), &none).cost
    };
    let unknown = reserve(9);
    for (bead, cost, expected) in [("gt-a", 500, 500), ("gt-b", 900, 900), ("gt-c", 100, 900)] {
        let run = begin(&town, bead, |run| {
            "tea".clone_into(&mut run.formula);
            "claude".clone_into(&mut run.runtime);
        });
        let usage = Usage { cost: Some(Money(cost)), ..Usage::default() };
        town.write(|writer| writer.set_run_usage(&run.id, &usage));
        // A live run may use more.
        assert!(reserve(9) == unknown || bead != "gt-a");
        let end = RunEnd::without_status(RunState::Lost, "");
        town.write(|writer| writer.end_run(&run, &end, ""));
        assert_eq!(reserve(9), Some(Money(expected)), "{bead}");
    }
    // The last ones count.
    assert_eq!(reserve(0), unknown);
}

pub(super) fn beads_of_a_bill_are_found_with_their_convoys(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let ids = ["gt-a", "gt-b", "gt-c", "gt-nowhere"].map(|id| BeadId::trusted(id.to_owned()));
    for (closed, outcome) in [("gt-a", None), ("gt-b", Some(Outcome::Cancelled))] {
        town.write(|writer| {
            let before = writer.bead(&BeadId::trusted(closed.to_owned()))?.expect("it is there");
            let after =
                Bead { status: Status::Closed, closed_at: Some(at(5)), outcome, ..before.clone() };
            writer.save_bead(&before, &after, BeadChangeKind::Closed)
        });
    }
    let done = town.read(|reader| reader.done_among(&ids));
    assert_eq!(done, [ids[0].clone()].into());
    let untold = |from, until| town.read(|reader| reader.done_without_usage(at(from), at(until)));
    assert_eq!(untold(0, 9), 0, "no run has worked on it");
    assert_eq!(town.read(|reader| reader.convoys_of(&ids)), []);
    for convoy in ["hq-cv-x", "hq-cv-y"] {
        let convoy = town.add(Bead { issue_type: kind("convoy"), ..bead(convoy) });
        town.write(|writer| writer.track(&convoy.id, &[ids[0].clone(), ids[2].clone()]));
    }
    let pairs = town.read(|reader| reader.convoys_of(&ids));
    let pairs: Vec<(&str, &str)> =
        pairs.iter().map(|(bead, convoy)| (bead.as_str(), convoy.as_str())).collect();
    let expected =
        [("gt-a", "hq-cv-x"), ("gt-a", "hq-cv-y"), ("gt-c", "hq-cv-x"), ("gt-c", "hq-cv-y")];
    assert_eq!(pairs, expected);
}

pub(super) fn done_beads_without_usage_are_counted(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let beads = ["gt-told", "gt-untold", "gt-idle", "gt-failed"];
    town.add_open(&beads);
    for name in beads {
        if name != "gt-idle" {
            let run = begin(&town, name, |_| ());
            claim(&town, &run);
            if name == "gt-told" {
                let change = SpendingChange { input: 5, ..SpendingChange::default() };
                town.write(|writer| writer.add_spending(&run, at(1), &change));
            }
            end(&town, &run, RunState::Done);
        }
        let outcome = (name == "gt-failed").then_some(Outcome::Failed);
        town.write(|writer| {
            let before = writer.bead(&BeadId::trusted(name.to_owned()))?.expect("it is there");
            let after =
                Bead { status: Status::Closed, closed_at: Some(at(5)), outcome, ..before.clone() };
            writer.save_bead(&before, &after, BeadChangeKind::Closed)
        });
    }
    let untold = |from, until| town.read(|reader| reader.done_without_usage(at(from), at(until)));
    assert_eq!([untold(0, 9), untold(5, 6), untold(0, 5), untold(6, 9)], [1, 1, 0, 0]);
}

pub(super) fn spending_is_summed_by_runs_beads_and_convoys(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let change = |input, cost, unpriced| SpendingChange {
        model: "opus".to_owned(),
        input,
        cost,
        unpriced,
        ..SpendingChange::default()
    };
    let first = begin(&town, "gt-a", |_| ());
    town.write(|writer| writer.add_spending(&first, at(1), &change(100, 5, 0)));
    town.write(|writer| writer.end_run(&first, &RunEnd::without_status(RunState::Lost, ""), ""));
    let [second, other] = ["gt-a", "gt-b"].map(|bead| begin(&town, bead, |_| ()));
    town.write(|writer| {
        writer.add_spending(&second, at(2), &change(30, 2, 0))?;
        writer.add_spending(&other, at(2), &change(7, 0, 7))
    });
    let convoy = town.add(Bead { issue_type: kind("convoy"), ..bead("hq-cv-x") });
    let ids = ["gt-a", "gt-b", "gt-c"].map(|id| BeadId::trusted(id.to_owned()));
    town.write(|writer| writer.track(&convoy.id, &ids));

    let spent = |tokens, cost, unpriced| Spent { tokens, cost: Money(cost), unpriced };
    let by_runs = |epochs| town.read(|reader| reader.spent_by_runs(&ids[0], epochs));
    assert_eq!(by_runs(0..=1), spent(100, 5, 0));
    assert_eq!(by_runs(2..=2), spent(30, 2, 0));
    assert_eq!(by_runs(3..=u32::MAX), Spent::default());
    let by_beads = town.read(|reader| reader.spent_by_beads(&ids));
    let expected =
        [(ids[0].clone(), spent(130, 7, 0)), (ids[1].clone(), spent(7, 0, 7))].into_iter();
    assert_eq!(by_beads, expected.collect());
    assert_eq!(town.read(|reader| reader.spent_by_members(&convoy.id)), spent(137, 7, 7));

    // Landed work tells the cost of its runs until then, and a convoy the cost of all its beads.
    let before = town.last_event();
    town.write(|writer| writer.confirm_landing(&second, "main", "f00"));
    town.write(|writer| {
        let old = writer.bead(&convoy.id)?.expect("it is there");
        let new = Bead { status: Status::Closed, closed_at: Some(at(5)), ..old.clone() };
        writer.land_convoy(&old, &new)
    });
    let events = town.events_since(before);
    let payload = |kind| {
        let found = events.iter().find(|event| event.kind == kind).expect("it is told");
        found.payload.to_string()
    };
    let landed = r#"{"branch":"main","commit":"f00","tokens":130,"cost":"0.000007"}"#;
    assert_eq!(payload(EventKind::Landed), landed);
    assert!(payload(EventKind::ConvoyLanded).ends_with(r#""tokens":137,"cost":"0.000007"}"#));
}

pub(super) fn what_sources_say_about_usage_is_kept_by_counter(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let run = begin(&town, "gt-a", |_| ());
    let record = |session, model: &str, source, input| UsageRecord {
        session,
        model: model.to_owned(),
        source,
        tokens: TokenCounts { input, output: 2, cache_read: 3, cache_write: 4, reasoning: 5 },
        reported: Some(Money(6)),
        priced: None,
    };
    let first = record(1, "opus", UsageSource::Output, 10);
    let second = UsageRecord {
        reported: None,
        priced: Some(Money(9)),
        ..record(1, "opus", UsageSource::Telemetry, 11)
    };
    let third = record(2, "", UsageSource::Output, 12);
    for record in [&third, &second, &first] {
        town.write(|writer| writer.keep_usage_record(&run.id, record));
    }
    let records = || town.read(|reader| reader.usage_records(&run.id));
    assert_eq!(records(), [first.clone(), second.clone(), third.clone()]);

    let grown = record(1, "opus", UsageSource::Output, 20);
    town.write(|writer| writer.keep_usage_record(&run.id, &grown));
    assert_eq!(records(), [grown, second, third]);
}

pub(super) fn starts_are_counted_unless_they_failed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let beads = ["gt-a", "gt-b", "gt-c", "gt-d", "gt-e"];
    town.add_open(&beads);
    let starting = begin(&town, "gt-a", |_| ());
    let taken = begin(&town, "gt-b", |_| ());
    let failed = begin(&town, "gt-c", |run| run.rig = slug("other"));
    begin(&town, "gt-d", |run| run.executor = ExecutorKind::None);
    let later = begin(&town, "gt-e", |_| ());
    town.write(|writer| {
        writer.claim_run(&taken, &taken.workplace)?;
        let end = RunEnd::without_status(RunState::Done, "");
        writer.end_run(&taken, &end, "")?;
        writer.fail_start(&failed, "no such program", "")?;
        writer.claim_run(&later, &later.workplace)?;
        for bead in ["gt-b", "gt-c"] {
            set_status(writer, bead, Status::Open)?;
        }
        set_status(writer, "gt-e", Status::InProgress)
    });
    let mut starts = town.read(|reader| reader.starts_since(at(0)));
    starts.sort();
    assert_eq!(starts.len(), 3);
    assert!(starts.iter().all(|(_, rig)| *rig == starting.rig));
    let last = starts.iter().map(|(at, _)| *at).max().expect("there are some");
    assert_eq!(town.read(|reader| reader.starts_since(last)), []);
}

pub(super) fn estimates_and_guards_read_back_as_they_were_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let estimate = |memory_mb, runs| MemoryEstimate { name: "codex".to_owned(), memory_mb, runs };
    assert_eq!(town.read(|reader| reader.estimates()), []);
    for estimate in [estimate(700, 1), estimate(650, 2)] {
        town.write(|writer| writer.put_estimate(&estimate));
    }
    assert_eq!(town.read(|reader| reader.estimates()), [estimate(650, 2)]);

    for (host, guard, is_shut) in [
        ("here", Guard::Load, true),
        ("here", Guard::Memory, true),
        ("here", Guard::Memory, true),
        ("there", Guard::Memory, true),
        ("here", Guard::Load, false),
        ("there", Guard::Disk, true),
    ] {
        town.write(|writer| writer.set_guard(host, guard, is_shut));
    }
    let shut = |host| town.read(|reader| reader.shut_guards(host));
    assert_eq!(
        (shut("here"), shut("there")),
        (vec![Guard::Memory], vec![Guard::Memory, Guard::Disk])
    );
    assert_eq!(shut("elsewhere"), []);
}

pub(super) fn the_last_words_of_a_service_about_a_window_are_kept(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let seen = |name: &str, used_percent, seen_at| SeenWindow {
        window: UsageWindow {
            name: name.to_owned(),
            used_percent,
            length: used_percent.map(|_| Duration::from_hours(5)),
            resets_at: Some(at(99)),
        },
        seen_at: at(seen_at),
    };
    let (work, lab) = (ParkSubject::account("work"), ParkSubject::account("lab"));
    for (means, seen) in [
        (&work, seen("primary", Some(40), 5)),
        (&work, seen("primary", Some(60), 7)),
        (&work, seen("primary", Some(50), 6)),
        (&work, seen("secondary", None, 5)),
        (&lab, seen("primary", Some(1), 5)),
    ] {
        town.write(|writer| writer.keep_usage_window(means, &seen));
    }
    let all = || town.read(|reader| reader.usage_windows());
    let of_work =
        [(work.clone(), seen("primary", Some(60), 7)), (work, seen("secondary", None, 5))];
    assert_eq!(all(), [&[(lab.clone(), seen("primary", Some(1), 5))][..], &of_work].concat());
    town.write(|writer| writer.forget_usage_windows(&lab));
    assert_eq!(all(), of_work);
}

fn account(handle: &str) -> Account {
    Account {
        handle: handle.to_owned(),
        config_dir: String::new(),
        environment: Vec::new(),
        max_runs: 0,
        is_default: false,
        created_at: at(1),
    }
}

pub(super) fn a_bead_stays_with_the_account_of_its_last_run(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    for handle in ["work", "lab"] {
        town.write(|writer| writer.put_account(&account(handle)));
    }
    let ended = |bead: &str, handle: &str| {
        let run: Run = begin(&town, bead, |run| handle.clone_into(&mut run.account));
        let end = RunEnd::without_status(RunState::Lost, "");
        town.write(|writer| writer.end_run(&run, &end, ""));
        town.set_status(bead, Status::Open);
    };
    ended("gt-a", "lab");
    ended("gt-a", "work");
    ended("gt-b", "gone");
    let scheduled = |new: NewContext| schedule(&town, new).account;

    // The last one counts; one that is gone does not, and neither do other beads.
    assert_eq!(scheduled(new("gt-a")).as_deref(), Some("work"));
    assert_eq!(scheduled(new("gt-b")), None);
    assert_eq!(scheduled(new("gt-c")), None);
    // Its lane is that of the account.
    let lanes = town.read(|reader| reader.count_lanes());
    let in_line = |handle: Option<&str>| -> u64 {
        let lanes = lanes.iter().filter(|(lane, _)| lane.account.as_deref() == handle);
        lanes.map(|(_, count)| count).sum()
    };
    assert_eq!((in_line(Some("work")), in_line(None)), (1, 2));
    // A context that names an account gets that one.
    town.add_open(&["gt-d"]);
    ended("gt-d", "work");
    let named = NewContext { account: Some("lab".to_owned()), ..new("gt-d") };
    assert_eq!(scheduled(named).as_deref(), Some("lab"));
    town.check();
}
