//! The directory and the environment that programs under test run in.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::finished_program::FinishedProgram;
use crate::invocation::SandboxCommand;

/// The only git configuration that programs in a sandbox see.
const GIT_CONFIGURATION: &str = "\
[user]
\tname = Test Person
\temail = test@example.com
[init]
\tdefaultBranch = main
";

/// The date of the commit in [`Sandbox::git_repository`], so that its hash is the same every time.
const COMMIT_DATE: &str = "2026-01-01T00:00:00Z";

/// An empty directory of its own with a home, a clean environment, and the binary under test.
///
/// Clones and [`Sandbox::in_dir`] share the directory; it is removed with the last of them.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// Held for its `Drop`.
    directory: Arc<Directory>,
    /// The same directory without symbolic links, so that paths in output can be compared.
    root: PathBuf,
    cwd: PathBuf,
    gt: PathBuf,
}

/// The directory of a sandbox. It is removed at the end, after the daemons and the servers of tmux that were started in it.
#[derive(Debug)]
struct Directory(TempDir);

impl Drop for Directory {
    fn drop(&mut self) {
        for around in [self.0.path().to_owned(), self.0.path().join("home")] {
            for town in fs::read_dir(around).into_iter().flatten().flatten() {
                end_daemon(&town.path());
            }
        }
        let sockets = fs::read_dir(self.0.path().join(TMUX_DIRECTORY)).into_iter().flatten();
        let users = sockets.flatten().flat_map(|user| fs::read_dir(user.path()));
        for socket in users.flatten().flatten() {
            let mut tmux = std::process::Command::new("tmux");
            // There may be none behind it any more.
            let _ = tmux.arg("-S").arg(socket.path()).arg("kill-server").output();
        }
    }
}

/// A test that fails prints the state of the work in its town, for a reader who only has its
/// output.
impl Drop for Sandbox {
    #[expect(
        clippy::print_stderr,
        reason = "the output of a failed test is all that is left of it"
    )]
    fn drop(&mut self) {
        if !std::thread::panicking()
            || Arc::strong_count(&self.directory) > 1
            || !self.cwd.join(".gt").exists()
        {
            return;
        }
        for arguments in [["run", "list", "--all"].as_slice(), &["feed", "--limit", "40"]] {
            // A second panic on the way out would end the program with all of its tests.
            let shown = panic::catch_unwind(panic::AssertUnwindSafe(|| self.gt(arguments)));
            if let Ok(shown) = shown {
                eprintln!("{shown}");
            }
        }
    }
}

/// Ends the daemon of a town, if one runs: the process that holds its lock, by the number that it
/// wrote there.
fn end_daemon(town: &Path) {
    let path = town.join(".gt/daemon.lock");
    let Ok(file) = fs::File::open(&path) else { return };
    if !matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)) {
        return;
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let Some(pid) = text.split(' ').next().filter(|pid| pid.parse::<u32>().is_ok()) else { return };
    // It may have ended meanwhile, and its number may have been reused.
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if String::from_utf8_lossy(&command).contains("daemon") {
        let _ = std::process::Command::new("kill").args(["-KILL", pid]).output();
        crate::wait_until("the daemon is gone", || file.try_lock_shared().is_ok());
    }
}

/// Where the sockets of tmux are.
const TMUX_DIRECTORY: &str = "tmux";

impl Sandbox {
    /// A directory without a town. Tests of gt-cli pass `env!("CARGO_BIN_EXE_gt")`.
    #[track_caller]
    pub fn new(gt: impl Into<PathBuf>) -> Self {
        let directory =
            tempfile::Builder::new().prefix("gt-test-").tempdir().expect("make a sandbox");
        let root = directory.path().canonicalize().expect("the sandbox has a path");
        // Absolute, because programs run in other directories than the test itself.
        let gt = std::path::absolute(gt.into()).expect("the binary has a path");
        let cwd = root.join("work");
        let sandbox = Self { directory: Arc::new(Directory(directory)), root, cwd, gt };
        for name in ["work", "home", "tmp", "runtime", TMUX_DIRECTORY] {
            sandbox.make_dir(sandbox.root.join(name));
        }
        // Programs refuse a runtime directory that others may read.
        fs::set_permissions(sandbox.root.join("runtime"), Permissions::from_mode(0o700))
            .expect("protect the runtime directory");
        fs::write(sandbox.git_configuration(), GIT_CONFIGURATION).expect("write .gitconfig");
        sandbox
    }

    /// A directory with a town in it, made by `gt install`; commands run in the town.
    #[track_caller]
    pub fn town(gt: impl Into<PathBuf>) -> Self {
        let sandbox = Self::new(gt);
        let town = sandbox.root.join("town");
        sandbox.gt([OsStr::new("install"), town.as_os_str()]).ok();
        sandbox.in_dir(town)
    }

    /// Like [`Sandbox::town`], with its records in the PostgreSQL database at `url`.
    #[track_caller]
    pub fn town_on(gt: impl Into<PathBuf>, url: &str) -> Self {
        let sandbox = Self::new(gt);
        let town = sandbox.root.join("town");
        let install = sandbox.command(&sandbox.gt).env("DATABASE_URL", url);
        install.arg("install").arg(&town).run().ok();
        sandbox.in_dir(town)
    }

    /// The directory that holds everything of this sandbox.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Keeps the directory when the last view of it is gone, so that a person can look at a
    /// failure. Daemons and servers in it are not ended then.
    pub fn keep(&self) {
        std::mem::forget(Arc::clone(&self.directory));
    }

    /// The directory commands run in.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The same sandbox, with commands run in another directory that exists. A relative path
    /// starts from the current one.
    #[track_caller]
    #[must_use = "the sandbox itself stays where it is"]
    pub fn in_dir(&self, directory: impl AsRef<Path>) -> Self {
        let cwd = self.cwd.join(directory);
        assert!(cwd.is_dir(), "there is no directory {}", cwd.display());
        let mut there = self.clone();
        there.cwd = cwd;
        there
    }

    /// Makes a directory, with those above it, and returns its path. A relative path starts from
    /// the current directory.
    #[track_caller]
    pub fn make_dir(&self, directory: impl AsRef<Path>) -> PathBuf {
        let path = self.cwd.join(directory);
        if let Err(error) = fs::create_dir_all(&path) {
            panic!("cannot make the directory {}: {error}", path.display());
        }
        path
    }

    /// Runs `gt` with these arguments.
    #[track_caller]
    #[must_use = "say what is expected: .ok() or .fails(code)"]
    pub fn gt<I, S>(&self, arguments: I) -> FinishedProgram
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.command(&self.gt).args(arguments).run()
    }

    /// Runs the `bd` that lies beside `gt` with these arguments.
    #[track_caller]
    #[must_use = "say what is expected: .ok() or .fails(code)"]
    pub fn bd<I, S>(&self, arguments: I) -> FinishedProgram
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.command(self.bd_path()).args(arguments).run()
    }

    /// The binary under test, to start it with [`Sandbox::command`].
    pub fn gt_path(&self) -> &Path {
        &self.gt
    }

    /// The `bd` beside it.
    pub fn bd_path(&self) -> PathBuf {
        self.gt.with_file_name("bd")
    }

    /// Any program, to be given arguments, input and variables before it runs here. A name
    /// without a slash is looked for on `PATH`.
    pub fn command(&self, program: impl AsRef<OsStr>) -> SandboxCommand {
        SandboxCommand::new(PathBuf::from(program.as_ref()), self.environment(), self.cwd.clone())
    }

    /// Makes a git repository with one commit on the branch `main` and returns its path, which is
    /// directly under [`Sandbox::root`], outside of any town.
    #[track_caller]
    pub fn git_repository(&self, name: &str) -> PathBuf {
        let path = self.make_dir(self.root.join(name));
        fs::write(path.join("README.md"), format!("# {name}\n")).expect("write a file to commit");
        let git = |arguments: &[&str]| {
            self.command("git")
                .args(arguments)
                .dir(&path)
                .env("GIT_AUTHOR_DATE", COMMIT_DATE)
                .env("GIT_COMMITTER_DATE", COMMIT_DATE)
                .run()
                .ok()
        };
        git(&["init", "--quiet", "--initial-branch", "main"]);
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", "First commit"]);
        path
    }

    fn git_configuration(&self) -> PathBuf {
        self.root.join("home/.gitconfig")
    }

    /// The whole environment of a program: of ours, only `PATH` is passed on.
    fn environment(&self) -> BTreeMap<OsString, OsString> {
        let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let home = self.root.join("home");
        let variables: [(&str, OsString); 16] = [
            ("PATH", path),
            ("HOME", home.clone().into()),
            ("XDG_CONFIG_HOME", home.join(".config").into()),
            ("XDG_DATA_HOME", home.join(".local/share").into()),
            ("XDG_STATE_HOME", home.join(".local/state").into()),
            ("XDG_CACHE_HOME", home.join(".cache").into()),
            ("XDG_RUNTIME_DIR", self.root.join("runtime").into()),
            ("TMPDIR", self.root.join("tmp").into()),
            ("TMUX_TMPDIR", self.root.join(TMUX_DIRECTORY).into()),
            ("TZ", "UTC".into()),
            ("LANG", "C.UTF-8".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", self.git_configuration().into()),
            // A repository around the temporary directory is not ours.
            ("GIT_CEILING_DIRECTORIES", self.directory.0.path().into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            // How much memory this machine has left is nothing that a test may depend on.
            ("GT_MACHINE", self.root.join("machine").into()),
        ];
        variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn shell() -> Sandbox {
        Sandbox::new("/bin/sh")
    }

    #[test]
    fn gt_runs_in_the_current_directory() {
        let sandbox = shell();
        assert_eq!(sandbox.gt(["-c", "pwd -P"]).ok().line(), sandbox.cwd().to_str().unwrap());
        assert!(sandbox.cwd().starts_with(sandbox.root()));
    }

    #[test]
    fn bd_is_the_program_beside_gt() {
        let binaries = shell();
        symlink("/bin/sh", binaries.root().join("gt")).unwrap();
        symlink("/bin/sh", binaries.root().join("bd")).unwrap();
        let sandbox = Sandbox::new(binaries.root().join("gt"));
        assert!(sandbox.gt(["-c", "echo $0"]).ok().line().ends_with("/gt"));
        assert!(sandbox.bd(["-c", "echo $0"]).ok().line().ends_with("/bd"));
    }

    #[test]
    fn only_the_sandbox_is_in_the_environment() {
        let sandbox = shell();
        let environment = sandbox.command("env").run().ok();
        let names: Vec<&str> =
            environment.stdout.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        assert_eq!(names.len(), 16, "{environment}");
        // Cargo sets it for the tests themselves, so it would be here if anything leaked.
        assert!(env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert!(!names.contains(&"CARGO_MANIFEST_DIR"));
        for name in [
            "HOME",
            "TMPDIR",
            "TMUX_TMPDIR",
            "XDG_CONFIG_HOME",
            "XDG_RUNTIME_DIR",
            "GIT_CONFIG_GLOBAL",
        ] {
            let value = sandbox.gt(["-c", &format!("echo ${name}")]).ok();
            assert!(Path::new(value.line()).starts_with(sandbox.root()), "{name}\n{value}");
        }
    }

    #[test]
    fn commands_can_run_elsewhere() {
        let sandbox = shell();
        let made = sandbox.make_dir("deep/inside");
        let inside = sandbox.in_dir("deep").in_dir("inside");
        assert_eq!(inside.cwd(), made);
        assert_eq!(inside.gt(["-c", "pwd -P"]).ok().line(), made.to_str().unwrap());
        let once = sandbox.command("pwd").dir("deep").run().ok();
        assert_eq!(once.line(), sandbox.cwd().join("deep").to_str().unwrap());
    }

    #[test]
    #[should_panic(expected = "there is no directory")]
    fn a_misspelt_directory_is_noticed() {
        let _unused = shell().in_dir("nowhere");
    }

    #[test]
    fn the_directory_lives_as_long_as_a_view_of_it() {
        let sandbox = shell();
        let root = sandbox.root().to_owned();
        let view = sandbox.in_dir("..");
        drop(sandbox);
        assert!(root.is_dir());
        drop(view);
        assert!(!root.exists());
    }

    #[test]
    fn a_town_is_installed_and_entered() {
        // `mkdir` takes `install` and the town for two directories to make: enough of an
        // installer for this test.
        let sandbox = Sandbox::town("/bin/mkdir");
        assert_eq!(sandbox.cwd(), sandbox.root().join("town"));
        assert!(sandbox.root().join("work/install").is_dir());
    }

    #[test]
    fn a_repository_has_one_commit_on_main_by_the_test_person() {
        let sandbox = shell();
        let repository = sandbox.in_dir(sandbox.git_repository("kitchen"));
        let git = |arguments: &[&str]| {
            repository.command("git").args(arguments).run().ok().line().to_owned()
        };
        assert_eq!(git(&["branch", "--show-current"]), "main");
        assert_eq!(git(&["log", "--format=%an <%ae>"]), "Test Person <test@example.com>");
        assert_eq!(git(&["status", "--porcelain"]), "");
        // The same in every sandbox.
        let other = shell();
        let other = other.in_dir(other.git_repository("kitchen"));
        let hash = other.command("git").args(["rev-parse", "HEAD"]).run().ok();
        assert_eq!(hash.line(), git(&["rev-parse", "HEAD"]));
    }

    #[test]
    fn a_repository_around_the_sandbox_is_not_found() {
        shell().command("git").args(["rev-parse", "--show-toplevel"]).run().fails(128);
    }
}
