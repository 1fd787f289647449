//! Programs that git would run because an option or a setting of a worker says so.
//!
//! A git that reads from other repositories for a worker has what the worker lacks: leave to speak with them, and credentials.
//! Every program that it starts has the same, so it may start none that a worker has chosen. The settings of the person and of
//! the system are trusted.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Options of commands that read. Git takes every beginning of an option that is not ambiguous.
const OPTIONS: [&str; 4] = ["--upload-pack", "--exec", "--template", "--config"];

/// Options of `git clone` with one letter that name a program or a setting, and those whose value may follow at once.
const CLONE_CHOOSING: &[u8] = b"cu";
const CLONE_WITH_VALUE: &[u8] = b"bjo";

/// The last parts of the names of settings whose values are programs.
const PROGRAMS: [&str; 11] = [
    "clean",
    "difffilter",
    "driver",
    "external",
    "process",
    "receivepack",
    "smudge",
    "templatedir",
    "textconv",
    "uploadpack",
    "vcs",
];

/// The same, by how they end: `defaultKeyCommand`, `packObjectsHook`.
const PROGRAM_ENDS: [&str; 10] = [
    "askpass",
    "cmd",
    "command",
    "editor",
    "fsmonitor",
    "gitproxy",
    "helper",
    "hook",
    "pager",
    "program",
];

/// Values of such settings that start no program that could matter.
const HARMLESS: [&str; 7] = ["", "true", "false", "0", "1", "cat", ":"];

/// The option that chooses a program: among those of git itself, or among the words behind the command.
pub(super) fn chosen_by_words(options: &[OsString], words: &[OsString]) -> Option<String> {
    let of_git = |word: &&OsString| word.as_bytes().starts_with(b"--exec-path=");
    let is_clone = words.first().is_some_and(|command| command == "clone");
    let of_command = |word: &&OsString| {
        is_program_option(word.as_bytes()) || is_clone && is_short_option(word.as_bytes())
    };
    let chosen = options.iter().find(of_git).or_else(|| words.iter().skip(1).find(of_command));
    chosen.map(|word| word.to_string_lossy().into_owned())
}

/// Whether this is one of [`OPTIONS`], or the beginning of one.
fn is_program_option(word: &[u8]) -> bool {
    let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() > 2 && OPTIONS.iter().any(|option| option.as_bytes().starts_with(name))
}

/// Whether these are options of one letter, and one of them chooses a program for `git clone`.
fn is_short_option(word: &[u8]) -> bool {
    let Some(letters) = word.strip_prefix(b"-").filter(|rest| !rest.starts_with(b"-")) else {
        return false;
    };
    let mut flags = letters.iter().take_while(|letter| !CLONE_WITH_VALUE.contains(letter));
    flags.any(|letter| CLONE_CHOOSING.contains(letter))
}

/// The values that a setting may have although its scope is the worker's.
#[derive(Debug)]
pub(super) struct TrustedSettings<'a> {
    /// The command of git.
    pub(super) command: &'a OsStr,
    /// The files of the fence that settings of the worker's environment include.
    pub(super) fence: Vec<PathBuf>,
}

impl TrustedSettings<'_> {
    /// The setting that chooses a program, in the output of `git config --list --show-scope -z`.
    pub(super) fn chosen_program(&self, listed: &[u8]) -> Option<String> {
        entries(listed).find_map(|(scope, name, value)| {
            let is_of_worker = !matches!(scope.as_str(), "global" | "system");
            let is_chosen = is_program(&name, &value)
                || self.is_alias(&name)
                || scope == "command" && self.is_other_condition(&name, &value);
            (is_of_worker && is_chosen).then_some(name)
        })
    }

    /// Whether the command itself is an alias, where git has no program of its name.
    fn is_alias(&self, name: &str) -> bool {
        let alias = name.strip_prefix("alias.");
        alias.is_some_and(|alias| self.command.eq_ignore_ascii_case(alias))
    }

    /// Whether a file of settings counts on a condition that may be true in another repository, as in one that is cloned.
    fn is_other_condition(&self, name: &str, value: &str) -> bool {
        name.starts_with("includeif.") && !self.fence.iter().any(|file| file == Path::new(value))
    }
}

/// Whether the settings say that objects may have to be fetched later.
pub(super) fn is_partial_clone(listed: &[u8]) -> bool {
    entries(listed)
        .any(|(_, name, _)| name.ends_with(".promisor") || name == "extensions.partialclone")
}

/// Scope, name and value of each setting.
fn entries(listed: &[u8]) -> impl Iterator<Item = (String, String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut words = listed.split(|byte| *byte == 0);
    std::iter::from_fn(move || {
        let scope = words.next().filter(|scope| !scope.is_empty())?;
        let entry = words.next()?;
        let end = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
        let value = entry.get(end + 1..).unwrap_or_default();
        Some((text(scope), text(&entry[..end]).to_lowercase(), text(value)))
    })
}

fn is_program(name: &str, value: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    if name.contains(".customtransfer.") {
        return true;
    }
    // A way to update a submodule, or a command of the shell.
    if last == "update" {
        return value.starts_with('!');
    }
    // A pager for one command; true and false say whether the usual one is used.
    let is_pager = name.starts_with("pager.");
    let is_lfs = name.starts_with("filter.lfs.") && value.starts_with("git-lfs ");
    let is_named =
        is_pager || PROGRAMS.contains(&last) || PROGRAM_ENDS.iter().any(|end| last.ends_with(end));
    is_named && !HARMLESS.contains(&value) && !is_lfs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn options_that_name_a_program_are_found() {
        for line in [
            "clone --template=/x y",
            "clone --templ /x y",
            "clone -c core.hooksPath=/x y",
            "clone --config core.sshCommand=x y",
            "clone -u /x y",
            "clone -qu /x y",
            "clone -lqccore.sshCommand=x y",
            "clone --con core.sshCommand=x y",
            "clone --u /x y",
            "ls-remote --u=/x y",
            "archive --e=/x --remote=y",
            "fetch --upload-pack /x y",
            "ls-remote --exec=/x y",
        ] {
            assert!(chosen_by_words(&[], &words(line)).is_some(), "{line}");
        }
        assert!(chosen_by_words(&words("--exec-path=/x"), &words("fetch")).is_some());
        for line in [
            "fetch -u origin",
            "fetch --update-head-ok origin",
            "clone --branch x y",
            "clone -qbcustom -oupstream -j2 y",
            "pull --rebase",
            "fetch --depth 1",
            "archive -- --",
        ] {
            assert_eq!(chosen_by_words(&words("-C /x"), &words(line)), None, "{line}");
        }
    }

    #[test]
    fn settings_that_name_a_program_are_found_unless_the_person_has_set_them() {
        let chosen = |scope: &str, entry: &str| {
            let fence = vec!["/town/gt-fence.config".into()];
            let trusted = TrustedSettings { command: OsStr::new("lfs"), fence };
            trusted.chosen_program(format!("local\0user.name\nA\0{scope}\0{entry}\0").as_bytes())
        };
        for entry in [
            "remote.origin.uploadpack\n/x",
            "core.sshcommand\nssh -i key",
            "core.fsmonitor\n/x",
            "core.alternateRefsCommand\n/x",
            "credential.helper\n!x",
            "credential.https://a.b.helper\nstore",
            "filter.x.smudge\n/x",
            "merge.ours.driver\ntrue x",
            "diff.x.textconv\n/x",
            "submodule.a.update\n!x",
            "lfs.customtransfer.a.path\n/x",
            "gpg.ssh.program\n/x",
            "gpg.ssh.defaultKeyCommand\n/x",
            "gc.recentObjectsHook\n/x",
            "pager.ls-remote\n/x",
            "interactive.diffFilter\n/x",
            "init.templateDir\n/x",
            "alias.lfs\npush --no-verify",
        ] {
            for scope in ["local", "worktree", "command"] {
                assert!(chosen(scope, entry).is_some(), "{scope} {entry}");
            }
            assert_eq!(chosen("global", entry), None, "{entry}");
        }
        let elsewhere = "includeIf.gitdir:/new/.git.path\n/x";
        assert!(chosen("command", elsewhere).is_some());
        assert_eq!(chosen("local", elsewhere), None);
        for entry in [
            "includeIf.gitdir:/new/.git.path\n/town/gt-fence.config",
            "pager.log\nfalse",
            "alias.up\n!x",
            "remote.origin.partialCloneFilter\nblob:none",
            "core.fsmonitor\ntrue",
            "credential.helper\n",
            "submodule.a.update\nrebase",
            "filter.lfs.process\ngit-lfs filter-process",
            "include.path\n/x",
            "core.hookspath\n.husky/_",
            "core.bare",
        ] {
            for scope in ["local", "command"] {
                assert_eq!(chosen(scope, entry), None, "{scope} {entry}");
            }
        }
    }
}
