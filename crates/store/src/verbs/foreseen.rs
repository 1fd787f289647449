//! What is going to be asked, made ready before it is: to prepare a statement takes longer than most of them do, and somebody
//! waits for the answer, while whoever is going to ask it waits for something else.

use super::{beads, blocking, contexts, convoys, dependencies, parks, polecats, rigs, runs, usage};
use crate::transaction;
use crate::{Reader, StoreError};

impl Reader<'_> {
    /// Makes everything ready with which a run is taken.
    pub fn prepare_claim(&self) -> Result<(), StoreError> {
        let reads =
            [runs::ONE, rigs::ONE, contexts::BY_NUMBER, blocking::EDGES_TO, blocking::PARENTS];
        let writes = [runs::CLAIM, beads::TAKE, contexts::CLOSE, polecats::PUT];
        self.make_ready(&[&reads[..], &writes, transaction::STATEMENTS].concat())?;
        self.make_ready(&[&beads::one()])
    }

    /// Makes everything ready with which a run ends that did what it was to do.
    pub fn prepare_end(&self) -> Result<(), StoreError> {
        let used = [usage::NOTE, usage::ESTIMATES, usage::ESTIMATE];
        let ended = [runs::ACCEPT, runs::END, parks::OF_RUN, beads::UPDATE];
        let closed = [blocking::OPEN_CHILD, dependencies::TO, contexts::LATEST];
        let landed = [convoys::OF_BEAD, convoys::PUT];
        self.make_ready(&[&used[..], &ended, &closed, &landed].concat())
    }
}
