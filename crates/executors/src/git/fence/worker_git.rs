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
use std::process::Command;

use gt_core::RunId;

use super::super::links::canonical;
use super::super::scratch::unique_name;
use super::chosen_programs::{chosen_by_settings, chosen_by_words, is_partial_clone};
use super::environment::{WITHHELD, read_environment};
use super::hook::{PUSH_REFUSED, quoted, sections};
use crate::process::command_with_everything;
use crate::runs::RunFiles;

/// The only protocol that a worker's git may use, which there is not.
pub(crate) const NO_PROTOCOL: &str = "none-because-gt-done-lands";

/// The protocols of a git that reads: those that start no program of another name.
const PLAIN_PROTOCOLS: &str = "file:git:http:https:ssh";

/// The variables by which git finds settings and chooses programs.
const CHOOSING: [&str; 17] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_PROXY_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "PAGER",
    "LD_PRELOAD",
];

/// The variable that git asks before it speaks with another repository.
pub(crate) const PROTOCOLS: &str = "GIT_ALLOW_PROTOCOL";

/// The run of a worker that has lost the name of its run.
const NO_RUN: &str = "gt-none#1";

/// The variable that names the `BASH_ENV` of the person, where there was one.
const BASH_ENV_BEFORE: &str = "GT_BASH_ENV";

/// The settings that this program gives git last.
const SETTINGS: &str = "git.config";
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
    let mut settings = String::new();
    for FencedRepository { repository, origin } in fenced {
        let repository = canonical(repository);
        settings.push_str(&sections(&repository, origin));
        for word in [repository.as_os_str().as_bytes(), origin.as_bytes()] {
            records.extend_from_slice(word);
            records.push(0);
        }
    }
    write_if_new(&directory.join(SETTINGS), settings.as_bytes())?;
    write_if_new(&directory.join(FENCED), &records)?;
    write_if_new(&directory.join(BASH), &bash_script(directory))?;
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

fn write_if_new(path: &Path, contents: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == contents) {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(unique_name(&format!(".{name}")));
    fs::write(&beside, contents)?;
    fs::set_permissions(&beside, Permissions::from_mode(0o600))?;
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

/// Where git is on most machines.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin";

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
    let begins =
        |start: &str| rest.iter().any(|word| word.as_bytes().starts_with(start.as_bytes()));
    let Some(command) = command.to_str() else { return GitReach::Stays };
    match command {
        "push" => GitReach::Sends,
        "send-pack" | "http-push" => GitReach::Refused,
        helper if helper.starts_with("remote-") => GitReach::Refused,
        // These name commands of the shell.
        "submodule" if has("foreach") => GitReach::Stays,
        _ if begins("--upload-pack") || begins("--exec") => GitReach::Stays,
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

/// A git that may read from other repositories.
struct ReadingGit {
    git: Command,
    /// Whether its repository may lack objects.
    is_partial: bool,
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
                Ok(reading) => become_program(reading.git),
                Err(chosen) => {
                    complain(&format!(
                        "gt: {chosen} chooses a program, so this git reads from no other repository"
                    ));
                    become_program(self.git_with(options, words, NO_PROTOCOL))
                }
            },
            GitReach::Completes => match self.reading_git(options, words) {
                Ok(reading) if reading.is_partial => become_program(reading.git),
                _ => become_program(self.git_with(options, words, NO_PROTOCOL)),
            },
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
        git.args(options).env(PROTOCOLS, protocols);
        // The hooks take a caller without a run for a person.
        let run = std::env::var_os("GT_RUN").unwrap_or_default();
        if run.to_str().is_none_or(|run| RunId::parse(run).is_err()) {
            git.env("GT_RUN", NO_RUN);
        }
        for ours in self.ours.iter().filter(|_| !words.is_empty()) {
            let mut setting = OsString::from("include.path=");
            setting.push(ours.join(SETTINGS));
            git.arg("-c").arg(setting);
        }
        git.args(words);
        git
    }

    /// A git that reads where the supervisor can, with the credentials that the worker lacks. The error is the option or
    /// setting by which it would start a program that the worker has chosen.
    fn reading_git(&self, options: &[OsString], words: &[OsString]) -> Result<ReadingGit, String> {
        if let Some(option) = chosen_by_words(options, words) {
            return Err(option);
        }
        let list = ["config", "--list", "--show-scope", "-z"].map(OsString::from);
        let mut asked = self.git_with(options, &list, NO_PROTOCOL);
        self.take_environment(&mut asked);
        let listed = asked.output().map(|asked| asked.stdout).unwrap_or_default();
        if let Some(setting) = chosen_by_settings(&listed) {
            return Err(setting);
        }
        // The fence's own hooks come behind this, in the repositories that have them.
        let mut options = options.to_vec();
        options.extend(["-c", "core.hooksPath=/dev/null"].map(OsString::from));
        let mut git = self.git_with(&options, words, PLAIN_PROTOCOLS);
        self.take_environment(&mut git);
        // A merge of a pull keeps the message that git writes.
        git.env("GIT_EDITOR", ":");
        Ok(ReadingGit { git, is_partial: is_partial_clone(&listed) })
    }

    /// Replaces what programs git finds and starts, and its credentials, by what the supervisor has. Where that is not kept
    /// any more, git has none of both.
    fn take_environment(&self, git: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if CHOOSING.iter().any(|it| name == *it) {
                git.env_remove(name);
            }
        }
        git.env("PATH", USUAL_PATH);
        let Some(run) = std::env::var_os("GT_RUN") else { return };
        for ours in &self.ours {
            let runs = ours.with_file_name("runs");
            let files = RunFiles::of(&runs, &run.to_string_lossy());
            let saved = read_environment(&files.environment_path()).unwrap_or_default();
            git.envs(saved.into_iter().filter(|(name, _)| {
                name == "PATH" || CHOOSING.iter().chain(&WITHHELD).any(|it| name == *it)
            }));
        }
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
        for line in ["send-pack /x", "http-push http://x", "remote-https origin https://x"] {
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
            "fetch --upload-pack=x y",
            "an-alias x",
            "commit",
        ] {
            assert_eq!(leave(line), GitReach::Stays, "{line}");
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
