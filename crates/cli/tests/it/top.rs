//! `gt top` in a real terminal: keys decide, events wake it, and the terminal is given back.

use std::path::PathBuf;

use gt_testkit::{FinishedProgram, Sandbox, wait_until};

use crate::agents::Stage as _;
use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::support::{Steps as _, assert_says};

/// A terminal of 80 by 24 in a tmux server of its own, which ends with the test.
struct Screen<'t> {
    town: &'t Sandbox,
    place: PathBuf,
}

impl<'t> Screen<'t> {
    /// Runs a line of shell in it; `gt` is the one that is tested.
    fn running(town: &'t Sandbox, line: &str) -> Self {
        let screen = Self { town, place: town.make_dir(town.root().join("look")) };
        let gt = format!("gt() {{ {} \"$@\"; }}; {line}", town.gt_path().display());
        screen.tmux(&["new-session", "-d", "-s", "s", "-x", "80", "-y", "24", &gt]).ok();
        screen
    }

    fn tmux(&self, arguments: &[&str]) -> FinishedProgram {
        let tmux = self.town.command("tmux").args(["-L", "look", "-f", "/dev/null"]);
        tmux.args(arguments).env("TMUX_TMPDIR", &self.place).run()
    }

    fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "s"]).stdout
    }

    #[track_caller]
    fn wait_for(&self, words: &str) {
        wait_until(&format!("the screen says {words}"), || self.text().contains(words));
    }

    fn press(&self, keys: &[&str]) {
        let send = ["send-keys", "-t", "s"];
        self.tmux(&[&send, keys].concat()).ok();
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// A town in which the work of `we-a` waits for a review.
fn town_with_review() -> Sandbox {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "rig.web.merge", "mr"]).ok();
    let worker = Worker::begin(&town, "we-a", &["--review"]);
    worker.commit("tea", "a cup of tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    town
}

#[test]
fn work_is_approved_from_its_diff_and_the_screen_follows() {
    let town = town_with_review();
    let screen = Screen::running(&town, "gt top");
    screen.wait_for("we-a@1");

    screen.press(&["Enter"]);
    screen.wait_for("+a cup of tea");
    screen.press(&["a", "y"]);

    screen.wait_for("✓ we-a@1 is approved and has landed on main");
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    // No key is needed to see that.
    screen.wait_for("Nothing needs you.");
    screen.press(&["g", "b"]);
    screen.wait_for("landed 1");
}

#[test]
fn a_review_is_named_by_its_title() {
    let town = town_with_review();
    town.bd(["update", "we-a", "--title", "Let people log in"]).ok();
    let screen = Screen::running(&town, "gt top");
    screen.wait_for("[gn Needs you 1]");

    let text = screen.text();
    let row = text.lines().find(|line| line.contains("review") && line.contains("we-a@1"));
    assert_says(row.unwrap(), &["Let people log in"]);
}

#[test]
fn a_bead_that_was_never_scheduled_is_slung_from_the_board() {
    let town = town_with_review();
    town.bead("we-b", &[]);
    let screen = Screen::running(&town, "gt top --view board");
    screen.wait_for("> ready 1");

    screen.press(&["t"]);

    screen.wait_for("y or Enter runs  gt sling we-b");
    screen.press(&["n"]);
    screen.wait_for("nothing was done");
}

#[test]
fn the_terminal_is_given_back_when_a_signal_ends_it() {
    let town = town_with_review();
    // The inner shell becomes gt, so that its process is known.
    let inner = format!("echo $$ > pid; exec {} top", town.gt_path().display());
    let modes = "stty -a | tr ' ' '\\n' | grep -x -e echo -e icanon";
    let line = format!("sh -c '{inner}'; echo ended $?; {modes}; exec cat");
    let screen = Screen::running(&town, &line);
    screen.wait_for("[gn Needs you 1]");

    town.command("sh").args(["-c", "kill -TERM $(cat pid)"]).run().ok();

    screen.wait_for("ended 143");
    screen.wait_for("echo");
    let text = screen.text();
    assert_says(&text, &["icanon", "echo"]);
    assert!(!text.contains("Needs you"), "{text}");
}

#[test]
fn it_ends_when_its_terminal_is_gone() {
    let town = town_with_review();
    let inner = format!("echo $$ > pid; exec {} top", town.gt_path().display());
    let screen = Screen::running(&town, &format!("trap '' HUP; sh -c '{inner}'"));
    screen.wait_for("[gn Needs you 1]");
    let pid = std::fs::read_to_string(town.cwd().join("pid")).unwrap().trim().to_owned();

    screen.tmux(&["kill-server"]);

    let is_gone = || !std::path::Path::new("/proc").join(&pid).exists();
    wait_until("gt top has ended", is_gone);
}

#[test]
fn without_a_terminal_it_prints_the_status_as_it_changes() {
    let town = town_with_review();
    let watching = town.start_gt(&["top"]).start();
    wait_until("the status is printed", || watching.stdout().contains("we-a@1 waits for"));
    town.gt(["review", "approve", "we-a@1"]).ok();
    wait_until("the status is printed again", || watching.stdout().matches("Town /").count() > 1);
    watching.kill();
}
