//! Sessions of tmux: their names, and the panes that they began with.

use std::path::PathBuf;

use super::invocation::InvocationFailure;
use super::{NAME_BYTES_MAX, TmuxError, error_of};

/// The name of a session, in characters that tmux does not expand or change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionName(String);

impl SessionName {
    /// Accepts letters, digits, `-` and `_`. Tmux would change a `.` or `:` and then look for something
    /// else; a name must not look like an option or an id either.
    pub(super) fn new(name: &str) -> Result<Self, TmuxError> {
        let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins_well && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_harmless) {
            Ok(Self(name.to_owned()))
        } else {
            Err(TmuxError::Name { name: name.to_owned() })
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Exactly this session, and not one whose name begins like it.
    pub(super) fn session(&self) -> String {
        format!("={}", self.0)
    }

    /// The pane that exactly this session was started with, even if a person has opened others
    /// beside it since.
    pub(super) fn pane(&self) -> String {
        format!("={}:0.0", self.0)
    }

    /// The error of a failure about this session. Without a server there is none.
    pub(super) fn error_of(&self, socket: &str, failure: InvocationFailure) -> TmuxError {
        match failure {
            InvocationFailure::NoServer | InvocationFailure::NoTarget => {
                TmuxError::NoSession { name: self.0.clone() }
            }
            InvocationFailure::Duplicate => TmuxError::Exists { name: self.0.clone() },
            failure => error_of(socket, failure),
        }
    }
}

/// One pane. Its number is never given to another, even when its session or the panes beside it
/// close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    pub(super) id: String,
    pub(super) name: SessionName,
}

impl Pane {
    /// The name of the session that it was found in.
    pub fn session(&self) -> &str {
        self.name.as_str()
    }
}

/// The words that list all panes by the process that each was started with.
pub(super) fn finding() -> [&'static str; 4] {
    ["list-panes", "-a", "-F", "#{pane_pid} #{pane_id} #{session_name}"]
}

/// The pane that was started with this process.
pub(super) fn found(listing: &[u8], process: u32) -> Option<Pane> {
    let listing = String::from_utf8_lossy(listing);
    listing.lines().find_map(|line| {
        let (number, rest) = line.split_once(' ')?;
        let (id, session) = rest.split_once(' ')?;
        let is_it = number.parse() == Ok(process) && id.starts_with('%');
        let name = is_it.then(|| SessionName::new(session).ok()).flatten()?;
        Some(Pane { id: id.to_owned(), name })
    })
}

/// A session that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxSession {
    /// Its name.
    pub name: String,
    /// The number of the process that it was started with.
    pub pane_pid: u32,
    /// The terminal of that process, such as `/dev/pts/3`.
    pub terminal: PathBuf,
}

/// How much of a pane to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// The visible lines.
    Visible,
    /// The last so many lines, be they visible or not.
    Last(u32),
    /// Everything that it remembers.
    All,
}

/// The words that capture a pane. Lines that were too long for the pane are whole again.
pub(super) fn capturing(pane: &str, capture: Capture) -> Vec<String> {
    let mut words = vec!["capture-pane", "-p", "-J", "-t", pane];
    let start = match capture {
        Capture::Visible => None,
        Capture::Last(lines) => Some(format!("-{lines}")),
        Capture::All => Some("-".to_owned()),
    };
    if let Some(start) = &start {
        words.extend(["-S", start]);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// The text of a capture, without the empty space that fills the pane.
pub(super) fn captured(bytes: &[u8], capture: Capture) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.pop_if(|line| line.is_empty()).is_some() {}
    if let Capture::Last(wanted) = capture {
        let surplus = lines.len().saturating_sub(wanted as usize);
        lines.drain(..surplus);
    }
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_tmux_would_change_or_misunderstand_are_refused() {
        for good in ["gt-furiosa", "a", "9_b", "A-1"] {
            assert_eq!(SessionName::new(good).unwrap().as_str(), good);
        }
        for bad in
            ["", "a.b", "a:b", "-a", "=a", "$1", "@1", "%1", "a b", "ä", "+x", "a\n", "_a", "a#b"]
        {
            assert!(matches!(SessionName::new(bad), Err(TmuxError::Name { .. })), "{bad}");
        }
        assert!(SessionName::new(&"a".repeat(NAME_BYTES_MAX)).is_ok());
        assert!(SessionName::new(&"a".repeat(NAME_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_pane_is_found_by_its_process() {
        let listing = b"100 %1 gt-a\n101 %2 gt-b\n102 %3 +3+4\n103 gt-x\n";
        let pane = found(listing, 101).unwrap();
        assert_eq!((pane.id.as_str(), pane.session()), ("%2", "gt-b"));
        for unrelated in [10, 102, 103] {
            assert_eq!(found(listing, unrelated), None);
        }
    }

    #[test]
    fn the_empty_rest_of_a_pane_is_left_out() {
        let bytes = b"\none  \n\ntwo\n\n   \n\n";
        assert_eq!(captured(bytes, Capture::Visible), "\none\n\ntwo\n");
        assert_eq!(captured(bytes, Capture::Last(1)), "two\n");
        assert_eq!(captured(bytes, Capture::Last(9)), "\none\n\ntwo\n");
        assert_eq!(captured(b"\n\n", Capture::All), "");
    }

    proptest! {
        #[test]
        fn no_listing_makes_it_panic(listing in "([0-9]{1,21}[ \n]){0,9}.*|.*") {
            let _ = found(listing.as_bytes(), 7);
        }

        #[test]
        fn a_pane_is_found_by_any_good_name(name in "[a-zA-Z0-9][a-zA-Z0-9_-]{0,30}") {
            let pane = found(format!("7 %3 {name}").as_bytes(), 7).unwrap();
            prop_assert_eq!(pane.session(), name);
        }
    }
}
