//! Agents on terminals. The launcher and the supervisor are this very test program, started again for one
//! function.

#![expect(clippy::unwrap_used, reason = "a panic is how the helpers of a test fail")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use gt_executors::terminal::{Display, KeptOutput, Launcher, Relay, Terminal, become_agent};
use gt_executors::tmux::{Capture, Confirmation, Pane, Pasted, Tmux};
use gt_testkit::{call_tmux, wait_until};
use rustix::process::{Pid, Signal, getuid, kill_process};

/// Longer than any test.
const LONG: Duration = Duration::from_mins(1);
const ROOT_VARIABLE: &str = "GT_TEST_TERMINAL_ROOT";
const SCRIPT_VARIABLE: &str = "GT_TEST_TERMINAL_SCRIPT";
/// The length of a flood's output.
const FLOOD_BYTES: u64 = 100_000_000;

/// Prints a flood whose length and end are known. The process that it leaves running holds the
/// terminal, and ends with it.
const FLOOD: &str =
    "stty -opost; head -c 99999997 /dev/zero | tr '\\0' x; printf END; sleep 600 & exit 7";

/// Runs as a launcher. As a test, without words to become, it does nothing.
#[test]
fn as_launcher() {
    let argv: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    if !argv.is_empty() {
        let _ = become_agent(&argv);
    }
}

fn launcher() -> Launcher {
    let arguments = ["--exact", "as_launcher", "--nocapture", "--"].map(Into::into).into();
    Launcher { program: std::env::current_exe().unwrap(), arguments }
}

/// Runs as a supervisor inside of a session. As a test, without an agent, it does nothing.
#[test]
fn as_supervisor() {
    let Some(root) = std::env::var_os(ROOT_VARIABLE).map(PathBuf::from) else { return };
    let script = std::env::var_os(SCRIPT_VARIABLE).unwrap();
    let display = Display::of_this_process().unwrap();
    assert!(display.is_some());
    let terminal = Terminal::open(display.as_ref()).unwrap();
    let argv = ["/bin/sh".into(), "-c".into(), script];
    let mut child = terminal.start(&launcher(), &argv, &root, &[]).unwrap();
    let log = File::options().append(true).create(true).open(root.join("log")).unwrap();
    let relay = terminal.relay(log, display).unwrap();
    let status = child.wait().unwrap();
    let kept = relay.finish();
    assert!(kept.loss.is_none());
    fs::write(root.join("end.part"), format!("{:?} {}", status.code(), kept.bytes)).unwrap();
    fs::rename(root.join("end.part"), root.join("end")).unwrap();
}

/// An agent on a terminal without a display.
struct Agent {
    root: tempfile::TempDir,
    child: Child,
    relay: Relay,
}

fn agent(script: &str) -> Agent {
    let root = tempfile::tempdir().unwrap();
    let log = File::create(root.path().join("log")).unwrap();
    agent_in(root, log, script)
}

fn agent_in(root: tempfile::TempDir, log: File, script: &str) -> Agent {
    let terminal = Terminal::open(None).unwrap();
    let child = start(&terminal, &root, &["/bin/sh", "-c", script]).unwrap();
    let relay = terminal.relay(log, None).unwrap();
    Agent { root, child, relay }
}

fn start(terminal: &Terminal, root: &tempfile::TempDir, argv: &[&str]) -> io::Result<Child> {
    let argv: Vec<OsString> = argv.iter().map(Into::into).collect();
    let environment = [("COLOUR".to_owned(), "red".to_owned())];
    terminal.start(&launcher(), &argv, root.path(), &environment)
}

impl Agent {
    fn finish(mut self) -> (ExitStatus, KeptOutput, tempfile::TempDir) {
        let status = self.child.wait().unwrap();
        (status, self.relay.finish(), self.root)
    }

    fn finish_and_read(self) -> (ExitStatus, String) {
        let (status, kept, root) = self.finish();
        assert!(kept.loss.is_none());
        let log = fs::read_to_string(root.path().join("log")).unwrap();
        assert_eq!(kept.bytes, log.len() as u64);
        (status, log)
    }
}

/// The length of a log and the last three bytes of it.
fn end_of(path: PathBuf) -> (u64, String) {
    let mut log = File::open(path).unwrap();
    let length = log.metadata().unwrap().len();
    let mut end = String::new();
    log.seek(SeekFrom::End(-3)).unwrap();
    log.read_to_string(&mut end).unwrap();
    (length, end)
}

#[test]
fn an_agent_has_a_terminal_of_its_own() {
    let script = "for n in 0 1 2; do test -t $n && printf 'yes '; done; echo $COLOUR > /dev/tty; \
                  stty size; ps -o pid=,pgid=,sid=,tpgid= -p $$; echo $$";
    let agent = agent(script);
    let pid = agent.child.id().to_string();

    let (status, log) = agent.finish_and_read();

    assert!(status.success(), "{log}");
    let lines: Vec<&str> = log.lines().collect();
    let [first, size, numbers, itself] = lines[..] else { panic!("{log}") };
    assert_eq!((first, size, itself), ("yes yes yes red", "50 200", pid.as_str()));
    // It leads its session and its group, which is the one that reads from the terminal.
    assert!(numbers.split_whitespace().all(|number| number == pid), "{log}");
}

#[test]
fn the_end_of_an_agent_is_its_own() {
    let (status, _) = agent("exit 7").finish_and_read();
    assert_eq!(status.code(), Some(7));
    let (status, _) = agent("kill -9 $$").finish_and_read();
    assert_eq!(status.signal(), Some(9));
    let (status, _) = agent("exit 137").finish_and_read();
    assert_eq!(status.code(), Some(137));
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let terminal = Terminal::open(None).unwrap();
    let missing = start(&terminal, &root, &["/no/such/program"]).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    fs::write(root.path().join("text"), "not a program").unwrap();
    let refused = start(&terminal, &root, &["./text"]).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    // The terminal can still be used.
    let mut child = start(&terminal, &root, &["true"]).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_flood_is_kept_to_the_last_byte() {
    let (status, kept, root) = agent(FLOOD).finish();
    assert_eq!(status.code(), Some(7));
    assert!(kept.loss.is_none());
    assert_eq!(end_of(root.path().join("log")), (FLOOD_BYTES, "END".to_owned()));
}

#[test]
fn the_last_output_is_kept_although_a_child_holds_the_terminal() {
    for _ in 0..50 {
        let script = "stty -opost; sleep 600 & head -c 20000 /dev/zero | tr '\\0' x; printf END";
        let (_, log) = agent(script).finish_and_read();
        assert_eq!(log.len(), 20_003);
        assert!(log.ends_with("END"));
    }
}

#[test]
fn a_log_that_cannot_be_written_does_not_stop_the_agent() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let root = tempfile::tempdir().unwrap();
    let script = "stty -opost; head -c 100000 /dev/zero; echo done > said";

    let (status, kept, root) = agent_in(root, full, script).finish();

    assert!(status.success());
    assert_eq!(fs::read_to_string(root.path().join("said")).unwrap(), "done\n");
    let loss = kept.loss.unwrap();
    assert_eq!((kept.bytes, loss.bytes), (0, 100_000));
    assert_eq!(loss.error.kind(), io::ErrorKind::StorageFull);
}

/// A session with a supervisor and its agent. Its server is gone with it, also when the test fails.
struct Session {
    tmux: Tmux,
    pane: Pane,
    root: tempfile::TempDir,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = call_tmux(self.tmux.socket(), &["kill-server"]);
        // Which tmux leaves behind.
        let place = std::env::var_os("TMUX_TMPDIR").unwrap_or_else(|| "/tmp".into());
        let place = Path::new(&place).join(format!("tmux-{}", getuid().as_raw()));
        let _ = fs::remove_file(place.join(self.tmux.socket()));
    }
}

impl Session {
    fn new(script: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let tmux = Tmux::of_town(root.path().to_str().unwrap());
        let environment =
            [(ROOT_VARIABLE, root.path().to_str().unwrap()), (SCRIPT_VARIABLE, script)];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let program = std::env::current_exe().unwrap().into();
        let mut argv = vec![program];
        argv.extend(["--exact", "as_supervisor", "--nocapture"].map(Into::into));
        let session = tmux.new_session("gt-a", root.path(), &environment, &argv).unwrap();
        let pane = tmux.pane_of(session.pane_pid).unwrap().expect("the session is there");
        Self { tmux, pane, root }
    }

    fn shows(&self, text: &str) -> bool {
        self.tmux.capture("gt-a", Capture::Visible).is_ok_and(|screen| screen.contains(text))
    }

    fn end(&self) -> String {
        let is_over = || self.root.path().join("end").exists();
        let length = || fs::metadata(self.root.path().join("log")).map_or(0, |log| log.len());
        // As long as it gets on it is not too slow.
        while !is_over() {
            let before = length();
            wait_until("the agent has ended or printed more", || is_over() || length() > before);
        }
        fs::read_to_string(self.root.path().join("end")).unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.root.path().join("log")).unwrap()
    }
}

#[test]
fn in_a_session_an_agent_is_seen_and_can_be_typed_to() {
    let session =
        Session::new("stty size; echo name?; read name; echo \"hello $name\"; read x; exit 5");
    wait_until("it asks", || session.shows("name?"));
    let confirmation = Confirmation {
        before_enter: Some(&|screen| screen.contains("Ada")),
        after_enter: &|screen| screen.contains("hello Ada"),
        limit: LONG,
    };

    let pasted = session.tmux.paste_into(&session.pane, b"Ada", &confirmation);
    assert_eq!(pasted.unwrap(), Pasted::Confirmed);
    session.tmux.press(&session.pane, "Enter").unwrap();

    assert!(session.end().starts_with("Some(5) "));
    assert_eq!(session.log(), "50 200\r\nname?\r\nAda\r\nhello Ada\r\n\r\n");
}

#[test]
fn in_a_session_keys_reach_the_agent_and_not_its_supervisor() {
    let script =
        "trap 'echo caught' INT; echo ready; while ! test -e go; do sleep 0.05; done; exit 6";
    let session = Session::new(script);
    wait_until("it is there", || session.shows("ready"));

    session.tmux.press(&session.pane, "C-c").unwrap();

    wait_until("the agent has caught it", || session.shows("caught"));
    fs::write(session.root.path().join("go"), "").unwrap();
    assert!(session.end().starts_with("Some(6) "));
}

#[test]
fn in_a_session_an_agent_learns_how_large_its_pane_is() {
    let script = "trap 'stty size' WINCH; echo ready; while ! test -e go; do sleep 0.05; done";
    let session = Session::new(script);
    wait_until("it is there", || session.shows("ready"));

    let resize = ["resize-window", "-t", "=gt-a:", "-x", "90", "-y", "30"];
    call_tmux(session.tmux.socket(), &resize);

    wait_until("the agent knows", || session.shows("30 90"));
    fs::write(session.root.path().join("go"), "").unwrap();
    session.end();
}

#[test]
fn an_agent_ends_with_the_server_of_its_session() {
    let session = Session::new("echo $$ > pid; echo ready; exec sleep 600");
    wait_until("it is there", || session.shows("ready"));
    let agent = fs::read_to_string(session.root.path().join("pid")).unwrap();
    let server = i32::try_from(session.tmux.server_process().unwrap()).unwrap();

    kill_process(Pid::from_raw(server).unwrap(), Signal::KILL).unwrap();

    let agent = PathBuf::from(format!("/proc/{}/exe", agent.trim()));
    wait_until("the agent is gone", || fs::read_link(&agent).is_err());
    assert_eq!(session.log(), "ready\r\n");
}

#[test]
fn in_a_session_a_flood_is_kept_to_the_last_byte() {
    let session = Session::new(FLOOD);
    assert_eq!(session.end(), format!("Some(7) {FLOOD_BYTES}"));
    assert_eq!(end_of(session.root.path().join("log")), (FLOOD_BYTES, "END".to_owned()));
}
