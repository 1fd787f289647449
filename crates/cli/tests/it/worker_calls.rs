//! The commands of workers, which the daemon or the supervisor of their run carries out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use gt_testkit::{Cluster, Sandbox, wait_until};

use crate::agents::Stage as _;
use crate::fence_bypass::{TELLS, as_worker, start_as_worker};
use crate::projects::{Origin as _, Worker, town_with_project};
use crate::support::{Steps as _, assert_says, nowhere};

/// A variable of the environment of the worker of we-a.
fn variable(town: &Sandbox, name: &str) -> Option<String> {
    let told = fs::read_to_string(town.stage("we-a").join("environment")).unwrap();
    let found = told.split('\0').find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='));
    found.map(str::to_owned)
}

/// The sockets at which the worker of we-a calls: that of the daemon, and that of its supervisor.
fn sockets(town: &Sandbox) -> [PathBuf; 2] {
    let sockets = variable(town, "GT_SOCKET").unwrap();
    let (daemon, supervisor) = sockets.split_once(':').unwrap();
    [daemon.into(), supervisor.into()]
}

/// Files that a command names are opened by the process that the worker started, with its permissions.
fn try_files(town: &Sandbox, worker: &Worker<'_>) {
    as_worker(town, worker, "bd comments add we-a -f /proc/self/comm").ok();
    let comments = town.json(&["comments", "list", "we-a"]);
    let last = comments.as_array().unwrap().last().unwrap();
    assert_eq!(last["text"].as_str().unwrap().trim_end(), "bd", "{last}");

    let export = "umask 077; bd export -o of-worker/lines && stat -c %a of-worker/lines && wc -l < of-worker/lines";
    let exported = as_worker(town, worker, export).ok().stdout;
    assert!(exported.starts_with("600\n") && exported != "600\n0\n", "{exported}");

    let formula = "printf 'formula = \"mol-own\"\\nversion = 1\\n[[steps]]\\nid = \"a\"\\ntitle = \"A\"\\n' > of-worker/mol-own.formula.toml";
    as_worker(town, worker, formula).ok();
    for command in [
        "bd formula list --search-path of-worker",
        "bd cook of-worker/mol-own.formula.toml",
        "bd cook mol-own --search-path of-worker",
    ] {
        assert_says(&as_worker(town, worker, command).ok().stdout, &["mol-own"]);
    }
    as_worker(town, worker, "cd of-worker && bd setup claude && test -d .claude").ok();
    for (command, says) in [
        ("bd import of-worker", "workers import files of lines"),
        ("bd comments add we-a -f of-worker", "Is a directory"),
        ("bd comments add we-a -f /dev/zero", "more than 64 MiB"),
        ("bd cook of-worker/none.formula.toml", "No such file"),
        ("bd export -o of-worker/a/b/lines", "No such file"),
        ("bd export --watch -o of-worker/lines", "keeps no file of a worker current"),
    ] {
        let refused = as_worker(town, worker, command);
        assert_eq!(refused.code, 1, "{command}: {refused}");
        assert_says(&refused.stderr, &[says]);
    }
    as_worker(town, worker, "rm -r of-worker").ok();
}

/// What commands must do wherever they are carried out.
fn try_commands(town: &Sandbox, worker: &Worker<'_>) {
    let shown = as_worker(
        town,
        worker,
        "bd show we-a --json; printf 'a\\nb\\n' | while read x; do gt hook >&2; echo $x; done",
    );
    assert_says(&shown.ok().stdout, &["\"id\": \"we-a\"", "]\na\nb\n"]);
    let said =
        as_worker(town, worker, "printf 'From input' | bd comments add we-a -f -").ok().stdout;
    assert_says(&said, &["Comment added"]);
    let script = "mkdir -p sub && cd sub && echo 'From a file' > note && bd comments add we-a -f note; rm -r ../sub";
    as_worker(town, worker, script).ok();
    let comments = town.json(&["comments", "list", "we-a"]).to_string();
    assert_says(&comments, &["From input", "From a file", "web/polecats/"]);
    try_files(town, worker);

    let unknown = as_worker(town, worker, "bd show we-none");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (1, ""), "{unknown}");
    assert_says(&unknown.stderr, &["Error: ", "we-none"]);
    let usage = as_worker(town, worker, "gt done --nonsense");
    assert_eq!(usage.code, 2, "{usage}");
    let refused = as_worker(town, worker, "gt down --json");
    assert_eq!(refused.code, 1, "{refused}");
    assert_says(&refused.stderr, &["gt down is not for workers"]);
    assert_says(&refused.stdout, &["\"error\""]);
    for (command, verb) in [
        ("gt -C . down", "gt down"),
        ("gt -qC . store check", "gt store"),
        ("gt --directory=. install elsewhere", "gt install"),
        ("gt -qC . worker exec we-a#1", "gt worker"),
        ("gt bd -C . orphans", "bd orphans"),
        ("gt -C . bd orphans", "bd orphans"),
        ("bd -C . edit we-a", "bd edit"),
        ("bd --no-daemon --db .gt/gt.db init", "bd init"),
    ] {
        let refused = as_worker(town, worker, command);
        assert_eq!(refused.code, 1, "{command}: {refused}");
        assert_says(&refused.stderr, &[&format!("{verb} is not for workers")]);
    }
    let elsewhere = as_worker(town, worker, "bd config set a b");
    assert_says(&elsewhere.stderr, &["worker.rights"]);
}

#[test]
fn commands_of_a_worker_are_carried_out_by_its_supervisor_or_the_daemon() {
    let town = town_with_project(TELLS);
    town.bead("we-a", &[]);
    let sling = town.start_gt(&["sling", "we-a"]);
    sling.env("PGPASSWORD", "secret").run().ok();
    let worker = Worker::of(&town, "we-a#1");
    let [daemon, supervisor] = sockets(&town);
    assert_eq!(variable(&town, "GT_RUN_TOKEN"), None);
    assert_eq!(variable(&town, "PGPASSWORD").unwrap_or_default(), "");
    let token = PathBuf::from(variable(&town, "GT_RUN_TOKEN_FILE").unwrap());
    assert_eq!(fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!daemon.exists() && supervisor.exists());
    for socket in [&daemon, &supervisor] {
        assert!(socket.as_os_str().len() < 100, "{}", socket.display());
    }

    try_commands(&town, &worker);
    town.gt(["up"]).ok();
    assert!(daemon.exists());
    // Only the daemon is left.
    fs::rename(&supervisor, supervisor.with_extension("away")).unwrap();
    try_commands(&town, &worker);
    let many = "for i in 1 2 3 4 5 6 7 8; do bd create \"Tea $i\" --silent & done; wait";
    let made = as_worker(&town, &worker, many).ok().stdout;
    assert_eq!(made.lines().count(), 8, "{made}");
    town.gt(["down"]).ok();
    assert!(!daemon.exists());
    fs::rename(supervisor.with_extension("away"), &supervisor).unwrap();

    worker.commit("tea", "tea\n", "Tea");
    as_worker(&town, &worker, "gt done").ok();
    assert_eq!(town.landed("main"), ["First commit", "Tea"]);
    town.allow("end-we-a");
    worker.wait_until_gone();
    assert!(!token.exists() && !supervisor.exists());
    let late = as_worker(&town, &worker, "bd list");
    assert_eq!(late.code, 1, "{late}");
    assert_says(&late.stderr, &["is void", "stop working"]);
}

#[test]
fn a_command_of_a_worker_waits_for_a_server_and_says_so() {
    let town = town_with_project(TELLS);
    let worker = Worker::begin(&town, "we-a", &[]);
    let [_, supervisor] = sockets(&town);
    let away = supervisor.with_extension("away");
    fs::rename(&supervisor, &away).unwrap();

    let told = town.root().join("told");
    let script = format!("bd comments add we-a Later 2> '{}'", told.display());
    let call = start_as_worker(&town, &worker, &script).start();
    wait_until("it says that it waits", || {
        fs::read_to_string(&told).unwrap_or_default().contains("waiting for the daemon")
    });
    // Another process has changed nothing meanwhile: the store is not opened instead.
    assert_eq!(town.json(&["comments", "list", "we-a"]).as_array().unwrap().len(), 0);
    fs::rename(&away, &supervisor).unwrap();

    call.wait().ok();
    assert_eq!(town.json(&["comments", "list", "we-a"]).as_array().unwrap().len(), 1);
    town.allow("end-we-a");
}

#[test]
fn the_password_of_a_store_is_kept_outside_of_the_town() {
    let sandbox = nowhere();
    let url = Cluster::shared().fresh_database();
    let (scheme, rest) = url.split_once("://").unwrap();
    let (login, host) = rest.split_once('@').unwrap_or(("postgres", rest));
    let user = login.split(':').next().unwrap();
    let url = format!("{scheme}://{user}:open%20sesame@{host}");

    let install = sandbox.command(sandbox.gt_path()).env("DATABASE_URL", &url);
    install.args(["install", "town"]).run().ok();

    let file = fs::read_to_string(sandbox.cwd().join("town/.gt/town.toml")).unwrap();
    assert!(file.contains("database_url") && !file.contains("sesame"), "{file}");
    let kept = sandbox.root().join("home/.config/gt/credentials");
    let kept: Vec<_> = fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read_to_string(&kept[0]).unwrap().trim(), url);
    assert_eq!(fs::metadata(&kept[0]).unwrap().permissions().mode() & 0o777, 0o600);
    sandbox.in_dir("town").bead("hq-a", &[]);
}
