//! Runs with real processes. A supervisor is this very test program, started again for one function.

#![expect(clippy::unwrap_used, reason = "a panic is how the helpers of a test fail")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use gt_executors::background::detach;
use gt_executors::runs::{
    Agent, AgentEnd, AskResult, Liveness, RunFiles, SessionEnd, StarterLock, Strays, Supervision,
    SupervisorCommand, SupervisorListener, Suspect, ask_to_cancel, ask_to_hand_over,
    become_detached, control_groups_missing, end_orphan, end_strays, enter_control_group, holders,
    starter_is_alive, strays_of, sweep_control_groups, tell_done,
};
use gt_testkit::wait_until;
use gt_testkit::write_program;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Longer than any test.
const LONG: Duration = Duration::from_mins(10);
const SHORT: Duration = Duration::from_millis(200);
const RUN: &str = "gt-abc#3";
const ROOT_VARIABLE: &str = "GT_TEST_RUNS_ROOT";
const COMMAND_VARIABLE: &str = "GT_TEST_RUNS_COMMAND";
/// Between the words of a command.
const SEPARATOR: &str = "\u{1f}";
/// A script that the supervisor starts for itself, before the agent.
const BYSTANDER_VARIABLE: &str = "GT_TEST_RUNS_BYSTANDER";
/// Where the agent runs, inside the root.
const PLACE_VARIABLE: &str = "GT_TEST_RUNS_PLACE";
/// Whether the supervisor enters a control group.
const GROUP_VARIABLE: &str = "GT_TEST_RUNS_GROUP";
const GRACE_VARIABLE: &str = "GT_TEST_RUNS_GRACE_MS";

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.into_string().unwrap())
}

/// Runs as a supervisor. As a test, without a run to supervise, it does nothing.
#[test]
fn as_supervisor() {
    let Some(root) = variable(ROOT_VARIABLE).map(PathBuf::from) else { return };
    become_detached().unwrap();
    let files = RunFiles::of(&root.join("runs"), RUN);
    if variable(GROUP_VARIABLE).is_some() {
        enter_control_group(&root.join("runs"));
    }
    let lock = files.try_lock().unwrap().expect("the lock is free");
    let starter = StarterLock::take(&root.join("starters")).unwrap();
    fs::write(root.join("starter"), format!("{}\n", starter.name())).unwrap();
    if let Some(script) = variable(BYSTANDER_VARIABLE) {
        let nothing = fs::File::open("/dev/null").unwrap();
        detach("/bin/sh".as_ref(), &["-c", &script].map(OsStr::new), nothing).unwrap();
    }
    let agent = Agent {
        argv: variable(COMMAND_VARIABLE).unwrap().split(SEPARATOR).map(str::to_owned).collect(),
        directory: root.join(variable(PLACE_VARIABLE).unwrap_or_default()),
        environment: vec![("COLOUR".to_owned(), "red".to_owned())],
        prompt: b"do the work\n".to_vec(),
        terminal: None,
        prompter: None,
    };
    let grace = Duration::from_millis(variable(GRACE_VARIABLE).unwrap().parse().unwrap());
    let mut supervision = Supervision::default();
    let end = loop {
        match supervision.stay_with(&files, &lock, &agent, grace, || ()) {
            Ok(SessionEnd::HandedOver) => {}
            Ok(SessionEnd::Over(end)) => break Ok(end),
            Err(error) => break Err(error),
        }
    };
    fs::write(root.join("end"), format!("{end:?}")).unwrap();
}

/// A run in a directory of its own.
struct Run {
    root: tempfile::TempDir,
    files: RunFiles,
    ended: mpsc::Receiver<()>,
}

/// Starts a supervisor with an agent that is this shell script.
fn run(grace: Duration, script: &str) -> Run {
    run_command(grace, &["/bin/sh", "-c", script])
}

fn run_command(grace: Duration, command: &[&str]) -> Run {
    run_in(tempfile::tempdir().unwrap(), grace, command, None)
}

fn run_in(
    root: tempfile::TempDir,
    grace: Duration,
    command: &[&str],
    more: Option<(&str, &str)>,
) -> Run {
    let files = RunFiles::of(&root.path().join("runs"), RUN);
    let (tell, ended) = mpsc::channel();
    let command = command.join(SEPARATOR);
    let grace = grace.as_millis().to_string();
    let mut environment = vec![
        (ROOT_VARIABLE, root.path().to_str().unwrap()),
        (COMMAND_VARIABLE, &command),
        (GRACE_VARIABLE, &grace),
    ];
    environment.extend(more);
    let command = SupervisorCommand {
        program: &std::env::current_exe().unwrap(),
        arguments: &["--exact", "as_supervisor", "--nocapture"].map(OsStr::new),
        environment: &environment,
        files: &files,
    };
    // A test that does not wait for the end has dropped the receiver.
    let on_end = Arc::new(move || tell.send(()).unwrap_or_default());
    // The test program says something of its own.
    command.start(LONG, Some(on_end)).unwrap();
    Run { root, files, ended }
}

impl Run {
    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits until a script has written a whole line to this file.
    fn line_of(&self, name: &str) -> String {
        wait_until(&format!("{name} is written"), || self.file(name).ends_with('\n'));
        self.file(name).trim().to_owned()
    }

    fn pid_of(&self, name: &str) -> Pid {
        Pid::from_raw(self.line_of(name).parse().unwrap()).unwrap()
    }

    /// Waits for the end of the supervisor, and says how its agent ended.
    fn end(&self) -> String {
        self.ended.recv_timeout(LONG).unwrap();
        let log = fs::read_to_string(self.files.supervisor_log_path()).unwrap();
        let end = self.file("end");
        assert!(!end.is_empty(), "the supervisor said:\n{log}");
        end
    }

    fn output(&self) -> String {
        fs::read_to_string(self.files.output_path()).unwrap()
    }

    fn liveness(&self) -> Liveness {
        self.files.liveness().unwrap()
    }

    /// The process that supervises, as soon as it has written down who its agent is.
    fn supervisor(&self) -> Pid {
        let record = self.files.lock_path();
        let read = || fs::read_to_string(&record).unwrap_or_default();
        wait_until("the agent is written down", || {
            read().lines().next().is_some_and(|line| line.split_whitespace().count() == 3)
        });
        Pid::from_raw(read().split_whitespace().next().unwrap().parse().unwrap()).unwrap()
    }

    /// Kills the supervisor alone.
    fn lose_supervisor(&self) {
        kill_process(self.supervisor(), Signal::KILL).unwrap();
        self.ended.recv_timeout(LONG).unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // A test that fails leaves nothing running.
        if matches!(ask_to_cancel(&self.files), Ok(AskResult::NoListener)) {
            let _ = end_orphan(&self.files, Duration::ZERO);
        }
    }
}

/// Whether a process is there and has not ended.
fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    test_kill_process(pid).is_ok() && !stat.is_ok_and(|stat| stat.contains(") Z"))
}

#[test]
fn an_agent_gets_its_prompt_variables_directory_and_its_output_is_kept() {
    let run = run(LONG, "cat; echo $COLOUR; echo wrong >&2; basename \"$PWD\"; echo last");

    assert_eq!(run.end(), "Ok(Exited(0))");

    let here = run.root.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(run.output(), format!("do the work\nred\nwrong\n{here}\nlast\n"));
    assert_eq!(run.liveness(), Liveness::Free);
    let mut left: Vec<_> = fs::read_dir(run.files.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["gt-abc#3.lock", "gt-abc#3.log", "supervisors.log"]);
}

#[test]
fn the_end_of_an_agent_is_reported() {
    assert_eq!(run_command(LONG, &["true"]).end(), "Ok(Exited(0))");
    assert_eq!(run(LONG, "exit 7").end(), "Ok(Exited(7))");
    assert_eq!(run(LONG, "kill -9 $$").end(), "Ok(Signalled(9))");
}

#[test]
fn the_end_of_an_agent_outlives_a_supervisor_that_could_not_report_it() {
    // Given an agent that has ended, and left something that its supervisor waits for.
    let run = run(
        LONG,
        "(trap '' TERM; echo x > child; sleep 600; sleep 600) & sleep 0; \
        until [ -s child ] && [ -e go ]; do sleep 0.01; done; exit 5",
    );
    wait_until("it has begun", || !run.file("child").is_empty());
    let record = fs::read_to_string(run.files.lock_path()).unwrap();
    let supervisor: i32 = record.split_whitespace().next().unwrap().parse().unwrap();
    fs::write(run.path("go"), "").unwrap();
    wait_until("its end is kept", || run.files.agent_end().unwrap().is_some());
    assert!(holders(&run.files).contains(&supervisor));

    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    run.ended.recv_timeout(LONG).unwrap();

    assert_eq!(run.files.agent_end().unwrap(), Some(AgentEnd::Exited(5)));
    assert_eq!(run.liveness(), Liveness::Held);
    assert!(end_orphan(&run.files, Duration::ZERO).unwrap());
    wait_until("the lock is free", || run.liveness() == Liveness::Free);
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    for program in ["no-such-program-anywhere", "./no-such-program", ""] {
        let end = run_command(LONG, &[program]).end();
        assert!(end.starts_with("Err(Start {"), "{program}: {end}");
        assert!(end.contains(&format!("{program:?}")), "{program}: {end}");
    }
}

#[test]
fn a_place_that_is_missing_is_named() {
    let root = tempfile::tempdir().unwrap();
    let end = run_in(root, LONG, &["true"], Some((PLACE_VARIABLE, "gone"))).end();
    assert!(end.contains("gone, where it would run, is no directory"), "{end}");
}

#[test]
fn a_relative_program_is_looked_for_where_the_agent_runs() {
    let root = tempfile::tempdir().unwrap();
    let program = root.path().join("agent.sh");
    write_program(&program, "#!/bin/sh\necho here\n");

    let run = run_in(root, LONG, &["./agent.sh"], None);

    assert_eq!(run.end(), "Ok(Exited(0))");
    assert_eq!(run.output(), "here\n");
}

#[test]
fn earlier_children_of_a_supervisor_go_on_after_the_run() {
    let root = tempfile::tempdir().unwrap();
    let bystander = "echo $$ > \"$GT_TEST_RUNS_ROOT/bystander\"; exec sleep 600";
    let agent = ["/bin/sh", "-c", "until [ -s bystander ]; do sleep 0.01; done; sleep 600 &"];

    let run = run_in(root, LONG, &agent, Some((BYSTANDER_VARIABLE, bystander)));

    assert_eq!(run.end(), "Ok(Exited(0))");
    assert_eq!(run.liveness(), Liveness::Free);
    let bystander = run.pid_of("bystander");
    assert!(is_alive(bystander));
    kill_process(bystander, Signal::KILL).unwrap();
}

#[test]
fn a_run_is_alive_from_its_supervisor_to_its_last_process() {
    // Given an agent with a child in a session of its own.
    let run = run(LONG, "setsid sh -c 'echo $$ > child; exec sleep 600' & echo $$ > own; wait");
    let [agent, child] = ["own", "child"].map(|name| run.pid_of(name));
    assert_eq!(run.liveness(), Liveness::Held);
    assert!(run.files.try_lock().unwrap().is_none());

    // When the supervisor is gone, and then the agent, the run still lives.
    run.lose_supervisor();
    assert_eq!(run.liveness(), Liveness::Held);
    assert_eq!(ask_to_cancel(&run.files).unwrap(), AskResult::NoListener);
    kill_process(agent, Signal::KILL).unwrap();
    wait_until("the agent is gone", || !is_alive(agent));
    assert_eq!(run.liveness(), Liveness::Held);

    // Until the last process ends.
    kill_process(child, Signal::KILL).unwrap();
    wait_until("the lock is free", || run.liveness() == Liveness::Free);
}

#[test]
fn a_run_is_cancelled_with_everything_it_started() {
    let run = run(
        LONG,
        "trap 'echo asked; exit 3' TERM; sleep 600 & echo $! > child; echo $$ > own; wait",
    );
    let [agent, child] = ["own", "child"].map(|name| run.pid_of(name));

    assert_eq!(ask_to_cancel(&run.files).unwrap(), AskResult::Told);

    assert_eq!(run.end(), "Ok(Cancelled)");
    assert_eq!(run.output(), "asked\n");
    assert!(!is_alive(agent) && !is_alive(child));
    assert_eq!(run.liveness(), Liveness::Free);
    assert_eq!(ask_to_cancel(&run.files).unwrap(), AskResult::NoListener);
}

#[test]
fn an_agent_ends_when_the_files_of_its_run_are_deleted_but_not_when_they_are_moved() {
    let run = run(SHORT, "trap '' TERM; echo $$ > agent; while :; do sleep 0.05; done");
    let agent = run.pid_of("agent");
    let (runs, moved) = (run.files.root().to_owned(), run.path("moved"));
    fs::rename(&runs, &moved).unwrap();
    // No process tells that nothing happens, so the supervisor gets the time for one look.
    assert!(run.ended.recv_timeout(Duration::from_secs(7)).is_err());
    assert!(is_alive(agent));

    fs::remove_dir_all(&moved).unwrap();

    run.ended.recv_timeout(LONG).unwrap();
    assert!(!is_alive(agent));
    assert_eq!(run.file("end"), "Ok(Cancelled)");
    assert!(!runs.exists(), "the files were made again");
}

#[test]
fn an_agent_that_ignores_term_is_killed_after_the_grace() {
    let run = run(
        SHORT,
        "trap '' TERM; (sleep 600; sleep 600) & echo $! > child; echo $$ > own; wait; wait",
    );
    let [agent, child] = ["own", "child"].map(|name| run.pid_of(name));

    ask_to_cancel(&run.files).unwrap();

    assert_eq!(run.end(), "Ok(Cancelled)");
    assert!(!is_alive(agent) && !is_alive(child));
    assert_eq!(run.liveness(), Liveness::Free);
}

#[test]
fn an_agent_whose_work_is_done_may_end_by_itself() {
    let run = run(
        LONG,
        "trap 'echo asked' TERM; echo $$ > own; while [ ! -e go ]; do sleep 0.01; done; exit 4",
    );
    run.line_of("own");

    assert_eq!(tell_done(&run.files).unwrap(), AskResult::Told);
    fs::write(run.path("go"), "").unwrap();

    assert_eq!(run.end(), "Ok(Exited(4))");
    assert_eq!(run.output(), "");
}

#[test]
fn an_agent_that_stays_when_its_work_is_done_is_asked_and_then_killed() {
    let run = run(SHORT, "trap 'echo asked' TERM; echo $$ > own; while true; do sleep 0.05; done");
    let agent = run.pid_of("own");

    tell_done(&run.files).unwrap();

    assert_eq!(run.end(), "Ok(Cancelled)");
    assert!(run.output().contains("asked\n"), "{}", run.output());
    assert!(!is_alive(agent));
    assert_eq!(run.liveness(), Liveness::Free);
}

#[test]
fn an_agent_whose_work_is_done_can_be_cancelled_at_once() {
    let run = run(LONG, "echo $$ > own; sleep 600");
    run.line_of("own");

    tell_done(&run.files).unwrap();
    ask_to_cancel(&run.files).unwrap();

    assert_eq!(run.end(), "Ok(Cancelled)");
}

#[test]
fn one_agent_after_the_other_has_a_run_that_is_handed_over() {
    // Given an agent that ignores the question, and has started something.
    let script = "if [ -e first ]; then echo second; exit 5; fi; sleep 600 & echo $! > child; \
                  trap '' TERM; echo $$ > first; echo first; while true; do sleep 0.05; done";
    let run = run(SHORT, script);
    let (agent, child) = (run.pid_of("first"), run.pid_of("child"));
    // When it is wanted more than once, it happens once.
    ask_to_hand_over(&run.files).unwrap();
    ask_to_hand_over(&run.files).unwrap();

    assert_eq!(run.end(), "Ok(Exited(5))");
    assert_eq!(run.output(), "first\nsecond\n");
    assert!(!is_alive(agent) && !is_alive(child));
    assert_eq!(run.liveness(), Liveness::Free);
}

#[test]
fn an_agent_that_asks_for_a_handover_may_end_at_once() {
    let script = "if [ -e first ]; then exit 6; fi; touch first; \
                  echo 'gt-abc#3 handover' > \"$PWD/runs/gt-abc#3.control\"; exit 0";
    assert_eq!(run(LONG, script).end(), "Ok(Exited(6))");
}

#[test]
fn a_run_that_is_being_handed_over_can_be_cancelled() {
    let run = run(SHORT, "trap '' TERM; echo $$ >> own; while true; do sleep 0.05; done");
    run.line_of("own");
    ask_to_hand_over(&run.files).unwrap();
    ask_to_cancel(&run.files).unwrap();

    assert_eq!(run.end(), "Ok(Cancelled)");
    assert_eq!(run.file("own").lines().count(), 1);
}

#[test]
fn an_agent_that_is_stopped_can_be_cancelled() {
    let run = run(LONG, "echo $$ > own; kill -STOP $$; sleep 600");
    let agent = run.pid_of("own");
    wait_until("the agent is stopped", || {
        fs::read_to_string(format!("/proc/{}/stat", agent.as_raw_pid())).unwrap().contains(") T")
    });

    ask_to_cancel(&run.files).unwrap();

    assert_eq!(run.end(), "Ok(Cancelled)");
}

#[test]
fn processes_that_an_agent_leaves_behind_are_ended() {
    // Given one in its group, one in a session of its own, and one whose parents are gone.
    let run = run(
        LONG,
        "sleep 600 & echo $! > member
         setsid sh -c 'echo $$ > session; exec sleep 600' &
         (setsid sh -c 'sh -c \"echo \\$\\$ > daemon; exec sleep 600\" & exit' &) &
         until [ -s session ] && [ -s daemon ]; do sleep 0.01; done
         exit 5",
    );

    assert_eq!(run.end(), "Ok(Exited(5))");

    for name in ["member", "session", "daemon"] {
        assert!(!is_alive(run.pid_of(name)), "{name} is still there");
    }
    assert_eq!(run.liveness(), Liveness::Free);
}

#[test]
fn a_process_left_behind_that_ignores_term_is_killed() {
    let run = run(
        SHORT,
        "setsid sh -c 'trap \"\" TERM; echo $$ > daemon; while :; do sleep 600; done' &
         until [ -s daemon ]; do sleep 0.01; done",
    );

    assert_eq!(run.end(), "Ok(Exited(0))");

    assert!(!is_alive(run.pid_of("daemon")));
    assert_eq!(run.liveness(), Liveness::Free);
}

#[test]
fn an_orphan_is_ended() {
    let run = run(
        SHORT,
        "setsid sh -c 'trap \"\" TERM; echo $$ > daemon; sleep 600; sleep 600' &
         sleep 600 & echo $! > member; echo $$ > own; wait",
    );
    let processes = ["own", "member", "daemon"].map(|name| run.pid_of(name));
    // A run with a supervisor is left alone.
    run.supervisor();
    assert!(!end_orphan(&run.files, SHORT).unwrap());
    assert!(processes.iter().all(|pid| is_alive(*pid)));
    run.lose_supervisor();

    assert!(end_orphan(&run.files, SHORT).unwrap());

    wait_until("the lock is free", || run.liveness() == Liveness::Free);
    assert!(!processes.iter().any(|pid| is_alive(*pid)));
    // There is nothing left to end.
    assert!(!end_orphan(&run.files, SHORT).unwrap());
}

#[test]
fn a_process_with_the_number_of_an_agent_is_not_ended_for_it() {
    // Given a run that lives, and an unrelated process that has got the number of its agent.
    let run = run(LONG, "sleep 600 & echo $! > child; echo $$ > own; wait");
    let bystander = self::run(LONG, "echo $$ > own; exec sleep 600");
    let [agent, other] = [&run, &bystander].map(|run| run.pid_of("own"));
    run.lose_supervisor();
    fs::write(run.files.lock_path(), format!("{} {} 1\n", i32::MAX, other.as_raw_pid())).unwrap();

    // When the run is ended, then by its lock, and the other one is not touched.
    assert!(end_orphan(&run.files, LONG).unwrap());
    assert!(!is_alive(agent) && !is_alive(run.pid_of("child")));
    assert!(is_alive(other));

    ask_to_cancel(&bystander.files).unwrap();
    assert_eq!(bystander.end(), "Ok(Cancelled)");
}

#[test]
fn a_supervisor_outlives_the_session_that_started_it() {
    let run = run(LONG, "echo $$ > own; sleep 600");
    run.pid_of("own");
    let session = rustix::process::getsid(Some(run.supervisor())).unwrap();
    assert_eq!(session, run.supervisor());
    ask_to_cancel(&run.files).unwrap();
    assert_eq!(run.end(), "Ok(Cancelled)");
}

#[test]
fn a_killed_starter_is_dead_even_if_its_agent_lives() {
    let run = run(LONG, "echo $$ > own; exec sleep 600");
    let agent = run.pid_of("own");
    let (starters, name) = (run.path("starters"), run.line_of("starter"));
    assert!(starter_is_alive(&starters, &name).unwrap());

    run.lose_supervisor();

    assert!(!starter_is_alive(&starters, &name).unwrap());
    assert!(!starters.join(&name).exists());
    assert!(is_alive(agent));
}

/// Listens for the supervisor of a run; the receiver is told when the listening is over.
fn listen(files: &RunFiles) -> (SupervisorListener, mpsc::Receiver<()>) {
    let (tell, told) = mpsc::channel();
    let on_end = Arc::new(move || tell.send(()).unwrap_or_default());
    (SupervisorListener::of(files, Some(on_end)).unwrap(), told)
}

#[test]
fn listening_ends_for_a_supervisor_that_never_came() {
    let root = tempfile::tempdir().unwrap();
    let files = RunFiles::of(root.path(), RUN);
    let (hearing, over) = listen(&files);

    assert_eq!(hearing.first_line_within(LONG, || false).as_deref(), Some(""));

    drop(hearing);
    over.recv_timeout(LONG).unwrap();
    assert!(!files.voice_path().exists());
}

#[test]
fn a_slow_supervisor_is_heard_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    let files = RunFiles::of(root.path(), RUN);
    let (hearing, over) = listen(&files);
    assert_eq!(hearing.first_line_within(SHORT, || true), None);

    let mut voice = fs::File::options().write(true).open(files.voice_path()).unwrap();
    voice.write_all(b"started\n").unwrap();

    assert_eq!(hearing.first_line_within(LONG, || false).as_deref(), Some("started"));
    drop(hearing);
    assert_eq!(over.recv_timeout(SHORT), Err(mpsc::RecvTimeoutError::Timeout));
    drop(voice);
    over.recv_timeout(LONG).unwrap();
}

#[test]
fn the_first_line_of_a_supervisor_is_its_answer_and_its_end_is_told() {
    let root = tempfile::tempdir().unwrap();
    let start = |script: &str, limit: Duration| {
        let (tell, ended) = mpsc::channel();
        let on_end = Arc::new(move || tell.send(()).unwrap_or_default());
        let command = SupervisorCommand {
            program: Path::new("/bin/sh"),
            arguments: &["-c", script].map(OsStr::new),
            environment: &[],
            files: &RunFiles::of(root.path(), RUN),
        };
        (command.start(limit, Some(on_end)).unwrap(), ended)
    };

    let (answer, ended) = start("echo started; echo more", LONG);
    assert_eq!(answer.as_deref(), Some("started"));
    ended.recv_timeout(LONG).unwrap();

    let (answer, ended) = start("exit 3", LONG);
    assert_eq!(answer.as_deref(), Some(""));
    ended.recv_timeout(LONG).unwrap();

    let go = root.path().join("go");
    let (answer, ended) =
        start(&format!("while [ ! -e {} ]; do sleep 0.01; done", go.display()), SHORT);
    assert_eq!(answer, None);
    assert!(ended.try_recv().is_err());
    fs::write(go, "").unwrap();
    ended.recv_timeout(LONG).unwrap();
}

/// An agent whose child leaves its session, closes everything it inherited and clears its environment. The child works
/// elsewhere and does not listen to `TERM`.
const ESCAPES: &str = "setsid env -i bash -c '
        trap \"\" TERM
        for fd in /proc/self/fd/*; do n=${fd##*/}; [ \"$n\" -gt 2 ] && eval \"exec $n>&-\"; done
        cd / && echo $$ > \"$0/escaped\"
        while [ -d \"$0\" ]; do sleep 0.02; done' \"$PWD\" > /dev/null 2>&1 < /dev/null &
    wait";

#[test]
fn a_child_that_hides_from_everything_else_is_found_and_ended_by_its_control_group() {
    let command = ["/bin/bash", "-c", ESCAPES];
    let run = run_in(tempfile::tempdir().unwrap(), LONG, &command, Some((GROUP_VARIABLE, "1")));
    let escaped = run.pid_of("escaped");
    run.lose_supervisor();
    end_orphan(&run.files, Duration::ZERO).unwrap();
    assert_eq!(run.liveness(), Liveness::Free);
    let record = fs::read_to_string(run.files.lock_path()).unwrap();

    let suspect = Suspect::of(&run.files, RUN, None).expect("its supervisor was cut off");
    let suspects = [suspect];
    let left = strays_of(run.root.path(), &suspects);
    match control_groups_missing() {
        None => {
            let group = record.lines().find_map(|line| line.strip_prefix("control group "));
            let group = PathBuf::from(group.expect("the record names its group"));
            assert!(left[0].of_run.contains(&escaped.as_raw_pid()), "{left:?}");
            assert_eq!(end_strays(run.root.path(), &suspects, SHORT), [Strays::default()]);
            assert!(!is_alive(escaped));
            assert!(!group.exists());
        }
        // Without groups no sign of it is left: it works elsewhere and has a session of its own.
        Some(why) => {
            assert!(!record.contains("control group"), "{why}: {record}");
            assert_eq!(left, [Strays::default()]);
            kill_process(escaped, Signal::KILL).unwrap();
        }
    }
}

#[test]
fn a_supervisor_that_has_ended_leaves_an_empty_control_group_that_is_swept() {
    let command = ["/bin/sh", "-c", "cp runs/*.lock record; grep . /proc/self/cgroup > groups"];
    let run = run_in(tempfile::tempdir().unwrap(), LONG, &command, Some((GROUP_VARIABLE, "1")));
    assert_eq!(run.end(), "Ok(Exited(0))");
    let record = run.file("record");
    let group = record.lines().find_map(|line| line.strip_prefix("control group "));
    assert_eq!(group.is_some(), control_groups_missing().is_none(), "{record}");
    if let Some(group) = group.map(PathBuf::from) {
        let name = group.file_name().unwrap().to_str().unwrap();
        assert!(run.file("groups").contains(name), "the agent is in {name}");
        wait_until("the empty group is removed", || {
            sweep_control_groups(&run.path("runs"));
            !group.exists()
        });
    }
}
