//! Importing files over one another.

use gt_beads::interchange::{
    ImportContents, ImportOptions, ImportSummary, LineFile, export, import,
};
use gt_daemon::health;
use gt_town::{OperationError, Town};
use proptest::prelude::*;

use crate::town::town;

/// A bead of a file: which, how old, how it stands, what it depends on.
#[derive(Debug, Clone)]
struct Entry {
    id: usize,
    updated: u32,
    status: &'static str,
    outcome: Option<&'static str>,
    edges: Vec<(usize, &'static str, bool)>,
    labels: Vec<usize>,
}

impl Entry {
    fn line(&self) -> String {
        let Self { id, updated, status, outcome, edges, labels } = self;
        let closed = *status == "closed";
        let outcome = outcome.filter(|_| closed);
        let edges: Vec<String> = edges
            .iter()
            .filter(|(target, ..)| target != id)
            .map(|(target, kind, any)| {
                let gate = if *any { r#","metadata":"{\"gate\":\"any-children\"}""# } else { "" };
                format!(r#"{{"depends_on_id":"gt-{target}","type":"{kind}"{gate}}}"#)
            })
            .collect();
        let labels: Vec<String> = labels.iter().map(|label| format!("\"l{label}\"")).collect();
        format!(
            r#"{{"id":"gt-{id}","title":"Bead {id}","status":"{status}"{}{},"priority":2,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:{updated:02}Z","labels":[{}],"dependencies":[{}]}}"#,
            outcome.map(|o| format!(r#","outcome":"{o}""#)).unwrap_or_default(),
            if closed { r#","closed_at":"2026-01-02T00:00:00Z""# } else { "" },
            labels.join(","),
            edges.join(",")
        )
    }
}

fn entry() -> impl Strategy<Value = Entry> {
    let kind = prop::sample::select(vec![
        "blocks",
        "blocks",
        "waits-for",
        "conditional-blocks",
        "parent-child",
        "related",
    ]);
    let status = prop::sample::select(vec!["open", "closed", "closed", "pinned", "in_progress"]);
    let outcome = prop::option::of(prop::sample::select(vec!["success", "failed"]));
    let edges = prop::collection::vec((0_usize..7, kind, any::<bool>()), 0..4);
    let labels = prop::collection::vec(0_usize..3, 0..3);
    (0_usize..6, 0_u32..4, status, outcome, edges, labels).prop_map(
        |(id, updated, status, outcome, edges, labels)| Entry {
            id,
            updated,
            status,
            outcome,
            edges,
            labels,
        },
    )
}

fn import_text(town: &Town, text: &str, dry_run: bool) -> ImportSummary {
    let directory = std::env::temp_dir();
    let source = LineFile::spool(text.as_bytes(), "test".to_owned(), &directory).unwrap();
    let options = ImportOptions { dry_run, ..ImportOptions::default() };
    import(town, &ImportContents::lines(source), options, |_| {}).unwrap()
}

fn exported(town: &Town) -> Vec<String> {
    let mut lines = Vec::new();
    let pushed = export(town, |line| {
        lines.push(line.to_owned());
        Ok::<_, OperationError>(())
    });
    pushed.unwrap();
    lines
}

fn problems(town: &Town) -> Vec<String> {
    let checks = health::examine(town).unwrap();
    let bad = checks
        .into_iter()
        .filter(|check| check.name == "derived values" && check.grade != health::CheckGrade::Good);
    // An import may bring beads that wait for each other through their parents; gt doctor names those.
    let circles = gt_beads::store::circles(town).unwrap();
    bad.map(|check| check.detail)
        .chain(circles.iter().map(|circle| format!("{circle:?}")))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// For any files, in any order, twice or again: derived facts are true, there is no circle, a rehearsal changes
    /// nothing, and the same file once more changes nothing.
    #[test]
    fn files_over_one_another_leave_a_consistent_town(
        files in prop::collection::vec(prop::collection::vec(entry(), 0..8), 1..4)
    ) {
        let town = town();
        for file in &files {
            let text: String = file.iter().map(|entry| entry.line() + "\n").collect();
            let before = exported(&town);
            import_text(&town, &text, true);
            prop_assert_eq!(&exported(&town), &before);

            import_text(&town, &text, false);
            prop_assert_eq!(problems(&town), Vec::<String>::new());

            let once = exported(&town);
            let again = import_text(&town, &text, false);
            prop_assert_eq!((again.created, again.updated), (0, 0));
            prop_assert_eq!(&exported(&town), &once);
        }
    }

    /// An export comes in again as it was, into a town that knows nothing of it.
    #[test]
    fn an_export_is_the_whole_truth(file in prop::collection::vec(entry(), 0..8)) {
        let (first, second) = (town(), town());
        let text: String = file.iter().map(|entry| entry.line() + "\n").collect();
        import_text(&first, &text, false);
        let out = exported(&first);

        let summary = import_text(&second, &out.join("\n"), false);

        prop_assert_eq!(summary.created, out.len() as u64);
        prop_assert_eq!(&exported(&second), &out);
        let again = import_text(&second, &out.join("\n"), false);
        prop_assert_eq!(again.unchanged, out.len() as u64);
    }
}
