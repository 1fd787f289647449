//! Directories in which anything may stand.

use std::path::Path;

use gt_beads::interchange::{ImportContents, ImportOptions, SourceKind, import};
use proptest::prelude::*;

use crate::town::town;

/// The files of a Gas Town directory, of a dump and of `.beads` directories.
const FILES: [&str; 13] = [
    "mayor/rigs.json",
    "mayor/accounts.json",
    "mayor/town-settings.json",
    ".runtime/queue-state.json",
    ".beads/issues.jsonl",
    ".beads/config.yaml",
    ".beads/metadata.json",
    ".beads/redirect",
    ".beads/routes.jsonl",
    "issues.jsonl",
    "labels.json",
    "dependencies.jsonl",
    "config.json",
];

/// Text that is JSON now and then.
fn contents() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\n",
        "null",
        "0",
        "-1",
        "\"rigs\"",
        "\"id\"",
        "\"title\"",
        "\"a-1\"",
        "\"prefix\"",
        "\"path\"",
        "\"issue_id\"",
        "\"label\"",
        "\"..\"",
        "\u{0}",
        "ü",
        "../x",
        ".beads",
        "key: value",
    ]);
    prop_oneof![
        prop::collection::vec(words, 0..12).prop_map(|words| words.concat()),
        Just(r#"{"id":"a-1","title":"t","metadata":"{}"}"#.to_owned()),
        Just(
            r#"[{"issue_id":"a-1","label":"x"},{"issue_id":"a-2","depends_on_id":"a-1"}]"#
                .to_owned()
        ),
        Just(r#"{"rigs":{}, "paused":true, "accounts":{}}"#.to_owned()),
    ]
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any files are imported or refused, and a refused import leaves nothing behind.
    #[test]
    fn anything_is_imported_or_refused(
        files in prop::collection::vec((prop::sample::select(FILES.to_vec()), contents()), 0..8),
        skip_invalid in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        for (file, text) in &files {
            write(directory.path(), file, text);
        }
        let town = town();
        let options = ImportOptions { skip_invalid, ..ImportOptions::default() };
        for path in [directory.path().to_owned(), directory.path().join(".beads")] {
            let imported = SourceKind::of(&path)
                .and_then(|kind| ImportContents::open(&path, kind, options))
                .and_then(|arrival| import(&town, &arrival, options, |_| {}));
            if let Err(error) = imported {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
