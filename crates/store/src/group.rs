//! Many writers, one commit.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::Backend;
use crate::store::WriteMode;
use crate::transaction::{Group, Writer};
use crate::{Authorship, StoreError};

/// Jobs that may wait before a submitter has to.
const WAITING_JOBS_MAX: usize = 1024;

/// Runs inside the group's transaction (or hears why there is none) and leaves behind the answer for its
/// submitter once that is over.
type GroupJob = Box<dyn FnOnce(Result<&mut Group<'_>, &str>) -> GroupAnswer + Send>;
type GroupAnswer = Box<dyn FnOnce(Result<(), &StoreError>) + Send>;

/// Where submitted jobs wait for the thread that writes them. The thread starts with the first job
/// and ends when the store is dropped.
#[derive(Default)]
pub(crate) struct Queue {
    sender: Mutex<Option<SyncSender<GroupJob>>>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

/// The promise of an answer to a submitted write.
#[derive(Debug)]
pub struct Ticket<T, E> {
    answer: Receiver<Result<T, E>>,
}

impl<T, E: From<StoreError>> Ticket<T, E> {
    /// Waits until the write is durable, or was refused.
    pub fn wait(self) -> Result<T, E> {
        self.answer.recv().unwrap_or_else(|_| {
            Err(StoreError::NotCommitted("it was dropped by a failing writer".to_owned()).into())
        })
    }
}

impl Queue {
    pub(crate) fn submit<T, E>(
        &self,
        place: &Arc<Backend>,
        by: Authorship,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, E> + Send + 'static,
    ) -> Ticket<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (tell, answer) = mpsc::sync_channel(1);
        let job: GroupJob = Box::new(move |group| {
            let result = match group {
                Ok(group) => group.run_apart(&by, work),
                Err(why) => Err(StoreError::NotCommitted(why.to_owned()).into()),
            };
            Box::new(move |committed| {
                let final_result = match committed {
                    Ok(()) => result,
                    Err(why) => result.and(Err(shared(why).into())),
                };
                // The submitter may have gone away; the write stands all the same.
                let _ = tell.send(final_result);
            })
        });
        // If the thread could not be started the job is dropped, and with it the ticket's sender.
        if let Ok(sender) = self.sender(place) {
            let _ = sender.send(job);
        }
        Ticket { answer }
    }

    fn sender(&self, place: &Arc<Backend>) -> std::io::Result<SyncSender<GroupJob>> {
        let mut slot = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*slot {
            return Ok(sender.clone());
        }
        let (sender, receiver) = mpsc::sync_channel(WAITING_JOBS_MAX);
        let place = Arc::clone(place);
        std::thread::Builder::new()
            .name("gt-store-writer".to_owned())
            .spawn(move || write_groups(&place, &receiver))?;
        *slot = Some(sender.clone());
        Ok(sender)
    }
}

/// Takes the jobs that arrived while the last group was being made durable, and writes them as the next
/// one. There is no timer: an idle store answers at once, a busy one fills its groups by itself.
fn write_groups(place: &Backend, jobs: &Receiver<GroupJob>) {
    while let Ok(first) = jobs.recv() {
        let mut waiting = VecDeque::from([first]);
        waiting.extend(jobs.try_iter().take(place.group_max() - 1));
        let mut settlements: Vec<GroupAnswer> = Vec::with_capacity(waiting.len());
        let committed = place.write(WriteMode::Grouped, |group| {
            while let Some(job) = waiting.pop_front() {
                // A job that panics loses its own changes with its savepoint, and its ticket.
                match catch_unwind(AssertUnwindSafe(|| job(Ok(group)))) {
                    Ok(settle) => settlements.push(settle),
                    Err(_) => group.undo_job()?,
                }
            }
            Ok::<_, StoreError>(((), true))
        });
        let unheard = committed.as_ref().err().map(ToString::to_string);
        for settle in settlements {
            settle(committed.as_ref().copied());
        }
        // Those whose turn never came hear of it too: of theirs nothing was done.
        for job in waiting {
            let never = unheard.as_deref().unwrap_or("its turn never came");
            job(Err(never))(Ok(()));
        }
    }
}

/// The error of each write in a group that failed as a whole.
fn shared(why: &StoreError) -> StoreError {
    match why {
        StoreError::Unsettled(server) => StoreError::Unsettled(server.clone()),
        other => StoreError::NotCommitted(other.to_string()),
    }
}
