//! Where a run goes.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use super::protocol::RunPlace;
use crate::runs::RunFiles;

/// Another machine, and the places of our files on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteSite {
    /// The program that reaches it, and its options.
    pub command: Vec<String>,
    /// That program's name of the machine.
    pub host: String,
    /// Our program over there, as a shell there understands it.
    pub gt: String,
}

/// The facts that find a run again, even if the settings have changed by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteRunRecord {
    /// The machine.
    pub site: RemoteSite,
    /// The run and its directories there.
    pub place: RunPlace,
    /// Which start of that machine it was begun in, if it could tell.
    pub boot: Option<String>,
    /// Whether its end is recorded, so that the other machine need not be asked.
    #[serde(default)]
    pub is_over: bool,
}

impl RemoteRunRecord {
    /// Writes it down among the files of the run.
    pub fn write(&self, files: &RunFiles) -> io::Result<()> {
        files.create()?;
        let text = serde_json::to_vec(self)?;
        crate::private::replace(&files.posting_path(), text)
    }

    /// Where the run with these files went, if it went anywhere.
    pub fn read(files: &RunFiles) -> io::Result<Option<Self>> {
        match fs::read(files.posting_path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => Ok(Some(serde_json::from_slice(&read?)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posting_is_written_and_read_back() {
        let town = tempfile::tempdir().unwrap();
        let files = RunFiles::of(town.path(), "gt-abc#3");
        assert_eq!(RemoteRunRecord::read(&files).unwrap(), None);
        let posting = RemoteRunRecord {
            site: RemoteSite {
                command: vec!["ssh".to_owned(), "-T".to_owned()],
                host: "builder".to_owned(),
                gt: "gt".to_owned(),
            },
            place: RunPlace {
                directory: "work".to_owned(),
                town: "t".to_owned(),
                run: "gt-abc#3".to_owned(),
                earlier: Vec::new(),
                grace_ms: 10,
            },
            boot: None,
            is_over: false,
        };

        posting.write(&files).unwrap();

        assert_eq!(RemoteRunRecord::read(&files).unwrap(), Some(posting));
        std::fs::write(files.posting_path(), "{").unwrap();
        assert!(RemoteRunRecord::read(&files).is_err());
    }
}
