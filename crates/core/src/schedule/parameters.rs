//! How work is to be done, as it was said when it was scheduled.

use crate::{BeadId, Invalid};

/// How the work of a run reaches the target branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Merge {
    /// It lands at once.
    Direct,
    /// It goes through the merge queue.
    Mr,
    /// Its branch is kept.
    Local,
    /// By a pull request that people merge on the hosting service.
    Pr,
}

impl Merge {
    /// Every strategy.
    pub const ALL: [Self; 4] = [Self::Direct, Self::Mr, Self::Local, Self::Pr];

    /// The strategy of this name.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::ALL.into_iter().find(|merge| merge.as_str() == text).ok_or_else(|| {
            let shown = text.chars().take(60).collect::<String>();
            Invalid(format!(
                "\"{}\" is not a merge strategy; use direct, mr, pr or local",
                shown.escape_debug()
            ))
        })
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Mr => "mr",
            Self::Local => "local",
            Self::Pr => "pr",
        }
    }
}

/// The parameters of a sling that the scheduler only carries to the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SlingParameters {
    /// The recipe to apply; none for the raw bead.
    pub formula: Option<String>,
    /// Instructions in plain words.
    pub args: Option<String>,
    /// Values for the recipe's variables.
    pub vars: Vec<(String, String)>,
    /// How the work reaches the target branch.
    pub merge: Option<Merge>,
    /// The convoy it belongs to.
    pub convoy: Option<BeadId>,
    /// The branch to begin from, if not the rig's own.
    pub base_branch: Option<String>,
    /// The branch is pushed and kept, and not merged.
    pub no_merge: bool,
    /// A person reviews it before it is over.
    pub review_only: bool,
    /// A person has to approve it before it lands, however it lands.
    pub review: bool,
    /// The preset that says which program works (the flag `--agent` names it).
    pub runtime: Option<String>,
    /// The bead goes to the worker as it is.
    pub hook_raw_bead: bool,
    /// The actor that scheduled it looks after the convoy.
    pub owned: bool,
    /// A fresh session for each step.
    pub ralph: bool,
    /// How often a run that failed is tried again.
    pub retries: u32,
    /// The host that is to start it, as runs name hosts.
    pub host: Option<String>,
}
