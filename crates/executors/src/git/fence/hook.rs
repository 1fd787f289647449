//! The hooks that ask `gt`.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

use super::super::Repository;
use super::super::call::{GitCall, path_of};
use super::super::error::GitError;
use super::super::links::{canonical, replace};
use super::super::scratch::unique_name;
use super::ReferenceKind;

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

/// The settings that make git look for hooks where ours are.
pub(super) const SETTINGS: &str = "gt-fence.config";

/// The hooks of the fence.
pub(super) const TRANSACTION_HOOK: &str = "reference-transaction";
pub(super) const PUSH_HOOK: &str = "pre-push";

/// A line that is in every hook that we write, and in no other.
const MARK: &str = "# Written by gt";

impl Repository {
    /// Makes every change of references by workers go through `program` (ours): it is called as
    /// `<program> worker fence prepared` with the changes on its standard input ([`super::parse`]), and
    /// refuses them by its exit status. If the program is gone, everything that others share is refused.
    /// Pushing is refused too, to any URL.
    ///
    /// A worker whose environment has [`Self::fence_variables`] meets our hooks, even if the shared
    /// configuration, which every worker can write, names others. For workers that have lost that
    /// environment, ours are in the usual place as well. Where the project has its hooks elsewhere,
    /// ours run before them. Call this before each run: husky, for one, sets `core.hooksPath`
    /// whenever packages are installed.
    pub fn install_fence(&self, program: &Path) -> Result<(), GitError> {
        let repository = canonical(self.path());
        let (usual, ours) = (repository.join("hooks"), repository.join("gt-hooks"));
        for directory in [&usual, &ours] {
            write_hooks(directory, program)?;
        }
        for name in HOOKS_OF_PROJECTS {
            let path = ours.join(name);
            // A tool that asks git where hooks belong is sent here, and may have installed a hook
            // of the project.
            if !fs::read(&path).is_ok_and(|present| !is_ours(&present)) {
                write_file(&path, &call_of_theirs(&usual, &ours, name), HOOK)?;
            }
        }
        write_file(&repository.join(SETTINGS), &settings(&ours), PLAIN)?;
        let changed = changed_at(&repository);
        if was_checked_recently(&repository, changed) {
            return Ok(());
        }
        if self.hooks_are_elsewhere(&ours)? {
            // A tool that sets `core.hooksPath` changes it in place, further up, and the last entry
            // counts.
            self.set_last("include.path", SETTINGS)?;
        }
        record_check(&repository, changed);
        Ok(())
    }

    /// The variables that keep a worker behind the fence. They add to the settings that its
    /// environment brings already, whose names are `present`, in order. They override every
    /// settings file, but only in this repository and in its origin, where that is a path of this machine: others, which
    /// the worker makes or visits, have their own hooks.
    pub fn fence_variables(&self, present: &[String]) -> Vec<(String, String)> {
        let repository = canonical(self.path());
        let settings = repository.join(SETTINGS).to_string_lossy().into_owned();
        let origin = self.origin().unwrap_or_default();
        let names =
            places(&repository, &origin).map(|place| format!("includeIf.gitdir:{place}.path"));
        let mut variables = Vec::new();
        let mut count = present.len();
        // A worker that another worker has started has them already.
        for name in names.filter(|name| !present.contains(name)) {
            variables.push((format!("GIT_CONFIG_KEY_{count}"), name));
            variables.push((format!("GIT_CONFIG_VALUE_{count}"), settings.clone()));
            count += 1;
        }
        variables.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
        variables
    }

    /// Whether the files of settings send git to another directory for hooks than that of the repository, and not to
    /// `ours`.
    fn hooks_are_elsewhere(&self, ours: &Path) -> Result<bool, GitError> {
        let mut asked = GitCall::on(self.path(), "find the directory of hooks").args([
            "config",
            "-z",
            "--show-scope",
            "--get-all",
            "core.hooksPath",
        ]);
        let answer = asked.answer()?;
        let words: Vec<&[u8]> = answer.output.split(|byte| *byte == 0).collect();
        let mut in_files = words.chunks_exact(2).filter(|pair| pair[0] != b"command");
        Ok(in_files.next_back().is_some_and(|pair| path_of(pair[1]) != ours))
    }
}

/// How long it is not asked again where git looks for hooks while the settings of the repository have not changed. Those
/// of a user seldom do, and a worker is behind the fence all the same: see [`Repository::fence_variables`].
const HOOKS_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// The file that says when that was asked last, by the time since the machine was started, and how old the settings were.
const LAST_CHECK_FILE: &str = "gt-fence.look";

fn was_checked_recently(repository: &Path, changed: Option<SystemTime>) -> bool {
    let noted = fs::read_to_string(repository.join(LAST_CHECK_FILE)).unwrap_or_default();
    let Some((asked_ns, settings)) = noted.split_once(' ') else { return false };
    let Ok(asked) = asked_ns.parse().map(Duration::from_nanos) else { return false };
    // After the machine was started again, it may seem to have been in the future.
    let age = time_awake().checked_sub(asked);
    settings == noted_time(changed) && age.is_some_and(|age| age < HOOKS_CHECK_INTERVAL)
}

fn record_check(repository: &Path, changed: Option<SystemTime>) {
    let text = format!("{} {}", time_awake().as_nanos(), noted_time(changed));
    // Without it, it is asked again.
    let _ = fs::write(repository.join(LAST_CHECK_FILE), text);
}

/// How long the machine has been awake since it was started.
pub(in crate::git) fn time_awake() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

fn noted_time(time: Option<SystemTime>) -> String {
    let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or_else(|| "never".to_owned(), |since| since.as_nanos().to_string())
}

/// When the settings of a repository changed.
fn changed_at(repository: &Path) -> Option<SystemTime> {
    fs::metadata(repository.join("config")).and_then(|file| file.modified()).ok()
}

/// The permissions of files that git executes, and of those that it reads.
const HOOK: u32 = 0o755;
const PLAIN: u32 = 0o644;

fn write_hooks(directory: &Path, program: &Path) -> Result<(), GitError> {
    fs::create_dir_all(directory).map_err(GitError::file("make", directory))?;
    write_file(&directory.join(TRANSACTION_HOOK), &transaction_hook(program), HOOK)?;
    write_file(&directory.join(PUSH_HOOK), &push_hook(), HOOK)
}

fn write_file(path: &Path, contents: &[u8], mode: u32) -> Result<(), GitError> {
    if fs::read(path).is_ok_and(|present| present == contents) && has_mode(path, mode) {
        return Ok(());
    }
    // Git must never find it half written, or not executable: it would go on without. The first runs of a rig all
    // write it at once.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(unique_name(&format!("{name}.gt-next")));
    replace(&beside, contents)?;
    fs::set_permissions(&beside, Permissions::from_mode(mode))
        .map_err(GitError::file("set the permissions of", &beside))?;
    fs::rename(&beside, path).map_err(GitError::file("write", path))
}

fn has_mode(path: &Path, mode: u32) -> bool {
    path.metadata().is_ok_and(|file| file.permissions().mode() & mode == mode)
}

fn is_ours(hook: &[u8]) -> bool {
    hook.windows(MARK.len()).any(|window| window == MARK.as_bytes())
}

/// The text of the settings that make git look for hooks in `ours`. Workers do not sign: the key of a person may ask for a
/// passphrase, and the merge queue signs what lands.
pub(super) fn settings(ours: &Path) -> Vec<u8> {
    let mut text = b"[core]\n\thooksPath = \"".to_vec();
    for byte in ours.as_os_str().as_bytes() {
        match byte {
            b'\n' => text.extend_from_slice(b"\\n"),
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            byte => text.push(*byte),
        }
    }
    text.extend_from_slice(b"\"\n[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n");
    text
}

/// The directories of git that the fence is for, as patterns: the repository, an origin on this machine (a bare repository
/// or a checkout), and their worktrees. Submodules of a worktree are further down, and have their own hooks.
fn places(repository: &Path, origin: &str) -> impl Iterator<Item = String> + use<> {
    let places = [Some(repository.to_owned()), directory_of(origin)];
    places.into_iter().flatten().flat_map(|place| {
        let place = literal(&place.to_string_lossy());
        ["", "/worktrees/*"].map(|end| format!("{place}{end}"))
    })
}

/// The directory of git of an origin, if it is on this machine: a bare repository, a checkout or a worktree of one.
fn directory_of(origin: &str) -> Option<PathBuf> {
    let origin = origin.strip_prefix("file://").unwrap_or(origin);
    let ways = [origin.to_owned(), format!("{origin}/.git"), format!("{origin}.git")];
    if let Some(place) = ways.iter().map(Path::new).find(|place| place.join("HEAD").is_file()) {
        return Some(canonical(place));
    }
    let text = fs::read_to_string(Path::new(origin).join(".git")).ok()?;
    let own = Path::new(origin).join(text.strip_prefix("gitdir: ")?.trim_end());
    let common = fs::read_to_string(own.join("commondir")).ok()?;
    Some(canonical(&own.join(common.trim_end())))
}

/// The same conditions as those of [`Repository::fence_variables`], as a part of a file, for these `settings`.
pub(super) fn sections(repository: &Path, origin: &str, settings: &Path) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let settings = escaped(&settings.to_string_lossy());
    let section = |place: String| {
        format!("[includeIf \"gitdir:{}\"]\n\tpath = \"{settings}\"\n", escaped(&place))
    };
    places(repository, origin).map(section).collect()
}

/// A path as a pattern of git that nothing else matches.
fn literal(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for character in path.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// The answer to a worker that wants to push.
pub(super) const PUSH_REFUSED: &str =
    "gt: workers do not push; finish with `gt done`, and gt brings the work to the origin";

pub(super) fn push_hook() -> Vec<u8> {
    let sentence = quoted(Path::new(PUSH_REFUSED));
    [b"#!/bin/sh\n# Written by gt.\necho ".as_slice(), &sentence, b" >&2\nexit 1\n"].concat()
}

/// A hook that calls `program` only for references that others share: a rebase changes many that
/// are not shared.
pub(super) fn transaction_hook(program: &Path) -> Vec<u8> {
    let shared: Vec<String> =
        ReferenceKind::PREFIXES.iter().map(|(prefix, _)| format!("*' {prefix}'*")).collect();
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
    echo \"gt: $program is missing, so gt cannot check which branch is yours; nothing was changed\" >&2
    echo \"gt: put it back, or let the next run begin: it writes this hook again\" >&2
    exit 1
fi
printf '%s\\n' \"$updates\" | \"$program\" worker fence \"$1\"
",
    ];
    script.concat()
}

/// Calls the hook of the project, wherever the project has it now.
fn call_of_theirs(usual: &Path, ours: &Path, name: &str) -> Vec<u8> {
    let script = [
        b"#!/bin/sh
# Written by gt: calls the hook of the project.
ours="
            .as_slice(),
        &quoted(ours),
        b"
theirs=$(git config --type=path --get-all core.hooksPath | grep -Fxv -e \"$ours\" | tail -n 1)
[ -n \"$theirs\" ] || theirs=",
        &quoted(usual),
        b"
hook=\"$theirs/",
        name.as_bytes(),
        b"\"
if [ -x \"$hook\" ]; then
    exec \"$hook\" \"$@\"
fi
exit 0
",
    ];
    script.concat()
}

/// A path as one word of the shell.
pub(super) fn quoted(path: &Path) -> Vec<u8> {
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

    #[test]
    fn a_path_is_itself_as_a_pattern_and_as_a_setting() {
        assert_eq!(literal("/a [b]/c*?\\"), "/a \\[b\\]/c\\*\\?\\\\");
        let text = settings(Path::new("/a \"b\"/c\\"));
        let hooks = b"[core]\n\thooksPath = \"/a \\\"b\\\"/c\\\\\"\n";
        assert!(text.starts_with(hooks));
        assert!(text.ends_with(b"[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n"));
    }

    #[test]
    fn an_origin_of_this_machine_is_found_as_its_worktrees_are() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| canonical(place.path()).join(name);
        let (checkout, tree) = (path("web"), path("tree"));
        let own = checkout.join(".git/worktrees/tree");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(&tree).unwrap();
        fs::write(checkout.join(".git/HEAD"), "").unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::create_dir_all(path("bare.git")).unwrap();
        fs::write(path("bare.git/HEAD"), "").unwrap();
        let found = |origin: String| directory_of(&origin);
        let text = |path: PathBuf| path.display().to_string();
        assert_eq!(found(text(checkout.clone())), Some(checkout.join(".git")));
        assert_eq!(found(text(tree)), Some(checkout.join(".git")));
        assert_eq!(found(format!("file://{}", path("bare").display())), Some(path("bare.git")));
        assert_eq!(found("git@example.com:web.git".to_owned()), None);
    }

    #[test]
    fn settings_of_the_environment_are_kept() {
        let there = tempfile::tempdir().unwrap();
        let repository = Repository::at(there.path());
        let names = |present: &[String]| -> Vec<String> {
            repository.fence_variables(present).into_iter().map(|(name, _)| name).collect()
        };
        let alone = repository.fence_variables(&[]);
        assert_eq!(alone[4], ("GIT_CONFIG_COUNT".to_owned(), "2".to_owned()));
        let wanted = ["KEY_1", "VALUE_1", "KEY_2", "VALUE_2", "COUNT"];
        assert_eq!(names(&["user.name".to_owned()]), wanted.map(|n| format!("GIT_CONFIG_{n}")));
        let already = [alone[0].1.clone(), alone[2].1.clone()];
        assert_eq!(repository.fence_variables(&already), alone[4..]);
    }
}
