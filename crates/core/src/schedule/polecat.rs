//! Polecats: named places for workers, with a worktree that is used again.

use super::context::names;
use super::run::RunId;
use crate::words::base36;
use crate::{BeadId, Invalid, Prefix, RigSlug, Timestamp};

names! {
    /// Whether a polecat has a tree.
    TreeState, "a state of a tree" {
        /// There is none, or an unfinished one.
        Absent = "absent",
        /// There is one.
        Ready = "ready",
    }
}

/// A named place for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polecat {
    /// Its rig.
    pub rig: RigSlug,
    /// Its name, unique in the rig.
    pub name: String,
    /// The directory of the town that has its tree, as runs name it.
    pub host: String,
    /// Whether it has a tree.
    pub tree: TreeState,
    /// The branch that is checked out there; empty for none.
    pub branch: String,
    /// The run that had it last.
    pub last_run: Option<RunId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last given to a run.
    pub updated_at: Timestamp,
}

impl Polecat {
    /// Whether its worktree was made ahead of its first run.
    pub fn is_warm(&self) -> bool {
        self.tree == TreeState::Ready && self.last_run.is_none()
    }
}

names! {
    /// The state of a tree that was moved to the trash.
    TrashState, "a state of trash" {
        /// It is to be moved; the move is not confirmed yet.
        Moving = "moving",
        /// It is in the trash.
        Kept = "kept",
        /// It is back where it was.
        Restored = "restored",
        /// It is gone for good.
        Purged = "purged",
    }
}

/// A tree that was moved away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    /// Its number.
    pub number: u64,
    /// The rig it belonged to.
    pub rig: RigSlug,
    /// The polecat that had it.
    pub name: String,
    /// The directory of the town that has it.
    pub host: String,
    /// Its path below the town.
    pub path: String,
    /// The branch that is checked out in it.
    pub branch: String,
    /// The run that had it last.
    pub run: Option<RunId>,
    /// Why it was moved.
    pub reason: String,
    /// Its state.
    pub state: TrashState,
    /// When it was moved.
    pub moved_at: Timestamp,
    /// The actor that moved it.
    pub moved_by: String,
    /// When it may be deleted.
    pub purge_at: Timestamp,
}

/// The parts of the tree of a run that were saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescued {
    /// The run.
    pub run: RunId,
    /// Its rig.
    pub rig: RigSlug,
    /// The directory of the town whose repository has it.
    pub host: String,
    /// The reference that keeps it.
    pub reference: String,
    /// The commit.
    pub commit: String,
    /// The commit that the run began from.
    pub base: String,
    /// The size of the saved files that were not committed already.
    pub bytes: u64,
    /// The files that were not saved, and why: lines for people.
    pub left_out: Vec<String>,
    /// The time of the rescue.
    pub created_at: Timestamp,
}

/// The names that polecats get, in this order; after that they get numbers.
const POOL: &str = "
    furiosa nux slit toast capable dag cheedo angharad valkyrie keeper rictus scrotus corpus
    morsov ace dementus octoboss praetorian jack fifi smeg vulture history vuvalini immortan
    bullet gasoline chrome doof coma organic mechanic pinkie mudguts diesel johnny toecutter
    bubba goose cundalini mudflap clunk scuttle wez humungus pappagallo zetta curmudgeon gyro
    feral warrior aunty blaster ironbar pigkiller savannah
";

/// Names that mean something else in addresses.
const RESERVED: [&str; 6] = ["mayor", "deacon", "witness", "refinery", "crew", "polecats"];

/// Checks the name of a polecat: it is the name of a directory, a part of a branch and of a session.
pub fn check_polecat_name(text: &str) -> Result<(), Invalid> {
    let shown: String = text.chars().take(60).collect();
    let well_formed = (1..=40).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !well_formed {
        return Err(Invalid(format!(
            "\"{}\" is not a name for a polecat; use letters, digits, - and _, at most 40",
            shown.escape_debug()
        )));
    }
    if RESERVED.contains(&text) {
        return Err(Invalid(format!("\"{shown}\" is reserved; choose another name")));
    }
    Ok(())
}

/// The next name that is not taken.
pub fn free_polecat_name(is_taken: impl Fn(&str) -> bool) -> String {
    let named = POOL.split_whitespace().map(str::to_owned);
    let numbered = (POOL.split_whitespace().count() + 1..).map(|number| number.to_string());
    named.chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
}

/// The branch that a run works on: `polecat/<name>/<bead>@<stamp>`. Characters that git does not allow in a
/// branch are left out of the bead; the stamp keeps it apart from others.
pub fn branch_name(polecat: &str, bead: &BeadId, at: Timestamp) -> String {
    let plain: String = bead
        .as_str()
        .chars()
        .map(
            |c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.' { c } else { '-' },
        )
        .collect();
    let plain = plain.replace("..", ".-").replace(".lock", "-lock");
    let plain = plain.trim_matches('.');
    let millis = u64::try_from(at.as_nanos() / 1_000_000).unwrap_or(0);
    format!("polecat/{polecat}/{plain}@{}", base36(millis, 1))
}

/// The session of a polecat: `<prefix>-<name>`, without characters that have a meaning in the names of sessions.
pub fn session_name(prefix: &Prefix, polecat: &str) -> String {
    format!("{prefix}-{polecat}").replace(['.', ':'], "_")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_come_from_the_pool_and_then_are_numbers() {
        let mut taken: Vec<String> = Vec::new();
        for _ in 0..POOL.split_whitespace().count() + 2 {
            let next = free_polecat_name(|name| taken.iter().any(|taken| taken == name));
            assert!(check_polecat_name(&next).is_ok() && !taken.contains(&next), "{next}");
            taken.push(next);
        }
        assert_eq!((taken[0].as_str(), taken[57].as_str()), ("furiosa", "58"));
        taken.remove(3);
        assert_eq!(free_polecat_name(|name| taken.iter().any(|taken| taken == name)), "toast");
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for bad in ["", "witness", "a b", "a/b", "../x", "-a", "ä", &"x".repeat(41)] {
            assert!(check_polecat_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_branch_names_polecat_bead_and_time() {
        let bead = BeadId::parse("gt-abc").unwrap();
        let at = Timestamp::from_nanos(1_700_000_000_000_000_000);
        assert_eq!(branch_name("nux", &bead, at), "polecat/nux/gt-abc@loyw3v28");
    }

    proptest! {
        #[test]
        fn git_takes_every_branch(id in "[a-zA-Z]{1,3}-[!-~]{1,30}", nanos in 0_i64..i64::MAX) {
            if let Ok(bead) = BeadId::parse(&id) {
                let branch = branch_name("nux", &bead, Timestamp::from_nanos(nanos));
                let forbidden = [' ', '~', '^', ':', '?', '*', '[', '\\'];
                prop_assert!(!branch.contains(forbidden), "{}", branch);
                for part in branch.split('/') {
                    prop_assert!(!part.is_empty() && !part.starts_with('.') && !part.ends_with('.'));
                }
                prop_assert!(!branch.contains(".lock") && !branch.contains("..") && !branch.contains("@{"), "{}", branch);
            }
        }
    }
}
