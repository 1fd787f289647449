//! Sessions of a real tmux server, on sockets that no other test has.

#![expect(clippy::unwrap_used, reason = "a panic is how the helpers of a test fail")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_executors::tmux::{Capture, Confirmation, Pane, Pasted, Tmux, TmuxError};
use gt_testkit::{call_tmux, wait_until, write_program};
use rustix::process::{Pid, Signal, getuid, kill_process};

/// Longer than any test.
const LONG: Duration = Duration::from_mins(1);
const NO_SESSIONS: [&str; 0] = [];

/// A town with a directory. Its server is gone with it, also when the test fails.
struct Town {
    tmux: Tmux,
    root: tempfile::TempDir,
}

impl Drop for Town {
    fn drop(&mut self) {
        let _ = call_tmux(self.tmux.socket(), &["kill-server"]);
        // Which tmux leaves behind.
        let _ = fs::remove_file(self.socket());
    }
}

impl Town {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let tmux = Tmux::of_town(root.path().to_str().unwrap());
        Self { tmux, root }
    }

    fn socket(&self) -> PathBuf {
        let place = std::env::var_os("TMUX_TMPDIR").unwrap_or_else(|| "/tmp".into());
        let place = Path::new(&place).join(format!("tmux-{}", getuid().as_raw()));
        place.join(self.tmux.socket())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The pane of a new session that runs a shell script in the directory of the town.
    fn script(&self, name: &str, script: &str) -> Pane {
        let argv = words(&["/bin/sh", "-c", script]);
        let session = self.tmux.new_session(name, self.root.path(), &[], &argv).unwrap();
        self.tmux.pane_of(session.pane_pid).unwrap().expect("the session is there")
    }

    /// The file that a program wrote, when it is complete: the last line is `end`.
    fn written(&self, name: &str) -> String {
        wait_until("the program has written all", || self.file(name).ends_with("end\n"));
        self.file(name)
    }

    fn kill_dash_nine(&self) {
        let pid = i32::try_from(self.tmux.server_process().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        let process = PathBuf::from(format!("/proc/{pid}"));
        wait_until("the server is gone", || !process.join("exe").exists());
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}

#[test]
fn without_a_server_there_are_no_sessions() {
    let town = Town::new();
    assert_eq!(town.tmux.sessions().unwrap(), NO_SESSIONS);
    assert!(!town.tmux.has("gt-a").unwrap());
    let captured = town.tmux.capture("gt-a", Capture::Visible);
    assert!(matches!(captured, Err(TmuxError::NoSession { name }) if name == "gt-a"));
}

#[test]
fn a_session_runs_its_program_and_ends_with_it() {
    let town = Town::new();
    let argv = words(&["/bin/sh", "-c", "pwd > place; read line; exit 3"]);

    let session = town.tmux.new_session("gt-a", town.root.path(), &[], &argv).unwrap();

    let sessions = town.tmux.sessions().unwrap();
    assert_eq!(sessions, ["gt-a"]);
    assert!(town.tmux.has("gt-a").unwrap());
    wait_until("it has said where it is", || town.file("place").ends_with('\n'));
    assert_eq!(Path::new(town.file("place").trim()), town.root.path().canonicalize().unwrap());

    let taken = Confirmation { before_enter: None, after_enter: &|_| true, limit: LONG };
    // Its end may be seen before the look at its pane.
    if let Some(pane) = town.tmux.pane_of(session.pane_pid).unwrap() {
        let _ = town.tmux.paste_into(&pane, b"", &taken);
    }
    wait_until("it is gone", || town.tmux.sessions().unwrap().is_empty());
}

#[test]
fn words_arrive_as_they_are() {
    let town = Town::new();
    let nasty = [
        "two words",
        "it's",
        "\"quoted\"",
        ";",
        "a;",
        "a\\;",
        "\\",
        "$HOME",
        "`id`",
        "#{pid}",
        "",
        "-d",
        "--",
        "~",
        "*",
        "new\nline",
        "tab\t",
        "ä€😀",
        "%1",
        "{",
        "}",
        "a#b",
        "#",
        "end",
    ];
    let script = "for word in \"$@\"; do printf '[%s]' \"$word\"; done > said; echo >> said; \
                  echo end >> said";
    let mut argv = words(&["/bin/sh", "-c", script, "sh"]);
    argv.extend(words(&nasty));

    town.tmux.new_session("gt-a", town.root.path(), &[], &argv).unwrap();

    let expected = format!("[{}]", nasty.join("]["));
    assert_eq!(town.written("said"), format!("{expected}\nend\n"));
}

#[test]
fn a_program_without_arguments_is_not_given_to_a_shell() {
    let town = Town::new();
    let program = town.path("a program; with $HOME in its name");
    write_program(&program, "#!/bin/sh\necho end > \"$(dirname \"$0\")/said\"\n");

    town.tmux.new_session("gt-a", town.root.path(), &[], &[program.into()]).unwrap();

    assert_eq!(town.written("said"), "end\n");
}

#[test]
fn a_directory_can_have_any_name_but_must_be_there() {
    let town = Town::new();
    let directory = town.path("a #{pid} #S ## 'b;");
    let argv = words(&["/bin/sh", "-c", "echo end > said"]);
    let missing = town.tmux.new_session("gt-a", &directory, &[], &argv);
    assert!(matches!(missing, Err(TmuxError::Directory { path }) if path == directory));

    fs::create_dir(&directory).unwrap();
    town.tmux.new_session("gt-a", &directory, &[], &argv).unwrap();

    wait_until("it runs there", || directory.join("said").exists());
}

#[test]
fn variables_arrive_and_those_of_an_earlier_session_do_not() {
    let town = Town::new();
    let given = [("GT_FIRST", "it's \"a\"; $HOME\n#{pid}"), ("GT_EMPTY", "")];
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let script = |file: &str| {
        words(&["/bin/sh", "-c", &format!("env > {file}; echo end >> {file}; exec cat")])
    };

    town.tmux.new_session("gt-a", town.root.path(), &given, &script("one")).unwrap();
    town.tmux.new_session("gt-b", town.root.path(), &[], &script("two")).unwrap();

    let one = town.written("one");
    assert!(one.contains("GT_FIRST=it's \"a\"; $HOME\n#{pid}\n"), "{one}");
    assert!(one.contains("GT_EMPTY=\n"), "{one}");
    // The environment of a child of ours; the rest depends on the directory and the shell.
    let of_the_place = |name: &str| name.contains("PWD") || name.starts_with("TERM");
    for (name, value) in std::env::vars().filter(|(_, value)| !value.contains('\n')) {
        if name.len() > 1 && name != "SHLVL" && !of_the_place(&name) && !name.starts_with("TMUX") {
            let line = format!("{name}={value}");
            assert!(one.lines().any(|other| other == line), "{name} in {one}");
        }
    }
    let two = town.written("two");
    assert!(!two.contains("GT_FIRST") && !two.contains("GT_EMPTY"), "{two}");
}

#[test]
fn a_name_is_exact_and_is_taken_once() {
    let town = Town::new();
    town.script("gt-abc", "exec cat");
    assert!(!town.tmux.has("gt-ab").unwrap());
    let argv = words(&["cat", "-"]);
    let again = town.tmux.new_session("gt-abc", town.root.path(), &[], &argv);
    assert!(matches!(again, Err(TmuxError::Exists { name }) if name == "gt-abc"));
    for odd in ["gt.abc", "gt:abc", "", "=gt-abc", "$0", "gt abc", "-t", "+1"] {
        let made = town.tmux.new_session(odd, town.root.path(), &[], &argv);
        assert!(matches!(made, Err(TmuxError::Name { .. })), "{odd}");
        assert!(matches!(town.tmux.has(odd), Err(TmuxError::Name { .. })), "{odd}");
    }

    call_tmux(town.tmux.socket(), &["kill-session", "-t", "=gt-abc"]);

    assert!(!town.tmux.has("gt-abc").unwrap());
}

#[test]
fn a_command_that_is_too_long_is_refused() {
    let town = Town::new();
    let argv = words(&["echo", &"x".repeat(100_000)]);
    let made = town.tmux.new_session("gt-a", town.root.path(), &[], &argv);
    assert!(matches!(made, Err(TmuxError::TooLong)), "{made:?}");
    assert_eq!(town.tmux.sessions().unwrap(), NO_SESSIONS);
}

#[test]
fn a_pane_is_captured_beyond_its_visible_lines() {
    let town = Town::new();
    town.script("gt-a", "seq 1 500; printf 'ä€ last %0300d\\n' 7; touch done; exec cat");
    wait_until("it has printed all", || {
        town.path("done").exists()
            && town.tmux.capture("gt-a", Capture::Visible).unwrap().contains("last")
    });
    let last = format!("ä€ last {:0300}\n", 7);

    let visible = town.tmux.capture("gt-a", Capture::Visible).unwrap();
    assert!(visible.ends_with(&last) && !visible.contains("\n100\n"), "{visible}");
    let three = town.tmux.capture("gt-a", Capture::Last(3)).unwrap();
    assert_eq!(three, format!("499\n500\n{last}"));
    let all = town.tmux.capture("gt-a", Capture::All).unwrap();
    assert!(all.starts_with("1\n2\n3\n") && all.ends_with(&last), "{all}");
}

#[test]
fn a_pasted_text_arrives_and_that_is_confirmed() {
    let town = Town::new();
    let mut text =
        b"it's \"nasty\"; $HOME `id` #{pid} \\ \xff\xfe \x01\x00 \xc3\xa4\nsecond line;\n".to_vec();
    while text.len() < 100_000 {
        text.extend_from_slice(b"and one more line of it, ended by a semicolon;\n");
    }
    text.pop();
    let length = text.len() + 1;
    // A program that reads keys, as agents do.
    let script = format!(
        "stty raw -echo; echo ready; head -c {length} > got; printf 'thank you for {length}'; cat"
    );
    let pane = town.script("gt-a", &script);
    wait_until("it reads", || {
        town.tmux.capture("gt-a", Capture::Visible).unwrap().contains("ready")
    });
    let thanks = format!("thank you for {length}");
    let confirmation = Confirmation {
        before_enter: Some(&|screen| screen.contains("ready")),
        after_enter: &|screen| screen.contains(&thanks),
        limit: LONG,
    };

    let pasted = town.tmux.paste_into(&pane, &text, &confirmation).unwrap();

    assert_eq!(pasted, Pasted::Confirmed);
    let as_keys = |byte: &u8| if *byte == b'\n' { b'\r' } else { *byte };
    let mut expected: Vec<u8> = text.iter().map(as_keys).collect();
    expected.push(b'\r');
    assert!(fs::read(town.path("got")).unwrap() == expected);
    assert!(call_tmux(town.tmux.socket(), &["list-buffers"]).stdout.is_empty());
}

#[test]
fn an_unconfirmed_paste_is_reported() {
    let town = Town::new();
    let pane = town.script("gt-a", "stty raw -echo; echo ready; exec cat > got");
    wait_until("it reads", || {
        town.tmux.capture("gt-a", Capture::Visible).unwrap().contains("ready")
    });
    let never = Confirmation {
        before_enter: None,
        after_enter: &|screen| screen.contains("thanks"),
        limit: Duration::from_millis(50),
    };
    let pasted = town.tmux.paste_into(&pane, b"one", &never).unwrap();
    assert!(
        matches!(&pasted, Pasted::Unconfirmed { entered: true, screen } if screen == "ready\n"),
        "{pasted:?}"
    );

    let no = |screen: &str| screen.contains("thanks");
    let unready = Confirmation { before_enter: Some(&no), ..never };
    let pasted = town.tmux.paste_into(&pane, b"two", &unready).unwrap();
    assert!(matches!(pasted, Pasted::Unconfirmed { entered: false, .. }), "{pasted:?}");
    wait_until("all of it has arrived", || town.file("got").len() >= 7);
    assert_eq!(town.file("got"), "one\rtwo");
}

#[test]
fn a_person_who_reads_further_up_does_not_get_the_text() {
    let town = Town::new();
    let pane =
        town.script("gt-a", "stty -echo; seq 1 200; head -n 1 > got; echo end >> got; exec cat");
    wait_until("it has printed all", || {
        town.tmux.capture("gt-a", Capture::Visible).unwrap().contains("200")
    });
    call_tmux(town.tmux.socket(), &["copy-mode", "-t", "=gt-a:"]);
    let sent = Confirmation { before_enter: None, after_enter: &|_| true, limit: LONG };

    town.tmux.paste_into(&pane, b"the text", &sent).unwrap();

    assert_eq!(town.written("got"), "the text\nend\n");
}

#[test]
fn two_towns_do_not_see_each_other() {
    let [one, two] = [Town::new(), Town::new()];
    one.script("gt-a", "exec cat");
    two.script("gt-a", "exec cat");

    assert!(call_tmux(one.tmux.socket(), &["kill-server"]).status.success());

    assert!(!one.tmux.has("gt-a").unwrap());
    assert!(two.tmux.has("gt-a").unwrap());
}

#[test]
fn a_server_whose_socket_was_deleted_is_reached_again() {
    let town = Town::new();
    town.script("gt-a", "exec cat");
    let server = town.tmux.server_process();

    fs::remove_file(town.socket()).unwrap();
    assert!(town.tmux.has("gt-a").unwrap());
    fs::remove_file(town.socket()).unwrap();
    town.script("gt-b", "exec cat");

    assert_eq!(town.tmux.sessions().unwrap().len(), 2);
    assert_eq!(town.tmux.server_process(), server);
}

#[test]
fn a_killed_server_has_no_sessions_and_a_clear_error() {
    let town = Town::new();
    town.script("gt-a", "exec cat");
    town.kill_dash_nine();

    assert_eq!(town.tmux.sessions().unwrap(), NO_SESSIONS);
    assert!(!town.tmux.has("gt-a").unwrap());
    let captured = town.tmux.capture("gt-a", Capture::All);
    assert!(matches!(captured, Err(TmuxError::NoSession { .. })), "{captured:?}");
    // The next session has a new server.
    town.script("gt-b", "exec cat");
    assert_eq!(town.tmux.sessions().unwrap(), ["gt-b"]);
}

#[test]
fn a_hundred_sessions_are_listed_at_once() {
    let town = Town::new();
    let names: Vec<String> = (100..200).map(|number| format!("gt-{number}")).collect();
    for name in &names {
        town.tmux.new_session(name, town.root.path(), &[], &words(&["cat", "-"])).unwrap();
    }

    let sessions = town.tmux.sessions().unwrap();

    assert_eq!(sessions, names);
}

#[test]
fn sessions_that_begin_at_once_all_begin_with_their_own_variables() {
    let town = Town::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let town = &town;
            // Half of them end at once, and sometimes the server with them.
            let program = if number % 2 == 0 { "true" } else { "cat" };
            let script = format!("echo $GT_NUMBER > said{number}; exec {program}");
            let variable = [("GT_NUMBER".to_owned(), number.to_string())];
            scope.spawn(move || {
                let (name, argv) = (format!("gt-{number}"), words(&["/bin/sh", "-c", &script]));
                town.tmux.new_session(&name, town.root.path(), &variable, &argv).unwrap();
            });
        }
    });
    wait_until("the others have ended", || {
        town.tmux.sessions().unwrap() == ["gt-1", "gt-3", "gt-5", "gt-7"]
    });
    for number in 0..8 {
        let file = format!("said{number}");
        wait_until("it has said its number", || town.file(&file) == format!("{number}\n"));
    }
}

#[test]
fn a_pane_that_a_person_opens_is_not_the_worker() {
    let town = Town::new();
    let argv = words(&["/bin/sh", "-c", "echo worker; exec cat > got"]);
    let worker = town.tmux.new_session("gt-a", town.root.path(), &[], &argv).unwrap();
    let pane = town.tmux.pane_of(worker.pane_pid).unwrap().expect("it is there");
    let person = ["-t", "=gt-a:", "echo person; exec cat"];
    for opened in ["split-window", "new-window"] {
        call_tmux(town.tmux.socket(), &[&[opened][..], &person].concat());
    }
    wait_until("the worker is there", || {
        town.tmux.capture("gt-a", Capture::Visible).unwrap() == "worker\n"
    });
    let sent = Confirmation { before_enter: None, after_enter: &|_| true, limit: LONG };

    town.tmux.paste_into(&pane, b"for the worker", &sent).unwrap();

    wait_until("the worker has it", || town.file("got") == "for the worker\n");
    assert_eq!(town.tmux.sessions().unwrap(), ["gt-a"]);
}

#[test]
fn a_shell_that_takes_the_place_of_a_worker_is_not_typed_into() {
    let town = Town::new();
    let argv = words(&["/bin/sh", "-c", "exec cat"]);
    let worker = town.tmux.new_session("gt-a", town.root.path(), &[], &argv).unwrap();
    let pane = town.tmux.pane_of(worker.pane_pid).unwrap().expect("it is there");
    assert_eq!(pane.session(), "gt-a");
    let person = ["split-window", "-t", "=gt-a:", "echo person; exec cat"];
    call_tmux(town.tmux.socket(), &person);
    let worker_process = Pid::from_raw(i32::try_from(worker.pane_pid).unwrap()).unwrap();
    kill_process(worker_process, Signal::KILL).unwrap();
    wait_until("the person's is the first pane", || {
        town.tmux.capture("gt-a", Capture::Visible).unwrap() == "person\n"
    });
    let sent = Confirmation { before_enter: None, after_enter: &|_| true, limit: LONG };

    let pasted = town.tmux.paste_into(&pane, b"for the worker", &sent);

    assert!(matches!(pasted, Err(TmuxError::NoSession { .. })), "{pasted:?}");
    assert_eq!(town.tmux.pane_of(worker.pane_pid).unwrap(), None);
    assert_eq!(town.tmux.capture("gt-a", Capture::Visible).unwrap(), "person\n");
}
