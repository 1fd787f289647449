//! Sessions of tmux: their names, and the panes that they began with.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::invocation::InvocationFailure;
use super::{HIDDEN_MARK, NAME_BYTES_MAX, TmuxError, error_of};

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

/// The facts that tmux knows of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its name.
    pub name: String,
    /// When it was made, to the second.
    pub created: SystemTime,
    /// When it last printed something, to the second.
    pub activity: SystemTime,
    /// The number of the process that it was started with.
    pub pane_pid: u32,
    /// How many clients look at it.
    pub attached: u32,
    /// Its process has ended, but the pane is kept.
    pub dead: bool,
}

/// The words that list all panes. The name comes last: nothing that it holds can be taken for another field.
pub(super) fn listing() -> [&'static str; 4] {
    let format = "#{session_created} #{window_activity} #{pane_pid} #{session_attached} #{pane_dead} \
                  #{session_name}";
    ["list-panes", "-a", "-F", format]
}

/// The sessions of a listing, in its order, without our own hidden ones. A session that a person
/// has split is described by its first pane.
pub(super) fn listed<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<SessionInfo> {
    let mut sessions: Vec<SessionInfo> = Vec::new();
    for session in lines.filter_map(parse) {
        // The panes of a session stand together.
        let is_known = sessions.last().is_some_and(|last| last.name == session.name);
        if !is_known && !session.name.starts_with(HIDDEN_MARK) {
            sessions.push(session);
        }
    }
    sessions
}

fn parse(line: &[u8]) -> Option<SessionInfo> {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.splitn(6, ' ');
    let created = time(fields.next()?)?;
    let activity = time(fields.next()?)?;
    let pane_pid = fields.next()?.parse().ok()?;
    let attached = fields.next()?.parse().ok()?;
    // Nothing where the pane lives, in some versions.
    let dead = fields.next()? == "1";
    let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
    Some(SessionInfo { name, created, activity, pane_pid, attached, dead })
}

fn time(seconds: &str) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.parse().ok()?))
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
    fn a_listing_is_read() {
        let text = "17 18 100 0 0 gt-a\n17 18 101 2 1 gt-b\n17 18 102 2 1 gt-b\n1 1 5 1 0 +3+4\n";
        let sessions = listed(text.lines().map(str::as_bytes));
        let names: Vec<&str> = sessions.iter().map(|session| session.name.as_str()).collect();
        assert_eq!(names, ["gt-a", "gt-b"]);
        let second = SessionInfo {
            name: "gt-b".to_owned(),
            created: SystemTime::UNIX_EPOCH + Duration::from_secs(17),
            activity: SystemTime::UNIX_EPOCH + Duration::from_secs(18),
            pane_pid: 101,
            attached: 2,
            dead: true,
        };
        assert_eq!(sessions[1], second);
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
        fn no_listing_makes_it_panic(lines in "([0-9]{1,21}[ \n]){0,9}.*|.*") {
            let _ = listed(lines.lines().map(str::as_bytes));
        }

        #[test]
        fn a_good_name_is_its_own_listing(name in "[a-zA-Z0-9][a-zA-Z0-9_-]{0,30}") {
            let line = format!("1 2 3 0 0 {}", SessionName::new(&name).unwrap().as_str());
            let sessions = listed(std::iter::once(line.as_bytes()));
            prop_assert_eq!(&sessions[0].name, &name);
        }
    }
}
