//! Runs, the scheduler's own row, and accounts.

use gt_core::schedule::{
    Account, CloseReason, DoneStatus, Run, RunEnd, RunId, RunState, RunStep, WorkerPlace, Workplace,
};
use gt_core::{BeadChangeKind, ExecutorKind, Outcome, Status, Uid};

use super::EngineUnderTest;
use super::contexts::{new, schedule};
use super::kit::{ACTOR, CheckedStore, at, id, json, slug};
use gt_store::{LiveSteps, Pause, StoreError, Writer};

/// A run of a bead that has just been admitted.
fn run(writer: &Writer<'_>, text: &str) -> Result<Run, StoreError> {
    let run = writer.next_run_id(&id(text))?;
    let uid = Uid::of_bead(&gt_core::BeadId::trusted(run.to_string()), at(1));
    Ok(Run {
        runtime: "claude".to_owned(),
        agent: "gear/polecats/toast".to_owned(),
        host: "here".to_owned(),
        starter: "locks/1".to_owned(),
        formula: "mol-polecat-work".to_owned(),
        steps: json(r#"[{"id":"a"}]"#),
        created_by: ACTOR.to_owned(),
        ..Run::begun(run, uid, 1, slug("gear"), ExecutorKind::Process, writer.now())
    })
}

pub(super) fn set_status(
    writer: &mut Writer<'_>,
    text: &str,
    status: Status,
) -> Result<(), StoreError> {
    let old = writer.bead(&id(text))?.expect("the bead is there");
    let new = gt_core::Bead { status, ..old.clone() };
    writer.save_bead(&old, &new, BeadChangeKind::StatusChanged).map(drop)
}

/// Begins a run, changed as the case needs it.
pub(super) fn begin(town: &CheckedStore, text: &str, change: impl Fn(&mut Run)) -> Run {
    town.write(|writer| insert(writer, text, change))
}

fn insert(
    writer: &mut Writer<'_>,
    text: &str,
    change: impl Fn(&mut Run),
) -> Result<Run, StoreError> {
    let mut run = run(writer, text)?;
    change(&mut run);
    writer.insert_run(&run)?;
    let status = match run.state {
        RunState::Running => Status::InProgress,
        _ => Status::Hooked,
    };
    set_status(writer, text, status)?;
    Ok(run)
}

pub(super) fn end(town: &CheckedStore, run: &Run, state: RunState) -> bool {
    town.write(|writer| {
        let ended = writer.end_run(run, &RunEnd::without_status(state, "over"), ACTOR)?;
        if ended {
            set_status(writer, run.id.bead.as_str(), Status::Open)?;
        }
        Ok(ended)
    })
}

pub(super) fn a_run_reads_back_exactly_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let run = begin(&town, "gt-a", |run| {
        run.place = WorkerPlace::polecat(&slug("gear"), "toast").ok();
        "work".clone_into(&mut run.account);
        run.gated = true;
    });

    assert_eq!(run.id, RunId { bead: id("gt-a"), epoch: 1 });
    assert_eq!(town.read(|reader| reader.run(&run.id)), Some(run.clone()));
    assert_eq!(town.read(|reader| reader.live_run(&id("gt-a"))), Some(run.clone()));
    assert_eq!(town.read(|reader| reader.recent_runs(1)), std::slice::from_ref(&run));
    // A list of all live runs leaves out their steps.
    let without_steps = Run { steps: json("{}"), ..run };
    assert_eq!(town.read(|reader| reader.live_runs()), [without_steps]);
}

pub(super) fn a_bead_has_one_live_run(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    for (epoch, state) in [RunState::Done, RunState::Failed, RunState::Lost, RunState::Cancelled]
        .into_iter()
        .enumerate()
    {
        let first = begin(&town, "gt-a", |_| {});
        assert_eq!(first.id.epoch as usize, epoch + 1);
        town.refuse(|writer| insert(writer, "gt-a", |_| {}));
        assert!(end(&town, &first, state));
        assert_eq!(town.read(|reader| reader.live_run(&id("gt-a"))), None);
    }
    let runs = town.read(|reader| reader.runs_of(&id("gt-a")));
    let epochs: Vec<u32> = runs.iter().map(|run| run.id.epoch).collect();
    assert_eq!(epochs, [4, 3, 2, 1]);
    town.refuse(|writer| insert(writer, "gt-absent", |_| {}));
}

pub(super) fn a_named_place_has_one_live_run_unless_it_is_a_persons(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    let toast = WorkerPlace::polecat(&slug("gear"), "toast").expect("a valid name");
    let at_place = |run: &mut Run| run.place = Some(toast.clone());
    let first = begin(&town, "gt-a", at_place);
    town.refuse(|writer| insert(writer, "gt-b", at_place));
    assert!(end(&town, &first, RunState::Done));
    begin(&town, "gt-b", at_place);
    // A person may have several.
    let crew = WorkerPlace::crew(&slug("gear"), "ann").ok();
    for text in ["gt-c", "gt-d"] {
        begin(&town, text, |run| {
            run.place.clone_from(&crew);
            run.executor = ExecutorKind::None;
        });
    }
}

pub(super) fn an_agent_that_asks_for_work_has_one_run_in_progress(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let pulls = |run: &mut Run| run.executor = ExecutorKind::Pull;
    let first = begin(&town, "gt-a", pulls);
    let second = begin(&town, "gt-b", pulls);
    let claim = |writer: &mut Writer<'_>, run: &Run| {
        let claimed = writer.claim_run(run, &Workplace::default())?;
        set_status(writer, run.id.bead.as_str(), Status::InProgress)?;
        Ok(claimed)
    };
    assert!(town.write(|writer| claim(writer, &first)));
    town.refuse(|writer| claim(writer, &second));
}

pub(super) fn a_run_is_taken_once_and_ends_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let context = schedule(&town, new("gt-a"));
    town.write(|writer| writer.set_starting(&context, true));
    let run = begin(&town, "gt-a", |_| {});
    let claim = |town: &CheckedStore| {
        town.write(|writer| {
            let claimed = writer.claim_run(&run, &Workplace::default())?;
            if claimed {
                writer.close_context(&context, CloseReason::Dispatched, "")?;
                set_status(writer, "gt-a", Status::InProgress)?;
            }
            Ok(claimed)
        })
    };
    let story = town.story_of(|town| {
        assert!(claim(town));
        assert!(!claim(town));
        let whole = RunEnd {
            exit_code: Some(3),
            exit_signal: Some(9),
            ..RunEnd::without_status(RunState::Failed, "it fell over")
        };
        let end = |writer: &mut Writer<'_>| {
            let ended = writer.end_run(&run, &whole, "ann")?;
            set_status(writer, "gt-a", Status::Open)?;
            Ok(ended)
        };
        assert!(town.write(end));
        assert!(!town.write(end));
        assert!(!claim(town), "a run that is over cannot be claimed");
    });
    assert_eq!(
        story,
        ["dispatched gt-a", "status_changed gt-a", "run_failed gt-a", "status_changed gt-a"]
    );
    let ended = town.read(|reader| reader.run(&run.id)).expect("the run is there");
    assert_eq!(ended.state, RunState::Failed);
    assert_eq!((ended.exit_code, ended.exit_signal), (Some(3), Some(9)));
    assert_eq!((ended.reason.as_str(), ended.ended_by.as_str()), ("it fell over", "ann"));
    assert!(ended.running_at.is_some() && ended.ended_at > ended.running_at);
}

pub(super) fn a_step_of_a_run_is_done_once_and_told(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let first = begin(&town, "gt-a", |_| {});
    let step = |id: &str| RunStep {
        id: id.to_owned(),
        name: String::new(),
        title: "Boil water".to_owned(),
        description: String::new(),
        acceptance: String::new(),
        needs: Vec::new(),
    };
    let done = |run: &Run| {
        let done = town.read(|reader| reader.steps_done(&run.id));
        done.into_iter().map(|done| (done.step, done.by)).collect::<Vec<_>>()
    };

    let story = town.story_of(|town| {
        assert!(town.write(|writer| writer.finish_step(&first, &step("m.b"))));
        assert!(!town.write(|writer| writer.finish_step(&first, &step("m.b"))));
        assert!(town.write(|writer| writer.finish_step(&first, &step("m.a"))));
    });

    assert_eq!(story, ["step_done gt-a", "step_done gt-a"]);
    let by = |step: &str| (step.to_owned(), ACTOR.to_owned());
    assert_eq!(done(&first), [by("m.b"), by("m.a")]);
    let live = |town: &CheckedStore| town.read(|reader| reader.steps_of_live_runs());
    let expected = LiveSteps { run: first.id.clone(), steps: first.steps.clone(), done: 2 };
    assert_eq!(live(&town), [expected]);
    // Another attempt begins anew, and a run that is not there has no steps.
    end(&town, &first, RunState::Lost);
    let second = begin(&town, "gt-a", |_| {});
    assert_eq!(done(&second), []);
    let expected = LiveSteps { run: second.id.clone(), steps: second.steps.clone(), done: 0 };
    assert_eq!(live(&town), [expected]);
    let absent = Run { id: RunId { epoch: 9, ..first.id.clone() }, ..first };
    town.refuse(|writer| writer.finish_step(&absent, &step("m.a")));
}

pub(super) fn the_runs_of_a_deleted_bead_go_with_it(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let run = begin(&town, "gt-a", |_| {});
    end(&town, &run, RunState::Done);
    town.delete("gt-a");
    assert_eq!(town.read(|reader| reader.run(&run.id)), None);
    assert_eq!(town.read(|reader| reader.recent_runs(10)), []);
}

pub(super) fn a_status_that_contradicts_a_live_run_is_noticed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    begin(&town, "gt-a", |_| {});
    let store = &town.store;
    let by = super::kit::by(20_000);
    let set = |status| store.write(&by, |writer| set_status(writer, "gt-a", status));
    set(Status::Open).expect("the write succeeds");
    assert_eq!(
        town.read(|reader| reader.differences()),
        ["gt-a: status while its run gt-a#1 is starting is open, should be hooked"]
    );
    set(Status::Hooked).expect("the write succeeds");
    town.check();
}

pub(super) fn a_town_rests_while_nothing_is_scheduled_live_or_left(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let is_at_rest = || town.read(|reader| reader.is_at_rest());
    town.add_open(&["gt-a"]);
    assert!(is_at_rest(), "a bead that is not scheduled needs no daemon");

    let run = begin(&town, "gt-a", |_| {});
    assert!(!is_at_rest());
    assert!(end(&town, &run, RunState::Done));
    assert!(is_at_rest());

    town.write(|writer| writer.leave_run(&run, "0123"));
    assert!(!is_at_rest());
}

pub(super) fn a_pause_names_actor_and_time_and_is_recorded_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let state = || town.read(|reader| reader.scheduler_state());
    assert_eq!(state().paused, None);
    let pause = Pause { by: "ann".to_owned(), at: at(5) };

    let story = town.story_of(|town| {
        town.write(|writer| writer.set_paused(Some(&pause)));
        assert_eq!(state().paused, Some(pause.clone()));
        town.write(|writer| writer.set_paused(None));
    });

    assert_eq!(story, ["paused", "resumed"]);
    assert_eq!(state().paused, None);
    town.write(|writer| writer.note_dispatch(3));
    assert_eq!(state().last_dispatch.map(|(_, count)| count), Some(3));
}

pub(super) fn accounts_are_kept_with_at_most_one_default(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let account = |handle: &str| Account {
        handle: handle.to_owned(),
        config_dir: format!("accounts/{handle}"),
        environment: vec![("KEY".to_owned(), "va=lue".to_owned())],
        max_runs: 2,
        is_default: false,
        created_at: at(5),
    };
    let (play, work) = (account("play"), account("work"));
    town.write(|writer| writer.put_account(&work));
    town.write(|writer| writer.put_account(&play));
    assert_eq!(town.read(|reader| reader.accounts()), [play.clone(), work.clone()]);

    for handle in ["work", "play"] {
        town.write(|writer| writer.set_default_account(Some(handle)));
        let accounts = town.read(|reader| reader.accounts());
        let defaults: Vec<&str> =
            accounts.iter().filter(|a| a.is_default).map(|a| a.handle.as_str()).collect();
        assert_eq!(defaults, [handle]);
    }
    town.write(|writer| writer.set_default_account(None));
    town.write(|writer| writer.delete_account("play"));
    assert_eq!(town.read(|reader| reader.accounts()), [work]);
}

pub(super) fn a_bead_that_failed_in_a_run_of_ours_is_listed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-ours", "gt-pulled", "gt-closed", "gt-good"]);
    for (text, executor) in [
        ("gt-ours", ExecutorKind::Process),
        ("gt-pulled", ExecutorKind::Pull),
        ("gt-good", ExecutorKind::Tmux),
    ] {
        let run = begin(&town, text, |run| run.executor = executor);
        assert!(end(&town, &run, RunState::Failed));
    }
    for text in ["gt-ours", "gt-pulled", "gt-closed"] {
        town.close_as(text, Some(Outcome::Failed));
    }
    town.close_as("gt-good", None);
    assert_eq!(town.read(|reader| reader.failed_beads(9)), [id("gt-ours")]);
    assert!(town.read(|reader| reader.failed_beads(0)).is_empty());
}

pub(super) fn a_run_that_was_handed_back_is_listed_until_its_bead_is_scheduled_again(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let beads = ["gt-asks", "gt-later", "gt-done", "gt-cancelled", "gt-closed", "gt-nothing"];
    town.add_open(&beads);
    let hand_back = |text: &str, said: Option<DoneStatus>, state: RunState| {
        let context = schedule(&town, new(text));
        let run = begin(&town, text, |run| {
            run.context = context.number;
            run.state = RunState::Running;
        });
        town.write(|writer| {
            writer.close_context(&context, CloseReason::Dispatched, "")?;
            match said {
                Some(said) => writer.accept_work(&run, said, "").map(drop),
                None => Ok(()),
            }
        });
        assert!(end(&town, &run, state));
    };
    hand_back("gt-asks", Some(DoneStatus::Escalated), RunState::Cancelled);
    hand_back("gt-later", Some(DoneStatus::Deferred), RunState::Cancelled);
    hand_back("gt-done", None, RunState::Done);
    hand_back("gt-cancelled", None, RunState::Cancelled);
    hand_back("gt-closed", Some(DoneStatus::Escalated), RunState::Cancelled);
    town.close_as("gt-closed", None);
    hand_back("gt-nothing", None, RunState::Failed);
    let listed = |limit| {
        let runs = town.read(|reader| reader.runs_handed_back(limit));
        runs.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(listed(9), ["gt-asks#1", "gt-done#1", "gt-later#1"]);
    assert_eq!(listed(1), ["gt-asks#1"]);
    town.write(|writer| {
        let Some(open) = writer.bead(&id("gt-nothing"))? else { return Ok(()) };
        let mut blocked = open.clone();
        blocked.enter(Status::Blocked, writer.now());
        writer.save_bead(&open, &blocked, BeadChangeKind::StatusChanged).map(drop)
    });
    assert_eq!(listed(9), ["gt-asks#1", "gt-done#1", "gt-later#1", "gt-nothing#1"]);
    town.close_as("gt-nothing", None);

    schedule(&town, new("gt-asks"));
    assert_eq!(listed(9), ["gt-done#1", "gt-later#1"]);
}
