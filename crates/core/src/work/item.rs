//! A bead as a work item.

use std::fmt;

use sha2::{Digest, Sha256};

use super::status::WorkStatus;
use crate::bead::{check_label, check_name};
use crate::schedule::{Run, RunId, RunState};
use crate::{
    Bead, BeadId, ExecutorKind, Invalid, IssueType, Json, Outcome, Priority, RigSlug, Status,
    Timestamp, Title, Uid, limits,
};

/// How urgent a work item is: 1 (highest) to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct WorkPriority(Priority);

impl WorkPriority {
    /// A priority by its number.
    pub fn new(number: i64) -> Result<Self, Invalid> {
        let priority = number.checked_sub(1).and_then(|number| Priority::new(number).ok());
        let wrong = || Invalid(format!("priority {number} is not between 1 (highest) and 5"));
        priority.map(Self).ok_or_else(wrong)
    }

    /// How urgent a bead with this priority is.
    pub fn of(priority: Priority) -> Self {
        Self(priority)
    }

    /// The number.
    pub fn number(self) -> i64 {
        self.0.number() + 1
    }

    /// The priority of the bead.
    pub fn of_bead(self) -> Priority {
        self.0
    }
}

impl fmt::Display for WorkPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

/// Why a queued work item is not offered to any agent, as far as its own bead says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    /// Something must be done first.
    Blocked,
    /// It was put off, perhaps until then.
    Deferred(Option<Timestamp>),
    /// It is a fixed reference.
    Pinned,
}

impl HoldReason {
    /// Reads the printed form; nothing if it is another reason.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "blocked by other items" => Some(Self::Blocked),
            "deferred" => Some(Self::Deferred(None)),
            "pinned" => Some(Self::Pinned),
            other => {
                let until = Timestamp::parse(other.strip_prefix("deferred until ")?).ok()?;
                Some(Self::Deferred(Some(until)))
            }
        }
    }
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked => f.write_str("blocked by other items"),
            Self::Deferred(None) => f.write_str("deferred"),
            Self::Deferred(Some(until)) => write!(f, "deferred until {until}"),
            Self::Pinned => f.write_str("pinned"),
        }
    }
}

/// A bead that is neither a container nor machinery, as clients of the work queue see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkItem {
    /// Its id: the alias of the bead.
    pub uid: Uid,
    /// The bead.
    pub bead: BeadId,
    /// The project it belongs to; none for items that were submitted without one.
    pub project: Option<Uid>,
    /// The kind of work.
    pub kind: IssueType,
    /// The task; the title of a bead that has no description.
    pub description: String,
    /// Data for its kind of work.
    pub payload: Option<Json>,
    /// The priority.
    pub priority: WorkPriority,
    /// The status.
    pub status: WorkStatus,
    /// The agent that has it, or is to have it.
    pub agent: Option<String>,
    /// The actor that submitted it.
    pub created_by: String,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was over.
    pub completed_at: Option<Timestamp>,
    /// The outcome.
    pub outcome: Option<Outcome>,
    /// The notes of its agent.
    pub notes: String,
    /// The run that has it now.
    pub run: Option<Uid>,
    /// Until when that run is its agent's, if that ends by itself.
    pub lease_expires_at: Option<Timestamp>,
    /// Why it is not offered to any agent although it is queued.
    pub held: Option<HoldReason>,
}

impl WorkItem {
    /// Whether a bead is a work item.
    pub fn is_one(bead: &Bead) -> bool {
        !bead.ephemeral && !bead.is_template && bead.issue_type.is_slingable(ExecutorKind::Pull)
    }

    /// How a bead of this project that this live run has looks to clients. `lease` is when the run is lost unless a
    /// heartbeat comes.
    pub fn of(bead: Bead, project: Option<Uid>, run: Option<(Uid, Option<Timestamp>)>) -> Self {
        let status = WorkStatus::of(&bead.status, bead.outcome);
        let is_pinned = bead.pinned || bead.status == Status::Pinned;
        let held = match status {
            WorkStatus::Queued if is_pinned => Some(HoldReason::Pinned),
            WorkStatus::Queued if bead.status == Status::Deferred => {
                Some(HoldReason::Deferred(bead.defer_until))
            }
            WorkStatus::Queued if bead.open_blockers > 0 => Some(HoldReason::Blocked),
            _ => None,
        };
        Self {
            uid: bead.uid,
            bead: bead.id,
            project,
            kind: bead.issue_type,
            description: if bead.description.is_empty() {
                bead.title.as_str().to_owned()
            } else {
                bead.description
            },
            payload: bead.metadata,
            priority: WorkPriority::of(bead.priority),
            status,
            agent: Some(bead.assignee).filter(|agent| !agent.is_empty()),
            created_by: bead.created_by,
            created_at: bead.created_at,
            updated_at: bead.updated_at,
            completed_at: bead.closed_at,
            outcome: status.outcome(),
            notes: bead.notes,
            run: run.map(|(uid, _)| uid),
            lease_expires_at: run.and_then(|(_, lease)| lease),
            held,
        }
    }

    /// The version of this state of the item. A renewed lease does not change it.
    pub fn version(&self) -> Version {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(self.uid.as_bytes());
        add(self.project.as_ref().map_or(&[], |uid| uid.as_bytes()));
        add(self.kind.as_str().as_bytes());
        add(self.description.as_bytes());
        add(self.payload.as_ref().map_or("", Json::as_str).as_bytes());
        add(&self.priority.number().to_le_bytes());
        add(self.status.as_str().as_bytes());
        add(self.agent.as_deref().unwrap_or_default().as_bytes());
        add(self.notes.as_bytes());
        add(&self.updated_at.as_nanos().to_le_bytes());
        add(&self.completed_at.map_or(0, Timestamp::as_nanos).to_le_bytes());
        add(self.run.as_ref().map_or(&[], |uid| uid.as_bytes()));
        let digest = hash.finalize();
        let mut head = [0; 8];
        head.copy_from_slice(&digest[..8]);
        Version(u64::from_be_bytes(head))
    }
}

/// A state of a work item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    /// Reads sixteen hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let is_hexadecimal = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal);
        let shown: String = text.chars().take(60).collect();
        number.map(Self).ok_or_else(|| {
            Invalid(format!("\"{}\" is not the version of a work item", shown.escape_debug()))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One entry of the dispatch log of a work item: a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchLogEntry {
    /// Its id: the alias of the run.
    pub uid: Uid,
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: Uid,
    /// When the item was given to the agent.
    pub dispatched_at: Timestamp,
    /// The agent that it was given to.
    pub agent: String,
    /// The executor.
    pub executor: ExecutorKind,
    /// The state of the run.
    pub state: RunState,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// How it ended, if it came to an end.
    pub outcome: Option<Outcome>,
}

impl DispatchLogEntry {
    /// A run of this item.
    pub fn of(run: Run, item: Uid) -> Self {
        let outcome = match run.state {
            RunState::Done => Some(Outcome::Success),
            RunState::Failed | RunState::Lost => Some(Outcome::Failed),
            RunState::Cancelled => Some(Outcome::Cancelled),
            RunState::Starting | RunState::Running | RunState::Blocked => None,
        };
        Self {
            uid: run.uid,
            run: run.id,
            item,
            dispatched_at: run.created_at,
            agent: run.agent,
            executor: run.executor,
            state: run.state,
            completed_at: run.ended_at,
            outcome,
        }
    }
}

/// A rig as clients of the work queue see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its id: the alias of the rig.
    pub uid: Uid,
    /// Its name for people.
    pub name: String,
    /// Its name in another system.
    pub external_ref: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The rig.
    pub rig: RigSlug,
    /// Its executor.
    pub executor: ExecutorKind,
}

/// The fields of a new work item, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWork {
    /// The kind of work.
    pub kind: IssueType,
    /// The first line of the description.
    pub title: Title,
    /// The task, in full.
    pub description: String,
}

impl NewWork {
    /// Checks a kind and a description. The field that is wrong comes with why.
    pub fn check(kind: &str, description: &str) -> Result<Self, (&'static str, Invalid)> {
        Ok(Self {
            kind: work_type(kind).map_err(|error| ("type", error))?,
            title: work_title(description).map_err(|error| ("description", error))?,
            description: description.to_owned(),
        })
    }
}

/// Checks a type of work items. It is kept as it is spelled: clients look for the spelling they wrote.
pub fn work_type(text: &str) -> Result<IssueType, Invalid> {
    check_name("type", text)?;
    if text.trim().is_empty() {
        return Err(Invalid::new("a type may not be empty"));
    }
    let kind = IssueType::trusted(text.to_owned());
    if !kind.is_slingable(ExecutorKind::Pull) {
        return Err(Invalid(format!(
            "beads of the type {text} are containers or machinery, not work items; choose another type"
        )));
    }
    Ok(kind)
}

/// The title of a work item that is described like this: the first line that says anything, as far as a title is long.
pub fn work_title(description: &str) -> Result<Title, Invalid> {
    crate::bead::check_text("description", description)?;
    let line = description.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.ok_or_else(|| Invalid::new("a description may not be empty"))?;
    let plain: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut end = plain.len().min(limits::TITLE_BYTES_MAX);
    while !plain.is_char_boundary(end) {
        end -= 1;
    }
    Title::parse(&plain[..end])
}

/// Checks the name of an agent.
pub fn check_agent(text: &str) -> Result<(), Invalid> {
    check_label("agent", text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn priorities_are_those_of_beads_and_one() {
        for number in 1..=5 {
            let priority = WorkPriority::new(number).unwrap();
            assert_eq!(priority.number(), number);
            assert_eq!(priority.of_bead().number(), number - 1);
        }
        assert_eq!(WorkPriority::default().number(), 3);
        for wrong in [0, 6, -1, i64::MIN, i64::MAX] {
            assert!(WorkPriority::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn why_something_is_held_reads_back() {
        let until = Timestamp::from_nanos(1_500_000_000_000_000_007);
        for held in [
            HoldReason::Blocked,
            HoldReason::Deferred(None),
            HoldReason::Deferred(Some(until)),
            HoldReason::Pinned,
        ] {
            assert_eq!(HoldReason::parse(&held.to_string()), Some(held));
        }
        for other in ["", "deferred until", "deferred until soon", "a reason of tomorrow"] {
            assert_eq!(HoldReason::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_title_is_the_first_line_cut_to_what_fits() {
        assert_eq!(work_title("Fix it\nand more").unwrap().as_str(), "Fix it");
        assert_eq!(work_title("\n\n  Fix\tit \n").unwrap().as_str(), "Fix it");
        let long = work_title(&"ü".repeat(400)).unwrap();
        assert_eq!(long.as_str().len(), 500);
        for empty in ["", "  \n\t\n", "a\0b"] {
            assert!(work_title(empty).is_err(), "{empty:?}");
        }
    }

    #[test]
    fn containers_and_machinery_are_no_types_of_work() {
        for kind in ["code_review", "bug", "gitea_issue", "Infra", "task"] {
            assert_eq!(work_type(kind).unwrap().as_str(), kind);
        }
        for kind in ["", " ", "epic", "convoy", "message", "merge-request", "a\nb", &"x".repeat(51)]
        {
            assert!(work_type(kind).is_err(), "{kind}");
        }
    }

    #[test]
    fn a_version_is_sixteen_digits() {
        let version = Version(0xabc);
        assert_eq!(version.to_string(), "0000000000000abc");
        assert_eq!(Version::parse("0000000000000abc").unwrap(), version);
        for wrong in ["", "abc", "+000000000000abc", "zzzzzzzzzzzzzzzz"] {
            assert!(Version::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_description_that_says_something_has_a_title(text in "\\PC{0,700}") {
            prop_assert_eq!(work_title(&text).is_ok(), !text.trim().is_empty());
        }
    }
}
