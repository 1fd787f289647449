//! The harness itself: it finds the failures that exist, and it ends.

use std::cell::RefCell;

use gt_fuzzing::{FuzzTarget, INPUT_BYTES_MAX, hunt};

thread_local! {
    static SEEN: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

static PLANTED: FuzzTarget = FuzzTarget {
    name: "planted",
    run: |input| {
        let text = String::from_utf8_lossy(input);
        assert!(!text.contains("b{"), "planted");
    },
    words: &["{"],
    cost: 1,
};

static WATCHED: FuzzTarget = FuzzTarget {
    name: "watched",
    run: |input| SEEN.with_borrow_mut(|seen| seen.push(input.to_vec())),
    words: &["0123456789"],
    cost: 1,
};

fn start() -> Vec<(String, Vec<u8>)> {
    vec![("start".to_owned(), b"abc abc abc".to_vec())]
}

#[test]
fn a_planted_panic_is_found_made_small_and_kept() {
    let failure = hunt(&PLANTED, &start(), 1, 10_000).unwrap_err();
    assert_eq!(failure.input, b"b{");
    assert!(failure.message.contains("planted"));
    let file = failure.file.clone().unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), failure.input);
    std::fs::remove_file(&file).unwrap();
    let told = failure.to_string();
    for part in ["planted", "627b", "GT_FUZZ_SEED=1", &file.display().to_string()] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
}

#[test]
fn a_corpus_file_that_breaks_a_promise_is_named() {
    let corpus = vec![("regression".to_owned(), b"xb{y".to_vec())];
    let failure = hunt(&PLANTED, &corpus, 1, 0).unwrap_err();
    assert!(failure.to_string().contains("corpus file regression"));
    std::fs::remove_file(failure.file.unwrap()).unwrap();
}

#[test]
fn the_work_is_bounded_and_the_same_for_the_same_seed() {
    let long = vec![("long".to_owned(), vec![b'a'; 3 * INPUT_BYTES_MAX])];
    let run = |seed| {
        hunt(&WATCHED, &long, seed, 500).unwrap();
        SEEN.take()
    };
    let (first, again, other) = (run(7), run(7), run(8));
    assert_eq!(first.len(), 501);
    assert!(first.iter().all(|input| input.len() <= INPUT_BYTES_MAX));
    assert!(first.iter().any(|input| input.len() < 64), "no noise");
    assert_eq!(first, again);
    assert_ne!(first, other);
}
