//! Where programs are measured: a directory of its own, a clean environment, towns with beads.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::BenchmarkResult;
use crate::sample::Sample;

/// The only git configuration that programs see.
const GIT_CONFIGURATION: &str = "[user]\n\tname = Bench Mark\n\temail = bench@example.com\n";

/// How large and how often.
pub(crate) struct Scale {
    /// Beads of the large town.
    pub(crate) large: u32,
    /// Beads of the small one.
    pub(crate) small: u32,
    /// Beads of a town that is larger than any should be.
    pub(crate) huge: u32,
    /// And of one that is not.
    pub(crate) middle: u32,
    /// Rounds of programs that take milliseconds.
    pub(crate) short_rounds: usize,
    /// Rounds of programs that take seconds.
    pub(crate) long_rounds: usize,
    /// The beads that each of the threads writes in a round of grouped creates.
    pub(crate) creates_per_thread: u32,
    /// How often sixteen programs write at once, beside a busy writer and without.
    pub(crate) bursts: usize,
    /// Items that agents are given to see that none is given twice.
    pub(crate) claims: u32,
    /// Those of them that are given in a round of a comparison, at most.
    pub(crate) claims_compared: u32,
    /// Listeners to the events of a server.
    pub(crate) listeners: u32,
    /// Connections to it on which nothing happens.
    pub(crate) idle: u32,
    /// The items that are submitted while they listen.
    pub(crate) submissions: u32,
}

/// The directory, removed with this value, and its contents.
pub(crate) struct Lab {
    directory: TempDir,
    binaries: PathBuf,
    /// How large and how often.
    pub(crate) scale: Scale,
    small: OnceCell<BenchmarkTown>,
    large: OnceCell<BenchmarkTown>,
}

/// A town.
pub(crate) struct BenchmarkTown {
    /// Its directory.
    pub(crate) path: PathBuf,
    /// The file its beads came from; empty for none.
    pub(crate) source: PathBuf,
}

impl BenchmarkTown {
    /// Its database.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(".gt/gt.db")
    }
}

impl Lab {
    /// An empty one. `quick` makes everything in it small, `long` gives measurements of minutes
    /// their full size.
    pub(crate) fn new(quick: bool, long: bool) -> BenchmarkResult<Self> {
        let directory = tempfile::Builder::new().prefix("gt-bench-").tempdir()?;
        fs::create_dir(directory.path().join("home"))?;
        fs::write(directory.path().join("home/.gitconfig"), GIT_CONFIGURATION)?;
        let program = std::env::current_exe()?;
        let binaries = program.parent().ok_or("no directory around the program")?;
        let scale = if quick {
            Scale {
                large: 5_000,
                small: 500,
                huge: 10_000,
                middle: 1_000,
                short_rounds: 10,
                long_rounds: 1,
                creates_per_thread: 20,
                bursts: 2,
                claims: 640,
                claims_compared: 640,
                listeners: 50,
                idle: 100,
                submissions: 64,
            }
        } else {
            Scale {
                large: 100_000,
                small: 1_000,
                huge: 1_000_000,
                middle: 10_000,
                short_rounds: 200,
                long_rounds: 5,
                creates_per_thread: 500,
                bursts: 15,
                claims: if long { 1_000_000 } else { 50_000 },
                claims_compared: 6_400,
                listeners: 1_000,
                idle: 5_000,
                submissions: 480,
            }
        };
        Ok(Self {
            binaries: binaries.to_owned(),
            directory,
            scale,
            small: OnceCell::new(),
            large: OnceCell::new(),
        })
    }

    /// Everything lies below it.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Programs that were built beside this one lie here.
    pub(crate) fn binaries(&self) -> &Path {
        &self.binaries
    }

    /// A program that was built beside this one, with nothing of our environment and nothing to read
    /// or to print to.
    pub(crate) fn program(&self, name: &str, directory: &Path) -> BenchmarkResult<Command> {
        self.clean(self.binaries.join(name), directory)
    }

    /// A program of the system, in the same way.
    pub(crate) fn system(&self, name: &str, directory: &Path) -> BenchmarkResult<Command> {
        self.clean(name, directory)
    }

    fn clean(&self, program: impl AsRef<OsStr>, directory: &Path) -> BenchmarkResult<Command> {
        let home = self.path().join("home");
        let errors =
            File::options().create(true).append(true).open(self.path().join("errors.txt"))?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &home)
            .env("GIT_CONFIG_GLOBAL", home.join(".gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("TMPDIR", self.path())
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        Ok(command)
    }

    /// How long a command takes, from its start until it has been waited for.
    pub(crate) fn time(&self, command: &mut Command) -> BenchmarkResult<Duration> {
        let start = Instant::now();
        let status = command.status()?;
        let took = start.elapsed();
        if status.success() { Ok(took) } else { Err(self.failure(command)) }
    }

    /// The output of a command.
    pub(crate) fn output(&self, command: &mut Command) -> BenchmarkResult<String> {
        let output = command.stdout(Stdio::piped()).spawn()?.wait_with_output()?;
        if output.status.success() {
            Ok(String::from_utf8(output.stdout)?)
        } else {
            Err(self.failure(command))
        }
    }

    /// Runs `bd` in a town.
    pub(crate) fn bd<I, S>(&self, town: &BenchmarkTown, arguments: I) -> BenchmarkResult<Command>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = self.program("bd", &town.path)?;
        command.args(arguments);
        Ok(command)
    }

    /// This program itself, with a part of it to run.
    pub(crate) fn part(&self, name: &str) -> BenchmarkResult<Command> {
        let mut command = self.program("gt-benchmarks", self.path())?;
        command.arg(name);
        Ok(command)
    }

    /// A new town without beads.
    pub(crate) fn empty_town(&self, name: &str) -> BenchmarkResult<BenchmarkTown> {
        let path = self.path().join(name);
        let mut install = self.program("gt", self.path())?;
        self.time(install.arg("install").arg(&path))?;
        Ok(BenchmarkTown { path, source: PathBuf::new() })
    }

    /// The town in the database at `url`, which this host joins.
    pub(crate) fn town_on(&self, name: &str, url: &str) -> BenchmarkResult<BenchmarkTown> {
        let path = self.path().join(name);
        let mut install = self.program("gt", self.path())?;
        self.time(install.env("DATABASE_URL", url).arg("install").arg(&path))?;
        Ok(BenchmarkTown { path, source: PathBuf::new() })
    }

    /// A file with so many beads and three times as many dependencies; the same every time.
    pub(crate) fn source(&self, beads: u32) -> BenchmarkResult<PathBuf> {
        let path = self.path().join(format!("{beads}.jsonl"));
        if !path.exists() {
            Sample::new(beads).write(&path)?;
        }
        Ok(path)
    }

    /// A new town with so many beads, imported.
    pub(crate) fn filled_town(&self, name: &str, beads: u32) -> BenchmarkResult<BenchmarkTown> {
        let mut town = self.empty_town(name)?;
        town.source = self.source(beads)?;
        self.time(self.bd(&town, ["import"])?.arg(&town.source))?;
        Ok(town)
    }

    /// A town with few beads that no benchmark changes.
    pub(crate) fn small(&self) -> BenchmarkResult<&BenchmarkTown> {
        self.kept(&self.small, "small", self.scale.small)
    }

    /// A town with many beads that no benchmark changes.
    pub(crate) fn large(&self) -> BenchmarkResult<&BenchmarkTown> {
        self.kept(&self.large, "large", self.scale.large)
    }

    fn kept<'l>(
        &'l self,
        slot: &'l OnceCell<BenchmarkTown>,
        name: &str,
        beads: u32,
    ) -> BenchmarkResult<&'l BenchmarkTown> {
        if let Some(town) = slot.get() {
            return Ok(town);
        }
        let town = self.filled_town(name, beads)?;
        Ok(slot.get_or_init(|| town))
    }

    fn failure(&self, command: &Command) -> Box<dyn std::error::Error> {
        let errors = fs::read_to_string(self.path().join("errors.txt")).unwrap_or_default();
        let last = errors.lines().last().unwrap_or("it said nothing");
        format!("{command:?} failed: {last}").into()
    }
}
