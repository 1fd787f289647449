use gt_executors::git::{Commit, GitError, PUSH_TIME_MAX, Push, Tree};

use crate::support::{Rig, limits, nux, write};

const BRANCH: &str = "gt/we-a-add-tea";

fn work(tree: &Tree, content: &str) -> Commit {
    write(tree.path(), "tea", content);
    tree.commit_all("work", &nux(), &limits()).unwrap().unwrap()
}

fn push(rig: &Rig, commit: &Commit, expected: Option<&Commit>) -> Push {
    let origin = rig.origin();
    let remote = origin.to_str().unwrap();
    rig.repository.push_hosted(remote, commit, BRANCH, expected, PUSH_TIME_MAX).unwrap()
}

fn tip(rig: &Rig) -> Option<Commit> {
    rig.repository.hosted_tip(rig.origin().to_str().unwrap(), BRANCH).unwrap()
}

#[test]
fn a_branch_is_pushed_only_where_it_is_expected() {
    let rig = Rig::new();
    let first = work(&rig.tree("nux"), "one\n");
    let second = work(&rig.tree("slit"), "two\n");
    assert_eq!(tip(&rig), None);

    assert_eq!(push(&rig, &first, None), Push::Done);
    assert_eq!(tip(&rig), Some(first.clone()));
    assert!(matches!(push(&rig, &second, None), Push::LostRace(_)), "the branch is there");
    assert!(matches!(push(&rig, &second, Some(&second)), Push::LostRace(_)));
    assert_eq!(tip(&rig), Some(first.clone()));

    // Commits of ours may be taken back where the branch is as it was seen.
    assert!(!rig.repository.has_in_history(&second, &first).unwrap());
    assert_eq!(push(&rig, &second, Some(&first)), Push::Done);
    assert_eq!(tip(&rig), Some(second));
    assert_eq!(rig.at_origin("main"), rig.base().to_string());
}

#[test]
fn commits_of_others_are_fetched_and_the_branch_is_deleted_only_at_a_known_tip() {
    let rig = Rig::new();
    let first = work(&rig.tree("nux"), "one\n");
    push(&rig, &first, None);
    let other = rig.land_by_person("milk", "milk\n");
    crate::support::git(&rig.origin(), ["branch", "--force", BRANCH, other.as_str()]);

    assert_eq!(tip(&rig), Some(other.clone()));
    assert!(rig.repository.has_in_history(&other, &rig.base()).unwrap());

    let origin = rig.origin();
    let remote = origin.to_str().unwrap();
    let delete = |commit| rig.repository.delete_hosted(remote, BRANCH, commit, PUSH_TIME_MAX);
    assert!(matches!(delete(&first), Ok(Push::LostRace(_))));
    assert_eq!(tip(&rig), Some(other.clone()));
    assert_eq!(delete(&other).unwrap(), Push::Done);
    assert_eq!(tip(&rig), None);
}

#[test]
fn a_remote_that_is_away_is_unreachable() {
    let rig = Rig::new();
    let gone = rig.path("gone.git");
    let asked = rig.repository.hosted_tip(gone.to_str().unwrap(), BRANCH);
    assert!(matches!(asked, Err(GitError::Unreachable { .. })), "{asked:?}");
}
