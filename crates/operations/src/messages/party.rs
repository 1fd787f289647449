//! Who writes and reads.

use gt_core::schedule::Run;
use gt_core::{Address, Sender};
use gt_store::Reader;

use crate::worker::current_run;
use crate::{Result, Town};

/// Whoever writes or reads messages.
#[derive(Debug, Clone)]
pub enum Party {
    /// The worker of a run that is live.
    Worker(Box<Run>),
    /// Somebody with an address of their own.
    Standing(Address),
    /// A person, who reads what the mayor gets.
    Person,
}

impl Party {
    /// Finds out: `GT_RUN` names a worker, else `GT_ROLE` (`role`) or the actor's name may be an address. The worker
    /// of a run that is over is refused.
    pub(crate) fn of(town: &Town, reader: &Reader<'_>, role: Option<&str>) -> Result<Self> {
        if let Some(worker) = town.worker() {
            return Ok(Self::Worker(Box::new(current_run(reader, worker)?)));
        }
        let address = role.and_then(Address::exact).or_else(|| Address::exact(&town.actor().name));
        Ok(address.map_or(Self::Person, Self::Standing))
    }

    /// The addresses whose messages are theirs. What is sent to a bead is for whoever works on it.
    pub fn addresses(&self) -> Vec<Address> {
        match self {
            Self::Worker(run) => {
                let place = run.place.clone().map(Address::Place);
                place.into_iter().chain([Address::Work(run.id.bead.clone())]).collect()
            }
            Self::Standing(address) => vec![address.clone()],
            Self::Person => vec![Address::Mayor],
        }
    }

    /// As whom they write.
    pub(crate) fn sender(&self, town: &Town) -> Sender {
        match self {
            Self::Worker(run) => Sender::Worker(run.id.clone()),
            Self::Standing(address) => Sender::Standing(address.clone()),
            Self::Person => Sender::Person(town.actor().name.clone()),
        }
    }
}
