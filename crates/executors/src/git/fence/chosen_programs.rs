//! Programs that git would run because an option or a setting of a worker says so.
//!
//! A git that reads from other repositories for a worker has what the worker lacks: leave to speak with them, and credentials.
//! Every program that it starts has the same, so it may start none that a worker has chosen. The settings of the person and of
//! the system are trusted.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

/// Options of commands that read, by how they begin: git takes every beginning of an option that is not ambiguous.
const OPTIONS: [&str; 4] = ["--up", "--ex", "--te", "--conf"];

/// The last parts of the names of settings whose values are programs.
const PROGRAMS: [&str; 21] = [
    "alternaterefscommand",
    "askpass",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "helper",
    "packobjectshook",
    "pager",
    "process",
    "program",
    "receivepack",
    "smudge",
    "sshcommand",
    "textconv",
    "uploadpack",
    "vcs",
];

/// Values of such settings that start no program that could matter.
const HARMLESS: [&str; 7] = ["", "true", "false", "0", "1", "cat", ":"];

/// The option that chooses a program: among those of git itself, or among the words behind the command.
pub(super) fn chosen_by_words(options: &[OsString], words: &[OsString]) -> Option<String> {
    let of_git = |word: &&OsString| word.as_bytes().starts_with(b"--exec-path=");
    let is_clone = words.first().is_some_and(|command| command == "clone");
    let of_command = |word: &&OsString| {
        let word = word.as_bytes();
        let is_short = is_clone && (word.starts_with(b"-c") || word.starts_with(b"-u"));
        is_short || OPTIONS.iter().any(|start| word.starts_with(start.as_bytes()))
    };
    let chosen = options.iter().find(of_git).or_else(|| words.iter().skip(1).find(of_command));
    chosen.map(|word| word.to_string_lossy().into_owned())
}

/// The setting that chooses a program, in the output of `git config --list --show-scope -z`.
pub(super) fn chosen_by_settings(listed: &[u8]) -> Option<String> {
    entries(listed).find_map(|(scope, name, value)| {
        let is_of_worker = !matches!(scope.as_str(), "global" | "system");
        (is_of_worker && is_program(&name, &value)).then_some(name)
    })
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
    let is_lfs = name.starts_with("filter.lfs.") && value.starts_with("git-lfs ");
    PROGRAMS.contains(&last) && !HARMLESS.contains(&value) && !is_lfs
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
            "fetch --upload-pack /x y",
            "ls-remote --exec=/x y",
        ] {
            assert!(chosen_by_words(&[], &words(line)).is_some(), "{line}");
        }
        assert!(chosen_by_words(&words("--exec-path=/x"), &words("fetch")).is_some());
        for line in ["fetch -u origin", "clone --branch x y", "pull --rebase", "fetch --depth 1"] {
            assert_eq!(chosen_by_words(&words("-C /x"), &words(line)), None, "{line}");
        }
    }

    #[test]
    fn settings_that_name_a_program_are_found_unless_the_person_has_set_them() {
        let chosen = |scope: &str, entry: &str| {
            chosen_by_settings(format!("local\0user.name\nA\0{scope}\0{entry}\0").as_bytes())
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
        ] {
            for scope in ["local", "worktree", "command"] {
                assert!(chosen(scope, entry).is_some(), "{scope} {entry}");
            }
            assert_eq!(chosen("global", entry), None, "{entry}");
        }
        for entry in [
            "core.fsmonitor\ntrue",
            "credential.helper\n",
            "submodule.a.update\nrebase",
            "filter.lfs.process\ngit-lfs filter-process",
            "include.path\n/x",
            "core.hookspath\n.husky/_",
            "core.bare",
        ] {
            assert_eq!(chosen("local", entry), None, "{entry}");
        }
        assert_eq!(chosen_by_settings(b""), None);
    }
}
