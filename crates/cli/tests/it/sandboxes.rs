//! `worker.wrap`: the program around agents, setup commands and checks.

use std::fs;

use gt_testkit::Sandbox;

use crate::agents::wait_until_landed;
use crate::support::{Steps as _, assert_says, refusal};
use crate::trees::{Trees as _, git, town_with_trees};

/// Whether bubblewrap can make a sandbox here. Where it cannot, the test says so.
#[expect(clippy::print_stderr, reason = "the log must show which test was skipped")]
pub(crate) fn has_bubblewrap(town: &Sandbox, test: &str) -> bool {
    let tried = town.command("sh").args(["-c", "bwrap --ro-bind / / --unshare-pid true"]).run();
    if tried.code != 0 {
        eprintln!("skipped: {test}: bubblewrap cannot make a sandbox here: {tried}");
    }
    tried.code == 0
}

fn landed(town: &Sandbox) -> String {
    git(town, &town.root().join("origin.git"), &["ls-tree", "--name-only", "main"])
}

#[test]
fn work_lands_from_a_sandbox_that_sees_the_town_alone() {
    let town = town_with_trees("process");
    if !has_bubblewrap(&town, "work_lands_from_a_sandbox_that_sees_the_town_alone") {
        return;
    }
    fs::write(town.root().join("private"), "a key\n").unwrap();
    let hidden = town.root().display().to_string();
    let wrap = format!(
        "bwrap --die-with-parent --unshare-pid --ro-bind / / --dev /dev --proc /proc --tmpfs '{hidden}' \
         --bind {{town}} {{town}} --chdir {{tree}} -- {{command}}"
    );
    town.gt(["config", "set", "worker.wrap", &wrap]).ok();
    town.gt(["config", "set", "rig.web.setup", "ls -A \"$GT_TOWN_ROOT/..\" > setup.log"]).ok();
    town.gt(["rig", "check", "add", "web", "alone", "test ! -e \"$GT_TOWN_ROOT/../private\""]).ok();
    town.script(
        "we-1",
        "ls -A \"$GT_TOWN_ROOT/..\" | tee seen.txt; cat setup.log; \
         echo x > \"$GT_TOWN_ROOT/../outside\"; touch /etc/outside; \
         gt done -m 'From the sandbox' || exit 7; echo said done",
    );
    assert_eq!(town.work("we-1", &[]), "done");
    wait_until_landed(&town);
    let printed = town.gt(["run", "log", "we-1"]).ok().stdout;
    assert_says(&printed, &["Read-only file system", "said done"]);
    assert_eq!(landed(&town), ".gitignore\nREADME.md\nseen.txt");
    // Only the way to the town is there.
    let seen = git(&town, &town.root().join("origin.git"), &["show", "main:seen.txt"]);
    let name = town.cwd().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(seen, name);
    assert_says(&printed, &[&format!("{name}\n{name}\n")]);
    assert!(!town.root().join("outside").exists());

    // Without the sandbox the check would find the file.
    town.gt(["config", "set", "rig.web.wrap", "none"]).ok();
    let outside = town.gt(["rig", "check", "run", "main", "--rig", "web"]);
    assert_says(&format!("{}", outside.fails(1)), &["alone"]);
}

/// Stands for docker: keeps its words, checks those that must be there, and runs the command in an environment that has only
/// the variables named to it.
const DOCKER: &str = r#"
printf '%s\n' "$*" >> "$(dirname "$0")/docker.log"
[ "$1" = run ] || { echo "unknown: $1" >&2; exit 64; }
shift
directory= ; mounts= ; variables=
while [ $# -gt 0 ]; do
    case "$1" in
        --rm|--init|--interactive) ;;
        --volume=*) mounts="$mounts ${1#--volume=}" ;;
        --workdir=*) directory=${1#--workdir=} ;;
        --env=*) variables="$variables ${1#--env=}" ;;
        --label=*) ;;
        agents:1) shift; break ;;
        *) echo "unknown: $1" >&2; exit 64 ;;
    esac
    shift
done
[ "$mounts" = " $TOWN:$TOWN" ] || { echo "mounts: $mounts" >&2; exit 64; }
[ -d "$directory" ] || { echo "directory: $directory" >&2; exit 64; }
for name in $variables; do
    eval "value=\${$name-}"
    set -- "$name=$value" "$@"
done
cd "$directory" && exec env -i "$@"
"#;

#[test]
fn a_container_gets_the_directories_the_variables_and_the_words_of_each_command() {
    let town = town_with_trees("process");
    let root = town.cwd().display().to_string();
    let docker = town.write_script("docker", &DOCKER.replace("$TOWN", &root));
    let wrap = format!(
        "'{}' run --rm --init --interactive --volume={{town}}:{{town}} --workdir={{tree}} --env={{variable}} \
         --label=run={{run}} agents:1 {{command}}",
        docker.display()
    );
    town.gt(["config", "set", "rig.web.wrap", &wrap]).ok();
    town.gt(["config", "set", "rig.web.setup", "echo $GT_ROLE > setup.log"]).ok();
    town.gt(["rig", "check", "add", "web", "one", "test -e two.txt && test -n \"$GT_CHECK_TREE\""])
        .ok();
    town.script(
        "we-1",
        "cat setup.log; echo \"$GT_RUN in $PWD without ${LOGNAME-anything}\"; echo 2 > two.txt; gt done -m 'two words'",
    );
    assert_eq!(town.work("we-1", &[]), "done");
    wait_until_landed(&town);
    let printed = town.gt(["run", "log", "we-1"]).ok().stdout;
    assert_says(&printed, &["web/polecats/furiosa\n", "we-1#1 in ", " without anything"]);
    assert_eq!(landed(&town), ".gitignore\nREADME.md\ntwo.txt");
    let calls = fs::read_to_string(docker.with_file_name("docker.log")).unwrap();
    let labels: Vec<&str> =
        calls.lines().filter_map(|line| line.split("--label=").nth(1)).collect();
    assert_eq!(labels.len(), 4, "{calls}");
    let begins = [
        "run=we-1#1 agents:1 /bin/sh -c",
        "run=we-1#1 agents:1",
        "run= agents:1",
        "run= agents:1 sh -c test",
    ];
    for (label, begin) in labels.iter().zip(begins) {
        assert!(label.starts_with(begin), "{label} does not begin with {begin}");
    }
}

#[test]
fn a_program_around_workers_that_cannot_work_is_refused_or_named() {
    let town = town_with_trees("process");
    let unknown = town.gt(["config", "set", "worker.wrap", "box {home}"]);
    assert_says(&refusal(&unknown), &["{home} stands for nothing", "{repository}"]);
    let part = town.gt(["config", "set", "rig.web.wrap", "sh -c 'x {command}'"]);
    assert_says(&refusal(&part), &["{command} stands for several words"]);

    town.gt(["config", "set", "worker.wrap", "no-such-sandbox"]).ok();
    town.bead("we-1", &[]);
    let ran = town.gt(["sling", "we-1"]);
    assert_says(&format!("{ran}"), &["no-such-sandbox"]);
    town.gt(["config", "set", "rig.web.wrap", "none"]).ok();
    town.script("we-2", "echo \"wrapped: ${GT_WRAPPED-no}\"");
    assert_eq!(town.work("we-2", &[]), "done");
    assert_says(&town.gt(["run", "log", "we-2"]).ok().stdout, &["wrapped: no"]);
}
