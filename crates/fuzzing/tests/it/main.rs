//! Every parser of outside data keeps its promises: for the corpus, for variations of it, for noise.
//!
//! `GT_FUZZ_SEED` and `GT_FUZZ_ROUNDS` choose other variations, and more of them.

mod harness;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use gt_fuzzing::{INPUT_BYTES_MAX, TARGETS, corpus, hunt};

/// A number from the environment of the test.
#[expect(clippy::disallowed_methods, reason = "this is a test, and its own door")]
fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

#[test]
fn every_parser_keeps_its_promises() {
    let seed = number("GT_FUZZ_SEED", 1);
    let rounds = usize::try_from(number("GT_FUZZ_ROUNDS", 10_000)).unwrap();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(target) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let corpus = corpus::of(target.name).unwrap();
            let found = hunt(target, &corpus, seed, rounds.div_ceil(target.cost));
            failures.extend(found.err().map(|failure| failure.to_string()));
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "broken promises:\n\n{}", failures.join("\n\n"));
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names.len(), TARGETS.len(), "two targets have the same name");
    let directories = std::fs::read_dir(corpus::directory()).unwrap();
    let directories: BTreeSet<String> =
        directories.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(directories, names);
}

#[test]
fn the_corpus_is_small() {
    let mut bytes = 0;
    for target in TARGETS {
        for (name, input) in corpus::of(target.name).unwrap() {
            assert!(input.len() <= INPUT_BYTES_MAX, "{}/{name} would be cut off", target.name);
            bytes += input.len();
        }
    }
    assert!(bytes < 200_000, "{bytes} bytes");
}
