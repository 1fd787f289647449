//! The cast and the tasks of the demonstration.

use gt_core::BeadId;

use gt_town::Result;

/// A rig of the demonstration.
pub(super) struct DemoRig {
    /// Its name, which is also the prefix of the ids of its beads.
    pub(super) name: &'static str,
    /// The files of its repository.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// A bead of the demonstration, with the work of its worker.
pub(super) struct DemoBead {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The beads that have to be closed before it can start.
    pub(super) needs: &'static [&'static str],
    /// How long its worker works, in milliseconds.
    pub(super) work: u32,
    pub(super) mishap: DemoFailure,
}

/// The mishap of the first attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DemoFailure {
    Nothing,
    /// Its worker is killed in the middle of its work.
    Crash,
    /// The account that it works for has reached its usage limit.
    Limit,
    /// Its work breaks the check of its rig.
    BrokenCheck,
    /// It writes a file that another bead writes at the same time.
    Conflict,
    /// None: a person reviews its work before it lands.
    Review,
}

/// The check of each rig: no file says that it is broken. It takes a moment, as checks do.
pub(super) const CHECK: (&str, &str) = ("whole", "sleep 0.3; ! grep -rqs BROKEN src");

/// The file that two beads write at the same time.
const SHARED_FILE: &str = "src/menu.txt";

/// How many work at once.
pub(super) const CAP: u32 = 4;

/// The account that reaches its limit.
pub(super) const ACCOUNT: &str = "trial";

/// How long that limit lasts, in seconds.
const LIMIT_SECONDS: u32 = 4;

pub(super) const RIGS: [DemoRig; 2] = [
    DemoRig {
        name: "api",
        files: &[("README.md", "The part of the shop that people do not see.\n")],
    },
    DemoRig { name: "web", files: &[("README.md", "The part of the shop that people see.\n")] },
];

/// The epic that they are all parts of.
pub(super) const EPIC: (&str, &str) = ("web-shop", "Open the shop");

const FOUNDATION: &[&str] = &["api-schema"];

/// One foundation, eight parts that can be done in parallel after it, and two that need them.
pub(super) const PARTS: [DemoBead; 11] = [
    part("api-schema", "Agree on the schema", &[], 700),
    part("api-users", "Serve users", FOUNDATION, 900).with(DemoFailure::BrokenCheck),
    part("api-search", "Serve search", FOUNDATION, 1100).with(DemoFailure::Crash),
    part("api-cart", "Serve the cart", FOUNDATION, 800).with(DemoFailure::Conflict),
    part("api-orders", "Serve orders", FOUNDATION, 800).with(DemoFailure::Conflict),
    part("web-users", "Show users", FOUNDATION, 1000),
    part("web-search", "Show search", FOUNDATION, 1200),
    part("web-cart", "Show the cart", FOUNDATION, 700).with(DemoFailure::Limit),
    part("web-orders", "Show orders", FOUNDATION, 900),
    part("web-checkout", "Check out", &["api-cart", "api-orders", "web-cart", "web-orders"], 900)
        .with(DemoFailure::Review),
    part(
        "web-release",
        "Release the shop",
        &["web-checkout", "web-search", "web-users", "api-users", "api-search"],
        500,
    ),
];

const fn part(
    id: &'static str,
    title: &'static str,
    needs: &'static [&'static str],
    work: u32,
) -> DemoBead {
    DemoBead { id, title, needs, work, mishap: DemoFailure::Nothing }
}

impl DemoBead {
    const fn with(self, mishap: DemoFailure) -> Self {
        Self { mishap, ..self }
    }

    pub(super) fn bead_id(&self) -> Result<BeadId> {
        Ok(BeadId::parse(self.id)?)
    }

    /// The description of the bead: the work, as the scripted runtime understands it.
    pub(super) fn description(&self) -> String {
        let mishap = match self.mishap {
            DemoFailure::Nothing | DemoFailure::Review => String::new(),
            DemoFailure::Crash => "first\n  say Something strikes\n  crash\nend\n".to_owned(),
            DemoFailure::Limit => format!("first\n  limit {LIMIT_SECONDS}s\n  fail 1\nend\n"),
            DemoFailure::BrokenCheck => {
                format!("first\n  edit src/{}.txt BROKEN\nend\n", self.id)
            }
            // A worker that repairs a conflict takes what others have landed, and does its own work on top.
            DemoFailure::Conflict => format!("edit {SHARED_FILE} {}\n", self.title),
        };
        let beginning = match self.mishap {
            DemoFailure::Conflict => "run git merge --quiet -X theirs -m Merge origin/main\n",
            _ => "",
        };
        let Self { id, title, work, .. } = self;
        let half = work / 2;
        format!(
            "{title}.\n\n```gt-script\nsay Working on {id}\n{beginning}work {half}\nedit src/{id}.txt {title}\n\
             {mishap}work {half}\ncommit {title}\ndone\n```\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use gt_core::runtime::script::{Script, script_in};

    use super::*;

    #[test]
    fn every_part_can_be_played_in_the_order_it_stands() {
        for (at, part) in PARTS.iter().enumerate() {
            let description = part.description();
            Script::parse(script_in(&description).unwrap()).unwrap();
            assert!(RIGS.iter().any(|rig| part.id.starts_with(rig.name)), "{}", part.id);
            for need in part.needs {
                assert!(PARTS[..at].iter().any(|before| before.id == *need), "{need}");
            }
        }
    }
}
