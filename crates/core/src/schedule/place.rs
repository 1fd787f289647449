//! Named places of workers.

use std::fmt;

use super::polecat::check_polecat_name;
use crate::bead::check_name;
use crate::work::check_agent;
use crate::{ExecutorKind, Invalid, RigSlug};

/// The worker that was named for it: `<rig>/polecats/<name>`, `<rig>/crew/<name>`, or the bare name of an agent that
/// asks for work, which belongs to no rig.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerPlace(String);

impl WorkerPlace {
    /// A polecat of this name.
    pub fn polecat(rig: &RigSlug, name: &str) -> Result<Self, Invalid> {
        check_polecat_name(name)?;
        Ok(Self(format!("{rig}/polecats/{name}")))
    }

    /// A person or standing agent of this name.
    pub fn crew(rig: &RigSlug, name: &str) -> Result<Self, Invalid> {
        check_name("crew name", name)?;
        Ok(Self(format!("{rig}/crew/{name}")))
    }

    /// An agent that asks for work, of this name.
    pub fn agent(name: &str) -> Result<Self, Invalid> {
        check_agent(name)?;
        if name.contains('/') {
            return Err(Invalid(format!(
                "\"{}\" has a / in it, by which a place is told apart from an agent",
                name.escape_debug()
            )));
        }
        Ok(Self(name.to_owned()))
    }

    /// Wraps text that was a place when it was stored.
    pub fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the polecat, if it is one.
    pub fn polecat_name(&self) -> Option<&str> {
        self.0.split_once("/polecats/").map(|(_, name)| name)
    }

    /// Whether this is a person or a standing agent, who needs no process of ours and no slot.
    pub fn is_crew(&self) -> bool {
        self.0.contains("/crew/")
    }

    /// Whether this is an agent that asks for work, who may have more than one thing to come.
    pub fn is_agent(&self) -> bool {
        !self.0.contains('/')
    }

    /// How work is carried out there, if the rig has no say in it.
    pub fn executor(&self) -> Option<ExecutorKind> {
        if self.is_crew() {
            return Some(ExecutorKind::None);
        }
        self.is_agent().then_some(ExecutorKind::Pull)
    }
}

impl fmt::Display for WorkerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
