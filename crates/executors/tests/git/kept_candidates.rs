use gt_executors::git::LandMethod;

use crate::candidates::{Workbench, member};
use crate::support::git;

#[test]
fn old_candidates_of_no_open_work_are_forgotten() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let members = [member("al-1", &bench.work("one", "1"))];
    let repository = bench.repository();
    for name in ["reviewed-al-1.2-abc", "pull-al-3@2", base.as_str()] {
        repository.build_candidate(name, &base, &members, LandMethod::Merge).unwrap();
    }
    let kept =
        || git(&repository.own_path(), ["for-each-ref", "--format=%(refname:lstrip=3)", "refs/gt"]);
    let forget =
        |before: i64, wanted: &[&str]| repository.forget_candidates(before, wanted).unwrap();

    assert_eq!(forget(0, &[]), 0);
    assert_eq!(forget(i64::MAX, &["al-1.2"]), 2);
    assert_eq!(kept(), "reviewed-al-1%2E2-abc");
    assert_eq!(forget(i64::MAX, &["al-1.3"]), 1);
    assert_eq!(forget(i64::MAX, &[]), 0);
}
