//! The hooks that ask `gt`.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::super::Repository;
use super::super::call::{Call, entries, path_of};
use super::super::error::GitError;
use super::super::links::{canonical, replace};
use super::super::scratch::unique_name;
use super::Kind;

/// The hooks of a project that go on being called when ours take their place.
const HOOKS_OF_PROJECTS: [&str; 12] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "post-rewrite",
];

impl Repository {
    /// Makes every change of references by workers go through `program` (ours): it is called as
    /// `<program> worker fence prepared` with the changes on its standard input ([`super::parse`]), and
    /// refuses them by its exit status. If the program is gone, everything that others share is refused.
    /// Pushing, to whatever URL, is refused too.
    ///
    /// Call it before each run: a project may have set `core.hooksPath` in the meantime, as husky does when
    /// its packages are installed, and git would call those hooks instead. Then ours are put in front,
    /// and call theirs.
    pub fn install_fence(&self, program: &Path) -> Result<(), GitError> {
        let hooks = canonical(self.path()).join("hooks");
        write_hooks(&hooks, program)?;
        let ours = canonical(self.path()).join("gt-hooks");
        if self.hooks_are_elsewhere(&ours)? {
            write_hooks(&ours, program)?;
            for name in HOOKS_OF_PROJECTS {
                write_hook(&ours.join(name), &call_of_theirs(&ours, name))?;
            }
            self.put_in_front(&ours)?;
        }
        Ok(())
    }

    /// Whether git looks for hooks in another directory than that of the repository, and not in `ours`.
    fn hooks_are_elsewhere(&self, ours: &Path) -> Result<bool, GitError> {
        let mut asked = Call::on(self.path(), "find the directory of hooks").args([
            "config",
            "-z",
            "--get-all",
            "core.hooksPath",
        ]);
        let answer = asked.answer()?;
        // The last one is that of this very call.
        let mut found: Vec<PathBuf> = entries(&answer.output).map(path_of).collect();
        found.pop();
        Ok(found.last().is_some_and(|last| last != ours))
    }

    /// Lets the settings end with ours. Whoever sets `core.hooksPath` changes it where it stands, further
    /// up, and the last one counts.
    fn put_in_front(&self, ours: &Path) -> Result<(), GitError> {
        const INCLUDED: &str = "gt-fence.config";
        let file = self.path().join(INCLUDED);
        Call::anywhere("write the settings of the fence")
            .args(["config", "--file"])
            .arg(&file)
            .args(["--replace-all", "core.hooksPath"])
            .arg(ours)
            .done()?;
        // There must be a section for others to change, before ours.
        if self.setting("include.path")?.is_none() {
            self.set("include.path", INCLUDED)?;
        }
        Ok(())
    }
}

fn write_hooks(directory: &Path, program: &Path) -> Result<(), GitError> {
    fs::create_dir_all(directory).map_err(GitError::file("make", directory))?;
    write_hook(&directory.join("reference-transaction"), &transaction_hook(program))?;
    write_hook(&directory.join("pre-push"), PUSH_HOOK.as_bytes())
}

fn write_hook(path: &Path, script: &[u8]) -> Result<(), GitError> {
    if fs::read(path).is_ok_and(|present| present == script) && is_executable(path) {
        return Ok(());
    }
    // Git must never find it half written, or not executable: it would go on without. The first runs of a rig all
    // write it at once.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(unique_name(&format!("{name}.gt-next")));
    replace(&beside, script)?;
    fs::set_permissions(&beside, Permissions::from_mode(0o755))
        .map_err(GitError::file("make executable", &beside))?;
    fs::rename(&beside, path).map_err(GitError::file("write", path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 == 0o111)
}

const PUSH_HOOK: &str = "#!/bin/sh
# Written by gt.
echo 'gt: workers do not push; finish with `gt done`, and gt brings the work to the origin' >&2
exit 1
";

/// Asks nobody about changes that concern nobody else: a rebase makes many of them.
fn transaction_hook(program: &Path) -> Vec<u8> {
    let shared: Vec<String> =
        Kind::PREFIXES.iter().map(|(prefix, _)| format!("*' {prefix}'*")).collect();
    let shared = shared.join(" | ");
    let program = quoted(program);
    let script = [
        b"#!/bin/sh
# Written by gt: a worker may change only its own branch.
[ \"$1\" = prepared ] || exit 0
updates=$(cat)
case \"$updates\" in
"
        .as_slice(),
        shared.as_bytes(),
        b") ;;
*) exit 0 ;;
esac
program=",
        &program,
        b"
if [ ! -x \"$program\" ]; then
    echo \"gt: $program is gone, so nobody can say which branch is yours; nothing was changed\" >&2
    echo \"gt: put it back, or let the next run begin: it writes this hook again\" >&2
    exit 1
fi
printf '%s\\n' \"$updates\" | \"$program\" worker fence \"$1\"
",
    ];
    script.concat()
}

/// Calls the hook of the project, wherever the project has it now.
fn call_of_theirs(ours: &Path, name: &str) -> Vec<u8> {
    let script = [
        b"#!/bin/sh
# Written by gt: calls the hook of the project.
ours="
            .as_slice(),
        &quoted(ours),
        b"
theirs=$(git config --type=path --get-all core.hooksPath | grep -Fxv -e \"$ours\" | tail -n 1)
hook=\"$theirs/",
        name.as_bytes(),
        b"\"
if [ -n \"$theirs\" ] && [ -x \"$hook\" ]; then
    exec \"$hook\" \"$@\"
fi
exit 0
",
    ];
    script.concat()
}

/// A path as one word of the shell.
fn quoted(path: &Path) -> Vec<u8> {
    let mut word = vec![b'\''];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\'' => word.extend_from_slice(b"'\\''"),
            byte => word.push(*byte),
        }
    }
    word.push(b'\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_the_shell() {
        assert_eq!(quoted(Path::new("/it's/a b")), b"'/it'\\''s/a b'");
    }
}
