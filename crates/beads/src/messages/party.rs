//! The writers and readers of messages.

use gt_core::schedule::Run;
use gt_core::{MessageAddress, Sender};
use gt_store::Reader;

use crate::acting::current_run;
use gt_town::{Result, Town};

/// A writer or reader of messages.
#[derive(Debug, Clone)]
pub enum MessageParty {
    /// The worker of a run that is live.
    Worker(Box<Run>),
    /// A role with an address of its own.
    Standing(MessageAddress),
    /// A person, who reads the messages to the mayor.
    Person,
}

impl MessageParty {
    /// The party of the caller: `GT_RUN` names a worker, else `GT_ROLE` (`role`) or the actor's name may be an
    /// address. The worker of a run that is over is refused.
    pub fn of(town: &Town, reader: &Reader<'_>, role: Option<&str>) -> Result<Self> {
        if let Some(worker) = town.worker() {
            return Ok(Self::Worker(Box::new(current_run(reader, worker)?)));
        }
        let address = role
            .and_then(MessageAddress::exact)
            .or_else(|| MessageAddress::exact(&town.actor().name));
        Ok(address.map_or(Self::Person, Self::Standing))
    }

    /// The addresses whose messages are theirs. A message to a bead is for the worker of the bead.
    pub fn addresses(&self) -> Vec<MessageAddress> {
        match self {
            Self::Worker(run) => {
                let place = run.place.clone().map(MessageAddress::Place);
                place.into_iter().chain([MessageAddress::Work(run.id.bead.clone())]).collect()
            }
            Self::Standing(address) => vec![address.clone()],
            Self::Person => vec![MessageAddress::Mayor],
        }
    }

    /// The sender of their messages.
    pub fn sender(&self, town: &Town) -> Sender {
        match self {
            Self::Worker(run) => Sender::Worker(run.id.clone()),
            Self::Standing(address) => Sender::Standing(address.clone()),
            Self::Person => Sender::Person(town.actor().name.clone()),
        }
    }
}
