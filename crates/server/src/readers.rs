//! The few threads that read single things.
//!
//! Such a read is over in less time than it takes to wake a thread for it. So there are few of these, and whoever is awake
//! takes what has come meanwhile: the more is asked, the less is spent on waking. What may take longer, such as a list,
//! is not for them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Something to read.
type Job = Box<dyn FnOnce() + Send>;

/// The way to the threads. They end when this is dropped and everything is read.
#[derive(Debug)]
pub(crate) struct Readers(Arc<Desk>);

#[derive(Debug, Default)]
struct Desk {
    state: Mutex<State>,
    called: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("jobs", &self.jobs.len()).finish_non_exhaustive()
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // Whoever waits for a job that panics hears that nobody answers; the next one is read all the same.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                state = self.state();
            } else if state.is_closed {
                return;
            } else {
                state.idle += 1;
                state = self.called.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

impl Readers {
    /// Starts so many.
    pub(crate) fn start(threads: usize) -> std::io::Result<Self> {
        let readers = Self(Arc::default());
        for _ in 0..threads {
            let desk = Arc::clone(&readers.0);
            let thread = std::thread::Builder::new().name("gt-serve-read".to_owned());
            thread.spawn(move || desk.read())?;
        }
        Ok(readers)
    }

    /// Has something read, and gives what came of it; nothing if that panicked.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = tokio::sync::oneshot::channel();
        let job: Job = Box::new(move || {
            // Whoever asked may have gone.
            let _ = tell.send(work());
        });
        let mut state = self.0.state();
        state.jobs.push_back(job);
        let somebody_sleeps = state.idle > 0;
        drop(state);
        if somebody_sleeps {
            self.0.called.notify_one();
        }
        told.await.ok()
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.called.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    fn wait<T>(what: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(what)
    }

    #[test]
    fn everybody_gets_their_own_answer_from_few_threads() {
        let readers = Readers::start(2).unwrap();
        let asked = (0..1000).map(|number| readers.read(move || number * 2));
        let answers = wait(join_all(asked));
        assert_eq!(answers, (0..1000).map(|number| Some(number * 2)).collect::<Vec<_>>());
    }

    #[test]
    fn a_read_that_panics_concerns_nobody_else() {
        let readers = Readers::start(1).unwrap();
        assert_eq!(wait(readers.read(|| -> u8 { panic!("on purpose") })), None);
        assert_eq!(wait(readers.read(|| 7)), Some(7));
    }
}
