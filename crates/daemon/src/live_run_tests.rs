//! Tests of operations that must leave a live run alone; only the crate itself can begin one without a worker.

use std::sync::Arc;

use gt_core::schedule::{ContextOrigin, Run};
use gt_core::{BeadChangeKind, BeadId, ExecutorKind, RigSlug, Status, Uid};
use gt_store::NewContext;

use gt_beads::adopt::adopt;
use gt_beads::beads::{Close, NewBead, close, create, show};
use gt_beads::interchange::{ImportContents, ImportOptions, ImportSummary, LineFile, import};
use gt_scheduling::Consequences;
use gt_town::{Actor, SystemClock, Town};

/// A town in which a run of hq-a is being started.
fn town() -> Town {
    let actor = Actor { name: "tester".to_owned(), owner: String::new() };
    let town = Town::in_memory(actor, Arc::new(SystemClock), Arc::new(Consequences))
        .expect("a town in memory");
    let new = NewBead { title: "a".to_owned(), id: Some("hq-a".to_owned()), ..NewBead::default() };
    let bead = create(&town, &new, false).expect("the bead is made").bead;
    let started = town.write(|writer| {
        let rig = RigSlug::trusted("web".to_owned());
        let context =
            NewContext::plain(bead.id.clone(), rig.clone(), bead.priority, ContextOrigin::Sling);
        for context in writer.insert_contexts(vec![context])? {
            writer.set_starting(&context, true)?;
        }
        writer.insert_run(&Run {
            agent: "web/polecats/toast".to_owned(),
            ..Run::begun(
                writer.next_run_id(&bead.id)?,
                Uid::fresh(),
                1,
                rig,
                ExecutorKind::Process,
                writer.now(),
            )
        })?;
        let hooked = gt_core::Bead {
            status: Status::Hooked,
            assignee: "web/polecats/toast".to_owned(),
            ..bead.clone()
        };
        Ok(writer.save_bead(&bead, &hooked, BeadChangeKind::StatusChanged)?)
    });
    assert!(started.expect("the run is begun"));
    town
}

fn bring(town: &Town, line: &str) -> ImportSummary {
    let name = "test".to_owned();
    let source = LineFile::spool(line.as_bytes(), name, &std::env::temp_dir()).expect("a source");
    let options = ImportOptions::default();
    import(town, &ImportContents::lines(source), options, |_| {}).expect("the import succeeds")
}

#[test]
fn an_import_leaves_the_status_of_a_bead_to_its_run() {
    let town = town();

    let summary = bring(
        &town,
        r#"{"id":"hq-a","title":"new title","status":"closed","assignee":"ann","updated_at":"2199-01-01T00:00:00Z"}"#,
    );

    assert_eq!((summary.updated, summary.kept_running), (1, 1));
    assert_eq!(
        summary.kept_running_details,
        ["hq-a stays hooked, although it comes as closed: hq-a#1 works on it"]
    );
    let bead = town.read(|reader| Ok(reader.bead(&BeadId::trusted("hq-a".to_owned()))?));
    let bead = bead.expect("the read succeeds").expect("the bead is there");
    assert_eq!((bead.title.as_str(), bead.status), ("new title", Status::Hooked));
    assert_eq!(bead.assignee, "web/polecats/toast");
    assert_eq!(bead.closed_at, None);
    let differences = town.read(|reader| Ok(reader.differences()?));
    assert_eq!(differences.expect("the read succeeds"), [""; 0]);
}

#[test]
fn a_status_that_agrees_with_the_run_is_not_reported() {
    let town = town();
    let summary = bring(
        &town,
        r#"{"id":"hq-a","title":"a","status":"hooked","assignee":"web/polecats/toast","updated_at":"2199-01-01T00:00:00Z"}"#,
    );
    assert_eq!(summary.kept_running, 0);
}

#[test]
fn a_context_that_is_being_started_is_not_cleared() {
    let town = town();
    let closed = close(&town, &["hq-ctx-00001".to_owned()], &Close::default());
    let refused = closed.expect("the name is known").remove(0).expect_err("it is refused");
    assert!(refused.to_string().contains("gt run cancel hq-a#1"), "{refused}");
    let shown = show(&town, &["hq-ctx-00001".to_owned()]).expect("the read succeeds").remove(0);
    assert_eq!(shown.expect("it is shown").row.bead.status, Status::Open);
}

#[test]
fn marks_of_an_older_queue_go_and_the_run_stays() {
    let town = town();
    let run = |town: &Town| {
        town.read(|reader| Ok(reader.live_runs()?)).expect("the read succeeds").remove(0)
    };
    let before = run(&town);
    bring(
        &town,
        r#"{"id":"hq-a","title":"a","status":"hooked","labels":["gt:queued"],"updated_at":"2199-01-01T00:00:00Z"}"#,
    );

    let adoption = adopt(&town, false).expect("the adoption succeeds");

    assert_eq!(adoption.cleaned.len(), 1, "{adoption:?}");
    assert_eq!(run(&town), before);
}
