//! Several hosts on one store: leases, hosts that are away and gone, and the modes that people give them.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gt_testkit::{Cluster, Sandbox, wait_until};
use serde_json::Value;

use crate::agents::{Stage as _, has_supervisor, is_alive};
use crate::daemon::process;
use crate::projects::{Origin as _, project_agent};
use crate::support::{Steps as _, assert_says, nowhere, refusal, texts};

/// The network between a host and the store, which a test can cut.
struct StoreLink {
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<UnixStream>>>,
}

impl StoreLink {
    /// Listens in a directory like the server, and passes everything on to it.
    fn in_directory(directory: &Path) -> Self {
        let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
        let link = Self { is_cut: Arc::default(), open: Arc::default() };
        let (is_cut, open) = (Arc::clone(&link.is_cut), Arc::clone(&link.open));
        let server = Cluster::shared().socket();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(onward) = UnixStream::connect(&server) else { continue };
                let ends = [&client, &onward].map(|end| end.try_clone().unwrap());
                open.lock().unwrap().extend(ends);
                pass_on(&client, &onward);
            }
        });
        link
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for end in self.open.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn heal(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

fn pass_on(client: &UnixStream, server: &UnixStream) {
    let ends = [(client, server), (server, client)];
    for (mut from, mut to) in ends.map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap())) {
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}

/// Two hosts of one town, called `one` and `two`; `one` reaches the store through the link. A run is lost when its host is out of
/// sight for twice this grace.
fn two_hosts(grace: &str, script: &str) -> ([Sandbox; 2], StoreLink) {
    let (sandbox, url) = (nowhere(), Cluster::shared().fresh_database());
    let network = sandbox.make_dir(sandbox.root().join("net"));
    let link = StoreLink::in_directory(&network);
    let database = url.rsplit('/').next().unwrap();
    let through = network.display().to_string().replace('/', "%2F");
    let urls = [format!("postgres://postgres@{through}/{database}"), url.clone()];
    let hosts = [("one", &urls[0]), ("two", &urls[1])].map(|(name, url)| {
        sandbox.start_gt(&["install", name]).env("DATABASE_URL", url).run().ok();
        let host = sandbox.in_dir(name);
        declare(&host, &format!(r#"{{"host": {{"name": "{name}"}}}}"#));
        host
    });
    let project = sandbox.git_repository("project");
    let clone = sandbox.command("git").args(["clone", "--quiet", "--bare"]);
    clone.arg(&project).arg(sandbox.root().join("origin.git")).run().ok();
    let origin = sandbox.root().join("origin.git").display().to_string();
    let [one, _] = &hosts;
    one.gt(["rig", "add", "web", &origin, "--executor", "process"]).ok();
    one.gt(["config", "unset", "rig.web.host"]).ok();
    for (name, value) in
        [("host.grace", grace), ("worker.kill_grace", "300ms"), ("recovery.cooldown", "0s")]
    {
        one.gt(["config", "set", name, value]).ok();
    }
    project_agent(one, script);
    (hosts, link)
}

/// Writes the settings of a host.
fn declare(host: &Sandbox, settings: &str) {
    host.make_dir(host.cwd().join("settings"));
    fs::write(host.cwd().join("settings/config.json"), settings).unwrap();
}

/// Has the next command of a host renew its lease.
fn forget_renewal(host: &Sandbox) {
    for entry in fs::read_dir(host.cwd().join(".gt")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("lease-") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

fn host(at: &Sandbox, name: &str) -> Value {
    at.gt_json(&["host", "show", name])
}

fn state(at: &Sandbox, name: &str) -> String {
    host(at, name)["state"].as_str().unwrap().to_owned()
}

/// Writes something, says where, and waits.
const DRAFTS: &str = "echo draft > draft-${run##*#}\nsays_where\nwait_for \"end-$bead\"";

fn saved(at: &Sandbox) -> Vec<String> {
    texts(&at.gt_json(&["rescue", "list"]), "run")
}

fn tells(at: &Sandbox, new: &str) -> Option<Value> {
    let events = at.gt_json(&["feed", "--limit", "200"]);
    let host =
        |event: &&Value| event["event_type"] == "host_changed" && event["payload"]["new"] == new;
    events.as_array().unwrap().iter().rev().find(host).map(|event| event["payload"].clone())
}

#[test]
fn the_runs_of_a_host_that_is_cut_off_go_on_elsewhere() {
    let ([one, two], link) = two_hosts("3s", DRAFTS);
    two.gt(["up"]).ok();
    one.bead("we-a", &[]);
    // No daemon runs here: the supervisor keeps the lease.
    one.gt(["sling", "we-a"]).ok();
    one.wait_for_agent("we-a#1");
    let agent = one.agent_of("we-a");
    wait_until("the lease was renewed by the supervisor", || {
        let seen = host(&two, "one");
        seen["state"] == "active" && seen["daemon"] == false && seen["runs"][0] == "we-a#1"
    });

    link.cut();

    wait_until("it is away", || state(&two, "one") == "away");
    assert_says(&two.gt(["status"]).ok().stdout, &["host one is away", "unknown", "we-a#1"]);
    assert_says(
        &two.gt(["why", "we-a"]).ok().stdout,
        &["host one is away", "gt host remove one --force"],
    );
    assert_says(&two.gt(["run", "list"]).ok().stdout, &["unknown: its host one is away"]);
    assert_eq!(two.gt_json(&["scheduler", "status"])["active_polecats"], 1, "it keeps its slot");
    wait_until("its own supervisor has ended the worker", || !is_alive(&agent));
    wait_until("another host goes on", || two.story().contains(&"+ we-a#2".to_owned()));
    assert_eq!(two.run_of("we-a#1")["state"], "lost");
    assert_eq!(two.run_of("we-a#2")["host"].as_str().unwrap().split('/').next(), Some("two"));
    assert_eq!(two.run_of("we-a#2")["attempt"], 1, "that costs no attempt");
    let gone = tells(&two, "gone").unwrap();
    assert_eq!(gone["runs"].as_array().unwrap().len(), 1);

    link.heal();
    wait_until("the supervisor of the lost run has left", || !has_supervisor(&one, "we-a#1"));
    wait_until("the tree of the lost run is saved", || {
        one.cycle().ok();
        saved(&one).contains(&"we-a#1".to_owned())
    });
    assert_eq!(tells(&two, "back").unwrap()["saved"][0], "we-a#1");
    one.allow("end-we-a");
    wait_until("the work of the other host has landed", || two.show("we-a")["status"] == "closed");
    assert_eq!(one.landed_file("draft-2").as_deref(), Some("draft\n"));
    assert_eq!(one.landed_file("draft-1"), None);
    two.gt(["down"]).ok();
    let shouts = fs::read_to_string(one.stage("shouts")).unwrap_or_default();
    assert_eq!(shouts, "", "two agents of one bead at once");
}

#[test]
fn a_host_that_was_paused_ends_its_stale_worker_and_saves_its_tree() {
    let ([one, two], _link) = two_hosts("2s", DRAFTS);
    for host in [&one, &two] {
        host.gt(["up"]).ok();
    }
    one.gt(["host", "drain", "two"]).ok();
    one.bead("we-a", &[]);
    one.gt(["sling", "we-a"]).ok();
    one.wait_for_agent("we-a#1");
    let (agent, daemon) = (one.agent_of("we-a"), process(&one));
    let paused = [daemon, one.supervisor_of("we-a#1"), agent.clone()];
    two.gt(["host", "resume", "two"]).ok();

    for process in &paused {
        one.signal("STOP", process);
    }
    wait_until("another host goes on", || two.story().contains(&"+ we-a#2".to_owned()));
    assert_eq!(state(&two, "one"), "gone");
    for process in &paused {
        one.signal("CONT", process);
    }

    wait_until("the stale worker has ended", || !is_alive(&agent));
    wait_until("its tree is saved", || saved(&two).contains(&"we-a#1".to_owned()));
    wait_until("the host works again", || state(&two, "one") == "active");
    one.allow("end-we-a");
    wait_until("it has landed", || two.show("we-a")["status"] == "closed");
    assert_eq!(one.landed_file("draft-1"), None);
    for host in [&one, &two] {
        host.gt(["down"]).ok();
    }
    assert_eq!(host(&two, "one")["daemon"], false);
}

#[test]
fn a_rig_without_a_repository_works_on_a_host_that_joined_later() {
    let ([one, two], _link) = two_hosts("15m", DRAFTS);
    one.gt(["rig", "add", "chores", "--executor", "process"]).ok();
    one.gt(["config", "set", "rig.chores.command", "pwd"]).ok();
    assert!(!two.cwd().join("chores").exists());
    one.bd(["create", "Sweep", "--rig", "chores", "--id", "ch-a"]).ok();
    two.cycle().ok();

    two.gt(["sling", "ch-a"]).ok();

    wait_until("it is done there", || two.states("ch-a") == ["done"]);
    let run = two.run_of("ch-a");
    assert_eq!(run["host"].as_str().unwrap().split('/').next(), Some("two"));
    assert_eq!(run["attempt"], 1);
    let worked_in = two.gt(["run", "log", "ch-a"]).ok().stdout;
    assert_eq!(worked_in.trim_end(), two.cwd().join("chores").display().to_string());
}

#[test]
fn a_host_is_drained_resumed_and_removed() {
    let ([one, two], _link) = two_hosts("15m", DRAFTS);
    one.cycle().ok();
    two.cycle().ok();
    let names = texts(&one.gt_json(&["host", "list"]), "name");
    assert_eq!(names, ["one", "two"]);
    assert_says(&one.gt(["status"]).ok().stdout, &["HOST", "one (here)", "two"]);
    assert_says(&one.gt(["host", "show"]).ok().stdout, &["one/", "State: active"]);

    assert_says(&two.gt(["host", "drain", "one"]).ok().stdout, &["one takes no new work"]);
    one.bead("we-a", &[]);
    one.gt(["sling", "we-a"]).ok();
    assert_eq!(one.states("we-a"), [] as [String; 0]);
    two.cycle().ok();
    two.wait_for_agent("we-a#1");
    assert_says(
        &refusal(&one.gt(["host", "remove", "two"])),
        &["1 run is live on two", "gt host drain two", "--force"],
    );

    let removed = one.gt(["host", "remove", "two", "--force"]).ok().stdout;
    assert_says(&removed, &["Removed the host two", "we-a#1"]);
    assert_eq!(texts(&one.gt_json(&["host", "list"]), "name"), ["one"]);
    assert_eq!(one.run_of("we-a#1")["state"], "lost");
    assert_says(&one.gt(["host", "resume", "one"]).ok().stdout, &["one takes work again"]);
    one.cycle().ok();
    one.wait_for_agent("we-a#2");
    // The removed host starts nothing, and ends what it had.
    two.bead("we-b", &[]);
    two.gt(["sling", "we-b"]).ok();
    assert_eq!(two.states("we-b"), [] as [String; 0]);
    wait_until("the removed host has cleared its run away", || {
        two.cycle().ok();
        saved(&two).contains(&"we-a#1".to_owned())
    });
    assert_says(&refusal(&two.gt(["host", "drain", "two"])), &["removed", "gt host resume"]);
    one.gt(["run", "cancel", "we-a"]).ok();
}

#[test]
fn gt_why_says_what_each_host_lacks() {
    let ([one, two], _link) = two_hosts("15m", DRAFTS);
    declare(&two, r#"{"host": {"name": "two", "labels": "gpu", "max_polecats": 1}}"#);
    one.cycle().ok();
    two.cycle().ok();
    one.bead("we-a", &[]);
    one.gt(["sling", "we-a", "--agent", "codex"]).ok();
    let why = one.why("we-a")["reasons"].clone();
    assert_eq!(why[0]["code"], "no-host", "{why}");
    let said = one.gt(["why", "we-a"]).ok().stdout;
    assert_says(&said, &["no host can run it: one has no codex; two has no codex", "gt host list"]);

    one.gt(["config", "set", "rig.web.host_labels", "gpu"]).ok();
    one.bead("we-b", &[]);
    one.gt(["sling", "we-b"]).ok();
    let said = one.gt(["why", "we-b"]).ok().stdout;
    assert_says(&said, &["starts on two, not here: one has no label gpu"]);
    assert_eq!(one.why("we-b")["reasons"][0]["code"], "other-host");
    two.cycle().ok();
    two.wait_for_agent("we-b#1");
    one.bead("we-c", &[]);
    one.gt(["sling", "we-c"]).ok();
    let said = one.gt(["why", "we-c"]).ok().stdout;
    assert_says(&said, &["one has no label gpu; two has 1 live runs, which is its cap"]);

    one.gt(["config", "unset", "rig.web.host_labels"]).ok();
    one.bead("we-d", &[]);
    one.gt(["sling", "we-d", "--host", "two"]).ok();
    assert_says(&one.gt(["why", "we-d"]).ok().stdout, &["one is not two, which was asked for"]);
    let said = refusal(&one.gt(["sling", "we-a", "--host", "three"]));
    assert_says(&said, &["no host is called three"]);
    two.gt(["run", "cancel", "we-b"]).ok();
}

#[test]
fn wrong_declarations_of_a_host_are_told_in_a_sentence() {
    let ([one, two], _link) = two_hosts("15m", DRAFTS);
    one.cycle().ok();
    declare(&two, r#"{"host": {"name": "one"}}"#);
    let said = refusal(&two.gt(["scheduler", "run"]));
    assert_says(&said, &["another host is called one already", "host.name"]);
    let said = refusal(&two.gt(["up"]));
    assert_says(&said, &["another host is called one already"]);
    declare(&two, r#"{"host": {"name": "two", "labels": "gpu, a b"}}"#);
    let said = refusal(&two.gt(["scheduler", "run"]));
    assert_says(&said, &["host.labels", "\"a b\" is not a name"]);
    assert_eq!(texts(&one.gt_json(&["host", "list"]), "name"), ["one"], "nothing joined");
    let said = refusal(&one.gt(["config", "set", "host.labels", "gpu"]));
    assert_says(&said, &["describes one host", "settings/config.json"]);
    assert_says(&refusal(&one.gt(["host", "drain", "three"])), &["no host is called three"]);
    declare(&two, r#"{"host": {"name": "two", "labels": "linux,gpu"}}"#);
    two.cycle().ok();
    assert_eq!(host(&one, "two")["labels"], serde_json::json!(["gpu", "linux"]));

    let years = 2 * 365 * 24 * 3600;
    let late = two.start_gt_later(&["daemon", "run"], years).run();
    assert_says(&refusal(&late), &["the clock of this host is", "ahead of that of the store"]);
    // Nor does a command start a run there, once the lease has to be renewed.
    forget_renewal(&two);
    one.bead("we-a", &[]);
    let late = two.start_gt_later(&["sling", "we-a", "--no-convoy"], years).run();
    assert_says(&refusal(&late), &["the clock of this host is", "ahead of that of the store"]);
    assert_eq!(two.states("we-a"), [""; 0]);
}

#[test]
fn a_wrong_setting_does_not_end_the_lease_of_a_host_at_work() {
    let ([one, two], _link) = two_hosts("3s", DRAFTS);
    let labels = |labels: &str| {
        declare(&two, &format!(r#"{{"host": {{"name": "two", "labels": "{labels}"}}}}"#));
    };
    labels("gpu");
    two.gt(["up"]).ok();

    labels("a b");
    let log = || fs::read_to_string(two.cwd().join(".gt/logs/daemon.log")).unwrap_or_default();
    wait_until("the daemon repeats what it declared", || {
        log().contains("lease renewed with the former settings")
    });
    assert_eq!(host(&one, "two")["labels"], serde_json::json!(["gpu"]));

    labels("linux");
    wait_until("the new label counts", || {
        host(&one, "two")["labels"] == serde_json::json!(["linux"])
    });
    two.gt(["down"]).ok();
}

#[test]
fn a_copy_of_a_machine_at_work_declares_nothing_lost_and_starts_nothing() {
    let ([one, two], _link) = two_hosts("1m", DRAFTS);
    one.bead("we-a", &[]);
    one.gt(["sling", "we-a"]).ok();
    one.wait_for_agent("we-a#1");
    let town = fs::read_to_string(two.cwd().join(".gt/town.toml")).unwrap();
    let database = town.split('"').find_map(|text| text.strip_prefix("postgres://"));
    let database = database.unwrap().rsplit('/').next().unwrap();
    // The same disk after another boot, which has written its sign just now.
    let sign = |seconds: u32| {
        Cluster::shared().sql(
            database,
            &format!(
                "UPDATE gt.hosts SET incarnation = 'other' || incarnation, \
                 seen_at_s = extract(epoch FROM now())::bigint - {seconds} WHERE name = 'one'"
            ),
        );
        forget_renewal(&one);
    };
    sign(1);

    one.bead("we-b", &[]);
    for command in [&["scheduler", "run"][..], &["sling", "we-b"]] {
        let refused = refusal(&one.gt(command.iter().copied()));
        assert_says(&refused, &["another machine with the identity of this one", ".gt/host"]);
    }
    sign(1);
    let told = one.gt(["doctor"]);
    assert_says(&told.stdout, &["another machine with the identity of this one"]);
    assert_eq!(one.states("we-a"), ["running"]);
    // That machine is gone: this one was only started again.
    sign(120);
    one.gt(["scheduler", "run"]).ok();
    one.allow("end-we-a");
    wait_until("the run is over", || two.states("we-a") == ["done"]);
}
