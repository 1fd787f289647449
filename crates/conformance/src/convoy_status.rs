//! A question about many beads at once has the same answers as one question for each bead.

use std::time::Duration;

use gt_core::decide::WaitClass;
use gt_core::schedule::{CloseReason, Run, RunState, Workplace};
use gt_core::{
    Bead, BeadChangeKind, BeadId, DependencyType, EventKind, ExecutorKind, Outcome, Status,
};

use super::EngineUnderTest;
use super::contexts::{new, schedule};
use super::kit::{CheckedStore, at, bead, id, json, kind, slug};
use super::runs::{begin, end, set_status};
use gt_store::{BlockerFacts, NewContext};

/// More than are asked for in one statement.
const BEADS: usize = 300;

fn names() -> Vec<BeadId> {
    (0..BEADS).map(|number| id(&format!("gt-{number}"))).collect()
}

pub(super) fn answers_about_many_beads_equal_the_answers_about_each(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let ids = names();
    town.write(|writer| {
        for id in &ids {
            writer.insert_bead(&bead(id.as_str()), EventKind::Created)?;
        }
        writer.insert_contexts(ids.iter().map(|id| new(id.as_str())).collect()).map(drop)
    });
    let staged = Status::parse("staged_ready").expect("that is a status");
    for (convoy, status) in [("hq-cv-b", &staged), ("hq-cv-a", &staged), ("hq-cv-0", &Status::Open)]
    {
        town.add(Bead { issue_type: kind("convoy"), status: status.clone(), ..bead(convoy) });
        let tracked = if *status == staged { &ids[298..] } else { &ids[298..299] };
        town.write(|writer| writer.track(&id(convoy), tracked));
    }
    for (blocked, blocker) in [("gt-1", "gt-0"), ("gt-1", "gt-2"), ("gt-299", "gt-0")] {
        town.link(blocked, DependencyType::Blocks, blocker);
    }
    town.close_as("gt-0", Some(Outcome::Failed));
    town.change("gt-5", BeadChangeKind::Updated, |bead| bead.defer_until = Some(at(99_999)));
    let first = town.read(|reader| reader.latest_context(&ids[7])).expect("it has a context");
    town.write(|writer| writer.close_context(&first, CloseReason::Cleared, ""));
    let run = begin(&town, "gt-299", |_| {});
    end(&town, &run, RunState::Lost);
    begin(&town, "gt-299", |_| {});

    town.read(|reader| {
        let contexts = reader.latest_contexts_of(&ids)?;
        let runs = reader.last_runs_of(&ids)?;
        let blockers = reader.blockers_of(&ids)?;
        for id in &ids {
            assert_eq!(contexts.get(id).cloned(), reader.latest_context(id)?, "{id}");
            let last = reader.runs_of(id)?.into_iter().next();
            let last = last.map(|run| Run { steps: json("{}"), ..run });
            assert_eq!(runs.get(id).cloned(), last, "{id}");
            let facts = blockers.get(id).cloned().unwrap_or_default();
            assert_eq!(facts, reader.blockers(id)?, "{id}");
        }
        let failed = BlockerFacts { open: vec![ids[2].clone()], failed: vec![ids[0].clone()] };
        assert_eq!((blockers.len(), blockers.get(&ids[1])), (2, Some(&failed)));
        assert_eq!(runs.len(), 1);
        let dates = reader.defer_dates_of(&ids)?;
        assert_eq!((dates.len(), dates.get(&ids[5])), (1, Some(&at(99_999))));
        // A bead that an open convoy tracks as well does not wait for the staged ones.
        let staged = reader.staged_convoys_of(&ids)?;
        assert_eq!((staged.len(), staged.get(&ids[299])), (1, Some(&id("hq-cv-a"))));
        // Closed, blocked, put off, cleared and at work are not in line.
        let in_line: Vec<BeadId> =
            reader.contexts_in_line(BEADS)?.into_iter().map(|context| context.bead).collect();
        assert_eq!(reader.contexts_in_line(2)?.len(), 2);
        let not_in_line = [0, 1, 5, 7, 299];
        let expected = (0..BEADS).filter(|at| !not_in_line.contains(at)).map(|at| ids[at].clone());
        assert_eq!(in_line, expected.collect::<Vec<_>>());
        Ok(())
    });
}

pub(super) fn the_open_members_of_a_convoy_are_read_at_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-x"]);
    town.add(Bead { issue_type: kind("convoy"), ..bead("hq-cv-1") });
    let ids = ["gt-a", "gt-b", "gt-c", "gt-d"].map(id);
    town.write(|writer| writer.track(&id("hq-cv-1"), &ids));
    for (blocked, blocker) in [("gt-b", "gt-a"), ("gt-c", "gt-x"), ("gt-c", "gt-d")] {
        town.link(blocked, DependencyType::Blocks, blocker);
    }
    schedule(&town, new("gt-b"));
    schedule(&town, NewContext { next_attempt_at: Some(at(99_999)), ..new("gt-c") });
    let run = begin(&town, "gt-a", |_| {});
    town.close("gt-d");

    let (found, waits) = town.read(|reader| {
        let convoy = id("hq-cv-1");
        Ok((reader.open_members(&convoy)?, reader.waits_of_open_members(&convoy)?))
    });

    assert_eq!(waits, [(id("gt-b"), id("gt-a")), (id("gt-c"), id("gt-x"))]);
    let beads: Vec<&str> = found.iter().map(|one| one.bead.as_str()).collect();
    assert_eq!(beads, ["gt-a", "gt-b", "gt-c"], "closed members are left out");
    let [first, second, third] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((&first.context, first.is_blocked), (&None, false));
    assert_eq!(first.run, Some((RunState::Starting, run.created_at)));
    let ticket = second.context.as_ref().expect("it is scheduled");
    assert_eq!((second.is_blocked, ticket.is_starting), (true, false));
    assert_eq!((ticket.lane.rig.as_str(), ticket.due_at), ("gear", None));
    assert_eq!(ticket.waits, WaitClass::Blockers);
    let ticket = third.context.as_ref().expect("it is scheduled");
    assert_eq!((ticket.number, ticket.due_at), (2, Some(at(99_999))));
}

pub(super) fn the_durations_of_good_runs_are_read_newest_first(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let one = |rig: &str, executor: ExecutorKind, seconds: usize, state: RunState| {
        let run = begin(&town, "gt-a", |run| (run.rig, run.executor) = (slug(rig), executor));
        town.write(|writer| {
            assert!(writer.claim_run(&run, &Workplace::default())?);
            set_status(writer, "gt-a", Status::InProgress)
        });
        // Each write is a second later than the one before.
        (1..seconds).for_each(|_| town.write(|_| Ok(())));
        assert!(end(&town, &run, state));
    };
    let process = ExecutorKind::Process;
    one("gear", process, 1, RunState::Done);
    one("gear", process, 5, RunState::Done);
    one("gear", process, 9, RunState::Failed);
    one("gear", ExecutorKind::None, 9, RunState::Done);
    one("bolt", process, 3, RunState::Done);
    one("gear", process, 2, RunState::Done);
    begin(&town, "gt-a", |_| {});

    let past = |limit| town.read(|reader| reader.past_durations(limit));

    let lasted = |rig: &str, seconds| (slug(rig), Duration::from_secs(seconds));
    let all = [lasted("gear", 2), lasted("bolt", 3), lasted("gear", 5), lasted("gear", 1)];
    assert_eq!(past(200), all);
    assert_eq!(past(2), all[..3], "of each rig");
    assert_eq!(past(0), []);
}

pub(super) fn member_rows_come_in_the_order_that_was_asked_for(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-top"]);
    town.link("gt-a", DependencyType::ParentChild, "gt-top");
    town.close("gt-b");
    let wanted = ["gt-top", "gt-b", "gt-absent", "gt-a"].map(id);
    let member_rows = town.read(|reader| reader.member_rows(&wanted));
    let told: Vec<_> = member_rows
        .iter()
        .map(|one| (one.id.to_string(), one.status.to_string(), one.parent.clone()))
        .collect();
    let expected =
        [("gt-top", "open", None), ("gt-b", "closed", None), ("gt-a", "open", Some("gt-top"))];
    assert_eq!(
        told,
        expected
            .map(|(bead, status, parent)| { (bead.to_owned(), status.to_owned(), parent.map(id)) })
    );
    assert_eq!(member_rows[0].title.as_str(), "Title of gt-top");
}
