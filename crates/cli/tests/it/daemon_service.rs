//! The daemon as a service of systemd.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use gt_testkit::{Sandbox, wait_until};

use crate::agents::Stage as _;
use crate::support::{Steps as _, assert_says, town};

/// The service manager: it receives the notifications of the daemon.
struct Keeper {
    socket: UnixDatagram,
    heard: String,
}

impl Keeper {
    fn in_place(town: &Sandbox) -> Self {
        let socket = UnixDatagram::bind(town.root().join("notify")).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        Self { socket, heard: String::new() }
    }

    /// Waits until it was told this.
    #[track_caller]
    fn hears(&mut self, line: &str) {
        wait_until(&format!("it is told {line}"), || {
            let mut words = [0; 1000];
            if let Ok(length) = self.socket.recv(&mut words) {
                self.heard.push_str(&String::from_utf8_lossy(&words[..length]));
                self.heard.push('\n');
            }
            self.heard.lines().any(|heard| heard.starts_with(line))
        });
    }
}

#[test]
fn it_says_when_it_is_ready_that_it_lives_and_when_it_stops() {
    let town = town();
    let mut keeper = Keeper::in_place(&town);
    let daemon = town
        .start_gt(&["daemon", "run"])
        .env("NOTIFY_SOCKET", town.root().join("notify"))
        .env("WATCHDOG_USEC", "200000")
        .start();

    keeper.hears("READY=1");
    keeper.hears("STATUS=0 started");
    keeper.hears("WATCHDOG=1");
    wait_until("it says so too", || daemon.stdout().contains("The daemon is ready"));
    assert!(!keeper.heard.contains("STOPPING"), "{}", keeper.heard);
    town.signal("TERM", &daemon.id().to_string());
    keeper.hears("STOPPING=1");

    daemon.wait().ok();
    town.gt(["daemon", "status"]).fails(1);
}

#[test]
fn one_interrupt_stops_it_too() {
    let town = town();
    let daemon = town.start_gt(&["daemon", "run"]).start();
    wait_until("it is ready", || daemon.stdout().contains("The daemon is ready"));

    town.signal("INT", &daemon.id().to_string());

    daemon.wait().ok();
}

#[test]
fn nothing_that_it_starts_can_speak_for_it() {
    let town = crate::agents::town_with_agent("env > \"$stage/environment\"");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    let mut keeper = Keeper::in_place(&town);
    let daemon = town
        .start_gt(&["daemon", "run"])
        .env("NOTIFY_SOCKET", town.root().join("notify"))
        .env("WATCHDOG_USEC", "60000000")
        .start();
    keeper.hears("READY=1");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    crate::support::wait_for_status(&town, "we-a", "closed");

    let environment = fs::read_to_string(town.stage("environment")).unwrap();
    for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC"] {
        assert!(!environment.contains(name), "{environment}");
    }
    town.signal("TERM", &daemon.id().to_string());
    daemon.wait().ok();
}

#[test]
fn the_unit_is_printed_or_written_and_systemd_understands_it() {
    let town = town();
    let printed = town.gt(["daemon", "install", "--print"]).ok().stdout;
    let root = town.cwd().to_str().unwrap();
    assert_says(
        &printed,
        &[
            "Type=notify\n",
            "KillMode=process\n",
            "Delegate=yes\n",
            "Restart=on-failure\n",
            "WatchdogSec=60\n",
            &format!("-C \"{root}\" daemon run\n"),
            "Environment=\"PATH=",
        ],
    );
    assert!(!town.root().join("home/.config/systemd").exists());

    let said = town.gt(["daemon", "install"]).ok().stdout;

    let units = crate::support::files_in(town.root().join("home/.config/systemd/user"));
    let [name] = units.as_slice() else { panic!("{units:?}") };
    assert_says(&said, &[name, "systemctl --user daemon-reload", "enable --now", "enable-linger"]);
    let path = town.root().join("home/.config/systemd/user").join(name);
    assert_eq!(fs::read_to_string(&path).unwrap(), printed);
    // The unit can be verified only where systemd is installed.
    if std::path::Path::new("/usr/bin/systemd-analyze").exists() {
        let verify = town.command("systemd-analyze").args(["--user", "verify"]).arg(&path);
        let verified = verify.run().ok();
        assert!(!verified.stderr.contains(name.as_str()), "{verified}");
    }
}
