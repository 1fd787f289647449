//! Writing many commits with one process.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout};

use super::call::GitCall;
use super::commit::Commit;
use super::error::GitError;
use super::scratch::unique_name;

/// A process of git that writes commits.
pub(super) struct CommitObjectWriter {
    child: Child,
    /// The names of the files to write. Nothing after the end.
    input: Option<ChildStdin>,
    /// Their hashes.
    output: BufReader<ChildStdout>,
    /// Where git reads them from.
    directory: PathBuf,
}

impl CommitObjectWriter {
    /// `call` is one of git on the repository that is meant, `directory` one of ours for temporary files.
    pub(super) fn start(call: GitCall, directory: PathBuf) -> Result<Self, GitError> {
        let call = call.arg("-C").arg(&directory);
        let call =
            call.args(["hash-object", "-t", "commit", "-w", "--no-filters", "--stdin-paths"]);
        let mut child = call.start()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| refused("it has no output"))?;
        Ok(Self { child, input, output: BufReader::new(output), directory })
    }

    /// Writes one.
    pub(super) fn write(&mut self, content: &[u8]) -> Result<Commit, GitError> {
        let name = unique_name("commit");
        let path = self.directory.join(&name);
        fs::write(&path, content).map_err(GitError::file("write", &path))?;
        let input = self.input.as_mut();
        let sent = input.is_some_and(|input| writeln!(input, "{name}").is_ok());
        let mut hash = String::new();
        let read = sent && self.output.read_line(&mut hash).is_ok();
        fs::remove_file(&path).map_err(GitError::file("remove", &path))?;
        let commit = if read { Commit::parse(hash.trim()) } else { None };
        commit.ok_or_else(|| self.failed())
    }

    fn failed(&mut self) -> GitError {
        self.input = None;
        let mut complaint = String::new();
        if let Some(errors) = &mut self.child.stderr {
            // The process has ended, or it ends with its input.
            let _ = errors.read_to_string(&mut complaint);
        }
        refused(complaint.trim())
    }
}

fn refused(message: &str) -> GitError {
    GitError::Failed { deed: "write a commit".to_owned(), message: message.to_owned() }
}

impl Drop for CommitObjectWriter {
    fn drop(&mut self) {
        // It ends with its input.
        self.input = None;
        let _ = self.child.wait();
    }
}
