//! The process that stays with an agent on another machine, with or without a line to home.

use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::attendant::RemoteMachine;
use super::protocol::{FromHome, FromThere, RemoteOrder, RemoteReady, RunPlace};
use crate::calls::{SOCKET_BYTES_MAX, SOCKETS, receive, send};
use crate::process::ProcessError;
use crate::runs::{Agent, RunFiles, Supervision, become_detached, boot_identity};
use crate::terminal::Launcher;

/// How long an order is waited for once the lock is taken. A later one is too late, and home knows.
const ORDER_TIMEOUT: Duration = Duration::from_mins(2);

/// Where the runs of a town keep their files over there.
pub(super) fn files_of(over: &RemoteMachine, place: &RunPlace) -> RunFiles {
    RunFiles::of(&runs_root(over, place), &place.run)
}

/// The directory of all runs of a town.
pub(super) fn runs_root(over: &RemoteMachine, place: &RunPlace) -> PathBuf {
    // The name of a town is an identity: it has nothing in it that leads elsewhere, or is not used.
    let town: String =
        place.town.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    directory_of(over, place).join(".gt").join("runs").join(town)
}

/// Where agents work.
fn directory_of(over: &RemoteMachine, place: &RunPlace) -> PathBuf {
    let below_home = place.directory.strip_prefix("~/").unwrap_or(&place.directory);
    over.home.join(below_home)
}

/// Carries out one run for an attendant that speaks to us through our standard streams: takes its lock, waits for the
/// order, executes the agent and stays with it. When the attendant has gone, this goes on.
pub fn keep(over: &RemoteMachine) -> io::Result<()> {
    become_detached()?;
    let mut input = BufReader::new(io::stdin());
    let Some((FromHome::Begin(place), _)) = receive(&mut input)? else { return Ok(()) };
    let refused = |why: String, busy| say(&FromThere::Refused { why, busy });
    let files = files_of(over, &place);
    let lock = match files.try_lock() {
        Ok(Some(lock)) => lock,
        Ok(None) => {
            refused(format!("another supervisor has {}", place.run), true);
            return Ok(());
        }
        Err(error) => {
            refused(format!("cannot lock {}: {error}", files.lock_path().display()), false);
            return Ok(());
        }
    };
    let ready = match ready(over, &files) {
        Ok(ready) => ready,
        Err(why) => {
            refused(why, false);
            return Ok(());
        }
    };
    say(&FromThere::Ready(ready.clone()));
    let (hear, heard) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        // The receiver is gone when the order comes too late.
        let _ = hear.send(receive(&mut input));
    })?;
    let Ok(Ok(Some((FromHome::Order(order), prompt)))) = heard.recv_timeout(ORDER_TIMEOUT) else {
        return Ok(());
    };
    let ended = agent_of(over, &place, &ready, order, prompt)
        .map_err(|error| error.to_string())
        .and_then(|agent| {
            let grace = Duration::from_millis(place.grace_ms);
            let started = || say(&FromThere::Started);
            let stayed = Supervision::default().stay_with(&files, &lock, &agent, grace, started);
            stayed.map_err(|error| explained(&error))
        });
    if let Err(why) = ended {
        // A run that has no output was not begun.
        let is_empty = |output: fs::Metadata| output.len() == 0;
        if fs::metadata(files.output_path()).is_ok_and(is_empty) {
            fs::remove_file(files.output_path())?;
        }
        say(&FromThere::NotStarted { why });
    }
    Ok(())
}

fn say(message: &FromThere) {
    // An attendant that has gone needs no answer; the next one looks at the lock.
    let _ = send(&mut io::stdout().lock(), message, &[]);
}

fn explained(error: &ProcessError) -> String {
    match error {
        ProcessError::Start { program, source } => format!("cannot start {program}: {source}"),
        ProcessError::Failed { .. } => error.to_string(),
    }
}

/// The facts that home needs for its order.
fn ready(over: &RemoteMachine, files: &RunFiles) -> Result<RemoteReady, String> {
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            format!("the path {} is not text; choose another directory", path.display())
        })
    };
    let socket = text(&files.socket_path())?;
    if socket.len() > SOCKET_BYTES_MAX || socket.contains(':') {
        return Err(format!(
            "the path {socket} is too long for a socket, or has a colon; choose another directory"
        ));
    }
    let prompt_file = text(&files.prompt_path())?;
    Ok(RemoteReady { gt: text(&over.program)?, prompt_file, socket, boot: boot_identity() })
}

fn agent_of(
    over: &RemoteMachine,
    place: &RunPlace,
    ready: &RemoteReady,
    order: RemoteOrder,
    prompt: Vec<u8>,
) -> io::Result<Agent> {
    let directory = directory_of(over, place);
    if let Some(text) = &order.prompt_file {
        crate::private::write(Path::new(&ready.prompt_file), text)?;
    }
    let mut environment = order.environment;
    environment.push((SOCKETS.to_owned(), ready.socket.clone()));
    environment.push(("PATH".to_owned(), (over.path_with_us)(&directory.join(".gt").join("bin"))?));
    let terminal = order.terminal.then(|| Launcher::of(&over.program));
    Ok(Agent { argv: order.argv, directory, environment, prompt, terminal, prompter: None })
}
