//! Signals that a daemon is sent.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// The signals that we received. Programs that are started meanwhile get signals as usual.
#[derive(Debug)]
pub struct Signals {
    news: UnixStream,
    stop: Arc<AtomicBool>,
    hangup: Arc<AtomicBool>,
}

impl Signals {
    /// From now on `TERM` and `INT` ask us to stop, and `HUP` asks for a fresh look. A second `INT` ends us at once.
    pub fn listen() -> io::Result<Self> {
        let (news, tell) = UnixStream::pair()?;
        news.set_nonblocking(true)?;
        let (stop, hangup) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        // In this order: the first one sets what the second one finds.
        flag::register_conditional_default(SIGINT, Arc::clone(&stop))?;
        flag::register(SIGINT, Arc::clone(&stop))?;
        flag::register(SIGTERM, Arc::clone(&stop))?;
        flag::register(SIGHUP, Arc::clone(&hangup))?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            low_level::pipe::register(signal, tell.try_clone()?)?;
        }
        Ok(Self { news, stop, hangup })
    }

    /// Whether we were asked to stop.
    pub fn stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Whether a signal of any kind is still to be handled.
    pub fn is_rung(&self) -> bool {
        self.stop() || self.hangup.load(Ordering::SeqCst)
    }

    /// Whether we were asked for a fresh look since the last time.
    pub fn take_hangup(&self) -> bool {
        let mut news = &self.news;
        while news.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        self.hangup.swap(false, Ordering::SeqCst)
    }
}

impl AsFd for Signals {
    /// Can be read from when there was a signal.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}
