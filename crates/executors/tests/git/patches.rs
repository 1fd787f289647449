//! When two patches are the same change.

use gt_executors::git::MemberOutcome;

use crate::candidates::Workbench;
use crate::support::same_patches;

/// Twenty lines, of which some are replaced.
fn lines(replaced: &[(usize, &str)]) -> String {
    let text = |at: usize| match replaced.iter().find(|(line, _)| *line == at) {
        Some((_, text)) => format!("{text}\n"),
        None => format!("line {at}\n"),
    };
    (1..=20).map(text).collect()
}

#[test]
fn patches_stay_equal_when_others_change_lines_near_them_and_not_when_they_move() {
    let bench = Workbench::new();
    let repository = bench.repository();
    bench.begin(&bench.rig.base());
    let start = bench.change("list", &lines(&[]));
    bench.begin(&start);
    let work = bench.change("list", &lines(&[(8, "eight"), (11, "eleven\nand a half")]));
    let on = |others: &[(usize, &str)]| {
        bench.begin(&start);
        let theirs = bench.change("list", &lines(others));
        let built = bench.rebase(&[&start, &theirs, &work]);
        let MemberOutcome::Applied { before, after, .. } = &built.members[2] else {
            panic!("{built:?}")
        };
        same_patches(repository, (&start, &work), (before, after))
    };
    assert!(on(&[(6, "six")]), "one line before it is left");
    assert!(on(&[(13, "thirteen")]), "one line after it is left");
    assert!(on(&[(1, "one\ntwo\nthree"), (20, "end")]), "line numbers do not count");
    assert!(on(&[(9, "line 9\nbetween")]), "two changes are farther apart");

    // The same new line at another place is another change.
    bench.begin(&start);
    let one = bench.change("list", &lines(&[(5, "line 5\nreturn")]));
    bench.begin(&start);
    let other = bench.change("list", &lines(&[(15, "line 15\nreturn")]));
    assert!(!same_patches(repository, (&start, &one), (&start, &other)));
}
