//! Something between a store and its server that fails on command.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use gt_testkit::Cluster;

/// A fault that happens once.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The line is cut when the client is about to say this.
    CutBefore(&'static str),
    /// The server hears this and does it, but the line is cut before the answer comes back.
    LoseAnswerTo(&'static str),
    /// The client is cut off when it is about to say this, and the server does not notice.
    LeaveServerWaiting(&'static str),
    /// When the client says this nothing passes any more, and neither side notices.
    Swallow(&'static str),
}

impl Fault {
    fn needle(self) -> &'static str {
        match self {
            Self::CutBefore(text)
            | Self::LoseAnswerTo(text)
            | Self::LeaveServerWaiting(text)
            | Self::Swallow(text) => text,
        }
    }
}

/// Passes on the messages between clients and server.
pub(super) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    fault: Mutex<Option<Fault>>,
    /// Takes connections and says nothing.
    silent: AtomicBool,
    /// Takes connections and ends them.
    closed: AtomicBool,
    over: AtomicBool,
    lines: Mutex<Vec<(TcpStream, Option<UnixStream>)>>,
}

impl Proxy {
    /// Stands before the server that all tests share.
    pub(super) fn start() -> Self {
        Self::before(Cluster::shared().socket())
    }

    /// Stands before the server, or the pooler, that listens on this socket.
    pub(super) fn before(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &socket, &theirs));
        Self { port, shared }
    }

    /// The way through here to the database that `direct` leads to.
    pub(super) fn url(&self, direct: &str, parameters: &str) -> String {
        let (port, database) = (self.port, super::database(direct));
        format!("postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable&{parameters}")
    }

    /// Lets this go wrong the next time it can.
    pub(super) fn arm(&self, fault: Fault) {
        *self.shared.fault.lock().expect("no thread panics") = Some(fault);
    }

    /// Whether the fault has happened.
    pub(super) fn has_struck(&self) -> bool {
        self.shared.fault.lock().expect("no thread panics").is_none()
    }

    /// Accepts new connections from now on, but answers none of them.
    pub(super) fn fall_silent(&self) {
        self.shared.silent.store(true, Ordering::SeqCst);
    }

    /// Refuses new connections from now on.
    pub(super) fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
    }

    /// Lets clients through again.
    pub(super) fn reopen(&self) {
        self.shared.closed.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        for (client, server) in &*self.shared.lines.lock().expect("no thread panics") {
            let _ = client.shutdown(Shutdown::Both);
            if let Some(server) = server {
                let _ = server.shutdown(Shutdown::Both);
            }
        }
    }
}

fn accept(listener: &TcpListener, socket: &PathBuf, shared: &Arc<Shared>) {
    while let Ok((client, _)) = listener.accept() {
        if shared.over.load(Ordering::SeqCst) {
            return;
        }
        if shared.closed.load(Ordering::SeqCst) {
            continue;
        }
        let mut lines = shared.lines.lock().expect("no thread panics");
        if shared.silent.load(Ordering::SeqCst) {
            lines.push((client, None));
            continue;
        }
        // While the server restarts there is none.
        let Ok(server) = UnixStream::connect(socket) else { continue };
        let copy = || (client.try_clone().expect("clone"), server.try_clone().expect("clone"));
        let (forth, back, kept) = (copy(), copy(), copy());
        lines.push((kept.0, Some(kept.1)));
        drop(lines);
        let muted = Arc::new(Mutex::new(None));
        let (theirs, mute) = (Arc::clone(shared), Arc::clone(&muted));
        thread::spawn(move || pump_forth(forth.0, forth.1, &theirs, &mute));
        thread::spawn(move || pump_back(back.1, back.0, &muted));
    }
}

/// How answers are treated: they pass, or they are dropped until this is among them.
type Muted = Mutex<Option<&'static str>>;

/// Never comes in an answer.
const NEVER: &str = "\u{1}never\u{1}";

fn pump_forth(mut client: TcpStream, mut server: UnixStream, shared: &Shared, muted: &Muted) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let said = &buffer[..count];
        let fault = {
            let mut armed = shared.fault.lock().expect("no thread panics");
            armed.take_if(|fault| contains(said, fault.needle()))
        };
        match fault {
            None => {}
            Some(Fault::CutBefore(_)) => break,
            Some(Fault::LoseAnswerTo(text)) => {
                *muted.lock().expect("no thread panics") = Some(text);
            }
            Some(Fault::LeaveServerWaiting(_)) => {
                let _ = client.shutdown(Shutdown::Both);
                return;
            }
            Some(Fault::Swallow(_)) => {
                *muted.lock().expect("no thread panics") = Some(NEVER);
                while let Ok(1..) = client.read(&mut buffer) {}
                return;
            }
        }
        if server.write_all(said).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn pump_back(mut server: UnixStream, mut client: TcpStream, muted: &Muted) {
    let mut buffer = vec![0; 64 * 1024];
    let mut dropped = Vec::new();
    while let Ok(count @ 1..) = server.read(&mut buffer) {
        let said = &buffer[..count];
        if let Some(end) = *muted.lock().expect("no thread panics") {
            dropped.extend_from_slice(said);
            if contains(&dropped, end) {
                break;
            }
        } else if client.write_all(said).is_err() {
            break;
        }
    }
    if *muted.lock().expect("no thread panics") != Some(NEVER) {
        let _ = client.shutdown(Shutdown::Both);
    }
    let _ = server.shutdown(Shutdown::Both);
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
