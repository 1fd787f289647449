//! The process at the other end of a line.

use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::exchange::Exchange;
use super::follow::follow;
use super::protocol::{FromHome, FromThere, Hello, RunPlace};
use super::remote_supervisor::{files_of, runs_root};
use crate::background::spawn;
use crate::calls::{receive, send};
use crate::process::command;
use crate::runs::{
    AskResult, Liveness, RunFiles, ask_to_cancel, become_detached, end_orphan, tell_done,
};

/// This machine, which is the remote one for home.
pub struct RemoteMachine<'a> {
    /// Our own program.
    pub program: PathBuf,
    /// Where relative directories begin.
    pub home: PathBuf,
    /// Puts our program under both of its names into a directory, and gives the path on which it is found first.
    pub path_with_us: &'a dyn Fn(&Path) -> io::Result<String>,
}

/// Speaks to home, from several threads.
#[derive(Debug, Clone, Default)]
pub(super) struct HomeWriter(Arc<Mutex<()>>);

impl HomeWriter {
    pub(super) fn say(&self, message: &FromThere, payload: &[u8]) -> io::Result<()> {
        let _turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        send(&mut io::stdout().lock(), message, payload)
    }
}

/// The run that a line is about.
struct AttendedRun {
    files: RunFiles,
    grace: Duration,
}

/// Serves one line: greets, and does what home says until home hangs up. Runs that were started go
/// on then.
pub fn attend(over: &RemoteMachine) -> io::Result<()> {
    // The end of the session that sshd made for us must not end the runs that we start.
    become_detached()?;
    let mut out = io::stdout().lock();
    out.write_all(Hello::ours().line().as_bytes())?;
    out.flush()?;
    drop(out);
    let voice = HomeWriter::default();
    let mut input = BufReader::new(io::stdin());
    let (mut subject, mut orders) = (None::<AttendedRun>, None::<ChildStdin>);
    let mut exchange = None::<Exchange>;
    while let Some((message, payload)) = receive::<FromHome>(&mut input)? {
        match message {
            FromHome::Begin(place) => {
                if let Some(why) = earlier_alive(over, &place) {
                    voice.say(&FromThere::Refused { why, busy: true }, &[])?;
                    continue;
                }
                let files = files_of(over, &place);
                let grace = Duration::from_millis(place.grace_ms);
                match begin(over, &place, &files, &voice) {
                    Ok(to_keeper) => orders = Some(to_keeper),
                    Err(error) => {
                        let why = format!("cannot begin in {}: {error}", files.root().display());
                        voice.say(&FromThere::Refused { why, busy: false }, &[])?;
                    }
                }
                subject = Some(AttendedRun { files, grace });
            }
            FromHome::Order(order) => {
                // A supervisor that has gone has told why, or the lock does.
                if let (Some(mut supervisor), Some(AttendedRun { files, .. })) =
                    (orders.take(), &subject)
                {
                    exchange = Exchange::open(&files.socket_path(), &voice);
                    let _ = send(&mut supervisor, &FromHome::Order(order), &payload);
                }
            }
            FromHome::Join { place, output_from } => {
                let files = files_of(over, &place);
                let grace = Duration::from_millis(place.grace_ms);
                match liveness(&files) {
                    Err(why) => voice.say(&FromThere::Unknown { why }, &[])?,
                    Ok(liveness) => {
                        if liveness == Liveness::Held {
                            exchange = Exchange::open(&files.socket_path(), &voice);
                            voice.say(&FromThere::Alive, &[])?;
                        }
                        let (followed, voice) = (files.clone(), voice.clone());
                        thread::Builder::new()
                            .spawn(move || told(follow(&followed, output_from, &voice), &voice))?;
                    }
                }
                subject = Some(AttendedRun { files, grace });
            }
            FromHome::Cancel => {
                if let Some(AttendedRun { files, grace }) = &subject {
                    let (files, grace) = (files.clone(), *grace);
                    thread::Builder::new().spawn(move || end(&files, grace))?;
                }
            }
            FromHome::Leave => {
                if let Some(AttendedRun { files, .. }) = &subject {
                    // An agent without a supervisor ends when it likes.
                    let _ = tell_done(files);
                }
            }
            FromHome::Said { call, stream } => {
                if let Some(exchange) = &exchange {
                    exchange.said(call, stream, &payload);
                }
            }
            FromHome::InputWanted { call } => {
                if let Some(exchange) = &exchange {
                    exchange.input_wanted(call);
                }
            }
            FromHome::Answered { call, status } => {
                if let Some(exchange) = &exchange {
                    exchange.answered(call, status);
                }
            }
        }
    }
    Ok(())
}

/// Tells home that following a run failed.
fn told(followed: io::Result<()>, voice: &HomeWriter) {
    if let Err(error) = followed {
        // If home has hung up, that was the reason.
        let _ = voice.say(&FromThere::Unknown { why: error.to_string() }, &[]);
    }
}

/// Has a supervisor take the lock of a run, and passes on its messages. Gives the way to order it.
fn begin(
    over: &RemoteMachine,
    place: &RunPlace,
    files: &RunFiles,
    voice: &HomeWriter,
) -> io::Result<ChildStdin> {
    files.create()?;
    let log =
        crate::private::options().append(true).create(true).open(files.supervisor_log_path())?;
    let mut supervisor = command(&over.program);
    supervisor
        .args(["worker", "remote", "--keep"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log);
    let mut child = spawn(&mut supervisor)?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (mut orders, said) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
    send(&mut orders, &FromHome::Begin(place.clone()), &[])?;
    let (files, voice) = (files.clone(), voice.clone());
    thread::Builder::new().spawn(move || {
        if is_followed(BufReader::new(said), &files, &voice) {
            told(follow(&files, 0, &voice), &voice);
        }
        let _ = child.wait();
    })?;
    Ok(orders)
}

/// Passes on the messages of a supervisor until it has started its agent or says why not; says whether
/// there is a run to follow then.
fn is_followed(mut said: impl BufRead, files: &RunFiles, voice: &HomeWriter) -> bool {
    while let Ok(Some((message, _))) = receive::<FromThere>(&mut said) {
        // If home has hung up, there is nothing to be said.
        let _ = voice.say(&message, &[]);
        match message {
            FromThere::Started => return true,
            FromThere::NotStarted { .. } | FromThere::Refused { .. } => return false,
            _ => {}
        }
    }
    // It has gone without a word, and its agent may be there.
    if files.liveness().is_ok_and(|liveness| liveness == Liveness::Held) {
        let _ = voice.say(&FromThere::Alive, &[]);
    }
    true
}

/// Whether a run can be told of.
fn liveness(files: &RunFiles) -> Result<Liveness, String> {
    let lock = files.lock_path();
    match files.liveness() {
        Ok(Liveness::NeverTaken) => Err(format!("{} is not there any more", lock.display())),
        Ok(liveness) => Ok(liveness),
        Err(error) => Err(format!("{} cannot be read: {error}", lock.display())),
    }
}

/// A run of the same bead of which a process is left. The process that begins the next knows that
/// it is over, so it is ended.
fn earlier_alive(over: &RemoteMachine, place: &RunPlace) -> Option<String> {
    for earlier in &place.earlier {
        let files = RunFiles::of(&runs_root(over, place), earlier);
        match files.liveness() {
            Ok(Liveness::Held) => {
                let grace = Duration::from_millis(place.grace_ms);
                // Should it not end, it is there the next time too.
                if !ask_to_cancel(&files).is_ok_and(|asked| asked == AskResult::Told) {
                    let _ = end_orphan(&files, grace);
                }
                return Some(format!("{earlier} has not ended yet"));
            }
            Ok(Liveness::Free | Liveness::NeverTaken) => {}
            Err(error) => {
                let lock = files.lock_path();
                return Some(format!(
                    "cannot tell from {} whether {earlier} has ended: {error}",
                    lock.display()
                ));
            }
        }
    }
    None
}

/// How long apart it is tried to end a run that does not react.
const END_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Has everything of a run ended, whether or not its supervisor is there.
fn end(files: &RunFiles, grace: Duration) {
    while files.liveness().is_ok_and(|liveness| liveness == Liveness::Held) {
        if ask_to_cancel(files).is_ok_and(|asked| asked == AskResult::Told) {
            return;
        }
        // Either it is about to listen, or it is dead and its agent is not.
        let _ = end_orphan(files, grace);
        thread::sleep(END_RETRY_INTERVAL);
    }
}
