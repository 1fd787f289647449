//! Rigs: the projects of a town.

use std::fmt;

use crate::bead::Uid;
use crate::{Invalid, Json, Timestamp};

/// The fixed name of a rig, also the name of its directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RigSlug(String);

/// Names that mean something else in addresses or directories.
const RESERVED_SLUGS: [&str; 10] = [
    "hq",
    "wq",
    "mayor",
    "deacon",
    "settings",
    RigSlug::INBOX,
    "crew",
    "polecats",
    "witness",
    "refinery",
];

/// The longest name of a rig.
const SLUG_BYTES_MAX: usize = 50;

impl RigSlug {
    /// The rig of work items that were submitted without a project.
    pub const INBOX: &str = "inbox";

    /// The name of the rig of work items that were submitted without a project.
    pub fn inbox() -> Self {
        Self(Self::INBOX.to_owned())
    }

    /// A name for the rig of a repository in a directory of this name: one that no other rig has.
    pub fn of_directory(name: &str, is_taken: impl Fn(&str) -> bool) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let plain: String = name.chars().map(plain).take(SLUG_BYTES_MAX - 4).collect();
        let plain = plain.trim_matches(['-', '_']);
        let plain = if plain.is_empty() { "project" } else { plain };
        let numbered = (2..).map(|number: u32| format!("{plain}-{number}"));
        let mut names = std::iter::once(plain.to_owned()).chain(numbered);
        let free = names.find_map(|name| Self::parse(&name).ok().filter(|slug| !is_taken(&slug.0)));
        free.unwrap_or_else(Self::inbox)
    }

    /// Checks a name a person gave.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let well_formed = (1..=SLUG_BYTES_MAX).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        let shown: String = text.chars().take(60).collect();
        if !well_formed {
            return Err(Invalid(format!(
                "\"{}\" is not a rig name; use letters, digits, - and _, at most 50",
                shown.escape_debug()
            )));
        }
        if RESERVED_SLUGS.contains(&text) {
            return Err(Invalid(format!("the rig name \"{shown}\" is reserved; choose another")));
        }
        Ok(Self(text.to_owned()))
    }

    /// A name for a rig that people call `title`: the valid characters of the title, with a number if `taken` says so.
    pub fn derive(title: &str, taken: impl Fn(&str) -> bool) -> Self {
        let plain = title.to_ascii_lowercase();
        let words: Vec<&str> =
            plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let mut name = words.join("-");
        // Room for a number; every byte of it is a character.
        name.truncate(40);
        let name = name.trim_end_matches('-');
        let name = if Self::parse(name).is_ok() { name } else { "project" };
        let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        Self(names.find(|name| !taken(name)).unwrap_or_else(|| name.to_owned()))
    }

    /// Wraps text that was a valid name when it was stored.
    pub fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RigSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The prefix of the ids of a rig's beads, without the `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(String);

impl Prefix {
    /// The prefix of beads that belong to the town itself.
    pub const TOWN: &str = "hq";
    /// The prefix of work items that were submitted without a project.
    pub const INBOX: &str = "wq";
    /// Prefixes no rig may take.
    pub const RESERVED: [&str; 2] = [Self::TOWN, Self::INBOX];

    /// Checks a prefix; a trailing `-` is not part of it.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let prefix = text.strip_suffix('-').unwrap_or(text);
        let well_formed = (1..=32).contains(&prefix.len())
            && prefix.starts_with(|c: char| c.is_ascii_alphanumeric())
            && prefix.ends_with(|c: char| c.is_ascii_alphanumeric())
            && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        if !well_formed {
            return Err(Invalid(format!(
                "\"{}\" is not a prefix; use letters, digits, - and _, at most 32",
                text.chars().take(60).collect::<String>().escape_debug()
            )));
        }
        Ok(Self(prefix.to_owned()))
    }

    /// The prefix of the town's own beads.
    pub fn town() -> Self {
        Self(Self::TOWN.to_owned())
    }

    /// The prefix of work items that were submitted without a project.
    pub fn inbox() -> Self {
        Self(Self::INBOX.to_owned())
    }

    /// Wraps text that was a valid prefix when it was stored.
    pub fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A prefix for a rig called `name`: the initials of its parts, else its first two letters, made
    /// longer while `taken` says so.
    pub fn derive(name: &str, taken: impl Fn(&str) -> bool) -> Result<Self, Invalid> {
        let shown = || name.chars().take(60).collect::<String>().escape_debug().to_string();
        let lower = name.to_ascii_lowercase();
        let parts: Vec<&str> =
            lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|p| !p.is_empty()).collect();
        let letters: String = parts.concat();
        let first = match parts.as_slice() {
            [] => return Err(Invalid(format!("cannot derive a prefix from \"{}\"", shown()))),
            [one] => one.chars().take(2).collect(),
            several => several.iter().filter_map(|part| part.chars().next()).collect::<String>(),
        };
        let free =
            |candidate: &String| !Self::RESERVED.contains(&candidate.as_str()) && !taken(candidate);
        std::iter::once(first.clone())
            .chain((3..=letters.len()).map(|length| letters[..length].to_owned()))
            .chain((2..1000).map(|number| format!("{first}{number}")))
            .find(free)
            .map_or_else(
                || {
                    let shown = shown();
                    Err(Invalid(format!("no free prefix for \"{shown}\"; give one with --prefix")))
                },
                |prefix| Self::parse(&prefix),
            )
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a rig takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RigState {
    /// Work starts.
    Active,
    /// Nothing new starts; scheduling is allowed.
    Parked,
    /// Out of service: scheduling is refused.
    Docked,
}

impl RigState {
    /// The state of this name.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "active" => Ok(Self::Active),
            "parked" => Ok(Self::Parked),
            "docked" => Ok(Self::Docked),
            other => Err(Invalid(format!("\"{}\" is not a rig state", other.escape_debug()))),
        }
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Parked => "parked",
            Self::Docked => "docked",
        }
    }
}

/// The answer to a person who asks for the executor `ssh`.
const SSH_REMOVED: &str = "the executor ssh is gone: another machine is a host of the town instead; use gt store migrate \
                           postgres://… if the store is a file, then gt host add <machine> --ssh <machine>, and pin the rig to it \
                           with gt config set rig.<rig>.host <machine>";

/// How the runs of a rig are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorKind {
    /// A terminal session.
    Tmux,
    /// A plain process.
    Process,
    /// A process on another machine that is no host of the town. An earlier program had it: no run of it is started any more.
    Ssh,
    /// An agent that asks for work over HTTP.
    Pull,
    /// A person or a standing agent.
    None,
}

impl ExecutorKind {
    /// Whether its runs take slots of the town. Agents that ask for work themselves do not.
    pub fn takes_slot(self) -> bool {
        match self {
            Self::Tmux | Self::Process | Self::Ssh => true,
            Self::Pull | Self::None => false,
        }
    }

    /// Refuses an executor that no run is started with any more.
    pub fn refuse_removed(self) -> Result<(), Invalid> {
        match self {
            Self::Ssh => Err(Invalid(SSH_REMOVED.to_owned())),
            Self::Tmux | Self::Process | Self::Pull | Self::None => Ok(()),
        }
    }

    /// The kind of this name.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "tmux" => Ok(Self::Tmux),
            "process" => Ok(Self::Process),
            "ssh" => Ok(Self::Ssh),
            "pull" => Ok(Self::Pull),
            "none" => Ok(Self::None),
            other => Err(Invalid(format!(
                "\"{}\" is not an executor; write tmux, process, pull or none",
                other.escape_debug()
            ))),
        }
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tmux => "tmux",
            Self::Process => "process",
            Self::Ssh => "ssh",
            Self::Pull => "pull",
            Self::None => "none",
        }
    }
}

/// A project: a name, an id prefix, usually a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rig {
    /// Its fixed name.
    pub slug: RigSlug,
    /// Its UUIDv7 alias.
    pub uid: Uid,
    /// Its name for people.
    pub title: String,
    /// The prefix of its beads' ids.
    pub prefix: Prefix,
    /// Its directory relative to the town's.
    pub path: String,
    /// Where its code lives: a URL or a path; empty for none.
    pub repo: String,
    /// The branch that work lands on; empty without a repository.
    pub default_branch: String,
    /// Its executor.
    pub executor: ExecutorKind,
    /// Whether it takes part.
    pub state: RigState,
    /// Its name in another system; empty for none.
    pub external_ref: String,
    /// Anything else, as a JSON object.
    pub settings: Json,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Rig {
    /// Whether the runs of this rig have worktrees: it has a repository, and its workers are started by us.
    pub fn has_trees(&self) -> bool {
        !self.repo.is_empty() && self.executor.takes_slot()
    }

    /// A rig that has just been added, without a repository.
    pub fn new(slug: RigSlug, title: &str, prefix: Prefix, path: &str, now: Timestamp) -> Self {
        Self {
            slug,
            uid: Uid::fresh(),
            title: title.to_owned(),
            prefix,
            path: path.to_owned(),
            repo: String::new(),
            default_branch: String::new(),
            executor: ExecutorKind::Process,
            state: RigState::Active,
            external_ref: String::new(),
            settings: Json::object(&[]),
            created_at: now,
            updated_at: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_prefix_is_derived_from_the_name_and_grows_when_taken() {
        let derive = |name: &str, taken: &[&str]| {
            Prefix::derive(name, |prefix| taken.contains(&prefix)).map(|p| p.to_string())
        };
        assert_eq!(derive("gas-town", &[]).unwrap(), "gt");
        assert_eq!(derive("gastown", &[]).unwrap(), "ga");
        assert_eq!(derive("gastown", &["ga"]).unwrap(), "gas");
        assert_eq!(derive("work-queue", &[]).unwrap(), "wor");
        assert_eq!(derive("ab", &["ab"]).unwrap(), "ab2");
        assert!(derive("--", &[]).is_err());
    }

    #[test]
    fn a_name_is_derived_from_a_title_and_numbered_when_taken() {
        let derive = |title: &str, taken: &[&str]| {
            RigSlug::derive(title, |slug| taken.contains(&slug)).to_string()
        };
        assert_eq!(derive("Shopping List API", &[]), "shopping-list-api");
        assert_eq!(derive("Shopping List API", &["shopping-list-api"]), "shopping-list-api-2");
        assert_eq!(derive("日本語", &["project", "project-2"]), "project-3");
        assert_eq!(derive("Inbox", &[]), "project");
        assert_eq!(derive(&"x ".repeat(100), &[]).len(), 39);
    }

    proptest! {
        #[test]
        fn every_derived_name_is_a_valid_one(title in ".{0,80}", taken in any::<bool>()) {
            let first = RigSlug::derive(&title, |_| false);
            prop_assert!(RigSlug::parse(first.as_str()).is_ok());
            let second = RigSlug::derive(&title, |slug| taken && slug == first.as_str());
            prop_assert!(RigSlug::parse(second.as_str()).is_ok());
            prop_assert_eq!(taken, first != second);
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in ".{0,60}") {
            let _ = RigSlug::parse(&text);
            let _ = Prefix::parse(&text);
            let _ = Prefix::derive(&text, |_| false);
        }
    }

    #[test]
    fn the_executor_ssh_is_refused_with_the_commands_that_replace_it() {
        let said = ExecutorKind::Ssh.refuse_removed().unwrap_err().to_string();
        for command in ["gt store migrate postgres://…", "gt host add <machine> --ssh <machine>"]
        {
            assert!(said.contains(command), "{said}");
        }
        assert_eq!(ExecutorKind::Process.refuse_removed(), Ok(()));
    }

    #[test]
    fn a_directory_names_its_rig() {
        let taken = |slug: &str| slug == "web";
        for (directory, slug) in [
            ("My App", "My-App"),
            ("web", "web-2"),
            (".config", "config"),
            ("…", "project"),
            ("gt", "gt"),
        ] {
            assert_eq!(RigSlug::of_directory(directory, taken).as_str(), slug, "{directory}");
        }
        assert_eq!(RigSlug::of_directory(&"x".repeat(300), |_| false).as_str().len(), 46);
    }
}
