//! Hosts that are added over a real sshd. The other machine is this one, with another home directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use gt_testkit::{Cluster, Sandbox, Sshd, wait_until};

use crate::agents::Stage as _;
use crate::support::{Steps as _, assert_says, nowhere, refusal, texts, town_on_file};

/// A town on PostgreSQL, and a machine that is to become its host.
struct OtherMachine {
    town: Sandbox,
    /// The database of the town.
    database: String,
    sshd: Sshd,
}

impl std::ops::Deref for OtherMachine {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.town
    }
}

impl OtherMachine {
    fn new() -> Self {
        Self::with_variables(|_| Vec::new())
    }

    /// The sessions of the machine have these variables, beside a home of their own.
    fn with_variables(more: impl FnOnce(&Sandbox) -> Vec<(&'static str, String)>) -> Self {
        let sandbox = nowhere();
        // The server asks for no password; the one in the URL is kept and sent all the same.
        let url = Cluster::shared().fresh_database().replace("postgres@", "postgres:s3cret%2F@");
        sandbox.start_gt(&["install", "town"]).env("DATABASE_URL", &url).run().ok();
        let town = sandbox.in_dir("town");
        town.gt(["rig", "add", "chores", "--executor", "process"]).ok();
        town.gt(["config", "set", "rig.chores.command", "echo {bead}"]).ok();
        let home = town.make_dir(town.root().join("other-home"));
        let mut variables = vec![
            ("HOME", home.display().to_string()),
            ("XDG_CONFIG_HOME", home.join(".config").display().to_string()),
            ("XDG_RUNTIME_DIR", "/nonexistent".to_owned()),
        ];
        variables.extend(more(&town));
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let sshd = Sshd::start(&variables);
        let config = sshd.client_config();
        let command = format!("ssh -T -F {} -oBatchMode=yes", config.display());
        town.gt(["config", "set", "host.ssh_command", &command]).ok();
        let database = url.rsplit('/').next().unwrap().to_owned();
        Self { town, database, sshd }
    }

    fn home(&self) -> PathBuf {
        self.root().join("other-home")
    }

    /// Everything that is in the home of the other machine.
    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.home()).unwrap().flatten();
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn add(&self, more: &[&str]) -> gt_testkit::FinishedProgram {
        let words = ["host", "add", "two", "--ssh", self.sshd.host()];
        self.gt(words.iter().chain(more))
    }

    #[track_caller]
    fn is_refused(&self, more: &[&str], says: &[&str]) {
        let said = refusal(&self.add(more));
        assert_says(&said, says);
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        assert_eq!(self.files(), [] as [String; 0], "something is left");
        let hosts = texts(&self.gt_json(&["host", "list"]), "name");
        assert!(!hosts.contains(&"two".to_owned()), "{hosts:?}");
    }
}

#[test]
fn a_machine_is_added_works_and_gets_a_new_program() {
    let machine = OtherMachine::new();
    machine.cycle().ok();

    let said = machine.add(&["--labels", "gpu", "--max-polecats", "3"]).ok().stdout;

    assert_says(&said, &["two joined the town", "other-home/town on builder"]);
    let host = machine.gt_json(&["host", "show", "two"]);
    assert_eq!(host["state"], "active");
    assert_eq!(
        (&host["labels"][0], &host["cap"], &host["address"]),
        (&"gpu".into(), &3.into(), &"builder".into())
    );
    assert_eq!(host["daemon"], true);
    let there = machine.in_dir(machine.home().join("town"));
    assert!(!there.cwd().join(".gt/joining").exists());
    let [kept] = machine.credentials().try_into().unwrap();
    assert_says(&fs::read_to_string(&kept).unwrap(), &["password=s3cret%2F"]);
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(there.cwd().join(".gt/town.toml")).unwrap().contains("s3cret"));
    machine.bd(["create", "Sweep", "--rig", "chores", "--id", "ch-a"]).ok();
    machine.gt(["sling", "ch-a", "--host", "two"]).ok();
    wait_until("its daemon has done the work", || machine.states("ch-a") == ["done"]);
    let run = machine.run_of("ch-a");
    assert_eq!(run["host"].as_str().unwrap().split('/').next(), Some("two"));
    machine.is_refused_again();

    // Something that is not our program lies there meanwhile; the daemon goes on with the one that it has.
    let program = there.cwd().join(".gt/program/gt");
    let before = fs::metadata(&program).unwrap().len();
    let daemon = || fs::read_to_string(there.cwd().join(".gt/daemon.lock")).unwrap();
    let first = daemon();
    assert_says(&machine.gt(["host", "upgrade", "two"]).ok().stdout, &["two works with gt"]);
    assert_ne!(daemon(), first, "the daemon was not restarted");
    assert_eq!(fs::metadata(&program).unwrap().len(), before);
    assert_eq!(machine.gt_json(&["host", "show", "two"])["daemon"], true);
    assert!(!program.with_extension("old").exists() && !program.with_extension("new").exists());

    // A daemon that cannot start again keeps its former program.
    fs::write(there.cwd().join("settings/config.json"), "{").unwrap();
    let said = refusal(&machine.gt(["host", "upgrade", "two"]));
    assert_says(&said, &["two was not upgraded", "config.json"]);
    fs::write(there.cwd().join("settings/config.json"), r#"{"host": {"name": "two"}}"#).unwrap();
    there.gt(["up"]).ok();
    there.gt(["down"]).ok();
}

impl OtherMachine {
    /// The files of passwords on the other machine.
    fn credentials(&self) -> Vec<PathBuf> {
        let directory = self.home().join(".config/gt/credentials");
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// A second host of this name is refused before the machine is asked.
    #[track_caller]
    fn is_refused_again(&self) {
        let said = refusal(&self.add(&[]));
        assert_says(&said, &["a host is called two already", "gt host remove two"]);
    }
}

#[test]
fn a_machine_that_cannot_join_is_left_as_it_was() {
    let machine = OtherMachine::new();
    machine.is_refused(&["--labels", "a b"], &["host.labels", "\"a b\" is not a name"]);
    machine.is_refused(&["--rigs", "nothing"], &["nothing"]);
    let other = Cluster::shared().fresh_database();
    let sandbox = machine.in_dir(machine.root());
    sandbox.start_gt(&["install", "stranger"]).env("DATABASE_URL", &other).run().ok();
    machine
        .is_refused(&["--store", &other], &["two did not join", "holds another town", "--store"]);
    let empty = Cluster::shared().fresh_database();
    machine.is_refused(&["--store", &empty], &["two did not join", "builder is as it was"]);
    machine.is_refused(
        &["--store", "postgres://me:secret@db/town"],
        &["--store has a password", "leave it out"],
    );
    machine.gt(["config", "set", "host.ssh_command", "/nonexistent/ssh"]).ok();
    machine.is_refused(&[], &["builder cannot be reached", "/nonexistent/ssh"]);
    let wrong = machine.sshd.wrong_client_config();
    let command = format!("ssh -T -F {} -oBatchMode=yes", wrong.display());
    machine.gt(["config", "set", "host.ssh_command", &command]).ok();
    machine.is_refused(&[], &["builder cannot be reached", "Permission denied"]);
}

#[test]
fn a_host_that_joined_is_taken_back_if_the_rest_fails() {
    let machine = OtherMachine::new();
    let ssh = format!("ssh -T -F {} -oBatchMode=yes", machine.sshd.client_config().display());
    let mark = machine.root().join("ssh-arguments").display().to_string();
    let script = format!(
        "echo \"$*\" >> {mark}; {ssh} \"$@\"; status=$?
         case $* in *'host join'*) echo 'Error: the line broke' >&2; exit 1;; esac; exit $status"
    );
    let script = machine.write_script("brittle-ssh", &script);
    machine.gt(["config", "set", "host.ssh_command", &script.display().to_string()]).ok();

    let said = refusal(&machine.add(&[]));

    assert_says(&said, &["two did not join: builder says: the line broke; builder is as it was"]);
    assert!(!machine.home().join("town").exists());
    assert_eq!(machine.credentials(), [] as [PathBuf; 0]);
    assert!(texts(&machine.gt_json(&["host", "list"]), "name").is_empty());
    let arguments = fs::read_to_string(mark).unwrap();
    assert!(arguments.contains("host join") && !arguments.contains("s3cret"), "{arguments}");

    // The name is free again, and what a cut-off attempt has left is removed first.
    let left = machine.make_dir(machine.home().join("town/.gt"));
    fs::write(left.join("joining"), "").unwrap();
    let command = ssh.as_str();
    machine.gt(["config", "set", "host.ssh_command", command]).ok();
    machine.add(&[]).ok();
    assert_eq!(machine.gt_json(&["host", "show", "two"])["state"], "active");
    machine.in_dir(machine.home().join("town")).gt(["down"]).ok();
}

#[test]
fn a_machine_without_git_or_tmux_is_refused() {
    let machine = OtherMachine::with_variables(|town| {
        let programs = town.make_dir(town.root().join("few-programs"));
        for name in ["uname", "date"] {
            let path = ["/usr/bin", "/bin"].map(|at| PathBuf::from(at).join(name));
            let path = path.into_iter().find(|path| path.exists()).unwrap();
            std::os::unix::fs::symlink(path, programs.join(name)).unwrap();
        }
        vec![("PATH", programs.display().to_string())]
    });
    machine.is_refused(&[], &["builder has no git; install it there"]);
    let git = machine.write_script("git", "true");
    fs::copy(git, machine.root().join("few-programs/git")).unwrap();
    machine.gt(["rig", "set", "chores", "executor", "tmux"]).ok();
    machine.is_refused(&[], &["builder has no tmux, which the rig chores needs"]);
    let years = "#!/bin/sh\necho 100\n";
    let date = machine.root().join("few-programs/date");
    fs::remove_file(&date).unwrap();
    fs::write(&date, years).unwrap();
    fs::set_permissions(&date, PermissionsExt::from_mode(0o755)).unwrap();
    machine.gt(["rig", "set", "chores", "executor", "process"]).ok();
    machine.is_refused(&[], &["the clock of builder is", "behind that of the store"]);
    machine.make_dir(machine.home().join("town"));
    fs::remove_file(&date).unwrap();
    std::os::unix::fs::symlink("/bin/date", &date).unwrap();
    let said = refusal(&machine.add(&[]));
    assert_says(&said, &["other-home/town already", "--directory"]);
}

#[test]
fn a_rig_of_the_executor_ssh_is_pinned_to_the_host_that_its_machine_becomes() {
    let machine = OtherMachine::new();
    for bead in ["ch-a", "ch-b"] {
        machine.bd(["create", "Sweep", "--rig", "chores", "--id", bead]).ok();
    }
    machine.gt(["config", "set", "rig.chores.command", "sleep 600"]).ok();
    machine.gt(["sling", "ch-a"]).ok();
    wait_until("it runs", || machine.states("ch-a") == ["running"]);
    machine.gt(["config", "set", "rig.chores.command", "echo {bead}"]).ok();
    // The store as an earlier program has left it, whose supervisor has died.
    let sql = "SET search_path = gt; UPDATE rigs SET executor = 'ssh'; UPDATE runs SET executor = 'ssh';
        INSERT INTO settings (scope, key, value, updated_at, updated_by)
        VALUES ('gt', 'rig.chores.ssh.host', 'builder', 0, ''), ('gt', 'rig.chores.ssh.gt', 'gt', 0, '')";
    Cluster::shared().sql(&machine.database, sql);
    let supervisor = machine.supervisor_of("ch-a#1");
    let lock = fs::read_to_string(machine.cwd().join(".gt/runs/ch-a#1.lock")).unwrap();
    let agent = lock.split_whitespace().nth(1).unwrap().to_owned();
    machine.signal("KILL", &supervisor);
    machine.signal("KILL", &agent);
    for entry in fs::read_dir(machine.cwd().join(".gt")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("lease-") {
            fs::remove_file(entry.path()).unwrap();
        }
    }

    machine.cycle().ok();

    assert_eq!(machine.states("ch-a"), ["running"], "no process here can tell");
    let rig = machine.gt_json(&["rig", "status", "chores"]);
    assert_eq!(rig["executor"], "process");
    assert_eq!(machine.gt(["config", "get", "rig.chores.host"]).ok().line(), "builder");
    let said = refusal(&machine.gt(["run", "cancel", "ch-a"]));
    assert_says(&said, &["over ssh by an earlier gt", "gt run cancel ch-a#1 --force"]);
    machine.gt(["run", "cancel", "ch-a", "--force"]).ok();
    assert_eq!(machine.states("ch-a"), ["cancelled"]);
    machine.gt(["sling", "ch-b"]).ok();
    assert_says(
        &machine.gt(["why", "ch-b"]).ok().stdout,
        &["no host can run it", "is not builder, which alone works on the rig"],
    );

    machine.add(&[]).ok();

    assert_eq!(machine.gt(["config", "get", "rig.chores.host"]).ok().line(), "two");
    wait_until("its machine has done the work", || machine.states("ch-b") == ["done"]);
    machine.in_dir(machine.home().join("town")).gt(["down"]).ok();
}

#[test]
fn a_town_on_a_file_names_the_two_commands() {
    let town = town_on_file();
    let said = refusal(&town.gt(["host", "add", "two", "--ssh", "builder"]));
    assert_says(&said, &["gt store migrate postgres://…", "gt host add two --ssh builder"]);
}
