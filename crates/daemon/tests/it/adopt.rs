//! Contexts of older queues become contexts here, which are shown as beads.

use std::sync::Arc;

use gt_beads::adopt::{Adoption, adopt};
use gt_beads::batch::{BatchLine, BatchStep, run as run_batch};
use gt_beads::beads::{BeadChanges, Close, NewBead, close, create, reopen, show, update};
use gt_beads::deletion::delete;
use gt_beads::interchange::{
    ImportContents, ImportOptions, ImportSummary, LineFile, export, import,
};
use gt_beads::{beads, dependencies, events, notes};
use gt_core::schedule::CloseReason;
use gt_daemon::health;
use gt_scheduling::Consequences;
use gt_town::rigs::{self, NewRig};
use gt_town::{
    Actor, BeadFilter, Environment, OperationError, StatusFilter, StoreOptions, Town, install,
    settings,
};
use tempfile::TempDir;

use crate::town::TestClock;

/// A town with the rig web (prefix wb).
fn town() -> (TempDir, Town) {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::default();
    let actor = Actor { name: "tester".to_owned(), owner: String::new() };
    let root = install(directory.path(), &environment, &actor, &TestClock::default()).unwrap().root;
    let clock = Arc::new(TestClock::default());
    let options = StoreOptions::default();
    let town =
        Town::open(&root, &root, &environment, actor, clock, options, Arc::new(Consequences))
            .unwrap();
    let web = NewRig {
        name: "web",
        repository: None,
        prefix: Some("wb"),
        branch: None,
        executor: gt_core::ExecutorKind::Process,
    };
    rigs::add(&town, &web).unwrap();
    (directory, town)
}

fn bring(town: &Town, lines: &[&str]) -> ImportSummary {
    let text = lines.join("\n");
    let source =
        LineFile::spool(text.as_bytes(), "test".to_owned(), &std::env::temp_dir()).unwrap();
    import(town, &ImportContents::lines(source), ImportOptions::default(), |_| {}).unwrap()
}

/// One of everything that older queues leave behind.
const LEFT: &[&str] = &[
    r#"{"id":"wb-late","title":"t","labels":["gt:queued","x"],"description":"Mine.\n---gt:queue:v1---\ntarget_rig: web\nformula: mol-review\nenqueued_at: 2026-01-02T00:00:00Z\ndispatch_failures: 1\nlast_failure: no room"}"#,
    r#"{"id":"wb-early","title":"t","labels":["gt:queued"],"description":"---gt:queue:v1---\ntarget_rig: web\nenqueued_at: 2026-01-01T00:00:00Z"}"#,
    r#"{"id":"wb-plain","title":"t","labels":["queued"],"created_at":"2026-01-03T00:00:00Z"}"#,
    r#"{"id":"wb-nowhere","title":"t","labels":["gt:queued"]}"#,
    r#"{"id":"wb-attic","title":"t","labels":["gt:queued"],"description":"---gt:queue:v1---\ntarget_rig: attic"}"#,
    r#"{"id":"wb-damaged","title":"t","labels":["gt:queued"],"description":"---gt:queue:v1---"}"#,
    r#"{"id":"wb-broken","title":"t","labels":["gt:dispatch-failed"],"description":"---gt:queue:v1---\ntarget_rig: web\ndispatch_failures: 3\nlast_failure: no tmux"}"#,
    r#"{"id":"wb-gone","title":"t","labels":["gt:queue-dispatched"]}"#,
    r#"{"id":"wb-over","title":"t","status":"closed","labels":["gt:queued"]}"#,
    r#"{"id":"wb-cleared","title":"t","description":"---gt:queue:v1---\ntarget_rig: web"}"#,
    r#"{"id":"wb-other","title":"t","labels":["x"],"description":"Mind the ---gt:queue:v1--- of old."}"#,
];

fn lines_of(adoption: &Adoption) -> Vec<String> {
    let adopted = adoption.adopted.iter().map(|one| format!("{} {}", one.bead, one.context));
    let aside =
        adoption.quarantined.iter().map(|one| format!("{} {}", one.bead, one.reason.as_str()));
    let cleaned = adoption.cleaned.iter().map(|one| format!("{} cleaned: {}", one.bead, one.why));
    adopted.chain(aside).chain(cleaned).collect()
}

fn labels_of(town: &Town, id: &str) -> Vec<String> {
    let (_, labels) = notes::labels(town, id).unwrap();
    let shown =
        |label: notes::Label| format!("{}{}", label.name, if label.derived { "*" } else { "" });
    labels.into_iter().map(shown).collect()
}

fn shown(town: &Town, id: &str) -> beads::BeadDetails {
    show(town, &[id.to_owned()]).unwrap().remove(0).unwrap()
}

fn listed(town: &Town, filter: &BeadFilter) -> Vec<String> {
    let mut ids = Vec::new();
    beads::for_each_page(town, filter, |rows| {
        ids.extend(rows.iter().map(|row| row.bead.id.to_string()));
        Ok::<_, OperationError>(())
    })
    .unwrap();
    ids
}

fn contexts() -> BeadFilter {
    BeadFilter {
        include_contexts: true,
        labels: vec!["gt:sling-context".to_owned()],
        status: StatusFilter::All,
        order: gt_town::BeadOrder::Id,
        ..BeadFilter::default()
    }
}

fn assert_healthy(town: &Town) {
    let checks = health::examine(town).unwrap();
    let bad =
        checks.iter().find(|c| c.name == "derived values" && c.grade != health::CheckGrade::Good);
    assert!(bad.is_none(), "{bad:?}");
}

#[test]
fn every_old_state_becomes_a_context_in_the_order_it_was_queued() {
    // Given a town into which beads of older queues were imported,
    let (_directory, town) = town();
    assert_eq!(bring(&town, LEFT).old_queue_state, 10);
    assert_eq!(labels_of(&town, "wb-early"), ["gt:queued"], "import stores what came");

    // when they are adopted,
    let adoption = adopt(&town, false).unwrap();

    // then what waited waits, what was over is over, and what is damaged says so.
    assert_eq!(
        lines_of(&adoption),
        [
            "wb-early hq-ctx-00001",
            "wb-late hq-ctx-00002",
            "wb-plain hq-ctx-00003",
            "wb-attic quarantined",
            "wb-broken circuit-broken",
            "wb-cleared cleared",
            "wb-damaged invalid-context",
            "wb-gone dispatched",
            "wb-nowhere quarantined",
            "wb-over stale-work-bead",
        ]
    );
    assert!(adoption.adopted.iter().all(|one| one.gated), "there is no cap");
    for (id, expected) in [
        ("wb-early", &["gt:queued*", "queued*"][..]),
        ("wb-late", &["gt:queued*", "queued*", "x"]),
        ("wb-attic", &["gt:dispatch-failed*"]),
        ("wb-damaged", &["gt:dispatch-failed*"]),
        ("wb-gone", &["gt:queue-dispatched*"]),
        ("wb-over", &[]),
        ("wb-cleared", &[]),
        ("wb-other", &["x"]),
    ] {
        assert_eq!(labels_of(&town, id), expected, "{id}");
    }
    assert_eq!(shown(&town, "wb-late").row.bead.description, "Mine.");
    assert!(shown(&town, "wb-other").row.bead.description.contains("---gt:queue:v1---"));
    assert_eq!(
        shown(&town, "hq-ctx-00002").row.bead.description,
        concat!(
            r#"{"version":1,"work_bead_id":"wb-late","target_rig":"web","formula":"mol-review","#,
            r#""enqueued_at":"2026-01-02T00:00:00Z","dispatch_failures":1,"last_failure":"no room"}"#
        )
    );
    // The events keep the original text.
    let of_bead = gt_town::EventFilter {
        bead: Some(gt_core::BeadId::trusted("wb-late".to_owned())),
        ..gt_town::EventFilter::default()
    };
    let told = events::latest(&town, &of_bead, 100).unwrap();
    assert!(told.iter().any(|event| event.payload.as_str().contains("formula: mol-review")));
    assert_healthy(&town);
    // A second time there is nothing to do.
    assert_eq!(adopt(&town, false).unwrap(), Adoption::default());
}

#[test]
fn a_rehearsal_says_the_same_and_changes_nothing() {
    let (_directory, town) = town();
    bring(&town, LEFT);
    let before = exported(&town);
    let would = adopt(&town, true).unwrap();
    assert_eq!(exported(&town), before);
    assert_eq!(adopt(&town, false).unwrap(), would);
}

#[test]
fn with_a_cap_nothing_is_gated() {
    let (_directory, town) = town();
    settings::set(&town, "scheduler.max_polecats", "3", gt_scheduling::runtimes::check_name)
        .unwrap();
    bring(&town, LEFT);
    assert!(adopt(&town, false).unwrap().adopted.iter().all(|one| !one.gated));
}

#[test]
fn contexts_that_were_beads_are_taken_over_and_closed() {
    let (_directory, town) = town();
    let context = |id: &str, description: &str, more: &str| {
        let description = gt_core::Json::string(description);
        format!(
            r#"{{"id":"{id}","title":"c","issue_type":"sling-context","ephemeral":true,"labels":["gt:sling-context"],"description":{description}{more}}}"#
        )
    };
    let json = |bead: &str, at: &str| {
        format!(
            r#"{{"version":1,"work_bead_id":"{bead}","target_rig":"web","enqueued_at":"{at}"}}"#
        )
    };
    let tracks = r#","dependencies":[{"depends_on_id":"wb-c","type":"tracks"}]"#;
    let lines = [
        r#"{"id":"wb-a","title":"a"}"#.to_owned(),
        r#"{"id":"wb-b","title":"b"}"#.to_owned(),
        r#"{"id":"wb-c","title":"c"}"#.to_owned(),
        context("hq-ctx-00001", &json("wb-b", "2026-01-02T00:00:00Z"), ""),
        context("hq-ctx-zz", &json("wb-a", "2026-01-01T00:00:00Z"), ""),
        context("hq-ctx-twice", &json("wb-a", "2026-01-03T00:00:00Z"), ""),
        context("hq-ctx-lost", &json("wb-missing", "2026-01-03T00:00:00Z"), ""),
        context("hq-ctx-bad", "{damaged", tracks),
        context("hq-ctx-worse", "{damaged", ""),
        context("hq-ctx-old", &json("wb-a", "2026-01-03T00:00:00Z"), r#","status":"closed""#),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(bring(&town, &lines).old_queue_state, 6);

    let adoption = adopt(&town, false).unwrap();

    assert_eq!(
        lines_of(&adoption),
        [
            "wb-a hq-ctx-00002",
            "wb-b hq-ctx-00003",
            "hq-ctx-lost stale-work-bead",
            "hq-ctx-worse invalid-context",
            "wb-c invalid-context",
            "wb-a cleaned: it is scheduled already",
        ]
    );
    let reason = |id: &str| shown(&town, id).row.bead.close_reason;
    assert_eq!(reason("hq-ctx-zz"), "adopted as hq-ctx-00002");
    assert_eq!(reason("hq-ctx-twice"), "cleared");
    assert_eq!(reason("hq-ctx-bad"), "invalid-context");
    assert!(shown(&town, "hq-ctx-worse").row.bead.notes.contains("not valid JSON"));
    assert_eq!(labels_of(&town, "wb-c"), ["gt:dispatch-failed*"]);
    assert_healthy(&town);
    assert_eq!(adopt(&town, false).unwrap(), Adoption::default());
}

#[test]
fn a_bead_scheduled_here_since_only_loses_its_marks() {
    let (_directory, town) = town();
    let queued =
        r#"{"id":"wb-a","title":"a","labels":["queued"],"updated_at":"2026-01-01T00:00:00Z"}"#;
    bring(&town, &[queued]);
    adopt(&town, false).unwrap();
    let again = queued.replace("2026", "2027");
    bring(&town, &[&again]);
    assert_eq!(labels_of(&town, "wb-a"), ["gt:queued*", "queued"]);

    let adoption = adopt(&town, false).unwrap();

    assert_eq!(lines_of(&adoption), ["wb-a cleaned: it is scheduled already"]);
    assert_eq!(labels_of(&town, "wb-a"), ["gt:queued*", "queued*"]);
    // An ending of the past does not hide one of today.
    close(&town, &["hq-ctx-00001".to_owned()], &Close::default()).unwrap().remove(0).unwrap();
    let failed = queued.replace("2026", "2028").replace("queued", "gt:dispatch-failed");
    bring(&town, &[&failed]);
    let adoption = adopt(&town, false).unwrap();
    assert_eq!(lines_of(&adoption), ["wb-a cleaned: it has been scheduled here since"]);
    assert_eq!(labels_of(&town, "wb-a"), [""; 0]);
}

fn exported(town: &Town) -> Vec<String> {
    let mut lines = Vec::new();
    export(town, |line| {
        lines.push(line.to_owned());
        Ok::<_, OperationError>(())
    })
    .unwrap();
    lines
}

/// A town in which wb-a is scheduled.
fn scheduled() -> (TempDir, Town) {
    let (directory, town) = town();
    bring(&town, &[r#"{"id":"wb-a","title":"a","labels":["queued"]}"#]);
    adopt(&town, false).unwrap();
    (directory, town)
}

#[test]
fn a_context_is_shown_as_a_bead_that_tracks_its_work() {
    let (_directory, town) = scheduled();
    for input in ["hq-ctx-00001", "ctx-00001", "ctx-0000"] {
        let shown = shown(&town, input);
        assert_eq!(shown.row.bead.title.as_str(), "sling context for wb-a");
        assert_eq!(shown.row.labels, ["gt:sling-context"]);
        let (edge, work) = &shown.dependencies[0];
        assert_eq!((edge.kind.as_str(), edge.target.as_str()), ("tracks", "wb-a"));
        assert_eq!(work.as_ref().unwrap().id.as_str(), "wb-a");
    }
    assert_eq!(listed(&town, &contexts()), ["hq-ctx-00001"]);
    let plain = BeadFilter::default();
    assert_eq!(listed(&town, &plain), ["wb-a"]);
    let (_, edges) =
        dependencies::neighbours(&town, "hq-ctx-00001", dependencies::EdgeDirection::Down, None)
            .unwrap();
    assert_eq!(edges.len(), 1);
    let filter = |query: &str| beads::query_filter(&town, query, false).unwrap();
    for query in ["type=sling-context", "label=gt:sling-context", "id=hq-ctx-00001"] {
        assert_eq!(listed(&town, &filter(query)), ["hq-ctx-00001"], "{query}");
    }
    assert_eq!(listed(&town, &filter("label=gt:queued")), ["wb-a"]);
    // Neither the context nor what follows from it leaves the town.
    let lines = exported(&town);
    assert_eq!(lines.len(), 1);
    assert!(!lines[0].contains("queued") && !lines[0].contains("ctx"), "{lines:?}");
}

#[test]
fn closing_a_context_clears_it() {
    let (_directory, town) = scheduled();
    let name = "ctx-00001".to_owned();

    let closed = close(&town, std::slice::from_ref(&name), &Close::default()).unwrap().remove(0);

    assert_eq!(closed.unwrap().bead.close_reason, CloseReason::Cleared.as_str());
    assert_eq!(labels_of(&town, "wb-a"), [""; 0]);
    assert!(listed(&town, &BeadFilter { status: StatusFilter::Current, ..contexts() }).is_empty());
    // Once more is nothing.
    close(&town, &[name], &Close::default()).unwrap().remove(0).unwrap();
    assert_healthy(&town);
}

#[test]
fn a_batch_clears_a_context_too() {
    let (_directory, town) = scheduled();
    // The other way round the close of the bead would take the context out of the queue itself.
    let words = vec!["hq-ctx-00001".to_owned(), "wb-a".to_owned(), "done".to_owned()];
    let step = BatchStep::Close { words, how: Close::default() };
    let line = BatchLine { number: 1, place: "batch:1".to_owned(), step };
    run_batch(&town, &[line], false).unwrap();
    assert_eq!(shown(&town, "hq-ctx-00001").row.bead.close_reason, "cleared");
    assert_eq!(shown(&town, "wb-a").row.bead.close_reason, "done");
}

#[test]
fn other_changes_to_a_context_are_refused_with_a_hint() {
    let (_directory, town) = scheduled();
    let name = || vec!["hq-ctx-00001".to_owned()];
    let blocks = gt_core::DependencyType::Blocks;
    let title = BeadChanges { title: Some("x".to_owned()), ..BeadChanges::default() };
    let part = NewBead {
        title: "t".to_owned(),
        parent: Some("hq-ctx-00001".to_owned()),
        ..NewBead::default()
    };
    let taken = NewBead {
        title: "t".to_owned(),
        id: Some("hq-ctx-00001".to_owned()),
        ..NewBead::default()
    };
    assert!(create(&town, &taken, false).is_err());
    let refused = [
        update(&town, &name(), &title).unwrap().remove(0).map(drop),
        reopen(&town, &name(), None).unwrap().remove(0).map(drop),
        delete(&town, &name(), false).map(drop),
        notes::label(&town, &name(), "red", true).map(drop),
        notes::comment(&town, "hq-ctx-00001", "hello", None).map(drop),
        dependencies::add(&town, "hq-ctx-00001", "wb-a", &blocks, false).map(drop),
        dependencies::add(&town, "wb-a", "hq-ctx-00001", &blocks, false).map(drop),
        create(&town, &part, false).map(drop),
    ];
    for answer in refused {
        let message = answer.unwrap_err().to_string();
        assert!(message.contains("sling context of wb-a"), "{message}");
        assert!(message.contains("gt scheduler clear --bead wb-a"), "{message}");
    }
    assert_eq!(shown(&town, "wb-a").row.labels, ["gt:queued", "queued"]);
}

#[test]
fn labels_of_the_queue_are_not_given_or_taken_by_hand() {
    let (_directory, town) = scheduled();
    bring(&town, &[r#"{"id":"wb-b","title":"b","labels":["gt:queued","y"]}"#]);
    let (a, b) = (["wb-a".to_owned()], ["wb-b".to_owned()]);
    let change =
        |id: &[String], changes: BeadChanges| update(&town, id, &changes).unwrap().remove(0);
    let set = |labels: &[&str]| BeadChanges {
        set_labels: Some(labels.iter().map(ToString::to_string).collect()),
        ..BeadChanges::default()
    };
    let one = || vec!["gt:queued".to_owned()];
    let made = NewBead { title: "t".to_owned(), labels: one(), ..NewBead::default() };
    let refused = [
        notes::label(&town, &b, "gt:dispatch-failed", true).map(drop),
        notes::label(&town, &a, "gt:queued", false).map(drop),
        notes::label(&town, &a, "gt:dispatch-failed", false).map(drop),
        change(&b, BeadChanges { add_labels: one(), ..BeadChanges::default() }).map(drop),
        change(&a, BeadChanges { remove_labels: one(), ..BeadChanges::default() }).map(drop),
        change(&b, set(&["gt:queue-dispatched"])).map(drop),
        create(&town, &made, false).map(drop),
    ];
    for answer in refused {
        let message = answer.unwrap_err().to_string();
        assert!(
            message.contains("gt queue <id>") && message.contains("gt scheduler clear"),
            "{message}"
        );
    }
    // One that came with an import is a label like any other; setting what is shown changes nothing.
    change(&b, set(&["gt:queued", "y", "z"])).unwrap();
    assert_eq!(labels_of(&town, "wb-b"), ["gt:queued", "y", "z"]);
    notes::label(&town, &b, "gt:queued", false).unwrap();
    assert_eq!(labels_of(&town, "wb-b"), ["y", "z"]);
    change(&a, set(&["gt:queued", "queued", "mine"])).unwrap();
    assert_eq!(labels_of(&town, "wb-a"), ["gt:queued*", "mine", "queued*"]);
    // Parts do not inherit where the whole stands.
    let part =
        NewBead { title: "t".to_owned(), parent: Some("wb-a".to_owned()), ..NewBead::default() };
    assert_eq!(create(&town, &part, false).unwrap().labels, ["mine"]);
}
