//! Short words for what people do in a town, so that the tests read like what they specify.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use gt_testkit::{Cluster, FinishedProgram, Sandbox, SandboxCommand, write_program};
use serde_json::Value;

/// A directory without a town.
pub(crate) fn nowhere() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_gt"))
}

/// A new town; commands run in it. With `TEST_ENGINE=postgres` its records are on a server, so that
/// the whole suite can be run there too.
pub(crate) fn town() -> Sandbox {
    if is_on_server() { town_on_server() } else { town_on_file() }
}

/// Whether towns of tests have their records on a server.
pub(crate) fn is_on_server() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the product does not look at it")]
    let engine = std::env::var("TEST_ENGINE");
    engine.as_deref() == Ok("postgres")
}

/// A new town with its records in a file of its own.
pub(crate) fn town_on_file() -> Sandbox {
    Sandbox::town(env!("CARGO_BIN_EXE_gt"))
}

/// A new town with its records in the database at `url`.
pub(crate) fn town_on(url: &str) -> Sandbox {
    Sandbox::town_on(env!("CARGO_BIN_EXE_gt"), url)
}

/// A new town with its records in a database of its own.
pub(crate) fn town_on_server() -> Sandbox {
    town_on(&Cluster::shared().fresh_database())
}

/// A new town with these rigs, which have no repository.
pub(crate) fn town_with_rigs(names: &[&str]) -> Sandbox {
    let town = town();
    for name in names {
        town.gt(["rig", "add", name]).ok();
    }
    town
}

/// Steps of tests in a town.
pub(crate) trait Steps {
    /// `bd`, ready to be given more.
    fn start_bd(&self, arguments: &[&str]) -> SandboxCommand;
    /// `bd` with one more variable in its environment.
    fn bd_with(
        &self,
        variable: &str,
        value: impl AsRef<OsStr>,
        arguments: &[&str],
    ) -> FinishedProgram;
    /// The output of `bd … --json`.
    fn json(&self, arguments: &[&str]) -> Value;
    /// The output of `gt … --json`.
    fn gt_json(&self, arguments: &[&str]) -> Value;
    /// The ids in the array that `bd … --json` prints, in its order.
    fn ids(&self, arguments: &[&str]) -> Vec<String>;
    /// The ids of what is ready, in alphabetical order.
    fn ready(&self) -> Vec<String>;
    /// A new bead with a chosen id and its id as its title.
    fn bead(&self, id: &str, flags: &[&str]);
    /// A new bead; its id.
    fn create(&self, title: &str, flags: &[&str]) -> String;
    /// A bead as `bd show` has it.
    fn show(&self, id: &str) -> Value;
    /// Everything that has happened so far.
    fn events(&self) -> Vec<Value>;
    /// The number of the last thing that happened.
    fn last_event(&self) -> u64;
    /// A file in the current directory.
    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf;
    /// A program in the current directory that a shell runs.
    fn write_script(&self, name: &str, script: &str) -> PathBuf;
    /// Imports these lines; the summary.
    fn import(&self, lines: &str) -> Value;
    /// Everything, as `bd export` prints it.
    fn export(&self) -> String;
}

impl Steps for Sandbox {
    fn start_bd(&self, arguments: &[&str]) -> SandboxCommand {
        self.command(self.bd_path()).args(arguments)
    }

    #[track_caller]
    fn bd_with(
        &self,
        variable: &str,
        value: impl AsRef<OsStr>,
        arguments: &[&str],
    ) -> FinishedProgram {
        self.start_bd(arguments).env(variable, value).run()
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        self.start_bd(arguments).arg("--json").run().ok().json()
    }

    #[track_caller]
    fn gt_json(&self, arguments: &[&str]) -> Value {
        let gt = self.command(self.gt_path()).args(arguments);
        gt.arg("--json").run().ok().json()
    }

    #[track_caller]
    fn ids(&self, arguments: &[&str]) -> Vec<String> {
        texts(&self.json(arguments), "id")
    }

    #[track_caller]
    fn ready(&self) -> Vec<String> {
        let mut ids = self.ids(&["ready", "--limit", "0"]);
        ids.sort();
        ids
    }

    #[track_caller]
    fn bead(&self, id: &str, flags: &[&str]) {
        self.start_bd(&["create", id, "--id", id, "--force"]).args(flags).run().ok();
    }

    #[track_caller]
    fn create(&self, title: &str, flags: &[&str]) -> String {
        let created = self.start_bd(&["create", title, "--silent"]).args(flags);
        created.run().ok().line().to_owned()
    }

    #[track_caller]
    fn show(&self, id: &str) -> Value {
        self.json(&["show", id])[0].take()
    }

    #[track_caller]
    fn events(&self) -> Vec<Value> {
        let events = self.json(&["activity", "--limit", "0"]);
        events.as_array().expect("an array of events").clone()
    }

    #[track_caller]
    fn last_event(&self) -> u64 {
        let last = self.json(&["activity", "--limit", "1"]);
        last[0]["number"].as_u64().unwrap_or(0)
    }

    #[track_caller]
    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.cwd().join(name);
        self.make_dir(path.parent().unwrap());
        fs::write(&path, contents).unwrap();
        path
    }

    #[track_caller]
    fn write_script(&self, name: &str, script: &str) -> PathBuf {
        let path = self.cwd().join(name);
        self.make_dir(path.parent().unwrap());
        write_program(&path, format!("#!/bin/sh\n{script}\n"));
        path
    }

    #[track_caller]
    fn import(&self, lines: &str) -> Value {
        let import = self.start_bd(&["import", "-", "--json"]).stdin(lines);
        import.run().ok().json()
    }

    #[track_caller]
    fn export(&self) -> String {
        self.bd(["export"]).ok().stdout
    }
}

/// Expects a refusal as people see it: exit code 1, nothing on standard output, one line on standard
/// error. Gives the message.
#[track_caller]
pub(crate) fn refusal(ran: &FinishedProgram) -> String {
    assert_eq!(ran.code, 1, "expected a refusal\n{ran}");
    assert_eq!(ran.stdout, "", "a refusal prints no data\n{ran}");
    error_line(ran)
}

/// Expects a refusal as programs see it: exit code 1, an object with the error on standard output,
/// one line on standard error. Gives the message.
#[track_caller]
pub(crate) fn json_refusal(ran: &FinishedProgram) -> String {
    assert_eq!(ran.code, 1, "expected a refusal\n{ran}");
    error_line(ran);
    let object = ran.json();
    let error = object["error"].as_str();
    error.unwrap_or_else(|| panic!("expected an error on stdout\n{ran}")).to_owned()
}

/// The one line of standard error, which begins with `Error: `, without that.
#[track_caller]
pub(crate) fn error_line(ran: &FinishedProgram) -> String {
    let lines: Vec<&str> = ran.stderr.lines().collect();
    match lines.as_slice() {
        [line] if line.starts_with("Error: ") => line["Error: ".len()..].to_owned(),
        _ => panic!("expected one line of error\n{ran}"),
    }
}

/// Expects that `text` has every one of these parts.
#[track_caller]
pub(crate) fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "expected {part:?} in:\n{text}");
    }
}

/// One text field of every object in an array.
#[track_caller]
pub(crate) fn texts(array: &Value, field: &str) -> Vec<String> {
    let objects = array.as_array().expect("an array");
    let text = |object: &Value| object[field].as_str().expect("a text").to_owned();
    objects.iter().map(text).collect()
}

/// The texts in an array.
#[track_caller]
pub(crate) fn strings(array: &Value) -> Vec<&str> {
    array.as_array().expect("an array").iter().map(|text| text.as_str().expect("a text")).collect()
}

/// The names of an object's fields, in alphabetical order.
#[track_caller]
pub(crate) fn keys(object: &Value) -> Vec<&str> {
    let fields = object.as_object().expect("an object");
    fields.keys().map(String::as_str).collect()
}

/// The names of fields in printed JSON that stand behind this many spaces, in the printed order.
pub(crate) fn printed_keys(text: &str, indent: usize) -> Vec<&str> {
    let margin = format!("{:indent$}\"", "");
    let key = |line: &'_ str| -> Option<usize> {
        let rest = line.strip_prefix(&margin)?;
        rest.find("\": ").map(|end| margin.len() + end)
    };
    text.lines().filter_map(|line| key(line).map(|end| &line[margin.len()..end])).collect()
}

/// The names of the files in a directory, in alphabetical order.
#[track_caller]
pub(crate) fn files_in(directory: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(directory.as_ref()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A file or directory of the fixtures.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A copy of a fixture in the current directory, to be changed.
#[track_caller]
pub(crate) fn copy_fixture(sandbox: &Sandbox, name: &str, to: &str) {
    copy_tree(&fixture(name), &sandbox.cwd().join(to));
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in files_in(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            copy_tree(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

/// A town with the rig `gastown` (prefix `gt`), whose work is done at once.
pub(crate) fn gastown() -> Sandbox {
    gastown_with("exit 0")
}

/// A town with the rig `gastown` (prefix `gt`), whose work takes until [`let_work_end`] is called.
pub(crate) fn gastown_that_takes_time() -> Sandbox {
    // It ends too when the sandbox is gone.
    gastown_with(
        "cat \"$GT_RUN_TOKEN_FILE\" > \"$GT_TOWN_ROOT/token-$GT_RUN\"\n\
         while [ -e \"$GT_TOWN_ROOT/.gt\" ] && [ ! -e \"$GT_TOWN_ROOT/go\" ]; do sleep 0.05; done",
    )
}

/// A town with the rig `gastown` (prefix `gt`), whose work is this shell script; `$1` is the bead.
pub(crate) fn gastown_with(script: &str) -> Sandbox {
    let town = town();
    town.gt(["rig", "add", "gastown", "--prefix", "gt"]).ok();
    let program = town.write_script("work.sh", script);
    let command = format!("{} {{bead}}", program.display());
    town.gt(["config", "set", "rig.gastown.command", &command]).ok();
    town
}

/// A new bead with a chosen id below `parent`.
#[track_caller]
pub(crate) fn part(town: &Sandbox, id: &str, parent: &str, flags: &[&str]) {
    town.bead(id, flags);
    town.bd(["dep", "add", id, parent, "--type", "parent-child"]).ok();
}

/// Lets all work of [`gastown_that_takes_time`] end.
pub(crate) fn let_work_end(town: &Sandbox) {
    town.write("go", "");
}

/// Waits until a bead has this status.
#[track_caller]
pub(crate) fn wait_for_status(town: &Sandbox, id: &str, status: &str) {
    gt_testkit::wait_until(&format!("{id} is {status}"), || town.show(id)["status"] == status);
}

/// Everything that a change would show in: every record, every context, and the number of the last event.
pub(crate) fn everything(town: &Sandbox) -> (String, Value, u64) {
    (town.export(), town.gt_json(&["scheduler", "list"]), town.last_event())
}
