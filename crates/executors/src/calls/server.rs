//! The socket at which workers on this machine call.

use std::fs::{self, Permissions};
use std::io::{self, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::Shutdown;

use super::caller_connection::{CallerConnection, CallerFiles, CallerInput};
use super::frames::{receive, send};
use super::peer::is_of_this_user;
use super::protocol::{CALL_PROTOCOL, CallReply, CallRequest, CallerMessage, OutputStream};
use super::runner::{CallRunner, CallStreams, CallerOutput, OutputSink, run_guarded};

/// How long a caller may take to send its call.
const CALL_WAIT_MAX: Duration = Duration::from_secs(10);

/// How many calls are carried out at a time; further callers wait.
const CALLS_MAX: usize = 256;

/// How long a server that ends waits for the calls that are under way, unless it is told otherwise.
const LAST_CALLS_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long a server that cannot take a call pauses before it tries again.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A socket at which workers on this machine call. It is closed when this is dropped.
pub struct CallServer {
    path: PathBuf,
    /// The device and inode of the socket: another server may have replaced it.
    identity: Option<(u64, u64)>,
    listener: UnixListener,
    calls: Arc<OpenCalls>,
    last_calls_wait: Duration,
}

/// The number of calls that are under way.
#[derive(Default)]
struct OpenCalls {
    count: Mutex<usize>,
    changed: Condvar,
    is_closed: AtomicBool,
}

impl OpenCalls {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more, once there is room for it.
    fn begin(&self) {
        let mut count = self.count();
        while *count >= CALLS_MAX {
            count = self.changed.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
        *count += 1;
    }

    fn end(&self) {
        *self.count() -= 1;
        self.changed.notify_all();
    }

    /// Waits until none is under way, but not longer than this.
    fn wait_for_none(&self, limit: Duration) {
        let began = Instant::now();
        let mut count = self.count();
        while *count > 0 {
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(count, left);
            count = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl CallServer {
    /// Listens at `path`, instead of a server that has gone. Only for the process that holds the lock of the daemon or of
    /// the run.
    pub fn open(path: &Path, runner: Arc<dyn CallRunner>) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        let identity = identity_of(path);
        let calls = Arc::new(OpenCalls::default());
        let (incoming, open) = (listener.try_clone()?, Arc::clone(&calls));
        thread::Builder::new().name("calls".to_owned()).spawn(move || {
            loop {
                let accepted = incoming.accept();
                // A listener that was shut down gives an error.
                if open.is_closed.load(Ordering::SeqCst) {
                    return;
                }
                let Ok((caller, _)) = accepted else {
                    // Too many files are open, for example.
                    thread::sleep(ACCEPT_RETRY_INTERVAL);
                    continue;
                };
                open.begin();
                let (runner, ending) = (Arc::clone(&runner), Arc::clone(&open));
                let serving = thread::Builder::new().name("call".to_owned()).spawn(move || {
                    // A caller that cannot be served sees the end of the connection.
                    let _ = serve(&caller, runner.as_ref());
                    ending.end();
                });
                if serving.is_err() {
                    open.end();
                }
            }
        })?;
        let path = path.to_owned();
        Ok(Self { path, identity, listener, calls, last_calls_wait: LAST_CALLS_WAIT_MAX })
    }

    /// Waits this long for the calls that are under way when it is dropped.
    #[must_use]
    pub fn with_last_calls_wait(mut self, last_calls_wait: Duration) -> Self {
        self.last_calls_wait = last_calls_wait;
        self
    }
}

impl Drop for CallServer {
    fn drop(&mut self) {
        if identity_of(&self.path) == self.identity {
            // If it cannot be removed, the next server replaces it.
            let _ = fs::remove_file(&self.path);
        }
        self.calls.is_closed.store(true, Ordering::SeqCst);
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        self.calls.wait_for_none(self.last_calls_wait);
    }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Carries out the call of one connection.
fn serve(caller: &UnixStream, runner: &dyn CallRunner) -> io::Result<()> {
    if !is_of_this_user(caller)? {
        return Ok(());
    }
    caller.set_read_timeout(Some(CALL_WAIT_MAX))?;
    let mut from = BufReader::new(caller.try_clone()?);
    let first = receive::<CallerMessage>(&mut from);
    caller.set_read_timeout(None)?;
    let sink = Arc::new(SocketOutput { caller: caller.try_clone()?, turn: Mutex::new(()) });
    let status = match first {
        Ok(None) => return Ok(()),
        Ok(Some((CallerMessage::Call(request), _))) if request.protocol == CALL_PROTOCOL => {
            carry_out(request, from, &sink, runner)
        }
        Ok(Some((CallerMessage::Call(request), _))) => {
            let sentence = format!(
                "Error: this gt speaks protocol {} with the process that has the store, and that speaks {CALL_PROTOCOL}; \
                 start the daemon anew (gt down, gt up) after an upgrade\n",
                request.protocol
            );
            sink.write(OutputStream::Error, sentence.as_bytes())?;
            1
        }
        Ok(Some((CallerMessage::Input | CallerMessage::File { .. }, _))) | Err(_) => {
            sink.write(OutputStream::Error, b"Error: the call cannot be understood\n")?;
            1
        }
    };
    sink.send(&CallReply::Answered { status }, &[])?;
    caller.shutdown(std::net::Shutdown::Both)
}

fn carry_out(
    request: CallRequest,
    from: BufReader<UnixStream>,
    sink: &Arc<SocketOutput>,
    runner: &dyn CallRunner,
) -> u8 {
    let caller = Arc::new(CallerConnection::new(from, Arc::clone(sink)));
    let input = CallerInput::new(Arc::clone(&caller));
    let output = CallerOutput(Arc::<SocketOutput>::clone(sink));
    let streams = CallStreams { input: Box::new(input), output, files: CallerFiles(caller) };
    run_guarded(runner, request, streams)
}

pub(super) struct SocketOutput {
    caller: UnixStream,
    /// Messages are sent whole.
    turn: Mutex<()>,
}

impl SocketOutput {
    pub(super) fn send(&self, reply: &CallReply, payload: &[u8]) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        send(&mut &self.caller, reply, payload)
    }
}

impl OutputSink for SocketOutput {
    fn write(&self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        self.send(&CallReply::Said { stream }, bytes)
    }

    fn wait_for_end(&self, time: Duration) -> bool {
        // No event is polled for, so only the end of the caller ends the wait early.
        let mut polled = [PollFd::new(&self.caller, PollFlags::empty())];
        let time = Timespec::try_from(time).ok();
        poll(&mut polled, time.as_ref()).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use gt_testkit::wait_until;

    use super::*;
    use crate::calls::protocol::FileUse;
    use crate::calls::runner::PANICKED;
    use crate::calls::{CallError, Calling};

    /// Answers as its first argument says.
    struct Actor {
        under_way: AtomicUsize,
        most: AtomicUsize,
        ended: Mutex<Vec<String>>,
    }

    impl CallRunner for Actor {
        fn run(&self, request: CallRequest, mut streams: CallStreams) -> u8 {
            let say = |stream, text: &[u8]| streams.output.0.write(stream, text);
            match request.arguments.first().map_or("", String::as_str) {
                "echo" => {
                    let mut bytes = Vec::new();
                    let read = streams.input.read_to_end(&mut bytes);
                    let said = match &read {
                        Ok(count) => format!("{count} bytes"),
                        Err(error) => error.to_string(),
                    };
                    self.ended.lock().unwrap().push(said.clone());
                    let _ = say(OutputStream::Error, said.as_bytes());
                    let _ = say(OutputStream::Out, &bytes[..bytes.len().min(9)]);
                    7
                }
                "follow" => {
                    while !streams.output.0.wait_for_end(Duration::from_mins(1)) {}
                    self.ended.lock().unwrap().push("followed".to_owned());
                    0
                }
                "together" => {
                    let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
                    self.most.fetch_max(now, Ordering::SeqCst);
                    wait_until("all are under way", || self.most.load(Ordering::SeqCst) >= 8);
                    0
                }
                "copy" => {
                    // Input that comes meanwhile is kept for its reader.
                    let mut first = [0];
                    let read = streams.input.read_exact(&mut first);
                    let copied = read.and_then(|()| {
                        let bytes = streams.files.read(Path::new("from"))?;
                        let mut copy = streams.files.create(Path::new("to"));
                        copy.write_all(&bytes)?;
                        copy.finish()?;
                        streams.files.list(Path::new("here"))
                    });
                    let mut rest = Vec::new();
                    let rest = streams.input.read_to_end(&mut rest);
                    let said = format!("{copied:?} {rest:?}");
                    let _ = say(OutputStream::Out, said.as_bytes());
                    0
                }
                "panic" => panic!("as asked"),
                other => {
                    let _ = say(OutputStream::Out, other.as_bytes());
                    0
                }
            }
        }
    }

    struct Place {
        directory: tempfile::TempDir,
        actor: Arc<Actor>,
        server: CallServer,
    }

    fn place() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let (under_way, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let actor = Arc::new(Actor { under_way, most, ended: Mutex::default() });
        let runner: Arc<dyn CallRunner> = Arc::<Actor>::clone(&actor);
        let server = CallServer::open(&directory.path().join("s"), runner).unwrap();
        Place { directory, actor, server }
    }

    fn request(word: &str) -> CallRequest {
        CallRequest {
            protocol: CALL_PROTOCOL,
            program: "gt".to_owned(),
            arguments: vec![word.to_owned()],
            directory: None,
            token: Some("t".to_owned()),
            variables: Vec::new(),
        }
    }

    impl Place {
        fn dial(&self) -> UnixStream {
            UnixStream::connect(self.directory.path().join("s")).unwrap()
        }

        fn call(&self, word: &str) -> UnixStream {
            let mut stream = self.dial();
            send(&mut stream, &CallerMessage::Call(request(word)), &[]).unwrap();
            stream
        }

        /// All output of a call whose input is `input`, and its exit status.
        fn answer(stream: &UnixStream, input: &[u8]) -> (String, String, u8) {
            let (mut out, mut error) = (Vec::new(), Vec::new());
            let mut from = BufReader::new(stream);
            loop {
                match receive::<CallReply>(&mut from).unwrap().unwrap() {
                    (CallReply::Said { stream: OutputStream::Out }, text) => out.extend(text),
                    (CallReply::Said { stream: OutputStream::Error }, text) => error.extend(text),
                    (CallReply::InputWanted, _) => {
                        for chunk in input.chunks(32 << 10) {
                            send(&mut &*stream, &CallerMessage::Input, chunk).unwrap();
                        }
                        send(&mut &*stream, &CallerMessage::Input, &[]).unwrap();
                    }
                    (CallReply::File { .. }, _) => panic!("no file was named"),
                    (CallReply::Answered { status }, _) => {
                        let text = |bytes| String::from_utf8(bytes).unwrap();
                        return (text(out), text(error), status);
                    }
                }
            }
        }
    }

    #[test]
    fn a_call_has_its_input_both_outputs_and_its_exit_status() {
        let place = place();
        let input = vec![b'x'; 5 << 20];
        let answer = Place::answer(&place.call("echo"), &input);
        assert_eq!(answer, ("x".repeat(9), format!("{} bytes", 5 << 20), 7));
        // Input that is not asked for is not needed.
        assert_eq!(Place::answer(&place.call("hello"), &[]).0, "hello");
    }

    #[test]
    fn a_file_that_a_command_names_is_read_and_written_by_its_caller() {
        let place = place();
        let stream = place.call("copy");
        let mut from = BufReader::new(&stream);
        let (mut said, mut written) = (Vec::new(), Vec::new());
        let mut files = Vec::new();
        let answer = |error, piece: &[u8]| {
            send(&mut &stream, &CallerMessage::File { error }, piece).unwrap();
        };
        loop {
            match receive::<CallReply>(&mut from).unwrap().unwrap() {
                (CallReply::InputWanted, _) => {
                    for piece in [&b"one"[..], b"two", b""] {
                        send(&mut &stream, &CallerMessage::Input, piece).unwrap();
                    }
                }
                (CallReply::File { path, access }, piece) => {
                    written.extend_from_slice(&piece);
                    match access {
                        FileUse::Read => answer(None, &vec![b'x'; 600 << 10]),
                        FileUse::List => answer(None, b"a\0b\0"),
                        FileUse::Write if !piece.is_empty() => continue,
                        FileUse::Write => {}
                    }
                    answer(None, b"");
                    files.push((path, access));
                }
                (CallReply::Said { .. }, text) => said.extend_from_slice(&text),
                (CallReply::Answered { .. }, _) => break,
            }
        }
        let uses = [("from", FileUse::Read), ("to", FileUse::Write), ("here", FileUse::List)];
        assert_eq!(files, uses.map(|(path, access)| (path.to_owned(), access)));
        assert_eq!(written.len(), 600 << 10);
        assert_eq!(String::from_utf8(said).unwrap(), "Ok([\"a\", \"b\"]) Ok(5)");
    }

    #[test]
    fn calls_are_carried_out_at_the_same_time() {
        let place = place();
        let calls: Vec<UnixStream> = (0..8).map(|_| place.call("together")).collect();
        for call in &calls {
            assert_eq!(Place::answer(call, &[]).2, 0);
        }
    }

    #[test]
    fn a_caller_that_goes_away_ends_its_own_call_and_its_input_is_not_taken_for_whole() {
        let place = place();
        let mut half = place.call("echo");
        assert!(receive::<CallReply>(&mut BufReader::new(&half)).unwrap().is_some());
        send(&mut half, &CallerMessage::Input, b"half").unwrap();
        drop(half);
        let ended = || place.actor.ended.lock().unwrap().clone();
        wait_until("the call has ended", || ended() == ["the caller went away"]);
        drop(place.call("follow"));
        wait_until("the other call has ended", || ended().len() == 2);
        assert_eq!(Place::answer(&place.call("on"), &[]).0, "on");
    }

    #[test]
    fn calls_that_are_no_calls_are_answered_and_harm_no_other() {
        let place = place();
        let other = CallRequest { protocol: 99, ..request("x") };
        for (bytes, says) in [
            (b"nonsense\n".to_vec(), "cannot be understood"),
            (b"{\"message\":{\"kind\":\"input\"}}\n".to_vec(), "cannot be understood"),
            (b"{\"bytes\":99999999999,\"message\":{\"kind\":\"input\"}}\n".to_vec(), "cannot be"),
            (
                format!("{{\"message\":{}}}\n", serde_json::json!(CallerMessage::Call(other)))
                    .into_bytes(),
                "speaks protocol 99",
            ),
        ] {
            let mut stream = place.dial();
            stream.write_all(&bytes).unwrap();
            let (_, error, status) = Place::answer(&stream, &[]);
            assert!(error.contains(says) && status == 1, "{error}");
        }
        let (_, error, status) = Place::answer(&place.call("panic"), &[]);
        assert!(error.contains("broke down") && status == PANICKED, "{error}");
        // One that says nothing, and one that is cut off in the middle.
        drop(place.dial());
        place.dial().write_all(b"{\"mess").unwrap();
        assert_eq!(Place::answer(&place.call("on"), &[]).0, "on");
    }

    #[test]
    fn without_a_server_a_caller_waits_says_so_and_fails() {
        let place = place();
        let socket = place.directory.path().join("s");
        assert!(!crate::private::is_open_to_others(&socket).unwrap());
        drop(place.server);
        assert!(!socket.exists());
        let sockets = [socket, place.directory.path().join("other")];
        let (told, notices) = mpsc::channel();
        let patience = Duration::from_millis(1200);
        let calling = Calling { sockets: &sockets, patience, is_repeatable: true };
        let called = calling.call(&request("x"), &mut || told.send(()).unwrap());
        assert!(matches!(called, Err(CallError::NoServer)), "{called:?}");
        assert_eq!(notices.try_iter().count(), 1);
    }

    /// A server that dies with its first call: it takes the call and closes. The next one is the server of `place`.
    fn call_of_a_server_that_dies(is_repeatable: bool, command: &str) -> Result<u8, CallError> {
        let place = place();
        let dying = place.directory.path().join("dying");
        let listener = std::os::unix::net::UnixListener::bind(&dying).unwrap();
        std::fs::set_permissions(&dying, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        let socket = dying.clone();
        let died = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            // Nothing listens any more before the call breaks.
            drop(listener);
            std::fs::remove_file(socket).unwrap();
            receive::<CallerMessage>(&mut BufReader::new(&stream)).unwrap();
        });
        let sockets = [dying, place.directory.path().join("s")];
        let calling = Calling { sockets: &sockets, patience: Calling::WAIT_MAX, is_repeatable };
        let called = calling.call(&request(command), &mut || ());
        died.join().unwrap();
        called
    }

    #[test]
    fn a_call_that_may_be_repeated_outlives_the_process_that_had_it() {
        let called = call_of_a_server_that_dies(true, "on");
        assert!(matches!(called, Ok(0)), "{called:?}");
        let called = call_of_a_server_that_dies(false, "on");
        assert!(matches!(called, Err(CallError::Broken)), "{called:?}");
    }

    #[test]
    fn a_socket_that_another_server_has_replaced_stays() {
        let place = place();
        let socket = place.directory.path().join("s");
        let runner: Arc<dyn CallRunner> = Arc::<Actor>::clone(&place.actor);
        let next = CallServer::open(&socket, runner).unwrap();
        drop(place.server);
        assert!(socket.exists());
        drop(next);
        assert!(!socket.exists());
    }
}
