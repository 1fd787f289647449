//! The daemon's log: one JSON object on each line.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gt_core::{Json, Timestamp};
use gt_executors::daemon::RotatingLog;

use gt_town::town::DIRECTORY;

/// How many full files are kept besides the current one.
const FULL_FILES_KEPT: u32 = 5;

/// The path of the log of the daemon of the town at `root`.
pub fn log_path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join("logs").join("daemon.log")
}

/// The existing files of that log, the oldest first.
pub fn log_files(root: &Path) -> Vec<PathBuf> {
    RotatingLog::files(&log_path(root), FULL_FILES_KEPT)
}

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Warning,
    Error,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Writes the log. A line that cannot be written is dropped, so that a full disk does not stop the daemon.
#[derive(Debug)]
pub(super) struct Journal {
    log: Mutex<RotatingLog>,
}

impl Journal {
    pub(super) fn open(root: &Path, limit: u64) -> std::io::Result<Self> {
        Ok(Self { log: Mutex::new(RotatingLog::open(&log_path(root), limit, FULL_FILES_KEPT)?) })
    }

    fn log(&self) -> MutexGuard<'_, RotatingLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_limit(&self, limit: u64) {
        self.log().set_limit(limit);
    }

    pub(super) fn reopen(&self) {
        let _ = self.log().reopen();
    }

    /// Writes an event with its details.
    pub(super) fn tell(&self, at: Timestamp, level: Level, event: &str, more: &[(&str, Json)]) {
        let mut fields = vec![
            ("at".to_owned(), Json::string(&at.to_string())),
            ("level".to_owned(), Json::string(level.as_str())),
            ("event".to_owned(), Json::string(event)),
        ];
        fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let _ = self.log().append(&Json::object(&fields).to_string());
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The time.
    pub at: Timestamp,
    /// `info`, `warning` or `error`.
    pub level: String,
    /// The event.
    pub event: String,
    /// Details by name, as text.
    pub more: Vec<(String, String)>,
}

impl JournalEntry {
    /// Parses a line; nothing if it is not a line of this log.
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).ok()?;
        let mut text = |name: &str| match fields.remove(name) {
            Some(serde_json::Value::String(text)) => Some(text),
            _ => None,
        };
        let at = Timestamp::parse(&text("at")?).ok()?;
        let (level, event) = (text("level")?, text("event")?);
        let shown = |value: serde_json::Value| match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        let more = fields.into_iter().map(|(name, value)| (name, shown(value))).collect();
        Some(Self { at, level, event, more })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_written_line_is_read_back() {
        let town = tempfile::tempdir().unwrap();
        let journal = Journal::open(town.path(), 1 << 20).unwrap();
        let at = Timestamp::parse("2026-01-01T12:00:00Z").unwrap();
        let more = [("run", Json::string("gt-a#1")), ("ms", Json::trusted("12".to_owned()))];
        journal.tell(at, Level::Warning, "lost", &more);
        let text = std::fs::read_to_string(log_path(town.path())).unwrap();
        let entry = JournalEntry::parse(text.trim_end()).unwrap();
        assert_eq!((entry.at, entry.level.as_str(), entry.event.as_str()), (at, "warning", "lost"));
        let more = [("ms", "12"), ("run", "gt-a#1")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(entry.more, more);
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in r#"\{("at":"[0-9TZ:-]*",?)?("level":"a",)?.*\}|.*"#) {
            let _ = JournalEntry::parse(&line);
        }
    }
}
