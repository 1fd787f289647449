//! Three hosts with networks of their own work on one PostgreSQL store, through partitions, deaths, a copy and a crash.
//!
//! ```text
//! unshare --net fleet <gt> [beads]
//! ```
//!
//! The program makes a bridge in its own network namespace, where the server and the origin are, and a namespace for each host.
//! It needs root and `ip`. `scripts/fleet` calls it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gt_testkit::{
    Cluster, FinishedProgram, RunningProgram, Sandbox, SandboxCommand, write_program,
};
use serde_json::Value;

/// The address of the server and the origin, from the range for documentation.
const CENTER: &str = "192.0.2.1";
const NETWORK: &str = "192.0.2";
/// A host is away after this time without a renewal, and gone after twice this time.
const GRACE: &str = "15s";
/// How many beads are worked on if the caller does not say.
const BEADS_DEFAULT: usize = 100;
/// A partition, a death, a copy and a crash.
const FAULTS: usize = 4;
/// How long the fleet may take to get from one state to the next, on a busy machine.
const TIME_LIMIT: Duration = Duration::from_mins(5);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The agent: notes that it lives, works a little, and commits one file. A second live agent of the same bead is written down.
const AGENT: &str = r#"#!/bin/sh
set -eu
bead=$1
mark=STAGE/live/$bead
if [ -f "$mark" ]; then
    other=$(cat "$mark")
    if tr '\0' ' ' < "/proc/$other/cmdline" 2>/dev/null | grep -q "agent $bead"; then
        echo "$bead: $other and $$" >> STAGE/doubled
    fi
fi
echo $$ > "$mark"
sleep 2
echo "$bead" > "$bead.txt"
git add --all
git commit --quiet --message "$bead"
rm -f "$mark"
gt done
"#;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(gt) = arguments.next() else {
        let _ = writeln!(io::stderr(), "usage: unshare --net fleet <gt> [beads]");
        return ExitCode::from(2);
    };
    let beads = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(BEADS_DEFAULT);
    let Ok(gt) = fs::canonicalize(gt) else { return ExitCode::from(2) };
    work_through(&gt, beads, &mut io::stdout().lock())
        .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// A network namespace with an address on the bridge, removed with everything in it.
struct HostNetwork<'s> {
    sandbox: &'s Sandbox,
    namespace: String,
    link: String,
}

impl<'s> HostNetwork<'s> {
    fn make(sandbox: &'s Sandbox, number: usize) -> Self {
        let namespace = format!("gt-fleet-{}-{number}", std::process::id());
        let network = Self { sandbox, namespace, link: format!("host{number}") };
        let (namespace, link) = (&network.namespace, &network.link);
        let address = format!("{NETWORK}.{}/24", number + 10);
        ip(sandbox, &["netns", "add", namespace]);
        let pair =
            ["link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace];
        ip(sandbox, &pair);
        ip(sandbox, &["link", "set", link, "master", "center", "up"]);
        ip(sandbox, &["-n", namespace, "address", "add", &address, "dev", "eth0"]);
        ip(sandbox, &["-n", namespace, "link", "set", "eth0", "up"]);
        ip(sandbox, &["-n", namespace, "link", "set", "lo", "up"]);
        network
    }

    /// From now on every packet is dropped.
    fn cut(&self) {
        ip(self.sandbox, &["link", "set", &self.link, "down"]);
    }

    fn heal(&self) {
        ip(self.sandbox, &["link", "set", &self.link, "up"]);
    }

    fn command(&self, program: &Path) -> SandboxCommand {
        let command = self.sandbox.command("ip").args(["netns", "exec", &self.namespace]);
        command.arg(program)
    }

    /// Kills every process of the host at once, as a power cut does.
    fn kill_everything(&self) -> usize {
        let processes = self.sandbox.command("ip").args(["netns", "pids", &self.namespace]).run();
        let processes: Vec<String> =
            processes.ok().stdout.split_whitespace().map(str::to_owned).collect();
        if !processes.is_empty() {
            // A process may have ended by itself meanwhile.
            let _ = self.sandbox.command("kill").arg("-KILL").args(&processes).run();
        }
        processes.len()
    }
}

impl Drop for HostNetwork<'_> {
    fn drop(&mut self) {
        self.kill_everything();
        ip(self.sandbox, &["netns", "delete", &self.namespace]);
    }
}

fn ip(sandbox: &Sandbox, words: &[&str]) {
    sandbox.command("ip").args(words).run().ok();
}

/// A directory of the town, and the network that its processes have.
struct TrialHost<'s> {
    network: &'s HostNetwork<'s>,
    directory: PathBuf,
}

impl TrialHost<'_> {
    fn gt(&self, words: &[&str]) -> FinishedProgram {
        let sandbox = self.network.sandbox;
        self.network.command(sandbox.gt_path()).dir(&self.directory).args(words).run()
    }

    fn json(&self, words: &[&str]) -> Value {
        self.gt(words).ok().json()
    }

    fn declare(&self, name: &str) -> io::Result<()> {
        let settings = self.directory.join("settings");
        fs::create_dir_all(&settings)?;
        let declared = format!(r#"{{"host": {{"name": "{name}", "max_polecats": 3}}}}"#);
        fs::write(settings.join("config.json"), declared)
    }

    fn state_of(&self, name: &str) -> String {
        let hosts = self.json(&["host", "list", "--all", "--json"]);
        let mut hosts = hosts.as_array().into_iter().flatten();
        let host = hosts.find(|host| host["name"] == name);
        host.and_then(|host| host["state"].as_str()).unwrap_or("unknown").to_owned()
    }

    fn closed(&self) -> usize {
        let count = self.gt(&["bd", "count", "--status", "closed", "--type", "task"]);
        count.stdout.trim().parse().unwrap_or(0)
    }

    /// Waits until a condition holds. If it does not, everything that the town says of itself is printed.
    #[track_caller]
    fn wait_until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + TIME_LIMIT;
        while !condition() {
            if Instant::now() >= deadline {
                for words in [&["host", "list"][..], &["status"], &["run", "list"], &["inbox"]] {
                    let said = self.gt(words);
                    let _ = writeln!(
                        io::stderr(),
                        "$ gt {}\n{}{}",
                        words.join(" "),
                        said.stdout,
                        said.stderr
                    );
                }
                self.network.sandbox.keep();
                panic!("waited in vain until {what}");
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether an agent works on a host. A run that has only begun to start loses nothing with its host.
    fn has_agent_on(&self, name: &str) -> bool {
        let runs = self.json(&["run", "list", "--json", "--limit", "0"]);
        let is_there = |run: &Value| {
            let host = run["host"].as_str().unwrap_or_default();
            run["state"] == "running" && host.split('/').next() == Some(name)
        };
        runs.as_array().into_iter().flatten().any(is_there)
    }
}

/// The origin, served to the hosts over the network, until it is dropped.
fn serve_origin(sandbox: &Sandbox) -> RunningProgram {
    let project = sandbox.git_repository("project");
    let origin = sandbox.root().join("origins/web.git");
    let clone = sandbox.command("git").args(["clone", "--quiet", "--bare"]);
    clone.arg(project).arg(&origin).run().ok();
    let base = format!("--base-path={}", sandbox.root().join("origins").display());
    let listen = format!("--listen={CENTER}");
    let options = ["daemon", "--reuseaddr", "--export-all", "--enable=receive-pack"];
    let hours = Duration::from_hours(2);
    sandbox.command("git").args(options).args([base, listen]).time_limit(hours).start()
}

fn work_through(gt: &Path, beads: usize, out: &mut impl Write) -> io::Result<()> {
    let sandbox = &Sandbox::new(gt);
    let stage = sandbox.make_dir(sandbox.root().join("stage"));
    sandbox.make_dir(stage.join("live"));
    ip(sandbox, &["link", "set", "lo", "up"]);
    ip(sandbox, &["link", "add", "center", "type", "bridge"]);
    ip(sandbox, &["address", "add", &format!("{CENTER}/24"), "dev", "center"]);
    ip(sandbox, &["link", "set", "center", "up"]);

    let access = tempfile_for_access()?;
    let cluster = Cluster::start(&format!(
        "listen_addresses = '{CENTER}'\nhba_file = '{}'\n",
        access.path().display()
    ));
    let database = cluster.fresh_database();
    let database = database.rsplit('/').next().unwrap_or_default();
    let url = format!("postgres://postgres@{CENTER}/{database}");
    let _origin = serve_origin(sandbox);

    let networks: Vec<HostNetwork<'_>> =
        (0..3).map(|number| HostNetwork::make(sandbox, number)).collect();
    let hosts: Vec<TrialHost<'_>> = ["one", "two", "three"]
        .into_iter()
        .zip(&networks)
        .map(|(name, network)| {
            let install = network.command(gt).env("DATABASE_URL", &url).dir(sandbox.root());
            install.args(["install", name]).run().ok();
            let host = TrialHost { network, directory: sandbox.root().join(name) };
            host.declare(name)?;
            Ok(host)
        })
        .collect::<io::Result<_>>()?;
    let [one, two, three] = hosts.as_slice() else { unreachable!("three were made") };

    let agent = stage.join("agent");
    write_program(&agent, AGENT.replace("STAGE", &stage.display().to_string()));
    let repository = format!("git://{CENTER}/web.git");
    one.gt(&["rig", "add", "web", &repository, "--executor", "process"]).ok();
    let command = format!("{} {{bead}}", agent.display());
    for (name, value) in [
        ("rig.web.command", command.as_str()),
        ("scheduler.max_polecats", "9"),
        ("host.grace", GRACE),
        ("worker.kill_grace", "1s"),
        ("recovery.cooldown", "0s"),
    ] {
        one.gt(&["config", "set", name, value]).ok();
    }
    for host in &hosts {
        host.gt(&["up"]).ok();
    }
    let plan: Vec<String> =
        (0..beads).map(|number| format!("{{\"title\":\"Bead {number}\"}}")).collect();
    let file = stage.join("beads.jsonl").display().to_string();
    fs::write(&file, plan.join("\n"))?;
    one.gt(&["bd", "create", "--rig", "web", "--file", &file]).ok();
    let ids = one.json(&["bd", "list", "--all", "--json", "--limit", "0", "--type", "task"]);
    let ids: Vec<String> = ids
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|bead| bead["id"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(ids.len(), beads, "all beads are made");
    // A part of the work before each fault, so that there are runs which meet it.
    let mut parts = ids.chunks(beads.div_ceil(FAULTS).max(1));
    let mut sling_next = || {
        let part = parts.next().unwrap_or_default();
        let words = ["sling"].into_iter().chain(part.iter().map(String::as_str));
        let words: Vec<&str> = words.chain(["web", "--yes"]).collect();
        one.gt(&words).ok();
    };

    sling_next();
    one.wait_until("the second host works", || one.has_agent_on("two"));
    networks[1].cut();
    one.wait_until("the second host is gone", || one.state_of("two") == "gone");
    networks[1].heal();
    one.wait_until("the second host is back", || one.state_of("two") == "active");
    writeln!(out, "partition and return: {} of {beads} landed", one.closed())?;

    sling_next();
    one.wait_until("the third host works", || one.has_agent_on("three"));
    let killed = networks[2].kill_everything();
    one.wait_until("the third host is gone", || one.state_of("three") == "gone");
    writeln!(out, "death of a host ({killed} processes): {} of {beads} landed", one.closed())?;

    sling_next();
    let copy = TrialHost { network: three.network, directory: sandbox.root().join("copy") };
    let copied = sandbox.command("cp").arg("--archive").arg(&one.directory).arg(&copy.directory);
    copied.run().ok();
    let same_name = copy.gt(&["up"]).fails(1);
    assert!(same_name.stderr.contains("one"), "the name is taken: {}", same_name.stderr);
    copy.declare("four")?;
    copy.gt(&["up"]).ok();
    one.wait_until("the copy is a host", || one.state_of("four") == "active");
    assert_eq!(one.state_of("one"), "active");
    writeln!(out, "copy of a host: {} of {beads} landed", one.closed())?;

    sling_next();
    one.wait_until("the copy works", || one.has_agent_on("four"));
    cluster.crash();
    one.wait_until("every bead has landed", || one.closed() == beads);
    writeln!(out, "crash of the server: {} of {beads} landed", one.closed())?;

    for host in [one, two, &copy] {
        host.gt(&["down"]).ok();
    }
    check(sandbox, one, &ids, out)
}

/// The file that lets the hosts connect to the server.
fn tempfile_for_access() -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    writeln!(file, "local all all trust\nhost all all {NETWORK}.0/24 trust")?;
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(file.path(), readable)?;
    Ok(file)
}

/// Nothing was lost, nothing was done twice, and no bead had two live agents.
fn check(
    sandbox: &Sandbox,
    host: &TrialHost<'_>,
    ids: &[String],
    out: &mut impl Write,
) -> io::Result<()> {
    let doubled = fs::read_to_string(sandbox.root().join("stage/doubled")).unwrap_or_default();
    assert_eq!(doubled, "", "no bead has two live agents");
    let log = sandbox.command("git").dir(sandbox.root().join("origins/web.git"));
    let log = log.args(["log", "--format=", "--name-only", "--diff-filter=A", "main"]).run().ok();
    let mut landed: Vec<&str> =
        log.stdout.lines().filter_map(|file| file.strip_suffix(".txt")).collect();
    landed.sort_unstable();
    let mut expected: Vec<&str> = ids.iter().map(String::as_str).collect();
    expected.sort_unstable();
    if landed != expected {
        sandbox.keep();
        for id in expected.iter().filter(|id| !landed.contains(id)) {
            writeln!(out, "{id} has not landed: {}", host.gt(&["why", id]).stdout)?;
            writeln!(out, "{}", host.gt(&["feed", "--bead", id]).stdout)?;
        }
    }
    assert_eq!(landed, expected, "each bead has landed once");

    let runs = host.json(&["run", "list", "--all", "--json", "--limit", "0"]);
    let runs: Vec<&Value> = runs.as_array().into_iter().flatten().collect();
    let count = |state: &str| runs.iter().filter(|run| run["state"] == state).count();
    assert_eq!(count("done"), ids.len(), "each bead has one run that is done");
    // Its agents do nothing wrong, so the last words of one that failed say what the fleet did to it.
    for run in runs.iter().filter(|run| run["state"] == "failed") {
        let id = run["id"].as_str().unwrap_or_default();
        let shown = host.gt(&["run", "show", id]);
        let said = host.gt(&["run", "log", id]);
        writeln!(out, "{id} failed:\n{}{}", shown.stdout, said.stdout)?;
    }
    host.gt(&["store", "check"]).ok();
    writeln!(
        out,
        "{} runs: {} done, {} lost, {} failed; the store is sound",
        runs.len(),
        count("done"),
        count("lost"),
        count("failed")
    )
}
