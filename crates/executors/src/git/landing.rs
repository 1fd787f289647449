//! Bringing accepted work to the origin.

use std::time::{Duration, Instant};

use super::call::{GitCall, GitOutput};
use super::checkout::CheckoutInTheWay;
use super::commit::Commit;
use super::error::GitError;
use super::large_files::Uploaded;
use super::networking::PUSH_TIME_MAX;
use super::refusal::{OriginRefusal, RefusalKind};
use super::repository::Repository;

/// The result of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// The branch of the origin is at the commit, as git says. [`Repository::fetch`] and [`Repository::origin_has`] ask the
    /// origin itself.
    Done,
    /// The branch was moved meanwhile, or is locked: fetch, rebase, and try again. Holds the words
    /// of the origin, in case the reason is another.
    LostRace(String),
    /// The origin does not want it.
    Rejected(OriginRefusal),
    /// Large files of the commit cannot be brought to where they are kept, for this reason, so the commit was not pushed
    /// either. Trying again does not help.
    Incomplete(String),
    /// This machine cannot upload the large files of the commit, because git-lfs is not installed.
    Unable(String),
    /// The origin did not answer, or not to the end: whether the branch moved is not known.
    Unreachable(String),
    /// The branch is checked out on this machine, and its checkout cannot take the commit now.
    Held(CheckoutInTheWay),
}

/// Where a commit is pushed that is meant for a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PushDestination<'a> {
    /// The branch itself.
    Branch,
    /// The branch itself, as the target of a landing. The push holds the turn at the origin, also if our process dies.
    Target,
    /// Only this reference.
    Candidate(&'a str),
}

/// How a checkout of the user receives a candidate: its hooks are about branches, and its user waits for no clean-up.
const RECEIVE_CANDIDATE: &str =
    "git -c core.hooksPath=/dev/null -c receive.autogc=false receive-pack";

impl Repository {
    /// Pushes a commit to a branch of the origin, and nothing else. With `expected`, only if the branch is
    /// there; without, only if the branch is new or the commit contains it.
    ///
    /// The large files of the commit are uploaded before the commit is pushed. All of it is ended after `limit`; then it
    /// is not known whether the branch moved.
    ///
    /// A commit that does not contain `expected` is [`GitError::NotForward`]: nothing of the branch is
    /// ever forgotten.
    pub fn push(
        &self,
        commit: &Commit,
        branch: &str,
        expected: Option<&Commit>,
        limit: Duration,
    ) -> Result<Push, GitError> {
        let deadline = Instant::now() + limit.min(PUSH_TIME_MAX);
        self.send(commit, branch, expected, PushDestination::Branch, deadline)
    }

    /// Pushes a commit that is meant for a branch to its destination. Ends it at `deadline`.
    pub(super) fn send(
        &self,
        commit: &Commit,
        branch: &str,
        expected: Option<&Commit>,
        destination: PushDestination<'_>,
        deadline: Instant,
    ) -> Result<Push, GitError> {
        let origin = self.origin()?;
        if !self.owns(commit)? {
            if self.resolve(commit.as_str())?.is_none() {
                return Err(GitError::Failed {
                    deed: format!("push to {branch}"),
                    message: format!("there is no commit {commit}"),
                });
            }
            self.import(commit)?;
        }
        let mut call =
            GitCall::over_network(Some(&self.own_path()), &origin, format!("push to {branch}"))?
                .args(["push", "--porcelain", "--no-verify", "--no-tags"]);
        if let Some(expected) = expected {
            if !self.own_contains(commit, expected)? {
                return Err(GitError::NotForward {
                    branch: branch.to_owned(),
                    commit: commit.to_string(),
                    expected: expected.to_string(),
                });
            }
            call = match destination {
                PushDestination::Candidate(_) => {
                    call.arg(format!("--receive-pack={RECEIVE_CANDIDATE}"))
                }
                PushDestination::Branch | PushDestination::Target => {
                    call.arg(format!("--force-with-lease=refs/heads/{branch}:{expected}"))
                }
            };
        }
        match self.upload_large_files(commit, branch, expected, deadline)? {
            Uploaded::All => {}
            Uploaded::Refused(why) => return Ok(Push::Incomplete(why)),
            Uploaded::Unreachable(why) => return Ok(Push::Unreachable(why)),
            Uploaded::NotInstalled(why) => return Ok(Push::Unable(why)),
        }
        let refspec = match destination {
            PushDestination::Candidate(reference) => format!("+{commit}:{reference}"),
            PushDestination::Branch | PushDestination::Target => {
                format!("{commit}:refs/heads/{branch}")
            }
        };
        let mut call = call.arg("--").arg(&origin).arg(refspec).limited(time_until(deadline));
        if destination == PushDestination::Target {
            call = call.holding(&self.lock_push()?)?;
        }
        Ok(read_push(&call.answer_once()?))
    }
}

/// The time that is left for a call.
pub(super) fn time_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Reads the line of `git push --porcelain` about the one reference: a flag, the names, and for `!` a
/// kind in brackets and a reason in parentheses.
pub(super) fn read_push(answer: &GitOutput) -> Push {
    let output = String::from_utf8_lossy(&answer.output);
    let refused = output.lines().find_map(|line| line.strip_prefix("!\t"));
    let Some(refused) = refused else {
        if answer.succeeded() {
            return Push::Done;
        }
        // Some services close the connection with their reason.
        let refusal = OriginRefusal::read(with_remote_words(&answer.reason(), &answer.complaint));
        return match refusal.kind {
            RefusalKind::ProtectedBranch | RefusalKind::Quota | RefusalKind::Locked => {
                Push::Rejected(refusal)
            }
            RefusalKind::Hook | RefusalKind::Unknown => Push::Unreachable(answer.reason()),
        };
    };
    let summary = refused.split_once('\t').map_or(refused, |(_, summary)| summary);
    // Another push was faster: known before asking, found by the origin, or by its lock.
    let race = ["(stale info)", "(fetch first)", "(non-fast-forward)", "(needs force)"]
        .iter()
        .chain(&["but expected", "reference already exists", "(failed to update ref)"])
        .chain(&["cannot lock ref", "incorrect old value"])
        .any(|sign| summary.contains(sign));
    if race {
        Push::LostRace(with_remote_words(summary, &answer.complaint))
    } else if summary.starts_with("[remote failure]") {
        Push::Unreachable(summary.to_owned())
    } else {
        Push::Rejected(OriginRefusal::read(with_remote_words(summary, &answer.complaint)))
    }
}

/// The reason, and the message of a hook of the origin.
fn with_remote_words(summary: &str, complaint: &str) -> String {
    let words = complaint
        .lines()
        .filter_map(|line| line.strip_prefix("remote:").or_else(|| line.strip_prefix("ERROR:")));
    let words: Vec<&str> = words.map(str::trim).filter(|line| !line.is_empty()).collect();
    if words.is_empty() { summary.to_owned() } else { format!("{summary}: {}", words.join(" ")) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn answer(code: i32, output: &str, complaint: &str) -> GitOutput {
        GitOutput { code: Some(code), output: output.into(), complaint: complaint.to_owned() }
    }

    #[test]
    fn answers_of_the_origin_are_classified() {
        let said = |line: &str| read_push(&answer(1, &format!("To x\n!\ta:b\t{line}\nDone\n"), ""));
        for lost in ["[rejected] (stale info)", "[rejected] (fetch first)"] {
            assert_eq!(said(lost), Push::LostRace(lost.to_owned()));
        }
        assert!(matches!(
            said("[remote rejected] (cannot lock ref 'refs/heads/b': is at 1 but expected 2)"),
            Push::LostRace(_)
        ));
        let refused = "[remote rejected] (pre-receive hook declined)";
        let refusal = OriginRefusal { kind: RefusalKind::Hook, words: refused.to_owned() };
        assert_eq!(said(refused), Push::Rejected(refusal));
        assert!(matches!(said("[remote failure] (remote failed to report)"), Push::Unreachable(_)));
        assert_eq!(read_push(&answer(0, "To x\n=\ta:b\t[up to date]\nDone\n", "")), Push::Done);
        let dead = read_push(&answer(128, "", "fatal: no route\n"));
        assert_eq!(dead, Push::Unreachable("fatal: no route".to_owned()));
    }

    #[test]
    fn the_words_of_a_hook_are_part_of_the_reason() {
        let output = "!\ta:b\t[remote rejected] (pre-receive hook declined)\n";
        let said = answer(1, output, "remote: sign the agreement first\nremote: \nerror: x\n");
        let wanted = "[remote rejected] (pre-receive hook declined): sign the agreement first";
        let Push::Rejected(refusal) = read_push(&said) else { panic!("{said:?}") };
        assert_eq!(refusal.to_string(), wanted);
    }

    #[test]
    fn refusals_of_hosting_services_have_their_kind() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/git/refusals");
        let mut count = 0;
        for (name, kind) in [
            ("protected-branch", RefusalKind::ProtectedBranch),
            ("hook", RefusalKind::Hook),
            ("quota", RefusalKind::Quota),
            ("locked", RefusalKind::Locked),
            ("unknown", RefusalKind::Unknown),
        ] {
            for file in fs::read_dir(directory.join(name)).unwrap() {
                let path = file.unwrap().path();
                let text = fs::read_to_string(&path).unwrap();
                // Git prints these lines for programs, and all others for people.
                let for_programs = |line: &&str| {
                    ["To ", "!\t", "Done"].iter().any(|beginning| line.starts_with(beginning))
                };
                let (output, complaint): (Vec<&str>, Vec<&str>) =
                    text.split_inclusive('\n').partition(for_programs);
                let push = read_push(&answer(1, &output.concat(), &complaint.concat()));
                let Push::Rejected(refusal) = push else { panic!("{}: {push:?}", path.display()) };
                assert_eq!(refusal.kind, kind, "{}: {}", path.display(), refusal.words);
                count += 1;
            }
        }
        assert!(count >= 28, "only {count} refusals were found");
    }
}
