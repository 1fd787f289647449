//! A supervisor that is started before it is known which run it gets: it has everything open, and waits at a named pipe for
//! its one order.
//!
//! The kernel says who is there. Whoever keeps it holds the pipe open for writing, and when the last who does is gone
//! before there was an order, the supervisor leaves. Whoever has an order opens the pipe, which works only while it listens.
//! With the order it takes the pipe away, so that nobody gives it a second one.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::control::make_pipe;

/// How often it is looked whether one that is being started listens.
const LOOK_AGAIN: Duration = Duration::from_micros(500);

/// How long a supervisor waits for somebody who keeps it: whoever started it may be dead.
const ALONE_MAX: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Where the supervisor in a session waits for its order.
pub fn post_of(runs: &Path, session: &str) -> PathBuf {
    runs.join(format!("standing-by-{session}.orders"))
}

/// Makes the pipe at which a supervisor is going to wait. `false` if there is one: somebody else has had the same thought.
pub fn make_post(post: &Path) -> io::Result<bool> {
    match make_pipe(post) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// A supervisor that waits for its order. When this is dropped before it has one, it leaves.
#[derive(Debug)]
pub struct Standby {
    // Closing it is what the supervisor hears.
    _kept: File,
}

impl Standby {
    /// Waits until the supervisor listens that was started for this pipe, but no longer than this. If it does not, the pipe
    /// is taken away.
    pub fn wait(post: &Path, limit: Duration) -> Option<Self> {
        listening_within(post, limit).map(|kept| Self { _kept: kept })
    }
}

/// Gives an order to the supervisor that waits at a pipe; one that is only being started is waited for, but no longer than
/// this. Whether it was given. Otherwise nobody is there, and nobody comes any more.
pub fn give_order(post: &Path, line: &str, limit: Duration) -> bool {
    listening_within(post, limit)
        .is_some_and(|mut pipe| pipe.write_all(format!("{line}\n").as_bytes()).is_ok())
}

/// Whether a supervisor waits at a pipe now. What one left that was killed is taken away.
pub fn is_listened_to(post: &Path) -> bool {
    listening_within(post, Duration::ZERO).is_some()
}

/// The end of a pipe that somebody listens to. If nobody does when the time is up, it is taken away: whoever comes later finds
/// none, and leaves.
fn listening_within(post: &Path, limit: Duration) -> Option<File> {
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let began = Instant::now();
    loop {
        match File::options().write(true).custom_flags(at_once).open(post) {
            Ok(pipe) => return Some(pipe),
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {}
            Err(_) => return None,
        }
        if began.elapsed() >= limit {
            let _ = std::fs::remove_file(post);
            return None;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// The place of a supervisor that waits.
#[derive(Debug)]
pub struct Post {
    pipe: File,
    path: PathBuf,
}

impl Post {
    /// Begins to listen.
    pub fn take(path: &Path) -> io::Result<Self> {
        // Without waiting for somebody who writes: whether anybody does is asked later.
        let at_once = OFlags::NONBLOCK.bits().cast_signed();
        let pipe = File::options().read(true).custom_flags(at_once).open(path)?;
        Ok(Self { pipe, path: path.to_owned() })
    }

    /// Waits for the order; nothing if nobody is there any more who could give one.
    pub fn order(self) -> io::Result<Option<String>> {
        let mut heard = Vec::new();
        let (mut is_kept, mut is_left) = (false, false);
        loop {
            let mut more = [0; 1024];
            match (&self.pipe).read(&mut more) {
                Ok(0) if is_left => break,
                // Nobody has it open yet.
                Ok(0) => {}
                Ok(read) => heard.extend_from_slice(&more[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => is_kept = true,
                Err(error) => return Err(error),
            }
            if let Some(end) = heard.iter().position(|byte| *byte == b'\n') {
                heard.truncate(end);
                break;
            }
            let limit = (!is_kept).then_some(ALONE_MAX);
            let mut polled = [PollFd::new(&self.pipe, PollFlags::IN)];
            match poll(&mut polled, limit.as_ref()) {
                // Whoever has come meanwhile without a word is seen by the next read.
                Ok(0) => is_left = true,
                Ok(_) => is_left = polled[0].revents().contains(PollFlags::HUP),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Whoever comes now finds nobody.
        let _ = std::fs::remove_file(&self.path);
        Ok(String::from_utf8(heard).ok().filter(|order| !order.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_mins(1);

    fn post() -> (tempfile::TempDir, PathBuf) {
        let runs = tempfile::tempdir().unwrap();
        let post = post_of(runs.path(), "we-furiosa");
        assert!(make_post(&post).unwrap());
        assert!(!make_post(&post).unwrap());
        (runs, post)
    }

    #[test]
    fn one_that_waits_gets_one_order_from_whoever_has_it() {
        let (_runs, path) = post();
        let post = Post::take(&path).unwrap();
        let kept = Standby::wait(&path, LONG).unwrap();
        let waits = thread::spawn(move || post.order().unwrap());
        assert!(give_order(&path, "we-1#1 web/polecats/furiosa", LONG));
        assert_eq!(waits.join().unwrap().as_deref(), Some("we-1#1 web/polecats/furiosa"));
        assert!(!give_order(&path, "we-2#1 web/polecats/furiosa", LONG));
        drop(kept);
    }

    #[test]
    fn one_whose_keeper_is_gone_leaves() {
        let (_runs, path) = post();
        let post = Post::take(&path).unwrap();
        let kept = Standby::wait(&path, LONG).unwrap();
        let waits = thread::spawn(move || post.order().unwrap());
        drop(kept);
        assert_eq!(waits.join().unwrap(), None);
        assert!(!path.exists());
    }

    #[test]
    fn an_order_is_heard_although_whoever_gave_it_is_gone_and_the_keeper_too() {
        let (_runs, path) = post();
        let post = Post::take(&path).unwrap();
        let kept = Standby::wait(&path, LONG).unwrap();
        assert!(give_order(&path, "we-1#1 a", LONG));
        drop(kept);
        assert_eq!(post.order().unwrap().as_deref(), Some("we-1#1 a"));
    }

    #[test]
    fn where_nobody_comes_to_listen_nobody_waits_for_long_and_nothing_is_left() {
        let (_runs, path) = post();
        assert!(!give_order(&path, "we-1#1 a", SHORT));
        assert!(!path.exists());
        assert!(make_post(&path).unwrap());
        assert!(Standby::wait(&path, SHORT).is_none());
        assert!(!path.exists());
    }
}
