//! `git` as a worker calls it.
//!
//! Two things keep a worker from the origin, and neither needs the other:
//!
//! - [`NO_PROTOCOL`] in `GIT_ALLOW_PROTOCOL`. Git asks this variable before every transport, and no flag, setting or
//!   alias goes before it. So a plain git that a worker reaches in any way speaks with no other repository.
//! - This program under the name `git`, first on the worker's `PATH`. It refuses to push, puts the settings of the fence
//!   behind every setting of the worker, and lets commands through that only read from other repositories.
//!
//! A program that clears its environment on purpose passes both. That is detected afterwards.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gt_core::RunId;

use super::super::links::{canonical, common_directory, repository_around};
use super::super::scratch::unique_name;
use super::chosen_programs::{TrustedSettings, chosen_by_words, is_partial_clone};
use super::environment::read_environment;
use super::hook::{
    self, PUSH_HOOK, PUSH_REFUSED, TRANSACTION_HOOK, push_hook, quoted, sections, transaction_hook,
};
use super::reading_environment::{USUAL_PATH, take_environment};
use super::submodules::submodules_of;
use crate::environment::remove_caller_variables;
use crate::private;
use crate::process::command_with_everything;
use crate::runs::RunFiles;

/// The only protocol that a worker's git may use, which there is not.
pub(crate) const NO_PROTOCOL: &str = "none-because-gt-done-lands";

/// The protocols of a git that reads: those that start no program of another name.
const PLAIN_PROTOCOLS: &str = "file:git:http:https:ssh";

/// The variable that git asks before it speaks with another repository.
pub(crate) const PROTOCOLS: &str = "GIT_ALLOW_PROTOCOL";

/// The command that lists all settings, with their scopes.
const LIST_SETTINGS: [&str; 4] = ["config", "--list", "--show-scope", "-z"];

/// The run of a worker that has lost the name of its run.
const NO_RUN: &str = "gt-none#1";

/// The variable that names the `BASH_ENV` of the person, where there was one.
const BASH_ENV_BEFORE: &str = "GT_BASH_ENV";

/// The settings that this program gives git last.
const SETTINGS: &str = "git.config";
/// The same for a git that reads from other repositories: it calls no hook but those in [`READING_HOOKS`].
const READING_SETTINGS: &str = "git.reading.config";
/// The settings that send git to [`READING_HOOKS`].
const READING_HOOKS_SETTINGS: &str = "git.hooks.config";
/// The hooks of the fence, without those of projects, which a worker can write.
const READING_HOOKS: &str = "git.hooks";
/// The repositories that workers share and their origins. A directory that has this file has our `git`.
const FENCED: &str = "git.fence";
/// The file that bash reads before it runs a script.
const BASH: &str = "bash_env";

/// A repository that workers share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedRepository {
    /// Where it is.
    pub repository: PathBuf,
    /// Where its work goes: a URL or a path.
    pub origin: String,
}

impl FencedRepository {
    /// The origin as a path, which it may not be.
    fn origin_path(&self) -> PathBuf {
        self.origin.strip_prefix("file://").unwrap_or(&self.origin).into()
    }
}

/// Makes `program` (ours) the `git` of a directory that workers have first on their `PATH`, for these repositories.
pub fn install_worker_git(
    directory: &Path,
    program: &Path,
    fenced: &[FencedRepository],
) -> io::Result<()> {
    let mut records = Vec::new();
    let (mut settings, mut reading) = (String::new(), String::new());
    let (hooks, reading_hooks) =
        (directory.join(READING_HOOKS), directory.join(READING_HOOKS_SETTINGS));
    for FencedRepository { repository, origin } in fenced {
        let repository = canonical(repository);
        settings.push_str(&sections(&repository, origin, &repository.join(hook::SETTINGS)));
        reading.push_str(&sections(&repository, origin, &reading_hooks));
        for word in [repository.as_os_str().as_bytes(), origin.as_bytes()] {
            records.extend_from_slice(word);
            records.push(0);
        }
    }
    private::create_dir_all(&hooks)?;
    for (path, contents, mode) in [
        (hooks.join(TRANSACTION_HOOK), transaction_hook(program), 0o700),
        (hooks.join(PUSH_HOOK), push_hook(), 0o700),
        (reading_hooks, hook::settings(&hooks), 0o600),
        (directory.join(READING_SETTINGS), reading.into_bytes(), 0o600),
        (directory.join(SETTINGS), settings.into_bytes(), 0o600),
        (directory.join(FENCED), records, 0o600),
        (directory.join(BASH), bash_script(directory), 0o600),
    ] {
        write_if_new(&path, &contents, mode)?;
    }
    let link = directory.join("git");
    if fs::read_link(&link).is_ok_and(|there| there == program) {
        return Ok(());
    }
    let beside = directory.join(unique_name(".git"));
    std::os::unix::fs::symlink(program, &beside)?;
    fs::rename(&beside, &link)
}

/// The variables that keep a worker's git from other repositories, and that let shells which set
/// `PATH` anew find the programs of this directory. `bash_env` is the worker's own `BASH_ENV`.
pub fn worker_git_variables(directory: &Path, bash_env: Option<&str>) -> Vec<(String, String)> {
    let ours = directory.join(BASH).to_string_lossy().into_owned();
    let mut variables = vec![(PROTOCOLS.to_owned(), NO_PROTOCOL.to_owned())];
    if let Some(before) = bash_env.filter(|before| !before.is_empty() && *before != ours) {
        variables.push((BASH_ENV_BEFORE.to_owned(), before.to_owned()));
    }
    variables.push(("BASH_ENV".to_owned(), ours));
    variables
}

fn write_if_new(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == contents) {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(unique_name(&format!(".{name}")));
    fs::write(&beside, contents)?;
    fs::set_permissions(&beside, Permissions::from_mode(mode))?;
    fs::rename(&beside, path)
}

/// A profile may set `PATH` anew. Where our directory is still in `PATH`, the order is left as it is: a test
/// may have put a program of its own in front.
fn bash_script(directory: &Path) -> Vec<u8> {
    let ours = quoted(directory);
    [
        b"# Written by gt: a shell whose profile sets PATH anew finds gt, bd and git of the town.\ngt_bin=".as_slice(),
        &ours,
        b"
case \":$PATH:\" in
*\":$gt_bin:\"*) ;;
*) PATH=\"$gt_bin:$PATH\"; export PATH ;;
esac
unset gt_bin
if [ -n \"${GT_BASH_ENV:-}\" ] && [ -r \"$GT_BASH_ENV\" ]; then . \"$GT_BASH_ENV\"; fi
",
    ]
    .concat()
}

/// The git that is on a path: the first that is not ours, and the directories that have ours.
#[derive(Debug, Default)]
struct GitOnPath {
    git: Option<PathBuf>,
    ours: Vec<PathBuf>,
}

fn search(path: &OsStr) -> GitOnPath {
    let mut found = GitOnPath::default();
    for directory in std::env::split_paths(path).chain(std::env::split_paths(USUAL_PATH)) {
        let candidate = directory.join("git");
        let is_program =
            candidate.metadata().is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0);
        if !is_program {
            continue;
        }
        if directory.join(FENCED).exists() {
            if !found.ours.contains(&directory) {
                found.ours.push(directory);
            }
        } else {
            found.git.get_or_insert(candidate);
        }
    }
    found
}

/// Git itself, on this path: never the one that workers call.
pub(crate) fn real_git(path: Option<&OsStr>) -> PathBuf {
    search(path.unwrap_or_default()).git.unwrap_or_else(|| "git".into())
}

/// How far a command of git may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GitReach {
    /// Nothing: it sends.
    Refused,
    /// It sends, which concerns us only where it goes to an origin or comes from a shared repository.
    Sends,
    /// It reads from other repositories.
    Reads,
    /// It may have to fetch objects of its own repository.
    Completes,
    /// It stays in its repository. Aliases and programs of others are among these: git refuses what they try.
    Stays,
}

/// Options of git itself that have the next word as their value.
const WITH_VALUE: [&str; 9] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
    "--shallow-file",
];

/// Commands that read from other repositories. None of them runs a command of the shell that its arguments name.
const READING: [&str; 9] =
    ["fetch", "clone", "pull", "ls-remote", "remote", "submodule", "archive", "fetch-pack", "lfs"];

/// Commands that fetch objects which a partial clone lacks.
const COMPLETING: [&str; 15] = [
    "checkout",
    "switch",
    "restore",
    "reset",
    "log",
    "show",
    "diff",
    "cat-file",
    "rev-list",
    "worktree",
    "sparse-checkout",
    "read-tree",
    "blame",
    "merge",
    "backfill",
];

/// Commands that write fetched commits into branches.
const FETCHING: [&str; 3] = ["fetch", "pull", "fetch-pack"];

/// Commands that change neither files nor settings of the repository that they look at. References are guarded by the hook.
const LOOKING: [&str; 49] = [
    "annotate",
    "archive",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "cherry",
    "clone",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fast-export",
    "fetch",
    "fetch-pack",
    "for-each-ref",
    "format-patch",
    "fsck",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "name-rev",
    "pull",
    "push",
    "range-diff",
    "reflog",
    "rev-list",
    "rev-parse",
    "send-pack",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "tag",
    "update-ref",
    "var",
    "verify-commit",
    "version",
    "whatchanged",
];

/// Words of `git config` that only read.
const READS_SETTINGS: [&str; 9] = [
    "get",
    "list",
    "-l",
    "--list",
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "--get-color",
];

/// Whether a command leaves the files and settings of its repository as they are.
fn only_looks(command: &OsStr, rest: &[OsString]) -> bool {
    let is_option = |word: &&OsString| word.as_bytes().starts_with(b"-");
    let given = |wanted: &str| rest.iter().any(|word| word == wanted);
    match command.to_str() {
        Some("config") => {
            let values = rest.iter().filter(|word| !is_option(word)).count();
            READS_SETTINGS.iter().any(|word| given(word))
                || (values == 1 && !given("--unset") && !given("--unset-all") && !given("unset"))
        }
        Some("remote") => {
            rest.iter().all(|word| is_option(&word)) || given("show") || given("get-url")
        }
        Some("symbolic-ref") => rest.iter().filter(|word| !is_option(word)).count() < 2,
        Some("worktree" | "stash" | "notes" | "submodule") => {
            given("list") || given("show") || given("status")
        }
        Some(command) => LOOKING.contains(&command),
        None => false,
    }
}

/// Where the command stands behind the options of git itself. Nothing if there is none, or only help is asked for.
fn place_of_command(arguments: &[OsString]) -> Option<usize> {
    let mut place = 0;
    loop {
        let word = arguments.get(place)?.to_str().unwrap_or_default();
        match word {
            "-h" | "--help" | "-v" | "--version" => return None,
            _ if WITH_VALUE.contains(&word) => place += 2,
            _ if word.starts_with('-') => place += 1,
            _ => return Some(place),
        }
    }
}

fn leave_of(command: &OsStr, rest: &[OsString]) -> GitReach {
    let has = |word: &str| rest.iter().any(|argument| argument == word);
    let Some(command) = command.to_str() else { return GitReach::Stays };
    match command {
        "push" => GitReach::Sends,
        "send-pack" | "http-push" => GitReach::Refused,
        helper if helper.starts_with("remote-") => GitReach::Refused,
        "lfs" if has("push") => GitReach::Refused,
        // Locks of files are at the server.
        "lfs" if has("lock") || has("unlock") => GitReach::Stays,
        // These name commands of the shell.
        "submodule" if has("foreach") => GitReach::Stays,
        reading if READING.contains(&reading) => GitReach::Reads,
        completing if COMPLETING.contains(&completing) => GitReach::Completes,
        _ => GitReach::Stays,
    }
}

/// Does what `git` with these arguments does for a worker, the program's name first. Gives an exit status only where git
/// itself was not become.
pub fn call_worker_git(arguments: &[OsString]) -> u8 {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = search(&path);
    // It may have been called by its own path.
    let called = arguments.first().map(Path::new).and_then(Path::parent);
    if let Some(called) = called.filter(|called| called.join(FENCED).exists())
        && !found.ours.iter().any(|ours| ours == called)
    {
        found.ours.push(called.to_owned());
    }
    let GitOnPath { git: Some(git), ours } = found else {
        complain("gt: there is no git on PATH");
        return 127;
    };
    let worker = WorkerGit { git, ours, arguments: arguments.get(1..).unwrap_or_default() };
    worker.call()
}

struct WorkerGit<'a> {
    git: PathBuf,
    /// The directories that have our `git`: more than one where a worker has a town of its own.
    ours: Vec<PathBuf>,
    arguments: &'a [OsString],
}

impl WorkerGit<'_> {
    fn call(&self) -> u8 {
        let Some(place) = place_of_command(self.arguments) else {
            return become_program(self.git_with(self.arguments, &[], NO_PROTOCOL));
        };
        let (options, words) = self.arguments.split_at(place);
        if !only_looks(&words[0], &words[1..])
            && let Some(origin) = self.origin_around(options)
        {
            complain(&format!(
                "gt: work lands in {}, so workers change nothing there; work in your own tree, and finish with `gt done`",
                origin.display()
            ));
            return 1;
        }
        let leave = leave_of(&words[0], &words[1..]);
        match leave {
            GitReach::Refused => refuse(),
            GitReach::Stays => become_program(self.git_with(options, words, NO_PROTOCOL)),
            // The other way round it is a push.
            GitReach::Reads
                if FETCHING.iter().any(|it| words[0] == *it) && self.is_in_origin(options) =>
            {
                refuse()
            }
            GitReach::Reads => match self.reading_git(options, words) {
                Ok(git) => become_program(git),
                Err(chosen) => {
                    complain(&format!(
                        "gt: {chosen} chooses a program, so this git reads from no other repository"
                    ));
                    become_program(self.git_with(options, words, NO_PROTOCOL))
                }
            },
            GitReach::Completes => {
                let listed = self.answer_of_trusted(options, &LIST_SETTINGS, false);
                let is_partial = is_partial_clone(&listed);
                let reading = is_partial.then(|| self.reading_git(options, words).ok()).flatten();
                become_program(
                    reading.unwrap_or_else(|| self.git_with(options, words, NO_PROTOCOL)),
                )
            }
            GitReach::Sends => match self.destination(options, &words[1..]) {
                Destination::Elsewhere => become_program(self.git_with(options, words, "file")),
                Destination::Refused => refuse(),
                Destination::Failed(code, said) => {
                    let _ = io::stderr().write_all(&said);
                    code
                }
            },
        }
    }

    /// Git with the settings of the fence behind all others.
    fn git_with(&self, options: &[OsString], words: &[OsString], protocols: &str) -> Command {
        let mut git = command_with_everything(&self.git);
        self.put_behind_fence(&mut git, options, words, (protocols, SETTINGS));
        git
    }

    fn put_behind_fence(
        &self,
        git: &mut Command,
        options: &[OsString],
        words: &[OsString],
        (protocols, settings): (&str, &str),
    ) {
        git.args(options).env(PROTOCOLS, protocols);
        // The hooks take a caller without a run for a person.
        let run = std::env::var_os("GT_RUN").unwrap_or_default();
        if run.to_str().is_none_or(|run| RunId::parse(run).is_err()) {
            git.env("GT_RUN", NO_RUN);
        }
        for ours in self.ours.iter().filter(|_| !words.is_empty()) {
            let mut setting = OsString::from("include.path=");
            setting.push(ours.join(settings));
            git.arg("-c").arg(setting);
        }
        git.args(words);
    }

    /// Git with the environment of the supervisor, and so with the credentials that the worker lacks.
    fn trusted_git(&self, options: &[OsString], words: &[OsString], protocols: &str) -> Command {
        let mut git = command_with_everything(&self.git);
        take_environment(&mut git, self.environment_of_supervisor());
        // A merge of a pull keeps the message that git writes.
        git.env("GIT_EDITOR", ":");
        self.put_behind_fence(&mut git, options, words, (protocols, READING_SETTINGS));
        git
    }

    /// The output of the git of [`Self::trusted_git`]. It has no leave to speak with other repositories.
    fn answer_of_trusted(
        &self,
        options: &[OsString],
        words: &[&str],
        is_in_submodule: bool,
    ) -> Vec<u8> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let mut git = self.trusted_git(options, &words, NO_PROTOCOL);
        if is_in_submodule {
            // As git does.
            remove_caller_variables(&mut git);
        }
        git.stderr(Stdio::null()).output().map(|asked| asked.stdout).unwrap_or_default()
    }

    /// A git that reads where the supervisor can. The error is the option or setting by which it would start a program that the
    /// worker has chosen.
    fn reading_git(&self, options: &[OsString], words: &[OsString]) -> Result<Command, String> {
        if let Some(option) = chosen_by_words(options, words) {
            return Err(option);
        }
        let of = |ours: &PathBuf| ours.join(READING_HOOKS_SETTINGS);
        let fence = self.fenced().into_iter().map(|it| it.repository.join(hook::SETTINGS));
        let trusted = TrustedSettings {
            command: &words[0],
            fence: self.ours.iter().map(of).chain(fence).collect(),
        };
        let ask =
            |at: &[OsString], words: &[&str]| self.answer_of_trusted(at, words, at != options);
        let submodules = submodules_of(options, &ask);
        let places = submodules.iter().map(<[OsString; 2]>::as_slice).chain([options]);
        let mut settings = places.map(|place| ask(place, &LIST_SETTINGS));
        if let Some(setting) = settings.find_map(|listed| trusted.chosen_program(&listed)) {
            return Err(setting);
        }
        // The fence's own hooks come behind this, in the repositories that have them.
        let mut options = options.to_vec();
        options.extend(["-c", "core.hooksPath=/dev/null"].map(OsString::from));
        Ok(self.trusted_git(&options, words, PLAIN_PROTOCOLS))
    }

    /// The environment that the supervisor of the run has left. Nothing where it is not kept any more.
    fn environment_of_supervisor(&self) -> Vec<(OsString, OsString)> {
        let Some(run) = std::env::var_os("GT_RUN") else { return Vec::new() };
        let of = |ours: &PathBuf| {
            let files = RunFiles::of(&ours.with_file_name("runs"), &run.to_string_lossy());
            read_environment(&files.environment_path()).ok()
        };
        self.ours.iter().filter_map(of).flatten().collect()
    }

    fn fenced(&self) -> Vec<FencedRepository> {
        let read = |ours: &PathBuf| fs::read(ours.join(FENCED)).unwrap_or_default();
        let mut fenced = Vec::new();
        for records in self.ours.iter().map(read) {
            let words: Vec<&[u8]> = records.split(|byte| *byte == 0).collect();
            fenced.extend(words.chunks_exact(2).map(|pair| FencedRepository {
                repository: OsString::from_vec(pair[0].to_vec()).into(),
                origin: String::from_utf8_lossy(pair[1]).into_owned(),
            }));
        }
        fenced
    }

    /// Whether git would work in the origin itself.
    fn is_in_origin(&self, options: &[OsString]) -> bool {
        let words = ["rev-parse", "--path-format=absolute", "--git-common-dir"].map(OsString::from);
        let asked = self.git_with(options, &words, NO_PROTOCOL).output();
        let place = asked.map(|asked| String::from_utf8_lossy(&asked.stdout).trim().to_owned());
        let place = place.ok().filter(|place| !place.is_empty());
        place.is_some_and(|place| {
            self.fenced().iter().any(|fenced| is_same(&fenced.origin_path(), Path::new(&place)))
        })
    }

    /// The origin whose repository or checkout git would work in, if it is one. Git is not asked: a worker calls it often.
    fn origin_around(&self, options: &[OsString]) -> Option<PathBuf> {
        let place = repository_of(options)?;
        let fenced = self.fenced().into_iter().map(|fenced| fenced.origin_path());
        fenced.into_iter().find(|origin| is_same(origin, &place))
    }

    /// Where a push would go. A push whose destination git does not tell is refused.
    fn destination(&self, options: &[OsString], rest: &[OsString]) -> Destination {
        let fenced = self.fenced();
        let ask = |words: &[&str], rest: &[OsString]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let mut git = self.git_with(options, &words, "file");
            git.args(rest).output()
        };
        let Ok(place) = ask(
            &["rev-parse", "--path-format=absolute", "--git-common-dir", "--show-toplevel"],
            &[],
        ) else {
            return Destination::Refused;
        };
        let place = String::from_utf8_lossy(&place.stdout).into_owned();
        let mut lines = place.lines();
        let Some(common) = lines.next().map(|common| canonical(Path::new(common))) else {
            return Destination::Refused;
        };
        if fenced.iter().any(|fenced| is_same(&fenced.repository, &common)) {
            return Destination::Refused;
        }
        let top = lines.next().map_or_else(|| common.clone(), PathBuf::from);
        // Git says where it would go.
        let is_loud = |word: &&OsString| *word != "-q" && *word != "--quiet";
        let rest: Vec<OsString> = rest.iter().filter(is_loud).cloned().collect();
        let Ok(tried) = ask(&["push", "--dry-run", "--porcelain", "--no-verify"], &rest) else {
            return Destination::Refused;
        };
        let said = String::from_utf8_lossy(&tried.stdout).into_owned();
        let places: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("To ")).collect();
        if !tried.status.success() && places.is_empty() {
            let code = tried.status.code().and_then(|code| u8::try_from(code).ok());
            return Destination::Failed(code.unwrap_or(1), tried.stderr);
        }
        let is_kept = |place: &&str| {
            let place = place.strip_prefix("file://").unwrap_or(place);
            let place = top.join(place);
            fenced.iter().any(|fenced| {
                is_same(&fenced.origin_path(), &place) || is_same(&fenced.repository, &place)
            })
        };
        if places.is_empty() || places.iter().any(is_kept) {
            Destination::Refused
        } else {
            Destination::Elsewhere
        }
    }
}

/// The data of the repository that git with these options finds.
fn repository_of(options: &[OsString]) -> Option<PathBuf> {
    let mut directory = std::env::current_dir().ok()?;
    let mut named = std::env::var_os("GIT_DIR");
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-C") => directory.push(words.next()?),
            Some("--git-dir") => named = words.next().cloned(),
            Some(joined) if joined.starts_with("--git-dir=") => {
                named = joined.strip_prefix("--git-dir=").map(OsString::from);
            }
            Some(word) if WITH_VALUE.contains(&word) => drop(words.next()),
            _ => {}
        }
    }
    if let Some(named) = named {
        return Some(common_directory(&directory.join(named)));
    }
    repository_around(&directory)
}

/// Where a push would go.
enum Destination {
    /// To a directory of this machine that is no origin, from a repository of the worker's own.
    Elsewhere,
    /// Out of a shared repository, or to an origin.
    Refused,
    /// Git knows why it would go nowhere.
    Failed(u8, Vec<u8>),
}

/// Whether two paths are of the same repository. Git adds `.git` to a path, with a slash before it or without.
fn is_same(one: &Path, other: &Path) -> bool {
    let places = |path: &Path| -> Vec<(u64, u64)> {
        let mut longer = path.as_os_str().to_owned();
        longer.push(".git");
        let ways = [path.to_owned(), path.join(".git"), longer.into()];
        let data = ways.iter().filter_map(|way| way.metadata().ok());
        data.map(|data| (data.dev(), data.ino())).collect()
    };
    let others = places(other);
    places(one).iter().any(|place| others.contains(place))
}

fn refuse() -> u8 {
    complain(PUSH_REFUSED);
    1
}

fn become_program(mut program: Command) -> u8 {
    let error = program.exec();
    complain(&format!("gt: git cannot be started: {error}"));
    127
}

fn complain(sentence: &str) {
    // Nothing else can be told if standard error is closed.
    let _ = writeln!(io::stderr(), "{sentence}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn leave(line: &str) -> GitReach {
        let words = words(line);
        let place = place_of_command(&words).unwrap();
        leave_of(&words[place], &words[place + 1..])
    }

    #[test]
    fn the_command_is_found_behind_the_options_of_git() {
        for line in [
            "push --no-verify",
            "-C /a push",
            "-c a.b=c --git-dir /x --no-pager push x",
            "--git-dir=/x --bare push",
            "--config-env a.b=C -p push",
        ] {
            assert_eq!(leave(line), GitReach::Sends, "{line}");
        }
        for line in ["--version", "--help push", "-c a.b=c", ""] {
            assert_eq!(place_of_command(&words(line)), None, "{line}");
        }
    }

    #[test]
    fn only_commands_that_read_may_speak_with_other_repositories() {
        for line in
            ["send-pack /x", "http-push http://x", "remote-https origin https://x", "lfs push x"]
        {
            assert_eq!(leave(line), GitReach::Refused, "{line}");
        }
        for line in ["fetch origin", "clone x", "submodule update --init", "remote show origin"] {
            assert_eq!(leave(line), GitReach::Reads, "{line}");
        }
        assert_eq!(leave("checkout main"), GitReach::Completes);
        for line in [
            "submodule foreach git push",
            "rebase --exec x",
            "bisect run x",
            "lfs lock x",
            "an-alias x",
            "commit",
        ] {
            assert_eq!(leave(line), GitReach::Stays, "{line}");
        }
    }

    #[test]
    fn commands_that_change_files_or_settings_do_more_than_look() {
        let looks = |line: &str| {
            let words = words(line);
            only_looks(&words[0], &words[1..])
        };
        for line in [
            "log -1",
            "status --short",
            "config user.name",
            "config --get-all a.b",
            "remote -v",
            "stash list",
            "symbolic-ref HEAD",
            "symbolic-ref --short HEAD",
            "worktree list",
            "branch other",
        ] {
            assert!(looks(line), "{line}");
        }
        for line in [
            "switch other",
            "checkout -- a",
            "reset --hard",
            "clean -fdx",
            "stash",
            "config a.b c",
            "config --unset a.b",
            "config unset a.b",
            "config --edit",
            "symbolic-ref HEAD refs/heads/a",
            "remote add a b",
            "rm a",
            "gc",
            "an-alias",
            "worktree add x",
            "update-index --assume-unchanged a",
        ] {
            assert!(!looks(line), "{line}");
        }
    }

    #[test]
    fn git_itself_is_found_behind_ours() {
        let place = tempfile::tempdir().unwrap();
        let (ours, theirs) = (place.path().join("ours"), place.path().join("theirs"));
        for directory in [&ours, &theirs] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("git"), "").unwrap();
            fs::set_permissions(directory.join("git"), Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(ours.join(FENCED), "").unwrap();
        let path = std::env::join_paths([&ours, &theirs, &ours]).unwrap();
        let found = search(&path);
        assert_eq!(found.git, Some(theirs.join("git")));
        assert_eq!(found.ours, [ours]);
    }

    proptest! {
        #[test]
        fn no_arguments_make_it_panic(line in "([a-z-]{0,9} ?){0,6}") {
            let words = words(&line);
            if let Some(place) = place_of_command(&words) {
                let _ = leave_of(&words[place], &words[place + 1..]);
            }
        }
    }
}
