//! A machine that is to become a host of a town: may it join?

use std::time::Duration;

use super::lease::HOST_CLOCK_DIFFERENCE_MAX;
use crate::time::format_duration;
use crate::{Invalid, RigSlug};

/// The beginning of each line of a report, which tells it apart from the greeting of a shell.
const REPORT_MARK: &str = "gt-probe ";

/// The state of the directory that the town is to have on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewDirectory {
    /// Nothing is there.
    Free,
    /// An attempt to join that was cut off has left it.
    Unfinished,
    /// It is there.
    Taken,
}

/// The report of a machine about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateFacts {
    /// Its operating system, as `uname -s` names it.
    pub system: String,
    /// Its processor, as `uname -m` names it.
    pub architecture: String,
    /// Its clock, in seconds since 1970.
    pub clock_s: i64,
    /// Whether it has git.
    pub has_git: bool,
    /// Whether it has tmux.
    pub has_tmux: bool,
    /// The whole path of the directory.
    pub path: String,
    /// The state of that directory.
    pub directory: NewDirectory,
}

impl CandidateFacts {
    /// Reads the lines `gt-probe <key> <value>` of a report. Other lines are a greeting.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let value = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(REPORT_MARK));
            lines
                .find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(' ')?.trim().to_owned()))
        };
        let needed = |key: &str| {
            value(key)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| Invalid(format!("it does not say its {key}")))
        };
        let clock = needed("clock")?;
        let directory = match needed("directory")?.as_str() {
            "free" => NewDirectory::Free,
            "unfinished" => NewDirectory::Unfinished,
            _ => NewDirectory::Taken,
        };
        Ok(Self {
            system: needed("system")?,
            architecture: needed("architecture")?,
            clock_s: clock.parse().map_err(|_| Invalid("it does not say its clock".to_owned()))?,
            has_git: value("git").is_some(),
            has_tmux: value("tmux").is_some(),
            path: needed("path")?,
            directory,
        })
    }
}

/// The demands of a town on a machine that is to join it.
#[derive(Debug, Clone, Copy)]
pub struct CandidateNeeds<'a> {
    /// The machine, as ssh calls it.
    pub machine: &'a str,
    /// The operating system and the processor that the program was built for.
    pub built_for: (&'a str, &'a str),
    /// A rig that it would work on in tmux sessions.
    pub tmux_rig: Option<&'a RigSlug>,
    /// The store's clock, in seconds since 1970.
    pub store_clock_s: i64,
}

impl CandidateNeeds<'_> {
    /// Why a machine cannot join, and the remedy; nothing if it can.
    pub fn refusal(&self, facts: &CandidateFacts) -> Option<String> {
        let machine = self.machine;
        let (system, architecture) = self.built_for;
        if facts.system != system || facts.architecture != architecture {
            return Some(format!(
                "{machine} is {} on {}, and this program is for {system} on {architecture}; install gt there and join with \
                 gt install",
                facts.system, facts.architecture
            ));
        }
        if !facts.has_git {
            return Some(format!("{machine} has no git; install it there, then try again"));
        }
        if let Some(rig) = self.tmux_rig.filter(|_| !facts.has_tmux) {
            return Some(format!(
                "{machine} has no tmux, which the rig {rig} needs; install it there, or gt rig set {rig} executor process"
            ));
        }
        let apart = Duration::from_secs(facts.clock_s.abs_diff(self.store_clock_s));
        if apart > HOST_CLOCK_DIFFERENCE_MAX {
            let way = if facts.clock_s > self.store_clock_s { "ahead of" } else { "behind" };
            return Some(format!(
                "the clock of {machine} is {} {way} that of the store; set it there (timedatectl set-ntp true), then try \
                 again",
                format_duration(apart)
            ));
        }
        (facts.directory == NewDirectory::Taken).then(|| {
            format!(
                "{machine} has {} already; name another directory with --directory, or remove it there",
                facts.path
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "Welcome to builder!\ngt-probe system Linux\ngt-probe architecture x86_64\ngt-probe clock 1000\n\
                          gt-probe git yes\ngt-probe tmux yes\ngt-probe path /srv/my town\ngt-probe directory free\n";

    type FactChange = fn(&mut CandidateFacts);

    const YEAR_S: i64 = 365 * 24 * 3600;

    #[test]
    fn a_report_is_read_between_the_lines_of_a_greeting() {
        let facts = CandidateFacts::parse(REPORT).unwrap();
        assert_eq!(facts.path, "/srv/my town");
        assert_eq!(facts.directory, NewDirectory::Free);
        assert!(facts.has_git && facts.has_tmux && facts.clock_s == 1000);
        for missing in ["system", "clock", "path", "directory"] {
            let text = REPORT.replace(&format!("gt-probe {missing} "), "gt-probe other ");
            let said = CandidateFacts::parse(&text).unwrap_err().to_string();
            assert!(said.contains(missing), "{said}");
        }
        assert!(CandidateFacts::parse(&REPORT.replace("1000", "noon")).is_err());
    }

    #[test]
    fn each_obstacle_is_one_sentence_with_a_remedy() {
        let rig = RigSlug::parse("web").unwrap();
        let needs = CandidateNeeds {
            machine: "builder",
            built_for: ("Linux", "x86_64"),
            tmux_rig: Some(&rig),
            store_clock_s: 1000,
        };
        let with = |change: FactChange| {
            let mut facts = CandidateFacts::parse(REPORT).unwrap();
            change(&mut facts);
            needs.refusal(&facts)
        };
        assert_eq!(with(|_| {}), None);
        let obstacles: [(FactChange, &str); 6] = [
            (|facts| facts.has_git = false, "has no git; install"),
            (|facts| facts.has_tmux = false, "no tmux, which the rig web needs"),
            (|facts| facts.clock_s += 2 * YEAR_S, "ahead of that of the store; set it there"),
            (|facts| facts.clock_s -= 2 * YEAR_S, "behind that of the store"),
            (|facts| facts.architecture = "aarch64".to_owned(), "is Linux on aarch64"),
            (|facts| facts.directory = NewDirectory::Taken, "has /srv/my town already"),
        ];
        for (change, says) in obstacles {
            let said = with(change).unwrap();
            assert!(said.contains(says) && said.contains("builder"), "{said}");
        }
        assert_eq!(with(|facts| facts.directory = NewDirectory::Unfinished), None);
        let needs = CandidateNeeds { tmux_rig: None, ..needs };
        let facts = CandidateFacts { has_tmux: false, ..CandidateFacts::parse(REPORT).unwrap() };
        assert_eq!(needs.refusal(&facts), None, "no rig needs it");
    }
}
