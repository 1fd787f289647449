//! Where the flight deck of a town is: its settings, and the port that its daemon keeps for it.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use gt_core::WebAddress;
use gt_executors::background::{detach, nameless_file};
use gt_executors::private;
use gt_executors::process::is_installed;
use serde::{Deserialize, Serialize};

use crate::town::DIRECTORY;
use crate::{Environment, Result, Town, settings};

/// The ports of which a daemon chooses one: below those that systems give to outgoing connections.
const FIRST_PORT: u16 = 28_400;
const PORT_COUNT: u16 = 1_000;
/// How many ports are tried.
const PORTS_TRIED: u16 = 50;

/// The settings of the deck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeckSettings {
    /// Whether the daemon serves it.
    pub enabled: bool,
    /// The port; nothing if the daemon chooses one.
    pub port: Option<u16>,
    /// The address by which people reach it, if that is not this machine's own.
    pub url: Option<WebAddress>,
}

impl DeckSettings {
    /// The settings in force.
    pub fn of(town: &Town) -> Result<Self> {
        let layers = settings::layers(town)?;
        let port = u16::try_from(layers.deck_port()?).ok().filter(|port| *port > 0);
        let url = layers.deck_url()?;
        let url = (!url.is_empty()).then(|| WebAddress::parse(&url)).transpose()?;
        Ok(Self { enabled: layers.deck_enabled()?, port, url })
    }

    /// The address for people, as far as it is known.
    pub fn address(&self, record: Option<&DeckRecord>) -> Option<String> {
        match (&self.url, record) {
            (Some(url), _) => Some(url.to_string()),
            (None, Some(record)) if self.enabled => Some(record.address()),
            (None, _) => None,
        }
    }
}

/// The state of the deck that the daemon of this host serves. It is a file, because a port belongs to one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeckRecord {
    /// The port, which stays the same once it is chosen.
    pub port: u16,
    /// Why it is not served; empty if it is.
    #[serde(default)]
    pub problem: String,
}

impl DeckRecord {
    /// The record in this town's directory, if there is one.
    pub fn read(root: &Path) -> Option<Self> {
        toml::from_str(&std::fs::read_to_string(path(root)).ok()?).ok()
    }

    /// Replaces the record.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        private::replace(&path(root), text)
    }

    /// The address on this machine.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/deck/", self.port)
    }
}

fn path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join("deck.toml")
}

/// The programs that open an address in the browser of a person.
const OPENERS: [&str; 2] = ["xdg-open", "sensible-browser"];

/// Opens an address in the browser of the person at this machine, if there is a display. Says whether a program was
/// started for it. The browser may outlive this process.
pub fn open_in_browser(environment: &Environment, root: &Path, address: &str) -> bool {
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| environment.get(name).is_some());
    if !has_display {
        return false;
    }
    let named = environment.get("BROWSER").filter(|browser| !browser.trim().is_empty());
    let Some(program) = named.or_else(|| OPENERS.into_iter().find(|one| is_installed(one))) else {
        return false;
    };
    let Ok(nothing) = nameless_file(&root.join(DIRECTORY)) else { return false };
    detach(Path::new(program), &[OsStr::new(address)], nothing).is_ok()
}

/// The ports to try, in this order, for a town of this id: towns of one machine begin at different ones.
pub fn port_candidates(town_id: &str) -> impl Iterator<Item = u16> {
    let start =
        town_id.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let start = u16::try_from(start % u32::from(PORT_COUNT)).unwrap_or(0);
    (0..PORTS_TRIED).map(move |at| FIRST_PORT + (start + at) % PORT_COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_a_damaged_one_counts_as_none() {
        let town = tempfile::tempdir().unwrap();
        std::fs::create_dir(town.path().join(DIRECTORY)).unwrap();
        assert_eq!(DeckRecord::read(town.path()), None);
        let record = DeckRecord { port: 28_500, problem: "port \"28500\" is in use\n".to_owned() };
        record.write(town.path()).unwrap();
        assert_eq!(DeckRecord::read(town.path()), Some(record));
        std::fs::write(path(town.path()), "port = 99999").unwrap();
        assert_eq!(DeckRecord::read(town.path()), None);
    }

    #[test]
    fn candidates_are_different_ports_of_the_range() {
        let ports: std::collections::BTreeSet<u16> = port_candidates("a-town").collect();
        assert_eq!(ports.len(), usize::from(PORTS_TRIED));
        assert!(ports.iter().all(|port| (28_400..29_400).contains(port)));
        assert_ne!(port_candidates("a").next(), port_candidates("b").next());
    }

    #[test]
    fn people_are_sent_to_the_address_that_is_set() {
        let record = DeckRecord { port: 28_500, problem: String::new() };
        let url = WebAddress::parse("https://town.example/gt/deck/").unwrap();
        let mut settings = DeckSettings { enabled: true, port: None, url: None };
        assert_eq!(settings.address(None), None);
        let local = settings.address(Some(&record)).unwrap();
        assert_eq!(local, "http://127.0.0.1:28500/deck/");
        settings.enabled = false;
        assert_eq!(settings.address(Some(&record)), None);
        settings.url = Some(url);
        assert_eq!(settings.address(None).unwrap(), "https://town.example/gt/deck/");
    }
}
