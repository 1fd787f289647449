//! The changes that a worker may make to the references of the repository that it shares with
//! others.
//!
//! Git asks the `reference-transaction` hook before any command changes a reference. The hook
//! ([`Repository::install_fence`](super::Repository::install_fence)) asks `gt`, which knows the
//! branch of the run, and [`allow`] decides.
//!
//! Which hooks git calls is a setting, and every worker can write those of the repository. So the environment
//! of a worker brings settings that come after them
//! ([`Repository::fence_variables`](super::Repository::fence_variables)).
//!
//! Our own commands (fetching, making worktrees, rescuing, landing) run with hooks switched off on the
//! command line, so there is no password that could leak into the environment of an agent. A worker with
//! the same user id could do the same: the fence is not there against malice. It stops zombies of older runs
//! and agents that are mistaken, and tells them what to do instead.
//!
//! Git does not ask the hook about the new name when a branch is renamed or copied. A renaming also
//! deletes the old name, and that is refused. A copy onto the branch of another passes; the
//! accepted commit, not the name of a branch, decides which work reaches the origin.

mod audit;
mod chosen_programs;
mod environment;
mod hook;
mod reading_environment;
mod submodules;
mod worker_git;

pub use audit::{NewCommit, RestoredSettings};
pub(crate) use environment::environment_in_use;
pub use environment::{
    STORE_CREDENTIALS, WITHHELD, bash_env_here, credentials_here, path_in_use, present_here,
    save_environment, use_environment, withheld_here,
};
pub(super) use hook::time_awake;
pub use worker_git::{FencedRepository, call_worker_git, install_worker_git, worker_git_variables};
pub(crate) use worker_git::{NO_PROTOCOL, PROTOCOLS, real_git};

use std::fmt;

/// One change that a transaction wants to make, as git tells it to the hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The expected old value; all zeros if the reference is new, or if any value is accepted.
    pub old: String,
    /// The new value; all zeros if it is deleted.
    pub new: String,
    /// Its name, such as `refs/heads/main` or `HEAD`.
    pub reference: String,
}

/// A line of the hook's input that is not of git's format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not of the form `<old> <new> <reference>`")]
pub struct MalformedHookLine {
    /// Which line, from 1.
    pub line: usize,
}

/// The reason why a transaction is refused, in a sentence for the worker that asked for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FenceRefusal {
    /// The first reference that is not the run's to touch.
    pub reference: String,
    /// The branch that is.
    pub own_branch: String,
    kind: ReferenceKind,
}

/// The kinds of reference that all trees share, which no worker changes for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReferenceKind {
    /// Its own branch, but deleted.
    Deletion,
    Branch,
    Tag,
    Remote,
    Ours,
    Replacement,
    Stash,
    OtherTree,
}

impl ReferenceKind {
    const PREFIXES: [(&'static str, Self); 8] = [
        ("refs/heads/", Self::Branch),
        ("refs/tags/", Self::Tag),
        ("refs/remotes/", Self::Remote),
        ("refs/gt/", Self::Ours),
        ("refs/replace/", Self::Replacement),
        // Git has one for all worktrees: a worker that pops it may get the changes of another.
        ("refs/stash", Self::Stash),
        ("worktrees/", Self::OtherTree),
        ("main-worktree/", Self::OtherTree),
    ];

    /// The kind of a reference that others share. `HEAD`, `ORIG_HEAD`, `refs/bisect` and the like
    /// are not shared.
    fn of(reference: &str) -> Option<Self> {
        let found = Self::PREFIXES.iter().find(|(prefix, _)| reference.starts_with(prefix));
        found.map(|(_, kind)| *kind)
    }
}

impl fmt::Display for FenceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reference, own_branch, kind } = self;
        write!(f, "this worker may not change {reference}: ")?;
        match kind {
            ReferenceKind::Deletion => write!(
                f,
                "its work is there; keep the branch and its name, and finish with `gt done`"
            ),
            ReferenceKind::Branch => write!(
                f,
                "only {own_branch} is its branch; commit there (`git switch {own_branch}`)"
            ),
            ReferenceKind::Tag => {
                write!(f, "tags are shared by all workers; ask a person to change them")
            }
            ReferenceKind::Remote => write!(
                f,
                "gt itself keeps the branches of the origin; to look at a newer one, \
                 `git fetch --refmap= --no-tags origin <branch>` and use FETCH_HEAD"
            ),
            ReferenceKind::Ours => write!(f, "gt keeps saved work there; see `gt rescue list`"),
            ReferenceKind::Replacement => {
                write!(f, "it would change what others see in their commits")
            }
            ReferenceKind::Stash => write!(
                f,
                "the stash is shared by all workers; commit on your branch instead \
                 (`git commit -m wip`), and take it back with `git reset HEAD^`"
            ),
            ReferenceKind::OtherTree => write!(f, "it belongs to another tree"),
        }
    }
}

/// Parses the input of the hook: `<old> <new> <reference>` on every line.
pub fn parse(input: &[u8]) -> Result<Vec<Update>, MalformedHookLine> {
    let text = String::from_utf8_lossy(input);
    let mut updates = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        match (words.next(), words.next(), words.next()) {
            (Some(old), Some(new), Some(reference))
                if !old.is_empty() && !new.is_empty() && !reference.is_empty() =>
            {
                updates.push(Update { old, new, reference });
            }
            _ => return Err(MalformedHookLine { line: index + 1 }),
        }
    }
    Ok(updates)
}

/// Whether a run whose branch is `own_branch` may make these changes. It may change its own branch,
/// but not delete it, and references that are not shared.
pub fn allow(updates: &[Update], own_branch: &str) -> Result<(), FenceRefusal> {
    for Update { reference, new, .. } in updates {
        let is_own = reference.strip_prefix("refs/heads/") == Some(own_branch);
        let deletes = new.bytes().all(|digit| digit == b'0');
        let kind = match (is_own, deletes) {
            (true, true) => Some(ReferenceKind::Deletion),
            (true, false) => None,
            (false, _) => ReferenceKind::of(reference),
        };
        if let Some(kind) = kind {
            return Err(FenceRefusal {
                reference: reference.clone(),
                own_branch: own_branch.to_owned(),
                kind,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWN: &str = "polecat/nux/gt-abc@1";

    fn judge(references: &[&str]) -> Result<(), FenceRefusal> {
        let update = |reference: &&str| Update {
            old: "0".repeat(40),
            new: "a".repeat(40),
            reference: (*reference).to_owned(),
        };
        allow(&references.iter().map(update).collect::<Vec<_>>(), OWN)
    }

    #[test]
    fn a_run_may_change_its_branch_and_references_that_are_not_shared() {
        let own = format!("refs/heads/{OWN}");
        let mine = ["HEAD", &own, "ORIG_HEAD", "refs/bisect/bad", "refs/rewritten/x"];
        judge(&mine).unwrap();
        judge(&[]).unwrap();
    }

    #[test]
    fn everything_that_others_share_is_refused() {
        for reference in [
            "refs/heads/main",
            "refs/heads/polecat/nux/gt-abc@12",
            "refs/heads/polecat/nux/gt-abc",
            "refs/tags/v1",
            "refs/remotes/origin/main",
            "refs/gt/rescue/gt-abc/1",
            "refs/replace/0123",
            "refs/stash",
            "worktrees/rig1/HEAD",
            "main-worktree/HEAD",
        ] {
            let refusal = judge(&["HEAD", reference]).unwrap_err();
            assert_eq!(refusal.reference, reference);
            assert!(refusal.to_string().contains(reference), "{refusal}");
        }
    }

    #[test]
    fn the_own_branch_may_not_be_deleted() {
        let reference = format!("refs/heads/{OWN}");
        let update = Update { old: "a".repeat(40), new: "0".repeat(40), reference };
        let said = allow(&[update], OWN).unwrap_err().to_string();
        assert!(said.contains("gt done"), "{said}");
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let said = judge(&["refs/heads/main"]).unwrap_err().to_string();
        assert_eq!(
            said,
            "this worker may not change refs/heads/main: only polecat/nux/gt-abc@1 is its branch; \
             commit there (`git switch polecat/nux/gt-abc@1`)"
        );
    }

    #[test]
    fn a_line_that_is_not_of_gits_format_is_an_error() {
        assert_eq!(
            parse(b"a b refs/heads/x\n"),
            Ok(vec![Update { old: "a".into(), new: "b".into(), reference: "refs/heads/x".into() }])
        );
        assert_eq!(parse(b"a b HEAD\na b\n"), Err(MalformedHookLine { line: 2 }));
        assert_eq!(parse(b"a  HEAD\n"), Err(MalformedHookLine { line: 1 }));
        assert_eq!(parse(b""), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(updates) = parse(&input) {
                let _ = allow(&updates, OWN).map_err(|refusal| refusal.to_string());
            }
        }

        #[test]
        fn no_branch_but_its_own_is_allowed(name in "[a-z0-9/@.-]{1,30}") {
            let allowed = judge(&[&format!("refs/heads/{name}")]).is_ok();
            prop_assert_eq!(allowed, name == OWN);
        }
    }
}
