//! Writing the commits of a candidate, signed if git is set up so.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::call::GitCall;
use super::checkout::quoted;
use super::commit::{Commit, Signature};
use super::commit_object::{CommitObject, person};
use super::error::GitError;
use super::object_writer::CommitObjectWriter;
use super::repository::Repository;

/// A program that signs and does not end within this time waits for a person.
const SIGNING_TIME_MAX: Duration = Duration::from_secs(20);

/// How git signs without asking.
struct Signing {
    /// A program for signatures of `OpenPGP` that never asks.
    openpgp: Option<PathBuf>,
}

/// Writes commits to our own repository.
pub(super) struct CommitWriter<'a> {
    repository: &'a Repository,
    /// For temporary files.
    directory: PathBuf,
    objects: Option<CommitObjectWriter>,
    /// The time of all its commits, as git writes it.
    time: Vec<u8>,
    /// How commits are signed, if git is set up so.
    signing: Option<Signing>,
    /// Why commits are not signed although git is set up to sign.
    unsigned: Option<String>,
}

impl<'a> CommitWriter<'a> {
    pub(super) fn new(repository: &'a Repository, directory: PathBuf) -> Result<Self, GitError> {
        let now = Signature { name: "gt".to_owned(), email: String::new() };
        let time = repository
            .own_call("read the time")
            .committed(&now)
            .args(["var", "GIT_COMMITTER_IDENT"]);
        let time = time.done()?;
        let begin = time.iter().rposition(|byte| *byte == b'>').map_or(0, |at| at + 2);
        let time = time.get(begin..).unwrap_or_default().trim_ascii().to_vec();
        let signing = Signing::of(repository, &directory)?;
        Ok(Self { repository, directory, objects: None, time, signing, unsigned: None })
    }

    /// Name, address and time of a person who makes a commit now.
    pub(super) fn now(&self, signature: &Signature) -> Vec<u8> {
        [&*person(signature), b" ", &self.time].concat()
    }

    /// The reason why commits that should be signed are not.
    pub(super) fn unsigned(self) -> Option<String> {
        self.unsigned
    }

    pub(super) fn write(
        &mut self,
        commit: &CommitObject,
        committer: &Signature,
    ) -> Result<Commit, GitError> {
        if let Some(signing) = &self.signing {
            match self.write_signed(signing, commit, committer) {
                Ok(signed) => return Ok(signed),
                Err(error) => {
                    self.unsigned = Some(error.to_string());
                    self.signing = None;
                }
            }
        }
        let content = commit.content(&self.now(committer));
        let objects = match &mut self.objects {
            Some(objects) => objects,
            none => {
                let call = self.repository.own_call("write a commit");
                none.insert(CommitObjectWriter::start(call, self.directory.clone())?)
            }
        };
        let written = objects.write(&content);
        if written.is_err() {
            // The process has ended with its error.
            self.objects = None;
        }
        written
    }

    fn write_signed(
        &self,
        signing: &Signing,
        commit: &CommitObject,
        committer: &Signature,
    ) -> Result<Commit, GitError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let author = commit.author_person();
        let opened = author.iter().position(|byte| *byte == b'<').unwrap_or(author.len());
        let (name, address) = author.split_at(opened);
        let time = commit.author_time().unwrap_or(&self.time);
        let encoding = commit.encoding.as_deref().unwrap_or(b"UTF-8");
        let mut call = signing
            .call(self.repository)
            .args(["-c", &format!("i18n.commitEncoding={}", text(encoding))])
            .args(["commit-tree", "-S", commit.tree.as_str()]);
        for parent in &commit.parents {
            call = call.args(["-p", parent.as_str()]);
        }
        call.env("GIT_AUTHOR_NAME", text(name.trim_ascii()))
            .env(
                "GIT_AUTHOR_EMAIL",
                text(address.get(1..address.len().saturating_sub(1)).unwrap_or_default()),
            )
            .env("GIT_AUTHOR_DATE", format!("@{}", text(time)))
            .env("GIT_COMMITTER_DATE", format!("@{}", text(&self.time)))
            .committed(committer)
            .input(commit.message.clone())
            .limited(SIGNING_TIME_MAX)
            .commit()
    }
}

impl Signing {
    /// Nothing if the person's git does not sign commits.
    fn of(repository: &Repository, directory: &Path) -> Result<Option<Self>, GitError> {
        let signs = setting(repository, "commit.gpgSign", &["--type=bool"])?;
        if signs.as_deref() != Some("true") {
            return Ok(None);
        }
        let program = openpgp_program(repository)?;
        let openpgp = program.map(|program| write_wrapper(directory, &program)).transpose()?;
        Ok(Some(Self { openpgp }))
    }

    /// A call that signs, or fails where signing needs a person.
    fn call(&self, repository: &Repository) -> GitCall {
        let call = repository
            .own_call("sign a commit")
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("SSH_ASKPASS", "false")
            .env("DISPLAY", "none")
            .env("GPG_TTY", "");
        match &self.openpgp {
            Some(program) => {
                call.arg("-c").arg(format!("gpg.openpgp.program={}", program.display()))
            }
            None => call,
        }
    }
}

/// A setting as it is without ours on the command line.
fn setting(
    repository: &Repository,
    name: &str,
    options: &[&str],
) -> Result<Option<String>, GitError> {
    let mut call = repository
        .own_call(format!("read {name}"))
        .args(["config", "--show-scope"])
        .args(options.iter().copied())
        .args(["--get-all", name]);
    let output = call.answer_once()?.output;
    let text = String::from_utf8_lossy(&output);
    let mut values = text.lines().filter_map(|line| line.split_once('\t'));
    let value = values.rfind(|(scope, _)| *scope != "command");
    Ok(value.map(|(_, value)| value.to_owned()))
}

/// The program that makes the signatures of `OpenPGP`; nothing if they are made otherwise.
fn openpgp_program(repository: &Repository) -> Result<Option<PathBuf>, GitError> {
    let format = setting(repository, "gpg.format", &[])?.unwrap_or_default();
    if !(format.is_empty() || format == "openpgp") {
        return Ok(None);
    }
    let mut program = setting(repository, "gpg.openpgp.program", &["--type=path"])?;
    if program.is_none() {
        program = setting(repository, "gpg.program", &["--type=path"])?;
    }
    Ok(Some(program.map_or_else(|| "gpg".into(), PathBuf::from)))
}

/// Writes a program that signs, and fails instead of asking: git itself has no option for that.
fn write_wrapper(directory: &Path, program: &Path) -> Result<PathBuf, GitError> {
    let wrapper = directory.join("sign");
    let script =
        format!("#!/bin/sh\nexec {} --batch --pinentry-mode=error \"$@\"\n", quoted(program));
    fs::write(&wrapper, script).map_err(GitError::file("write", &wrapper))?;
    let executable = Permissions::from_mode(0o700);
    fs::set_permissions(&wrapper, executable).map_err(GitError::file("write", &wrapper))?;
    Ok(wrapper)
}
